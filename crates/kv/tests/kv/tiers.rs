//! Data many times larger than memory, over classes.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use tanada_base::SplitMix64;
use tanada_kv::blocking::wait;
use tanada_kv::{
    CursorOptions, Database, DatabaseOverrides, DatabaseSettings, Environment, ErrorKind, FilterMemory,
    OpenOptions, PolicyTemplate, Store, StoreSettings, ThreadEnvironment, WriteOptions,
};
use tanada_volume::directory::{ClassConfig, Directory, Settings};
use tanada_volume::{Attributes, VolumeSettings};

use crate::volumes::{Bench, value, wait_for_whole_copies};

fn settings() -> StoreSettings {
    StoreSettings { leaf_bytes: 4 << 20, value_segment_bytes: 1 << 20, ..StoreSettings::default() }
}

/// Four writers over 24 MB of values with 4 MB of memory, each its own keys; then all is there, the values are on the
/// slow class, and little is garbage.
#[test]
fn writers_and_readers_over_more_than_memory() {
    let bench = Bench::with_classes(64 << 20, 512 << 20);
    let database = bench.create();
    let store = wait(database.create_store("a", &settings())).unwrap();
    let versions: Vec<AtomicU64> = (0..16_000).map(|_| AtomicU64::new(0)).collect();
    std::thread::scope(|scope| {
        for thread in 0..4u64 {
            let (store, versions) = (&store, &versions);
            scope.spawn(move || {
                let mut random = SplitMix64::new(thread);
                for step in 1..=10_000u64 {
                    let no = random.below(4000) * 4 + thread;
                    let key = no.to_be_bytes();
                    if step % 4 == 0 {
                        let found = wait(store.get(&key)).unwrap();
                        let version = versions[no as usize].load(Ordering::Relaxed);
                        let expected = (version > 0).then(|| value(no, version));
                        assert_eq!(found.map(|found| found.to_vec()), expected, "{no}");
                    } else {
                        wait(store.put(&key, &value(no, step))).unwrap();
                        versions[no as usize].store(step, Ordering::Relaxed);
                    }
                }
            });
        }
    });
    let check_all = |database: &Database| {
        let store = database.open_store("a").unwrap();
        for no in 0..16_000u64 {
            let version = versions[no as usize].load(Ordering::Relaxed);
            let expected = (version > 0).then(|| value(no, version));
            let found = wait(store.get(&no.to_be_bytes())).unwrap();
            assert_eq!(found.map(|found| found.to_vec()), expected, "{no}");
        }
    };
    check_all(&database);
    wait(store.compact()).unwrap();
    check_all(&database);
    assert_eq!(wait(database.check()).unwrap().findings, Vec::<String>::new());
    wait(database.sync()).unwrap();
    wait(database.close()).unwrap();
    let database = bench.open();
    check_all(&database);
    let statistics = database.statistics();
    assert!(statistics.space_amplification < 2.5, "{statistics:#?}");
    let slow = &statistics.classes[1];
    assert!(slow.segment_bytes > 10 << 20, "{statistics:#?}");
    wait(database.close()).unwrap();
}

#[test]
fn the_limit_of_the_fastest_class_is_kept() {
    let bench = Bench::with_classes(64 << 20, 512 << 20);
    let limit = 12 << 20;
    let settings_of_database =
        DatabaseSettings { fast_class_bytes: Some(limit), memory_bytes: 4 << 20, ..Bench::settings() };
    let create = Database::create(&bench.volume, "test", &settings_of_database, bench.environment.clone());
    let database = wait(create).unwrap();
    let store = wait(database.create_store("a", &settings())).unwrap();
    for no in 0..40_000u64 {
        wait(store.put_with(&no.to_be_bytes(), &value(no, 1), &WriteOptions::within(1000))).unwrap();
        if no % 1000 == 0 {
            let used = &database.statistics().classes[0];
            let all = used.segment_bytes + used.key_bytes + used.manifest_bytes;
            assert!(all <= limit + (2 << 20), "{used:?}");
        }
    }
    for no in (0..40_000u64).step_by(111) {
        assert_eq!(wait(store.get(&no.to_be_bytes())).unwrap().unwrap(), value(no, 1));
    }
    wait(database.close()).unwrap();
}

/// What the slower class had no space for went to the fastest one, whatever its limit.
#[test]
fn the_limit_is_kept_when_the_other_class_is_full() {
    let bench = Bench::with_classes(96 << 20, 24 << 20);
    let limit = 16 << 20;
    let settings_of_database =
        DatabaseSettings { fast_class_bytes: Some(limit), memory_bytes: 4 << 20, ..Bench::settings() };
    let create = Database::create(&bench.volume, "test", &settings_of_database, bench.environment.clone());
    let database = wait(create).unwrap();
    let settings = StoreSettings { policy: PolicyTemplate::StagingOnly.into(), ..settings() };
    let store = wait(database.create_store("a", &settings)).unwrap();
    let used = || {
        let used = &database.statistics().classes[0];
        used.segment_bytes + used.key_bytes + used.manifest_bytes
    };
    let mut written = 0;
    let error = loop {
        if let Err(error) = wait(store.put(&u64::to_be_bytes(written), &value(written, 1))) {
            break error;
        }
        written += 1;
        if written % 256 == 0 {
            assert!(used() <= limit + (2 << 20), "{} after {written}", used());
        }
    };
    assert_eq!(error.kind(), ErrorKind::NoSpace, "{error}");
    assert!(error.to_string().contains("fast_class_bytes (16 MiB)"), "{error}");
    assert!((20_000..60_000).contains(&written), "{written}");
    // Which is no dead end.
    wait(store.delete_range(&100u64.to_be_bytes(), None)).unwrap();
    wait(store.compact()).unwrap();
    assert!(used() <= limit + (2 << 20), "{} when it was compacted", used());
    for no in 0..200u64 {
        let expected = (no < 100).then(|| value(no, 1));
        assert_eq!(wait(store.get(&no.to_be_bytes())).unwrap().as_deref(), expected.as_deref());
    }
    for no in 200..5000u64 {
        wait(store.put(&no.to_be_bytes(), &value(no, 2))).unwrap();
    }
    wait(database.close()).unwrap();
}

/// It was a quarter of all classes at most, most of which the database may not have, and segments of the log were
/// larger than the limit.
#[test]
fn the_reservation_for_deletes_is_bounded_by_the_class_limit() {
    let bench = Bench::with_classes(1 << 30, 24 << 20);
    let settings_of_database = DatabaseSettings {
        fast_class_bytes: Some(8 << 20),
        log_segment_bytes: 32 << 20,
        ..Bench::settings()
    };
    let create = Database::create(&bench.volume, "test", &settings_of_database, bench.environment.clone());
    let database = wait(create).unwrap();
    let store = wait(database.create_store("a", &settings())).unwrap();
    let refused = (0..100_000u64).find_map(|no| wait(store.put(&no.to_be_bytes(), &value(no, 1))).err());
    let error = refused.unwrap();
    assert_eq!(error.kind(), ErrorKind::NoSpace, "{error}");
    // A quarter of 8 and 24 is kept, not of all that there is.
    let said = error.to_string();
    let (said, _) = said.split_once(" MiB are kept for deletes").unwrap();
    let kept: u64 = said.rsplit(' ').next().unwrap().parse().unwrap();
    assert!(kept <= 8, "{error}");
    wait(store.delete_range(b"", None)).unwrap();
    wait(store.compact()).unwrap();
    wait(store.put(b"k", b"v")).unwrap();
    wait(database.close()).unwrap();
}

/// Only tasks beside it brought a store within a limit that was lowered, and a command that compacts ends before they
/// do.
#[test]
fn a_compaction_brings_a_store_within_a_lowered_limit() {
    let bench = Bench::with_classes(64 << 20, 128 << 20);
    let database = bench.create();
    let settings = StoreSettings { policy: PolicyTemplate::StagingOnly.into(), ..settings() };
    let store = wait(database.create_store("a", &settings)).unwrap();
    for no in 0..30_000u64 {
        wait(store.put(&no.to_be_bytes(), &value(no, 1))).unwrap();
    }
    wait(store.compact()).unwrap();
    let used = || {
        let used = &database.statistics().classes[0];
        used.segment_bytes + used.key_bytes + used.manifest_bytes
    };
    assert!(used() > 20 << 20, "{}", used());
    let limit = DatabaseOverrides { fast_class_bytes: Some(Some(8 << 20)), ..DatabaseOverrides::default() };
    wait(database.set_settings(&limit)).unwrap();
    wait(store.compact()).unwrap();
    assert!(used() <= 9 << 20, "{}", used());
    wait(database.close()).unwrap();
}

/// A load makes segment after segment without a job in between.
#[test]
fn a_load_keeps_the_limit_of_the_fastest_class() {
    let bench = Bench::with_classes(64 << 20, 512 << 20);
    let limit = 12 << 20;
    let settings_of_database = DatabaseSettings { fast_class_bytes: Some(limit), ..Bench::settings() };
    let create = Database::create(&bench.volume, "test", &settings_of_database, bench.environment.clone());
    let database = wait(create).unwrap();
    let settings = StoreSettings { policy: PolicyTemplate::StagingOnly.into(), ..StoreSettings::default() };
    let store = wait(database.create_store("a", &settings)).unwrap();
    let mut load = wait(store.bulk_load()).unwrap();
    for no in 0..30_000u64 {
        wait(load.put(&no.to_be_bytes(), &value(no, 1))).unwrap();
    }
    wait(load.finish()).unwrap();
    let used = |database: &Database| {
        let used = &database.statistics().classes[0];
        used.segment_bytes + used.key_bytes + used.manifest_bytes
    };
    assert!(used(&database) <= limit + (2 << 20), "{}", used(&database));
    wait(store.compact()).unwrap();
    assert!(used(&database) <= limit + (2 << 20), "{} when it was compacted", used(&database));
    for no in (0..30_000u64).step_by(111) {
        assert_eq!(wait(store.get(&no.to_be_bytes())).unwrap().unwrap(), value(no, 1));
    }
    wait(database.close()).unwrap();
}

/// Values of neighbours were written by many spills; when scans have read them one by one often enough, they are
/// rewritten in the order of keys.
#[test]
fn scans_bring_values_together() {
    const KEYS: u64 = 12_000;
    let bench = Bench::with_classes(64 << 20, 512 << 20);
    let database = bench.create();
    // Of one chunk: larger ones would be so small for what they are meant to be that they were brought together before.
    let settings = StoreSettings { value_segment_bytes: 256 << 10, ..settings() };
    let store = wait(database.create_store("a", &settings)).unwrap();
    for step in 0..KEYS {
        let no = step * 7919 % KEYS;
        wait(store.put(&no.to_be_bytes(), &value(no, 1))).unwrap();
    }
    wait(store.compact()).unwrap();
    // Reads of the slow class in a walk over all keys.
    let walk = || {
        let reads = || bench.volume.classes()[1].statistics.read.ios;
        let before = reads();
        let mut cursor = store.cursor(CursorOptions::default());
        for no in 0..KEYS {
            let found = wait(cursor.next()).unwrap();
            assert_eq!(found.map(|(_, found)| found.to_vec()), Some(value(no, 1)), "{no}");
        }
        reads() - before
    };
    let at_first = walk();
    for _ in 0..100 {
        if walk() * 4 < at_first {
            break;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    wait(store.compact()).unwrap();
    let at_last = walk();
    assert!(at_last * 3 < at_first, "{at_first} reads at first, {at_last} at last");
    assert_eq!(wait(database.check()).unwrap().findings, Vec::<String>::new());
    wait(database.close()).unwrap();
}

/// Writes while no spill can be done, because a load has the store's turn; the times they were slowed for space. The
/// database may have `limit` on the fastest class.
fn slowed_for_room(policy: PolicyTemplate, limit: Option<u64>) -> u64 {
    held_back("fast class", policy, limit, 0)
}

/// The same, for any `cause`; others have `taken` of the class.
fn held_back(cause: &str, policy: PolicyTemplate, limit: Option<u64>, taken: u64) -> u64 {
    let bench = Bench::with_classes(64 << 20, 512 << 20);
    let attributes = Attributes { pin: Some("fast".to_owned()), ..Attributes::default() };
    let others = bench.volume.create_object("others", &attributes).unwrap();
    for chunk in 0..taken / (256 << 10) {
        wait(others.write_bytes(chunk * (256 << 10), &[1])).unwrap();
    }
    let settings_of_database = DatabaseSettings {
        fast_class_bytes: limit,
        slow_root_kvsets: 1000,
        most_root_kvsets: 2000,
        ..Bench::settings()
    };
    let create = Database::create(&bench.volume, "test", &settings_of_database, bench.environment.clone());
    let database = wait(create).unwrap();
    let settings = StoreSettings { policy: policy.into(), ..settings() };
    let store = wait(database.create_store("a", &settings)).unwrap();
    let load = wait(store.bulk_load()).unwrap();
    let within = WriteOptions::within(1000);
    for no in 0..16_000u64 {
        wait(store.put_with(&no.to_be_bytes(), &value(no, 1), &within)).unwrap();
    }
    let slowed = |database: &Database| {
        let stalls = database.statistics().since_opening.stalls;
        stalls.iter().find(|stall| stall.cause == cause).unwrap().count
    };
    let slowed_before = slowed(&database);
    drop(load);
    wait(store.compact()).unwrap();
    // With room again nobody is slowed.
    let slowed_after = slowed(&database);
    for no in 0..50u64 {
        wait(store.put_with(&no.to_be_bytes(), &value(no, 1), &within)).unwrap();
    }
    assert_eq!(slowed(&database), slowed_after);
    for no in (0..16_000u64).step_by(111) {
        assert_eq!(wait(store.get(&no.to_be_bytes())).unwrap().unwrap(), value(no, 1));
    }
    wait(database.close()).unwrap();
    slowed_before
}

#[test]
fn writes_are_slowed_before_the_log_leaves_the_fastest_class() {
    assert!(slowed_for_room(PolicyTemplate::StagingMaxCapacity, Some(12 << 20)) > 100);
    // Without a limit the log waits for space.
    assert!(held_back("log", PolicyTemplate::StagingMaxCapacity, None, 48 << 20) > 0);
}

/// Where spills free nothing, waiting for them helps nobody.
#[test]
fn writes_are_not_delayed_for_space_that_no_spill_frees() {
    assert_eq!(slowed_for_room(PolicyTemplate::StagingOnly, Some(12 << 20)), 0);
    // All is on the slow class anyway, for others have the fast one.
    assert_eq!(held_back("fast class", PolicyTemplate::StagingMaxCapacity, None, 64 << 20), 0);
}

/// What the log has ready is no growth of the data.
#[test]
fn statistics_separate_bytes_in_use_from_bytes_allocated() {
    let bench = Bench::new();
    let database = bench.create();
    let settings = StoreSettings { mirrors: false, ..settings() };
    let store = wait(database.create_store("a", &settings)).unwrap();
    for no in 0..100u64 {
        wait(store.put(&no.to_be_bytes(), &value(no, 1))).unwrap();
    }
    wait(store.compact()).unwrap();
    let statistics = database.statistics();
    assert_eq!(statistics.bytes_in_use, 100 * 1008);
    let log_bytes: u64 = statistics.classes.iter().map(|class| class.log_bytes).sum();
    assert!(log_bytes >= 1 << 20, "{statistics:#?}");
    // A chunk for the keys, one for the values, one for the manifest.
    assert!(statistics.bytes_allocated - log_bytes <= 3 * (256 << 10), "{statistics:#?}");
    wait(database.close()).unwrap();
}

#[test]
fn frequently_read_values_are_copied_to_the_fastest_class() {
    let bench = Bench::with_classes(64 << 20, 512 << 20);
    let settings_of_database =
        DatabaseSettings { memory_bytes: 1 << 20, memory_table_bytes: 128 << 10, ..Bench::settings() };
    let create = Database::create(&bench.volume, "test", &settings_of_database, bench.environment.clone());
    let database = wait(create).unwrap();
    let settings = StoreSettings { promoted_bytes_per_second: 64 << 20, mirrors: false, ..settings() };
    let store = wait(database.create_store("a", &settings)).unwrap();
    for no in 0..6000u64 {
        wait(store.put(&no.to_be_bytes(), &value(no, 1))).unwrap();
    }
    wait(store.compact()).unwrap();
    // Ever the same two thousand, which the cache cannot hold.
    let mut rounds = 0;
    while database.statistics().since_opening.bytes_promoted == 0 && rounds < 1000 {
        for no in 0..2000u64 {
            assert_eq!(wait(store.get(&no.to_be_bytes())).unwrap().unwrap(), value(no, 1));
        }
        rounds += 1;
    }
    assert!(database.statistics().since_opening.bytes_promoted > 0, "{:#?}", database.statistics());
    for no in 0..100u64 {
        wait(store.put(&no.to_be_bytes(), &value(no, 2))).unwrap();
    }
    wait(store.compact()).unwrap();
    for no in 0..6000u64 {
        let version = if no < 100 { 2 } else { 1 };
        assert_eq!(wait(store.get(&no.to_be_bytes())).unwrap().unwrap(), value(no, version));
    }
    assert_eq!(wait(database.check()).unwrap().findings, Vec::<String>::new());
    wait(database.close()).unwrap();
}

/// Puts six thousand values in, and reads some until they have copies on the fastest class.
fn fill_and_promote(database: &Database, store: &Store) {
    for no in 0..6000u64 {
        wait(store.put(&no.to_be_bytes(), &value(no, 1))).unwrap();
    }
    wait(store.compact()).unwrap();
    let mut rounds = 0;
    while database.statistics().since_opening.bytes_promoted < 1 << 20 {
        rounds += 1;
        assert!(rounds < 1000, "{:#?}", database.statistics());
        for no in 0..2000u64 {
            assert_eq!(wait(store.get(&no.to_be_bytes())).unwrap().unwrap(), value(no, 1));
        }
    }
}

/// A database whose hottest values have copies on the fastest class.
fn with_copies(bench: &Bench) -> (Database, Store) {
    let settings_of_database =
        DatabaseSettings { memory_bytes: 1 << 20, memory_table_bytes: 128 << 10, ..Bench::settings() };
    let create = Database::create(&bench.volume, "test", &settings_of_database, bench.environment.clone());
    let database = wait(create).unwrap();
    let policy = PolicyTemplate::CapacityOnly.into();
    let settings = StoreSettings { promoted_bytes_per_second: 64 << 20, policy, ..settings() };
    let store = wait(database.create_store("a", &settings)).unwrap();
    fill_and_promote(&database, &store);
    (database, store)
}

#[test]
fn nothing_is_lost_with_the_class_of_copies() {
    let bench = Bench::with_classes(64 << 20, 512 << 20);
    let (database, store) = with_copies(&bench);
    assert!(bench.damage_fastest(&["segment", "keys"]) > 1);
    let report = wait(database.check()).unwrap();
    assert_eq!(report.findings, Vec::<String>::new());
    assert!(!report.damaged_copies.is_empty(), "{report:?}");
    let read = |store: &Store| {
        for no in 0..6000u64 {
            assert_eq!(wait(store.get(&no.to_be_bytes())).unwrap().unwrap(), value(no, 1));
        }
    };
    read(&store);
    wait_for_whole_copies(&database);
    wait(store.put(b"z", b"z")).unwrap();
    wait(store.compact()).unwrap();
    read(&store);
    wait(database.close()).unwrap();
}

#[test]
fn a_database_opens_without_its_copies() {
    let bench = Bench::with_classes(64 << 20, 512 << 20);
    let (database, _) = with_copies(&bench);
    wait(database.close()).unwrap();
    assert!(bench.damage_fastest(&["segment", "keys"]) > 1);
    for options in [OpenOptions::read_only(), OpenOptions::default()] {
        let open = Database::open(&bench.volume, "test", &options, bench.environment.clone());
        let database = wait(open).unwrap();
        let store = database.open_store("a").unwrap();
        for no in 0..6000u64 {
            assert_eq!(wait(store.get(&no.to_be_bytes())).unwrap().unwrap(), value(no, 1));
        }
        wait(database.close()).unwrap();
    }
}

#[test]
fn copies_outlast_compactions_and_give_way() {
    let bench = Bench::with_classes(64 << 20, 512 << 20);
    let (database, store) = with_copies(&bench);
    let on_fastest = || {
        let statistics = database.statistics();
        let class = &statistics.classes[0];
        class.segment_bytes - class.log_bytes
    };
    assert!(on_fastest() >= 1 << 20, "{:#?}", database.statistics());
    (0..100u64).for_each(|no| wait(store.put(&no.to_be_bytes(), &value(no, 2))).unwrap());
    wait(store.compact()).unwrap();
    assert!(on_fastest() >= 1 << 20, "{:#?}", database.statistics());
    wait(database.drain_class("fast")).unwrap();
    assert_eq!(on_fastest(), 0, "{:#?}", database.statistics());
    for no in 0..6000u64 {
        let version = if no < 100 { 2 } else { 1 };
        assert_eq!(wait(store.get(&no.to_be_bytes())).unwrap().unwrap(), value(no, version));
    }
    wait(database.close()).unwrap();
}

/// Nobody has said anything of filters.
#[test]
fn filters_stay_in_memory_as_long_as_they_are_small() {
    let bench = Bench::new();
    let memory = DatabaseSettings { memory_bytes: 1 << 20, ..Bench::settings() };
    let create = Database::create(&bench.volume, "test", &memory, bench.environment.clone());
    let database = wait(create).unwrap();
    let store = wait(database.create_store("a", &settings())).unwrap();
    let resident = |database: &Database| database.statistics().resident_filter_bytes;
    let write = |store: &Store, numbers: std::ops::Range<u64>| {
        numbers.for_each(|no| wait(store.put(&no.to_be_bytes(), b"v")).unwrap());
        wait(store.compact()).unwrap();
    };
    write(&store, 0..8000);
    // Ten bits a key.
    assert!(resident(&database) >= 10_000, "{}", resident(&database));
    wait(database.close()).unwrap();
    drop((store, database));
    let database = bench.open();
    let began = std::time::Instant::now();
    while resident(&database) < 10_000 {
        assert!(began.elapsed() < Duration::from_secs(60), "{}", resident(&database));
        std::thread::sleep(Duration::from_millis(5));
    }
    let store = database.open_store("a").unwrap();
    write(&store, 8000..100_000);
    assert!(resident(&database) <= 32 << 10, "{}", resident(&database));
    for no in (0..100_000u64).step_by(997) {
        assert_eq!(wait(store.get(&no.to_be_bytes())).unwrap().as_deref(), Some(&b"v"[..]));
        assert_eq!(wait(store.get(&[no.to_be_bytes(), [1; 8]].concat())).unwrap(), None);
    }
    wait(database.close()).unwrap();
}

#[test]
fn filters_stay_in_memory_if_that_is_wanted_and_fits() {
    let bench = Bench::with_classes(64 << 20, 512 << 20);
    let database = bench.create();
    let settings = StoreSettings { filters: FilterMemory::Resident, ..settings() };
    let store = wait(database.create_store("a", &settings)).unwrap();
    for no in 0..20_000u64 {
        wait(store.put(&no.to_be_bytes(), &value(no, 1)[..300])).unwrap();
    }
    wait(store.compact()).unwrap();
    let resident = |database: &Database| database.statistics().resident_filter_bytes;
    assert!(resident(&database) >= 25_000, "{}", resident(&database));
    wait(database.close()).unwrap();
    // Ten bits a key.
    let database = bench.open();
    assert!((25_000..60_000).contains(&resident(&database)), "{}", resident(&database));
    let store = database.open_store("a").unwrap();
    for no in (0..20_000u64).step_by(7) {
        assert_eq!(wait(store.get(&no.to_be_bytes())).unwrap().unwrap(), &value(no, 1)[..300]);
        assert_eq!(wait(store.get(&[no.to_be_bytes(), [1; 8]].concat())).unwrap(), None);
    }
    wait(database.close()).unwrap();
}

/// The files of a class are gone on which nothing lay but copies, of which some were made after the log's segment.
#[test]
fn a_database_opens_without_the_class_of_its_copies() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("volume");
    let settings_of_volume = VolumeSettings { chunk_bytes: 256 << 10, ..VolumeSettings::default() };
    let class = |name: &str, mebibytes: u64| ClassConfig::new(name, vec![name.into()], Some(mebibytes << 20));
    let classes = [class("cache", 64), class("main", 256), class("slow", 256)];
    let create = Directory::create(&path, &settings_of_volume, &classes, Settings::default());
    let directory = wait(create).unwrap();
    let environment: Arc<dyn Environment> = ThreadEnvironment::new();
    let settings_of_database = DatabaseSettings {
        log_class: Some("main".to_owned()),
        memory_bytes: 1 << 20,
        memory_table_bytes: 128 << 10,
        ..Bench::settings()
    };
    let create = Database::create(directory.volume(), "test", &settings_of_database, environment.clone());
    let database = wait(create).unwrap();
    let policy = r#"{"root": {"keys": "main", "values": "log"}, "leaf": {"keys": "main", "values": "slow"}}"#;
    let policy = serde_json::from_str(policy).unwrap();
    let settings =
        StoreSettings { policy, promoted_bytes_per_second: 64 << 20, mirrors: false, ..settings() };
    let store = wait(database.create_store("a", &settings)).unwrap();
    fill_and_promote(&database, &store);
    wait(database.close()).unwrap();
    drop((store, database));
    wait(directory.close()).unwrap();
    std::fs::remove_file(path.join("cache")).unwrap();
    let directory = wait(Directory::open(&path, &Default::default(), Settings::default())).unwrap();
    let options = OpenOptions::read_only();
    let open = Database::open(directory.volume(), "test", &options, environment);
    let database = wait(open).unwrap();
    let store = database.open_store("a").unwrap();
    for no in 0..6000u64 {
        assert_eq!(wait(store.get(&no.to_be_bytes())).unwrap().unwrap(), value(no, 1));
    }
    wait(database.close()).unwrap();
}

#[test]
fn no_more_is_copied_than_the_budget_allows() {
    let began = Instant::now();
    let bench = Bench::with_classes(64 << 20, 512 << 20);
    let settings_of_database =
        DatabaseSettings { memory_bytes: 1 << 20, memory_table_bytes: 128 << 10, ..Bench::settings() };
    let create = Database::create(&bench.volume, "test", &settings_of_database, bench.environment.clone());
    let database = wait(create).unwrap();
    // A few values a second, of two megabytes that are all worth it.
    let rate = 20_000;
    let policy = PolicyTemplate::CapacityOnly.into();
    let settings = StoreSettings { promoted_bytes_per_second: rate, policy, ..settings() };
    let store = wait(database.create_store("a", &settings)).unwrap();
    for no in 0..6000u64 {
        wait(store.put(&no.to_be_bytes(), &value(no, 1))).unwrap();
    }
    wait(store.compact()).unwrap();
    let mut last = 0;
    for _ in 0..2 {
        while database.statistics().since_opening.bytes_promoted == last {
            for no in 0..2000u64 {
                assert_eq!(wait(store.get(&no.to_be_bytes())).unwrap().unwrap(), value(no, 1));
            }
        }
        last = database.statistics().since_opening.bytes_promoted;
        assert!(last as f64 <= began.elapsed().as_secs_f64() * rate as f64, "{last}");
    }
    wait(database.close()).unwrap();
}

/// Nobody spills as long as a load has the store's turn, so kvsets add up.
#[test]
fn delays_of_writes_for_root_kvsets_are_counted() {
    let bench = Bench::new();
    let settings_of_database =
        DatabaseSettings { slow_root_kvsets: 2, most_root_kvsets: 1000, ..Bench::settings() };
    let create = Database::create(&bench.volume, "test", &settings_of_database, bench.environment.clone());
    let database = wait(create).unwrap();
    let store = wait(database.create_store("a", &settings())).unwrap();
    let load = wait(store.bulk_load()).unwrap();
    for no in 0..2000u64 {
        wait(store.put(&no.to_be_bytes(), &value(no, 1))).unwrap();
    }
    drop(load);
    let activity = database.statistics().since_opening;
    let stall = activity.stalls.iter().find(|stall| stall.cause == "root kvsets").unwrap();
    assert!(stall.count > 0 && stall.us > 0 && stall.count <= activity.writes_slowed, "{activity:#?}");
    wait(database.close()).unwrap();
}

/// No bytes lie before the second key, and yet there is a key that could stay: nothing was split, over and over.
#[test]
fn an_empty_key_and_a_value_larger_than_a_leaf_come_to_rest() {
    let bench = Bench::with_classes(96 << 20, 512 << 20);
    let database = bench.create();
    let settings = StoreSettings { leaf_bytes: 256 << 10, value_segment_bytes: 256 << 10, ..settings() };
    let store = wait(database.create_store("a", &settings)).unwrap();
    let large = value(1, 1).repeat(700);
    wait(store.put(b"", b"")).unwrap();
    wait(store.put(b"a", &large)).unwrap();
    wait(store.compact()).unwrap();
    assert_eq!(database.statistics().stores[0].leaves, 2);
    assert_eq!(wait(store.get(b"")).unwrap().as_deref(), Some(&b""[..]));
    assert_eq!(wait(store.get(b"a")).unwrap().unwrap(), large);
    wait(database.close()).unwrap();
}
