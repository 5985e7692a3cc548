//! Settings of databases.

use std::ptr::null_mut;

use serde_json::{Value, json};

use crate::symbols::*;
use crate::world::*;

fn setting(world: &World, name: &str) -> Value {
    json(|at, len| tanada_kv_settings(world.database, at, len))[name].clone()
}

#[test]
fn settings_change_while_the_database_is_open() {
    let mut world = World::new();
    assert_eq!(setting(&world, "memory_bytes"), 4 << 20);
    let change = c"{\"durability\": {\"within\": 7}, \"slow_root_kvsets\": 10}";
    assert_eq!(tanada_kv_set_settings(world.database, change.as_ptr()), OK, "{}", message());
    assert_eq!(setting(&world, "durability"), json!({"within": 7}));
    assert_eq!(tanada_kv_set_fast_class_bytes(world.database, 8 << 20), OK, "{}", message());
    assert_eq!(setting(&world, "fast_class_bytes"), 8 << 20);
    world.close();
    world.open(0);
    assert_eq!(setting(&world, "durability"), json!({"within": 7}), "for good");
    assert_eq!(tanada_kv_set_fast_class_bytes(world.database, 0), OK);
    assert_eq!(setting(&world, "fast_class_bytes"), Value::Null);
}

#[test]
fn settings_that_are_fixed_or_wrong_change_nothing() {
    let world = World::new();
    let fixed = c"{\"memory_bytes\": 8388608, \"slow_root_kvsets\": 9}";
    assert_eq!(tanada_kv_set_settings(world.database, fixed.as_ptr()), INVALID);
    assert!(message().contains("memory_bytes"), "{}", message());
    for wrong in [c"{\"no_such\": 1}", c"not json", c"{\"slow_root_kvsets\": -1}"] {
        assert_eq!(tanada_kv_set_settings(world.database, wrong.as_ptr()), INVALID, "{wrong:?}");
    }
    assert_eq!(setting(&world, "slow_root_kvsets"), 16);
    let volume = world.volume();
    let mut none = null_mut();
    let wrong = c"{\"memory_bytes\": 1}";
    let open = tanada_kv_open_with(volume.as_ptr(), c"b".as_ptr(), CREATE, wrong.as_ptr(), &raw mut none);
    assert_eq!((open, none.is_null()), (INVALID, true));
}
