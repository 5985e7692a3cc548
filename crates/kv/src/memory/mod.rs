//! Memtables: what was written to a store and is not in a kvset yet.
//!
//! - [`table`]: versions by key, newest first;
//! - [`bits`]: which keys a table surely does not have;
//! - [`arena`]: the memory that they lie in;
//! - [`tombstones`]: deleted ranges, that grow;
//! - [`walk`]: versions one after another, in both directions.
//!
//! Readers take no lock. There is one writer at a time, which is who holds the commit lock.

pub(crate) mod arena;
mod bits;
pub(crate) mod key;
pub(crate) mod table;
pub(crate) mod tombstones;
pub(crate) mod walk;

pub(crate) use arena::{Blocks, MAX_PAIR_BYTES_IN_BLOCK};
pub(crate) use walk::{MemorySource, TableSource, TableValues};

pub(crate) use table::{Found, MemoryContent, Memtable, MemtableVersion};

// As `super::sync`, for modules that are built with others, too.
use crate::sync;

#[cfg(test)]
mod tests {
    use super::bits::KeyBits;
    use crate::keyfile::KeyHash;

    #[test]
    fn key_bits_of_large_memtables_reject_most_absent_keys() {
        let hash = |no: u64| KeyHash::of(&no.to_be_bytes());
        for (table_bytes, keys, most) in [(32 << 20, 30_000u64, 200), (1 << 20, 4000, 700)] {
            let known = KeyBits::new(table_bytes);
            (0..keys).for_each(|no| known.add(hash(no)));
            assert!((0..keys).all(|no| known.may_have(hash(no))));
            let others = (keys..keys + 10_000).filter(|no| known.may_have(hash(*no))).count();
            assert!(others < most, "{table_bytes}: {others}");
        }
    }
}
