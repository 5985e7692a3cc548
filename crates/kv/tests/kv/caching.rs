//! What stays in memory when it moves on the devices.

use tanada_kv::blocking::wait;
use tanada_kv::{
    Compression, CursorOptions, Database, DatabaseSettings, PolicyTemplate, Store, StoreSettings,
    WriteOptions,
};

use crate::volumes::Bench;

fn key(no: u64) -> [u8; 8] {
    no.to_be_bytes()
}

/// A value that lies apart from its key.
fn value(no: u64) -> Vec<u8> {
    let mut random = tanada_base::SplitMix64::new(no);
    (0..800).map(|_| random.below(16) as u8).collect()
}

fn store(bench: &Bench, compression: Compression) -> (Database, Store) {
    let settings = DatabaseSettings { memory_bytes: 64 << 20, ..DatabaseSettings::default() };
    let created = Database::create(&bench.volume, "test", &settings, bench.environment.clone());
    let database = wait(created).unwrap();
    let settings = StoreSettings { mirrors: false, compression, ..StoreSettings::default() };
    let store = wait(database.create_store("a", &settings)).unwrap();
    (0..2000).for_each(|no| wait(store.put(&key(no), &value(no))).unwrap());
    (database, store)
}

/// Reads some, and says how much of them came from the class of values that have moved.
fn read(bench: &Bench, store: &Store, numbers: impl Iterator<Item = u64>) -> u64 {
    let before = bench.read_from("slow");
    for no in numbers {
        assert_eq!(wait(store.get(&key(no))).unwrap().unwrap(), value(no));
    }
    bench.read_from("slow") - before
}

#[test]
fn cached_values_stay_cached_when_jobs_move_them() {
    let bench = Bench::with_classes(64 << 20, 512 << 20);
    let (database, store) = store(&bench, Compression::None);
    wait(store.set_policy(&PolicyTemplate::StagingOnly.into())).unwrap();
    wait(store.compact()).unwrap();
    assert_eq!(read(&bench, &store, (0..2000).step_by(2)), 0, "all are on the fast class");
    wait(store.set_policy(&PolicyTemplate::StagingMaxCapacity.into())).unwrap();
    wait(store.compact()).unwrap();
    assert_eq!(read(&bench, &store, (0..2000).step_by(2)), 0);
    assert!(read(&bench, &store, (1..2000).step_by(2)) > 800 * 1000);
    // A newer value is not taken for the older one.
    wait(store.put(&key(0), &value(7))).unwrap();
    wait(store.compact()).unwrap();
    assert_eq!(wait(store.get(&key(0))).unwrap().unwrap(), value(7));
    wait(database.close()).unwrap();
}

#[test]
fn values_read_in_a_memtable_stay_cached_after_its_flush() {
    for compression in [Compression::None, Compression::Lz4, Compression::Zstd] {
        let bench = Bench::with_classes(64 << 20, 512 << 20);
        let (database, store) = store(&bench, compression);
        assert_eq!(read(&bench, &store, (0..2000).step_by(2)), 0, "all are in memory");
        wait(store.compact()).unwrap();
        assert_eq!(read(&bench, &store, (0..2000).step_by(2)), 0, "{compression:?}");
        assert!(read(&bench, &store, (1..2000).step_by(2)) > 300 * 1000);
        wait(database.close()).unwrap();
    }
}

#[test]
fn new_versions_of_cached_keys_are_cached_at_flush() {
    let bench = Bench::with_classes(64 << 20, 512 << 20);
    let (database, store) = store(&bench, Compression::None);
    wait(store.compact()).unwrap();
    read(&bench, &store, (0..2000).step_by(2));
    let snapshot = database.snapshot();
    (0..2000).for_each(|no| wait(store.put(&key(no), &value(no + 1))).unwrap());
    wait(store.compact()).unwrap();
    let read = |step_from: u64, newer: u64| {
        let before = bench.read_from("slow");
        for no in (step_from..2000).step_by(2) {
            let got = match newer {
                0 => wait(store.get_at(&snapshot, &key(no))),
                _ => wait(store.get(&key(no))),
            };
            assert_eq!(got.unwrap().unwrap(), value(no + newer));
        }
        bench.read_from("slow") - before
    };
    assert_eq!(read(0, 1), 0);
    assert!(read(1, 1) > 800 * 1000);
    // What came before is read by whoever can see it, and does not take the place of what is newer.
    assert!(read(0, 0) > 800 * 1000);
    assert_eq!(read(0, 1), 0);
    drop(snapshot);
    wait(database.close()).unwrap();
}

/// What a lookup found is known from then on, until something says otherwise; what said so may be gone by the next
/// lookup, along with what it deleted.
#[test]
fn cached_lookups_end_when_the_key_is_deleted() {
    let bench = Bench::with_classes(64 << 20, 512 << 20);
    let (database, store) = store(&bench, Compression::None);
    wait(store.compact()).unwrap();
    assert!(read(&bench, &store, 0..400) > 0);
    let snapshot = database.snapshot();
    (0..100).for_each(|no| wait(store.delete(&key(no))).unwrap());
    wait(store.delete_range(&key(100), Some(&key(200)))).unwrap();
    wait(store.delete_prefix(&key(300)[..7])).unwrap();
    let are_there = |numbers: std::ops::Range<u64>| {
        numbers.filter(|no| wait(store.get(&key(*no))).unwrap().is_some()).count()
    };
    for is_held in [true, true, false] {
        assert_eq!((are_there(0..200), are_there(200..256), are_there(256..512)), (0, 56, 0), "{is_held}");
        let seen = (0..400).filter(|no| wait(store.get_at(&snapshot, &key(*no))).unwrap().is_some());
        assert_eq!(seen.count(), 400);
        if is_held {
            wait(store.compact()).unwrap();
        }
    }
    drop(snapshot);
    wait(store.compact()).unwrap();
    assert_eq!((are_there(0..200), are_there(200..256), are_there(256..512)), (0, 56, 0));
    // Without a snapshot deletes and what they delete go at once.
    (200..256).for_each(|no| wait(store.delete(&key(no))).unwrap());
    wait(store.compact()).unwrap();
    assert_eq!(are_there(0..512), 0);
    wait(database.close()).unwrap();
}

#[test]
fn lookups_cached_from_a_memtable_end_when_its_range_is_deleted() {
    let bench = Bench::with_classes(64 << 20, 512 << 20);
    let database = bench.create();
    let store = wait(database.create_store("a", &StoreSettings::default())).unwrap();
    (0..40).for_each(|no| wait(store.put(&key(no), &value(no))).unwrap());
    assert_eq!(read(&bench, &store, 0..40), 0);
    wait(store.delete_range(&key(10), Some(&key(20)))).unwrap();
    // They fill the table, which is flushed.
    let before = database.statistics().since_opening.flushes;
    let mut others = 1000;
    while database.statistics().since_opening.flushes == before {
        wait(store.put(&key(others), &value(others))).unwrap();
        others += 1;
    }
    for no in 0..40 {
        let is_there = wait(store.get(&key(no))).unwrap().is_some();
        assert_eq!(is_there, !(10..20).contains(&no), "{no}");
    }
    wait(database.close()).unwrap();
}

#[test]
fn bulk_loaded_keys_are_found_in_spite_of_older_sequence_numbers() {
    let bench = Bench::with_classes(64 << 20, 512 << 20);
    let (database, store) = store(&bench, Compression::None);
    wait(store.compact()).unwrap();
    let mut load = wait(store.bulk_load()).unwrap();
    wait(store.put(&key(5000), &value(5000))).unwrap();
    read(&bench, &store, 0..100);
    let snapshot = database.snapshot();
    for no in 0..100 {
        wait(load.put(&key(no), &value(no + 1))).unwrap();
    }
    read(&bench, &store, 0..100);
    wait(load.finish()).unwrap();
    for _ in 0..2 {
        for no in 0..100 {
            assert_eq!(wait(store.get(&key(no))).unwrap().unwrap(), value(no + 1), "{no}");
            assert_eq!(wait(store.get_at(&snapshot, &key(no))).unwrap().unwrap(), value(no), "{no}");
        }
    }
    drop(snapshot);
    wait(database.close()).unwrap();
}

/// A future that finds what it needs in memory is not to carry what another one would need.
#[test]
fn operations_are_small_futures() {
    let bench = Bench::new();
    let (_database, store) = store(&bench, Compression::None);
    let options = WriteOptions::default();
    let update = store.update(b"a", |_| None, &options);
    let sizes = [size_of_val(&store.get(b"a")), size_of_val(&store.put(b"a", b"b")), size_of_val(&update)];
    assert!(sizes.iter().all(|bytes| *bytes <= 2048), "{sizes:?}");
}

#[test]
fn short_values_have_memory_of_their_own() {
    let bench = Bench::with_classes(64 << 20, 512 << 20);
    let database = bench.create();
    let store = wait(database.create_store("a", &StoreSettings::default())).unwrap();
    (0..100).for_each(|no| wait(store.put(&key(no), b"tea with milk")).unwrap());
    for is_written_out in [false, true] {
        if is_written_out {
            wait(store.compact()).unwrap();
        }
        // A value in memory that many share would keep all of it.
        let found = wait(store.get(&key(7))).unwrap().unwrap();
        assert_eq!((&*found, found.is_unique()), (&b"tea with milk"[..], true), "{is_written_out}");
        let mut cursor = store.cursor(CursorOptions::default());
        let (_, found) = wait(cursor.next()).unwrap().unwrap();
        assert_eq!((&*found, found.is_unique()), (&b"tea with milk"[..], true), "{is_written_out}");
    }
    wait(database.close()).unwrap();
}
