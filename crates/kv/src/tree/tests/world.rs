//! Random versions and jobs beside a map that says what everybody has to see.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use bytes::Bytes;
use tanada_base::SplitMix64;

use super::super::edit::SegmentRecord;
use super::super::jobs::promote::promote;
use super::super::pick::join;
use super::super::policy::{ClassChoice, MediaPolicy, OfferedClass, PolicyTemplate};
use super::super::*;
use crate::cache::Owner;
use crate::entry::{Codec, Content, RangeTombstone, SequenceNo, Version};
use crate::keyfile::{Access, KeyFileOptions, KeyFileWriter, KeyHash};
use crate::merge::{Direction, Load, Readers, Source, Step, View, Visibility, is_live};
use crate::objects::{Lease, ObjectKind};
use crate::pace::Pace;
use crate::settings::FilterMemory;
use crate::stream::Pieces;
use crate::testing::Bench;
use crate::tombstone::{RangeTombstones, SeenTombstones};
use crate::value::{SegmentWriter, Segments};
use crate::wire::Decoder;

/// The edit that takes the promoted kvsets of a leaf away.
pub(super) fn demote(tree: &TreeState, leaf: LeafNo) -> Edit {
    let kvsets = tree.leaf_by_no(leaf).map(|leaf| &*leaf.kvsets).unwrap_or_default();
    let promoted = kvsets.iter().filter(|kvset| kvset.record().kind == KvsetKind::Promoted);
    let place = Place::Leaf(leaf);
    let changes = promoted.map(|kvset| Change::RemoveKvset { place, kvset: kvset.no() });
    Edit { changes: changes.collect() }
}

pub(super) const NOW_S: u64 = 1000;

/// A value, and when it expires.
pub(super) type Written = (Vec<u8>, Option<u32>);

/// What was written, never forgotten.
#[derive(Default)]
pub(super) struct Model {
    pub(super) versions: BTreeMap<(Vec<u8>, std::cmp::Reverse<SequenceNo>), Option<Written>>,
    pub(super) tombstones: Vec<RangeTombstone>,
    pub(super) loads: Vec<Load>,
}

impl Model {
    /// The numbers of the loads that a snapshot does not see though it is of a later time than their beginning.
    pub(super) fn unseen(&self, snapshot: SequenceNo) -> Vec<SequenceNo> {
        let unseen = self.loads.iter().filter(|load| load.begin <= snapshot && snapshot < load.end);
        unseen.map(|load| load.begin).collect()
    }

    pub(super) fn seen(&self, snapshot: SequenceNo) -> BTreeMap<Vec<u8>, Vec<u8>> {
        let unseen = self.unseen(snapshot);
        let mut newest = BTreeMap::new();
        for ((key, sequence), value) in &self.versions {
            if sequence.0 <= snapshot && !unseen.contains(&sequence.0) {
                newest.entry(key.clone()).or_insert((sequence.0, value.clone()));
            }
        }
        let is_hidden = |key: &[u8], sequence: SequenceNo| {
            self.tombstones.iter().any(|tombstone| {
                tombstone.covers(key) && tombstone.sequence <= snapshot && tombstone.sequence > sequence
            })
        };
        let live = newest.into_iter().filter_map(|(key, (sequence, value))| {
            let (value, expires_s) = value?;
            let has_expired = expires_s.is_some_and(|expires_s| u64::from(expires_s) <= NOW_S);
            (!has_expired && !is_hidden(&key, sequence)).then_some((key, value))
        });
        live.collect()
    }
}

pub(super) struct World {
    pub(super) bench: Bench,
    pub(super) context: JobContext,
    pub(super) tree: Arc<TreeState>,
    pub(super) record: TreeRecord,
    pub(super) model: Model,
    /// Kvsets that were hidden as a whole.
    pub(super) dropped: usize,
    pub(super) sequence: SequenceNo,
    pub(super) random: SplitMix64,
    /// Of its values in the cache.
    pub(super) store: Owner,
    /// What was found before does not count any more.
    pub(super) known_since: SequenceNo,
    /// Lookups that were answered by what had been found before.
    pub(super) known: usize,
}

pub(super) fn key(random: &mut SplitMix64) -> Vec<u8> {
    format!("key {:03}", random.below(120)).into_bytes()
}

impl World {
    pub(super) async fn new(seed: u64, template: PolicyTemplate) -> World {
        let bench = Bench::new().await;
        let segments = Segments::new(&bench.objects, &bench.cache, None);
        let (objects, cache) = (bench.objects.clone(), bench.cache.clone());
        let opener =
            Opener { objects, segments, cache, has_damaged: Arc::default(), filters: FilterMemory::Paged };
        let classes =
            ["fast", "slow"].map(|name| OfferedClass { name: name.to_owned(), takes_objects: true });
        let placement = MediaPolicy::from(template).resolve(&classes, &ClassChoice::Fastest).unwrap();
        let context = JobContext {
            opener,
            placement,
            key_files: KeyFileOptions::default(),
            segment_bytes: 9000,
            apart_bytes: 140,
            leaf_bytes: 12_000,
            batch_bytes: 5000,
            pace: Pace::unbounded(),
            takes_last_room: false,
            keeps_mirrors: template == PolicyTemplate::StagingMaxCapacity,
            dense: None,
            mirrors: BTreeSet::new(),
            readers: Readers::default(),
            now_s: NOW_S,
        };
        let store = Owner::next(&bench.cache);
        World {
            bench,
            context,
            tree: Arc::default(),
            record: TreeRecord::default(),
            model: Model::default(),
            dropped: 0,
            sequence: 0,
            random: SplitMix64::new(seed),
            store,
            known_since: 0,
            known: 0,
        }
    }

    /// A kvset of new versions on top of the root, with large values in a segment that stands for the log.
    pub(super) async fn flush(&mut self, versions: u64) {
        let objects = &self.bench.objects;
        let (log_lease, object) = objects.create(ObjectKind::Segment, Some("fast")).unwrap();
        let mut log =
            SegmentWriter::new(log_lease.no(), object, objects.buffers(), Pieces::default()).await.unwrap();
        let mut written = BTreeMap::new();
        let mut tombstones = Vec::new();
        for _ in 0..versions {
            self.sequence += 1;
            let sequence = self.sequence;
            if self.random.below(20) == 0 {
                let (a, b) = (key(&mut self.random), key(&mut self.random));
                let end = (self.random.below(8) > 0).then(|| Bytes::from(a.clone().max(b.clone())));
                tombstones.push(RangeTombstone { start: Bytes::from(a.min(b)), end, sequence });
                continue;
            }
            let expires_s = match self.random.below(10) {
                0 => Some(900),
                1 => Some(2000),
                _ => None,
            };
            let mut value = vec![0; (self.random.below(3) * self.random.below(500)) as usize];
            self.random.fill(&mut value);
            let content = match self.random.below(5) {
                0 => None,
                _ => Some((value, expires_s)),
            };
            let version = match &content {
                None => Version::new(sequence, None, Content::Deleted),
                Some((value, expires_s)) if value.len() < 100 => {
                    Version::new(sequence, *expires_s, Content::Inline(Bytes::from(value.clone())))
                }
                Some((value, expires_s)) => {
                    let pointer = log.append(value, Codec::Lz4).await.unwrap();
                    Version::new(sequence, *expires_s, Content::At(pointer))
                }
            };
            let key = key(&mut self.random);
            self.model.versions.insert((key.clone(), std::cmp::Reverse(sequence)), content);
            written.insert((key, std::cmp::Reverse(sequence)), version);
        }
        self.model.tombstones.extend(tombstones.iter().cloned());
        self.add_to_root((log_lease, log), &written, tombstones).await;
    }

    /// A kvset of values of 200 bytes on top of the root.
    pub(super) async fn put(&mut self, keys: &[u64]) {
        let objects = &self.bench.objects;
        let (log_lease, object) = objects.create(ObjectKind::Segment, Some("fast")).unwrap();
        let mut log =
            SegmentWriter::new(log_lease.no(), object, objects.buffers(), Pieces::default()).await.unwrap();
        let mut written = BTreeMap::new();
        for no in keys {
            self.sequence += 1;
            let mut value = vec![0; 200];
            self.random.fill(&mut value);
            let pointer = log.append(&value, Codec::None).await.unwrap();
            let key = (format!("key {no:03}").into_bytes(), std::cmp::Reverse(self.sequence));
            self.model.versions.insert(key.clone(), Some((value, None)));
            written.insert(key, Version::new(self.sequence, None, Content::At(pointer)));
        }
        self.add_to_root((log_lease, log), &written, Vec::new()).await;
    }

    pub(super) async fn add_to_root(
        &mut self,
        (log_lease, log): (Lease, SegmentWriter),
        written: &BTreeMap<(Vec<u8>, std::cmp::Reverse<SequenceNo>), Version>,
        tombstones: Vec<RangeTombstone>,
    ) {
        let objects = &self.bench.objects;
        let segment = self.context.opener.segments.add(log_lease, log.finish().await.unwrap());
        let (lease, object) = objects.create(ObjectKind::Keys, Some("fast")).unwrap();
        let mut writer = KeyFileWriter::new(lease.no(), object, objects.buffers(), KeyFileOptions::default());
        for ((key, _), version) in written {
            writer.add(key, version).await.unwrap();
        }
        for tombstone in tombstones {
            writer.add_range_tombstone(tombstone);
        }
        let (info, _) = writer.finish().await.unwrap();
        let kvset = KvsetRecord { no: lease.no(), info, ..KvsetRecord::default() };
        let change = Change::AddKvset { place: Place::Root, position: Position::Top, kvset };
        self.apply(&Edit { changes: vec![change] }).await;
        segment.retire();
        drop(segment);
        self.sweep().await;
    }

    /// A load of some keys, during which others write and take snapshots.
    pub(super) async fn load(&mut self) {
        self.know_loads();
        let root: Vec<_> = self.tree.root.iter().map(|kvset| kvset.no()).collect();
        if !root.is_empty() {
            let edit = spill(&self.context, &self.tree, &root).await.unwrap().kept().edit;
            self.apply(&edit).await;
        }
        self.sequence += 1;
        let begin = self.sequence;
        for _ in 0..self.random.below(3) {
            if self.context.readers.numbers.len() < 3 {
                self.context.readers.numbers.push(self.sequence);
            }
            let versions = self.random.below(30);
            self.flush(versions).await;
        }
        let edit = self.loaded(begin).await;
        self.sequence += 1;
        self.model.loads.push(Load { begin, end: self.sequence });
        self.apply(&edit).await;
        self.known_since = self.sequence;
    }

    /// What a load has written.
    async fn loaded(&mut self, begin: SequenceNo) -> Edit {
        let objects = self.bench.objects.clone();
        let (segment_lease, object) = objects.create(ObjectKind::Segment, Some("slow")).unwrap();
        let mut segment =
            SegmentWriter::new(segment_lease.no(), object, objects.buffers(), Pieces::default())
                .await
                .unwrap();
        let mut kvsets = Vec::new();
        let leaves = self.tree.leaves.iter().map(|leaf| leaf.no).collect::<Vec<_>>();
        if leaves.is_empty() {
            kvsets.push(Change::AddLeaf { leaf: 0, start: Bytes::new() });
        }
        let keys: BTreeSet<_> = (0..1 + self.random.below(60)).map(|_| key(&mut self.random)).collect();
        for leaf in if leaves.is_empty() { vec![0] } else { leaves } {
            let is_in = |key: &&Vec<u8>| self.tree.leaf(key).is_none_or(|other| other.no == leaf);
            let keys: Vec<_> = keys.iter().filter(is_in).cloned().collect();
            if keys.is_empty() {
                continue;
            }
            let (lease, object) = objects.create(ObjectKind::Keys, Some("fast")).unwrap();
            let mut writer =
                KeyFileWriter::new(lease.no(), object, objects.buffers(), self.context.key_files);
            for key in keys {
                let mut value = vec![0; self.random.below(300) as usize];
                self.random.fill(&mut value);
                let content = match value.len() {
                    ..100 => Content::Inline(Bytes::from(value.clone())),
                    _ => Content::At(segment.append(&value, Codec::Lz4).await.unwrap()),
                };
                writer.add(&key, &Version::new(begin, None, content)).await.unwrap();
                self.model.versions.insert((key, std::cmp::Reverse(begin)), Some((value, None)));
            }
            let (info, _) = writer.finish().await.unwrap();
            let kvset = KvsetRecord { no: lease.no(), info, ..KvsetRecord::default() };
            kvsets.push(Change::AddKvset { place: Place::Leaf(leaf), position: Position::Top, kvset });
        }
        let (no, stored_bytes) = (segment_lease.no(), segment.stored_bytes());
        if stored_bytes == 0 {
            objects.delete(ObjectKind::Segment, no).await.unwrap();
            return Edit { changes: kvsets };
        }
        self.context.opener.segments.add(segment_lease, segment.finish().await.unwrap());
        let segment = SegmentRecord { no, stored_bytes, class: Some("slow".to_owned()) };
        Edit { changes: [Change::AddSegment { segment }].into_iter().chain(kvsets).collect() }
    }

    /// Jobs know the loads that somebody does not see.
    fn know_loads(&mut self) {
        let readers = &mut self.context.readers;
        let is_unseen = |load: &&Load| readers.numbers.iter().any(|number| load.hides_from(*number));
        readers.loads = self.model.loads.iter().filter(is_unseen).copied().collect();
    }

    /// What the engine does with an edit.
    pub(super) async fn apply(&mut self, edit: &Edit) {
        let mut encoded = Vec::new();
        edit.encode(&mut encoded);
        let edit = Edit::decode(&mut Decoder::new(&encoded)).unwrap();
        self.record.change(&edit, |record| Ok(record.clone())).unwrap();
        let opened = self.context.opener.open_added(&self.tree, &edit).await.unwrap();
        let after = self.tree.apply_opened(&edit, &opened).unwrap();
        drop(opened);
        if self.tree.may_forget(&edit) {
            self.known_since = self.sequence;
        }
        let dropped = self.tree.retire_dropped(&after);
        self.tree = Arc::new(after);
        // What is not there was given back by what stands for the log.
        dropped
            .iter()
            .filter_map(|no| self.context.opener.segments.open(*no).ok())
            .for_each(|open| open.retire());
        assert_eq!(self.tree.record(), self.record);
        self.sweep().await;
    }

    pub(super) async fn sweep(&self) {
        while let Some((kind, no)) = self.bench.objects.take_retired() {
            self.bench.objects.delete(kind, no).await.unwrap();
        }
    }

    pub(super) async fn job(&mut self) -> Option<Edit> {
        self.know_loads();
        self.context.mirrors = self.tree.mirrors.keys().copied().collect();
        let (context, tree) = (&self.context, &self.tree);
        let leaf = tree.leaves.get(self.random.below(tree.leaves.len() as u64) as usize);
        match self.random.below(10) {
            9 => {
                let kvsets = hidden(tree, &context.readers.numbers);
                self.dropped += kvsets.len();
                Some(drop_hidden(&kvsets))
            }
            8 => {
                // Any leaves, not only those that would be chosen.
                let others = tree.leaves.iter().skip(1).map(|leaf| leaf.no);
                let leaves: Vec<_> = others.filter(|_| self.random.below(3) == 0).collect();
                Some(join(&leaves))
            }
            7 if tree.root.len() > 1 => {
                let numbers: Vec<_> =
                    tree.root[..tree.root.len() - 1].iter().map(|kvset| kvset.no()).collect();
                Some(merge(context, tree, &numbers).await.unwrap().kept().edit)
            }
            6 => {
                let which = self.random.below(tree.mirrors.len() as u64 + 1) as usize;
                let change = Change::RemoveMirror { segment: *tree.mirrors.keys().nth(which)? };
                Some(Edit { changes: vec![change] })
            }
            0 | 1 if !tree.root.is_empty() => {
                let count = 1 + self.random.below(tree.root.len() as u64) as usize;
                let numbers = tree.root.iter().rev().take(count).map(|kvset| kvset.no());
                Some(spill(context, tree, &numbers.collect::<Vec<_>>()).await.unwrap().kept().edit)
            }
            2 => move_down(&context.placement, tree, tree.root.last()?.no(), context.leaf_bytes),
            3 | 4 => {
                let leaf = leaf.filter(|leaf| !leaf.kvsets.is_empty())?;
                let from = self.random.below(leaf.kvsets.len() as u64) as usize;
                let count = 1 + self.random.below((leaf.kvsets.len() - from) as u64) as usize;
                let numbers: Vec<_> =
                    leaf.kvsets[from..from + count].iter().map(|kvset| kvset.no()).collect();
                let referenced = tree.references().into_keys();
                let emptied: BTreeSet<_> = referenced.filter(|_| self.random.below(2) == 0).collect();
                let job = compact(context, tree, leaf.no, &numbers, &emptied);
                Some(job.await.unwrap().kept().edit)
            }
            _ if self.random.below(3) == 0 => Some(demote(tree, leaf?.no)),
            _ => {
                let leaf = leaf?;
                let index = tree.leaf_index(&leaf.start).unwrap();
                let end = tree.leaf_end(index);
                let keys: BTreeSet<Vec<u8>> = (0..20).map(|_| key(&mut self.random)).collect();
                let keys = keys.into_iter().map(Bytes::from);
                let keys: Vec<_> =
                    keys.filter(|key| leaf.start <= *key && end.is_none_or(|end| key < end)).collect();
                let job = promote(context, tree, leaf.no, &keys, "fast");
                Some(job.await.unwrap().kept().edit)
            }
        }
    }

    pub(super) async fn verify(&mut self) {
        self.verify_references().await;
        self.verify_reads().await;
    }

    pub(super) async fn verify_reads(&mut self) {
        let tombstones = Arc::new(self.tree.tombstones());
        for snapshot in self.context.readers.numbers.clone().into_iter().chain([self.sequence]) {
            let (expected, unseen) = (self.model.seen(snapshot), self.model.unseen(snapshot));
            for no in 0..121 {
                let key = format!("key {no:03}").into_bytes();
                let hash = KeyHash::of(&key);
                let expected = expected.get(&key).map(|value| Bytes::from(value.clone()));
                let held = self.bench.cache.held(self.store, &key, hash);
                if let Some(held) = held.as_ref().filter(|_| unseen.is_empty())
                    && let Some(newest) =
                        self.tree.still_newest(held, (&key, hash), snapshot, self.known_since)
                {
                    let is_live = newest.expires_s.is_none_or(|expires_s| u64::from(expires_s) > NOW_S);
                    let value = is_live.then(|| held.value());
                    assert_eq!(value, expected, "{} at {snapshot}, held", String::from_utf8_lossy(&key));
                    self.known += 1;
                }
                let found = self.tree.get(&key, hash, snapshot, &unseen).await.unwrap();
                let value = match found.filter(|found| is_live(&found.version, NOW_S)) {
                    Some(found) => found.value(&key, held.as_ref(), self.store, &self.tree).await.unwrap().0,
                    None => None,
                };
                assert_eq!(value, expected, "{} at {snapshot}", String::from_utf8_lossy(&key));
            }
            self.verify_walks(snapshot, &tombstones, &expected).await;
        }
    }

    pub(super) async fn verify_walks(
        &mut self,
        snapshot: SequenceNo,
        tombstones: &Arc<RangeTombstones>,
        expected: &BTreeMap<Vec<u8>, Vec<u8>>,
    ) {
        let mut seen = SeenTombstones::default();
        seen.add(tombstones.clone(), snapshot);
        let unseen = self.model.unseen(snapshot);
        let visibility = Visibility { snapshot, unseen, now_s: NOW_S, tombstones: seen };
        let mut view = View::new(self.tree.sources(), visibility);
        let middle = key(&mut self.random);
        for bound in [None, Some(&*middle)] {
            let forward = walk(&mut view, Direction::Forward, bound).await;
            let keys = expected.keys().filter(|key| bound.is_none_or(|bound| &***key >= bound));
            assert_eq!(forward, keys.cloned().collect::<Vec<_>>());
            let reverse = walk(&mut view, Direction::Reverse, bound).await;
            let keys = expected.keys().rev().filter(|key| bound.is_none_or(|bound| &***key < bound));
            assert_eq!(reverse, keys.cloned().collect::<Vec<_>>());
        }
    }

    /// Writes the keys of each leaf that has any anew.
    pub(super) async fn compact_leaves(&mut self) {
        self.know_loads();
        self.context.mirrors = self.tree.mirrors.keys().copied().collect();
        let filled = self.tree.leaves.iter().filter(|leaf| !leaf.kvsets.is_empty());
        for leaf in filled.map(|leaf| leaf.no).collect::<Vec<_>>() {
            let kvsets: Vec<_> =
                self.tree.leaf_by_no(leaf).unwrap().kvsets.iter().map(|kvset| kvset.no()).collect();
            let emptied = BTreeSet::new();
            let job = compact(&self.context, &self.tree, leaf, &kvsets, &emptied);
            let edit = job.await.unwrap().kept().edit;
            self.apply(&edit).await;
        }
    }

    /// All versions, whatever sees them.
    pub(super) async fn versions(&self) -> Vec<Version> {
        let mut versions = Vec::new();
        for kvset in self.tree.kvsets() {
            let mut cursor = kvset.cursor(Access::Ahead(8192));
            let mut step = cursor.seek(Direction::Forward, None).unwrap();
            loop {
                if step == Step::Load {
                    cursor.load().await.unwrap();
                }
                if cursor.key().is_none() {
                    break;
                }
                versions.push(cursor.version().unwrap());
                step = cursor.advance().unwrap();
            }
        }
        versions
    }

    /// Segments that versions say their values were written to first.
    pub(super) async fn first_homes(&self) -> BTreeSet<u64> {
        let versions = self.versions().await.into_iter();
        versions.filter_map(|version| version.mirror).map(|home| home.segment).collect()
    }

    /// References are exact, and what is neither referenced nor a mirror is gone.
    pub(super) async fn verify_references(&self) {
        let mut objects: BTreeSet<_> =
            self.tree.mirrors.keys().map(|no| (ObjectKind::Segment, *no)).collect();
        objects.extend(self.tree.kvsets().map(|kvset| (ObjectKind::Keys, kvset.no())));
        let mut references: HashMap<u64, (u64, u64)> = HashMap::new();
        for version in self.versions().await {
            if let Content::At(pointer) = version.content {
                objects.insert((ObjectKind::Segment, pointer.segment));
                let sum = references.entry(pointer.segment).or_default();
                *sum = (sum.0 + 1, sum.1 + u64::from(pointer.stored_len));
            }
        }
        assert_eq!(self.tree.references().into_iter().collect::<HashMap<_, _>>(), references);
        assert_eq!(self.bench.objects.list().into_iter().collect::<BTreeSet<_>>(), objects);
        for segment in self.tree.segments.keys() {
            assert!(references.contains_key(segment) || self.tree.mirrors.contains_key(segment));
        }
    }

    /// Overwrites the values of all copies and mirrors, or the keys of copies, too, and opens the tree anew. How many
    /// objects that were.
    pub(super) async fn damage_copies(&mut self, with_keys: bool) -> usize {
        let (copies, data): (Vec<_>, Vec<_>) = self.tree.kvsets().partition(|kvset| kvset.is_copy());
        let referenced = |kvset: &Arc<Kvset>| -> Vec<_> {
            kvset.segments().iter().map(|segment| (ObjectKind::Segment, segment.no())).collect()
        };
        let needed: BTreeSet<_> = data.into_iter().flat_map(referenced).collect();
        let mut lost: BTreeSet<_> = copies.iter().map(|kvset| (ObjectKind::Keys, kvset.no())).collect();
        lost.extend(copies.into_iter().flat_map(referenced));
        lost.extend(self.tree.mirrors.keys().map(|no| (ObjectKind::Segment, *no)));
        lost.retain(|object| !needed.contains(object) && (with_keys || object.0 != ObjectKind::Keys));
        for (kind, no) in &lost {
            let Some(object) = self.bench.objects.find(*kind, *no) else { continue };
            object.write_bytes(0, &vec![0xA5; object.size_bytes() as usize]).await.unwrap();
        }
        self.store = Owner::next(&self.bench.cache);
        self.context.opener.leave_out_lost_copies(&mut self.record).await.unwrap();
        let opened = self.context.opener.open_tree(&self.record).await.unwrap();
        self.tree.retire_dropped(&opened);
        self.tree = Arc::new(opened);
        self.sweep().await;
        lost.len()
    }
}

pub(super) async fn walk(
    view: &mut View<Box<dyn Source>>,
    direction: Direction,
    bound: Option<&[u8]>,
) -> Vec<Vec<u8>> {
    view.seek(direction, bound).await.unwrap();
    let mut keys = Vec::new();
    while view.step().await.unwrap() {
        keys.push(view.key().to_vec());
    }
    keys
}
