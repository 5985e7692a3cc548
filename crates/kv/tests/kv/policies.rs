//! Policies that change while a store is in use, and classes that go.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use tanada_kv::blocking::wait;
use tanada_kv::{Database, ErrorKind, MediaPolicy, PolicyTemplate, Store, StoreSettings};

use crate::volumes::Bench;

fn value(no: u64) -> Vec<u8> {
    let mut value = vec![no as u8; 1000];
    value[..8].copy_from_slice(&no.to_be_bytes());
    value
}

fn settings(template: PolicyTemplate) -> StoreSettings {
    StoreSettings {
        leaf_bytes: 1 << 20,
        value_segment_bytes: 1 << 20,
        policy: template.into(),
        mirrors: false,
        ..StoreSettings::default()
    }
}

fn write(store: &Store, numbers: std::ops::Range<u64>) {
    for no in numbers {
        wait(store.put(&no.to_be_bytes(), &value(no))).unwrap();
    }
}

fn check(database: &Database, end: u64) {
    let store = database.open_store("a").unwrap();
    for no in 0..end {
        assert_eq!(wait(store.get(&no.to_be_bytes())).unwrap().as_deref(), Some(&value(no)[..]), "{no}");
    }
    assert_eq!(wait(database.check()).unwrap().findings, Vec::<String>::new());
}

/// Bytes of keys and of values on a class.
fn lies_on(database: &Database, class: usize) -> (u64, u64) {
    let class = &database.statistics().classes[class];
    (class.key_bytes, class.segment_bytes)
}

/// The log's own: a segment that is written to, one that is ready, one that is to be deleted.
const LOG_BYTES: u64 = 3 << 20;

#[test]
fn another_policy_brings_everything_to_where_it_says() {
    let bench = Bench::new();
    let database = bench.create();
    let store = wait(database.create_store("a", &settings(PolicyTemplate::StagingOnly))).unwrap();
    write(&store, 0..6000);
    wait(store.compact()).unwrap();
    assert_eq!(lies_on(&database, 1), (0, 0));
    assert!(lies_on(&database, 0).1 > 6_000_000);

    let capacity_only = MediaPolicy::from(PolicyTemplate::CapacityOnly);
    wait(store.set_policy(&capacity_only)).unwrap();
    assert_eq!(store.settings().policy, capacity_only);
    write(&store, 6000..7000);
    wait(store.compact()).unwrap();
    let (keys, values) = lies_on(&database, 0);
    assert!(keys == 0 && values <= LOG_BYTES, "{keys} {values}");
    let (keys, values) = lies_on(&database, 1);
    assert!(keys > 0 && values > 7_000_000, "{keys} {values}");
    check(&database, 7000);
    wait(database.close()).unwrap();

    // It is the policy of later openings, too; and the way back is the same.
    let database = bench.open();
    let store = database.open_store("a").unwrap();
    assert_eq!(store.settings().policy, capacity_only);
    wait(store.set_policy(&PolicyTemplate::StagingMaxCapacity.into())).unwrap();
    wait(store.compact()).unwrap();
    assert_eq!(lies_on(&database, 1).0, 0);
    assert!(lies_on(&database, 0).0 > 0);
    wait(store.set_policy(&PolicyTemplate::StagingOnly.into())).unwrap();
    wait(store.compact()).unwrap();
    assert_eq!(lies_on(&database, 1), (0, 0));
    assert!(database.statistics().since_opening.bytes_relocated > 7_000_000);
    check(&database, 7000);
    let missing: MediaPolicy = serde_json::from_str(
        r#"{"root": {"keys": "fastest", "values": "fastest"}, "leaf": {"keys": "tape", "values": "slowest"}}"#,
    )
    .unwrap();
    assert_eq!(wait(store.set_policy(&missing)).unwrap_err().kind(), ErrorKind::NotFound);
    // Values of the root are in the log, and nowhere else.
    let elsewhere: MediaPolicy = serde_json::from_str(
        r#"{"root": {"keys": "fastest", "values": "slowest"}, "leaf": {"keys": "slow", "values": "log"}}"#,
    )
    .unwrap();
    let refused = wait(store.set_policy(&elsewhere)).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::InvalidInput);
    assert!(refused.to_string().contains("root.values"), "{refused}");
    let settings = StoreSettings { policy: elsewhere, ..StoreSettings::default() };
    assert_eq!(wait(database.create_store("b", &settings)).unwrap_err().kind(), ErrorKind::InvalidInput);
    assert_eq!(store.settings().policy, PolicyTemplate::StagingOnly.into());
    wait(database.close()).unwrap();
}

#[test]
fn another_policy_is_followed_in_the_background() {
    let bench = Bench::new();
    let database = bench.create();
    let store = wait(database.create_store("a", &settings(PolicyTemplate::CapacityOnly))).unwrap();
    write(&store, 0..3000);
    wait(store.compact()).unwrap();
    assert!(lies_on(&database, 1).0 > 0);
    wait(store.set_policy(&PolicyTemplate::StagingOnly.into())).unwrap();
    let mut rounds = 0;
    while lies_on(&database, 1) != (0, 0) {
        rounds += 1;
        assert!(rounds < 3000, "{:#?}", database.statistics());
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    check(&database, 3000);
    wait(database.close()).unwrap();
}

/// Empties a class and takes it away while four threads write, then reads everything.
fn a_class_goes_under_load(class: &str) {
    let bench = Bench::with_classes(256 << 20, 256 << 20);
    let database = bench.create();
    let store = wait(database.create_store("a", &settings(PolicyTemplate::StagingMaxCapacity))).unwrap();
    let next = AtomicU64::new(0);
    let has_gone = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                // Until the class has gone, and some time longer.
                let mut later = 0;
                while later < 500 {
                    let no = next.fetch_add(1, Ordering::Relaxed);
                    write(&store, no..no + 1);
                    later += u64::from(has_gone.load(Ordering::Relaxed));
                    if no > 40_000 && !has_gone.load(Ordering::Relaxed) {
                        std::thread::yield_now();
                    }
                }
            });
        }
        while next.load(Ordering::Relaxed) < 3000 {
            std::thread::yield_now();
        }
        // A first write that had its chunk before may end after the class was looked through.
        let mut tries = 0;
        loop {
            wait(database.drain_class(class)).unwrap();
            match wait(bench.volume.remove_class(class)) {
                Ok(()) => break,
                Err(error) if tries == 100 => panic!("{error}"),
                Err(_) => tries += 1,
            }
        }
        has_gone.store(true, Ordering::Relaxed);
    });
    let end = next.load(Ordering::Relaxed);
    assert_eq!(bench.volume.classes().len(), 1);
    check(&database, end);
    wait(store.compact()).unwrap();
    check(&database, end);
    wait(database.close()).unwrap();
    let database = bench.open();
    let store = database.open_store("a").unwrap();
    write(&store, end..end + 500);
    check(&database, end + 500);
    wait(database.close()).unwrap();
}

#[test]
fn the_fastest_class_is_removed_under_load() {
    a_class_goes_under_load("fast");
}

#[test]
fn the_slowest_class_is_removed_under_load() {
    a_class_goes_under_load("slow");
}

/// What had to go elsewhere goes back, whoever emptied the class, and though nobody writes or tells the database.
#[test]
fn relocated_data_return_with_their_class() {
    let bench = Bench::new();
    let database = bench.create();
    let store = wait(database.create_store("a", &settings(PolicyTemplate::StagingMaxCapacity))).unwrap();
    write(&store, 0..5000);
    wait(store.compact()).unwrap();
    // Keys on one, values on the other, and the log.
    let lie = |class| lies_on(&database, class);
    let (before, values) = (lie(0).0, lie(1).1);
    assert!(before > 0 && values > 4 << 20, "{before} {values}");
    for class in ["slow", "fast"] {
        wait(bench.volume.drain_class(class, &tanada_volume::Relocation::default())).unwrap();
        let (emptied, other) = if class == "slow" { (1, 0) } else { (0, 1) };
        assert_eq!(lie(emptied), (0, 0));
        assert!(lie(other).0 >= before && lie(other).1 >= values);
        // Till all workers rest.
        std::thread::sleep(Duration::from_millis(300));
        wait(bench.volume.fill_class(class)).unwrap();
        let began = Instant::now();
        while lie(0).0 < before || lie(1).1 < values {
            assert!(began.elapsed() < Duration::from_secs(60), "{class}: {:?} {:?}", lie(0), lie(1));
            std::thread::sleep(Duration::from_millis(10));
        }
    }
    // Manifest and log, too.
    let began = Instant::now();
    let log_is_back = || {
        let classes = &database.statistics().classes;
        classes[1].manifest_bytes == 0 && classes[1].log_bytes == 0 && classes[0].manifest_bytes > 0
    };
    while !log_is_back() {
        assert!(began.elapsed() < Duration::from_secs(60), "{:?}", database.statistics().classes);
        std::thread::sleep(Duration::from_millis(10));
    }
    check(&database, 5000);
    wait(database.close()).unwrap();
}

/// Log and manifest are where writes wait for them.
#[test]
fn log_and_manifest_are_stored_on_the_fastest_class() {
    let bench = Bench::new();
    let database = bench.create();
    let store = wait(database.create_store("a", &settings(PolicyTemplate::CapacityOnly))).unwrap();
    write(&store, 0..100);
    wait(database.sync()).unwrap();
    let classes = &database.statistics().classes;
    assert!(classes[0].manifest_bytes > 0 && classes[0].segment_bytes > 0, "{classes:?}");
    assert_eq!((classes[1].manifest_bytes, classes[1].segment_bytes), (0, 0));
    wait(database.close()).unwrap();
    wait(bench.volume.drain_class("fast", &tanada_volume::Relocation::default())).unwrap();
    let database = bench.open();
    write(&database.open_store("a").unwrap(), 100..200);
    check(&database, 200);
    assert_eq!(bench.volume.classes()[0].taken, 0);
    wait(database.close()).unwrap();
}

#[test]
fn an_invalid_policy_lists_the_valid_ones() {
    for wrong in [
        r#""nowhere""#,
        r#"{"root": {"keys": "fastest", "values": "log"}, "leaf": {"keys": "fastest", "values": "slowest"}, "foo": 1}"#,
        r#"{"root": {"keys": "fastest", "values": "log"}}"#,
    ] {
        let error = serde_json::from_str::<MediaPolicy>(wrong).unwrap_err().to_string();
        assert!(error.contains("staging_max_capacity") && error.contains("slowest"), "{wrong}: {error}");
    }
}
