//! One client, and how many of them run at once.

use std::sync::Arc;
use std::time::Duration;

use futures::executor::block_on;
use futures::future::{join_all, try_join_all};
use parking_lot::Mutex;
use tanada_base::Clock;
use tanada_io::{Executors, Timeline};

use super::operate::{Moved, Operator, Work};
use super::schedule::{Schedule, Turn};
use crate::measure::{Latencies, Series};
use crate::{Error, Result};

/// What a client measured.
#[derive(Debug, Clone)]
pub struct Measured {
    pub latencies: Latencies,
    pub series: Series,
    pub operations: u64,
    pub bytes_written: u64,
    pub bytes_read: u64,
    pub ended: Duration,
}

impl Measured {
    /// Nothing yet, of a phase that began at `began`.
    pub fn new(began: Duration, interval: Duration) -> Result<Measured> {
        Ok(Measured {
            latencies: Latencies::new()?,
            series: Series::new(began, interval),
            operations: 0,
            bytes_written: 0,
            bytes_read: 0,
            ended: began,
        })
    }

    pub fn add(&mut self, other: &Measured) -> Result<()> {
        self.latencies.add(&other.latencies)?;
        self.series.add(&other.series);
        self.operations += other.operations;
        self.bytes_written += other.bytes_written;
        self.bytes_read += other.bytes_read;
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
    measured: Arc<Mutex<Measured>>,
}

impl Client {
    pub fn new(
        operator: Operator,
        schedule: Arc<Schedule>,
        timeline: &Timeline,
        measured: Arc<Mutex<Measured>>,
    ) -> Client {
        Client { operator, schedule, timeline: timeline.clone(), clock: timeline.clock(), measured }
    }

    /// Does its share of the phase.
    async fn run(mut self) -> Result<()> {
        while let Some(turn) = self.schedule.next(self.clock.now()) {
            let work = self.operator.prepare();
            let began = self.begin(turn).await;
            let moved = self.operator.perform(&work).await?;
            let ended = self.clock.now();
            self.note(&work, moved, began, ended);
        }
        Ok(())
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

    fn note(&self, work: &Work, moved: Moved, began: Duration, ended: Duration) {
        // Shared with clients on the same thread alone.
        let mut measured = self.measured.lock();
        measured.latencies.count(work.operation(), ended.saturating_sub(began));
        measured.series.count(ended);
        measured.operations += 1;
        measured.bytes_written += moved.written;
        measured.bytes_read += moved.read;
        measured.ended = measured.ended.max(ended);
    }
}

/// Runs each client on a thread of its own.
pub fn on_threads(clients: Vec<Client>, timeline: &Timeline) -> Result<()> {
    std::thread::scope(|scope| {
        let threads: Vec<_> = clients
            .into_iter()
            .map(|client| {
                scope.spawn(move || {
                    let _takes_part = timeline.register_thread();
                    tanada_kv::blocking::wait(client.run())
                })
            })
            .collect();
        threads
            .into_iter()
            .try_for_each(|thread| thread.join().map_err(|_| Error::failed("a client panicked"))?)
    })
}

/// Runs the clients as tasks, spread over the executors, or on this thread.
pub fn as_tasks(clients: Vec<Client>, executors: Option<&Executors>) -> Result<()> {
    let Some(executors) = executors else {
        return block_on(try_join_all(clients.into_iter().map(Client::run))).map(drop);
    };
    let tasks: Vec<_> = clients
        .into_iter()
        .enumerate()
        .map(|(no, client)| executors.spawn_on(no, move || client.run()))
        .collect();
    let done = block_on(join_all(tasks));
    done.into_iter().try_for_each(|outcome| outcome?)
}
