//! The cache of a database: pages of key files, parts of filters, and values, in bounded memory.
//!
//! Pages are held by where they lie. Values are not: they are moved from the log to one segment and another, and are held by their keys, so that what
//! is read often stays when it is moved. Of a key there is one version, the newest that was put in: it takes the place of the one before, with what is
//! known of how often that was read. A value that a look-up found says up to which sequence number it is the key's newest, so that the next one need not search for it
//! among what was there before.
//!
//! Invariants:
//! - what it holds weighs no more than its budget, but for what is being put in; of a budget that memory tables share, it has what they do not take, and what threads
//!   keep for themselves, and what is [`reserved`]; but at least an eighth of it;
//! - what leads to leaf pages (index pages and filters) is not pushed out by leaf pages and values, up to half of what it has; what it does not need
//!   of that half the others have;
//! - of the requests for something that is not held, one loads it and the others wait for it; if it fails or is dropped, the next one takes over.
//!   But where another version of a key is held than the one that is asked for, each loads it for itself.
//!
//! Each of the two ranks is scan-resistant by itself (S3-FIFO).

mod reserved;

pub(crate) use reserved::Reserved;

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
use crate::entry::SequenceNo;
use crate::keyfile::{FilterPart, KeyHash, Page, PageAddress};
use crate::notify::yield_now;
use crate::threads::Threads;

/// Whose things they are: a key file that is open, or a store. Never used twice in a cache: what is left of one that has gone is never found again. Numbers and hashes are the same in each run,
/// so that a cache drops the same things again when a run is repeated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Owner(u64);

impl Owner {
    /// Another one.
    pub(crate) fn next(cache: &Cache) -> Owner {
        Owner(cache.owners.fetch_add(1, Ordering::Relaxed))
    }
}

/// Something that can be cached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct CacheKey {
    owner: Owner,
    /// A page number, or the hash of a key.
    position: u64,
}

impl CacheKey {
    /// A page of a file.
    pub(crate) fn page(owner: Owner, address: PageAddress) -> CacheKey {
        CacheKey { owner, position: u64::from(address.no) }
    }
}

/// A version of a key, wherever its value lies. Its value never changes: as long as a store is open a sequence number is given once, and of a key it has
/// one version. (After a power cut numbers of what was lost are given again; the store is another owner then.)
#[derive(Debug, Clone, Copy)]
pub(crate) struct VersionId<'a> {
    pub(crate) store: Owner,
    pub(crate) sequence: SequenceNo,
    pub(crate) key: &'a [u8],
    /// Of the key.
    pub(crate) hash: KeyHash,
    /// If it is known.
    pub(crate) newest: Option<Newest>,
}

/// That a version is what its key has: of the numbers behind its own, up to `up_to` and that one too, none is of a version of the key or of a deleted range that it lies in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Newest {
    pub(crate) up_to: SequenceNo,
    /// When the version expires.
    pub(crate) expires_s: Option<u32>,
}

impl<'a> VersionId<'a> {
    pub(crate) fn new(store: Owner, key: &'a [u8], sequence: SequenceNo) -> VersionId<'a> {
        VersionId { store, sequence, key, hash: KeyHash::of(key), newest: None }
    }

    fn cache_key(&self) -> CacheKey {
        CacheKey { owner: self.store, position: self.hash.get() }
    }
}

/// A version's value with its key behind it: another key may have the same hash.
#[derive(Debug, Clone)]
pub(crate) struct HeldValue {
    sequence: SequenceNo,
    newest: Option<Newest>,
    value_and_key: Bytes,
    value_bytes: u32,
}

impl HeldValue {
    /// Copies both, so that they hold on to nothing else.
    pub(crate) fn new(id: &VersionId<'_>, value: &[u8]) -> HeldValue {
        HeldValue {
            sequence: id.sequence,
            newest: id.newest,
            value_and_key: [value, id.key].concat().into(),
            value_bytes: value.len() as u32,
        }
    }

    /// The value, if it is the one of `id`.
    pub(crate) fn of(&self, id: &VersionId<'_>) -> Option<Bytes> {
        (self.sequence == id.sequence && self.is_of(id.key)).then(|| self.value())
    }

    #[inline]
    fn is_of(&self, key: &[u8]) -> bool {
        self.value_and_key.get(self.value_bytes as usize..) == Some(key)
    }

    /// What is known of being the newest version of its key, for who sees `snapshot`.
    #[inline]
    pub(crate) fn newest_at(&self, snapshot: SequenceNo) -> Option<Newest> {
        self.newest.filter(|_| self.sequence <= snapshot)
    }

    pub(crate) fn is_older_than(&self, sequence: SequenceNo) -> bool {
        self.sequence < sequence
    }

    /// The value itself.
    pub(crate) fn value(&self) -> Bytes {
        self.value_and_key.slice(..self.value_bytes as usize)
    }
}

/// What is known of one version by two who know of it.
fn later(one: Option<Newest>, other: Option<Newest>) -> Option<Newest> {
    one.into_iter().chain(other).max_by_key(|newest| newest.up_to)
}

/// What is pushed out first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Rank {
    /// Index pages, filters.
    Upper,
    /// Leaf pages, values.
    Lower,
}

/// What the cache holds.
#[derive(Debug, Clone)]
pub(crate) enum Cached {
    Page(Arc<Page>),
    Filter(Arc<FilterPart>),
    Value(HeldValue),
}

/// What a thread keeps of what others freed, in the mean.
const BYTES_OF_A_THREAD: u64 = 1 << 19;

/// And no larger part of the budget, for each of them.
const PART_OF_A_THREAD: u64 = 256;

/// Pages that are dropped before other tasks of the thread have their turn.
const PAGES_AT_ONCE: u32 = 256;

/// Bytes that are dropped at once, for the same reason.
const DROPPED_AT_ONCE: u64 = 1 << 20;

/// What an entry costs beside its bytes, and beside the eighth of them that an allocator rounds up by in the mean.
const ENTRY_BYTES: u64 = 186;

#[derive(Debug, Clone)]
struct ByBytes;

impl Weighter<CacheKey, Cached> for ByBytes {
    fn weight(&self, _: &CacheKey, cached: &Cached) -> u64 {
        let bytes = match cached {
            Cached::Page(page) => page.size_bytes(),
            Cached::Filter(part) => part.size_bytes(),
            Cached::Value(value) => value.value_and_key.len(),
        };
        bytes as u64 / 8 * 9 + ENTRY_BYTES
    }
}

/// Gives a rank so many bytes, or somewhat more, if it would have to drop much for that; whether it has no more than it is to have.
fn shrink(rank: &Ranked, bytes: u64) -> bool {
    let least = rank.weight().saturating_sub(DROPPED_AT_ONCE);
    rank.set_capacity(bytes.max(least));
    least <= bytes
}

type Ranked = QuickCache<CacheKey, Cached, ByBytes, FixedState>;

/// Bounded memory for what was read.
pub(crate) struct Cache {
    upper: Ranked,
    lower: Ranked,
    budget_bytes: u64,
    /// So many there were.
    owners: AtomicU64,
    /// What others take of the budget.
    lent_bytes: AtomicU64,
    /// What is held for good, as long as somebody wants it.
    reserved_bytes: AtomicU64,
    /// Those that put something in.
    threads: Threads,
    /// What is held back for them.
    held_back_bytes: AtomicU64,
    /// Only one at a time says what the ranks may have: so the last to come has seen all that is to be seen.
    sharing: Mutex<()>,
    /// What the upper rank weighed when the lower one's part was set.
    settled_bytes: AtomicU64,
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
    /// What was not held, and was loaded.
    pub(crate) loads: u64,
    /// Those of them that were values.
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
        let (upper, lower) = (ranked(usual / 2, budget_bytes / 2), ranked(usual, budget_bytes));
        Arc::new(Cache {
            upper,
            lower,
            budget_bytes,
            owners: AtomicU64::new(0),
            lent_bytes: AtomicU64::new(0),
            reserved_bytes: AtomicU64::new(0),
            threads: Threads::default(),
            held_back_bytes: AtomicU64::new(0),
            sharing: Mutex::default(),
            settled_bytes: AtomicU64::new(0),
            loads: AtomicU64::new(0),
            value_loads: AtomicU64::new(0),
            had_values: AtomicBool::new(false),
            gone: Mutex::default(),
        })
    }

    fn rank(&self, rank: Rank) -> &Ranked {
        match rank {
            Rank::Upper => &self.upper,
            Rank::Lower => &self.lower,
        }
    }

    /// What it may hold now.
    pub(crate) fn budget_bytes(&self) -> u64 {
        let held_back = self.held_back_bytes.load(Ordering::Relaxed);
        let lent = self.lent_bytes.load(Ordering::Relaxed).saturating_add(held_back);
        let taken = lent.saturating_add(self.reserved_bytes.load(Ordering::Relaxed));
        self.budget_bytes.saturating_sub(taken).max(self.budget_bytes / 8)
    }

    /// Others take `bytes` of the budget from now on, instead of what they took before. They may as soon as that is done; what is dropped for them takes time, and
    /// others of the thread have their turn in between.
    pub(crate) async fn lend(&self, bytes: u64) {
        let is_new = self.lent_bytes.swap(bytes, Ordering::Relaxed) != bytes;
        if self.hold_back() || is_new {
            while !self.share_some() {
                yield_now().await;
            }
        }
    }

    /// The same for who gives something back: there is nothing to drop, unless others take more.
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
        let of_a_thread = BYTES_OF_A_THREAD.min(self.budget_bytes / PART_OF_A_THREAD);
        let bytes = (self.threads.count() as u64 * of_a_thread).min(self.budget_bytes / 2);
        let is_new = bytes.abs_diff(self.held_back_bytes.load(Ordering::Relaxed)) >= self.budget_bytes / 64;
        if is_new {
            self.held_back_bytes.store(bytes, Ordering::Relaxed);
        }
        is_new
    }

    /// Gives both ranks what they may have now.
    fn share(&self) {
        while !self.share_some() {}
    }

    /// The same, but neither rank drops more than a little; whether it is done.
    fn share_some(&self) -> bool {
        let _one = self.sharing.lock();
        let budget_bytes = self.budget_bytes();
        let is_upper_done = shrink(&self.upper, budget_bytes / 2);
        let weight = self.upper.weight();
        self.settled_bytes.store(weight, Ordering::Relaxed);
        shrink(&self.lower, budget_bytes.saturating_sub(weight)) && is_upper_done
    }

    /// What is held of `key`.
    #[inline]
    pub(crate) fn get(&self, rank: Rank, key: &CacheKey) -> Option<Cached> {
        self.rank(rank).get(key)
    }

    /// The value of a version, if it is held.
    pub(crate) fn value(&self, id: &VersionId<'_>) -> Option<Bytes> {
        match self.lower.get(&id.cache_key())? {
            Cached::Value(held) => held.of(id),
            Cached::Page(_) | Cached::Filter(_) => None,
        }
    }

    /// What is held of a key, whichever version it is. It counts as a use of it.
    #[inline]
    pub(crate) fn held(&self, store: Owner, key: &[u8], hash: KeyHash) -> Option<HeldValue> {
        if self.never_had_values() {
            return None;
        }
        match self.lower.get(&CacheKey { owner: store, position: hash.get() })? {
            Cached::Value(held) if held.is_of(key) => Some(held),
            _ => None,
        }
    }

    /// What is held of a key is of no use any more.
    pub(crate) fn forget_value(&self, store: Owner, hash: KeyHash) {
        self.lower.remove(&CacheKey { owner: store, position: hash.get() });
    }

    /// What `id` says of being the newest version of its key is known from now on, if that version is held.
    pub(crate) fn note_newest(&self, id: &VersionId<'_>) {
        let Some(mut held) = self.peek(id).filter(|held| held.of(id).is_some()) else { return };
        let newest = later(held.newest, id.newest);
        if newest == held.newest {
            return;
        }
        held.newest = newest;
        // Soft, for it is no use of it. Whatever came in its place meanwhile, what is said of this one stays true.
        let _ = self.lower.replace(id.cache_key(), Cached::Value(held), true);
    }

    /// Whether a version of the key is held that came before this one.
    pub(crate) fn has_older(&self, id: &VersionId<'_>) -> bool {
        self.peek(id).is_some_and(|held| held.sequence < id.sequence)
    }

    /// The version of the key that is held, or of one with the same hash. Does not count as a use of it.
    fn peek(&self, id: &VersionId<'_>) -> Option<HeldValue> {
        match self.lower.peek(&id.cache_key())? {
            Cached::Value(held) => Some(held),
            Cached::Page(_) | Cached::Filter(_) => None,
        }
    }

    /// Whether no value was ever put in.
    pub(crate) fn never_had_values(&self) -> bool {
        !self.had_values.load(Ordering::Relaxed)
    }

    fn note_value(&self) {
        if self.never_had_values() {
            self.had_values.store(true, Ordering::Relaxed);
        }
    }

    /// Holds the value of a version, if it is not too large and none is held that came later. A copy of it, which holds on to nothing else.
    pub(crate) fn keep_value(&self, id: &VersionId<'_>, value: &[u8]) -> Bytes {
        self.count_thread();
        let before = self.peek(id);
        let is_newer = before.as_ref().is_some_and(|before| before.sequence > id.sequence);
        if !self.takes_value(id, value.len()) || is_newer {
            return Bytes::copy_from_slice(value);
        }
        self.note_value();
        let mut held = HeldValue::new(id, value);
        if let Some(before) = before.as_ref().filter(|before| before.of(id).is_some()) {
            held.newest = later(held.newest, before.newest);
        }
        let (key, cached) = (id.cache_key(), Cached::Value(held.clone()));
        // What is known of the key stays.
        let replaced =
            if before.is_some() { self.lower.replace(key, cached, true) } else { Err((key, cached)) };
        if let Err((key, cached)) = replaced {
            self.lower.insert(key, cached);
        }
        held.value()
    }

    /// Whether a value of so many bytes is cached: one that would push out hundreds of others is better read again.
    pub(crate) fn takes_value(&self, id: &VersionId<'_>, bytes: usize) -> bool {
        (bytes + id.key.len()) as u64 <= self.budget_bytes() / 256
    }

    /// So many values are loaded.
    pub(crate) fn note_values(&self, count: usize) {
        self.loads.fetch_add(count as u64, Ordering::Relaxed);
        self.value_loads.fetch_add(count as u64, Ordering::Relaxed);
    }

    /// A file is closed for good, and nobody asks for its pages any more. What takes time is left to [`forget_gone`](Self::forget_gone).
    pub(crate) fn file_is_gone(&self, owner: Owner, pages: u32) {
        self.gone.lock().push((owner, pages));
    }

    /// Drops what is held of files that are closed.
    pub(crate) async fn forget_gone(&self) {
        loop {
            let Some((owner, pages)) = self.gone.lock().pop() else { return };
            for position in 0..pages {
                let key = CacheKey { owner, position: u64::from(position) };
                self.lower.remove(&key);
                self.upper.remove(&key);
                if position % PAGES_AT_ONCE == PAGES_AT_ONCE - 1 {
                    yield_now().await;
                }
            }
        }
    }

    /// How many values were loaded so far: for readers, since jobs read past the cache.
    pub(crate) fn value_loads(&self) -> u64 {
        self.value_loads.load(Ordering::Relaxed)
    }

    /// The value of a version, which has so many bytes and is not held, as `load` gives it; held from then on if it is not too large, and no later
    /// version of the key is.
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
        if self.takes_value(id, bytes) {
            self.note_value();
            let held = Box::pin(async {
                self.note_values(1);
                Ok(Cached::Value(HeldValue::new(id, &load.as_mut().await?)))
            });
            if let Cached::Value(held) = self.lower.get_or_insert_async(&id.cache_key(), held).await?
                && let Some(value) = held.of(id)
            {
                return Ok(value);
            }
        }
        // Not polled so far: if it had been, its value would be held, and the right one. Now the key's other version is, or another key.
        self.note_values(1);
        let value = load.await?;
        let is_kept = self.takes_value(id, bytes) && self.has_older(id);
        Ok(if is_kept { self.keep_value(id, &value) } else { value })
    }

    /// The page or filter that is held of `key`; if none is, what `load` gives, which is held from then on if it is not too large. It is boxed so that
    /// a future which finds what it needs stays small.
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
        if rank == Rank::Upper {
            self.settle();
        }
        Ok(cached)
    }

    /// Gives the lower rank what the upper one does not need.
    fn settle(&self) {
        let weight = self.upper.weight();
        let settled = self.settled_bytes.load(Ordering::Relaxed);
        if weight.abs_diff(settled) < self.budget_bytes / 256 {
            return;
        }
        // Of several at once one is enough.
        let Some(_one) = self.sharing.try_lock() else { return };
        // If there is much to drop, whoever comes next goes on.
        if shrink(&self.lower, self.budget_bytes().saturating_sub(weight)) {
            self.settled_bytes.store(weight, Ordering::Relaxed);
        }
    }

    pub(crate) fn counters(&self) -> CacheCounters {
        CacheCounters {
            loads: self.loads.load(Ordering::Relaxed),
            value_loads: self.value_loads(),
            upper_bytes: self.upper.weight(),
            lower_bytes: self.lower.weight(),
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
