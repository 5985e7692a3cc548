//! After the load an engine brings all data to their last place; after a workload it only does what is due. Both are
//! told apart from the phase.

#![allow(clippy::unwrap_used, reason = "a test fails so")]

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use futures::executor::block_on;
use tanada_ycsb::bench::Job;
use tanada_ycsb::drive::{Driver, Phase};
use tanada_ycsb::engine::{Change, ClassFolder, EngineStatistics, OrderedMap};
use tanada_ycsb::workload::{Records, Workload};
use tanada_ycsb::{BlockingEngine, Engine, FromBlocking, Result};

/// An engine that takes its time to settle, and for which half of the time it catches up is looking alone.
#[derive(Debug, Default)]
struct Slow {
    map: OrderedMap,
    settled: AtomicUsize,
    caught_up: AtomicUsize,
}

#[derive(Debug, Clone)]
struct Shared(Arc<Slow>);

impl BlockingEngine for Shared {
    fn insert(&self, key: &[u8], value: &[u8]) -> Result<()> {
        block_on(self.0.map.insert(Bytes::copy_from_slice(key), Bytes::copy_from_slice(value)))
    }
    fn update(&self, key: &[u8], value: &[u8]) -> Result<()> {
        self.insert(key, value)
    }
    fn read(&self, key: &[u8]) -> Result<Option<Bytes>> {
        block_on(self.0.map.read(key))
    }
    fn scan(&self, key: &[u8], count: usize) -> Result<usize> {
        block_on(self.0.map.scan(key, count))
    }
    fn read_modify_write(&self, key: &[u8], change: Change<'_>) -> Result<bool> {
        block_on(self.0.map.read_modify_write(Bytes::copy_from_slice(key), change))
    }
    fn settle(&self) -> Result<()> {
        self.0.settled.fetch_add(1, Ordering::Relaxed);
        std::thread::sleep(Duration::from_millis(100));
        Ok(())
    }
    fn catch_up(&self) -> Result<f64> {
        self.0.caught_up.fetch_add(1, Ordering::Relaxed);
        std::thread::sleep(Duration::from_millis(100));
        Ok(0.05)
    }
    fn close(&self) -> Result<()> {
        Ok(())
    }
    fn statistics(&self) -> EngineStatistics {
        EngineStatistics::default()
    }
}

#[test]
fn a_load_settles_and_a_workload_catches_up() {
    let folder = tempfile::tempdir().unwrap();
    let engine = Shared(Arc::default());
    let records = Records { count: 200, ..Records::default() };
    let job = |phase| Job {
        engine: "slow".to_owned(),
        tiers: "capacity".to_owned(),
        phase,
        round: 0,
        driver: Driver { records, operations: 300, ..Driver::default() },
        classes: vec![ClassFolder {
            name: "capacity".to_owned(),
            path: folder.path().to_owned(),
            size_bytes: 1 << 30,
            model: None,
        }],
        has_devices: false,
        memory_bytes: 1 << 20,
        durable_within_ms: 100,
        warm_up_s: 0.0,
        settles: true,
        threads: 1,
        engine_settings: serde_json::Value::Null,
    };
    let run = |phase| {
        let opened: Arc<dyn Engine> = Arc::new(FromBlocking(engine.clone()));
        job(phase).perform_with(|_| Ok(opened)).unwrap()
    };
    let calls = || (engine.0.settled.load(Ordering::Relaxed), engine.0.caught_up.load(Ordering::Relaxed));
    let load = run(Phase::Load);
    assert_eq!(calls(), (1, 0));
    assert!(load.settle_s >= 0.1, "{}", load.settle_s);
    assert!(load.settled_operations_per_second() < load.operations_per_second);
    assert_eq!(load.logical_bytes_read, 0);
    let read = run(Phase::Run(Workload::C));
    assert_eq!(calls(), (1, 1));
    assert!((0.05..0.1).contains(&read.settle_s), "looking is not settling: {}", read.settle_s);
    assert!((300 * 1000..300 * 1030).contains(&read.logical_bytes_read), "{}", read.logical_bytes_read);
    let scanned = run(Phase::Run(Workload::E));
    assert!(scanned.logical_bytes_read > 300 * 5 * 1000, "{}", scanned.logical_bytes_read);
}
