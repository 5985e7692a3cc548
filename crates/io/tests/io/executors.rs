//! Tasks: many of them, woken from anywhere, ended by panics and drops.

use std::cell::Cell;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc as std_mpsc};
use std::time::Duration;

use futures::channel::oneshot;
use futures::future::{join_all, pending};
use tanada_io::{ErrorKind, ExecutorOptions, Executors, Method, spawn_local};

use crate::{eventually, executors, open, random_file};

/// Gives every other task a turn.
async fn yield_now() {
    let mut yielded = false;
    std::future::poll_fn(|context| {
        if std::mem::replace(&mut yielded, true) {
            return std::task::Poll::Ready(());
        }
        context.waker().wake_by_ref();
        std::task::Poll::Pending
    })
    .await;
}

fn thread_name() -> String {
    std::thread::current().name().unwrap_or_default().to_owned()
}

#[test]
fn the_defaults_are_as_documented() {
    let ExecutorOptions { threads, method, registered_bytes, buffer_bytes } = ExecutorOptions::default();
    assert_eq!(buffer_bytes, 0);
    assert_eq!((threads, method, registered_bytes), (0, Method::Uring, 64 << 20));
}

#[test]
fn tens_of_thousands_of_tasks() {
    let executors = executors(2);
    let handles: Vec<_> = (0..20_000u64)
        .map(|no| {
            executors.spawn(move || async move {
                let shared = Rc::new(Cell::new(0));
                let child = spawn_local({
                    let shared = shared.clone();
                    async move {
                        yield_now().await;
                        shared.set(no);
                    }
                });
                child.await;
                shared.get()
            })
        })
        .collect();
    let sum: u64 = futures::executor::block_on(join_all(handles)).into_iter().map(Result::unwrap).sum();
    assert_eq!(sum, 20_000 * 19_999 / 2);
    assert_eq!(executors.tasks(), 0);
}

#[test]
fn work_goes_to_the_least_loaded_thread() {
    let executors = executors(3);
    let names = (0..3).map(|_| {
        let (sender, receiver) = oneshot::channel();
        let handle = executors.spawn(move || async move {
            sender.send(thread_name()).unwrap();
            pending::<()>().await;
        });
        (futures::executor::block_on(receiver).unwrap(), handle)
    });
    let mut held: Vec<_> = names.collect();
    let mut names: Vec<_> = held.iter().map(|(name, _)| name.clone()).collect();
    names.sort();
    assert_eq!(names, ["tanada-io-0", "tanada-io-1", "tanada-io-2"]);
    let (freed, handle) = held.swap_remove(1);
    drop(handle);
    eventually("no more than 2 tasks", || executors.tasks() <= 2);
    for _ in 0..5 {
        let name = executors.block_on(|| async { thread_name() }).unwrap();
        // The handle resolves just before the task is uncounted.
        eventually("no more than 2 tasks", || executors.tasks() <= 2);
        assert_eq!(name, freed);
    }
}

#[test]
fn tasks_are_woken_from_other_threads_and_by_each_other() {
    let executors = executors(2);
    let mut senders = Vec::new();
    let handles: Vec<_> = (0..1000u64)
        .map(|no| {
            let (sender, receiver) = oneshot::channel::<u64>();
            senders.push(sender);
            executors.spawn_on(no as usize, move || async move { receiver.await.unwrap() })
        })
        .collect();
    let thread = std::thread::spawn(move || {
        for (no, sender) in senders.into_iter().enumerate() {
            if no % 100 == 0 {
                std::thread::sleep(Duration::from_micros(300)); // lets the executors fall asleep
            }
            sender.send(no as u64).unwrap();
        }
    });
    let sum: u64 = futures::executor::block_on(join_all(handles)).into_iter().map(Result::unwrap).sum();
    assert_eq!(sum, 1000 * 999 / 2);
    thread.join().unwrap();

    // Two executors wake each other, each asleep in between.
    let (mut to_b, mut from_a) = futures::channel::mpsc::channel::<u32>(0);
    let (mut to_a, mut from_b) = futures::channel::mpsc::channel::<u32>(0);
    use futures::{SinkExt, StreamExt};
    let a = executors.spawn_on(0, move || async move {
        for no in 0..2000 {
            to_b.send(no).await.unwrap();
            assert_eq!(from_b.next().await, Some(no));
        }
    });
    let b = executors.spawn_on(1, move || async move {
        while let Some(no) = from_a.next().await {
            to_a.send(no).await.unwrap();
        }
    });
    futures::executor::block_on(async {
        a.await.unwrap();
        b.await.unwrap();
    });
}

#[test]
fn a_panic_ends_its_task_alone() {
    let executors = executors(1);
    let in_task = executors.block_on(|| async {
        yield_now().await;
        panic!("number {}", 7)
    });
    let error = in_task.map(|(): ()| ()).unwrap_err();
    assert_eq!(
        (error.kind(), error.to_string().as_str()),
        (ErrorKind::Panicked, "a task panicked: number 7")
    );

    fn broken() -> std::future::Ready<()> {
        panic!("in the maker")
    }
    let in_maker = executors.block_on(broken).unwrap_err();
    assert_eq!(in_maker.to_string(), "a task panicked: in the maker");

    // A child's panic goes on in whoever awaits it; a detached one's in nobody.
    let in_child = executors.block_on(|| async {
        spawn_local(async { panic!("detached") }).detach();
        spawn_local(async { panic!("in a child") }).await
    });
    let error = in_child.map(|(): ()| ()).unwrap_err();
    assert_eq!(error.to_string(), "a task panicked: in a child");

    struct PanicsOnDrop;
    impl Drop for PanicsOnDrop {
        fn drop(&mut self) {
            panic!("in a destructor");
        }
    }
    let (sender, receiver) = oneshot::channel();
    let handle = executors.spawn(move || async move {
        let _guard = PanicsOnDrop;
        sender.send(()).unwrap();
        pending::<()>().await;
    });
    futures::executor::block_on(receiver).unwrap();
    drop(handle);

    assert_eq!(executors.block_on(|| async { 1 }).unwrap(), 1);
    eventually("all tasks are gone", || executors.tasks() == 0);
}

/// Tells which thread dropped it.
struct Witness(std_mpsc::Sender<String>);

impl Drop for Witness {
    fn drop(&mut self) {
        let _ = self.0.send(thread_name());
    }
}

#[test]
fn cancelled_tasks_are_dropped_on_their_own_thread() {
    let executors = executors(1);
    let (sender, dropped_on) = std_mpsc::channel();
    let (started, is_started) = oneshot::channel();
    let handle = executors.spawn(move || async move {
        let (_own, childs) = (Witness(sender.clone()), Witness(sender));
        let child = spawn_local(async move {
            let _childs = childs;
            pending::<()>().await;
        });
        started.send(()).unwrap();
        child.await;
    });
    futures::executor::block_on(is_started).unwrap();
    drop(handle);
    assert_eq!(dropped_on.recv().unwrap(), "tanada-io-0");
    assert_eq!(dropped_on.recv().unwrap(), "tanada-io-0");
}

#[test]
fn detached_tasks_run_to_their_end() {
    let executors = executors(1);
    let (sender, receiver) = oneshot::channel();
    executors
        .spawn(|| async move {
            yield_now().await;
            sender.send(5).unwrap();
        })
        .detach();
    assert_eq!(futures::executor::block_on(receiver), Ok(5));
}

#[test]
fn stopping_cancels_what_runs_and_what_waits_to_start() {
    let stopped = executors(1);
    let running = stopped.spawn(|| async { pending::<()>().await });
    let (release, is_released) = std_mpsc::channel::<()>();
    let (started, is_started) = std_mpsc::channel();
    let blocking = move || async move {
        started.send(()).unwrap();
        is_released.recv().unwrap();
    };
    stopped.spawn(blocking).detach();
    is_started.recv().unwrap();
    let ran = Arc::new(AtomicBool::new(false));
    let waiting = stopped.spawn({
        let ran = ran.clone();
        move || async move { ran.store(true, Ordering::SeqCst) }
    });
    let stopper = std::thread::spawn(move || drop(stopped));
    // Most likely, the thread is asked to stop by now; either order is fine.
    std::thread::sleep(Duration::from_millis(20));
    release.send(()).unwrap();
    stopper.join().unwrap();
    let error = futures::executor::block_on(running).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Cancelled);
    assert_eq!(futures::executor::block_on(waiting).is_ok(), ran.load(Ordering::SeqCst));
}

#[test]
fn a_task_may_drop_the_last_handle_of_its_executors() {
    let executors = executors(2);
    let (sender, receiver) = oneshot::channel::<()>();
    let inner = executors.clone();
    executors
        .spawn(move || async move {
            let _ = receiver.await;
            drop(inner);
        })
        .detach();
    drop(executors);
    sender.send(()).unwrap();
}

#[test]
fn misuse_of_executors_is_an_error() {
    let executors = executors(1);
    let inner = executors.clone();
    let error = executors.block_on(move || async move { inner.block_on(|| async {}).unwrap_err() }).unwrap();
    assert_eq!(error.kind(), ErrorKind::InvalidInput);
    assert!(std::panic::catch_unwind(|| spawn_local(async {})).is_err());
}

#[test]
fn executors_without_rings_do_the_same() {
    let options =
        ExecutorOptions { threads: 1, method: Method::Threads, registered_bytes: 0, buffer_bytes: 0 };
    let executors = tanada_io::Executors::start(options).unwrap();
    assert_eq!(executors.method(), Method::Threads);
    let (_folder, path, bytes) = crate::random_file(1 << 20, 1);
    let (device, pool) = (crate::open(&path, Method::Uring, false), executors.buffers().clone());
    executors
        .block_on(move || async move {
            let reads = (0..64).map(|page| device.read(page * 16384, pool.allocate(16384)));
            for (page, read) in join_all(reads).await.into_iter().enumerate() {
                assert!(*read.unwrap() == bytes[page * 16384..][..16384]);
            }
        })
        .unwrap();
}

#[test]
fn a_task_that_yields_does_not_keep_completions_from_others() {
    let executors = executors(1);
    let (_folder, path, _) = random_file(1 << 16, 7);
    let device = open(&path, Method::Uring, false);
    let is_over = Arc::new(AtomicBool::new(false));
    let busy = {
        let is_over = is_over.clone();
        executors.spawn(move || async move {
            let mut turns = 0u32;
            while !is_over.load(Ordering::Acquire) {
                std::thread::sleep(Duration::from_millis(1));
                turns += 1;
                yield_now().await;
            }
            turns
        })
    };
    let pool = executors.buffers().clone();
    let reads = executors.spawn(move || async move {
        for page in 0..4 {
            device.read(page * 4096, pool.allocate(4096)).await.unwrap();
        }
        is_over.store(true, Ordering::Release);
    });
    futures::executor::block_on(reads).unwrap();
    let turns = futures::executor::block_on(busy).unwrap();
    assert!(turns < 600, "{turns} turns during four reads");
}

/// The order to end may come at any moment of a thread's turn, as it comes back from what woke it, too.
#[test]
fn executors_that_are_dropped_early_end() {
    let options = ExecutorOptions { threads: 1, method: Method::Threads, ..ExecutorOptions::default() };
    for round in 0..20_000u64 {
        // The thread is on its way back from what woke it.
        let executors = Executors::start(options.clone()).unwrap();
        if round % 3 > 0 {
            drop(executors.spawn(|| async {}));
        }
        for _ in 0..round % 97 * 10 {
            std::hint::spin_loop();
        }
        drop(executors);
    }
}
