//! The words of an object's pages: leaves of neighbours, made when first needed.

/// Pages of a leaf: 2 KiB.
pub(crate) const PAGES_PER_LEAF: u64 = 256;

type Leaf = Box<[u64; PAGES_PER_LEAF as usize]>;

/// A word for each page; 0 where nothing was written.
#[derive(Debug, Default)]
pub(crate) struct PageMap {
    leaves: Vec<Option<Leaf>>,
}

impl PageMap {
    pub(crate) fn get(&self, page: u64) -> u64 {
        let leaf = self.leaves.get((page / PAGES_PER_LEAF) as usize).and_then(Option::as_ref);
        leaf.map_or(0, |leaf| leaf[(page % PAGES_PER_LEAF) as usize])
    }

    /// Replaces the word of a page; the one before.
    pub(crate) fn set(&mut self, page: u64, word: u64) -> u64 {
        let place = (page / PAGES_PER_LEAF) as usize;
        if place >= self.leaves.len() {
            if word == 0 {
                return 0;
            }
            self.leaves.resize_with(place + 1, || None);
        }
        if word == 0 && self.leaves[place].is_none() {
            return 0;
        }
        let leaf = self.leaves[place].get_or_insert_with(|| Box::new([0; PAGES_PER_LEAF as usize]));
        std::mem::replace(&mut leaf[(page % PAGES_PER_LEAF) as usize], word)
    }

    /// All pages from `first` on that are no holes.
    pub(crate) fn iter_from(&self, first: u64) -> impl Iterator<Item = (u64, u64)> {
        let leaves = self.leaves.iter().enumerate().skip((first / PAGES_PER_LEAF) as usize);
        leaves
            .flat_map(|(place, leaf)| {
                let base = place as u64 * PAGES_PER_LEAF;
                leaf.iter().flat_map(move |leaf| {
                    leaf.iter().enumerate().map(move |(i, word)| (base + i as u64, *word))
                })
            })
            .filter(move |(page, word)| *page >= first && *word != 0)
    }

    /// Bytes of memory that it takes.
    #[cfg(test)]
    pub(crate) fn memory_bytes(&self) -> usize {
        let leaves = self.leaves.iter().flatten().count();
        leaves * size_of::<[u64; PAGES_PER_LEAF as usize]>()
            + self.leaves.capacity() * size_of::<Option<Leaf>>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_found_where_they_were_put() {
        let mut map = PageMap::default();
        for page in [0, 255, 256, 9000] {
            assert_eq!(map.set(page, page + 1), 0);
        }
        assert_eq!(map.set(255, 7), 256);
        assert_eq!(map.iter_from(255).collect::<Vec<_>>(), [(255, 7), (256, 257), (9000, 9001)]);
        assert_eq!((map.get(1), map.get(1 << 40)), (0, 0));
        assert_eq!(map.set(1 << 40, 0), 0);
        assert_eq!(map.set(255, 0), 7);
        assert_eq!(map.iter_from(1).count(), 2);
        assert!(map.memory_bytes() < 3 * 2048 + 8 * 64);
    }
}
