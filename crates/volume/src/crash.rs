//! Points where a stop is most interesting, named so that a simulation can count that it reached them all, or stop
//! there.
//!
//! Each has a `// CRASH:` comment in the code that says why a stop just there is safe, and an entry in
//! [`CRASH_POINTS`].

use std::fmt;
use std::sync::Arc;

/// All crash points, by name.
pub const CRASH_POINTS: &[&str] = &[
    "create.before-superblock",
    "superblock.before-write",
    "superblock.before-sync",
    "journal.before-write",
    "journal.before-sync",
    "journal.after-sync",
    "checkpoint.before-write",
    "checkpoint.before-sync",
    "checkpoint.before-switch",
    "checkpoint.after-switch",
    "recovery.after-replay",
    "recovery.before-unclean-mark",
    "close.before-clean-mark",
    "allocate.before-clearing",
    "allocate.before-mapping",
    "sync.before-devices",
    "sync.before-mapping",
    "sync.before-commit",
    "write.before-mirror-drop",
    "write.after-mirror-drop",
    "tail.before-sync",
    "tail.after-sync",
    "free.before-reuse",
    "move.before-copy",
    "move.before-sync",
    "move.before-switch",
    "move.after-switch",
    "mirror.before-sync",
    "mirror.before-switch",
    "mirror.after-switch",
    "class.before-label-sync",
    "class.before-commit",
    "page.before-clean",
    "page.before-switch",
    "page.before-chunk-release",
    "page.before-alter",
    "sync.before-pages",
    "optimize.before-sync",
];

/// Told of every crash point that is passed.
pub trait CrashProbe: Send + Sync {
    /// The point `name` of [`CRASH_POINTS`] is being passed.
    fn reached(&self, name: &'static str);
}

/// Where crash points are reported; nowhere, unless a probe is injected.
#[derive(Clone, Default)]
pub struct CrashPoints {
    probe: Option<Arc<dyn CrashProbe>>,
}

impl CrashPoints {
    /// Reports to `probe`.
    pub fn to(probe: Arc<dyn CrashProbe>) -> CrashPoints {
        CrashPoints { probe: Some(probe) }
    }

    pub(crate) fn reached(&self, name: &'static str) {
        debug_assert!(CRASH_POINTS.contains(&name), "{name} is not listed");
        if let Some(probe) = &self.probe {
            probe.reached(name);
        }
    }
}

impl fmt::Debug for CrashPoints {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CrashPoints").field("probed", &self.probe.is_some()).finish()
    }
}

/// A bug on demand: a simulation that does not find it guards nothing. Never set outside of tests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[doc(hidden)]
pub enum PlantedBug {
    /// None.
    #[default]
    None,
    /// The mapping switches before the copy is durable.
    SwitchBeforeSync,
    /// Freed space is used again before the freeing is durable.
    ReuseBeforeFree,
    /// The superblock names a checkpoint that is not durable.
    SuperblockBeforeCheckpoint,
    /// A sync makes mappings durable before the data.
    MapBeforeData,
    /// What is said about an object is not recorded.
    ForgetAttributes,
    /// A chunk too many is given to an object with a quota.
    OverrunQuota,
    /// A pin is taken for a preference.
    IgnorePin,
    /// A write on the short way is counted for its object alone.
    CountHalf,
    /// What cannot be read from a mirror cannot be read.
    TrustMirrors,
    /// A sync journals pages before their data are durable.
    JournalPagesBeforeData,
    /// Blocks that pages have left are used again before that is durable.
    ReusePagesEarly,
    /// A sync does not wait for pages that wait for a cleaner.
    SyncBeforeCleaners,
}
