//! What a policy has learned, to be kept from one session to the next.
//!
//! 1. A policy hands out a [`Memory`], by chunk numbers, what is most useful first; what it does not use stays empty.
//! 2. [`Memory::to_bytes`] names chunks by their object's name and their place in it: numbers are another session's
//!    business. What does not fit is told more coarsely and then left out, the least useful first.
//! 3. [`Memory::from_bytes`] finds the objects again by name. One that is not there yet gets its numbers all the same,
//!    so that what is known of it is there when it comes, and is not lost if it does not come this time.
//! 4. With each load it [fades](Memory::fade): what does not come again is forgotten.

mod code;
mod fitting;

use crate::action::Action;
use crate::costs::Reads;
use crate::footprint::Fingerprint;
use crate::layout::{ChunkNo, Layout};
use crate::{ObjectNo, Result};

/// Bytes that a memory has as a file, at most.
pub const MOST_MEMORY_BYTES: usize = 1 << 20;

/// What is left of a count of runs or of a pair's weight after a load.
const FADING: f64 = 0.9;

/// Statements that count for less are forgotten: after about 15 loads, if they ran once.
const LEAST_RUNS: f64 = 0.2;

/// Pairs that weigh less are forgotten.
const LEAST_WEIGHT: f64 = 0.01;

/// A statement's runs, averaged.
#[derive(Debug, Clone, PartialEq)]
pub struct RememberedStatement {
    /// Which.
    pub statement: Fingerprint,
    /// Runs, older ones counting less.
    pub runs: f64,
    /// Pages that its plan expected.
    pub expected_pages: f64,
    /// I/Os of a segment; the last may have fewer.
    pub segment_ios: f64,
    /// What is read in each, by chunk.
    pub segments: Vec<Vec<(ChunkNo, Reads)>>,
}

/// What a policy has learned.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Memory {
    /// Statements, the most useful first.
    pub statements: Vec<RememberedStatement>,
    /// Which statement began after which, and how much that weighs.
    pub followers: Vec<(Fingerprint, Fingerprint, f64)>,
    /// The statement that began last.
    pub last: Option<Fingerprint>,
    /// How far expectations came true, 0 to 1.
    pub trust: f64,
    /// I/Os per chunk, by number.
    pub counts: Vec<(ChunkNo, u64)>,
    /// Windows of I/Os, one after the other: hot chunks and their I/Os, by number.
    pub windows: Vec<Vec<(u32, u32)>>,
    /// Chunks that policies have brought to the fast class, by number: what lies there besides is somebody else's.
    pub brought: Vec<ChunkNo>,
    /// Chunks that somebody else had there and that had to make room for a query, by number, and what brings each back:
    /// a move or a mirror.
    pub displaced: Vec<(ChunkNo, Action)>,
}

impl Memory {
    /// As bytes, [`MOST_MEMORY_BYTES`] at most.
    pub fn to_bytes(&self, layout: &Layout) -> Vec<u8> {
        fitting::fit(self, layout, MOST_MEMORY_BYTES)
    }

    /// Of [`Memory::to_bytes`]. Objects that the layout does not have are added to it; those are in the answer.
    ///
    /// # Errors
    /// If the bytes are not such, are damaged, of another version, or of chunks of another size. Then the layout is as
    /// it was.
    pub fn from_bytes(bytes: &[u8], layout: &mut Layout) -> Result<(Memory, Vec<ObjectNo>)> {
        code::decode(bytes, layout)
    }

    /// Whether nothing was learned.
    pub fn is_empty(&self) -> bool {
        let Memory { statements, followers, last: _, trust: _, counts, windows, brought, displaced } = self;
        statements.is_empty()
            && followers.is_empty()
            && counts.is_empty()
            && windows.is_empty()
            && brought.is_empty()
            && displaced.is_empty()
    }

    /// Whether these may be bytes of [`Memory::to_bytes`].
    pub fn is_one(bytes: &[u8]) -> bool {
        bytes.starts_with(code::MAGIC)
    }

    /// What another policy has learned goes on beside this: each kind of knowledge that is empty here is taken from
    /// `other`.
    #[must_use]
    pub fn beside(mut self, other: &Memory) -> Memory {
        if self.statements.is_empty() && self.followers.is_empty() {
            (self.statements, self.followers) = (other.statements.clone(), other.followers.clone());
            (self.last, self.trust) = (other.last, other.trust);
        }
        if self.counts.is_empty() {
            self.counts = other.counts.clone();
        }
        if self.windows.is_empty() {
            self.windows = other.windows.clone();
        }
        if self.displaced.is_empty() {
            self.displaced = other.displaced.clone();
        }
        self
    }

    /// Makes it older by a session.
    pub fn fade(&mut self) {
        self.statements.iter_mut().for_each(|statement| statement.runs *= FADING);
        self.statements.retain(|statement| statement.runs >= LEAST_RUNS);
        self.followers.iter_mut().for_each(|(_, _, weight)| *weight *= FADING);
        self.followers.retain(|(_, _, weight)| *weight >= LEAST_WEIGHT);
        self.counts.iter_mut().for_each(|(_, ios)| *ios -= ios.div_ceil(10));
        self.counts.retain(|(_, ios)| *ios > 0);
    }
}

#[cfg(test)]
mod tests {
    use tanada_base::SplitMix64;

    use super::*;
    use crate::action::Source;

    fn layout(names: &[(&str, u64)]) -> Layout {
        let mut layout = Layout::new(1 << 20);
        for (name, chunks) in names {
            layout.add(name, chunks << 20);
        }
        layout
    }

    fn memory(segments: usize, uses: u32) -> Memory {
        let random = |seed: u32| 1.0 + SplitMix64::new(seed.into()).below(4000) as f32 / 4.0;
        let uses = |segment: usize| {
            let reads = |no| Reads {
                random: random(no + 1_000_003 * segment as u32),
                close: 2.0,
                sequential: 0.5,
                bytes: 8192.0,
            };
            let one = |no| (ChunkNo(no), reads(no));
            (0..uses).map(one).collect()
        };
        let statement = |no: u64| RememberedStatement {
            statement: Fingerprint(no),
            runs: 3.0,
            expected_pages: 500.0,
            segment_ios: 2048.0,
            segments: (0..segments).map(uses).collect(),
        };
        Memory {
            statements: (0..3).map(statement).collect(),
            followers: vec![(Fingerprint(0), Fingerprint(1), 2.5)],
            last: Some(Fingerprint(1)),
            trust: 0.5,
            counts: vec![(ChunkNo(1), 7), (ChunkNo(5), 1)],
            windows: vec![vec![(0, 9), (4, 2)], Vec::new()],
            brought: vec![ChunkNo(2), ChunkNo(8)],
            displaced: vec![
                (ChunkNo(3), Action::Mirror(Source::Copy)),
                (ChunkNo(7), Action::Promote(Source::Copy)),
            ],
        }
    }

    #[test]
    fn a_memory_comes_back_the_same() {
        let mut layout = layout(&[("orders", 4), ("items", 6)]);
        let memory = memory(3, 10);
        let bytes = memory.to_bytes(&layout);
        let (back, added) = Memory::from_bytes(&bytes, &mut layout).unwrap();
        assert_eq!((back, added), (memory, Vec::new()));
    }

    #[test]
    fn memory_of_objects_is_kept_by_name_when_they_are_absent() {
        let memory = memory(1, 10);
        let bytes = memory.to_bytes(&layout(&[("orders", 4), ("items", 6)]));
        // Items has shrunk, orders has not come yet.
        let mut other = layout(&[("parts", 2), ("items", 3)]);
        let (back, added) = Memory::from_bytes(&bytes, &mut other).unwrap();
        assert_eq!(added, [ObjectNo(2)]);
        assert_eq!(other.name(ObjectNo(2)), "orders");
        let chunks: Vec<u32> = back.statements[0].segments[0].iter().map(|(chunk, _)| chunk.0).collect();
        assert_eq!(chunks, [2, 3, 4, 5, 6, 7, 8]);
        assert_eq!(back.counts, [(ChunkNo(3), 1), (ChunkNo(6), 7)]);
        assert_eq!(back.brought, [ChunkNo(7)], "the other one is not there any more");
        assert_eq!(back.displaced, [(ChunkNo(8), Action::Mirror(Source::Copy))]);
        let again = back.to_bytes(&other);
        let mut whole = layout(&[("orders", 4), ("items", 6)]);
        assert_eq!(Memory::from_bytes(&again, &mut whole).unwrap().0.counts[0], (ChunkNo(1), 7));
    }

    #[test]
    fn oversized_memory_is_coarsened_or_dropped() {
        let layout = layout(&[("items", 300_000)]);
        let memory = memory(16, 100_000);
        let bytes = memory.to_bytes(&layout);
        assert!(bytes.len() <= MOST_MEMORY_BYTES && bytes.len() > MOST_MEMORY_BYTES / 4, "{}", bytes.len());
        let mut again = layout.clone();
        let (back, _) = Memory::from_bytes(&bytes, &mut again).unwrap();
        let first = &back.statements[0];
        assert_eq!(first.statement, Fingerprint(0));
        assert!(first.segments.len() < 16 && first.segment_ios > 2048.0, "{}", first.segments.len());
        assert_eq!(back.followers, memory.followers);
    }

    #[test]
    fn statements_that_do_not_return_fade() {
        let mut memory = memory(1, 2);
        let mut loads = 0;
        while !(memory.statements.is_empty() && memory.followers.is_empty() && memory.counts.is_empty()) {
            memory.fade();
            loads += 1;
        }
        assert!((20..80).contains(&loads), "{loads}");
    }
}
