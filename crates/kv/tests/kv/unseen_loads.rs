//! A bulk load is not seen by who reads at a moment before its end.

use std::collections::BTreeMap;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex};

use tanada_kv::blocking::wait;
use tanada_kv::{
    CrashPoints, CrashProbe, Cursor, CursorOptions, Database, DatabaseSettings, Isolation, OpenOptions,
    Snapshot, Store, StoreSettings,
};

use crate::volumes::Bench;

type Map = BTreeMap<Vec<u8>, Vec<u8>>;

fn key(no: u32) -> Vec<u8> {
    format!("key{no:05}").into_bytes()
}

/// What was written to a key in one of several rounds; every third value lies apart from its key.
fn value(no: u32, round: u32) -> Vec<u8> {
    let mut value = vec![no as u8; if no.is_multiple_of(3) { 500 } else { 20 }];
    value[..4].copy_from_slice(&round.to_be_bytes());
    value
}

fn settings() -> StoreSettings {
    StoreSettings { leaf_bytes: 64 << 10, value_segment_bytes: 256 << 10, ..StoreSettings::default() }
}

/// A store and what is in it.
struct Written {
    store: Store,
    map: Map,
}

impl Written {
    fn put(&mut self, no: u32, round: u32) {
        wait(self.store.put(&key(no), &value(no, round))).unwrap();
        self.map.insert(key(no), value(no, round));
    }

    fn delete(&mut self, no: u32) {
        wait(self.store.delete(&key(no))).unwrap();
        self.map.remove(&key(no));
    }

    fn delete_range(&mut self, start: u32, end: u32) {
        wait(self.store.delete_range(&key(start), Some(&key(end)))).unwrap();
        self.map.retain(|other, _| *other < key(start) || *other >= key(end));
    }
}

fn there(cursor: &mut Cursor) -> Map {
    let mut map = Map::new();
    while let Some((key, value)) = wait(cursor.next()).unwrap() {
        map.insert(key.to_vec(), value.to_vec());
    }
    map
}

fn there_in_reverse(cursor: &mut Cursor) -> Map {
    let mut map = Map::new();
    wait(cursor.seek_to_end()).unwrap();
    while let Some((key, value)) = wait(cursor.previous()).unwrap() {
        map.insert(key.to_vec(), value.to_vec());
    }
    map
}

fn within(map: &Map, prefix: &[u8]) -> Map {
    map.iter()
        .filter(|(key, _)| key.starts_with(prefix))
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect()
}

/// Gets and cursors of all kinds find that in a store, at a snapshot or now.
fn check(store: &Store, snapshot: Option<&Snapshot>, expected: &Map, when: &str) {
    for no in 0..1000 {
        let found = match snapshot {
            Some(snapshot) => wait(store.get_at(snapshot, &key(no))),
            None => wait(store.get(&key(no))),
        };
        assert_eq!(found.unwrap().as_deref(), expected.get(&key(no)).map(|value| &value[..]), "{no} {when}");
    }
    let options =
        |prefix: &[u8]| CursorOptions { snapshot: snapshot.cloned(), ..CursorOptions::prefix(prefix) };
    assert!(there(&mut store.cursor(options(b""))) == *expected, "forward {when}");
    assert!(there_in_reverse(&mut store.cursor(options(b""))) == *expected, "in reverse {when}");
    assert!(there(&mut store.cursor(options(b"key001"))) == within(expected, b"key001"), "a prefix {when}");
    assert!(
        there_in_reverse(&mut store.cursor(options(b"key007"))) == within(expected, b"key007"),
        "a prefix {when}"
    );
}

#[test]
fn bulk_loads_are_invisible_to_earlier_snapshots() {
    let bench = Bench::new();
    let database = bench.create();
    let store = wait(database.create_store("a", &settings())).unwrap();
    let mut written = Written { store: store.clone(), map: Map::new() };
    (0..800).filter(|no| no % 2 == 0).for_each(|no| written.put(no, 1));
    let mut seen = vec![("before", database.snapshot(), written.map.clone())];
    let mut load = wait(store.bulk_load()).unwrap();
    seen.push(("at the beginning", database.snapshot(), written.map.clone()));
    // What is written meanwhile is newer than what is loaded.
    (300..330).for_each(|no| written.put(no, 2));
    written.delete(340);
    written.delete_range(350, 360);
    seen.push(("meanwhile", database.snapshot(), written.map.clone()));
    (320..345).for_each(|no| written.put(no, 3));
    seen.push(("before the end", database.snapshot(), written.map.clone()));
    let mut transaction = database.begin(Isolation::Serializable);
    transaction.put(&store, b"own", b"own");
    let mut began = store.cursor(CursorOptions::default());
    for (expected, _) in written.map.iter().take(100) {
        assert_eq!(wait(began.next()).unwrap().unwrap().0, &expected[..]);
    }
    let before_end = written.map.clone();
    for no in 100..1000 {
        wait(load.put(&key(no), &value(no, 9))).unwrap();
        if !(300..345).contains(&no) && !(350..360).contains(&no) {
            written.map.insert(key(no), value(no, 9));
        }
    }
    wait(load.finish()).unwrap();
    seen.push(("after", database.snapshot(), written.map.clone()));

    let mut rest = before_end.clone();
    assert!(there(&mut began).len() == before_end.len() - 100);
    began.refresh();
    began.seek_to_begin();
    assert!(there(&mut began) == written.map);
    rest.insert(b"own".to_vec(), b"own".to_vec());
    assert_eq!(wait(transaction.get(&store, &key(101))).unwrap(), None);
    assert_eq!(wait(transaction.get(&store, &key(102))).unwrap().unwrap(), value(102, 1));
    let mut cursor = transaction.cursor(&store, CursorOptions::default());
    assert!(there(&mut cursor) == rest);
    assert!(there_in_reverse(&mut cursor) == rest);
    drop((cursor, transaction, began));

    let check_all = |written: &Written, seen: &[(&str, Snapshot, Map)], when: &str| {
        check(&store, None, &written.map, when);
        seen.iter()
            .for_each(|(who, snapshot, map)| check(&store, Some(snapshot), map, &format!("{who}, {when}")));
    };
    check_all(&written, &seen, "at once");
    wait(store.compact()).unwrap();
    check_all(&written, &seen, "after a compaction");
    (90..200).for_each(|no| written.put(no, 4));
    written.delete_range(500, 700);
    (600..610).for_each(|no| written.delete(no));
    (0..300).for_each(|no| written.put(no * 3, 5));
    check_all(&written, &seen, "after more writes");
    wait(store.compact()).unwrap();
    check_all(&written, &seen, "after another compaction");
    // One after another goes.
    while !seen.is_empty() {
        seen.remove(seen.len() / 2);
        wait(store.compact()).unwrap();
        check_all(&written, &seen, "when others have gone");
    }
    assert_eq!(wait(database.check()).unwrap().findings, Vec::<String>::new());
    wait(database.close()).unwrap();
    let again = bench.open();
    check(&again.open_store("a").unwrap(), None, &written.map, "in another opening");
    wait(again.close()).unwrap();
}

/// Nothing waits for snapshots that are held for long, however many loads they do not see.
#[test]
fn many_bulk_loads_beside_old_snapshots_block_no_operation() {
    let bench = Bench::new();
    let few = DatabaseSettings { slow_root_kvsets: 2, most_root_kvsets: 3, ..Bench::settings() };
    let database = wait(Database::create(&bench.volume, "test", &few, bench.environment.clone())).unwrap();
    let store = wait(database.create_store("a", &settings())).unwrap();
    let mut written = Written { store: store.clone(), map: Map::new() };
    let mut seen = Vec::new();
    for round in 0..12 {
        (0..400).for_each(|no| written.put((no * 7 + round) % 1000, round));
        let mut load = wait(store.bulk_load()).unwrap();
        let meanwhile = 100 + round;
        written.put(meanwhile, round);
        seen.push((database.snapshot(), written.map.clone()));
        for no in (round..1000).step_by(4) {
            wait(load.put(&key(no), &value(no, 100 + round))).unwrap();
            if no != meanwhile {
                written.map.insert(key(no), value(no, 100 + round));
            }
        }
        wait(load.finish()).unwrap();
        // More than there is space for in memory and at the root.
        (0..1500).for_each(|no| written.put(no % 500 * 2, 200 + round));
    }
    for _ in 0..2 {
        for (no, (snapshot, map)) in seen.iter().enumerate() {
            check(&store, Some(snapshot), map, &format!("at snapshot {no}"));
        }
        check(&store, None, &written.map, "now");
        wait(store.compact()).unwrap();
    }
    let held = database.statistics().bytes_in_use;
    drop(seen);
    wait(store.compact()).unwrap();
    assert!(database.statistics().bytes_in_use < held, "what nobody sees any more is kept");
    check(&store, None, &written.map, "at the end");
    wait(database.close()).unwrap();
}

/// At the first end of a load it lets others go on, and waits for them. That is the copy's first one.
struct Pause(Mutex<Option<(SyncSender<()>, Receiver<()>)>>);

impl CrashProbe for Pause {
    fn reached(&self, name: &'static str) {
        let pause = (name == "bulk.before-manifest").then(|| self.0.lock().unwrap().take()).flatten();
        if let Some((tell, told)) = pause {
            tell.send(()).unwrap();
            told.recv().unwrap();
        }
    }
}

fn load(store: &Store, round: u32) {
    let mut load = wait(store.bulk_load()).unwrap();
    for no in 0..500 {
        wait(load.put(&key(no), &value(no, round))).unwrap();
    }
    wait(load.finish()).unwrap();
}

#[test]
fn a_copy_has_loads_of_one_moment() {
    let bench = Bench::new();
    let ((tell, told), (tell_back, told_back)) = (sync_channel(1), sync_channel(1));
    let pause = Arc::new(Pause(Mutex::new(None)));
    let crash = CrashPoints::to(pause.clone());
    let settings_of_all = Bench::settings();
    let create =
        Database::create_with(&bench.volume, "test", &settings_of_all, crash, bench.environment.clone());
    let database = wait(create).unwrap();
    let stores = ["a", "b"].map(|name| wait(database.create_store(name, &settings())).unwrap());
    stores.iter().for_each(|store| load(store, 1));
    let mut began = wait(stores[1].bulk_load()).unwrap();
    *pause.0.lock().unwrap() = Some((tell, told_back));
    let first = &stores[0];
    std::thread::scope(|scope| {
        scope.spawn(move || {
            // The first store is copied, and the second one was not begun with.
            told.recv().unwrap();
            for no in 0..500 {
                wait(began.put(&key(no), &value(no, 2))).unwrap();
            }
            load(first, 2);
            wait(began.finish()).unwrap();
            tell_back.send(()).unwrap();
        });
        wait(database.checkpoint("copy")).unwrap();
    });
    wait(database.checkpoint("later")).unwrap();
    for (name, round) in [("copy", 1), ("later", 2)] {
        let options = OpenOptions::default();
        let copy = wait(Database::open(&bench.volume, name, &options, bench.environment.clone())).unwrap();
        let expected: Map = (0..500).map(|no| (key(no), value(no, round))).collect();
        for store in ["a", "b"] {
            let store = copy.open_store(store).unwrap();
            check(&store, None, &expected, &format!("store {} in {name}", store.name()));
        }
        wait(copy.close()).unwrap();
    }
    wait(database.close()).unwrap();
}
