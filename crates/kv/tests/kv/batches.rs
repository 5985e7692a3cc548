//! Batches are atomic, and in the order of their operations.

use std::sync::atomic::{AtomicU64, Ordering};

use tanada_kv::blocking::wait;
use tanada_kv::{Batch, Compression, ErrorKind, LONGEST_KEY, LONGEST_VALUE, StoreSettings, WriteOptions};

use crate::volumes::Bench;

#[test]
fn the_later_operation_counts() {
    let bench = Bench::new();
    let database = bench.create();
    let store = wait(database.create_store("a", &StoreSettings::default())).unwrap();
    let other = wait(database.create_store("b", &StoreSettings::default())).unwrap();
    wait(store.put(b"k0", b"old")).unwrap();
    let mut batch = Batch::new();
    batch.put(&store, b"k1", b"1");
    batch.put(&store, b"k2", b"2");
    batch.put(&other, b"k2", b"other");
    batch.delete_prefix(&store, b"k");
    batch.put(&store, b"k3", b"3");
    batch.put(&store, b"k3", b"4");
    batch.put(&store, b"k4", b"4");
    batch.delete(&store, b"k4");
    assert_eq!(batch.len(), 8, "the range does not hide them yet");
    wait(database.write(batch, &WriteOptions::default())).unwrap();
    for _ in 0..2 {
        let get = |key: &[u8]| wait(store.get(key)).unwrap();
        assert_eq!([get(b"k0"), get(b"k1"), get(b"k2"), get(b"k4")], [None, None, None, None]);
        assert_eq!(get(b"k3").as_deref(), Some(&b"4"[..]));
        assert_eq!(wait(other.get(b"k2")).unwrap().as_deref(), Some(&b"other"[..]));
    }
    wait(database.close()).unwrap();
}

#[test]
fn keys_and_values_of_all_sizes_come_back() {
    let bench = Bench::new();
    let database = bench.create();
    let settings = StoreSettings { compression: Compression::Lz4, ..StoreSettings::default() };
    let store = wait(database.create_store("a", &settings)).unwrap();
    let cases = [(0, 0), (1, 255), (2, 256), (300, 1000), (LONGEST_KEY, 10), (9, 5 << 20)];
    for (key, value) in cases {
        for compression in [None, Some(Compression::None), Some(Compression::Zstd)] {
            let (key, value) = (vec![7; key], vec![compression.is_some() as u8; value]);
            let options = WriteOptions { compression, ..WriteOptions::default() };
            wait(store.put_with(&key, &value, &options)).unwrap();
            assert_eq!(wait(store.get(&key)).unwrap().unwrap(), value);
        }
    }
    wait(database.sync()).unwrap();
    wait(database.abandon());
    drop((store, database));
    let database = bench.open();
    let store = database.open_store("a").unwrap();
    for (key, value) in cases {
        assert_eq!(wait(store.get(&vec![7; key])).unwrap().unwrap(), vec![1; value]);
    }
    let too_long = wait(store.put(&vec![0; LONGEST_KEY + 1], b""));
    assert_eq!(too_long.unwrap_err().kind(), ErrorKind::InvalidInput);
    wait(database.close()).unwrap();
}

#[test]
fn the_longest_value_comes_back() {
    let bench = Bench::with_classes(256 << 20, 256 << 20);
    let database = bench.create();
    let store = wait(database.create_store("a", &StoreSettings::default())).unwrap();
    let longest: Vec<u8> = (0..LONGEST_VALUE).map(|no| (no / 7) as u8).collect();
    wait(store.put(b"k", &longest)).unwrap();
    wait(database.sync()).unwrap();
    wait(database.abandon());
    drop((store, database));
    let database = bench.open();
    let store = database.open_store("a").unwrap();
    assert!(wait(store.get(b"k")).unwrap().unwrap() == longest);
    wait(store.compact()).unwrap();
    assert!(wait(store.get(b"k")).unwrap().unwrap() == longest);
    let too_long = wait(store.put(b"k", &vec![0; LONGEST_VALUE + 1]));
    assert_eq!(too_long.unwrap_err().kind(), ErrorKind::InvalidInput);
    wait(database.close()).unwrap();
}

#[test]
fn thousands_of_reads_are_under_way_from_one_thread() {
    let bench = Bench::new();
    let database = bench.create();
    let store = wait(database.create_store("a", &StoreSettings::default())).unwrap();
    let value = |no: u64| vec![no as u8; 500];
    for no in 0..5000u64 {
        wait(store.put(&no.to_be_bytes(), &value(no))).unwrap();
    }
    wait(store.compact()).unwrap();
    wait(database.close()).unwrap();
    drop((store, database));
    let database = bench.open();
    let store = database.open_store("a").unwrap();
    let keys: Vec<[u8; 8]> = (0..5000u64).map(u64::to_be_bytes).collect();
    let read = wait(futures::future::join_all(keys.iter().map(|key| store.get(key))));
    for (no, read) in (0..).zip(read) {
        assert_eq!(read.unwrap().unwrap(), value(no), "{no}");
    }
    wait(database.close()).unwrap();
}

/// One that writes without end took all the space there was, each time: the others wrote nothing.
#[test]
fn writers_of_a_thread_alternate_when_the_log_is_full() {
    const WRITES: u64 = 150_000;
    let bench = Bench::new();
    let database = bench.create();
    let store = wait(database.create_store("a", &StoreSettings::default())).unwrap();
    let next = AtomicU64::new(0);
    let writer = || async {
        let mut written = 0u64;
        loop {
            let no = next.fetch_add(1, Ordering::Relaxed);
            if no >= WRITES {
                return written;
            }
            store.put(&no.to_be_bytes(), &[7; 50]).await.unwrap();
            written += 1;
        }
    };
    let written = wait(futures::future::join_all((0..8).map(|_| writer())));
    let least = written.iter().min().unwrap();
    assert!(*least > WRITES / 8 / 4, "{written:?}");
    wait(database.close()).unwrap();
}

/// A longer one is larger than the same keys as its beginning is; it took as much memory for good as it was long.
#[test]
fn ends_of_ranges_are_as_long_as_keys_can_be() {
    let bench = Bench::new();
    let database = bench.create();
    let store = wait(database.create_store("a", &StoreSettings::default())).unwrap();
    let longest = vec![b'k'; LONGEST_KEY];
    let behind = [&longest[..LONGEST_KEY - 1], b"l"].concat();
    for key in [&b"j"[..], &longest[..5], &longest, &behind] {
        wait(store.put(key, b"value")).unwrap();
    }
    let end = vec![b'k'; LONGEST_VALUE + 1];
    wait(store.delete_range(b"k", Some(&end))).unwrap();
    wait(store.compact()).unwrap();
    let is_there = |key: &[u8]| wait(store.get(key)).unwrap().is_some();
    assert_eq!([&b"j"[..], &longest[..5], &longest, &behind].map(is_there), [true, false, false, true]);
    assert!(database.statistics().stores[0].key_bytes < 1 << 20, "{:#?}", database.statistics());
    wait(database.close()).unwrap();
}
