//! Cleaners: pages are transformed and stored behind the back of those who write them.
//!
//! 1. A write puts its pages into memory ([`super::dirty`]) and ends. Where that is full, or where a cleaner might not
//!    find space later (little is free, or the object has a quota), it stores its pages itself: memory is bounded, and
//!    who writes too much does the work.
//! 2. Its object waits in a queue for one of a few cleaners. A cleaner claims the oldest pages, makes images of them,
//!    writes these to free blocks in one go, and switches the map, unless a page was written again meanwhile: then its
//!    image is dropped.
//! 3. A sync waits for the pages that were written before it, and stores those itself that nobody has claimed. So it
//!    comes to its end without any cleaner.
//!
//! A cleaner takes no hold on pages: what it stores counts only while the page still has the bytes that it claimed. It
//! waits for no sync, so a sync may wait for it.
//!
//! A device that fails under a cleaner poisons the object, as one that fails under a write does. If there is no space,
//! pages stay in memory and the next sync says so; nothing is lost, and a later one may succeed.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Poll, Waker};

use super::cleaning::Cleaning;
use super::dirty::{PageBytes, Room};
use super::write::is_full;
use super::{Boxed, Pages, Stored};
use crate::crash::PlantedBug;
use crate::volume::Core;
use crate::{Error, Object, Result};

/// Bytes of pages that a cleaner claims at once.
const BATCH_BYTES: u64 = 1 << 20;

/// Chunks that have to be free beyond what waits in memory, so that a cleaner finds space.
const SPARE_CHUNKS: u64 = 2;

/// How often a sync that finds no space makes some.
const MOST_ATTEMPTS: u32 = 2;

/// A cleaner that counts as running, until it is dropped.
struct Running {
    core: Arc<Core>,
    has_ended: bool,
}

impl Running {
    /// The next object; without one the cleaner has ended.
    fn next(&mut self) -> Option<Object> {
        let cleaning = self.core.cleaning.as_ref()?;
        let mut queue = cleaning.queue.lock();
        let Some(state) = queue.objects.pop_front() else {
            // Under the lock: who queues an object from here on starts another one.
            queue.running -= 1;
            self.has_ended = true;
            return None;
        };
        if let Some(pages) = state.pages.get() {
            pages.is_queued.store(false, Ordering::SeqCst);
        }
        drop(queue);
        Some(Object { core: self.core.clone(), state })
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if !self.has_ended
            && let Some(cleaning) = &self.core.cleaning
        {
            cleaning.queue.lock().running -= 1;
        }
    }
}

/// Pages that somebody is about to store; nobody's again when dropped.
struct Claimed {
    pages: Arc<Pages>,
    batch: Vec<(u64, PageBytes)>,
}

impl Claimed {
    fn take(pages: &Arc<Pages>, until: u64) -> Claimed {
        let most = (BATCH_BYTES >> pages.shift).max(1) as usize;
        let batch = pages.state.lock().dirty.claim(most, until);
        Claimed { pages: pages.clone(), batch }
    }
}

impl Drop for Claimed {
    fn drop(&mut self) {
        {
            let mut state = self.pages.state.lock();
            self.batch.iter().for_each(|(page, bytes)| state.dirty.unclaim(*page, bytes));
        }
        let waiting = std::mem::take(&mut *self.pages.stored.lock());
        waiting.into_iter().for_each(Waker::wake);
    }
}

impl Object {
    /// Memory for the pages of a write, if they may wait for a cleaner.
    pub(super) fn room_for(&self, pages: &Pages, count: u64) -> Option<Vec<Room>> {
        let cleaning = self.core.cleaning.as_ref()?;
        if pages.is_full.load(Ordering::SeqCst) || self.state.attributes.lock().quota_bytes.is_some() {
            return None;
        }
        let (wanted, only) = self.wanted_class();
        let needed = cleaning.memory.limit_bytes() + SPARE_CHUNKS * self.core.chunk_bytes;
        if self.core.free_bytes(wanted, only) < needed {
            return None;
        }
        cleaning.memory.take(count, pages.page_bytes())
    }

    /// Has a cleaner look at the object.
    pub(super) fn wake_cleaner(&self, pages: &Pages) {
        let Some(cleaning) = &self.core.cleaning else { return };
        {
            let mut queue = cleaning.queue.lock();
            if !pages.is_queued.swap(true, Ordering::SeqCst) {
                queue.objects.push_back(self.state.clone());
            }
            if queue.running >= cleaning.cleaners.count || queue.objects.is_empty() {
                return;
            }
            queue.running += 1;
        }
        let mut running = Running { core: self.core.clone(), has_ended: false };
        cleaning.cleaners.spawn.spawn(Box::pin(async move {
            while let Some(object) = running.next() {
                object.clean_some().await;
            }
        }));
    }

    /// A cleaner's turn on the object: one batch.
    async fn clean_some(&self) {
        let Some(pages) = self.state.pages.get() else { return };
        let claimed = Claimed::take(pages, u64::MAX);
        if claimed.batch.is_empty() {
            return;
        }
        let is_more = pages.state.lock().dirty.has_unclaimed();
        if is_more {
            self.wake_cleaner(pages);
        }
        let cleaned = self.clean(&claimed).await;
        if let Err(error) = &cleaned {
            self.cleaning_failed(pages, error);
        }
        // Those that wait find what was said above.
        drop(claimed);
    }

    fn cleaning_failed(&self, pages: &Pages, error: &Error) {
        if is_full(error) {
            pages.is_full.store(true, Ordering::SeqCst);
        } else if self.state.is_deleted.load(Ordering::SeqCst) {
            pages.forget_dirty();
        } else if self.core.check_writable().is_ok() {
            self.state.poison(error);
        }
    }

    /// Stores claimed pages, as far as they are not written again meanwhile.
    async fn clean(&self, claimed: &Claimed) -> Result<()> {
        let pages = &claimed.pages;
        // CRASH: the pages are in memory only, and no sync covers them.
        self.core.crash.reached("page.before-clean");
        self.check_writable()?;
        let chain = self.chain(pages)?;
        let mut sealed = Vec::with_capacity(claimed.batch.len());
        for (page, bytes) in &claimed.batch {
            sealed.push((*page, self.seal(&chain, *page, bytes)?));
        }
        let mut taken = self.try_store(pages, &sealed, false).await?;
        // CRASH: as in a write, the images are written, and no page has them.
        self.core.crash.reached("page.before-switch");
        let mut state = pages.state.lock();
        let period = self.core.grace.period();
        let mut all = std::mem::take(&mut taken.stored).into_iter();
        for ((page, sealed), (_, bytes)) in sealed.iter().zip(&claimed.batch) {
            let stored = sealed.as_ref().and_then(|_| all.next());
            if state.dirty.is_still(*page, bytes) {
                state.switch(*page, stored.map_or(0, Stored::encode), period);
            } else if let Some(Stored { block, blocks, .. }) = stored {
                // Nobody has seen this image.
                state.space.give_back(block, blocks);
            }
        }
        Ok(())
    }

    /// Returns when all pages are stored that are older than `until`. The caller has the turn to sync.
    pub(super) fn drain<'a>(&'a self, pages: &'a Arc<Pages>, until: u64) -> Boxed<'a, ()> {
        Box::pin(async move { self.drain_in_turn(pages, until).await })
    }

    async fn drain_in_turn(&self, pages: &Arc<Pages>, until: u64) -> Result<()> {
        if self.core.bug == PlantedBug::SyncBeforeCleaners {
            return Ok(());
        }
        let mut attempts = 0;
        while pages.state.lock().dirty.has_older(until) {
            if self.state.is_deleted.load(Ordering::SeqCst) {
                pages.forget_dirty();
                return Ok(());
            }
            let claimed = Claimed::take(pages, until);
            if claimed.batch.is_empty() {
                drop(claimed);
                pages.until_stored(until).await;
                continue;
            }
            match self.clean(&claimed).await {
                Ok(()) => attempts = 0,
                Err(error) if is_full(&error) && attempts < MOST_ATTEMPTS => {
                    drop(claimed);
                    attempts += 1;
                    self.make_durable(self.note_stored()).await?;
                    self.wait_for_retired(pages).await;
                }
                Err(error) => return Err(error),
            }
        }
        pages.is_full.store(false, Ordering::SeqCst);
        Ok(())
    }
}

impl Pages {
    /// Drops what waits for a cleaner: the object is deleted.
    pub(crate) fn forget_dirty(&self) {
        self.state.lock().dirty.remove_range(0, u64::MAX);
    }

    /// Waits until all pages older than `until` are stored, or one of them is nobody's.
    async fn until_stored(&self, until: u64) {
        std::future::poll_fn(|context| {
            self.stored.lock().push(context.waker().clone());
            let state = self.state.lock();
            let is_over = !state.dirty.has_older(until) || state.dirty.has_unclaimed_older(until);
            if is_over { Poll::Ready(()) } else { Poll::Pending }
        })
        .await;
    }
}

impl crate::Volume {
    /// Bytes of pages that were written and wait in memory for a cleaner.
    pub fn dirty_bytes(&self) -> u64 {
        self.core.cleaning.as_ref().map_or(0, Cleaning::dirty_bytes)
    }
}
