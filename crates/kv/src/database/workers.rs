//! The tasks of an open database: one writes memtables out, the others do jobs of the trees; and one reads filters,
//! once.
//!
//! They hold the database weakly: when its last handle goes, they end. Whoever closes it waits for them.

use crate::tuning::writes::BACKGROUND;
use std::sync::{Arc, Weak};

use futures::future::{Either, select};

use crate::database::core::Core;
use crate::database::maintenance::turn::Outcome;
use crate::notify::Notified;

impl Core {
    /// Starts the tasks, if anything can be written.
    pub(crate) fn start_background(core: &Arc<Core>) {
        let Some(writing) = &core.shared.writing else { return };
        // Stalled writers check again.
        writing.log.tell_failure(&core.shared.background.progress);
        let spawn = |task: Task| {
            let noticed = core.shared.background.work.notified();
            core.shared
                .background
                .tasks
                .spawn(&*core.shared.environment, run(Arc::downgrade(core), noticed, task));
        };
        spawn(Task::Filters);
        spawn(Task::Flush);
        for _ in 0..core.shared.settings().concurrent_jobs {
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
    let mut pause = BACKGROUND.min_retry_delay;
    loop {
        let again = {
            let Some(core) = weak.upgrade() else { return };
            if core.shared.background.is_stopping() {
                return;
            }
            let did = match task {
                Task::Filters => {
                    let stores = core.shared.stores.read().clone();
                    for store in stores.iter().filter(|store| store.check_there().is_ok()) {
                        store.hold_filters(&core.shared.background).await;
                    }
                    return;
                }
                Task::Flush if core.flusher.flush_next().await => Outcome::Progress,
                Task::Flush => {
                    core.memory.give_blocks_back().await.map_or(Outcome::Idle, Outcome::RetryAfter)
                }
                Task::Job => core.scheduler.job_next().await,
            };
            match did {
                Outcome::Progress => continue,
                Outcome::Idle => {
                    // Leftovers of a dropped bulk load are deleted here; no other task would do it before there is
                    // work.
                    if task == Task::Job {
                        let _ = core.space.delete_retired().await;
                    }
                    None
                }
                // Deleting obsolete objects makes space; a failed deletion is repeated with the next one.
                Outcome::NoSpace => {
                    let _ = core.space.delete_retired().await;
                    Some(core.shared.environment.sleep(pause))
                }
                Outcome::RetryAfter(later) => {
                    pause = BACKGROUND.min_retry_delay;
                    Some(core.shared.environment.sleep(later))
                }
            }
        };
        // Between the look and the wait the database may have gone, which notifies too.
        match again {
            None => noticed.await,
            Some(again) => {
                pause = match select(Box::pin(noticed), again).await {
                    Either::Left(_) => BACKGROUND.min_retry_delay,
                    Either::Right(_) => (pause * 2).min(BACKGROUND.max_retry_delay),
                };
            }
        }
        let Some(core) = weak.upgrade() else { return };
        noticed = core.shared.background.work.notified();
    }
}
