//! Every crash point is passed by ordinary work.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::{Arc, Mutex};

use tanada_kv::blocking::wait;
use tanada_kv::{
    CRASH_POINTS, CrashPoints, CrashProbe, Database, DatabaseSettings, OpenOptions, StoreSettings,
};

use crate::volumes::{Bench, wait_for_whole_copies};

#[derive(Default)]
struct Passed(Mutex<BTreeSet<&'static str>>);

impl CrashProbe for Passed {
    fn reached(&self, name: &'static str) {
        self.0.lock().unwrap().insert(name);
    }
}

#[test]
fn all_are_passed() {
    let bench = Bench::new();
    let passed = Arc::new(Passed::default());
    let settings = DatabaseSettings { manifest_bytes: 64 << 10, ..Bench::settings() };
    let create = Database::create_with(
        &bench.volume,
        "test",
        &settings,
        CrashPoints::to(passed.clone()),
        bench.environment.clone(),
    );
    let database = wait(create).unwrap();
    let store = wait(database.create_store("a", &StoreSettings::default())).unwrap();
    for round in 0..3u32 {
        for no in 0..2000u32 {
            wait(store.put(&no.to_be_bytes(), &[round as u8; 500])).unwrap();
        }
        wait(store.compact()).unwrap();
    }
    let mut load = wait(store.bulk_load()).unwrap();
    wait(load.put(b"z", b"z")).unwrap();
    wait(load.finish()).unwrap();
    wait(database.checkpoint("copy")).unwrap();
    promote(&database);
    assert!(bench.damage_fastest(&["segment"]) > 0);
    wait_for_whole_copies(&database);
    wait(database.drain_class("fast")).unwrap();
    wait(database.close()).unwrap();
    let crash_points = CrashPoints::to(passed.clone());
    let options = OpenOptions { crash_points, ..OpenOptions::default() };
    let open = Database::open(&bench.volume, "test", &options, bench.environment.clone());
    wait(wait(open).unwrap().close()).unwrap();
    let passed = passed.0.lock().unwrap();
    let missed: Vec<_> = CRASH_POINTS.iter().filter(|point| !passed.contains(**point)).collect();
    assert_eq!(missed, Vec::<&&str>::new());
}

/// Reads the same keys from the slow class until they are copied to the fast one.
fn promote(database: &Database) {
    let settings =
        StoreSettings { promoted_bytes_per_second: 64 << 20, mirrors: false, ..StoreSettings::default() };
    let store = wait(database.create_store("hot", &settings)).unwrap();
    // More than the cache holds.
    (0..2000u32).for_each(|no| wait(store.put(&no.to_be_bytes(), &[no as u8; 4000])).unwrap());
    wait(store.compact()).unwrap();
    for _ in 0..1000 {
        if database.statistics().since_opening.bytes_promoted > 0 {
            return;
        }
        (0..2000u32).for_each(|no| drop(wait(store.get(&no.to_be_bytes())).unwrap()));
    }
    panic!("nothing was promoted: {:#?}", database.statistics());
}

/// The names of the crash points behind the marks of the sources; empty where a mark has none.
fn marked(folder: &Path, found: &mut Vec<String>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            marked(&path, found);
            continue;
        }
        let source = std::fs::read_to_string(&path).unwrap();
        let lines: Vec<&str> = source.lines().map(str::trim).collect();
        for (at, _) in lines.iter().enumerate().filter(|(_, line)| line.starts_with("// CRASH:")) {
            let behind = lines[at..].iter().find(|line| !line.starts_with("//")).unwrap_or(&"");
            let name = behind.split_once("reached(\"").and_then(|(_, rest)| rest.split_once('"'));
            found.push(
                name.map_or_else(|| format!("none in {}", path.display()), |(name, _)| name.to_owned()),
            );
        }
    }
}

/// So `all_are_passed` passes every mark, and not just one of several with the same name.
#[test]
fn every_mark_has_a_point_of_its_own() {
    let mut found = Vec::new();
    marked(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"), &mut found);
    let mut counts: BTreeMap<&str, usize> = CRASH_POINTS.iter().map(|name| (*name, 0)).collect();
    for name in &found {
        *counts.entry(name).or_default() += 1;
    }
    let wrong: Vec<_> =
        counts.iter().filter(|(name, count)| **count != 1 || !CRASH_POINTS.contains(name)).collect();
    assert_eq!(wrong, Vec::<(&&str, &usize)>::new());
}
