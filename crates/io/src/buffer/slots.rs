//! Which parts of the arena are free.
//!
//! The arena is an array of 1 MiB blocks. A block is free, or belongs to one size class and is cut into equal slots of
//! that size, whose freedom is a bitmap; when the last slot comes back the block is free for any class again. Taking
//! and giving back are O(1).
//!
//! Invariants: `partial[class]` lists exactly the blocks of the class that have both free and taken slots, each at the
//! position that its `listed_at` names; `free_blocks` lists exactly the blocks of no class.

use super::{BUFFER_ALIGNMENT, LARGEST_POOLED_BUFFER};

const BLOCK: usize = LARGEST_POOLED_BUFFER;
/// Slots of the smallest class in one block; also the distance of two blocks' slot numbers.
const MOST_SLOTS: usize = BLOCK / BUFFER_ALIGNMENT;
const CLASSES: usize = MOST_SLOTS.ilog2() as usize + 1;

#[derive(Debug, Clone)]
struct Block {
    class: u8,
    taken: u16,
    listed_at: u32,
    free: [u64; MOST_SLOTS / 64],
}

/// The free list of an arena.
#[derive(Debug)]
pub(super) struct Slots {
    blocks: Vec<Block>,
    free_blocks: Vec<u32>,
    partial: [Vec<u32>; CLASSES],
    bytes_in_use: usize,
}

impl Slots {
    /// All free; lower blocks are used first, because a low memory lock limit registers only the first part.
    pub(super) fn new(blocks: usize) -> Slots {
        let block = Block { class: 0, taken: 0, listed_at: 0, free: [0; MOST_SLOTS / 64] };
        Slots {
            blocks: vec![block; blocks],
            free_blocks: (0..blocks as u32).rev().collect(),
            partial: [const { Vec::new() }; CLASSES],
            bytes_in_use: 0,
        }
    }

    pub(super) fn bytes_in_use(&self) -> usize {
        self.bytes_in_use
    }

    /// A slot of `size` bytes (a power of two from 4 KiB to 1 MiB): its number and its offset in the arena.
    pub(super) fn take(&mut self, size: usize) -> Option<(u32, usize)> {
        let class = (size / BUFFER_ALIGNMENT).ilog2() as usize;
        let no = match self.partial[class].last() {
            Some(no) => *no,
            None => self.open_block(class)?,
        };
        let block = &mut self.blocks[no as usize];
        let word = block.free.iter().position(|word| *word != 0)?;
        let index = word * 64 + block.free[word].trailing_zeros() as usize;
        block.free[word] &= block.free[word] - 1;
        block.taken += 1;
        if block.taken as usize == MOST_SLOTS >> class {
            self.unlist(class, no);
        }
        self.bytes_in_use += size;
        Some(((no as usize * MOST_SLOTS + index) as u32, no as usize * BLOCK + index * size))
    }

    /// Takes back what [`take`](Self::take) gave.
    pub(super) fn give_back(&mut self, slot: u32) {
        let (no, index) = (slot / MOST_SLOTS as u32, slot as usize % MOST_SLOTS);
        let block = &mut self.blocks[no as usize];
        let class = block.class as usize;
        assert!(block.free[index / 64] >> (index % 64) & 1 == 0, "a slot was given back twice");
        let was_full = block.taken as usize == MOST_SLOTS >> class;
        block.free[index / 64] |= 1 << (index % 64);
        block.taken -= 1;
        self.bytes_in_use -= BUFFER_ALIGNMENT << class;
        let is_free = block.taken == 0;
        match (was_full, is_free) {
            (true, false) => self.list(class, no),
            (false, true) => self.unlist(class, no),
            _ => {}
        }
        if is_free {
            self.free_blocks.push(no);
        }
    }

    fn open_block(&mut self, class: usize) -> Option<u32> {
        let no = self.free_blocks.pop()?;
        let block = &mut self.blocks[no as usize];
        let slots = MOST_SLOTS >> class;
        block.class = class as u8;
        for (i, word) in block.free.iter_mut().enumerate() {
            let here = slots.saturating_sub(i * 64).min(64);
            *word = if here == 64 { u64::MAX } else { (1 << here) - 1 };
        }
        self.list(class, no);
        Some(no)
    }

    fn list(&mut self, class: usize, no: u32) {
        self.blocks[no as usize].listed_at = self.partial[class].len() as u32;
        self.partial[class].push(no);
    }

    fn unlist(&mut self, class: usize, no: u32) {
        let at = self.blocks[no as usize].listed_at as usize;
        assert_eq!(self.partial[class].swap_remove(at), no);
        if let Some(moved) = self.partial[class].get(at) {
            self.blocks[*moved as usize].listed_at = at as u32;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use tanada_base::SplitMix64;

    use super::*;

    /// Random takes and returns against a map of what is taken: no overlap, nothing lost.
    #[test]
    fn slots_never_overlap_and_all_come_back() {
        let mut slots = Slots::new(8);
        let mut random = SplitMix64::new(1);
        let mut taken: HashMap<u32, (usize, usize)> = HashMap::new();
        for _ in 0..20_000 {
            if random.below(100) < 55 {
                let size = BUFFER_ALIGNMENT << random.below(CLASSES as u64);
                if let Some((slot, offset)) = slots.take(size) {
                    assert_eq!(offset % size, 0);
                    assert!(offset + size <= 8 * BLOCK);
                    assert!(taken.values().all(|(at, len)| offset + size <= *at || at + len <= offset));
                    assert!(taken.insert(slot, (offset, size)).is_none());
                }
            } else if let Some(slot) = taken.keys().min().copied() {
                taken.remove(&slot);
                slots.give_back(slot);
            }
            assert_eq!(slots.bytes_in_use(), taken.values().map(|(_, len)| len).sum::<usize>());
        }
        for slot in taken.into_keys() {
            slots.give_back(slot);
        }
        assert_eq!((0..8).filter(|_| slots.take(BLOCK).is_some()).count(), 8);
        assert_eq!(slots.take(BUFFER_ALIGNMENT), None);
    }
}
