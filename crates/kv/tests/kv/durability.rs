//! What was acknowledged is there after a stop.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tanada_kv::blocking::wait;
use tanada_kv::{
    Batch, Database, DatabaseSettings, ErrorKind, OpenOptions, RecoveryProgress, StoreSettings, WriteOptions,
};

use crate::volumes::Bench;

#[test]
fn synced_writes_survive_without_a_close() {
    let bench = Bench::new();
    let database = bench.create();
    let store = wait(database.create_store("lines", &StoreSettings::default())).unwrap();
    for round in 0..5u8 {
        let value = vec![round; 1000];
        wait(store.put_with(&[round], &value, &WriteOptions::sync())).unwrap();
    }
    wait(database.abandon());
    drop((store, database));
    let database = bench.open();
    let store = database.open_store("lines").unwrap();
    for round in 0..5u8 {
        assert_eq!(wait(store.get(&[round])).unwrap().unwrap(), vec![round; 1000]);
    }
    wait(database.close()).unwrap();
}

#[test]
fn bounded_loss_loses_only_the_end() {
    let bench = Bench::new();
    let database = bench.create();
    let store = wait(database.create_store("lines", &StoreSettings::default())).unwrap();
    for no in 0..2000u32 {
        wait(store.put_with(&no.to_be_bytes(), &[1; 100], &WriteOptions::within(1000))).unwrap();
    }
    wait(database.abandon());
    drop((store, database));
    let database = bench.open();
    let store = database.open_store("lines").unwrap();
    let there = |no: u32| wait(store.get(&no.to_be_bytes())).unwrap().is_some();
    let count = (0..2000).take_while(|no| there(*no)).count() as u32;
    assert!((count..2000).all(|no| !there(no)));
    wait(database.close()).unwrap();
}

/// However much memtables could hold.
#[test]
fn no_more_log_is_replayed_than_was_said() {
    let bench = Bench::with_classes(4 << 30, 256 << 20);
    let settings = DatabaseSettings {
        memory_bytes: 1 << 30,
        memory_table_bytes: 512 << 20,
        log_segment_bytes: 1 << 20,
        log_replay_bytes: 4 << 20,
        ..Bench::settings()
    };
    let create = Database::create(&bench.volume, "test", &settings, bench.environment.clone());
    let database = wait(create).unwrap();
    let store = wait(database.create_store("lines", &StoreSettings::default())).unwrap();
    for no in 0..80_000u32 {
        wait(store.put(&no.to_be_bytes(), &[1; 1000])).unwrap();
    }
    wait(database.sync()).unwrap();
    wait(database.abandon());
    drop((store, database));
    let replayed = Arc::new(AtomicU64::new(0));
    let told = replayed.clone();
    let progress = move |progress: &RecoveryProgress| {
        assert!(progress.replayed_bytes <= progress.total_bytes, "{progress:?}");
        told.fetch_max(progress.total_bytes, Ordering::Relaxed);
    };
    let options = OpenOptions { progress: Some(Arc::new(progress)), ..OpenOptions::default() };
    let open = Database::open(&bench.volume, "test", &options, bench.environment.clone());
    let database = wait(open).unwrap();
    // Writers go on while tables are flushed.
    assert!(replayed.load(Ordering::Relaxed) < 40 << 20, "{replayed:?}");
    let store = database.open_store("lines").unwrap();
    for no in (0..80_000u32).step_by(101) {
        assert!(wait(store.get(&no.to_be_bytes())).unwrap().is_some(), "{no}");
    }
    wait(database.close()).unwrap();
}

#[test]
fn damage_of_the_log_is_reported() {
    let bench = Bench::new();
    let database = bench.create();
    let store = wait(database.create_store("lines", &StoreSettings::default())).unwrap();
    for no in 0..9u8 {
        wait(store.put_with(&[no], &[no; 5000], &WriteOptions::sync())).unwrap();
    }
    wait(database.abandon());
    drop((store, database));
    let segment = bench.objects("segment").remove(0);
    let bytes = wait(segment.read_bytes(0, 1 << 20)).unwrap();
    let at = bytes.windows(100).position(|window| window == [4; 100]).unwrap() as u64;
    wait(segment.write_bytes(at + 50, &[7])).unwrap();
    let error = bench.try_open().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corrupted, "{error}");
    wait(segment.write_bytes(at + 50, &[4])).unwrap();
    wait(bench.open().close()).unwrap();
}

#[test]
fn a_batch_that_is_torn_is_not_there_at_all() {
    let bench = Bench::new();
    let database = bench.create();
    let store = wait(database.create_store("lines", &StoreSettings::default())).unwrap();
    wait(store.put_with(b"before", b"1", &WriteOptions::sync())).unwrap();
    let mut batch = Batch::new();
    for no in 0..9u8 {
        batch.put(&store, &[no], &[no; 5000]);
    }
    wait(database.write(batch, &WriteOptions::sync())).unwrap();
    wait(database.abandon());
    drop((store, database));
    let segment = bench.objects("segment").remove(0);
    let bytes = wait(segment.read_bytes(0, 1 << 20)).unwrap();
    let at = bytes.windows(100).position(|window| window == [8; 100]).unwrap() as u64;
    wait(segment.write_bytes(at + 50, &[7])).unwrap();
    for _ in 0..2 {
        let database = bench.open();
        let store = database.open_store("lines").unwrap();
        assert_eq!(wait(store.get(b"before")).unwrap().as_deref(), Some(&b"1"[..]));
        assert!((0..9u8).all(|no| wait(store.get(&[no])).unwrap().is_none()));
        wait(store.put(b"before", b"1")).unwrap();
        wait(database.close()).unwrap();
    }
}
