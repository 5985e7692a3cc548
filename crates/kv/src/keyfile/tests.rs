//! Key files as a whole.

use std::collections::BTreeMap;

use bytes::Bytes;
use futures::executor::block_on;
use proptest::prelude::*;
use tanada_base::SplitMix64;

use super::*;
use crate::entry::{Codec, Content, FirstHome, Pointer, RangeTombstone, SequenceNo, Version};
use crate::merge::{Direction, Source, Step};
use crate::objects::ObjectKind;
use crate::testing::Bench;
use crate::{ErrorKind, Result};

/// By key ascending and sequence number descending.
type Model = BTreeMap<(Vec<u8>, std::cmp::Reverse<SequenceNo>), Version>;

fn version(sequence: SequenceNo, seed: u64) -> Version {
    let content = match seed % 4 {
        0 => Content::Deleted,
        1 => Content::Inline(Bytes::from(vec![seed as u8; (seed % 300) as usize])),
        kind => Content::At(Pointer {
            segment: seed % 7,
            offset: seed * 4096,
            stored_len: seed as u32 % 5000,
            len: seed as u32 % 5000 + if kind == 2 { 0 } else { 77 },
            codec: if kind == 2 { Codec::None } else { Codec::Lz4 },
            checksum: seed as u32,
        }),
    };
    let is_apart = matches!(content, Content::At(_));
    let mirror = (is_apart && seed % 5 < 2).then_some(FirstHome { segment: seed % 11, offset: seed << 9 });
    Version { sequence, expires_s: (seed.is_multiple_of(3)).then_some(seed as u32), content, mirror }
}

fn model(entries: impl IntoIterator<Item = (Vec<u8>, SequenceNo, u64)>) -> Model {
    let entry = |(key, sequence, seed)| ((key, std::cmp::Reverse(sequence)), version(sequence, seed));
    entries.into_iter().map(entry).collect()
}

async fn write(bench: &Bench, model: &Model, tombstones: &[RangeTombstone]) -> (KeyFileInfo, KeyFile) {
    let (lease, object) = bench.objects.create(ObjectKind::Keys, None).unwrap();
    let mut writer =
        KeyFileWriter::new(lease.no(), object, bench.objects.buffers(), KeyFileOptions::default());
    for ((key, _), version) in model {
        writer.add(key, version).await.unwrap();
    }
    for tombstone in tombstones {
        writer.add_range_tombstone(tombstone.clone());
    }
    let (info, object) = writer.finish().await.unwrap();
    let no = lease.no();
    let file = KeyFile::open(no, object, lease, &bench.cache, bench.objects.buffers()).await.unwrap();
    (info, file)
}

async fn get(file: &KeyFile, key: &[u8], snapshot: SequenceNo) -> Result<Option<Version>> {
    file.get(key, KeyHash::of(key), snapshot).await
}

async fn settle(cursor: &mut KeyCursor, step: Step) -> Result<()> {
    if step == Step::Load { cursor.load().await } else { Ok(()) }
}

/// What a cursor gives from `bound` on.
async fn walk(
    file: &KeyFile,
    access: Access,
    direction: Direction,
    bound: Option<&[u8]>,
) -> Result<Vec<(Vec<u8>, Version)>> {
    let mut cursor = KeyCursor::new(file.clone(), access);
    let step = cursor.seek(direction, bound)?;
    settle(&mut cursor, step).await?;
    let mut walked = Vec::new();
    while let Some(key) = cursor.key() {
        walked.push((key.to_vec(), cursor.version()?));
        assert_eq!(cursor.sequence(), walked[walked.len() - 1].1.sequence);
        let step = cursor.advance()?;
        settle(&mut cursor, step).await?;
    }
    Ok(walked)
}

fn listed(model: &Model) -> Vec<(Vec<u8>, Version)> {
    model.iter().map(|((key, _), version)| (key.clone(), version.clone())).collect()
}

fn seen(model: &Model, key: &[u8], snapshot: SequenceNo) -> Option<Version> {
    let from = (key.to_vec(), std::cmp::Reverse(snapshot));
    model.range(from..).next().filter(|((found, _), _)| found == key).map(|(_, version)| version.clone())
}

async fn compare(file: &KeyFile, model: &Model, probes: &[Vec<u8>]) {
    let all = listed(model);
    let mut backwards = all.clone();
    backwards.reverse();
    for access in [Access::Cached, Access::Ahead(10_000)] {
        assert_eq!(walk(file, access, Direction::Forward, None).await.unwrap(), all);
        assert_eq!(walk(file, access, Direction::Reverse, None).await.unwrap(), backwards);
    }
    let keys = model.keys().map(|(key, _)| key);
    for key in keys.chain(probes) {
        for snapshot in [0, 1, 3, 10, 500, SequenceNo::MAX] {
            assert_eq!(get(file, key, snapshot).await.unwrap(), seen(model, key, snapshot), "{key:?}");
        }
    }
    for probe in probes {
        let (before, from): (Vec<_>, Vec<_>) = all.iter().cloned().partition(|(key, _)| key < probe);
        assert_eq!(walk(file, Access::Cached, Direction::Forward, Some(probe)).await.unwrap(), from);
        let before: Vec<_> = before.into_iter().rev().collect();
        assert_eq!(walk(file, Access::Cached, Direction::Reverse, Some(probe)).await.unwrap(), before);
    }
}

fn entries() -> impl Strategy<Value = Vec<(Vec<u8>, SequenceNo, u64)>> {
    let key = prop_oneof![
        proptest::collection::vec(0u8..3, 0..5),
        proptest::collection::vec(any::<u8>(), 0..40),
        (0u8..4, 1000usize..9000).prop_map(|(byte, len)| vec![byte; len]),
    ];
    proptest::collection::vec((key, 1u64..20, any::<u32>().prop_map(u64::from)), 0..300)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn key_files_return_added_entries(
        entries in entries(),
        probes in proptest::collection::vec(proptest::collection::vec(0u8..4, 0..6), 8),
    ) {
        block_on(async {
            let bench = Bench::new().await;
            let model = model(entries);
            let (info, file) = write(&bench, &model, &[]).await;
            assert_eq!(info.entries, model.len() as u64);
            assert_eq!(&info, file.info());
            compare(&file, &model, &probes).await;
        });
    }

    #[test]
    fn a_damaged_byte_gives_an_error_or_changes_nothing(entries in entries(), at in any::<prop::sample::Index>(), flip in 1u8..) {
        block_on(async {
            let bench = Bench::new().await;
            let model = model(entries);
            let tombstone = RangeTombstone { start: Bytes::from_static(b"a"), end: None, sequence: 9 };
            let (info, file) = write(&bench, &model, std::slice::from_ref(&tombstone)).await;
            let no = file.no();
            drop(file);
            let (lease, object) = bench.objects.open(ObjectKind::Keys, no).unwrap();
            assert_eq!(object.size_bytes(), info.size_bytes);
            let at = at.index(object.size_bytes() as usize) as u64;
            let byte = object.read_bytes(at, 1).await.unwrap()[0];
            object.write_bytes(at, &[byte ^ flip]).await.unwrap();
            let opened = KeyFile::open(no, object, lease, &bench.cache, bench.objects.buffers()).await;
            let file = match opened {
                Ok(file) => file,
                Err(error) => {
                    assert_eq!(error.kind(), ErrorKind::Corrupted, "{error}");
                    assert!(error.to_string().contains("offset"), "{error}");
                    return;
                }
            };
            assert_eq!(file.info(), &info);
            assert!(file.tombstones().iter().eq([&tombstone]));
            for access in [Access::Cached, Access::Ahead(10_000)] {
                match walk(&file, access, Direction::Forward, None).await {
                    Ok(all) => assert_eq!(all, listed(&model)),
                    Err(error) => assert_eq!(error.kind(), ErrorKind::Corrupted, "{error}"),
                }
            }
            for (key, _) in model.keys() {
                match get(&file, key, 10).await {
                    Ok(version) => assert_eq!(version, seen(&model, key, 10)),
                    Err(error) => assert_eq!(error.kind(), ErrorKind::Corrupted, "{error}"),
                }
            }
        });
    }

    #[test]
    fn any_bytes_are_a_page_or_an_error(mut bytes in proptest::collection::vec(any::<u8>(), 0..600), key: Vec<u8>, sequence: u64) {
        // With a right checksum and plausible numbers, so that everything behind them is reached.
        if bytes.len() >= 24 {
            let restarts = u16::from(bytes[19] % 8).min((bytes.len() as u16 - 24) / 2);
            let entries_end = bytes.len() as u32 - 2 * u32::from(restarts);
            bytes[4..8].copy_from_slice(&5u32.to_be_bytes());
            bytes[8..12].copy_from_slice(&entries_end.to_be_bytes());
            bytes[12..14].copy_from_slice(&1u16.to_be_bytes());
            bytes[18..20].copy_from_slice(&restarts.to_be_bytes());
            bytes[22] = 1 + bytes[22] % 3;
            let checksum = page::checksum(1, &bytes);
            bytes[..4].copy_from_slice(&checksum.to_be_bytes());
        }
        let address = page::PageAddress { no: 5, units: 1 };
        let bytes = Bytes::from(bytes);
        if let Ok(page) = Page::parse(bytes.clone(), 1, address) {
            if let Ok(page) = page.clone().with_heads() {
                let _ = (page.search(&key, sequence), page.search_child(&key, sequence));
            }
            if let Ok(Some(found)) = page.search(&key, sequence) {
                let _ = payload::version(&bytes, found.entry.payload_at, found.entry.end);
            }
            if let Ok(child) = page.search_child(&key, sequence) {
                let _ = payload::page(child.payload);
            }
            let _ = (page.ends_with(&key), FilterPart::parse(&page, 3));
        }
        let _ = footer::parse_tail(&bytes);
    }

    #[test]
    fn a_page_is_searched_alike_with_heads_and_without(
        entries in proptest::collection::btree_set((start(), proptest::collection::vec(0u8..3, 0..12), 0u64..4), 1..60),
        sought in proptest::collection::vec((start(), proptest::collection::vec(0u8..3, 0..12), 0u64..4), 1..40),
        is_index: bool,
    ) {
        let entries = entries.into_iter().map(|(start, rest, sequence)| ([start, rest].concat(), std::cmp::Reverse(sequence)));
        let entries: std::collections::BTreeSet<_> = entries.collect();
        let kind = if is_index { page::PageKind::Index } else { page::PageKind::Leaf };
        let mut builder = builder::PageBuilder::new(kind, 4096);
        for (index, (key, std::cmp::Reverse(sequence))) in entries.iter().enumerate() {
            let mut payload = Vec::new();
            let address = page::PageAddress { no: index as u32, units: 1 };
            payload::put_page(&mut payload, *sequence, address);
            builder.add(key, &payload);
        }
        let bytes = builder.finish(5);
        let (address, bytes) = (bytes.address, bytes.seal(1, 0, 0));
        let page = Page::parse(bytes.into(), 1, address).unwrap();
        let with_heads = page.clone().with_heads().unwrap();
        let of_entries = entries.iter().map(|(key, sequence)| (key.clone(), sequence.0));
        let of_others = sought.into_iter().map(|(start, rest, sequence)| ([start, rest].concat(), sequence));
        for (key, sequence) in of_entries.chain(of_others) {
            let found = |page: &Page| page.search(&key, sequence).unwrap().map(|found| (found.at, found.is_equal));
            assert_eq!(found(&page), found(&with_heads), "{key:?} {sequence}");
            let child = |page: &Page| page.search_child(&key, sequence).unwrap().end;
            assert_eq!(child(&page), child(&with_heads), "{key:?} {sequence}");
            // And both as a list of all would be.
            let is_before = |entry: &&(Vec<u8>, std::cmp::Reverse<u64>)| **entry < (key.clone(), std::cmp::Reverse(sequence));
            let before = entries.iter().filter(is_before).count();
            let expected = entries.iter().nth(before).map(|entry| entry.0 == key);
            assert_eq!(found(&page).map(|found| found.1), expected);
        }
    }
}

/// What keys of a page begin with: often all of them with the same.
fn start() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![8 => Just(b"common".to_vec()), 1 => Just(Vec::new()), 1 => proptest::collection::vec(any::<u8>(), 0..7)]
}

#[test]
fn a_file_of_many_pages_has_an_index_of_levels() {
    block_on(async {
        let bench = Bench::with_cache(256 << 10).await;
        let mut random = SplitMix64::new(3);
        let entries = (0..60_000u64).map(|i| {
            let no = random.below(40_000);
            (
                format!("a key that is rather long, number {no:08}").into_bytes(),
                i + 1,
                random.next_u64() >> 32,
            )
        });
        let model = model(entries);
        let (info, file) = write(&bench, &model, &[]).await;
        assert!(info.size_bytes > 1 << 20);
        let all = listed(&model);
        assert_eq!(walk(&file, Access::Ahead(256 << 10), Direction::Forward, None).await.unwrap(), all);
        assert_eq!(walk(&file, Access::Cached, Direction::Forward, None).await.unwrap(), all);
        for (index, (key, _)) in model.keys().enumerate().step_by(37) {
            let snapshot = random.below(60_000);
            assert_eq!(get(&file, key, snapshot).await.unwrap(), seen(&model, key, snapshot));
            let absent = [key, &b"x"[..]].concat();
            assert_eq!(get(&file, &absent, SequenceNo::MAX).await.unwrap(), None);
            if index % 50 == 0 {
                let from = walk(&file, Access::Cached, Direction::Forward, Some(&absent)).await.unwrap();
                assert_eq!(from.len(), all.iter().filter(|(key, _)| *key > absent).count());
            }
        }
    });
}

#[test]
fn the_longest_keys_and_many_versions_of_one() {
    block_on(async {
        let bench = Bench::new().await;
        let mut entries = Vec::new();
        for byte in 0..5 {
            let mut key = vec![7; crate::LONGEST_KEY];
            key[crate::LONGEST_KEY - 1] = byte;
            entries.extend((1..4).map(|sequence| (key.clone(), sequence, u64::from(byte) * 9 + sequence)));
        }
        entries.extend((1..3000).map(|sequence| (b"many".to_vec(), sequence, sequence)));
        let model = model(entries);
        let (info, file) = write(&bench, &model, &[]).await;
        assert_eq!(info.last_key, Bytes::from_static(b"many"));
        compare(&file, &model, &[vec![7; 100], b"many".to_vec(), vec![]]).await;
        for snapshot in (0..3100).step_by(7) {
            assert_eq!(get(&file, b"many", snapshot).await.unwrap(), seen(&model, b"many", snapshot));
        }
    });
}

/// Of keys that begin alike for long an index page has more than two, or the levels would be as many as there are bits
/// in the number of pages.
#[test]
fn an_index_of_keys_that_begin_alike_has_few_levels() {
    for (common, page_bytes) in [(100, 4096), (1700, 4096), (4050, 4096), (6000, 4096), (65_490, 65_536)] {
        block_on(async {
            let bench = Bench::new().await;
            let (lease, object) = bench.objects.create(ObjectKind::Keys, Some("fast")).unwrap();
            let options = KeyFileOptions { page_bytes, ..KeyFileOptions::default() };
            let mut writer = KeyFileWriter::new(lease.no(), object, bench.objects.buffers(), options);
            let keys = if common < 65_000 { 900u32 } else { 200 };
            let key = |no: u32| [vec![b'a'; common], no.to_be_bytes().to_vec()].concat();
            for no in 0..keys {
                let content = Content::Inline(Bytes::from(vec![no as u8; 1000]));
                writer.add(&key(no), &Version::new(1, None, content)).await.unwrap();
            }
            let (_, object) = writer.finish().await.unwrap();
            let no = lease.no();
            let file = KeyFile::open(no, object, lease, &bench.cache, bench.objects.buffers()).await.unwrap();
            assert!(file.levels() <= 5, "{} levels of keys with {common} bytes in common", file.levels());
            for no in 0..keys {
                let found = get(&file, &key(no), 1).await.unwrap();
                let expected = Content::Inline(Bytes::from(vec![no as u8; 1000]));
                assert_eq!(found.map(|version| version.content), Some(expected));
                assert_eq!(get(&file, &[key(no), vec![0]].concat(), 1).await.unwrap(), None);
            }
        });
    }
}

#[test]
fn unsorted_and_oversized_keys_are_refused() {
    block_on(async {
        let bench = Bench::new().await;
        let (lease, object) = bench.objects.create(ObjectKind::Keys, Some("fast")).unwrap();
        let mut writer =
            KeyFileWriter::new(lease.no(), object, bench.objects.buffers(), KeyFileOptions::default());
        writer.add(b"b", &version(5, 1)).await.unwrap();
        for (key, sequence) in [(&b"a"[..], 9), (b"b", 5), (b"b", 6), (&vec![255; crate::LONGEST_KEY + 1], 1)]
        {
            let error = writer.add(key, &version(sequence, 1)).await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidInput);
        }
        writer.add(b"b", &version(4, 1)).await.unwrap();
    });
}

#[test]
fn a_filter_that_is_held_is_not_read_again() {
    block_on(async {
        let bench = Bench::new().await;
        let entries = (0..20_000u64).map(|no| (no.to_be_bytes().to_vec(), 1, 3 * no + 1));
        let (_, file) = write(&bench, &model(entries), &[]).await;
        let absent = |no: u64| [&no.to_be_bytes()[..], b"absent"].concat();
        let filter_loads = async || {
            let before = bench.cache.counters().loads;
            for no in 0..1000 {
                let key = absent(no);
                assert!(get(&file, &key, 9).await.unwrap().is_none());
            }
            bench.cache.counters().loads - before
        };
        let (reserved, budget) = (bench.cache.reserved_bytes(), bench.cache.budget_bytes());
        file.hold_filter(4).await.unwrap();
        let bytes = bench.cache.reserved_bytes();
        assert!(reserved == 0 && bytes >= 25_000, "{bytes} of {budget}");
        // One lookup in a hundred passes the filter, and reads a leaf.
        let held = filter_loads().await;
        assert!(held < 40, "{held}");
        for no in (0..20_000u64).step_by(97) {
            assert!(get(&file, &no.to_be_bytes(), 9).await.unwrap().is_some());
        }
        drop(file);
        assert_eq!(bench.cache.reserved_bytes(), 0);
    });
}

/// Lookups failed though the keys were there.
#[test]
fn a_damaged_filter_lets_every_key_pass() {
    block_on(async {
        let bench = Bench::new().await;
        let entries = (0..20_000u64).map(|no| (no.to_be_bytes().to_vec(), 1, 3 * no + 1));
        let (info, file) = write(&bench, &model(entries), &[]).await;
        let object = bench.objects.find(ObjectKind::Keys, file.no()).unwrap();
        for offset in (0..info.size_bytes).step_by(4096) {
            let header = object.read_bytes(offset, 24).await.unwrap();
            if header[22] == page::PageKind::Filter as u8 {
                object.write_bytes(offset + 50, &[0xee; 100]).await.unwrap();
            }
        }
        let _ = file.hold_filter(4).await;
        for no in (0..20_000u64).step_by(7) {
            assert!(get(&file, &no.to_be_bytes(), 9).await.unwrap().is_some());
            let absent = [&no.to_be_bytes()[..], b"absent"].concat();
            assert!(get(&file, &absent, 9).await.unwrap().is_none());
        }
    });
}
