//! Chunks that are filled: where space is short, those that kvsets take and do not use are the nearest.

use crate::tuning::space::RESERVATION;
use std::collections::BTreeSet;
use std::sync::Arc;

use crate::Result;
use crate::database::maintenance::merges::merge_those;
use crate::database::maintenance::runner::JobRunner;
use crate::database::maintenance::turn::Turn;
use crate::database::shared::Writing;
use crate::database::state::store_state::StoreState;
use crate::pace::Pace;
use crate::tree::chunk_coalescing::{Together, pick_together};
use crate::tree::job::Job;
use crate::tree::{JobContext, KvsetNo, LeafNo, TreeState};

/// Merges neighbours of a store's tree that give chunks back; whether it did. To be called by whoever has the turn
/// to do the store's jobs.
///
/// # Errors
/// `NoSpace`, `Corrupted`, `Device`.
pub(crate) async fn bring_together(
    jobs: &JobRunner,
    writing: &Writing,
    store: &Arc<StoreState>,
) -> Result<bool> {
    let chunk_bytes = jobs.shared.objects.volume().chunk_bytes();
    let tree = store.view.read().tree.clone();
    let taken = store.taken.lock().kvsets.clone();
    let (free, _) = jobs.shared.objects.room();
    let picked = pick_together(&tree, chunk_bytes, free / chunk_bytes, |no| taken.contains(&no));
    let Some(picked) = picked else { return Ok(false) };
    let mut context = jobs.job_context(store)?;
    context.takes_last_room = true;
    match picked {
        Together::Root(kvsets) => merge_those(jobs, writing, store, (context, tree), &kvsets).await,
        Together::Leaf(leaf, kvsets) => {
            merge_of_leaf(jobs, writing, store, (context, tree), leaf, kvsets).await
        }
        Together::Down(leaf, kvsets) => {
            // Values stay where they are: what is wanted is the space of keys.
            context.placement.moves_values = false;
            context.pace = Pace::unbounded();
            if !jobs.run_job(writing, store, (context, tree), Job::Spill { kvsets }, false).await? {
                return Ok(false);
            }
            let mut context = jobs.job_context(store)?;
            context.takes_last_room = true;
            let tree = store.view.read().tree.clone();
            let Some(found) = tree.leaf_by_no(leaf) else { return Ok(true) };
            let kvsets: Vec<_> = found.kvsets.iter().map(|kvset| kvset.no()).collect();
            if kvsets.is_empty() {
                return Ok(true);
            }
            merge_of_leaf(jobs, writing, store, (context, tree), leaf, kvsets).await
        }
    }
}

async fn merge_of_leaf(
    jobs: &JobRunner,
    writing: &Writing,
    store: &Arc<StoreState>,
    (mut context, whole): (JobContext, Arc<TreeState>),
    leaf: LeafNo,
    kvsets: Vec<KvsetNo>,
) -> Result<bool> {
    context.pace = Pace::unbounded();
    let tree = Arc::new(whole.without_mirrors());
    drop(whole);
    let job = Job::Compact { leaf, kvsets, emptied: BTreeSet::new() };
    jobs.run_job(writing, store, (context, tree), job, false).await
}

/// The same if nobody has the turn, space is short, and mirrors are not what takes it; a failure is for the next
/// job to tell.
pub(crate) async fn bring_together_if_due(
    jobs: &JobRunner,
    writing: &Writing,
    store: &Arc<StoreState>,
) -> bool {
    if !is_to_bring_together(jobs) {
        return false;
    }
    let Some(_turn) = Turn::take(&jobs.shared, store) else { return false };
    bring_together(jobs, writing, store).await.is_ok_and(|did| did)
}

fn is_to_bring_together(jobs: &JobRunner) -> bool {
    let (free, kept) = jobs.shared.objects.room();
    let is_due = free < kept || jobs.shared.objects.have_hardly_room();
    is_due && free + jobs.space.mirrored_bytes() <= kept
}

/// The same before a memtable is flushed, whose key file takes one of the last chunks: of its store, or
/// else of any. Whoever has the turn has some time to give it back.
pub(crate) async fn make_room_for_table(jobs: &JobRunner, writing: &Writing, store: &Arc<StoreState>) {
    let began = jobs.shared.environment.now();
    while jobs.shared.objects.have_hardly_room() && is_to_bring_together(jobs) {
        if let Some(turn) = Turn::take(&jobs.shared, store) {
            let did = bring_together(jobs, writing, store).await.is_ok_and(|did| did);
            drop(turn);
            if !did {
                bring_others_together(jobs, writing, store).await;
            }
            // Merged kvsets are deleted after their last reader.
            let _ = jobs.space.delete_retired().await;
            return;
        }
        if jobs.shared.environment.now().saturating_sub(began) >= RESERVATION.space_wait {
            return;
        }
        jobs.shared.environment.sleep(RESERVATION.space_poll_interval).await;
    }
}

/// The same for the first of the other stores that gives something back, and in which nobody works.
async fn bring_others_together(jobs: &JobRunner, writing: &Writing, mine: &Arc<StoreState>) {
    let stores = jobs.shared.stores.read().clone();
    let others = stores.iter().filter(|store| !Arc::ptr_eq(store, mine) && store.check_there().is_ok());
    for store in others {
        let Some(_turn) = Turn::take(&jobs.shared, store) else { continue };
        if bring_together(jobs, writing, store).await.is_ok_and(|did| did) {
            return;
        }
    }
}
