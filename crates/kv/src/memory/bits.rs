//! What a table surely does not have.
//!
//! Most lookups find nothing in a table, and have to walk down a list for that whose nodes lie far apart. Two bits of
//! one word for each key say so at once.

use super::sync::{AtomicU64, Ordering};
use crate::keyfile::KeyHash;

/// A memtable has a bit for this many bytes: sixty bits for a key with a value of 1,000 bytes, eight for one of 20.
const BYTES_PER_BIT: u64 = 16;

/// Bits of the keys in a table.
#[derive(Debug)]
pub(super) struct KeyBits {
    /// A power of two of them.
    words: Box<[AtomicU64]>,
}

/// The bits of a key in its word.
fn bits(hash: KeyHash) -> u64 {
    1 << (hash.get() & 63) | 1 << (hash.get() >> 6 & 63)
}

impl KeyBits {
    /// Creates the bits of a memtable of this size.
    pub(super) fn new(table_bytes: u64) -> KeyBits {
        let words = (table_bytes / BYTES_PER_BIT / 64).max(1);
        KeyBits { words: (0..1u64 << words.ilog2()).map(|_| AtomicU64::new(0)).collect() }
    }

    fn word(&self, hash: KeyHash) -> &AtomicU64 {
        &self.words[(hash.get() >> 12) as usize & (self.words.len() - 1)]
    }

    /// A key is about to come.
    pub(super) fn add(&self, hash: KeyHash) {
        let (word, bits) = (self.word(hash), bits(hash));
        if word.load(Ordering::Relaxed) & bits != bits {
            word.fetch_or(bits, Ordering::Release);
        }
    }

    /// Returns whether the table may have the key: surely if it was there before something that the caller has seen.
    pub(super) fn may_have(&self, hash: KeyHash) -> bool {
        let bits = bits(hash);
        self.word(hash).load(Ordering::Acquire) & bits == bits
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_keys_are_there_and_few_others() {
        super::super::sync::model(|| {
            let hash = |no: u64| KeyHash::of(&no.to_be_bytes());
            for (table_bytes, keys, most) in [(256 << 10, 250u64, 200), (0, 1, 20)] {
                let known = KeyBits::new(table_bytes);
                (0..keys).for_each(|no| known.add(hash(no)));
                assert!((0..keys).all(|no| known.may_have(hash(no))));
                let others = (keys..keys + 10_000).filter(|no| known.may_have(hash(*no))).count();
                assert!(others < most, "{table_bytes}: {others}");
            }
        });
    }
}
