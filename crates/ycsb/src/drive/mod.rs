//! Clients that do a phase's operations on an engine.
//!
//! 1. The phase is set out: the records that are there, what each client draws, when the next operation is due.
//! 2. Clients run, on threads or as tasks. *Closed loop*: each does one operation after the other. *Open loop*:
//!    operations are due at a fixed rate, and a latency counts from when its operation was due, whether or not a client
//!    was free: no operation that a slow one delays is left out (coordinated omission).
//! 3. What clients measured is added up.

mod client;
mod operate;
mod schedule;

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use tanada_io::Timeline;

use crate::draw::AcknowledgedCounter;
use crate::engine::Engine;
use crate::measure::{CpuTime, MemoryWatch, Run, stolen_s};
use crate::workload::{Distribution, Records, Workload};
use crate::{Error, Result};
use client::{Client, Measured};
use operate::Operator;
use schedule::Schedule;

/// How clients run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Clients {
    /// A thread each, which waits for its operation.
    Threads(usize),
    /// Tasks, on the engine's executors or else on one thread: so many operations in flight.
    Tasks(usize),
}

impl Clients {
    fn is_possible(self) -> bool {
        match self {
            Clients::Threads(count) => (1..=10_000).contains(&count),
            Clients::Tasks(count) => (1..=100_000).contains(&count),
        }
    }

    /// How many.
    pub fn count(self) -> usize {
        match self {
            Clients::Threads(count) | Clients::Tasks(count) => count.max(1),
        }
    }
}

/// What is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// All records are inserted.
    Load,
    /// A workload runs on them.
    Run(Workload),
}

impl Phase {
    /// `load`, or the workload's letter.
    pub fn name(self) -> String {
        match self {
            Phase::Load => "load".to_owned(),
            Phase::Run(workload) => workload.to_string(),
        }
    }
}

/// How a phase is driven; plain data, so that another process can be told.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Driver {
    /// What the records are like; `count` is how many there are before a workload, or after the load.
    pub records: Records,
    /// Operations of a workload.
    pub operations: u64,
    /// A workload ends after this time at the latest; 0 for no end.
    pub seconds: f64,
    /// How clients run.
    pub clients: Clients,
    /// Operations a second that are due; 0 for as many as the clients can do.
    pub target_per_second: f64,
    /// Chooses records otherwise than the workload does.
    pub distribution: Option<Distribution>,
    /// Whether an update replaces the whole record, unread (`writeallfields`); or one field of it, which means reading
    /// it first.
    pub update_all_fields: bool,
    /// Length of an interval in which throughput is counted, in seconds.
    pub interval_s: f64,
    /// Another one has other records drawn.
    #[serde(default)]
    pub seed: u64,
}

impl Default for Driver {
    /// A million operations by four threads, as fast as they can.
    fn default() -> Driver {
        Driver {
            records: Records::default(),
            operations: 1_000_000,
            seconds: 0.0,
            clients: Clients::Threads(4),
            target_per_second: 0.0,
            distribution: None,
            update_all_fields: true,
            interval_s: 1.0,
            seed: 0,
        }
    }
}

impl Driver {
    /// Whether it can run so.
    pub(crate) fn check(&self) -> Result<()> {
        let is_usable = self.records.count > 0
            && self.records.fields > 0
            && (8..=1 << 20).contains(&self.records.field_bytes)
            && self.clients.is_possible()
            && self.target_per_second.is_finite()
            && self.target_per_second >= 0.0
            && self.seconds.is_finite()
            && self.seconds >= 0.0
            && self.interval_s > 0.0;
        if is_usable {
            return Ok(());
        }
        Err(Error::invalid(
            "cannot run: there is at least one record, with a field of 8 bytes to 1 MiB, 1 to 100,000 tasks or 1 to 10,000 threads, and rates and times are not below 0",
        ))
    }

    /// Does `phase` on `engine`, by the virtual time of this process if it has one. Blocks. What concerns devices,
    /// opening and settling is left to the caller to fill in.
    ///
    /// # Errors
    /// If an operation fails, a record is missing or is not what was written, or settings make no sense.
    pub fn run(&self, engine: Arc<dyn Engine>, phase: Phase) -> Result<Run> {
        self.check()?;
        let timeline = Timeline::current_virtual().unwrap_or_else(Timeline::real);
        let operations = match phase {
            Phase::Load => self.records.count,
            Phase::Run(_) => self.operations,
        };
        let first = if phase == Phase::Load { 0 } else { self.records.count };
        let inserted = Arc::new(AcknowledgedCounter::new(first));
        // Before time begins: drawing the newest records most is prepared for as many as there are.
        let operators = Operator::all(self, phase, &engine, &inserted);
        let watch = MemoryWatch::start();
        let cpu = (CpuTime::now(), stolen_s());
        let began = timeline.clock().now();
        let seconds = if phase == Phase::Load { 0.0 } else { self.seconds };
        let schedule = Arc::new(Schedule::new(operations, began, seconds, self.target_per_second));
        let executors = engine.executors();
        // Clients on one thread share what they measure: a histogram each would be most of the memory.
        let groups = match (self.clients, &executors) {
            (Clients::Threads(_), _) => self.clients.count(),
            (Clients::Tasks(_), Some(executors)) => executors.threads(),
            (Clients::Tasks(_), None) => 1,
        };
        let measured = || Measured::new(began, Duration::from_secs_f64(self.interval_s));
        let measured =
            (0..groups).map(|_| Ok(Arc::new(Mutex::new(measured()?)))).collect::<Result<Vec<_>>>()?;
        let client = |(no, operator): (usize, Operator)| {
            Client::new(operator, schedule.clone(), &timeline, measured[no % groups].clone())
        };
        let clients = operators.into_iter().enumerate().map(client).collect();
        match self.clients {
            Clients::Threads(_) => client::on_threads(clients, &timeline),
            Clients::Tasks(_) => client::as_tasks(clients, executors.as_deref()),
        }?;
        let measured: Vec<Measured> = measured.iter().map(|measured| measured.lock().clone()).collect();
        self.summarize(phase, &measured, began, cpu, watch, &inserted)
    }

    fn summarize(
        &self,
        phase: Phase,
        measured: &[Measured],
        began: Duration,
        (cpu, stolen_before_s): (CpuTime, f64),
        watch: MemoryWatch,
        inserted: &AcknowledgedCounter,
    ) -> Result<Run> {
        let Some((first, others)) = measured.split_first() else {
            return Err(Error::failed("no client ran"));
        };
        let mut sum = first.clone();
        for other in others {
            sum.add(other)?;
        }
        let seconds = (sum.ended.saturating_sub(began)).as_secs_f64();
        let cpu = CpuTime::now().since(cpu);
        Ok(Run {
            phase: phase.name(),
            operations: sum.operations,
            seconds,
            operations_per_second: if seconds > 0.0 { sum.operations as f64 / seconds } else { 0.0 },
            target_per_second: self.target_per_second,
            latencies: sum.latencies.summaries(),
            interval_s: self.interval_s,
            throughput: sum.series.rates(),
            cpu_user_s: cpu.user_s,
            cpu_system_s: cpu.system_s,
            cpu_stolen_s: stolen_s() - stolen_before_s,
            memory_bytes_most: watch.stop(),
            logical_bytes_written: sum.bytes_written,
            logical_bytes_read: sum.bytes_read,
            logical_bytes_stored: self.records.logical_bytes(inserted.count()),
            records: inserted.count(),
            ..Run::default()
        })
    }
}
