//! The scheduler of maintenance: what a free worker does next.
//!
//! 1. Tasks of the whole database come first, then those of each store, the store with the most root kvsets first.
//! 2. A task that makes progress ends the round, so that the next round begins with the most urgent task again.
//! 3. Tasks of a store's tree need the store's turn: one of them runs at a time. When the tree's job finds no space,
//!    the tasks that free space run instead, and the store rests.
//!
//! [`TASKS`] is the order of precedence. A new kind of maintenance touches four files: its own, with its function and
//! what it keeps of a store (`StoreState::tasks`); the folder's `mod.rs`; this one, for its row; and
//! `docs/kv-internals.md`, which describes it.

use crate::tuning::writes::BACKGROUND;
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;

use crate::database::maintenance::coalescing::bring_together_if_due;
use crate::database::maintenance::low_space::thin_leaves;
use crate::database::maintenance::merges::merge_next;
use crate::database::maintenance::promotion::{drop_damaged_copies, promote_next};
use crate::database::maintenance::runner::JobRunner;
use crate::database::maintenance::tombstones::clean_next;
use crate::database::maintenance::turn::Outcome;
use crate::database::maintenance::turn::Turn;
use crate::database::mirrors::eviction::Trim;
use crate::database::shared::{Shared, Writing};
use crate::database::state::store_state::StoreState;
use crate::{ErrorKind, Result};

/// How a task runs.
type OfDatabase = for<'a> fn(&'a JobRunner, &'a Writing) -> BoxFuture<'a, Result<Outcome>>;

type OfStore = for<'a> fn(&'a JobRunner, &'a Writing, &'a Arc<StoreState>) -> BoxFuture<'a, Result<Outcome>>;

/// When a task runs, and on what.
#[derive(Clone, Copy)]
enum Run {
    /// Once a round, for the whole database.
    Database(OfDatabase),
    /// For each store, beside the task that has its turn.
    Beside(OfStore),
    /// For each store, with its turn.
    InTurn(OfStore),
    /// For a store whose tree found no space, with its turn.
    OnNoSpace(OfStore),
}

/// What a task without space means for its store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum WithoutSpace {
    /// It is a failure like any other.
    Fails,
    /// The task is optional: others of the store are left for this round.
    Skips,
    /// The store rests, and the worker looks again later.
    Rests,
    /// Tasks that free space run first, and then the store rests.
    FreesSpace,
}

/// A kind of maintenance.
struct TaskKind {
    /// Its name in `docs/kv-internals.md`.
    #[cfg_attr(not(test), expect(dead_code, reason = "a test looks for it in the documents"))]
    name: &'static str,
    run: Run,
    without_space: WithoutSpace,
    /// Progress ends the round.
    ends_round: bool,
}

/// A task of which no particulars are said.
const fn task(name: &'static str, run: Run) -> TaskKind {
    TaskKind { name, run, without_space: WithoutSpace::Fails, ends_round: true }
}

fn progress(made: bool) -> Outcome {
    if made { Outcome::Progress } else { Outcome::Idle }
}

/// The outcome of a tombstone compaction, which knows when the next one is due.
fn cleaned(next: Option<Duration>) -> Outcome {
    match next {
        None => Outcome::Progress,
        Some(Duration::MAX) => Outcome::Idle,
        Some(later) => Outcome::RetryAfter(later),
    }
}

/// All stores, those with the most root kvsets first.
fn stores_by_root(jobs: &JobRunner) -> Vec<Arc<StoreState>> {
    let mut stores = jobs.shared.stores.read().clone();
    stores.sort_by_key(|store| std::cmp::Reverse(store.view.read().tree.root.len()));
    stores.retain(|store| store.check_there().is_ok());
    stores
}

/// All maintenance, in the order of precedence.
static TASKS: [TaskKind; 11] = [
    task(
        "log return",
        Run::Database(|jobs, writing| {
            Box::pin(async move {
                jobs.relocator.bring_log_back(writing).await;
                Ok(Outcome::Idle)
            })
        }),
    ),
    task(
        "mirror eviction",
        Run::Database(|jobs, writing| {
            Box::pin(async move { jobs.mirrors.trim_mirrors(writing, Trim::Due).await.map(progress) })
        }),
    ),
    task(
        "damaged copies",
        Run::Database(|jobs, writing| {
            Box::pin(async move { drop_damaged_copies(jobs, writing).await.map(|()| Outcome::Idle) })
        }),
    ),
    TaskKind {
        ends_round: false,
        ..task(
            "limit of the fastest class",
            Run::Database(|jobs, writing| {
                Box::pin(async move {
                    let stores = stores_by_root(jobs);
                    jobs.relocator.keep_within_limit(writing, &stores).await
                })
            }),
        )
    },
    task(
        "chunk coalescing",
        Run::Beside(|jobs, writing, store| {
            Box::pin(async move { Ok(progress(bring_together_if_due(jobs, writing, store).await)) })
        }),
    ),
    TaskKind {
        without_space: WithoutSpace::Rests,
        ..task(
            "merge",
            Run::Beside(|jobs, writing, store| {
                Box::pin(async move { merge_next(jobs, writing, store).await.map(progress) })
            }),
        )
    },
    TaskKind {
        without_space: WithoutSpace::FreesSpace,
        ..task(
            "tree job",
            Run::InTurn(|jobs, writing, store| {
                Box::pin(async move { jobs.do_job(writing, store, None).await.map(progress) })
            }),
        )
    },
    TaskKind {
        without_space: WithoutSpace::Skips,
        ..task(
            "promotion",
            Run::InTurn(|jobs, writing, store| {
                Box::pin(async move { promote_next(jobs, writing, store).await.map(progress) })
            }),
        )
    },
    task(
        "tombstone compaction",
        Run::InTurn(|jobs, writing, store| {
            Box::pin(async move { clean_next(jobs, writing, store).await.map(cleaned) })
        }),
    ),
    task(
        "urgent tombstone compaction",
        Run::OnNoSpace(|jobs, writing, store| {
            Box::pin(async move {
                // It may need less space than it frees. Otherwise the log gives up its spare segment, since jobs free
                // more than they take.
                let next = clean_next(jobs, writing, store).await;
                if !matches!(next, Ok(None)) {
                    writing.log.give_back_ready();
                }
                next.map(|next| progress(next.is_none()))
            })
        }),
    ),
    task(
        "low-space compaction",
        Run::OnNoSpace(|jobs, writing, store| {
            Box::pin(async move { thin_leaves(jobs, writing, store).await.map(progress) })
        }),
    ),
];

/// Gives free workers the next task of maintenance.
#[derive(Debug)]
pub(crate) struct Scheduler {
    pub(crate) shared: Arc<Shared>,
    pub(crate) jobs: Arc<JobRunner>,
}

impl Scheduler {
    /// Runs the next task, if there is one.
    pub(crate) async fn job_next(&self) -> Outcome {
        let Ok(writing) = self.shared.writing() else { return Outcome::Idle };
        if writing.log.failure().is_some() {
            return Outcome::Idle;
        }
        let mut left = Outcome::Idle;
        for task in &TASKS {
            let Run::Database(run) = task.run else { continue };
            match run(&self.jobs, writing).await {
                Ok(Outcome::Progress) if task.ends_round => return Outcome::Progress,
                Ok(outcome) => left = left.or(outcome),
                Err(error) => writing.log.fail(&error),
            }
        }
        let mut did = Outcome::Idle;
        for store in &stores_by_root(&self.jobs) {
            match self.next_of_store(writing, store).await {
                Outcome::Progress => return Outcome::Progress,
                outcome => did = did.or(outcome),
            }
        }
        did.or(left)
    }

    /// Runs the next task of a store, if there is one.
    async fn next_of_store(&self, writing: &Writing, store: &Arc<StoreState>) -> Outcome {
        let mut did = Outcome::Idle;
        for task in &TASKS {
            let Run::Beside(run) = task.run else { continue };
            match run(&self.jobs, writing, store).await {
                Ok(Outcome::Progress) => return Outcome::Progress,
                Ok(outcome) => did = did.or(outcome),
                Err(error)
                    if error.kind() == ErrorKind::NoSpace && task.without_space == WithoutSpace::Rests =>
                {
                    self.shared.environment.sleep(BACKGROUND.no_space_pause).await;
                    did = Outcome::NoSpace;
                }
                Err(error) => writing.log.fail(&error),
            }
        }
        let Some(turn) = Turn::take(&self.shared, store) else { return did };
        for task in &TASKS {
            let Run::InTurn(run) = task.run else { continue };
            match run(&self.jobs, writing, store).await {
                Ok(Outcome::Progress) => return Outcome::Progress,
                Ok(outcome) => did = did.or(outcome),
                Err(error) if error.kind() != ErrorKind::NoSpace => {
                    writing.log.fail(&error);
                    return did;
                }
                Err(error) => match task.without_space {
                    WithoutSpace::Skips => return did,
                    WithoutSpace::Fails => {
                        writing.log.fail(&error);
                        return did;
                    }
                    WithoutSpace::Rests | WithoutSpace::FreesSpace => {
                        self.shared.counters.jobs_without_space.add(1);
                        if self.free_space(writing, store).await == Outcome::Progress {
                            return Outcome::Progress;
                        }
                        // A flush may free space meanwhile.
                        drop(turn);
                        self.shared.environment.sleep(BACKGROUND.no_space_pause).await;
                        return Outcome::NoSpace;
                    }
                },
            }
        }
        did
    }

    /// Runs the tasks that free space in a store whose tree found none.
    async fn free_space(&self, writing: &Writing, store: &Arc<StoreState>) -> Outcome {
        for task in &TASKS {
            let Run::OnNoSpace(run) = task.run else { continue };
            match run(&self.jobs, writing, store).await {
                Ok(Outcome::Progress) => return Outcome::Progress,
                Ok(_) => {}
                Err(error) => writing.log.fail(&error),
            }
        }
        Outcome::Idle
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn phase(task: &TaskKind) -> u8 {
        match task.run {
            Run::Database(_) => 0,
            Run::Beside(_) => 1,
            Run::InTurn(_) => 2,
            Run::OnNoSpace(_) => 3,
        }
    }

    #[test]
    fn tasks_are_in_the_order_in_which_they_run() {
        assert!(TASKS.iter().map(phase).is_sorted());
        let mut names: Vec<&str> = TASKS.iter().map(|task| task.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), TASKS.len(), "two tasks have one name");
    }

    #[test]
    fn each_task_is_in_the_documents() {
        let page = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/kv-internals.md");
        let page = std::fs::read_to_string(page).unwrap();
        let missing: Vec<_> = TASKS
            .iter()
            .map(|task| task.name)
            .filter(|name| !page.contains(&format!("| {name} |")))
            .collect();
        assert_eq!(missing, Vec::<&str>::new());
    }
}
