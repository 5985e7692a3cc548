//! What `tanada-io` promises, one file per behaviour.

#![allow(clippy::unwrap_used)]

mod cancellation;
mod channels;
mod corpus;
mod errors;
mod executors;
mod gates;

use std::future::Future;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use tanada_base::SplitMix64;
use tanada_io::{Device, DeviceOptions, ExecutorOptions, Executors, Method};
use tempfile::TempDir;

const METHODS: [Method; 4] = [Method::Uring, Method::Aio, Method::Threads, Method::Buffered];

fn executors(threads: usize) -> Arc<Executors> {
    Executors::start(ExecutorOptions { threads, registered_bytes: 8 << 20, ..ExecutorOptions::default() })
        .unwrap()
}

/// A folder with one file of `len` random bytes.
fn random_file(len: usize, seed: u64) -> (TempDir, PathBuf, Vec<u8>) {
    let mut bytes = vec![0; len];
    SplitMix64::new(seed).fill(&mut bytes);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file");
    std::fs::write(&path, &bytes).unwrap();
    (folder, path, bytes)
}

fn open(path: &Path, method: Method, writable: bool) -> Device {
    Device::open(path, &DeviceOptions { method, writable, create: false }).unwrap()
}

/// Runs a future on an executor and once more on a plain thread.
fn on_and_off_executors<F: Future<Output = ()> + 'static>(
    executors: &Executors,
    make: impl Fn() -> F + Clone + Send + 'static,
) {
    futures::executor::block_on(make());
    executors.block_on(make).unwrap();
}

/// Waits for what another thread or the kernel is about to do; a minute is for ever.
fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    let given_up = Instant::now() + Duration::from_secs(60);
    while !holds() {
        assert!(Instant::now() < given_up, "never: {what}");
        std::thread::sleep(Duration::from_micros(200));
    }
}
