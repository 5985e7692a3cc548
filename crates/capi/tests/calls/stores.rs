//! Stores: made, opened, listed and dropped.

use std::ptr::{null, null_mut};

use serde_json::json;

use crate::symbols::*;
use crate::world::*;

#[test]
fn stores_are_made_opened_and_listed() {
    let world = World::new();
    let mut none = null_mut();
    let open = |flags, out| tanada_kv_store_open(world.database, c"second".as_ptr(), flags, out);
    assert_eq!(open(0, &raw mut none), NOT_FOUND);
    assert!(none.is_null() && message().contains("second"), "{}", message());
    let first = world.store(c"first");
    let second = handle(|out| open(CREATE, out));
    let again = handle(|out| open(0, out));
    put(second, b"key", b"v");
    assert_eq!(get(again, b"key").unwrap(), b"v", "two handles of one store");
    assert_eq!(get(first, b"key"), None);
    assert_eq!(json(|at, len| tanada_kv_stores(world.database, at, len)), json!(["first", "second"]));
    [first, second, again].into_iter().for_each(|store| tanada_kv_store_free(store));
}

#[test]
fn a_dropped_store_is_not_there_any_more() {
    let world = World::new();
    let store = world.store(c"a");
    put(store, b"key", b"v");
    assert_eq!(tanada_kv_store_drop(world.database, c"a".as_ptr()), OK, "{}", message());
    assert_eq!(tanada_kv_store_drop(world.database, c"a".as_ptr()), NOT_FOUND);
    assert_eq!(tanada_kv_put(store, at(b"key"), 3, at(b"v"), 1, 0), NOT_FOUND);
    assert_eq!(taken(|value, len| tanada_kv_get(store, at(b"key"), 3, value, len)), Err(NOT_FOUND));
    assert!(message().contains("dropped"), "{}", message());
    tanada_kv_store_free(store);
    let anew = world.store(c"a");
    assert_eq!(get(anew, b"key"), None, "a new store of that name is empty");
    tanada_kv_store_free(anew);
}

#[test]
fn store_settings_are_kept_and_changed() {
    let mut world = World::new();
    let settings = c"{\"compression\": \"lz4\", \"time_to_live_s\": 3600}";
    let open = |out| tanada_kv_store_open_with(world.database, c"a".as_ptr(), CREATE, settings.as_ptr(), out);
    let store = handle(open);
    let named = |store, name: &str| json(|at, len| tanada_kv_store_settings(store, at, len))[name].clone();
    assert_eq!((named(store, "compression"), named(store, "time_to_live_s")), (json!("lz4"), json!(3600)));
    let change = c"{\"time_to_live_s\": null}";
    assert_eq!(tanada_kv_store_set_settings(store, change.as_ptr()), OK, "{}", message());
    assert_eq!(tanada_kv_set_policy(store, c"\"capacity_only\"".as_ptr()), OK, "{}", message());
    for wrong in [c"{\"compression\": \"lz5\"}", c"{\"no_such\": 1}", c"{", c"{\"page_bytes\": 5000}"] {
        assert_eq!(tanada_kv_store_set_settings(store, wrong.as_ptr()), INVALID, "{wrong:?}");
    }
    assert_eq!(tanada_kv_set_policy(store, c"\"no_such\"".as_ptr()), INVALID);
    assert_eq!((named(store, "compression"), named(store, "time_to_live_s")), (json!("lz4"), json!(null)));
    let policy = named(store, "policy");
    tanada_kv_store_free(store);
    world.close();
    world.open(0);
    let store = handle(|out| tanada_kv_store_open_with(world.database, c"a".as_ptr(), 0, null(), out));
    assert_eq!((named(store, "compression"), named(store, "policy")), (json!("lz4"), policy));
    tanada_kv_store_free(store);
}
