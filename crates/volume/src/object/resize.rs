//! Growing, truncating, punching.
//!
//! A truncation touches no data: it unmaps whole chunks, and in the last chunk it leaves stale bytes behind the new end
//! and says so in the record of the size (`tail_is_stale`). Before such an object grows, its tail is made zeros, those
//! are made durable, and only then is the mark taken back. After an unclean stop every object that ends within a chunk
//! has a stale tail, for a write that was under way may have gone behind the end.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::Object;
use crate::chunk::Place;
use crate::class::Keep;
use crate::metadata::{Queue, Record};
use crate::settings::{BLOCK_BYTES, LARGEST_OBJECT};
use crate::{Error, Result};

/// Places that a change takes out of the mapping.
#[derive(Debug, Default)]
pub(crate) struct Freed {
    /// The metadata knew of these,
    pub(crate) journaled: Vec<Place>,
    /// and not of these.
    pub(crate) fresh: Vec<Place>,
}

impl Object {
    /// Makes the object `size_bytes` long: what is cut off is gone, what is added reads as zeros. Durable after the
    /// next sync.
    ///
    /// ```
    /// use tanada_volume::Attributes;
    ///
    /// # let folder = tempfile::tempdir().unwrap();
    /// # tanada_volume::example::run(folder.path(), async |volume| {
    /// let object = volume.create_object("a", &Attributes::default())?;
    /// object.resize(8192).await?;
    /// assert_eq!(object.read_bytes(0, 8192).await?, [0; 8192]);
    /// # Ok(()) }).unwrap();
    /// ```
    ///
    /// # Errors
    /// As for writes.
    pub async fn resize(&self, size_bytes: u64) -> Result<()> {
        self.check_writable()?;
        if let Some(pages) = self.state.pages.get() {
            return self.resize_pages(pages.clone(), size_bytes).await;
        }
        if size_bytes > LARGEST_OBJECT {
            return Err(Error::invalid(format!(
                "object {:?}: an object has at most {LARGEST_OBJECT} bytes",
                self.name()
            )));
        }
        let hold = Arc::new(self.state.holds.hold(0..=u64::MAX, true).await);
        self.check_writable()?;
        if let Some(pages) = self.state.pages.get() {
            drop(hold);
            return self.resize_pages(pages.clone(), size_bytes).await;
        }
        let keep: Keep = hold.clone();
        let size = self.state.size();
        if size_bytes > size && self.state.tail_is_stale.load(Ordering::SeqCst) {
            self.clean_tail_held(&keep).await?;
        }
        if size_bytes != size {
            self.set_size(size_bytes);
        }
        drop(hold);
        Ok(())
    }

    /// Changes the size in memory and in the queue; the caller holds the whole object.
    fn set_size(&self, size_bytes: u64) {
        let state = &self.state;
        let shift = self.core.chunk_shift;
        let (freed, lsn) = self.core.journal.change(|queue| {
            let shrinks = size_bytes < state.size();
            let mut freed = Freed::default();
            if shrinks {
                let first = size_bytes.div_ceil(self.core.chunk_bytes);
                freed = self.unmap(first, u64::MAX, queue);
                state.table.write().cut(first);
                let ends_in_chunk = size_bytes & (self.core.chunk_bytes - 1) != 0;
                let table = state.table.read();
                let last_is_mapped = ends_in_chunk
                    && table.chunk(size_bytes >> shift).is_some_and(|chunk| chunk.home.get().is_some());
                state.tail_is_stale.store(last_is_mapped, Ordering::SeqCst);
            }
            state.size.store(size_bytes, Ordering::SeqCst);
            state.journaled_size.store(size_bytes, Ordering::SeqCst);
            let tail_is_stale = state.tail_is_stale.load(Ordering::SeqCst);
            queue.push(&Record::Size { id: state.id, size_bytes, tail_is_stale });
            freed
        });
        self.core.retire(freed.fresh, 0);
        self.core.retire(freed.journaled, lsn);
    }

    /// Takes `count` chunks from `first` out of the mapping, mirrors too, within a change of the journal.
    pub(crate) fn unmap(&self, first: u64, count: u64, queue: &mut Queue) -> Freed {
        let state = &self.state;
        let mut freed = Freed::default();
        let end = first.saturating_add(count);
        let table = state.table.read();
        let mut fresh = state.fresh.lock();
        for (no, chunk) in table.iter_from(first).take_while(|(no, _)| *no < end) {
            if let Some(place) = chunk.home.get() {
                state.chunks.fetch_sub(1, Ordering::SeqCst);
                match fresh.entries.remove(&no) {
                    Some(_) => freed.fresh.push(place),
                    None => freed.journaled.push(place),
                }
                chunk.home.set(None);
            }
            if let Some(place) = chunk.mirror.get() {
                freed.journaled.push(place);
                chunk.mirror.set(None);
            }
        }
        if !freed.journaled.is_empty() {
            queue.push(&Record::Unmapped { id: state.id, first, count });
        }
        freed
    }

    /// Makes the bytes behind the object's end zeros, durably, so that it may grow.
    pub(super) async fn clean_tail(&self) -> Result<()> {
        loop {
            let last = self.state.size() >> self.core.chunk_shift;
            let hold: Keep = Arc::new(self.state.holds.hold(last..=last, true).await);
            // The object may have been deleted meanwhile, and nothing may be recorded of it then.
            self.check_writable()?;
            if !self.state.tail_is_stale.load(Ordering::SeqCst) {
                return Ok(());
            }
            if self.state.size() >> self.core.chunk_shift == last {
                return self.clean_tail_held(&hold).await;
            }
        }
    }

    async fn clean_tail_held(&self, keep: &Keep) -> Result<()> {
        let state = &self.state;
        let size = state.size();
        let chunk = size >> self.core.chunk_shift;
        let home = state.table.read().chunk(chunk).and_then(|chunk| chunk.home.get());
        if let Some(place) = home {
            self.drop_mirror_before_write(chunk).await?;
            let within = size & (self.core.chunk_bytes - 1);
            self.zero(place, within, self.core.chunk_bytes - within, keep).await?;
            // CRASH: the tail counts as stale still, zeros or not.
            self.core.crash.reached("tail.before-sync");
            self.sync_classes(1 << place.class).await?;
        }
        // CRASH: the zeros are durable, the mark is there still: they are written once more before the object grows.
        self.core.crash.reached("tail.after-sync");
        self.core.journal.change(|queue| {
            state.tail_is_stale.store(false, Ordering::SeqCst);
            let size_bytes = state.journaled_size.load(Ordering::SeqCst);
            queue.push(&Record::Size { id: state.id, size_bytes, tail_is_stale: false });
        });
        Ok(())
    }

    /// Makes `len` bytes at `within` of a chunk zeros; the caller holds the chunk exclusively.
    async fn zero(&self, place: Place, within: u64, len: u64, keep: &Keep) -> Result<()> {
        let class = self.core.class(place.class)?;
        let address = class.address(place.no);
        let end = within + len;
        let (first_whole, last_whole) =
            (within.next_multiple_of(BLOCK_BYTES), end / BLOCK_BYTES * BLOCK_BYTES);
        let wrote = async {
            let mut edges = Vec::new();
            if first_whole > last_whole {
                edges.push((within / BLOCK_BYTES * BLOCK_BYTES, within, end));
            } else {
                if within < first_whole {
                    edges.push((first_whole - BLOCK_BYTES, within, first_whole));
                }
                if last_whole < end {
                    edges.push((last_whole, last_whole, end));
                }
            }
            for (block, from, to) in edges {
                let buffer = self.core.buffers.allocate(BLOCK_BYTES as usize);
                let mut buffer = class.read(address + block, buffer, keep).await?;
                buffer[(from - block) as usize..(to - block) as usize].fill(0);
                class.write(address + block, buffer, keep).await?;
            }
            if first_whole < last_whole {
                let len = last_whole - first_whole;
                class.clear(address + first_whole, len, &self.core.buffers, keep).await?;
            }
            Ok::<(), Error>(())
        };
        let wrote = wrote.await;
        self.state.dirty_classes.fetch_or(1 << class.id, Ordering::SeqCst);
        if let Err(error) = &wrote
            && error.kind() == crate::ErrorKind::Device
        {
            self.state.poison(error);
        }
        wrote
    }

    /// Makes `len` bytes at `offset` read as zeros and frees the chunks that lie wholly within. The size stays. Durable
    /// after the next sync.
    ///
    /// # Errors
    /// As for writes.
    pub async fn punch(&self, offset: u64, len: u64) -> Result<()> {
        self.check_writable()?;
        if let Some(pages) = self.state.pages.get() {
            return self.punch_pages(pages.clone(), offset, len).await;
        }
        let (chunk_bytes, shift) = (self.core.chunk_bytes, self.core.chunk_shift);
        let wanted_end = offset.saturating_add(len);
        if offset >= wanted_end || offset >= self.state.size() {
            return Ok(());
        }
        let hold = Arc::new(self.state.holds.hold(offset >> shift..=(wanted_end - 1) >> shift, true).await);
        self.check_writable()?;
        if let Some(pages) = self.state.pages.get() {
            drop(hold);
            return self.punch_pages(pages.clone(), offset, len).await;
        }
        let keep: Keep = hold.clone();
        let size = self.state.size();
        // The last chunk counts as a whole one if nothing of it is left.
        let end = if wanted_end >= size { size.next_multiple_of(chunk_bytes) } else { wanted_end };
        if offset >= end {
            return Ok(());
        }
        let first_whole = offset.next_multiple_of(chunk_bytes);
        let last_whole = end / chunk_bytes * chunk_bytes;
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
            let chunk = from >> shift;
            let home = self.state.table.read().chunk(chunk).and_then(|chunk| chunk.home.get());
            if let Some(place) = home {
                self.drop_mirror_before_write(chunk).await?;
                self.zero(place, from & (chunk_bytes - 1), to - from, &keep).await?;
            }
        }
        if first_whole < last_whole {
            let (first, count) = (first_whole >> shift, (last_whole - first_whole) >> shift);
            let (freed, lsn) = self.core.journal.change(|queue| self.unmap(first, count, queue));
            self.core.retire(freed.fresh, 0);
            self.core.retire(freed.journaled, lsn);
        }
        drop(keep);
        drop(hold);
        Ok(())
    }
}
