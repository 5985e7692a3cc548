//! Results of queries as files: Parquet, CSV and newline-delimited JSON.
//!
//! - [`options`]: where to, in which format, and how.
//! - [`columns`]: the columns of a result as columns of a file, and the values that no file can hold.
//! - [`writer`]: batches in, bytes out.
//!
//! Bytes go through [`crate::store`] to a temporary name; the file gets its own when it is complete and durable.

mod columns;
mod options;
mod text;
mod writer;

pub(crate) use options::CopyOptions;
pub(crate) use writer::FileWriter;
