//! Character sets: stored bytes -> UTF-8, and back for keys.
//!
//! A byte sequence that stands for no character is shown as `?`, as the servers do. So a text may stand for several
//! byte sequences: with `?` in it, or where a set has one character twice. Such a text is not encoded, because a search
//! for one of its forms would miss the others.

mod file;
mod table;

use std::borrow::Cow;

pub(crate) use table::Table;

/// What is shown for bytes that stand for no character.
const SUBSTITUTE: char = '?';

/// A character set of a server.
#[derive(Debug, Clone, Copy)]
pub struct Charset(Kind);

#[derive(Debug, Clone, Copy)]
enum Kind {
    /// `utf8mb3`; `utf8mb4` has `four_bytes`.
    Utf8 { four_bytes: bool },
    /// Two bytes a character, big-endian; surrogates are not characters.
    Ucs2,
    /// `utf16`, big-endian.
    Utf16,
    /// `utf16le`.
    Utf16Le,
    /// `utf32`, big-endian.
    Utf32,
    /// By a table.
    Table(&'static Table),
}

/// The stored form of a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Encoded<'a> {
    /// The only byte sequence that is shown as the text.
    Bytes(Cow<'a, [u8]>),
    /// No byte sequence of the set is shown as the text.
    Absent,
    /// Several byte sequences are shown as the text.
    Ambiguous,
}

impl Charset {
    /// The set that the servers call `name`; `None` if it is not known. `binary` is none.
    ///
    /// ```
    /// use tanada_collation::Charset;
    /// let sjis = Charset::lookup("sjis").ok_or("unknown")?;
    /// assert_eq!(sjis.decode(b"\x81\x60").as_deref(), Some("\u{301c}"));
    /// # Ok::<(), &str>(())
    /// ```
    pub fn lookup(name: &str) -> Option<Charset> {
        Some(Charset(match name {
            "utf8mb4" => Kind::Utf8 { four_bytes: true },
            "utf8mb3" | "utf8" => Kind::Utf8 { four_bytes: false },
            "ucs2" => Kind::Ucs2,
            "utf16" => Kind::Utf16,
            "utf16le" => Kind::Utf16Le,
            "utf32" => Kind::Utf32,
            _ => Kind::Table(Table::named(name)?),
        }))
    }

    /// Decodes `bytes`. UTF-8 columns hold valid UTF-8, because the servers check it: `None` if these do not.
    pub fn decode<'a>(&self, bytes: &'a [u8]) -> Option<Cow<'a, str>> {
        if let Kind::Utf8 { .. } = self.0 {
            return std::str::from_utf8(bytes).ok().map(Cow::Borrowed);
        }
        if self.is_ascii_compatible() && bytes.is_ascii() {
            return std::str::from_utf8(bytes).ok().map(Cow::Borrowed);
        }
        Some(Cow::Owned(match self.0 {
            Kind::Utf8 { .. } => return None,
            Kind::Ucs2 => decode_ucs2(bytes),
            Kind::Utf16 => decode_utf16(bytes, u16::from_be_bytes),
            Kind::Utf16Le => decode_utf16(bytes, u16::from_le_bytes),
            Kind::Utf32 => decode_utf32(bytes),
            Kind::Table(table) => table.decode(bytes),
        }))
    }

    /// Encodes `text`.
    pub fn encode<'a>(&self, text: &'a str) -> Encoded<'a> {
        let bytes: Vec<u8> = match self.0 {
            Kind::Utf8 { four_bytes } => {
                let fits = four_bytes || text.chars().all(|character| character.len_utf8() < 4);
                return if fits { Encoded::Bytes(text.as_bytes().into()) } else { Encoded::Absent };
            }
            Kind::Table(table) => return table.encode(text),
            _ if text.contains(SUBSTITUTE) => return Encoded::Ambiguous,
            Kind::Ucs2 if text.chars().any(|character| character.len_utf16() > 1) => return Encoded::Absent,
            Kind::Ucs2 | Kind::Utf16 => text.encode_utf16().flat_map(u16::to_be_bytes).collect(),
            Kind::Utf16Le => text.encode_utf16().flat_map(u16::to_le_bytes).collect(),
            Kind::Utf32 => text.chars().flat_map(|character| u32::from(character).to_be_bytes()).collect(),
        };
        Encoded::Bytes(bytes.into())
    }

    /// The leading bytes of `bytes` that make at most `characters` characters.
    pub fn prefix<'a>(&self, bytes: &'a [u8], characters: usize) -> &'a [u8] {
        let length = match self.0 {
            Kind::Utf8 { .. } => {
                let starts = bytes.iter().enumerate().filter(|(_, byte)| **byte & 0xc0 != 0x80);
                starts.map(|(at, _)| at).nth(characters).unwrap_or(bytes.len())
            }
            Kind::Ucs2 => characters.saturating_mul(2),
            Kind::Utf32 => characters.saturating_mul(4),
            Kind::Utf16 => utf16_prefix(bytes, characters, 0),
            Kind::Utf16Le => utf16_prefix(bytes, characters, 1),
            Kind::Table(table) => table.prefix_length(bytes, characters),
        };
        &bytes[..length.min(bytes.len())]
    }

    pub(crate) fn is_utf8(&self) -> bool {
        matches!(self.0, Kind::Utf8 { .. })
    }

    /// Whether it is a set of Unicode up to U+FFFF.
    pub(crate) fn is_within_bmp(&self) -> bool {
        matches!(self.0, Kind::Utf8 { four_bytes: false } | Kind::Ucs2)
    }

    pub(crate) fn table(&self) -> Option<&'static Table> {
        if let Kind::Table(table) = self.0 { Some(table) } else { None }
    }

    /// Whether an ASCII byte always stands for itself.
    pub(crate) fn is_ascii_compatible(&self) -> bool {
        match self.0 {
            Kind::Utf8 { .. } => true,
            Kind::Table(table) => table.is_ascii_compatible(),
            _ => false,
        }
    }
}

fn decode_ucs2(bytes: &[u8]) -> String {
    let character = |unit: &[u8]| match unit {
        [high, low] => char::from_u32(u32::from(u16::from_be_bytes([*high, *low]))).unwrap_or(SUBSTITUTE),
        _ => SUBSTITUTE,
    };
    bytes.chunks(2).map(character).collect()
}

fn decode_utf16(bytes: &[u8], unit: fn([u8; 2]) -> u16) -> String {
    let units = bytes.chunks(2).map(|pair| match pair {
        [first, second] => unit([*first, *second]),
        // A surrogate: half a unit is no character.
        _ => 0xd800,
    });
    char::decode_utf16(units).map(|character| character.unwrap_or(SUBSTITUTE)).collect()
}

fn decode_utf32(bytes: &[u8]) -> String {
    let character = |word: &[u8]| match word {
        [a, b, c, d] => char::from_u32(u32::from_be_bytes([*a, *b, *c, *d])).unwrap_or(SUBSTITUTE),
        _ => SUBSTITUTE,
    };
    bytes.chunks(4).map(character).collect()
}

/// `high` is the place of the more significant byte in a unit.
fn utf16_prefix(bytes: &[u8], characters: usize, high: usize) -> usize {
    let mut at = 0;
    for _ in 0..characters {
        let leads = bytes.get(at + high).is_some_and(|byte| byte & 0xfc == 0xd8);
        at += if leads { 4 } else { 2 };
    }
    at
}

#[cfg(test)]
mod tests;
