//! Families of weights, and the weights of a text.
//!
//! Collations of one family share the weights and differ in the levels that they compare: `utf8mb4_0900_ai_ci` takes
//! the first of the three of Unicode 9.0.0, `utf8mb4_0900_as_cs` all.

mod file;
mod level;

use std::str::Chars;
use std::sync::LazyLock;

pub(crate) use level::{Found, Level};

/// Weights of all code points at up to three levels (base letters, accents, case), and of sequences that weigh as one.
#[derive(Debug, Default)]
pub(crate) struct Family {
    levels: Vec<Level>,
    /// Ascending by code points.
    contractions: Vec<Contraction>,
    /// The first code point that begins a contraction.
    first_contraction: Option<char>,
}

/// A sequence of code points with weights of its own.
#[derive(Debug)]
struct Contraction {
    points: Box<[char]>,
    /// By level.
    weights: [Box<[u16]>; 3],
}

macro_rules! family {
    ($(#[$documentation:meta])* $name:ident, $file:literal) => {
        $(#[$documentation])*
        pub(crate) static $name: LazyLock<Family> =
            LazyLock::new(|| Family::unpack(include_bytes!(concat!("../../data/", $file, ".zst"))));
    };
}

family!(/** `..._general_ci`. */ GENERAL, "general");
family!(/** `..._general_mysql500_ci`. */ GENERAL_5_0, "general-5.0");
family!(/** `..._unicode_ci`: UCA 4.0.0. */ UNICODE_4_0_0, "unicode-4.0.0");
family!(/** `..._unicode_520_ci`: UCA 5.2.0. */ UNICODE_5_2_0, "unicode-5.2.0");
family!(/** MySQL's `utf8mb4_0900_...`: UCA 9.0.0. */ UNICODE_9_0_0, "unicode-9.0.0");
family!(/** MariaDB's `..._uca1400_...`: UCA 14.0.0. */ UNICODE_14_0_0, "unicode-14.0.0");

impl Family {
    fn unpack(file: &[u8]) -> Family {
        file::parse(&crate::unpack(file)).unwrap_or_default()
    }

    fn new(levels: Vec<Level>, contractions: Vec<Contraction>) -> Family {
        let first_contraction = contractions.first().and_then(|first| first.points.first().copied());
        Family { levels, contractions, first_contraction }
    }

    /// The level with the number `level`.
    pub(crate) fn level(&self, level: usize) -> Option<&Level> {
        self.levels.get(level)
    }

    /// The weights of `text` at `level`, in turn.
    #[inline]
    pub(crate) fn weights<'a>(&'a self, level: usize, text: &'a str) -> Weights<'a> {
        Weights {
            family: self,
            number: level,
            level: self.level(level),
            characters: text.chars(),
            listed: &[],
            computed: [0; 2],
            left: 0,
        }
    }

    /// The longest contraction that `first` and `rest` begin with.
    fn contraction(&self, first: char, rest: &str) -> Option<&Contraction> {
        if self.first_contraction.is_none_or(|least| first < least) {
            return None;
        }
        let from = self.contractions.partition_point(|own| own.points[0] < first);
        let begun = self.contractions[from..].iter().take_while(|own| own.points[0] == first);
        let matching = begun.filter(|own| {
            let mut rest = rest.chars();
            own.points[1..].iter().all(|point| rest.next() == Some(*point))
        });
        matching.max_by_key(|own| own.points.len())
    }
}

/// The weights of a text at one level.
#[derive(Debug, Clone)]
pub(crate) struct Weights<'a> {
    family: &'a Family,
    number: usize,
    level: Option<&'a Level>,
    characters: Chars<'a>,
    listed: &'a [u16],
    computed: [u16; 2],
    left: u8,
}

impl Iterator for Weights<'_> {
    type Item = u16;

    #[inline]
    fn next(&mut self) -> Option<u16> {
        loop {
            if let Some((first, rest)) = self.listed.split_first() {
                self.listed = rest;
                return Some(*first);
            }
            if self.left > 0 {
                let weight = self.computed[0];
                self.computed[0] = self.computed[1];
                self.left -= 1;
                return Some(weight);
            }
            let character = self.characters.next()?;
            if let Some(contraction) = self.family.contraction(character, self.characters.as_str()) {
                self.characters.nth(contraction.points.len() - 2);
                self.listed = contraction.weights.get(self.number).map_or(&[], |weights| weights);
                continue;
            }
            match self.level?.find(character) {
                Found::Listed(weights) => self.listed = weights,
                Found::Computed(count, weights) => (self.left, self.computed) = (count, weights),
            }
        }
    }
}
