//! Waking tasks.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use parking_lot::Mutex;

#[derive(Debug, Default)]
struct Shared {
    /// Notifications so far.
    count: u64,
    wakers: Vec<Waker>,
}

/// Wakes all who wait. A wait counts from [`notified`](Notify::notified): take it before looking at whatever may have changed, and await it after,
/// and no notification is missed.
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

#[cfg(test)]
mod tests {
    use super::*;
    use futures::FutureExt;

    #[test]
    fn a_notification_between_looking_and_waiting_counts() {
        let notify = Notify::default();
        notify.notify();
        let notified = notify.notified();
        assert!(notified.now_or_never().is_none());
        let notified = notify.notified();
        notify.notify();
        assert!(notified.now_or_never().is_some());
    }
}
