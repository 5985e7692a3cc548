//! What is dead gives its space back, and what is written for long stays within bounds.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use tanada_base::SplitMix64;
use tanada_kv::blocking::wait;
use tanada_kv::{Database, ErrorKind, PolicyTemplate, Store, StoreSettings, WriteOptions};

use crate::volumes::{Bench, value};

fn settings() -> StoreSettings {
    StoreSettings {
        leaf_bytes: 4 << 20,
        value_segment_bytes: 1 << 20,
        mirrors: false,
        ..StoreSettings::default()
    }
}

/// Bytes of key files and segments on all classes, without the log's own.
fn held_bytes(database: &Database) -> u64 {
    let statistics = database.statistics();
    let all = statistics.classes.iter().map(|class| class.segment_bytes + class.key_bytes - class.log_bytes);
    all.sum()
}

/// Waits until little is held, as the engine comes to it by itself.
fn comes_down_to(database: &Database, most_bytes: u64) {
    let began = Instant::now();
    while held_bytes(database) > most_bytes {
        assert!(began.elapsed() < Duration::from_secs(120), "{} bytes are held", held_bytes(database));
        std::thread::sleep(Duration::from_millis(50));
    }
}

fn fill(store: &Store, count: u64, version: u64) {
    for no in 0..count {
        wait(store.put_with(&no.to_be_bytes(), &value(no, version), &WriteOptions::within(1000))).unwrap();
    }
}

/// 16 MB of values, written eight times over, with 112 MiB for all of it: nobody is told that there is no space.
#[test]
fn repeated_overwrites_stay_within_the_space_bound() {
    const KEYS: u64 = 16_000;
    let bench = Bench::with_classes(32 << 20, 80 << 20);
    let database = bench.create();
    let store = wait(database.create_store("a", &settings())).unwrap();
    fill(&store, KEYS, 0);
    let mut versions = vec![0u64; KEYS as usize];
    let mut random = SplitMix64::new(1);
    let mut most = 0;
    for step in 1..=8 * KEYS {
        let no = random.below(KEYS);
        let written = wait(store.put_with(&no.to_be_bytes(), &value(no, step), &WriteOptions::within(1000)));
        written.unwrap_or_else(|error| panic!("at {step}: {error}"));
        versions[no as usize] = step;
        if step % 1000 == 0 {
            most = most.max(held_bytes(&database));
        }
    }
    for no in 0..KEYS {
        let found = wait(store.get(&no.to_be_bytes())).unwrap().unwrap();
        assert_eq!(found, value(no, versions[no as usize]));
    }
    assert!(most < 76 << 20, "{most} bytes were held");
    wait(database.close()).unwrap();
}

#[test]
fn garbage_stays_within_the_default_space_amplification() {
    const KEYS: u64 = 32_000;
    let bench = Bench::with_classes(64 << 20, 128 << 20);
    let database = bench.create();
    let large = StoreSettings { leaf_bytes: 16 << 20, value_segment_bytes: 4 << 20, ..settings() };
    let store = wait(database.create_store("a", &large)).unwrap();
    let bound = store.settings().space_amplification;
    assert_eq!(bound, 1.3);
    fill(&store, KEYS, 0);
    let mut random = SplitMix64::new(7);
    for step in 1..=4 * KEYS {
        // Half of all writes go to a tenth of the keys.
        let among = if step % 2 == 0 { KEYS } else { KEYS / 10 };
        let no = random.below(among);
        wait(store.put_with(&no.to_be_bytes(), &value(no, step), &WriteOptions::within(1000))).unwrap();
    }
    wait(store.compact()).unwrap();
    let statistics = database.statistics();
    let (held, store) = (statistics.classes[1].segment_bytes, &statistics.stores[0]);
    // Each segment has a chunk that is not full.
    let not_full = store.value_segments as u64 * bench.volume.chunk_bytes();
    let most = bound * store.value_bytes as f64 + not_full as f64;
    assert!((held as f64) < most, "{held} bytes are held, {most} allowed: {statistics:#?}");
    wait(database.close()).unwrap();
}

/// Each kvset that is moved down lies behind all before it.
#[test]
fn ascending_keys_fill_leaves() {
    let bench = Bench::with_classes(64 << 20, 64 << 20);
    let database = bench.create();
    let settings = StoreSettings { policy: PolicyTemplate::StagingOnly.into(), ..StoreSettings::default() };
    let store = wait(database.create_store("a", &settings)).unwrap();
    for no in 0..200u64 {
        wait(store.put(&no.to_be_bytes(), b"short")).unwrap();
        if no % 10 == 0 {
            wait(store.compact()).unwrap();
        }
    }
    let statistics = database.statistics();
    assert_eq!(statistics.stores[0].leaves, 1, "{statistics:#?}");
    wait(database.close()).unwrap();
}

/// A queue: keys only grow, and go again but for a few.
#[test]
fn keys_that_only_grow_leave_no_trail_of_leaves() {
    const ROUND: u64 = 300;
    let bench = Bench::with_classes(64 << 20, 64 << 20);
    let database = bench.create();
    let settings = StoreSettings { leaf_bytes: 256 << 10, ..settings() };
    let store = wait(database.create_store("a", &settings)).unwrap();
    let put = |no: u64| wait(store.put(&no.to_be_bytes(), &value(no, 1))).unwrap();
    let stays = |no: u64| no.is_multiple_of(ROUND);
    let mut most = 0;
    for round in 1..=24u64 {
        (round * ROUND..(round + 1) * ROUND).for_each(put);
        let before = ((round - 1) * ROUND..round * ROUND).filter(|no| !stays(*no));
        before.for_each(|no| wait(store.delete(&no.to_be_bytes())).unwrap());
        wait(store.compact()).unwrap();
        most = most.max(database.statistics().stores[0].leaves);
    }
    assert!(most <= 4, "{most} leaves");
    wait(database.close()).unwrap();
    drop((store, database));
    let database = bench.open();
    assert_eq!(wait(database.check()).unwrap().findings, Vec::<String>::new());
    let store = database.open_store("a").unwrap();
    for no in 0..25 * ROUND {
        let is_there = no >= 24 * ROUND || (stays(no) && no > 0);
        let expected = is_there.then(|| value(no, 1).into());
        assert_eq!(wait(store.get(&no.to_be_bytes())).unwrap(), expected, "{no}");
    }
    wait(database.close()).unwrap();
}

/// Each time a few kilobytes more: a segment takes a chunk at least, however little is in it.
#[test]
fn small_segments_are_brought_together() {
    let bench = Bench::with_classes(64 << 20, 64 << 20);
    let database = bench.create();
    let settings = StoreSettings { value_segment_bytes: 64 << 10, ..settings() };
    let store = wait(database.create_store("a", &settings)).unwrap();
    let mut most = 0;
    for round in 0..60u64 {
        for no in round * 10..(round + 1) * 10 {
            // Over the whole range of keys.
            wait(store.put(&no.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes(), &value(no, 1))).unwrap();
        }
        wait(store.compact()).unwrap();
        most = most.max(held_bytes(&database));
    }
    // Eleven segments, one in the making, and their keys.
    assert!(most <= 16 * (256 << 10), "{most} bytes were held");
    assert_eq!(wait(database.check()).unwrap().findings, Vec::<String>::new());
    for no in 0..600u64 {
        let key = no.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes();
        assert_eq!(wait(store.get(&key)).unwrap().unwrap(), value(no, 1));
    }
    wait(database.close()).unwrap();
}

/// Writes new keys from `from` on until there is no space; the first that could not be written.
fn fill_up(store: &Store, from: u64) -> u64 {
    for no in from.. {
        match wait(store.put(&no.to_be_bytes(), &value(no, 1))) {
            Ok(()) => {}
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::NoSpace, "{error}");
                return no;
            }
        }
    }
    unreachable!()
}

/// What is refused for want of space can be written when something was deleted, without anything from outside; also
/// when the database was opened again.
#[test]
fn a_full_volume_accepts_deletes() {
    for (reopens, leaf_bytes) in [(false, 4 << 20), (true, 4 << 20), (true, 256 << 10)] {
        let bench = Bench::with_classes(12 << 20, 20 << 20);
        let mut database = bench.create();
        let settings = StoreSettings { leaf_bytes, ..settings() };
        let mut store = wait(database.create_store("a", &settings)).unwrap();
        let mut first = 0;
        for round in 0..2 {
            let mut next = fill_up(&store, first);
            assert!(next - first > 5_000, "{first} to {next}, round {round}");
            if reopens {
                wait(database.close()).unwrap();
                drop((store, database));
                database = bench.open();
                store = database.open_store("a").unwrap();
                // What the last opening did not come to may have given some space back.
                next = fill_up(&store, next);
            }
            assert_eq!(wait(store.get(&(next - 1).to_be_bytes())).unwrap().unwrap(), value(next - 1, 1));
            wait(store.delete(&next.to_be_bytes())).unwrap();
            wait(store.delete_range(&first.to_be_bytes(), Some(&next.to_be_bytes()))).unwrap();
            wait(store.compact()).unwrap();
            first = next;
        }
        assert_eq!(wait(database.check()).unwrap().findings, Vec::<String>::new());
        wait(database.close()).unwrap();
    }
}

/// In a volume of a few chunks each opening takes some of them, and so does each delete: one opening for each delete,
/// as programs do that end after it.
#[test]
fn a_small_full_volume_accepts_deletes_key_by_key() {
    for mebibytes in [32, 40] {
        let bench = Bench::with_layout(1 << 20, &[("only", mebibytes << 20)]);
        let mut database = bench.create();
        let mut store = wait(database.create_store("a", &StoreSettings::default())).unwrap();
        let mut next = 0;
        for round in 0..2 {
            let first = next;
            next = fill_up(&store, first);
            assert!(next - first > 1000, "{first} to {next} of {mebibytes} MiB, round {round}");
            let mut reopen = |after: &str| {
                let closed = wait(database.close());
                closed.unwrap_or_else(|error| panic!("{mebibytes} MiB, round {round}, {after}: {error}"));
                let opened = bench.try_open();
                database =
                    opened.unwrap_or_else(|error| panic!("{mebibytes} MiB, round {round}, {after}: {error}"));
                database.open_store("a").unwrap()
            };
            store = reopen("full");
            for no in first..(first + 24) {
                wait(store.delete(&no.to_be_bytes())).unwrap();
                store = reopen("a delete");
                assert_eq!(wait(store.get(&no.to_be_bytes())).unwrap(), None);
            }
            wait(store.delete_range(&first.to_be_bytes(), Some(&next.to_be_bytes()))).unwrap();
            store = reopen("a range delete");
            wait(store.compact()).unwrap();
            assert_eq!(wait(store.get(&(next - 1).to_be_bytes())).unwrap(), None);
            assert_eq!(wait(database.check()).unwrap().findings, Vec::<String>::new());
        }
        wait(database.close()).unwrap();
    }
}

/// A log segment is made for each of these, which takes more than what is free may be for.
#[test]
fn large_values_leave_space_for_deletes() {
    let bench = Bench::with_classes(16 << 20, 48 << 20);
    let database = bench.create();
    let store = wait(database.create_store("a", &settings())).unwrap();
    let large = vec![7; 7 << 20];
    for round in 0..3u8 {
        let refused =
            (0..20).find_map(|no| wait(store.put(&[round, no], &large)).err().map(|error| (no, error)));
        let (no, error) = refused.unwrap();
        assert_eq!(error.kind(), ErrorKind::NoSpace);
        assert!(
            error.to_string().contains("nearly full") && error.to_string().contains("this takes 8 MiB"),
            "{error}"
        );
        assert!(no > 1, "{no} in round {round}");
        wait(store.delete_prefix(&[round])).unwrap();
        wait(store.compact()).unwrap();
    }
    assert_eq!(wait(database.check()).unwrap().findings, Vec::<String>::new());
    wait(database.close()).unwrap();
}

#[test]
fn deletes_give_their_space_back_by_themselves() {
    let bench = Bench::new();
    let database = bench.create();
    let store = wait(database.create_store("a", &settings())).unwrap();
    fill(&store, 16_000, 1);
    assert!(held_bytes(&database) > 12 << 20);
    wait(store.delete_prefix(b"")).unwrap();
    wait(store.put(b"last", b"short")).unwrap();
    wait(database.close()).unwrap();
    let database = bench.open();
    comes_down_to(&database, 2 << 20);
    wait(database.close()).unwrap();
}

/// As long as the memtable with them was not written out for another reason, nothing came free.
#[test]
fn deletes_give_their_space_back_without_further_writes() {
    let bench = Bench::new();
    let database = bench.create();
    let [ranged, single] =
        ["ranged", "single"].map(|name| wait(database.create_store(name, &settings())).unwrap());
    for store in [&ranged, &single] {
        fill(store, 8000, 1);
        wait(store.compact()).unwrap();
    }
    assert!(held_bytes(&database) > 12 << 20);
    // Those who have work notice at once, and nobody has any now.
    std::thread::sleep(Duration::from_millis(500));
    wait(ranged.delete_prefix(b"")).unwrap();
    (0..8000u64).for_each(|no| {
        wait(single.delete_with(&no.to_be_bytes(), &WriteOptions::within(1000))).unwrap();
    });
    comes_down_to(&database, 2 << 20);
    wait(database.close()).unwrap();
}

#[test]
fn compaction_frees_versions_of_released_snapshots() {
    let bench = Bench::new();
    let database = bench.create();
    let store = wait(database.create_store("a", &settings())).unwrap();
    fill(&store, 8000, 1);
    let snapshot = database.snapshot();
    fill(&store, 8000, 2);
    wait(store.compact()).unwrap();
    let versions = || database.statistics().stores[0].versions;
    assert_eq!(versions(), 16_000);
    drop(snapshot);
    wait(store.compact()).unwrap();
    assert_eq!(versions(), 8000);
    assert!(held_bytes(&database) < 14 << 20);
    wait(database.close()).unwrap();
}

/// Who goes on writing for so long that his writes are many times what was there is no reason to wait for him.
#[test]
fn compaction_ends_beside_continuous_writers() {
    const MAX_WRITES: u64 = 2_000_000;
    let bench = Bench::new();
    let database = bench.create();
    let store =
        wait(database.create_store("a", &StoreSettings { leaf_bytes: 1 << 20, ..settings() })).unwrap();
    fill(&store, 5000, 1);
    let (has_ended, written) = (AtomicBool::new(false), AtomicU64::new(0));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut random = SplitMix64::new(1);
            while !has_ended.load(Ordering::Relaxed) && written.fetch_add(1, Ordering::Relaxed) < MAX_WRITES {
                let (no, version) = (random.below(5000), 2 + random.below(9));
                wait(store.put_with(&no.to_be_bytes(), &value(no, version), &WriteOptions::within(1000)))
                    .unwrap();
            }
        });
        while written.load(Ordering::Relaxed) < 1000 {
            std::thread::yield_now();
        }
        let compacted = wait(store.compact());
        has_ended.store(true, Ordering::Relaxed);
        compacted.unwrap();
    });
    assert!(written.into_inner() < MAX_WRITES, "the compaction ended with the writes alone");
    wait(store.compact()).unwrap();
    let statistics = database.statistics().stores[0].clone();
    assert_eq!((statistics.root_kvsets, statistics.leaf_kvsets), (0, statistics.leaves), "{statistics:?}");
    assert_eq!(wait(database.check()).unwrap().findings, Vec::<String>::new());
    wait(database.close()).unwrap();
}

/// An object that is none of the database's, and takes all chunks but so many.
fn filler(bench: &Bench, left_chunks: u64) -> tanada_volume::Object {
    let filler = bench.volume.create_object("filler", &tanada_volume::Attributes::default()).unwrap();
    refill(bench, &filler, left_chunks);
    filler
}

fn refill(bench: &Bench, filler: &tanada_volume::Object, left_chunks: u64) {
    let free = || bench.volume.classes().iter().map(|class| class.chunks - class.taken).sum::<u64>();
    let mut no = filler.chunks(0..u64::MAX).len() as u64;
    while free() > left_chunks && wait(filler.write_bytes(no << 18, &[1; 1 << 18])).is_ok() {
        no += 1;
    }
}

/// It had its turn for ever, and with that kept those from their work that could have made room.
#[test]
fn bulk_loads_without_space_are_refused() {
    let bench = Bench::with_classes(4 << 20, 1 << 20);
    let database = bench.create();
    let store = wait(database.create_store("a", &StoreSettings::default())).unwrap();
    fill(&store, 20, 1);
    wait(store.compact()).unwrap();
    let filler = filler(&bench, 0);
    let mut rounds = 0;
    let error = loop {
        rounds += 1;
        assert!(rounds < 200);
        wait(store.delete(&(rounds % 20u64).to_be_bytes())).unwrap();
        refill(&bench, &filler, 0);
        match wait(store.bulk_load()) {
            Ok(load) => drop(load),
            Err(error) => break error,
        }
    };
    assert_eq!(error.kind(), ErrorKind::NoSpace, "{error}");
    drop(filler);
    wait(bench.volume.delete("filler")).unwrap();
    let mut load = wait(store.bulk_load()).unwrap();
    wait(load.put(b"key", b"value")).unwrap();
    wait(load.finish()).unwrap();
    wait(database.close()).unwrap();
}

/// Nobody can make space in its store meanwhile, so there is nothing to wait for. What it had loaded took the space for
/// good, or until the next opening.
#[test]
fn bulk_loads_that_run_out_of_space_return_what_they_wrote() {
    let bench = Bench::with_classes(4 << 20, 24 << 20);
    let database = bench.create();
    let store = wait(database.create_store("a", &StoreSettings::default())).unwrap();
    fill(&store, 20, 1);
    wait(store.compact()).unwrap();
    let taken = || bench.volume.classes().iter().map(|class| class.taken).sum::<u64>();
    let before = taken();
    let mut load = wait(store.bulk_load()).unwrap();
    let refused = (0..40_000u64).find_map(|no| wait(load.put(&no.to_be_bytes(), &[7; 1000])).err());
    assert_eq!(refused.map(|error| error.kind()), Some(ErrorKind::NoSpace));
    let most = taken();
    drop(load);
    while taken() > before + 8 {
        wait(bench.volume.sync()).unwrap();
        std::thread::yield_now();
    }
    assert!(most > before + 32, "{before} {most}");
    let mut load = wait(store.bulk_load()).unwrap();
    wait(load.put(b"key", b"value")).unwrap();
    wait(load.finish()).unwrap();
    for no in 0..20u64 {
        assert_eq!(wait(store.get(&no.to_be_bytes())).unwrap().unwrap(), value(no, 1));
    }
    assert_eq!(wait(database.check()).unwrap().findings, Vec::<String>::new());
    wait(database.close()).unwrap();
}

/// A leaf that finds no space counted as compacted, and the compaction as a success.
#[test]
fn compaction_without_space_is_an_error() {
    for left_chunks in 1..4 {
        let bench = Bench::with_layout(256 << 10, &[("only", 40 << 20)]);
        let database = bench.create();
        let settings =
            StoreSettings { separate_from_bytes: 64 << 10, leaf_bytes: 64 << 20, ..StoreSettings::default() };
        let store = wait(database.create_store("a", &settings)).unwrap();
        fill(&store, 900, 1);
        let snapshot = database.snapshot();
        fill(&store, 450, 2);
        wait(store.compact()).unwrap();
        drop(snapshot);
        std::thread::sleep(Duration::from_millis(300));
        let versions = || database.statistics().stores[0].versions;
        assert_eq!(versions(), 1350);
        let filler = filler(&bench, left_chunks);
        let compacted = wait(store.compact());
        match compacted {
            Ok(()) => assert_eq!(versions(), 900, "with {left_chunks}"),
            Err(error) => assert_eq!(error.kind(), ErrorKind::NoSpace),
        }
        drop(filler);
        wait(bench.volume.delete("filler")).unwrap();
        // Its chunks are free when that is durable.
        wait(bench.volume.sync()).unwrap();
        wait(store.compact()).unwrap();
        assert_eq!(versions(), 900);
        wait(database.close()).unwrap();
    }
}

#[test]
fn compacted_data_are_not_compacted_again() {
    let bench = Bench::new();
    let database = bench.create();
    let store = wait(database.create_store("a", &settings())).unwrap();
    fill(&store, 8000, 1);
    wait(store.compact()).unwrap();
    let before = database.statistics().since_opening.written_by().job_keys;
    wait(store.compact()).unwrap();
    assert_eq!(database.statistics().since_opening.written_by().job_keys, before);
    wait(database.close()).unwrap();
}

#[test]
fn expired_versions_give_their_space_back() {
    let bench = Bench::new();
    let database = bench.create();
    let store = wait(database.create_store("a", &settings())).unwrap();
    let short = WriteOptions { time_to_live_s: Some(2), ..WriteOptions::within(1000) };
    for no in 0..8000u64 {
        wait(store.put_with(&no.to_be_bytes(), &value(no, 1), &short)).unwrap();
    }
    wait(store.compact()).unwrap();
    std::thread::sleep(Duration::from_secs(3));
    wait(store.compact()).unwrap();
    let held = held_bytes(&database);
    assert!(held < 2 << 20, "{held} bytes are held");
    wait(database.close()).unwrap();
}

/// Takes what comes free until nothing was done for a while, and gives all of it back: far sooner than a write is
/// refused.
fn give_back_when_stuck(bench: &Bench, filler: tanada_volume::Object, done: &AtomicU64) {
    let (mut before, mut since) = (done.load(Ordering::Relaxed), Instant::now());
    while since.elapsed() < Duration::from_millis(40) {
        refill(bench, &filler, 0);
        std::thread::sleep(Duration::from_millis(2));
        let now = done.load(Ordering::Relaxed);
        if now != before {
            (before, since) = (now, Instant::now());
        }
    }
    drop(filler);
    wait(bench.volume.delete("filler")).unwrap();
}

/// It was refused, and would have been taken a moment later.
#[test]
fn a_delete_that_finds_no_chunk_free_waits_for_one() {
    let bench = Bench::with_layout(64 << 10, &[("only", 24 << 20)]);
    let database = bench.create();
    let store = wait(database.create_store("a", &settings())).unwrap();
    fill(&store, 4000, 1);
    wait(store.compact()).unwrap();
    let filler = filler(&bench, 0);
    let (deleted, is_given_back) = (AtomicU64::new(0), AtomicBool::new(false));
    let mut after = 0;
    std::thread::scope(|scope| {
        scope.spawn(|| {
            give_back_when_stuck(&bench, filler, &deleted);
            is_given_back.store(true, Ordering::Relaxed);
        });
        while after < 1000 {
            after += u64::from(is_given_back.load(Ordering::Relaxed));
            let no = deleted.load(Ordering::Relaxed) % 4000;
            wait(store.delete(&no.to_be_bytes())).unwrap_or_else(|error| panic!("{no}: {error}"));
            deleted.fetch_add(1, Ordering::Relaxed);
        }
    });
    wait(database.close()).unwrap();
}

/// Each of the deletes goes to another leaf, so that to bring them all down takes space in each.
#[test]
fn a_full_volume_of_many_leaves_accepts_deletes_key_by_key() {
    let bench = Bench::with_layout(64 << 10, &[("fast", 8 << 20), ("slow", 64 << 20)]);
    let database = bench.create();
    let settings =
        StoreSettings { leaf_bytes: 1 << 20, value_segment_bytes: 1 << 20, ..StoreSettings::default() };
    let store = wait(database.create_store("a", &settings)).unwrap();
    let mut random = SplitMix64::new(1);
    let mut next = |from: &mut Vec<u64>| {
        loop {
            let no = random.below(150_000);
            match wait(store.put(&no.to_be_bytes(), &value(no, 1))) {
                Ok(()) => from.push(no),
                Err(error) => {
                    assert_eq!(error.kind(), ErrorKind::NoSpace, "{error}");
                    return;
                }
            }
        }
    };
    for round in 0..2 {
        let mut keys = Vec::new();
        next(&mut keys);
        keys.sort_unstable();
        keys.dedup();
        assert!(keys.len() > 20_000, "{} keys in round {round}", keys.len());
        let (kept, deleted) = keys.split_at(keys.len() / 16);
        for no in deleted {
            wait(store.delete(&no.to_be_bytes())).unwrap_or_else(|error| panic!("round {round}: {error}"));
        }
        wait(store.compact()).unwrap_or_else(|error| panic!("round {round}: {error}"));
        wait(store.put(b"more", &value(1, 1))).unwrap_or_else(|error| panic!("round {round}: {error}"));
        for no in kept.iter().step_by(7) {
            assert_eq!(wait(store.get(&no.to_be_bytes())).unwrap().unwrap(), value(*no, 1));
        }
        for no in deleted.iter().step_by(97) {
            assert_eq!(wait(store.get(&no.to_be_bytes())).unwrap(), None);
        }
    }
    assert_eq!(wait(database.check()).unwrap().findings, Vec::<String>::new());
    wait(database.close()).unwrap();
}

/// A database whose only class is drained has no space for anything, and has when that is over.
#[test]
fn writes_resume_after_a_drain_is_cancelled() {
    let bench = Bench::with_layout(64 << 10, &[("only", 64 << 20)]);
    let database = bench.create();
    let store = wait(database.create_store("a", &settings())).unwrap();
    fill(&store, 4000, 1);
    assert_eq!(wait(database.drain_class("only")).unwrap_err().kind(), ErrorKind::NoSpace);
    let mut refused = 0;
    for no in 0..2000 {
        let made = wait(database.create_store(&format!("store {no}"), &settings()));
        if let Err(error) = made {
            assert_eq!(error.kind(), ErrorKind::NoSpace, "{error}");
            refused += 1;
        }
        if refused == 3 {
            break;
        }
    }
    assert_eq!(refused, 3);
    wait(bench.volume.fill_class("only")).unwrap();
    wait(database.create_store("later", &settings())).unwrap();
    // What waits to be flushed is by then.
    wait(store.compact()).unwrap();
    fill(&store, 4000, 2);
    wait(store.compact()).unwrap();
    for no in (0..4000u64).step_by(11) {
        assert_eq!(wait(store.get(&no.to_be_bytes())).unwrap().unwrap(), value(no, 2));
    }
    wait(database.close()).unwrap();
    drop((store, database));
    let database = bench.open();
    assert_eq!(wait(database.check()).unwrap().findings, Vec::<String>::new());
    assert!(database.open_store("later").is_ok());
    wait(database.close()).unwrap();
}

/// Of each store that was written to the memtable takes a chunk when it is flushed: all of them took the space
/// that is kept for deletes.
#[test]
fn many_stores_that_fill_a_volume_accept_deletes() {
    for classes in [[64 << 20, 64 << 20], [8 << 20, 24 << 20]] {
        let bench = Bench::with_classes(classes[0], classes[1]);
        let database = bench.create();
        let store = |database: &Database, no: u64| -> tanada_kv::Result<Store> {
            let name = format!("s{no}");
            match database.open_store(&name) {
                Ok(store) => Ok(store),
                Err(_) => wait(database.create_store(&name, &StoreSettings::default())),
            }
        };
        let put = |database: &Database, no: u64| wait(store(database, no)?.put(b"key", &no.to_be_bytes()));
        let mut count = 0;
        let full = loop {
            match put(&database, count) {
                Ok(()) => count += 1,
                Err(error) => break error,
            }
            assert!(count < 1000, "nobody said that there is no room");
        };
        assert_eq!(full.kind(), ErrorKind::NoSpace, "{full}");
        assert!(count > 15, "{count}");
        wait(database.close()).unwrap();
        // All of it, in openings that have little to do, a crash among them.
        for opening in 0..4 {
            // Who dropped it without closing it is at an end a moment later.
            let database = loop {
                match bench.try_open() {
                    Err(error) if error.kind() == ErrorKind::Locked => std::thread::yield_now(),
                    opened => break opened.unwrap(),
                }
            };
            for no in (0..count).filter(|no| no % 4 == opening) {
                let store = database.open_store(&format!("s{no}")).unwrap();
                assert_eq!(wait(store.get(b"key")).unwrap().unwrap(), no.to_be_bytes()[..]);
                wait(store.delete_with(b"key", &WriteOptions::sync())).unwrap();
            }
            if opening != 2 {
                wait(database.close()).unwrap();
            }
        }
        let database = bench.open();
        for no in 0..count {
            let store = database.open_store(&format!("s{no}")).unwrap();
            assert_eq!(wait(store.get(b"key")).unwrap(), None);
            wait(store.compact()).unwrap();
        }
        put(&database, 0).unwrap();
        wait(database.close()).unwrap();
    }
}
