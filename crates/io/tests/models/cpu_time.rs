//! CPU time advances the virtual clock, once, and only if it is asked to.

use std::time::Duration;

use tanada_io::Method;

use crate::{PAGE, executors, numbered_files, open, spec, virtual_time};

/// Uses CPU until the process's clock of this thread says so.
fn burn(time: Duration) {
    let cpu = || {
        let stat = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap();
        Duration::from_nanos(stat.split(' ').next().unwrap().parse().unwrap())
    };
    let began = cpu();
    while cpu() - began < time {
        std::hint::spin_loop();
    }
}

#[test]
fn work_between_two_reads_takes_its_time() {
    for counts in [true, false] {
        let (_folder, paths) = numbered_files(1, 64);
        let (executors, timeline) = (executors(1), virtual_time(counts));
        let device = timeline.model(open(&paths[0], Method::Uring, false), &spec("scm"), 1).unwrap();
        let (pool, clock) = (executors.buffers().clone(), timeline.clock());
        let took = executors
            .block_on(move || async move {
                let began = clock.now();
                for _ in 0..5 {
                    device.read(PAGE, pool.allocate(PAGE as usize)).await.unwrap();
                    burn(Duration::from_millis(20));
                }
                clock.now() - began
            })
            .unwrap();
        assert_eq!(took >= Duration::from_millis(90), counts, "{took:?}");
    }
}

#[test]
fn completions_due_during_computation_are_delivered_after_it() {
    let (_folder, paths) = numbered_files(1, 64);
    let (executors, timeline) = (executors(1), virtual_time(true));
    let device = timeline.model(open(&paths[0], Method::Uring, false), &spec("hdd-7200"), 1).unwrap();
    let (pool, clock) = (executors.buffers().clone(), timeline.clock());
    let (read_at, worked_until) = executors
        .block_on(move || async move {
            let reader = tanada_io::spawn_local({
                let (device, clock) = (device.clone(), clock.clone());
                async move {
                    device.read(PAGE, pool.allocate(PAGE as usize)).await.unwrap();
                    clock.now()
                }
            });
            // In slices, as tasks that are good neighbours do; the disk takes no longer than two turns and a seek.
            for _ in 0..6000 {
                let until = clock.now() + Duration::from_micros(20);
                while clock.now() < until {
                    std::hint::spin_loop();
                }
                tokio::task::yield_now().await;
            }
            (reader.await, clock.now())
        })
        .unwrap();
    assert!(read_at + Duration::from_millis(20) < worked_until, "{read_at:?}, {worked_until:?}");
}
