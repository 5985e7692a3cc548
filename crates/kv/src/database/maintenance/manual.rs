//! Manual compactions: all jobs of a store, those included that can wait, while somebody waits for them.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use parking_lot::Mutex;

use crate::database::maintenance::coalescing::bring_together;
use crate::database::maintenance::low_space::thin_leaves;
use crate::database::maintenance::pick::ManualCompaction;
use crate::database::maintenance::runner::JobRunner;
use crate::database::maintenance::turn::{Outcome, Turn};
use crate::database::mirrors::eviction::Trim;
use crate::database::shared::Writing;
use crate::database::state::store_state::StoreState;
use crate::{ErrorKind, Result};

/// Begins a manual compaction of the store; its memtable is flushed.
pub(crate) fn thorough<'a>(
    jobs: &JobRunner,
    writing: &Writing,
    store: &'a Arc<StoreState>,
) -> ManualCompaction<'a> {
    let commit = jobs.committer.commit.lock();
    jobs.committer.close_tables(writing, [store]);
    ManualCompaction {
        store,
        now_s: jobs.shared.environment.wall_time_s(),
        end_table: jobs.committer.next_table.load(Ordering::Relaxed),
        last: commit.sequence,
        done: Mutex::default(),
        left_out: Mutex::default(),
    }
}

/// Does all jobs of a store, those included that can wait, for what is in it by now: it ends though somebody goes
/// on writing.
///
/// # Errors
/// `NoSpace`, `Corrupted`, `Device`; `NotFound` if the store is dropped.
pub(crate) async fn compact(jobs: &JobRunner, store: &Arc<StoreState>) -> Result<()> {
    let writing = jobs.shared.writing()?;
    let thorough = thorough(jobs, writing, store);
    written_out(jobs, writing, &thorough).await?;
    let (mut had_free, mut left_out) = (0, None);
    loop {
        let progress = jobs.shared.background.progress.notified();
        jobs.shared.check_open()?;
        store.check_there()?;
        if let Some(error) = writing.log.failure() {
            return Err(error);
        }
        let Some(turn) = Turn::take_from_workers(&jobs.shared, store) else {
            progress.await;
            continue;
        };
        let (error, is_leaf) = match jobs.do_job(writing, store, Some(&thorough)).await {
            Ok(true) => continue,
            Ok(false) => match left_out.take() {
                None => {
                    // The job may still write.
                    let _claim = turn.claim.clone();
                    drop(turn);
                    jobs.mirrors.trim_mirrors(writing, Trim::DueNow).await?;
                    jobs.space.delete_retired().await?;
                    return bring_within_limit(jobs, writing, store).await;
                }
                // The others may have made space for those that there was none for.
                Some(error) => (error, false),
            },
            Err(error) if error.kind() == ErrorKind::NoSpace => (error, thorough.left_out_another()),
            Err(error) => return Err(error),
        };
        // The spare log segment, or unused chunks of key files, may be the space that a job needs to free more.
        writing.log.give_back_ready();
        let is_less = bring_together(jobs, writing, store).await.is_ok_and(|did| did)
            || thin_leaves(jobs, writing, store).await?;
        drop(turn);
        jobs.space.delete_retired().await?;
        if is_leaf {
            left_out = Some(error);
            continue;
        }
        let (free, _) = jobs.shared.objects.room();
        if !is_less && free <= had_free {
            return Err(error);
        }
        had_free = had_free.max(free);
        thorough.leave_out_none();
    }
}

/// Takes what of a store is beyond the limit of the fastest class to the next one. The caller has no store's turn.
async fn bring_within_limit(jobs: &JobRunner, writing: &Writing, store: &Arc<StoreState>) -> Result<()> {
    jobs.space.watch_fast_class();
    loop {
        match jobs.relocator.keep_within_limit(writing, std::slice::from_ref(store)).await? {
            Outcome::Progress => {}
            Outcome::RetryAfter(rest) => jobs.shared.environment.sleep(rest).await,
            Outcome::Idle | Outcome::NoSpace => return Ok(()),
        }
        jobs.shared.check_open()?;
    }
}

/// Waits until what was in memory when somebody began to wait for all jobs of a store is flushed.
///
/// # Errors
/// `NoSpace`, `Device`, `Closed`; `NotFound` if the store is dropped: nobody writes out what it has.
pub(crate) async fn written_out(
    jobs: &JobRunner,
    writing: &Writing,
    thorough: &ManualCompaction<'_>,
) -> Result<()> {
    let mut seen_failures = None;
    loop {
        let progress = jobs.shared.background.progress.notified();
        jobs.shared.writing()?;
        jobs.shared.check_open()?;
        thorough.store.check_there()?;
        if let Some(error) = writing.log.failure() {
            return Err(error);
        }
        if !thorough.has_waiting() {
            return Ok(());
        }
        if let Some(error) = jobs.shared.background_error() {
            // One more time, with what the log had ready.
            let failures = jobs.shared.background.failures.get();
            if failures > *seen_failures.get_or_insert(failures) {
                return Err(error);
            }
        }
        progress.await;
    }
}
