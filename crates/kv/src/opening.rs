//! Options of an opening, and how far a recovery is.

use std::fmt;
use std::sync::Arc;

use crate::overrides::DatabaseOverrides;

/// Progress of a recovery.
///
/// ```
/// use tanada_kv::RecoveryProgress;
///
/// let progress = RecoveryProgress { replayed_bytes: 1 << 20, total_bytes: 4 << 20, operations: 1000 };
/// assert_eq!(100 * progress.replayed_bytes / progress.total_bytes, 25); // percent
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RecoveryProgress {
    /// Bytes of log that were read,
    pub replayed_bytes: u64,
    /// of at most this many.
    pub total_bytes: u64,
    /// Operations that were replayed.
    pub operations: u64,
}

/// Told how far a recovery is, after each group of the log.
pub type OnProgress = Arc<dyn Fn(&RecoveryProgress) + Send + Sync>;

/// Options of an opening.
///
/// ```
/// use std::sync::Arc;
/// use tanada_kv::{DatabaseOverrides, OpenOptions};
///
/// let options = OpenOptions {
///     settings: DatabaseOverrides { memory_bytes: Some(64 << 20), ..DatabaseOverrides::default() },
///     progress: Some(Arc::new(|progress| println!("{} operations", progress.operations))),
///     ..OpenOptions::default()
/// };
/// assert!(!options.read_only);
/// ```
#[derive(Clone, Default)]
pub struct OpenOptions {
    /// Change nothing. Default: no.
    pub read_only: bool,
    /// Settings that replace the database's own; an opening for writing keeps them. `DatabaseSettings::into` replaces
    /// all. Default: none.
    pub settings: DatabaseOverrides,
    /// Told how far a recovery is.
    pub progress: Option<OnProgress>,
    /// Told of crash points.
    pub crash_points: crate::CrashPoints,
}

impl fmt::Debug for OpenOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OpenOptions")
            .field("read_only", &self.read_only)
            .field("settings", &self.settings)
            .finish_non_exhaustive()
    }
}
