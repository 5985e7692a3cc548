//! The memory budget of a database: memtables, jobs and unaccounted memory take their parts, and the cache has the
//! rest.
//!
//! [`MemoryBudget`] holds what is shared: the blocks of memtables, the cache, and what jobs have taken. What the parts
//! may be follows from [`MemoryUse`], what the stores' memtables have and settings say.
//!
//! Invariant: the cache's bound, plus memtables, jobs and unaccounted memory, is at most `memory_bytes`, except while
//! the cache still evicts for a part that has grown.

use crate::tuning::space::MEMORY;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;

use crate::cache::Cache;
use crate::database::shared::Shared;
use crate::memory::Blocks;
use crate::settings::DatabaseSettings;

/// Bytes of `memory_bytes` that are set aside for unaccounted memory while nodes of memtables and jobs hold
/// `held_bytes` and the engine takes `own_bytes`: log groups, I/O buffers, free lists. They grow with those bytes: a
/// fixed part, and as much as those hold, up to a bound.
fn uncounted_bytes(memory_bytes: u64, own_bytes: u64, held_bytes: u64) -> u64 {
    let most = (memory_bytes / 16).max(MEMORY.min_unaccounted_bytes.min(memory_bytes / 6));
    own_bytes.max(memory_bytes / 32) + held_bytes.min(most)
}

/// What the parts of the budget depend on.
#[derive(Debug)]
struct MemoryUse {
    settings: Arc<DatabaseSettings>,
    /// Bytes of all memtables.
    memory_table_bytes: u64,
    /// Number of stores, whose jobs share the memory of jobs.
    stores: usize,
    /// The database takes writes.
    is_writing: bool,
}

/// The shared memory of a database.
#[derive(Debug)]
pub(crate) struct MemoryBudget {
    pub(crate) shared: Arc<Shared>,
    /// Blocks of the memtables.
    pub(crate) blocks: Arc<Blocks>,
    cache: Arc<Cache>,
    /// Bytes that running jobs have taken from the cache.
    job_bytes: AtomicU64,
    /// Held while unused memory is measured and taken.
    taking: Mutex<()>,
}

impl MemoryBudget {
    pub(crate) fn new(shared: &Arc<Shared>, blocks: Arc<Blocks>) -> MemoryBudget {
        let cache = shared.opener.cache.clone();
        let (job_bytes, taking) = (AtomicU64::new(0), Mutex::default());
        MemoryBudget { shared: shared.clone(), blocks, cache, job_bytes, taking }
    }

    /// Bounds the cache by what memtables and jobs leave. To be called when these came, grew or went, without a lock:
    /// evictions take time.
    pub(crate) async fn shrink_cache(&self) {
        self.cache.lend(self.non_cache_bytes(&self.memory_use())).await;
    }

    /// The same when a part became smaller.
    pub(crate) fn grow_cache(&self) {
        self.cache.lend_less(self.non_cache_bytes(&self.memory_use()));
    }

    fn memory_use(&self) -> MemoryUse {
        let settings = self.shared.settings();
        let stores = self.shared.stores.read();
        MemoryUse {
            settings,
            memory_table_bytes: stores.iter().map(|store| store.table_bytes()).sum(),
            stores: stores.len(),
            is_writing: self.shared.writing.is_some(),
        }
    }

    /// Returns the bytes of memtables, and of what is kept for the next ones.
    pub(crate) fn memory_table_bytes(&self) -> u64 {
        let tables: u64 = self.shared.stores.read().iter().map(|store| store.table_bytes()).sum();
        tables + self.blocks.idle_bytes()
    }

    /// Frees idle blocks of memtables; returns when to check again, if at all.
    pub(crate) async fn give_blocks_back(&self) -> Option<Duration> {
        let again = self.blocks.look(self.shared.environment.now());
        self.shrink_cache().await;
        again
    }

    /// Returns the bytes that the cache may not use.
    fn non_cache_bytes(&self, used: &MemoryUse) -> u64 {
        let (settings, tables) = (&used.settings, used.memory_table_bytes);
        // Writes until the next check use idle blocks first.
        let meanwhile = if used.is_writing {
            settings.table_bytes() / MEMORY.memtable_budget_checks_per_table
        } else {
            0
        };
        let meanwhile = meanwhile.max(self.blocks.idle_bytes());
        let jobs = self.job_bytes.load(Ordering::Relaxed);
        let nodes = if tables > 0 { (tables + meanwhile) / MEMORY.node_bytes_divisor } else { 0 };
        let uncounted = uncounted_bytes(settings.memory_bytes, settings.own_bytes(), nodes + jobs);
        tables + meanwhile + jobs + uncounted
    }

    /// Returns the bytes of values that a job may hold at once: jobs that run together share the memory of jobs.
    pub(crate) fn job_bytes(&self) -> u64 {
        let used = self.memory_use();
        let jobs = used.settings.concurrent_jobs.min(used.stores).max(1) as u64;
        (used.settings.jobs_bytes() / jobs).max(256 << 10)
    }

    /// Returns the bytes that a job may hold without evicting more than a little from the cache; at most a third of
    /// all, since memtables may come meanwhile.
    fn unused_bytes(&self, settings: &DatabaseSettings) -> u64 {
        let cache = self.cache.counters();
        let free = self.cache.budget_bytes().saturating_sub(cache.upper_bytes + cache.lower_bytes);
        (free / 4 * 3).min(settings.memory_bytes / 3)
    }

    /// Counts bytes of a job, as many as `bytes` says of the unused ones; returns them.
    pub(crate) fn take_for_job(&self, settings: &DatabaseSettings, bytes: impl FnOnce(u64) -> u64) -> u64 {
        let _taking = self.taking.lock();
        let bytes = bytes(self.unused_bytes(settings));
        self.job_bytes.fetch_add(bytes, Ordering::Relaxed);
        bytes
    }

    /// Counts bytes of a job no more.
    pub(crate) fn return_from_job(&self, bytes: u64) {
        self.job_bytes.fetch_sub(bytes, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn idle_memory_goes_to_the_cache() {
        let mib = |memory: u64, held: u64| uncounted_bytes(memory << 20, 12 << 20, held << 20) >> 20;
        assert_eq!([0, 16, 64, 200].map(|held| mib(512, held)), [16, 32, 48, 48]);
        assert_eq!([0, 1, 30].map(|held| mib(64, held)), [12, 13, 22]);
    }
}
