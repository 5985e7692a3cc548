//! How fast chunks may be relocated.
//!
//! Two reasons to wait, both over the volume's clock:
//! - a bandwidth limit: a token bucket gives each chunk a time at which it may begin, its bytes after the one before.
//!   An idle time gives at most one second's worth in advance;
//! - others that read or write objects meanwhile: see [`super::pace`]. What is seen of them holds for all relocations
//!   of a volume.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use parking_lot::Mutex;

use super::pace::Pace;

/// Lets time pass. Injected, so that it passes in a simulation too.
pub trait Timer: Send + Sync + fmt::Debug {
    /// A future that is ready after `duration`.
    fn sleep(&self, duration: Duration) -> Pin<Box<dyn Future<Output = ()> + Send>>;
}

impl Timer for tanada_io::Timeline {
    fn sleep(&self, duration: Duration) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        Box::pin(tanada_io::Timeline::sleep(self, duration))
    }
}

/// Limits of a relocation.
///
/// ```
/// use tanada_volume::Budget;
///
/// let slow = Budget { concurrency: 1, ..Budget::default() };
/// assert!(slow.bytes_per_second.is_none()); // no limit but that of others' I/Os
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Budget {
    /// Chunks that are copied at once, at most; each takes a buffer of a chunk. Default: 16.
    pub concurrency: usize,
    /// Bytes copied a second, no limit by default. Needs [`crate::Parts::timer`].
    pub bytes_per_second: Option<u64>,
    /// Copy only as fast as makes the reads and writes of others little slower (a tenth or so). Without a timer nothing
    /// is held back. Default: true.
    pub yields: bool,
}

impl Default for Budget {
    fn default() -> Budget {
        Budget { concurrency: 16, bytes_per_second: None, yields: true }
    }
}

/// What the relocations of a volume have seen of its use.
#[derive(Debug)]
pub(crate) struct SharedPace(pub(super) Mutex<Pace>);

impl Default for SharedPace {
    fn default() -> SharedPace {
        SharedPace(Mutex::new(Pace::new()))
    }
}
