//! Copies that become mirrors, and the space that there is for them.

use std::time::Duration;

use tanada_base::SplitMix64;
use tanada_kv::blocking::wait;
use tanada_kv::{
    Database, DatabaseOverrides, DatabaseSettings, OpenOptions, Store, StoreOverrides, StoreSettings,
};
use tanada_volume::Attributes;

use crate::volumes::Bench;

const MIB: u64 = 1 << 20;

fn value(no: u64, len: usize) -> Vec<u8> {
    let mut value = vec![0; len];
    SplitMix64::new(no).fill(&mut value);
    value
}

/// A database of 64 MiB of memory.
fn create(bench: &Bench, settings: DatabaseSettings) -> Database {
    let settings = DatabaseSettings { memory_bytes: 64 * MIB, ..settings };
    wait(Database::create(&bench.volume, "test", &settings, bench.environment.clone())).unwrap()
}

/// A store with values of the keys `0..count`, of which there are no mirrors; there may be from then on.
fn filled(database: &Database, name: &str, settings: StoreSettings, (count, len): (u64, usize)) -> Store {
    let settings = StoreSettings { mirrors: false, ..settings };
    let store = wait(database.create_store(name, &settings)).unwrap();
    (0..count).for_each(|no| wait(store.put(&no.to_be_bytes(), &value(no, len))).unwrap());
    wait(store.compact()).unwrap();
    store
}

fn with_mirrors_from_now_on(store: &Store) {
    let changes = StoreOverrides { mirrors: Some(true), ..StoreOverrides::default() };
    wait(store.set_settings(&changes)).unwrap();
}

fn free_on(bench: &Bench, class: &str) -> u64 {
    let classes = bench.volume.classes();
    let class = classes.iter().find(|info| info.name == class).unwrap();
    class.chunks.saturating_sub(class.taken) * bench.volume.chunk_bytes()
}

fn pause() {
    std::thread::sleep(Duration::from_millis(10));
}

/// It wrote the leaf's keys anew for each read of the value, and threw them away.
#[test]
fn values_without_space_are_not_copied_repeatedly() {
    let bench = Bench::with_classes(64 * MIB, 512 * MIB);
    let database = create(&bench, Bench::settings());
    let store = filled(&database, "a", StoreSettings::default(), (5000, 200));
    wait(store.put(b"long", &value(77, 8 << 20))).unwrap();
    wait(store.compact()).unwrap();
    // Until what it left is deleted.
    std::thread::sleep(Duration::from_millis(300));
    let attributes = Attributes { class: Some("fast".to_owned()), ..Attributes::default() };
    let filler = bench.volume.create_object("filler", &attributes).unwrap();
    let filled_bytes = free_on(&bench, "fast").saturating_sub(8 * MIB);
    for no in 0..filled_bytes / MIB {
        wait(filler.write_bytes(no * MIB, &vec![1; MIB as usize])).unwrap();
    }
    with_mirrors_from_now_on(&store);
    let keys_written = || database.statistics().since_opening.written_by().job_keys;
    let before = keys_written();
    for _ in 0..30 {
        assert_eq!(wait(store.get(b"long")).unwrap().unwrap().len(), 8 << 20);
        std::thread::sleep(Duration::from_millis(50));
    }
    let of_store = &database.statistics().stores[0];
    let written = keys_written() - before;
    assert!(written < 3 * (of_store.key_bytes + of_store.inline_bytes), "{written}: {of_store:?}");
    wait(database.close()).unwrap();
}

/// What could not be copied once never was; and the job's own keys were not part of the space.
#[test]
fn mirrors_return_with_free_space_and_keep_the_limit() {
    let bench = Bench::with_classes(512 * MIB, 512 * MIB);
    let database = create(&bench, Bench::settings());
    let store = filled(&database, "a", StoreSettings::default(), (50_000, 200));
    let key = |no: u64| format!("long {no}").into_bytes();
    (0..8).for_each(|no| wait(store.put(&key(no), &value(no, 512 << 10))).unwrap());
    wait(store.compact()).unwrap();
    let taken = || {
        let class = &database.statistics().classes[0];
        class.segment_bytes + class.key_bytes + class.manifest_bytes
    };
    let limit = taken() + 9 * MIB + (100 << 10);
    let set_limit = |bytes| {
        let changes = DatabaseOverrides { fast_class_bytes: Some(bytes), ..DatabaseOverrides::default() };
        wait(database.set_settings(&changes)).unwrap();
    };
    set_limit(Some(limit));
    with_mirrors_from_now_on(&store);
    let mirrored = || database.statistics().stores[0].mirrored_bytes;
    let read = || {
        (0..8).for_each(|no| assert_eq!(wait(store.get(&key(no))).unwrap().unwrap().len(), 512 << 10));
        pause();
    };
    let mut most = 0;
    for _ in 0..20 {
        read();
        most = most.max(taken());
    }
    assert!(most <= limit, "{most} of {limit}");
    set_limit(None);
    let mut rounds = 0;
    while mirrored() == 0 {
        rounds += 1;
        assert!(rounds < 300, "{:#?}", database.statistics());
        read();
    }
    assert_eq!(wait(database.check()).unwrap().findings, Vec::<String>::new());
    wait(database.close()).unwrap();
}

/// Bytes that jobs wrote for values, and that are mirrored, when all is read again and again.
fn copied(bench: &Bench, options: &OpenOptions, stores: &[&str], (count, len): (u64, usize)) -> (u64, u64) {
    let database = wait(Database::open(&bench.volume, "test", options, bench.environment.clone())).unwrap();
    let stores: Vec<Store> = stores.iter().map(|name| database.open_store(name).unwrap()).collect();
    for round in 0..30 {
        for no in 0..count {
            let no = (no * 7 + round) % count;
            for store in &stores {
                assert_eq!(wait(store.get(&no.to_be_bytes())).unwrap().unwrap(), value(no, len));
            }
        }
        pause();
    }
    let statistics = database.statistics();
    let mirrored = statistics.stores.iter().map(|store| store.mirrored_bytes).sum();
    assert_eq!(wait(database.check()).unwrap().findings, Vec::<String>::new());
    wait(database.close()).unwrap();
    (statistics.since_opening.written_by().job_values, mirrored)
}

/// Both took all of it, and half of the copies went to the slow class.
#[test]
fn jobs_of_two_stores_do_not_reserve_the_same_space() {
    let bench = Bench::with_classes(24 * MIB, 512 * MIB);
    let database = create(&bench, DatabaseSettings { memory_table_bytes: 4 * MIB, ..Bench::settings() });
    let settings =
        StoreSettings { leaf_bytes: 64 * MIB, value_segment_bytes: MIB, ..StoreSettings::default() };
    let size = (6000, 4000);
    for name in ["a", "b"] {
        with_mirrors_from_now_on(&filled(&database, name, settings.clone(), size));
    }
    wait(database.close()).unwrap();
    let settings = DatabaseOverrides {
        memory_bytes: Some(8 * MIB),
        concurrent_jobs: Some(2),
        ..DatabaseOverrides::default()
    };
    let options = OpenOptions { settings, ..OpenOptions::default() };
    let (written, mirrored) = copied(&bench, &options, &["a", "b"], size);
    assert!(mirrored > 0 && written < mirrored / 2 * 3, "{written} written, {mirrored} mirrored");
}

/// Of values that are larger than half a chunk copies took twice the space.
#[test]
fn copies_are_counted_in_chunks() {
    for size in [(128, 140 << 10), (70, 260 << 10)] {
        let bench = Bench::with_classes(24 * MIB, 512 * MIB);
        let database = create(&bench, Bench::settings());
        let settings = StoreSettings { value_segment_bytes: 256 << 10, ..StoreSettings::default() };
        with_mirrors_from_now_on(&filled(&database, "a", settings, size));
        wait(database.close()).unwrap();
        let (written, mirrored) = copied(&bench, &OpenOptions::default(), &["a"], size);
        assert!(mirrored > 0 && written < mirrored / 2 * 3, "{written} written, {mirrored} mirrored");
    }
}
