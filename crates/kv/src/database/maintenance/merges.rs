//! Merging kvsets of the root while a spill goes on.
//!
//! A spill to a slow class may take longer than memtables take to be filled. As long as the fastest class has space,
//! that is no reason to hold writers back: only the number of kvsets is in the way of reads, and a merge of their keys
//! makes few of many.
//!
//! Spills and merges *claim* the kvsets they take away, so that no two take the same.

use crate::tuning::maintenance::MERGES;
use std::sync::Arc;

use crate::Result;
use crate::database::maintenance::runner::JobRunner;
use crate::database::memory::job_memory::JobMemory;
use crate::database::shared::Writing;
use crate::database::state::store_state::StoreState;
use crate::tree::job::Job;
use crate::tree::spill_choice::pick_merge;
use crate::tree::{JobContext, KvsetNo, TreeState, merge};

/// Most bytes of a merge that spills can take up again.
fn few_bytes(root_bytes: u64, table_bytes: u64) -> u64 {
    (MERGES.min_memtables * table_bytes).max(root_bytes / MERGES.max_share_of_root)
}

/// Merges kvsets of the store's root, if there are too many for the spills' pace; whether it did.
pub(crate) async fn merge_next(jobs: &JobRunner, writing: &Writing, store: &Arc<StoreState>) -> Result<bool> {
    let tree = store.view.read().tree.clone();
    let settings = jobs.pick_settings(store);
    // Half as many again as make a spill.
    if tree.root.len() < settings.root_kvsets + settings.root_kvsets / 2 {
        return Ok(false);
    }
    let mut most_bytes = settings.root_bytes.min(jobs.space.fast_room() / MERGES.max_fast_class_divisor);
    // Writers are not slowed for what spills would rather have.
    if tree.root.len() < jobs.shared.settings().slow_root_kvsets {
        let root_bytes = tree.root.iter().map(|kvset| kvset.record().info.data_bytes()).sum();
        most_bytes = most_bytes.min(few_bytes(root_bytes, jobs.shared.settings().table_bytes()));
    }
    let numbers = {
        let taken = store.taken.lock();
        pick_merge(&tree.root, &settings, most_bytes, |no| taken.kvsets.contains(&no))
    };
    if numbers.is_empty() {
        return Ok(false);
    }
    let context = jobs.job_context(store)?;
    merge_those(jobs, writing, store, (context, tree), &numbers).await
}

/// Merges kvsets of the store's root, neighbours in `tree`, unless another has them; whether it did.
pub(crate) async fn merge_those(
    jobs: &JobRunner,
    writing: &Writing,
    store: &Arc<StoreState>,
    (context, tree): (JobContext, Arc<TreeState>),
    numbers: &[KvsetNo],
) -> Result<bool> {
    let began = jobs.shared.environment.now();
    let Some(_claim) = jobs.claim(store, numbers) else { return Ok(false) };
    let whole = tree;
    let tree = Arc::new(whole.without_mirrors());
    drop(whole);
    let batch_bytes = MERGES.max_batch_bytes.min(context.batch_bytes / 2);
    let _memory = JobMemory::take(&jobs.memory, 2 * batch_bytes).await;
    let context = JobContext { batch_bytes, ..context };
    let output = merge(&context, &tree, numbers).await?;
    jobs.install_job(writing, store, (&context, tree), (Job::MERGE, began), output).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_merge_makes_no_more_than_few_tables_or_a_part_of_the_root() {
        assert_eq!(
            few_bytes(100 << 20, 32 << 20),
            160 << 20,
            "few tables, which a spill moves in a round or two"
        );
        assert_eq!(few_bytes(4 << 30, 32 << 20), 512 << 20, "so that eight are enough for a large root");
        assert_eq!(few_bytes(0, 64 << 10), 320 << 10);
    }
}
