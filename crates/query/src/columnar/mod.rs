//! Columnar mirrors: columns of InnoDB tables as Parquet files, made beside the queries, read instead of pages.
//!
//! 1. [`identity`]: the state of a table's files has a hash, and the names of its mirrors have that hash. A mirror of
//!    another state has another name, so it is not found: nothing is read to learn that it is stale.
//! 2. [`file`]: a mirror is one column in one file. All columns of a table are cut into the same groups of rows, in the
//!    order of a scan of its pages, so that any of them can be read side by side.
//! 3. [`registry`]: which mirrors there are, which columns queries have scanned, and how many queries are running.
//! 4. [`maker`]: reads the pages once for all columns that are wanted ([`pages`]) and writes their mirrors
//!    ([`writer`]), while no query runs.
//! 5. [`space`]: the place of the mirrors, its budget, and which of them are deleted when it is full.
//!
//! Invariants:
//! - A mirror is never changed: it is written under a temporary name and gets its own when it is complete and durable.
//! - Each group of rows and the footer have a checksum. A mirror that is damaged is deleted, and pages are read.
//! - Nothing that goes wrong with a mirror fails a query.

mod file;
mod identity;
mod maker;
mod pages;
mod registry;
mod space;
mod types;
mod writer;

pub(crate) use file::MirrorFile;
pub(crate) use identity::definition_digest;
pub(crate) use pages::everything_in_order;
pub use registry::MirroredColumns;
pub(crate) use registry::{Busy, Columnar, Finding, only};
pub(crate) use types::restored;
