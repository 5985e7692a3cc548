//! The kvsets of one leaf into one, or into several leaves.
//!
//! Values stay where they are and pointers are copied, but for those in segments that are to be emptied: these are
//! rewritten, in the order of their keys, so that what is left of those segments goes with the old kvsets.
//!
//! A leaf can also be merged with what the root has for it, which stays there, and only hides: so deletes give room
//! back where there is none to bring them down.
//!
//! A promoted kvset repeats what lies below it, and need not be merged with that: whatever hides one of its versions
//! came later, lies above it, and is dropped only in a merge down to the bottom, which it is part of as all are. Where
//! it is merged with what it repeats, its copies become mirrors of that; if it cannot be read, it is left out.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::fill::{Target, fill};
use super::output::Outputs;
use super::{JobContext, JobOutput, groups, masked_groups, may_be_lost_copies, select, without_copies};
use crate::entry::SegmentNo;
use crate::merge::Retention;
use crate::tree::edit::{Change, KvsetNo, LeafNo, Place, Position};
use crate::tree::kvset::{Kvset, TreeState};
use crate::{Error, ErrorKind, Result};

/// Merges the kvsets `numbers` of a leaf, neighbours, and rewrites their values in the segments `emptied`. If these
/// have no space or cannot be read, several kvsets are merged all the same, and their values stay where they are.
///
/// # Errors
/// `NoSpace`, `Corrupted`, or if a device fails; the tree is as it was.
pub(crate) async fn compact(
    context: &JobContext,
    tree: &TreeState,
    leaf: LeafNo,
    numbers: &[KvsetNo],
    emptied: &BTreeSet<SegmentNo>,
) -> Result<JobOutput> {
    let index = tree.leaves.iter().position(|other| other.no == leaf);
    let index = index.ok_or_else(|| Error::invalid(format!("there is no leaf {leaf}")))?;
    let inputs = select(&tree.leaves[index].kvsets, numbers)?;
    let mut emptied = emptied.clone();
    let none: &[Arc<Kvset>] = &[];
    let mut done = attempt(context, tree, index, (none, &inputs, &inputs), &emptied).await;
    // Fewer kvsets are useful by themselves.
    if inputs.len() > 1 && !emptied.is_empty() && done.as_ref().is_err_and(is_of_values) {
        emptied.clear();
        done = attempt(context, tree, index, (none, &inputs, &inputs), &emptied).await;
    }
    if done.as_ref().is_err_and(|error| may_be_lost_copies(error, &inputs)) {
        done = attempt(context, tree, index, (none, &inputs, &without_copies(&inputs)), &emptied).await;
    }
    done
}

/// Merges all kvsets of a leaf and leaves out what kvsets of the root hide of them, which stay as they are. That takes
/// no more space than the leaf has, where to bring the root's kvsets down takes some in each leaf.
///
/// # Errors
/// As [`compact`].
pub(crate) async fn thin(context: &JobContext, tree: &TreeState, leaf: LeafNo) -> Result<JobOutput> {
    let index = tree.leaves.iter().position(|other| other.no == leaf);
    let index = index.ok_or_else(|| Error::invalid(format!("there is no leaf {leaf}")))?;
    let (masks, inputs, emptied) = (&tree.root, &tree.leaves[index].kvsets, BTreeSet::new());
    let mut done = attempt(context, tree, index, (masks, inputs, inputs), &emptied).await;
    if done.as_ref().is_err_and(|error| may_be_lost_copies(error, inputs)) {
        done = attempt(context, tree, index, (masks, inputs, &without_copies(inputs)), &emptied).await;
    }
    done
}

/// Kvsets of the root that hide some of what is merged, what is merged, and what is read of that: all, or those that
/// are no copies.
type Merged<'a> = (&'a [Arc<Kvset>], &'a [Arc<Kvset>], &'a [Arc<Kvset>]);

/// Writes what comes in the place of what is merged.
async fn attempt(
    context: &JobContext,
    tree: &TreeState,
    index: usize,
    (masks, inputs, read): Merged<'_>,
    emptied: &BTreeSet<SegmentNo>,
) -> Result<JobOutput> {
    let mut outputs = Outputs::new(context, read, emptied.clone());
    if let Some(class) = class_of_copies(tree, read) {
        outputs = outputs.promoted(&class);
    }
    match write(context, tree, index, (masks, inputs, read), &mut outputs).await {
        Ok(output) => Ok(output),
        Err(error) => {
            outputs.discard().await;
            Err(error)
        }
    }
}

async fn write(
    context: &JobContext,
    tree: &TreeState,
    index: usize,
    (masks, inputs, read): Merged<'_>,
    outputs: &mut Outputs<'_>,
) -> Result<JobOutput> {
    let leaf = &tree.leaves[index];
    let Some(newest) = inputs.first() else { return Ok(JobOutput::default()) };
    let is_bottom = leaf.kvsets.last().map(|kvset| kvset.no()) == inputs.last().map(|kvset| kvset.no());
    let split_bytes = (inputs.len() == leaf.kvsets.len()).then(|| split_bytes(context, inputs));
    let retention = Retention { readers: context.readers.clone(), now_s: context.now_s, is_bottom };
    let mut groups = match masks {
        [] => groups(context, read, None).await?,
        masks => masked_groups(context, masks, read, &leaf.start).await?,
    };
    let mut next_leaf = tree.next_leaf();
    let target = Target {
        leaf: leaf.no,
        start: leaf.start.clone(),
        end: tree.leaf_end(index),
        position: Position::Above(newest.no()),
        split_bytes,
        below: &[],
    };
    fill(outputs, &mut groups, &retention, target, &mut next_leaf).await?;
    outputs.output().versions_merged = groups.merged();
    let mut output = outputs.finish().await?;
    let place = Place::Leaf(leaf.no);
    let removed = inputs.iter().map(|kvset| Change::RemoveKvset { place, kvset: kvset.no() });
    output.edit.changes.extend(removed);
    Ok(output)
}

/// Returns whether that may come of values that are rewritten, which have no space or cannot be read.
fn is_of_values(error: &Error) -> bool {
    let kind = error.kind();
    matches!(kind, ErrorKind::NoSpace | ErrorKind::Corrupted | ErrorKind::Device | ErrorKind::NotFound)
}

/// The class of copies, if all of `kvsets` are that.
fn class_of_copies(tree: &TreeState, kvsets: &[Arc<Kvset>]) -> Option<String> {
    let newest = kvsets.first().filter(|_| kvsets.iter().all(|kvset| kvset.is_copy()))?;
    let segment = newest.record().info.references.first()?.segment;
    tree.segments.get(&segment)?.class.clone()
}

/// Bytes of each part of a leaf that is too large; if it is not, more than it has.
fn split_bytes(context: &JobContext, inputs: &[Arc<Kvset>]) -> u64 {
    let total: u64 = inputs.iter().map(|kvset| kvset.record().info.data_bytes()).sum();
    // Halves of a leaf that is a little too large would soon be too small.
    if total <= context.leaf_bytes + context.leaf_bytes / 2 {
        return u64::MAX;
    }
    total / total.div_ceil(context.leaf_bytes)
}
