//! The weights of all code points at one level.
//!
//! Code points are divided into pages of 256. A page that lies within one run refers to the run; any other has an entry
//! for each code point, which says where in one list its weights begin and how many there are.

use std::sync::OnceLock;

use super::codes::Codes;

const PAGE: u32 = 256;
/// Bits of an entry that hold the number of weights.
const COUNT_BITS: u32 = 5;

/// Code points whose weights follow a rule.
#[derive(Debug, Clone, Copy)]
pub(super) enum Run {
    Constant(u16),
    Rising(u16),
    Pair(u16, u16),
    Empty,
}

impl Run {
    /// The weights of the code point `offset` after the first: how many, and they.
    fn at(self, offset: u32) -> (u8, [u16; 2]) {
        let offset = offset as u16;
        match self {
            Run::Constant(weight) => (1, [weight, 0]),
            Run::Rising(first) => (1, [first.wrapping_add(offset), 0]),
            Run::Pair(lead, first) => (2, [lead, first.wrapping_add(offset)]),
            Run::Empty => (0, [0, 0]),
        }
    }
}

#[derive(Debug, Clone, Copy)]
enum Page {
    /// A run and the offset of the page's first code point in it.
    Run(Run, u32),
    /// Place of the page's first entry.
    Entries(u32),
}

/// The weights of a code point, either computed or listed.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Found<'a> {
    Computed(u8, [u16; 2]),
    Listed(&'a [u16]),
}

/// Weights of all code points at one level.
#[derive(Debug)]
pub(crate) struct Level {
    pages: Box<[Page]>,
    entries: Box<[u32]>,
    weights: Box<[u16]>,
    /// The weight of each ASCII character that has just one, 0 for any other.
    ascii: [u16; 128],
    codes: OnceLock<Codes>,
}

impl Level {
    /// The weights of `character`.
    #[inline]
    pub(crate) fn find(&self, character: char) -> Found<'_> {
        let point = u32::from(character);
        match self.pages.get((point / PAGE) as usize) {
            Some(Page::Entries(first)) => {
                let entry = self.entries.get((first + point % PAGE) as usize).copied().unwrap_or(0);
                let from = (entry >> COUNT_BITS) as usize;
                let count = (entry & ((1 << COUNT_BITS) - 1)) as usize;
                Found::Listed(self.weights.get(from..from + count).unwrap_or(&[]))
            }
            Some(Page::Run(run, offset)) => {
                let (count, weights) = run.at(offset + point % PAGE);
                Found::Computed(count, weights)
            }
            None => Found::Listed(&[]),
        }
    }

    /// The weight of each ASCII character, 0 where it has none or several.
    pub(crate) fn ascii(&self) -> &[u16; 128] {
        &self.ascii
    }

    /// The codes of its weights in sort keys.
    #[inline]
    pub(crate) fn codes(&self) -> &Codes {
        self.codes.get_or_init(|| {
            let single = |byte: u8| self.ascii.get(usize::from(byte)).copied().unwrap_or(0);
            Codes::wide(single, self.space())
        })
    }

    /// The first weight of a space; 0 if it has none.
    pub(crate) fn space(&self) -> u16 {
        match self.find(' ') {
            Found::Listed(weights) => weights.first().copied().unwrap_or(0),
            Found::Computed(0, _) => 0,
            Found::Computed(_, [first, _]) => first,
        }
    }
}

/// Builds a [`Level`] from code point 0 on.
#[derive(Debug, Default)]
pub(super) struct LevelBuilder {
    next: u32,
    pages: Vec<Page>,
    entries: Vec<u32>,
    weights: Vec<u16>,
}

impl LevelBuilder {
    /// The weights of the next code point.
    pub(super) fn explicit(&mut self, weights: &[u16]) {
        if self.next.is_multiple_of(PAGE) {
            self.pages.push(Page::Entries(self.entries.len() as u32));
        }
        let count = weights.len().min((1 << COUNT_BITS) - 1);
        self.entries.push((self.weights.len() as u32) << COUNT_BITS | count as u32);
        self.weights.extend_from_slice(&weights[..count]);
        self.next += 1;
    }

    /// The next `length` code points.
    pub(super) fn run(&mut self, run: Run, length: u32) {
        let mut offset = 0;
        while offset < length {
            if self.next.is_multiple_of(PAGE) && length - offset >= PAGE {
                self.pages.push(Page::Run(run, offset));
                self.next += PAGE;
                offset += PAGE;
            } else {
                let (count, weights) = run.at(offset);
                self.explicit(&weights[..usize::from(count)]);
                offset += 1;
            }
        }
    }

    pub(super) fn finish(self) -> Level {
        let mut level = Level {
            pages: self.pages.into(),
            entries: self.entries.into(),
            weights: self.weights.into(),
            ascii: [0; 128],
            codes: OnceLock::new(),
        };
        let single = |byte: u8| match level.find(char::from(byte)) {
            Found::Computed(1, [weight, _]) | Found::Listed(&[weight]) => weight,
            _ => 0,
        };
        let ascii = std::array::from_fn(|byte| single(byte as u8));
        level.ascii = ascii;
        level
    }
}
