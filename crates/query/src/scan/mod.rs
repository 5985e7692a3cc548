//! Scans of a relation: which access path, and the operator that reads it.
//!
//! 1. [`constraint`] finds what the predicates say about single columns.
//! 2. [`path`] turns that into ranges or keys of each index, [`choice`] weighs them against a full scan.
//! 3. [`exec`] is the operator, [`reader`] what runs on the executors' threads, [`gather`] decodes, filters and cuts
//!    batches, after [`prefilter`] has dropped what cannot pass. [`mirrors`] reads columnar mirrors instead of pages.

mod advance;
mod choice;
mod constraint;
mod exec;
mod gather;
mod mirrors;
mod path;
mod prefilter;
mod reader;

pub(crate) use advance::Advance;
pub use choice::{ScanChoice, choose};
pub use exec::RelationScanExec;
pub(crate) use gather::decoded_columns;
pub use path::AccessPath;
pub(crate) use prefilter::number_of;
