//! Cursors and snapshots.

use std::ptr::{null, null_mut};

use crate::symbols::*;
use crate::world::*;

fn filled(world: &World) -> *mut Handle {
    let store = world.store(c"a");
    for key in ["apple", "banana", "blackberry", "blueberry", "cherry"] {
        put(store, key.as_bytes(), key.to_uppercase().as_bytes());
    }
    store
}

#[test]
fn a_cursor_walks_both_ways() {
    let world = World::new();
    let store = filled(&world);
    let cursor = handle(|out| tanada_kv_cursor_open(store, null(), 0, out));
    assert_eq!(step(cursor, false), None, "it stands before the first key");
    assert_eq!(step(cursor, true).unwrap(), (b"apple".to_vec(), b"APPLE".to_vec()));
    assert_eq!(step(cursor, true).unwrap().0, b"banana");
    assert_eq!(step(cursor, false).unwrap().0, b"banana", "back over the key that it went over");
    assert_eq!(tanada_kv_cursor_seek(cursor, at(b"blue"), 4), OK);
    assert_eq!(step(cursor, true).unwrap().0, b"blueberry");
    assert_eq!(tanada_kv_cursor_seek_to_end(cursor), OK);
    assert_eq!(step(cursor, true), None);
    assert!(message().contains("at the end"), "{}", message());
    assert_eq!(step(cursor, false).unwrap().0, b"cherry");
    assert_eq!(tanada_kv_cursor_seek_to_begin(cursor), OK);
    assert_eq!(keys(cursor).len(), 5);
    tanada_kv_cursor_free(cursor);
    tanada_kv_store_free(store);
}

#[test]
fn a_cursor_with_a_prefix_sees_no_other_keys() {
    let world = World::new();
    let store = filled(&world);
    let cursor = handle(|out| tanada_kv_cursor_open(store, at(b"bl"), 2, out));
    assert_eq!(keys(cursor), ["blackberry", "blueberry"]);
    assert_eq!(tanada_kv_cursor_seek_to_end(cursor), OK);
    assert_eq!(step(cursor, false).unwrap().0, b"blueberry");
    tanada_kv_cursor_free(cursor);
    tanada_kv_store_free(store);
}

#[test]
fn a_cursor_sees_later_writes_when_it_is_refreshed() {
    let world = World::new();
    let store = filled(&world);
    let cursor = handle(|out| tanada_kv_cursor_open(store, null(), 0, out));
    assert_eq!(step(cursor, true).unwrap().0, b"apple");
    put(store, b"apricot", b"new");
    assert_eq!(step(cursor, true).unwrap().0, b"banana");
    assert_eq!(step(cursor, false).unwrap().0, b"banana");
    assert_eq!(tanada_kv_cursor_refresh(cursor), OK);
    assert_eq!(step(cursor, true).unwrap().0, b"banana", "it stays where it is");
    assert_eq!(tanada_kv_cursor_seek_to_begin(cursor), OK);
    assert_eq!(keys(cursor).len(), 6);
    tanada_kv_cursor_free(cursor);
    tanada_kv_store_free(store);
}

#[test]
fn a_cursor_over_keys_alone_gives_empty_values() {
    let world = World::new();
    let store = filled(&world);
    let snapshot = handle(|out| tanada_kv_snapshot_take(world.database, out));
    put(store, b"date", b"later");
    let open = |snapshot, flags, expected, out| {
        tanada_kv_cursor_open_with(store, snapshot, null(), 0, flags, expected, out)
    };
    let cursor = handle(|out| open(snapshot, KEYS_ONLY, 3, out));
    assert_eq!(step(cursor, true).unwrap(), (b"apple".to_vec(), Vec::new()));
    assert_eq!(keys(cursor).len(), 4, "the snapshot has not seen the last key");
    tanada_kv_cursor_free(cursor);
    let cursor = handle(|out| open(null_mut(), 0, usize::MAX, out));
    assert_eq!(keys(cursor).len(), 6);
    tanada_kv_cursor_free(cursor);
    let mut none = null_mut();
    assert_eq!(open(null_mut(), 2, 0, &raw mut none), INVALID, "an unknown flag");
    assert!(none.is_null());
    tanada_kv_snapshot_free(snapshot);
    tanada_kv_store_free(store);
}

#[test]
fn a_snapshot_keeps_what_was_there() {
    let world = World::new();
    let store = filled(&world);
    let snapshot = handle(|out| tanada_kv_snapshot_take(world.database, out));
    put(store, b"apple", b"changed");
    assert_eq!(tanada_kv_delete_prefix(store, at(b"b"), 1, 0), OK);
    assert_eq!(tanada_kv_compact(store), OK);
    let get_at =
        |key: &[u8]| taken(|value, len| tanada_kv_get_at(store, snapshot, at(key), key.len(), value, len));
    assert_eq!(get_at(b"apple").unwrap(), b"APPLE");
    assert_eq!(get_at(b"banana").unwrap(), b"BANANA");
    assert_eq!(get_at(b"missing"), Err(NOT_FOUND));
    let cursor = handle(|out| tanada_kv_cursor_open_at(store, snapshot, null(), 0, out));
    assert_eq!(keys(cursor).len(), 5);
    tanada_kv_cursor_free(cursor);
    tanada_kv_snapshot_free(snapshot);
    assert_eq!(all_keys(store), ["apple", "cherry"]);
    tanada_kv_store_free(store);
}

#[test]
fn a_snapshot_of_another_database_is_refused() {
    let (one, other) = (World::new(), World::new());
    let store = filled(&one);
    let snapshot = handle(|out| tanada_kv_snapshot_take(other.database, out));
    let found = taken(|value, len| tanada_kv_get_at(store, snapshot, at(b"apple"), 5, value, len));
    assert_eq!(found, Err(INVALID));
    assert!(message().contains("another database"), "{}", message());
    tanada_kv_snapshot_free(snapshot);
    tanada_kv_store_free(store);
}
