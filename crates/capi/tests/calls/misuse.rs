//! What callers may get wrong: pointers that are NULL, flags that there are not, names that are none.

use std::ffi::{CStr, c_char, c_int};
use std::ptr::{null, null_mut};

use crate::symbols::*;
use crate::world::*;

/// The call is refused, and says what was NULL.
fn refused(code: c_int, what: &str) {
    assert_eq!(code, INVALID, "{what}: {}", message());
    assert!(message().contains("NULL"), "{what}: {}", message());
}

#[test]
fn handles_that_are_null_are_refused() {
    let none = null_mut::<Handle>();
    let (key, len) = (at(b"key"), 3);
    let mut out = null_mut();
    let (mut value, mut value_len) = (null_mut(), 0);
    refused(tanada_kv_close(none), "close");
    refused(tanada_kv_sync(none), "sync");
    refused(tanada_kv_set_fast_class_bytes(none, 0), "limit");
    refused(tanada_kv_set_settings(none, c"{}".as_ptr()), "settings");
    refused(tanada_kv_store_open(none, c"a".as_ptr(), 0, &raw mut out), "store");
    refused(tanada_kv_store_drop(none, c"a".as_ptr()), "drop");
    refused(tanada_kv_compact(none), "compact");
    refused(tanada_kv_store_set_settings(none, c"{}".as_ptr()), "store settings");
    refused(tanada_kv_put(none, key, len, key, len, 0), "put");
    refused(tanada_kv_put_expiring(none, key, len, key, len, 1, 0), "expiring");
    refused(tanada_kv_delete(none, key, len, 0), "delete");
    refused(tanada_kv_delete_prefix(none, key, len, 0), "prefix");
    refused(tanada_kv_delete_range(none, key, len, null(), 0, 0), "range");
    refused(tanada_kv_get(none, key, len, &raw mut value, &raw mut value_len), "get");
    refused(tanada_kv_batch_put(none, none, key, len, key, len), "batch");
    refused(tanada_kv_batch_delete(none, none, key, len), "batch delete");
    refused(tanada_kv_batch_delete_range(none, none, key, len, null(), 0), "batch range");
    refused(tanada_kv_write(none, none, 0), "write");
    refused(tanada_kv_write_expiring(none, none, 1, 0), "write expiring");
    refused(tanada_kv_cursor_open(none, null(), 0, &raw mut out), "cursor");
    refused(tanada_kv_cursor_seek(none, key, len), "seek");
    refused(tanada_kv_cursor_seek_to_begin(none), "begin");
    refused(tanada_kv_cursor_seek_to_end(none), "end");
    refused(tanada_kv_cursor_refresh(none), "refresh");
    refused(tanada_kv_snapshot_take(none, &raw mut out), "snapshot");
    refused(tanada_kv_get_at(none, none, key, len, &raw mut value, &raw mut value_len), "get at");
    refused(tanada_kv_cursor_open_at(none, none, null(), 0, &raw mut out), "cursor at");
    refused(tanada_kv_begin(none, 0, &raw mut out), "transaction");
    refused(tanada_kv_transaction_put(none, none, key, len, key, len), "transaction put");
    refused(tanada_kv_transaction_delete(none, none, key, len), "transaction delete");
    refused(
        tanada_kv_transaction_get(none, none, key, len, &raw mut value, &raw mut value_len),
        "transaction get",
    );
    refused(tanada_kv_commit(none, 0), "commit");
    refused(tanada_kv_load_begin(none, &raw mut out), "load");
    refused(tanada_kv_load_put(none, key, len, key, len), "load put");
    refused(tanada_kv_load_finish(none), "load finish");
    refused(tanada_kv_checkpoint(none, c"a".as_ptr()), "checkpoint");
    refused(tanada_kv_check(none, &raw mut value, &raw mut value_len), "check");
    refused(tanada_kv_statistics(none, &raw mut value, &raw mut value_len), "statistics");
    refused(tanada_kv_stores(none, &raw mut value, &raw mut value_len), "stores");
    refused(tanada_kv_settings(none, &raw mut value, &raw mut value_len), "settings");
    refused(tanada_kv_store_settings(none, &raw mut value, &raw mut value_len), "store settings");
    refused(tanada_kv_drain_class(none, c"a".as_ptr()), "drain");
    assert!(out.is_null() && value.is_null());
}

#[test]
fn null_is_given_back_without_effect() {
    tanada_kv_free(null_mut(), 0);
    tanada_kv_store_free(null_mut());
    tanada_kv_batch_free(null_mut());
    tanada_kv_cursor_free(null_mut());
    tanada_kv_snapshot_free(null_mut());
    tanada_kv_rollback(null_mut());
    tanada_kv_load_free(null_mut());
}

#[test]
fn places_and_bytes_that_are_null_are_refused() {
    let world = World::new();
    let (store, database) = (world.store(c"a"), world.database);
    put(store, b"key", b"v");
    refused(tanada_kv_put(store, null(), 3, at(b"v"), 1, 0), "a key");
    refused(tanada_kv_put(store, at(b"k"), 1, null(), 3, 0), "a value");
    refused(tanada_kv_delete_range(store, at(b"a"), 1, null(), 3, 0), "an end with a length");
    assert_eq!(tanada_kv_put(store, at(b"k"), 1, null(), 0, 0), OK, "no bytes need no pointer");
    let (mut value, mut len) = (null_mut(), 0);
    refused(tanada_kv_get(store, at(b"key"), 3, null_mut(), &raw mut len), "a value's place");
    refused(tanada_kv_get(store, at(b"key"), 3, &raw mut value, null_mut()), "a length's place");
    refused(tanada_kv_stores(database, null_mut(), &raw mut len), "a list's place");
    refused(tanada_kv_store_open(database, c"a".as_ptr(), 0, null_mut()), "a store's place");
    refused(tanada_kv_store_open(database, null(), 0, (&raw mut value).cast()), "a store's name");
    refused(tanada_kv_batch_new(null_mut()), "a batch's place");
    refused(tanada_kv_snapshot_take(database, null_mut()), "a snapshot's place");
    refused(tanada_kv_begin(database, 0, null_mut()), "a transaction's place");
    refused(tanada_kv_cursor_open(store, null(), 0, null_mut()), "a cursor's place");
    refused(tanada_kv_load_begin(store, null_mut()), "a load's place");
    assert_eq!(tanada_kv_compact(store), OK, "no load was begun in vain");
    let cursor = handle(|out| tanada_kv_cursor_open(store, null(), 0, out));
    let (mut key, mut key_len) = (null(), 0);
    let next = tanada_kv_cursor_next(cursor, &raw mut key, &raw mut key_len, null_mut(), null_mut());
    refused(next, "a value's place");
    tanada_kv_cursor_free(cursor);
    let volume = world.volume();
    refused(tanada_kv_open(volume.as_ptr(), c"b".as_ptr(), CREATE, null_mut()), "a database's place");
    refused(tanada_kv_create_volume(null(), 1 << 20), "a path");
    refused(tanada_kv_destroy(null(), c"a".as_ptr()), "a volume's path");
    refused(tanada_kv_databases(null(), &raw mut value, &raw mut len), "a volume's path");
    tanada_kv_store_free(store);
}

#[test]
fn lengths_that_cannot_be_are_refused() {
    let world = World::new();
    let store = world.store(c"a");
    assert_eq!(tanada_kv_put(store, at(b"k"), usize::MAX, at(b"v"), 1, 0), INVALID);
    assert!(message().contains("more than there can be"), "{}", message());
    assert_eq!(tanada_kv_delete(store, at(b"k"), usize::MAX / 2 + 1, 0), INVALID);
    assert_eq!(all_keys(store), Vec::<String>::new());
    tanada_kv_store_free(store);
}

#[test]
fn unknown_flags_are_refused() {
    let world = World::new();
    let (store, volume) = (world.store(c"a"), world.volume());
    for flags in [16, 1 << 15, LZ4 | ZSTD, UNCOMPRESSED | LZ4, 1001 << 16] {
        assert_eq!(tanada_kv_put(store, at(b"k"), 1, at(b"v"), 1, flags), INVALID, "{flags:#x}");
        assert_eq!(tanada_kv_delete(store, at(b"k"), 1, flags), INVALID, "{flags:#x}");
    }
    let mut none = null_mut();
    let opened = tanada_kv_open(volume.as_ptr(), c"b".as_ptr(), 4, &raw mut none);
    assert_eq!((opened, none.is_null()), (INVALID, true));
    assert_eq!(tanada_kv_store_open(world.database, c"b".as_ptr(), READ, &raw mut none), INVALID);
    assert_eq!(get(store, b"k"), None);
    tanada_kv_store_free(store);
}

#[test]
fn names_that_are_none_are_refused() {
    let world = World::new();
    let volume = world.volume();
    let mut none = null_mut();
    let no_text = [0xffu8, 0];
    let no_text = no_text.as_ptr().cast::<c_char>();
    for name in [c"", c".hidden", c"a/b", c"a\nb"].map(CStr::as_ptr).into_iter().chain([no_text]) {
        assert_eq!(tanada_kv_open(volume.as_ptr(), name, CREATE, &raw mut none), INVALID);
        assert_eq!(tanada_kv_store_open(world.database, name, CREATE, &raw mut none), INVALID);
        assert_eq!(tanada_kv_checkpoint(world.database, name), INVALID);
    }
    assert!(none.is_null());
}

#[test]
fn messages_are_kept_for_each_thread() {
    assert_eq!(tanada_kv_sync(null_mut()), INVALID);
    let mine = message();
    std::thread::spawn(|| {
        assert_eq!(message(), "", "nothing failed on this thread");
        assert_eq!(tanada_kv_create_volume(null(), 1), INVALID);
        assert!(message().contains("a string"), "{}", message());
    })
    .join()
    .unwrap();
    assert_eq!(message(), mine);
}
