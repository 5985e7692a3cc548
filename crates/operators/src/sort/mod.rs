//! A sort of more rows than memory holds.
//!
//! Batches are kept while the pool gives memory for them. When it gives no more, they are sorted into a *run*, which is
//! written; at the end the runs are merged, several times if there are more than memory has room for a batch of each.
//! What an operator holds already is never refused: a single batch is kept beyond what the pool gives, so a sort fails
//! for space on the device, but not for memory.
//!
//! From the bottom up: `buffer` (batches in memory, and their order), `run` (a sorted sequence that was written),
//! `merge` (of runs), `sorter` (when which of these happens), `exec` (the operator).

mod buffer;
mod exec;
mod merge;
mod run;
mod sorter;

pub use exec::ExternalSort;
