//! What of `memory_bytes` the cache has: all that memtables, jobs and what nobody counts do not take.

use std::sync::atomic::Ordering;
use std::time::Duration;

use super::core::Core;
use super::flush::LOOKS_A_TABLE;

/// The fraction (1/n) of a memtable's memory that counts as small allocations, the nodes of its skip list. They are a
/// seventh of a memtable with values of 1,000 bytes, and most of one with short values.
const NODES_SHARE: u64 = 2;

/// What an allocator keeps in pieces that are in part free is not less with less memory, as long as it is no more than
/// a sixth.
const LEAST_UNCOUNTED_BYTES: u64 = 24 << 20;

/// Bytes of `memory_bytes` that are set aside for unaccounted memory while nodes of memtables and jobs hold
/// `held_bytes` and the engine takes `own_bytes`: log groups, I/O buffers, free lists. They grow with those bytes: a
/// fixed part, and as much as those hold, up to a bound.
fn uncounted_bytes(memory_bytes: u64, own_bytes: u64, held_bytes: u64) -> u64 {
    let most = (memory_bytes / 16).max(LEAST_UNCOUNTED_BYTES.min(memory_bytes / 6));
    own_bytes.max(memory_bytes / 32) + held_bytes.min(most)
}

impl Core {
    /// Leaves the cache what memtables and jobs do not take. To be called when these came, grew or went, without a
    /// lock: what the cache drops takes time.
    pub(crate) async fn share_memory(&self) {
        self.opener.cache.lend(self.lent_bytes()).await;
    }

    /// The same when something went.
    pub(crate) fn share_more_memory(&self) {
        self.opener.cache.lend_less(self.lent_bytes());
    }

    /// Returns the bytes that the cache may not use.
    fn lent_bytes(&self) -> u64 {
        let settings = self.settings();
        let table_bytes = settings.table_bytes();
        let tables: u64 = self.stores.read().iter().map(|store| store.table_bytes()).sum();
        // Writes until the next check use idle blocks first.
        let meanwhile = if self.writing.is_some() { table_bytes / LOOKS_A_TABLE } else { 0 };
        let meanwhile = meanwhile.max(self.blocks.idle_bytes());
        let jobs = self.background.job_bytes.load(Ordering::Relaxed);
        let nodes = if tables > 0 { (tables + meanwhile) / NODES_SHARE } else { 0 };
        let uncounted = uncounted_bytes(settings.memory_bytes, settings.own_bytes(), nodes + jobs);
        tables + meanwhile + jobs + uncounted
    }

    /// Lets the memory go that tables have not needed for a while; when to look again, if at all.
    pub(crate) async fn give_blocks_back(&self) -> Option<Duration> {
        let again = self.blocks.look(self.environment.now());
        self.share_memory().await;
        again
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
