//! Runs a future with no executor: it is polled by whoever wakes it.
//!
//! What a backend is asked to do is not always one request to one device; the rest is a future, and nobody is there to
//! poll it but the thread that starts the request and those that complete what it waits for.
//!
//! Invariant: one thread polls at a time; a wake-up during a poll makes that thread poll again.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::sync::{Arc, Weak};
use std::task::{Context, Poll, Wake, Waker};

use parking_lot::Mutex;

const IDLE: u8 = 0;
const POLLING: u8 = 1;
const WOKEN: u8 = 2;

struct Driver {
    /// `None` once done. Locked by the polling thread only.
    future: Mutex<Option<Pin<Box<dyn Future<Output = ()> + Send>>>>,
    state: AtomicU8,
    is_given_up: AtomicBool,
}

/// Polls `future` now and whenever it is woken, until it is done. It is dropped when nothing is left that could wake
/// it.
pub(crate) fn drive(future: impl Future<Output = ()> + Send + 'static) -> Driven {
    let driver = Arc::new(Driver {
        future: Mutex::new(Some(Box::pin(future))),
        state: AtomicU8::new(IDLE),
        is_given_up: AtomicBool::new(false),
    });
    let driven = Driven(Arc::downgrade(&driver));
    driver.run();
    driven
}

/// A future that is driven; dropping this changes nothing.
pub(crate) struct Driven(Weak<Driver>);

impl fmt::Debug for Driven {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Driven").field(&self.is_over()).finish()
    }
}

impl Driven {
    /// Whether it is done, or was dropped.
    pub(crate) fn is_over(&self) -> bool {
        self.0.strong_count() == 0
    }

    /// Drops the future where it is, now or when the thread that polls it comes back from there.
    pub(crate) fn give_up(&self) {
        if let Some(driver) = self.0.upgrade() {
            driver.is_given_up.store(true, Ordering::SeqCst);
            driver.run();
        }
    }
}

impl Driver {
    fn run(self: Arc<Self>) {
        if self.state.swap(WOKEN, Ordering::SeqCst) != IDLE {
            return;
        }
        let waker = Waker::from(self.clone());
        let mut context = Context::from_waker(&waker);
        loop {
            self.state.store(POLLING, Ordering::SeqCst);
            let mut slot = self.future.lock();
            let Some(future) = slot.as_mut() else { return };
            let done = match self.is_given_up.load(Ordering::SeqCst) {
                true => slot.take(),
                false => match future.as_mut().poll(&mut context) {
                    Poll::Ready(()) => slot.take(),
                    Poll::Pending => None,
                },
            };
            drop(slot);
            if done.is_some() {
                return;
            }
            let still =
                self.state.compare_exchange(POLLING, IDLE, Ordering::SeqCst, Ordering::SeqCst).is_ok();
            if still {
                return;
            }
        }
    }
}

impl Wake for Driver {
    fn wake(self: Arc<Self>) {
        self.run();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::channel::oneshot;

    #[test]
    fn driven_tasks_are_polled_by_their_wakers() {
        let (send, receive) = oneshot::channel::<u32>();
        let (done_send, mut done) = oneshot::channel();
        drive(async move {
            let value = receive.await.unwrap();
            done_send.send(value + 1).unwrap();
        });
        assert_eq!(done.try_recv().unwrap(), None);
        send.send(1).unwrap();
        assert_eq!(done.try_recv().unwrap(), Some(2));
    }

    #[test]
    fn abandoned_tasks_are_dropped() {
        let (send, receive) = oneshot::channel::<u32>();
        let driven = drive(async move {
            let _ = receive.await;
        });
        assert!(!send.is_canceled() && !driven.is_over());
        driven.give_up();
        assert!(send.is_canceled() && driven.is_over());
    }

    #[test]
    fn a_wake_up_during_the_poll_polls_again() {
        let (done_send, mut done) = oneshot::channel();
        drive(async move {
            for _ in 0..3 {
                let mut first = true;
                std::future::poll_fn(|context| {
                    if std::mem::take(&mut first) {
                        context.waker().wake_by_ref();
                        return Poll::Pending;
                    }
                    Poll::Ready(())
                })
                .await;
            }
            done_send.send(()).unwrap();
        });
        assert_eq!(done.try_recv().unwrap(), Some(()));
    }
}
