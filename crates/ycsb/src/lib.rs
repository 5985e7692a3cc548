//! YCSB, the Yahoo! Cloud Serving Benchmark, for key-value engines in this process.
//!
//! Above: `tanada bench ycsb`, `hse` and `kv-open`, and the program that runs other engines. Below: `tanada-kv`,
//! `tanada-io`.
//!
//! - [`draw`]: the distributions that keys are drawn from, by YCSB's definitions.
//! - [`workload`]: workloads A to F, key names and records.
//! - [`Engine`]: what a key-value engine has to offer to be measured.
//! - [`drive`]: clients in closed and open loops.
//! - [`measure`]: latencies, throughput over time, CPU time, memory, bytes on devices.
//! - [`media`]: storage of a known speed that files of any engine lie on.
//! - [`bench`]: whole benchmarks, with a report.
//!
//! ```
//! use std::sync::Arc;
//! use tanada_ycsb::drive::{Driver, Phase};
//! use tanada_ycsb::engine::OrderedMap;
//! use tanada_ycsb::workload::{Records, Workload};
//!
//! let driver = Driver { records: Records { count: 1000, ..Records::default() }, ..Driver::default() };
//! let engine = Arc::new(OrderedMap::default());
//! let load = driver.run(engine.clone(), Phase::Load)?;
//! assert_eq!(load.operations, 1000);
//! let driver = Driver { operations: 500, ..driver };
//! let run = driver.run(engine, Phase::Run(Workload::A))?;
//! assert!(run.latencies["read"].count > 150 && run.latencies["update"].count > 150);
//! # Ok::<(), tanada_ycsb::Error>(())
//! ```
#![forbid(unsafe_code)]

pub mod bench;
pub mod draw;
pub mod drive;
pub mod engine;
mod error;
pub mod measure;
pub mod media;
pub mod workload;

pub use engine::{BlockingEngine, Engine, FromBlocking};
pub use error::{Error, ErrorKind, Result};
