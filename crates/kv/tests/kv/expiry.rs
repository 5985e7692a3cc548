//! Entries that live for a time.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tanada_io::BufferPool;
use tanada_kv::blocking::wait;
use tanada_kv::{
    BackgroundTask, CursorOptions, Database, Environment, OpenOptions, StoreOverrides, StoreSettings,
    ThreadEnvironment, WriteOptions,
};

use crate::volumes::Bench;

/// The wall clock is what the test says.
#[derive(Debug)]
struct SetClock {
    inner: Arc<ThreadEnvironment>,
    wall_time_s: AtomicU64,
}

impl Environment for SetClock {
    fn spawn(&self, task: BackgroundTask) {
        self.inner.spawn(task);
    }

    fn sleep(&self, duration: Duration) -> BackgroundTask {
        self.inner.sleep(duration)
    }

    fn now(&self) -> Duration {
        self.inner.now()
    }

    fn wall_time_s(&self) -> u64 {
        self.wall_time_s.load(Ordering::Relaxed)
    }

    fn buffers(&self) -> Arc<BufferPool> {
        self.inner.buffers()
    }
}

fn at_a_million_seconds() -> (Bench, Arc<SetClock>, Database) {
    let bench = Bench::new();
    let environment =
        Arc::new(SetClock { inner: ThreadEnvironment::new(), wall_time_s: AtomicU64::new(1_000_000) });
    let settings = Bench::settings();
    let create = Database::create(&bench.volume, "test", &settings, environment.clone());
    let database = wait(create).unwrap();
    (bench, environment, database)
}

#[test]
fn entries_disappear_when_they_expire() {
    let (bench, environment, database) = at_a_million_seconds();
    let settings = StoreSettings { time_to_live_s: Some(100), ..StoreSettings::default() };
    let store = wait(database.create_store("a", &settings)).unwrap();
    let lasting = wait(database.create_store("b", &StoreSettings::default())).unwrap();
    let short = WriteOptions { time_to_live_s: Some(10), ..WriteOptions::default() };
    for no in 0..300u32 {
        wait(store.put(&no.to_be_bytes(), &[1; 500])).unwrap();
        wait(lasting.put_with(&no.to_be_bytes(), &[1; 50], &short)).unwrap();
    }
    wait(lasting.put(b"lasting", b"1")).unwrap();
    let count = |store: &tanada_kv::Store| {
        let mut cursor = store.cursor(CursorOptions::default());
        std::iter::from_fn(|| wait(cursor.next()).unwrap()).count()
    };
    let one = 1u32.to_be_bytes();
    for is_compacted in [false, true] {
        assert_eq!((count(&store), count(&lasting)), (300, 301));
        assert!(wait(store.get(&one)).unwrap().is_some());
        if !is_compacted {
            wait(store.compact()).unwrap();
            wait(lasting.compact()).unwrap();
        }
    }
    wait(database.checkpoint("copy")).unwrap();
    let options = OpenOptions::default();
    let copy = wait(Database::open(&bench.volume, "copy", &options, environment.clone())).unwrap();
    let (copied, copied_lasting) = (copy.open_store("a").unwrap(), copy.open_store("b").unwrap());
    assert_eq!((count(&copied), count(&copied_lasting)), (300, 301));
    environment.wall_time_s.store(1_000_010, Ordering::Relaxed);
    assert_eq!((count(&store), count(&lasting)), (300, 1));
    assert_eq!((count(&copied), count(&copied_lasting)), (300, 1));
    assert!(wait(lasting.get(&one)).unwrap().is_none());
    environment.wall_time_s.store(1_000_100, Ordering::Relaxed);
    assert_eq!((count(&store), count(&lasting)), (0, 1));
    assert!(wait(store.get(&one)).unwrap().is_none());
    assert_eq!((count(&copied), count(&copied_lasting)), (0, 1));
    wait(copy.close()).unwrap();
    wait(database.close()).unwrap();
}

/// What is written has 32 bits for the time at which it expires: what lives longer stays, instead of being gone at
/// once.
#[test]
fn the_ends_of_time() {
    let (_bench, environment, database) = at_a_million_seconds();
    let store = wait(database.create_store("a", &StoreSettings::default())).unwrap();
    let put = |key: &[u8], time_to_live_s: u32| {
        let options = WriteOptions { time_to_live_s: Some(time_to_live_s), ..WriteOptions::default() };
        wait(store.put_with(key, b"1", &options)).unwrap();
    };
    let is_there = |key: &[u8]| wait(store.get(key)).unwrap().is_some();
    environment.wall_time_s.store(0, Ordering::Relaxed);
    put(b"first", 0);
    environment.wall_time_s.store(1, Ordering::Relaxed);
    assert!(!is_there(b"first"));
    for now in [u64::from(u32::MAX) - 10, u64::from(u32::MAX), u64::MAX] {
        environment.wall_time_s.store(now, Ordering::Relaxed);
        put(b"late", 3600);
        assert!(is_there(b"late"), "{now}");
        wait(store.compact()).unwrap();
        assert!(is_there(b"late"), "{now}");
    }
    wait(database.close()).unwrap();
}

#[test]
fn an_expired_version_hides_the_cached_one_below_it() {
    let (_bench, environment, database) = at_a_million_seconds();
    let store = wait(database.create_store("a", &StoreSettings::default())).unwrap();
    let short = WriteOptions { time_to_live_s: Some(10), ..WriteOptions::default() };
    let count = |numbers: std::ops::Range<u32>, value: u8| {
        let are_there = numbers
            .filter(|no| wait(store.get(&no.to_be_bytes())).unwrap().is_some_and(|found| found[0] == value));
        are_there.count()
    };
    (0..100u32).for_each(|no| wait(store.put(&no.to_be_bytes(), &[1; 500])).unwrap());
    wait(store.compact()).unwrap();
    assert_eq!(count(0..100, 1), 100);
    // Short ones are not held apart from pages, where they would take the place of what was found.
    (0..50u32).for_each(|no| wait(store.put_with(&no.to_be_bytes(), &[2; 50], &short)).unwrap());
    assert_eq!((count(0..25, 2), count(50..100, 1)), (25, 50));
    wait(store.compact()).unwrap();
    // Of 25 to 50 nobody has looked up what is to expire.
    environment.wall_time_s.store(1_000_009, Ordering::Relaxed);
    assert_eq!((count(0..25, 2), count(50..100, 1)), (25, 50));
    environment.wall_time_s.store(1_000_010, Ordering::Relaxed);
    wait(store.compact()).unwrap();
    assert_eq!((count(0..100, 1), count(0..100, 2)), (50, 0));
    // What expires before it is flushed.
    (50..75u32).for_each(|no| wait(store.put_with(&no.to_be_bytes(), &[2; 50], &short)).unwrap());
    environment.wall_time_s.store(1_000_020, Ordering::Relaxed);
    wait(store.compact()).unwrap();
    assert_eq!((count(0..100, 1), count(0..100, 2)), (25, 0));
    wait(database.close()).unwrap();
}

#[test]
fn long_expired_versions_are_removed_in_the_background() {
    let (bench, environment, database) = at_a_million_seconds();
    let settings = StoreSettings { time_to_live_s: Some(40), ..StoreSettings::default() };
    let store = wait(database.create_store("a", &settings)).unwrap();
    for no in 0..300u32 {
        wait(store.put(&no.to_be_bytes(), &[1; 500])).unwrap();
    }
    wait(store.compact()).unwrap();
    assert_eq!(database.statistics().stores[0].versions, 300);
    wait(database.close()).unwrap();
    environment.wall_time_s.store(1_000_060, Ordering::Relaxed);
    let options = OpenOptions::default();
    let database = wait(Database::open(&bench.volume, "test", &options, environment.clone())).unwrap();
    for _ in 0..1000 {
        if database.statistics().stores[0].versions == 0 {
            break;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    assert_eq!(database.statistics().stores[0].versions, 0);
    wait(database.close()).unwrap();
}

#[test]
fn a_new_time_to_live_applies_to_later_writes() {
    let (_bench, environment, database) = at_a_million_seconds();
    let store = wait(database.create_store("a", &StoreSettings::default())).unwrap();
    let live = |time_to_live_s| {
        let changes = StoreOverrides { time_to_live_s: Some(time_to_live_s), ..StoreOverrides::default() };
        wait(store.set_settings(&changes)).unwrap();
    };
    wait(store.put(b"before", b"1")).unwrap();
    live(Some(100));
    wait(store.put(b"meanwhile", b"1")).unwrap();
    live(None);
    wait(store.put(b"after", b"1")).unwrap();
    wait(store.compact()).unwrap();
    environment.wall_time_s.store(1_000_100, Ordering::Relaxed);
    let is_there = |key: &[u8]| wait(store.get(key)).unwrap().is_some();
    assert_eq!([&b"before"[..], b"meanwhile", b"after"].map(is_there), [true, false, true]);
    wait(database.close()).unwrap();
}
