//! MySQL's binary JSON (`json_binary.h`) as text, spelled as MySQL prints it.
//!
//! A document is a type byte and a value; all numbers are little-endian. Objects and arrays begin with their element
//! count and size, both of two (small) or four (large) bytes, then key entries (offset, length of two bytes) and value
//! entries (type, offset or inlined scalar); offsets count from the count. Depth and every offset are checked; each
//! element takes at least its entry's bytes, and the total output is bounded, so that overlapping elements cannot blow
//! up.

use super::{Decimal, decimal, temporal, text};
use crate::{Error, ErrorKind, Result};

/// Most digits of a decimal: those before the point may be counted in whole groups of nine. As many as 256 bits hold.
const MAX_DIGITS: u8 = 76;

/// The server's own limit.
const MAX_DEPTH: u32 = 100;
/// A document is at most 1 GiB as stored; a hostile one may name the same bytes again and again.
const MAX_TEXT_PER_BYTE: usize = 64;

mod kind {
    pub const SMALL_OBJECT: u8 = 0;
    pub const LARGE_OBJECT: u8 = 1;
    pub const SMALL_ARRAY: u8 = 2;
    pub const LARGE_ARRAY: u8 = 3;
    pub const LITERAL: u8 = 4;
    pub const INT16: u8 = 5;
    pub const UINT16: u8 = 6;
    pub const INT32: u8 = 7;
    pub const UINT32: u8 = 8;
    pub const INT64: u8 = 9;
    pub const UINT64: u8 = 10;
    pub const DOUBLE: u8 = 11;
    pub const STRING: u8 = 12;
    pub const OPAQUE: u8 = 15;
}

/// MySQL's type codes inside opaque values.
mod field {
    pub const TIMESTAMP: u8 = 7;
    pub const DATE: u8 = 10;
    pub const TIME: u8 = 11;
    pub const DATETIME: u8 = 12;
    pub const NEW_DECIMAL: u8 = 246;
}

/// The text of a binary document.
pub(crate) fn to_text(bytes: &[u8]) -> Result<String> {
    let Some((kind, value)) = bytes.split_first() else { return Ok("null".into()) };
    let limit = bytes.len().saturating_mul(MAX_TEXT_PER_BYTE).saturating_add(1024);
    let mut printer = Printer { text: String::with_capacity(bytes.len()), limit };
    printer.value(*kind, value, 0)?;
    Ok(printer.text)
}

fn damaged(what: &str) -> Error {
    Error::new(ErrorKind::Corrupt, format!("a JSON document is damaged: {what}"))
}

fn slice(bytes: &[u8], offset: usize, length: usize) -> Result<&[u8]> {
    let end = offset.checked_add(length);
    end.and_then(|end| bytes.get(offset..end)).ok_or_else(|| damaged("an offset lies outside"))
}

fn little_endian(bytes: &[u8], offset: usize, length: usize) -> Result<u64> {
    let bytes = slice(bytes, offset, length)?;
    Ok(bytes.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte)))
}

/// The bytes after a length of seven bits a byte, lowest first.
fn counted(bytes: &[u8]) -> Result<&[u8]> {
    let mut length = 0u64;
    for (at, byte) in bytes.iter().take(5).enumerate() {
        length |= u64::from(byte & 0x7f) << (7 * at);
        if byte & 0x80 == 0 {
            return slice(bytes, at + 1, length as usize);
        }
    }
    Err(damaged("a length does not end"))
}

struct Printer {
    text: String,
    limit: usize,
}

impl Printer {
    fn value(&mut self, kind: u8, bytes: &[u8], depth: u32) -> Result<()> {
        if self.text.len() > self.limit {
            return Err(damaged("its elements overlap"));
        }
        match kind {
            kind::SMALL_OBJECT | kind::LARGE_OBJECT | kind::SMALL_ARRAY | kind::LARGE_ARRAY => {
                let large = kind & 1 == 1;
                return self.container(
                    kind <= kind::LARGE_OBJECT,
                    if large { 4 } else { 2 },
                    bytes,
                    depth + 1,
                );
            }
            kind::LITERAL => self.text.push_str(match bytes.first() {
                Some(0) => "null",
                Some(1) => "true",
                Some(2) => "false",
                _ => return Err(damaged("an unknown literal")),
            }),
            kind::INT16 => self.push(little_endian(bytes, 0, 2)? as i16),
            kind::UINT16 => self.push(little_endian(bytes, 0, 2)?),
            kind::INT32 => self.push(little_endian(bytes, 0, 4)? as i32),
            kind::UINT32 => self.push(little_endian(bytes, 0, 4)?),
            kind::INT64 => self.push(little_endian(bytes, 0, 8)? as i64),
            kind::UINT64 => self.push(little_endian(bytes, 0, 8)?),
            kind::DOUBLE => self.double(f64::from_bits(little_endian(bytes, 0, 8)?)),
            kind::STRING => {
                let text =
                    std::str::from_utf8(counted(bytes)?).map_err(|_| damaged("a string is not UTF-8"))?;
                self.string(text);
            }
            kind::OPAQUE => {
                let (field, rest) = bytes.split_first().ok_or_else(|| damaged("an opaque value is empty"))?;
                self.opaque(*field, counted(rest)?)?;
            }
            _ => return Err(damaged("an unknown type")),
        }
        Ok(())
    }

    fn push(&mut self, number: impl std::fmt::Display) {
        self.text.push_str(&number.to_string());
    }

    fn double(&mut self, number: f64) {
        let start = self.text.len();
        self.text.push_str(&text::double_text(number));
        if !self.text[start..].contains(['.', 'e']) {
            self.text.push_str(".0");
        }
    }

    fn container(&mut self, object: bool, width: usize, bytes: &[u8], depth: u32) -> Result<()> {
        if depth > MAX_DEPTH {
            return Err(damaged("it is nested too deeply"));
        }
        let count = little_endian(bytes, 0, width)? as usize;
        let size = little_endian(bytes, width, width)? as usize;
        let bytes = slice(bytes, 0, size)?;
        let (key_entry, value_entry) = (if object { width + 2 } else { 0 }, width + 1);
        // Entries of all elements must fit: bounds the loop.
        if count.saturating_mul(key_entry + value_entry) > size {
            return Err(damaged("it has more elements than room"));
        }
        self.text.push(if object { '{' } else { '[' });
        for i in 0..count {
            if i > 0 {
                self.text.push_str(", ");
            }
            if object {
                let entry = 2 * width + i * key_entry;
                let offset = little_endian(bytes, entry, width)? as usize;
                let length = little_endian(bytes, entry + width, 2)? as usize;
                let key = std::str::from_utf8(slice(bytes, offset, length)?);
                self.string(key.map_err(|_| damaged("a key is not UTF-8"))?);
                self.text.push_str(": ");
            }
            let entry = 2 * width + count * key_entry + i * value_entry;
            let kind = little_endian(bytes, entry, 1)? as u8;
            let inlined = matches!(kind, kind::LITERAL | kind::INT16 | kind::UINT16)
                || (width == 4 && matches!(kind, kind::INT32 | kind::UINT32));
            let offset = if inlined { entry + 1 } else { little_endian(bytes, entry + 1, width)? as usize };
            let value = bytes.get(offset..).ok_or_else(|| damaged("an offset lies outside"))?;
            self.value(kind, value, depth)?;
        }
        self.text.push(if object { '}' } else { ']' });
        Ok(())
    }

    fn string(&mut self, string: &str) {
        self.text.push('"');
        for character in string.chars() {
            match character {
                '"' => self.text.push_str("\\\""),
                '\\' => self.text.push_str("\\\\"),
                '\u{8}' => self.text.push_str("\\b"),
                '\u{c}' => self.text.push_str("\\f"),
                '\n' => self.text.push_str("\\n"),
                '\r' => self.text.push_str("\\r"),
                '\t' => self.text.push_str("\\t"),
                control if control < ' ' => self.text.push_str(&format!("\\u{:04x}", u32::from(control))),
                other => self.text.push(other),
            }
        }
        self.text.push('"');
    }

    fn opaque(&mut self, field: u8, bytes: &[u8]) -> Result<()> {
        match field {
            field::NEW_DECIMAL => {
                let (precision, scale) =
                    (little_endian(bytes, 0, 1)? as u8, little_endian(bytes, 1, 1)? as u8);
                if precision > MAX_DIGITS || scale > precision {
                    return Err(damaged("a decimal has too many digits"));
                }
                let stored = slice(bytes, 2, decimal::stored_bytes(precision, scale))?;
                let number: Decimal = decimal::decode(stored, &decimal::groups(precision, scale), scale)?;
                self.push(number);
            }
            field::DATE | field::DATETIME | field::TIMESTAMP => {
                let packed = little_endian(bytes, 0, 8)?;
                let fields =
                    temporal::unpack_datetime(packed >> 24 & 0xff_ffff_ffff, (packed & 0xff_ffff) as i64)?;
                let temporal::Fields { year, month, day, second_of_day, micros } = fields;
                self.text.push_str(&format!("\"{year:04}-{month:02}-{day:02}"));
                if field != field::DATE {
                    self.text.push(' ');
                    self.text.push_str(&text::time_text(second_of_day * 1_000_000 + micros, 6));
                }
                self.text.push('"');
            }
            field::TIME => {
                let micros = temporal::unpack_time(little_endian(bytes, 0, 8)? as i64)?;
                self.text.push_str(&format!("\"{}\"", text::time_text(micros, 6)));
            }
            _ => {
                self.text.push_str(&format!("\"base64:type{field}:"));
                base64(bytes, &mut self.text);
                self.text.push('"');
            }
        }
        Ok(())
    }
}

fn base64(bytes: &[u8], text: &mut String) {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    for chunk in bytes.chunks(3) {
        let word =
            chunk.iter().fold(0u32, |word, byte| word << 8 | u32::from(*byte)) << (8 * (3 - chunk.len()));
        for i in 0..4 {
            let digit = DIGITS[(word >> (18 - 6 * i) & 63) as usize];
            text.push(if i <= chunk.len() { char::from(digit) } else { '=' });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A small array of values that are not inlined.
    fn array(values: &[(u8, &[u8])]) -> Vec<u8> {
        let mut offset = 4 + 3 * values.len();
        let size = offset + values.iter().map(|(_, value)| value.len()).sum::<usize>();
        let mut bytes = vec![kind::SMALL_ARRAY, values.len() as u8, 0, size as u8, (size >> 8) as u8];
        for (kind, value) in values {
            bytes.extend_from_slice(&[*kind, offset as u8, (offset >> 8) as u8]);
            offset += value.len();
        }
        values.iter().for_each(|(_, value)| bytes.extend_from_slice(value));
        bytes
    }

    /// Bytes that MySQL 9.7 stored.
    #[test]
    fn decimals_of_the_most_digits_are_spelled_like_the_server_does() {
        let fraction = "7a0a1f00c4653600c4653600c4653600c4653600c4653600c4653600fc18";
        let whole = "800000633b9ac9ff3b9ac9ff3b9ac9ff3b9ac9ff3b9ac9ff3b9ac9ff3b9ac9ff";
        let (nines, more) = ("9".repeat(35), "9".repeat(30));
        for (precision, scale, stored, expected) in
            [(66, 30, fraction, format!("-{nines}.{more}")), (72, 0, whole, "9".repeat(65))]
        {
            let stored: Vec<u8> = (0..stored.len() / 2)
                .map(|at| u8::from_str_radix(&stored[2 * at..2 * at + 2], 16).unwrap())
                .collect();
            let decimal =
                [&[field::NEW_DECIMAL, stored.len() as u8 + 2, precision, scale][..], &stored].concat();
            assert_eq!(to_text(&array(&[(kind::OPAQUE, &decimal)])).unwrap(), format!("[{expected}]"));
        }
        let decimal = [field::NEW_DECIMAL, 4, 77, 2, 0x80, 0];
        assert!(to_text(&array(&[(kind::OPAQUE, &decimal)])).is_err());
    }

    #[test]
    fn scalars_are_spelled_like_the_server_does() {
        let decimal = [field::NEW_DECIMAL, 4, 3, 2, 0x80 | 1, 50];
        let packed = |year: u64, month: u64, day: u64| ((year * 13 + month) << 5 | day) << 41;
        let date = [&[field::DATE, 8][..], &packed(2024, 2, 29).to_le_bytes()].concat();
        let moment = packed(2024, 2, 29) | (12 << 12 | 34 << 6 | 56) << 24 | 789_012;
        let datetime = [&[field::DATETIME, 8][..], &moment.to_le_bytes()].concat();
        let time = [&[field::TIME, 8][..], &(-((1i64 << 12) << 24)).to_le_bytes()].concat();
        let bytes = array(&[
            (kind::DOUBLE, &2f64.to_le_bytes()),
            (kind::DOUBLE, &1e300f64.to_le_bytes()),
            (kind::INT64, &(-5i64).to_le_bytes()),
            (kind::UINT64, &u64::MAX.to_le_bytes()),
            (kind::STRING, b"\x05a\"\\\n\x01"),
            (kind::OPAQUE, &decimal),
            (kind::OPAQUE, &date),
            (kind::OPAQUE, &datetime),
            (kind::OPAQUE, &time),
            (kind::OPAQUE, b"\x0f\x04abcd"),
        ]);
        let expected = r#"[2.0, 1e300, -5, 18446744073709551615, "a\"\\\n\u0001", 1.50, "2024-02-29", "2024-02-29 12:34:56.789012", "-01:00:00.000000", "base64:type15:YWJjZA=="]"#;
        assert_eq!(to_text(&bytes).unwrap(), expected);
    }

    #[test]
    fn nesting_is_limited() {
        let mut bytes = vec![0u8, 0, 4, 0];
        for _ in 0..MAX_DEPTH + 1 {
            let size = bytes.len() + 7;
            let mut outer = vec![1, 0, size as u8, (size >> 8) as u8, kind::SMALL_ARRAY, 7, 0];
            outer.extend_from_slice(&bytes);
            bytes = outer;
        }
        bytes.insert(0, kind::SMALL_ARRAY);
        assert!(to_text(&bytes).unwrap_err().to_string().contains("nested"));
    }

    #[test]
    fn damage_is_an_error() {
        assert_eq!(to_text(&[]).unwrap(), "null");
        for bytes in [
            &[99][..],
            &[2, 255, 255, 4, 0],
            &[12, 200],
            &[12, 255, 255, 255, 255, 255, 255],
            &[2, 1, 0, 7, 0, 12, 200, 0],
        ] {
            assert!(to_text(bytes).is_err(), "{bytes:?}");
        }
    }
}
