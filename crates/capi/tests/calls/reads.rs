//! Reads and writes of single keys.

use crate::symbols::*;
use crate::world::*;

#[test]
fn a_value_is_read_as_it_was_put() {
    let world = World::new();
    let store = world.store(c"a");
    put(store, b"key", b"value");
    put(store, b"bytes\0and zeros", &[0, 1, 255]);
    put(store, b"empty", b"");
    assert_eq!(get(store, b"key").unwrap(), b"value");
    assert_eq!(get(store, b"bytes\0and zeros").unwrap(), [0, 1, 255]);
    assert_eq!(get(store, b"empty").unwrap(), b"", "an empty value is there");
    assert_eq!(get(store, b"missing"), None);
    assert!(message().contains("no such key"), "{}", message());
    put(store, b"key", b"another");
    assert_eq!(get(store, b"key").unwrap(), b"another");
    tanada_kv_store_free(store);
}

#[test]
fn deleted_keys_are_not_found() {
    let world = World::new();
    let store = world.store(c"a");
    for key in ["a1", "a2", "b1", "b2", "c1"] {
        put(store, key.as_bytes(), b"value");
    }
    assert_eq!(tanada_kv_delete(store, at(b"b1"), 2, 0), OK);
    assert_eq!(tanada_kv_delete(store, at(b"b1"), 2, 0), OK, "a key that is not there can be deleted");
    assert_eq!(all_keys(store), ["a1", "a2", "b2", "c1"]);
    assert_eq!(tanada_kv_delete_prefix(store, at(b"a"), 1, 0), OK);
    assert_eq!(all_keys(store), ["b2", "c1"]);
    assert_eq!(tanada_kv_delete_range(store, at(b"b"), 1, at(b"c1"), 2, 0), OK);
    assert_eq!(all_keys(store), ["c1"], "the end of a range is not a part of it");
    assert_eq!(tanada_kv_delete_range(store, at(b"c"), 1, std::ptr::null(), 0, 0), OK);
    assert_eq!(all_keys(store), Vec::<String>::new());
    tanada_kv_store_free(store);
}

#[test]
fn writes_are_there_after_the_database_was_closed() {
    let mut world = World::new();
    let store = world.store(c"a");
    for (no, flags) in [0, SYNC, UNCOMPRESSED, LZ4, ZSTD, 10 << 16].into_iter().enumerate() {
        let key = format!("key{no}");
        let code = tanada_kv_put(store, at(key.as_bytes()), key.len(), at(&[b'x'; 4000]), 4000, flags);
        assert_eq!(code, OK, "{flags:#x}: {}", message());
    }
    assert_eq!(tanada_kv_sync(world.database), OK);
    tanada_kv_store_free(store);
    world.close();
    world.open(0);
    let store = world.store(c"a");
    assert_eq!(all_keys(store).len(), 6);
    assert_eq!(get(store, b"key4").unwrap(), [b'x'; 4000]);
    tanada_kv_store_free(store);
}

#[test]
fn a_store_is_compacted_while_it_is_read() {
    let world = World::new();
    let store = world.store(c"a");
    for no in 0..2000u32 {
        put(store, format!("key{:05}", no % 700).as_bytes(), &[no as u8; 300]);
    }
    let cursor = handle(|out| tanada_kv_cursor_open(store, at(b"key00"), 5, out));
    assert_eq!(tanada_kv_compact(store), OK, "{}", message());
    assert_eq!(keys(cursor).len(), 700);
    assert_eq!(get(store, b"key00042").unwrap(), [(42 + 1400) as u8; 300]);
    tanada_kv_cursor_free(cursor);
    tanada_kv_store_free(store);
}
