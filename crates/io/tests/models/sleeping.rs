//! Who sleeps on a timeline sleeps by its clock: in virtual time an hour is over at once, and comes in its place among
//! the devices' completions.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::{Duration, Instant};

use tanada_io::{Method, spawn_local};

use crate::{PAGE, executors, numbered_files, open, spec, virtual_time};

#[test]
fn an_hour_of_virtual_time_is_over_at_once() {
    let (executors, timeline) = (executors(1), virtual_time(false));
    let began = Instant::now();
    let slept = executors.block_on(move || async move {
        let clock = timeline.clock();
        let before = clock.now();
        // One that nobody waits for is in nobody's way.
        drop(timeline.sleep(Duration::from_secs(60)));
        timeline.sleep(Duration::from_secs(3600)).await;
        clock.now() - before
    });
    assert_eq!(slept.unwrap(), Duration::from_secs(3600));
    assert!(began.elapsed() < Duration::from_secs(60));
}

#[test]
fn sleepers_wake_between_the_completions_of_devices() {
    let (_folder, paths) = numbered_files(1, 64);
    let (executors, timeline) = (executors(1), virtual_time(false));
    // A read takes a tenth of a millisecond or so; a seek several.
    let device = timeline.model(open(&paths[0], Method::Uring, false), &spec("nvme"), 1).unwrap();
    let pool = executors.buffers().clone();
    let order = executors.block_on(move || async move {
        let order = Rc::new(RefCell::new(Vec::new()));
        let sleepers = [(10, "late"), (1, "soon")].map(|(ms, name)| {
            let (timeline, order) = (timeline.clone(), order.clone());
            spawn_local(async move {
                timeline.sleep(Duration::from_millis(ms)).await;
                order.borrow_mut().push(name);
            })
        });
        let reader = {
            let (timeline, order) = (timeline.clone(), order.clone());
            spawn_local(async move {
                device.read(PAGE, pool.allocate(PAGE as usize)).await.unwrap();
                order.borrow_mut().push("read");
                timeline.sleep(Duration::from_millis(2)).await;
                device.read(7 * PAGE, pool.allocate(PAGE as usize)).await.unwrap();
                order.borrow_mut().push("read again");
            })
        };
        reader.await;
        futures::future::join_all(sleepers).await;
        order.take()
    });
    assert_eq!(order.unwrap(), ["read", "soon", "read again", "late"]);
}

/// Who sleeps meanwhile is not woken by it: a device without a model takes no time, however long the machine's disk
/// does.
#[test]
fn devices_without_a_model_take_no_time() {
    let (_folder, paths) = numbered_files(1, 1024);
    for method in [Method::Uring, Method::Aio, Method::Threads, Method::Buffered] {
        let (executors, timeline) = (executors(2), virtual_time(false));
        let device = open(&paths[0], method, false);
        let pool = executors.buffers().clone();
        let times = executors.block_on(move || async move {
            let clock = timeline.clock();
            let slept = spawn_local(timeline.sleep(Duration::from_millis(75)));
            for no in 0..200 {
                device.read(no * 389 % 1024 * PAGE, pool.allocate(PAGE as usize)).await.unwrap();
            }
            let read_at = clock.now();
            slept.await;
            (read_at, clock.now())
        });
        assert_eq!(times.unwrap(), (Duration::ZERO, Duration::from_millis(75)), "{method:?}");
    }
}
