//! Dropping what is in flight: nothing leaks, nothing is written into freed memory, nobody waits for ever.

use std::process::Command;
use std::sync::Arc;

use futures::future::{join_all, poll_fn};
use std::future::Future;
use std::task::Poll;
use tanada_base::SplitMix64;
use tanada_io::{BufferPool, Device, ErrorKind, Method, spawn_local};

use crate::{METHODS, eventually, executors, open, random_file};

const SIZE: usize = 8 << 20;

/// Starts reads and drops some of them before they end; the others must be right.
async fn drop_mid_flight(device: Device, pool: Arc<BufferPool>, bytes: Arc<Vec<u8>>, seed: u64) {
    let mut random = SplitMix64::new(seed);
    for _ in 0..40 {
        let mut reads: Vec<_> = (0..64)
            .map(|_| {
                let at = random.below((SIZE / 16384) as u64) as usize * 16384;
                (at, Box::pin(device.read(at as u64, pool.allocate(16384))))
            })
            .collect();
        // One poll starts each; those that are ready at once are done.
        poll_fn(|context| {
            reads.retain_mut(|(_, read)| read.as_mut().poll(context).is_pending());
            Poll::Ready(())
        })
        .await;
        reads.retain(|_| random.below(3) == 0);
        for (at, read) in reads {
            assert!(*read.await.unwrap() == bytes[at..at + 16384]);
        }
    }
}

#[test]
fn dropped_reads_leave_the_others_right_and_no_buffer_behind() {
    let (_folder, path, bytes) = random_file(SIZE, 1);
    let bytes = Arc::new(bytes);
    for method in METHODS {
        let executors = executors(1);
        let (device, pool) = (open(&path, method, false), executors.buffers().clone());
        let make = {
            let (pool, bytes) = (pool.clone(), bytes.clone());
            move || drop_mid_flight(device, pool, bytes, 1)
        };
        executors.block_on(make).unwrap();
        drop(executors);
        wait_until_empty(&pool);
    }
}

#[test]
fn dropped_reads_off_executors_too() {
    let (_folder, path, bytes) = random_file(SIZE, 2);
    let bytes = Arc::new(bytes);
    for method in METHODS {
        let pool = BufferPool::new(4 << 20);
        futures::executor::block_on(drop_mid_flight(
            open(&path, method, false),
            pool.clone(),
            bytes.clone(),
            2,
        ));
        wait_until_empty(&pool);
    }
}

/// The thread pool may still be at an abandoned read.
fn wait_until_empty(pool: &BufferPool) {
    eventually("all buffers are back", || pool.bytes_in_use() == 0);
}

#[test]
fn dropping_a_handle_cancels_a_whole_tree_of_tasks() {
    let executors = executors(2);
    let (_folder, path, _) = random_file(SIZE, 3);
    for round in 0..20 {
        let (device, pool) = (open(&path, METHODS[round % 4], false), executors.buffers().clone());
        let handle = executors.spawn(move || async move {
            let readers = (0..64u64).map(|task| {
                let (device, pool) = (device.clone(), pool.clone());
                spawn_local(async move {
                    for page in (0..).map(|i| (i * 64 + task) % 512) {
                        device.read(page * 16384, pool.allocate(16384)).await.unwrap();
                    }
                })
            });
            join_all(readers).await;
        });
        eventually("reads are in flight", || executors.buffers().bytes_in_use() > 0);
        drop(handle);
        wait_until_empty(executors.buffers());
        eventually("all tasks are gone", || executors.tasks() == 0);
    }
}

#[test]
fn executors_stop_in_the_middle_of_everything() {
    let (_folder, path, _) = random_file(SIZE, 4);
    for round in 0..12 {
        let executors = executors(2);
        let pool = executors.buffers().clone();
        let device = open(&path, METHODS[round % 4], false);
        let handles: Vec<_> = (0..100)
            .map(|task: u64| {
                let (device, pool) = (device.clone(), pool.clone());
                executors.spawn(move || async move {
                    for page in (0..).map(|i| (i * 100 + task) % 512) {
                        device.read(page * 16384, pool.allocate(16384)).await.unwrap();
                    }
                })
            })
            .collect();
        if round % 2 == 0 {
            eventually("reads are in flight", || pool.bytes_in_use() > 0);
        }
        drop(executors);
        for handle in handles {
            let error = futures::executor::block_on(handle).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Cancelled);
        }
        wait_until_empty(&pool);
    }
}

#[test]
#[allow(clippy::async_yields_async)] // the read itself is what goes elsewhere
fn a_read_started_on_an_executor_may_be_finished_elsewhere() {
    let executors = executors(1);
    let (_folder, path, bytes) = random_file(SIZE, 5);
    for dropped in [false, true] {
        let (device, pool) = (open(&path, Method::Uring, false), executors.buffers().clone());
        let read = executors
            .block_on(move || async move {
                let mut read: std::pin::Pin<Box<dyn Future<Output = _> + Send>> =
                    Box::pin(async move { device.read(16384, pool.allocate(16384)).await });
                let first = futures::poll!(&mut read);
                assert!(first.is_pending());
                read
            })
            .unwrap();
        if !dropped {
            assert!(*futures::executor::block_on(read).unwrap() == bytes[16384..32768]);
        }
    }
    wait_until_empty(executors.buffers());
}

/// A file that any ring still holds open for writing cannot be executed.
#[test]
fn a_dropped_device_is_closed_in_every_ring() {
    let executors = executors(2);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("script");
    std::fs::write(&path, format!("#!/bin/sh\nexit 0\n{}", "#\n".repeat(4096))).unwrap();
    let mut permissions = std::fs::metadata(&path).unwrap().permissions();
    std::os::unix::fs::PermissionsExt::set_mode(&mut permissions, 0o755);
    std::fs::set_permissions(&path, permissions).unwrap();
    let device = open(&path, Method::Uring, true);
    for no in 0..2 {
        let (device, pool) = (device.clone(), executors.buffers().clone());
        let read = executors.spawn_on(no, move || async move { device.read(0, pool.allocate(4096)).await });
        futures::executor::block_on(read).unwrap().unwrap();
    }
    assert!(
        Command::new(&path).status().is_err_and(|error| error.raw_os_error() == Some(26)),
        "text file busy"
    );
    drop(device);
    eventually("the file is closed", || Command::new(&path).status().is_ok());
}
