//! Making, opening, closing and destroying databases and stores.

use tanada_kv::blocking::wait;
use tanada_kv::{
    Database, DatabaseOverrides, DatabaseSettings, ErrorKind, OpenOptions, StoreSettings, WriteOptions,
};
use tanada_volume::Attributes;

use crate::volumes::Bench;

#[test]
fn databases_and_stores_are_found_by_their_names() {
    let bench = Bench::new();
    let settings = Bench::settings();
    let create =
        |name: &str| wait(Database::create(&bench.volume, name, &settings, bench.environment.clone()));
    let orders = create("orders").unwrap();
    let other = create("other").unwrap();
    assert_eq!(create("orders").unwrap_err().kind(), ErrorKind::AlreadyExists);
    assert_eq!(create("a/b").unwrap_err().kind(), ErrorKind::InvalidInput);
    assert_eq!(Database::names(&bench.volume), ["orders", "other"]);

    let lines = wait(orders.create_store("lines", &StoreSettings::default())).unwrap();
    wait(orders.create_store("heads", &StoreSettings::default())).unwrap();
    let twice = wait(orders.create_store("lines", &StoreSettings::default()));
    assert_eq!(twice.unwrap_err().kind(), ErrorKind::AlreadyExists);
    assert_eq!(orders.stores(), ["lines", "heads"]);
    assert_eq!(orders.open_store("feet").unwrap_err().kind(), ErrorKind::NotFound);
    wait(lines.put(b"1", b"rice")).unwrap();
    let foreign = wait(other.create_store("lines", &StoreSettings::default())).unwrap();
    assert_eq!(wait(foreign.get(b"1")).unwrap(), None);

    wait(orders.close()).unwrap();
    assert_eq!(wait(lines.put(b"2", b"tea")).unwrap_err().kind(), ErrorKind::Closed);
    let orders =
        wait(Database::open(&bench.volume, "orders", &OpenOptions::default(), bench.environment.clone()))
            .unwrap();
    let lines = orders.open_store("lines").unwrap();
    assert_eq!(wait(lines.get(b"1")).unwrap().as_deref(), Some(&b"rice"[..]));
    wait(orders.drop_store("lines")).unwrap();
    assert_eq!(wait(lines.get(b"1")).unwrap_err().kind(), ErrorKind::NotFound);
    let lines = wait(orders.create_store("lines", &StoreSettings::default())).unwrap();
    assert_eq!(wait(lines.get(b"1")).unwrap(), None);
    wait(orders.close()).unwrap();

    wait(Database::destroy(&bench.volume, "orders", bench.environment.clone())).unwrap();
    assert_eq!(Database::names(&bench.volume), ["other"]);
    assert!(bench.volume.objects().iter().all(|object| !object.name().starts_with("kv/orders/")));
    wait(other.close()).unwrap();
}

/// Nobody writes out what a store has in memory that is dropped, and whoever waited for that waited for ever.
#[test]
fn a_dropped_store_is_neither_compacted_nor_loaded() {
    let bench = Bench::new();
    let database = bench.create();
    for has_table in [true, false] {
        let store = wait(database.create_store("a", &StoreSettings::default())).unwrap();
        if has_table {
            wait(store.put(b"1", b"rice")).unwrap();
        }
        wait(database.drop_store("a")).unwrap();
        assert_eq!(wait(store.compact()).unwrap_err().kind(), ErrorKind::NotFound);
        assert_eq!(wait(store.bulk_load()).unwrap_err().kind(), ErrorKind::NotFound);
    }
    let destroyed = wait(Database::destroy(&bench.volume, "test", bench.environment.clone()));
    assert!(destroyed.unwrap_err().to_string().contains("cannot destroy"));
    wait(database.close()).unwrap();
}

/// A replay begins where the oldest table does, and a table that began within a group of the log left a database that
/// could not be opened.
#[test]
fn a_store_that_is_made_between_two_writes_is_replayed() {
    let bench = Bench::new();
    let database = bench.create();
    let first = wait(database.create_store("first", &StoreSettings::default())).unwrap();
    wait(first.put_with(b"1", b"rice", &WriteOptions::within(1000))).unwrap();
    let second = wait(database.create_store("second", &StoreSettings::default())).unwrap();
    wait(second.put_with(b"1", b"tea", &WriteOptions::within(1000))).unwrap();
    // The first is flushed, so that only the second needs the log.
    wait(first.compact()).unwrap();
    wait(second.put_with(b"2", b"salt", &WriteOptions::sync())).unwrap();
    wait(database.abandon());
    drop((first, second, database));
    let database = bench.open();
    for (store, key, value) in
        [("first", b"1", &b"rice"[..]), ("second", b"1", b"tea"), ("second", b"2", b"salt")]
    {
        let store = database.open_store(store).unwrap();
        assert_eq!(wait(store.get(key)).unwrap().as_deref(), Some(value));
    }
    wait(database.close()).unwrap();
}

#[test]
fn a_read_only_opening_changes_nothing() {
    let bench = Bench::new();
    let database = bench.create();
    let store = wait(database.create_store("lines", &StoreSettings::default())).unwrap();
    wait(store.put(b"1", b"rice")).unwrap();
    wait(database.sync()).unwrap();
    wait(database.abandon());
    drop((store, database));
    let names = || bench.volume.objects().iter().map(tanada_volume::Object::name).collect::<Vec<_>>();
    let before = names();
    let options = OpenOptions { read_only: true, ..OpenOptions::default() };
    let database = wait(Database::open(&bench.volume, "test", &options, bench.environment.clone())).unwrap();
    let store = database.open_store("lines").unwrap();
    assert_eq!(wait(store.get(b"1")).unwrap().as_deref(), Some(&b"rice"[..]));
    assert_eq!(wait(store.put(b"1", b"tea")).unwrap_err().kind(), ErrorKind::ReadOnly);
    let class = bench.volume.classes()[0].name.clone();
    assert_eq!(wait(database.drain_class(&class)).unwrap_err().kind(), ErrorKind::ReadOnly);
    assert!(!bench.volume.classes()[0].is_draining, "it was drained all the same");
    wait(database.close()).unwrap();
    // The next segment may have been under way.
    assert!(names().iter().all(|name| before.contains(name) || name.contains("segment")));
}

/// A second opening would not know what the first one writes and deletes.
#[test]
fn a_database_is_open_once_for_writing_or_several_times_for_reading() {
    let bench = Bench::new();
    let writer = bench.create();
    wait(writer.create_store("lines", &StoreSettings::default())).unwrap();
    let read = || {
        let options = OpenOptions::read_only();
        wait(Database::open(&bench.volume, "test", &options, bench.environment.clone()))
    };
    for refused in [bench.try_open().unwrap_err(), read().unwrap_err()] {
        assert_eq!(refused.kind(), ErrorKind::Locked);
        assert!(refused.to_string().contains("\"test\""), "{refused}");
        assert!(refused.to_string().contains("open for writing in this process"), "{refused}");
    }
    let destroyed = wait(Database::destroy(&bench.volume, "test", bench.environment.clone()));
    assert_eq!(destroyed.unwrap_err().kind(), ErrorKind::Locked);
    wait(writer.close()).unwrap();
    // Its handle is still there.
    let readers = [read().unwrap(), read().unwrap()];
    assert!(bench.try_open().unwrap_err().to_string().contains("open for reading"));
    let [first, second] = readers;
    wait(first.close()).unwrap();
    assert_eq!(bench.try_open().unwrap_err().kind(), ErrorKind::Locked);
    drop(second);
    let writer = bench.open();
    drop(writer);
    // What was under way when the last handle went ends.
    let mut rounds = 0;
    let writer = loop {
        match bench.try_open() {
            Ok(writer) => break writer,
            Err(error) => assert_eq!(error.kind(), ErrorKind::Locked),
        }
        rounds += 1;
        assert!(rounds < 1000);
        std::thread::sleep(std::time::Duration::from_millis(10));
    };
    wait(writer.close()).unwrap();
}

#[test]
fn wrong_settings_are_refused() {
    let bench = Bench::new();
    let settings = DatabaseSettings { memory_bytes: 1, ..DatabaseSettings::default() };
    let created = wait(Database::create(&bench.volume, "test", &settings, bench.environment.clone()));
    assert_eq!(created.unwrap_err().kind(), ErrorKind::InvalidInput);
    assert_eq!(bench.try_open().unwrap_err().kind(), ErrorKind::NotFound);
    assert!(bench.objects("manifest").is_empty());
}

/// Engine futures run wherever they are polled.
#[test]
fn futures_may_change_threads() {
    fn is_send<T: Send>(_: &T) {}
    let bench = Bench::new();
    let database = bench.create();
    let store = wait(database.create_store("lines", &StoreSettings::default())).unwrap();
    is_send(&store.get(b"1"));
    is_send(&store.put(b"1", b"2"));
    is_send(&store.update(b"1", |old| old.cloned(), &Default::default()));
    is_send(&database.sync());
    is_send(&database.close());
    let mut transaction = database.begin(Default::default());
    is_send(&transaction.get(&store, b"1"));
    is_send(&transaction.commit(&Default::default()));
    wait(database.close()).unwrap();
}

#[test]
fn a_database_that_lacks_a_part_is_neither_new_nor_whole() {
    let bench = Bench::new();
    let database = bench.create();
    let store = wait(database.create_store("lines", &StoreSettings::default())).unwrap();
    wait(store.put(b"1", b"rice")).unwrap();
    wait(store.compact()).unwrap();
    wait(database.close()).unwrap();
    drop((store, database));
    let create = || {
        let settings = Bench::settings();
        wait(Database::create(&bench.volume, "test", &settings, bench.environment.clone()))
    };
    let remove = |kind: &str| {
        for object in bench.objects(kind) {
            wait(bench.volume.delete(&object.name())).unwrap();
        }
    };
    let keys = bench.objects("keys");
    assert!(!keys.is_empty());
    // Without its manifest what is left is not taken for remains and deleted.
    let manifest = bench.objects("manifest");
    let saved: Vec<_> = manifest
        .iter()
        .map(|object| (object.name(), wait(object.read_bytes(0, object.size_bytes() as usize)).unwrap()))
        .collect();
    remove("manifest");
    assert_eq!(bench.try_open().unwrap_err().kind(), ErrorKind::NotFound);
    assert_eq!(create().unwrap_err().kind(), ErrorKind::Corrupted);
    assert_eq!(bench.objects("keys").len(), keys.len());
    for (name, bytes) in saved {
        let object = bench.volume.create_object(&name, &Attributes::default()).unwrap();
        wait(object.write_bytes(0, &bytes)).unwrap();
    }
    wait(bench.open().close()).unwrap();
    // Without a key file it is damaged, and says which.
    let missing = bench.objects("keys")[0].name();
    remove("keys");
    let error = bench.try_open().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corrupted);
    assert!(error.to_string().contains(&missing), "{error}");
    wait(Database::destroy(&bench.volume, "test", bench.environment.clone())).unwrap();
    wait(create().unwrap().close()).unwrap();
}

#[test]
fn a_log_class_that_is_not_there_is_refused_at_an_opening_too() {
    let bench = Bench::new();
    wait(bench.create().close()).unwrap();
    let settings = DatabaseSettings { log_class: Some("none".to_owned()), ..Bench::settings() };
    let options = OpenOptions { settings: settings.into(), ..OpenOptions::default() };
    let opened = wait(Database::open(&bench.volume, "test", &options, bench.environment.clone()));
    let error = opened.unwrap_err();
    assert!(error.kind() == ErrorKind::NotFound && error.to_string().contains("\"none\""), "{error}");
    wait(bench.open().close()).unwrap();
}

/// The policy went on to want values of the root where the log was not.
#[test]
fn a_log_class_that_contradicts_a_policy_is_refused() {
    let bench = Bench::new();
    let database = bench.create();
    let classes = bench.volume.classes();
    let [fast, slow] = &classes[..] else { panic!("{classes:?}") };
    let policy = format!(
        r#"{{"root":{{"keys":"fastest","values":{:?}}},"leaf":{{"keys":"fastest","values":"slowest"}}}}"#,
        fast.name
    );
    let policy = serde_json::from_str(&policy).unwrap();
    let settings = StoreSettings { policy, ..StoreSettings::default() };
    let store = wait(database.create_store("a", &settings)).unwrap();
    wait(database.close()).unwrap();
    drop((store, database));
    let open = |class: &str| {
        let settings = DatabaseSettings { log_class: Some(class.to_owned()), ..Bench::settings() };
        let options = OpenOptions { settings: settings.into(), ..OpenOptions::default() };
        wait(Database::open(&bench.volume, "test", &options, bench.environment.clone()))
    };
    let error = open(&slow.name).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidInput, "{error}");
    assert!(error.to_string().contains("store \"a\": root.values of a policy is"), "{error}");
    wait(open(&fast.name).unwrap().close()).unwrap();
}

#[test]
fn statistics_accumulate_over_all_openings() {
    let bench = Bench::new();
    let database = bench.create();
    let store = wait(database.create_store("a", &StoreSettings::default())).unwrap();
    for round in 0..3u8 {
        (0..500u32).for_each(|no| wait(store.put(&no.to_be_bytes(), &[round; 1000])).unwrap());
        (0..64u32).for_each(|no| drop(wait(store.get(&no.to_be_bytes())).unwrap()));
    }
    wait(store.compact()).unwrap();
    wait(database.close()).unwrap();
    let first = bench.open();
    let before = first.statistics();
    assert_eq!((before.since_opening.operations_written, before.lifetime.operations_written), (0, 1500));
    let store = first.open_store("a").unwrap();
    (0..64u32).for_each(|no| drop(wait(store.get(&no.to_be_bytes())).unwrap()));
    wait(store.put(b"z", b"z")).unwrap();
    wait(first.close()).unwrap();
    let options = OpenOptions::read_only();
    let open = Database::open(&bench.volume, "test", &options, bench.environment.clone());
    let database = wait(open).unwrap();
    let statistics = database.statistics();
    let lifetime = &statistics.lifetime;
    assert_eq!((statistics.since_opening.gets, statistics.since_opening.operations_written), (0, 0));
    assert_eq!((lifetime.openings, lifetime.operations_written, lifetime.gets), (2, 1501, 4 * 64));
    assert!(lifetime.writes().samples > 90 && lifetime.reads().samples >= 16, "{lifetime:#?}");
    assert!(lifetime.flushes > 0 && lifetime.jobs > 0 && lifetime.log_syncs > 0, "{lifetime:#?}");
    let spills = &lifetime.jobs_by_kind["spill"];
    assert!((1..=lifetime.jobs).contains(&spills.count) && spills.us > 0, "{lifetime:#?}");
    assert!((500..=1501).contains(&spills.versions), "{spills:?}");
    assert!((1.0..4.0).contains(&lifetime.write_amplification()), "{lifetime:#?}");
    let [fast, slow] = ["fast", "slow"].map(|class| lifetime.written[class]);
    assert!(
        fast.log > 1_500_000 && fast.flush_keys > 0 && fast.job_keys > 0 && fast.manifest > 0,
        "{fast:?}"
    );
    assert!(slow.job_values >= 500_000 && slow.log == 0 && slow.manifest == 0, "{slow:?}");
    wait(database.close()).unwrap();
}

/// A limit that was set when a database was made holds though an opening that changes something else does not repeat
/// it.
#[test]
fn settings_that_an_opening_does_not_name_stay() {
    let bench = Bench::new();
    let made = DatabaseSettings { fast_class_bytes: Some(32 << 20), ..Bench::settings() };
    let environment = || bench.environment.clone();
    wait(wait(Database::create(&bench.volume, "test", &made, environment())).unwrap().close()).unwrap();
    let opened = |options: OpenOptions| {
        let database = wait(Database::open(&bench.volume, "test", &options, environment())).unwrap();
        let settings = database.settings().clone();
        wait(database.close()).unwrap();
        settings
    };
    let more = DatabaseOverrides { memory_bytes: Some(8 << 20), ..DatabaseOverrides::default() };
    let changed = DatabaseSettings { memory_bytes: 8 << 20, ..made.clone() };
    // One that only reads has them for itself.
    let settings = more.clone();
    assert_eq!(opened(OpenOptions { settings: settings.clone(), ..OpenOptions::read_only() }), changed);
    assert_eq!(opened(OpenOptions::default()), made);
    assert_eq!(opened(OpenOptions { settings, ..OpenOptions::default() }), changed);
    assert_eq!(opened(OpenOptions::default()), changed);
    let unlimited = DatabaseOverrides { fast_class_bytes: Some(None), ..DatabaseOverrides::default() };
    let last = opened(OpenOptions { settings: unlimited, ..OpenOptions::default() });
    assert_eq!(last, DatabaseSettings { fast_class_bytes: None, ..changed.clone() });
    // What is named and what is there have to go together.
    let group = DatabaseOverrides { log_group_bytes: Some(2 << 20), ..DatabaseOverrides::default() };
    let options = OpenOptions { settings: group, ..OpenOptions::default() };
    let error = wait(Database::open(&bench.volume, "test", &options, environment())).unwrap_err();
    assert!(error.kind() == ErrorKind::InvalidInput && error.to_string().contains("log_group_bytes"));
    assert_eq!(opened(OpenOptions { settings: made.clone().into(), ..OpenOptions::default() }), made);
}

#[test]
fn a_create_without_space_leaves_no_objects() {
    let bench = Bench::with_classes(4 << 20, 4 << 20);
    let full = bench.volume.create_object("full", &Attributes::default()).unwrap();
    let mut at = 0;
    while wait(full.write_bytes(at, &[7; 4096])).is_ok() {
        at += 256 << 10;
    }
    assert!(at > 4 << 20, "{at}");
    let create =
        || wait(Database::create(&bench.volume, "test", &Bench::settings(), bench.environment.clone()));
    for _ in 0..2 {
        assert_eq!(create().unwrap_err().kind(), ErrorKind::NoSpace);
        assert_eq!(Database::names(&bench.volume), Vec::<String>::new());
    }
    wait(bench.volume.delete("full")).unwrap();
    wait(create().unwrap().close()).unwrap();
}

/// Waits until the log has a segment ready, and takes what is left of the volume.
fn fill(bench: &Bench, database: &Database, filler: &str) {
    let log_bytes = || database.statistics().classes.iter().map(|class| class.log_bytes).sum::<u64>();
    let is_ready = |_: &u32| {
        std::thread::sleep(std::time::Duration::from_millis(1));
        log_bytes() >= 2 << 20
    };
    assert!((0..30_000).find(is_ready).is_some());
    let filler = bench.volume.create_object(filler, &Attributes::default()).unwrap();
    let written = (0..100).map(|no| wait(filler.write_bytes(no << 18, &[1; 1 << 18])));
    let full = written.filter_map(Result::err).next().unwrap();
    assert_eq!(full.kind(), tanada_volume::ErrorKind::NoSpace);
}

/// The room that the log had ready for itself is enough.
#[test]
fn a_volume_that_was_filled_meanwhile_is_no_failure_of_closing() {
    let bench = Bench::with_classes(4 << 20, 1 << 20);
    let database = bench.create();
    let store = wait(database.create_store("a", &StoreSettings::default())).unwrap();
    wait(store.put(b"1", b"rice")).unwrap();
    fill(&bench, &database, "filler");
    wait(database.close()).unwrap();
    let database = bench.open();
    let store = &database.statistics().stores[0];
    assert_eq!((store.versions, store.logged_versions, store.logged_bytes), (1, 0, 0));
    wait(database.close()).unwrap();
}

/// The same; and where nothing is left, whoever waits is told.
#[test]
fn compaction_in_a_full_volume_uses_the_spare_log_segment_or_fails() {
    let bench = Bench::with_classes(4 << 20, 1 << 20);
    let database = bench.create();
    let store = wait(database.create_store("a", &StoreSettings::default())).unwrap();
    wait(store.put(b"1", b"rice")).unwrap();
    wait(store.compact()).unwrap();
    wait(store.put(b"1", b"tea")).unwrap();
    fill(&bench, &database, "filler");
    wait(store.compact()).unwrap();
    assert_eq!(database.statistics().stores[0].versions, 1);
    let rest = bench.volume.create_object("rest", &Attributes::default()).unwrap();
    // What was dropped may give space back for a moment yet.
    let error = (0..100).find_map(|_| {
        wait(store.delete(b"1")).unwrap();
        (0..100).for_each(|no| drop(wait(rest.write_bytes(no << 18, &[1; 1 << 18]))));
        wait(store.compact()).err()
    });
    assert_eq!(error.unwrap().kind(), ErrorKind::NoSpace);
    assert_eq!(wait(store.put(b"1", b"salt")).unwrap_err().kind(), ErrorKind::NoSpace);
    assert_eq!(wait(store.get(b"1")).unwrap(), None);
    assert!(wait(database.close()).map_or_else(|error| error.kind() == ErrorKind::NoSpace, |()| true));
}

#[test]
fn many_stores_share_the_memory_of_tables() {
    let bench = Bench::with_classes(64 << 20, 512 << 20);
    let database = bench.create();
    let names: Vec<String> = (0..100).map(|no| format!("store {no}")).collect();
    let stores: Vec<_> = names
        .iter()
        .map(|name| wait(database.create_store(name, &StoreSettings::default())).unwrap())
        .collect();
    let mut most = 0;
    for no in 0..100u64 {
        for store in &stores {
            wait(store.put(&no.to_be_bytes(), &[7; 200])).unwrap();
        }
        most = most.max(database.statistics().memory_table_bytes);
    }
    // Two that are written to and four that wait, one that is kept for the next, and what comes between two looks.
    let table_bytes = Bench::settings().memory_table_bytes;
    assert!(most <= 9 * table_bytes, "{most} bytes with tables of {table_bytes}");
    for (index, store) in stores.iter().enumerate() {
        assert_eq!(wait(store.get(&99u64.to_be_bytes())).unwrap().as_deref(), Some(&[7; 200][..]), "{index}");
    }
    wait(database.close()).unwrap();
}

/// Polls it once and gives it up.
fn given_up<F: Future>(future: F) -> Option<F::Output> {
    futures::FutureExt::now_or_never(future)
}

/// It could be used no more, and came back at the next opening without what was in memory.
#[test]
fn a_store_is_dropped_though_the_call_is_given_up() {
    let bench = Bench::new();
    let database = bench.create();
    let store = wait(database.create_store("a", &StoreSettings::default())).unwrap();
    wait(store.put_with(b"old", b"1", &WriteOptions::sync())).unwrap();
    wait(store.compact()).unwrap();
    wait(store.put_with(b"new", b"2", &WriteOptions::sync())).unwrap();
    assert!(given_up(database.drop_store("a")).is_none());
    wait(database.close()).unwrap();
    assert!(wait(store.put(b"late", b"3")).is_err());
    drop((store, database));
    let database = bench.open();
    assert_eq!(database.stores(), Vec::<String>::new());
    assert_eq!(wait(database.drop_store("a")).unwrap_err().kind(), ErrorKind::NotFound);
    wait(database.create_store("a", &StoreSettings::default())).unwrap();
    wait(database.close()).unwrap();
}

/// The first one did nothing yet when the second one said that it was done.
#[test]
fn a_second_close_waits_for_the_first() {
    let bench = Bench::new();
    let database = bench.create();
    let store = wait(database.create_store("a", &StoreSettings::default())).unwrap();
    wait(store.put_with(b"key", b"value", &WriteOptions::within(1000))).unwrap();
    assert!(given_up(database.close()).is_none());
    let other = database.clone();
    let closing = std::thread::spawn(move || wait(other.close()));
    wait(database.close()).unwrap();
    closing.join().unwrap().unwrap();
    assert_eq!(wait(store.put(b"key", b"other")).unwrap_err().kind(), ErrorKind::Closed);
    // Nothing has to be replayed any more.
    let database = bench.open();
    let store = database.open_store("a").unwrap();
    assert_eq!(wait(store.get(b"key")).unwrap().as_deref(), Some(&b"value"[..]));
    wait(database.close()).unwrap();
}

#[test]
fn writes_with_a_deadline_are_durable_after_all_handles_are_dropped() {
    let bench = Bench::new();
    let database = bench.create();
    let store = wait(database.create_store("a", &StoreSettings::default())).unwrap();
    for no in 0..100u8 {
        wait(store.put_with(&[no], b"value", &WriteOptions::within(1000))).unwrap();
    }
    drop((store, database));
    let mut tries = 0;
    let database = loop {
        match bench.try_open() {
            Ok(database) => break database,
            // The log is written still.
            Err(error) => assert!(tries < 1000, "{error}"),
        }
        tries += 1;
        std::thread::sleep(std::time::Duration::from_millis(5));
    };
    let store = database.open_store("a").unwrap();
    for no in 0..100u8 {
        assert_eq!(wait(store.get(&[no])).unwrap().as_deref(), Some(&b"value"[..]), "{no}");
    }
    wait(database.close()).unwrap();
}
