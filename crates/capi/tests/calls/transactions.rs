//! Transactions: their own writes, conflicts, and what is left of one that is rolled back.

use std::ffi::c_int;
use std::ptr::null;

use crate::symbols::*;
use crate::world::*;

fn begin(world: &World, serializable: c_int) -> *mut Handle {
    handle(|out| tanada_kv_begin(world.database, serializable, out))
}

fn put_in(transaction: *mut Handle, store: *mut Handle, key: &[u8], value: &[u8]) {
    let code = tanada_kv_transaction_put(transaction, store, at(key), key.len(), at(value), value.len());
    assert_eq!(code, OK, "{}", message());
}

fn get_in(transaction: *mut Handle, store: *mut Handle, key: &[u8]) -> Option<Vec<u8>> {
    taken(|value, len| tanada_kv_transaction_get(transaction, store, at(key), key.len(), value, len)).ok()
}

#[test]
fn a_transaction_sees_its_own_writes_and_no_later_ones() {
    let world = World::new();
    let store = world.store(c"a");
    put(store, b"a", b"old");
    put(store, b"b", b"old");
    put(store, b"c", b"old");
    let transaction = begin(&world, 0);
    put(store, b"a", b"later");
    put_in(transaction, store, b"d", b"own");
    assert_eq!(tanada_kv_transaction_delete(transaction, store, at(b"b"), 1), OK);
    assert_eq!(tanada_kv_transaction_delete_range(transaction, store, at(b"c"), 1, at(b"d"), 1), OK);
    assert_eq!(get_in(transaction, store, b"a").unwrap(), b"old");
    assert_eq!(get_in(transaction, store, b"b"), None);
    assert_eq!(get_in(transaction, store, b"d").unwrap(), b"own");
    let cursor = handle(|out| tanada_kv_transaction_cursor_open(transaction, store, null(), 0, 0, out));
    assert_eq!(keys(cursor), ["a", "d"]);
    assert_eq!(all_keys(store), ["a", "b", "c"], "nobody else sees it");
    assert_eq!(tanada_kv_commit(transaction, SYNC), OK, "{}", message());
    assert_eq!(all_keys(store), ["a", "d"]);
    tanada_kv_cursor_free(cursor);
    tanada_kv_store_free(store);
}

#[test]
fn the_second_of_two_writers_of_a_key_conflicts() {
    let world = World::new();
    let store = world.store(c"a");
    let (first, second) = (begin(&world, 0), begin(&world, 0));
    put_in(first, store, b"key", b"first");
    put_in(second, store, b"key", b"second");
    assert_eq!(tanada_kv_commit(first, 0), OK);
    assert_eq!(tanada_kv_commit(second, 0), CONFLICT);
    assert!(message().contains("another commit"), "{}", message());
    assert_eq!(get(store, b"key").unwrap(), b"first");
    tanada_kv_store_free(store);
}

#[test]
fn a_serializable_transaction_conflicts_with_writes_of_what_it_read() {
    let world = World::new();
    let store = world.store(c"a");
    put(store, b"read", b"old");
    for (serializable, code) in [(0, OK), (1, CONFLICT)] {
        let transaction = begin(&world, serializable);
        get_in(transaction, store, b"read");
        put(store, b"read", b"new");
        put_in(transaction, store, b"written", b"v");
        assert_eq!(tanada_kv_commit(transaction, 0), code, "serializable: {serializable}");
    }
    tanada_kv_store_free(store);
}

#[test]
fn a_transaction_that_is_rolled_back_leaves_nothing() {
    let world = World::new();
    let store = world.store(c"a");
    let transaction = begin(&world, 1);
    put_in(transaction, store, b"key", b"v");
    let cursor =
        handle(|out| tanada_kv_transaction_cursor_open(transaction, store, null(), 0, KEYS_ONLY, out));
    tanada_kv_rollback(transaction);
    assert_eq!(keys(cursor), ["key"], "a cursor outlives its transaction");
    tanada_kv_cursor_free(cursor);
    assert_eq!(all_keys(store), Vec::<String>::new());
    tanada_kv_store_free(store);
}

#[test]
fn a_transaction_refuses_stores_of_another_database() {
    let (one, other) = (World::new(), World::new());
    let store = other.store(c"a");
    let transaction = begin(&one, 0);
    let found = taken(|value, len| tanada_kv_transaction_get(transaction, store, at(b"key"), 3, value, len));
    assert_eq!(found, Err(INVALID));
    put_in(transaction, store, b"key", b"v");
    assert_eq!(tanada_kv_commit(transaction, 0), INVALID);
    assert_eq!(get(store, b"key"), None);
    tanada_kv_store_free(store);
}
