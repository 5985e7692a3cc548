//! Spills: what operators write when their memory is full, and read again.
//!
//! Sorts, windows, aggregates and sort-merge joins write runs of batches through the engine's interface for temporary
//! files; here they become blocks on a device, written behind and read ahead by the executors, direct and
//! asynchronous. They lie in a folder, or in a class of a mounted volume (`SET tanada.spill`). Nothing is left behind:
//! files of a folder have no name once they are open, and objects of a volume are deleted with the query, or, where the
//! process was killed, when the volume is chosen for spills again.
//!
//! From the bottom up: [`place`] (where files come from), [`file`] (a file's blocks and their state), `writer` and
//! `reader` (its two ends), and the [`SpillSpace`] that bounds them all. [`pool`] has the memory beyond which
//! operators spill.

mod file;
mod place;
mod pool;
mod reader;
mod space;
mod writer;

#[cfg(test)]
mod tests;

pub(crate) use place::Place;
pub(crate) use pool::SpillingPool;
pub(crate) use space::SpillSpace;

/// Bytes of a block: what is written or read at once.
const BLOCK_BYTES: usize = 256 << 10;
/// Blocks of a file that are being written, at most; whoever writes more waits.
const WRITES_BEHIND: usize = 4;
/// Blocks that a reader has ahead of what is wanted, at most.
const READS_AHEAD: usize = 4;
