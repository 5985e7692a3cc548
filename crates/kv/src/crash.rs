//! Points where a stop is most interesting, named so that a simulation can count that it reached them all, or stop
//! there.
//!
//! Each has one `// CRASH:` comment in the code that says why a stop just there is safe, and an entry in
//! [`CRASH_POINTS`].

use std::fmt;
use std::sync::Arc;

/// All crash points of the engine, by name.
pub const CRASH_POINTS: &[&str] = &[
    "log.before-write",
    "log.before-sync",
    "log.after-sync",
    "log.after-prepare",
    "manifest.before-write",
    "manifest.before-sync",
    "manifest.after-sync",
    "manifest.before-rotation-sync",
    "manifest.before-old-deletion",
    "manifest.before-rotated-deletion",
    "flush.before-keys",
    "flush.before-manifest",
    "flush.after-manifest",
    "job.before-manifest",
    "job.after-manifest",
    "promotion.before-manifest",
    "promotion.before-dropping",
    "mirrors.before-manifest",
    "object.before-deletion",
    "open.before-orphans",
    "open.after-orphans",
    "create.before-manifest",
    "checkpoint.before-manifest",
    "bulk.before-manifest",
];

/// Told of every crash point that is passed.
pub trait CrashProbe: Send + Sync {
    /// The point `name` of [`CRASH_POINTS`] is being passed.
    fn reached(&self, name: &'static str);
}

/// Reports crash points to the injected probe, if there is one.
#[derive(Clone, Default)]
pub struct CrashPoints {
    probe: Option<Arc<dyn CrashProbe>>,
    bug: PlantedBug,
}

/// A bug on demand: a simulation that does not find it guards nothing. Never set outside of tests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[doc(hidden)]
pub enum PlantedBug {
    /// None.
    #[default]
    None,
    /// Commits are not checked for conflicts.
    LeaveOutConflicts,
    /// The reads of transactions are not checked.
    ForgetReads,
    /// A transaction's snapshot has the number of the commit that comes next.
    SnapshotTooLate,
    /// The last operation of a batch is not replayed.
    ReplayInPart,
    /// Waiters of the log are notified before it is synced.
    AcknowledgeBeforeSync,
    /// Deletes are dropped where older versions lie below.
    DropDeletes,
    /// The log is cut one frame behind the one that is torn.
    CutTooLate,
    /// A change of the manifest counts before it is durable.
    SkipManifestSync,
}

impl CrashPoints {
    /// Reports to `probe`.
    pub fn to(probe: Arc<dyn CrashProbe>) -> CrashPoints {
        CrashPoints { probe: Some(probe), bug: PlantedBug::None }
    }

    /// The same, with a bug.
    #[doc(hidden)]
    pub fn with_bug(self, bug: PlantedBug) -> CrashPoints {
        CrashPoints { bug, ..self }
    }

    /// Returns whether the engine is asked to have `bug`.
    pub(crate) fn has(&self, bug: PlantedBug) -> bool {
        self.bug == bug
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
