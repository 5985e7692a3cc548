//! `LIKE` on texts of ASCII, byte by byte: nothing is decoded, and the rarest byte of a segment is searched first.

use memchr::{memchr, memchr2, memchr3};

use super::Part;
use crate::Collation;
use crate::collation::Rule;

/// What stands between two `%` of a pattern.
#[derive(Debug, Clone)]
pub(super) struct Segment {
    /// The characters that each place takes: bit `n` is character `n`.
    places: Vec<u128>,
    anchor: Option<Anchor>,
}

/// The place whose characters are the rarest.
#[derive(Debug, Clone)]
struct Anchor {
    place: usize,
    /// One to three characters.
    bytes: Vec<u8>,
}

impl Segment {
    /// The segment of `parts` without `%`.
    pub(super) fn new(parts: &[Part]) -> Segment {
        let places: Vec<u128> = parts
            .iter()
            .map(|part| match part {
                Part::Character(_, same) => *same,
                Part::One | Part::Any => u128::MAX,
            })
            .collect();
        let anchor = places
            .iter()
            .enumerate()
            .filter(|(_, taken)| (1..=3).contains(&taken.count_ones()))
            .min_by_key(|(_, taken)| bytes_of(**taken).map(frequency).sum::<usize>())
            .map(|(place, taken)| Anchor { place, bytes: bytes_of(*taken).collect() });
        Segment { places, anchor }
    }

    /// Whether `text` begins with the segment.
    fn begins(&self, text: &[u8]) -> bool {
        text.len() >= self.places.len()
            && self.places.iter().zip(text).all(|(taken, byte)| taken >> (byte & 0x7f) & 1 == 1)
    }

    /// The end of the first place of `text` where the segment stands.
    fn find(&self, text: &[u8]) -> Option<usize> {
        let Some(anchor) = &self.anchor else {
            let starts = 0..=text.len().checked_sub(self.places.len())?;
            return starts.into_iter().find(|at| self.begins(&text[*at..])).map(|at| at + self.places.len());
        };
        let mut at = 0;
        loop {
            at += anchor.find(text.get(at + anchor.place..)?)?;
            if self.begins(&text[at..]) {
                return Some(at + self.places.len());
            }
            at += 1;
        }
    }
}

impl Anchor {
    fn find(&self, text: &[u8]) -> Option<usize> {
        match self.bytes.as_slice() {
            [one] => memchr(*one, text),
            [one, two] => memchr2(*one, *two, text),
            [one, two, three] => memchr3(*one, *two, *three, text),
            _ => None,
        }
    }
}

/// Whether the whole of `text`, which is ASCII, matches a pattern of `segments`.
pub(super) fn matches(segments: &[Segment], text: &[u8]) -> bool {
    let (first, middle, last) = match segments {
        [] => return text.is_empty(),
        [only] => return only.places.len() == text.len() && only.begins(text),
        [first, middle @ .., last] => (first, middle, last),
    };
    let Some(end) = text.len().checked_sub(last.places.len()) else { return false };
    let Some(mut rest) = text.get(first.places.len()..end) else { return false };
    if !first.begins(text) || !last.begins(&text[end..]) {
        return false;
    }
    middle.iter().all(|segment| match segment.find(rest) {
        Some(end) => {
            rest = &rest[end..];
            true
        }
        None => false,
    })
}

impl Collation {
    /// The ASCII characters that `LIKE` takes for `own`: bit `n` is character `n`.
    pub(super) fn same_ascii(&self, own: char) -> u128 {
        let mask = |is_same: &dyn Fn(u8) -> bool| {
            (0..128u8).filter(|byte| is_same(*byte)).fold(0u128, |mask, byte| mask | 1 << byte)
        };
        let one_by_one = || mask(&|byte| self.same_character(own, char::from(byte)));
        match (self.rule, u8::try_from(own)) {
            (Rule::CodePoints | Rule::Bytes, Ok(own @ 0..128)) => 1 << own,
            (Rule::CodePoints | Rule::Bytes, _) => 0,
            (Rule::Unicode(family, levels), Ok(own @ 0..128)) => {
                // A weight of 0 stands for none or several: these are compared one by one.
                let tables =
                    || levels.iter().filter_map(|level| family.level(*level)).map(|level| level.ascii());
                let at = usize::from(own);
                if tables().count() != levels.len() || tables().any(|weights| weights[at] == 0) {
                    return one_by_one();
                }
                mask(&|byte| tables().all(|weights| weights[usize::from(byte)] == weights[at]))
            }
            _ => one_by_one(),
        }
    }
}

fn bytes_of(taken: u128) -> impl Iterator<Item = u8> {
    (0..128).filter(move |byte| taken >> byte & 1 == 1)
}

/// How often a byte stands in common texts, by rank.
fn frequency(byte: u8) -> usize {
    const RISING: &[u8] = b"zqjxkvbywgpfmucdlhrsnioate ";
    let of_others = 4;
    RISING.iter().position(|own| *own == byte.to_ascii_lowercase()).map_or(of_others, |rank| rank + 1)
}
