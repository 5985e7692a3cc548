//! Gates: limits hold, priorities rule, cancelled waiters leave no trace, counters are exact.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Waker};

use futures::future::join_all;
use tanada_base::SplitMix64;
use tanada_io::{Gate, GateLimits, IoContext, IoObserver, Method, ObservedRead, Permit, spawn_local};

use crate::{executors, open, random_file};

type Waiting = Pin<Box<dyn Future<Output = Permit>>>;

fn poll(waiting: &mut Waiting) -> Option<Permit> {
    match waiting.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(permit) => Some(permit),
        Poll::Pending => None,
    }
}

fn admission(context: &IoContext, bytes: usize) -> Waiting {
    let context = context.clone();
    Box::pin(async move { context.admit(bytes).await })
}

/// A permit that must be had at once.
fn admit(context: &IoContext, bytes: usize) -> Permit {
    poll(&mut admission(context, bytes)).expect("there is room")
}

fn waiting(context: &IoContext, bytes: usize) -> Waiting {
    let mut waiting = admission(context, bytes);
    assert!(poll(&mut waiting).is_none());
    waiting
}

#[test]
fn gates_admit_by_priority_then_in_order() {
    let query = IoContext::new(Gate::new(GateLimits { ios: Some(1), bytes: 1 << 20 }));
    let (low, high) = (query.for_operator(1), query.for_operator(9));
    let mut held = admit(&query, 1);
    let mut queue = vec![
        ("low 1", waiting(&low, 1)),
        ("high 1", waiting(&high, 1)),
        ("low 2", waiting(&low, 1)),
        ("high 2", waiting(&high, 1)),
    ];
    for expected in ["high 1", "high 2", "low 1", "low 2"] {
        drop(held);
        let ready: Vec<_> = queue
            .iter_mut()
            .filter_map(|(name, waiting)| poll(waiting).map(|permit| (*name, permit)))
            .collect();
        let [(name, permit)] = <[_; 1]>::try_from(ready).expect("one is admitted");
        assert_eq!(name, expected);
        queue.retain(|(name, _)| *name != expected);
        held = permit;
    }
    drop(held);
    assert_eq!(query.gate().in_flight(), (0, 0));
}

#[test]
fn a_large_one_is_not_overtaken_by_small_ones_behind_it() {
    let context = IoContext::new(Gate::new(GateLimits { ios: Some(8), bytes: 100 }));
    let held = admit(&context, 60);
    let mut large = waiting(&context, 80);
    let mut small = waiting(&context, 10);
    // It would fit, but it came later; one of a higher priority may pass.
    let passing = admit(&context.for_operator(1), 10);
    drop(passing);
    assert!(poll(&mut small).is_none());
    drop(held);
    let (large, small) = (poll(&mut large), poll(&mut small));
    assert!(large.is_some() && small.is_some());
    assert_eq!(context.gate().in_flight(), (2, 90));
}

#[test]
fn a_request_above_the_byte_limit_is_admitted_alone() {
    let context = IoContext::new(Gate::new(GateLimits { ios: Some(8), bytes: 100 }));
    let huge = admit(&context, 1000);
    let mut next = waiting(&context, 1);
    drop(huge);
    assert!(poll(&mut next).is_some());
}

#[test]
fn a_waiter_that_leaves_lets_the_next_one_through() {
    let context = IoContext::new(Gate::new(GateLimits { ios: Some(8), bytes: 100 }));
    let held = admit(&context, 60);
    let head = waiting(&context, 80);
    let mut behind = waiting(&context, 40);
    drop(head);
    let behind = poll(&mut behind).expect("the head was in its way");
    drop((held, behind));

    // Granted, but dropped before it took notice: the grant goes to the next.
    let one = IoContext::new(Gate::new(GateLimits { ios: Some(1), bytes: 100 }));
    let held = admit(&one, 1);
    let (granted, mut next) = (waiting(&one, 1), waiting(&one, 1));
    drop(held);
    assert_eq!(one.gate().in_flight(), (1, 1));
    drop(granted);
    drop(poll(&mut next).expect("it is its turn"));
    assert_eq!((one.gate().in_flight(), one.gate().waiting()), ((0, 0), 0));
}

#[test]
fn limits_hold_under_load_from_many_threads() {
    let executors = executors(4);
    let context = IoContext::new(Gate::new(GateLimits { ios: Some(7), bytes: 50_000 }));
    let (ios, bytes, most) =
        (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let handles = (0..400u64).map(|task| {
        let context = context.for_operator((task % 5) as u8);
        let (ios, bytes, most) = (ios.clone(), bytes.clone(), most.clone());
        executors.spawn(move || async move {
            let mut random = SplitMix64::new(task);
            for _ in 0..50 {
                let len = 1 + random.below(20_000) as usize;
                let mut admission = Box::pin(context.admit(len));
                let permit = match futures::poll!(&mut admission) {
                    Poll::Ready(permit) => permit,
                    // Some lose patience.
                    Poll::Pending if random.below(4) == 0 => continue,
                    Poll::Pending => admission.await,
                };
                let now = ios.fetch_add(1, Ordering::SeqCst) + 1;
                most.fetch_max(now, Ordering::SeqCst);
                assert!(now <= 7);
                assert!(bytes.fetch_add(len, Ordering::SeqCst) + len <= 50_000);
                tokio::task::yield_now().await;
                ios.fetch_sub(1, Ordering::SeqCst);
                bytes.fetch_sub(len, Ordering::SeqCst);
                drop(permit);
            }
        })
    });
    for handle in futures::executor::block_on(join_all(handles.collect::<Vec<_>>())) {
        handle.unwrap();
    }
    assert!(most.load(Ordering::SeqCst) > 1);
    assert_eq!((context.gate().in_flight(), context.gate().waiting()), ((0, 0), 0));
}

#[test]
fn counters_are_exact() {
    let executors = executors(2);
    let (_folder, path, _) = random_file(4 << 20, 1);
    let query = IoContext::new(Gate::new(GateLimits { ios: Some(16), bytes: 1 << 20 }));
    let operator = query.for_operator(3);
    let (device, pool, context) =
        (open(&path, Method::Uring, false), executors.buffers().clone(), operator.clone());
    executors
        .block_on(move || async move {
            let reads = (0..500u64).map(|no| {
                let (device, pool, context) = (device.clone(), pool.clone(), context.clone());
                spawn_local(async move {
                    context.read(&device, no % 256 * 16384, pool.allocate(16384)).await.unwrap();
                    context.counters().cache_hit();
                })
            });
            join_all(reads.collect::<Vec<_>>()).await;
        })
        .unwrap();
    let counted = operator.counters().snapshot();
    assert_eq!((counted.ios, counted.bytes, counted.cache_hits), (500, 500 * 16384, 500));
    assert_eq!(counted.depth_max, 16);
    assert!(counted.depth_mean > 1.0 && counted.depth_mean <= 16.0, "{}", counted.depth_mean);
    assert!(!counted.wait.is_zero());
    // An operator's I/O is the query's too.
    let whole = query.counters().snapshot();
    assert_eq!((whole.ios, whole.bytes, whole.cache_hits, whole.depth_max), (500, 500 * 16384, 500, 16));
    assert_eq!(query.for_operator(1).counters().snapshot(), Default::default());
}

#[test]
fn an_adaptive_gate_stays_within_its_bounds() {
    let gate = Gate::new(GateLimits { ios: None, bytes: 1 << 30 });
    assert_eq!(gate.depth(), 64);
    let context = IoContext::new(gate.clone());
    let held: Vec<_> = (0..64).map(|_| admit(&context, 1)).collect();
    let queued = waiting(&context, 1);
    assert_eq!(context.counters().snapshot().depth_max, 64);
    drop((held, queued));

    let executors = executors(1);
    let (_folder, path, _) = random_file(4 << 20, 2);
    let (device, pool, counted) =
        (open(&path, Method::Uring, false), executors.buffers().clone(), context.clone());
    executors
        .block_on(move || async move {
            let readers = (0..1500u64).map(|task| {
                let (device, pool, context) = (device.clone(), pool.clone(), context.clone());
                spawn_local(async move {
                    for no in 0..8 {
                        context
                            .read(&device, (task + no * 31) % 1024 * 4096, pool.allocate(4096))
                            .await
                            .unwrap();
                        assert!((16..=32_768).contains(&context.gate().depth()));
                    }
                })
            });
            join_all(readers.collect::<Vec<_>>()).await;
        })
        .unwrap();
    let counted = counted.counters().snapshot();
    assert_eq!(counted.ios, 64 + 1500 * 8);
    assert!(counted.depth_max <= 1500);
}

/// Numbers of reads, and what each waited for.
#[derive(Debug, Default)]
struct Waits(parking_lot::Mutex<Vec<(u64, Option<u64>)>>);

impl IoObserver for Waits {
    fn read(&self, read: &ObservedRead<'_>) {
        self.0.lock().push((read.no, read.after));
    }
}

#[test]
fn dependencies_of_a_read_are_recorded_unless_it_only_waited_for_a_permit() {
    let waits = Arc::new(Waits::default());
    let query =
        IoContext::new(Gate::new(GateLimits { ios: Some(2), bytes: 1 << 20 })).observed_by(waits.clone());
    let operators = [query.for_operator(0), query.for_operator(1)];
    let end = |operator: usize, permit: Permit| {
        operators[operator].observe(&permit, std::path::Path::new("t.ibd"), 0, 1);
    };
    let (first, second) = (admit(&operators[0], 1), admit(&operators[1], 1));
    let mut third = waiting(&operators[0], 1);
    end(1, second);
    // It waited for room, which the end of any would have made.
    let third = poll(&mut third).expect("there is room");
    end(0, first);
    let fourth = admit(&operators[1], 1);
    end(1, fourth);
    end(0, third);
    assert_eq!(*waits.0.lock(), [(2, None), (1, None), (4, Some(1)), (3, None)]);
}
