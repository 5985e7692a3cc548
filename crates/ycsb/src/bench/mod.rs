//! Whole benchmarks: engines beside each other on the same media, Tanada with and without a staging class, and how long
//! opening takes.
//!
//! - [`run_ycsb`]: the load and workloads A to F, on Tanada and, if its program is there, on another engine, taking
//!   turns.
//! - [`run_hse`]: the published evaluation of HSE, on emulated devices: a staging class before the capacity class, or
//!   not.
//! - [`run_opening`]: opening databases of many sizes, by their counts.
//! - [`Job`]: one phase of one engine, as plain data: what a process of its own is told to do.

mod guard;
mod hse;
mod job;
mod opening;
mod options;
mod page;
mod peer;
mod places;
mod room;
mod summary;
mod ycsb;

pub use hse::{HseOptions, run_hse};
pub use job::Job;
pub use opening::{Opening, OpeningJob, OpeningOptions, run_opening};
pub use options::YcsbOptions;
pub use page::html;
pub use peer::Peer;
pub use ycsb::{run_ycsb, run_ycsb_with};

/// Told what comes next.
pub type Progress = fn(&str);

/// Only a capacity class.
pub(crate) const CAPACITY_ONLY: &str = "capacity";
/// A staging class before the capacity class.
pub(crate) const WITH_STAGING: &str = "staging";
