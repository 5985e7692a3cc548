//! One piece of work that many wait for: a group commit, a device's sync.
//!
//! Whoever waits polls it. If all go away it stays where it is, and the next that waits goes on with it: work that was
//! begun on a device is never forgotten half-way.
//!
//! Invariant: one thread polls at a time; a wake-up reaches all that wait; wakers run with no lock held but the poll's
//! own, which is only ever tried.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};

use parking_lot::Mutex;

type Work<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// Work and who waits for it.
pub(crate) struct SharedTask<T> {
    work: Mutex<Option<Work<T>>>,
    result: Mutex<Option<T>>,
    waiting: Mutex<Vec<Waker>>,
    woken: AtomicBool,
}

impl<T: Clone + Send + 'static> SharedTask<T> {
    pub(crate) fn new(work: impl Future<Output = T> + Send + 'static) -> Arc<SharedTask<T>> {
        Arc::new(SharedTask {
            work: Mutex::new(Some(Box::pin(work))),
            result: Mutex::new(None),
            waiting: Mutex::new(Vec::new()),
            woken: AtomicBool::new(false),
        })
    }

    /// The result, when it is there.
    pub(crate) async fn wait(self: &Arc<Self>) -> T {
        std::future::poll_fn(|context| self.poll(context)).await
    }

    fn poll(self: &Arc<Self>, context: &mut Context<'_>) -> Poll<T> {
        self.waiting.lock().push(context.waker().clone());
        loop {
            if let Some(result) = self.result.lock().clone() {
                return Poll::Ready(result);
            }
            // Another thread polls it right now, or this one does further down its stack; either sees to it that we are
            // woken.
            let Some(mut work) = self.work.try_lock() else {
                if self.result.lock().is_some() {
                    continue;
                }
                return Poll::Pending;
            };
            let Some(future) = work.as_mut() else { continue };
            self.woken.store(false, Ordering::SeqCst);
            let waker = Waker::from(self.clone());
            match future.as_mut().poll(&mut Context::from_waker(&waker)) {
                Poll::Ready(result) => {
                    *self.result.lock() = Some(result.clone());
                    let done = work.take();
                    drop(work);
                    drop(done);
                    self.wake_all();
                    return Poll::Ready(result);
                }
                Poll::Pending => {
                    drop(work);
                    if !self.woken.load(Ordering::SeqCst) {
                        return Poll::Pending;
                    }
                }
            }
        }
    }

    fn wake_all(&self) {
        let waiting = std::mem::take(&mut *self.waiting.lock());
        waiting.into_iter().for_each(Waker::wake);
    }
}

impl<T: Clone + Send + 'static> Wake for SharedTask<T> {
    fn wake(self: Arc<Self>) {
        self.woken.store(true, Ordering::SeqCst);
        self.wake_all();
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;
    use futures::channel::oneshot;
    use futures::executor::block_on;

    use super::*;

    #[test]
    fn all_that_wait_get_the_result_and_the_work_is_done_once() {
        let (send, receive) = oneshot::channel::<u32>();
        let task = SharedTask::new(async move { receive.await.unwrap() });
        let waiting: Vec<_> = (0..4)
            .map(|_| {
                let task = task.clone();
                std::thread::spawn(move || block_on(async { task.wait().await }))
            })
            .collect();
        send.send(7).unwrap();
        for thread in waiting {
            assert_eq!(thread.join().unwrap(), 7);
        }
    }

    #[test]
    fn shared_work_continues_after_all_waiters_leave() {
        let (send, receive) = oneshot::channel::<u32>();
        let task = SharedTask::new(async move { receive.await.unwrap() });
        assert!(task.wait().now_or_never().is_none());
        send.send(7).unwrap();
        assert_eq!(task.wait().now_or_never(), Some(7));
    }
}
