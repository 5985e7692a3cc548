//! The jobs of a tree: each reads kvsets, writes others, and says in an edit what that makes of the tree. Nothing
//! changes before the manifest has the edit.
//!
//! - [`spill`]: from the root into the leaves;
//! - [`merge`]: kvsets of the root into one, keys only;
//! - [`compact`]: the kvsets of one leaf into one, or into several leaves; by the way, values leave segments that are
//!   mostly garbage;
//!   [`thin`]: the same without what the root hides of them, where there is no space to bring that down;
//! - [`promote`]: values that are read often, repeated on a faster class;
//! - [`fill`]: a leaf, from a merge; [`moves`]: values that go before their keys; [`output`]: what a job writes, batch
//!   by batch; [`sink`]: the key files and segments that it goes to.
//!
//! What a job writes are drafts ([`crate::objects`]): a job that is dropped half-way leaves them to be deleted with
//! what is retired; one that fails deletes them at once, as somebody may want their room. After a stop they are
//! orphans, deleted when the database is opened.

mod compact;
mod fill;
mod merge;
mod moves;
mod output;
pub(crate) mod promote;
mod sink;
mod spill;

pub(crate) use compact::{compact, thin};
pub(crate) use merge::merge;
pub(crate) use moves::{bytes_of_a_round, values_of_a_round};
pub(crate) use spill::{move_down, spill};

use crate::tuning::tree::JOBS;
use std::collections::BTreeSet;
use std::sync::Arc;

use super::edit::{Change, Edit, KvsetNo};
use super::kvset::{Kvset, Opener};
use super::policy::Placement;
use crate::entry::SegmentNo;
use crate::keyfile::{Access, KeyCursor, KeyFileOptions};
use crate::merge::{Groups, Readers};
use crate::objects::{Lease, Objects};
use crate::pace::Pace;
use crate::tombstone::RangeTombstones;
use crate::{Error, ErrorKind, Result};

/// The context of a job.
#[derive(Debug, Clone)]
pub(crate) struct JobContext {
    pub(crate) opener: Opener,
    pub(crate) placement: Placement,
    pub(crate) key_files: KeyFileOptions,
    /// A value segment is closed before it would have more bytes, unless one value alone has.
    pub(crate) segment_bytes: u64,
    /// Hot and cold values lie apart if there are this many bytes of both.
    pub(crate) apart_bytes: u64,
    /// Bytes of keys and values that a leaf is to have; half as many again, and it is split.
    pub(crate) leaf_bytes: u64,
    /// Values that are moved are held in memory, this many bytes at once.
    pub(crate) batch_bytes: u64,
    /// Pace of its reads.
    pub(crate) pace: Pace,
    /// The last chunks of the volume may be taken for keys: what is merged gives more back.
    pub(crate) takes_last_room: bool,
    /// Log segments that a spill moves values from become mirrors.
    pub(crate) keeps_mirrors: bool,
    /// Copies of values that are moved become mirrors: instead of some of those log segments, or of what has no mirror.
    pub(crate) dense: Option<DenseMirrors>,
    /// Present mirrors; versions need not name first homes elsewhere any more.
    pub(crate) mirrors: BTreeSet<SegmentNo>,
    pub(crate) readers: Readers,
    /// Seconds since 1970.
    pub(crate) now_s: u64,
}

/// Copies on the fastest class that become mirrors. Of what a spill moves from log segments that are mostly garbage:
/// they take less room than those, which can go. Of what a compaction moves and has no mirror any more.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct DenseMirrors {
    pub(crate) class: String,
    /// For a spill: sparse log segments.
    pub(crate) sparse: BTreeSet<SegmentNo>,
    /// For a compaction: segments whose values get a mirror although they stay.
    pub(crate) from: BTreeSet<SegmentNo>,
    /// Free space for copies; a spill leaves further values in the log segment.
    pub(crate) room_bytes: u64,
}

/// The output of a job.
#[derive(Debug, Default)]
pub(crate) struct JobOutput {
    pub(crate) edit: Edit,
    /// The objects that it wrote: drafts, until a record of the edit is durable.
    pub(crate) made: Vec<Lease>,
    /// Bytes of values that were written.
    pub(crate) value_bytes_written: u64,
    /// Bytes that were read for values.
    pub(crate) value_bytes_read: u64,
    /// Versions that were merged, and those of them that were kept.
    pub(crate) versions_merged: u64,
    pub(crate) versions_kept: u64,
    /// Samples of a spill.
    pub(crate) overwritten: Overwritten,
    /// Bytes of values that were read for mirrors and got them, and of those that there was no space for.
    pub(crate) mirrored_bytes: u64,
    pub(crate) unmirrored_bytes: u64,
}

/// Sampled keys that leaves received, and how many of them they had before.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Overwritten {
    keys: u64,
    had: u64,
    /// Parts of filters that were read for that.
    loads: usize,
}

impl Overwritten {
    fn note(&mut self, is_below: bool) {
        self.keys += 1;
        self.had += u64::from(is_below);
    }

    /// The share of them; `None` if too few were seen.
    pub(crate) fn share(&self) -> Option<f64> {
        (self.keys >= JOBS.min_samples).then(|| self.had as f64 / self.keys as f64)
    }
}

/// The merge of `kvsets`, newest first, from `start` on.
async fn groups(
    context: &JobContext,
    kvsets: &[Arc<Kvset>],
    start: Option<&[u8]>,
) -> Result<Groups<KeyCursor>> {
    let tombstones = tombstones_of(kvsets);
    // All together a third of what a batch takes, or the least each. Buffers are powers of two.
    let ahead = context.batch_bytes / 3 / kvsets.len().max(1) as u64;
    let ahead = 1 << ahead.clamp(JOBS.min_read_ahead_bytes, JOBS.max_read_ahead_bytes).ilog2();
    let ahead = Access::Ahead(ahead);
    let cursors = kvsets.iter().map(|kvset| kvset.cursor(ahead));
    let groups = Groups::new(cursors.collect(), tombstones, start).await?;
    if kvsets.iter().all(|kvset| kvset.is_copy()) {
        return Ok(groups);
    }
    let copies = kvsets.iter().enumerate().filter(|(_, kvset)| kvset.is_copy());
    Ok(groups.with_copies(copies.map(|(index, _)| index).collect()))
}

/// The merge of `kvsets`, newest first, from `start` on, without what `masks`, which are newer and stay, hide of them.
async fn masked_groups(
    context: &JobContext,
    masks: &[Arc<Kvset>],
    kvsets: &[Arc<Kvset>],
    start: &[u8],
) -> Result<Groups<KeyCursor>> {
    let all: Vec<Arc<Kvset>> = masks.iter().chain(kvsets).cloned().collect();
    Ok(groups(context, &all, Some(start)).await?.masked_by(masks.len(), tombstones_of(kvsets)))
}

fn tombstones_of(kvsets: &[Arc<Kvset>]) -> RangeTombstones {
    let tombstones = kvsets.iter().flat_map(|kvset| kvset.tombstones().iter().cloned());
    RangeTombstones::new(tombstones.collect())
}

/// Returns whether that may come of copies that are damaged or lost.
fn may_be_lost_copies(error: &Error, kvsets: &[Arc<Kvset>]) -> bool {
    let is_lost = matches!(error.kind(), ErrorKind::Corrupted | ErrorKind::Device | ErrorKind::NotFound);
    is_lost && kvsets.iter().any(|kvset| kvset.is_copy())
}

/// Returns the kvsets that are not promoted copies.
fn without_copies(kvsets: &[Arc<Kvset>]) -> Vec<Arc<Kvset>> {
    kvsets.iter().filter(|kvset| !kvset.is_copy()).cloned().collect()
}

/// Returns the kvsets with the given numbers, in order; they must be neighbours.
fn select(all: &[Arc<Kvset>], numbers: &[KvsetNo]) -> Result<Vec<Arc<Kvset>>> {
    let first = all.iter().position(|kvset| numbers.contains(&kvset.no()));
    let run = first.and_then(|first| all.get(first..first + numbers.len()));
    match run.filter(|run| run.iter().all(|kvset| numbers.contains(&kvset.no()))) {
        Some(run) => Ok(run.to_vec()),
        None => Err(Error::invalid(format!("kvsets {numbers:?} are not neighbours in the tree"))),
    }
}

impl JobOutput {
    fn add(&mut self, other: JobOutput) {
        self.overwritten.keys += other.overwritten.keys;
        self.overwritten.had += other.overwritten.had;
        self.edit.changes.extend(other.edit.changes);
        self.made.extend(other.made);
        self.value_bytes_written += other.value_bytes_written;
        self.value_bytes_read += other.value_bytes_read;
        self.versions_merged += other.versions_merged;
        self.versions_kept += other.versions_kept;
        self.mirrored_bytes += other.mirrored_bytes;
        self.unmirrored_bytes += other.unmirrored_bytes;
    }

    /// The part of what was to have mirrors that got none.
    pub(crate) fn unmirrored_part(&self) -> f64 {
        let all = self.unmirrored_bytes + self.mirrored_bytes;
        self.unmirrored_bytes as f64 / all.max(1) as f64
    }

    /// Returns whether there are mirrors then that were none before.
    pub(crate) fn has_mirrors(&self) -> bool {
        self.edit.changes.iter().any(|change| matches!(change, Change::AddMirror { .. }))
    }

    /// Deletes the objects that it made: the edit is not going to be applied.
    pub(crate) async fn abandon(&self, objects: &Objects) {
        objects.delete_drafts(&self.made).await;
    }

    /// The same, as if a record of the edit were durable.
    #[cfg(test)]
    pub(crate) fn kept(self) -> JobOutput {
        self.made.iter().for_each(Lease::keep);
        self
    }
}
