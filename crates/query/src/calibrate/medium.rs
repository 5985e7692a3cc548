//! What a medium can do, on a file that is made in a folder of it and removed afterwards.
//!
//! 1. The file is written in sequence, then synced: its blocks exist, and that is the rate of sequential writes.
//! 2. Closed loops, each for a fixed time: as many tasks as the depth, each with one I/O after the other.
//! 3. What the kernel's page cache holds does not count: I/O is direct. What lies below the machine (a host's cache, a
//!    disk's own) is part of the medium as it was seen.

use std::cell::Cell;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::future::try_join_all;
use serde::Serialize;
use tanada_base::SplitMix64;
use tanada_io::{
    BufferPool, Device, DeviceOptions, Executors, Gate, GateLimits, IoContext, Method, spawn_local,
};

use super::cpu_time;
use crate::cost::{DepthRate, MediumCosts};
use crate::{Error, ErrorKind, Result};

const PAGE_BYTES: usize = 16 << 10;
const RUN_BYTES: usize = 1 << 20;
/// Depths of random reads.
const READ_DEPTHS: [usize; 6] = [1, 4, 16, 64, 256, 1024];
/// Depths of random writes.
const WRITE_DEPTHS: [usize; 4] = [1, 4, 16, 64];
/// Block sizes, at one depth.
const BLOCKS: [usize; 5] = [4 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20];
const BLOCKS_DEPTH: usize = 16;
/// A strided read takes one block of this many.
const STRIDE: u64 = 8;

/// What to measure with.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct MediumOptions {
    /// Size of the file.
    pub file_bytes: u64,
    /// Seconds of each loop.
    pub seconds: f64,
    /// How I/O is done.
    #[serde(skip)]
    pub method: Method,
}

impl MediumOptions {
    /// 2 GiB, a second a loop: about half a minute.
    pub fn thorough() -> MediumOptions {
        MediumOptions { file_bytes: 2 << 30, seconds: 1.0, method: Method::Uring }
    }

    /// 256 MiB, an eighth of a second a loop.
    pub fn quick() -> MediumOptions {
        MediumOptions { file_bytes: 256 << 20, seconds: 0.125, method: Method::Uring }
    }
}

/// One loop.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Rate {
    /// `random_read`, `random_write`, `sequential_read`, `sequential_write`, `strided_read` or `mixed` (one write to
    /// three reads, at random).
    pub pattern: &'static str,
    /// Bytes of an I/O.
    pub block_bytes: usize,
    /// I/Os in flight.
    pub depth: usize,
    /// I/Os a second.
    pub iops: f64,
    /// Bytes a second, in MB.
    pub mb_per_s: f64,
    /// Processor time of an I/O, in microseconds.
    pub cpu_us: f64,
}

/// What was measured of a medium.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct MediumMeasurement {
    /// For the cost model.
    pub costs: MediumCosts,
    /// Processor time of one random read with many in flight, in microseconds.
    pub io_cpu_us: f64,
    /// Every loop.
    pub rates: Vec<Rate>,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Pattern {
    Random,
    Sequential,
    Strided,
}

#[derive(Debug, Clone, Copy)]
struct Load {
    name: &'static str,
    pattern: Pattern,
    /// Of four I/Os so many are writes.
    writes: u64,
    block: usize,
    depth: usize,
}

impl Load {
    fn random_read(block: usize, depth: usize) -> Load {
        Load { name: "random_read", pattern: Pattern::Random, writes: 0, block, depth }
    }
}

/// Measures the medium that `folder` lies on. `progress` is told what comes.
///
/// # Errors
/// If the file cannot be made there (its size is needed once), or I/O fails.
pub fn measure_medium(
    folder: &Path,
    options: &MediumOptions,
    executors: &Arc<Executors>,
    mut progress: impl FnMut(&str),
) -> Result<MediumMeasurement> {
    let file = ScratchFile::new(folder);
    let settings = DeviceOptions { writable: true, create: true, method: options.method };
    let device = Device::open(&file.path, &settings).map_err(failed)?;
    // Nobody else needs to see it, and nothing is left of it if the process is killed.
    let removed = std::fs::remove_file(&file.path);
    removed.map_err(|error| Error::new(ErrorKind::Io, format!("{}: {error}", file.path.display())))?;
    let bench = Bench {
        device,
        pool: executors.buffers().clone(),
        bytes: options.file_bytes - options.file_bytes % RUN_BYTES as u64,
        lasts: Duration::from_secs_f64(options.seconds),
    };
    progress(&format!("writing {} MiB in {}", bench.bytes >> 20, folder.display()));
    let mut rates = vec![run(executors, &bench, None)?];
    let reads = READ_DEPTHS.map(|depth| Load::random_read(PAGE_BYTES, depth));
    let writes = WRITE_DEPTHS.map(|depth| Load {
        name: "random_write",
        writes: 4,
        ..Load::random_read(PAGE_BYTES, depth)
    });
    let blocks = BLOCKS.map(|block| Load::random_read(block, BLOCKS_DEPTH));
    let sequential = [1, 4].map(|depth| Load {
        name: "sequential_read",
        pattern: Pattern::Sequential,
        ..Load::random_read(RUN_BYTES, depth)
    });
    let others = [
        Load { name: "strided_read", pattern: Pattern::Strided, ..Load::random_read(64 << 10, BLOCKS_DEPTH) },
        Load { name: "mixed", writes: 1, ..Load::random_read(PAGE_BYTES, BLOCKS_DEPTH) },
    ];
    for load in reads.into_iter().chain(sequential).chain(writes).chain(blocks).chain(others) {
        progress(&format!("{} of {} KiB, depth {}", load.name, load.block >> 10, load.depth));
        rates.push(run(executors, &bench, Some(load))?);
    }
    Ok(summarized(rates))
}

/// The figures that the cost model takes.
fn summarized(rates: Vec<Rate>) -> MediumMeasurement {
    let by_depth = |pattern: &str| {
        let mut points: Vec<DepthRate> = Vec::new();
        for rate in rates.iter().filter(|rate| rate.pattern == pattern && rate.block_bytes == PAGE_BYTES) {
            if points.iter().any(|point| point.depth == rate.depth as f64) {
                continue;
            }
            // More depth never makes a device slower; chance may make it look so.
            let least = points.last().map_or(0.0, |point| point.iops);
            points.push(DepthRate { depth: rate.depth as f64, iops: rate.iops.max(least).max(1.0) });
        }
        points
    };
    let mb_per_s = |pattern: &str, depth: usize| {
        let found = rates.iter().find(|rate| rate.pattern == pattern && rate.depth == depth);
        found.map_or(1.0, |rate| rate.mb_per_s.max(1e-3))
    };
    let random_reads = by_depth("random_read");
    let in_order = mb_per_s("sequential_read", 1);
    let costs = MediumCosts {
        sequential_mb_per_s: mb_per_s("sequential_read", 4).max(in_order),
        sequential_mb_per_s_in_order: in_order,
        sequential_write_mb_per_s: mb_per_s("sequential_write", 4),
        random_writes: by_depth("random_write"),
        adaptive_depth: MediumCosts::worthwhile_depth(&random_reads),
        random_reads,
    };
    let busy = rates.iter().find(|rate| rate.pattern == "random_read" && rate.depth == 64);
    let io_cpu_us = busy.map_or(0.0, |rate| rate.cpu_us);
    MediumMeasurement { costs, io_cpu_us, rates }
}

/// The path of a file that is not there yet.
struct ScratchFile {
    path: PathBuf,
}

impl ScratchFile {
    fn new(folder: &Path) -> ScratchFile {
        ScratchFile { path: folder.join(format!(".tanada-calibrate-{}", std::process::id())) }
    }
}

#[derive(Debug, Clone)]
struct Bench {
    device: Device,
    pool: Arc<BufferPool>,
    bytes: u64,
    lasts: Duration,
}

fn failed(error: tanada_io::Error) -> Error {
    Error::new(ErrorKind::Io, format!("cannot measure: {error}"))
}

/// One loop; without a load the file is written from its beginning to its end.
fn run(executors: &Arc<Executors>, bench: &Bench, load: Option<Load>) -> Result<Rate> {
    let bench = bench.clone();
    let load_or_fill = load.unwrap_or(Load {
        name: "sequential_write",
        pattern: Pattern::Sequential,
        writes: 4,
        block: RUN_BYTES,
        depth: 4,
    });
    let is_fill = load.is_none();
    let before = cpu_time();
    let measured = executors.block_on(move || bench.run(load_or_fill, is_fill));
    let (ios, seconds) = measured.map_err(failed)?.map_err(failed)?;
    let cpu = cpu_time().saturating_sub(before);
    Ok(Rate {
        pattern: load_or_fill.name,
        block_bytes: load_or_fill.block,
        depth: load_or_fill.depth,
        iops: ios as f64 / seconds.max(1e-9),
        mb_per_s: ios as f64 * load_or_fill.block as f64 / seconds.max(1e-9) / 1e6,
        cpu_us: cpu.as_secs_f64() * 1e6 / ios.max(1) as f64,
    })
}

impl Bench {
    /// I/Os that were done, and seconds.
    async fn run(self, load: Load, is_fill: bool) -> tanada_io::Result<(u64, f64)> {
        let context = IoContext::new(Gate::new(GateLimits { ios: Some(load.depth), bytes: usize::MAX }));
        let blocks = (self.bytes / load.block as u64).max(1);
        let began = Instant::now();
        let end = began + self.lasts;
        let (done, next) = (Rc::new(Cell::new(0u64)), Rc::new(Cell::new(0u64)));
        let bench = Rc::new(self);
        let tasks = (0..load.depth as u64).map(|task| {
            let (bench, context, done, next) = (bench.clone(), context.clone(), done.clone(), next.clone());
            spawn_local(async move {
                let mut random = SplitMix64::new(began.elapsed().as_nanos() as u64 ^ task << 48);
                let mut buffer = bench.pool.allocate(load.block);
                buffer.fill((task % 251) as u8 + 1);
                loop {
                    let no = next.get();
                    next.set(no + 1);
                    let is_over = if is_fill { no >= blocks } else { Instant::now() >= end };
                    if is_over {
                        return Ok::<(), tanada_io::Error>(());
                    }
                    let block = match load.pattern {
                        Pattern::Random => random.below(blocks),
                        Pattern::Sequential => no % blocks,
                        Pattern::Strided => no * STRIDE % blocks,
                    };
                    let offset = block * load.block as u64;
                    buffer = match random.below(4) < load.writes {
                        true => bench.device.write(offset, buffer).await?,
                        false => context.read(&bench.device, offset, buffer).await?,
                    };
                    done.set(done.get() + 1);
                }
            })
        });
        try_join_all(tasks.collect::<Vec<_>>()).await?;
        if load.writes > 0 {
            bench.device.sync().await?;
        }
        Ok((done.get(), began.elapsed().as_secs_f64()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tanada_io::ExecutorOptions;

    #[test]
    fn a_folder_is_measured_and_left_as_it_was() {
        let folder = tempfile::tempdir().unwrap();
        let executors =
            Executors::start(ExecutorOptions { threads: 1, ..ExecutorOptions::default() }).unwrap();
        let options = MediumOptions { file_bytes: 8 << 20, seconds: 0.005, method: Method::Threads };
        let measured = measure_medium(folder.path(), &options, &executors, |_| {}).unwrap();
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
        let costs = &measured.costs;
        let depths: Vec<f64> = costs.random_reads.iter().map(|rate| rate.depth).collect();
        assert_eq!(depths, [1.0, 4.0, 16.0, 64.0, 256.0, 1024.0]);
        assert!(costs.random_reads.windows(2).all(|pair| pair[0].iops <= pair[1].iops), "{costs:?}");
        assert_eq!(costs.random_writes.len(), 4);
        assert!(costs.sequential_mb_per_s >= costs.sequential_mb_per_s_in_order && measured.io_cpu_us > 0.0);
        assert_eq!(measured.rates.len(), 1 + 6 + 2 + 4 + 5 + 2);
        let missing = folder.path().join("missing");
        assert!(measure_medium(&missing, &options, &executors, |_| {}).is_err());
    }
}
