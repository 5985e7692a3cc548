//! When the bytes on the fastest class are counted again.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// When the bytes on the fastest class are counted again.
#[derive(Debug, Default)]
pub(crate) struct Watch {
    pub(crate) next_count_ns: AtomicU64,
    /// They are counted earlier when this many objects were made.
    pub(crate) still_fit: AtomicU64,
    /// The log may lie elsewhere than it is meant to.
    pub(crate) log_unsettled: AtomicBool,
}

impl Watch {
    pub(crate) fn note_log_unsettled(&self) {
        self.log_unsettled.store(true, Ordering::Relaxed);
    }

    pub(crate) fn take_log_unsettled(&self) -> bool {
        self.log_unsettled.load(Ordering::Relaxed) && self.log_unsettled.swap(false, Ordering::Relaxed)
    }
}
