//! Mirrors of what is read on a slow class, where the fastest has space that nobody wants.
//!
//! Values lose their mirrors when the space is wanted, and do not get them back when it is free again. So what reads
//! take from slow classes is counted, in bytes, by leaf. When it is a 32nd of what a leaf has there, and there is
//! space, the leaf's keys are rewritten with copies of its values that have no mirror: these are read together, as
//! neighbours, which a device does faster than one by one. Of several leaves that one is first of which most was read
//! for its size; then it has to be read as often again, but for what there was no space for. Where there is none,
//! mirrors in which little is read for their size make way ([eviction](super::eviction)): much of what they have is
//! garbage, and a copy of the rest takes less. A leaf of which no copies could be made is not taken again before its
//! kvsets are others, or there is half as much space again.

use crate::tuning::mirrors::REMIRRORING;
use std::collections::BTreeSet;

use crate::database::mirrors::keeper::MirrorKeeper;
use crate::database::state::remirroring::kvsets;
use crate::database::state::store_state::StoreState;
use crate::tree::job::{Job, key_bytes};
use crate::tree::policy::Placement;
use crate::tree::{DenseMirrors, JobContext, JobOutput, KvsetNo, LeafNo, TreeState, compact};
use crate::{ErrorKind, Result};

/// Reads of a leaf, its bytes, and the free space for copies of it.
#[derive(Debug, Clone, Copy)]
struct Reads {
    leaf: LeafNo,
    read: u64,
    bytes: u64,
    room_bytes: u64,
}

impl Reads {
    /// Returns whether they are worth copies.
    fn are_due(&self) -> bool {
        let Reads { read, bytes, room_bytes, .. } = *self;
        bytes > 0
            && read > 0
            && read >= bytes / REMIRRORING.min_read_divisor
            && room_bytes >= (bytes / REMIRRORING.min_space_divisor).max(1)
    }

    fn share(&self) -> f64 {
        self.read as f64 / self.bytes as f64
    }
}

/// Returns the leaf with the most reads per byte, if they are worth its copies.
fn most_read(leaves: impl Iterator<Item = Reads>) -> Option<LeafNo> {
    let due = leaves.filter(Reads::are_due);
    due.max_by(|a, b| a.share().total_cmp(&b.share())).map(|reads| reads.leaf)
}

/// Bytes that a leaf's keys take on the class of `mirrors`, where they are written before copies, if that is where
/// leaves have them.
fn keys_beside(mirrors: &DenseMirrors, tree: &TreeState, leaf: LeafNo, placement: &Placement) -> u64 {
    if placement.leaf_keys != mirrors.class {
        return 0;
    }
    let kvsets = tree.leaf_by_no(leaf).map(|leaf| &*leaf.kvsets).unwrap_or_default();
    kvsets.iter().map(key_bytes).sum()
}

/// The room of `mirrors` that these leave.
pub(crate) fn room_beside_keys(
    mirrors: &DenseMirrors,
    tree: &TreeState,
    leaf: LeafNo,
    placement: &Placement,
) -> u64 {
    mirrors.room_bytes.saturating_sub(keys_beside(mirrors, tree, leaf, placement))
}

impl MirrorKeeper {
    /// Has a compaction mirror what leaves have on slow classes.
    pub(crate) fn of_slow_classes(&self, tree: &TreeState, mirrors: DenseMirrors) -> DenseMirrors {
        let slow = tree.segments.values().filter(|segment| segment.class.as_ref() != Some(&mirrors.class));
        DenseMirrors { from: slow.map(|segment| segment.no).collect(), ..mirrors }
    }

    /// The job that brings mirrors of what is read to the fastest class, if there is space and it is worth it.
    pub(crate) fn unmirrored(&self, store: &StoreState, tree: &TreeState) -> Option<Job> {
        // Stores with promotion have a budget for copies.
        let promotes = store.settings().promoted_bytes_per_second > 0;
        // Readers do not wait for what follows.
        let by_leaf = store.unmirrored.by_leaf(tree);
        if by_leaf.is_empty() || promotes || !self.mirrors_what_it_spills(store) {
            return None;
        }
        let placement = self.shared.classes.placement(&store.policy()).ok()?;
        let class = self.shared.classes.fastest()?;
        let room = self.more_mirrors(*self.copying.lock());
        let mirrors =
            self.of_slow_classes(tree, room.unwrap_or(DenseMirrors { class, ..DenseMirrors::default() }));
        let slow_bytes = |leaf: LeafNo| -> u64 {
            let segments = tree.values_by_segment(leaf).into_iter();
            segments.filter(|(segment, _)| mirrors.from.contains(segment)).map(|(_, bytes)| bytes).sum()
        };
        // Leaves with promoted kvsets have copies of hot values.
        let has_copies = |leaf: LeafNo| {
            tree.leaf_by_no(leaf).is_some_and(|leaf| leaf.kvsets.iter().any(|kvset| kvset.is_copy()))
        };
        let leaves = by_leaf.into_iter().filter(|(leaf, _)| !has_copies(*leaf));
        let reads: Vec<Reads> = leaves
            .map(|(leaf, read)| {
                let room_bytes = room_beside_keys(&mirrors, tree, leaf, &placement);
                Reads { leaf, read, bytes: slow_bytes(leaf), room_bytes }
            })
            .collect();
        let is_worth = |reads: &Reads| !store.unmirrored.is_in_vain(tree, reads.leaf, reads.room_bytes);
        if let Some(leaf) = most_read(reads.iter().copied().filter(is_worth)) {
            return Some(Job::Mirror { leaf, kvsets: kvsets(tree, leaf) });
        }
        // With as much space as it takes.
        let with_way = reads.into_iter().map(|reads| {
            let keys = keys_beside(&mirrors, tree, reads.leaf, &placement);
            (keys, Reads { room_bytes: (reads.bytes / REMIRRORING.min_space_divisor).max(1), ..reads })
        });
        let due = with_way.filter(|(_, reads)| reads.are_due() && is_worth(reads));
        if let Some(way) = due.map(|(keys, reads)| keys + reads.room_bytes).max() {
            self.ask_for_way(way.min(self.space.fast_room() / REMIRRORING.max_evicted_divisor));
        }
        None
    }

    /// Runs that job; `None` if it made no mirrors. Damaged values are no failure: their readers get an error, and the
    /// job goes on.
    ///
    /// # Errors
    /// `NoSpace`, and those that are no damage.
    pub(crate) async fn mirror_leaf(
        &self,
        context: &JobContext,
        store: &StoreState,
        tree: &TreeState,
        (leaf, kvsets): (LeafNo, &[KvsetNo]),
    ) -> Result<Option<JobOutput>> {
        // There was space when the job was picked.
        let Some(room_bytes) = context.dense.as_ref().map(|dense| dense.room_bytes) else { return Ok(None) };
        let done = compact(context, tree, leaf, kvsets, &BTreeSet::new()).await;
        let left = done.as_ref().map_or(0.0, JobOutput::unmirrored_part);
        store.unmirrored.keep_part(leaf, left, tree.value_bytes(leaf));
        match done {
            Ok(output) if output.has_mirrors() => Ok(Some(output)),
            // All has mirrors, or none could be made.
            Ok(output) => {
                output.abandon(&self.shared.objects).await;
                store.unmirrored.note_in_vain(tree, leaf, room_bytes);
                Ok(None)
            }
            Err(error) if matches!(error.kind(), ErrorKind::Corrupted | ErrorKind::Device) => {
                store.unmirrored.note_in_vain(tree, leaf, u64::MAX);
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn leaves_with_the_most_reads_per_byte_are_remirrored_first() {
        let leaves = [(3, 900, 1000), (5, 200, 100), (7, 6, 100), (8, 5, 100), (9, 1, 0)];
        let of = |leaves: &[(LeafNo, u64, u64)], room_bytes| {
            most_read(leaves.iter().map(|(leaf, read, bytes)| Reads {
                leaf: *leaf,
                read: *read,
                bytes: *bytes,
                room_bytes,
            }))
        };
        assert_eq!(of(&leaves, 1000), Some(5));
        assert_eq!(of(&leaves, 24), None, "room for less than a quarter");
        assert_eq!(of(&leaves[2..], 25), Some(7), "more than a 32nd was read");
        assert_eq!(of(&[(8, 3, 100)], 1000), Some(8));
        assert_eq!(of(&[(8, 2, 100)], 1000), None);
    }
}
