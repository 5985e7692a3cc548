//! Counters of an open database, and why writers are stalled.

use std::collections::BTreeMap;
use std::time::Duration;

use parking_lot::Mutex;
use serde::{Deserialize, Serialize};

use crate::counters::Counter;
use crate::latency::Latencies;

/// Why writers are stalled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cause {
    /// Memtables wait to be flushed.
    MemoryTables,
    /// Too many kvsets at the root.
    RootKvsets,
    /// The fastest class is nearly full, and spills lag behind.
    FastClass,
    /// The log has no space: it is written to, or a segment is being prepared.
    Log,
    /// Values take up far more space than is in use of them.
    Space,
}

/// Counters of an open database.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    pub(crate) written_operations: Counter,
    /// Bytes of batches: keys, values, and a little for each operation.
    pub(crate) written_bytes: Counter,
    pub(crate) loaded_bytes: Counter,
    pub(crate) gets: Counter,
    pub(crate) gets_from_memory: Counter,
    pub(crate) flushes: Counter,
    pub(crate) jobs: Counter,
    pub(crate) jobs_by_kind: Mutex<BTreeMap<&'static str, JobStatistics>>,
    pub(crate) jobs_without_space: Counter,
    pub(crate) job_read_bytes: Counter,
    pub(crate) promoted_bytes: Counter,
    pub(crate) relocated_bytes: Counter,
    pub(crate) slowed: Counter,
    pub(crate) memory_stalls: Stalls,
    pub(crate) root_stalls: Stalls,
    pub(crate) room_stalls: Stalls,
    pub(crate) log_stalls: Stalls,
    pub(crate) space_stalls: Stalls,
    pub(crate) deleted_objects: Counter,
    /// Log position at which idle memtables are checked next.
    pub(crate) next_look: Counter,
    pub(crate) writes: Latencies,
    pub(crate) reads: Latencies,
}

/// Times that writers had to wait.
#[derive(Debug, Default)]
pub(crate) struct Stalls {
    pub(crate) count: Counter,
    pub(crate) us: Counter,
}

impl Stalls {
    fn summary(&self, cause: &str) -> StallStatistics {
        StallStatistics { cause: cause.to_owned(), count: self.count.get(), us: self.us.get() }
    }
}

impl Counters {
    pub(crate) fn stalled(&self, cause: Cause, took: Duration) {
        let stalls = match cause {
            Cause::MemoryTables => &self.memory_stalls,
            Cause::RootKvsets => &self.root_stalls,
            Cause::FastClass => &self.room_stalls,
            Cause::Log => &self.log_stalls,
            Cause::Space => &self.space_stalls,
        };
        stalls.count.add(1);
        stalls.us.add(took.as_micros() as u64);
    }

    /// Notes a job of that kind, which replaced kvsets with `versions` versions.
    pub(crate) fn note_job(&self, kind: &'static str, versions: u64, took: Duration) {
        let us = took.as_micros() as u64;
        let job = JobStatistics { count: 1, versions, us };
        let mut jobs = self.jobs_by_kind.lock();
        let before = jobs.entry(kind).or_default();
        *before = before.with(&job);
    }

    pub(crate) fn jobs_by_kind(&self) -> BTreeMap<String, JobStatistics> {
        self.jobs_by_kind.lock().iter().map(|(kind, jobs)| ((*kind).to_owned(), jobs.clone())).collect()
    }

    pub(crate) fn stalls(&self) -> Vec<StallStatistics> {
        vec![
            self.memory_stalls.summary("memtables"),
            self.root_stalls.summary("root kvsets"),
            self.room_stalls.summary("fast class"),
            self.log_stalls.summary("log"),
            self.space_stalls.summary("space"),
        ]
    }

    /// Returns whether an operation is one of those that are measured.
    pub(crate) fn is_measured(counter: &Counter) -> bool {
        counter.get().is_multiple_of(16)
    }
}

/// Writes that had to wait for one cause.
///
/// ```
/// # let folder = tempfile::tempdir().unwrap();
/// # tanada_kv::example::run(folder.path(), async |database, store| {
/// let stalls = database.statistics().since_opening.stalls;
/// let causes: Vec<&str> = stalls.iter().map(|stall| &*stall.cause).collect();
/// assert_eq!(causes, ["memtables", "root kvsets", "fast class", "log", "space"]);
/// # Ok(()) }).unwrap();
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct StallStatistics {
    /// `memtables`, `root kvsets`, `fast class`, `log` or `space`.
    pub cause: String,
    /// Number of stalls.
    pub count: u64,
    /// Total time in microseconds.
    pub us: u64,
}

/// Tree jobs of one kind.
///
/// ```
/// # let folder = tempfile::tempdir().unwrap();
/// # tanada_kv::example::run(folder.path(), async |database, store| {
/// store.put(b"key", b"value").await?;
/// store.compact().await?;
/// let jobs = database.statistics().since_opening.jobs_by_kind;
/// assert!(jobs.values().all(|kind| kind.count > 0));
/// # Ok(()) }).unwrap();
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct JobStatistics {
    /// Number of jobs.
    pub count: u64,
    /// Versions in the kvsets that they took away; none if these went to another place as they are.
    pub versions: u64,
    /// Total time in microseconds, with the rests for others.
    pub us: u64,
}

impl JobStatistics {
    /// Both together.
    pub(crate) fn with(&self, other: &JobStatistics) -> JobStatistics {
        let sum = u64::saturating_add;
        JobStatistics {
            count: sum(self.count, other.count),
            versions: sum(self.versions, other.versions),
            us: sum(self.us, other.us),
        }
    }
}

pub(crate) fn ratio(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}
