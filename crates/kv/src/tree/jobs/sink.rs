//! Writes batches of a job: its key files and segments.

use crate::tuning::tree::JOBS;
use std::collections::BTreeMap;

use bytes::Bytes;
use futures::stream::{StreamExt, TryStreamExt};
use tanada_volume::Object;

use super::JobContext;
use super::JobOutput;
use crate::entry::{Content, FirstHome, Pointer, RangeTombstone, SegmentNo, Version};
use crate::keyfile::KeyFileWriter;
use crate::notify::yield_now;
use crate::objects::{Lease, ObjectKind};
use crate::stream::sync;
use crate::tree::edit::{Change, KvsetKind, KvsetRecord, LeafNo, Place, Position, SegmentRecord};
use crate::value::{HEADER_BYTES, Room, SegmentWriter};
use crate::written::Purpose;
use crate::{Error, ErrorKind, Result};

/// The target of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Moved {
    pub(super) home: FirstHome,
    pub(super) mirror: Option<FirstHome>,
}

/// The place of a complete kvset.
#[derive(Debug)]
pub(super) struct Ending {
    pub(super) place: Place,
    pub(super) position: Position,
    /// The leaf is a new one, and begins there.
    pub(super) new_leaf: Option<(LeafNo, Bytes)>,
    pub(super) tombstones: Vec<RangeTombstone>,
}

/// Expected lifetime of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Warmth {
    Cold,
    Hot,
}

/// Why the value of a version is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Use {
    Move(Warmth),
    /// For a mirror only.
    Mirror,
}

#[derive(Debug)]
pub(super) enum Step {
    /// A version whose key ends there in the batch's keys; what its value is read for, if it is.
    Version(usize, Version, Option<Use>),
    End(Ending),
}

/// Steps of a batch that are taken before others have their turn.
#[derive(Debug)]
pub(super) struct Part {
    pub(super) keys: Vec<u8>,
    pub(super) steps: Vec<Step>,
}

/// Versions that are written together.
#[derive(Debug, Default)]
pub(super) struct Batch {
    /// Never moved when there are more: that would take long where there are many.
    parts: Vec<Part>,
    /// Places of the values that are read.
    pub(super) pointers: Vec<Pointer>,
    /// Memory of the batch, with the values that are read.
    pub(super) bytes: u64,
    /// Bytes of moved values, cold and hot.
    pub(super) moved_bytes: [u64; 2],
}

impl Batch {
    /// The part that the next step goes to.
    pub(super) fn part(&mut self) -> &mut Part {
        if self.parts.last().is_none_or(|part| part.steps.len() == JOBS.versions_per_slice) {
            self.parts.push(Part { keys: Vec::new(), steps: Vec::with_capacity(JOBS.versions_per_slice) });
        }
        let last = self.parts.len() - 1;
        &mut self.parts[last]
    }
}

/// Key files and segments of a job.
pub(super) struct Sink<'a> {
    context: &'a JobContext,
    /// Source segments that become mirrors, with the mirrored bytes of each.
    pub(super) mirrored: Option<BTreeMap<SegmentNo, u64>>,
    pub(super) kind: KvsetKind,
    pub(super) keys_class: String,
    pub(super) values_class: String,
    writer: Option<(Lease, KeyFileWriter)>,
    /// Cold and hot ones in turn.
    values: Vec<Option<(Lease, SegmentWriter)>>,
    /// Bytes of values that are still to come.
    coming_bytes: u64,
    /// Copies that are going to be mirrors, and the bytes that may be written of such.
    copies: Option<(Lease, SegmentWriter)>,
    copies_room: u64,
    copied: BTreeMap<SegmentNo, u64>,
    written: Vec<(Lease, Object)>,
    pub(super) output: JobOutput,
}

impl<'a> Sink<'a> {
    pub(super) fn new(context: &'a JobContext) -> Sink<'a> {
        Sink {
            context,
            mirrored: None,
            kind: KvsetKind::Data,
            keys_class: context.placement.leaf_keys.clone(),
            values_class: context.placement.leaf_values.clone(),
            writer: None,
            values: vec![None, None],
            coming_bytes: 0,
            copies: None,
            copies_room: context.dense.as_ref().map_or(0, |dense| dense.room_bytes),
            copied: BTreeMap::new(),
            written: Vec::new(),
            output: JobOutput::default(),
        }
    }

    /// Writes a batch, of which `stored` are the values that are moved; what they took is given back to `room`.
    ///
    /// # Errors
    /// `NoSpace`, or if a device fails.
    pub(super) async fn write(&mut self, batch: Batch, stored: Vec<Bytes>, room: &Room) -> Result<()> {
        let Batch { parts, pointers, moved_bytes, .. } = batch;
        let mut stored = pointers.into_iter().zip(stored);
        let are_apart = self.are_apart(moved_bytes);
        for Part { keys, steps } in parts {
            let mut key_start = 0;
            for step in steps {
                match step {
                    Step::Version(key_end, version, read_for) => {
                        let read = read_for.and_then(|read_for| Some((read_for, stored.next()?)));
                        let version = self.write_value(version, read, are_apart, room).await?;
                        let (_, writer) = self.key_writer()?;
                        writer.add(&keys[key_start..key_end], &version).await?;
                        key_start = key_end;
                    }
                    Step::End(ending) => self.end_kvset(ending).await?,
                }
            }
            yield_now().await;
        }
        Ok(())
    }

    /// Returns whether values, of which there are this many bytes, cold and hot, are worth segments of their own.
    pub(super) fn are_apart(&self, moved_bytes: [u64; 2]) -> bool {
        let has_enough = moved_bytes.iter().all(|bytes| *bytes > self.context.apart_bytes);
        has_enough || self.values[Warmth::Hot as usize].is_some()
    }

    /// Values come with this many bytes, for parts each of which has a segment of its own: cold ones have even numbers,
    /// hot ones odd ones. The first two go on where the last ones ended.
    pub(super) fn begin_parts(&mut self, bytes: u64) {
        self.coming_bytes = bytes;
    }

    /// Bytes of values that a part has.
    pub(super) fn part_bytes(&self) -> u64 {
        self.context.segment_bytes.saturating_sub(HEADER_BYTES as u64)
    }

    /// Bytes that the first two have yet.
    pub(super) fn left_bytes(&self) -> [u64; 2] {
        [Warmth::Cold, Warmth::Hot].map(|warmth| match &self.values[warmth as usize] {
            Some((_, values)) => self.context.segment_bytes.saturating_sub(values.position()),
            None => self.part_bytes(),
        })
    }

    /// Writes a value of a part, and says where it is.
    ///
    /// # Errors
    /// `NoSpace`, or if a device fails.
    pub(super) async fn relocate(&mut self, from: &Pointer, stored: &[u8], part: usize) -> Result<Moved> {
        let to = self.move_value(from, stored, part).await?;
        self.coming_bytes = self.coming_bytes.saturating_sub(u64::from(from.stored_len));
        let mirror = match self.mirrored {
            Some(_) => Some(self.mirror_value(from, stored).await),
            None => None,
        };
        Ok(Moved { home: FirstHome { segment: to.segment, offset: to.offset }, mirror })
    }

    /// Waits for what is on its way to a part's segment.
    ///
    /// # Errors
    /// As [`relocate`](Self::relocate).
    pub(super) async fn settle(&mut self, part: usize) -> Result<()> {
        match self.values.get_mut(part) {
            Some(Some((_, values))) => values.settle().await,
            _ => Ok(()),
        }
    }

    /// All parts are complete but the `last` ones, cold and hot: these are the first of what comes next.
    ///
    /// # Errors
    /// As [`relocate`](Self::relocate).
    pub(super) async fn end_parts(&mut self, last: [usize; 2]) -> Result<()> {
        self.coming_bytes = 0;
        for part in (0..self.values.len()).filter(|part| !last.contains(part)) {
            self.end_segment(part).await?;
        }
        let parts = self.values.len();
        for (first, last) in last.into_iter().enumerate().filter(|(_, last)| *last < parts) {
            self.values.swap(first, last);
        }
        Ok(())
    }

    /// The version with its value where it is then, and with its mirror, if it was `read`.
    async fn write_value(
        &mut self,
        mut version: Version,
        read: Option<(Use, (Pointer, Bytes))>,
        are_apart: bool,
        room: &Room,
    ) -> Result<Version> {
        let Some((read_for, (pointer, value))) = read else { return Ok(version) };
        let mut is_hot = false;
        if let Use::Move(warmth) = read_for {
            let warmth = if are_apart { warmth } else { Warmth::Cold };
            version.content = Content::At(self.move_value(&pointer, &value, warmth as usize).await?);
            is_hot = warmth == Warmth::Hot;
        }
        if version.mirror.is_none() && !is_hot {
            version.mirror = self.copy_if_room(&pointer, &value).await;
            if read_for == Use::Mirror {
                let output = &mut self.output;
                let (yes, no) = (&mut output.mirrored_bytes, &mut output.unmirrored_bytes);
                *(if version.mirror.is_some() { yes } else { no }) += u64::from(pointer.stored_len);
            }
        }
        drop(value);
        room.give(u64::from(pointer.stored_len));
        Ok(version)
    }

    fn key_writer(&mut self) -> Result<&mut (Lease, KeyFileWriter)> {
        if self.writer.is_none() {
            let objects = &self.context.opener.objects;
            if !self.context.takes_last_room && !objects.have_room_for_keys() {
                return Err(nearly_full());
            }
            let (lease, object) = objects.draft(ObjectKind::Keys, Some(&self.keys_class))?;
            let writer = KeyFileWriter::new(lease.no(), object, objects.buffers(), self.context.key_files);
            self.writer = Some((lease, writer));
        }
        self.writer.as_mut().ok_or_else(|| Error::corrupted("a job lost its key file"))
    }

    async fn move_value(&mut self, from: &Pointer, stored: &[u8], part: usize) -> Result<Pointer> {
        if part >= self.values.len() {
            self.values.resize_with(part + 1, || None);
        }
        let open = self.values[part].as_ref();
        if open.is_some_and(|(_, values)| values.is_full(stored.len(), self.context.segment_bytes)) {
            self.end_segment(part).await?;
        }
        let (_, writer) = match &mut self.values[part] {
            Some(values) => values,
            none => {
                let objects = &self.context.opener.objects;
                // Room comes of it only when nothing refers to what is emptied any more, which may take other jobs.
                if !objects.have_room_for(self.context.segment_bytes.max(self.coming_bytes)) {
                    return Err(nearly_full());
                }
                let (lease, object) = objects.draft(ObjectKind::Segment, Some(&self.values_class))?;
                let is_elsewhere = object.attributes().class.as_ref() != Some(&self.values_class);
                if self.kind == KvsetKind::Promoted && is_elsewhere {
                    return Err(Error::new(ErrorKind::NoSpace, "the fastest class has no room for copies"));
                }
                let pieces = self.context.key_files.pieces;
                let writer = SegmentWriter::new(lease.no(), object, objects.buffers(), pieces).await?;
                none.insert((lease, writer))
            }
        };
        writer.append_moved(stored, from).await
    }

    /// Says where the mirror of a value that was moved is: a copy, or where the log wrote it.
    async fn mirror_value(&mut self, from: &Pointer, stored: &[u8]) -> FirstHome {
        let is_sparse = self.context.dense.as_ref().is_some_and(|dense| dense.sparse.contains(&from.segment));
        if is_sparse && let Some(copy) = self.copy_if_room(from, stored).await {
            return copy;
        }
        if let Some(mirrored) = &mut self.mirrored {
            *mirrored.entry(from.segment).or_default() += u64::from(from.stored_len);
        }
        FirstHome { segment: from.segment, offset: from.offset }
    }

    /// Says where the copy of a value that was moved is, if there is space for one and it can be written.
    async fn copy_if_room(&mut self, from: &Pointer, stored: &[u8]) -> Option<FirstHome> {
        let begun_bytes = self.begun_bytes(stored.len());
        let is_no_room = self.kind == KvsetKind::Promoted || begun_bytes > self.copies_room;
        if is_no_room || !from.leads_to(stored) {
            return None;
        }
        self.copies_room -= begun_bytes;
        let copied = self.copy_value(from, stored).await;
        if copied.is_err() {
            // Copies are optional, whatever their error is.
            self.give_copies_up();
        }
        let copy = copied.ok()?;
        Some(FirstHome { segment: copy.segment, offset: copy.offset })
    }

    async fn copy_value(&mut self, from: &Pointer, stored: &[u8]) -> Result<Pointer> {
        let open = self.copies.as_ref();
        if open.is_some_and(|(_, copies)| copies.is_full(stored.len(), self.context.segment_bytes)) {
            self.end_copies().await?;
        }
        let (_, writer) = match &mut self.copies {
            Some(copies) => copies,
            none => {
                let objects = &self.context.opener.objects;
                let class = self.context.dense.as_ref().map(|dense| &*dense.class);
                let (lease, object) = objects.draft(ObjectKind::Segment, class)?;
                if object.attributes().class.as_deref() != class {
                    return Err(Error::new(ErrorKind::NoSpace, "the fastest class has no room for copies"));
                }
                let pieces = self.context.key_files.pieces;
                let writer = SegmentWriter::new(lease.no(), object, objects.buffers(), pieces).await?;
                none.insert((lease, writer))
            }
        };
        writer.append_moved(stored, from).await
    }

    /// Bytes of the chunks that a copy of `len` bytes would begin.
    fn begun_bytes(&self, len: usize) -> u64 {
        let chunk_bytes = self.context.opener.objects.volume().chunk_bytes();
        let open = self.copies.as_ref().map(|(_, copies)| copies);
        let position = open.filter(|copies| !copies.is_full(len, self.context.segment_bytes));
        let position = position.map(|copies| copies.position());
        let end = position.unwrap_or(HEADER_BYTES as u64) + len as u64;
        (end.div_ceil(chunk_bytes) - position.map_or(0, |position| position.div_ceil(chunk_bytes)))
            * chunk_bytes
    }

    /// Versions that were written lead to a segment then which is no mirror: they are read where their leaf has them.
    fn give_copies_up(&mut self) {
        self.copies_room = 0;
        self.copies = None;
    }

    async fn end_copies(&mut self) -> Result<()> {
        let Some((lease, writer)) = self.copies.take() else { return Ok(()) };
        let class = self.context.dense.as_ref().map(|dense| dense.class.clone());
        let segment = SegmentRecord { no: writer.no(), stored_bytes: writer.stored_bytes(), class };
        let object = writer.finish_unsynced().await?;
        self.note_written(Purpose::JobValues, &object);
        self.written.push((lease, object));
        self.copied.insert(segment.no, segment.stored_bytes);
        self.output.edit.changes.push(Change::AddSegment { segment });
        Ok(())
    }

    async fn end_segment(&mut self, part: usize) -> Result<()> {
        let Some((lease, writer)) = self.values[part].take() else { return Ok(()) };
        let segment = SegmentRecord {
            no: writer.no(),
            stored_bytes: writer.stored_bytes(),
            class: Some(self.values_class.clone()),
        };
        self.output.value_bytes_written += segment.stored_bytes;
        let object = writer.finish_unsynced().await?;
        self.note_written(Purpose::JobValues, &object);
        self.written.push((lease, object));
        self.output.edit.changes.push(Change::AddSegment { segment });
        Ok(())
    }

    async fn end_kvset(&mut self, ending: Ending) -> Result<()> {
        if !ending.tombstones.is_empty() {
            self.key_writer()?;
        }
        let Some((lease, mut writer)) = self.writer.take() else { return Ok(()) };
        for tombstone in ending.tombstones {
            writer.add_range_tombstone(tombstone);
        }
        let (info, object) = writer.finish_unsynced().await?;
        self.note_written(Purpose::JobKeys, &object);
        let kvset = KvsetRecord { no: lease.no(), kind: self.kind, info };
        self.written.push((lease, object));
        let changes = &mut self.output.edit.changes;
        if let Some((leaf, start)) = ending.new_leaf {
            changes.push(Change::AddLeaf { leaf, start });
        }
        changes.push(Change::AddKvset { place: ending.place, position: ending.position, kvset });
        Ok(())
    }

    fn note_written(&self, purpose: Purpose, object: &Object) {
        self.context.opener.objects.note_written(purpose, object, 0, object.size_bytes());
    }

    /// Ends the segments and makes everything durable; `copied` are segments of copies that are kept, with the bytes
    /// that are.
    ///
    /// # Errors
    /// `NoSpace`, or if a device fails.
    pub(super) async fn finish(&mut self, copied: BTreeMap<SegmentNo, u64>) -> Result<JobOutput> {
        for part in 0..self.values.len() {
            self.end_segment(part).await?;
        }
        if self.end_copies().await.is_err() {
            self.give_copies_up();
        }
        let copied = copied.into_iter().filter(|(_, bytes)| *bytes > 0);
        let mirrored = self.mirrored.take().into_iter().flatten().chain(std::mem::take(&mut self.copied));
        for (segment, stored_bytes) in mirrored.chain(copied) {
            self.output.edit.changes.push(Change::AddMirror { segment, stored_bytes });
        }
        // After a stop here it is in no manifest: orphans, deleted at the next opening; if the job is given up, drafts,
        // deleted soon.
        let syncs: Vec<_> = self.written.iter().map(|(_, object)| sync(object)).collect();
        futures::stream::iter(syncs).buffer_unordered(JOBS.concurrent_syncs).try_collect::<()>().await?;
        self.output.made.extend(self.written.drain(..).map(|(lease, _)| lease));
        Ok(std::mem::take(&mut self.output))
    }

    /// Deletes what was written: the job has failed.
    pub(super) async fn discard(mut self) {
        let objects = self.context.opener.objects.clone();
        let keys = self.writer.take().map(|(lease, _)| lease);
        let values = self.values.iter_mut().filter_map(Option::take).chain(self.copies.take());
        let written = self.written.drain(..).map(|(lease, _)| lease);
        let made: Vec<Lease> = written.chain(keys).chain(values.map(|(lease, _)| lease)).collect();
        objects.delete_drafts(&made).await;
    }
}

fn nearly_full() -> Error {
    let error = "the volume is nearly full: what is free is kept for the log; delete something, free space or enlarge a class";
    Error::new(ErrorKind::NoSpace, error)
}
