//! The tasks of an open database: one writes memtables out, the others do jobs of the trees; and one reads filters,
//! once.
//!
//! They hold the database weakly: when its last handle goes, they end. Whoever closes it waits for them.

use std::sync::Arc;
use std::sync::Weak;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use futures::future::{Either, select};
use parking_lot::Mutex;

use super::core::Core;
use super::jobs::Outcome;
use crate::Error;
use crate::counters::Counter;
use crate::environment::Environment;
use crate::memory::Memtable;
use crate::notify::{Notified, Notify, TaskCount};

/// First delay of a worker that found no space. Each attempt may write as much as there is space for.
const MIN_RETRY_DELAY: Duration = Duration::from_secs(1);
/// Longest delay of a worker that found no space.
const MAX_RETRY_DELAY: Duration = Duration::from_secs(60);

/// How often a flushed memtable is checked for readers before it is left to them.
const MAX_READER_CHECKS: u32 = 20;
/// Delay of the second check for readers; later ones wait longer.
const FIRST_READER_CHECK_DELAY: Duration = Duration::from_millis(1);

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
    /// The tables that wait to be flushed have as much memory as they may, all stores' together.
    pub(crate) tables_wait: AtomicBool,
    /// Bytes of the fastest class that jobs may yet take for copies.
    pub(crate) copying: Mutex<u64>,
    /// Mirrors are being taken away.
    pub(crate) is_trimming: AtomicBool,
    /// A caller was refused while another one trimmed mirrors.
    pub(crate) trims_again: AtomicBool,
    /// Bytes of the fastest class that are wanted for copies of values that are read more than those of evictable
    /// mirrors.
    pub(crate) making_way: AtomicU64,
    /// Time of the last such request, if it had no effect yet.
    pub(crate) asked_for_way: Mutex<Option<Duration>>,
    /// Reads that counted when a round of them ended last, with and without mirrors.
    pub(crate) counted_reads: Mutex<u64>,
    /// Time when a waiting writer last made deletions durable.
    pub(crate) synced_for_room: Mutex<Option<Duration>>,
    is_stopping: Arc<AtomicBool>,
    tasks: TaskCount,
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
            for look in 1..=MAX_READER_CHECKS {
                match Arc::try_unwrap(table) {
                    Ok(table) => {
                        return tasks.spawn_local(&*environment, move || table.take_apart());
                    }
                    Err(read) => table = read,
                }
                if is_stopping.load(Ordering::Acquire) {
                    return;
                }
                environment.sleep(FIRST_READER_CHECK_DELAY * look).await;
            }
        });
    }

    /// Stops them and waits.
    pub(crate) async fn end(&self) {
        self.stop();
        self.tasks.ended().await;
    }
}

impl Core {
    /// Starts the tasks, if anything can be written.
    pub(crate) fn start_background(core: &Arc<Core>) {
        let Some(writing) = &core.writing else { return };
        // Stalled writers check again.
        writing.log.tell_failure(&core.background.progress);
        let spawn = |task: Task| {
            let noticed = core.background.work.notified();
            core.background.tasks.spawn(&*core.environment, run(Arc::downgrade(core), noticed, task));
        };
        spawn(Task::Filters);
        spawn(Task::Flush);
        for _ in 0..core.settings().concurrent_jobs {
            spawn(Task::Job);
        }
    }
}

/// The kind of a background task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Task {
    /// Reads the filters that are to be in memory, once.
    Filters,
    Flush,
    Job,
}

async fn run(weak: Weak<Core>, mut noticed: Notified, task: Task) {
    let mut pause = MIN_RETRY_DELAY;
    loop {
        let again = {
            let Some(core) = weak.upgrade() else { return };
            if core.background.is_stopping() {
                return;
            }
            let did = match task {
                Task::Filters => {
                    let stores = core.stores.read().clone();
                    for store in stores.iter().filter(|store| store.check_there().is_ok()) {
                        core.hold_filters(store).await;
                    }
                    return;
                }
                Task::Flush if core.flush_next().await => Outcome::Progress,
                Task::Flush => core.give_blocks_back().await.map_or(Outcome::Idle, Outcome::RetryAfter),
                Task::Job => core.job_next().await,
            };
            match did {
                Outcome::Progress => continue,
                Outcome::Idle => {
                    // Leftovers of a dropped bulk load are deleted here; no other task would do it before there is
                    // work.
                    if task == Task::Job {
                        let _ = core.delete_retired().await;
                    }
                    None
                }
                // Deleting obsolete objects makes space; a failed deletion is repeated with the next one.
                Outcome::NoSpace => {
                    let _ = core.delete_retired().await;
                    Some(core.environment.sleep(pause))
                }
                Outcome::RetryAfter(later) => {
                    pause = MIN_RETRY_DELAY;
                    Some(core.environment.sleep(later))
                }
            }
        };
        // Between the look and the wait the database may have gone, which notifies too.
        match again {
            None => noticed.await,
            Some(again) => {
                pause = match select(Box::pin(noticed), again).await {
                    Either::Left(_) => MIN_RETRY_DELAY,
                    Either::Right(_) => (pause * 2).min(MAX_RETRY_DELAY),
                };
            }
        }
        let Some(core) = weak.upgrade() else { return };
        noticed = core.background.work.notified();
    }
}
