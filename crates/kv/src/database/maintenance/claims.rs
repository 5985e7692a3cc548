//! Spills and merges *claim* the kvsets of the root that they take away, so that no two take the same.

use std::collections::BTreeSet;

use crate::database::background::Background;
use crate::database::maintenance::runner::JobRunner;
use crate::database::state::store_state::StoreState;
use crate::tree::KvsetNo;

/// Kvsets of a root that nobody else takes away.
#[derive(Debug)]
pub(crate) struct Claim<'a> {
    background: &'a Background,
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
            self.background.progress.notify();
            self.background.work.notify();
        }
    }
}

impl JobRunner {
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
        Some(Claim { background: &self.shared.background, store, numbers: numbers.to_vec() })
    }
}
