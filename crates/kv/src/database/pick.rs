//! Which job of a tree is next, as long as trees do not say so themselves.

use std::collections::BTreeSet;

use crate::entry::SegmentNo;
use crate::tree::{Edit, JobContext, KvsetNo, LeafNo, TreeState, move_down};

/// A job of a tree.
#[derive(Debug, Clone)]
pub(crate) enum Job {
    /// The edit is all of it.
    Move(Edit),
    Spill(Vec<KvsetNo>),
    Compact {
        leaf: LeafNo,
        kvsets: Vec<KvsetNo>,
        emptied: BTreeSet<SegmentNo>,
    },
}

/// The next job; a thorough one leaves nothing at the root and one kvset in each leaf.
pub(crate) fn pick(tree: &TreeState, context: &JobContext, is_thorough: bool) -> Option<Job> {
    let most_root = if is_thorough { 1 } else { 4 };
    if tree.root.len() >= most_root {
        let oldest = tree.root.last()?.no();
        if let Some(edit) = move_down(&context.placement, tree, oldest) {
            return Some(Job::Move(edit));
        }
        return Some(Job::Spill(tree.root.iter().map(|kvset| kvset.no()).collect()));
    }
    let most_leaf = if is_thorough { 2 } else { 6 };
    let leaf = tree.leaves.iter().find(|leaf| leaf.kvsets.len() >= most_leaf)?;
    let kvsets = leaf.kvsets.iter().map(|kvset| kvset.no()).collect();
    Some(Job::Compact { leaf: leaf.no, kvsets, emptied: BTreeSet::new() })
}
