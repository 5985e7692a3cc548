//! Reads of values without mirrors, by leaf.

use crate::tuning::mirrors::REMIRRORING;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;

use crate::tree::{KvsetNo, LeafNo, TreeState};

/// Reads of values without mirrors, by leaf, and leaves that get none.
#[derive(Debug, Default)]
pub(crate) struct Remirroring {
    read: Mutex<Read>,
    /// Values that were read; halved at the end of each round, as [those of
    /// mirrors](crate::tree::mirror::OpenMirror::end_round) are.
    pub(crate) reads: AtomicU64,
    /// With what they had, and what room there was.
    pub(crate) in_vain: Mutex<BTreeMap<LeafNo, (Vec<KvsetNo>, u64)>>,
}

/// Bytes that were read without a mirror.
#[derive(Debug, Default)]
struct Read {
    pub(crate) by_leaf: BTreeMap<LeafNo, u64>,
    pub(crate) all: u64,
}

/// The kvsets of a leaf.
pub(crate) fn kvsets(tree: &TreeState, leaf: LeafNo) -> Vec<KvsetNo> {
    tree.leaf_by_no(leaf).map(|leaf| leaf.kvsets.iter().map(|kvset| kvset.no()).collect()).unwrap_or_default()
}

impl Remirroring {
    /// Notes `bytes` read of a leaf without a mirror; returns true if a check is due.
    pub(crate) fn note_read(&self, leaf: LeafNo, bytes: u32) -> bool {
        self.reads.fetch_add(1, Ordering::Relaxed);
        let mut read = self.read.lock();
        *read.by_leaf.entry(leaf).or_default() += u64::from(bytes);
        let before = read.all;
        read.all += u64::from(bytes);
        before / REMIRRORING.read_bytes_per_check != read.all / REMIRRORING.read_bytes_per_check
    }

    /// Bytes that were read of each leaf that there is still.
    pub(crate) fn by_leaf(&self, tree: &TreeState) -> BTreeMap<LeafNo, u64> {
        let mut read = self.read.lock();
        read.by_leaf.retain(|leaf, _| tree.leaf_by_no(*leaf).is_some());
        read.by_leaf.clone()
    }

    /// Values that were read, as far as they count yet.
    pub(crate) fn reads(&self) -> u64 {
        self.reads.load(Ordering::Relaxed)
    }

    /// Adds the reads of an evicted mirror.
    pub(crate) fn add_reads(&self, reads: u64) {
        self.reads.fetch_add(reads, Ordering::Relaxed);
    }

    /// A round of reads has ended.
    pub(crate) fn end_round(&self, halvings: u32) {
        self.reads.store(self.reads() >> halvings, Ordering::Relaxed);
    }

    /// Keeps the fraction `part` of the noted reads, those of values that still have no mirror.
    pub(crate) fn keep_part(&self, leaf: LeafNo, part: f64, leaf_bytes: u64) {
        let mut read = self.read.lock();
        match read.by_leaf.get_mut(&leaf) {
            Some(bytes) if (f64::MIN_POSITIVE..=REMIRRORING.max_left_fraction).contains(&part) => {
                *bytes = ((*bytes).min(leaf_bytes) as f64 * part) as u64;
            }
            _ => drop(read.by_leaf.remove(&leaf)),
        }
    }

    /// Notes that no copies of a leaf could be made with this much space.
    pub(crate) fn note_in_vain(&self, tree: &TreeState, leaf: LeafNo, room_bytes: u64) {
        let mut in_vain = self.in_vain.lock();
        in_vain.retain(|leaf, _| tree.leaf_by_no(*leaf).is_some());
        in_vain.insert(leaf, (kvsets(tree, leaf), room_bytes));
    }

    /// Returns whether there would probably be none again.
    pub(crate) fn is_in_vain(&self, tree: &TreeState, leaf: LeafNo, room_bytes: u64) -> bool {
        let in_vain = self.in_vain.lock();
        let known = in_vain.get(&leaf).filter(|(_, room)| room_bytes <= room.saturating_add(room / 2));
        known.is_some_and(|(known, _)| *known == kvsets(tree, leaf))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::JobOutput;

    #[test]
    fn a_leaf_is_mirrored_further_as_far_as_it_was_read_without() {
        let unmirrored = Remirroring::default();
        let read = |leaf| unmirrored.read.lock().by_leaf.get(&leaf).copied();
        for leaf in [3, 3, 5] {
            unmirrored.note_read(leaf, 1000);
        }
        unmirrored.keep_part(3, 0.25, 5000);
        unmirrored.keep_part(5, 0.0, 5000);
        assert_eq!((read(3), read(5)), (Some(500), None));
        unmirrored.keep_part(3, 0.5, 400);
        assert_eq!(read(3), Some(200));
        unmirrored.keep_part(3, 0.9, 400);
        assert_eq!(read(3), None);
        let output = JobOutput { mirrored_bytes: 300, unmirrored_bytes: 100, ..JobOutput::default() };
        assert!((output.unmirrored_part() - 0.25).abs() < 1e-9);
        assert_eq!(JobOutput::default().unmirrored_part(), 0.0);
        // What lost its mirror counts as read without, and rounds end for all.
        unmirrored.add_reads(7);
        unmirrored.end_round(1);
        assert_eq!(unmirrored.reads(), 5);
    }

    #[test]
    fn remirroring_is_checked_once_per_mebibyte_read() {
        let unmirrored = Remirroring::default();
        let looks = (0..4096).filter(|no| unmirrored.note_read(no % 3, 1024)).count();
        assert_eq!(looks, 4);
        assert_eq!(unmirrored.read.lock().by_leaf.values().sum::<u64>(), 4 << 20);
    }
}
