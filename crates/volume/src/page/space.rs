//! Which blocks of an object's stored space are taken.
//!
//! An image lies within one chunk. It goes to the chunk where the last one went, or to one of a few others that are
//! taken in part, or to one in which nothing is taken, the lowest first, or to a new one at the end. So what is written
//! in one go lies in one piece, and what was freed is used again before the object grows.
//!
//! Invariants: `used` of a chunk is the number of its set bits; a chunk is in `partial` if some of its blocks are taken
//! and some free, in `empty` if none is taken.

use std::collections::BTreeSet;

/// Chunks that are taken in part in which a place is looked for.
const MOST_LOOKED_AT: usize = 8;

#[derive(Debug, Default)]
struct ChunkBlocks {
    bits: Box<[u64]>,
    used: u32,
}

/// The blocks of a stored space.
#[derive(Debug)]
pub(crate) struct Space {
    blocks_per_chunk: u32,
    most_chunks: u64,
    chunks: Vec<ChunkBlocks>,
    partial: BTreeSet<u64>,
    empty: BTreeSet<u64>,
    /// Chunks that became empty, or were found so: they may go back to their class.
    candidates: BTreeSet<u64>,
    /// Where the last image went.
    last: u64,
}

impl Space {
    /// A space of `chunks` chunks in which nothing is taken.
    pub(crate) fn new(blocks_per_chunk: u32, chunks: u64, most_chunks: u64) -> Space {
        let mut space = Space {
            blocks_per_chunk,
            most_chunks,
            chunks: Vec::new(),
            partial: BTreeSet::new(),
            empty: BTreeSet::new(),
            candidates: BTreeSet::new(),
            last: 0,
        };
        for _ in 0..chunks {
            space.grow();
        }
        space
    }

    /// One more chunk at the end.
    fn grow(&mut self) -> Option<u64> {
        let chunk = self.chunks.len() as u64;
        if chunk >= self.most_chunks {
            return None;
        }
        let words = (self.blocks_per_chunk as usize).div_ceil(64);
        self.chunks.push(ChunkBlocks { bits: vec![0; words].into_boxed_slice(), used: 0 });
        self.empty.insert(chunk);
        Some(chunk)
    }

    /// The chunk of a block.
    pub(crate) fn chunk_of(&self, block: u64) -> u64 {
        block / u64::from(self.blocks_per_chunk)
    }

    /// Takes `blocks` blocks in one piece; the first of them. `in_new`: in a chunk in which nothing is taken, or in
    /// which that began. `None` if the space has as many chunks as an object can have.
    pub(crate) fn take(&mut self, blocks: u8, in_new: bool) -> Option<u64> {
        let blocks = u32::from(blocks);
        if let Some(block) = self.take_in(self.last, blocks) {
            return Some(block);
        }
        if !in_new {
            let after = self.partial.range(self.last + 1..);
            let looked_at: Vec<u64> =
                after.chain(self.partial.range(..self.last)).copied().take(MOST_LOOKED_AT).collect();
            for chunk in looked_at {
                if let Some(block) = self.take_in(chunk, blocks) {
                    self.last = chunk;
                    return Some(block);
                }
            }
        }
        let chunk = self.empty.first().copied().or_else(|| self.grow());
        let chunk = match chunk {
            Some(chunk) => chunk,
            None => self.partial.iter().copied().find(|chunk| self.run(*chunk, blocks).is_some())?,
        };
        self.last = chunk;
        self.take_in(chunk, blocks)
    }

    /// Begins a chunk in which nothing is taken yet, so that what is taken next lies together.
    pub(crate) fn begin_chunk(&mut self) {
        self.last = self.empty.first().copied().or_else(|| self.grow()).unwrap_or(self.last);
    }

    fn take_in(&mut self, chunk: u64, blocks: u32) -> Option<u64> {
        let first = self.run(chunk, blocks)?;
        let block = chunk * u64::from(self.blocks_per_chunk) + u64::from(first);
        self.mark(chunk, first, blocks, true);
        Some(block)
    }

    /// The first run of so many free blocks in a chunk.
    fn run(&self, chunk: u64, blocks: u32) -> Option<u32> {
        let found = self.chunks.get(chunk as usize)?;
        if found.used + blocks > self.blocks_per_chunk {
            return None;
        }
        let (mut at, mut len) = (0, 0);
        while at < self.blocks_per_chunk {
            let word = found.bits[at as usize / 64];
            if at.is_multiple_of(64) && word == u64::MAX {
                (at, len) = (at + 64, 0);
                continue;
            }
            len = if word >> (at % 64) & 1 == 0 { len + 1 } else { 0 };
            at += 1;
            if len == blocks {
                return Some(at - blocks);
            }
        }
        None
    }

    fn mark(&mut self, chunk: u64, first: u32, blocks: u32, is_taken: bool) {
        let found = &mut self.chunks[chunk as usize];
        for at in first..first + blocks {
            found.bits[at as usize / 64] ^= 1 << (at % 64);
        }
        found.used = if is_taken { found.used + blocks } else { found.used - blocks };
        let used = found.used;
        self.empty.remove(&chunk);
        self.partial.remove(&chunk);
        self.candidates.remove(&chunk);
        match used {
            0 => {
                self.empty.insert(chunk);
                self.candidates.insert(chunk);
            }
            _ if used < self.blocks_per_chunk => drop(self.partial.insert(chunk)),
            _ => {}
        }
    }

    /// The chunk, the place in it, and whether all of these blocks are taken; `None` if they lie in no chunk.
    fn place(&self, block: u64, blocks: u32) -> Option<(u64, u32, u32)> {
        let (chunk, first) = (self.chunk_of(block), (block % u64::from(self.blocks_per_chunk)) as u32);
        let found = self.chunks.get(chunk as usize)?;
        if first + blocks > self.blocks_per_chunk {
            return None;
        }
        let taken = (first..first + blocks).filter(|at| found.bits[*at as usize / 64] >> (at % 64) & 1 == 1);
        Some((chunk, first, taken.count() as u32))
    }

    /// Takes just these blocks; false if one of them is taken, or they lie in no chunk.
    pub(crate) fn take_this(&mut self, block: u64, blocks: u8) -> bool {
        match self.place(block, u32::from(blocks)) {
            Some((chunk, first, 0)) => {
                self.mark(chunk, first, u32::from(blocks), true);
                true
            }
            _ => false,
        }
    }

    /// Takes back blocks; false if they were not taken.
    pub(crate) fn give_back(&mut self, block: u64, blocks: u8) -> bool {
        match self.place(block, u32::from(blocks)) {
            Some((chunk, first, taken)) if taken == u32::from(blocks) => {
                self.mark(chunk, first, u32::from(blocks), false);
                true
            }
            _ => false,
        }
    }

    /// Blocks that are taken.
    #[cfg(test)]
    pub(crate) fn used(&self) -> u64 {
        self.chunks.iter().map(|chunk| u64::from(chunk.used)).sum()
    }

    /// A chunk in which nothing is taken and that may have a home.
    pub(crate) fn candidates(&self) -> Vec<u64> {
        self.candidates.iter().copied().collect()
    }

    pub(crate) fn add_candidate(&mut self, chunk: u64) {
        if self.empty.contains(&chunk) {
            self.candidates.insert(chunk);
        }
    }

    /// It goes back now; false if it is no candidate any more.
    pub(crate) fn forget_candidate(&mut self, chunk: u64) -> bool {
        self.candidates.remove(&chunk)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn images_lie_in_one_piece_and_freed_blocks_are_used_again() {
        let mut space = Space::new(4, 0, 3);
        let all: Vec<u64> = (0..4).filter_map(|_| space.take(3, false)).collect();
        assert_eq!(all, [0, 4, 8], "an image lies within a chunk");
        assert_eq!(space.take(1, false), Some(11));
        assert_eq!(space.take(1, false), Some(3));
        assert_eq!(space.take(1, false), Some(7));
        assert_eq!(space.take(1, false), None);
        assert!(space.give_back(4, 3) && !space.give_back(4, 3) && !space.give_back(40, 1));
        assert_eq!(space.candidates(), [] as [u64; 0]);
        assert!(space.give_back(7, 1));
        assert_eq!(space.candidates(), [1]);
        assert_eq!((space.used(), space.take(2, false)), (8, Some(4)));
        assert_eq!(space.candidates(), [] as [u64; 0]);
    }

    #[test]
    fn blocks_are_taken_once() {
        let mut space = Space::new(256, 2, 8);
        assert!(space.take_this(254, 2) && !space.take_this(253, 2) && !space.take_this(255, 2));
        assert!(!space.take_this(511, 2) && space.take_this(511, 1) && !space.take_this(600, 1));
        assert_eq!(space.take(16, true), Some(0));
        space.begin_chunk();
        assert_eq!(space.take(1, true), Some(512), "a chunk in which nothing is taken");
    }

    #[test]
    fn random_taking_and_giving_keeps_images_apart() {
        let mut random = tanada_base::SplitMix64::new(9);
        let mut space = Space::new(64, 0, 40);
        let mut taken: Vec<(u64, u8)> = Vec::new();
        for _ in 0..20_000 {
            if random.below(3) > 0 {
                let blocks = 1 + random.below(16) as u8;
                let Some(block) = space.take(blocks, random.below(4) == 0) else { continue };
                let end = block + u64::from(blocks);
                assert!(taken.iter().all(|(other, n)| end <= *other || other + u64::from(*n) <= block));
                assert_eq!(space.chunk_of(block), space.chunk_of(end - 1));
                taken.push((block, blocks));
            } else if !taken.is_empty() {
                let (block, blocks) = taken.swap_remove(random.below(taken.len() as u64) as usize);
                assert!(space.give_back(block, blocks));
            }
        }
        assert_eq!(space.used(), taken.iter().map(|(_, blocks)| u64::from(*blocks)).sum::<u64>());
    }
}
