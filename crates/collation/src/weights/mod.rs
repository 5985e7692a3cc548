//! Families of weights, and the weights of a text.
//!
//! Collations of one family share the weights and differ in the levels that they compare: `utf8mb4_0900_ai_ci` takes
//! the first of the three of Unicode 9.0.0, `utf8mb4_0900_as_cs` all.

mod codes;
mod file;
mod level;

use std::str::Chars;
use std::sync::LazyLock;

pub(crate) use codes::{Codes, END, SPACE, SPACE_BEFORE_LESSER};
pub(crate) use level::{Found, Level};

/// Weights of all code points at up to three levels (base letters, accents, case), and of sequences that weigh as one.
#[derive(Debug, Default)]
pub(crate) struct Family {
    levels: Vec<Level>,
    /// Ascending by code points.
    contractions: Vec<Contraction>,
    /// Code points that a contraction begins with.
    firsts: Points,
    /// Code points that stand second in a contraction.
    seconds: Points,
}

/// A set of code points: bit `n % 64` of word `n / 64` is code point `n`.
#[derive(Debug, Default)]
struct Points(Box<[u64]>);

impl Points {
    fn new(points: impl Iterator<Item = char> + Clone) -> Points {
        let points = points.map(|point| point as usize);
        let mut words = vec![0u64; points.clone().max().map_or(0, |last| last / 64 + 1)];
        points.for_each(|point| words[point / 64] |= 1 << (point % 64));
        Points(words.into())
    }

    #[inline]
    fn contain(&self, point: char) -> bool {
        let point = point as usize;
        self.0.get(point / 64).is_some_and(|word| word >> (point % 64) & 1 == 1)
    }
}

/// A sequence of code points with weights of its own.
#[derive(Debug)]
pub(crate) struct Contraction {
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
        let points = |at: usize| contractions.iter().filter_map(move |own| own.points.get(at).copied());
        let (firsts, seconds) = (Points::new(points(0)), Points::new(points(1)));
        Family { levels, contractions, firsts, seconds }
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
    #[inline]
    pub(crate) fn contraction(&self, first: char, rest: &str) -> Option<&Contraction> {
        let may_begin = self.firsts.contain(first)
            && rest.chars().next().is_some_and(|second| self.seconds.contain(second));
        if may_begin { self.longest_contraction(first, rest) } else { None }
    }

    /// Whether the ASCII character `first` begins a contraction. What follows it there is not of ASCII.
    #[inline]
    pub(crate) fn begins_contraction(&self, first: u8) -> bool {
        self.firsts.contain(char::from(first))
    }

    /// Whether some ASCII character begins a contraction.
    pub(crate) fn has_contractions_of_ascii(&self) -> bool {
        (0..0x80).any(|first| self.begins_contraction(first))
    }

    fn longest_contraction(&self, first: char, rest: &str) -> Option<&Contraction> {
        let from = self.contractions.partition_point(|own| own.points[0] < first);
        let begun = self.contractions[from..].iter().take_while(|own| own.points[0] == first);
        let matching = begun.filter(|own| {
            let mut rest = rest.chars();
            own.points[1..].iter().all(|point| rest.next() == Some(*point))
        });
        matching.max_by_key(|own| own.points.len())
    }
}

impl Contraction {
    /// What follows it in a text, where `rest` follows its first code point.
    pub(crate) fn after<'a>(&self, rest: &'a str) -> &'a str {
        let mut characters = rest.chars();
        characters.by_ref().take(self.points.len().saturating_sub(1)).for_each(drop);
        characters.as_str()
    }

    /// Its weights at the level with the number `level`.
    pub(crate) fn weights(&self, level: usize) -> &[u16] {
        self.weights.get(level).map_or(&[], |weights| weights)
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
                self.characters = contraction.after(self.characters.as_str()).chars();
                self.listed = contraction.weights(self.number);
                continue;
            }
            match self.level?.find(character) {
                Found::Listed(weights) => self.listed = weights,
                Found::Computed(count, weights) => (self.left, self.computed) = (count, weights),
            }
        }
    }
}
