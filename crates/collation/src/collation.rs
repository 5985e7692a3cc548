//! [`Collation`]: how strings compare.
//!
//! Comparison goes level by level: the weights of the whole strings at the first level decide, then those at the
//! second, then those at the third. Where one string ends, the other is compared with spaces if the collation pads (PAD
//! SPACE); else the shorter one is less. MariaDB pads the second and the third level in any case.

use std::cmp::Ordering;
use std::sync::{LazyLock, OnceLock};

use crate::weights::{Codes, Family, Level, UNICODE_14_0_0};
use crate::{Charset, Encoded, Server, names};

/// A collation of a server.
#[derive(Debug, Clone, Copy)]
pub struct Collation {
    pub(crate) charset: Charset,
    pub(crate) rule: Rule,
    pub(crate) pads: bool,
}

/// Where weights come from.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Rule {
    /// Some levels of a family.
    Unicode(&'static LazyLock<Family>, &'static [usize]),
    /// The code point.
    CodePoints,
    /// The bytes in the character set.
    Bytes,
    /// A table of bytes.
    SingleByte(&'static SingleByteWeights),
}

/// The weights of the 256 bytes of a set.
#[derive(Debug)]
pub(crate) struct SingleByteWeights {
    pub(crate) first: [u8; 256],
    /// 0 where there is none.
    pub(crate) second: [u8; 256],
    pub(crate) codes: OnceLock<Codes>,
}

impl SingleByteWeights {
    /// Their codes in sort keys.
    pub(crate) fn codes(&self) -> &Codes {
        self.codes.get_or_init(|| {
            let only = |byte: u8| match self.second[usize::from(byte)] {
                0 => u16::from(self.first[usize::from(byte)]),
                _ => 0,
            };
            Codes::narrow(only, self.first[0x20])
        })
    }

    pub(crate) fn of<'a>(&'a self, bytes: impl Iterator<Item = u8> + 'a) -> impl Iterator<Item = u16> + 'a {
        bytes.flat_map(|byte| {
            let (first, second) = (self.first[usize::from(byte)], self.second[usize::from(byte)]);
            [Some(u16::from(first)), (second != 0).then_some(u16::from(second))].into_iter().flatten()
        })
    }
}

impl Collation {
    /// The collation that `server` calls `name`, in any case; `None` if its order is not known here.
    ///
    /// ```
    /// use tanada_collation::{Collation, Server};
    /// let general = Collation::lookup(Server::MariaDb, "utf8mb4_general_ci").ok_or("unknown")?;
    /// assert!(general.compare("Tanada", "TANADA  ").is_eq());
    /// assert!(Collation::lookup(Server::MySql, "utf8mb4_uca1400_ai_ci").is_none());
    /// # Ok::<(), &str>(())
    /// ```
    pub fn lookup(server: Server, name: &str) -> Option<&'static Collation> {
        let name = name.to_ascii_lowercase();
        match name.strip_prefix("utf8_") {
            Some(rest) => names::lookup(server, &format!("utf8mb3_{rest}")),
            None => names::lookup(server, &name),
        }
    }

    /// The names of all collations of `server` whose order is known here, in no order.
    pub fn names(server: Server) -> impl Iterator<Item = &'static str> {
        names::all(server)
    }

    /// The character set.
    pub fn charset(&self) -> Charset {
        self.charset
    }

    /// Whether trailing spaces do not count (PAD SPACE).
    pub fn pads(&self) -> bool {
        self.pads
    }

    /// Whether texts compare by their code points.
    pub fn is_binary(&self) -> bool {
        matches!(self.rule, Rule::CodePoints | Rule::Bytes)
    }

    /// Whether the character set has every character of `text`.
    pub fn holds(&self, text: &str) -> bool {
        text.is_ascii() || !matches!(self.charset.encode(text), Encoded::Absent)
    }

    /// Compares two texts.
    pub fn compare(&self, a: &str, b: &str) -> Ordering {
        if a == b {
            return Ordering::Equal;
        }
        match self.rule {
            Rule::Unicode(family, levels) => self.compare_weights(family, levels, a, b),
            Rule::CodePoints => self.by_weights(a.bytes().map(u16::from), b.bytes().map(u16::from), 0x20),
            Rule::Bytes => {
                let (a, b) = (self.stored(a), self.stored(b));
                self.by_weights(
                    a.iter().map(|byte| u16::from(*byte)),
                    b.iter().map(|byte| u16::from(*byte)),
                    0x20,
                )
            }
            Rule::SingleByte(weights) => {
                let (a, b) = (self.stored(a), self.stored(b));
                self.by_table(weights, &a, &b)
            }
        }
    }

    pub(crate) fn by_table(&self, weights: &SingleByteWeights, a: &[u8], b: &[u8]) -> Ordering {
        let space = u16::from(weights.first[0x20]);
        self.by_weights(weights.of(a.iter().copied()), weights.of(b.iter().copied()), space)
    }

    fn compare_weights(&self, family: &Family, levels: &[usize], a: &str, b: &str) -> Ordering {
        let [first, rest @ ..] = levels else { return Ordering::Equal };
        let (mut from, mut order) = match family.level(*first) {
            Some(level) => ascii_prefix(level.ascii(), a.as_bytes(), b.as_bytes()),
            None => (0, Ordering::Equal),
        };
        let contracts = |at: usize| {
            [a, b].iter().any(|text| match text.as_bytes().get(at..at + 2) {
                Some([first, second]) => !second.is_ascii() && family.begins_contraction(*first),
                _ => false,
            })
        };
        if order.is_ne() && contracts(from) {
            order = Ordering::Equal;
        }
        if from > 0 && contracts(from - 1) {
            from -= 1;
        }
        // `from` lies after ASCII characters only.
        let (suffix_a, suffix_b) = (a.get(from..).unwrap_or(a), b.get(from..).unwrap_or(b));
        let order = order.then_with(|| self.at_level(family, *first, suffix_a, suffix_b));
        rest.iter().fold(order, |order, level| order.then_with(|| self.at_level(family, *level, a, b)))
    }

    fn at_level(&self, family: &Family, level: usize, a: &str, b: &str) -> Ordering {
        let pads = self.pads_at(family, level);
        by_weights(family.weights(level, a), family.weights(level, b), space_of(family, level), pads)
    }

    /// Whether the end of a text counts as spaces at `level`.
    pub(crate) fn pads_at(&self, family: &Family, level: usize) -> bool {
        self.pads || level > 0 && std::ptr::eq(family, LazyLock::force(&UNICODE_14_0_0))
    }

    fn by_weights(&self, a: impl Iterator<Item = u16>, b: impl Iterator<Item = u16>, space: u16) -> Ordering {
        by_weights(a, b, space, self.pads)
    }

    /// The bytes of `text` in the character set; `?` for what it does not hold.
    pub(crate) fn stored<'a>(&self, text: &'a str) -> std::borrow::Cow<'a, [u8]> {
        if self.charset.is_ascii_compatible() && text.is_ascii() {
            return text.as_bytes().into();
        }
        match self.charset.encode(text) {
            Encoded::Bytes(bytes) => bytes,
            Encoded::Absent | Encoded::Ambiguous => text
                .chars()
                .flat_map(|character| match self.charset.encode(character.encode_utf8(&mut [0; 4])) {
                    Encoded::Bytes(bytes) => bytes.into_owned(),
                    _ => {
                        let bytes = self.charset.table().and_then(|table| table.bytes(character));
                        bytes.unwrap_or_else(|| vec![b'?'])
                    }
                })
                .collect(),
        }
    }
}

/// Compares weights in turn, with `space` after the end of the shorter list if the collation `pads`.
fn by_weights(
    mut a: impl Iterator<Item = u16>,
    mut b: impl Iterator<Item = u16>,
    space: u16,
    pads: bool,
) -> Ordering {
    loop {
        let order = match (a.next(), b.next()) {
            (None, None) => return Ordering::Equal,
            (Some(a), Some(b)) => a.cmp(&b),
            (Some(_), None) if !pads => Ordering::Greater,
            (None, Some(_)) if !pads => Ordering::Less,
            (Some(a), None) => a.cmp(&space),
            (None, Some(b)) => space.cmp(&b),
        };
        if order.is_ne() {
            return order;
        }
    }
}

/// The weight of a space at `level`.
pub(crate) fn space_of(family: &Family, level: usize) -> u16 {
    family.level(level).map_or(0, Level::space)
}

/// The length of the leading ASCII characters that have the same single weights in both, and the order of the next ones
/// if they are such, too.
fn ascii_prefix(weights: &[u16; 128], a: &[u8], b: &[u8]) -> (usize, Ordering) {
    for (at, (a, b)) in a.iter().zip(b).enumerate() {
        let (Some(a), Some(b)) = (weights.get(usize::from(*a)), weights.get(usize::from(*b))) else {
            return (at, Ordering::Equal);
        };
        if *a == 0 || *b == 0 {
            return (at, Ordering::Equal);
        }
        if a != b {
            return (at, a.cmp(b));
        }
    }
    (a.len().min(b.len()), Ordering::Equal)
}

#[cfg(test)]
mod tests;
