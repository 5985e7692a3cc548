//! The cost model: how long an access takes, cold, on a medium that serves many requests at once.
//!
//! A phase overlaps its I/O with its work, so it takes as long as its slowest resource:
//!
//! `T = max(bytes / BW, n_io / IOPS(depth), chain x latency, CPU / cores)`
//!
//! 1. An access is turned into [`Work`]: I/Os, bytes, CPU time, the longest chain of dependent I/Os, and how many
//!    chains there are.
//! 2. The depth it can reach is the number of independent chains, bounded by the setting. In order it is one.
//! 3. [`CostModel::time`] applies the formula with a [`Calibration`].
//!
//! So the ratio of a random to a sequential read is a function of depth, not a constant: about 40 at depth 1, about 3
//! at depth 1,000. An estimate is for cold data; n look-ups over P pages read each page once as long as the cache holds
//! what they touch ([`page_reads`]).
//!
//! Above: the rules that choose an access path and a join. Below: nothing; no I/O happens here.

mod access;
mod calibration;
mod media;

pub use access::{
    Cost, CostModel, IndexShape, IoTime, Lookups, RelationShape, Work, distinct_pages, page_reads,
};
pub use calibration::{Calibration, CpuCosts, DepthRate, MediumCosts};
pub use media::{
    CALIBRATION_FILE, Calibrated, MeasuredMedium, Measurements, calibration_of, use_measurements,
};
