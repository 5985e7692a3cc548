//! Keys that count as deleted after some time.

use std::time::{Duration, Instant};

use crate::symbols::*;
use crate::world::*;

#[test]
fn keys_with_a_time_to_live_expire() {
    let world = World::new();
    let store = world.store(c"a");
    assert_eq!(tanada_kv_put_expiring(store, at(b"short"), 5, at(b"v"), 1, 1, 0), OK);
    assert_eq!(tanada_kv_put_expiring(store, at(b"long"), 4, at(b"v"), 1, 3600, 0), OK);
    assert_eq!(tanada_kv_put_expiring(store, at(b"ever"), 4, at(b"v"), 1, 0, 0), OK);
    let batch = handle(|out| tanada_kv_batch_new(out));
    assert_eq!(tanada_kv_batch_put(batch, store, at(b"batch"), 5, at(b"v"), 1), OK);
    assert_eq!(tanada_kv_write_expiring(world.database, batch, 1, 0), OK);
    let began = Instant::now();
    while get(store, b"short").is_some() || get(store, b"batch").is_some() {
        assert!(began.elapsed() < Duration::from_secs(60), "a key of one second is there after a minute");
        std::thread::sleep(Duration::from_millis(20));
    }
    assert_eq!(all_keys(store), ["ever", "long"]);
    tanada_kv_store_free(store);
}
