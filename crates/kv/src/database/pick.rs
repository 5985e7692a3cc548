//! Which job of a store is next: what its tree needs, given what else refers to the log's segments.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use bytes::Bytes;
use parking_lot::Mutex;

use super::core::{Core, Writing};
use super::job_memory::batch_of;
use super::store::StoreState;
use crate::entry::{SegmentNo, SequenceNo};
use crate::objects::ObjectKind;
use crate::tree::garbage::Space;
use crate::tree::jobs::{bytes_of_a_round, values_of_a_round};
use crate::tree::pick::{Job, LogSegmentUse, PickSettings, Surroundings, pick, pick_spill};
use crate::tree::shape::Tree;
use crate::tree::{Kvset, KvsetNo, Leaf, LeafNo, TreeState};
use crate::{ErrorKind, Result};

/// Space is low with less than this fraction (1/n) of a class free.
const LOW_SPACE_DIVISOR: u64 = 4;

/// Target size of a root as a fraction (1/n) of the fastest class, if that is more than the memtables of a spill.
const ROOT_DIVISOR: u64 = 8;

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
    pub(super) fn by(tree: &TreeState, job: &Job) -> Option<LeafRange> {
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
    pub(super) fn note(&self, leaf: LeafRange, done: &Result<bool>) {
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
    pub(super) fn left_out_another(&self) -> bool {
        std::mem::take(&mut self.left_out.lock().is_longer)
    }

    pub(super) fn leave_out_none(&self) {
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
    pub(super) fn is_overtaken(&self, tree: &TreeState) -> bool {
        tree.kvsets().any(|kvset| self.is_newer(kvset))
    }

    /// Returns whether the root has anything that is to go into leaves.
    pub(super) fn has_any_at_root(&self, tree: &TreeState) -> bool {
        tree.root.iter().any(|kvset| !self.is_newer(kvset))
    }

    /// Returns whether memtables are to be flushed first.
    pub(super) fn has_waiting(&self) -> bool {
        self.store.view.read().waiting.iter().any(|table| table.no < self.end_table)
    }
}

/// Segments that a kvset has values in.
pub(super) fn referenced(kvset: &Arc<Kvset>) -> impl Iterator<Item = SegmentNo> {
    kvset.record().info.references.iter().map(|references| references.segment)
}

/// Bytes at the root that make a spill due: merged kvsets are few, and yet their values take the space of mirrors.
fn root_bytes(fast_room: u64, tables_bytes: u64) -> u64 {
    PickSettings::default().root_bytes.min((fast_room / ROOT_DIVISOR).max(tables_bytes))
}

impl Core {
    /// Kvsets at the root that make a spill due.
    pub(crate) fn root_kvsets(&self) -> usize {
        (self.settings().slow_root_kvsets / 2).max(2)
    }

    pub(crate) fn pick_settings(&self, store: &StoreState) -> PickSettings {
        let placement = self.classes.placement(&store.policy()).ok();
        let shares = self.shares(store, placement.as_ref());
        PickSettings {
            leaf_bytes: shares.leaf_bytes,
            space_amplification: store.settings().space_amplification,
            // Writers are slowed only when spills cannot keep pace.
            root_kvsets: self.root_kvsets(),
            root_bytes: root_bytes(
                self.fast_room(),
                self.root_kvsets() as u64 * self.settings().table_bytes(),
            ),
            // A batch of keys and of what lies beside them; values are moved in one round, whatever they have.
            spill_bytes: self.job_bytes(),
            moved_values: values_of_a_round(batch_of(self.job_bytes())),
            moved_bytes: bytes_of_a_round(shares.segment_bytes),
            small_segment_bytes: shares.small_segment_bytes,
            ..PickSettings::default()
        }
    }

    /// Returns what `pick` needs beside the tree of a store.
    pub(crate) fn surroundings(
        &self,
        writing: &Writing,
        store: &Arc<StoreState>,
        tree: &TreeState,
    ) -> Surroundings {
        let leaves = tree.leaves.iter().flat_map(|leaf| &leaf.kvsets).flat_map(referenced);
        let logs: BTreeSet<SegmentNo> = leaves.filter(|no| !tree.segments.contains_key(no)).collect();
        let elsewhere = if logs.is_empty() {
            BTreeSet::new()
        } else {
            self.needed_elsewhere(writing, store, tree, &logs)
        };
        let log_segments: BTreeMap<SegmentNo, LogSegmentUse> = logs
            .into_iter()
            .filter_map(|no| {
                let object =
                    self.objects.volume().open_object(&self.objects.name(ObjectKind::Segment, no)).ok()?;
                let is_needed_elsewhere = elsewhere.contains(&no);
                Some((no, LogSegmentUse { bytes: object.size_bytes(), is_needed_elsewhere }))
            })
            .collect();
        let log_bytes = tree.root.iter().map(|kvset| kvset.record().info.data_bytes()).sum();
        let log_pressure = self.log_pressure(log_bytes);
        let (free, all) = self.free_for_jobs();
        Surroundings {
            log_pressure,
            overwritten: store.cleaning.overwritten(),
            free_bytes: Some(free),
            is_tight: free < all / LOW_SPACE_DIVISOR,
            log_segments,
        }
    }

    /// Returns those of `segments` that others need even when the leaves of the store have no values in them.
    fn needed_elsewhere(
        &self,
        writing: &Writing,
        store: &Arc<StoreState>,
        tree: &TreeState,
        segments: &BTreeSet<SegmentNo>,
    ) -> BTreeSet<SegmentNo> {
        let mut needed: BTreeSet<SegmentNo> = writing.log.segments().into_iter().collect();
        let of_these = |no: &SegmentNo| segments.contains(no);
        for other in &*self.stores.read() {
            let of_other = other.view.read().tree.clone();
            if Arc::ptr_eq(other, store) {
                needed.extend(tree.root.iter().flat_map(referenced).filter(of_these));
            } else {
                needed.extend(of_other.kvsets().flat_map(referenced).filter(of_these));
            }
            needed.extend(of_other.mirrors.keys());
        }
        needed
    }

    /// Returns the urgency of emptying log segments on the fastest class: 1 if it is due. The root of the store holds
    /// `log_bytes` in them.
    pub(crate) fn log_pressure(&self, log_bytes: u64) -> f64 {
        let limit = self.settings().fast_class_bytes;
        if log_bytes == 0 && limit.is_none() {
            return 0.0;
        }
        let mirrored = self.mirrored_bytes();
        // Before a limit is reached, so that there is time to make room.
        let by_limit = limit.map_or(0.0, |limit| {
            self.fast_class_bytes().saturating_sub(mirrored) as f64 / (limit.max(1) as f64 * 0.75)
        });
        // The log would go on to a slow class once this one is full. What is free is to be no less than what spills
        // could free.
        let volume = self.objects.volume();
        let by_room = match self.free_on_fastest() {
            Some(free) if volume.classes().len() > 1 => log_bytes as f64 / (free + mirrored).max(1) as f64,
            _ => 0.0,
        };
        by_limit.max(by_room)
    }

    /// Bytes that the database takes up on the fastest class.
    pub(crate) fn fast_class_bytes(&self) -> u64 {
        let fastest = self.classes.fastest();
        let statistics = self.class_statistics().into_iter();
        let fastest = statistics.filter(|class| fastest.as_ref() == Some(&class.name));
        fastest.map(|class| class.segment_bytes + class.key_bytes + class.manifest_bytes).sum()
    }

    /// Bytes that are free on the class that has most, and all of its bytes.
    pub(crate) fn free_for_jobs(&self) -> (u64, u64) {
        self.objects.free_by_class().into_iter().max().unwrap_or_default()
    }

    /// Bytes that are free on the fastest class, whoever else uses it.
    pub(crate) fn free_on_fastest(&self) -> Option<u64> {
        let volume = self.objects.volume();
        let fastest = self.classes.fastest()?;
        let fastest = volume.classes().into_iter().find(|class| class.name == fastest)?;
        Some(fastest.free() * volume.chunk_bytes())
    }
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
