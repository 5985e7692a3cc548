//! When nobody can be using a place any more that has left the mapping.
//!
//! A read looks up where its bytes lie and then takes its time; what it reads from must not be given to another object
//! meanwhile. I/Os count themselves into the current epoch for as long as they run. Epoch e is followed by e+1 only
//! when no I/O of e-1 runs any more, so what was taken out of the mapping during epoch e is used by nobody as soon as
//! the epoch is e+2.
//!
//! Invariant: a guard lives as long as its I/O, even if the future that waits for it is dropped: it belongs to the
//! completion.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::{Poll, Waker};

use parking_lot::Mutex;

/// The epochs and who is in them.
#[derive(Debug, Default)]
pub(crate) struct Grace {
    epoch: AtomicU64,
    running: [AtomicU64; 2],
    has_waiters: AtomicBool,
    waiters: Mutex<Vec<Waker>>,
}

/// One I/O that runs.
#[derive(Debug)]
pub(crate) struct GraceGuard {
    grace: Arc<Grace>,
    slot: usize,
}

impl Grace {
    /// Counts an I/O in. Look up the mapping after this.
    pub(crate) fn enter(self: &Arc<Self>) -> GraceGuard {
        loop {
            let epoch = self.epoch.load(Ordering::SeqCst);
            let slot = (epoch & 1) as usize;
            self.running[slot].fetch_add(1, Ordering::SeqCst);
            if self.epoch.load(Ordering::SeqCst) == epoch {
                return GraceGuard { grace: self.clone(), slot };
            }
            self.leave(slot);
        }
    }

    fn leave(&self, slot: usize) {
        if self.running[slot].fetch_sub(1, Ordering::SeqCst) == 1
            && self.has_waiters.swap(false, Ordering::SeqCst)
        {
            let waiters = std::mem::take(&mut *self.waiters.lock());
            waiters.into_iter().for_each(Waker::wake);
        }
    }

    /// What leaves the mapping now may be used again when [`is_over`](Self::is_over) this.
    pub(crate) fn period(&self) -> u64 {
        self.epoch.load(Ordering::SeqCst) + 2
    }

    /// Whether no I/O that began before `period` was drawn runs any more.
    pub(crate) fn is_over(&self, period: u64) -> bool {
        loop {
            let epoch = self.epoch.load(Ordering::SeqCst);
            if epoch >= period {
                return true;
            }
            if self.running[((epoch + 1) & 1) as usize].load(Ordering::SeqCst) != 0 {
                return false;
            }
            let _ = self.epoch.compare_exchange(epoch, epoch + 1, Ordering::SeqCst, Ordering::SeqCst);
        }
    }

    /// Waits until `period` is over.
    pub(crate) async fn wait(&self, period: u64) {
        std::future::poll_fn(|context| {
            if self.is_over(period) {
                return Poll::Ready(());
            }
            self.waiters.lock().push(context.waker().clone());
            self.has_waiters.store(true, Ordering::SeqCst);
            if self.is_over(period) { Poll::Ready(()) } else { Poll::Pending }
        })
        .await;
    }
}

impl Drop for GraceGuard {
    fn drop(&mut self) {
        self.grace.leave(self.slot);
    }
}

#[cfg(test)]
mod tests {
    use futures::executor::block_on;

    use super::*;

    #[test]
    fn a_period_ends_with_the_last_io_that_began_before_it() {
        let grace = Arc::new(Grace::default());
        let early = grace.enter();
        let period = grace.period();
        let late = grace.enter();
        assert!(!grace.is_over(period));
        drop(early);
        drop(late);
        let later = grace.enter();
        assert!(grace.is_over(period), "an I/O that began afterwards holds nothing up");
        let next = grace.period();
        assert!(!grace.is_over(next));
        drop(later);
        block_on(grace.wait(next));
    }

    #[test]
    fn epoch_waiters_are_woken() {
        let grace = Arc::new(Grace::default());
        let io = grace.enter();
        let period = grace.period();
        let waiting = std::thread::spawn({
            let grace = grace.clone();
            move || block_on(grace.wait(period))
        });
        drop(io);
        waiting.join().unwrap();
    }
}
