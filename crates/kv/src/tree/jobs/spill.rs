//! From the root into the leaves.
//!
//! 1. The oldest kvsets of the root are merged.
//! 2. What belongs to a leaf becomes a kvset on top of it. An empty leaf may become several leaves, each of about the
//!    size that is set.
//! 3. Values leave the log here, if the policy says so, before their keys are written: they are read once, in the order
//!    of the log, and written once, to where leaves have them ([`moves`](super::moves)). If there is space for both,
//!    the log's segments stay as mirrors, and each version says where in them its value is.
//!
//! If a kvset's keys all belong to one leaf and its values stay where they are, the kvset is moved as it is: nothing is
//! read or written.

use std::collections::BTreeSet;
use std::sync::Arc;

use bytes::Bytes;

use super::fill::{Target, fill};
use super::output::Outputs;
use super::{JobContext, JobOutput, groups, select};
use crate::entry::SegmentNo;
use crate::merge::Retention;
use crate::tree::edit::{Change, Edit, KvsetNo, KvsetRecord, LeafNo, Place, Position};
use crate::tree::kvset::{Kvset, TreeState};
use crate::tree::shape::Tree;
use crate::{Error, Result};

/// Spills the kvsets `numbers`, which are the oldest of the root.
///
/// # Errors
/// `NoSpace`, `Corrupted`, or if a device fails; the tree is as it was.
pub(crate) async fn spill(context: &JobContext, tree: &TreeState, numbers: &[KvsetNo]) -> Result<JobOutput> {
    let inputs = select(&tree.root, numbers)?;
    if tree.root.last().map(|kvset| kvset.no()) != inputs.last().map(|kvset| kvset.no()) {
        return Err(Error::invalid(format!("kvsets {numbers:?} are not the oldest of the root")));
    }
    let leaving = leaving(context, tree, &inputs);
    let moves = !leaving.is_empty();
    let mut outputs = Outputs::new(context, &inputs, leaving);
    if context.keeps_mirrors {
        outputs = outputs.mirroring();
    }
    match write(context, tree, &inputs, moves, &mut outputs).await {
        Ok(output) => Ok(output),
        Err(error) => {
            outputs.discard().await;
            Err(error)
        }
    }
}

/// Log segments whose values move with the spill.
fn leaving(context: &JobContext, tree: &TreeState, inputs: &[Arc<Kvset>]) -> BTreeSet<SegmentNo> {
    if !context.placement.moves_values {
        return BTreeSet::new();
    }
    let references = inputs.iter().flat_map(|kvset| &kvset.record().info.references);
    let segments = references.map(|references| references.segment);
    segments.filter(|segment| !tree.segments.contains_key(segment)).collect()
}

async fn write(
    context: &JobContext,
    tree: &TreeState,
    inputs: &[Arc<Kvset>],
    moves: bool,
    outputs: &mut Outputs<'_>,
) -> Result<JobOutput> {
    if moves {
        outputs.moving_first(groups(context, inputs, None).await?);
    }
    let mut groups = groups(context, inputs, None).await?;
    let mut leaves: Vec<(LeafNo, Bytes, bool)> =
        tree.leaves.iter().map(|leaf| (leaf.no, leaf.start.clone(), leaf.kvsets.is_empty())).collect();
    if leaves.is_empty() {
        outputs.output().edit.changes.push(Change::AddLeaf { leaf: 0, start: Bytes::new() });
        leaves.push((0, Bytes::new(), true));
    }
    let mut next_leaf = tree.next_leaf().max(1);
    for (index, (leaf, start, is_bottom)) in leaves.iter().enumerate() {
        let end = leaves.get(index + 1).map(|(_, start, _)| start);
        let retention =
            Retention { readers: context.readers.clone(), now_s: context.now_s, is_bottom: *is_bottom };
        let target = Target {
            leaf: *leaf,
            start: start.clone(),
            end,
            position: Position::Top,
            split_bytes: is_bottom.then_some(context.leaf_bytes),
            below: tree.leaf_by_no(*leaf).map(|leaf| &*leaf.kvsets).unwrap_or_default(),
        };
        fill(outputs, &mut groups, &retention, target, &mut next_leaf).await?;
    }
    outputs.output().versions_merged = groups.merged();
    let mut output = outputs.finish().await?;
    let removed = inputs.iter().map(|kvset| Change::RemoveKvset { place: Place::Root, kvset: kvset.no() });
    output.edit.changes.extend(removed);
    Ok(output)
}

/// The edit that moves the kvset `no`, the oldest of the root, into a leaf as it is; `None` if that cannot be done. It
/// begins a new leaf if all its keys are larger than those of the leaf, and that has at least half of `leaf_bytes`.
pub(crate) fn move_down<K: AsRef<KvsetRecord> + Clone>(
    context: &super::super::policy::Placement,
    tree: &Tree<K>,
    no: KvsetNo,
    leaf_bytes: u64,
) -> Option<Edit> {
    let record = tree.root.last().map(AsRef::as_ref).filter(|record| record.no == no)?;
    let info = &record.info;
    let leaves_log =
        info.references.iter().any(|references| !tree.segments.contains_key(&references.segment));
    if context.root_keys != context.leaf_keys
        || (context.moves_values && leaves_log)
        || info.range_tombstones > 0
        || info.entries == 0
    {
        return None;
    }
    let mut changes = Vec::new();
    let leaf = if tree.leaves.is_empty() {
        changes.push(Change::AddLeaf { leaf: 0, start: Bytes::new() });
        0
    } else {
        let index = tree.leaf_index(&info.first_key)?;
        if tree.leaf_index(&info.last_key) != Some(index) {
            return None;
        }
        let leaf = &tree.leaves[index];
        let is_behind = |kvset: &K| *kvset.as_ref().info.last_key < *info.first_key;
        let leaf_has: u64 = leaf.kvsets.iter().map(|kvset| kvset.as_ref().info.data_bytes()).sum();
        let is_large = !leaf.kvsets.is_empty() && leaf_has >= leaf_bytes / 2;
        if is_large && leaf.start < info.first_key && leaf.kvsets.iter().all(is_behind) {
            let no = tree.next_leaf();
            changes.push(Change::AddLeaf { leaf: no, start: info.first_key.clone() });
            no
        } else {
            leaf.no
        }
    };
    let kvset = record.clone();
    changes.push(Change::AddKvset { place: Place::Leaf(leaf), position: Position::Top, kvset });
    changes.push(Change::RemoveKvset { place: Place::Root, kvset: no });
    Some(Edit { changes })
}
