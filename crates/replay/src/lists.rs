//! Doubly linked lists over chunk numbers: what least-recently-used orders are made of.
//!
//! All lists of a policy share one table of links, so a chunk is in at most one of them and every change takes constant
//! time.
//!
//! Invariant: a chunk's `list` names the list whose links lead to it; the lengths are those of the chains.

use tanada_placement::ChunkNo;

const NONE: u32 = u32::MAX;

#[derive(Debug, Clone, Copy)]
struct Link {
    before: u32,
    after: u32,
    list: u32,
}

const FREE: Link = Link { before: NONE, after: NONE, list: NONE };

#[derive(Debug, Clone, Copy)]
struct Ends {
    front: u32,
    back: u32,
    len: u32,
}

/// Some lists; chunks of higher numbers are made room for as they come.
#[derive(Debug, Clone)]
pub(crate) struct Lists {
    links: Vec<Link>,
    ends: Vec<Ends>,
    len: u32,
}

impl Lists {
    pub(crate) fn new(lists: usize) -> Lists {
        Lists { links: Vec::new(), ends: vec![Ends { front: NONE, back: NONE, len: 0 }; lists], len: 0 }
    }

    /// The list that the chunk is in.
    pub(crate) fn list_of(&self, chunk: ChunkNo) -> Option<usize> {
        self.links.get(chunk.index()).filter(|link| link.list != NONE).map(|link| link.list as usize)
    }

    pub(crate) fn contains(&self, chunk: ChunkNo) -> bool {
        self.list_of(chunk).is_some()
    }

    /// Chunks in all lists.
    pub(crate) fn len(&self) -> u32 {
        self.len
    }

    pub(crate) fn len_of(&self, list: usize) -> u32 {
        self.ends[list].len
    }

    pub(crate) fn front(&self, list: usize) -> Option<ChunkNo> {
        Some(self.ends[list].front).filter(|no| *no != NONE).map(ChunkNo)
    }

    pub(crate) fn back(&self, list: usize) -> Option<ChunkNo> {
        Some(self.ends[list].back).filter(|no| *no != NONE).map(ChunkNo)
    }

    /// Towards the front.
    pub(crate) fn before(&self, chunk: ChunkNo) -> Option<ChunkNo> {
        self.links.get(chunk.index()).map(|link| link.before).filter(|no| *no != NONE).map(ChunkNo)
    }

    /// Puts the chunk at the front of `list`, wherever it was before.
    pub(crate) fn push_front(&mut self, list: usize, chunk: ChunkNo) {
        self.remove(chunk);
        if self.links.len() <= chunk.index() {
            self.links.resize(chunk.index() + 1, FREE);
        }
        let ends = &mut self.ends[list];
        self.links[chunk.index()] = Link { before: NONE, after: ends.front, list: list as u32 };
        match ends.front {
            NONE => ends.back = chunk.0,
            front => self.links[front as usize].before = chunk.0,
        }
        ends.front = chunk.0;
        ends.len += 1;
        self.len += 1;
    }

    /// Puts the chunk at the back of `list`, wherever it was before.
    pub(crate) fn push_back(&mut self, list: usize, chunk: ChunkNo) {
        self.push_front(list, chunk);
        let ends = &mut self.ends[list];
        if ends.back == chunk.0 {
            return;
        }
        let second = self.links[chunk.index()].after;
        let last = std::mem::replace(&mut ends.back, chunk.0);
        ends.front = second;
        self.links[second as usize].before = NONE;
        self.links[last as usize].after = chunk.0;
        self.links[chunk.index()] = Link { before: last, after: NONE, list: list as u32 };
    }

    /// Takes the chunk out of its list; whether it was in one.
    pub(crate) fn remove(&mut self, chunk: ChunkNo) -> bool {
        let Some(list) = self.list_of(chunk) else { return false };
        let link = std::mem::replace(&mut self.links[chunk.index()], FREE);
        let ends = &mut self.ends[list];
        match link.before {
            NONE => ends.front = link.after,
            before => self.links[before as usize].after = link.after,
        }
        match link.after {
            NONE => ends.back = link.before,
            after => self.links[after as usize].before = link.before,
        }
        ends.len -= 1;
        self.len -= 1;
        true
    }

    /// Takes out the last of `list`.
    pub(crate) fn pop_back(&mut self, list: usize) -> Option<ChunkNo> {
        let last = self.back(list)?;
        self.remove(last);
        Some(last)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_recent_is_last() {
        let mut lists = Lists::new(2);
        for no in [5, 2, 9, 5] {
            lists.push_front(0, ChunkNo(no));
        }
        lists.push_front(1, ChunkNo(7));
        assert_eq!((lists.len(), lists.len_of(0), lists.back(0)), (4, 3, Some(ChunkNo(2))));
        assert_eq!(lists.before(ChunkNo(2)), Some(ChunkNo(9)));
        assert!(lists.remove(ChunkNo(9)) && !lists.remove(ChunkNo(9)));
        lists.push_back(0, ChunkNo(9));
        assert_eq!((lists.back(0), lists.front(0)), (Some(ChunkNo(9)), Some(ChunkNo(5))));
        assert_eq!(lists.pop_back(0), Some(ChunkNo(9)));
        lists.push_front(1, ChunkNo(2));
        assert_eq!(lists.list_of(ChunkNo(2)), Some(1));
        assert_eq!([lists.pop_back(0), lists.pop_back(0)], [Some(ChunkNo(5)), None]);
        assert_eq!([lists.pop_back(1), lists.pop_back(1)], [Some(ChunkNo(7)), Some(ChunkNo(2))]);
        assert_eq!(lists.len(), 0);
    }
}
