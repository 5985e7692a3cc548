//! Whether all executors of the process sleep: the consistent look that a jump needs.
//!
//! An executor says so itself: its state is `SLEEPING` from before it waits until whoever wakes it, *before* waking it,
//! sets `NOTIFIED`. So a message on its way counts as work. To look at several of them at once, two looks are taken: if
//! all slept in both, and none has gone to sleep in between, then all slept at some moment between the two.

use std::sync::Weak;

use parking_lot::Mutex;

use crate::executor::Sleeper;

static EXECUTORS: Mutex<Vec<Weak<dyn Sleeper>>> = Mutex::new(Vec::new());

/// Has an executor looked at from now on, as long as it lives.
pub(crate) fn watch_executor(executor: Weak<dyn Sleeper>) {
    let mut executors = EXECUTORS.lock();
    executors.retain(|executor| executor.strong_count() > 0);
    executors.push(executor);
}

/// How often the executors have gone to sleep, if all of them sleep now.
pub(super) fn all_asleep() -> Option<u64> {
    let mut sleeps: u64 = 0;
    let mut all = true;
    EXECUTORS.lock().retain(|executor| {
        let Some(executor) = executor.upgrade() else { return false };
        match executor.asleep() {
            Some(times) => sleeps = sleeps.wrapping_add(times),
            None => all = false,
        }
        true
    });
    all.then_some(sleeps)
}
