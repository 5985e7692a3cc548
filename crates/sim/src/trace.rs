//! One number for a whole run: every I/O with its bytes, every choice of the scheduler, every fault is folded into it.
//!
//! Two runs with the same number did the same, so a change that lets the machine's clock, a thread or the order of a
//! hash map decide anything shows as a different number for the same seed.

use std::sync::atomic::{AtomicU64, Ordering};

/// The running hash. Order matters; it is no cryptographic hash.
#[derive(Debug, Default)]
pub(crate) struct Trace {
    hash: AtomicU64,
}

impl Trace {
    /// Folds one number in. A simulation has one thread, so load and store need not be one step.
    pub(crate) fn fold(&self, value: u64) {
        self.hash.store(mix(self.hash.load(Ordering::Relaxed), value), Ordering::Relaxed);
    }

    /// Folds bytes in, and their number.
    pub(crate) fn fold_bytes(&self, bytes: &[u8]) {
        self.fold(hash_bytes(bytes));
    }

    pub(crate) fn value(&self) -> u64 {
        self.hash.load(Ordering::Relaxed)
    }
}

/// A hash of bytes, the same on every machine.
pub(crate) fn hash_bytes(bytes: &[u8]) -> u64 {
    let mut hash = bytes.len() as u64;
    let (words, rest) = bytes.as_chunks::<8>();
    for word in words {
        hash = (hash ^ u64::from_le_bytes(*word)).wrapping_mul(0x9fb2_1c65_1e98_df25).rotate_left(29);
    }
    for byte in rest {
        hash = (hash ^ u64::from(*byte)).wrapping_mul(0x9fb2_1c65_1e98_df25).rotate_left(29);
    }
    hash
}

/// The next state of a hash that takes `value` in.
pub(crate) fn mix(hash: u64, value: u64) -> u64 {
    let mut z = (hash ^ value).wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(values: &[u64]) -> u64 {
        let trace = Trace::default();
        values.iter().for_each(|value| trace.fold(*value));
        trace.value()
    }

    #[test]
    fn order_and_every_byte_count() {
        assert_eq!(of(&[1, 2]), of(&[1, 2]));
        assert_ne!(of(&[1, 2]), of(&[2, 1]));
        assert_ne!(hash_bytes(&[0; 16]), hash_bytes(&[0; 17]));
        let mut bytes = [7; 21];
        let before = hash_bytes(&bytes);
        for at in [0, 8, 20] {
            bytes[at] ^= 1;
            assert_ne!(hash_bytes(&bytes), before);
            bytes[at] ^= 1;
        }
    }
}
