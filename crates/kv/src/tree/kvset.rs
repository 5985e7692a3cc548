//! Kvsets that are open, and a tree of them.

use crate::tuning::tree::JOBS;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bytes::Bytes;
use futures::stream::{StreamExt, TryStreamExt};

use super::edit::{Change, Edit, KvsetKind, KvsetNo, KvsetRecord, LeafNo, Place, SegmentRecord};
use super::mirror::OpenMirror;
use super::shape::{Tree, TreeRecord};
use crate::cache::{Cache, HeldValue, Newest, Owner, VersionId};
use crate::entry::{Content, FirstHome, Pointer, SegmentNo, SequenceNo, Version};
use crate::keyfile::{Access, KeyCursor, KeyFile, KeyHash};
use crate::objects::{Lease, ObjectKind, Objects};
use crate::settings::FilterMemory;
use crate::tombstone::RangeTombstones;
use crate::value::{Segment, Segments};
use crate::{Error, Result};

/// The context of open kvsets.
#[derive(Debug, Clone)]
pub(crate) struct Opener {
    pub(crate) objects: Arc<Objects>,
    pub(crate) segments: Arc<Segments>,
    pub(crate) cache: Arc<Cache>,
    /// Some copies that were opened are damaged.
    pub(crate) has_damaged: Arc<AtomicBool>,
    /// Whether filters stay in memory.
    pub(crate) filters: FilterMemory,
}

/// The opened kvsets of an edit.
#[derive(Debug, Default)]
pub(crate) struct Opened {
    kvsets: HashMap<KvsetNo, Arc<Kvset>>,
    mirrors: HashMap<SegmentNo, Arc<OpenMirror>>,
}

/// An open kvset: its key file, and the segments it references, which live as long as it does.
#[derive(Debug)]
pub(crate) struct Kvset {
    record: KvsetRecord,
    file: KeyFile,
    lease: Lease,
    /// In the order of the record's references.
    segments: Vec<Segment>,
    /// Something of it could not be read; of copies alone.
    is_damaged: AtomicBool,
    has_damaged: Arc<AtomicBool>,
}

impl AsRef<KvsetRecord> for Arc<Kvset> {
    fn as_ref(&self) -> &KvsetRecord {
        &self.record
    }
}

impl Opener {
    /// Returns an opener for stores with this filter setting.
    pub(crate) fn holding(&self, filters: FilterMemory) -> Opener {
        Opener { filters, ..self.clone() }
    }

    /// Opens a kvset, some of whose segments may be `value_segments`.
    ///
    /// # Errors
    /// `Corrupted`, also if it is not what the manifest knows, or if a device fails.
    pub(crate) async fn open(
        &self,
        record: &KvsetRecord,
        value_segments: &BTreeSet<SegmentNo>,
    ) -> Result<Arc<Kvset>> {
        let (lease, object) = self.objects.open(ObjectKind::Keys, record.no)?;
        let opened = KeyFile::open(record.no, object, lease.clone(), &self.cache, self.objects.buffers());
        let file = opened.await?;
        if *file.info() != record.info {
            let name = self.objects.name(ObjectKind::Keys, record.no);
            return Err(Error::corrupted(format!(
                "object {name:?} at offset 0: not the key file of the manifest"
            )));
        }
        let references = record.info.references.iter();
        let segments = references.map(|references| {
            self.segments.open_as(references.segment, value_segments.contains(&references.segment))
        });
        let segments = segments.collect::<Result<Vec<Segment>>>()?;
        let (is_damaged, has_damaged) = (AtomicBool::new(false), self.has_damaged.clone());
        let kvset = Kvset { record: record.clone(), file, lease, segments, is_damaged, has_damaged };
        kvset.hold_filter(self.filters).await;
        Ok(Arc::new(kvset))
    }

    /// Takes the promoted kvsets that cannot be opened out of a tree that is to be opened.
    ///
    /// # Errors
    /// `Corrupted` if the tree is none.
    pub(crate) async fn leave_out_lost_copies(&self, tree: &mut TreeRecord) -> Result<()> {
        let in_leaf = tree.leaves.iter().flat_map(|leaf| leaf.kvsets.iter().map(|kvset| (leaf.no, kvset)));
        let copies = in_leaf.filter(|(_, kvset)| kvset.kind == KvsetKind::Promoted);
        let lost = copies.map(|(leaf, kvset)| async move {
            let is_lost = self.open(kvset, &BTreeSet::new()).await.is_err();
            is_lost.then(|| Change::RemoveKvset { place: Place::Leaf(leaf), kvset: kvset.no })
        });
        let lost: Vec<_> = lost.collect();
        let lost = futures::stream::iter(lost).buffer_unordered(JOBS.concurrent_opens);
        let changes = lost.filter_map(std::future::ready).collect().await;
        tree.change(&Edit { changes }, |kvset| Ok(kvset.clone()))
    }

    /// Opens what `edit` adds and `tree` does not have.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub(crate) async fn open_added(&self, tree: &TreeState, edit: &Edit) -> Result<Opened> {
        let known: HashMap<KvsetNo, &Arc<Kvset>> = tree.kvsets().map(|kvset| (kvset.no(), kvset)).collect();
        let known = &known;
        let added = edit.changes.iter().filter_map(|change| match change {
            Change::AddKvset { place: Place::Spilled, .. } => None,
            Change::AddKvset { kvset, .. } => Some(kvset),
            _ => None,
        });
        let mut mirrors = HashMap::new();
        for change in &edit.changes {
            // Also one that the tree has: it may be gone when the edit is applied.
            if let Change::AddMirror { segment, .. } = change {
                // Values of a missing mirror are read from the leaf's own copy.
                let opened = self.segments.open(*segment).ok();
                mirrors.extend(opened.map(|opened| (*segment, OpenMirror::new(opened, known.is_empty()))));
            }
        }
        let new_segments = edit.changes.iter().filter_map(|change| match change {
            Change::AddSegment { segment } => Some(segment.no),
            _ => None,
        });
        let value_segments: BTreeSet<SegmentNo> = tree.segments.keys().copied().chain(new_segments).collect();
        let value_segments = &value_segments;
        let opening = added.map(|record| async move {
            match known.get(&record.no) {
                Some(kvset) => Ok((record.no, Arc::clone(kvset))),
                None => Ok((record.no, self.open(record, value_segments).await?)),
            }
        });
        let opening: Vec<_> = opening.collect();
        let opening = futures::stream::iter(opening).buffer_unordered(JOBS.concurrent_opens);
        Ok(Opened { kvsets: opening.try_collect().await?, mirrors })
    }

    /// Opens all of a tree.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub(crate) async fn open_tree(&self, record: &TreeRecord) -> Result<TreeState> {
        let empty = TreeState::default();
        let edit = record.to_edit();
        let opened = self.open_added(&empty, &edit).await?;
        empty.apply_opened(&edit, &opened)
    }
}

impl Kvset {
    pub(crate) fn no(&self) -> KvsetNo {
        self.record.no
    }

    pub(crate) fn record(&self) -> &KvsetRecord {
        &self.record
    }

    /// Has its filter stay in memory, if that is wanted and there is space. What cannot be read
    /// lets every key pass, and a check says so.
    pub(crate) async fn hold_filter(&self, filters: FilterMemory) {
        if let Some(most_part) = filters.most_part() {
            let _ = self.file.hold_filter(most_part).await;
        }
    }

    /// Returns whether it repeats what the kvsets below it have.
    pub(crate) fn is_copy(&self) -> bool {
        self.record.kind == KvsetKind::Promoted
    }

    /// Notes that this copy could not be read.
    pub(crate) fn note_damage(&self) {
        self.is_damaged.store(true, Ordering::Relaxed);
        self.has_damaged.store(true, Ordering::Release);
    }

    pub(crate) fn is_damaged(&self) -> bool {
        self.is_damaged.load(Ordering::Relaxed)
    }

    pub(crate) fn tombstones(&self) -> &RangeTombstones {
        self.file.tombstones()
    }

    /// Returns the damage of its key file that cursors do not see: `Corrupted`, or the error of the read.
    pub(crate) async fn damage(&self) -> Vec<Error> {
        self.file.damage().await
    }

    pub(crate) fn cursor(&self, access: Access) -> KeyCursor {
        KeyCursor::new(self.file.clone(), access)
    }

    /// The newest version of `key` in it that `snapshot` sees, range tombstones not looked at.
    ///
    /// # Errors
    /// `Corrupted`, or if a device fails.
    pub(crate) async fn get(
        &self,
        key: &[u8],
        hash: KeyHash,
        snapshot: SequenceNo,
    ) -> Result<Option<Version>> {
        self.file.get(key, hash, snapshot).await
    }

    /// Returns whether it may have versions of `key`, by its filter.
    ///
    /// # Errors
    /// `Corrupted`, or if a device fails: then it may have some.
    pub(crate) async fn may_contain(&self, key: &[u8], hash: KeyHash) -> Result<bool> {
        self.file.may_contain(key, hash).await
    }

    /// The same, as far as it is known without reading; `None` if it is not, or there is no filter.
    pub(crate) fn may_contain_at_once(&self, key: &[u8], hash: KeyHash) -> Option<bool> {
        self.file.may_contain_at_once(key, hash)
    }

    pub(crate) fn has_filter(&self) -> bool {
        self.file.has_filter()
    }

    /// The same as [`get`](Self::get), as if versions with the numbers `unseen` were not there.
    ///
    /// # Errors
    /// As [`get`](Self::get).
    async fn get_but(
        &self,
        key: &[u8],
        hash: KeyHash,
        snapshot: SequenceNo,
        unseen: &[SequenceNo],
    ) -> Result<Option<Version>> {
        let mut found = self.get(key, hash, snapshot).await?;
        while let Some(version) = found.take_if(|version| unseen.contains(&version.sequence)) {
            let Some(before) = version.sequence.checked_sub(1) else { break };
            found = self.get(key, hash, before).await?;
        }
        Ok(found)
    }

    /// The segment that one of its pointers leads to.
    ///
    /// # Errors
    /// `Corrupted` if it does not reference that one.
    pub(crate) fn segment(&self, pointer: &Pointer) -> Result<&Segment> {
        let references = &self.record.info.references;
        let index = references.binary_search_by_key(&pointer.segment, |references| references.segment);
        index.ok().and_then(|index| self.segments.get(index)).ok_or_else(|| {
            let (no, segment) = (self.no(), pointer.segment);
            Error::corrupted(format!(
                "kvset {no} has a pointer into segment {segment}, which it does not reference"
            ))
        })
    }

    /// The segments it references.
    pub(crate) fn segments(&self) -> &[Segment] {
        &self.segments
    }

    /// Its key file is to be deleted when nobody reads it any more; see [`crate::objects`].
    pub(crate) fn retire(&self) {
        self.lease.retire();
    }
}

/// A tree of open kvsets. Readers keep the one they began with; what it references stays as long.
pub(crate) type TreeState = Tree<Arc<Kvset>>;

/// A version and the kvset that it was found in.
#[derive(Debug, Clone)]
pub(crate) struct FoundVersion {
    pub(crate) version: Version,
    pub(crate) kvset: Arc<Kvset>,
    /// Hash of its key.
    hash: KeyHash,
    /// Visibility bound of the lookup that found it.
    newest: Option<Newest>,
}

/// The value for whoever may have it for long. It lies in a page with others.
fn apart(value: &Bytes) -> Bytes {
    Bytes::copy_from_slice(value)
}

impl FoundVersion {
    /// The value of `key` of a store; `None` for a delete. Whether it has expired is not looked at. A value that was
    /// moved from the log is read from a mirror of `tree`, if one has it still; what is `held` of the key may be the
    /// value. And the value segment whose device it came from, if from one.
    ///
    /// # Errors
    /// `Corrupted`, or if a device fails.
    pub(crate) async fn value<'tree>(
        &self,
        key: &[u8],
        held: Option<&HeldValue>,
        store: Owner,
        tree: &'tree TreeState,
    ) -> Result<(Option<Bytes>, Option<&'tree SegmentRecord>)> {
        match &self.version.content {
            Content::Deleted => Ok((None, None)),
            Content::Inline(value) => Ok((Some(apart(value)), None)),
            Content::At(pointer) => {
                let (sequence, newest) = (self.version.sequence, self.newest);
                let id = VersionId { store, sequence, key, hash: self.hash, newest };
                if let Some(value) = held.and_then(|held| held.of(&id)) {
                    self.kvset.file.cache().note_newest(&id);
                    return Ok((Some(value), None));
                }
                match self.value_at(pointer, &id, tree).await {
                    Err(_) if self.kvset.is_copy() => {
                        self.kvset.note_damage();
                        self.original(&id, tree).await
                    }
                    read => read,
                }
            }
        }
    }

    async fn value_at<'tree>(
        &self,
        pointer: &Pointer,
        id: &VersionId<'_>,
        tree: &'tree TreeState,
    ) -> Result<(Option<Bytes>, Option<&'tree SegmentRecord>)> {
        let home = self.kvset.segment(pointer)?;
        let mirrored = || tree.mirrored(self.version.mirror, pointer, home);
        let (value, has_loaded) = home.read_by(id, pointer, mirrored).await?;
        let from = has_loaded.then(|| tree.segments.get(&pointer.segment)).flatten();
        Ok((Some(value), from))
    }

    /// The value from where the copy that this is was made.
    async fn original<'tree>(
        &self,
        id: &VersionId<'_>,
        tree: &'tree TreeState,
    ) -> Result<(Option<Bytes>, Option<&'tree SegmentRecord>)> {
        let leaf = tree.leaf(id.key).map(|leaf| &*leaf.kvsets).unwrap_or_default();
        for kvset in leaf.iter().filter(|kvset| !kvset.is_copy()) {
            let version = kvset.get(id.key, self.hash, id.sequence).await?;
            if let Some(version) = version.filter(|version| version.sequence == id.sequence) {
                let original = FoundVersion { version, kvset: kvset.clone(), ..self.clone() };
                return match &original.version.content {
                    Content::At(pointer) => original.value_at(pointer, id, tree).await,
                    Content::Inline(value) => Ok((Some(apart(value)), None)),
                    Content::Deleted => Ok((None, None)),
                };
            }
        }
        let (no, sequence) = (self.kvset.no(), id.sequence);
        Err(Error::corrupted(format!(
            "kvset {no} cannot be read, and what it repeats at sequence number {sequence} is not there"
        )))
    }

    /// Returns whether its value lies apart from its key.
    pub(crate) fn is_apart(&self) -> bool {
        matches!(self.version.content, Content::At(_))
    }

    /// Bytes of its value as they are stored apart from keys; 0 if it has none.
    pub(crate) fn stored_bytes(&self) -> u32 {
        self.version.content.stored_bytes()
    }
}

impl TreeState {
    /// The tree after `edit`, whose new kvsets were opened.
    ///
    /// # Errors
    /// `Corrupted` if the edit does not fit.
    pub(crate) fn apply_opened(&self, edit: &Edit, opened: &Opened) -> Result<TreeState> {
        let mut after = self.apply(edit, |record| {
            let kvset = opened.kvsets.get(&record.no).cloned();
            kvset.ok_or_else(|| Error::corrupted(format!("kvset {} was not opened", record.no)))
        })?;
        for (segment, mirror) in after.mirrors.iter_mut().filter(|(_, mirror)| mirror.opened.is_none()) {
            mirror.opened = opened.mirrors.get(segment).cloned();
        }
        Ok(after)
    }

    /// The value of a version that a leaf has at `pointer` in `home`, from where the log wrote it, if that is a mirror
    /// still, or from `home`, where [that is as quick](crate::value::ReplicaSelector). What cannot be read there, for
    /// whatever reason, is to be read at `pointer`.
    async fn mirrored(&self, first: Option<FirstHome>, pointer: &Pointer, home: &Segment) -> Option<Bytes> {
        let (mirror, mirrored) = self.open_mirror(first?, pointer)?;
        let segment = mirror.segment()?;
        let under_way = home.replicas().begin();
        if under_way.is_at_home()
            && let Ok(value) = home.read_uncached(pointer).await
        {
            mirror.note_read();
            return Some(value);
        }
        match segment.read_uncached(&mirrored).await {
            Ok(value) => {
                mirror.note_read();
                Some(value)
            }
            Err(_) => {
                mirror.note_damage();
                None
            }
        }
    }

    /// The mirror that has the value which is at `pointer`, and where in it, if it is one still.
    pub(crate) fn open_mirror(&self, first: FirstHome, pointer: &Pointer) -> Option<(&OpenMirror, Pointer)> {
        let FirstHome { segment, offset } = first;
        let mirror = self.mirrors.get(&segment)?.opened.as_deref()?;
        Some((mirror, Pointer { segment, offset, ..*pointer }))
    }

    /// Bytes of values that a leaf has in each segment.
    pub(crate) fn values_by_segment(&self, leaf: LeafNo) -> BTreeMap<SegmentNo, u64> {
        self.leaf_by_no(leaf).map(|leaf| leaf.values_by_segment()).unwrap_or_default()
    }

    /// Bytes of a leaf's key files.
    pub(crate) fn key_bytes(&self, leaf: LeafNo) -> u64 {
        let kvsets = self.leaf_by_no(leaf).map(|leaf| &*leaf.kvsets).unwrap_or_default();
        kvsets.iter().map(|kvset| kvset.record().info.size_bytes).sum()
    }

    /// Bytes of values that a leaf has in segments.
    pub(crate) fn value_bytes(&self, leaf: LeafNo) -> u64 {
        let kvsets = self.leaf_by_no(leaf).map(|leaf| &*leaf.kvsets).unwrap_or_default();
        let references = kvsets.iter().flat_map(|kvset| &kvset.record().info.references);
        references.map(|references| references.stored_bytes).sum()
    }

    /// Retires what this tree has and `after` has not: kvsets, and value segments. To be called when the edit between
    /// them is durable. Log segments are the log's to retire; the numbers of those that this tree alone referenced are
    /// returned.
    pub(crate) fn retire_dropped(&self, after: &TreeState) -> Vec<SegmentNo> {
        let kept: BTreeSet<KvsetNo> = after.kvsets().map(|kvset| kvset.no()).collect();
        let references = after.references();
        let is_mirror = |segment: &SegmentNo| after.mirrors.contains_key(segment);
        let mut dropped_logs: BTreeSet<SegmentNo> = self.mirrors.keys().copied().collect();
        dropped_logs.retain(|segment| !references.contains_key(segment) && !is_mirror(segment));
        for kvset in self.kvsets().filter(|kvset| !kept.contains(&kvset.no())) {
            kvset.retire();
            let segments = kvset.segments().iter();
            let unused = segments
                .filter(|segment| !references.contains_key(&segment.no()) && !is_mirror(&segment.no()));
            for segment in unused {
                if self.segments.contains_key(&segment.no()) {
                    segment.retire();
                } else {
                    dropped_logs.insert(segment.no());
                }
            }
        }
        dropped_logs.into_iter().collect()
    }

    /// Returns whether what `edit` removes may say of a key that it was deleted, so that afterwards nothing does.
    pub(crate) fn may_forget(&self, edit: &Edit) -> bool {
        let removed = edit.changes.iter().filter_map(|change| match change {
            Change::RemoveKvset { kvset, .. } => Some(*kvset),
            _ => None,
        });
        let removed: BTreeSet<KvsetNo> = removed.collect();
        !removed.is_empty()
            && self.kvsets().filter(|kvset| removed.contains(&kvset.no())).any(|kvset| {
                let info = &kvset.record.info;
                info.deletes > 0 || info.range_tombstones > 0 || info.first_expiry_s.is_some()
            })
    }

    /// The newest version of `key` that `snapshot` sees and no range tombstone hides. It may be a delete, and may have
    /// expired. What has one of the numbers `unseen` the snapshot does not see.
    ///
    /// # Errors
    /// `Corrupted`, or if a device fails.
    pub(crate) async fn get(
        &self,
        key: &[u8],
        hash: KeyHash,
        snapshot: SequenceNo,
        unseen: &[SequenceNo],
    ) -> Result<Option<FoundVersion>> {
        let mut hidden_up_to = 0;
        for kvset in self.kvsets_of(key) {
            if let Some(sequence) = kvset.tombstones().newest_over(key, snapshot) {
                hidden_up_to = hidden_up_to.max(sequence);
            }
            // Nothing here or in what is older is as new as that.
            if hidden_up_to > kvset.record.info.largest_sequence {
                return Ok(None);
            }
            // Most have not, which needs no future.
            if kvset.is_damaged() || kvset.may_contain_at_once(key, hash) == Some(false) {
                continue;
            }
            let found = match kvset.get_but(key, hash, snapshot, unseen).await {
                // The original is below it.
                Err(_) if kvset.is_copy() => {
                    kvset.note_damage();
                    continue;
                }
                found => found?,
            };
            if let Some(version) = found {
                if version.sequence < hidden_up_to {
                    return Ok(None);
                }
                // A reader that does not see every load does not know what others see.
                let newest = Newest { up_to: snapshot, expires_s: version.expires_s };
                let newest = unseen.is_empty().then_some(newest);
                return Ok(Some(FoundVersion { version, kvset: kvset.clone(), hash, newest }));
            }
        }
        Ok(None)
    }

    /// The kvsets where a key may be, newest first.
    fn kvsets_of(&self, key: &[u8]) -> impl Iterator<Item = &Arc<Kvset>> {
        let leaf = self.leaf(key).map(|leaf| &*leaf.kvsets).unwrap_or_default();
        self.root.iter().chain(leaf)
    }

    /// Returns the visibility bound of the cached version of `key` if a lookup at `snapshot` would find that version,
    /// as far as this is certain without reads. Bounds from before `known_since` do not count.
    pub(crate) fn still_newest(
        &self,
        held: &HeldValue,
        (key, hash): (&[u8], KeyHash),
        snapshot: SequenceNo,
        known_since: SequenceNo,
    ) -> Option<Newest> {
        let newest = held.newest_at(snapshot).filter(|newest| newest.up_to >= known_since)?;
        let up_to = newest.up_to;
        let may_have_newer = |kvset: &Arc<Kvset>| {
            let tombstone = kvset.tombstones().newest_over(key, snapshot);
            tombstone.is_some_and(|tombstone| tombstone > up_to)
                || kvset.may_contain_at_once(key, hash) != Some(false)
        };
        let is_newer = |kvset: &&Arc<Kvset>| kvset.record.info.largest_sequence > up_to;
        let is_newest = up_to >= snapshot || !self.kvsets_of(key).filter(is_newer).any(may_have_newer);
        is_newest.then_some(newest)
    }
}

/// Segments that a kvset has values in.
pub(crate) fn referenced(kvset: &Arc<Kvset>) -> impl Iterator<Item = SegmentNo> {
    kvset.record().info.references.iter().map(|references| references.segment)
}
