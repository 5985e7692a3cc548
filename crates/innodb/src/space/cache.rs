//! The page cache.
//!
//! Invariants:
//! - the pages held weigh at most the capacity (pages that queries hold on to live on outside of it);
//! - of the requests for a page that is not held, one reads it and the others wait for it; if the reader fails or is
//!   dropped, the next of them takes over;
//! - pages that are used once, as by a scan, do not push out pages that are used again (S3-FIFO with a memory of what
//!   it dropped).

use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use quick_cache::sync::{Cache, PlaceholderGuard};
use quick_cache::{DefaultHashBuilder, Lifecycle, Weighter};

use crate::{Page, PageNo};

/// Which of all files opened by this process; never used twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct FileInstance(u64);

impl FileInstance {
    pub(super) fn next() -> FileInstance {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        FileInstance(NEXT.fetch_add(1, Ordering::Relaxed))
    }
}

/// A page of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct PageKey {
    file: FileInstance,
    page: PageNo,
}

impl PageKey {
    pub(super) fn new(file: FileInstance, page: PageNo) -> PageKey {
        PageKey { file, page }
    }
}

impl Hash for PageKey {
    fn hash<H: Hasher>(&self, state: &mut H) {
        // One word is hashed faster than two; files that differ by a multiple of 2^32 would merely collide.
        state.write_u64(self.file.0 << 32 ^ u64::from(self.page.0));
    }
}

/// What a cached page costs beside its bytes: its entry and its header.
const ENTRY_BYTES: u64 = 128;

#[derive(Debug, Clone)]
struct PageWeighter;

impl Weighter<PageKey, Page> for PageWeighter {
    fn weight(&self, _: &PageKey, page: &Page) -> u64 {
        page.bytes().len() as u64 + ENTRY_BYTES
    }
}

#[derive(Debug, Clone)]
struct CountEvictions(Arc<AtomicU64>);

impl Lifecycle<PageKey, Page> for CountEvictions {
    /// Pages dropped after the cache's lock is free again.
    type RequestState = Vec<Page>;

    fn on_evict(&self, dropped: &mut Vec<Page>, _: PageKey, page: Page) {
        self.0.fetch_add(1, Ordering::Relaxed);
        dropped.push(page);
    }
}

/// Pages of all tablespaces in bounded memory: single-flight, scan-resistant.
pub struct PageCache {
    pages: Cache<PageKey, Page, PageWeighter, DefaultHashBuilder, CountEvictions>,
    hits: Striped,
    misses: Striped,
    shared: Striped,
    evictions: Arc<AtomicU64>,
    capacity_bytes: u64,
}

/// Counters of a [`PageCache`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PageCacheCounters {
    /// Pages found.
    pub hits: u64,
    /// Pages read.
    pub misses: u64,
    /// Requests that waited for another's read.
    pub shared: u64,
    /// Pages dropped for room.
    pub evictions: u64,
    /// Bytes held.
    pub bytes: u64,
}

impl PageCache {
    /// A cache of at most `capacity_bytes`.
    pub fn new(capacity_bytes: u64) -> Arc<PageCache> {
        let evictions = Arc::new(AtomicU64::new(0));
        let usual_pages = usize::try_from(capacity_bytes / 16384).unwrap_or(usize::MAX);
        let pages = Cache::with(
            usual_pages,
            capacity_bytes,
            PageWeighter,
            DefaultHashBuilder::default(),
            CountEvictions(evictions.clone()),
        );
        let [hits, misses, shared] = [(); 3].map(|()| Striped::default());
        Arc::new(PageCache { pages, hits, misses, shared, evictions, capacity_bytes })
    }

    /// Empties it (what queries hold stays valid).
    pub fn clear(&self) {
        self.pages.clear();
    }

    /// Most bytes that it holds.
    pub fn capacity_bytes(&self) -> u64 {
        self.capacity_bytes
    }

    /// Its counters.
    pub fn counters(&self) -> PageCacheCounters {
        PageCacheCounters {
            hits: self.hits.sum(),
            misses: self.misses.sum(),
            shared: self.shared.sum(),
            evictions: self.evictions.load(Ordering::Relaxed),
            bytes: self.pages.weight(),
        }
    }

    /// The page, if it is held.
    pub(super) fn get(&self, key: PageKey) -> Option<Page> {
        let page = self.pages.get(&key)?;
        self.hits.add_one();
        Some(page)
    }

    /// Waits for the page if another request reads it; otherwise the caller is the one to read it.
    pub(super) async fn claim(&self, key: PageKey) -> Claim<'_> {
        match self.pages.get_value_or_guard_async(&key).await {
            Ok(page) => {
                self.shared.add_one();
                Claim::Shared(page)
            }
            Err(guard) => {
                self.misses.add_one();
                Claim::Read(ReadTicket(guard))
            }
        }
    }
}

impl fmt::Debug for PageCache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PageCache").field("counters", &self.counters()).finish_non_exhaustive()
    }
}

/// Answer to a request for a page that was not held.
pub(super) enum Claim<'a> {
    /// Another request read it.
    Shared(Page),
    /// The caller reads it.
    Read(ReadTicket<'a>),
}

/// The duty to read a page; dropping it hands the duty to the next request.
pub(super) struct ReadTicket<'a>(
    PlaceholderGuard<'a, PageKey, Page, PageWeighter, DefaultHashBuilder, CountEvictions>,
);

impl ReadTicket<'_> {
    /// Hands the page to the cache and to all that wait.
    pub(super) fn fulfil(self, page: Page) {
        // An error means that the cache was cleared meanwhile; those who wait get the page all the same.
        let _ = self.0.insert(page);
    }
}

/// A counter that threads do not contend for.
#[derive(Default)]
struct Striped([Stripe; STRIPES]);

#[derive(Default)]
#[repr(align(128))]
struct Stripe(AtomicU64);

const STRIPES: usize = 16;

impl Striped {
    fn add_one(&self) {
        static THREADS: AtomicUsize = AtomicUsize::new(0);
        thread_local! {
            static STRIPE: usize = THREADS.fetch_add(1, Ordering::Relaxed) % STRIPES;
        }
        self.0[STRIPE.with(|stripe| *stripe)].0.fetch_add(1, Ordering::Relaxed);
    }

    fn sum(&self) -> u64 {
        self.0.iter().map(|stripe| stripe.0.load(Ordering::Relaxed)).sum()
    }
}

#[cfg(test)]
mod tests {
    use std::future::Future;
    use std::pin::pin;
    use std::task::{Context, Poll};

    use futures::task::noop_waker;

    use super::*;
    use crate::SpaceId;

    fn page(no: u32) -> Page {
        Page::from_vec(SpaceId(1), PageNo(no), vec![no as u8; 16384])
    }

    fn poll<F: Future>(future: std::pin::Pin<&mut F>) -> Poll<F::Output> {
        future.poll(&mut Context::from_waker(&noop_waker()))
    }

    #[test]
    fn a_dropped_reader_hands_the_duty_to_another_and_its_page_reaches_all() {
        let cache = PageCache::new(1 << 20);
        let key = PageKey::new(FileInstance::next(), PageNo(7));
        let mut first = pin!(cache.claim(key));
        let mut waiting = [0, 1].map(|_| Box::pin(cache.claim(key)));
        let Poll::Ready(Claim::Read(dropped)) = poll(first.as_mut()) else { panic!("the first must read") };
        assert!(waiting.iter_mut().all(|claim| poll(claim.as_mut()).is_pending()));
        drop(dropped);
        let mut tickets = Vec::new();
        for claim in &mut waiting {
            match poll(claim.as_mut()) {
                Poll::Ready(Claim::Read(ticket)) => tickets.push(ticket),
                Poll::Ready(Claim::Shared(_)) => panic!("nobody has read it"),
                Poll::Pending => {}
            }
        }
        assert_eq!(tickets.len(), 1);
        tickets.remove(0).fulfil(page(7));
        assert_eq!(cache.get(key).map(|found| found.number()), Some(PageNo(7)));
        let counters = cache.counters();
        assert_eq!((counters.misses, counters.shared, counters.hits), (2, 0, 1));
    }

    #[test]
    fn a_waiter_that_gives_up_does_not_take_the_duty_along() {
        // Which of the two the duty goes to is not defined: each gives up once.
        for gone in [0, 1] {
            let cache = PageCache::new(1 << 20);
            let key = PageKey::new(FileInstance::next(), PageNo(7));
            let mut first = pin!(cache.claim(key));
            let mut waiting = [0, 1].map(|_| Some(Box::pin(cache.claim(key))));
            let Poll::Ready(Claim::Read(dropped)) = poll(first.as_mut()) else {
                panic!("the first must read")
            };
            assert!(waiting.iter_mut().flatten().all(|claim| poll(claim.as_mut()).is_pending()));
            drop(dropped);
            waiting[gone] = None;
            let left = waiting.iter_mut().flatten().next().map(|claim| poll(claim.as_mut()));
            assert!(matches!(left, Some(Poll::Ready(Claim::Read(_)))));
        }
    }

    #[test]
    fn clearing_does_not_disturb_a_read_in_flight() {
        let cache = PageCache::new(1 << 20);
        let key = PageKey::new(FileInstance::next(), PageNo(7));
        let mut waiting = [0, 1].map(|_| Box::pin(cache.claim(key)));
        let Poll::Ready(Claim::Read(ticket)) = poll(waiting[0].as_mut()) else {
            panic!("the first must read")
        };
        assert!(poll(waiting[1].as_mut()).is_pending());
        cache.clear();
        ticket.fulfil(page(7));
        assert!(matches!(poll(waiting[1].as_mut()), Poll::Ready(Claim::Shared(_))));
        assert!(cache.counters().bytes <= 16384 + ENTRY_BYTES);
    }

    #[test]
    fn a_cache_without_room_still_shares_reads() {
        let cache = PageCache::new(0);
        let key = PageKey::new(FileInstance::next(), PageNo(7));
        let mut waiting = [0, 1].map(|_| Box::pin(cache.claim(key)));
        let Poll::Ready(Claim::Read(ticket)) = poll(waiting[0].as_mut()) else {
            panic!("the first must read")
        };
        assert!(poll(waiting[1].as_mut()).is_pending());
        ticket.fulfil(page(7));
        assert!(matches!(poll(waiting[1].as_mut()), Poll::Ready(Claim::Shared(_))));
        assert_eq!(cache.counters().bytes, 0);
    }
}
