//! Fills a leaf with what a merge has for it.

use crate::tuning::tree::JOBS;
use std::sync::Arc;

use bytes::Bytes;

use super::Overwritten;
use super::output::Outputs;
use super::sink::Ending;
use crate::Result;
use crate::entry::{Content, Version};
use crate::keyfile::{KeyCursor, KeyHash};
use crate::merge::{Groups, Retention};
use crate::notify::yield_now;
use crate::tree::edit::{LeafNo, Place, Position};
use crate::tree::kvset::Kvset;

/// A leaf to be filled.
#[derive(Debug)]
pub(super) struct Target<'a> {
    pub(super) leaf: LeafNo,
    pub(super) start: Bytes,
    /// The first key behind it.
    pub(super) end: Option<&'a Bytes>,
    /// Position of the new kvset in it.
    pub(super) position: Position,
    /// Size of the leaves that it may be split into.
    pub(super) split_bytes: Option<u64>,
    /// Its present kvsets, whose versions the new ones may overwrite.
    pub(super) below: &'a [Arc<Kvset>],
}

fn value_bytes(version: &Version) -> u64 {
    match &version.content {
        Content::Deleted => 0,
        Content::Inline(value) => value.len() as u64,
        Content::At(pointer) => u64::from(pointer.stored_len),
    }
}

/// Asks what lies below, as long as that takes few reads.
struct Sampling<'a> {
    below: &'a [Arc<Kvset>],
}

impl<'a> Sampling<'a> {
    /// None where filters say too little, or nothing.
    fn of(below: &'a [Arc<Kvset>], bits_per_key: u32) -> Option<Sampling<'a>> {
        let originals = || below.iter().filter(|kvset| !kvset.is_copy());
        let tells = bits_per_key >= JOBS.min_filter_bits && originals().all(|kvset| kvset.has_filter());
        (tells && originals().next().is_some()).then_some(Sampling { below })
    }

    /// Looks up `key` in their filters, unless that exceeds the job's reads. A filter that cannot be read counts as a
    /// miss.
    async fn look(&self, key: &[u8], overwritten: &mut Overwritten) {
        let hash = KeyHash::of(key);
        let originals = || self.below.iter().filter(|kvset| !kvset.is_copy());
        let unknown = originals().filter(|kvset| kvset.may_contain_at_once(key, hash).is_none()).count();
        // Keys of which more is known than of others would say too much.
        if overwritten.loads + unknown > JOBS.max_filter_loads {
            return;
        }
        overwritten.loads += unknown;
        // The oldest has most.
        for kvset in originals().rev() {
            let may_contain = match kvset.may_contain_at_once(key, hash) {
                Some(may_contain) => may_contain,
                None => kvset.may_contain(key, hash).await.unwrap_or(false),
            };
            if may_contain {
                return overwritten.note(true);
            }
        }
        overwritten.note(false);
    }
}

/// Passes to `outputs` what `groups` has before the end of `target`. `next_leaf` is a number for a new leaf.
///
/// # Errors
/// `NoSpace`, `Corrupted`, or if a device fails.
pub(super) async fn fill(
    outputs: &mut Outputs<'_>,
    groups: &mut Groups<KeyCursor>,
    retention: &Retention,
    target: Target<'_>,
    next_leaf: &mut LeafNo,
) -> Result<()> {
    let Target { mut leaf, mut start, end, mut position, split_bytes, below } = target;
    let mut new_leaf = None;
    let sampling = Sampling::of(below, outputs.filter_bits_per_key());
    let (mut keys, mut has_any) = (0usize, false);
    while groups.peek().is_some_and(|key| end.is_none_or(|end| key < &**end)) {
        groups.next(retention).await?;
        keys += 1;
        if keys.is_multiple_of(JOBS.versions_per_slice) {
            yield_now().await;
        }
        let (key, versions) = groups.group();
        let group_bytes: u64 = versions.iter().map(|version| key.len() as u64 + value_bytes(version)).sum();
        let before = outputs.kvset_bytes();
        // A key that would make the leaf too large goes to the next one, so that in the end it has a leaf of its own.
        let is_full = split_bytes.is_some_and(|split_bytes| {
            before >= split_bytes
                || before.saturating_add(group_bytes) > split_bytes.saturating_add(split_bytes / 2)
        });
        // The versions before it may have no bytes: the empty key without a value.
        if is_full && has_any && !versions.is_empty() {
            let split = Bytes::copy_from_slice(key);
            let tombstones = retention.tombstones_within(groups.tombstones(), &start, Some(&split));
            outputs.end(Ending { place: Place::Leaf(leaf), position, new_leaf, tombstones });
            (leaf, start, new_leaf) = (*next_leaf, split.clone(), Some((*next_leaf, split)));
            position = Position::Top;
            *next_leaf += 1;
            has_any = false;
        }
        let is_hot = groups.is_hot();
        let (key, versions) = groups.group();
        if let Some(sampling) = &sampling
            && keys % JOBS.sample_divisor == 1
        {
            sampling.look(key, &mut outputs.output().overwritten).await;
        }
        has_any |= !versions.is_empty();
        for version in versions.drain(..) {
            outputs.add(key, version, is_hot).await?;
        }
    }
    let tombstones = retention.tombstones_within(groups.tombstones(), &start, end.map(|end| &**end));
    outputs.end(Ending { place: Place::Leaf(leaf), position, new_leaf, tombstones });
    Ok(())
}
