//! Kvsets of leaves that a range tombstone of the root hides as a whole: they go without being read, however large they are.

use super::edit::{Change, Edit, KvsetNo, LeafNo, Place};
use super::kvset::{Kvset, TreeState};
use crate::entry::{RangeTombstone, SequenceNo};

/// Most tombstones that are looked at; the others take effect when they are merged.
const MOST_TOMBSTONES: usize = 1000;

/// The kvsets that are hidden from all who read at `snapshots` and from whoever reads later, with their leaves.
pub(crate) fn hidden(tree: &TreeState, snapshots: &[SequenceNo]) -> Vec<(LeafNo, KvsetNo)> {
    let with_tombstones = tree.root.iter().filter(|kvset| kvset.record().info.range_tombstones > 0);
    let tombstones = with_tombstones.flat_map(|kvset| kvset.tombstones().iter());
    let tombstones: Vec<&RangeTombstone> = tombstones.take(MOST_TOMBSTONES).collect();
    if tombstones.is_empty() {
        return Vec::new();
    }
    let is_hidden = |kvset: &Kvset| tombstones.iter().any(|tombstone| hides(tombstone, kvset, snapshots));
    let of_leaves = tree.leaves.iter().flat_map(|leaf| {
        let hidden = leaf.kvsets.iter().filter(|kvset| is_hidden(kvset)).map(|kvset| (leaf.no, kvset.no()));
        let hidden: Vec<(LeafNo, KvsetNo)> = hidden.collect();
        // Copies go with what they repeat.
        let is_whole = hidden.len() == leaf.kvsets.len() || !leaf.kvsets.iter().any(|kvset| kvset.is_copy());
        if is_whole { hidden } else { Vec::new() }
    });
    of_leaves.collect()
}

/// Whether nobody sees anything of a kvset behind a newer range tombstone. One that hides something itself is left to merges.
fn hides(tombstone: &RangeTombstone, kvset: &Kvset, snapshots: &[SequenceNo]) -> bool {
    let info = &kvset.record().info;
    info.range_tombstones == 0
        && info.entries > 0
        && tombstone.sequence > info.largest_sequence
        && tombstone.covers(&info.first_key)
        && tombstone.covers(&info.last_key)
        && snapshots.iter().all(|seen| *seen >= tombstone.sequence || *seen < info.smallest_sequence)
}

/// The edit by which they go.
pub(crate) fn drop_hidden(kvsets: &[(LeafNo, KvsetNo)]) -> Edit {
    let removed =
        kvsets.iter().map(|(leaf, kvset)| Change::RemoveKvset { place: Place::Leaf(*leaf), kvset: *kvset });
    Edit { changes: removed.collect() }
}
