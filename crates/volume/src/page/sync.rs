//! What a sync of an object does for its pages: see [`super::state`].

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::Pages;
use crate::crash::PlantedBug;
use crate::metadata::Record;
use crate::metadata::journal::Lsn;
use crate::{Object, Result};

/// What a sync makes durable of the pages of an object.
pub(crate) struct NotedPages {
    pub(crate) pages: Arc<Pages>,
    size: u64,
}

impl Object {
    /// Stores what waits for a cleaner and notes what is there then. Before this the sync may note nothing else: what
    /// it notes of data, chunks and the stored size has to cover it. The caller has the turn to sync.
    pub(crate) async fn note_pages(&self) -> Result<Option<NotedPages>> {
        let Some(pages) = self.state.pages.get().cloned() else { return Ok(None) };
        // The size first: the last page was made clean before it grew, and what grows it from here on is not covered.
        let size = pages.size();
        let until = pages.state.lock().dirty.age();
        let is_dirty = pages.state.lock().dirty.has_older(until);
        if is_dirty {
            self.drain(&pages, until).await?;
        }
        pages.state.lock().note(self.core.grace.period());
        Ok(Some(NotedPages { pages, size }))
    }

    /// Notes what is stored now. The size does not grow if pages wait for a cleaner, for these may be in front of its
    /// end.
    pub(crate) fn note_stored(&self) -> Option<NotedPages> {
        let pages = self.state.pages.get()?.clone();
        let size = pages.size();
        let mut state = pages.state.lock();
        let size = if state.dirty.is_empty() { size } else { size.min(state.journaled_size) };
        state.note(self.core.grace.period());
        drop(state);
        Some(NotedPages { pages, size })
    }

    /// Queues what was noted; the last change to commit. The mapping of the chunks where these pages lie is queued
    /// already.
    pub(crate) fn queue_pages(&self, noted: &NotedPages) -> Lsn {
        let NotedPages { pages, size } = noted;
        let id = self.state.id;
        let (replaced, lsn) = self.core.journal.change(|queue| {
            if self.state.is_deleted.load(Ordering::SeqCst) {
                return Vec::new();
            }
            let mut state = pages.state.lock();
            // It may have been cut shorter since; then that record stands.
            let size = (*size).min(pages.size());
            // Pages in front of the end first: the last of them was made clean for what comes behind it.
            let end = pages.pages_below(state.journaled_size);
            let mut replaced = state.journal_noted(id, 0, end, queue);
            if size > state.journaled_size {
                state.journaled_size = size;
                queue.push(&Record::LogicalSize { id, size_bytes: size });
                queue.end_group();
            }
            // Pages behind the end belong to a write that is under way; they stay fresh until the object reaches them.
            let new_end = pages.pages_below(state.journaled_size);
            replaced.extend(state.journal_noted(id, end, new_end, queue));
            replaced
        });
        pages.state.lock().retire(replaced, lsn, self.core.grace.period());
        lsn
    }

    /// Makes retired blocks free that may be, and gives chunks back in which nothing is taken any more.
    pub(crate) fn reclaim_pages(&self, pages: &Arc<Pages>) {
        let durable = self.core.journal.durable();
        let grace = &self.core.grace;
        let reuses_early = self.core.bug == PlantedBug::ReusePagesEarly;
        pages.state.lock().reclaim(|lsn, period| (lsn <= durable || reuses_early) && grace.is_over(period));
        let candidates = pages.state.lock().space.candidates();
        for chunk in candidates {
            // Somebody works on it, or the device does: another time.
            let Some(hold) = self.state.holds.try_hold(chunk..=chunk, true) else { continue };
            // CRASH: no page of the metadata lies there: that is durable.
            self.core.crash.reached("page.before-chunk-release");
            let (freed, lsn) = self.core.journal.change(|queue| {
                let mut state = pages.state.lock();
                let is_gone = self.state.is_deleted.load(Ordering::SeqCst);
                if is_gone || !state.space.forget_candidate(chunk) {
                    return None;
                }
                Some(self.unmap(chunk, 1, queue))
            });
            drop(hold);
            if let Some(freed) = freed {
                self.core.retire(freed.fresh, 0);
                self.core.retire(freed.journaled, lsn);
            }
        }
    }
}
