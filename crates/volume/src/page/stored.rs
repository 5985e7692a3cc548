//! The word of a page: where its image lies in the stored space, and in which form.
//!
//! | bits | |
//! |---|---|
//! | 0 to 35 | first block of the stored space |
//! | 36 to 40 | blocks, less one |
//! | 41 to 43 | algorithm |
//! | 44 to 59 | identifier of the key, 0: not encrypted |
//! | 60 to 62 | zeros |
//! | 63 | 1 |
//!
//! The word 0 is a hole: the page reads as zeros.

use std::num::NonZeroU16;

use crate::settings::BLOCK_BYTES;
use crate::transform::{Algorithm, Form, LARGEST_PAGE_BYTES};

const BLOCK_BITS: u32 = 36;
const MOST_BLOCKS: u8 = (LARGEST_PAGE_BYTES as u64 / BLOCK_BYTES) as u8;

/// A stored page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stored {
    /// Of the stored space, in blocks.
    pub(crate) block: u64,
    pub(crate) blocks: u8,
    pub(crate) form: Form,
}

impl Stored {
    pub(crate) fn encode(self) -> u64 {
        debug_assert!(self.block < 1 << BLOCK_BITS && (1..=MOST_BLOCKS).contains(&self.blocks));
        let key = u64::from(self.form.key.map_or(0, NonZeroU16::get));
        1 << 63
            | key << 44
            | (self.form.algorithm as u64) << 41
            | u64::from(self.blocks - 1) << 36
            | self.block
    }

    /// `None` for a hole; an error for a word that no page has.
    pub(crate) fn decode(word: u64) -> Result<Option<Stored>, String> {
        if word == 0 {
            return Ok(None);
        }
        let algorithm = Algorithm::from_number((word >> 41 & 7) as u8);
        let blocks = (word >> 36 & 31) as u8 + 1;
        match algorithm {
            Some(algorithm) if word >> 60 == 8 && blocks <= MOST_BLOCKS => Ok(Some(Stored {
                block: word & ((1 << BLOCK_BITS) - 1),
                blocks,
                form: Form { algorithm, key: NonZeroU16::new((word >> 44) as u16) },
            })),
            _ => Err(format!("{word:#x} is the word of no page")),
        }
    }

    /// The stored page of a word that is known to be sound.
    pub(crate) fn of(word: u64) -> Option<Stored> {
        Stored::decode(word).ok().flatten()
    }

    /// Where it begins in the stored space.
    pub(crate) fn offset(&self) -> u64 {
        self.block * BLOCK_BYTES
    }

    /// Its length in the stored space.
    pub(crate) fn bytes(&self) -> usize {
        usize::from(self.blocks) * BLOCK_BYTES as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_come_back_and_strange_ones_are_refused() {
        for (block, blocks, algorithm, key) in [
            (0, 1, Algorithm::None, 0),
            ((1 << 36) - 1, 16, Algorithm::Zlib, 65535),
            (77, 3, Algorithm::Lz4, 1),
        ] {
            let stored = Stored { block, blocks, form: Form { algorithm, key: NonZeroU16::new(key) } };
            assert_eq!(Stored::decode(stored.encode()), Ok(Some(stored)));
        }
        assert_eq!(Stored::decode(0), Ok(None));
        for word in [1, 1 << 63 | 1 << 60, 1 << 63 | 7 << 41, 1 << 63 | 16 << 36] {
            assert!(Stored::decode(word).is_err(), "{word:#x}");
        }
    }
}
