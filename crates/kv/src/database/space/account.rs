//! The space that a database takes up: how much it may, what is reserved, and what can be deleted.
//!
//! The state of all that; its methods stand beside: [`usage`](super::usage), [`size_limits`](super::size_limits),
//! [`limit`](super::limit), [`reservation`](super::reservation), [`deletion`](super::deletion).

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use parking_lot::Mutex;
use tanada_volume::ClassListener;

use crate::database::shared::Shared;
use crate::database::space::watch::Watch;

/// See the module's head.
#[derive(Debug)]
pub(crate) struct SpaceManager {
    pub(crate) shared: Arc<Shared>,
    /// Memtables are flushed before they have more, for memory is bounded, and what they become is spilled as a whole.
    pub(crate) table_bytes: AtomicU64,
    /// Largest space that a compaction of a store needs: see [`super::reservation`].
    pub(crate) largest_need: AtomicU64,
    pub(crate) limit: Watch,
    pub(crate) class_listener: OnceLock<ClassListener>,
    /// Delay of each write, in microseconds, because the fastest class is nearly full.
    pub(crate) slowed_us: AtomicU32,
    /// Time when a waiting writer last made deletions durable.
    pub(crate) synced_for_room: Mutex<Option<Duration>>,
}

impl SpaceManager {
    pub(crate) fn new(shared: &Arc<Shared>) -> SpaceManager {
        SpaceManager {
            shared: shared.clone(),
            table_bytes: AtomicU64::new(u64::MAX),
            largest_need: AtomicU64::new(0),
            limit: Watch::default(),
            class_listener: OnceLock::new(),
            slowed_us: AtomicU32::new(0),
            synced_for_room: Mutex::default(),
        }
    }
}

impl SpaceManager {
    /// Bytes at which a table is flushed.
    pub(crate) fn table_bytes(&self) -> u64 {
        self.table_bytes.load(Ordering::Relaxed)
    }
}
