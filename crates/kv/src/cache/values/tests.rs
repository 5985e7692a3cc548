//! What is held, and what it takes.

use std::collections::HashMap;
use std::sync::atomic::AtomicUsize;

use bytes::Bytes;
use futures::executor::block_on;
use proptest::prelude::*;

use super::*;
use crate::cache::Newest;

fn count(values: &Values) -> usize {
    values.shards.iter().map(|shard| shard.lock().count_checked()).sum()
}

/// Values for this many bytes, all of which they may have.
fn values(bytes: u64) -> Values {
    let values = Values::new(bytes);
    assert!(values.shrink(bytes, bytes));
    values
}

fn key(no: u64) -> [u8; 8] {
    no.to_be_bytes()
}

fn put(values: &Values, no: u64, sequence: u64, value: &[u8]) {
    values.put(&VersionId::new(Owner(1), &key(no), sequence), value);
}

fn get(values: &Values, no: u64) -> Option<Bytes> {
    let key = key(no);
    values.held(Owner(1), &key, KeyHash::of(&key)).map(|held| held.value())
}

#[test]
fn memory_comes_back_at_once() {
    let values = values(16 << 20);
    (0..20_000).for_each(|no| put(&values, no, 1, &[no as u8; 1000]));
    let (held, bytes) = (count(&values), values.bytes());
    assert!((15 << 20..=(16 << 20) + (64 << 10)).contains(&bytes), "{bytes}");
    assert!(held > 14_000, "{held} take {bytes}");
    let mut portions = 1;
    while !values.shrink(4 << 20, 1 << 20) {
        portions += 1;
    }
    assert!((11..=14).contains(&portions) && values.bytes() <= 4 << 20, "{portions}, {}", values.bytes());
    let left = count(&values);
    assert!((3_000..4_000).contains(&left), "{left}");
    assert!(values.shrink(0, 64 << 20) && count(&values) == 0);
    put(&values, 1, 1, b"nowhere to put it");
    assert_eq!(get(&values, 1), None);
    assert!(values.shrink(16 << 20, 1 << 20));
    put(&values, 1, 1, b"there is room again");
    assert_eq!(get(&values, 1).unwrap(), "there is room again");
}

#[test]
fn reread_values_survive_a_scan_of_others() {
    let values = values(4 << 20);
    let mut missing = 0;
    for no in 0..80_000u64 {
        // Twice as many as there is space for, over and over.
        put(&values, 1000 + no % 8000, 1, &[2; 1000]);
        if get(&values, no % 100).is_none() {
            put(&values, no % 100, 1, &[1; 1000]);
            missing += u32::from(no > 20_000);
        }
    }
    assert!(missing < 900, "{missing}");
}

#[test]
fn used_values_survive_a_stream_of_new_values() {
    let values = values(4 << 20);
    (1000..10_000).for_each(|no| put(&values, no, 1, &[2; 1000]));
    (0..100).for_each(|no| put(&values, no, 1, &[1; 1000]));
    for no in 10_000..50_000u64 {
        put(&values, no, 1, &[2; 1000]);
        get(&values, no % 100);
    }
    let held = (0..100).filter(|no| get(&values, *no).is_some()).count();
    assert!(held >= 70, "{held}");
}

#[test]
fn values_readmitted_after_eviction_stay_longer() {
    let values = values(2 << 20);
    let pass = |from: u64| (from..from + 3000).for_each(|no| put(&values, no, 1, &[2; 1000]));
    (1..100).for_each(|no| put(&values, no, 1, &[1; 1000]));
    pass(10_000);
    assert!((1..100).all(|no| get(&values, no).is_none()));
    (1..100).for_each(|no| put(&values, no, 1, &[1; 1000]));
    pass(20_000);
    let held = (1..100).filter(|no| get(&values, *no).is_some()).count();
    assert!(held > 5, "{held}: most were forgotten, as many others had come since");
}

#[test]
fn shrinking_a_fully_used_cache_copies_little() {
    let values = values(16 << 20);
    let count_all = 14_000;
    (0..count_all).for_each(|no| put(&values, no, 1, &[1; 1000]));
    for _ in 0..3 {
        assert!((0..count_all).all(|no| get(&values, no).is_some()));
    }
    let moved = || values.shards.iter().map(|shard| shard.lock().moved_bytes as u64).sum::<u64>();
    for mib in [14, 12, 10] {
        let before = moved();
        while !values.shrink(mib << 20, 1 << 20) {}
        assert!(values.bytes() <= mib << 20);
        assert!(moved() - before <= 8 << 20, "{}", moved() - before);
    }
    // One at a time as well.
    let before = moved();
    put(&values, 1 << 40, 1, &[1; 1000]);
    assert!(moved() - before <= 256 << 10);
    count(&values);
}

#[test]
fn large_values_and_small_ones_fill_their_blocks() {
    let values = values(16 << 20);
    for no in 0..100_000 {
        put(&values, 2 * no, 1, &[1; 20_000]);
        put(&values, 2 * no + 1, 1, &[2; 100]);
    }
    let held = count(&values);
    assert!(held > 1200, "{held}");
}

#[test]
fn a_value_that_is_large_for_a_shard_pushes_nothing_out() {
    let values = values(16 << 20);
    assert!(values.shrink(2 << 20, 16 << 20));
    (0..1000).for_each(|no| put(&values, no, 1, &[1; 1000]));
    let before = count(&values);
    put(&values, 5000, 1, &vec![2; 1 << 20]);
    assert_eq!((get(&values, 5000), count(&values)), (None, before));
    put(&values, 5001, 1, &vec![2; 200 << 10]);
    assert!(get(&values, 5001).is_some());
}

#[test]
fn evicted_small_values_leave_no_fragments() {
    let values = values(16 << 20);
    for no in 0..300_000 {
        put(&values, no, 1, &[1; 10]);
        assert!(no % 1000 > 0 || values.bytes() <= (16 << 20) + (512 << 10), "{}", values.bytes());
    }
    while !values.shrink(1 << 20, 1 << 20) {}
    assert!(values.bytes() <= 1 << 20, "{}", values.bytes());
    (0..100).for_each(|no| put(&values, no, 2, &[2; 1000]));
    assert!(count(&values) > 100);
}

#[test]
fn the_cache_distinguishes_versions_and_keys() {
    let values = values(1 << 20);
    let (key, newest) = (key(7), Some(Newest { up_to: 90, expires_s: None }));
    let id = VersionId::new(Owner(1), &key, 5);
    let known = || values.held(id.store, id.key, id.hash).unwrap().newest_at(5);
    values.put(&id, b"value");
    values.note_newest(&VersionId { sequence: 6, newest, ..id });
    assert_eq!(known(), None, "another version's");
    // Of another key with the same hash.
    let twin = VersionId { key: b"twin", newest, ..id };
    values.note_newest(&twin);
    assert_eq!(known(), None, "another key's");
    assert!(values.held(twin.store, twin.key, twin.hash).is_none());
    values.note_newest(&VersionId { newest, ..id });
    assert_eq!(known(), newest);
    values.put(&id, b"value");
    assert_eq!(known(), newest, "it is the same version");
    values.put(&VersionId { sequence: 6, ..id }, b"other");
    assert_eq!(values.held(id.store, id.key, id.hash).unwrap().newest_at(6), None);
    assert!(values.held(Owner(2), id.key, id.hash).is_none(), "another store's");
}

#[test]
fn concurrent_loads_of_a_key_are_merged() {
    let values = values(1 << 20);
    let (key, loads) = (key(7), AtomicUsize::new(0));
    let id = VersionId::new(Owner(1), &key, 1);
    let load = || {
        values.load(&id, async {
            loads.fetch_add(1, Ordering::Relaxed);
            crate::notify::yield_now().await;
            Ok(HeldValue::new(&id, b"value"))
        })
    };
    let all = block_on(futures::future::join_all([load(), load(), load()]));
    assert!(all.into_iter().all(|held| held.unwrap().value() == "value"));
    assert_eq!(loads.load(Ordering::Relaxed), 1);
    // Nothing of it is left there.
    assert_eq!(block_on(load()).unwrap().value(), "value");
    assert_eq!(loads.load(Ordering::Relaxed), 2);
}

#[derive(Debug, Clone)]
enum Step {
    Put { no: u64, newer: bool, bytes: usize },
    Get(u64),
    Forget(u64),
    Note(u64),
    Shrink(u64),
}

fn step() -> impl Strategy<Value = Step> {
    let no = 0..200u64;
    // Of 16 KiB a block has; what is longer than a quarter of it has memory of its own.
    let bytes = prop_oneof![Just(100usize), 0..300usize, 3000..6000usize];
    prop_oneof![
        8 => (no.clone(), any::<bool>(), bytes).prop_map(|(no, newer, bytes)| Step::Put { no, newer, bytes }),
        8 => no.clone().prop_map(Step::Get),
        1 => no.clone().prop_map(Step::Forget),
        1 => no.prop_map(Step::Note),
        1 => (0..1u64 << 20).prop_map(Step::Shrink),
    ]
}

proptest! {
    #[test]
    fn the_cache_returns_the_last_version_put(steps in proptest::collection::vec(step(), 1..600)) {
        let values = values(1 << 20);
        let mut model: HashMap<u64, (u64, Vec<u8>, Option<Newest>)> = HashMap::new();
        let (mut most, mut sequence) = (1 << 20, 100);
        for step in steps {
            match step {
                Step::Put { no, newer, bytes } => {
                    sequence += 1;
                    let version = if newer { sequence } else { no % 100 };
                    let value = vec![version as u8; bytes];
                    let held = model.get(&no).filter(|_| get(&values, no).is_some());
                    put(&values, no, version, &value);
                    match held {
                        // An older version than the one that is held is of no use.
                        Some((held, ..)) if *held > version => {}
                        Some((held, before, _)) if *held == version && *before == value => {}
                        _ => drop(model.insert(no, (version, value, None))),
                    }
                }
                Step::Get(no) => {
                    let key = key(no);
                    if let Some(held) = values.held(Owner(1), &key, KeyHash::of(&key)) {
                        let (version, value, newest) = &model[&no];
                        prop_assert_eq!(&held.value()[..], &value[..]);
                        prop_assert!(held.is_older_than(version + 1) && !held.is_older_than(*version));
                        prop_assert_eq!(held.newest_at(*version), *newest);
                    }
                }
                Step::Forget(no) => {
                    values.forget(Owner(1), KeyHash::of(&key(no)));
                    model.remove(&no);
                    prop_assert_eq!(get(&values, no), None);
                }
                Step::Note(no) => {
                    let newest = Some(Newest { up_to: sequence, expires_s: None });
                    if let Some((version, _, known)) = model.get_mut(&no) {
                        let key = key(no);
                        values.note_newest(&VersionId { newest, ..VersionId::new(Owner(1), &key, *version) });
                        if get(&values, no).is_some() {
                            *known = newest;
                        }
                    }
                }
                Step::Shrink(bytes) => {
                    most = bytes;
                    while !values.shrink(bytes, 64 << 10) {}
                }
            }
            // Of its index it cannot get rid.
            prop_assert!(values.bytes() <= most + (16 << 10), "{} of {most}", values.bytes());
        }
        count(&values);
    }
}
