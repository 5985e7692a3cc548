//! YieldBudget of the tasks that share a thread.
//!
//! Most operations wait for nothing: a write is put into memory, a read may find its value there. A task that does one
//! after the other without end would leave the thread to no other, nor to what writes the log and the tables. So now
//! and then an operation lets the others run first.
//!
//! A write does so before each operation, as long as others can go on: they are reads that have begun, or what makes
//! space for writes. And it does as long as a writer waits for space, or has been told that there is some and did not
//! run yet. But what rests on something that was read is written at once, before others change that.

use crate::tuning::writes::STALLS;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use crate::notify::yield_now;

/// Yield budget of the tasks that use a database.
#[derive(Debug, Default)]
pub(crate) struct YieldBudget {
    operations: AtomicU64,
    waiting: AtomicUsize,
}

/// Marks a writer as waiting for space until it is dropped.
pub(crate) struct Waits<'a>(&'a AtomicUsize);

impl YieldBudget {
    /// To be called before a read.
    pub(crate) async fn read(&self) {
        if self.is_others() {
            yield_now().await;
        }
    }

    /// To be called before a write, which may rest on something that was read.
    pub(crate) async fn write(&self, rests_on_read: bool) {
        let can_wait = !rests_on_read && tanada_io::others_are_ready().unwrap_or(false);
        if self.is_others() || can_wait || self.waiting.load(Ordering::Relaxed) > 0 {
            yield_now().await;
        }
    }

    /// A task of an executor that has waited for something meanwhile has let others run already.
    fn is_others(&self) -> bool {
        if let Some(operations) = tanada_io::operations_since_resumed() {
            return operations >= STALLS.operations_per_yield;
        }
        self.operations.fetch_add(1, Ordering::Relaxed) % STALLS.operations_per_yield
            == STALLS.operations_per_yield - 1
    }

    /// To be held while a writer waits for space.
    pub(crate) fn waits(&self) -> Waits<'_> {
        self.waiting.fetch_add(1, Ordering::Relaxed);
        Waits(&self.waiting)
    }
}

impl Drop for Waits<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;
    use tanada_io::{ExecutorOptions, Executors};

    use super::*;

    #[test]
    fn a_fixed_fraction_of_operations_yields() {
        let turns = YieldBudget::default();
        let lets = |no: u64| match no % 2 {
            0 => turns.read().now_or_never().is_none(),
            _ => turns.write(false).now_or_never().is_none(),
        };
        assert_eq!((0..4 * STALLS.operations_per_yield).filter(|no| lets(*no)).count(), 4);
    }

    #[test]
    fn a_task_that_has_waited_has_let_others_run() {
        let options = ExecutorOptions { threads: 1, registered_bytes: 0, ..ExecutorOptions::default() };
        let executors = Executors::start(options).unwrap();
        let lets = executors.block_on(|| async {
            let turns = YieldBudget::default();
            let mut lets = Vec::new();
            for operations in [
                STALLS.operations_per_yield - 1,
                STALLS.operations_per_yield - 1,
                STALLS.operations_per_yield,
            ] {
                lets.push((0..operations).filter(|_| turns.read().now_or_never().is_none()).count());
                yield_now().await;
            }
            lets
        });
        assert_eq!(lets.unwrap(), [0, 0, 1]);
    }

    #[test]
    fn writes_yield_to_ready_tasks_unless_they_follow_a_read() {
        let options = ExecutorOptions { threads: 1, registered_bytes: 0, ..ExecutorOptions::default() };
        let executors = Executors::start(options).unwrap();
        let lets = executors.block_on(|| async {
            let turns = YieldBudget::default();
            let lets = |rests_on_read| turns.write(rests_on_read).now_or_never().is_none();
            let alone = lets(false);
            let other = tanada_io::spawn_local(async {});
            let (resting, not) = (lets(true), lets(false));
            other.await;
            [alone, resting, not]
        });
        assert_eq!(lets.unwrap(), [false, false, true]);
    }

    #[test]
    fn each_write_lets_others_run_while_a_writer_waits_and_no_read_does() {
        let turns = YieldBudget::default();
        let waits = turns.waits();
        assert!(turns.write(false).now_or_never().is_none() && turns.write(false).now_or_never().is_none());
        assert!(turns.read().now_or_never().is_some());
        drop(waits);
        assert!(turns.write(false).now_or_never().is_some());
    }
}
