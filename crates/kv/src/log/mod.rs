//! The log: what makes writes durable, and the first home of long values.
//!
//! The log is one sequence of bytes; a position in it is an [`Lsn`]. It lies in *segments*, an object each, one after
//! another.
//!
//! 1. A batch becomes a [*frame*](frame): all its operations under checksums, so all or nothing of it is there.
//! 2. Frames gather in a [*group*](group), which begins on a block of 4 KiB, says how far the log was durable when it
//!    was written, and is padded with zeros to whole blocks: a block that was written is never written again.
//! 3. The [writer] writes groups as they are full, and makes them durable when somebody waits for it or has waited for
//!    as long as a write may be lost. Acknowledgements come in the log's order.
//! 4. The next segment is prepared ahead: its chunks are there, so that writing to it changes no metadata.
//! 5. The [replay] reads frames one after another. At the first that is not whole the log ends, if nothing says that
//!    more was durable; else it is damaged, and that is an error. What is written after a recovery goes to a new
//!    segment that begins, in the log, where the old one was cut.
//!
//! Invariants: no byte behind the durable position is ever needed to read one before it; a segment's number, database
//! and epoch (the number of the opening that wrote it) are in each group, so that nothing stale is taken for the log.

mod filling;
pub(crate) mod frame;
pub(crate) mod group;
pub(crate) mod replay;
pub(crate) mod segment;
#[cfg(test)]
mod tests;
pub(crate) mod writer;

/// A position in the log, in bytes.
pub(crate) type Lsn = u64;

/// Groups begin and end on multiples of it.
pub(crate) const BLOCK: u64 = 4096;
