//! Reads of pages.
//!
//! 1. Enter a period of grace, look up the words of all pages.
//! 2. Images that lie one behind the other are read in one go, all of these at once.
//! 3. Each is verified and transformed back. If one is damaged and came from a mirror, its home is asked.

use std::sync::Arc;

use futures::future::try_join_all;
use tanada_io::{Buffer, Completion, Operation, Request};

use super::dirty::PageBytes;
use super::{Boxed, Pages, Stored};
use crate::object::read::into_io;
use crate::settings::BLOCK_BYTES;
use crate::transform::{PageId, open};
use crate::{Error, ErrorKind, Object, Result};

/// Images are read in one go up to this many bytes.
const LARGEST_READ_BYTES: usize = 1 << 20;

/// Neighbouring images, in the order of their pages.
#[derive(Debug)]
struct Run {
    offset: u64,
    bytes: usize,
    pages: Vec<(u64, Stored)>,
}

/// Pages that are no holes, in runs.
fn runs(pages: impl IntoIterator<Item = (u64, Stored)>) -> Vec<Run> {
    let mut runs: Vec<Run> = Vec::new();
    for (page, stored) in pages {
        match runs.last_mut() {
            Some(run)
                if run.offset + run.bytes as u64 == stored.offset()
                    && run.bytes + stored.bytes() <= LARGEST_READ_BYTES =>
            {
                run.bytes += stored.bytes();
                run.pages.push((page, stored));
            }
            _ => {
                runs.push(Run { offset: stored.offset(), bytes: stored.bytes(), pages: vec![(page, stored)] })
            }
        }
    }
    runs
}

impl Object {
    /// Reads logical bytes; the buffer comes back shortened if the object ends before.
    pub(crate) fn read_pages(&self, pages: Arc<Pages>, offset: u64, buffer: Buffer) -> Boxed<'_, Buffer> {
        Box::pin(async move { self.read_runs(&pages, offset, buffer).await })
    }

    async fn read_runs(&self, pages: &Arc<Pages>, offset: u64, mut buffer: Buffer) -> Result<Buffer> {
        self.state.check_there()?;
        let len = (buffer.len() as u64).min(pages.size().saturating_sub(offset)) as usize;
        buffer.truncate(len);
        if len == 0 {
            return Ok(buffer);
        }
        // Blocks that are retired from here on are not used again before this is dropped.
        let _grace = self.core.grace.enter();
        let (first, last) = (offset >> pages.shift, (offset + len as u64 - 1) >> pages.shift);
        let mut dirty: Vec<(u64, PageBytes)> = Vec::new();
        let found: Vec<(u64, Option<Stored>)> = {
            let mut state = pages.state.lock();
            state.counters.read += last - first + 1;
            let numbers = state.dirty.numbers_from(first).take_while(|page| *page <= last);
            dirty.extend(numbers.filter_map(|page| Some((page, state.dirty.get(page)?.clone()))));
            let stored =
                |page| if state.dirty.get(page).is_some() { None } else { Stored::of(state.word(page)) };
            (first..=last).map(|page| (page, stored(page))).collect()
        };
        let holes = found.iter().filter(|(_, stored)| stored.is_none()).map(|(page, _)| *page);
        for page in holes {
            let (into, _) = overlap(pages, page, offset, len);
            buffer[into].fill(0);
        }
        for (page, bytes) in dirty {
            let (into, from) = overlap(pages, page, offset, len);
            buffer[into].copy_from_slice(&bytes[from]);
        }
        let runs = runs(found.into_iter().filter_map(|(page, stored)| Some((page, stored?))));
        let reads = runs.iter().map(|run| self.read_stored(run.offset, run.bytes));
        let images = try_join_all(reads).await?;
        let mut whole = Vec::new();
        for (run, images) in runs.iter().zip(&images) {
            let mut at = 0;
            for (page, stored) in &run.pages {
                let image = &images[at..at + stored.bytes()];
                at += stored.bytes();
                let (into, from) = overlap(pages, *page, offset, len);
                if from.len() as u64 == pages.page_bytes() {
                    self.open_page(*page, stored, image, &mut buffer[into]).await?;
                } else {
                    whole.resize(pages.page_bytes() as usize, 0);
                    self.open_page(*page, stored, image, &mut whole).await?;
                    buffer[into].copy_from_slice(&whole[from]);
                }
            }
        }
        Ok(buffer)
    }

    /// Makes the page of its image; if that is damaged, of what the home has.
    async fn open_page(&self, page: u64, stored: &Stored, image: &[u8], into: &mut [u8]) -> Result<()> {
        let id = PageId { object: self.state.id, page };
        let opened = open(self.core.id, &self.core.keys, id, stored.form, image, into);
        let Err(error) = opened else { return Ok(()) };
        // What was deleted meanwhile lies nowhere.
        self.state.check_there()?;
        let mut failure = error;
        if failure.kind() == ErrorKind::Corrupted {
            // The mirror may be gone already, by a page that was read with this one.
            self.distrust_stored(stored);
            let again = self.read_stored(stored.offset(), stored.bytes()).await?;
            match open(self.core.id, &self.core.keys, id, stored.form, &again, into) {
                Ok(()) => return Ok(()),
                Err(error) => failure = error,
            }
        }
        let what = format!("object {:?}, page {page} at offset {}", self.name(), page * into.len() as u64);
        Err(Error::new(failure.kind(), format!("{what}: {failure}")))
    }

    /// Has the mirrors of the pages within `len` bytes at `offset` read no more.
    pub(crate) fn distrust_pages(&self, pages: &Arc<Pages>, offset: u64, len: u64) {
        let last = offset.saturating_add(len.max(1)).min(pages.size().max(1)) - 1;
        for page in offset >> pages.shift..=last >> pages.shift {
            let stored = Stored::of(pages.state.lock().word(page));
            if let Some(stored) = &stored {
                self.distrust_stored(stored);
            }
        }
    }

    /// Has the mirror of a stored page read no more.
    fn distrust_stored(&self, stored: &Stored) {
        let chunk = stored.offset() >> self.core.chunk_shift;
        let has_mirror =
            self.state.table.read().chunk(chunk).is_some_and(|chunk| chunk.mirror.get().is_some());
        if has_mirror {
            self.distrust_mirrors(stored.offset(), stored.bytes() as u64);
        }
    }

    /// Reads whole blocks of the stored space.
    pub(super) async fn read_stored(&self, offset: u64, bytes: usize) -> Result<Buffer> {
        let buffer = self.core.buffers.allocate(bytes);
        let (buffer, done) = self.read_aligned(offset, buffer, 0..bytes as u64).await?;
        if done < bytes {
            self.state.check_there()?;
            let what = format!("object {:?}: {bytes} bytes at {offset} of its stored space", self.name());
            return Err(Error::corrupted(format!("{what} end after {done}: check the volume")));
        }
        Ok(buffer)
    }

    /// The page as it is, of its full length; with zeros behind the object's end.
    pub(super) async fn read_whole_page(&self, pages: &Arc<Pages>, page: u64) -> Result<Vec<u8>> {
        let _grace = self.core.grace.enter();
        let mut whole = vec![0; pages.page_bytes() as usize];
        let (stored, dirty) = {
            let state = pages.state.lock();
            (Stored::of(state.word(page)), state.dirty.get(page).cloned())
        };
        if let Some(bytes) = dirty {
            whole.copy_from_slice(&bytes);
        } else if let Some(stored) = stored {
            let image = self.read_stored(stored.offset(), stored.bytes()).await?;
            self.open_page(page, &stored, &image, &mut whole).await?;
        }
        let left = pages.size().saturating_sub(page << pages.shift).min(pages.page_bytes());
        whole[left as usize..].fill(0);
        Ok(whole)
    }

    /// Reads for the backend.
    pub(crate) async fn read_pages_for(&self, pages: &Arc<Pages>, request: Request, completion: Completion) {
        debug_assert_eq!(request.operation, Operation::Read);
        let Some(mut buffer) = request.buffer else {
            return completion.complete(Err(std::io::Error::from(std::io::ErrorKind::InvalidInput)), None);
        };
        debug_assert!(request.offset.is_multiple_of(BLOCK_BYTES));
        let whole = self.core.buffers.allocate(request.len as usize);
        match self.read_pages(pages.clone(), request.offset, whole).await {
            Ok(found) => {
                buffer[request.from..request.from + found.len()].copy_from_slice(&found);
                completion.complete(Ok(found.len()), Some(buffer));
            }
            Err(error) => completion.complete(Err(into_io(error)), Some(buffer)),
        }
    }
}

/// Where a page's bytes go in a request of `len` bytes at `offset`, and which bytes of the page these are.
pub(super) fn overlap(
    pages: &Pages,
    page: u64,
    offset: u64,
    len: usize,
) -> (std::ops::Range<usize>, std::ops::Range<usize>) {
    let begin = page << pages.shift;
    let from = offset.max(begin);
    let to = (offset + len as u64).min(begin + pages.page_bytes());
    ((from - offset) as usize..(to - offset) as usize, (from - begin) as usize..(to - begin) as usize)
}
