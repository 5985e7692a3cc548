//! Bulk loads and copies.

use std::panic::AssertUnwindSafe;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::time::Duration;

use tanada_kv::blocking::wait;
use tanada_kv::{
    CrashPoints, CrashProbe, CursorOptions, Database, DatabaseSettings, ErrorKind, OpenOptions, Store,
    StoreSettings,
};

use crate::volumes::Bench;

fn key(no: u32) -> Vec<u8> {
    format!("key{no:07}").into_bytes()
}

fn value(no: u32) -> Vec<u8> {
    vec![no as u8; 20 + (no as usize * 37) % 900]
}

fn load(store: &Store, numbers: impl Iterator<Item = u32>) {
    try_load(store, numbers).unwrap();
}

fn try_load(store: &Store, numbers: impl Iterator<Item = u32>) -> tanada_kv::Result<u64> {
    let mut load = wait(store.bulk_load())?;
    for no in numbers {
        wait(load.put(&key(no), &value(no)))?;
    }
    wait(load.finish())
}

fn settings() -> StoreSettings {
    StoreSettings { leaf_bytes: 256 << 10, value_segment_bytes: 256 << 10, ..StoreSettings::default() }
}

#[test]
fn a_load_is_there_as_a_whole_and_writes_each_byte_once() {
    let bench = Bench::new();
    let database = bench.create();
    let store = wait(database.create_store("a", &settings())).unwrap();
    load(&store, (0..10_000).filter(|no| no % 2 == 0));
    let statistics = database.statistics();
    assert!(statistics.write_amplification < 1.3, "{statistics:?}");
    assert!(statistics.stores[0].leaves > 5, "{statistics:?}");
    // Another one between, over what was written meanwhile, and with writes while it runs.
    wait(store.put(&key(1), b"old")).unwrap();
    let mut second = wait(store.bulk_load()).unwrap();
    wait(store.put(&key(3), b"newer")).unwrap();
    for no in (0..10_000).filter(|no| no % 2 == 1) {
        wait(second.put(&key(no), &value(no))).unwrap();
        if no < 100 {
            assert_eq!(wait(store.get(&key(9))).unwrap(), None);
        }
    }
    let unsorted = wait(second.put(&key(5), b""));
    assert_eq!(unsorted.unwrap_err().kind(), ErrorKind::InvalidInput);
    // Whatever comes before it: its bytes would fill the screen.
    let long = wait(second.put(&[1; 70_000], b"")).unwrap_err().to_string();
    assert!(long.contains("70000 bytes") && long.len() < 200, "{long}");
    let unsorted = wait(second.put(&[0; 60_000], b"")).unwrap_err().to_string();
    assert!(unsorted.contains("not larger") && unsorted.len() < 400, "{unsorted}");
    wait(second.finish()).unwrap();
    let expected = |no: u32| if no == 3 { b"newer".to_vec() } else { value(no) };
    for round in 0..2 {
        let database = if round == 0 { database.clone() } else { bench.open() };
        let store = database.open_store("a").unwrap();
        let mut cursor = store.cursor(CursorOptions::default());
        for no in 0..10_000 {
            let (found, found_value) = wait(cursor.next()).unwrap().unwrap();
            assert_eq!((found.to_vec(), found_value.to_vec()), (key(no), expected(no)));
        }
        assert_eq!(wait(cursor.next()).unwrap(), None);
        assert_eq!(wait(database.check()).unwrap().findings, Vec::<String>::new());
        wait(database.close()).unwrap();
    }
}

#[test]
fn a_load_that_is_given_up_leaves_nothing() {
    let bench = Bench::new();
    let database = bench.create();
    let store = wait(database.create_store("a", &settings())).unwrap();
    let mut load = wait(store.bulk_load()).unwrap();
    for no in 0..5000 {
        wait(load.put(&key(no), &value(no))).unwrap();
    }
    drop(load);
    assert_eq!(wait(store.get(&key(1))).unwrap(), None);
    wait(store.put(&key(1), b"1")).unwrap();
    wait(database.close()).unwrap();
    wait(bench.open().close()).unwrap();
    let left: u64 = bench.objects("segment").iter().map(|object| object.allocated_bytes()).sum();
    assert!(left <= 3 << 20, "{left}");
}

#[test]
fn checkpoints_are_consistent_at_one_moment() {
    let bench = Bench::new();
    let database = bench.create();
    let a = wait(database.create_store("a", &settings())).unwrap();
    let b = wait(database.create_store("b", &settings())).unwrap();
    for no in 0..3000 {
        wait(a.put(&key(no % 1000), &value(no))).unwrap();
    }
    wait(b.put(b"1", b"one")).unwrap();
    wait(a.delete(&key(7))).unwrap();
    wait(database.checkpoint("copy")).unwrap();
    assert_eq!(wait(database.checkpoint("copy")).unwrap_err().kind(), ErrorKind::AlreadyExists);
    wait(a.put(&key(1), b"later")).unwrap();
    let copy =
        wait(Database::open(&bench.volume, "copy", &OpenOptions::default(), bench.environment.clone()))
            .unwrap();
    assert_eq!(copy.stores(), ["a", "b"]);
    assert_eq!(copy.settings(), database.settings(), "while it is made it has less memory");
    let copied = copy.open_store("a").unwrap();
    for no in 0..1000 {
        let expected = (no != 7).then(|| value(no + 2000));
        assert_eq!(wait(copied.get(&key(no))).unwrap().map(|value| value.to_vec()), expected);
    }
    assert_eq!(wait(copy.open_store("b").unwrap().get(b"1")).unwrap().as_deref(), Some(&b"one"[..]));
    wait(copy.close()).unwrap();
    wait(database.close()).unwrap();
}

/// A class that a policy or the log named may have gone since: what is there goes on, and can be copied.
#[test]
fn checkpoints_work_after_a_named_class_was_removed() {
    let bench = Bench::with_layout(256 << 10, &[("fast", 64 << 20), ("mid", 64 << 20), ("slow", 128 << 20)]);
    let named = DatabaseSettings { log_class: Some("mid".to_owned()), ..Bench::settings() };
    let create = Database::create(&bench.volume, "test", &named, bench.environment.clone());
    let database = wait(create).unwrap();
    let policy =
        r#"{"root": {"keys": "fastest", "values": "log"}, "leaf": {"keys": "fastest", "values": "mid"}}"#;
    let settings = StoreSettings { policy: serde_json::from_str(policy).unwrap(), ..settings() };
    let store = wait(database.create_store("a", &settings)).unwrap();
    (0..1000).for_each(|no| wait(store.put(&key(no), &value(no))).unwrap());
    wait(store.compact()).unwrap();
    wait(database.drain_class("mid")).unwrap();
    wait(bench.volume.remove_class("mid")).unwrap();
    wait(database.checkpoint("copy")).unwrap();
    // What is rebuilt has to name what is there.
    assert!(wait(database.create_store("b", &settings)).is_err());
    wait(database.close()).unwrap();
    let options = OpenOptions::default();
    let copy = wait(Database::open(&bench.volume, "copy", &options, bench.environment.clone())).unwrap();
    let store = copy.open_store("a").unwrap();
    (0..1000).for_each(|no| assert_eq!(wait(store.get(&key(no))).unwrap().unwrap(), value(no)));
    wait(store.put(b"other", b"value")).unwrap();
    wait(copy.close()).unwrap();
}

/// Stores come and go while copies are made: each copy has whole stores, and none of them fails.
#[test]
fn a_copy_does_not_fail_because_a_store_is_dropped() {
    let bench = Bench::new();
    let database = bench.create();
    let kept = wait(database.create_store("kept", &StoreSettings::default())).unwrap();
    let fill = |store: &Store| (0..500).for_each(|no| wait(store.put(&key(no), &[7; 300])).unwrap());
    fill(&kept);
    let mut dropped_meanwhile = 0;
    for round in 0..40 {
        let temporary = wait(database.create_store("temporary", &StoreSettings::default())).unwrap();
        fill(&temporary);
        let name = format!("copy {round}");
        std::thread::scope(|scope| {
            scope.spawn(|| {
                std::thread::sleep(std::time::Duration::from_micros(400 * round));
                wait(database.drop_store("temporary")).unwrap();
            });
            wait(database.checkpoint(&name)).unwrap_or_else(|error| panic!("round {round}: {error}"));
        });
        let options = OpenOptions::read_only();
        let opened = Database::open(&bench.volume, &name, &options, bench.environment.clone());
        let copy = wait(opened).unwrap();
        dropped_meanwhile += usize::from(copy.stores() == ["kept"]);
        for name in copy.stores() {
            let mut cursor = copy.open_store(&name).unwrap().cursor(CursorOptions::default());
            let mut count = 0;
            while wait(cursor.next()).unwrap().is_some() {
                count += 1;
            }
            assert_eq!(count, 500, "{name} in round {round}");
        }
        wait(copy.close()).unwrap();
        wait(Database::destroy(&bench.volume, &name, bench.environment.clone())).unwrap();
    }
    println!("dropped before or while it was copied in {dropped_meanwhile} rounds of 40");
    wait(database.close()).unwrap();
}

/// It filled the volume and waited for ten seconds first.
#[test]
fn a_copy_that_cannot_fit_in_is_refused_before_it_begins() {
    let bench = Bench::with_classes(16 << 20, 112 << 20);
    let database = bench.create();
    let store = wait(database.create_store("a", &settings())).unwrap();
    let large = |no: u8| vec![no; 1 << 20];
    (0..70).for_each(|no| wait(store.put(&[no], &large(no))).unwrap());
    wait(store.compact()).unwrap();
    let error = wait(database.checkpoint("copy")).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NoSpace);
    assert!(error.to_string().contains("half of what is free"), "{error}");
    assert!(bench.volume.objects().iter().all(|object| !object.name().starts_with("kv/copy/")));
    // With most of it deleted there is space, though nothing was given back yet.
    let kept = database.snapshot();
    (4..70).for_each(|no| wait(store.delete(&[no])).unwrap());
    let statistics = database.statistics();
    assert!(statistics.bytes_in_use > 64 << 20, "{}", statistics.bytes_in_use);
    wait(database.checkpoint("copy")).unwrap();
    drop(kept);
    let copy =
        wait(Database::open(&bench.volume, "copy", &OpenOptions::default(), bench.environment.clone()))
            .unwrap();
    assert_eq!(wait(copy.open_store("a").unwrap().get(&[3])).unwrap().unwrap(), large(3));
    wait(copy.close()).unwrap();
    wait(database.close()).unwrap();
}

/// Stops at the end of the first copy.
#[derive(Default)]
struct StopsOnce(AtomicBool);

impl CrashProbe for StopsOnce {
    fn reached(&self, name: &'static str) {
        assert!(name != "checkpoint.before-manifest" || self.0.swap(true, Ordering::Relaxed), "a stop");
    }
}

#[test]
fn a_copy_that_was_stopped_is_no_database() {
    let bench = Bench::new();
    let crash = CrashPoints::to(Arc::new(StopsOnce::default()));
    let settings = Bench::settings();
    let create = Database::create_with(&bench.volume, "test", &settings, crash, bench.environment.clone());
    let database = wait(create).unwrap();
    let store = wait(database.create_store("a", &StoreSettings::default())).unwrap();
    (0..3000).for_each(|no| wait(store.put(&key(no), &value(no))).unwrap());
    let stopped = std::panic::catch_unwind(AssertUnwindSafe(|| wait(database.checkpoint("copy"))));
    assert!(stopped.is_err());
    // What was under way for it ends.
    let opened = loop {
        let options = OpenOptions { read_only: true, ..OpenOptions::default() };
        match wait(Database::open(&bench.volume, "copy", &options, bench.environment.clone())) {
            Err(error) if error.kind() == ErrorKind::Locked => std::thread::yield_now(),
            opened => break opened,
        }
    };
    let error = opened.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
    assert!(error.to_string().contains("was not finished"), "{error}");
    assert!(!bench.volume.objects().iter().all(|object| !object.name().starts_with("kv/copy/keys-")));
    let create = Database::create(&bench.volume, "copy", &settings, bench.environment.clone());
    assert_eq!(wait(create).unwrap_err().kind(), ErrorKind::AlreadyExists);
    // Another copy takes its place, with nothing left of it.
    wait(database.checkpoint("copy")).unwrap();
    wait(database.close()).unwrap();
    let options = OpenOptions::default();
    let copy = wait(Database::open(&bench.volume, "copy", &options, bench.environment.clone())).unwrap();
    let copied = copy.open_store("a").unwrap();
    assert!((0..3000).all(|no| wait(copied.get(&key(no))).unwrap().as_deref() == Some(&value(no)[..])));
    assert_eq!(wait(copy.check()).unwrap().findings, Vec::<String>::new());
    wait(copy.close()).unwrap();
}

/// All of them say in the manifest from where on the log is needed, and up to which number commits are known.
#[test]
fn loads_and_drops_beside_writes_outlast_a_stop() {
    for _ in 0..2 {
        let bench = Bench::new();
        let database = bench.create();
        let [written, loaded] =
            ["written", "loaded"].map(|name| wait(database.create_store(name, &settings())).unwrap());
        std::thread::scope(|scope| {
            scope.spawn(|| (0..8000).for_each(|no| wait(written.put(&key(no), &value(no))).unwrap()));
            scope.spawn(|| (0..40u32).for_each(|part| load(&loaded, part * 50..(part + 1) * 50)));
            scope.spawn(|| {
                for no in 0..40 {
                    let store = wait(database.create_store("passing", &settings())).unwrap();
                    wait(store.put(&key(no), &value(no))).unwrap();
                    wait(database.drop_store("passing")).unwrap();
                }
            });
        });
        wait(database.sync()).unwrap();
        wait(database.abandon());
        drop((written, loaded, database));
        let database = bench.open();
        assert_eq!(database.stores(), ["written", "loaded"]);
        for (name, count) in [("written", 8000), ("loaded", 2000)] {
            let store = database.open_store(name).unwrap();
            for no in 0..count {
                assert_eq!(wait(store.get(&key(no))).unwrap(), Some(value(no).into()), "{name} {no}");
            }
        }
        assert_eq!(wait(database.check()).unwrap().findings, Vec::<String>::new());
        wait(database.close()).unwrap();
    }
}

#[test]
fn writers_that_a_load_holds_up_go_on_when_it_is_given_up() {
    let bench = Bench::new();
    let few = DatabaseSettings { slow_root_kvsets: 2, most_root_kvsets: 2, ..Bench::settings() };
    let database = wait(Database::create(&bench.volume, "test", &few, bench.environment.clone())).unwrap();
    let store = wait(database.create_store("a", &settings())).unwrap();
    let load = wait(store.bulk_load()).unwrap();
    let (tell, told) = mpsc::channel();
    let writer = std::thread::spawn({
        let store = store.clone();
        move || {
            for no in 0..4000 {
                wait(store.put(&key(no), &[7; 1000])).unwrap();
                let _ = tell.send(no);
            }
        }
    });
    // Until no job may empty the root, and nothing moves any more.
    while told.recv_timeout(Duration::from_millis(500)).is_ok() {}
    assert!(!writer.is_finished(), "nothing held it up");
    drop(load);
    for _ in 0..4000 {
        match told.recv_timeout(Duration::from_secs(60)) {
            Ok(3999) => break,
            Ok(_) => {}
            Err(error) => panic!("nobody told the workers: {error}"),
        }
    }
    writer.join().unwrap();
    wait(database.close()).unwrap();
}

#[test]
fn a_bulk_load_under_way_at_close_changes_nothing() {
    let bench = Bench::new();
    let database = bench.create();
    let store = wait(database.create_store("a", &StoreSettings::default())).unwrap();
    wait(store.put(&key(1), b"1")).unwrap();
    let mut load = wait(store.bulk_load()).unwrap();
    // A piece of it is being written.
    for no in 100..9000 {
        wait(load.put(&key(no), &value(no))).unwrap();
    }
    wait(database.close()).unwrap();
    assert_eq!(bench.try_open().unwrap_err().kind(), ErrorKind::Locked, "the load is there still");
    assert_eq!(wait(load.put(&key(9000), b"late")).unwrap_err().kind(), ErrorKind::Closed);
    assert_eq!(wait(load.finish()).unwrap_err().kind(), ErrorKind::Closed);
    let again = bench.open();
    assert_eq!(wait(store.compact()).unwrap_err().kind(), ErrorKind::Closed);
    let store = again.open_store("a").unwrap();
    for no in 0..3000 {
        wait(store.put(&key(no), &value(no))).unwrap();
    }
    assert_eq!(wait(store.get(&key(5000))).unwrap(), None);
    assert_eq!(wait(again.check()).unwrap().findings, Vec::<String>::new());
    wait(again.close()).unwrap();
    let last = bench.open();
    let store = last.open_store("a").unwrap();
    assert_eq!(wait(store.get(&key(2999))).unwrap().as_deref(), Some(&value(2999)[..]));
    wait(last.close()).unwrap();
}

/// What it had begun is not whole: if it went on, keys before that one would be missing.
#[test]
fn a_load_is_over_when_a_put_of_it_did_not_come_to_its_end() {
    let bench = Bench::with_layout(256 << 10, &[("only", 32 << 20)]);
    let database = bench.create();
    let store = wait(database.create_store("a", &settings())).unwrap();
    let long = |no: u32| vec![no as u8; 1000];
    let mut cancelled = wait(store.bulk_load()).unwrap();
    let mut no = 0;
    let was_given_up = |load: &mut tanada_kv::BulkLoad, no: u32| {
        let (key, value) = (key(no), long(no));
        futures::FutureExt::now_or_never(load.put(&key, &value)).is_none()
    };
    while !was_given_up(&mut cancelled, no) {
        no += 1;
        assert!(no < 10_000, "none waits for a device");
    }
    let error = wait(cancelled.put(&key(no + 1), &long(no + 1))).unwrap_err();
    assert!(error.to_string().contains("given up"), "{error}");
    assert!(wait(cancelled.finish()).is_err());

    let mut failing = wait(store.bulk_load()).unwrap();
    let filler = bench.volume.create_object("filler", &tanada_volume::Attributes::default()).unwrap();
    let chunk = vec![1; 256 << 10];
    let mut chunks = 0;
    while wait(filler.write_bytes(chunks * chunk.len() as u64, &chunk)).is_ok() {
        chunks += 1;
    }
    let mut no = 0;
    let error = loop {
        match wait(failing.put(&key(no), &long(no))) {
            Ok(()) => no += 1,
            Err(error) => break error,
        }
    };
    assert_eq!(error.kind(), ErrorKind::NoSpace, "{error}");
    wait(bench.volume.delete("filler")).unwrap();
    drop(filler);
    for again in [wait(failing.put(&key(no), &long(no))), wait(failing.finish()).map(drop)] {
        let error = again.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NoSpace, "{error}");
        assert!(error.to_string().contains("begin the load anew"), "{error}");
    }

    assert_eq!(wait(store.get(&key(0))).unwrap(), None);
    // What the other loads have left is deleted soon.
    let mut tries = 0;
    while let Err(error) = try_load(&store, 0..5000) {
        tries += 1;
        assert!(error.kind() == ErrorKind::NoSpace && tries < 20, "{error}");
        std::thread::sleep(Duration::from_millis(5));
    }
    for no in 0..5000 {
        assert_eq!(wait(store.get(&key(no))).unwrap().as_deref(), Some(&value(no)[..]), "{no}");
    }
    wait(database.close()).unwrap();
}
