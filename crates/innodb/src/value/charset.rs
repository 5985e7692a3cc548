//! Character sets: stored bytes -> UTF-8, and back for keys.
//!
//! UTF-8 columns hold valid UTF-8 (the servers check it), so anything else is damage. In the other sets a byte that stands for nothing
//! becomes U+FFFD: the servers accept such bytes in places (and print `?`).

use std::borrow::Cow;
use std::sync::LazyLock;

use encoding_rs::Encoding;

use super::charset_table::SETS;
use crate::{Error, ErrorKind, Result};

/// How to decode a character set.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Charset {
    /// `utf8mb3`; `utf8mb4` has `four_bytes`.
    Utf8 { four_bytes: bool },
    /// 7-bit ASCII.
    Ascii,
    /// `latin1`: Windows-1252, the five holes being C1 controls.
    Latin1,
    /// `ucs2` and `utf16`, big-endian.
    Utf16,
    /// `utf16le`.
    Utf16Le,
    /// `utf32`, big-endian.
    Utf32,
    /// Decoded by `encoding_rs`.
    Other(&'static Encoding),
    /// One byte a character, by a table.
    Single(&'static SingleByte),
}

/// A set of single bytes.
#[derive(Debug)]
pub(crate) struct SingleByte {
    name: &'static str,
    /// By byte.
    characters: [char; 256],
}

/// The sets of [`SETS`].
static SINGLE_BYTE: LazyLock<Vec<SingleByte>> = LazyLock::new(|| {
    let set = |(name, first, listed): &(&'static str, u8, &str)| {
        let mut characters = std::array::from_fn(|byte| char::from(byte as u8));
        characters[usize::from(*first)..].iter_mut().zip(listed.chars()).for_each(|(to, from)| *to = from);
        SingleByte { name, characters }
    };
    SETS.iter().map(set).collect()
});

impl SingleByte {
    fn named(name: &str) -> Option<&'static SingleByte> {
        SINGLE_BYTE.iter().find(|set| set.name == name)
    }

    fn is_ascii_compatible(&self) -> bool {
        self.characters.iter().take(128).enumerate().all(|(byte, character)| *character as usize == byte)
    }

    fn decode(&self, bytes: &[u8]) -> String {
        bytes.iter().map(|byte| self.characters[usize::from(*byte)]).collect()
    }

    /// The first byte that stands for each character.
    fn encode(&self, text: &str) -> Option<Vec<u8>> {
        let byte = |character: char| {
            let known = character != char::REPLACEMENT_CHARACTER;
            let at = self.characters.iter().position(|own| *own == character).filter(|_| known)?;
            u8::try_from(at).ok()
        };
        text.chars().map(byte).collect()
    }

    /// Whether no two bytes stand for the same character.
    fn is_injective(&self) -> bool {
        let known = |character: &&char| **character != char::REPLACEMENT_CHARACTER;
        let mut characters: Vec<char> = self.characters.iter().filter(known).copied().collect();
        characters.sort_unstable();
        characters.windows(2).all(|pair| pair[0] != pair[1])
    }
}

impl Charset {
    /// The set that the servers call `name`.
    pub(crate) fn new(name: &str) -> Result<Charset> {
        let other = match name {
            "utf8mb4" => return Ok(Charset::Utf8 { four_bytes: true }),
            "utf8mb3" | "utf8" => return Ok(Charset::Utf8 { four_bytes: false }),
            "ascii" => return Ok(Charset::Ascii),
            "latin1" => return Ok(Charset::Latin1),
            "ucs2" | "utf16" => return Ok(Charset::Utf16),
            "utf16le" => return Ok(Charset::Utf16Le),
            "utf32" => return Ok(Charset::Utf32),
            "latin2" => encoding_rs::ISO_8859_2,
            "latin7" => encoding_rs::ISO_8859_13,
            "koi8r" => encoding_rs::KOI8_R,
            "macroman" => encoding_rs::MACINTOSH,
            "sjis" | "cp932" => encoding_rs::SHIFT_JIS,
            "ujis" | "eucjpms" => encoding_rs::EUC_JP,
            "euckr" => encoding_rs::EUC_KR,
            "gb2312" | "gbk" => encoding_rs::GBK,
            "gb18030" => encoding_rs::GB18030,
            "big5" => encoding_rs::BIG5,
            _ => return SingleByte::named(name).map(Charset::Single).ok_or_else(|| unread(name)),
        };
        Ok(Charset::Other(other))
    }

    /// Whether an ASCII byte always stands for itself.
    fn ascii_compatible(self) -> bool {
        match self {
            Charset::Utf16 | Charset::Utf16Le | Charset::Utf32 => false,
            Charset::Single(set) => set.is_ascii_compatible(),
            _ => true,
        }
    }

    /// Whether each text has but one form in bytes, so that it can be searched for.
    pub(crate) fn has_one_form(self) -> bool {
        !matches!(self, Charset::Single(set) if !set.is_injective())
    }

    /// Decodes `bytes`.
    pub(crate) fn decode(self, bytes: &[u8]) -> Result<Cow<'_, str>> {
        if let Charset::Utf8 { .. } = self {
            let text = std::str::from_utf8(bytes);
            return text
                .map(Cow::Borrowed)
                .map_err(|_| Error::new(ErrorKind::Corrupt, "a string is not UTF-8"));
        }
        if self.ascii_compatible() && bytes.is_ascii() {
            // ASCII is UTF-8, so this cannot fail; the check is as fast as the test above.
            return Ok(String::from_utf8_lossy(bytes));
        }
        Ok(match self {
            Charset::Utf8 { .. } => String::from_utf8_lossy(bytes),
            Charset::Ascii => Cow::Owned(decode_ascii(bytes)),
            Charset::Single(set) => Cow::Owned(set.decode(bytes)),
            Charset::Latin1 => encoding_rs::WINDOWS_1252.decode_without_bom_handling(bytes).0,
            Charset::Utf16 => encoding_rs::UTF_16BE.decode_without_bom_handling(bytes).0,
            Charset::Utf16Le => encoding_rs::UTF_16LE.decode_without_bom_handling(bytes).0,
            Charset::Utf32 => Cow::Owned(decode_utf32(bytes)),
            Charset::Other(encoding) => encoding.decode_without_bom_handling(bytes).0,
        })
    }

    /// Encodes `text`; `None` if the set does not hold it.
    pub(crate) fn encode(self, text: &str) -> Option<Cow<'_, [u8]>> {
        match self {
            Charset::Utf8 { four_bytes } => {
                let fits = four_bytes || text.chars().all(|character| character.len_utf8() < 4);
                fits.then_some(Cow::Borrowed(text.as_bytes()))
            }
            Charset::Ascii => text.is_ascii().then_some(Cow::Borrowed(text.as_bytes())),
            Charset::Latin1 => encode_with(encoding_rs::WINDOWS_1252, text),
            Charset::Other(encoding) => encode_with(encoding, text),
            Charset::Single(set) => set.encode(text).map(Cow::Owned),
            Charset::Utf16 => Some(text.encode_utf16().flat_map(u16::to_be_bytes).collect()),
            Charset::Utf16Le => Some(text.encode_utf16().flat_map(u16::to_le_bytes).collect()),
            Charset::Utf32 => {
                Some(text.chars().flat_map(|character| u32::from(character).to_be_bytes()).collect())
            }
        }
    }

    /// The leading bytes of `bytes` that make at most `characters` characters; `None` if characters cannot be counted here.
    pub(crate) fn prefix(self, bytes: &[u8], characters: usize, max_bytes: u8) -> Option<&[u8]> {
        let length = match self {
            Charset::Utf8 { .. } => {
                let starts = bytes.iter().enumerate().filter(|(_, byte)| **byte & 0xc0 != 0x80);
                starts.map(|(at, _)| at).nth(characters).unwrap_or(bytes.len())
            }
            _ if max_bytes == 1 => characters,
            _ => return None,
        };
        Some(&bytes[..length.min(bytes.len())])
    }
}

fn unread(name: &str) -> Error {
    let message = format!("the character set {name} is not read; leave its columns out of the query");
    Error::new(ErrorKind::Unsupported, message)
}

fn decode_ascii(bytes: &[u8]) -> String {
    let character = |byte: &u8| if byte.is_ascii() { char::from(*byte) } else { char::REPLACEMENT_CHARACTER };
    bytes.iter().map(character).collect()
}

fn encode_with<'a>(encoding: &'static Encoding, text: &'a str) -> Option<Cow<'a, [u8]>> {
    let (bytes, used, unmappable) = encoding.encode(text);
    (!unmappable && used == encoding).then_some(bytes)
}

fn decode_utf32(bytes: &[u8]) -> String {
    let character = |word: &[u8]| {
        let number = word.iter().fold(0u32, |number, byte| number << 8 | u32::from(*byte));
        char::from_u32(number).filter(|_| word.len() == 4).unwrap_or(char::REPLACEMENT_CHARACTER)
    };
    bytes.chunks(4).map(character).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_decode_and_encode() {
        for (name, text, bytes) in [
            ("utf8mb4", "a😀", &b"a\xf0\x9f\x98\x80"[..]),
            ("latin1", "é€", b"\xe9\x80"),
            ("ucs2", "日x", b"\x65\xe5\0x"),
            ("utf16le", "日x", b"\xe5\x65x\0"),
            ("utf32", "😀", b"\0\x01\xf6\0"),
            ("cp1251", "Ж", b"\xc6"),
            ("gbk", "中", b"\xd6\xd0"),
            ("ascii", "abc", b"abc"),
            ("cp850", "é█x", b"\x82\xdbx"),
            ("cp852", "ł", b"\x88"),
            ("swe7", "ÅÄ", b"]["),
            ("tis620", "ก", b"\xa1"),
            ("hebrew", "\u{200e}א", b"\xfd\xe0"),
        ] {
            let charset = Charset::new(name).unwrap();
            assert_eq!(charset.decode(bytes).unwrap(), text, "{name}");
            assert_eq!(charset.encode(text).unwrap(), bytes, "{name}");
        }
        assert_eq!(Charset::new("latin1").unwrap().decode(b"\x81\xff").unwrap(), "\u{81}ÿ");
    }

    #[test]
    fn what_a_set_lacks_is_not_encoded() {
        assert_eq!(Charset::new("latin1").unwrap().encode("日"), None);
        assert_eq!(Charset::new("utf8mb3").unwrap().encode("😀"), None);
        assert!(Charset::new("utf8mb4").unwrap().decode(b"\xff").is_err());
        assert_eq!(Charset::new("swe7").unwrap().encode("["), None);
        assert_eq!(Charset::new("cp1257").unwrap().encode("\u{fffd}"), None);
        let error = Charset::new("filename").unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unsupported);
        assert!(error.to_string().contains("filename"));
    }

    #[test]
    fn tables_have_a_character_for_each_byte() {
        for (name, first, characters) in SETS {
            assert_eq!(usize::from(*first) + characters.chars().count(), 256, "{name}");
        }
        assert_eq!(Charset::new("ascii").unwrap().decode("é".as_bytes()).unwrap(), "\u{fffd}\u{fffd}");
    }

    #[test]
    fn a_character_of_two_bytes_is_not_searched_for() {
        assert!(Charset::new("cp850").unwrap().has_one_form());
        assert!(!Charset::new("armscii8").unwrap().has_one_form());
    }

    #[test]
    fn prefixes_are_cut_at_characters() {
        let utf8 = Charset::new("utf8mb4").unwrap();
        assert_eq!(utf8.prefix("aéb".as_bytes(), 2, 4), Some("aé".as_bytes()));
        assert_eq!(utf8.prefix("aé".as_bytes(), 9, 4), Some("aé".as_bytes()));
        assert_eq!(Charset::Latin1.prefix(b"abc", 2, 1), Some(&b"ab"[..]));
    }
}
