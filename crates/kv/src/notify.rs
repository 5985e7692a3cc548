//! Waking tasks.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use super::sync::{AtomicUsize, Mutex, Ordering};
use crate::environment::Environment;

#[derive(Debug, Default)]
struct Shared {
    /// Notifications so far.
    count: u64,
    wakers: Vec<Waker>,
}

/// Wakes all waiters. A wait counts from [`notified`](Notify::notified): call it before checking the condition, and
/// await it after, and no notification is missed.
#[derive(Debug, Clone, Default)]
pub(crate) struct Notify(Arc<Mutex<Shared>>);

impl Notify {
    pub(crate) fn notify(&self) {
        let wakers = {
            let mut shared = self.0.lock();
            shared.count += 1;
            std::mem::take(&mut shared.wakers)
        };
        wakers.into_iter().for_each(Waker::wake);
    }

    /// Ready after the next notification from now on.
    pub(crate) fn notified(&self) -> Notified {
        Notified { notify: self.clone(), count: self.0.lock().count }
    }
}

/// See [`Notify::notified`].
#[derive(Debug)]
pub(crate) struct Notified {
    notify: Notify,
    count: u64,
}

impl Future for Notified {
    type Output = ();

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let mut shared = self.notify.0.lock();
        if shared.count != self.count {
            return Poll::Ready(());
        }
        if !shared.wakers.iter().any(|waker| waker.will_wake(context.waker())) {
            shared.wakers.push(context.waker().clone());
        }
        Poll::Pending
    }
}

/// Lets other tasks of the executor run.
pub(crate) async fn yield_now() {
    let mut has_yielded = false;
    std::future::poll_fn(|context| {
        if std::mem::replace(&mut has_yielded, true) {
            return Poll::Ready(());
        }
        context.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

/// Counts tasks that run, so that somebody can wait for their end.
#[derive(Debug, Clone, Default)]
pub(crate) struct TaskCount {
    running: Arc<AtomicUsize>,
    ended: Notify,
}

/// A task that runs.
#[derive(Debug)]
struct Running(TaskCount);

impl Drop for Running {
    fn drop(&mut self) {
        self.0.running.fetch_sub(1, Ordering::AcqRel);
        self.0.ended.notify();
    }
}

impl TaskCount {
    /// Runs `task` in the background; it counts until it has ended or was dropped.
    pub(crate) fn spawn(
        &self,
        environment: &dyn Environment,
        task: impl Future<Output = ()> + Send + 'static,
    ) {
        self.running.fetch_add(1, Ordering::AcqRel);
        let running = Running(self.clone());
        environment.spawn(Box::pin(async move {
            task.await;
            drop(running);
        }));
    }

    /// Runs what `make` makes in the background, on one thread; it counts until it has ended or was dropped.
    pub(crate) fn spawn_local<F: Future<Output = ()> + 'static>(
        &self,
        environment: &dyn Environment,
        make: impl FnOnce() -> F + Send + 'static,
    ) {
        self.running.fetch_add(1, Ordering::AcqRel);
        let running = Running(self.clone());
        environment.spawn_local(Box::new(move || {
            Box::pin(async move {
                make().await;
                drop(running);
            })
        }));
    }

    pub(crate) fn running(&self) -> usize {
        self.running.load(Ordering::Acquire)
    }

    /// Returns when none runs.
    pub(crate) async fn ended(&self) {
        loop {
            let ended = self.ended.notified();
            if self.running() == 0 {
                return;
            }
            ended.await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::FutureExt;

    #[test]
    fn a_notification_between_looking_and_waiting_counts() {
        super::super::sync::model(|| {
            let notify = Notify::default();
            notify.notify();
            let notified = notify.notified();
            assert!(notified.now_or_never().is_none());
            let notified = notify.notified();
            notify.notify();
            assert!(notified.now_or_never().is_some());
        });
    }
}
