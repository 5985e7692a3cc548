//! Waiting in virtual time.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use super::shared::{Action, Shared};

/// A future that is ready at a moment of virtual time. Made by [`World::sleep`](super::World::sleep).
#[derive(Debug)]
pub struct Sleep {
    pub(super) shared: Arc<Shared>,
    pub(super) until_ns: u64,
    pub(super) registered: bool,
}

impl Future for Sleep {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        if self.registered && self.shared.now_ns() >= self.until_ns {
            return Poll::Ready(());
        }
        // A timer that moved to another task is registered again; the spare event wakes in vain, which is harmless.
        self.shared.at(self.until_ns.max(self.shared.now_ns()), Action::Wake(context.waker().clone()));
        self.registered = true;
        Poll::Pending
    }
}

/// Makes [`Sleep`]s for those who cannot hold a [`World`](super::World), which stays on its thread. Cheap to clone.
#[derive(Debug, Clone)]
pub struct VirtualTimer {
    pub(super) shared: Arc<Shared>,
}

impl VirtualTimer {
    /// Waits `span` of virtual time.
    pub fn sleep(&self, span: Duration) -> Sleep {
        let until_ns = self.shared.now_ns().saturating_add(span.as_nanos() as u64);
        Sleep { shared: self.shared.clone(), until_ns, registered: false }
    }
}
