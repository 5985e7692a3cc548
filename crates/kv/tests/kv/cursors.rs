//! What cursors read.

use tanada_kv::blocking::wait;
use tanada_kv::{CursorOptions, Database, ErrorKind, Store, StoreSettings};

use crate::volumes::Bench;

fn value(no: u64) -> Vec<u8> {
    let mut value = vec![no as u8; 1000];
    value[..8].copy_from_slice(&no.to_be_bytes());
    value
}

/// Two thousand keys whose values lie on the slow class, and nothing of them in the cache.
fn settled(bench: &Bench) -> (Database, Store) {
    let database = bench.create();
    let store =
        wait(database.create_store("a", &StoreSettings { mirrors: false, ..StoreSettings::default() }))
            .unwrap();
    for no in 0..2000u64 {
        wait(store.put(&no.to_be_bytes(), &value(no))).unwrap();
    }
    wait(store.compact()).unwrap();
    wait(database.close()).unwrap();
    let database = bench.open();
    let store = database.open_store("a").unwrap();
    (database, store)
}

#[test]
fn a_cursor_over_keys_reads_no_values() {
    let bench = Bench::new();
    let (database, store) = settled(&bench);
    wait(store.put(b"short", b"tea")).unwrap();
    wait(store.delete(&7u64.to_be_bytes())).unwrap();
    let reads = || bench.volume.classes()[1].statistics.read.ios;
    let before = reads();
    let mut cursor = store.cursor(CursorOptions { keys_only: true, ..CursorOptions::default() });
    let mut expected: Vec<Vec<u8>> =
        (0..2000u64).filter(|no| *no != 7).map(|no| no.to_be_bytes().to_vec()).collect();
    expected.push(b"short".to_vec());
    for is_forward in [true, false] {
        for key in &expected {
            let found = if is_forward { wait(cursor.next()) } else { wait(cursor.previous()) };
            assert_eq!(found.unwrap().unwrap(), (key.clone().into(), Vec::new().into()));
        }
        expected.reverse();
    }
    // A seek leaves it what it is.
    wait(cursor.seek(&1000u64.to_be_bytes())).unwrap();
    assert_eq!(wait(cursor.next()).unwrap().unwrap().1.len(), 0);
    assert_eq!((reads() - before, database.statistics().since_opening.cache_value_loads), (0, 0));
    wait(database.close()).unwrap();
}

#[test]
fn a_cursor_reads_neighbours_together() {
    let bench = Bench::new();
    let (database, store) = settled(&bench);
    let reads = || bench.volume.classes()[1].statistics.read.ios;
    let before = reads();
    let mut cursor = store.cursor(CursorOptions::default());
    for no in 0..2000u64 {
        let (key, found) = wait(cursor.next()).unwrap().unwrap();
        assert_eq!((&*key, &*found), (&no.to_be_bytes()[..], &value(no)[..]));
    }
    assert_eq!(wait(cursor.next()).unwrap(), None);
    assert!(reads() - before < 500, "{}", reads() - before);
    // Back over what was read, and forth again from the middle.
    for no in (1000..2000u64).rev() {
        assert_eq!(*wait(cursor.previous()).unwrap().unwrap().0, no.to_be_bytes());
    }
    assert_eq!(*wait(cursor.next()).unwrap().unwrap().0, 1000u64.to_be_bytes());
    wait(database.close()).unwrap();
}

#[test]
fn a_cursor_reads_as_many_keys_as_are_expected_and_no_more() {
    let bench = Bench::new();
    let (database, store) = settled(&bench);
    let loads = || database.statistics().since_opening.cache_value_loads;
    let read = |options: CursorOptions, first: u64| {
        let before = loads();
        let mut cursor = store.cursor(options);
        wait(cursor.seek(&first.to_be_bytes())).unwrap();
        for no in first..(first + 50).min(2000) {
            let (key, found) = wait(cursor.next()).unwrap().unwrap();
            assert_eq!((&*key, &*found), (&no.to_be_bytes()[..], &value(no)[..]));
        }
        loads() - before
    };
    assert!(read(CursorOptions::default(), 100) > 50);
    assert_eq!(read(CursorOptions { expected_keys: 50, ..CursorOptions::default() }, 1000), 50);
    assert_eq!(read(CursorOptions { expected_keys: 50, ..CursorOptions::default() }, 1990), 10);
    // It may be wrong.
    let mut cursor = store.cursor(CursorOptions { expected_keys: 50, ..CursorOptions::default() });
    wait(cursor.seek(&300u64.to_be_bytes())).unwrap();
    for no in 300..500u64 {
        assert_eq!(*wait(cursor.next()).unwrap().unwrap().1, value(no)[..]);
    }
    for expected_keys in [1, usize::MAX] {
        let mut cursor = store.cursor(CursorOptions { expected_keys, ..CursorOptions::default() });
        for no in 0..300u64 {
            assert_eq!(*wait(cursor.next()).unwrap().unwrap().1, value(no)[..]);
        }
    }
    wait(database.close()).unwrap();
}

#[test]
fn a_cursor_comes_as_far_as_the_damage() {
    let bench = Bench::new();
    let (database, store) = settled(&bench);
    let damaged = value(1010);
    let place = bench.objects("segment").into_iter().find_map(|object| {
        let bytes = wait(object.read_bytes(0, object.size_bytes() as usize)).unwrap();
        let at = bytes.windows(damaged.len()).position(|window| window == damaged)?;
        Some((object, at as u64))
    });
    let (object, at) = place.unwrap();
    wait(object.write_bytes(at, &[!damaged[0]])).unwrap();
    let mut cursor = store.cursor(CursorOptions::default());
    for no in 0..1010u64 {
        assert_eq!(*wait(cursor.next()).unwrap().unwrap().0, no.to_be_bytes());
    }
    for _ in 0..2 {
        assert_eq!(wait(cursor.next()).unwrap_err().kind(), ErrorKind::Corrupted);
    }
    assert_eq!(*wait(cursor.previous()).unwrap().unwrap().0, 1009u64.to_be_bytes());
    wait(database.close()).unwrap();
}
