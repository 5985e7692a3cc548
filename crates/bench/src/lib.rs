//! Benchmarks: the papers' experiments and comparisons with fio and with other engines, both sides in one run.
//!
//! Above: `tanada bench` and `tanada demo`. Below: `tanada-query`, `tanada-volume`, `tanada-io`. Other engines are
//! started as programs, never linked.
//!
//! ```
//! let query = &tanada_bench::sample::EXPERIMENT[0];
//! assert!(query.sql.contains("lineitem"));
//! assert!(query.answer.starts_with("line_count\trevenue\n"));
//! ```
#![forbid(unsafe_code)]

pub mod answer;
pub mod collation;
mod error;
pub mod fio;
pub mod instant;
pub mod io;
pub mod mount;
pub mod ooode;
pub mod pst;
pub mod sample;
mod statement;
pub mod tpch;
pub mod volume;

pub use error::{Error, ErrorKind, Result};
pub use tanada_ycsb::report;
