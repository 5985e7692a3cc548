//! The layout of a space the other way round: whose a page is, and which indexes lie in each chunk of the file.
//!
//! Storage moves a file in chunks and sees offsets alone; what it should move together, and for which index, follows
//! from here. A page that an index has in reserve is that index's, too: it is read with its extent, and what comes into
//! it next is the index's.

use std::collections::BTreeMap;

use super::layout::{IndexLayout, SpaceLayout};
use crate::{Error, ErrorKind, PageNo, PageRange, Result};

/// What lies in one chunk of a file.
#[derive(Debug, Clone, PartialEq)]
pub struct ChunkLayout<'a> {
    /// The chunk's place in the file: it begins at this times a chunk's bytes.
    pub chunk: u64,
    /// The indexes that have pages in it, in the order of the layout.
    pub indexes: Vec<IndexInChunk<'a>>,
}

/// The pages that an index has in a chunk.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct IndexInChunk<'a> {
    /// The index.
    pub index: &'a IndexLayout,
    /// Its pages in use there: leaves, nodes above them, off-page values.
    pub used_pages: u32,
    /// Those, and the pages that it has there in reserve.
    pub allocated_pages: u32,
}

impl SpaceLayout {
    /// The index whose page `page` is, in use or in reserve; `None` for a page that is free, the space's own or another
    /// table's, or not in the file.
    pub fn index_of(&self, page: PageNo) -> Option<&IndexLayout> {
        self.indexes.iter().find(|index| {
            let lists = [&index.leaf, &index.inner, &index.off_page, &index.reserved];
            lists.iter().any(|ranges| is_among(ranges, page))
        })
    }

    /// Which indexes lie in each chunk of `chunk_bytes` of the file, and with how many pages: ascending, without chunks
    /// in which no index has a page. The last chunk of a file may have less than its bytes.
    ///
    /// # Errors
    /// `InvalidInput` unless a chunk holds a whole number of pages, at least one.
    pub fn chunks(&self, chunk_bytes: u64) -> Result<Vec<ChunkLayout<'_>>> {
        let page_bytes = u64::from(self.page_size.0);
        if chunk_bytes == 0 || page_bytes == 0 || !chunk_bytes.is_multiple_of(page_bytes) {
            let what = format!(
                "chunks of {chunk_bytes} bytes do not hold a whole number of pages of {page_bytes} bytes"
            );
            return Err(Error::new(ErrorKind::InvalidInput, what));
        }
        let chunk_pages = chunk_bytes / page_bytes;
        let mut chunks: BTreeMap<u64, Vec<IndexInChunk<'_>>> = BTreeMap::new();
        for index in &self.indexes {
            for (ranges, is_used) in
                [(&index.leaf, true), (&index.inner, true), (&index.off_page, true), (&index.reserved, false)]
            {
                for range in ranges {
                    for (chunk, pages) in pieces(range, chunk_pages) {
                        let indexes = chunks.entry(chunk).or_default();
                        // One index after the other, so it is the last one if it is there.
                        if indexes.last().is_none_or(|last| !std::ptr::eq(last.index, index)) {
                            indexes.push(IndexInChunk { index, used_pages: 0, allocated_pages: 0 });
                        }
                        if let Some(last) = indexes.last_mut() {
                            let used = if is_used { pages } else { 0 };
                            last.used_pages = last.used_pages.saturating_add(used);
                            last.allocated_pages = last.allocated_pages.saturating_add(pages);
                        }
                    }
                }
            }
        }
        Ok(chunks.into_iter().map(|(chunk, indexes)| ChunkLayout { chunk, indexes }).collect())
    }
}

/// Whether one of ascending `ranges` holds `page`.
fn is_among(ranges: &[PageRange], page: PageNo) -> bool {
    let before = ranges.partition_point(|range| range.first <= page);
    before.checked_sub(1).and_then(|no| ranges.get(no)).is_some_and(|range| range.holds(page))
}

/// The chunks that `range` lies in, with its pages in each.
fn pieces(range: &PageRange, chunk_pages: u64) -> impl Iterator<Item = (u64, u32)> + use<> {
    let (mut at, end) = (u64::from(range.first.0), u64::from(range.end()));
    std::iter::from_fn(move || {
        if at >= end {
            return None;
        }
        let chunk = at / chunk_pages;
        let next = end.min((chunk + 1) * chunk_pages);
        let pages = (next - at) as u32;
        at = next;
        Some((chunk, pages))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{PageSize, SpaceId};

    fn range(first: u32, pages: u32) -> PageRange {
        PageRange { first: PageNo(first), pages }
    }

    fn index(name: &str, leaf: &[PageRange], inner: &[PageRange], reserved: &[PageRange]) -> IndexLayout {
        IndexLayout {
            index: None,
            name: name.to_owned(),
            id: 1,
            clustered: false,
            root: PageNo(0),
            height: 2,
            leaf: leaf.to_vec(),
            inner: inner.to_vec(),
            off_page: Vec::new(),
            reserved: reserved.to_vec(),
            steps: None,
        }
    }

    /// Pages 0 to 2 are the space's, 3 and 70 are free.
    fn space() -> SpaceLayout {
        SpaceLayout {
            path: "t.ibd".into(),
            space: SpaceId(7),
            page_size: PageSize(16 << 10),
            pages: 200,
            indexes: vec![
                index("PRIMARY", &[range(4, 60), range(71, 58)], &[range(64, 1)], &[range(129, 63)]),
                index("i_other", &[range(66, 4)], &[range(65, 1)], &[]),
            ],
            free: vec![range(3, 1), range(70, 1), range(192, 8)],
            other: vec![range(0, 3)],
            walked: false,
        }
    }

    #[test]
    fn a_page_is_of_one_index_or_of_none() {
        let space = space();
        let of = |page| space.index_of(PageNo(page)).map(|index| index.name.as_str());
        for page in [4, 63, 64, 71, 128, 129, 191] {
            assert_eq!(of(page), Some("PRIMARY"), "{page}");
        }
        for page in [65, 66, 69] {
            assert_eq!(of(page), Some("i_other"), "{page}");
        }
        for page in [0, 2, 3, 70, 192, 199, 200, u32::MAX] {
            assert_eq!(of(page), None, "{page}");
        }
    }

    #[test]
    fn chunks_have_the_pages_of_their_indexes() {
        let space = space();
        let of = |chunk_bytes: u64| {
            let mut found = Vec::new();
            for chunk in space.chunks(chunk_bytes).unwrap() {
                for one in chunk.indexes {
                    found.push((chunk.chunk, one.index.name.as_str(), one.used_pages, one.allocated_pages));
                }
            }
            found
        };
        // Chunks of 64 pages.
        let expected =
            [(0, "PRIMARY", 60, 60), (1, "PRIMARY", 58, 58), (1, "i_other", 5, 5), (2, "PRIMARY", 1, 64)];
        assert_eq!(of(1 << 20), expected);
        // One of all.
        assert_eq!(of(1 << 30), [(0, "PRIMARY", 119, 182), (0, "i_other", 5, 5)]);
        // One for each page that an index has.
        assert_eq!(of(16 << 10).len(), 182 + 5);
        assert_eq!(of(16 << 10)[62], (66, "i_other", 1, 1));
    }

    #[test]
    fn chunks_hold_whole_pages() {
        for wrong in [0, 1, 8 << 10, 24 << 10, u64::MAX] {
            assert_eq!(space().chunks(wrong).unwrap_err().kind(), ErrorKind::InvalidInput, "{wrong}");
        }
    }
}
