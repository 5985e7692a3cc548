//! Values that are read often, repeated on a faster class.
//!
//! A promoted kvset lies on top of its leaf. Of each of its keys it has the newest version in the leaf, with a pointer
//! to the copy: so the first version that a lookup finds is the right one, for every snapshot. The originals stay and
//! stay referenced; taking the promoted kvset away again costs nothing.

use std::collections::BTreeSet;
use std::sync::Arc;

use bytes::Bytes;

use super::output::Outputs;
use super::sink::{Ending, Warmth};
use super::{JobContext, JobOutput, may_be_lost_copies, without_copies};
use crate::entry::{Content, SequenceNo, Version};
use crate::keyfile::{Access, KeyCursor};
use crate::merge::{Direction, Merge, is_live};
use crate::tombstone::RangeTombstones;
use crate::tree::edit::{LeafNo, Place, Position};
use crate::tree::kvset::{Kvset, TreeState};
use crate::tree::shape::Leaf;
use crate::{Error, Result};

/// Copies the newest values of `keys` (ascending, all of one leaf) to `class`, as far as they do not lie there already.
///
/// # Errors
/// `NoSpace`, `Corrupted`, or if a device fails; the tree is as it was.
pub(crate) async fn promote(
    context: &JobContext,
    tree: &TreeState,
    leaf: LeafNo,
    keys: &[Bytes],
    class: &str,
) -> Result<JobOutput> {
    let leaf = tree.leaf_by_no(leaf).ok_or_else(|| Error::invalid(format!("there is no leaf {leaf}")))?;
    match attempt(context, tree, (leaf, &leaf.kvsets), keys, class).await {
        Err(error) if may_be_lost_copies(&error, &leaf.kvsets) => {
            let done = attempt(context, tree, (leaf, &without_copies(&leaf.kvsets)), keys, class).await?;
            // The copies are damaged.
            leaf.kvsets.iter().filter(|kvset| kvset.is_copy()).for_each(|kvset| kvset.note_damage());
            Ok(done)
        }
        done => done,
    }
}

/// Copies from `read`, which are all kvsets of the leaf or those that are no copies.
async fn attempt(
    context: &JobContext,
    tree: &TreeState,
    (leaf, read): (&Leaf<Arc<Kvset>>, &[Arc<Kvset>]),
    keys: &[Bytes],
    class: &str,
) -> Result<JobOutput> {
    let mut outputs = Outputs::new(context, read, BTreeSet::new()).promoted(class);
    match write(context, tree, (leaf, read), keys, class, &mut outputs).await {
        Ok(output) => Ok(output),
        Err(error) => {
            outputs.discard().await;
            Err(error)
        }
    }
}

/// As [`promote`], with keys of any leaves (ascending).
///
/// # Errors
/// As [`promote`]; what was written for the leaves before is deleted.
pub(crate) async fn promote_keys(
    context: &JobContext,
    tree: &TreeState,
    keys: &[Bytes],
    class: &str,
) -> Result<JobOutput> {
    let mut all = JobOutput::default();
    for keys in keys.chunk_by(|a, b| tree.leaf_index(a) == tree.leaf_index(b)) {
        let Some(leaf) = keys.first().and_then(|key| tree.leaf(key)) else { continue };
        match promote(context, tree, leaf.no, keys, class).await {
            Ok(output) => all.add(output),
            Err(error) => {
                all.abandon(&context.opener.objects).await;
                return Err(error);
            }
        }
    }
    Ok(all)
}

async fn write(
    context: &JobContext,
    tree: &TreeState,
    (leaf, read): (&Leaf<Arc<Kvset>>, &[Arc<Kvset>]),
    keys: &[Bytes],
    class: &str,
    outputs: &mut Outputs<'_>,
) -> Result<JobOutput> {
    let tombstones = read.iter().flat_map(|kvset| kvset.tombstones().iter().cloned());
    let tombstones = RangeTombstones::new(tombstones.collect());
    let cursors = read.iter().map(|kvset| kvset.cursor(Access::Cached));
    let mut merge = Merge::new(cursors.collect());
    for key in keys {
        let newest = newest(&mut merge, key).await?;
        // Versions that only snapshots see are not promoted.
        let Some(version) = newest.filter(|version| is_live(version, context.now_s)) else { continue };
        let Content::At(pointer) = &version.content else { continue };
        // A log segment is on the fastest class as it is.
        let is_there =
            tree.segments.get(&pointer.segment).is_none_or(|segment| segment.class.as_deref() == Some(class));
        let newest_over = tombstones.newest_over(key, SequenceNo::MAX);
        let is_hidden = newest_over.is_some_and(|newest| newest > version.sequence);
        if is_there || is_hidden {
            continue;
        }
        outputs.add_choosing(key, version, Some(Warmth::Cold)).await?;
    }
    let place = Place::Leaf(leaf.no);
    outputs.end(Ending { place, position: Position::Top, new_leaf: None, tombstones: Vec::new() });
    outputs.finish().await
}

/// The newest version of `key`.
async fn newest(merge: &mut Merge<KeyCursor>, key: &[u8]) -> Result<Option<Version>> {
    merge.seek(Direction::Forward, Some(key)).await?;
    if merge.key() == Some(key) { merge.version().map(Some) } else { Ok(None) }
}
