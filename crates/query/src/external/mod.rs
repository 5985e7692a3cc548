//! Tables over files of other formats: Parquet, CSV and JSON, in folders and in volumes.
//!
//! - [`registry`]: which tables there are, by schema and name; folders that are mounted as schemas.
//! - [`table`]: the files of a table, looked at anew by each statement, and the columns that all have.
//! - [`columns`], [`convert`]: types of files as types of the servers.
//! - [`parquet`], [`pruning`]: footers, row groups, and which of them can be left out.
//! - [`text`]: lines of CSV and JSON.
//! - [`scan`], [`pieces`]: the operator that reads them.
//!
//! All bytes come through [`crate::store`], so the query's gate, its counters and its watchers hold for them.

mod columns;
mod convert;
mod footprint;
mod format;
pub(crate) mod parquet;
mod pieces;
mod pruning;
mod registry;
mod scan;
mod table;
mod text;

pub(crate) use format::{FileFormat, Wanted};
pub(crate) use registry::{FILES, FileTables, FilesBeside};
pub use scan::FileScanExec;
pub(crate) use table::FileTable;
