//! Snapshots: sequence numbers that somebody reads at.
//!
//! Invariant: as long as a number is registered, merges keep for each key the newest version that is not newer than it. The numbers that a merge
//! has to keep are taken under the lock under which snapshots are registered, together with the newest visible one, so that no snapshot is
//! registered later with a smaller number.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use super::sync::{AtomicU64, Mutex, Ordering};
use crate::entry::SequenceNo;

/// The numbers that are read at.
#[derive(Debug, Default)]
pub(crate) struct Snapshots {
    visible: AtomicU64,
    registered: Mutex<BTreeMap<SequenceNo, usize>>,
}

impl Snapshots {
    /// What a reader sees now who asks for the latest.
    #[inline]
    pub(crate) fn visible(&self) -> SequenceNo {
        self.visible.load(Ordering::Acquire)
    }

    /// Everything up to `sequence` can be seen. By whoever holds the commit lock.
    #[inline]
    pub(crate) fn publish(&self, sequence: SequenceNo) {
        self.visible.store(sequence, Ordering::Release);
    }

    /// Registers what is visible now.
    pub(crate) fn take(self: &Arc<Self>) -> Snapshot {
        self.take_ahead(0)
    }

    /// The same, and what is to come: only as a bug.
    pub(crate) fn take_ahead(self: &Arc<Self>, ahead: SequenceNo) -> Snapshot {
        let mut registered = self.registered.lock();
        let sequence = self.visible() + ahead;
        *registered.entry(sequence).or_default() += 1;
        Snapshot { held: Arc::new(Held { snapshots: self.clone(), sequence }) }
    }

    /// The numbers that have to stay readable, ascending; the newest visible one is the last.
    pub(crate) fn to_keep(&self) -> Vec<SequenceNo> {
        let registered = self.registered.lock();
        let visible = self.visible();
        let mut numbers: Vec<SequenceNo> = registered.keys().copied().collect();
        if numbers.last() != Some(&visible) {
            numbers.push(visible);
        }
        numbers
    }

    /// Snapshots that are held, and the oldest.
    pub(crate) fn held(&self) -> (usize, Option<SequenceNo>) {
        let registered = self.registered.lock();
        (registered.values().sum(), registered.keys().next().copied())
    }
}

struct Held {
    snapshots: Arc<Snapshots>,
    sequence: SequenceNo,
}

impl Drop for Held {
    fn drop(&mut self) {
        let mut registered = self.snapshots.registered.lock();
        if let Some(count) = registered.get_mut(&self.sequence) {
            *count -= 1;
            if *count == 0 {
                registered.remove(&self.sequence);
            }
        }
    }
}

/// What was there at a moment, in all stores of a database; it can be read as long as the snapshot or a clone of it lives, and takes up the space of what
/// was overwritten or deleted since.
#[derive(Clone)]
pub struct Snapshot {
    held: Arc<Held>,
}

impl Snapshot {
    pub(crate) fn sequence(&self) -> SequenceNo {
        self.held.sequence
    }

    pub(crate) fn is_of(&self, snapshots: &Arc<Snapshots>) -> bool {
        Arc::ptr_eq(&self.held.snapshots, snapshots)
    }
}

impl fmt::Debug for Snapshot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Snapshot").field("sequence", &self.held.sequence).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_kept_as_long_as_somebody_reads_at_them() {
        super::super::sync::model(|| {
            let snapshots = Arc::new(Snapshots::default());
            assert_eq!(snapshots.to_keep(), [0]);
            snapshots.publish(5);
            let first = snapshots.take();
            let second = first.clone();
            snapshots.publish(9);
            let third = snapshots.take();
            snapshots.publish(12);
            assert_eq!(snapshots.to_keep(), [5, 9, 12]);
            assert_eq!(snapshots.held(), (2, Some(5)));
            drop(first);
            drop(third);
            assert_eq!(snapshots.to_keep(), [5, 12]);
            drop(second);
            assert_eq!(snapshots.to_keep(), [12]);
        });
    }
}
