//! Merging kvsets of the root while a spill goes on.
//!
//! A spill to a slow class may take longer than memtables take to be filled. As long as the fastest class has space,
//! that is no reason to hold writers back: only the number of kvsets is in the way of reads, and a merge of their keys
//! makes few of many.
//!
//! Spills and merges *claim* the kvsets they take away, so that no two take the same.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::core::{Core, Writing};
use super::job_memory::JobMemory;
use super::store::StoreState;
use crate::Result;
use crate::tree::pick::{Job, pick_merge};
use crate::tree::{JobContext, KvsetNo, TreeState, merge};

/// A merge makes at most this fraction (1/n) of the fastest class: its output is spilled, and gives space back, as a
/// whole.
const MAX_FAST_CLASS_DIVISOR: u64 = 8;

/// A spill of what was merged reads the log once for each round of values that fits in its memory: no more is merged
/// than there has to be for what waits at the root to be few kvsets, but as many memtables in any case, which are
/// about a round.
const MAX_SHARE_OF_ROOT: u64 = 8;
/// A merge may always make as much as this many memtables.
const MIN_MEMTABLES: u64 = 5;

/// Most bytes of keys that a merge holds in memory.
const MAX_BATCH_BYTES: u64 = 4 << 20;

/// Kvsets of a root that a spill or a merge is about to take away.
#[derive(Debug, Default)]
pub(crate) struct Taken {
    pub(crate) kvsets: BTreeSet<KvsetNo>,
    /// A caller was refused and is notified at the end.
    is_wanted: bool,
}

impl Taken {
    /// Returns true if any of them is claimed. The caller is then notified when a claim ends, of these or of others.
    pub(super) fn has_any(&mut self, numbers: &[KvsetNo]) -> bool {
        let has_any = numbers.iter().any(|no| self.kvsets.contains(no));
        self.is_wanted |= has_any;
        has_any
    }
}

/// Kvsets of a root that nobody else takes away.
#[derive(Debug)]
pub(crate) struct Claim<'a> {
    core: &'a Core,
    store: &'a StoreState,
    numbers: Vec<KvsetNo>,
}

impl Drop for Claim<'_> {
    fn drop(&mut self) {
        let mut taken = self.store.taken.lock();
        self.numbers.iter().for_each(|no| {
            taken.kvsets.remove(no);
        });
        let was_wanted = std::mem::take(&mut taken.is_wanted);
        drop(taken);
        // Only if somebody has waited: a job that failed is not to be tried again for its own sake.
        if was_wanted {
            self.core.background.progress.notify();
            self.core.background.work.notify();
        }
    }
}

/// Most bytes of a merge that spills can take up again.
fn few_bytes(root_bytes: u64, table_bytes: u64) -> u64 {
    (MIN_MEMTABLES * table_bytes).max(root_bytes / MAX_SHARE_OF_ROOT)
}

impl Core {
    /// Claims kvsets of the store's root; `None` if another has, or if they are there no more.
    pub(crate) fn claim<'a>(&'a self, store: &'a StoreState, numbers: &[KvsetNo]) -> Option<Claim<'a>> {
        let mut taken = store.taken.lock();
        let tree = store.view.read().tree.clone();
        let there: BTreeSet<KvsetNo> = tree.root.iter().map(|kvset| kvset.no()).collect();
        if taken.has_any(numbers) {
            return None;
        }
        if numbers.iter().any(|no| !there.contains(no)) {
            return None;
        }
        taken.kvsets.extend(numbers);
        Some(Claim { core: self, store, numbers: numbers.to_vec() })
    }

    /// Merges kvsets of the store's root, if there are too many for the spills' pace; whether it did.
    pub(crate) async fn merge_next(&self, writing: &Writing, store: &Arc<StoreState>) -> Result<bool> {
        let tree = store.view.read().tree.clone();
        let settings = self.pick_settings(store);
        // Half as many again as make a spill.
        if tree.root.len() < settings.root_kvsets + settings.root_kvsets / 2 {
            return Ok(false);
        }
        let mut most_bytes = settings.root_bytes.min(self.fast_room() / MAX_FAST_CLASS_DIVISOR);
        // Writers are not slowed for what spills would rather have.
        if tree.root.len() < self.settings().slow_root_kvsets {
            let root_bytes = tree.root.iter().map(|kvset| kvset.record().info.data_bytes()).sum();
            most_bytes = most_bytes.min(few_bytes(root_bytes, self.settings().table_bytes()));
        }
        let numbers = {
            let taken = store.taken.lock();
            pick_merge(&tree.root, &settings, most_bytes, |no| taken.kvsets.contains(&no))
        };
        if numbers.is_empty() {
            return Ok(false);
        }
        let context = self.job_context(store)?;
        self.merge_those(writing, store, (context, tree), &numbers).await
    }

    /// Merges kvsets of the store's root, neighbours in `tree`, unless another has them; whether it did.
    pub(super) async fn merge_those(
        &self,
        writing: &Writing,
        store: &Arc<StoreState>,
        (context, tree): (JobContext, Arc<TreeState>),
        numbers: &[KvsetNo],
    ) -> Result<bool> {
        let began = self.environment.now();
        let Some(_claim) = self.claim(store, numbers) else { return Ok(false) };
        let whole = tree;
        let tree = Arc::new(whole.without_mirrors());
        drop(whole);
        let batch_bytes = MAX_BATCH_BYTES.min(context.batch_bytes / 2);
        let _memory = JobMemory::take(self, 2 * batch_bytes).await;
        let context = JobContext { batch_bytes, ..context };
        let output = merge(&context, &tree, numbers).await?;
        self.install_job(writing, store, (&context, tree), (Job::MERGE, began), output).await
    }
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
