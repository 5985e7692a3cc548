//! A database does what a map does, over snapshots, batches, ranges and stops.
//!
//! A stop comes without a sync: what is there afterwards is what was written up to some moment, no earlier than the
//! last sync. A bulk load comes as a whole at its end, over what was there when it began and under what was written
//! meanwhile.

use std::collections::{BTreeMap, BTreeSet};

use tanada_base::SplitMix64;
use tanada_kv::blocking::wait;
use tanada_kv::{Batch, CursorOptions, Database, Snapshot, Store, StoreSettings, WriteOptions};

use crate::volumes::Bench;

type Map = BTreeMap<Vec<u8>, Vec<u8>>;

/// A change of one of the two stores.
#[derive(Debug, Clone)]
enum Change {
    Put(usize, Vec<u8>, Vec<u8>),
    Delete(usize, Vec<u8>),
    /// Without an end all keys from the first one on.
    DeleteRange(usize, Vec<u8>, Option<Vec<u8>>),
}

impl Change {
    fn add_to(&self, batch: &mut Batch, stores: &[Store; 2]) {
        match self {
            Change::Put(which, key, value) => batch.put(&stores[*which], key, value),
            Change::Delete(which, key) => batch.delete(&stores[*which], key),
            Change::DeleteRange(which, start, end) => {
                batch.delete_range(&stores[*which], start, end.as_deref());
            }
        }
    }

    /// Returns whether it says what is there under a key.
    fn decides(&self, store: usize, of: &[u8]) -> bool {
        match self {
            Change::Put(which, key, _) | Change::Delete(which, key) => *which == store && key == of,
            Change::DeleteRange(which, start, end) => {
                *which == store && **start <= *of && end.as_ref().is_none_or(|end| *of < **end)
            }
        }
    }

    /// Changes the maps; which keys it may have changed.
    fn apply(&self, maps: &mut [Map; 2]) -> Vec<(usize, Vec<u8>)> {
        match self {
            Change::Put(which, key, value) => {
                maps[*which].insert(key.clone(), value.clone());
                vec![(*which, key.clone())]
            }
            Change::Delete(which, key) => {
                maps[*which].remove(key);
                vec![(*which, key.clone())]
            }
            Change::DeleteRange(which, start, end) => {
                let is_in = |key: &Vec<u8>| key >= start && end.as_ref().is_none_or(|end| key < end);
                let gone: Vec<_> = maps[*which].keys().filter(|key| is_in(key)).cloned().collect();
                maps[*which].retain(|key, _| !is_in(key));
                gone.into_iter().map(|key| (*which, key)).collect()
            }
        }
    }
}

struct Model {
    random: SplitMix64,
    maps: [Map; 2],
    snapshots: Vec<(Snapshot, [Map; 2])>,
    keys: u64,
    /// What was there at the last sync, and what was written since, each entry as a whole.
    synced: [Map; 2],
    since: Vec<Vec<Change>>,
    /// Writes that stops took away.
    lost: usize,
    /// What was written since a load began that is under way.
    meanwhile: Option<Vec<Change>>,
}

impl Model {
    fn key(&mut self) -> Vec<u8> {
        format!("key{:05}", self.random.below(self.keys)).into_bytes()
    }

    fn value(&mut self) -> Vec<u8> {
        let len = if self.random.below(10) == 0 { self.random.below(20_000) } else { self.random.below(600) };
        vec![self.random.below(256) as u8; len as usize]
    }

    /// Writes all of it at once.
    fn write(&mut self, database: &Database, stores: &[Store; 2], changes: Vec<Change>) {
        let is_sync = self.random.below(200) == 0;
        let options = if is_sync { WriteOptions::sync() } else { WriteOptions::default() };
        let written = match &changes[..] {
            [Change::Put(which, key, value)] => wait(stores[*which].put_with(key, value, &options)),
            [Change::Delete(which, key)] => wait(stores[*which].delete_with(key, &options)),
            _ => {
                let mut batch = Batch::new();
                changes.iter().for_each(|change| change.add_to(&mut batch, stores));
                wait(database.write(batch, &options))
            }
        };
        written.unwrap();
        self.note(changes);
        if is_sync {
            self.is_durable();
        }
    }

    /// All of that was written at once.
    fn note(&mut self, changes: Vec<Change>) {
        changes.iter().for_each(|change| drop(change.apply(&mut self.maps)));
        self.meanwhile.iter_mut().for_each(|meanwhile| meanwhile.extend(changes.iter().cloned()));
        self.since.push(changes);
    }

    /// Loads some keys, with other steps before they are seen.
    fn load(&mut self, database: &Database, stores: &[Store; 2]) {
        let which = self.random.below(2) as usize;
        let mut load = wait(stores[which].bulk_load()).unwrap();
        self.meanwhile = Some(Vec::new());
        let pairs: Map = (0..self.random.below(60)).map(|_| (self.key(), self.value())).collect();
        let is_empty = pairs.is_empty();
        for (key, value) in &pairs {
            wait(load.put(key, value)).unwrap();
            if self.random.below(3) == 0 {
                self.step(database, stores);
            }
        }
        wait(load.finish()).unwrap();
        let meanwhile = self.meanwhile.take().unwrap();
        let loaded =
            pairs.into_iter().filter(|(key, _)| !meanwhile.iter().any(|change| change.decides(which, key)));
        self.maps[which].extend(loaded);
        // One that brought something is durable, with all before it.
        if !is_empty {
            self.is_durable();
        }
    }

    /// All that was written so far is.
    fn is_durable(&mut self) {
        self.synced = self.maps.clone();
        self.since.clear();
    }

    /// After a stop: finds the moment whose state is there, and goes on from it.
    fn recover(&mut self, stores: &[Store; 2]) {
        let there = stores.each_ref().map(|store| {
            let mut cursor = store.cursor(CursorOptions::default());
            let mut map = Map::new();
            while let Some((key, value)) = wait(cursor.next()).unwrap() {
                map.insert(key.to_vec(), value.to_vec());
            }
            map
        });
        let mut maps = self.synced.clone();
        let keys = |maps: &[Map; 2]| -> Vec<(usize, Vec<u8>)> {
            (0..2).flat_map(|which| maps[which].keys().map(move |key| (which, key.clone()))).collect()
        };
        let mut differing: BTreeSet<(usize, Vec<u8>)> = BTreeSet::new();
        let note = |differing: &mut BTreeSet<_>, maps: &[Map; 2], changed: Vec<(usize, Vec<u8>)>| {
            for (which, key) in changed {
                if maps[which].get(&key) == there[which].get(&key) {
                    differing.remove(&(which, key));
                } else {
                    differing.insert((which, key));
                }
            }
        };
        note(&mut differing, &maps, [keys(&maps), keys(&there)].concat());
        let mut found = differing.is_empty().then_some(0);
        for (no, changes) in self.since.iter().enumerate() {
            let changed = changes.iter().flat_map(|change| change.apply(&mut maps)).collect();
            note(&mut differing, &maps, changed);
            if differing.is_empty() {
                found = Some(no + 1);
            }
        }
        let kept = found.unwrap_or_else(|| {
            panic!(
                "what is there was there at no moment since the last sync, {} writes ago",
                self.since.len()
            )
        });
        self.lost += self.since.len() - kept;
        self.maps = there;
        self.is_durable();
    }

    fn step(&mut self, database: &Database, stores: &[Store; 2]) {
        let which = self.random.below(2) as usize;
        let store = &stores[which];
        match self.random.below(100) {
            0..60 => {
                let change = Change::Put(which, self.key(), self.value());
                self.write(database, stores, vec![change]);
            }
            60..75 => {
                let change = Change::Delete(which, self.key());
                self.write(database, stores, vec![change]);
            }
            75..77 => {
                let (mut start, mut end) = (self.key(), self.key());
                if start > end {
                    std::mem::swap(&mut start, &mut end);
                }
                end.truncate(8.min(end.len()));
                self.write(database, stores, vec![Change::DeleteRange(which, start, Some(end))]);
            }
            77..78 => {
                let mut prefix = self.key();
                prefix.truncate(6 + self.random.below(2) as usize);
                // Digits, so that there is a next one.
                let mut end = prefix.clone();
                *end.last_mut().unwrap() += 1;
                wait(store.delete_prefix(&prefix)).unwrap();
                self.note(vec![Change::DeleteRange(which, prefix, Some(end))]);
            }
            78..85 => {
                let mut changes = Vec::new();
                for _ in 0..self.random.below(20) {
                    let which = self.random.below(2) as usize;
                    let (key, value) = (self.key(), self.value());
                    changes.push(match self.random.below(4) {
                        0 => Change::Delete(which, key),
                        _ => Change::Put(which, key, value),
                    });
                }
                self.write(database, stores, changes);
            }
            85..86 => {
                if self.snapshots.len() > 3 {
                    self.snapshots.remove(0);
                }
                self.snapshots.push((database.snapshot(), self.maps.clone()));
            }
            88 if self.meanwhile.is_none() && self.random.below(8) == 0 => self.load(database, stores),
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

/// How many writes were lost.
fn run(seed: u64, keys: u64, rounds: usize, steps: usize) -> usize {
    let bench = Bench::new();
    let database = bench.create();
    let (random, maps) = (SplitMix64::new(seed), <[Map; 2]>::default());
    let (synced, snapshots, since) = (maps.clone(), Vec::new(), Vec::new());
    let mut model = Model { random, maps, snapshots, keys, synced, since, lost: 0, meanwhile: None };
    let settings =
        StoreSettings { leaf_bytes: 256 << 10, value_segment_bytes: 128 << 10, ..StoreSettings::default() };
    wait(database.create_store("a", &settings)).unwrap();
    wait(database.create_store("b", &settings)).unwrap();
    wait(database.close()).unwrap();
    for round in 0..rounds {
        let database = bench.open();
        let stores = ["a", "b"].map(|name| database.open_store(name).unwrap());
        model.recover(&stores);
        model.check(&stores);
        for _ in 0..steps {
            model.step(&database, &stores);
        }
        model.check(&stores);
        if round % 3 == 1 {
            wait(stores[0].compact()).unwrap();
            model.check(&stores);
            // Stops come soon after, or some time later.
            (0..steps / 10).for_each(|_| model.step(&database, &stores));
        }
        model.snapshots.clear();
        if round % 3 == 0 {
            wait(database.close()).unwrap();
            model.is_durable();
        } else {
            wait(database.abandon());
        }
    }
    model.lost
}

#[test]
fn a_few_keys_written_again_and_again() {
    let lost: usize = (0..8).map(|seed| run(seed, 50, 6, 800)).sum();
    // A stop that took nothing away would show nothing.
    assert!(lost > 0);
}

#[test]
fn many_keys() {
    let lost: usize = (100..103).map(|seed| run(seed, 3000, 6, 3000)).sum();
    assert!(lost > 0);
}
