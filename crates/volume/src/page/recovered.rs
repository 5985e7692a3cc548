//! Pages as a log has them, and what becomes of them at an opening.

use super::map::PageMap;
use super::space::Space;
use super::state::PageState;
use super::{PageSettings, Pages, Stored};
use crate::chunk::table::ChunkTable;
use crate::settings::{BLOCK_BYTES, LARGEST_OBJECT};
use crate::transform::{Algorithm, Form, LARGEST_PAGE_BYTES, SMALLEST_PAGE_BYTES};
use crate::{Error, Result};

/// The pages of one object in a log.
#[derive(Debug, Default)]
pub(crate) struct RecoveredPages {
    pub(crate) shift: u32,
    pub(crate) size: u64,
    pub(crate) settings: PageSettings,
    pub(crate) map: PageMap,
}

/// The words of a plain object's pages: each lies where it lies.
pub(crate) fn identity(table: &ChunkTable, chunk_bytes: u64, shift: u32, pages: u64) -> PageMap {
    let blocks = ((1_u64 << shift) / BLOCK_BYTES) as u8;
    let per_chunk = chunk_bytes >> shift;
    let mut map = PageMap::default();
    for (chunk, _) in table.iter_from(0).filter(|(_, chunk)| chunk.home.get().is_some()) {
        for page in (chunk * per_chunk..(chunk + 1) * per_chunk).take_while(|page| *page < pages) {
            let form = Form { algorithm: Algorithm::None, key: None };
            let stored = Stored { block: page * u64::from(blocks), blocks, form };
            map.set(page, stored.encode());
        }
    }
    map
}

impl RecoveredPages {
    /// Pages of so many bytes; the first `pages` of them lie as in a plain object.
    pub(crate) fn new(shift: u8, pages: u64, table: &ChunkTable, chunk_bytes: u64) -> Result<Self, String> {
        let shift = u32::from(shift);
        let is_sane = shift < 32
            && (SMALLEST_PAGE_BYTES..=LARGEST_PAGE_BYTES).contains(&(1_u32 << shift))
            && 1 << shift <= chunk_bytes
            && pages <= LARGEST_OBJECT >> shift;
        if !is_sane {
            return Err(format!("{pages} pages of 2^{shift} bytes"));
        }
        let map = identity(table, chunk_bytes, shift, pages);
        Ok(RecoveredPages { shift, map, ..RecoveredPages::default() })
    }

    /// Neighbouring pages have these words.
    pub(crate) fn set(&mut self, first: u64, words: &[u64]) -> Result<(), String> {
        let end = first.checked_add(words.len() as u64);
        if end.is_none_or(|end| end > LARGEST_OBJECT >> self.shift) {
            return Err(format!("{} pages from {first} are more than an object has", words.len()));
        }
        for (page, word) in (first..).zip(words) {
            Stored::decode(*word).map_err(|why| format!("page {page}: {why}"))?;
            self.map.set(page, *word);
        }
        Ok(())
    }

    pub(crate) fn unmap(&mut self, first: u64, count: u64) {
        let end = first.saturating_add(count);
        let pages: Vec<u64> =
            self.map.iter_from(first).map(|(page, _)| page).take_while(|page| *page < end).collect();
        for page in pages {
            self.map.set(page, 0);
        }
    }

    /// The space in which these pages lie; what is wrong with them, if anything is.
    pub(crate) fn space(
        &self,
        table: &ChunkTable,
        chunk_bytes: u64,
        stored_bytes: u64,
    ) -> Result<Space, String> {
        let blocks_per_chunk = (chunk_bytes / BLOCK_BYTES) as u32;
        let mut space =
            Space::new(blocks_per_chunk, stored_bytes.div_ceil(chunk_bytes), LARGEST_OBJECT / chunk_bytes);
        for (page, word) in self.map.iter_from(0) {
            let Some(Stored { block, blocks, .. }) = Stored::of(word) else { continue };
            let chunk = space.chunk_of(block);
            if table.chunk(chunk).is_none_or(|chunk| chunk.home.get().is_none()) {
                return Err(format!(
                    "page {page} lies in chunk {chunk} of its stored space, which is nowhere"
                ));
            }
            if !space.take_this(block, blocks) {
                return Err(format!(
                    "page {page} lies in blocks {block} to {}, where another page lies",
                    block + u64::from(blocks) - 1
                ));
            }
        }
        for (chunk, _) in table.iter_from(0).filter(|(_, chunk)| chunk.home.get().is_some()) {
            space.add_candidate(chunk);
        }
        Ok(space)
    }

    /// The pages of an open object.
    pub(crate) fn open(
        self,
        name: &str,
        table: &ChunkTable,
        chunk_bytes: u64,
        stored_bytes: u64,
    ) -> Result<Pages> {
        let space = self.space(table, chunk_bytes, stored_bytes);
        let space =
            space.map_err(|why| Error::corrupted(format!("object {name:?}: {why}: check the volume")))?;
        let RecoveredPages { shift, size, settings, map } = self;
        Ok(Pages::new(shift, size, settings, PageState::new(map, space, size)))
    }
}
