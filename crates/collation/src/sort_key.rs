//! Sort keys: byte strings that compare as their texts do in a collation, and are equal where these are.
//!
//! A key is the codes of a text's weights ([`crate::weights::Codes`]), level by level. Characters of ASCII have codes
//! of one byte, so keys of their texts are about as long as the texts. In a collation that does not pad, a level ends
//! with 0, unless it is the last. One that pads compares the end of a text with infinitely many spaces:
//!
//! 1. Spaces at the end are left out, and the level ends with a code of its own, 3.
//! 2. In a run of spaces, each is 2 before a lesser weight and 4 before a greater one. So a text that ends where
//!    another one has spaces is greater in the first case and less in the second, whatever the lengths of their runs.
//!
//! Texts by bytes that do not pad are their own keys.

use std::sync::LazyLock;

use crate::Collation;
use crate::collation::{Rule, SingleByteWeights};
use crate::weights::{Codes, END, Family, Found, Level, SPACE, SPACE_BEFORE_LESSER, UNICODE_9_0_0};

/// Codes of bytes that are their own weights.
static BYTES: LazyLock<Codes> = LazyLock::new(|| Codes::narrow(u16::from, b' '));

impl Collation {
    /// Appends the sort key of `text` to `out`.
    ///
    /// Two keys of one collation compare as [`compare`](Collation::compare) compares their texts, and are equal exactly
    /// where it calls them equal: they serve as keys of hash tables, too.
    #[inline]
    pub fn sort_key(&self, text: &str, out: &mut Vec<u8>) {
        self.write_key(text, usize::MAX, out);
    }

    /// Appends the sort key of `text`, or at least `most` bytes of it if it is longer.
    pub(crate) fn write_key(&self, text: &str, most: usize, out: &mut Vec<u8>) {
        match self.rule {
            Rule::Unicode(family, levels) => {
                let limit = out.len().saturating_add(most);
                for (at, number) in levels.iter().enumerate() {
                    if let Some(level) = family.level(*number) {
                        let pads = self.pads_at(family, *number);
                        let mut writer = Writer { codes: level.codes(), pads, spaces: 0, out };
                        writer.text(family, (*number, level), text, limit);
                        writer.end(at + 1 == levels.len());
                    }
                }
            }
            Rule::CodePoints if !self.pads => out.extend_from_slice(text.as_bytes()),
            Rule::CodePoints => self.write_bytes(text.as_bytes(), out),
            Rule::Bytes => self.write_bytes(&self.stored(text), out),
            Rule::SingleByte(weights) => self.write_single_bytes(weights, &self.stored(text), out),
        }
    }

    /// Writes the key of the stored `bytes` by their own order.
    pub(crate) fn write_bytes(&self, bytes: &[u8], out: &mut Vec<u8>) {
        match self.pads {
            true => self.write_coded(&BYTES, bytes, bytes.iter().copied().map(u16::from), out),
            false => out.extend_from_slice(bytes),
        }
    }

    /// Writes the key of the stored `bytes` by a table of weights.
    pub(crate) fn write_single_bytes(&self, weights: &SingleByteWeights, bytes: &[u8], out: &mut Vec<u8>) {
        self.write_coded(weights.codes(), bytes, weights.of(bytes.iter().copied()), out);
    }

    /// Writes the only level of `bytes`, whose weights are `weights`.
    fn write_coded(
        &self,
        codes: &Codes,
        bytes: &[u8],
        weights: impl Iterator<Item = u16>,
        out: &mut Vec<u8>,
    ) {
        let mut writer = Writer { codes, pads: self.pads, spaces: 0, out };
        if !writer.bytes(bytes) {
            weights.for_each(|weight| writer.weight(weight));
        }
        writer.end(true);
    }

    /// The codes of texts' bytes at the first level: 0 for what does not have one byte as its code.
    pub(crate) fn codes_of_bytes(&self) -> [u8; 256] {
        let (codes, known) = match self.rule {
            Rule::Unicode(family, levels) => {
                let level = levels.first().and_then(|first| family.level(*first));
                (level.map(Level::codes), 0x80)
            }
            Rule::CodePoints => (self.pads.then_some(&*BYTES), 0x100),
            Rule::Bytes => (self.pads.then_some(&*BYTES), 0x80),
            Rule::SingleByte(weights) => (Some(weights.codes()), 0x80),
        };
        let is_stored_so = matches!(self.rule, Rule::Unicode(..) | Rule::CodePoints);
        let known = if is_stored_so || self.charset.is_ascii_compatible() { known } else { 0 };
        let code = |byte| codes.filter(|_| byte < known).map_or(0, |codes| codes.of_bytes()[byte]);
        std::array::from_fn(code)
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
}

/// Writes a level of a key.
struct Writer<'a> {
    codes: &'a Codes,
    pads: bool,
    /// Spaces before what is written next. Always 0 if the level does not pad.
    spaces: usize,
    out: &'a mut Vec<u8>,
}

impl Writer<'_> {
    /// Writes a level of `text`, until `out` has `limit` bytes.
    #[inline]
    fn text(&mut self, family: &Family, (number, level): (usize, &Level), text: &str, limit: usize) {
        let mut rest = text;
        while !rest.is_empty() && self.out.len() < limit {
            let ascii = ascii_prefix(family, rest).min(limit - self.out.len());
            if ascii > 0 {
                let (run, after) = rest.split_at(ascii);
                if !self.bytes(run.as_bytes()) {
                    run.chars().for_each(|character| self.character(level, character));
                }
                rest = after;
                continue;
            }
            let mut characters = rest.chars();
            let Some(character) = characters.next() else { return };
            rest = characters.as_str();
            match family.contraction(character, rest) {
                Some(contraction) => {
                    rest = contraction.after(rest);
                    contraction.weights(number).iter().for_each(|weight| self.weight(*weight));
                }
                None => self.character(level, character),
            }
        }
    }

    #[inline]
    fn character(&mut self, level: &Level, character: char) {
        match level.find(character) {
            Found::Listed(&[weight]) => self.weight(weight),
            Found::Listed(weights) => weights.iter().for_each(|weight| self.weight(*weight)),
            Found::Computed(count, weights) => {
                weights.iter().take(count.into()).for_each(|weight| self.weight(*weight));
            }
        }
    }

    /// Writes bytes of a text that have a code of one byte each; false, and nothing is written, if one has not.
    #[inline]
    fn bytes(&mut self, bytes: &[u8]) -> bool {
        let start = self.out.len();
        // A weight whose code is one byte is no less than the space.
        self.out.resize(start + self.spaces, SPACE);
        let codes = self.codes.of_bytes();
        let mut has_all = true;
        self.out.extend(bytes.iter().map(|byte| {
            let code = codes[usize::from(*byte)];
            has_all &= code != 0;
            code
        }));
        if !has_all {
            self.out.truncate(start);
            return false;
        }
        if self.pads {
            self.spaces = self.out[start..].iter().rev().take_while(|code| **code == SPACE).count();
            self.out.truncate(self.out.len() - self.spaces);
        }
        true
    }

    #[inline]
    fn weight(&mut self, weight: u16) {
        let code = self.codes.of_weight(weight);
        if self.pads {
            if code[1] == SPACE {
                self.spaces += 1;
                return;
            }
            if self.spaces > 0 {
                let space = if code[1] < SPACE { SPACE_BEFORE_LESSER } else { SPACE };
                self.out.resize(self.out.len() + self.spaces, space);
                self.spaces = 0;
            }
        }
        match code {
            [1, only, ..] => self.out.push(only),
            [2, first, second, _] => self.out.extend_from_slice(&[first, second]),
            [_, all @ ..] => self.out.extend_from_slice(&all),
        }
    }

    /// Ends the level.
    #[inline]
    fn end(self, is_last: bool) {
        if self.pads {
            self.out.push(END);
        } else if !is_last {
            self.out.push(0);
        }
    }
}

/// The length of the ASCII characters that `text` begins with, but for one that may begin a contraction.
#[inline]
fn ascii_prefix(family: &Family, text: &str) -> usize {
    if text.is_ascii() {
        return text.len();
    }
    let bytes = text.as_bytes();
    match bytes.iter().position(|byte| !byte.is_ascii()) {
        Some(end) if end > 0 && family.begins_contraction(bytes[end - 1]) => end - 1,
        end => end.unwrap_or(bytes.len()),
    }
}
