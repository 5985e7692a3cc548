//! The filter: which keys a file surely does not have.
//!
//! It is made of parts of one page each, so that it can be resident or come through the cache. A key's part is chosen
//! by its hash: that takes no search, and the filter is asked before the index is. The hash is SipHash-1-3 with a fixed
//! key, taken once a lookup whatever the number of files.
//!
//! The format on the devices depends on what `fastbloom` does with a hash; a test holds it to that.

use fastbloom::BloomFilter;

use super::builder::UnsealedPage;
use super::hash::KeyHash;
use super::page::{HEADER_BYTES, Page, PageAddress, PageKind};
use crate::cache::Reserved;
use crate::notify::yield_now;
use crate::wire::{Decoder, Malformed};

/// The shape of a file's filter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct FilterShape {
    /// In units; the parts follow each other.
    pub(super) first_page: u32,
    /// None if it has no filter.
    pub(super) parts: u32,
    /// Bits that a key sets.
    pub(super) hashes: u16,
}

impl FilterShape {
    /// Returns the filter part of a key.
    #[inline]
    pub(super) fn page_of(&self, hash: KeyHash) -> Option<PageAddress> {
        (self.parts > 0).then(|| PageAddress { no: self.first_page + hash.part(self.parts), units: 1 })
    }
}

/// A part in memory.
#[derive(Debug, Clone)]
pub(crate) struct FilterPart {
    bits: BloomFilter,
}

impl FilterPart {
    #[inline]
    pub(crate) fn may_contain(&self, hash: KeyHash) -> bool {
        self.bits.contains_hash(hash.get())
    }

    /// The part in a page.
    pub(super) fn parse(page: &Page, hashes: u16) -> Result<FilterPart, Malformed> {
        let body = page.body();
        if page.kind != PageKind::Filter || body.is_empty() || !body.len().is_multiple_of(8) {
            return Err(Malformed::new(22, "no part of a filter where one should be"));
        }
        let mut decoder = Decoder::new(body);
        let words: Result<Vec<u64>, Malformed> = (0..body.len() / 8).map(|_| decoder.u64()).collect();
        Ok(FilterPart { bits: BloomFilter::from_vec(words?).hashes(u32::from(hashes)) })
    }

    pub(crate) fn size_bytes(&self) -> usize {
        self.bits.num_bits() / 8
    }
}

/// All parts, held in memory for as long as the file is open.
pub(super) struct ResidentFilter {
    pub(super) parts: Vec<FilterPart>,
    pub(super) _reserved: Reserved,
}

impl ResidentFilter {
    #[inline]
    pub(super) fn may_contain(&self, hash: KeyHash) -> bool {
        let part = self.parts.get(hash.part(self.parts.len() as u32) as usize);
        part.is_none_or(|part| part.may_contain(hash))
    }
}

/// Keys that are hashed before the task yields: some hundred microseconds.
const KEYS_PER_SLICE: usize = 16 << 10;
/// Filter pages that are built before the task yields.
const PAGES_PER_SLICE: usize = 64;

/// Collects the hashes of a file's keys, and makes the filter's pages of them.
#[derive(Debug)]
pub(super) struct FilterBuilder {
    bits_per_key: u32,
    unit_bytes: usize,
    /// In parts, for a long list that grows is copied as a whole.
    hashes: Vec<Vec<KeyHash>>,
}

impl FilterBuilder {
    /// Without bits there is no filter.
    pub(super) fn new(bits_per_key: u32, unit_bytes: usize) -> FilterBuilder {
        FilterBuilder { bits_per_key, unit_bytes, hashes: Vec::new() }
    }

    pub(super) fn add(&mut self, key: &[u8]) {
        if self.bits_per_key == 0 {
            return;
        }
        match self.hashes.last_mut() {
            Some(part) if part.len() < KEYS_PER_SLICE => part.push(KeyHash::of(key)),
            _ => self.hashes.push(vec![KeyHash::of(key)]),
        }
    }

    /// The shape, and the pages from `first_page` on. Other tasks of the thread have their turn meanwhile.
    pub(super) async fn finish(mut self, file_no: u64, first_page: u32) -> (FilterShape, Vec<Vec<u8>>) {
        if self.hashes.is_empty() {
            return (FilterShape::default(), Vec::new());
        }
        let words = (self.unit_bytes - HEADER_BYTES) / 8;
        let keys: usize = self.hashes.iter().map(Vec::len).sum();
        let bits = keys as u64 * u64::from(self.bits_per_key);
        let parts = u32::try_from(bits.div_ceil(words as u64 * 64)).unwrap_or(u32::MAX);
        let keys_per_part = keys.div_ceil(parts as usize);
        let hashes =
            u16::try_from(fastbloom::optimal_hashes(words * 64, keys_per_part)).unwrap_or(u16::MAX).min(16);
        let shape = FilterShape { first_page, parts, hashes };
        let empty = |_| BloomFilter::from_vec(vec![0; words]).hashes(u32::from(hashes));
        let mut filters: Vec<BloomFilter> = (0..parts).map(empty).collect();
        for part in std::mem::take(&mut self.hashes) {
            for hash in part {
                filters[hash.part(parts) as usize].insert_hash(hash.get());
            }
            yield_now().await;
        }
        // Each page takes the place of what it is made of.
        let mut pages = Vec::with_capacity(filters.len());
        for (no, bits) in (first_page..).zip(filters) {
            pages.push(self.page(file_no, no, &bits));
            if pages.len().is_multiple_of(PAGES_PER_SLICE) {
                yield_now().await;
            }
        }
        (shape, pages)
    }

    fn page(&self, file_no: u64, no: u32, bits: &BloomFilter) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(self.unit_bytes);
        bytes.resize(HEADER_BYTES, 0);
        bytes.extend(bits.as_slice().iter().flat_map(|word| word.to_be_bytes()));
        let entries_end = bytes.len() as u32;
        bytes.resize(self.unit_bytes, 0);
        let (kind, address) = (PageKind::Filter, PageAddress { no, units: 1 });
        UnsealedPage { kind, address, entries_end, restarts: 0, entries: 0, bytes }.seal(file_no, 0, 0)
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use futures::executor::block_on;

    use super::*;

    fn build(keys: u32) -> (FilterShape, Vec<FilterPart>) {
        let mut builder = FilterBuilder::new(10, 4096);
        for key in 0..keys {
            builder.add(&key.to_be_bytes());
        }
        let (shape, pages) = block_on(builder.finish(7, 30));
        let part = |(index, page): (usize, Vec<u8>)| {
            let address = PageAddress { no: 30 + index as u32, units: 1 };
            FilterPart::parse(&Page::parse(Bytes::from(page), 7, address).unwrap(), shape.hashes).unwrap()
        };
        (shape, pages.into_iter().enumerate().map(part).collect())
    }

    fn may_contain(filter: &(FilterShape, Vec<FilterPart>), key: u32) -> bool {
        let hash = KeyHash::of(&key.to_be_bytes());
        filter.1[(filter.0.page_of(hash).unwrap().no - 30) as usize].may_contain(hash)
    }

    #[test]
    fn the_filter_has_no_false_negatives_and_one_percent_false_positives() {
        let filter = build(50_000);
        assert!(filter.1.len() > 10);
        assert!((0..50_000).all(|key| may_contain(&filter, key)));
        let wrong = (50_000..150_000).filter(|key| may_contain(&filter, *key)).count();
        assert!(wrong < 1500, "{wrong} of 100,000");
    }

    #[test]
    fn filter_bits_are_stable_across_versions() {
        assert_eq!(KeyHash::of(b"key").get(), KEY_HASH);
        let (_, pages) = {
            let mut builder = FilterBuilder::new(10, 4096);
            for key in 0..1000u32 {
                builder.add(&key.to_be_bytes());
            }
            block_on(builder.finish(7, 30))
        };
        assert_eq!(crc32c::crc32c(&pages[0]), PAGE_CHECKSUM);
    }

    const KEY_HASH: u64 = 14_996_050_505_763_310_370;
    const PAGE_CHECKSUM: u32 = 2_460_918_247;
}
