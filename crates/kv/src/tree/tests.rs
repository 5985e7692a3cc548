//! Random versions through random jobs, against a map.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use bytes::Bytes;
use futures::executor::block_on;
use proptest::prelude::*;
use tanada_base::SplitMix64;

use super::heat::HotKeys;
use super::jobs::promote::{promote, promote_keys};
use super::pick::{Job, PickSettings, Surroundings, pick};
use super::policy::{ClassChoice, MediaPolicy, OfferedClass, PolicyTemplate};
use super::*;
use crate::cache::Owner;
use crate::entry::{Codec, Content, RangeTombstone, SequenceNo, Version};
use crate::keyfile::{Access, KeyFileOptions, KeyFileWriter, KeyHash};
use crate::merge::{Direction, Source, Step, View, Visibility, is_live};
use crate::objects::ObjectKind;
use crate::pace::Pace;
use crate::testing::Bench;
use crate::tombstone::RangeTombstones;
use crate::value::{SegmentWriter, Segments};
use crate::wire::Decoder;

/// The edit that takes the promoted kvsets of a leaf away.
fn demote(tree: &TreeState, leaf: LeafNo) -> Edit {
    let kvsets = tree.leaf_by_no(leaf).map(|leaf| &*leaf.kvsets).unwrap_or_default();
    let promoted = kvsets.iter().filter(|kvset| kvset.record().kind == KvsetKind::Promoted);
    let place = Place::Leaf(leaf);
    let changes = promoted.map(|kvset| Change::RemoveKvset { place, kvset: kvset.no() });
    Edit { changes: changes.collect() }
}

const NOW_S: u64 = 1000;

/// A value, and when it expires.
type Written = (Vec<u8>, Option<u32>);

/// What was written, never forgotten.
#[derive(Default)]
struct Model {
    versions: BTreeMap<(Vec<u8>, std::cmp::Reverse<SequenceNo>), Option<Written>>,
    tombstones: Vec<RangeTombstone>,
}

impl Model {
    fn seen(&self, snapshot: SequenceNo) -> BTreeMap<Vec<u8>, Vec<u8>> {
        let mut newest = BTreeMap::new();
        for ((key, sequence), value) in &self.versions {
            if sequence.0 <= snapshot {
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

struct World {
    bench: Bench,
    context: JobContext,
    tree: Arc<TreeState>,
    record: TreeRecord,
    model: Model,
    sequence: SequenceNo,
    random: SplitMix64,
    /// Of its values in the cache.
    store: Owner,
}

fn key(random: &mut SplitMix64) -> Vec<u8> {
    format!("key {:03}", random.below(120)).into_bytes()
}

impl World {
    async fn new(seed: u64, template: PolicyTemplate) -> World {
        let bench = Bench::new().await;
        let segments = Segments::new(&bench.objects, &bench.cache);
        let opener = Opener { objects: bench.objects.clone(), segments, cache: bench.cache.clone() };
        let classes =
            ["fast", "slow"].map(|name| OfferedClass { name: name.to_owned(), takes_objects: true });
        let placement = MediaPolicy::from(template).resolve(&classes, &ClassChoice::Fastest).unwrap();
        let context = JobContext {
            opener,
            placement,
            key_files: KeyFileOptions::default(),
            segment_bytes: 9000,
            leaf_bytes: 12_000,
            batch_bytes: 5000,
            pace: Pace::unbounded(),
            keeps_mirrors: template == PolicyTemplate::StagingMaxCapacity,
            mirrors: BTreeSet::new(),
            snapshots: Vec::new(),
            now_s: NOW_S,
        };
        World {
            bench,
            context,
            tree: Arc::default(),
            record: TreeRecord::default(),
            model: Model::default(),
            sequence: 0,
            random: SplitMix64::new(seed),
            store: Owner::next(),
        }
    }

    /// A kvset of new versions on top of the root, with large values in a segment that stands for the log.
    async fn flush(&mut self, versions: u64) {
        let objects = &self.bench.objects;
        let (log_lease, object) = objects.create(ObjectKind::Segment, Some("fast")).unwrap();
        let mut log = SegmentWriter::new(log_lease.no(), object, objects.buffers()).await.unwrap();
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
        let segment = self.context.opener.segments.add(log_lease, log.finish().await.unwrap());
        let (lease, object) = objects.create(ObjectKind::Keys, Some("fast")).unwrap();
        let mut writer = KeyFileWriter::new(lease.no(), object, objects.buffers(), KeyFileOptions::default());
        for ((key, _), version) in &written {
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

    /// What the engine does with an edit.
    async fn apply(&mut self, edit: &Edit) {
        let mut encoded = Vec::new();
        edit.encode(&mut encoded);
        let edit = Edit::decode(&mut Decoder::new(&encoded)).unwrap();
        self.record.change(&edit, |record| Ok(record.clone())).unwrap();
        let opened = self.context.opener.open_added(&self.tree, &edit).await.unwrap();
        let after = self.tree.apply_opened(&edit, &opened).unwrap();
        drop(opened);
        self.tree.retire_dropped(&after);
        self.tree = Arc::new(after);
        assert_eq!(self.tree.record(), self.record);
        self.sweep().await;
    }

    async fn sweep(&self) {
        while let Some((kind, no)) = self.bench.objects.take_retired() {
            self.bench.objects.delete(kind, no).await.unwrap();
        }
    }

    async fn job(&mut self) -> Option<Edit> {
        self.context.mirrors = self.tree.mirrors.keys().copied().collect();
        let (context, tree) = (&self.context, &self.tree);
        let leaf = tree.leaves.get(self.random.below(tree.leaves.len() as u64) as usize);
        match self.random.below(8) {
            7 if tree.root.len() > 1 => {
                let numbers: Vec<_> =
                    tree.root[..tree.root.len() - 1].iter().map(|kvset| kvset.no()).collect();
                Some(merge(context, tree, &numbers).await.unwrap().edit)
            }
            6 => {
                let which = self.random.below(tree.mirrors.len() as u64 + 1) as usize;
                let change = Change::RemoveMirror { segment: *tree.mirrors.keys().nth(which)? };
                Some(Edit { changes: vec![change] })
            }
            0 | 1 if !tree.root.is_empty() => {
                let count = 1 + self.random.below(tree.root.len() as u64) as usize;
                let numbers = tree.root.iter().rev().take(count).map(|kvset| kvset.no());
                Some(spill(context, tree, &numbers.collect::<Vec<_>>()).await.unwrap().edit)
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
                Some(job.await.unwrap().edit)
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
                Some(job.await.unwrap().edit)
            }
        }
    }

    async fn verify(&mut self) {
        self.verify_references().await;
        let tombstones = Arc::new(self.tree.tombstones());
        for snapshot in self.context.snapshots.clone().into_iter().chain([SequenceNo::MAX]) {
            let expected = self.model.seen(snapshot);
            for no in 0..121 {
                let key = format!("key {no:03}").into_bytes();
                let found = self.tree.get(&key, KeyHash::of(&key), snapshot, 0).await.unwrap();
                let value = match found.filter(|found| is_live(&found.version, NOW_S)) {
                    Some(found) => found.value(&key, self.store, &self.tree).await.unwrap().0,
                    None => None,
                };
                let expected = expected.get(&key).map(|value| Bytes::from(value.clone()));
                assert_eq!(value, expected, "{} at {snapshot}", String::from_utf8_lossy(&key));
            }
            self.verify_walks(snapshot, &tombstones, &expected).await;
        }
    }

    async fn verify_walks(
        &mut self,
        snapshot: SequenceNo,
        tombstones: &Arc<RangeTombstones>,
        expected: &BTreeMap<Vec<u8>, Vec<u8>>,
    ) {
        let visibility = Visibility { snapshot, now_s: NOW_S, tombstones: tombstones.clone() };
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

    /// Writes the keys of each leaf anew.
    async fn compact_leaves(&mut self) {
        self.context.mirrors = self.tree.mirrors.keys().copied().collect();
        for leaf in self.tree.leaves.iter().map(|leaf| leaf.no).collect::<Vec<_>>() {
            let kvsets: Vec<_> =
                self.tree.leaf_by_no(leaf).unwrap().kvsets.iter().map(|kvset| kvset.no()).collect();
            let emptied = BTreeSet::new();
            let job = compact(&self.context, &self.tree, leaf, &kvsets, &emptied);
            let edit = job.await.unwrap().edit;
            self.apply(&edit).await;
        }
    }

    /// All versions, whatever sees them.
    async fn versions(&self) -> Vec<Version> {
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
    async fn first_homes(&self) -> BTreeSet<u64> {
        let versions = self.versions().await.into_iter();
        versions.filter_map(|version| version.mirror).map(|home| home.segment).collect()
    }

    /// References are exact, and what is neither referenced nor a mirror is gone.
    async fn verify_references(&self) {
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
            assert!(references.contains_key(segment));
        }
    }
}

async fn walk(view: &mut View<Box<dyn Source>>, direction: Direction, bound: Option<&[u8]>) -> Vec<Vec<u8>> {
    view.seek(direction, bound).await.unwrap();
    let mut keys = Vec::new();
    while view.step().await.unwrap() {
        keys.push(view.key().to_vec());
    }
    keys
}

fn run(seed: u64, steps: u64, template: PolicyTemplate) {
    block_on(async {
        let mut world = World::new(seed, template).await;
        for _ in 0..steps {
            match world.random.below(4) {
                0 => {
                    let versions = world.random.below(150);
                    world.flush(versions).await;
                }
                1 if world.random.below(2) == 0 => {
                    let snapshots = &mut world.context.snapshots;
                    if snapshots.len() < 3 {
                        snapshots.push(world.sequence);
                    } else {
                        snapshots.remove(world.random.below(3) as usize);
                    }
                }
                _ => {
                    if let Some(edit) = world.job().await {
                        world.apply(&edit).await;
                    }
                }
            }
            world.verify().await;
        }
        let opened = world.context.opener.open_tree(&world.record).await.unwrap();
        assert_eq!(opened.record(), world.record);
    });
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    #[test]
    fn jobs_change_nothing_that_anybody_sees(seed: u64, template in 0usize..4) {
        let templates = [
            PolicyTemplate::StagingOnly,
            PolicyTemplate::StagingMaxCapacity,
            PolicyTemplate::StagingMinCapacity,
            PolicyTemplate::CapacityOnly,
        ];
        run(seed, 40, templates[template]);
    }
}

/// Does what is picked until nothing is.
async fn settle(world: &mut World, settings: &PickSettings) -> u64 {
    let mut jobs = 0;
    while let Some(picked) = pick(&*world.tree, settings, &Surroundings::default()).0 {
        let (context, tree) = (&world.context, &world.tree);
        let edit = match picked.job {
            Job::Spill { kvsets } => {
                let oldest = *kvsets.last().unwrap();
                match move_down(&context.placement, tree, oldest, context.leaf_bytes) {
                    Some(edit) => edit,
                    None => spill(context, tree, &kvsets).await.unwrap().edit,
                }
            }
            Job::Compact { leaf, kvsets, emptied } => {
                compact(context, tree, leaf, &kvsets, &emptied).await.unwrap().edit
            }
        };
        world.apply(&edit).await;
        jobs += 1;
        assert!(
            jobs < 100,
            "no end is in sight: {:?}",
            pick(&*world.tree, settings, &Surroundings::default())
        );
    }
    jobs
}

#[test]
fn what_is_picked_comes_to_an_end_and_keeps_the_limits() {
    for (seed, template) in [(1, PolicyTemplate::StagingMaxCapacity), (2, PolicyTemplate::CapacityOnly)] {
        block_on(async {
            let mut world = World::new(seed, template).await;
            world.context.leaf_bytes = 4000;
            let settings = PickSettings {
                root_kvsets: 3,
                root_bytes: 40_000,
                spill_bytes: 30_000,
                leaf_kvsets: 3,
                leaf_bytes: world.context.leaf_bytes,
                ..PickSettings::default()
            };
            let mut jobs = 0;
            for _ in 0..40 {
                world.flush(60).await;
                jobs += settle(&mut world, &settings).await;
                let tree = &world.tree;
                assert!(tree.root.len() < 3);
                for leaf in &tree.leaves {
                    let bytes: u64 = leaf.kvsets.iter().map(|kvset| kvset.record().info.data_bytes()).sum();
                    assert!(leaf.kvsets.len() < 3 && bytes <= settings.leaf_bytes * 3 / 2);
                }
                let references = tree.references();
                let live: u64 = tree.segments.keys().map(|no| references[no].1).sum();
                let total: u64 = tree.segments.values().map(|segment| segment.stored_bytes).sum();
                assert!(total as f64 <= live as f64 * 1.3, "{total} bytes for {live}");
            }
            world.verify().await;
            assert!(
                world.tree.leaves.len() > 2 && jobs > 20,
                "{} leaves, {jobs} jobs",
                world.tree.leaves.len()
            );
        });
    }
}

/// A world whose values were spilled.
async fn spilled(keeps_mirrors: bool) -> World {
    let mut world = World::new(5, PolicyTemplate::StagingMaxCapacity).await;
    // Nothing but index pages is cached, so every read goes to a device.
    world.bench.cache = crate::cache::Cache::new(16 << 10);
    world.context.opener.cache = world.bench.cache.clone();
    world.context.opener.segments = Segments::new(&world.bench.objects, &world.bench.cache);
    world.context.keeps_mirrors = keeps_mirrors;
    world.flush(200).await;
    let numbers: Vec<_> = world.tree.root.iter().map(|kvset| kvset.no()).collect();
    let edit = spill(&world.context, &world.tree, &numbers).await.unwrap().edit;
    world.apply(&edit).await;
    world
}

/// Reads all, and counts what comes from the slow class.
async fn read(world: &World, hot: &HotKeys) {
    for no in 0..120 {
        let key = format!("key {no:03}").into_bytes();
        if let Some(found) = world.tree.get(&key, KeyHash::of(&key), SequenceNo::MAX, 0).await.unwrap() {
            let (_, from) = found.value(&key, world.store, &world.tree).await.unwrap();
            if from.is_some_and(|segment| segment.class.as_deref() != Some("fast")) {
                hot.note(&key, found.stored_bytes());
            }
        }
    }
}

#[test]
fn what_was_spilled_is_read_where_it_was_written_as_long_as_that_is_there() {
    block_on(async {
        let mut world = spilled(true).await;
        let hot = HotKeys::new(1000);
        let logs: Vec<_> = world.tree.mirrors.keys().copied().collect();
        read(&world, &hot).await;
        assert_eq!(hot.take(1, u64::MAX), Vec::<Bytes>::new(), "read from the slow class");
        world.verify().await;
        // It outlasts that keys are written anew.
        world.compact_leaves().await;
        assert_eq!(world.first_homes().await.into_iter().collect::<Vec<_>>(), logs);
        // A mirror that is damaged is passed over.
        for log in &logs {
            let object = world.bench.objects.find(ObjectKind::Segment, *log).unwrap();
            object.write_bytes(0, &vec![0xA5; object.size_bytes() as usize]).await.unwrap();
        }
        read(&world, &hot).await;
        assert!(!hot.take(1, u64::MAX).is_empty());
        world.verify().await;
        // Newer versions are not hidden by older mirrors, in whatever order these go.
        world.flush(200).await;
        let newest = world.tree.root[0].no();
        let edit = spill(&world.context, &world.tree, &[newest]).await.unwrap().edit;
        world.apply(&edit).await;
        assert_eq!(world.tree.mirrors.len(), 2);
        world.verify().await;
        let newest = *world.tree.mirrors.keys().last().unwrap();
        world.apply(&Edit { changes: vec![Change::RemoveMirror { segment: newest }] }).await;
        world.verify().await;
        assert_eq!(world.tree.mirrors.len(), 1);
        assert!(world.bench.objects.find(ObjectKind::Segment, newest).is_none());
        // Where mirrors are that are gone is forgotten when keys are written anew.
        assert!(world.first_homes().await.contains(&newest));
        world.compact_leaves().await;
        assert!(!world.first_homes().await.contains(&newest));
        world.verify().await;
    });
}

#[test]
fn what_is_read_often_is_promoted_and_then_read_from_the_fast_class() {
    block_on(async {
        let mut world = spilled(false).await;
        let hot = HotKeys::new(1000);
        for _ in 0..3 {
            read(&world, &hot).await;
        }
        let keys = hot.take(3, u64::MAX);
        assert!(keys.len() > 2, "{}", keys.len());
        let output = promote_keys(&world.context, &world.tree, &keys, "fast").await.unwrap();
        assert!(output.value_bytes_written > 0);
        world.apply(&output.edit).await;
        read(&world, &hot).await;
        assert_eq!(hot.take(1, u64::MAX), Vec::<Bytes>::new(), "still read from the slow class");
        world.verify().await;
        let leaves: Vec<_> = world.tree.leaves.iter().map(|leaf| leaf.no).collect();
        for leaf in leaves {
            world.apply(&demote(&world.tree, leaf)).await;
        }
        read(&world, &hot).await;
        assert!(!hot.take(1, u64::MAX).is_empty());
        world.verify().await;
    });
}
