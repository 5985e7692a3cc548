//! Benchmarks: the papers' experiments and comparisons with fio and with other engines, both sides in one run.
//!
//! Above: `tanada-bench`, which `tanada bench` starts. Below: `tanada-sample`, `tanada-query`, `tanada-volume`,
//! `tanada-io`. Other engines are started as programs, never linked.
#![forbid(unsafe_code)]

pub mod collation;
pub mod cost_model;
pub mod fio;
pub mod instant;
pub mod io;
pub mod io_parallel;
pub mod mount;
pub mod ooode;
pub mod page_compression;
mod process;
pub mod pst;
mod server;
mod statement;
pub mod tpch;
pub mod volume;

pub use tanada_sample::{Error, ErrorKind, Result};
