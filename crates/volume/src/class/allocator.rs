//! Which physical chunks of a class are taken: one bit each.
//!
//! The search goes on where the last one ended, so that what is written in one go lies in one piece.
//!
//! Invariant: `taken` is the number of set bits below `chunks`; no bit is set at or behind `chunks`. At or behind
//! `limit` nothing is given out (a class that is being made smaller).

/// The free list of a class.
#[derive(Debug, Default)]
pub(crate) struct Allocator {
    bits: Vec<u64>,
    chunks: u32,
    limit: u32,
    taken: u32,
    next: u32,
}

impl Allocator {
    pub(crate) fn new(chunks: u32) -> Allocator {
        let mut allocator = Allocator::default();
        allocator.resize(chunks);
        allocator
    }

    /// Chunks there are, taken or not.
    pub(crate) fn chunks(&self) -> u32 {
        self.chunks
    }

    pub(crate) fn taken(&self) -> u32 {
        self.taken
    }

    /// The chunk from which on nothing is given out.
    pub(crate) fn limit(&self) -> u32 {
        self.limit
    }

    /// Gives nothing out at or behind `limit` any more.
    pub(crate) fn set_limit(&mut self, limit: u32) {
        self.limit = limit.min(self.chunks);
    }

    /// Changes the number of chunks; what is cut off must be free.
    pub(crate) fn resize(&mut self, chunks: u32) {
        self.bits.resize((chunks as usize).div_ceil(64), 0);
        self.chunks = chunks;
        self.limit = chunks;
        self.next = self.next.min(chunks.saturating_sub(1));
    }

    /// Takes a free chunk.
    pub(crate) fn take(&mut self) -> Option<u32> {
        let no = self.find(self.next, self.limit).or_else(|| self.find(0, self.next.min(self.limit)))?;
        self.bits[no as usize / 64] |= 1 << (no % 64);
        self.taken += 1;
        self.next = no + 1;
        Some(no)
    }

    /// The first free chunk of `from..to`.
    fn find(&self, from: u32, to: u32) -> Option<u32> {
        let mut no = from;
        while no < to {
            let free = !self.bits[no as usize / 64] >> (no % 64);
            if free != 0 {
                no += free.trailing_zeros();
                return (no < to).then_some(no);
            }
            no = (no / 64 + 1) * 64;
        }
        None
    }

    /// Takes the chunk `no`; false if it is taken or does not exist.
    pub(crate) fn take_this(&mut self, no: u32) -> bool {
        if no >= self.chunks || self.is_taken(no) {
            return false;
        }
        self.bits[no as usize / 64] |= 1 << (no % 64);
        self.taken += 1;
        true
    }

    pub(crate) fn is_taken(&self, no: u32) -> bool {
        no < self.chunks && self.bits[no as usize / 64] >> (no % 64) & 1 == 1
    }

    /// Takes back a chunk; false if it was not taken.
    pub(crate) fn give_back(&mut self, no: u32) -> bool {
        if !self.is_taken(no) {
            return false;
        }
        self.bits[no as usize / 64] &= !(1 << (no % 64));
        self.taken -= 1;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_chunk_is_given_once() {
        let mut allocator = Allocator::new(130);
        let all: Vec<u32> = std::iter::from_fn(|| allocator.take()).collect();
        assert_eq!(all, (0..130).collect::<Vec<_>>());
        assert!(allocator.give_back(64) && !allocator.give_back(64) && !allocator.give_back(130));
        assert_eq!((allocator.take(), allocator.take(), allocator.taken()), (Some(64), None, 130));
    }

    #[test]
    fn nothing_is_given_behind_the_limit() {
        let mut allocator = Allocator::new(100);
        assert!(allocator.take_this(90) && !allocator.take_this(90) && !allocator.take_this(100));
        allocator.set_limit(10);
        assert_eq!(std::iter::from_fn(|| allocator.take()).count(), 10);
        allocator.resize(120);
        assert_eq!(allocator.take(), Some(10));
    }
}
