//! Memory tables: what was written to a store and is not in a kvset yet.
//!
//! - [`table`]: versions by key, newest first;
//! - [`bits`]: which keys a table surely does not have;
//! - [`arena`]: the memory that they lie in;
//! - [`tombstones`]: deleted ranges, that grow;
//! - [`walk`]: versions one after another, in both directions.
//!
//! Readers take no lock. There is one writer at a time, which is who holds the commit lock.

pub(crate) mod arena;
mod bits;
pub(crate) mod key;
pub(crate) mod table;
pub(crate) mod tombstones;
pub(crate) mod walk;

pub(crate) use arena::{Blocks, LONGEST_TOGETHER};
pub(crate) use walk::{MemorySource, TableSource, TableValues};

pub(crate) use table::{Found, MemoryContent, MemoryTable, MemoryVersion};

// As `super::sync`, for modules that are built with others, too.
use crate::sync;
