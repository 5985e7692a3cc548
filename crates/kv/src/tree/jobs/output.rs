//! What a job writes.
//!
//! 1. Versions are collected in a *batch*, together with the ends of the kvsets they belong to, until they and those of their values that are to be moved
//!    fill the memory that a job may use. A batch goes over many leaves: so values that lie side by side in a log segment, and belong to leaves far apart, are still
//!    read together.
//! 2. The values are read, in the order of their segments, and written to the open value segment, in the order of their keys. Those of keys that were written
//!    more than once in what is merged are *hot*: they have a segment of their own, which will soon be garbage as a whole, unless there are too few of them.
//! 3. The versions are written to key files, with pointers to where their values are now.
//! 4. At the end all objects are synced, many at once.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use bytes::Bytes;
use futures::stream::{StreamExt, TryStreamExt};
use tanada_volume::Object;

use super::{JobContext, JobOutput, VERSIONS_AT_ONCE};
use crate::entry::{Content, FirstHome, Pointer, RangeTombstone, SegmentNo, Version};
use crate::keyfile::KeyFileWriter;
use crate::notify::yield_now;
use crate::objects::{Lease, ObjectKind};
use crate::stream::sync;
use crate::tree::edit::{Change, KvsetKind, KvsetRecord, LeafNo, Place, Position, SegmentRecord};
use crate::tree::kvset::Kvset;
use crate::value::{Segment, SegmentWriter, read_stored};
use crate::written::Purpose;
use crate::{Error, ErrorKind, Result};

/// Objects that are synced at once.
const SYNCED_AT_ONCE: usize = 32;

/// Where a kvset goes that is complete.
#[derive(Debug)]
pub(super) struct Ending {
    pub(super) place: Place,
    pub(super) position: Position,
    /// The leaf is a new one, and begins there.
    pub(super) new_leaf: Option<(LeafNo, Bytes)>,
    pub(super) tombstones: Vec<RangeTombstone>,
}

/// How soon a value will probably be garbage.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Warmth {
    Cold,
    Hot,
}

#[derive(Debug)]
enum Step {
    /// A version whose key ends there in the batch's keys; how its value is moved, if it is.
    Version(usize, Version, Option<Warmth>),
    End(Ending),
}

/// Collects what a job writes.
pub(super) struct Outputs<'a> {
    context: &'a JobContext,
    /// Segments whose values are moved.
    moved: BTreeSet<SegmentNo>,
    /// Where values are moved from may be read from then on; so many bytes of each segment.
    mirrored: Option<BTreeMap<SegmentNo, u64>>,
    /// Segments of copies of what is written, with the bytes of those that are kept.
    copied: BTreeMap<SegmentNo, u64>,
    segments: HashMap<SegmentNo, Segment>,
    kind: KvsetKind,
    keys_class: String,
    values_class: String,
    keys: Vec<u8>,
    steps: Vec<Step>,
    pointers: Vec<Pointer>,
    batch_bytes: u64,
    /// Of values that are moved, cold and hot.
    moved_bytes: [u64; 2],
    /// Of the kvset that is being collected.
    kvset_bytes: u64,
    writer: Option<(Lease, KeyFileWriter)>,
    /// Cold and hot ones.
    values: [Option<(Lease, SegmentWriter)>; 2],
    written: Vec<(Lease, Object)>,
    output: JobOutput,
}

impl<'a> Outputs<'a> {
    /// For a job that reads `inputs` and moves the values that lie in the segments `moved`.
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
            mirrored: None,
            copied: copies.map(|segment| (segment.no(), 0)).collect(),
            segments: segments.map(|segment| (segment.no(), segment.clone())).collect(),
            kind: KvsetKind::Data,
            keys_class: context.placement.leaf_keys.clone(),
            values_class: context.placement.leaf_values.clone(),
            keys: Vec::new(),
            steps: Vec::new(),
            pointers: Vec::new(),
            batch_bytes: 0,
            moved_bytes: [0; 2],
            kvset_bytes: 0,
            writer: None,
            values: [None, None],
            written: Vec::new(),
            output: JobOutput::default(),
        }
    }

    /// What is written are kvsets of the root.
    pub(super) fn at_root(mut self) -> Outputs<'a> {
        self.keys_class.clone_from(&self.context.placement.root_keys);
        self
    }

    /// What is written are promoted kvsets, all on `class`.
    pub(super) fn promoted(mut self, class: &str) -> Outputs<'a> {
        self.kind = KvsetKind::Promoted;
        self.keys_class = class.to_owned();
        self.values_class = class.to_owned();
        self
    }

    /// Where values are moved from stays as a mirror.
    pub(super) fn mirroring(mut self) -> Outputs<'a> {
        self.mirrored = Some(BTreeMap::new());
        self
    }

    /// Bytes of the kvset that is being collected, keys and values.
    pub(super) fn kvset_bytes(&self) -> u64 {
        self.kvset_bytes
    }

    pub(super) fn output(&mut self) -> &mut JobOutput {
        &mut self.output
    }

    /// Adds a version to the kvset that is being collected.
    pub(super) async fn add(&mut self, key: &[u8], version: Version, is_hot: bool) -> Result<()> {
        let moves = matches!(&version.content, Content::At(pointer) if self.moved.contains(&pointer.segment));
        let warmth = if is_hot { Warmth::Hot } else { Warmth::Cold };
        self.add_choosing(key, version, moves.then_some(warmth)).await
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
        let value_bytes = match &version.content {
            Content::Deleted => 0,
            Content::Inline(value) => {
                self.batch_bytes += value.len() as u64;
                value.len() as u64
            }
            Content::At(pointer) => {
                if let Some(warmth) = moves {
                    self.pointers.push(*pointer);
                    self.batch_bytes += u64::from(pointer.stored_len);
                    self.moved_bytes[warmth as usize] += u64::from(pointer.stored_len);
                }
                u64::from(pointer.stored_len)
            }
        };
        self.kvset_bytes += key.len() as u64 + value_bytes;
        self.keys.extend_from_slice(key);
        self.batch_bytes += (key.len() + size_of::<Step>()) as u64;
        self.steps.push(Step::Version(self.keys.len(), version, moves));
        self.output.versions_kept += 1;
        if self.batch_bytes >= self.context.batch_bytes {
            self.write_batch().await?;
        }
        Ok(())
    }

    /// The kvset that is being collected is complete. Without versions and tombstones there is none.
    pub(super) fn end(&mut self, ending: Ending) {
        self.kvset_bytes = 0;
        self.steps.push(Step::End(ending));
    }

    async fn write_batch(&mut self) -> Result<()> {
        let (stored, bytes_read) = read_stored(&self.pointers, &self.segments, &self.context.pace).await?;
        self.output.value_bytes_read += bytes_read;
        let mut stored = self.pointers.drain(..).zip(stored).collect::<Vec<_>>().into_iter();
        let (keys, steps) = (std::mem::take(&mut self.keys), std::mem::take(&mut self.steps));
        self.batch_bytes = 0;
        let moved_bytes = std::mem::take(&mut self.moved_bytes);
        let has_enough = moved_bytes.iter().all(|bytes| *bytes > self.context.apart_bytes);
        let are_apart = has_enough || self.values[Warmth::Hot as usize].is_some();
        let mut key_start = 0;
        for (done, step) in steps.into_iter().enumerate() {
            if done % VERSIONS_AT_ONCE == VERSIONS_AT_ONCE - 1 {
                yield_now().await;
            }
            match step {
                Step::Version(key_end, mut version, moves) => {
                    if let Some((warmth, (pointer, value))) =
                        moves.and_then(|warmth| Some((warmth, stored.next()?)))
                    {
                        let warmth = if are_apart { warmth } else { Warmth::Cold };
                        version.content = Content::At(self.move_value(&pointer, &value, warmth).await?);
                        if let Some(mirrored) = &mut self.mirrored {
                            *mirrored.entry(pointer.segment).or_default() += u64::from(pointer.stored_len);
                            version.mirror =
                                Some(FirstHome { segment: pointer.segment, offset: pointer.offset });
                        }
                    }
                    let (_, writer) = self.key_writer()?;
                    writer.add(&keys[key_start..key_end], &version).await?;
                    key_start = key_end;
                }
                Step::End(ending) => self.end_kvset(ending).await?,
            }
        }
        Ok(())
    }

    fn key_writer(&mut self) -> Result<&mut (Lease, KeyFileWriter)> {
        if self.writer.is_none() {
            let objects = &self.context.opener.objects;
            let (lease, object) = objects.create(ObjectKind::Keys, Some(&self.keys_class))?;
            let writer = KeyFileWriter::new(lease.no(), object, objects.buffers(), self.context.key_files);
            self.writer = Some((lease, writer));
        }
        self.writer.as_mut().ok_or_else(|| Error::corrupted("a job lost its key file"))
    }

    async fn move_value(&mut self, from: &Pointer, stored: &[u8], warmth: Warmth) -> Result<Pointer> {
        let open = self.values[warmth as usize].as_ref();
        if open.is_some_and(|(_, values)| values.stored_bytes() >= self.context.segment_bytes) {
            self.end_segment(warmth).await?;
        }
        let (_, writer) = match &mut self.values[warmth as usize] {
            Some(values) => values,
            none => {
                let objects = &self.context.opener.objects;
                let (lease, object) = objects.create(ObjectKind::Segment, Some(&self.values_class))?;
                let is_elsewhere = object.attributes().class.as_ref() != Some(&self.values_class);
                if self.kind == KvsetKind::Promoted && is_elsewhere {
                    lease.retire();
                    return Err(Error::new(ErrorKind::NoSpace, "the fastest class has no room for copies"));
                }
                let writer = SegmentWriter::new(lease.no(), object, objects.buffers()).await?;
                none.insert((lease, writer))
            }
        };
        writer.append_moved(stored, from).await
    }

    async fn end_segment(&mut self, warmth: Warmth) -> Result<()> {
        let Some((lease, writer)) = self.values[warmth as usize].take() else { return Ok(()) };
        let segment = SegmentRecord {
            no: writer.no(),
            stored_bytes: writer.stored_bytes(),
            class: Some(self.values_class.clone()),
        };
        self.output.value_bytes_written += segment.stored_bytes;
        let finished = writer.finish_unsynced().await;
        let lease = retired_unless(lease, finished.is_ok());
        let object = finished?;
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
        let finished = writer.finish_unsynced().await;
        let lease = retired_unless(lease, finished.is_ok());
        let (info, object) = finished?;
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

    /// Writes the rest and makes everything durable.
    pub(super) async fn finish(&mut self) -> Result<JobOutput> {
        self.write_batch().await?;
        self.end_segment(Warmth::Cold).await?;
        self.end_segment(Warmth::Hot).await?;
        let copied = std::mem::take(&mut self.copied).into_iter().filter(|(_, bytes)| *bytes > 0);
        for (segment, stored_bytes) in self.mirrored.take().into_iter().flatten().chain(copied) {
            self.output.edit.changes.push(Change::AddMirror { segment, stored_bytes });
        }
        // After a stop here it is in no manifest: orphans, deleted at the next opening.
        let syncs: Vec<_> = self.written.iter().map(|(_, object)| sync(object)).collect();
        futures::stream::iter(syncs).buffer_unordered(SYNCED_AT_ONCE).try_collect::<()>().await?;
        Ok(std::mem::take(&mut self.output))
    }

    /// Deletes what was written: the job has failed.
    pub(super) async fn discard(mut self) {
        let objects = self.context.opener.objects.clone();
        let mut made: Vec<(ObjectKind, u64)> = Vec::new();
        made.extend(self.writer.take().map(|(lease, _)| (ObjectKind::Keys, lease.no())));
        let values = self.values.iter_mut().filter_map(Option::take);
        made.extend(values.map(|(lease, _)| (ObjectKind::Segment, lease.no())));
        made.extend(self.written.drain(..).map(|(lease, _)| (lease.kind(), lease.no())));
        for (kind, no) in made {
            // An error leaves an orphan, which is deleted when the database is opened.
            let _ = objects.delete(kind, no).await;
        }
    }
}

/// The lease of an object that is complete; of one that could not be completed it is the last: it is deleted with what was retired.
fn retired_unless(lease: Lease, is_complete: bool) -> Lease {
    if !is_complete {
        lease.retire();
    }
    lease
}
