//! `OutOfOrderLookupJoin`: a nested-loop join whose every outer row drives its own chain of asynchronous I/O.
//!
//! 1. The stream pulls outer batches while fewer than a window of outer rows is in flight (`stream`).
//! 2. The key values of a batch are encoded; rows with equal keys form a group, rows whose key can match nothing are
//!    set aside (`outer`).
//! 3. Groups are cut into chunks; each chunk is one task on an executor, and each of its groups one chain: descent,
//!    leaves, bookmarks (`chunk`). Chains of a chunk run concurrently; whichever completes first goes on first.
//! 4. Found rows are decoded into the chunk's sink. When the consumer is hungry and some have gathered, or a batch is
//!    full, or the chunk ends, they are filtered, joined to their outer rows and sent (`assembly`).
//! 5. The stream hands batches on in the order in which they come. In a chain of joins the next level so starts while
//!    this one still runs; it has the higher I/O priority, so that work in flight is finished before new work is begun
//!    and memory stays bounded.
//!
//! In order, the same operator keeps one group in flight, and the query's gate one I/O.
//!
//! Invariant: an outer row lies in exactly one chunk, so whether it has matched is known to that chunk alone.
//!
//! Above: the session's list of optimizer rules. Below: relations, `tanada-innodb`, `tanada-io`.

mod assembly;
mod budget;
mod chunk;
mod compaction;
mod estimate;
mod exec;
mod inner;
pub(crate) mod key;
mod kind;
mod outer;
mod pattern;
mod rule;
mod source;
mod stream;
#[cfg(test)]
mod tests;

pub use budget::LookupBudget;
pub use estimate::Estimate;
pub(crate) use estimate::estimated_rows;
pub use exec::OutOfOrderLookupJoinExec;
pub use rule::{LookupJoinRule, physical_optimizer_rules};
pub use source::{Gather, InnodbSource, KeyPart, LookupSource, OnMatch};
