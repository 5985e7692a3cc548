//! The cleaners of a volume, the memory of their pages, and the objects that wait for one of them.

use std::collections::VecDeque;
use std::sync::Arc;

use parking_lot::Mutex;

use super::dirty::DirtyMemory;
use crate::object::ObjectState;
use crate::parts::Cleaners;

/// The cleaners of a volume and what waits for them.
#[derive(Debug)]
pub(crate) struct Cleaning {
    pub(super) cleaners: Cleaners,
    pub(super) memory: Arc<DirtyMemory>,
    pub(super) queue: Mutex<CleaningQueue>,
}

#[derive(Debug, Default)]
pub(super) struct CleaningQueue {
    /// Objects with pages that nobody has claimed.
    pub(super) objects: VecDeque<Arc<ObjectState>>,
    /// Cleaners that run.
    pub(super) running: usize,
}

impl Cleaning {
    pub(crate) fn new(cleaners: Cleaners) -> Cleaning {
        let memory = DirtyMemory::new(cleaners.memory_bytes);
        Cleaning { cleaners, memory, queue: Mutex::default() }
    }

    /// Bytes of pages that wait in memory.
    pub(crate) fn dirty_bytes(&self) -> u64 {
        self.memory.used_bytes()
    }
}
