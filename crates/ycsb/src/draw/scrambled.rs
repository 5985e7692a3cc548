//! Zipfian popularity spread over all keys: YCSB's `ScrambledZipfianGenerator`.
//!
//! A Zipfian number over ten billion items, whatever the item count, is hashed and taken modulo the item count. So
//! popular items lie anywhere, stay the same when items are added, and several numbers share an item: the most popular
//! one has a share of 3.8 %.

use tanada_base::SplitMix64;

use super::{ZIPFIAN_CONSTANT, Zipfian, fnv_hash_64};

/// Items that numbers are drawn from before they are hashed.
const DRAWN_ITEMS: u64 = 10_000_000_000;
/// `zeta(10^10, 0.99)`, as YCSB has it.
const DRAWN_ZETA: f64 = 26.469_028_201_783_02;

/// Numbers below an item count, popular ones anywhere.
#[derive(Debug, Clone)]
pub struct ScrambledZipfian {
    drawn: Zipfian,
    items: u64,
}

impl ScrambledZipfian {
    /// For `items` items, with YCSB's constant.
    pub fn new(items: u64) -> ScrambledZipfian {
        // YCSB's bounds are inclusive: 0 to ten billion.
        let drawn = Zipfian::with_zeta(DRAWN_ITEMS + 1, ZIPFIAN_CONSTANT, DRAWN_ZETA);
        ScrambledZipfian { drawn, items: items.max(1) }
    }

    /// The next number.
    pub fn next(&self, random: &mut SplitMix64) -> u64 {
        fnv_hash_64(self.drawn.next(random)) % self.items
    }
}
