//! Growing, truncating and punching of objects with pages.
//!
//! A truncation takes pages out of the map and leaves stale bytes behind the end in the last page, which is made clean
//! before the object grows. A new size of an object that grows becomes durable with the next sync, behind the page that
//! was made clean.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::{Boxed, Pages};
use crate::metadata::{Queue, Record};
use crate::settings::LARGEST_OBJECT;
use crate::{Error, Object, Result};

impl Object {
    /// Makes the object `size_bytes` long.
    pub(crate) fn resize_pages(&self, pages: Arc<Pages>, size_bytes: u64) -> Boxed<'_, ()> {
        Box::pin(async move { self.resize_held(&pages, size_bytes).await })
    }

    async fn resize_held(&self, pages: &Arc<Pages>, size_bytes: u64) -> Result<()> {
        if size_bytes > LARGEST_OBJECT {
            return Err(Error::invalid(format!(
                "object {:?}: an object has at most {LARGEST_OBJECT} bytes",
                self.name()
            )));
        }
        let _hold = pages.holds.hold(0..=u64::MAX, true).await;
        self.check_writable()?;
        let size = pages.size();
        if size_bytes > size {
            if pages.tail_is_stale.load(Ordering::SeqCst) {
                self.clean_page_tail_held(pages).await?;
            }
            pages.size.store(size_bytes, Ordering::SeqCst);
        } else if size_bytes < size {
            let first = pages.pages_below(size_bytes);
            self.unmap_pages(pages, first, u64::MAX, |queue| {
                let mut state = pages.state.lock();
                let ends_in_page = !size_bytes.is_multiple_of(pages.page_bytes());
                let is_stale = ends_in_page && state.is_written(size_bytes >> pages.shift);
                pages.tail_is_stale.store(is_stale, Ordering::SeqCst);
                pages.size.store(size_bytes, Ordering::SeqCst);
                state.journaled_size = size_bytes;
                queue.push(&Record::LogicalSize { id: self.state.id, size_bytes });
            });
        }
        Ok(())
    }

    /// Makes holes of pages that the caller holds, and whatever else `also` does, in one change.
    fn unmap_pages(&self, pages: &Arc<Pages>, first: u64, count: u64, also: impl FnOnce(&mut Queue)) {
        let (freed, lsn) = self.core.journal.change(|queue| {
            if self.state.is_deleted.load(Ordering::SeqCst) {
                return None;
            }
            let freed = pages.state.lock().unmap(self.state.id, first, count, queue);
            also(queue);
            Some(freed)
        });
        let Some(freed) = freed else { return };
        let period = self.core.grace.period();
        let mut state = pages.state.lock();
        state.retire(freed.fresh, 0, period);
        state.retire(freed.journaled, lsn, period);
    }

    /// Makes `len` bytes at `offset` zeros; pages that lie wholly within become holes.
    pub(crate) fn punch_pages(&self, pages: Arc<Pages>, offset: u64, len: u64) -> Boxed<'_, ()> {
        Box::pin(async move { self.punch_held(&pages, offset, len).await })
    }

    async fn punch_held(&self, pages: &Arc<Pages>, offset: u64, len: u64) -> Result<()> {
        let wanted_end = offset.saturating_add(len);
        if offset >= wanted_end || offset >= pages.size() {
            return Ok(());
        }
        let shift = pages.shift;
        let _hold = pages.holds.hold(offset >> shift..=(wanted_end - 1) >> shift, true).await;
        self.check_writable()?;
        let size = pages.size();
        let page_bytes = pages.page_bytes();
        // The last page counts as a whole one if nothing of it is left.
        let end = if wanted_end >= size { size.next_multiple_of(page_bytes) } else { wanted_end };
        if offset >= end {
            return Ok(());
        }
        let (first_whole, last_whole) = (offset.next_multiple_of(page_bytes), end / page_bytes * page_bytes);
        let mut edges = Vec::new();
        if first_whole > last_whole {
            edges.push((offset, end));
        } else {
            if offset < first_whole {
                edges.push((offset, first_whole));
            }
            if last_whole < end {
                edges.push((last_whole, end));
            }
        }
        for (from, to) in edges {
            let page = from >> shift;
            if !pages.state.lock().is_written(page) {
                continue;
            }
            let mut whole = self.read_whole_page(pages, page).await?;
            let begin = page << shift;
            whole[(from - begin) as usize..(to - begin) as usize].fill(0);
            let sealed = self.seal(&self.chain(pages)?, page, &whole)?;
            self.store(pages, vec![(page, sealed)], false).await?;
        }
        if first_whole < last_whole {
            self.unmap_pages(pages, first_whole >> shift, (last_whole - first_whole) >> shift, |_| {});
        }
        Ok(())
    }
}
