//! Turns of the tasks that share a thread.
//!
//! Most operations wait for nothing: a write is put into memory, a read may find its value there. A task that does one after the other without end would leave
//! the thread to no other, nor to what writes the log and the tables. So who begins an operation lets others run first, as the [executor](others_go_first) has it, and each write does
//! as long as a writer waits for room, or has been told that there is some and did not run yet.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use tanada_io::{OperationStage, others_go_first};

use crate::notify::yield_now;

/// Of operations that no executor's thread does, one in so many lets others run.
const OPERATIONS: u64 = 64;

/// Who is to have a turn.
#[derive(Debug, Default)]
pub(crate) struct Turns {
    operations: AtomicU64,
    waiting: AtomicUsize,
}

/// A writer who waits for room, until it is dropped.
pub(super) struct Waits<'a>(&'a AtomicUsize);

impl Turns {
    /// To be called before a read.
    pub(super) async fn read(&self) {
        if self.is_others(OperationStage::Begins) {
            yield_now().await;
        }
    }

    /// To be called before a write.
    pub(super) async fn write(&self, stage: OperationStage) {
        if self.is_others(stage) || self.waiting.load(Ordering::Relaxed) > 0 {
            yield_now().await;
        }
    }

    fn is_others(&self, stage: OperationStage) -> bool {
        others_go_first(stage)
            .unwrap_or_else(|| self.operations.fetch_add(1, Ordering::Relaxed) % OPERATIONS == OPERATIONS - 1)
    }

    /// To be held while a writer waits for room.
    pub(super) fn waits(&self) -> Waits<'_> {
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
    fn one_operation_in_so_many_lets_others_run() {
        let turns = Turns::default();
        let lets = |no: u64| match no % 2 {
            0 => turns.read().now_or_never().is_none(),
            _ => turns.write(OperationStage::Begins).now_or_never().is_none(),
        };
        assert_eq!((0..4 * OPERATIONS).filter(|no| lets(*no)).count(), 4);
    }

    #[test]
    fn who_writes_what_it_has_read_goes_on() {
        let options = ExecutorOptions { threads: 1, registered_bytes: 0, ..ExecutorOptions::default() };
        let executors = Executors::start(options).unwrap();
        let lets = executors.block_on(|| async {
            let turns = Turns::default();
            let other = tanada_io::spawn_local(async {});
            let writes = |stage| [(); 2].map(|()| turns.write(stage).now_or_never().is_none());
            let lets = [writes(OperationStage::HasBegun), writes(OperationStage::Begins)];
            other.await;
            lets
        });
        assert_eq!(lets.unwrap(), [[false, false], [true, true]]);
    }

    #[test]
    fn each_write_lets_others_run_while_a_writer_waits_and_no_read_does() {
        let turns = Turns::default();
        let waits = turns.waits();
        assert!(
            turns.write(OperationStage::Begins).now_or_never().is_none()
                && turns.write(OperationStage::Begins).now_or_never().is_none()
        );
        assert!(turns.read().now_or_never().is_some());
        drop(waits);
        assert!(turns.write(OperationStage::Begins).now_or_never().is_some());
    }
}
