//! Databases and their volume: opened, listed, copied, checked, counted, destroyed.

use std::ffi::{c_char, c_void};
use std::ptr::{null, null_mut};
use std::sync::atomic::{AtomicU64, Ordering};

use serde_json::json;

use crate::symbols::*;
use crate::world::*;

#[test]
fn a_volume_is_made_once() {
    let world = World::new();
    assert_eq!(tanada_kv_create_volume(world.volume().as_ptr(), 1 << 20), EXISTS);
    let nowhere = path_of(&world.folder.path().join("nowhere"));
    let mut none = null_mut();
    assert_eq!(tanada_kv_open(nowhere.as_ptr(), c"a".as_ptr(), CREATE, &raw mut none), NOT_FOUND);
    assert!(none.is_null());
}

#[test]
fn a_database_is_open_once_for_writing() {
    let mut world = World::new();
    let volume = world.volume();
    let open = |name: *const c_char, flags, out| tanada_kv_open(volume.as_ptr(), name, flags, out);
    let mut none = null_mut();
    assert_eq!(open(c"test".as_ptr(), 0, &raw mut none), LOCKED);
    assert_eq!(open(c"test".as_ptr(), READ, &raw mut none), LOCKED);
    assert_eq!(open(c"other".as_ptr(), 0, &raw mut none), NOT_FOUND);
    let other = handle(|out| open(c"other".as_ptr(), CREATE, out));
    assert_eq!(tanada_kv_destroy(volume.as_ptr(), c"other".as_ptr()), LOCKED);
    assert_eq!(tanada_kv_close(other), OK);
    world.close();
    let readers = [0, 1].map(|_| handle(|out| open(c"test".as_ptr(), READ, out)));
    assert_eq!(open(c"test".as_ptr(), 0, &raw mut none), LOCKED, "the volume is open for reading");
    readers.into_iter().for_each(|reader| assert_eq!(tanada_kv_close(reader), OK));
    assert!(none.is_null());
    world.open(0);
}

#[test]
fn a_database_that_is_read_takes_no_writes() {
    let mut world = World::new();
    let store = world.store(c"a");
    put(store, b"key", b"v");
    tanada_kv_store_free(store);
    world.close();
    world.open(READ);
    let store = handle(|out| tanada_kv_store_open(world.database, c"a".as_ptr(), 0, out));
    assert_eq!(get(store, b"key").unwrap(), b"v");
    assert_eq!(tanada_kv_put(store, at(b"key"), 3, at(b"w"), 1, 0), READ_ONLY);
    assert_eq!(tanada_kv_drain_class(world.database, c"capacity".as_ptr()), READ_ONLY);
    assert_eq!(tanada_kv_fill_class(world.database, c"capacity".as_ptr()), READ_ONLY);
    tanada_kv_store_free(store);
}

#[test]
fn databases_are_copied_listed_and_destroyed() {
    let world = World::new();
    let volume = world.volume();
    let store = world.store(c"a");
    put(store, b"key", b"v");
    assert_eq!(tanada_kv_checkpoint(world.database, c"copy".as_ptr()), OK, "{}", message());
    assert_eq!(tanada_kv_checkpoint(world.database, c"copy".as_ptr()), EXISTS);
    put(store, b"later", b"v");
    let copy = handle(|out| tanada_kv_open(volume.as_ptr(), c"copy".as_ptr(), 0, out));
    let copied = handle(|out| tanada_kv_store_open(copy, c"a".as_ptr(), 0, out));
    assert_eq!(all_keys(copied), ["key"]);
    tanada_kv_store_free(copied);
    assert_eq!(tanada_kv_close(copy), OK);
    let names = || json(|at, len| tanada_kv_databases(volume.as_ptr(), at, len));
    assert_eq!(names(), json!(["copy", "test"]));
    assert_eq!(tanada_kv_destroy(volume.as_ptr(), c"copy".as_ptr()), OK, "{}", message());
    assert_eq!(tanada_kv_destroy(volume.as_ptr(), c"copy".as_ptr()), NOT_FOUND);
    assert_eq!(names(), json!(["test"]));
    tanada_kv_store_free(store);
}

#[test]
fn reports_count_what_was_done() {
    let world = World::new();
    let store = world.store(c"a");
    for no in 0..100u8 {
        put(store, &[no], &[no; 1000]);
    }
    assert_eq!(tanada_kv_compact(store), OK);
    let statistics = json(|at, len| tanada_kv_statistics(world.database, at, len));
    assert_eq!(statistics["operations_written"], 100);
    assert_eq!(statistics["stores"][0]["versions"], 100);
    assert!(statistics["lifetime"]["bytes_written"].as_u64().unwrap() >= 100_000);
    let report = json(|at, len| tanada_kv_check(world.database, at, len));
    assert_eq!((&report["versions"], &report["findings"]), (&json!(100), &json!([])));
    tanada_kv_store_free(store);
}

/// Bytes of the log that a recovery told of last.
extern "C" fn note_progress(context: *mut c_void, replayed_bytes: u64, total_bytes: u64) {
    assert!(replayed_bytes <= total_bytes);
    // SAFETY: the test passes a counter that outlives the call.
    unsafe { &*context.cast::<AtomicU64>() }.fetch_max(replayed_bytes, Ordering::Relaxed);
}

#[test]
fn an_opening_tells_of_its_recovery_if_it_is_asked_to() {
    let mut world = World::new();
    world.close();
    let volume = world.volume();
    let told = AtomicU64::new(0);
    let context = (&raw const told).cast_mut().cast::<c_void>();
    let open = |progress: Progress, context, out| {
        tanada_kv_open_telling(volume.as_ptr(), c"test".as_ptr(), 0, null(), progress, context, out)
    };
    let database = handle(|out| open(Some(note_progress), context, out));
    assert_eq!(tanada_kv_close(database), OK);
    world.database = handle(|out| open(None, null_mut(), out));
}

#[test]
fn the_last_class_of_a_volume_cannot_be_emptied() {
    let world = World::new();
    let store = world.store(c"a");
    put(store, b"key", b"v");
    assert_eq!(tanada_kv_sync(world.database), OK);
    assert_ne!(tanada_kv_drain_class(world.database, c"capacity".as_ptr()), OK);
    assert_eq!(tanada_kv_drain_class(world.database, c"no such".as_ptr()), NOT_FOUND);
    assert_eq!(tanada_kv_fill_class(world.database, c"capacity".as_ptr()), OK, "{}", message());
    assert_eq!(get(store, b"key").unwrap(), b"v");
    tanada_kv_store_free(store);
}
