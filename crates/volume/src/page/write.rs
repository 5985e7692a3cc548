//! Writes of pages.
//!
//! 1. Hold the pages. If the object grows and the bytes behind its end are stale, its last page is written anew first.
//! 2. A page that is written in part is read and changed; what was behind the object's end is zeros.
//! 3. Each page is transformed; one of zeros becomes a hole. The images take free blocks and are written there,
//!    neighbours in one go.
//! 4. When all are written the map switches. Nothing of the pages before has changed until then.
//!
//! With cleaners, 3 and 4 are theirs: a write ends when its pages are in memory ([`super::clean`]), unless that is
//! full.
//!
//! If there is no space, the object is synced: then the blocks that its pages had before are free. If that does not
//! help, nothing was changed.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use futures::future::try_join_all;
use tanada_io::Buffer;

use super::dirty::{PageBytes, Room};
use super::read::overlap;
use super::{Boxed, Pages, Stored};
use crate::settings::BLOCK_BYTES;
use crate::transform::{Chain, PageId, Sealed};
use crate::waiting::HoldGuard;
use crate::{Error, ErrorKind, Object, Result};

/// Pages of a write that are transformed and written in one go.
const BATCH_BYTES: u64 = 1 << 20;

/// Images are written in one go up to this many bytes.
const LARGEST_WRITE_BYTES: usize = 1 << 20;

/// Blocks that were taken for images; free again when dropped, unless pages have them.
pub(super) struct Taken {
    pages: Arc<Pages>,
    pub(super) stored: Vec<Stored>,
}

impl Drop for Taken {
    fn drop(&mut self) {
        let mut state = self.pages.state.lock();
        for stored in self.stored.drain(..) {
            // What the device may still be writing there is held until it is done.
            state.space.give_back(stored.block, stored.blocks);
        }
    }
}

/// Pages of a write: images that are to be stored now, or contents that wait for a cleaner.
struct Written {
    sealed: Vec<(u64, Option<Sealed>)>,
    dirty: Vec<(u64, PageBytes, Room)>,
}

impl Object {
    /// Writes logical bytes.
    pub(crate) fn write_pages(&self, pages: Arc<Pages>, offset: u64, buffer: Buffer) -> Boxed<'_, Buffer> {
        Box::pin(async move { self.write_batches(&pages, offset, buffer).await })
    }

    async fn write_batches(&self, pages: &Arc<Pages>, offset: u64, buffer: Buffer) -> Result<Buffer> {
        let batch = BATCH_BYTES.max(pages.page_bytes());
        let mut at = 0;
        while at < buffer.len() {
            let begin = offset + at as u64;
            let len = (batch - begin % batch).min((buffer.len() - at) as u64) as usize;
            self.write_batch(pages, begin, &buffer[at..at + len]).await?;
            at += len;
        }
        Ok(buffer)
    }

    async fn write_batch(&self, pages: &Arc<Pages>, offset: u64, bytes: &[u8]) -> Result<()> {
        let end = offset + bytes.len() as u64;
        let (first, last) = (offset >> pages.shift, (end - 1) >> pages.shift);
        let _hold = self.hold_to_write(pages, first, last, end).await?;
        let chain = self.chain(pages)?;
        let size = pages.size();
        let mut written = Written { sealed: Vec::new(), dirty: Vec::new() };
        let mut room = self.room_for(pages, last - first + 1);
        for page in first..=last {
            let (from, into) = overlap(pages, page, offset, bytes.len());
            let is_whole = into.len() as u64 == pages.page_bytes();
            let whole = if is_whole { None } else { Some(self.page_before(pages, page, &into, size).await?) };
            let whole = whole.map(|mut whole| {
                whole[into].copy_from_slice(&bytes[from.clone()]);
                whole
            });
            let content = whole.as_deref().unwrap_or(&bytes[from]);
            match room.as_mut().and_then(Vec::pop) {
                Some(room) => written.dirty.push((page, PageBytes::from(content), room)),
                None => written.sealed.push((page, self.seal(&chain, page, content)?)),
            }
        }
        if written.dirty.is_empty() {
            self.store(pages, written.sealed, false).await?;
            pages.size.fetch_max(end, Ordering::SeqCst);
            return Ok(());
        }
        {
            let mut state = pages.state.lock();
            state.counters.written += written.dirty.len() as u64;
            for (page, bytes, room) in written.dirty {
                state.dirty.put(page, bytes, room);
            }
        }
        pages.size.fetch_max(end, Ordering::SeqCst);
        self.wake_cleaner(pages);
        Ok(())
    }

    /// What a page holds of which `into` is about to be overwritten.
    async fn page_before(
        &self,
        pages: &Arc<Pages>,
        page: u64,
        into: &std::ops::Range<usize>,
        size: u64,
    ) -> Result<Vec<u8>> {
        // What is behind the end needs no reading.
        let begin = page << pages.shift;
        if into.start == 0 && begin + into.end as u64 >= size {
            return Ok(vec![0; pages.page_bytes() as usize]);
        }
        {
            let mut state = pages.state.lock();
            state.counters.rewritten_in_part += u64::from(state.dirty.get(page).is_none());
        }
        self.read_whole_page(pages, page).await
    }

    /// Holds pages that are about to change, when the bytes behind the object's end are zeros as far as they will be in
    /// front of it.
    async fn hold_to_write(&self, pages: &Arc<Pages>, first: u64, last: u64, end: u64) -> Result<HoldGuard> {
        loop {
            let hold = pages.holds.hold(first..=last, true).await;
            self.check_writable()?;
            let size = pages.size();
            let tail = size >> pages.shift;
            let is_behind = end > size && !(first..=last).contains(&tail);
            if !is_behind || !pages.tail_is_stale.load(Ordering::SeqCst) {
                return Ok(hold);
            }
            drop(hold);
            self.clean_page_tail(pages).await?;
        }
    }

    /// Makes the bytes of the last page behind the object's end zeros.
    pub(super) async fn clean_page_tail(&self, pages: &Arc<Pages>) -> Result<()> {
        loop {
            let last = pages.size() >> pages.shift;
            let _hold = pages.holds.hold(last..=last, true).await;
            self.check_writable()?;
            if !pages.tail_is_stale.load(Ordering::SeqCst) {
                return Ok(());
            }
            if pages.size() >> pages.shift == last {
                return self.clean_page_tail_held(pages).await;
            }
        }
    }

    /// The same; the caller holds the last page.
    pub(super) async fn clean_page_tail_held(&self, pages: &Arc<Pages>) -> Result<()> {
        let size = pages.size();
        let last = size >> pages.shift;
        if !size.is_multiple_of(pages.page_bytes()) && pages.state.lock().is_written(last) {
            let whole = self.read_whole_page(pages, last).await?;
            let sealed = self.seal(&self.chain(pages)?, last, &whole)?;
            self.store(pages, vec![(last, sealed)], false).await?;
        }
        pages.tail_is_stale.store(false, Ordering::SeqCst);
        Ok(())
    }

    /// What is done to new pages of the object.
    pub(super) fn chain(&self, pages: &Pages) -> Result<Chain> {
        let settings = *pages.settings.lock();
        Chain::new(self.core.id, settings.compression, settings.key, &self.core.keys)
            .map_err(|error| Error::new(error.kind(), format!("object {:?}: {error}", self.name())))
    }

    /// The image of a page; none for a page of zeros.
    pub(super) fn seal(&self, chain: &Chain, page: u64, bytes: &[u8]) -> Result<Option<Sealed>> {
        if bytes.iter().all(|byte| *byte == 0) {
            return Ok(None);
        }
        chain.seal(PageId { object: self.state.id, page }, bytes).map(Some)
    }

    /// Stores images of pages that the caller holds, and switches the map to them.
    pub(super) async fn store(
        &self,
        pages: &Arc<Pages>,
        sealed: Vec<(u64, Option<Sealed>)>,
        in_new: bool,
    ) -> Result<()> {
        let mut attempts = 0;
        let mut taken = loop {
            match self.try_store(pages, &sealed, in_new && attempts == 0).await {
                Ok(taken) => break taken,
                Err(error) if attempts < 2 && is_full(&error) => {
                    attempts += 1;
                    self.make_space(pages).await?;
                }
                Err(error) => return Err(error),
            }
        };
        // CRASH: the images are written, and no page has them.
        self.core.crash.reached("page.before-switch");
        let mut state = pages.state.lock();
        // Under the lock: whoever has looked up what is there now has entered its period of grace.
        let period = self.core.grace.period();
        let mut stored = taken.stored.drain(..);
        for (page, sealed) in &sealed {
            let word = if sealed.is_some() { stored.next().map_or(0, Stored::encode) } else { 0 };
            state.switch(*page, word, period);
            state.counters.written += 1;
        }
        Ok(())
    }

    /// Writes the images to blocks that it takes for them.
    pub(super) async fn try_store(
        &self,
        pages: &Arc<Pages>,
        sealed: &[(u64, Option<Sealed>)],
        in_new: bool,
    ) -> Result<Taken> {
        let images: Vec<&Sealed> = sealed.iter().filter_map(|(_, sealed)| sealed.as_ref()).collect();
        let mut taken = Taken { pages: pages.clone(), stored: Vec::with_capacity(images.len()) };
        let mut last_block = 0;
        {
            let mut state = pages.state.lock();
            for image in &images {
                let blocks = (image.bytes.len() as u64 / BLOCK_BYTES) as u8;
                let block = state.space.take(blocks, in_new);
                let Some(block) = block else { break };
                last_block = last_block.max(block);
                taken.stored.push(Stored { block, blocks, form: image.form });
            }
        }
        if taken.stored.len() < images.len() {
            let message =
                format!("object {:?}: its stored space is as large as an object can be", self.name());
            return Err(Error::new(ErrorKind::NoSpace, message));
        }
        if images.is_empty() {
            return Ok(taken);
        }
        // The stored space ends with a chunk, so it has no tail.
        let end = (((last_block * BLOCK_BYTES) >> self.core.chunk_shift) + 1) << self.core.chunk_shift;
        self.state.size.fetch_max(end, Ordering::SeqCst);
        let mut runs: Vec<(u64, Vec<&[u8]>, usize)> = Vec::new();
        for (stored, image) in taken.stored.iter().zip(&images) {
            match runs.last_mut() {
                Some((offset, parts, bytes))
                    if *offset + *bytes as u64 == stored.offset()
                        && *bytes + image.bytes.len() <= LARGEST_WRITE_BYTES =>
                {
                    parts.push(&image.bytes);
                    *bytes += image.bytes.len();
                }
                _ => runs.push((stored.offset(), vec![&image.bytes], image.bytes.len())),
            }
        }
        let writes = runs.into_iter().map(|(offset, parts, bytes)| {
            let mut buffer = self.core.buffers.allocate(bytes);
            let mut at = 0;
            for part in parts {
                buffer[at..at + part.len()].copy_from_slice(part);
                at += part.len();
            }
            self.write_plain(offset, buffer, true)
        });
        try_join_all(writes).await?;
        Ok(taken)
    }

    /// Has the blocks free that pages had before their last write.
    async fn make_space(&self, pages: &Arc<Pages>) -> Result<()> {
        self.sync_stored().await?;
        self.wait_for_retired(pages).await;
        Ok(())
    }

    /// Waits until blocks are free that are retired, as far as that is durable.
    pub(super) async fn wait_for_retired(&self, pages: &Arc<Pages>) {
        let newest = pages.state.lock().newest_retired();
        if let Some(period) = newest {
            self.core.grace.wait(period).await;
            self.reclaim_pages(pages);
        }
    }
}

pub(super) fn is_full(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::NoSpace | ErrorKind::QuotaExceeded)
}
