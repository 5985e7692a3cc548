//! What a job writes.
//!
//! 1. Versions are collected in a *batch*, together with the ends of the kvsets they belong to, until they and those of
//!    their values that are to be moved fill the memory that a job may use. A batch goes over many leaves: so values
//!    that lie side by side in a log segment, and belong to leaves far apart, are still read together.
//! 2. The values are read, in the order of their segments, while the batch before is written, whose memory they take as
//!    it comes free: the device that is read from is not idle while the other one is written to.
//! 3. They are written to the open value segment, in the order of their keys ([`sink`](super::sink)). Those of keys
//!    that were written more than once in what is merged are *hot*: they have a segment of their own, which will soon
//!    be garbage as a whole, unless there are too few of them.
//! 4. The versions are written to key files, with pointers to where their values are now.
//! 5. At the end all objects are synced, many at once.
//!
//! Values that leave the log with a spill are moved before 1. ([`moves`](super::moves)): their versions come to a batch
//! with their new places, and are written at once.

use crate::tuning::tree::JOBS;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use bytes::Bytes;

use super::moves::Moves;
use super::sink::{Batch, Ending, Sink, Step, Use, Warmth};
use super::{JobContext, JobOutput};
use crate::Result;
use crate::entry::{Content, SegmentNo, Version};
use crate::keyfile::KeyCursor;
use crate::merge::Groups;
use crate::tree::edit::KvsetKind;
use crate::tree::kvset::Kvset;
use crate::value::{Damaged, Room, Segment, read_stored};

/// Collects what a job writes.
pub(super) struct Outputs<'a> {
    context: &'a JobContext,
    /// Segments whose values are moved.
    moved: BTreeSet<SegmentNo>,
    /// Values that are moved before their keys are written.
    moves: Option<Moves<'a>>,
    /// Bytes of values that stay where they are and may yet be read for mirrors.
    mirrors_room: u64,
    /// Segments of copies of what is written, with the bytes of those that are kept.
    copied: BTreeMap<SegmentNo, u64>,
    segments: HashMap<SegmentNo, Segment>,
    /// Bytes of the kvset that is being collected.
    kvset_bytes: u64,
    batch: Batch,
    /// Bytes that versions of the batch before take as long as the next one is read.
    held_bytes: u64,
    /// The batch before, with the values that are moved.
    read: Option<(Batch, Vec<Bytes>)>,
    sink: Sink<'a>,
}

impl<'a> Outputs<'a> {
    /// Creates the output of a job that reads `inputs` and moves values of the segments `moved`.
    pub(super) fn new(
        context: &'a JobContext,
        inputs: &[Arc<Kvset>],
        moved: BTreeSet<SegmentNo>,
    ) -> Outputs<'a> {
        let segments = inputs.iter().flat_map(|kvset| kvset.segments());
        let copies = inputs.iter().filter(|kvset| kvset.is_copy()).flat_map(|kvset| kvset.segments());
        Outputs {
            context,
            moved,
            moves: None,
            mirrors_room: context.dense.as_ref().map_or(0, |dense| dense.room_bytes),
            copied: copies.map(|segment| (segment.no(), 0)).collect(),
            segments: segments.map(|segment| (segment.no(), segment.clone())).collect(),
            kvset_bytes: 0,
            batch: Batch::default(),
            held_bytes: 0,
            read: None,
            sink: Sink::new(context),
        }
    }

    /// Values are moved before their keys are written; `ahead` is the same merge as that of the keys.
    pub(super) fn moving_first(&mut self, ahead: Groups<KeyCursor>) {
        let left = std::mem::take(&mut self.moved);
        self.moves = Some(Moves::new(self.context, left, ahead));
    }

    /// Writes kvsets of the root.
    pub(super) fn at_root(mut self) -> Outputs<'a> {
        self.sink.keys_class.clone_from(&self.context.placement.root_keys);
        self
    }

    /// Writes promoted kvsets, all on `class`.
    pub(super) fn promoted(mut self, class: &str) -> Outputs<'a> {
        self.sink.kind = KvsetKind::Promoted;
        self.sink.keys_class = class.to_owned();
        self.sink.values_class = class.to_owned();
        self
    }

    /// Keeps the source segments as mirrors.
    pub(super) fn mirroring(mut self) -> Outputs<'a> {
        self.sink.mirrored = Some(BTreeMap::new());
        self
    }

    /// Bytes of the kvset that is being collected, keys and values.
    pub(super) fn kvset_bytes(&self) -> u64 {
        self.kvset_bytes
    }

    pub(super) fn filter_bits_per_key(&self) -> u32 {
        self.context.key_files.filter_bits_per_key
    }

    pub(super) fn output(&mut self) -> &mut JobOutput {
        &mut self.sink.output
    }

    /// Adds a version to the kvset that is being collected.
    pub(super) async fn add(&mut self, key: &[u8], version: Version, is_hot: bool) -> Result<()> {
        let moves = matches!(&version.content, Content::At(pointer) if self.moved.contains(&pointer.segment));
        let warmth = if is_hot { Warmth::Hot } else { Warmth::Cold };
        self.add_choosing(key, version, moves.then_some(warmth)).await
    }

    /// Returns whether a version's value is read for a mirror, though it stays where it is.
    fn wants_mirror(&mut self, version: &Version) -> bool {
        let Some(dense) = self.context.dense.as_ref().filter(|_| version.mirror.is_none()) else {
            return false;
        };
        let Content::At(pointer) = &version.content else { return false };
        if !dense.from.contains(&pointer.segment) {
            return false;
        }
        let bytes = u64::from(pointer.stored_len);
        let has_room = bytes <= self.mirrors_room;
        if !has_room {
            self.sink.output.unmirrored_bytes += bytes;
        }
        has_room
    }

    /// Adds a version and says how its value is moved, if it is.
    pub(super) async fn add_choosing(
        &mut self,
        key: &[u8],
        mut version: Version,
        moves: Option<Warmth>,
    ) -> Result<()> {
        version.mirror = version.mirror.filter(|home| match self.copied.get_mut(&home.segment) {
            Some(bytes) => {
                *bytes += u64::from(version.content.stored_bytes());
                true
            }
            None => self.context.mirrors.contains(&home.segment),
        });
        if let Some(moves) = &mut self.moves
            && let Content::At(pointer) = &mut version.content
            && moves.are_from(pointer)
        {
            let moved = moves.next(pointer, &self.segments, &mut self.sink).await?;
            (pointer.segment, pointer.offset) = (moved.home.segment, moved.home.offset);
            version.mirror = moved.mirror;
        }
        let read_for = match moves {
            Some(warmth) => Some(Use::Move(warmth)),
            None => self.wants_mirror(&version).then_some(Use::Mirror),
        };
        let value_bytes = match &version.content {
            Content::Deleted => 0,
            Content::Inline(value) => {
                self.batch.bytes += value.len() as u64;
                value.len() as u64
            }
            Content::At(pointer) => {
                if let Some(read_for) = read_for {
                    self.batch.pointers.push(*pointer);
                    self.batch.bytes += u64::from(pointer.stored_len);
                    match read_for {
                        Use::Move(warmth) => {
                            self.batch.moved_bytes[warmth as usize] += u64::from(pointer.stored_len);
                        }
                        Use::Mirror => self.mirrors_room -= u64::from(pointer.stored_len),
                    }
                }
                u64::from(pointer.stored_len)
            }
        };
        self.kvset_bytes += key.len() as u64 + value_bytes;
        let part = self.batch.part();
        part.keys.extend_from_slice(key);
        part.steps.push(Step::Version(part.keys.len(), version, read_for));
        self.batch.bytes += (key.len() + size_of::<Step>()) as u64;
        self.sink.output.versions_kept += 1;
        // If few values of a leaf are moved, versions take most of the memory.
        let most_bytes = match self.moves {
            Some(_) => self.context.batch_bytes / JOBS.moved_versions_divisor,
            None => self.context.batch_bytes,
        };
        if self.batch.bytes + self.held_bytes >= most_bytes {
            self.end_batch().await?;
        }
        Ok(())
    }

    /// The kvset that is being collected is complete. Without versions and tombstones there is none.
    pub(super) fn end(&mut self, ending: Ending) {
        self.kvset_bytes = 0;
        self.batch.part().steps.push(Step::End(ending));
    }

    /// Reads the values of the batch, and writes the one before meanwhile.
    async fn end_batch(&mut self) -> Result<()> {
        let batch = std::mem::take(&mut self.batch);
        let read_bytes: u64 = batch.pointers.iter().map(|pointer| u64::from(pointer.stored_len)).sum();
        self.held_bytes = (batch.bytes - read_bytes).min(self.context.batch_bytes / 2);
        let room = Room::of(self.context.batch_bytes / JOBS.read_ahead_divisor);
        let (before, kind, sink) = (self.read.take(), self.sink.kind, &mut self.sink);
        let write = async {
            let written = match before {
                Some((batch, stored)) => sink.write(batch, stored, &room).await,
                None => Ok(()),
            };
            if written.is_ok() {
                room.open()
            } else {
                room.close()
            }
            written
        };
        // Copies are of use only if they are right.
        let damaged = match kind {
            KvsetKind::Promoted => Damaged::Fails,
            KvsetKind::Data => Damaged::IsPassedOn,
        };
        let read = read_stored(&batch.pointers, &self.segments, (&self.context.pace, &room), damaged);
        // Neither is given up in the middle of an I/O because the other one fails.
        let (written, read) = futures::join!(write, read);
        written?;
        let (stored, bytes_read) = read?;
        self.sink.output.value_bytes_read += bytes_read;
        if batch.pointers.is_empty() {
            self.held_bytes = 0;
            return self.sink.write(batch, stored, &room).await;
        }
        self.read = Some((batch, stored));
        Ok(())
    }

    /// Writes the rest and makes everything durable.
    pub(super) async fn finish(&mut self) -> Result<JobOutput> {
        self.end_batch().await?;
        // Its values are the last.
        if let Some((batch, stored)) = self.read.take() {
            self.sink.write(batch, stored, &Room::unlimited()).await?;
        }
        self.sink.finish(std::mem::take(&mut self.copied)).await
    }

    /// Deletes what was written: the job has failed.
    pub(super) async fn discard(self) {
        self.sink.discard().await;
    }
}
