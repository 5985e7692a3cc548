//! A timer for who has no runtime: one thread for the whole process, which sleeps until the next sleeper is due.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::future::Future;
use std::pin::Pin;
use std::sync::LazyLock;
use std::time::{Duration, Instant};

use futures::channel::oneshot;
use parking_lot::{Condvar, Mutex};

use crate::relocation::Timer;

/// Sleeps by a thread of the process's own.
#[derive(Debug, Clone, Copy, Default)]
pub struct ThreadTimer;

/// Who sleeps: the earliest first, and by number among those that are due at once.
#[derive(Default)]
struct Sleepers {
    due: BinaryHeap<Reverse<(Instant, u64)>>,
    wake: std::collections::HashMap<u64, oneshot::Sender<()>>,
    count: u64,
}

#[derive(Default)]
struct Shared {
    sleepers: Mutex<Sleepers>,
    earlier: Condvar,
}

/// `None` if the thread cannot be started.
static SHARED: LazyLock<Option<&'static Shared>> = LazyLock::new(|| {
    let shared: &'static Shared = Box::leak(Box::default());
    let thread = std::thread::Builder::new().name("tanada-volume-timer".to_owned());
    thread.spawn(|| serve(shared)).ok().map(|_| shared)
});

fn serve(shared: &Shared) {
    let mut sleepers = shared.sleepers.lock();
    loop {
        let now = Instant::now();
        match sleepers.due.peek().copied() {
            Some(Reverse((at, no))) if at <= now => {
                sleepers.due.pop();
                let wake = sleepers.wake.remove(&no);
                // Whoever is woken may run right here.
                parking_lot::MutexGuard::unlocked(&mut sleepers, || {
                    // Nobody waits any more if the relocation was dropped.
                    wake.map(|wake| wake.send(()))
                });
            }
            Some(Reverse((at, _))) => drop(shared.earlier.wait_until(&mut sleepers, at)),
            None => shared.earlier.wait(&mut sleepers),
        }
    }
}

impl Timer for ThreadTimer {
    fn sleep(&self, duration: Duration) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        let (send, receive) = oneshot::channel();
        let due = Instant::now().checked_add(duration);
        if let (Some(shared), Some(due)) = (*SHARED, due) {
            let mut sleepers = shared.sleepers.lock();
            sleepers.count += 1;
            let no = sleepers.count;
            let is_first = sleepers.due.peek().is_none_or(|Reverse((first, _))| due < *first);
            sleepers.due.push(Reverse((due, no)));
            sleepers.wake.insert(no, send);
            if is_first {
                shared.earlier.notify_one();
            }
        }
        // Without a thread there is no sleep, and the budget is overdrawn rather than the relocation stuck.
        Box::pin(async move {
            let _ = receive.await;
        })
    }
}

#[cfg(test)]
mod tests {
    use futures::executor::block_on;
    use futures::future::join;

    use super::*;

    #[test]
    fn who_sleeps_less_is_woken_first() {
        let order = Mutex::new(Vec::new());
        let sleep = |ms| {
            let order = &order;
            async move {
                ThreadTimer.sleep(Duration::from_millis(ms)).await;
                order.lock().push(ms);
            }
        };
        // One that nobody waits for is in nobody's way.
        drop(ThreadTimer.sleep(Duration::from_millis(1)));
        block_on(join(join(sleep(60), sleep(5)), sleep(30)));
        assert_eq!(*order.lock(), [5, 30, 60]);
    }
}
