//! The change buffer: changes to secondary leaves that the server has not made yet.
//!
//! To spare a random read, MySQL and MariaDB before 11 put changes to a secondary leaf that is not in memory into a
//! tree of the system tablespace (`innodb_change_buffering`: `all` by default in MySQL up to 8.3 and in 9.7), and make
//! them when the page is next read. A shutdown with `innodb_fast_shutdown = 1`, the default, leaves them there: such a
//! leaf lacks entries, or has ones that are gone. Clustered indexes are never changed this way.
//!
//! Which leaves are concerned, every tablespace says itself (`ibuf0ibuf.cc`):
//!
//! 1. page 1 of each group of as many pages as a page has bytes is a bitmap with four bits a page, from [`BITMAP`], low
//!    bits first: two of free space, BUFFERED, and one for pages of the change buffer itself;
//! 2. a page marked BUFFERED that is a leaf names its index. What is marked but no leaf was freed since; no tree leads
//!    there.
//!
//! Indexes that cannot be told apart any more (a bitmap or page that is damaged or all zeros, more marked pages than it
//! pays to read) all count as concerned. Servers without a change buffer write bitmaps all the same.

use std::collections::BTreeSet;

use futures::stream::{self, StreamExt};
use tanada_io::IoContext;

use super::Tablespace;
use crate::page::header::{page_type, u16_at, u64_at};
use crate::{Page, PageNo};

/// Behind the page header and two segment headers, as on a page of a B+tree.
const BITMAP: usize = 94;
const BUFFERED: u8 = 4;
/// The bitmap's place in its group.
const BITMAP_PAGE: u32 = 1;
const LEVEL: usize = 64;
const INDEX_ID: usize = 66;
/// Marked pages that are read to tell whose they are.
const MOST_PAGES: usize = 4096;
/// Page reads in flight at once.
const READS: usize = 64;

/// The indexes of a tablespace whose leaves are not up to date.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Stale {
    /// Those with these ids; usually none.
    Indexes(BTreeSet<u64>),
    /// Any of the secondary ones.
    Any,
}

impl Stale {
    /// Whether all leaves are up to date.
    pub(crate) fn is_none(&self) -> bool {
        matches!(self, Stale::Indexes(ids) if ids.is_empty())
    }

    /// Whether the leaves of the secondary index `id` may not be up to date.
    pub(crate) fn holds(&self, id: u64) -> bool {
        match self {
            Stale::Indexes(ids) => ids.contains(&id),
            Stale::Any => true,
        }
    }
}

impl Tablespace {
    /// Which indexes have leaves with changes in the change buffer. Reads one page in as many as a page has bytes, and
    /// those that are marked.
    pub(crate) async fn stale_indexes(&self, context: &IoContext) -> Stale {
        let groups = (0..self.pages()).step_by(self.page_size().bytes());
        let bitmap = |group: u32| async move {
            let page = self.page(PageNo(group.saturating_add(BITMAP_PAGE)), context).await;
            page.map(|page| (page, group))
        };
        // The last group may have been cut off before its bitmap.
        let there = groups.filter(|group| group.saturating_add(BITMAP_PAGE) < self.pages());
        let mut bitmaps = stream::iter(there).map(bitmap).buffer_unordered(READS);
        let mut marked = Vec::new();
        while let Some(bitmap) = bitmaps.next().await {
            let Ok((page, group)) = bitmap else { return Stale::Any };
            if self.is_lost(&page) {
                return Stale::Any;
            }
            let is_bitmap = self.is_of_type(&page, &[page_type::CHANGE_BUFFER_BITMAP]);
            marked.extend(buffered(&page, is_bitmap, group).filter(|no| no.0 < self.pages()));
            if marked.len() > MOST_PAGES {
                return Stale::Any;
            }
        }
        let owner = |no| async move { self.page(no, context).await.map(|page| index_of(&page)) };
        let mut owners = stream::iter(marked).map(owner).buffer_unordered(READS);
        let mut ids = BTreeSet::new();
        while let Some(owner) = owners.next().await {
            let Ok(owner) = owner else { return Stale::Any };
            ids.extend(owner);
        }
        Stale::Indexes(ids)
    }
}

/// The pages that `bitmap` marks, if it is a bitmap, of the group that starts with page `group`.
fn buffered(bitmap: &Page, is_bitmap: bool, group: u32) -> impl Iterator<Item = PageNo> {
    let bytes = bitmap.bytes();
    let bits = bytes.get(BITMAP..BITMAP + bytes.len() / 2).filter(|_| is_bitmap).unwrap_or_default();
    bits.iter().enumerate().flat_map(move |(at, pair)| {
        let first = group.saturating_add(2 * at as u32);
        let page =
            |half: u32| (pair >> (4 * half) & BUFFERED != 0).then(|| PageNo(first.saturating_add(half)));
        [page(0), page(1)].into_iter().flatten()
    })
}

/// The index that `page` is a leaf of.
fn index_of(page: &Page) -> Option<u64> {
    let is_leaf = page.page_type() == page_type::INDEX && u16_at(page.bytes(), LEVEL) == 0;
    is_leaf.then(|| u64_at(page.bytes(), INDEX_ID))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SpaceId;

    fn bitmap(bits: &[(usize, u8)]) -> Page {
        let mut bytes = vec![0; 16384];
        for (at, byte) in bits {
            bytes[BITMAP + at] = *byte;
        }
        Page::from_vec(SpaceId(1), PageNo(1), bytes)
    }

    #[test]
    fn marked_pages_are_told_from_full_ones_and_the_buffers_own() {
        let marks = [(0, 0x4b), (1, 0xbb), (2, 0x3c), (8191, 0xc0)];
        let page = bitmap(&marks);
        let found: Vec<u32> = buffered(&page, true, 32768).map(|no| no.0).collect();
        assert_eq!(found, [32769, 32772, 32768 + 16383]);
        assert_eq!(buffered(&page, true, u32::MAX - 1).count(), 3);
        assert_eq!(buffered(&page, false, 0).count(), 0);
    }

    #[test]
    fn any_holds_all_and_a_list_what_it_lists() {
        assert!(Stale::Any.holds(7) && !Stale::Any.is_none());
        assert!(Stale::Indexes(BTreeSet::new()).is_none());
        let one = Stale::Indexes(BTreeSet::from([7]));
        assert!(one.holds(7) && !one.holds(8) && !one.is_none());
    }
}
