//! The cache of a database: pages of key files, parts of filters, and values, in bounded memory.
//!
//! Pages are held by where they lie. Values are not: they are moved from the log to one segment and another, and are
//! held by their keys, so that what is read often stays when it is moved. Of a key there is one version, the newest
//! that was put in: it takes the place of the one before, with what is known of how often that was read. A value that a
//! lookup found says up to which sequence number it is the key's newest, so that the next one need not search for it
//! among what was there before.
//!
//! Invariants:
//! - what it holds weighs no more than its budget, but for what is being put in; of a budget that memtables share,
//!   it has what they do not take, and what threads keep for themselves, and what is [`reserved`]; but at least an
//!   eighth of it;
//! - what leads to leaf pages (index pages and filters) is not pushed out by leaf pages and values, up to half of what
//!   it has; what it does not need of that half the others have, in the same way: three quarters of it are for leaf
//!   pages and one for values, and either has what the other does not need;
//! - of the requests for something that is not held, one loads it and the others wait for it; if it fails or is
//!   dropped, the next one takes over. But where another version of a key is held than the one that is asked for, each
//!   loads it for itself.
//!
//! Index pages, leaf pages and values are scan-resistant each by itself (S3-FIFO).

mod cached_version;
mod owner;
mod reserved;
mod values;

pub(crate) use cached_version::{HeldValue, Newest, VersionId};
pub(crate) use owner::{CacheKey, Owner};
pub(crate) use reserved::Reserved;
use values::Values;

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use bytes::Bytes;
use foldhash::fast::FixedState;
use parking_lot::Mutex;
use quick_cache::Weighter;
use quick_cache::sync::{Cache as QuickCache, DefaultLifecycle};

use crate::Result;
use crate::keyfile::{FilterPart, KeyHash, Page};
use crate::notify::yield_now;
use crate::threads::Threads;

impl Owner {
    /// Another one.
    pub(crate) fn next(cache: &Cache) -> Owner {
        Owner(cache.owners.fetch_add(1, Ordering::Relaxed))
    }
}

/// The rank of a page: lower ranks are evicted first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Rank {
    /// Index pages, filters.
    Upper,
    /// Leaf pages, values.
    Lower,
}

/// A cached page or filter part.
#[derive(Debug, Clone)]
pub(crate) enum Cached {
    Page(Arc<Page>),
    Filter(Arc<FilterPart>),
}

/// Bytes of memory freed by others that the allocator keeps for a thread, on average.
const ALLOCATOR_BYTES_PER_THREAD: u64 = 1 << 19;

/// Each thread accounts for at most this fraction (1/n) of the budget.
const THREAD_BUDGET_DIVISOR: u64 = 256;

/// Pages that are dropped before the task yields.
const PAGES_PER_SLICE: u32 = 256;

/// The fraction of the memory shared with values that leaf pages may use. A page leads to dozens of values: with
/// uniformly read keys it saves more I/Os than its bytes in values, even if not one in twenty values is cached.
const LEAVES_PART: (u64, u64) = (3, 4);

/// Bytes that are dropped before the task yields.
const DROPPED_BYTES_PER_SLICE: u64 = 1 << 20;

/// Bytes of an entry beside its value, and beside the eighth that an allocator rounds up by on average.
const ENTRY_OVERHEAD_BYTES: u64 = 186;

#[derive(Debug, Clone)]
struct ByBytes;

impl Weighter<CacheKey, Cached> for ByBytes {
    fn weight(&self, _: &CacheKey, cached: &Cached) -> u64 {
        let bytes = match cached {
            Cached::Page(page) => page.size_bytes(),
            Cached::Filter(part) => part.size_bytes(),
        };
        bytes as u64 / 8 * 9 + ENTRY_OVERHEAD_BYTES
    }
}

/// Gives a rank this many bytes, or somewhat more, if it would have to drop much for that; whether it has no more than
/// it is to have.
fn shrink(rank: &Ranked, bytes: u64) -> bool {
    let least = rank.weight().saturating_sub(DROPPED_BYTES_PER_SLICE);
    rank.set_capacity(bytes.max(least));
    least <= bytes
}

type Ranked = QuickCache<CacheKey, Cached, ByBytes, FixedState>;

/// Bounded memory for what was read.
pub(crate) struct Cache {
    upper: Ranked,
    leaves: Ranked,
    values: Values,
    budget_bytes: u64,
    /// Number of owners so far.
    owners: AtomicU64,
    /// Bytes of the budget that others use.
    lent_bytes: AtomicU64,
    /// Bytes of resident filters.
    reserved_bytes: AtomicU64,
    /// Threads that have filled the cache.
    threads: Threads,
    /// Bytes of the budget that are set aside for these threads.
    held_back_bytes: AtomicU64,
    /// Only one at a time says what the ranks may have: so the last to come has seen all that is to be seen.
    sharing: Mutex<()>,
    /// Bytes of each part when the bounds of the others were last set.
    settled: [AtomicU64; 3],
    loads: AtomicU64,
    value_loads: AtomicU64,
    /// A value was put in.
    had_values: AtomicBool,
    /// Files that are closed, and how many pages each has.
    gone: Mutex<Vec<(Owner, u32)>>,
}

/// Counters of a cache.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct CacheCounters {
    /// Misses that loaded an entry.
    pub(crate) loads: u64,
    /// Misses that loaded a value.
    pub(crate) value_loads: u64,
    pub(crate) upper_bytes: u64,
    pub(crate) lower_bytes: u64,
}

impl Cache {
    pub(crate) fn new(budget_bytes: u64) -> Arc<Cache> {
        let usual = usize::try_from(budget_bytes / 4096).unwrap_or(usize::MAX).max(16);
        let ranked = |usual, bytes| {
            let (hashes, lifecycle) = (FixedState::default(), DefaultLifecycle::default());
            QuickCache::with(usual, bytes, ByBytes, hashes, lifecycle)
        };
        let (upper, leaves) = (ranked(usual / 2, budget_bytes / 2), ranked(usual, budget_bytes));
        Arc::new(Cache {
            upper,
            leaves,
            values: Values::new(budget_bytes),
            budget_bytes,
            owners: AtomicU64::new(0),
            lent_bytes: AtomicU64::new(0),
            reserved_bytes: AtomicU64::new(0),
            threads: Threads::default(),
            held_back_bytes: AtomicU64::new(0),
            sharing: Mutex::default(),
            settled: Default::default(),
            loads: AtomicU64::new(0),
            value_loads: AtomicU64::new(0),
            had_values: AtomicBool::new(false),
            gone: Mutex::default(),
        })
    }

    fn rank(&self, rank: Rank) -> &Ranked {
        match rank {
            Rank::Upper => &self.upper,
            Rank::Lower => &self.leaves,
        }
    }

    /// Returns the bytes that the cache may use now.
    pub(crate) fn budget_bytes(&self) -> u64 {
        let held_back = self.held_back_bytes.load(Ordering::Relaxed);
        let lent = self.lent_bytes.load(Ordering::Relaxed).saturating_add(held_back);
        let taken = lent.saturating_add(self.reserved_bytes.load(Ordering::Relaxed));
        self.budget_bytes.saturating_sub(taken).max(self.budget_bytes / 8)
    }

    /// Sets the bytes of the budget that others use, in place of the earlier ones. They may use them when this returns.
    /// Evictions for them take time, so the task yields in between.
    pub(crate) async fn lend(&self, bytes: u64) {
        let is_new = self.lent_bytes.swap(bytes, Ordering::Relaxed) != bytes;
        if self.hold_back() || is_new {
            while !self.share_some() {
                yield_now().await;
            }
        }
    }

    /// The same for a smaller number of bytes: nothing has to be evicted, unless others use more.
    pub(crate) fn lend_less(&self, bytes: u64) {
        self.lent_bytes.store(bytes, Ordering::Relaxed);
        self.hold_back();
        let _ = self.share_some();
    }

    /// Takes notice of the thread that this is. To be called before something is put in, which another one may free.
    fn count_thread(&self) {
        self.threads.count_this();
        if self.hold_back() {
            self.share();
        }
    }

    /// Holds back what its threads come to; whether that is another amount, by as much as is worth while.
    fn hold_back(&self) -> bool {
        let of_a_thread = ALLOCATOR_BYTES_PER_THREAD.min(self.budget_bytes / THREAD_BUDGET_DIVISOR);
        let bytes = (self.threads.count() as u64 * of_a_thread).min(self.budget_bytes / 2);
        let is_new = bytes.abs_diff(self.held_back_bytes.load(Ordering::Relaxed)) >= self.budget_bytes / 64;
        if is_new {
            self.held_back_bytes.store(bytes, Ordering::Relaxed);
        }
        is_new
    }

    /// Gives index pages, leaf pages and values what they may have now.
    fn share(&self) {
        while !self.share_some() {}
    }

    /// The same, but nothing drops more than a little; whether it is done.
    fn share_some(&self) -> bool {
        let _one = self.sharing.lock();
        let is_upper_done = shrink(&self.upper, self.budget_bytes() / 2);
        self.share_lower() && is_upper_done
    }

    /// Returns the bytes of the three parts.
    fn weights(&self) -> [u64; 3] {
        [self.upper.weight(), self.leaves.weight(), self.values.bytes()]
    }

    /// Gives leaf pages and values what the upper rank does not need; whether they have dropped what is too much. What
    /// one of them may have at the other's expense it gets step by step, as the other drops it.
    fn share_lower(&self) -> bool {
        let [upper, leaves, values] = self.weights();
        let rest = self.budget_bytes().saturating_sub(upper);
        let of_leaves = rest / LEAVES_PART.1 * LEAVES_PART.0;
        let step = (self.budget_bytes / 64).max(self.values.step_bytes());
        let most = |has: u64, other: u64, part: u64| rest.saturating_sub(other).max(part.min(has + step));
        let are_leaves_done = shrink(&self.leaves, most(leaves, values, of_leaves));
        let dropped = DROPPED_BYTES_PER_SLICE.max(self.least_settled());
        let are_values_done = self.values.shrink(most(values, leaves, rest - of_leaves), dropped);
        let is_done = are_leaves_done && are_values_done;
        if is_done {
            for (settled, weight) in self.settled.iter().zip([upper, leaves, values]) {
                settled.store(weight, Ordering::Relaxed);
            }
        }
        is_done
    }

    /// Returns the cached version of `key`.
    #[inline]
    pub(crate) fn get(&self, rank: Rank, key: &CacheKey) -> Option<Cached> {
        self.rank(rank).get(key)
    }

    /// The value of a version, if it is held.
    pub(crate) fn value(&self, id: &VersionId<'_>) -> Option<Bytes> {
        self.held(id.store, id.key, id.hash)?.of(id)
    }

    /// Returns the cached version of a key, whichever it is, and counts a use.
    #[inline]
    pub(crate) fn held(&self, store: Owner, key: &[u8], hash: KeyHash) -> Option<HeldValue> {
        (!self.never_had_values()).then(|| self.values.held(store, key, hash)).flatten()
    }

    /// Drops the cached version of a key.
    pub(crate) fn forget_value(&self, store: Owner, hash: KeyHash) {
        self.values.forget(store, hash);
    }

    /// Extends the visibility bound of a cached version by that of `id`.
    pub(crate) fn note_newest(&self, id: &VersionId<'_>) {
        self.values.note_newest(id);
    }

    /// Returns whether a version of the key is held that came before this one.
    pub(crate) fn has_older(&self, id: &VersionId<'_>) -> bool {
        self.values.sequence(id).is_some_and(|held| held < id.sequence)
    }

    /// Returns whether no value was ever put in.
    pub(crate) fn never_had_values(&self) -> bool {
        !self.had_values.load(Ordering::Relaxed)
    }

    fn note_value(&self) {
        if self.never_had_values() {
            self.had_values.store(true, Ordering::Relaxed);
        }
    }

    /// Holds a copy of the value of a version, if it is not too large and none is held that came later.
    pub(crate) fn keep_value(&self, id: &VersionId<'_>, value: &[u8]) {
        if self.takes_value(id, value.len()) {
            self.count_thread();
            self.note_value();
            self.values.put(id, value);
            let settled = self.settled[2].load(Ordering::Relaxed);
            if self.values.bytes().abs_diff(settled) >= self.least_settled() {
                self.settle();
            }
        }
    }

    /// Returns whether a value of this many bytes is cached: one that would push out hundreds of others is better read
    /// again.
    pub(crate) fn takes_value(&self, id: &VersionId<'_>, bytes: usize) -> bool {
        (bytes + id.key.len()) as u64 <= self.budget_bytes() / 256
    }

    /// Counts values that are loaded.
    pub(crate) fn note_values(&self, count: usize) {
        self.loads.fetch_add(count as u64, Ordering::Relaxed);
        self.value_loads.fetch_add(count as u64, Ordering::Relaxed);
    }

    /// A file is closed for good, and nobody asks for its pages any more. What takes time is left to
    /// [`forget_gone`](Self::forget_gone).
    pub(crate) fn file_is_gone(&self, owner: Owner, pages: u32) {
        self.gone.lock().push((owner, pages));
    }

    /// Drops what is held of files that are closed.
    pub(crate) async fn forget_gone(&self) {
        loop {
            let Some((owner, pages)) = self.gone.lock().pop() else { return };
            for position in 0..pages {
                let key = CacheKey { owner, position: u64::from(position) };
                self.leaves.remove(&key);
                self.upper.remove(&key);
                if position % PAGES_PER_SLICE == PAGES_PER_SLICE - 1 {
                    yield_now().await;
                }
            }
        }
    }

    /// Returns how many values readers have loaded so far. Jobs bypass the cache.
    pub(crate) fn value_loads(&self) -> u64 {
        self.value_loads.load(Ordering::Relaxed)
    }

    /// The value of a version, which has this many bytes and is not held, as `load` gives it; held from then on if it
    /// is not too large, and no later version of the key is.
    ///
    /// # Errors
    /// Those of `load`.
    pub(crate) async fn load_value(
        &self,
        id: &VersionId<'_>,
        bytes: usize,
        mut load: Pin<Box<impl Future<Output = Result<Bytes>>>>,
    ) -> Result<Bytes> {
        self.count_thread();
        if let Some(value) = self.value(id) {
            return Ok(value);
        }
        if self.takes_value(id, bytes) && self.values.sequence(id).is_none() {
            let loaded = self.values.load(id, async {
                // It may have been cached since.
                if let Some(held) = self.held(id.store, id.key, id.hash).filter(|held| held.of(id).is_some())
                {
                    return Ok(held);
                }
                self.note_values(1);
                let held = HeldValue::new(id, &load.as_mut().await?);
                self.keep_value(id, &held.value());
                Ok(held)
            });
            if let Some(value) = loaded.await?.of(id) {
                return Ok(value);
            }
        }
        // Not polled so far: if it had been, its value would be the right one. Another version of the key is held, or
        // was loaded by another one, or another key.
        self.note_values(1);
        let value = load.await?;
        if self.has_older(id) {
            self.keep_value(id, &value);
        }
        Ok(value)
    }

    /// The page or filter that is held of `key`; if none is, what `load` gives, which is held from then on if it is not
    /// too large. It is boxed so that a future which finds what it needs stays small.
    ///
    /// # Errors
    /// Those of `load`.
    pub(crate) async fn get_or_load(
        &self,
        rank: Rank,
        key: CacheKey,
        load: Pin<Box<impl Future<Output = Result<Cached>>>>,
    ) -> Result<Cached> {
        let counted = async {
            self.count_thread();
            self.loads.fetch_add(1, Ordering::Relaxed);
            load.await
        };
        let cached = self.rank(rank).get_or_insert_async(&key, counted).await?;
        self.settle();
        Ok(cached)
    }

    /// Returns the change in bytes of a part below which the others' bounds stay.
    fn least_settled(&self) -> u64 {
        self.budget_bytes / 256
    }

    /// Gives each part what the others do not need, if that is something else by now.
    fn settle(&self) {
        let least = self.least_settled();
        let mut pairs = self.settled.iter().zip(self.weights());
        if pairs.all(|(settled, weight)| weight.abs_diff(settled.load(Ordering::Relaxed)) < least) {
            return;
        }
        // One of several concurrent callers suffices. If there is much to evict, the next caller continues.
        if let Some(_one) = self.sharing.try_lock() {
            let _ = self.share_lower();
        }
    }

    pub(crate) fn counters(&self) -> CacheCounters {
        CacheCounters {
            loads: self.loads.load(Ordering::Relaxed),
            value_loads: self.value_loads(),
            upper_bytes: self.upper.weight(),
            lower_bytes: self.leaves.weight() + self.values.bytes(),
        }
    }
}

impl fmt::Debug for Cache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cache").field("counters", &self.counters()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
