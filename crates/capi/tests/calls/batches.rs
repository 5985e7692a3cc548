//! Batches: all of one is written, or nothing.

use std::ptr::null;

use crate::symbols::*;
use crate::world::*;

#[test]
fn a_batch_is_written_over_several_stores() {
    let world = World::new();
    let (a, b) = (world.store(c"a"), world.store(c"b"));
    put(a, b"old", b"v");
    put(b, b"range1", b"v");
    put(b, b"range2", b"v");
    let batch = handle(|out| tanada_kv_batch_new(out));
    assert_eq!(tanada_kv_batch_put(batch, a, at(b"new"), 3, at(b"first"), 5), OK);
    assert_eq!(tanada_kv_batch_put(batch, a, at(b"new"), 3, at(b"later"), 5), OK);
    assert_eq!(tanada_kv_batch_delete(batch, a, at(b"old"), 3), OK);
    assert_eq!(tanada_kv_batch_delete_range(batch, b, at(b"range"), 5, null(), 0), OK);
    assert_eq!(tanada_kv_batch_put(batch, b, at(b"range3"), 6, at(b"v"), 1), OK);
    assert_eq!(all_keys(a), ["old"], "nothing is written before the call that writes");
    assert_eq!(tanada_kv_write(world.database, batch, SYNC), OK, "{}", message());
    assert_eq!(get(a, b"new").unwrap(), b"later", "of two operations on a key the later one counts");
    assert_eq!((all_keys(a), all_keys(b)), (vec!["new".to_owned()], vec!["range3".to_owned()]));
    tanada_kv_store_free(a);
    tanada_kv_store_free(b);
}

#[test]
fn a_batch_that_is_given_back_writes_nothing() {
    let world = World::new();
    let store = world.store(c"a");
    let batch = handle(|out| tanada_kv_batch_new(out));
    assert_eq!(tanada_kv_batch_put(batch, store, at(b"key"), 3, at(b"v"), 1), OK);
    tanada_kv_batch_free(batch);
    assert_eq!(all_keys(store), Vec::<String>::new());
    let empty = handle(|out| tanada_kv_batch_new(out));
    assert_eq!(tanada_kv_write(world.database, empty, 0), OK, "an empty batch is written");
    tanada_kv_store_free(store);
}

#[test]
fn a_batch_over_two_databases_is_refused_as_a_whole() {
    let (one, other) = (World::new(), World::new());
    let (a, b) = (one.store(c"a"), other.store(c"a"));
    let batch = handle(|out| tanada_kv_batch_new(out));
    assert_eq!(tanada_kv_batch_put(batch, a, at(b"key"), 3, at(b"v"), 1), OK);
    assert_eq!(tanada_kv_batch_put(batch, b, at(b"key"), 3, at(b"v"), 1), OK);
    assert_eq!(tanada_kv_write(one.database, batch, 0), INVALID);
    assert!(message().contains("several databases"), "{}", message());
    let batch = handle(|out| tanada_kv_batch_new(out));
    assert_eq!(tanada_kv_batch_put(batch, b, at(b"key"), 3, at(b"v"), 1), OK);
    assert_eq!(tanada_kv_write(one.database, batch, 0), INVALID, "the stores are another database's");
    assert_eq!((get(a, b"key"), get(b, b"key")), (None, None));
    tanada_kv_store_free(a);
    tanada_kv_store_free(b);
}

#[test]
fn a_key_that_is_too_long_is_refused_with_its_batch() {
    let world = World::new();
    let store = world.store(c"a");
    let long = vec![b'k'; 1 << 17];
    let batch = handle(|out| tanada_kv_batch_new(out));
    assert_eq!(tanada_kv_batch_put(batch, store, at(b"short"), 5, at(b"v"), 1), OK);
    assert_eq!(tanada_kv_batch_put(batch, store, at(&long), long.len(), at(b"v"), 1), OK);
    assert_eq!(tanada_kv_write(world.database, batch, 0), INVALID);
    assert!(message().contains("131072 bytes"), "{}", message());
    assert_eq!(get(store, b"short"), None);
    assert_eq!(tanada_kv_put(store, at(&long), long.len(), at(b"v"), 1, 0), INVALID);
    tanada_kv_store_free(store);
}
