//! Measures a medium and the processor for the [cost model](crate::cost).
//!
//! - [`medium`]: I/O on a file of its own in a folder: random and sequential, reads and writes, by depth and by block
//!   size;
//! - [`processor`]: statements over tables that are cached, whose differences are the constants.
//!
//! Above: `tanada calibrate`. Below: `tanada-io`, and a [session](crate::Session).

mod medium;
mod processor;

use std::time::Duration;

pub use medium::{MediumMeasurement, MediumOptions, Rate, measure_medium};
pub use processor::measure_processor;

/// Processor time of the process so far.
fn cpu_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_nsec).unwrap_or(0))
}
