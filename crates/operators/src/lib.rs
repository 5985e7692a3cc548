//! Physical operators that need little memory, for plans of DataFusion.
//!
//! - [`ExternalSort`]: sorted runs, written behind; a merge of them that reads ahead what it will need first.
//! - [`MergeJoin`]: of inputs that are sorted by the keys; rows of one key may be more than memory holds.
//!
//! They take memory from the pool of the task and write to its temporary files, which a session directs to a folder or
//! a class of a volume. Above: the session, whose rules put these operators into plans. Below: DataFusion alone.

#![forbid(unsafe_code)]

mod join;
mod keys;
mod sort;

pub use join::MergeJoin;
pub use sort::ExternalSort;
