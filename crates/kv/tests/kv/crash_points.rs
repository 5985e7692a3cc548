//! Every crash point is passed by ordinary work.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use tanada_kv::blocking::wait;
use tanada_kv::{
    CRASH_POINTS, CrashPoints, CrashProbe, Database, DatabaseSettings, OpenOptions, StoreSettings,
};

use crate::volumes::Bench;

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
    wait(database.close()).unwrap();
    let crash_points = CrashPoints::to(passed.clone());
    let options = OpenOptions { crash_points, ..OpenOptions::default() };
    let open = Database::open(&bench.volume, "test", &options, bench.environment.clone());
    wait(wait(open).unwrap().close()).unwrap();
    let passed = passed.0.lock().unwrap();
    let missed: Vec<_> = CRASH_POINTS.iter().filter(|point| !passed.contains(**point)).collect();
    assert_eq!(missed, Vec::<&&str>::new());
}
