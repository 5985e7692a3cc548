//! Copying values that are read often from slow classes to the fastest one, within a budget of bytes.
//!
//! Reads that went to a slow class are counted by key. Now and then the worker that finds no other job of the store
//! takes the keys that were read more than once, as many as the budget of the time since allows, and repeats their
//! versions in promoted kvsets with values on the fastest class. Nothing is moved: without the copies nothing is lost.
//! What cannot be read of them is read where they were made from, and they are taken away.

use crate::tuning::maintenance::PROMOTION;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::Result;
use crate::database::maintenance::runner::JobRunner;
use crate::database::maintenance::turn::Turn;
use crate::database::shared::Writing;
use crate::database::state::store_state::StoreState;
use crate::tree::jobs::promote::promote_keys;
use crate::tree::{Change, Edit, Place};

/// Takes away promoted kvsets that could not be read.
///
/// # Errors
/// Those of the manifest.
pub(crate) async fn drop_damaged_copies(jobs: &JobRunner, writing: &Writing) -> Result<()> {
    if !jobs.shared.opener.has_damaged.swap(false, Ordering::AcqRel) {
        return Ok(());
    }
    let stores = jobs.shared.stores.read().clone();
    for store in &stores {
        let Some(_turn) = Turn::take(&jobs.shared, store) else {
            // A job may be about to replace them.
            jobs.shared.opener.has_damaged.store(true, Ordering::Release);
            continue;
        };
        let tree = store.view.read().tree.clone();
        let in_leaf = tree.leaves.iter().flat_map(|leaf| leaf.kvsets.iter().map(|kvset| (leaf.no, kvset)));
        let damaged = in_leaf.filter(|(_, kvset)| kvset.is_damaged());
        let changes =
            damaged.map(|(leaf, kvset)| Change::RemoveKvset { place: Place::Leaf(leaf), kvset: kvset.no() });
        let edit = Edit { changes: changes.collect() };
        drop(tree);
        if edit.is_empty() {
            continue;
        }
        // CRASH: what they repeat is there, whether they are or not.
        jobs.shared.crash.reached("promotion.before-dropping");
        match jobs.installer.install(writing, store, &edit, Vec::new).await {
            Err(_) if store.check_there().is_err() => {}
            installed => installed?,
        }
    }
    jobs.space.delete_retired().await
}

/// Promotes what is worth it; whether anything was. The caller has the store's turn.
pub(crate) async fn promote_next(
    jobs: &JobRunner,
    writing: &Writing,
    store: &Arc<StoreState>,
) -> Result<bool> {
    let rate = store.settings().promoted_bytes_per_second;
    let Some(fastest) = jobs.shared.classes.fastest_of_several().filter(|_| rate > 0) else {
        return Ok(false);
    };
    let now = jobs.shared.environment.now();
    let elapsed = now.saturating_sub(*store.promotion.last.lock().get_or_insert(now));
    if elapsed < PROMOTION.min_interval || jobs.shared.classes.is_fast_full() {
        return Ok(false);
    }
    let budget = (elapsed.min(PROMOTION.max_saved_budget).as_secs_f64() * rate as f64) as u64;
    let keys = store.hot.take(PROMOTION.min_reads, budget);
    if keys.is_empty() {
        return Ok(false);
    }
    *store.promotion.last.lock() = Some(now);
    let tree = Arc::new(store.view.read().tree.without_mirrors());
    let context = jobs.job_context(store)?;
    let output = promote_keys(&context, &tree, &keys, &fastest).await?;
    if output.edit.is_empty() || store.is_dropped.load(Ordering::Acquire) {
        output.abandon(&jobs.shared.objects).await;
        return Ok(false);
    }
    // CRASH: what was written are orphans.
    jobs.shared.crash.reached("promotion.before-manifest");
    jobs.installer.install_output(writing, store, &output).await?;
    jobs.shared.counters.promoted_bytes.add(output.value_bytes_written);
    Ok(true)
}
