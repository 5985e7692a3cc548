//! The executor: what a seed decides, what time does, and how a run ends.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use tanada_base::Clock;
use tanada_io::{BufferPool, Completion, Operation, Request};
use tanada_sim::{DiskOptions, Fault, Outcome, Rule, Run, Simulation, When, World};

/// Several tasks that read, write and sync two disks with faults, sleep, and spawn.
async fn bustle(world: World) -> Vec<u64> {
    let disks = ["fast", "slow"].map(|name| world.disk(DiskOptions::named(name)));
    world.inject(Rule::new(Fault::Error, When::PerMillion(20_000)).on(1));
    world.inject(Rule::new(Fault::Short, When::PerMillion(100_000)));
    let finished = Rc::new(RefCell::new(Vec::new()));
    let tasks: Vec<_> = (0..8)
        .map(|task| {
            let (inner, finished) = (world.clone(), finished.clone());
            let device = disks[task as usize % 2].device();
            world.spawn(async move {
                let mut random = inner.random();
                let pool = BufferPool::new(0);
                for step in 0..20 {
                    let mut buffer = pool.allocate(512 * (1 + random.below(16) as usize));
                    buffer.fill(step);
                    let offset = 512 * random.below(64);
                    let _ = match random.below(4) {
                        0 => device.sync().await,
                        1 => device.read(offset, buffer).await.map(|_| ()),
                        2 => device.punch(offset, 4096).await,
                        _ => device.write(offset, buffer).await.map(|_| ()),
                    };
                    if random.below(8) == 0 {
                        inner.sleep(Duration::from_micros(random.below(1000))).await;
                    }
                }
                finished.borrow_mut().push(task);
            })
        })
        .collect();
    for task in tasks {
        task.await;
    }
    finished.take()
}

#[test]
fn the_same_seed_gives_the_same_trace() {
    let runs: Vec<Run<Vec<u64>>> = (0..20).map(|seed| Simulation::run(seed / 2, bustle)).collect();
    for pair in runs.chunks(2) {
        assert_eq!(pair[0].trace, pair[1].trace);
        assert_eq!(pair[0].elapsed, pair[1].elapsed);
        assert_eq!(pair[0].outcome, pair[1].outcome);
        assert!(pair[0].ios > 100);
    }
    let traces: std::collections::BTreeSet<u64> = runs.iter().map(|run| run.trace).collect();
    assert_eq!(traces.len(), 10, "another seed is another run");
    let orders: std::collections::BTreeSet<_> = runs.into_iter().map(|run| run.outcome.unwrap()).collect();
    assert!(orders.len() > 5, "seeds let tasks finish in different orders: {orders:?}");
}

#[test]
fn the_seed_orders_tasks_that_are_ready_at_once() {
    let order = |seed| {
        let run = Simulation::run(seed, |world| async move {
            let order = Rc::new(RefCell::new(Vec::new()));
            let push = |no| {
                let order = order.clone();
                world.spawn(async move { order.borrow_mut().push(no) })
            };
            for task in [0, 1, 2].map(push) {
                task.await;
            }
            order.take()
        });
        run.outcome.unwrap()
    };
    let orders: std::collections::BTreeSet<Vec<i32>> = (0..100).map(order).collect();
    assert_eq!(orders.len(), 6, "{orders:?}");
}

#[test]
fn everything_is_part_of_the_trace() {
    let trace = |bytes: [u8; 512], sleep_us, note| {
        Simulation::run(1, |world| async move {
            let device = world.disk(DiskOptions::named("disk")).device();
            let mut buffer = BufferPool::new(0).allocate(512);
            buffer.copy_from_slice(&bytes);
            device.write(0, buffer).await.unwrap();
            world.sleep(Duration::from_micros(sleep_us)).await;
            world.note(note);
        })
        .trace
    };
    let base = trace([0; 512], 5, 0);
    assert_eq!(base, trace([0; 512], 5, 0));
    let mut other = [0; 512];
    other[511] = 1;
    assert_ne!(base, trace(other, 5, 0));
    assert_ne!(base, trace([0; 512], 6, 0));
    assert_ne!(base, trace([0; 512], 5, 1));
}

#[test]
fn time_stands_still_but_for_timers_and_disks() {
    let run = Simulation::run(0, |world| async move {
        let clock = world.clock();
        let (first, second) = (world.clone(), world.clone());
        let long = world.spawn(async move { first.sleep(Duration::from_secs(3600)).await });
        let short = world.spawn(async move {
            second.sleep(Duration::from_millis(1)).await;
            second.now()
        });
        assert_eq!(short.await, Duration::from_millis(1));
        long.await;
        clock.now()
    });
    assert_eq!(run.outcome.unwrap(), Duration::from_secs(3600));
}

#[test]
fn tasks_that_wait_for_each_other_are_stuck_and_not_hung() {
    let run = Simulation::run(0, |_| std::future::pending::<()>());
    assert_eq!(run.outcome, Outcome::Stuck);
}

#[test]
fn aborted_tasks_release_resources_and_their_io_completes() {
    let run = Simulation::run(3, |world| async move {
        let disk = world.disk(DiskOptions::named("disk"));
        let device = disk.device();
        let held = Rc::new(());
        let inside = held.clone();
        let task = world.spawn(async move {
            let mut buffer = BufferPool::new(0).allocate(4096);
            buffer.fill(9);
            let _ = device.write(0, buffer).await;
            drop(inside);
        });
        world.sleep(Duration::from_nanos(1)).await;
        assert!(!task.is_finished());
        task.abort();
        assert_eq!(Rc::strong_count(&held), 1);
        world.sleep(Duration::from_secs(1)).await;
        disk.cache().to_bytes()
    });
    assert_eq!(run.outcome.unwrap(), [9; 4096]);
}

#[test]
fn an_observer_sees_each_io_before_its_effect_and_may_cut_the_power() {
    let seen = Rc::new(RefCell::new(Vec::new()));
    let notes = seen.clone();
    let run = Simulation::run(3, |world| async move {
        let disk = world.disk(DiskOptions::named("disk"));
        let (inner, watched) = (world.clone(), disk.clone());
        world.observe(move |note| {
            notes.borrow_mut().push((note.offset, watched.cache().size_bytes()));
            if note.offset == 8192 {
                inner.cut_power();
            }
        });
        let device = disk.device();
        for no in 0..10 {
            device.write(no * 4096, BufferPool::new(0).allocate(4096)).await.unwrap();
        }
    });
    assert_eq!(run.outcome, Outcome::PowerCut);
    let offsets: Vec<u64> = seen.borrow().iter().map(|(offset, _)| *offset).collect();
    assert_eq!(offsets, [0, 4096, 8192]);
    assert!(seen.borrow().iter().any(|(offset, size)| offset == size));
    assert_eq!(run.wreck.pending_changes(), 3);
}

/// A layer between holds its device in what waits for the device's I/O; a run must not leave that behind.
#[test]
fn nothing_outlives_its_run() {
    struct Held(Arc<AtomicU32>);
    impl Drop for Held {
        fn drop(&mut self) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }
    let dropped = Arc::new(AtomicU32::new(0));
    let inside = dropped.clone();
    let run = Simulation::run(3, |world| async move {
        for _ in 0..4 {
            let device = world.disk(DiskOptions::named("disk")).device();
            let held = (Held(inside.clone()), device.clone());
            let request = Request { operation: Operation::Sync, offset: 0, len: 0, buffer: None, from: 0 };
            let again = request.operation;
            let completion = Completion::from_fn(move |_, _| {
                let (_, device) = &held;
                let request = Request { operation: again, offset: 0, len: 0, buffer: None, from: 0 };
                device.start(request, Completion::from_fn(|_, _| ()));
            });
            device.start(request, completion);
        }
        world.sleep(Duration::from_nanos(1)).await;
        world.cut_power();
        std::future::pending::<()>().await;
    });
    assert_eq!((run.outcome, dropped.load(Ordering::SeqCst)), (Outcome::PowerCut, 4));
}
