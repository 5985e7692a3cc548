//! The newest records most: YCSB's `SkewedLatestGenerator`.

use tanada_base::SplitMix64;

use super::{ZIPFIAN_CONSTANT, Zipfian};

/// Numbers up to the newest one, which is the most popular.
#[derive(Debug, Clone)]
pub struct Latest {
    distance: Zipfian,
}

impl Latest {
    /// For records 0 to `newest`.
    pub fn new(newest: u64) -> Latest {
        Latest { distance: Zipfian::new(newest, ZIPFIAN_CONSTANT) }
    }

    /// The next number, now that `newest` is the newest.
    pub fn next(&mut self, newest: u64, random: &mut SplitMix64) -> u64 {
        self.distance.grow(newest);
        newest.saturating_sub(self.distance.next(random))
    }
}
