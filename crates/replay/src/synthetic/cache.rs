//! The page cache above: least recently used, so many pages.

use tanada_placement::ChunkNo;

use crate::lists::Lists;

#[derive(Debug)]
pub(super) struct PageCache {
    pages: Lists,
    capacity: u32,
}

/// What came of asking for a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Asked {
    Hit,
    /// It has to be read, and this page was given up for it.
    Miss(Option<u32>),
}

impl PageCache {
    pub(super) fn new(capacity: u32) -> PageCache {
        PageCache { pages: Lists::new(1), capacity: capacity.max(1) }
    }

    pub(super) fn ask(&mut self, page: u32) -> Asked {
        let is_hit = self.pages.contains(ChunkNo(page));
        self.pages.push_front(0, ChunkNo(page));
        if is_hit {
            return Asked::Hit;
        }
        let given_up = if self.pages.len() > self.capacity { self.pages.pop_back(0) } else { None };
        Asked::Miss(given_up.map(|page| page.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reread_pages_stay_in_the_page_cache() {
        let mut cache = PageCache::new(2);
        assert_eq!(
            [cache.ask(1), cache.ask(2), cache.ask(1)],
            [Asked::Miss(None), Asked::Miss(None), Asked::Hit]
        );
        assert_eq!(cache.ask(3), Asked::Miss(Some(2)));
    }
}
