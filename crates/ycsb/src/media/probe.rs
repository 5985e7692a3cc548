//! What a class's device gives at random: the bound of a workload that reads what is in no cache.
//!
//! 1. A file on the class is filled: with holes, nothing would be read.
//! 2. As many clients as the run has read 4 KiB at random from it, one after the other each, the way the engine reads:
//!    threads that wait, or tasks on executors. Direct I/O; on a file system without it, the page cache answers.
//! 3. Reads that end within the time are counted, and the file is removed.

use std::fs::{self, File};
use std::io::Write;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use futures::executor::block_on;
use futures::future::join_all;
use tanada_base::SplitMix64;
use tanada_io::{BufferPool, Device, DeviceOptions, ExecutorOptions, Executors};

use crate::drive::Clients;
use crate::{Error, Result};

/// What is read at once: a page of Tanada's key files; a value with its surroundings is as much or less.
const BLOCK: usize = 4096;
/// Where is read: more than what a device would have in a cache of its own, and filled in a few seconds.
const FILE_BYTES: u64 = 256 << 20;

/// Random reads of 4 KiB a second by `clients` on the file system of `folder`, of which `free_bytes` may be used.
/// Blocks.
///
/// # Errors
/// If a file cannot be made there, or read.
pub fn random_reads_per_second(
    folder: &Path,
    free_bytes: u64,
    clients: Clients,
    seconds: f64,
) -> Result<f64> {
    let path = folder.join("probe");
    let measured = fill(&path, FILE_BYTES.min(free_bytes / 2)).and_then(|blocks| {
        let device = Device::open(&path, &DeviceOptions::default())?;
        read(&Reading { device, blocks, seconds }, clients)
    });
    let _ = fs::remove_file(&path);
    measured
}

/// Blocks of a file of `bytes`, none of them zeros.
fn fill(path: &Path, bytes: u64) -> Result<u64> {
    const PIECE: usize = 1 << 20;
    let failed = |error: std::io::Error| Error::at_path("fill", path, &error);
    let mut file = File::create(path).map_err(failed)?;
    let mut random = SplitMix64::new(bytes);
    let mut piece = vec![0; PIECE];
    let pieces = (bytes / PIECE as u64).max(1);
    for _ in 0..pieces {
        random.fill(&mut piece);
        file.write_all(&piece).map_err(failed)?;
    }
    file.sync_all().map_err(failed)?;
    Ok(pieces * (PIECE / BLOCK) as u64)
}

#[derive(Debug, Clone)]
struct Reading {
    device: Device,
    blocks: u64,
    seconds: f64,
}

impl Reading {
    /// Reads one block after the other; how many.
    async fn client(self, no: usize, pool: Arc<BufferPool>, began: Instant) -> Result<u64> {
        let end = Duration::from_secs_f64(self.seconds);
        let mut random = SplitMix64::new(no as u64);
        let mut buffer = pool.allocate(BLOCK);
        let mut reads = 0;
        loop {
            buffer = self.device.read(random.below(self.blocks) * BLOCK as u64, buffer).await?;
            if began.elapsed() >= end {
                return Ok(reads);
            }
            reads += 1;
        }
    }
}

fn read(reading: &Reading, clients: Clients) -> Result<f64> {
    let reads = match clients {
        Clients::Threads(count) => on_threads(reading, count),
        Clients::Tasks(count) => as_tasks(reading, count),
    }?;
    Ok(reads as f64 / reading.seconds)
}

fn on_threads(reading: &Reading, count: usize) -> Result<u64> {
    let (pool, reads) = (BufferPool::new(0), AtomicU64::new(0));
    let began = Instant::now();
    std::thread::scope(|scope| {
        let client = |no| {
            let work = reading.clone().client(no, pool.clone(), began);
            let reads = &reads;
            scope.spawn(move || tanada_io::wait(work).map(|count| reads.fetch_add(count, Ordering::Relaxed)))
        };
        let threads: Vec<_> = (0..count.max(1)).map(client).collect();
        threads
            .into_iter()
            .try_for_each(|thread| thread.join().map_err(|_| Error::failed("a reader panicked"))?.map(|_| ()))
    })?;
    Ok(reads.into_inner())
}

fn as_tasks(reading: &Reading, count: usize) -> Result<u64> {
    let executors = Executors::start(ExecutorOptions::default())?;
    let began = Instant::now();
    let client = |no| {
        let (reading, pool) = (reading.clone(), executors.buffers().clone());
        executors.spawn_on(no, move || reading.client(no, pool, began))
    };
    let tasks: Vec<_> = (0..count.max(1)).map(client).collect();
    block_on(join_all(tasks)).into_iter().map(|reads| reads?).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_probe_counts_reads_and_removes_its_file() {
        let folder = tempfile::tempdir().unwrap();
        for clients in [Clients::Threads(2), Clients::Tasks(8)] {
            // A busy machine may do no read in one of these times.
            let mut rates =
                (0..50).map(|_| random_reads_per_second(folder.path(), 4 << 20, clients, 0.1).unwrap());
            assert!(rates.any(|rate| (1.0..1e8).contains(&rate)), "{clients:?}");
        }
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }

    #[test]
    fn limited_devices_reach_their_limit() {
        use crate::media::{Limits, LoopDisk, MediaKind};
        if MediaKind::available() != MediaKind::Limited {
            eprintln!("no limits here");
            return;
        }
        let folder = tempfile::tempdir().unwrap();
        let limits = Limits { reads_per_second: 2000, ..Limits::STAGING };
        let disk = LoopDisk::create(folder.path(), "disk", 64 << 20, Some(&limits)).unwrap();
        let rate = random_reads_per_second(disk.path(), 32 << 20, Clients::Threads(4), 1.0).unwrap();
        assert!((1500.0..2500.0).contains(&rate), "{rate}");
    }
}
