//! Closed and open loops on an engine whose speed and faults are known.

#![allow(clippy::unwrap_used, reason = "a test fails so")]

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use tanada_io::Timeline;
use tanada_ycsb::drive::{Clients, Driver, Phase};
use tanada_ycsb::engine::{Change, Engine, EngineStatistics, OrderedMap};
use tanada_ycsb::workload::{Records, Workload};
use tanada_ycsb::{Error, Result};

/// A map whose reads take a while every so often, or lose something.
#[derive(Debug, Default)]
struct Faulty {
    map: OrderedMap,
    reads: AtomicU64,
    slow_every: u64,
    slow: Duration,
    lost: Option<Bytes>,
    mixed_up: bool,
}

#[async_trait]
impl Engine for Faulty {
    async fn insert(&self, key: Bytes, value: Bytes) -> Result<()> {
        if self.lost.as_ref() == Some(&key) { Ok(()) } else { self.map.insert(key, value).await }
    }

    async fn update(&self, key: Bytes, value: Bytes) -> Result<()> {
        self.map.update(key, value).await
    }

    async fn read(&self, key: &[u8]) -> Result<Option<Bytes>> {
        let no = self.reads.fetch_add(1, Ordering::Relaxed);
        if self.slow_every > 0 && no % self.slow_every == self.slow_every - 1 {
            Timeline::real().sleep(self.slow).await;
        }
        if self.mixed_up {
            return self.map.read(&Records::default().key(7)).await;
        }
        self.map.read(key).await
    }

    async fn scan(&self, key: &[u8], count: usize) -> Result<usize> {
        self.map.scan(key, count).await
    }

    async fn read_modify_write(&self, key: Bytes, change: Change<'_>) -> Result<bool> {
        self.map.read_modify_write(key, change).await
    }

    async fn catch_up(&self) -> Result<f64> {
        self.map.catch_up().await
    }

    async fn settle(&self) -> Result<()> {
        Ok(())
    }

    async fn close(&self) -> Result<()> {
        Ok(())
    }

    fn statistics(&self) -> EngineStatistics {
        self.map.statistics()
    }
}

fn driver(clients: Clients) -> Driver {
    let records = Records { count: 2000, ..Records::default() };
    Driver { records, operations: 3000, clients, ..Driver::default() }
}

fn loaded(engine: Faulty, driver: &Driver) -> Arc<Faulty> {
    let engine = Arc::new(engine);
    driver.run(engine.clone(), Phase::Load).unwrap();
    engine
}

#[test]
fn all_workloads_run_on_threads_and_as_tasks() {
    for clients in [Clients::Threads(3), Clients::Tasks(16)] {
        let mut driver = driver(clients);
        let engine = loaded(Faulty::default(), &driver);
        for workload in Workload::ALL {
            let run = driver.run(engine.clone(), Phase::Run(workload)).unwrap();
            assert_eq!(run.operations, 3000);
            assert_eq!(run.latencies.values().map(|latency| latency.count).sum::<u64>(), 3000);
            let inserts = run.latencies.get("insert").map_or(0, |latency| latency.count);
            assert_eq!(run.records, driver.records.count + inserts);
            assert_eq!(run.logical_bytes_stored, driver.records.logical_bytes(run.records));
            driver.records.count = run.records;
        }
    }
}

#[test]
fn a_field_is_updated_by_reading_first_if_that_is_asked_for() {
    let driver = Driver { update_all_fields: false, ..driver(Clients::Threads(2)) };
    let engine = loaded(Faulty::default(), &driver);
    let run = driver.run(engine, Phase::Run(Workload::A)).unwrap();
    assert!(run.latencies["update"].count > 1000);
}

#[test]
fn a_record_that_is_lost_or_mixed_up_is_noticed() {
    let driver = driver(Clients::Threads(2));
    let message = |engine, workload| {
        let engine = loaded(engine, &driver);
        driver.run(engine, Phase::Run(workload)).map(|_| ()).map_err(|error: Error| error.to_string())
    };
    let most_popular = || {
        let hashed = tanada_ycsb::draw::fnv_hash_64(0) % 2001;
        Some(driver.records.key(hashed))
    };
    let lost = Faulty { lost: most_popular(), ..Faulty::default() };
    assert!(message(lost, Workload::C).unwrap_err().contains("is not there"));
    let lost = Faulty { lost: most_popular(), ..Faulty::default() };
    assert!(message(lost, Workload::F).unwrap_err().contains("is not there"));
    let mixed_up = Faulty { mixed_up: true, ..Faulty::default() };
    assert!(message(mixed_up, Workload::C).unwrap_err().contains("is not what was written there"));
}

#[test]
fn open_loop_latency_includes_the_delay_of_a_stall() {
    // One read in 1,000 takes 200 ms. In a closed loop of one client that is one slow operation; at 1,000 a second, 200
    // more wait behind it.
    let engine = || Faulty { slow_every: 1000, slow: Duration::from_millis(200), ..Faulty::default() };
    let closed = Driver { operations: 1500, ..driver(Clients::Threads(1)) };
    let run = closed.run(loaded(engine(), &closed), Phase::Run(Workload::C)).unwrap();
    assert!(run.latencies["read"].us_p99 < 50_000.0, "{:?}", run.latencies);
    let open = Driver { target_per_second: 1000.0, ..closed };
    let run = open.run(loaded(engine(), &open), Phase::Run(Workload::C)).unwrap();
    assert!(run.latencies["read"].us_p99 > 100_000.0, "{:?}", run.latencies);
    // The last one is due 1.499 s after the beginning, however fast the engine is.
    assert!(run.seconds >= 1.499, "{}", run.seconds);
}

#[test]
fn time_ends_a_run() {
    let driver = Driver { operations: u64::MAX, seconds: 0.2, ..driver(Clients::Threads(2)) };
    let engine = loaded(Faulty::default(), &driver);
    let run = driver.run(engine, Phase::Run(Workload::B)).unwrap();
    assert!(run.seconds >= 0.19 && run.operations > 0, "{run:?}");
}
