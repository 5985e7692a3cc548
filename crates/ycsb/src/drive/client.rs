//! One client, and how many of them run at once.

use std::sync::Arc;
use std::time::Duration;

use futures::executor::block_on;
use futures::future::{join_all, try_join_all};
use tanada_base::Clock;
use tanada_io::{Executors, Timeline};

use super::operate::{Operator, Work};
use super::schedule::{Schedule, Turn};
use super::{Driver, Phase};
use crate::draw::AcknowledgedCounter;
use crate::engine::Engine;
use crate::measure::{Latencies, Series};
use crate::{Error, Result};

/// What a client measured.
#[derive(Debug, Clone)]
pub struct Measured {
    pub latencies: Latencies,
    pub series: Series,
    pub operations: u64,
    pub bytes_written: u64,
    pub ended: Duration,
}

impl Measured {
    pub fn add(&mut self, other: &Measured) -> Result<()> {
        self.latencies.add(&other.latencies)?;
        self.series.add(&other.series);
        self.operations += other.operations;
        self.bytes_written += other.bytes_written;
        self.ended = self.ended.max(other.ended);
        Ok(())
    }
}

/// A client before it runs.
#[derive(Debug)]
pub struct Client {
    operator: Operator,
    schedule: Arc<Schedule>,
    timeline: Timeline,
    clock: Arc<dyn Clock>,
    measured: Measured,
}

impl Client {
    pub fn new(
        driver: &Driver,
        phase: Phase,
        no: u64,
        engine: Arc<dyn Engine>,
        inserted: Arc<AcknowledgedCounter>,
        schedule: Arc<Schedule>,
        timeline: &Timeline,
    ) -> Result<Client> {
        let clock = timeline.clock();
        let began = clock.now();
        let measured = Measured {
            latencies: Latencies::new()?,
            series: Series::new(began, Duration::from_secs_f64(driver.interval_s)),
            operations: 0,
            bytes_written: 0,
            ended: began,
        };
        let operator = Operator::new(driver, phase, no, engine, inserted);
        Ok(Client { operator, schedule, timeline: timeline.clone(), clock, measured })
    }

    /// Does its share of the phase.
    async fn run(mut self) -> Result<Measured> {
        while let Some(turn) = self.schedule.next(self.clock.now()) {
            let work = self.operator.prepare();
            let began = self.begin(turn).await;
            let written = self.operator.perform(&work).await?;
            let ended = self.clock.now();
            self.note(&work, written, began, ended);
        }
        Ok(self.measured)
    }

    /// When the operation counts as begun: now, or when it was due. Waits until it is due.
    async fn begin(&self, turn: Turn) -> Duration {
        let now = self.clock.now();
        match turn.due {
            None => now,
            Some(due) => {
                if due > now {
                    self.timeline.sleep(due - now).await;
                }
                due
            }
        }
    }

    fn note(&mut self, work: &Work, written: u64, began: Duration, ended: Duration) {
        self.measured.latencies.count(work.operation(), ended.saturating_sub(began));
        self.measured.series.count(ended);
        self.measured.operations += 1;
        self.measured.bytes_written += written;
        self.measured.ended = self.measured.ended.max(ended);
    }
}

/// Runs each client on a thread of its own.
pub fn on_threads(clients: Vec<Client>, timeline: &Timeline) -> Result<Vec<Measured>> {
    std::thread::scope(|scope| {
        let threads: Vec<_> = clients
            .into_iter()
            .map(|client| {
                scope.spawn(move || {
                    let _takes_part = timeline.register_thread();
                    block_on(client.run())
                })
            })
            .collect();
        threads
            .into_iter()
            .map(|thread| thread.join().map_err(|_| Error::failed("a client panicked"))?)
            .collect()
    })
}

/// Runs the clients as tasks, spread over the executors, or on this thread.
pub fn as_tasks(clients: Vec<Client>, executors: Option<&Executors>) -> Result<Vec<Measured>> {
    let Some(executors) = executors else {
        return block_on(try_join_all(clients.into_iter().map(Client::run)));
    };
    let tasks: Vec<_> = clients
        .into_iter()
        .enumerate()
        .map(|(no, client)| executors.spawn_on(no, move || client.run()))
        .collect();
    let done = block_on(join_all(tasks));
    done.into_iter().map(|outcome| outcome?).collect()
}
