//! The shared state of an open database's background tasks, and of those who wait for them.

use crate::tuning::writes::BACKGROUND;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;

use crate::Error;
use crate::counters::Counter;
use crate::environment::Environment;
use crate::memory::Memtable;
use crate::notify::{Notify, TaskCount};

/// Shared state of the background tasks and those who wait for them.
#[derive(Debug, Default)]
pub(crate) struct Background {
    /// Notified when there may be work.
    pub(crate) work: Notify,
    /// Something was done: whoever was stalled looks again.
    pub(crate) progress: Notify,
    /// Why what waits cannot be flushed, as long as that is so.
    pub(crate) failed: Mutex<Option<Error>>,
    /// Number of deletions that failed.
    pub(crate) failures: Counter,
    pub(crate) is_stopping: Arc<AtomicBool>,
    pub(crate) tasks: TaskCount,
}

impl Background {
    pub(crate) fn is_stopping(&self) -> bool {
        self.is_stopping.load(Ordering::Acquire)
    }

    /// The tasks end as soon as they can.
    pub(crate) fn stop(&self) {
        self.is_stopping.store(true, Ordering::Release);
        self.work.notify();
        self.progress.notify();
    }

    /// Has something done that ends whoever waits for it.
    pub(crate) fn spawn(
        &self,
        environment: &dyn Environment,
        task: impl Future<Output = ()> + Send + 'static,
    ) {
        self.tasks.spawn(environment, task);
    }

    /// Has a table freed that was flushed, as soon as nobody reads it any more; if somebody does for long, or at
    /// the end, that one frees it.
    pub(crate) fn take_apart(&self, mut table: Arc<Memtable>, environment: &Arc<dyn Environment>) {
        let (environment, tasks, is_stopping) =
            (environment.clone(), self.tasks.clone(), self.is_stopping.clone());
        self.spawn(&*environment.clone(), async move {
            for look in 1..=BACKGROUND.max_reader_checks {
                match Arc::try_unwrap(table) {
                    Ok(table) => {
                        return tasks.spawn_local(&*environment, move || table.take_apart());
                    }
                    Err(read) => table = read,
                }
                if is_stopping.load(Ordering::Acquire) {
                    return;
                }
                environment.sleep(BACKGROUND.first_reader_check_delay * look).await;
            }
        });
    }

    /// Stops them and waits.
    pub(crate) async fn end(&self) {
        self.stop();
        self.tasks.ended().await;
    }
}
