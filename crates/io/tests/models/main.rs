//! Modelled devices and their timelines, one file per behaviour. Apart from the other tests: virtual time looks at all
//! executors of the process.

#![allow(clippy::unwrap_used)]

mod bytes;
mod cpu_time;
mod determinism;
mod figures;
mod foreign;
mod sleeping;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tanada_base::SplitMix64;
use tanada_io::{
    Device, DeviceOptions, ExecutorOptions, Executors, Method, ModelSpec, Timeline, VirtualTimeOptions,
};
use tempfile::TempDir;

const PAGE: u64 = 16384;

fn executors(threads: usize) -> Arc<Executors> {
    Executors::start(ExecutorOptions { threads, registered_bytes: 8 << 20, ..ExecutorOptions::default() })
        .unwrap()
}

/// A folder with files of `pages` pages each, every page full of its own number.
fn numbered_files(count: usize, pages: u64) -> (TempDir, Vec<PathBuf>) {
    let folder = tempfile::tempdir().unwrap();
    let mut bytes = Vec::new();
    for page in 0..pages {
        bytes.extend(page.to_le_bytes().repeat(PAGE as usize / 8));
    }
    let paths: Vec<PathBuf> = (0..count).map(|no| folder.path().join(format!("file{no}"))).collect();
    for path in &paths {
        std::fs::write(path, &bytes).unwrap();
    }
    (folder, paths)
}

fn open(path: &Path, method: Method, writable: bool) -> Device {
    Device::open(path, &DeviceOptions { method, writable, create: false }).unwrap()
}

fn spec(text: &str) -> ModelSpec {
    text.parse().unwrap()
}

fn virtual_time(cpu: bool) -> Timeline {
    Timeline::virtual_time(VirtualTimeOptions { cpu })
}

/// Random page reads, `ios` of them by `depth` tasks; the time they took, and who read what in which order and when.
fn random_reads(
    executors: &Executors,
    timeline: &Timeline,
    device: &Device,
    depth: u64,
    ios: u64,
) -> (Duration, Vec<(u64, Duration)>) {
    let (device, pool, clock) = (device.clone(), executors.buffers().clone(), timeline.clock());
    let pages = device.size_bytes().unwrap() / PAGE;
    executors
        .block_on(move || async move {
            let began = clock.now();
            let trace = std::rc::Rc::new(std::cell::RefCell::new(Vec::new()));
            let tasks = (0..depth).map(|task| {
                let (device, pool, clock, trace) =
                    (device.clone(), pool.clone(), clock.clone(), trace.clone());
                tanada_io::spawn_local(async move {
                    let mut random = SplitMix64::new(task);
                    for _ in 0..ios / depth {
                        let page = random.below(pages);
                        let buffer = device.read(page * PAGE, pool.allocate(PAGE as usize)).await.unwrap();
                        assert_eq!(buffer[..8], page.to_le_bytes());
                        trace.borrow_mut().push((task << 32 | page, clock.now()));
                    }
                })
            });
            futures::future::join_all(tasks.collect::<Vec<_>>()).await;
            (clock.now() - began, trace.take())
        })
        .unwrap()
}
