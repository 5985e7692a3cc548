//! Which job of a store is next: what its tree needs, given what else refers to the log's segments.

use crate::tuning::maintenance::MERGES;
use std::collections::BTreeSet;
use std::sync::Arc;

use bytes::Bytes;
use parking_lot::Mutex;

use crate::database::state::store_state::StoreState;
use crate::entry::SequenceNo;
use crate::tree::garbage::Space;
use crate::tree::job::{Job, PickSettings, Surroundings};
use crate::tree::pick::pick;
use crate::tree::shape::Tree;
use crate::tree::spill_choice::pick_spill;
use crate::tree::{Kvset, KvsetNo, Leaf, LeafNo, TreeState};
use crate::{ErrorKind, Result};

/// Returns the next job, and the garbage of the store. A manual compaction (`thorough`) leaves nothing at the root and
/// one kvset in each leaf without obsolete versions, except what was written since.
pub(crate) fn next_job(
    tree: &TreeState,
    settings: &PickSettings,
    around: &Surroundings,
    thorough: Option<&ManualCompaction<'_>>,
) -> (Option<Job>, Space) {
    let (picked, space) = pick(tree, settings, around);
    let picked = picked.map(|picked| picked.job);
    match thorough {
        None => (picked, space),
        // Jobs that are due because of later writes are left to the workers.
        Some(thorough) if thorough.is_overtaken(tree) => {
            (thorough.spill(tree).or_else(|| leaf_job(tree, thorough)), space)
        }
        // When space is low, jobs that only free space come before those that write.
        Some(thorough) if around.is_tight => {
            let spill = || pick_spill(tree, settings, around).map(|picked| picked.job);
            let deleting = || thorough_job(tree, None, thorough);
            (spill().or_else(deleting).or(picked), space)
        }
        Some(thorough) => (thorough_job(tree, picked, thorough), space),
    }
}

fn thorough_job(tree: &TreeState, picked: Option<Job>, thorough: &ManualCompaction<'_>) -> Option<Job> {
    match picked {
        Some(Job::Spill { .. }) | None if !tree.root.is_empty() => thorough.spill(tree),
        None => leaf_job(tree, thorough),
        picked => picked,
    }
}

/// The compaction of a leaf that has more than one kvset, or something obsolete.
fn leaf_job(tree: &TreeState, thorough: &ManualCompaction<'_>) -> Option<Job> {
    // Copies on the fastest class are part of it: at the bottom of a leaf all of its kvsets are merged.
    let all =
        |leaf: &Leaf<Arc<Kvset>>| -> Vec<KvsetNo> { leaf.kvsets.iter().map(|kvset| kvset.no()).collect() };
    let index = (0..tree.leaves.len()).find(|index| thorough.wants(tree, *index))?;
    let leaf = &tree.leaves[index];
    Some(Job::Compact { leaf: leaf.no, kvsets: all(leaf), emptied: BTreeSet::new() })
}

/// Leaves that were compacted. One that took in another since, or became two, is not among them.
#[derive(Debug, Default)]
pub(crate) struct Compacted(BTreeSet<LeafRange>);

/// A leaf, and the first key behind it.
type LeafRange = (LeafNo, Option<Bytes>);

impl Compacted {
    fn range<K>(tree: &Tree<K>, index: usize) -> LeafRange {
        (tree.leaves[index].no, tree.leaf_end(index).cloned())
    }

    /// The leaf that a job compacts as a whole.
    pub(crate) fn by(tree: &TreeState, job: &Job) -> Option<LeafRange> {
        let Job::Compact { leaf, kvsets, .. } = job else { return None };
        let index = tree.leaves.iter().position(|known| known.no == *leaf)?;
        (kvsets.len() == tree.leaves[index].kvsets.len()).then(|| Compacted::range(tree, index))
    }

    fn has<K>(&self, tree: &Tree<K>, index: usize) -> bool {
        self.0.contains(&Compacted::range(tree, index))
    }
}

/// A manual compaction: runs all jobs of a store for the data in it when it begins. Later writes are left out, since
/// they may never end.
#[derive(Debug)]
pub(crate) struct ManualCompaction<'a> {
    pub(crate) store: &'a StoreState,
    /// Seconds since 1970.
    pub(crate) now_s: u64,
    /// The first memtable that was made since.
    pub(crate) end_table: u64,
    /// Sequence number at the beginning; higher ones were written since.
    pub(crate) last: SequenceNo,
    /// Leaves that are done: hot values are promoted again, and versions that a snapshot sees stay.
    pub(crate) done: Mutex<Compacted>,
    /// Leaves for which there was no space.
    pub(crate) left_out: Mutex<LeftOut>,
}

/// Leaves that are not tried again before others have made room.
#[derive(Debug, Default)]
pub(crate) struct LeftOut {
    leaves: Compacted,
    is_longer: bool,
}

impl ManualCompaction<'_> {
    /// Notes what came of compacting a leaf as a whole.
    pub(crate) fn note(&self, leaf: LeafRange, done: &Result<bool>) {
        match done {
            Ok(_) => {
                self.done.lock().0.insert(leaf);
            }
            Err(error) if error.kind() == ErrorKind::NoSpace => {
                let mut left_out = self.left_out.lock();
                left_out.is_longer |= left_out.leaves.0.insert(leaf);
            }
            Err(_) => {}
        }
    }

    /// Returns whether a leaf was left out since this was asked last.
    pub(crate) fn left_out_another(&self) -> bool {
        std::mem::take(&mut self.left_out.lock().is_longer)
    }

    pub(crate) fn leave_out_none(&self) {
        *self.left_out.lock() = LeftOut::default();
    }

    fn wants(&self, tree: &TreeState, index: usize) -> bool {
        if self.left_out.lock().leaves.has(tree, index) {
            return false;
        }
        let mut kvsets = tree.leaves[index].kvsets.iter().filter(|kvset| !self.is_newer(kvset));
        let is_obsolete = |kvset: &Arc<Kvset>| {
            let info = &kvset.record().info;
            kvset.is_copy()
                || info.deletes > 0
                || info.range_tombstones > 0
                || info.first_expiry_s.is_some_and(|expiry| u64::from(expiry) <= self.now_s)
                || self.store.cleaning.keeps_old(kvset.no())
        };
        kvsets.clone().filter(|kvset| !kvset.is_copy()).count() > 1
            || (kvsets.any(is_obsolete) && !self.done.lock().has(tree, index))
    }

    /// All at once, for each spill puts the values of neighbours in one more place; without what was written since,
    /// which merges at the root may have again and again.
    fn spill(&self, tree: &TreeState) -> Option<Job> {
        // Newest first.
        let older = tree.root.iter().skip_while(|kvset| self.is_newer(kvset));
        let kvsets: Vec<KvsetNo> = older.map(|kvset| kvset.no()).collect();
        (!kvsets.is_empty()).then_some(Job::Spill { kvsets })
    }

    /// Returns whether a kvset has nothing that was there before.
    fn is_newer(&self, kvset: &Kvset) -> bool {
        kvset.record().info.smallest_sequence > self.last
    }

    /// Returns whether a tree has something that was written since, and more may come as long as jobs go on.
    pub(crate) fn is_overtaken(&self, tree: &TreeState) -> bool {
        tree.kvsets().any(|kvset| self.is_newer(kvset))
    }

    /// Returns whether the root has anything that is to go into leaves.
    pub(crate) fn has_any_at_root(&self, tree: &TreeState) -> bool {
        tree.root.iter().any(|kvset| !self.is_newer(kvset))
    }

    /// Returns whether memtables are to be flushed first.
    pub(crate) fn has_waiting(&self) -> bool {
        self.store.view.read().waiting.iter().any(|table| table.no < self.end_table)
    }
}

/// Bytes at the root that make a spill due: merged kvsets are few, and yet their values take the space of mirrors.
pub(crate) fn root_bytes(fast_room: u64, tables_bytes: u64) -> u64 {
    PickSettings::default().root_bytes.min((fast_room / MERGES.root_divisor).max(tables_bytes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::{Change, Edit, TreeRecord};

    #[test]
    fn root_size_leaves_space_for_mirrors() {
        assert_eq!(root_bytes(3 << 30, 240 << 20), 384 << 20, "an eighth of the room");
        assert_eq!(root_bytes(64 << 20, 16 << 20), 16 << 20, "but what a spill waits for in any case");
        assert_eq!(root_bytes(1 << 40, 240 << 20), 1 << 30);
    }

    #[test]
    fn a_leaf_that_takes_data_in_is_not_compacted_with_it() {
        let begins = |leaf, start: &'static [u8]| Change::AddLeaf { leaf, start: Bytes::from_static(start) };
        let apply =
            |tree: &TreeRecord, changes| tree.apply(&Edit { changes }, |record| Ok(record.clone())).unwrap();
        let tree = apply(&TreeRecord::default(), vec![begins(0, b""), begins(1, b"m"), begins(2, b"t")]);
        let mut compacted = Compacted::default();
        compacted.0.extend([0, 2].map(|index| Compacted::range(&tree, index)));
        assert!(compacted.has(&tree, 0) && !compacted.has(&tree, 1) && compacted.has(&tree, 2));
        let joined = apply(&tree, vec![Change::JoinLeaf { leaf: 1 }]);
        assert!(!compacted.has(&joined, 0) && compacted.has(&joined, 1));
        let split = apply(&tree, vec![begins(3, b"x")]);
        assert!(compacted.has(&split, 0) && !compacted.has(&split, 2));
    }
}
