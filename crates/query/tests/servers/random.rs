//! Choices that follow from a seed.

use tanada_base::SplitMix64;

/// A source of choices.
pub struct Random(SplitMix64);

impl Random {
    /// The choices of `seed`.
    pub fn new(seed: u64) -> Random {
        Random(SplitMix64::new(seed))
    }

    /// A number below `bound`.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.0.below(bound)
    }

    /// A number from `least` to `most`, both included.
    pub fn between(&mut self, least: u64, most: u64) -> u64 {
        least + self.below(most - least + 1)
    }

    /// True in `percent` of 100 cases.
    pub fn chance(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }

    /// One of `choices`.
    pub fn pick<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len() as u64) as usize]
    }
}
