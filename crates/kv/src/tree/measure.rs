//! Measurements of the structures by themselves, on one thread, in memory as far as the operating system caches. Not run as tests:
//! `cargo test --release -p tanada-kv --lib measure -- --ignored --nocapture`.

use std::sync::Arc;
use std::time::Instant;

use futures::executor::block_on;
use tanada_base::SplitMix64;

use super::policy::{MediaPolicy, PolicyTemplate};
use super::*;
use crate::entry::{Codec, Content, SequenceNo, Version};
use crate::keyfile::{KeyFileOptions, KeyFileWriter, KeyHash};
use crate::merge::{Direction, View, Visibility};
use crate::objects::ObjectKind;
use crate::testing::Bench;
use crate::value::{SegmentWriter, Segments};

const KEYS: u64 = 1_000_000;
const VALUE_BYTES: usize = 1000;

fn key(no: u64) -> [u8; 20] {
    let mut key = *b"user0000000000000000";
    let digits = format!("{:016}", no.wrapping_mul(0x9e37_79b9_7f4a_7c15) % 10_000_000_000_000_000);
    key[4..].copy_from_slice(digits.as_bytes());
    key
}

async fn flush(
    context: &JobContext,
    tree: &Arc<TreeState>,
    keys: impl Iterator<Item = u64>,
    sequence: u64,
) -> Arc<TreeState> {
    let objects = &context.opener.objects;
    let (log_lease, object) = objects.create(ObjectKind::Segment, Some("fast")).unwrap();
    let mut log = SegmentWriter::new(log_lease.no(), object, objects.buffers()).await.unwrap();
    let mut random = SplitMix64::new(sequence);
    let mut value = vec![0; VALUE_BYTES];
    let mut entries = Vec::new();
    for (index, no) in keys.enumerate() {
        random.fill(&mut value[..64]);
        let pointer = log.append(&value, Codec::None).await.unwrap();
        let sequence = sequence + index as u64;
        entries.push((key(no), Version { sequence, expires_s: None, content: Content::At(pointer) }));
    }
    let _segment = context.opener.segments.add(log_lease, log.finish().await.unwrap());
    entries.sort_by_key(|(key, _)| *key);
    let (lease, object) = objects.create(ObjectKind::Keys, Some("fast")).unwrap();
    let start = Instant::now();
    let mut writer = KeyFileWriter::new(lease.no(), object, objects.buffers(), KeyFileOptions::default());
    let count = entries.len();
    for (key, version) in &entries {
        writer.add(key, version).await.unwrap();
    }
    let (info, _) = writer.finish().await.unwrap();
    if sequence == 1 {
        println!(
            "key file written: {:.0} thousand keys/s",
            count as f64 / start.elapsed().as_secs_f64() / 1e3
        );
    }
    let kvset = KvsetRecord { no: lease.no(), info, ..KvsetRecord::default() };
    let change = Change::AddKvset { place: Place::Root, position: Position::Top, kvset };
    apply(context, tree, Edit { changes: vec![change] }).await
}

async fn apply(context: &JobContext, tree: &Arc<TreeState>, edit: Edit) -> Arc<TreeState> {
    let opened = context.opener.open_added(tree, &edit).await.unwrap();
    let after = Arc::new(tree.apply_opened(&edit, &opened).unwrap());
    tree.retire_dropped(&after);
    after
}

async fn look_up(name: &str, tree: &TreeState, keys: impl Fn(u64) -> [u8; 20]) {
    let mut random = SplitMix64::new(9);
    for round in 0..2 {
        let start = Instant::now();
        let (mut found, mut searched) = (0, 0);
        while searched < 500_000 {
            let key = keys(random.below(KEYS));
            let version = tree.get(&key, KeyHash::of(&key), SequenceNo::MAX - 1, 0).await.unwrap();
            found += u64::from(version.is_some());
            searched += 1;
        }
        if round > 0 {
            let rate = searched as f64 / start.elapsed().as_secs_f64() / 1e6;
            println!("{name}: {rate:.2} million look-ups/s, {found} of {searched} found");
        }
    }
}

#[test]
#[ignore = "measures"]
fn measure() {
    block_on(async {
        let bench = Bench::with_cache(512 << 20).await;
        let segments = Segments::new(&bench.objects, &bench.cache);
        let opener = Opener { objects: bench.objects.clone(), segments, cache: bench.cache.clone() };
        let policy = MediaPolicy::from(PolicyTemplate::StagingMaxCapacity);
        let context = JobContext {
            opener,
            placement: policy.resolve(&["fast".to_owned(), "slow".to_owned()], "fast").unwrap(),
            key_files: KeyFileOptions::default(),
            segment_bytes: 64 << 20,
            leaf_bytes: 128 << 20,
            batch_bytes: 64 << 20,
            snapshots: Vec::new(),
            now_s: 0,
        };
        let mut tree = Arc::default();
        let per_flush = KEYS / 16;
        for no in 0..16 {
            tree = flush(&context, &tree, no * per_flush..(no + 1) * per_flush, 1 + no * per_flush).await;
        }
        look_up("16 kvsets at the root", &tree, key).await;
        for _ in 0..4 {
            let numbers: Vec<_> = tree.root[tree.root.len() - 4..].iter().map(|kvset| kvset.no()).collect();
            let start = Instant::now();
            let output = spill(&context, &tree, &numbers).await.unwrap();
            let bytes = output.value_bytes_written as f64;
            let rate = bytes / start.elapsed().as_secs_f64() / 1e6;
            let amplification = output.value_bytes_read as f64 / bytes;
            println!("spill: {rate:.0} MB/s of values, {amplification:.2} bytes read for each");
            tree = apply(&context, &tree, output.edit).await;
        }
        println!("{} leaves of {} kvsets", tree.leaves.len(), tree.leaves[0].kvsets.len());
        look_up("kvsets in leaves", &tree, key).await;
        let start = Instant::now();
        for leaf in tree.leaves.clone() {
            let numbers: Vec<_> = leaf.kvsets.iter().map(|kvset| kvset.no()).collect();
            let output = compact(&context, &tree, leaf.no, &numbers, &Default::default()).await.unwrap();
            tree = apply(&context, &tree, output.edit).await;
        }
        let rate = KEYS as f64 / start.elapsed().as_secs_f64() / 1e6;
        println!("compaction: {rate:.2} million keys/s; now {} leaves", tree.leaves.len());
        look_up("one kvset a leaf", &tree, key).await;
        look_up("absent keys", &tree, |no| key(no + (1 << 40))).await;
        let visibility = Visibility { snapshot: SequenceNo::MAX - 1, now_s: 0, tombstones: Arc::default() };
        let mut view = View::new(tree.sources(), visibility);
        for direction in [Direction::Forward, Direction::Reverse] {
            let start = Instant::now();
            view.seek(direction, None).await.unwrap();
            let mut count = 0;
            while view.step().await.unwrap() {
                count += 1;
            }
            let rate = f64::from(count) / start.elapsed().as_secs_f64() / 1e6;
            println!("{direction:?}: {rate:.2} million keys/s of {count}");
        }
    });
}
