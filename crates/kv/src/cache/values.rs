//! Values in bounded memory.
//!
//! They lie in blocks that are filled and emptied as wholes, so that memory which is wanted elsewhere comes free at
//! once: an allocator that gets back values here and there keeps what they lay in (decision 16).

mod ghosts;
mod item;
mod shard;
#[cfg(test)]
mod tests;

use std::fmt;
use std::future::Future;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use foldhash::fast::FixedState;
use parking_lot::Mutex;
use quick_cache::Weighter;
use quick_cache::sync::{Cache as QuickCache, DefaultLifecycle};

use self::item::Header;
use self::shard::{Put, Shard, hash_of, most_slots};
use super::{CacheKey, HeldValue, Owner, VersionId};
use crate::Result;
use crate::entry::SequenceNo;
use crate::keyfile::KeyHash;

/// A block holds this fraction (1/n) of its shard's bytes, within the bounds below.
const BLOCK_DIVISOR: u64 = 64;
/// Least bytes of a block.
const MIN_BLOCK_BYTES: u64 = 4096;
/// Most bytes of a block.
const MAX_BLOCK_BYTES: u64 = 64 << 10;

/// A shard has at least this many blocks.
const MIN_BLOCKS_PER_SHARD: u64 = 256;
/// Most shards of the cache.
const MAX_SHARDS: u64 = 64;

/// Who loads a value leaves it to those who wait for it, and to nobody after them: what is held is held elsewhere.
#[derive(Debug, Clone)]
struct TooHeavy;

impl Weighter<CacheKey, HeldValue> for TooHeavy {
    fn weight(&self, _: &CacheKey, _: &HeldValue) -> u64 {
        1 << 40
    }
}

pub(super) struct Values {
    shards: Box<[Mutex<Shard>]>,
    block_bytes: u64,
    bytes: AtomicU64,
    /// Where the next one begins to drop something.
    next: AtomicUsize,
    loading: QuickCache<CacheKey, HeldValue, TooHeavy, FixedState>,
}

impl Values {
    /// Never has more than this many bytes, but for what the index grows by at once.
    pub(super) fn new(bytes: u64) -> Values {
        let part = (bytes / BLOCK_DIVISOR).max(1);
        let block_bytes = (1 << part.ilog2()).clamp(MIN_BLOCK_BYTES, MAX_BLOCK_BYTES);
        let shards = (bytes / block_bytes / MIN_BLOCKS_PER_SHARD).clamp(1, MAX_SHARDS);
        let shards = 1 << shards.ilog2();
        let of_a_shard = (bytes / shards).min((most_slots(block_bytes as usize) as u64 - 2) * block_bytes);
        let shard = |_| Mutex::new(Shard::new(block_bytes as usize, of_a_shard as usize));
        Values {
            shards: (0..shards).map(shard).collect(),
            block_bytes,
            bytes: AtomicU64::new(0),
            next: AtomicUsize::new(0),
            loading: QuickCache::with(16, 16, TooHeavy, FixedState::default(), DefaultLifecycle::default()),
        }
    }

    /// What they take.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    fn shard(&self, owner: Owner, position: u64) -> &Mutex<Shard> {
        // Bits that neither the index of a shard nor what it tells keys apart by looks at first.
        let bits = hash_of(owner.0, position) >> 40;
        &self.shards[(bits & (self.shards.len() as u64 - 1)) as usize]
    }

    /// Changes a shard and counts what it takes then.
    fn change<R>(&self, shard: &Mutex<Shard>, change: impl FnOnce(&mut Shard) -> R) -> R {
        let mut shard = shard.lock();
        let before = shard.bytes() as u64;
        let result = change(&mut shard);
        let after = shard.bytes() as u64;
        if after != before {
            self.bytes.fetch_add(after.wrapping_sub(before), Ordering::Relaxed);
        }
        result
    }

    /// What is held of a key, whichever version it is. It counts as a use of it.
    pub(super) fn held(&self, store: Owner, key: &[u8], hash: KeyHash) -> Option<HeldValue> {
        let (header, value_and_key) = self.shard(store, hash.get()).lock().get(store.0, hash.get())?;
        let Header { sequence, newest, value_bytes, .. } = header;
        let held = HeldValue { sequence, newest, value_and_key, value_bytes };
        held.is_of(key).then_some(held)
    }

    /// The number of the version that is held of the key, or of one with the same hash.
    pub(super) fn sequence(&self, id: &VersionId<'_>) -> Option<SequenceNo> {
        let shard = self.shard(id.store, id.hash.get()).lock();
        shard.peek(id.store.0, id.hash.get()).map(|header| header.sequence)
    }

    /// What is known of a version is known from now on, if it is held.
    pub(super) fn note_newest(&self, id: &VersionId<'_>) {
        let Some(newest) = id.newest else { return };
        self.shard(id.store, id.hash.get()).lock().note_newest(
            id.store.0,
            id.hash.get(),
            (id.sequence, id.key),
            newest,
        );
    }

    pub(super) fn forget(&self, store: Owner, hash: KeyHash) {
        let shard = self.shard(store, hash.get());
        self.change(shard, |shard| shard.forget(store.0, hash.get()));
    }

    /// Holds the value of a version, if none is held that came later.
    pub(super) fn put(&self, id: &VersionId<'_>, value: &[u8]) {
        let header = Header {
            owner: id.store.0,
            position: id.hash.get(),
            sequence: id.sequence,
            newest: id.newest,
            value_bytes: value.len() as u32,
            key_bytes: id.key.len() as u32,
            uses: 0,
            is_live: true,
        };
        let shard = self.shard(id.store, id.hash.get());
        self.change(shard, |shard| shard.put(&Put { header, value, key: id.key }));
    }

    /// A value that `load` gives, or another one of those who ask for the key at the same time does.
    pub(super) async fn load(
        &self,
        id: &VersionId<'_>,
        load: impl Future<Output = Result<HeldValue>>,
    ) -> Result<HeldValue> {
        self.loading.get_or_insert_async(&id.cache_key(), load).await
    }

    /// All of them may have this many bytes. Drops about `most` of what is too much; whether that was enough.
    pub(super) fn shrink(&self, bytes: u64, most: u64) -> bool {
        let shards = self.shards.len();
        let each = (bytes / shards as u64) as usize;
        let begin = self.next.load(Ordering::Relaxed);
        let mut left = most;
        for no in (begin..begin + shards).map(|no| no % shards) {
            let shard = &self.shards[no];
            let (is_done, dropped) = self.change(shard, |shard| {
                let before = shard.bytes();
                (shard.shrink(each, left as usize), before.saturating_sub(shard.bytes()) as u64)
            });
            left = left.saturating_sub(dropped);
            if !is_done {
                self.next.store(no, Ordering::Relaxed);
                return false;
            }
        }
        true
    }

    /// What they have to get more of, so that each shard can fill another block.
    pub(super) fn step_bytes(&self) -> u64 {
        3 * self.block_bytes * self.shards.len() as u64
    }
}

impl fmt::Debug for Values {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Values").field("bytes", &self.bytes()).finish_non_exhaustive()
    }
}
