//! Deletes give space back where there is none to bring them down.
//!
//! A spill writes a key file for each leaf that it has something for before anything goes, a chunk or more each. Where
//! the volume is full of what was deleted key by key there is no space for that, and as long as the deletes stay at the
//! root nothing of it comes free. Then leaves are merged one by one with what the root hides of them: that takes no
//! more space than one leaf's keys, which is [reserved](crate::database::space::reservation), and what is left of them
//! is less each time.

use crate::tuning::maintenance::LOW_SPACE;
use std::collections::BTreeSet;
use std::sync::Arc;

use parking_lot::Mutex;

use crate::database::maintenance::runner::JobRunner;
use crate::database::memory::job_memory::JobMemory;
use crate::database::shared::Writing;
use crate::database::state::store_state::StoreState;
use crate::pace::Pace;
use crate::tree::job::key_bytes;
use crate::tree::{Kvset, LeafNo, TreeState};
use crate::{ErrorKind, Result};

/// Name of these jobs in statistics.
const THINNING: &str = "thinning";

/// Which leaves were merged with what the root hides of them.
#[derive(Debug, Default)]
pub(crate) struct Thinned {
    /// Deletes of the root at that time.
    deletes: u64,
    leaves: BTreeSet<LeafNo>,
}

impl Thinned {
    /// The leaf to be merged next: the largest of those that were not, since the root has deleted about as much as it
    /// does.
    fn next(&mut self, tree: &TreeState) -> Option<LeafNo> {
        let deletes: u64 = tree.root.iter().map(|kvset| kvset.record().info.deletes).sum();
        let ranges: u64 = tree.root.iter().map(|kvset| kvset.record().info.range_tombstones).sum();
        let deletes_and_ranges = deletes + ranges;
        if deletes_and_ranges.abs_diff(self.deletes) > self.deletes / LOW_SPACE.more_deletes_divisor {
            *self = Thinned { deletes: deletes_and_ranges, leaves: BTreeSet::new() };
        }
        let filled = tree.leaves.iter().filter(|leaf| !leaf.kvsets.is_empty());
        let entries: u64 =
            filled.clone().flat_map(|leaf| leaf.kvsets.iter()).map(|kvset| kvset.record().info.entries).sum();
        if ranges == 0 && deletes.saturating_mul(LOW_SPACE.min_deletes_divisor) < entries.max(1) {
            return None;
        }
        let data_bytes =
            |kvsets: &[Arc<Kvset>]| kvsets.iter().map(|kvset| kvset.record().info.data_bytes()).sum::<u64>();
        let left = filled.filter(|leaf| !self.leaves.contains(&leaf.no));
        let largest = left.max_by_key(|leaf| data_bytes(&leaf.kvsets))?.no;
        self.leaves.insert(largest);
        Some(largest)
    }
}

/// Merges leaves of a store with what the root hides of them until there is space to bring that down, or all have
/// been; whether there is more than before. To be called by whoever has the turn to do the store's jobs, and found
/// no space.
///
/// # Errors
/// `Corrupted`, `Device`.
pub(crate) async fn thin_leaves(
    jobs: &JobRunner,
    writing: &Writing,
    store: &Arc<StoreState>,
) -> Result<bool> {
    let (room_before, _) = jobs.shared.objects.room();
    loop {
        let tree = store.view.read().tree.clone();
        let (room, _) = jobs.shared.objects.room();
        let wanted = tree.leaves.len() as u64 * jobs.shared.objects.volume().chunk_bytes()
            + tree.root.iter().map(key_bytes).sum::<u64>();
        let next = || store.tasks.of::<Mutex<Thinned>>().lock().next(&tree);
        let Some(leaf) = (room < wanted && !jobs.shared.background.is_stopping()).then(next).flatten() else {
            return Ok(room > room_before);
        };
        match thin(jobs, writing, store, tree, leaf).await {
            Err(error) if error.kind() == ErrorKind::NoSpace => {}
            thinned => thinned?,
        }
        jobs.space.delete_retired().await?;
    }
}

async fn thin(
    jobs: &JobRunner,
    writing: &Writing,
    store: &Arc<StoreState>,
    tree: Arc<TreeState>,
    leaf: LeafNo,
) -> Result<()> {
    let began = jobs.shared.environment.now();
    let mut context = jobs.job_context(store)?;
    context.takes_last_room = true;
    context.pace = Pace::unbounded();
    let whole = tree;
    let tree = Arc::new(whole.without_mirrors());
    drop(whole);
    let _memory = JobMemory::take(&jobs.memory, context.batch_bytes / 2).await;
    let output = crate::tree::thin(&context, &tree, leaf).await?;
    jobs.install_job(writing, store, (&context, tree), (THINNING, began), output).await?;
    Ok(())
}
