//! Kvsets of leaves that a range tombstone of the root hides as a whole: they go without being read, however large they
//! are.

use crate::tuning::tree::PICKS;
use std::collections::BTreeSet;
use std::sync::Arc;

use super::edit::{Change, Edit, KvsetNo, LeafNo, Place};
use super::kvset::{Kvset, TreeState};
use super::shape::Leaf;
use crate::entry::{RangeTombstone, SequenceNo};

/// Returns the kvsets, with their leaves, that range tombstones hide from every reader at `snapshots` or later.
pub(crate) fn hidden(tree: &TreeState, snapshots: &[SequenceNo]) -> Vec<(LeafNo, KvsetNo)> {
    let with_tombstones = tree.root.iter().filter(|kvset| kvset.record().info.range_tombstones > 0);
    let tombstones = with_tombstones.flat_map(|kvset| kvset.tombstones().iter());
    let tombstones: Vec<&RangeTombstone> = tombstones.take(PICKS.max_tombstones).collect();
    let mut hidden: BTreeSet<(LeafNo, KvsetNo)> = BTreeSet::new();
    for tombstone in tombstones {
        let first = tree.leaf_index(&tombstone.start).unwrap_or_default();
        let is_reached =
            |leaf: &&Leaf<Arc<Kvset>>| tombstone.end.as_ref().is_none_or(|end| leaf.start < *end);
        for leaf in tree.leaves.iter().skip(first).take_while(is_reached) {
            let of_leaf = leaf.kvsets.iter().filter(|kvset| hides(tombstone, kvset, snapshots));
            hidden.extend(of_leaf.map(|kvset| (leaf.no, kvset.no())));
        }
    }
    if hidden.is_empty() {
        return Vec::new();
    }
    let goes = |leaf: &Leaf<Arc<Kvset>>, kvset: &Arc<Kvset>| hidden.contains(&(leaf.no, kvset.no()));
    // Copies go with what they repeat.
    let stay = tree.leaves.iter().filter(|leaf| {
        leaf.kvsets.iter().any(|kvset| kvset.is_copy()) && !leaf.kvsets.iter().all(|kvset| goes(leaf, kvset))
    });
    let stay: BTreeSet<LeafNo> = stay.map(|leaf| leaf.no).collect();
    hidden.into_iter().filter(|(leaf, _)| !stay.contains(leaf)).collect()
}

/// Returns whether nobody sees anything of a kvset behind a newer range tombstone. One that hides something itself is
/// left to merges.
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
