//! Snapshots: sequence numbers that somebody reads at.
//!
//! Invariant: as long as a number is registered, merges keep for each key the newest version that is not newer than it.
//! The numbers that a merge has to keep are taken under the lock under which snapshots are registered, together with
//! the newest visible one, so that no snapshot is registered later with a smaller number.
//!
//! A bulk load is noted here before anybody can find what it brought, and stays as long as a number is registered at
//! which it is not seen, or may still be. Its end is published in the same moment, for all who read the store, as what
//! it brought is there. Nothing of that outlasts the opening, as snapshots do not.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use super::sync::{AtomicU64, Mutex, Ordering};
use crate::entry::SequenceNo;
use crate::merge::{Load, Readers};

/// The numbers that are read at.
#[derive(Debug, Default)]
pub(crate) struct Snapshots {
    visible: AtomicU64,
    /// Readers at this number or later see all bulk loads.
    last_load_end: AtomicU64,
    registered: Mutex<Registered>,
}

#[derive(Debug, Default)]
struct Registered {
    /// Number of holders of each number.
    numbers: BTreeMap<SequenceNo, usize>,
    /// In the order of their ends.
    loads: Vec<Load>,
}

impl Registered {
    /// Forgets the loads that everybody sees.
    fn forget_loads(&mut self, visible: SequenceNo) {
        let numbers = &self.numbers;
        self.loads.retain(|load| {
            let mut hidden_from = numbers.range(load.begin..load.end);
            // A number before its end may yet be registered.
            load.end > visible || hidden_from.next().is_some()
        });
    }
}

impl Snapshots {
    /// Returns the latest visible sequence number.
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
        *registered.numbers.entry(sequence).or_default() += 1;
        Snapshot { held: Arc::new(Held { snapshots: self.clone(), sequence }) }
    }

    /// The numbers that have to stay readable; the newest visible one is the last.
    pub(crate) fn to_keep(&self) -> Readers {
        let mut registered = self.registered.lock();
        let visible = self.visible();
        registered.forget_loads(visible);
        let mut numbers: Vec<SequenceNo> = registered.numbers.keys().copied().collect();
        if numbers.last() != Some(&visible) {
            numbers.push(visible);
        }
        Readers { numbers, loads: registered.loads.clone() }
    }

    /// Notes a bulk load that becomes visible to readers at its end or later. Called under the commit lock, before the
    /// end is published.
    pub(crate) fn note_load(&self, load: Load) {
        let mut registered = self.registered.lock();
        registered.forget_loads(self.visible());
        registered.loads.push(load);
        self.last_load_end.store(load.end, Ordering::Release);
    }

    /// The numbers of loads that are not seen at `sequence`, which is registered, though they are not larger: of all
    /// that are in a tree that was there before this is asked.
    pub(crate) fn unseen_at(&self, sequence: SequenceNo) -> Vec<SequenceNo> {
        if sequence >= self.last_load_end.load(Ordering::Acquire) {
            return Vec::new();
        }
        let registered = self.registered.lock();
        let unseen = registered.loads.iter().filter(|load| load.hides_from(sequence));
        unseen.map(|load| load.begin).collect()
    }

    /// Snapshots that are held, and the oldest.
    pub(crate) fn held(&self) -> (usize, Option<SequenceNo>) {
        let registered = self.registered.lock();
        (registered.numbers.values().sum(), registered.numbers.keys().next().copied())
    }
}

struct Held {
    snapshots: Arc<Snapshots>,
    sequence: SequenceNo,
}

impl Drop for Held {
    fn drop(&mut self) {
        let mut registered = self.snapshots.registered.lock();
        if let Some(count) = registered.numbers.get_mut(&self.sequence) {
            *count -= 1;
            if *count == 0 {
                registered.numbers.remove(&self.sequence);
            }
        }
    }
}

/// The state of all stores of a database at a moment. It can be read while the snapshot or a clone of it lives, and
/// keeps the space of versions overwritten or deleted since.
///
/// ```
/// use tanada_kv::CursorOptions;
///
/// # let folder = tempfile::tempdir().unwrap();
/// # tanada_kv::example::run(folder.path(), async |database, store| {
/// store.put(b"key", b"old").await?;
/// let snapshot = database.snapshot();
/// store.delete(b"key").await?;
/// let options = CursorOptions { snapshot: Some(snapshot), ..CursorOptions::default() };
/// let (key, value) = store.cursor(options).next().await?.unwrap();
/// assert_eq!((&key[..], &value[..]), (&b"key"[..], &b"old"[..]));
/// # Ok(()) }).unwrap();
/// ```
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
    fn snapshot_numbers_are_kept_while_they_are_held() {
        super::super::sync::model(|| {
            let snapshots = Arc::new(Snapshots::default());
            assert_eq!(snapshots.to_keep().numbers, [0]);
            snapshots.publish(5);
            let first = snapshots.take();
            let second = first.clone();
            snapshots.publish(9);
            let third = snapshots.take();
            snapshots.publish(12);
            assert_eq!(snapshots.to_keep().numbers, [5, 9, 12]);
            assert_eq!(snapshots.held(), (2, Some(5)));
            drop(first);
            drop(third);
            assert_eq!(snapshots.to_keep().numbers, [5, 12]);
            drop(second);
            assert_eq!(snapshots.to_keep().numbers, [12]);
        });
    }

    #[test]
    fn bulk_loads_are_tracked_while_a_snapshot_predates_them() {
        super::super::sync::model(|| {
            let snapshots = Arc::new(Snapshots::default());
            let load = |begin, end| Load { begin, end };
            snapshots.publish(5);
            let before = snapshots.take();
            snapshots.publish(6);
            let meanwhile = snapshots.take();
            snapshots.publish(8);
            snapshots.note_load(load(6, 9));
            // Somebody may come just before it is seen.
            assert_eq!(snapshots.to_keep(), Readers { numbers: vec![5, 6, 8], loads: vec![load(6, 9)] });
            let late = snapshots.take();
            snapshots.publish(9);
            let after = snapshots.take();
            let unseen = |snapshot: &Snapshot| snapshots.unseen_at(snapshot.sequence());
            let of_all = [&before, &meanwhile, &late, &after].map(unseen);
            assert_eq!(of_all, [vec![], vec![6], vec![6], vec![]]);
            drop(meanwhile);
            assert_eq!(snapshots.to_keep().loads, [load(6, 9)]);
            snapshots.publish(10);
            snapshots.publish(12);
            snapshots.note_load(load(10, 13));
            snapshots.publish(13);
            assert_eq!(snapshots.to_keep().loads, [load(6, 9)]);
            assert_eq!(unseen(&late), [6]);
            drop((late, before, after));
            assert_eq!(snapshots.to_keep(), Readers { numbers: vec![13], loads: vec![] });
        });
    }
}
