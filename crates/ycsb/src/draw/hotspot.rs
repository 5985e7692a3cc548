//! A hot part and a cold part, each uniform: YCSB's `HotspotIntegerGenerator`.

use tanada_base::SplitMix64;

use super::unit;

/// Numbers below an item count; those of the first part more often.
#[derive(Debug, Clone)]
pub struct Hotspot {
    items: u64,
    hot_items: u64,
    hot_operations: f64,
}

impl Hotspot {
    /// `hot_set` of the items, from the first, get `hot_operations` of the operations; both from 0 to 1.
    pub fn new(items: u64, hot_set: f64, hot_operations: f64) -> Hotspot {
        let items = items.max(1);
        let hot_items = ((items as f64 * hot_set) as u64).clamp(1, items);
        Hotspot { items, hot_items, hot_operations }
    }

    /// The next number.
    pub fn next(&self, random: &mut SplitMix64) -> u64 {
        let is_hot = unit(random) < self.hot_operations || self.hot_items == self.items;
        if is_hot {
            random.below(self.hot_items)
        } else {
            self.hot_items + random.below(self.items - self.hot_items)
        }
    }
}
