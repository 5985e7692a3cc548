//! The memory of a database, and what jobs take of it.

pub(crate) mod budget;
pub(crate) mod job_memory;
