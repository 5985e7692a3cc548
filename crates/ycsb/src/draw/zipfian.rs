//! Zipfian numbers after "Quickly Generating Billion-Record Synthetic Databases" (Gray et al., SIGMOD 1994), as YCSB's
//! `ZipfianGenerator` has them.
//!
//! 1. `zeta(n)` is the sum of `1 / i^theta` for `i` from 1 to `n`; number `i` (from 0) is meant to have the probability
//!    `1 / (i + 1)^theta / zeta(n)`.
//! 2. A uniform `u` gives 0 if `u zeta(n) < 1`, 1 if it is below `1 + 0.5^theta`, and else `n (eta u - eta + 1)^alpha`,
//!    which follows the distribution closely, not exactly.
//! 3. When `n` grows, `zeta` is continued from where it was. `eta` keeps the first `n`, as in YCSB.

use tanada_base::SplitMix64;

use super::unit;

/// YCSB's skew.
pub const ZIPFIAN_CONSTANT: f64 = 0.99;

/// The sum of `1 / i^theta` for `i` from `from + 1` to `to`, added to `sum`.
pub fn zeta(from: u64, to: u64, theta: f64, sum: f64) -> f64 {
    (from..to).fold(sum, |sum, i| sum + ((i + 1) as f64).powf(-theta))
}

/// Numbers from 0 to below an item count, small ones more often.
#[derive(Debug, Clone)]
pub struct Zipfian {
    items: u64,
    theta: f64,
    zeta_2: f64,
    alpha: f64,
    eta: f64,
    zeta_n: f64,
    items_of_zeta: u64,
}

impl Zipfian {
    /// For `items` items (at least 1); takes a time proportional to them.
    pub fn new(items: u64, theta: f64) -> Zipfian {
        Zipfian::with_zeta(items, theta, zeta(0, items.max(1), theta, 0.0))
    }

    /// The same with a `zeta` that is known.
    pub fn with_zeta(items: u64, theta: f64, zeta_n: f64) -> Zipfian {
        let items = items.max(1);
        let mut zipfian = Zipfian {
            items,
            theta,
            zeta_2: zeta(0, 2, theta, 0.0),
            alpha: 1.0 / (1.0 - theta),
            eta: 0.0,
            zeta_n,
            items_of_zeta: items,
        };
        zipfian.set_eta();
        zipfian
    }

    fn set_eta(&mut self) {
        let share = (2.0 / self.items as f64).powf(1.0 - self.theta);
        self.eta = (1.0 - share) / (1.0 - self.zeta_2 / self.zeta_n);
    }

    /// How many numbers there are.
    pub fn count(&self) -> u64 {
        self.items_of_zeta
    }

    /// Makes it one for `items`, if they have grown.
    pub fn grow(&mut self, items: u64) {
        if items > self.items_of_zeta {
            self.zeta_n = zeta(self.items_of_zeta, items, self.theta, self.zeta_n);
            self.items_of_zeta = items;
            self.set_eta();
        }
    }

    /// The next number.
    pub fn next(&self, random: &mut SplitMix64) -> u64 {
        let u = unit(random);
        let place = u * self.zeta_n;
        if place < 1.0 || self.items_of_zeta == 1 {
            return 0;
        }
        if place < 1.0 + 0.5f64.powf(self.theta) {
            return 1;
        }
        let items = self.items_of_zeta as f64;
        let drawn = (items * (self.eta * u - self.eta + 1.0).powf(self.alpha)) as u64;
        // Rounding alone could reach the count.
        drawn.min(self.items_of_zeta - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_grown_zipfian_equals_one_created_large() {
        let mut grown = Zipfian::new(100, ZIPFIAN_CONSTANT);
        grown.grow(1000);
        assert!((grown.zeta_n - zeta(0, 1000, ZIPFIAN_CONSTANT, 0.0)).abs() < 1e-9);
        assert_eq!(grown.count(), 1000);
        grown.grow(10);
        assert_eq!(grown.count(), 1000, "it never shrinks");
    }

    #[test]
    fn a_single_item_is_always_drawn() {
        let zipfian = Zipfian::new(1, ZIPFIAN_CONSTANT);
        let mut random = SplitMix64::new(1);
        assert!((0..1000).all(|_| zipfian.next(&mut random) == 0));
    }

    #[test]
    fn all_numbers_are_below_the_count() {
        let zipfian = Zipfian::new(10, ZIPFIAN_CONSTANT);
        let mut random = SplitMix64::new(1);
        let mut seen = [0u32; 10];
        for _ in 0..100_000 {
            seen[zipfian.next(&mut random) as usize] += 1;
        }
        assert!(seen.iter().all(|count| *count > 0) && seen[0] > seen[9], "{seen:?}");
    }
}
