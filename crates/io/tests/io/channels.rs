//! Tasks and tokio talk through bounded channels.

use futures::channel::mpsc;
use futures::{SinkExt, StreamExt};
use tanada_io::Method;

use crate::{executors, open, random_file};

#[test]
fn tokio_awaits_what_tasks_send() {
    let executors = executors(2);
    let (_folder, path, bytes) = random_file(4 << 20, 1);
    let device = open(&path, Method::Uring, false);
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).build().unwrap();
    let (sender, mut receiver) = mpsc::channel(4);
    let producers: Vec<_> = (0..8u64)
        .map(|task| {
            let (device, pool, mut sender) = (device.clone(), executors.buffers().clone(), sender.clone());
            executors.spawn(move || async move {
                for page in (task..256).step_by(8) {
                    let buffer = device.read(page * 16384, pool.allocate(16384)).await.unwrap();
                    sender.send((page, buffer)).await.unwrap();
                }
            })
        })
        .collect();
    drop(sender);
    let consumer = runtime.spawn(async move {
        let mut pages = 0;
        while let Some((page, buffer)) = receiver.next().await {
            assert!(*buffer == bytes[page as usize * 16384..][..16384]);
            pages += 1;
        }
        pages
    });
    assert_eq!(runtime.block_on(consumer).unwrap(), 256);
    for producer in producers {
        runtime.block_on(producer).unwrap();
    }
}

#[test]
fn tasks_await_what_tokio_sends_and_a_full_channel_holds_it_back() {
    let executors = executors(1);
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let (mut sender, mut receiver) = mpsc::channel::<u64>(2);
    let sum = executors.spawn(move || async move {
        let mut sum = 0;
        while let Some(number) = receiver.next().await {
            sum += number;
        }
        sum
    });
    runtime.block_on(async {
        for number in 0..10_000 {
            sender.send(number).await.unwrap();
        }
        drop(sender);
        assert_eq!(sum.await.unwrap(), 10_000 * 9_999 / 2);
    });
}

#[test]
fn a_dropped_consumer_ends_its_producer() {
    let executors = executors(1);
    let (mut sender, receiver) = mpsc::channel::<u64>(1);
    let producer = executors.spawn(move || async move {
        let mut sent = 0;
        while sender.send(sent).await.is_ok() {
            sent += 1;
        }
    });
    futures::executor::block_on(async {
        receiver.take(3).for_each(|_| async {}).await;
        producer.await.unwrap();
    });
}
