//! A load: as many tasks as its depth, each with one I/O after the other on a device.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use futures::future::try_join_all;
use tanada_base::SplitMix64;
use tanada_io::{BufferPool, Device, Timeline, spawn_local};

use super::Run;
use super::stage::failed;
use crate::Result;

/// What is done to a device.
#[derive(Debug, Clone, Copy)]
pub struct Load {
    /// What it measures.
    pub what: &'static str,
    pub is_write: bool,
    pub is_sequential: bool,
    pub block_bytes: usize,
    pub depth: usize,
    pub seconds: f64,
    /// Bytes of the device that take part.
    pub data_bytes: u64,
}

impl Load {
    /// Runs on `device`, which is `side`, for as many seconds as it says. By the virtual time of the process, if it has
    /// one.
    pub async fn run(
        self,
        device: &Device,
        pool: &Arc<BufferPool>,
        side: &'static str,
        round: usize,
    ) -> Result<Run> {
        let end = Duration::from_secs_f64(self.seconds);
        self.run_while(device, pool, side, round, move |elapsed| elapsed < end).await
    }

    /// The same, as long as `goes_on` with the time since it began.
    pub async fn run_while(
        self,
        device: &Device,
        pool: &Arc<BufferPool>,
        side: &'static str,
        round: usize,
        goes_on: impl Fn(Duration) -> bool + Clone + 'static,
    ) -> Result<Run> {
        let clock = Timeline::current_virtual().unwrap_or_else(Timeline::real).clock();
        let latencies = Rc::new(RefCell::new(Vec::<u32>::new()));
        let blocks = self.data_bytes / self.block_bytes as u64;
        let next = Rc::new(Cell::new(0u64));
        let began = clock.now();
        let tasks = (0..self.depth as u64).map(|task| {
            let (device, pool, latencies, next) =
                (device.clone(), pool.clone(), latencies.clone(), next.clone());
            let (clock, goes_on) = (clock.clone(), goes_on.clone());
            spawn_local(async move {
                // Each round reads other blocks: those of the last may be cached below this machine.
                let mut random = SplitMix64::new((round as u64 + 1) << 16 | task);
                let mut buffer = pool.allocate(self.block_bytes);
                buffer.fill(7);
                let mut before = clock.now();
                while goes_on(before - began) {
                    let block = if self.is_sequential {
                        next.replace(next.get() + 1) % blocks
                    } else {
                        random.below(blocks)
                    };
                    let offset = block * self.block_bytes as u64;
                    buffer = if self.is_write {
                        device.write(offset, buffer).await?
                    } else {
                        device.read(offset, buffer).await?
                    };
                    let after = clock.now();
                    let ns = (after - before).as_nanos().min(u128::from(u32::MAX));
                    latencies.borrow_mut().push(ns as u32);
                    before = after;
                }
                Ok::<(), tanada_io::Error>(())
            })
        });
        try_join_all(tasks.collect::<Vec<_>>()).await.map_err(failed)?;
        let seconds = (clock.now() - began).as_secs_f64();
        let mut latencies = latencies.take();
        latencies.sort_unstable();
        let percentile = |share: f64| {
            let place = (latencies.len() as f64 * share) as usize;
            latencies.get(place).map_or(0.0, |ns| f64::from(*ns) / 1e3)
        };
        Ok(Run {
            what: self.what,
            side,
            round,
            ios_per_second: latencies.len() as f64 / seconds,
            mib_per_second: mib(latencies.len() as u64 * self.block_bytes as u64) / seconds,
            latency_us_p50: percentile(0.50),
            latency_us_p99: percentile(0.99),
            seconds,
        })
    }
}

/// A run that was measured as a whole: `bytes` in so many I/Os.
pub fn whole(
    what: &'static str,
    side: &'static str,
    round: usize,
    ios: u64,
    bytes: u64,
    seconds: f64,
) -> Run {
    Run {
        what,
        side,
        round,
        ios_per_second: ios as f64 / seconds,
        mib_per_second: mib(bytes) / seconds,
        latency_us_p50: 0.0,
        latency_us_p99: 0.0,
        seconds,
    }
}

fn mib(bytes: u64) -> f64 {
    bytes as f64 / f64::from(1 << 20)
}
