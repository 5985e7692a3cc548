//! Settings that change while a database is in use.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use tanada_kv::blocking::wait;
use tanada_kv::{
    Compression, Database, DatabaseOverrides, DatabaseSettings, Durability, ErrorKind, FilterMemory,
    OpenOptions, PolicyTemplate, Statistics, Store, StoreOverrides, StoreSettings, StoreStatistics,
    WriteOptions,
};

use crate::volumes::{Bench, value};

fn settings() -> StoreSettings {
    StoreSettings {
        leaf_bytes: 4 << 20,
        value_segment_bytes: 4 << 20,
        mirrors: false,
        ..StoreSettings::default()
    }
}

fn with_store(bench: &Bench, settings: &StoreSettings) -> (Database, Store) {
    let database = bench.create();
    let store = wait(database.create_store("a", settings)).unwrap();
    (database, store)
}

fn set(store: &Store, changes: StoreOverrides) {
    wait(store.set_settings(&changes)).unwrap();
}

fn write(store: &Store, numbers: std::ops::Range<u64>, version: u64) {
    for no in numbers {
        wait(store.put(&no.to_be_bytes(), &value(no, version))).unwrap();
    }
}

fn check(store: &Store, numbers: std::ops::Range<u64>, version: u64) {
    for no in numbers {
        assert_eq!(
            wait(store.get(&no.to_be_bytes())).unwrap().as_deref(),
            Some(&*value(no, version)),
            "{no}"
        );
    }
}

fn of_store(database: &Database) -> StoreStatistics {
    database.statistics().stores.swap_remove(0)
}

/// Waits until what the database does in the background has come so far.
fn until(database: &Database, what: &str, is_so: impl Fn(&Statistics) -> bool) {
    let mut rounds = 0;
    while !is_so(&database.statistics()) {
        rounds += 1;
        assert!(rounds < 3000, "{what}: {:#?}", database.statistics());
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Bytes on the fastest class.
fn on_fastest(statistics: &Statistics) -> u64 {
    let class = &statistics.classes[0];
    class.segment_bytes + class.key_bytes + class.manifest_bytes
}

#[test]
fn values_are_kept_as_the_settings_say_now() {
    let bench = Bench::new();
    let (database, store) = with_store(&bench, &settings());
    write(&store, 0..1000, 1);
    wait(store.compact()).unwrap();
    let plain = of_store(&database).value_bytes;
    assert!(plain >= 1_000_000, "{plain}");

    set(&store, StoreOverrides { compression: Some(Compression::Lz4), ..StoreOverrides::default() });
    write(&store, 1000..2000, 1);
    wait(store.compact()).unwrap();
    let compressed = of_store(&database).value_bytes - plain;
    assert!(compressed < plain / 4, "{compressed}");

    let beside = StoreOverrides {
        compression: Some(Compression::None),
        separate_from_bytes: Some(4096),
        ..StoreOverrides::default()
    };
    set(&store, beside);
    write(&store, 2000..3000, 1);
    wait(store.compact()).unwrap();
    let now = of_store(&database);
    assert_eq!(now.value_bytes, plain + compressed);
    assert!(now.inline_bytes >= 1_000_000, "{now:?}");
    // What the log has is replayed by them.
    write(&store, 3000..3010, 1);
    check(&store, 0..3010, 1);
    wait(database.sync()).unwrap();
    wait(database.abandon());
    drop((store, database));
    let database = bench.open();
    check(&database.open_store("a").unwrap(), 0..3010, 1);
    assert_eq!(wait(database.check()).unwrap().findings, Vec::<String>::new());
    wait(database.close()).unwrap();
}

#[test]
fn files_are_made_as_the_settings_say_now() {
    let bench = Bench::new();
    let settings = StoreSettings { filter_bits_per_key: 0, ..settings() };
    let (database, store) = with_store(&bench, &settings);
    let pages = || bench.objects("keys").iter().map(|file| file.size_bytes()).max().unwrap_or(0);
    write(&store, 0..10, 1);
    wait(store.compact()).unwrap();
    assert!(pages() < 64 << 10, "{}", pages());
    let changes = StoreOverrides {
        page_bytes: Some(64 << 10),
        filters: Some(FilterMemory::Resident),
        ..StoreOverrides::default()
    };
    set(&store, changes);
    write(&store, 10..20, 1);
    wait(store.compact()).unwrap();
    assert!(pages() >= 64 << 10, "{}", pages());
    write(&store, 20..4000, 1);
    wait(store.compact()).unwrap();
    assert_eq!(database.statistics().resident_filter_bytes, 0);
    set(&store, StoreOverrides { filter_bits_per_key: Some(10), ..StoreOverrides::default() });
    write(&store, 0..4000, 2);
    wait(store.compact()).unwrap();
    let resident = database.statistics().resident_filter_bytes;
    assert!(resident >= 5000, "{resident}");

    // Leaves and segments become smaller, and larger again.
    let (leaves, segments) = (of_store(&database).leaves, of_store(&database).value_segments);
    let changes = StoreOverrides {
        leaf_bytes: Some(512 << 10),
        value_segment_bytes: Some(256 << 10),
        ..StoreOverrides::default()
    };
    set(&store, changes);
    write(&store, 0..4000, 3);
    wait(store.compact()).unwrap();
    let now = of_store(&database);
    assert!(now.leaves > leaves + 2 && now.value_segments > segments + 2, "{now:?}");
    set(&store, StoreOverrides { leaf_bytes: Some(512 << 20), ..StoreOverrides::default() });
    write(&store, 0..1, 3);
    wait(store.compact()).unwrap();
    assert!(of_store(&database).leaves < now.leaves, "{:?}", of_store(&database));
    check(&store, 0..4000, 3);
    wait(database.close()).unwrap();
}

#[test]
fn filters_of_existing_files_become_resident() {
    let bench = Bench::new();
    let paged = StoreSettings { filters: FilterMemory::Paged, ..settings() };
    let (database, store) = with_store(&bench, &paged);
    write(&store, 0..4000, 1);
    wait(store.compact()).unwrap();
    assert_eq!(database.statistics().resident_filter_bytes, 0);
    set(&store, StoreOverrides { filters: Some(FilterMemory::Resident), ..StoreOverrides::default() });
    assert!(database.statistics().resident_filter_bytes >= 5000);
    wait(database.close()).unwrap();
}

#[test]
fn garbage_is_collected_as_the_settings_say_now() {
    let bench = Bench::new();
    let (database, store) = with_store(&bench, &StoreSettings { space_amplification: 1000.0, ..settings() });
    write(&store, 0..8000, 1);
    wait(store.compact()).unwrap();
    for version in 2..6 {
        for no in (0..8000).step_by(2) {
            write(&store, no..no + 1, version);
        }
        wait(store.compact()).unwrap();
    }
    // Values alone are on the slow class.
    let over = |statistics: &Statistics| {
        statistics.classes[1].segment_bytes as f64 / statistics.stores[0].value_bytes as f64
    };
    assert!(over(&database.statistics()) > 1.4, "{:#?}", database.statistics());
    set(&store, StoreOverrides { space_amplification: Some(1.05), ..StoreOverrides::default() });
    // Each segment has a chunk that is not full, and how many there are is not the same each time.
    until(&database, "less garbage", |statistics| over(statistics) < 1.3);
    wait(database.close()).unwrap();
}

#[test]
fn promotion_begins_and_ends_with_its_setting() {
    let bench = Bench::new();
    let small = DatabaseSettings { memory_bytes: 1 << 20, ..Bench::settings() };
    let create = Database::create(&bench.volume, "test", &small, bench.environment.clone());
    let database = wait(create).unwrap();
    let store = wait(database.create_store("a", &settings())).unwrap();
    write(&store, 0..6000, 1);
    wait(store.compact()).unwrap();
    let promoted = || database.statistics().since_opening.bytes_promoted;
    check(&store, 0..2000, 1);
    check(&store, 0..2000, 1);
    assert_eq!(promoted(), 0);
    set(&store, StoreOverrides { promoted_bytes_per_second: Some(64 << 20), ..StoreOverrides::default() });
    let mut rounds = 0;
    while promoted() == 0 {
        rounds += 1;
        assert!(rounds < 1000, "{:#?}", database.statistics());
        check(&store, 0..2000, 1);
    }
    set(&store, StoreOverrides { promoted_bytes_per_second: Some(0), ..StoreOverrides::default() });
    // One may be under way.
    wait(store.compact()).unwrap();
    let until_now = promoted();
    check(&store, 0..6000, 1);
    check(&store, 0..6000, 1);
    assert_eq!(promoted(), until_now);
    wait(database.close()).unwrap();
}

#[test]
fn mirrors_come_and_go_with_their_setting() {
    let bench = Bench::new();
    let (database, store) = with_store(&bench, &settings());
    write(&store, 0..4000, 1);
    wait(store.compact()).unwrap();
    assert_eq!(of_store(&database).mirrors, 0);
    set(&store, StoreOverrides { mirrors: Some(true), ..StoreOverrides::default() });
    write(&store, 0..4000, 2);
    wait(store.compact()).unwrap();
    assert!(of_store(&database).mirrors > 0, "{:#?}", database.statistics());
    set(&store, StoreOverrides { mirrors: Some(false), ..StoreOverrides::default() });
    until(&database, "mirrors go", |statistics| statistics.stores[0].mirrors == 0);
    check(&store, 0..4000, 2);
    wait(database.close()).unwrap();
}

/// All settings of a store, each other than by default.
fn others() -> StoreOverrides {
    StoreOverrides::from(StoreSettings {
        separate_from_bytes: 100,
        compression: Compression::Zstd,
        time_to_live_s: Some(1_000_000),
        policy: PolicyTemplate::CapacityOnly.into(),
        page_bytes: 8192,
        filter_bits_per_key: 7,
        filters: FilterMemory::Resident,
        leaf_bytes: 3 << 20,
        value_segment_bytes: 2 << 20,
        space_amplification: 1.7,
        promoted_bytes_per_second: 5,
        mirrors: false,
    })
}

#[test]
fn settings_are_kept_for_good() {
    let bench = Bench::new();
    let (database, store) = with_store(&bench, &StoreSettings::default());
    let of_database = DatabaseOverrides {
        fast_class_bytes: Some(Some(20 << 20)),
        durability: Some(Durability::Sync),
        waiting_tables: Some(7),
        slow_root_kvsets: Some(20),
        most_root_kvsets: Some(40),
        log_replay_bytes: Some(30 << 20),
        manifest_bytes: Some(64 << 10),
        ..DatabaseOverrides::default()
    };
    wait(database.set_settings(&of_database)).unwrap();
    set(&store, others());
    let expected = (of_database.over(&Bench::settings()), others().over(&StoreSettings::default()));
    assert_eq!((database.settings(), store.settings()), expected);
    wait(database.checkpoint("copy")).unwrap();
    // Without a close.
    wait(database.abandon());
    drop((store, database));
    for name in ["test", "copy", "test"] {
        let options = OpenOptions::default();
        let open = Database::open(&bench.volume, name, &options, bench.environment.clone());
        let database = wait(open).unwrap();
        let store = database.open_store("a").unwrap();
        assert_eq!((database.settings(), store.settings()), expected, "{name}");
        // And over manifests that are rewritten: each change takes a block of one.
        let manifests = || bench.objects("manifest").iter().map(|object| object.name()).collect::<Vec<_>>();
        let before = manifests();
        for seconds in [None, Some(1_000_000)].into_iter().cycle().take(40) {
            set(&store, StoreOverrides { time_to_live_s: Some(seconds), ..StoreOverrides::default() });
        }
        assert!(name != "test" || before != manifests());
        wait(database.close()).unwrap();
    }
}

#[test]
fn invalid_settings_change_nothing() {
    let bench = Bench::new();
    let (database, store) = with_store(&bench, &StoreSettings::default());
    let json = |text: &str| serde_json::from_str::<StoreOverrides>(text).unwrap();
    for (wrong, word) in [
        (r#"{"space_amplification": 1.0, "compression": "lz4"}"#, "space_amplification"),
        (r#"{"page_bytes": 4097}"#, "page_bytes"),
        (r#"{"separate_from_bytes": 0}"#, "separate_from_bytes"),
        (r#"{"time_to_live_s": 0}"#, "time_to_live_s"),
        (r#"{"leaf_bytes": 1}"#, "leaf_bytes"),
        (r#"{"filter_bits_per_key": 65}"#, "filter_bits_per_key"),
        (
            r#"{"policy": {"root": {"keys": "fastest", "values": "slowest"}, "leaf": {"keys": "slow", "values": "log"}}}"#,
            "root.values",
        ),
    ] {
        let refused = wait(store.set_settings(&json(wrong))).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::InvalidInput, "{wrong}");
        assert!(refused.to_string().contains(word), "{refused}");
    }
    assert_eq!(store.settings(), StoreSettings::default());

    for (wrong, word) in [
        (r#"{"memory_bytes": 8388608, "durability": "sync"}"#, "memory_bytes"),
        (r#"{"memory_table_bytes": 65536}"#, "memory_table_bytes"),
        (r#"{"log_segment_bytes": 2097152}"#, "log_segment_bytes"),
        (r#"{"log_group_bytes": 131072}"#, "log_group_bytes"),
        (r#"{"log_class": "slow"}"#, "log_class"),
        (r#"{"concurrent_jobs": 3}"#, "concurrent_jobs"),
        (r#"{"durability": {"within": 0}}"#, "0 ms"),
        (r#"{"fast_class_bytes": 1}"#, "fast_class_bytes"),
        (r#"{"most_root_kvsets": 3}"#, "slow_root_kvsets"),
    ] {
        let wrong: DatabaseOverrides = serde_json::from_str(wrong).unwrap();
        let refused = wait(database.set_settings(&wrong)).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::InvalidInput, "{wrong:?}");
        assert!(refused.to_string().contains(word), "{refused}");
    }
    assert_eq!(database.settings(), Bench::settings());
    // The same as before is no change.
    wait(database.set_settings(&Bench::settings().into())).unwrap();
    wait(store.set_settings(&StoreSettings::default().into())).unwrap();
    wait(database.close()).unwrap();
    assert_eq!(wait(store.set_settings(&others())).unwrap_err().kind(), ErrorKind::Closed);

    let options = OpenOptions::read_only();
    let open = Database::open(&bench.volume, "test", &options, bench.environment.clone());
    let database = wait(open).unwrap();
    let store = database.open_store("a").unwrap();
    assert_eq!(store.settings(), StoreSettings::default());
    assert_eq!(wait(store.set_settings(&others())).unwrap_err().kind(), ErrorKind::ReadOnly);
    let sync = DatabaseOverrides { durability: Some(Durability::Sync), ..DatabaseOverrides::default() };
    assert_eq!(wait(database.set_settings(&sync)).unwrap_err().kind(), ErrorKind::ReadOnly);
    wait(database.close()).unwrap();
}

#[test]
fn writes_are_as_durable_as_the_database_says_now() {
    let bench = Bench::new();
    let (database, store) = with_store(&bench, &StoreSettings::default());
    let syncs = || database.statistics().since_opening.log_syncs;
    let durability = |durability| {
        let changes = DatabaseOverrides { durability: Some(durability), ..DatabaseOverrides::default() };
        wait(database.set_settings(&changes)).unwrap();
    };
    durability(Durability::Sync);
    let before = syncs();
    write(&store, 0..50, 1);
    assert!(syncs() >= before + 50, "{} {before}", syncs());
    durability(Durability::Within(1000));
    let before = syncs();
    write(&store, 50..100, 1);
    assert!(syncs() < before + 25, "{} {before}", syncs());
    wait(database.close()).unwrap();
}

/// The log's own: what is being filled stays until it is full, and another one may be ready.
const LOG_BYTES: u64 = 2 << 20;

/// Lowers the limit of a database that has ten times as much on the fastest class, raises it, and takes it away.
fn the_limit_is_followed(policy: PolicyTemplate) {
    let bench = Bench::new();
    let (database, store) = with_store(&bench, &StoreSettings { policy: policy.into(), ..settings() });
    let limit = |bytes| {
        let changes = DatabaseOverrides { fast_class_bytes: Some(bytes), ..DatabaseOverrides::default() };
        wait(database.set_settings(&changes)).unwrap();
    };
    write(&store, 0..20_000, 1);
    wait(store.compact()).unwrap();
    write(&store, 20_000..20_100, 1);
    let before = on_fastest(&database.statistics());
    assert!(policy != PolicyTemplate::StagingOnly || before > 20 << 20, "{before}");
    limit(Some(4 << 20));
    until(&database, "below 4 MiB", |statistics| on_fastest(statistics) <= (4 << 20));
    // It stays so, whatever is done.
    write(&store, 10_000..20_000, 2);
    wait(store.compact()).unwrap();
    until(&database, "still below 4 MiB", |statistics| on_fastest(statistics) <= (4 << 20) + LOG_BYTES);
    check(&store, 0..10_000, 1);
    check(&store, 10_000..20_000, 2);

    limit(Some(1 << 30));
    wait(store.compact()).unwrap();
    let after = on_fastest(&database.statistics());
    assert!(policy != PolicyTemplate::StagingOnly || after > 20 << 20, "{after}");
    limit(Some(4 << 20));
    until(&database, "below 4 MiB again", |statistics| on_fastest(statistics) <= 4 << 20);
    limit(None);
    wait(store.compact()).unwrap();
    let after = on_fastest(&database.statistics());
    assert!(policy != PolicyTemplate::StagingOnly || after > 20 << 20, "{after}");
    check(&store, 0..10_000, 1);
    check(&store, 10_000..20_000, 2);
    assert_eq!(wait(database.check()).unwrap().findings, Vec::<String>::new());
    wait(database.close()).unwrap();
}

#[test]
fn data_beyond_a_lowered_limit_leave_the_fastest_class() {
    the_limit_is_followed(PolicyTemplate::StagingOnly);
}

#[test]
fn a_limit_is_followed_by_keys_on_the_fastest_class() {
    the_limit_is_followed(PolicyTemplate::StagingMaxCapacity);
}

/// What lies on the fastest class because the other one took nothing leaves it when that does again, though nobody
/// writes or tells the database.
#[test]
fn a_limit_is_kept_again_when_the_other_class_is_back() {
    let bench = Bench::new();
    let (database, store) = with_store(&bench, &settings());
    let limit = DatabaseOverrides { fast_class_bytes: Some(Some(4 << 20)), ..DatabaseOverrides::default() };
    wait(database.set_settings(&limit)).unwrap();
    write(&store, 0..20_000, 1);
    wait(store.compact()).unwrap();
    until(&database, "below 4 MiB", |statistics| on_fastest(statistics) <= 4 << 20);
    wait(bench.volume.drain_class("slow", &tanada_volume::Relocation::default())).unwrap();
    assert!(on_fastest(&database.statistics()) > 10 << 20);
    // Till all workers rest.
    std::thread::sleep(Duration::from_millis(500));
    wait(bench.volume.fill_class("slow")).unwrap();
    until(&database, "below 4 MiB again", |statistics| on_fastest(statistics) <= 4 << 20);
    check(&store, 0..20_000, 1);
    wait(database.close()).unwrap();
}

/// Mirrors and copies of what was read often are there as long as there is space for them.
#[test]
fn mirrors_and_copies_go_when_the_limit_is_lowered() {
    let bench = Bench::new();
    let small = DatabaseSettings { memory_bytes: 1 << 20, ..Bench::settings() };
    let create = Database::create(&bench.volume, "test", &small, bench.environment.clone());
    let database = wait(create).unwrap();
    let settings = StoreSettings {
        promoted_bytes_per_second: 64 << 20,
        policy: PolicyTemplate::CapacityOnly.into(),
        ..settings()
    };
    let store = wait(database.create_store("a", &settings)).unwrap();
    let mirrored =
        wait(database.create_store("b", &StoreSettings { mirrors: true, ..self::settings() })).unwrap();
    write(&mirrored, 0..4000, 1);
    write(&store, 0..6000, 1);
    wait(mirrored.compact()).unwrap();
    wait(store.compact()).unwrap();
    let mut rounds = 0;
    while database.statistics().since_opening.bytes_promoted < 1 << 20 {
        rounds += 1;
        assert!(rounds < 1000, "{:#?}", database.statistics());
        check(&store, 0..2000, 1);
    }
    let limit = DatabaseOverrides { fast_class_bytes: Some(Some(3 << 20)), ..DatabaseOverrides::default() };
    wait(database.set_settings(&limit)).unwrap();
    until(&database, "below 3 MiB", |statistics| on_fastest(statistics) <= 3 << 20);
    check(&store, 0..6000, 1);
    check(&mirrored, 0..4000, 1);
    assert_eq!(wait(database.check()).unwrap().findings, Vec::<String>::new());
    wait(database.close()).unwrap();
}

/// Has threads end, also when the test fails.
struct Ends<'a>(&'a AtomicBool);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[test]
fn nobody_stalls_for_good_when_the_limit_is_lowered_under_load() {
    let bench = Bench::with_classes(64 << 20, 512 << 20);
    let (database, store) =
        with_store(&bench, &StoreSettings { policy: PolicyTemplate::StagingOnly.into(), ..settings() });
    write(&store, 0..12_000, 1);
    wait(store.compact()).unwrap();
    let (written, has_ended) = (AtomicU64::new(0), AtomicBool::new(false));
    std::thread::scope(|scope| {
        for thread in 0..3u64 {
            let (store, written, has_ended) = (&store, &written, &has_ended);
            scope.spawn(move || {
                for round in 1.. {
                    for no in (thread..12_000).step_by(3) {
                        if has_ended.load(Ordering::Relaxed) {
                            return;
                        }
                        let options = WriteOptions::within(1000);
                        wait(store.put_with(&no.to_be_bytes(), &value(no, round), &options)).unwrap();
                        written.fetch_add(1, Ordering::Relaxed);
                    }
                }
            });
        }
        let _ends = Ends(&has_ended);
        for limit in [8u64 << 20, 32 << 20, 6 << 20] {
            let changes =
                DatabaseOverrides { fast_class_bytes: Some(Some(limit)), ..DatabaseOverrides::default() };
            wait(database.set_settings(&changes)).unwrap();
            let below = |statistics: &Statistics| on_fastest(statistics) <= limit + LOG_BYTES;
            until(&database, "below the limit", below);
            let before = written.load(Ordering::Relaxed);
            until(&database, "writes", |_| written.load(Ordering::Relaxed) > before + 1000);
            until(&database, "still below the limit", below);
        }
    });
    for no in 0..12_000u64 {
        let found = wait(store.get(&no.to_be_bytes())).unwrap().unwrap();
        assert_eq!(found[..8], no.to_be_bytes());
    }
    assert_eq!(wait(database.check()).unwrap().findings, Vec::<String>::new());
    wait(database.close()).unwrap();
}

fn separations(round: u32) -> StoreOverrides {
    StoreOverrides { separate_from_bytes: Some(1000 + round % 2), ..StoreOverrides::default() }
}

fn compressions(round: u32) -> StoreOverrides {
    let compression = if round.is_multiple_of(2) { Compression::Lz4 } else { Compression::None };
    StoreOverrides { compression: Some(compression), ..StoreOverrides::default() }
}

fn leaves(round: u32) -> StoreOverrides {
    StoreOverrides { leaf_bytes: Some(u64::from(round) << 16), ..StoreOverrides::default() }
}

fn policies(round: u32) -> StoreOverrides {
    let templates = [PolicyTemplate::StagingOnly, PolicyTemplate::CapacityOnly];
    StoreOverrides { policy: Some(templates[round as usize % 2].into()), ..StoreOverrides::default() }
}

/// Each change counts, whoever makes others at the same time, and whatever jobs do.
#[test]
fn changes_at_once_all_count() {
    let bench = Bench::new();
    let (database, store) = with_store(&bench, &settings());
    let has_ended = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for round in 0.. {
                write(&store, 0..500, round);
                if has_ended.load(Ordering::Relaxed) {
                    break;
                }
            }
        });
        let changers =
            [separations, compressions, leaves, policies as fn(u32) -> StoreOverrides].map(|changes| {
                let store = &store;
                scope.spawn(move || (1..=100).for_each(|round| set(store, changes(round))))
            });
        let ends = Ends(&has_ended);
        changers.into_iter().for_each(|changer| changer.join().unwrap());
        drop(ends);
        wait(store.compact()).unwrap();
    });
    let expected = StoreSettings {
        separate_from_bytes: 1000,
        compression: Compression::Lz4,
        leaf_bytes: 100 << 16,
        policy: PolicyTemplate::StagingOnly.into(),
        ..settings()
    };
    assert_eq!(store.settings(), expected);
    for no in 0..500u64 {
        assert_eq!(wait(store.get(&no.to_be_bytes())).unwrap().unwrap()[..8], no.to_be_bytes());
    }
    assert_eq!(wait(database.check()).unwrap().findings, Vec::<String>::new());
    wait(database.close()).unwrap();
    let database = bench.open();
    assert_eq!(database.open_store("a").unwrap().settings(), expected);
    wait(database.close()).unwrap();
}
