//! Sort keys: byte strings that compare as their texts do in a collation, and are equal where these are.
//!
//! Weights are written high byte first, level by level; those of `..._general_ci`, which are code points of capital
//! letters, as UTF-8, so that a key of ASCII is about as long as its text. In a collation that does not pad, a level
//! ends with the weight 0, which no character has there, unless it is the last. One that pads compares the end of a
//! text with infinitely many spaces, which plain weights cannot express. So each run of weights of the space is written
//! as one such weight and what follows it:
//!
//! | follows                      | written                                                        |
//! |------------------------------|----------------------------------------------------------------|
//! | a lesser weight              | 1, the length of the run                                       |
//! | the end of the text          | 2                                                              |
//! | a greater weight             | 3, the length of the run with its bits inverted                |
//!
//! A text that does not end with spaces ends with a run of none. Lengths up to 254 take a byte, greater ones FF and
//! four bytes.

use std::sync::LazyLock;

use crate::Collation;
use crate::collation::{Rule, space_of};
use crate::weights::{Family, GENERAL, GENERAL_5_0, Level, UNICODE_9_0_0};

const LESSER: u8 = 1;
const END: u8 = 2;
const GREATER: u8 = 3;

impl Collation {
    /// Appends the sort key of `text` to `out`.
    ///
    /// Two keys of one collation compare as [`compare`](Collation::compare) compares their texts, and are equal exactly
    /// where it calls them equal: they serve as keys of hash tables, too.
    pub fn sort_key(&self, text: &str, out: &mut Vec<u8>) {
        match self.rule {
            Rule::Unicode(family, levels) => {
                if self.ascii_key(family, levels, text, out) {
                    return;
                }
                let write = if is_general(family) { write_as_utf8 } else { write_wide };
                for (at, level) in levels.iter().enumerate() {
                    let last = at + 1 == levels.len();
                    let weights = family.weights(*level, text);
                    let pads = self.pads_at(family, *level);
                    write_level(weights, pads.then(|| space_of(family, *level)), last, write, out);
                }
            }
            Rule::CodePoints | Rule::Bytes if self.has_plain_bytes(text) => {
                self.single_weights(text, 0x20, |byte| Some(byte.into()), true, out);
            }
            Rule::CodePoints => self.write_bytes(text.bytes().map(u16::from), 0x20, out),
            Rule::Bytes => self.write_bytes(self.stored(text).iter().map(|byte| u16::from(*byte)), 0x20, out),
            Rule::SingleByte(weights) => {
                let space = u16::from(weights.first[0x20]);
                let weight_of = |byte: u8| {
                    let (first, second) =
                        (weights.first[usize::from(byte)], weights.second[usize::from(byte)]);
                    (second == 0).then_some(first.into())
                };
                if self.has_plain_bytes(text) && self.single_weights(text, space, weight_of, true, out) {
                    return;
                }
                self.write_bytes(weights.of(self.stored(text).iter().copied()), space, out);
            }
        }
    }

    /// The weights of `text` as `WEIGHT_STRING(text)` gives them: padding is left out, so weight strings are not for
    /// comparing.
    pub fn weight_string(&self, text: &str) -> Vec<u8> {
        match self.rule {
            Rule::Unicode(family, levels) => {
                // MySQL's collations of several levels put a weight of 0 between them.
                let separated = std::ptr::eq(family, &UNICODE_9_0_0);
                let mut out = Vec::new();
                for (at, level) in levels.iter().enumerate() {
                    if at > 0 && separated {
                        out.extend([0, 0]);
                    }
                    out.extend(family.weights(*level, text).flat_map(u16::to_be_bytes));
                }
                out
            }
            Rule::CodePoints => {
                let skipped = if self.charset.is_within_bmp() { 2 } else { 1 };
                text.chars().flat_map(|own| u32::from(own).to_be_bytes().into_iter().skip(skipped)).collect()
            }
            Rule::Bytes => self.stored(text).into_owned(),
            Rule::SingleByte(weights) => {
                weights.of(self.stored(text).iter().copied()).map(|weight| weight as u8).collect()
            }
        }
    }

    /// Writes the key of an ASCII text in a collation of one level; false if it is another one, or has characters of no
    /// weight or of several.
    fn ascii_key(
        &self,
        family: &'static LazyLock<Family>,
        levels: &[usize],
        text: &str,
        out: &mut Vec<u8>,
    ) -> bool {
        let ([level], true) = (levels, text.is_ascii()) else { return false };
        let Some(weights) = family.level(*level).map(Level::ascii) else { return false };
        let is_narrow = is_general(family);
        let weight_of = |byte: u8| {
            let weight = weights[usize::from(byte & 0x7f)];
            (weight != 0 && (!is_narrow || weight < 0x80)).then_some(weight)
        };
        self.single_weights(text, weights[0x20], weight_of, is_narrow, out)
    }

    /// Whether `text` is stored as the bytes that it has here.
    fn has_plain_bytes(&self, text: &str) -> bool {
        self.charset.is_ascii_compatible() && text.is_ascii()
    }

    /// Writes the key of a text each of whose bytes has one weight, of a byte each if they are narrow; false, and
    /// nothing is written, if one has none.
    #[inline]
    fn single_weights(
        &self,
        text: &str,
        space: u16,
        weight_of: impl Fn(u8) -> Option<u16>,
        is_narrow: bool,
        out: &mut Vec<u8>,
    ) -> bool {
        let start = out.len();
        let text = if self.pads { text.trim_end_matches(' ') } else { text };
        out.reserve(2 * text.len() + 3);
        let mut spaces = 0u32;
        for byte in text.bytes() {
            let Some(weight) = weight_of(byte) else {
                out.truncate(start);
                return false;
            };
            if self.pads {
                if weight == space {
                    spaces += 1;
                    continue;
                }
                if spaces > 0 {
                    write_weight(space, is_narrow, out);
                    write_run(spaces, weight < space, out);
                    spaces = 0;
                }
            }
            write_weight(weight, is_narrow, out);
        }
        if self.pads {
            write_weight(space, is_narrow, out);
            out.push(END);
        }
        true
    }

    pub(crate) fn write_bytes(&self, weights: impl Iterator<Item = u16>, space: u16, out: &mut Vec<u8>) {
        write_level(weights, self.pads().then_some(space), true, |weight, out| out.push(weight as u8), out);
    }
}

/// Whether the weights are code points of capital letters.
fn is_general(family: &'static LazyLock<Family>) -> bool {
    std::ptr::eq(family, &GENERAL) || std::ptr::eq(family, &GENERAL_5_0)
}

fn write_wide(weight: u16, out: &mut Vec<u8>) {
    out.extend(weight.to_be_bytes());
}

/// As UTF-8, surrogates among them: its bytes are in the order of the code points.
fn write_as_utf8(weight: u16, out: &mut Vec<u8>) {
    let six = |shift: u16| 0x80 | (weight >> shift & 0x3f) as u8;
    match weight {
        0..0x80 => out.push(weight as u8),
        0x80..0x800 => out.extend([0xc0 | (weight >> 6) as u8, six(0)]),
        _ => out.extend([0xe0 | (weight >> 12) as u8, six(6), six(0)]),
    }
}

#[inline]
fn write_weight(weight: u16, is_narrow: bool, out: &mut Vec<u8>) {
    match is_narrow {
        true => out.push(weight as u8),
        false => out.extend(weight.to_be_bytes()),
    }
}

/// Writes the weights of a level, padded with the weight `space` if there is one.
fn write_level(
    weights: impl Iterator<Item = u16>,
    space: Option<u16>,
    last: bool,
    write: fn(u16, &mut Vec<u8>),
    out: &mut Vec<u8>,
) {
    let Some(space) = space else {
        weights.for_each(|weight| write(weight, out));
        if !last {
            write(0, out);
        }
        return;
    };
    let mut spaces = 0u32;
    for weight in weights {
        if weight == space {
            spaces += 1;
            continue;
        }
        if spaces > 0 {
            write(space, out);
            write_run(spaces, weight < space, out);
            spaces = 0;
        }
        write(weight, out);
    }
    write(space, out);
    out.push(END);
}

fn write_run(length: u32, lesser: bool, out: &mut Vec<u8>) {
    out.push(if lesser { LESSER } else { GREATER });
    let invert = |byte: u8| if lesser { byte } else { !byte };
    match u8::try_from(length) {
        Ok(short) if short < u8::MAX => out.push(invert(short)),
        _ => {
            out.push(invert(u8::MAX));
            out.extend(length.to_be_bytes().map(invert));
        }
    }
}
