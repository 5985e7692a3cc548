//! Loads of sorted keys.

use crate::symbols::*;
use crate::world::*;

fn load_put(load: *mut Handle, key: &str) -> i32 {
    tanada_kv_load_put(load, at(key.as_bytes()), key.len(), at(b"value"), 5)
}

#[test]
fn a_load_is_seen_as_a_whole_when_it_is_finished() {
    let world = World::new();
    let store = world.store(c"a");
    put(store, b"before", b"v");
    let snapshot = handle(|out| tanada_kv_snapshot_take(world.database, out));
    let load = handle(|out| tanada_kv_load_begin(store, out));
    for no in 0..1000 {
        assert_eq!(load_put(load, &format!("key{no:04}")), OK, "{}", message());
    }
    assert_eq!(all_keys(store), ["before"]);
    assert_eq!(tanada_kv_load_finish(load), OK, "{}", message());
    assert_eq!(all_keys(store).len(), 1001);
    let cursor = handle(|out| tanada_kv_cursor_open_at(store, snapshot, std::ptr::null(), 0, out));
    assert_eq!(keys(cursor), ["before"], "a snapshot from before does not see it");
    tanada_kv_cursor_free(cursor);
    tanada_kv_snapshot_free(snapshot);
    tanada_kv_store_free(store);
}

#[test]
fn a_load_refuses_keys_out_of_order() {
    let world = World::new();
    let store = world.store(c"a");
    let load = handle(|out| tanada_kv_load_begin(store, out));
    assert_eq!(load_put(load, "b"), OK);
    for key in ["a", "b"] {
        assert_eq!(load_put(load, key), INVALID);
        assert!(message().contains("not larger"), "{}", message());
    }
    assert_eq!(load_put(load, "c"), OK, "it goes on behind the last key that was good");
    assert_eq!(tanada_kv_load_finish(load), OK);
    assert_eq!(all_keys(store), ["b", "c"]);
    tanada_kv_store_free(store);
}

#[test]
fn a_load_that_is_given_up_leaves_nothing() {
    let world = World::new();
    let store = world.store(c"a");
    let load = handle(|out| tanada_kv_load_begin(store, out));
    assert_eq!(load_put(load, "key"), OK);
    tanada_kv_load_free(load);
    assert_eq!(all_keys(store), Vec::<String>::new());
    let empty = handle(|out| tanada_kv_load_begin(store, out));
    assert_eq!(tanada_kv_load_finish(empty), OK, "a load of nothing");
    assert_eq!(tanada_kv_compact(store), OK, "it waits for no load any more");
    tanada_kv_store_free(store);
}
