//! Writes: the committer, memtables, conflicts of transactions, and stalls of writers.

pub(crate) mod batch;
pub(crate) mod committer;
pub(crate) mod conflict;
pub(crate) mod last_writes;
pub(crate) mod memtables;
pub(crate) mod write_stall;
