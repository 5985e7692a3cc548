//! Counting what a database does.

use std::time::Duration;

use super::pressure::Cause;
use crate::counters::Counter;

/// Counters of an open database.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    pub(crate) written_operations: Counter,
    /// Bytes of batches: keys, values, and a little for each operation.
    pub(crate) written_bytes: Counter,
    pub(crate) gets: Counter,
    pub(crate) gets_from_memory: Counter,
    pub(crate) flushes: Counter,
    pub(crate) flushed_key_bytes: Counter,
    pub(crate) jobs: Counter,
    pub(crate) jobs_without_space: Counter,
    pub(crate) job_key_bytes: Counter,
    pub(crate) job_value_bytes: Counter,
    pub(crate) job_read_bytes: Counter,
    pub(crate) slowed: Counter,
    pub(crate) memory_stalls: Stalls,
    pub(crate) root_stalls: Stalls,
    pub(crate) deleted_objects: Counter,
    /// Where the log has to be before tables are looked at that nobody writes to.
    pub(crate) next_look: Counter,
}

/// Times that writers had to wait.
#[derive(Debug, Default)]
pub(crate) struct Stalls {
    pub(crate) count: Counter,
    pub(crate) us: Counter,
}

impl Counters {
    pub(crate) fn stalled(&self, cause: Cause, took: Duration) {
        let stalls = match cause {
            Cause::MemoryTables => &self.memory_stalls,
            Cause::RootKvsets => &self.root_stalls,
        };
        stalls.count.add(1);
        stalls.us.add(took.as_micros() as u64);
    }
}
