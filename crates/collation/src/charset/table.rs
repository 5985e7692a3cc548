//! Sets that are not Unicode: one to four bytes a character, by the tables of the data file.

use std::sync::{LazyLock, OnceLock};

use super::file::{ILL_FORMED, NO_CHARACTER, Planes, SETS};
use super::{Encoded, SUBSTITUTE};

/// First four-byte sequence of a character beyond U+FFFF, as a number of [`linear`].
const FIRST_SUPPLEMENTARY: u32 = (0x90 - 0x81) * 12_600;

/// A character set with its tables.
#[derive(Debug)]
pub(crate) struct Table {
    name: &'static str,
    single: &'static [u16],
    double: &'static [u16],
    triple: &'static [u16],
    quadruple: &'static [u16],
    /// Whether each ASCII byte stands for itself.
    ascii_compatible: bool,
    /// Whether `?` is shown for some byte sequence beside `?` itself.
    shows_substitutes: bool,
    /// Characters and their byte sequences, each as a number; ascending.
    sequences: OnceLock<Box<[(u16, u32)]>>,
    set: &'static Planes,
}

static TABLES: LazyLock<Vec<Table>> = LazyLock::new(|| SETS.iter().map(Table::new).collect());

impl Table {
    /// The set called `name`.
    pub(crate) fn named(name: &str) -> Option<&'static Table> {
        TABLES.iter().find(|table| table.name == name)
    }

    fn new(set: &'static Planes) -> Table {
        let [single, double, triple, quadruple] = &set.planes;
        let own = |(byte, cell): (usize, &u16)| usize::from(*cell) == byte;
        Table {
            name: &set.name,
            single,
            double,
            triple,
            quadruple,
            ascii_compatible: single.iter().take(128).enumerate().all(own),
            shows_substitutes: single.iter().any(|cell| character_of(*cell).is_none()),
            sequences: OnceLock::new(),
            set,
        }
    }

    fn sequences(&self) -> &[(u16, u32)] {
        self.sequences.get_or_init(|| sequences(self.set))
    }

    pub(super) fn is_ascii_compatible(&self) -> bool {
        self.ascii_compatible
    }

    /// Whether all characters take one byte.
    pub(crate) fn is_single_byte(&self) -> bool {
        self.double.is_empty()
    }

    /// The first character of `bytes`, which are not empty, and its length in bytes.
    fn first(&self, bytes: &[u8]) -> (char, usize) {
        let cell = |plane: &[u16], at: Option<usize>| {
            at.and_then(|at| plane.get(at)).copied().filter(|cell| *cell != ILL_FORMED)
        };
        let found = |cell: u16, length| (character_of(cell).unwrap_or(SUBSTITUTE), length);
        let lead = bytes[0];
        if let Some(cell) = cell(self.single, Some(usize::from(lead))) {
            return found(cell, 1);
        }
        let high = |byte: u8| usize::from(byte).checked_sub(0x80);
        if let [lead, trail, ..] = bytes
            && let Some(cell) = cell(self.double, high(*lead).map(|row| row << 8 | usize::from(*trail)))
        {
            return found(cell, 2);
        }
        if let [0x8f, second, third, ..] = bytes
            && let Some(cell) =
                cell(self.triple, high(*second).zip(high(*third)).map(|(row, column)| row << 7 | column))
        {
            return found(cell, 3);
        }
        if let (false, Some(number)) = (self.quadruple.is_empty(), linear(bytes)) {
            if let Some(cell) = cell(self.quadruple, Some(number as usize)) {
                return found(cell, 4);
            }
            let supplementary = number.checked_sub(FIRST_SUPPLEMENTARY);
            let character = supplementary.and_then(|offset| char::from_u32(0x1_0000 + offset));
            return (character.unwrap_or(SUBSTITUTE), 4);
        }
        (SUBSTITUTE, 1)
    }

    pub(super) fn decode(&self, mut bytes: &[u8]) -> String {
        let mut text = String::with_capacity(bytes.len());
        while !bytes.is_empty() {
            let (character, length) = self.first(bytes);
            text.push(character);
            bytes = &bytes[length..];
        }
        text
    }

    /// The length of the leading `characters` characters in bytes.
    pub(super) fn prefix_length(&self, bytes: &[u8], characters: usize) -> usize {
        if self.is_single_byte() {
            return characters.min(bytes.len());
        }
        let mut at = 0;
        for _ in 0..characters {
            if at == bytes.len() {
                break;
            }
            at += self.first(&bytes[at..]).1;
        }
        at
    }

    /// The bytes of `character`: of several sequences the one that servers write.
    pub(crate) fn bytes(&self, character: char) -> Option<Vec<u8>> {
        let number = u16::try_from(u32::from(character)).ok()?;
        let at = self.sequences().partition_point(|(own, _)| *own < number);
        let own = self.sequences()[at..].iter().take_while(|(own, _)| *own == number);
        let (_, sequence) = own.min_by_key(|(_, sequence)| (is_copy_of_extension(*sequence), *sequence))?;
        let all = sequence.to_be_bytes();
        let skipped = all.iter().take(3).take_while(|byte| **byte == 0).count();
        Some(all[skipped..].to_vec())
    }

    pub(super) fn encode(&self, text: &str) -> Encoded<'static> {
        let mut bytes = Vec::with_capacity(text.len());
        let mut ambiguous = false;
        for character in text.chars() {
            if character == SUBSTITUTE && self.shows_substitutes {
                ambiguous = true;
                continue;
            }
            let Ok(number) = u16::try_from(u32::from(character)) else {
                if self.quadruple.is_empty() {
                    return Encoded::Absent;
                }
                bytes.extend(four_bytes(u32::from(character) - 0x1_0000 + FIRST_SUPPLEMENTARY));
                continue;
            };
            let at = self.sequences().partition_point(|(own, _)| *own < number);
            let mut own = self.sequences()[at..].iter().take_while(|(own, _)| *own == number);
            let Some((_, sequence)) = own.next() else { return Encoded::Absent };
            ambiguous |= own.next().is_some();
            let all = sequence.to_be_bytes();
            let skipped = all.iter().take(3).take_while(|byte| **byte == 0).count();
            bytes.extend(&all[skipped..]);
        }
        if ambiguous { Encoded::Ambiguous } else { Encoded::Bytes(bytes.into()) }
    }
}

/// Whether a sequence of cp932 is of the rows (NEC's) that repeat those of IBM's extension, which are the ones written.
fn is_copy_of_extension(sequence: u32) -> bool {
    matches!(sequence, 0xed40..=0xeeff)
}

fn character_of(cell: u16) -> Option<char> {
    char::from_u32(u32::from(cell))
}

/// The place of a four-byte sequence in the order of all; `None` if it is not one.
fn linear(bytes: &[u8]) -> Option<u32> {
    let [a, b, c, d, ..] = bytes else { return None };
    let digit = |byte: &u8, from: u8, to: u8| (from..=to).contains(byte).then(|| u32::from(byte - from));
    Some(
        digit(a, 0x81, 0xfe)? * 12_600
            + digit(b, 0x30, 0x39)? * 1_260
            + digit(c, 0x81, 0xfe)? * 10
            + digit(d, 0x30, 0x39)?,
    )
}

fn four_bytes(linear: u32) -> [u8; 4] {
    let (a, b) = (linear / 12_600, linear / 1_260 % 10);
    let (c, d) = (linear / 10 % 126, linear % 10);
    [0x81 + a as u8, 0x30 + b as u8, 0x81 + c as u8, 0x30 + d as u8]
}

/// Characters with their byte sequences, ascending.
fn sequences(set: &Planes) -> Box<[(u16, u32)]> {
    let [single, double, triple, quadruple] = &set.planes;
    let single = single.iter().zip(0u32..);
    let double = double.iter().zip(0x8000u32..);
    let triple = triple.iter().zip(0u32..).map(|(cell, at)| (cell, 0x8f_8080 | at >> 7 << 8 | at & 0x7f));
    let quadruple = quadruple.iter().zip(0u32..).map(|(cell, at)| (cell, u32::from_be_bytes(four_bytes(at))));
    let all = single.chain(double).chain(triple).chain(quadruple);
    let known = |(cell, _): &(&u16, u32)| **cell != ILL_FORMED && **cell != NO_CHARACTER;
    let mut sequences: Vec<_> = all.filter(known).map(|(cell, sequence)| (*cell, sequence)).collect();
    sequences.sort_unstable();
    sequences.into()
}
