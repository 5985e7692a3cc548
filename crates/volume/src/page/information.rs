//! What there is to know about the pages of an object.

use std::collections::BTreeMap;

use super::Stored;
use crate::Object;
use crate::settings::BLOCK_BYTES;

/// The pages of an object as they are.
///
/// ```
/// use tanada_volume::{Attributes, Compression};
///
/// # let folder = tempfile::tempdir().unwrap();
/// # tanada_volume::example::run(folder.path(), async |volume| {
/// let packed = Attributes { compression: Compression::Lz4, ..Attributes::default() };
/// let object = volume.create_object("a", &packed)?;
/// object.write_bytes(0, &vec![b'x'; 1 << 20]).await?;
/// let pages = object.page_statistics().unwrap();
/// assert_eq!(pages.page_bytes, 16 << 10);
/// # Ok(()) }).unwrap();
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PageStatistics {
    /// Bytes of a page.
    pub page_bytes: u64,
    /// Bytes of a block: images take whole ones.
    pub block_bytes: u64,
    /// Bytes of the blocks that pages have.
    pub stored_bytes: u64,
    /// Bytes of blocks that no page has any more and that wait for a sync or for reads to end.
    pub retired_bytes: u64,
    /// Pages by algorithm: `none`, `lz4`, `zstd`, `zlib`.
    pub by_algorithm: BTreeMap<String, u64>,
    /// Encrypted pages by the identifier of their key.
    pub by_key: BTreeMap<u16, u64>,
    /// Pages that were never written, or are all zeros: they take no block.
    pub holes: u64,
    /// Pages that were written and wait for a cleaner; those that are stored in an earlier form count there, too.
    pub dirty: u64,
    /// Pages that were written since the opening.
    pub written: u64,
    /// Pages that were read since the opening.
    pub read: u64,
    /// Of the written ones those that had to be read because only a part of them was written.
    pub rewritten_in_part: u64,
}

impl Object {
    /// Its pages, if it has a transform, or had one.
    pub fn page_statistics(&self) -> Option<PageStatistics> {
        let pages = self.state.pages.get()?;
        let state = pages.state.lock();
        let mut all = PageStatistics {
            page_bytes: pages.page_bytes(),
            block_bytes: BLOCK_BYTES,
            retired_bytes: state.retired_blocks() * BLOCK_BYTES,
            holes: pages.pages_below(pages.size()),
            dirty: state.dirty.len(),
            written: state.counters.written,
            read: state.counters.read,
            rewritten_in_part: state.counters.rewritten_in_part,
            ..PageStatistics::default()
        };
        for (_, word) in state.iter() {
            let Some(stored) = Stored::of(word) else { continue };
            all.stored_bytes += stored.bytes() as u64;
            all.holes = all.holes.saturating_sub(1);
            *all.by_algorithm.entry(stored.form.algorithm.to_string()).or_default() += 1;
            if let Some(key) = stored.form.key {
                *all.by_key.entry(key.get()).or_default() += 1;
            }
        }
        let only_dirty = state.dirty.numbers_from(0).filter(|page| state.word(*page) == 0);
        all.holes = all.holes.saturating_sub(only_dirty.count() as u64);
        Some(all)
    }

    /// The bytes that its chunks make up: those of an object with a transform are stored pages, of others the object
    /// itself.
    pub fn stored_space_bytes(&self) -> u64 {
        self.state.size()
    }

    /// The first offset from `offset` on where anything was written, up to a page or a chunk before it; `None` if all
    /// up to the end is a hole.
    pub fn next_data(&self, offset: u64) -> Option<u64> {
        let size = self.size_bytes();
        let data = match self.state.pages.get() {
            _ if self.is_adopted() => Some(offset),
            Some(pages) => {
                pages.state.lock().next_data(offset >> pages.shift).map(|page| page << pages.shift)
            }
            None => {
                let shift = self.core.chunk_shift;
                let table = self.state.table.read();
                let mut chunks = table.iter_from(offset >> shift);
                let found = chunks.find(|(_, chunk)| chunk.home.get().is_some());
                found.map(|(no, _)| no << shift)
            }
        };
        data.map(|data| data.max(offset)).filter(|data| *data < size)
    }

    /// The first offset from `offset` on where nothing was written: at most the end.
    pub fn next_hole(&self, offset: u64) -> u64 {
        let size = self.size_bytes();
        let hole = match self.state.pages.get() {
            _ if self.is_adopted() => size,
            Some(pages) => pages.state.lock().next_hole(offset >> pages.shift) << pages.shift,
            None => {
                let shift = self.core.chunk_shift;
                let table = self.state.table.read();
                let mut next = offset >> shift;
                for (no, chunk) in table.iter_from(next) {
                    if no != next || chunk.home.get().is_none() {
                        break;
                    }
                    next += 1;
                }
                next << shift
            }
        };
        hole.max(offset).min(size)
    }

    /// Whether anything was written within `len` bytes at `offset`; else they read as zeros.
    pub fn has_data(&self, offset: u64, len: u64) -> bool {
        if self.is_adopted() {
            return true;
        }
        let Some(last) = offset.saturating_add(len).checked_sub(1).filter(|last| *last >= offset) else {
            return false;
        };
        match self.state.pages.get() {
            Some(pages) => pages.state.lock().has_data(offset >> pages.shift, (last >> pages.shift) + 1),
            None => {
                let shift = self.core.chunk_shift;
                let table = self.state.table.read();
                let chunks = table.iter_from(offset >> shift).take_while(|(no, _)| *no <= last >> shift);
                let mut homes = chunks.filter(|(_, chunk)| chunk.home.get().is_some());
                homes.next().is_some()
            }
        }
    }
}
