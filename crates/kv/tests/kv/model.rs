//! A database does what a map does, over snapshots, batches, ranges and stops.

use std::collections::BTreeMap;

use tanada_base::SplitMix64;
use tanada_kv::blocking::wait;
use tanada_kv::{Batch, CursorOptions, Database, Snapshot, Store, StoreSettings, WriteOptions};

use crate::volumes::Bench;

type Map = BTreeMap<Vec<u8>, Vec<u8>>;

struct Model {
    random: SplitMix64,
    maps: [Map; 2],
    snapshots: Vec<(Snapshot, [Map; 2])>,
    keys: u64,
}

impl Model {
    fn key(&mut self) -> Vec<u8> {
        format!("key{:05}", self.random.below(self.keys)).into_bytes()
    }

    fn value(&mut self) -> Vec<u8> {
        let len = if self.random.below(10) == 0 { self.random.below(20_000) } else { self.random.below(600) };
        vec![self.random.below(256) as u8; len as usize]
    }

    fn step(&mut self, database: &Database, stores: &[Store; 2]) {
        let which = self.random.below(2) as usize;
        let store = &stores[which];
        match self.random.below(100) {
            0..60 => {
                let (key, value) = (self.key(), self.value());
                wait(store.put(&key, &value)).unwrap();
                self.maps[which].insert(key, value);
            }
            60..75 => {
                let key = self.key();
                wait(store.delete(&key)).unwrap();
                self.maps[which].remove(&key);
            }
            75..77 => {
                let (mut start, mut end) = (self.key(), self.key());
                if start > end {
                    std::mem::swap(&mut start, &mut end);
                }
                end.truncate(8.min(end.len()));
                wait(store.delete_range(&start, Some(&end))).unwrap();
                self.maps[which].retain(|key, _| *key < start || *key >= end);
            }
            77..78 => {
                let mut prefix = self.key();
                prefix.truncate(6 + self.random.below(2) as usize);
                wait(store.delete_prefix(&prefix)).unwrap();
                self.maps[which].retain(|key, _| !key.starts_with(&prefix));
            }
            78..85 => {
                let mut batch = Batch::new();
                for _ in 0..self.random.below(20) {
                    let which = self.random.below(2) as usize;
                    let (key, value) = (self.key(), self.value());
                    if self.random.below(4) == 0 {
                        batch.delete(&stores[which], &key);
                        self.maps[which].remove(&key);
                    } else {
                        batch.put(&stores[which], &key, &value);
                        self.maps[which].insert(key, value);
                    }
                }
                wait(database.write(batch, &WriteOptions::default())).unwrap();
            }
            85..86 => {
                if self.snapshots.len() > 3 {
                    self.snapshots.remove(0);
                }
                self.snapshots.push((database.snapshot(), self.maps.clone()));
            }
            86..88 => {
                let map = self.maps[which].clone();
                self.walk(store, None, &map);
                if let Some((snapshot, maps)) = self.snapshots.pop() {
                    self.walk(store, Some(&snapshot), &maps[which]);
                    self.snapshots.push((snapshot, maps));
                }
            }
            _ => {
                let key = self.key();
                let value = wait(store.get(&key)).unwrap();
                assert_eq!(value.as_deref(), self.maps[which].get(&key).map(|value| &value[..]));
                if let Some((snapshot, maps)) = self.snapshots.last() {
                    let value = wait(store.get_at(snapshot, &key)).unwrap();
                    assert_eq!(value.as_deref(), maps[which].get(&key).map(|value| &value[..]));
                }
            }
        }
    }

    /// A walk there and back over a part of what there is.
    fn walk(&mut self, store: &Store, snapshot: Option<&Snapshot>, map: &Map) {
        let mut prefix = self.key();
        prefix.truncate(self.random.below(8) as usize);
        let options = CursorOptions {
            prefix: prefix.clone().into(),
            snapshot: snapshot.cloned(),
            expected_keys: self.random.below(40).saturating_sub(10) as usize,
            ..CursorOptions::default()
        };
        let mut cursor = store.cursor(options);
        let expected: Vec<(&Vec<u8>, &Vec<u8>)> =
            map.iter().filter(|(key, _)| key.starts_with(&prefix)).collect();
        let start = self.key();
        let mut at = expected.partition_point(|(key, _)| **key < start);
        wait(cursor.seek(&start)).unwrap();
        for _ in 0..self.random.below(200) {
            let found = if self.random.below(10) < 8 {
                let found = wait(cursor.next()).unwrap();
                at = (at + 1).min(expected.len() + 1);
                (found, expected.get(at - 1))
            } else {
                let found = wait(cursor.previous()).unwrap();
                at = at.wrapping_sub(1);
                (found, expected.get(at))
            };
            let (found, expected_now) = found;
            match (&found, expected_now) {
                (Some((key, value)), Some((expected_key, expected_value))) => {
                    assert_eq!((&key[..], &value[..]), (&expected_key[..], &expected_value[..]));
                }
                (None, None) => {}
                _ => panic!("{found:?} instead of {expected_now:?}"),
            }
            if at == usize::MAX {
                at = 0;
            }
            at = at.min(expected.len());
        }
        wait(cursor.seek_to_end()).unwrap();
        let last = wait(cursor.previous()).unwrap();
        assert_eq!(last.map(|(key, _)| key.to_vec()), expected.last().map(|(key, _)| key.to_vec()));
    }

    fn check(&self, stores: &[Store; 2]) {
        for (store, map) in stores.iter().zip(&self.maps) {
            let mut cursor = store.cursor(CursorOptions::default());
            for (key, value) in map {
                let (found, found_value) = wait(cursor.next()).unwrap().unwrap();
                assert_eq!((&found[..], &found_value[..]), (&key[..], &value[..]));
            }
            assert_eq!(wait(cursor.next()).unwrap(), None);
        }
        for no in 0..self.keys {
            let key = format!("key{no:05}").into_bytes();
            for (store, map) in stores.iter().zip(&self.maps) {
                let value = wait(store.get(&key)).unwrap();
                assert_eq!(value.as_deref(), map.get(&key).map(|value| &value[..]), "{key:?}");
            }
            for (snapshot, maps) in &self.snapshots {
                for (store, map) in stores.iter().zip(maps) {
                    let value = wait(store.get_at(snapshot, &key)).unwrap();
                    assert_eq!(value.as_deref(), map.get(&key).map(|value| &value[..]), "{key:?}");
                }
            }
        }
    }
}

fn run(seed: u64, keys: u64, rounds: usize, steps: usize) {
    let bench = Bench::new();
    let database = bench.create();
    let random = SplitMix64::new(seed);
    let mut model = Model { random, maps: Default::default(), snapshots: Vec::new(), keys };
    let settings =
        StoreSettings { leaf_bytes: 256 << 10, value_segment_bytes: 128 << 10, ..StoreSettings::default() };
    wait(database.create_store("a", &settings)).unwrap();
    wait(database.create_store("b", &settings)).unwrap();
    wait(database.close()).unwrap();
    for round in 0..rounds {
        let database = bench.open();
        let stores = ["a", "b"].map(|name| database.open_store(name).unwrap());
        model.check(&stores);
        for _ in 0..steps {
            model.step(&database, &stores);
        }
        model.check(&stores);
        if round % 3 == 1 {
            wait(stores[0].compact()).unwrap();
            model.check(&stores);
        }
        model.snapshots.clear();
        if round % 2 == 0 {
            wait(database.close()).unwrap();
        } else {
            wait(database.sync()).unwrap();
            wait(database.abandon());
        }
    }
}

#[test]
fn a_few_keys_written_again_and_again() {
    run(1, 50, 6, 800);
}

#[test]
fn many_keys() {
    run(2, 3000, 6, 3000);
}
