//! Random versions through random jobs, against a map.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use bytes::Bytes;
use futures::executor::block_on;
use proptest::prelude::*;

mod world;

use world::{World, demote};

use super::heat::HotKeys;
use super::jobs::promote::promote_keys;
use super::pick::join;
use super::pick::pick;
use super::policy::PolicyTemplate;
use super::*;
use crate::ErrorKind;
use crate::cache::Owner;
use crate::entry::{Content, SegmentNo, SequenceNo};
use crate::keyfile::KeyHash;
use crate::objects::ObjectKind;
use crate::tree::job::Job;
use crate::tree::job::PickSettings;
use crate::tree::job::Surroundings;
use crate::value::Segments;

/// How many kvsets were dropped because deletes hid all of them, and how many lookups were answered by what others had
/// found.
fn run(seed: u64, steps: u64, template: PolicyTemplate, leaf_bytes: u64) -> (usize, usize) {
    block_on(async {
        let mut world = World::new(seed, template).await;
        world.context.leaf_bytes = leaf_bytes;
        for _ in 0..steps {
            let sparse = world.tree.references().into_keys().filter(|_| world.random.below(2) == 0).collect();
            let room_bytes = world.random.below(20_000);
            // And of what stays, too.
            let from = world.tree.segments.keys().copied().filter(|_| world.random.below(4) == 0).collect();
            world.context.dense = Some(DenseMirrors { class: "fast".to_owned(), sparse, from, room_bytes });
            match world.random.below(4) {
                0 => {
                    let versions = world.random.below(150);
                    world.flush(versions).await;
                }
                1 if world.random.below(2) == 0 => {
                    let numbers = &mut world.context.readers.numbers;
                    if numbers.len() < 3 {
                        numbers.push(world.sequence);
                    } else {
                        numbers.remove(world.random.below(3) as usize);
                    }
                }
                1 if world.random.below(3) == 0 => world.load().await,
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
        drop(opened);
        let with_keys = world.random.below(2) == 0;
        world.damage_copies(with_keys).await;
        world.verify_reads().await;
        world.compact_leaves().await;
        world.verify().await;
        (world.dropped, world.known)
    })
}

#[test]
fn fully_deleted_kvsets_are_dropped_without_reading() {
    let dropped: usize = (0..20).map(|seed| run(seed, 60, PolicyTemplate::StagingMaxCapacity, 1500).0).sum();
    assert!(dropped > 5, "{dropped} kvsets");
}

#[test]
fn repeated_lookups_use_the_cached_newest_version() {
    let known: usize = (0..5).map(|seed| run(seed, 60, PolicyTemplate::StagingMaxCapacity, 12_000).1).sum();
    assert!(known > 5000, "{known} look-ups");
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
        run(seed, 40, templates[template], if seed % 2 == 0 { 12_000 } else { 2000 });
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
                    None => spill(context, tree, &kvsets).await.unwrap().kept().edit,
                }
            }
            Job::Compact { leaf, kvsets, emptied } => {
                compact(context, tree, leaf, &kvsets, &emptied).await.unwrap().kept().edit
            }
            Job::Mirror { leaf, kvsets } => {
                compact(context, tree, leaf, &kvsets, &BTreeSet::new()).await.unwrap().kept().edit
            }
            Job::Join { leaves } => join(&leaves),
            Job::Drop { kvsets } => drop_hidden(&kvsets),
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
fn picked_jobs_terminate_and_keep_the_limits() {
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

#[test]
fn small_spills_leave_no_trail_of_small_segments() {
    block_on(async {
        let mut world = World::new(3, PolicyTemplate::StagingMaxCapacity).await;
        world.context.leaf_bytes = 40_000;
        let settings = PickSettings {
            root_kvsets: 1,
            leaf_bytes: world.context.leaf_bytes,
            small_segment_bytes: world.context.segment_bytes / 2,
            ..PickSettings::default()
        };
        let mut segments = 0;
        for _ in 0..60 {
            world.flush(3).await;
            settle(&mut world, &settings).await;
            let small = world.tree.segments.values();
            let small = small.filter(|segment| segment.stored_bytes < settings.small_segment_bytes).count();
            let leaves = world.tree.leaves.len();
            assert!(small <= 3 * leaves + 8, "{small} small segments, {leaves} leaves");
            segments += small;
        }
        world.verify().await;
        assert!(segments > 60, "{segments}");
    });
}

/// A world whose values were spilled.
async fn spilled(keeps_mirrors: bool) -> World {
    spilled_copying(keeps_mirrors, 0).await
}

/// The same, where copies of this many bytes become mirrors in place of the log's segments.
async fn spilled_copying(keeps_mirrors: bool, room_bytes: u64) -> World {
    let mut world = World::new(5, PolicyTemplate::StagingMaxCapacity).await;
    // Nothing but index pages is cached, so every read goes to a device.
    world.bench.cache = crate::cache::Cache::new(16 << 10);
    world.context.opener.cache = world.bench.cache.clone();
    world.context.opener.segments = Segments::new(&world.bench.objects, &world.bench.cache, None);
    world.context.keeps_mirrors = keeps_mirrors;
    world.context.segment_bytes = 1000;
    world.flush(200).await;
    let numbers: Vec<_> = world.tree.root.iter().map(|kvset| kvset.no()).collect();
    let sparse = world.tree.references().into_keys().collect();
    let from = BTreeSet::new();
    world.context.dense = Some(DenseMirrors { class: "fast".to_owned(), sparse, from, room_bytes });
    let edit = spill(&world.context, &world.tree, &numbers).await.unwrap().kept().edit;
    world.context.dense = None;
    world.apply(&edit).await;
    world
}

/// Reads all, and counts what comes from the slow class.
async fn read(world: &World, hot: &HotKeys) {
    for no in 0..120 {
        let key = format!("key {no:03}").into_bytes();
        if let Some(found) = world.tree.get(&key, KeyHash::of(&key), SequenceNo::MAX, &[]).await.unwrap() {
            let (_, from) = found.value(&key, None, world.store, &world.tree).await.unwrap();
            if from.is_some_and(|segment| segment.class.as_deref() != Some("fast")) {
                hot.note(&key, found.stored_bytes());
            }
        }
    }
}

#[test]
fn spilled_values_are_read_from_their_log_segment_while_it_exists() {
    block_on(async {
        let mut world = spilled(true).await;
        let hot = HotKeys::new(1000);
        let logs: Vec<_> = world.tree.mirrors.keys().copied().collect();
        read(&world, &hot).await;
        assert_eq!(hot.take(1, u64::MAX), Vec::<Bytes>::new(), "read from the slow class");
        world.verify().await;
        // It outlasts that keys are rewritten.
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
        let edit = spill(&world.context, &world.tree, &[newest]).await.unwrap().kept().edit;
        world.apply(&edit).await;
        assert_eq!(world.tree.mirrors.len(), 2);
        world.verify().await;
        let newest = *world.tree.mirrors.keys().last().unwrap();
        world.apply(&Edit { changes: vec![Change::RemoveMirror { segment: newest }] }).await;
        world.verify().await;
        assert_eq!(world.tree.mirrors.len(), 1);
        assert!(world.bench.objects.find(ObjectKind::Segment, newest).is_none());
        // Where mirrors are that are gone is forgotten when keys are rewritten.
        assert!(world.first_homes().await.contains(&newest));
        world.compact_leaves().await;
        assert!(!world.first_homes().await.contains(&newest));
        world.verify().await;
    });
}

#[test]
fn sparse_log_segments_are_mirrored_by_compacted_copies() {
    block_on(async {
        // Room for one segment, which takes a chunk.
        for (room_bytes, are_all) in [(u64::MAX, true), (64 << 10, false)] {
            let mut world = spilled_copying(true, room_bytes).await;
            let is_copy = |segment: &SegmentNo| world.tree.segments.contains_key(segment);
            let (copies, logs): (Vec<_>, Vec<_>) = world.tree.mirrors.keys().copied().partition(is_copy);
            assert_eq!((copies.is_empty(), logs.is_empty()), (false, are_all), "{copies:?} {logs:?}");
            let copied: u64 = copies.iter().map(|copy| world.tree.mirrors[copy].stored_bytes).sum();
            assert!(copied <= room_bytes && copied > 500, "{copied}");
            let hot = HotKeys::new(1000);
            read(&world, &hot).await;
            assert_eq!(hot.take(1, u64::MAX), Vec::<Bytes>::new(), "read from the slow class");
            world.verify().await;
            world.compact_leaves().await;
            read(&world, &hot).await;
            assert_eq!(hot.take(1, u64::MAX), Vec::<Bytes>::new(), "read from the slow class");
            // They go by an edit alone, and with them what they lie in.
            let changes = copies.iter().map(|segment| Change::RemoveMirror { segment: *segment }).collect();
            world.apply(&Edit { changes }).await;
            assert!(copies.iter().all(|no| world.bench.objects.find(ObjectKind::Segment, *no).is_none()));
            assert!(copies.iter().all(|no| !world.tree.segments.contains_key(no)));
            world.store = Owner::next(&world.bench.cache);
            read(&world, &hot).await;
            assert!(!hot.take(1, u64::MAX).is_empty());
            world.verify().await;
        }
    });
}

#[test]
fn compaction_mirrors_moved_values_where_space_allows() {
    block_on(async {
        for (room_bytes, moves, has_any) in
            [(u64::MAX, true, true), (u64::MAX, false, true), (0, true, false), (0, false, false)]
        {
            let mut world = spilled(false).await;
            let all: BTreeSet<SegmentNo> = world.tree.segments.keys().copied().collect();
            // Whether they move or stay.
            let (emptied, from) = if moves { (all, BTreeSet::new()) } else { (BTreeSet::new(), all) };
            world.context.dense =
                Some(DenseMirrors { class: "fast".to_owned(), room_bytes, from, ..DenseMirrors::default() });
            let leaves = world.tree.leaves.iter();
            let numbers = |leaf: &Leaf<Arc<Kvset>>| leaf.kvsets.iter().map(|kvset| kvset.no()).collect();
            let leaves: Vec<(_, Vec<_>)> = leaves.map(|leaf| (leaf.no, numbers(leaf))).collect();
            for (leaf, numbers) in leaves {
                let output =
                    compact(&world.context, &world.tree, leaf, &numbers, &emptied).await.unwrap().kept();
                world.apply(&output.edit).await;
            }
            assert_eq!(!world.tree.mirrors.is_empty(), has_any);
            let hot = HotKeys::new(1000);
            world.store = Owner::next(&world.bench.cache);
            read(&world, &hot).await;
            assert_eq!(hot.take(1, u64::MAX).is_empty(), has_any, "read from the slow class");
            world.verify().await;
        }
    });
}

#[test]
fn frequently_read_values_are_promoted_and_read_from_the_fast_class() {
    block_on(async {
        let mut world = spilled(false).await;
        let hot = HotKeys::new(1000);
        for _ in 0..3 {
            read(&world, &hot).await;
        }
        let keys = hot.take(3, u64::MAX);
        assert!(keys.len() > 2, "{}", keys.len());
        let output = promote_keys(&world.context, &world.tree, &keys, "fast").await.unwrap().kept();
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

/// A tree some of whose values have copies on the fast class.
async fn promoted() -> World {
    let mut world = spilled(false).await;
    let keys: Vec<_> = (0..120).map(|no| Bytes::from(format!("key {no:03}"))).collect();
    let output = promote_keys(&world.context, &world.tree, &keys, "fast").await.unwrap().kept();
    world.apply(&output.edit).await;
    world
}

#[test]
fn copies_survive_key_merges() {
    block_on(async {
        let mut world = promoted().await;
        world.compact_leaves().await;
        assert!(world.tree.kvsets().all(|kvset| !kvset.is_copy()) && !world.tree.mirrors.is_empty());
        world.verify().await;
        let hot = HotKeys::new(1000);
        read(&world, &hot).await;
        assert_eq!(hot.take(1, u64::MAX), Vec::<Bytes>::new(), "read from the slow class");
        // They go by an edit alone, and with them what they lie in.
        let mirrors: Vec<_> = world.tree.mirrors.keys().copied().collect();
        let changes = mirrors.iter().map(|segment| Change::RemoveMirror { segment: *segment }).collect();
        world.apply(&Edit { changes }).await;
        assert!(mirrors.iter().all(|no| world.bench.objects.find(ObjectKind::Segment, *no).is_none()));
        world.store = Owner::next(&world.bench.cache);
        world.verify().await;
        read(&world, &hot).await;
        assert!(!hot.take(1, u64::MAX).is_empty());
    });
}

#[test]
fn nothing_is_lost_with_copies() {
    for (with_keys, are_mirrors) in [(false, false), (true, false), (false, true)] {
        block_on(async {
            let mut world = promoted().await;
            if are_mirrors {
                world.compact_leaves().await;
            }
            assert!(world.damage_copies(with_keys).await > 0);
            world.verify_reads().await;
            assert_eq!(world.context.opener.has_damaged.load(Ordering::Relaxed), !with_keys && !are_mirrors);
            // Jobs that read them leave them out.
            let keys: Vec<_> = (0..120).map(|no| Bytes::from(format!("key {no:03}"))).collect();
            let output = promote_keys(&world.context, &world.tree, &keys, "fast").await.unwrap().kept();
            world.apply(&output.edit).await;
            world.verify_reads().await;
            world.compact_leaves().await;
            world.verify().await;
        });
    }
}

#[test]
fn keys_are_merged_when_values_cannot_be_rewritten() {
    for is_damaged in [false, true] {
        block_on(async {
            let mut world = World::new(7, PolicyTemplate::StagingMaxCapacity).await;
            world.context.leaf_bytes = 1 << 20;
            for keys in [0..60, 30..90] {
                world.put(&keys.collect::<Vec<_>>()).await;
                let roots: Vec<_> = world.tree.root.iter().map(|kvset| kvset.no()).collect();
                let edit = spill(&world.context, &world.tree, &roots).await.unwrap().kept().edit;
                world.apply(&edit).await;
            }
            let emptied: BTreeSet<SegmentNo> = world.tree.segments.keys().copied().collect();
            if is_damaged {
                for no in &emptied {
                    let object = world.bench.objects.find(ObjectKind::Segment, *no).unwrap();
                    object.write_bytes(0, &vec![0xA5; object.size_bytes() as usize]).await.unwrap();
                }
            } else {
                world.context.segment_bytes = 1 << 40;
            }
            let kvsets = |world: &World| -> Vec<_> {
                world.tree.leaves[0].kvsets.iter().map(|kvset| kvset.no()).collect()
            };
            let two = kvsets(&world);
            assert_eq!(two.len(), 2);
            let output = compact(&world.context, &world.tree, 0, &two, &emptied).await.unwrap().kept();
            world.apply(&output.edit).await;
            let one = kvsets(&world);
            assert_eq!(one.len(), 1);
            assert!(world.tree.references().into_keys().all(|segment| emptied.contains(&segment)));
            let error = compact(&world.context, &world.tree, 0, &one, &emptied).await.unwrap_err();
            assert_eq!(error.kind(), if is_damaged { ErrorKind::Corrupted } else { ErrorKind::NoSpace });
            if !is_damaged {
                world.verify().await;
            }
        });
    }
}

#[test]
fn copies_stay_when_values_cannot_be_rewritten() {
    block_on(async {
        let mut world = promoted().await;
        let copies: BTreeSet<SegmentNo> = {
            let copies = world.tree.kvsets().filter(|kvset| kvset.is_copy());
            copies.flat_map(|kvset| &kvset.record().info.references).map(|of| of.segment).collect()
        };
        let emptied: BTreeSet<SegmentNo> =
            world.tree.segments.keys().copied().filter(|segment| !copies.contains(segment)).collect();
        for no in &emptied {
            let object = world.bench.objects.find(ObjectKind::Segment, *no).unwrap();
            object.write_bytes(0, &vec![0xA5; object.size_bytes() as usize]).await.unwrap();
        }
        let leaves = world.tree.leaves.iter().filter(|leaf| leaf.kvsets.iter().any(|kvset| kvset.is_copy()));
        let leaf = leaves.max_by_key(|leaf| leaf.kvsets.len()).unwrap();
        let (leaf, kvsets) = (leaf.no, leaf.kvsets.iter().map(|kvset| kvset.no()).collect::<Vec<_>>());
        assert!(kvsets.len() > 1);
        let output = compact(&world.context, &world.tree, leaf, &kvsets, &emptied).await.unwrap().kept();
        // They are mirrors now of what they repeat.
        assert!(output.has_mirrors());
        world.apply(&output.edit).await;
        world.verify_references().await;
    });
}

#[test]
fn hot_and_cold_values_go_to_separate_segments() {
    block_on(async {
        let mut world = World::new(7, PolicyTemplate::StagingMaxCapacity).await;
        world.context.batch_bytes = 1 << 20;
        // Of 120 keys those below 60 are written in each of three tables, the others in one of them.
        for table in 0..3u64 {
            let keys = (0..120u64).filter(|no| *no < 60 || no % 3 == table);
            world.put(&keys.collect::<Vec<_>>()).await;
        }
        let roots: Vec<_> = world.tree.root.iter().map(|kvset| kvset.no()).collect();
        let edit = spill(&world.context, &world.tree, &roots).await.unwrap().kept().edit;
        world.apply(&edit).await;
        let mut hot = BTreeSet::new();
        let mut cold = BTreeSet::new();
        for no in 0..120u64 {
            let key = format!("key {no:03}").into_bytes();
            let found = world.tree.get(&key, KeyHash::of(&key), SequenceNo::MAX, &[]).await.unwrap().unwrap();
            let Content::At(pointer) = found.version.content else { panic!("{no} lies beside its key") };
            if no < 60 { &mut hot } else { &mut cold }.insert(pointer.segment);
        }
        assert!(hot.is_disjoint(&cold), "{hot:?} {cold:?}");
        world.verify().await;
    });
}

#[test]
fn spills_estimate_no_overwrites_without_filters() {
    block_on(async {
        let mut world = World::new(7, PolicyTemplate::StagingMaxCapacity).await;
        world.context.leaf_bytes = 1 << 20;
        for bits_per_key in [0, 1] {
            world.context.key_files.filter_bits_per_key = bits_per_key;
            for odd in [0, 1] {
                world.put(&(0..8191).map(|no| no * 2 + odd).collect::<Vec<_>>()).await;
                let numbers: Vec<_> = world.tree.root.iter().map(|kvset| kvset.no()).collect();
                let output = spill(&world.context, &world.tree, &numbers).await.unwrap().kept();
                world.apply(&output.edit).await;
                assert_eq!(output.overwritten.share(), None);
            }
        }
    });
}

#[test]
fn a_spill_reads_the_log_once_and_its_segments_have_a_range_of_keys_each() {
    block_on(async {
        let mut world = World::new(7, PolicyTemplate::StagingMaxCapacity).await;
        (world.context.segment_bytes, world.context.batch_bytes) = (100_000, 700_000);
        world.context.leaf_bytes = 1 << 20;
        // In no order of keys: each of the tables has some of all of them.
        for table in 0..4 {
            world.put(&(0..1000).map(|no| 4 * (no * 7919 % 1000) + table).collect::<Vec<_>>()).await;
        }
        let numbers: Vec<_> = world.tree.root.iter().map(|kvset| kvset.no()).collect();
        let output = spill(&world.context, &world.tree, &numbers).await.unwrap().kept();
        let logged = 4000 * 200;
        assert!((logged..logged / 8 * 9).contains(&output.value_bytes_read), "{}", output.value_bytes_read);
        world.apply(&output.edit).await;
        let versions = world.versions().await;
        assert_eq!(versions.len(), 4000);
        let mut segments: Vec<SegmentNo> = versions
            .iter()
            .filter_map(|version| match &version.content {
                Content::At(pointer) => Some(pointer.segment),
                _ => None,
            })
            .collect();
        segments.dedup();
        let ranges = segments.len();
        segments.sort_unstable();
        segments.dedup();
        assert_eq!((ranges, segments.len()), (9, 9));
        world.verify().await;
    });
}

#[test]
fn spills_estimate_overwritten_versions_by_filters() {
    block_on(async {
        let mut world = World::new(7, PolicyTemplate::StagingMaxCapacity).await;
        world.context.leaf_bytes = 1 << 20;
        let even = |no: u64| no * 2;
        let puts: [(Vec<u64>, Option<f64>); 5] = [
            ((0..8192).map(even).collect(), None),
            ((0..8192).map(even).collect(), Some(1.0)),
            ((0..8192).map(|no| even(no) + 1).collect(), Some(0.0)),
            // Half of them lie behind all that is there.
            ((0..8192).map(|no| no * 4).collect(), Some(0.5)),
            // Too few to tell.
            ((0..1000).collect(), None),
        ];
        for (keys, wanted) in puts {
            world.put(&keys).await;
            let numbers: Vec<_> = world.tree.root.iter().map(|kvset| kvset.no()).collect();
            let output = spill(&world.context, &world.tree, &numbers).await.unwrap().kept();
            world.apply(&output.edit).await;
            let share = output.overwritten.share();
            // A filter lets one in hundred pass.
            let is_near = |(share, wanted): (f64, f64)| (share - wanted).abs() < 0.1;
            assert!(share.zip(wanted).map_or(share == wanted, is_near), "{share:?} {wanted:?}");
        }
    });
}
