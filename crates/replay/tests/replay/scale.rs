//! Queries of many chunks: what a policy takes for an I/O does not grow with them.

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};
use tanada_base::SplitMix64;
use tanada_placement::{Trace, import};
use tanada_replay::{SimulationOptions, simulate};

/// So many reads of a page, each anywhere among as many mebibytes.
fn spread(reads: u64) -> Trace {
    let mut random = SplitMix64::new(1);
    let line = |at: u64| format!("{at},h,0,Read,{},16384,1\n", random.below(reads) << 20);
    let log: String = (0..reads).map(line).collect();
    import::msr(log.as_bytes(), "spread").unwrap()
}

/// CPU time of this thread: what else runs on the machine is not in it.
fn cpu_time() -> Duration {
    Duration::try_from(clock_gettime(ClockId::ThreadCPUTime)).unwrap()
}

/// The least of three runs.
fn replay(reads: u64) -> Duration {
    let trace = spread(reads);
    let run = |_| {
        let began = cpu_time();
        simulate(&trace, None, &SimulationOptions::new("benefit", 0.3)).unwrap();
        cpu_time() - began
    };
    (0..3).map(run).min().unwrap()
}

/// Eight times the I/Os took sixty times as long when each segment was worth a ranking of all chunks.
#[test]
fn a_query_of_many_chunks_takes_time_in_proportion_to_its_ios() {
    let (few, many) = (replay(1 << 14), replay(1 << 17));
    println!("{few:?}, {many:?}");
    assert!(many < few * 24, "{few:?} for 16,384 I/Os, {many:?} for 131,072");
}
