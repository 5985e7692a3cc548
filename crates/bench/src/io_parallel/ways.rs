//! Ways to read a file while something is computed of it.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::sync_channel;

use futures::future::try_join_all;
use serde::Serialize;
use tanada_io::{Buffer, BufferPool, Device, DeviceOptions, ExecutorOptions, Executors, Method, spawn_local};

use super::lineitem::{Answer, Lineitem, add, merge};
use crate::{Error, Result};

/// From `linux/fcntl.h` of x86-64 and ARM64, which differ.
#[cfg(target_arch = "aarch64")]
const O_DIRECT: i32 = 0o200_000;
#[cfg(not(target_arch = "aarch64"))]
const O_DIRECT: i32 = 0o40_000;
const O_SYNC: i32 = 0o4_010_000;

/// How a file is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Way {
    /// One thread reads a block and computes, in turns.
    Read {
        /// With O_SYNC.
        sync: bool,
    },
    /// One thread reads, another computes: the paper's advice.
    Beside {
        /// Blocks in memory.
        buffers: usize,
    },
    /// Several threads, each of which reads blocks and computes.
    Pread {
        /// How many.
        threads: usize,
    },
    /// Executors of Tanada, a task for each read.
    Executors {
        /// By which method.
        #[serde(skip)]
        method: Method,
        /// Reads in flight of each of two executors.
        depth: usize,
    },
}

impl Way {
    /// Its name in tables.
    pub fn name(self) -> String {
        match self {
            Way::Read { sync: false } => "read".to_owned(),
            Way::Read { sync: true } => "read, O_SYNC".to_owned(),
            Way::Beside { buffers } => format!("read beside, {buffers} buffers"),
            Way::Pread { threads } => format!("pread, {threads} threads"),
            Way::Executors { method, depth } => format!("{}, depth {depth}", method_name(method)),
        }
    }

    /// Reads `file` in blocks of `block_bytes` and computes the answer.
    ///
    /// # Errors
    /// If it cannot be read this way.
    pub(super) fn run(self, file: &Lineitem, block_bytes: usize) -> Result<Answer> {
        match self {
            Way::Read { sync } => read(file, block_bytes, sync),
            Way::Beside { buffers } => beside(file, block_bytes, buffers),
            Way::Pread { threads } => pread(file, block_bytes, threads),
            Way::Executors { method, depth } => executors(file, block_bytes, method, depth),
        }
    }
}

/// As the command line has it.
pub(super) fn method_name(method: Method) -> &'static str {
    match method {
        Method::Uring => "uring",
        Method::Aio => "aio",
        Method::Threads => "threads",
        Method::Buffered => "buffered",
    }
}

fn open(path: &Path, flags: i32) -> Result<File> {
    let opened = OpenOptions::new().read(true).custom_flags(flags).open(path);
    opened.map_err(|error| Error::at_path("open", path, &error))
}

/// Buffers for `count` blocks, aligned for direct reads.
fn buffers(block_bytes: usize, count: usize) -> Vec<Buffer> {
    let pool = BufferPool::new(block_bytes * count);
    (0..count).map(|_| pool.allocate(block_bytes)).collect()
}

fn at(file: &Lineitem, error: &std::io::Error) -> Error {
    Error::at_path("read", file.path(), error)
}

fn read(file: &Lineitem, block_bytes: usize, sync: bool) -> Result<Answer> {
    let source = open(file.path(), O_DIRECT | if sync { O_SYNC } else { 0 })?;
    let mut answer = Answer::default();
    let mut buffers = buffers(block_bytes, 1);
    for offset in (0..file.bytes).step_by(block_bytes) {
        source.read_exact_at(&mut buffers[0], offset).map_err(|error| at(file, &error))?;
        add(&buffers[0], &mut answer);
    }
    Ok(answer)
}

fn beside(file: &Lineitem, block_bytes: usize, count: usize) -> Result<Answer> {
    let source = open(file.path(), O_DIRECT)?;
    let (to_reader, free) = sync_channel(count);
    let (to_computer, full) = sync_channel(count);
    for buffer in buffers(block_bytes, count) {
        let _ = to_reader.send(buffer);
    }
    std::thread::scope(|scope| {
        let reader = scope.spawn(move || -> std::io::Result<()> {
            for offset in (0..file.bytes).step_by(block_bytes) {
                let Ok(mut buffer): std::result::Result<Buffer, _> = free.recv() else { return Ok(()) };
                source.read_exact_at(&mut buffer, offset)?;
                if to_computer.send(buffer).is_err() {
                    return Ok(());
                }
            }
            Ok(())
        });
        let mut answer = Answer::default();
        for buffer in full {
            add(&buffer, &mut answer);
            // Nobody waits for the last ones.
            let _ = to_reader.send(buffer);
        }
        let ended = reader.join().map_err(|_| Error::failed("a reading thread panicked"))?;
        ended.map_err(|error| at(file, &error))?;
        Ok(answer)
    })
}

fn pread(file: &Lineitem, block_bytes: usize, threads: usize) -> Result<Answer> {
    let source = open(file.path(), O_DIRECT)?;
    let next = AtomicU64::new(0);
    std::thread::scope(|scope| {
        let work = || -> std::io::Result<Answer> {
            let mut answer = Answer::default();
            let mut buffers = buffers(block_bytes, 1);
            loop {
                let offset = next.fetch_add(block_bytes as u64, Ordering::Relaxed);
                if offset >= file.bytes {
                    return Ok(answer);
                }
                source.read_exact_at(&mut buffers[0], offset)?;
                add(&buffers[0], &mut answer);
            }
        };
        let running: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        let mut answer = Answer::default();
        for thread in running {
            let of_thread = thread.join().map_err(|_| Error::failed("a reading thread panicked"))?;
            merge(&mut answer, &of_thread.map_err(|error| at(file, &error))?);
        }
        Ok(answer)
    })
}

fn executors(file: &Lineitem, block_bytes: usize, method: Method, depth: usize) -> Result<Answer> {
    const THREADS: usize = 2;
    let bytes = (THREADS * depth * block_bytes).next_multiple_of(2 << 20);
    let options = ExecutorOptions { threads: THREADS, method, registered_bytes: bytes, buffer_bytes: bytes };
    let failed = |error: tanada_io::Error| Error::failed(error.to_string());
    let executors = Executors::start(options).map_err(failed)?;
    let device =
        Device::open(file.path(), &DeviceOptions { method, ..DeviceOptions::default() }).map_err(failed)?;
    if device.method() != method {
        return Err(Error::failed(format!(
            "{} cannot be read by {} here",
            file.path().display(),
            method_name(method)
        )));
    }
    let next = Arc::new(AtomicU64::new(0));
    let running: Vec<_> = (0..THREADS)
        .map(|_| {
            let (device, next, pool) = (device.clone(), Arc::clone(&next), executors.buffers().clone());
            let end = file.bytes;
            executors.spawn(move || async move {
                let tasks = (0..depth).map(|_| {
                    let (device, next, pool) = (device.clone(), Arc::clone(&next), Arc::clone(&pool));
                    spawn_local(async move {
                        let mut answer = Answer::default();
                        let mut buffer = pool.allocate(block_bytes);
                        loop {
                            let offset = next.fetch_add(block_bytes as u64, Ordering::Relaxed);
                            if offset >= end {
                                return Ok::<_, tanada_io::Error>(answer);
                            }
                            buffer = device.read(offset, buffer).await?;
                            add(&buffer, &mut answer);
                        }
                    })
                });
                try_join_all(tasks.collect::<Vec<_>>()).await
            })
        })
        .collect();
    let mut answer = Answer::default();
    for task in running {
        let parts = futures::executor::block_on(task).map_err(failed)?.map_err(failed)?;
        parts.iter().for_each(|part| merge(&mut answer, part));
    }
    Ok(answer)
}
