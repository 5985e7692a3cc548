//! Emulated media have the rates that the kernel is told to hold devices to.

#![allow(clippy::unwrap_used, reason = "a test fails so")]

use std::sync::Arc;

use tanada_base::SplitMix64;
use tanada_io::{
    BufferPool, Device, DeviceOptions, ExecutorOptions, Executors, ModelSpec, Timeline, VirtualTimeOptions,
};

use tanada_ycsb::media::{CAPACITY_MODEL, Limits, STAGING_MODEL};

/// Operations a second of 64 tasks with blocks of `bytes`, in virtual time.
fn rate(model: &str, bytes: usize, is_write: bool) -> f64 {
    const SIZE: u64 = 256 << 20;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("device");
    std::fs::File::create(&path).unwrap().set_len(SIZE).unwrap();
    let timeline = Timeline::virtual_time(VirtualTimeOptions { cpu: false });
    let options = DeviceOptions { writable: true, ..DeviceOptions::default() };
    let below = Device::open(&path, &options).unwrap();
    let model: ModelSpec = model.parse().unwrap();
    let device = timeline.model(below, &model, 1).unwrap();
    let executors = Executors::start(ExecutorOptions { threads: 1, ..ExecutorOptions::default() }).unwrap();
    let each = if bytes > 4096 { 30 } else { 150 };
    let (pool, clock): (Arc<BufferPool>, _) = (executors.buffers().clone(), timeline.clock());
    executors
        .block_on(move || async move {
            let began = clock.now();
            let tasks = (0..16u64).map(|task| {
                let (device, pool) = (device.clone(), pool.clone());
                tanada_io::spawn_local(async move {
                    let mut random = SplitMix64::new(task);
                    for _ in 0..each {
                        let offset = random.below(SIZE / bytes as u64) * bytes as u64;
                        let buffer = pool.allocate(bytes);
                        match is_write {
                            true => device.write(offset, buffer).await.unwrap(),
                            false => device.read(offset, buffer).await.unwrap(),
                        };
                    }
                })
            });
            futures::future::join_all(tasks.collect::<Vec<_>>()).await;
            16.0 * f64::from(each) / (clock.now() - began).as_secs_f64()
        })
        .unwrap()
}

#[test]
fn models_have_the_rates_of_the_limits() {
    for (model, limits) in [(CAPACITY_MODEL, Limits::CAPACITY), (STAGING_MODEL, Limits::STAGING)] {
        let close = |measured: f64, wanted: u64, what: &str| {
            let ratio = measured / wanted as f64;
            assert!((0.85..1.2).contains(&ratio), "{model}: {what} {measured:.0} instead of {wanted}");
        };
        close(rate(model, 4096, false), limits.reads_per_second, "reads");
        close(rate(model, 4096, true), limits.writes_per_second, "writes");
        const MB: usize = 1 << 20;
        close(rate(model, MB, false) * MB as f64, limits.bytes_read_per_second, "bytes read");
    }
}
