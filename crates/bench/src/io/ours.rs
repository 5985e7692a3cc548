//! Our side: one executor thread, as many tasks as the depth, each reading random pages through the gate of its query.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::{Duration, Instant};

use futures::future::try_join_all;
use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::time::{ClockId, clock_gettime};
use nix::unistd::Pid;
use tanada_base::SplitMix64;
use tanada_io::{
    BufferPool, Device, DeviceOptions, ExecutorOptions, Executors, Gate, GateLimits, IoContext, Method,
    spawn_local,
};

use super::{Run, Side};
use crate::{Error, Result};

/// The last processor this process may use: the first one gets most of the interrupts.
pub(super) fn last_processor() -> Result<usize> {
    let allowed = sched_getaffinity(Pid::from_raw(0))
        .map_err(|error| Error::failed(format!("cannot read the processors: {error}")))?;
    (0..CpuSet::count())
        .rev()
        .find(|no| allowed.is_set(*no).unwrap_or(false))
        .ok_or_else(|| Error::failed("no processor is allowed"))
}

pub(super) fn run(side: &Side<'_>) -> Result<Run> {
    let bytes = (side.depth * side.options.block_bytes).next_multiple_of(2 << 20);
    let executors = Executors::start(ExecutorOptions {
        threads: 1,
        method: Method::Uring,
        registered_bytes: bytes,
        buffer_bytes: bytes,
    })
    .map_err(failed)?;
    let device = Device::open(side.file.path(), &DeviceOptions::default()).map_err(failed)?;
    if executors.method() != Method::Uring || device.method() != Method::Uring {
        return Err(Error::failed(format!(
            "{} cannot be read with io_uring and direct I/O here, so there is nothing to compare",
            side.file.path().display()
        )));
    }
    let load = Load {
        context: IoContext::new(Gate::new(GateLimits { ios: Some(side.depth), bytes: usize::MAX })),
        pool: executors.buffers().clone(),
        device,
        depth: side.depth,
        block_bytes: side.options.block_bytes,
        blocks: side.file.len() / side.options.block_bytes as u64,
        seconds: side.options.seconds,
        seed: side.seed,
    };
    let processor = side.processor;
    let measured = executors.block_on(move || async move {
        let mut only = CpuSet::new();
        only.set(processor)
            .and_then(|()| sched_setaffinity(Pid::from_raw(0), &only))
            .map_err(|error| Error::failed(format!("cannot run on processor {processor}: {error}")))?;
        load.run().await.map_err(failed)
    });
    let measured = measured.map_err(failed)??;
    let iops = measured.latencies_ns.len() as f64 / measured.lasted.as_secs_f64();
    let percentile = |share: f64| {
        let place = (measured.latencies_ns.len() as f64 * share) as usize;
        measured.latencies_ns.get(place).map_or(0.0, |ns| f64::from(*ns) / 1e3)
    };
    let sum_ns: f64 = measured.latencies_ns.iter().map(|ns| f64::from(*ns)).sum();
    Ok(Run {
        side: "tanada",
        depth: side.depth,
        repeat: side.repeat,
        iops,
        latency_us_mean: sum_ns / 1e3 / measured.latencies_ns.len().max(1) as f64,
        latency_us_p50: percentile(0.50),
        latency_us_p99: percentile(0.99),
        cpu_us_per_io: measured.cpu.as_secs_f64() * 1e6 / measured.latencies_ns.len().max(1) as f64,
    })
}

fn failed(error: tanada_io::Error) -> Error {
    Error::failed(error.to_string())
}

/// Reads random blocks for some seconds.
struct Load {
    device: Device,
    context: IoContext,
    pool: std::sync::Arc<BufferPool>,
    depth: usize,
    block_bytes: usize,
    blocks: u64,
    seconds: f64,
    seed: u64,
}

struct Measured {
    lasted: Duration,
    cpu: Duration,
    /// Sorted.
    latencies_ns: Vec<u32>,
}

impl Load {
    async fn run(self) -> tanada_io::Result<Measured> {
        let expected = (self.seconds * 200_000.0) as usize;
        let latencies = Rc::new(RefCell::new(Vec::<u32>::with_capacity(expected)));
        let is_over = Rc::new(Cell::new(false));
        let (cpu_before, began) = (cpu_time(), Instant::now());
        let end = began + Duration::from_secs_f64(self.seconds);
        let load = Rc::new(self);
        let tasks = (0..load.depth as u64).map(|task| {
            let (load, latencies, is_over) = (load.clone(), latencies.clone(), is_over.clone());
            spawn_local(async move {
                let mut random = SplitMix64::new(load.seed << 16 | task);
                let mut buffer = load.pool.allocate(load.block_bytes);
                while !is_over.get() {
                    let offset = random.below(load.blocks) * load.block_bytes as u64;
                    let before = Instant::now();
                    buffer = load.context.read(&load.device, offset, buffer).await?;
                    let after = Instant::now();
                    let ns = (after - before).as_nanos().min(u128::from(u32::MAX));
                    latencies.borrow_mut().push(ns as u32);
                    is_over.set(after >= end);
                }
                Ok::<(), tanada_io::Error>(())
            })
        });
        try_join_all(tasks.collect::<Vec<_>>()).await?;
        let (lasted, cpu) = (began.elapsed(), cpu_time().saturating_sub(cpu_before));
        let mut latencies_ns = latencies.take();
        latencies_ns.sort_unstable();
        Ok(Measured { lasted, cpu, latencies_ns })
    }
}

/// Processor time of this thread so far.
fn cpu_time() -> Duration {
    // The clock of the own thread is always there.
    clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).map(Duration::from).unwrap_or_default()
}
