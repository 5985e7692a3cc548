//! When values of a store were promoted last, and the reads since.

use std::sync::atomic::AtomicU64;
use std::time::Duration;

use parking_lot::Mutex;

/// Time of a store's last promotion.
#[derive(Debug, Default)]
pub(crate) struct Promotion {
    /// Time of the last promotion, or of the first possible one; the budget accumulates from then on.
    pub(crate) last: Mutex<Option<Duration>>,
    pub(crate) reads: AtomicU64,
}
