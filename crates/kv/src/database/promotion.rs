//! Copying values that are read often from slow classes to the fastest one, within a budget of bytes.
//!
//! Reads that went to a slow class are counted by key. Now and then the worker that finds no other job of the store
//! takes the keys that were read more than once, as many as the budget of the time since allows, and repeats their
//! versions in promoted kvsets with values on the fastest class. Nothing is moved: without the copies nothing is lost.
//! What cannot be read of them is read where they were made from, and they are taken away.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use parking_lot::Mutex;

use super::core::{Core, Writing};
use super::jobs::Turn;
use super::store::StoreState;
use crate::Result;
use crate::cache::HeldValue;
use crate::tree::jobs::promote::promote_keys;
use crate::tree::{Change, Edit, FoundVersion, Place, TreeState};

/// Reads that make a key worth promoting.
const MIN_READS: u32 = 2;

/// Reads of slow classes between two checks for keys to promote.
const READS_PER_CHECK: u64 = 256;

/// Least time between two promotions of a store.
const MIN_INTERVAL: Duration = Duration::from_secs(1);
/// Longest time whose unused budget is saved up.
const MAX_SAVED_BUDGET: Duration = Duration::from_secs(10);

/// Time of a store's last promotion.
#[derive(Debug, Default)]
pub(crate) struct Promotion {
    /// Time of the last promotion, or of the first possible one; the budget accumulates from then on.
    last: Mutex<Option<Duration>>,
    reads: AtomicU64,
}

impl Core {
    /// The value, which may be `held`, counted if it came from a value segment's device.
    pub(crate) async fn value_counting(
        &self,
        store: &StoreState,
        tree: &TreeState,
        key: &[u8],
        held: Option<&HeldValue>,
        found: &FoundVersion,
    ) -> Result<Option<Bytes>> {
        let (value, from) = found.value(key, held, store.owner, tree).await?;
        let Some(segment) = from else { return Ok(value) };
        if !self.classes.has_faster_than(segment.class.as_deref()) {
            return Ok(value);
        }
        if let Some(leaf) = tree.leaf(key)
            && store.unmirrored.note_read(leaf.no, found.stored_bytes())
        {
            self.background.work.notify();
        }
        if store.hot.counts() {
            store.hot.note(key, found.stored_bytes());
            if store.promotion.reads.fetch_add(1, Ordering::Relaxed) % READS_PER_CHECK == READS_PER_CHECK - 1
            {
                self.background.work.notify();
            }
        }
        Ok(value)
    }

    /// Takes away promoted kvsets that could not be read.
    ///
    /// # Errors
    /// Those of the manifest.
    pub(crate) async fn drop_damaged_copies(&self, writing: &Writing) -> Result<()> {
        if !self.opener.has_damaged.swap(false, Ordering::AcqRel) {
            return Ok(());
        }
        let stores = self.stores.read().clone();
        for store in &stores {
            let Some(_turn) = Turn::take(self, store) else {
                // A job may be about to replace them.
                self.opener.has_damaged.store(true, Ordering::Release);
                continue;
            };
            let tree = store.view.read().tree.clone();
            let in_leaf =
                tree.leaves.iter().flat_map(|leaf| leaf.kvsets.iter().map(|kvset| (leaf.no, kvset)));
            let damaged = in_leaf.filter(|(_, kvset)| kvset.is_damaged());
            let changes = damaged
                .map(|(leaf, kvset)| Change::RemoveKvset { place: Place::Leaf(leaf), kvset: kvset.no() });
            let edit = Edit { changes: changes.collect() };
            drop(tree);
            if edit.is_empty() {
                continue;
            }
            // CRASH: what they repeat is there, whether they are or not.
            self.crash.reached("promotion.before-dropping");
            match self.install(writing, store, &edit, Vec::new).await {
                Err(_) if store.check_there().is_err() => {}
                installed => installed?,
            }
        }
        self.delete_retired().await
    }

    /// Promotes what is worth it; whether anything was. The caller has the store's turn.
    pub(crate) async fn promote_next(&self, writing: &Writing, store: &Arc<StoreState>) -> Result<bool> {
        let rate = store.settings().promoted_bytes_per_second;
        let Some(fastest) = self.classes.fastest_of_several().filter(|_| rate > 0) else { return Ok(false) };
        let now = self.environment.now();
        let elapsed = now.saturating_sub(*store.promotion.last.lock().get_or_insert(now));
        if elapsed < MIN_INTERVAL || self.classes.is_fast_full() {
            return Ok(false);
        }
        let budget = (elapsed.min(MAX_SAVED_BUDGET).as_secs_f64() * rate as f64) as u64;
        let keys = store.hot.take(MIN_READS, budget);
        if keys.is_empty() {
            return Ok(false);
        }
        *store.promotion.last.lock() = Some(now);
        let tree = Arc::new(store.view.read().tree.without_mirrors());
        let context = self.job_context(store)?;
        let output = promote_keys(&context, &tree, &keys, &fastest).await?;
        if output.edit.is_empty() || store.is_dropped.load(Ordering::Acquire) {
            output.abandon(&self.objects).await;
            return Ok(false);
        }
        // CRASH: what was written are orphans.
        self.crash.reached("promotion.before-manifest");
        self.install_output(writing, store, &output).await?;
        self.counters.promoted_bytes.add(output.value_bytes_written);
        Ok(true)
    }
}
