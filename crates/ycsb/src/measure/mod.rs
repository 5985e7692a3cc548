//! What a run is measured by: latencies and throughput at its clients, CPU time and memory of the process, bytes on its
//! devices.

mod blocks;
mod latency;
mod process;
mod run;
mod series;

pub use blocks::BlockDevice;
pub use latency::{Latencies, LatencySummary};
pub use process::{CpuTime, MemoryWatch, machine_bytes, resident_bytes, stolen_s};
pub use run::Run;
pub use series::Series;
