//! Running a future on a thread that waits for it, and doing its I/O meanwhile.
//!
//! A thread without a ring hands its I/O to the pool: two switches of threads for each. One that does nothing but wait
//! may as well do it itself.
//!
//! 1. What a future starts on the pool while it is polled is kept back.
//! 2. If it has to wait, the thread does one itself, or several at once with a ring of its own. Without rings all but
//!    one go to the pool. Then it polls again.
//! 3. With nothing to do it sleeps until it is woken.
//!
//! Invariant: nothing is kept back or in flight while the thread sleeps, or after the future has come to its end.

use std::cell::RefCell;
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::Thread;

use crate::ring::{Landed, batch};
use crate::threads::{Job, enqueue};

thread_local! {
    /// I/O that was kept back, if this thread is polling a future that it waits for.
    static KEPT_BACK: RefCell<Option<Vec<Job>>> = const { RefCell::new(None) };
}

struct Unpark {
    thread: Thread,
    /// Set by a wake: the token of the thread alone may be taken by a wait within this one.
    is_woken: AtomicBool,
}

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.is_woken.store(true, Ordering::Release);
        self.thread.unpark();
    }
}

/// Polls are within it; what it keeps back is started by it at the latest when it ends, however that comes.
struct Keeping {
    outer: Option<Vec<Job>>,
}

impl Keeping {
    fn begin() -> Keeping {
        let outer = KEPT_BACK.replace(Some(Vec::new()));
        // Whoever waits outside waits for this here: its I/O must not.
        let outer = outer.map(|jobs| {
            jobs.into_iter().for_each(enqueue);
            Vec::new()
        });
        Keeping { outer }
    }

    fn take(&self) -> Vec<Job> {
        KEPT_BACK.with_borrow_mut(|kept| kept.as_mut().map(std::mem::take).unwrap_or_default())
    }
}

impl Drop for Keeping {
    fn drop(&mut self) {
        let kept = KEPT_BACK.replace(self.outer.take());
        kept.into_iter().flatten().for_each(enqueue);
    }
}

/// What the thread has in flight when it waits no more, for whatever reason, comes to its end first.
struct Landing;

impl Drop for Landing {
    fn drop(&mut self) {
        // What the end of an I/O starts is not kept back for a wait outside of this one, which would come to it too
        // late.
        let outer = KEPT_BACK.take();
        while batch::in_flight() > 0 {
            batch::land().into_iter().for_each(Landed::complete);
        }
        KEPT_BACK.set(outer);
    }
}

/// Keeps `job` back if this thread is polling what it waits for; otherwise gives it back.
pub(crate) fn keep_back(job: Job) -> Option<Job> {
    KEPT_BACK.with_borrow_mut(|kept| match kept {
        Some(jobs) => {
            jobs.push(job);
            None
        }
        None => Some(job),
    })
}

/// Runs a future to its end on the calling thread, and as much of its I/O as is sensible. Never to be called on an
/// executor's own thread, which would wait for itself.
///
/// While I/O is under way here, what else wakes the future is heard when one of these I/Os has ended; and all of them
/// have ended when this returns.
///
/// ```
/// # let directory = tempfile::tempdir().unwrap();
/// # let path = directory.path().join("pages");
/// # std::fs::write(&path, vec![7; 1 << 20]).unwrap();
/// let device = tanada_io::Device::open(&path, &tanada_io::DeviceOptions::default())?;
/// let pool = tanada_io::BufferPool::new(0);
/// let page = tanada_io::wait(device.read(16384, pool.allocate(16384)))?;
/// assert_eq!(page[0], 7);
/// # Ok::<(), tanada_io::Error>(())
/// ```
pub fn wait<F: Future>(future: F) -> F::Output {
    let mut future = std::pin::pin!(future);
    let unpark = Arc::new(Unpark { thread: std::thread::current(), is_woken: AtomicBool::new(false) });
    let waker = Waker::from(unpark.clone());
    let mut context = Context::from_waker(&waker);
    let _landing = Landing;
    loop {
        let kept = {
            let keeping = Keeping::begin();
            if let Poll::Ready(output) = future.as_mut().poll(&mut context) {
                return output;
            }
            keeping.take()
        };
        // As above; nor what the end of one starts that nobody waits for any more.
        let outer = KEPT_BACK.take();
        let (mut left, by_ring): (Vec<Job>, Vec<Job>) = kept.into_iter().partition(|job| !job.by_ring);
        let are_several = by_ring.len() + batch::in_flight() > 1;
        left.extend(if are_several { batch::start(by_ring) } else { by_ring });
        let are_in_flight = batch::in_flight() > 0;
        let own = if are_in_flight { None } else { left.pop() };
        left.into_iter().for_each(enqueue);
        match own {
            Some(job) => job.run(),
            None if are_in_flight => batch::land().into_iter().for_each(Landed::complete),
            None => {
                while !unpark.is_woken.swap(false, Ordering::Acquire) {
                    std::thread::park();
                }
            }
        }
        KEPT_BACK.set(outer);
    }
}

#[cfg(test)]
mod tests {
    use futures::future::join_all;

    use super::*;
    use crate::{BufferPool, Device, DeviceOptions};

    fn device() -> (tempfile::TempDir, Device) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("bytes");
        let bytes: Vec<u8> = (0..64u8).flat_map(|page| [page; 4096]).collect();
        std::fs::write(&path, bytes).unwrap();
        let device = Device::open(&path, &DeviceOptions::default()).unwrap();
        (folder, device)
    }

    async fn page(device: &Device, no: u64) -> u8 {
        device.read(no * 4096, BufferPool::new(0).allocate(4096)).await.unwrap()[0]
    }

    #[test]
    fn reads_one_by_one_and_many_at_once() {
        let (_folder, device) = device();
        wait(async {
            for no in 0..8 {
                assert_eq!(page(&device, no).await, no as u8);
            }
            let all = join_all((0..64).map(|no| page(&device, no))).await;
            assert_eq!(all, (0..64).collect::<Vec<u8>>());
        });
    }

    #[test]
    fn a_wait_within_a_wait_holds_nothing_up() {
        let (_folder, device) = device();
        let first = wait(async {
            let mut first = Box::pin(page(&device, 1));
            // Started, and not done.
            assert_eq!(futures::poll!(first.as_mut()), Poll::Pending);
            assert_eq!(wait(page(&device, 2)), 2);
            first.await
        });
        assert_eq!(first, 1);
    }

    #[test]
    fn started_reads_continue_after_their_future_ends() {
        let (_folder, device) = device();
        let mut read = Box::pin(page(&device, 3));
        wait(async { assert_eq!(futures::poll!(read.as_mut()), Poll::Pending) });
        assert_eq!(wait(read), 3);
    }

    #[test]
    fn more_reads_than_ring_entries_complete() {
        let (_folder, device) = device();
        wait(async {
            let all = join_all((0..1000).map(|no| page(&device, no % 64))).await;
            assert_eq!(all, (0..1000).map(|no| (no % 64) as u8).collect::<Vec<u8>>());
        });
        assert_eq!(batch::in_flight(), 0);
    }

    #[test]
    fn reads_in_flight_complete_after_a_wait_panics() {
        let (_folder, device) = device();
        let mut reads = join_all((0..8).map(|no| page(&device, no)));
        let mut polls = 0;
        let panics = std::panic::AssertUnwindSafe(|| {
            wait(std::future::poll_fn(|context| {
                polls += 1;
                assert!(polls == 1, "the second poll");
                std::pin::Pin::new(&mut reads).poll(context)
            }))
        });
        assert!(std::panic::catch_unwind(panics).is_err());
        assert_eq!((polls, batch::in_flight()), (2, 0));
        assert_eq!(wait(reads), (0..8).collect::<Vec<u8>>());
    }

    #[test]
    fn a_wake_from_elsewhere_is_heard() {
        let (sender, receiver) = futures::channel::oneshot::channel();
        let other = std::thread::spawn(move || {
            std::thread::sleep(std::time::Duration::from_millis(10));
            sender.send(7).unwrap();
        });
        assert_eq!(wait(receiver), Ok(7));
        other.join().unwrap();
    }
}
