//! What is obsolete without anybody noticing: deletes above what they hide, versions that have expired, and what a
//! snapshot kept when it was merged.
//!
//! Jobs are due by numbers and bytes. A store that nobody writes to any more never comes to these, so that what was
//! deleted last would take up its space for ever. When nothing else is to do, such kvsets are merged with those below
//! them; not more often than that takes a tenth of the time, for each store. And a memtable with deletes is written
//! out once nobody has written to it for a while.

use crate::tuning::maintenance::TOMBSTONES;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use crate::database::maintenance::runner::JobRunner;
use crate::database::shared::Writing;
use crate::database::state::store_state::StoreState;
use crate::tree::TreeState;
use crate::tree::garbage::pick_cleaning;
use crate::tree::job::Job;
use crate::{ErrorKind, Result};

/// Whether something is to be cleaned.
enum Due {
    Now(Job),
    In(Duration),
    Never,
}

/// Cleans something of a store for which nothing else is to do; when there will be something to clean, if there is
/// not now.
pub(crate) async fn clean_next(
    jobs: &JobRunner,
    writing: &Writing,
    store: &Arc<StoreState>,
) -> Result<Option<Duration>> {
    let tree = Arc::new(store.view.read().tree.without_mirrors());
    match cleaning(jobs, store, &tree) {
        Due::Never => Ok(Some(close_idle_table(jobs, writing, store))),
        Due::In(later) => Ok(Some(later.min(close_idle_table(jobs, writing, store)))),
        Due::Now(job) => {
            let began = jobs.shared.environment.now();
            let context = jobs.job_context(store)?;
            let done = jobs.run_job(writing, store, (context, tree), job, false).await;
            cleaned(jobs, store, jobs.shared.environment.now().saturating_sub(began));
            match done {
                Ok(true) => Ok(None),
                Err(error) if error.kind() != ErrorKind::NoSpace => Err(error),
                _ => Ok(Some(TOMBSTONES.retry_delay)),
            }
        }
    }
}

/// Returns the tombstone compaction that is due in a store without other jobs.
fn cleaning(jobs: &JobRunner, store: &StoreState, tree: &TreeState) -> Due {
    let now_s = jobs.shared.environment.wall_time_s();
    let life_s = store.settings().time_to_live_s.map_or(TOMBSTONES.assumed_lifetime_s, u64::from);
    let late_s = (life_s / TOMBSTONES.expired_lifetime_divisor).max(TOMBSTONES.min_expired_s);
    let has_expired = |expiry: u32| u64::from(expiry) + late_s <= now_s;
    let Some(job) = pick_cleaning(tree, &jobs.pick_settings(store), has_expired) else {
        let first = tree.kvsets().filter_map(|kvset| kvset.record().info.first_expiry_s).min();
        return first.map_or(Due::Never, |first| {
            Due::In(
                Duration::from_secs((u64::from(first) + late_s).saturating_sub(now_s))
                    .max(TOMBSTONES.min_pause),
            )
        });
    };
    let not_before = Duration::from_nanos(store.cleaning.not_before_ns.load(Ordering::Relaxed));
    match not_before.saturating_sub(jobs.shared.environment.now()) {
        Duration::ZERO => Due::Now(job),
        wait => Due::In(wait),
    }
}

/// Has a memtable with deletes written out that nobody has written to for a while; when there may be one, if
/// there is none.
fn close_idle_table(jobs: &JobRunner, writing: &Writing, store: &Arc<StoreState>) -> Duration {
    let table = store.view.read().active.clone();
    let mut seen = store.cleaning.seen.lock();
    if !table.has_deletes() {
        *seen = None;
        return Duration::MAX;
    }
    let now = jobs.shared.environment.now();
    let (no, bytes) = (table.no, table.bytes());
    let since = match *seen {
        Some((seen_no, seen_bytes, since)) if (seen_no, seen_bytes) == (no, bytes) => since,
        _ => now,
    };
    *seen = Some((no, bytes, since));
    let left = TOMBSTONES.idle_flush_delay.saturating_sub(now.saturating_sub(since));
    if left.is_zero() {
        let _commit = jobs.committer.commit.lock();
        jobs.committer.close_tables(writing, [store]);
        return Duration::MAX;
    }
    left
}

/// To be called when something was cleaned, which took so long.
fn cleaned(jobs: &JobRunner, store: &StoreState, took: Duration) {
    let not_before =
        jobs.shared.environment.now() + (took * TOMBSTONES.pause_factor).max(TOMBSTONES.min_pause);
    store.cleaning.not_before_ns.store(not_before.as_nanos() as u64, Ordering::Relaxed);
}
