//! A modelled device gives and takes the bytes of the device below, in real time and in virtual time, by every method.

use futures::future::join_all;
use tanada_io::{ErrorKind, Method, Timeline, spawn_local};

use crate::{PAGE, executors, numbered_files, open, random_reads, spec, virtual_time};

#[test]
fn reads_and_writes_reach_the_device_below() {
    for timeline in [Timeline::real(), virtual_time(true)] {
        for method in [Method::Uring, Method::Aio, Method::Threads, Method::Buffered] {
            let (_folder, paths) = numbered_files(1, 64);
            let executors = executors(2);
            let device = timeline.model(open(&paths[0], method, true), &spec("4xscm"), 1).unwrap();
            assert_eq!((device.path(), device.size_bytes().unwrap()), (paths[0].as_path(), 64 * PAGE));
            random_reads(&executors, &timeline, &device, 8, 200);
            let pool = executors.buffers().clone();
            let written = device.clone();
            executors
                .block_on(move || async move {
                    let mut page = pool.allocate(PAGE as usize);
                    page.fill(0xab);
                    // Also behind the end, where there is no place on the array yet.
                    for no in [3, 64, 9000] {
                        page = written.write(no * PAGE, page).await?;
                    }
                    written.punch(5 * PAGE, PAGE).await?;
                    written.sync().await?;
                    let past_the_end = written.read(9001 * PAGE, page).await?;
                    assert!(past_the_end.is_empty());
                    Ok::<_, tanada_io::Error>(())
                })
                .unwrap()
                .unwrap();
            let bytes = std::fs::read(&paths[0]).unwrap();
            assert_eq!(bytes.len() as u64, 9001 * PAGE);
            for (no, byte) in [(2, 2), (3, 0xab), (5, 0), (64, 0xab), (9000, 0xab)] {
                assert_eq!(bytes[(no * PAGE) as usize], byte, "page {no} by {method:?}");
            }
        }
    }
}

#[test]
fn errors_of_the_device_below_are_the_models_too() {
    let (_folder, paths) = numbered_files(1, 4);
    let (executors, timeline) = (executors(1), virtual_time(true));
    let device = timeline.model(open(&paths[0], Method::Uring, false), &spec("nvme"), 1).unwrap();
    let pool = executors.buffers().clone();
    let error = executors
        .block_on(move || async move { device.write(0, pool.allocate(4096)).await.unwrap_err() })
        .unwrap();
    assert_eq!(error.kind(), ErrorKind::InvalidInput, "{error}");
}

#[test]
fn dropped_requests_leave_nothing_behind() {
    for timeline in [Timeline::real(), virtual_time(true)] {
        let (_folder, paths) = numbered_files(1, 64);
        let executors = executors(2);
        let array = timeline.array(&spec("2xsata-ssd"), 1);
        let device = array.place(open(&paths[0], Method::Uring, false)).unwrap();
        let pool = executors.buffers().clone();
        executors
            .block_on(move || async move {
                let reads = (0..200u64).map(|no| {
                    let (device, pool) = (device.clone(), pool.clone());
                    spawn_local(async move {
                        device.read(no % 64 * PAGE, pool.allocate(PAGE as usize)).await.unwrap()[0]
                    })
                });
                let mut reads: Vec<_> = reads.collect();
                // The others start, and some end.
                tokio::task::yield_now().await;
                let kept = reads.split_off(150);
                drop(reads);
                for (no, byte) in (150..).zip(join_all(kept).await) {
                    assert_eq!(u64::from(byte), no % 64);
                }
            })
            .unwrap();
        let given_up = std::time::Instant::now() + std::time::Duration::from_secs(60);
        while array.in_flight() > 0 || executors.buffers().bytes_in_use() > 0 {
            assert!(std::time::Instant::now() < given_up, "{} are left", array.in_flight());
            std::thread::yield_now();
        }
    }
}
