//! Threads that are no executors take part: plain ones and tokio's.

use std::sync::Arc;

use futures::SinkExt;
use futures::StreamExt;
use futures::executor::block_on;
use tanada_io::{BufferPool, Method};

use crate::{PAGE, executors, numbered_files, open, spec, virtual_time};

#[test]
fn a_plain_thread_reads_one_after_the_other() {
    let (_folder, paths) = numbered_files(1, 64);
    let timeline = virtual_time(false);
    let device = timeline.model(open(&paths[0], Method::Threads, false), &spec("hdd-7200"), 1).unwrap();
    let pool = BufferPool::new(0);
    let registered = timeline.register_thread();
    let clock = timeline.clock();
    let mut last = clock.now();
    for no in 0..50u64 {
        let page = no * 13 % 64;
        let buffer = block_on(device.read(page * PAGE, pool.allocate(PAGE as usize))).unwrap();
        assert_eq!(buffer[..8], page.to_le_bytes());
        let now = clock.now();
        assert!(now > last);
        last = now;
    }
    assert!(last.as_millis() > 20, "{last:?}");
    drop(registered);
}

/// An executor reads, a tokio task takes what it read and asks for more: the clock must not run on while a message is
/// on its way.
#[test]
fn work_that_goes_between_an_executor_and_tokio() {
    let (_folder, paths) = numbered_files(1, 64);
    let timeline = virtual_time(false);
    let [start, stop, park, unpark] = std::array::from_fn(|_| timeline.clone());
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .on_thread_start(move || start.thread_started())
        .on_thread_stop(move || stop.thread_stopped())
        .on_thread_park(move || park.thread_idle())
        .on_thread_unpark(move || unpark.thread_busy())
        .build()
        .unwrap();
    let executors = executors(2);
    let array = timeline.array(&spec("2xhdd-7200"), 1);
    let device = array.place(open(&paths[0], Method::Uring, false)).unwrap();
    let clock = timeline.clock();
    // A second reader keeps the disks busy, so there is always something to jump to.
    let background = executors.spawn_on(1, {
        let (device, pool) = (device.clone(), executors.buffers().clone());
        move || async move {
            for no in 0..600u64 {
                device.read(no * 29 % 64 * PAGE, pool.allocate(PAGE as usize)).await.unwrap();
            }
        }
    });
    let pool: Arc<BufferPool> = executors.buffers().clone();
    let (mut ask, mut asked) = futures::channel::mpsc::channel::<u64>(0);
    let (mut tell, mut told) = futures::channel::mpsc::channel(0);
    let reader = executors.spawn_on(0, move || async move {
        while let Some(page) = asked.next().await {
            let buffer = device.read(page * PAGE, pool.allocate(PAGE as usize)).await.unwrap();
            tell.send(buffer[0]).await.unwrap();
        }
    });
    let handed_over = runtime.spawn(async move {
        let mut lost = 0;
        for page in 0..60 {
            ask.send(page).await.unwrap();
            let byte = told.next().await.unwrap();
            assert_eq!(u64::from(byte), page);
            // Nothing takes time here, so the clock stands still between hearing and asking again.
            let before = clock.now();
            for _ in 0..50 {
                tokio::task::yield_now().await;
            }
            lost += u32::from(clock.now() != before);
        }
        lost
    });
    let lost = runtime.block_on(handed_over).unwrap();
    block_on(background).unwrap();
    drop(reader);
    assert_eq!(lost, 0, "the clock ran on while a task was at work");
}
