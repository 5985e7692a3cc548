//! A timer for who has no runtime: one thread a sleep. Budgets sleep some times a second at most, so that is cheap enough.

use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use futures::channel::oneshot;

use crate::relocation::Timer;

/// Sleeps on a thread of its own.
#[derive(Debug, Clone, Copy, Default)]
pub struct ThreadTimer;

impl Timer for ThreadTimer {
    fn sleep(&self, duration: Duration) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        let (send, receive) = oneshot::channel();
        let spawned = std::thread::Builder::new().name("tanada-volume-timer".to_owned()).spawn(move || {
            std::thread::sleep(duration);
            // Nobody waits any more if the relocation was dropped.
            let _ = send.send(());
        });
        Box::pin(async move {
            // Without a thread there is no sleep, and the budget is overdrawn rather than the relocation stuck.
            if spawned.is_ok() {
                let _ = receive.await;
            }
        })
    }
}
