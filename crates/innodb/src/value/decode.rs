//! Stored bytes -> [`Value`], by a decoder compiled once per column.

use std::borrow::Cow;

use super::charset::{self, Charset};
use super::decimal::ShortDecimal;
use super::{Value, address, compressed, decimal, json, temporal};
use crate::{Column, ColumnType, Error, ErrorKind, Result};

/// Reads the stored form of one column.
#[derive(Debug, Clone)]
pub(crate) enum Decoder {
    Integer {
        bytes: usize,
        unsigned: bool,
    },
    Decimal {
        bytes: usize,
        groups: Box<[u8]>,
        scale: u8,
        /// Where the stored form takes at most 8 bytes.
        short: Option<ShortDecimal>,
    },
    Float,
    Double,
    Bit {
        bytes: usize,
    },
    Year,
    Date,
    Time {
        bytes: usize,
    },
    LegacyTime,
    DateTime {
        bytes: usize,
        fsp: u8,
    },
    LegacyDateTime,
    Timestamp {
        bytes: usize,
        fsp: u8,
    },
    Text {
        charset: Charset,
        trim: bool,
    },
    Bytes,
    Json,
    Enum {
        elements: Box<[String]>,
        bytes: usize,
    },
    Set {
        elements: Box<[String]>,
        bytes: usize,
    },
    Uuid,
    Inet6,
    Inet4,
    /// The column compresses its values, which are text in this set or bytes.
    Compressed {
        charset: Option<Charset>,
    },
}

/// Bytes that a SET of `elements` takes.
pub(crate) fn set_bytes(elements: usize) -> usize {
    match elements.div_ceil(8) {
        0 | 1 => 1,
        few @ 2..=4 => few,
        _ => 8,
    }
}

/// Bytes that an ENUM of `elements` takes.
pub(crate) fn enum_bytes(elements: usize) -> usize {
    if elements < 256 { 1 } else { 2 }
}

impl Decoder {
    /// A decoder of what is stored of `column`.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub(crate) fn of_column(column: &Column) -> Result<Decoder> {
        let decoder = Decoder::new(&column.column_type)?;
        Ok(match decoder {
            Decoder::Text { charset, .. } if column.compressed => {
                Decoder::Compressed { charset: Some(charset) }
            }
            Decoder::Bytes if column.compressed => Decoder::Compressed { charset: None },
            decoder => decoder,
        })
    }

    /// A decoder of `column_type`.
    ///
    /// # Errors
    /// `Unsupported` for a character set or a form that is not read.
    pub(crate) fn new(column_type: &ColumnType) -> Result<Decoder> {
        Ok(match column_type {
            ColumnType::Integer { bytes, unsigned } => {
                Decoder::Integer { bytes: usize::from(*bytes).clamp(1, 8), unsigned: *unsigned }
            }
            ColumnType::Decimal { precision, scale, .. } => {
                let bytes = decimal::stored_bytes(*precision, *scale);
                let groups = decimal::groups(*precision, *scale);
                let short = ShortDecimal::new(&groups);
                Decoder::Decimal { bytes, groups: groups.into(), scale: *scale, short }
            }
            ColumnType::Float => Decoder::Float,
            ColumnType::Double => Decoder::Double,
            ColumnType::Bit { bits } => Decoder::Bit { bytes: usize::from(*bits).clamp(1, 64).div_ceil(8) },
            ColumnType::Year => Decoder::Year,
            ColumnType::Date => Decoder::Date,
            ColumnType::Time { fsp: 0, legacy: true } => Decoder::LegacyTime,
            ColumnType::DateTime { fsp: 0, legacy: true } => Decoder::LegacyDateTime,
            ColumnType::Timestamp { fsp: 0, .. } => Decoder::Timestamp { bytes: 4, fsp: 0 },
            ColumnType::Time { legacy: true, .. }
            | ColumnType::DateTime { legacy: true, .. }
            | ColumnType::Timestamp { legacy: true, .. } => {
                let message = "fractional times written with mysql56_temporal_format=OFF are not read; \
                               rebuild the table with ALTER TABLE ... FORCE";
                return Err(Error::new(ErrorKind::Unsupported, message));
            }
            ColumnType::Time { fsp, .. } => Decoder::Time { bytes: 3 + temporal::fraction_bytes(*fsp) },
            ColumnType::DateTime { fsp, .. } => {
                Decoder::DateTime { bytes: 5 + temporal::fraction_bytes(*fsp), fsp: *fsp }
            }
            ColumnType::Timestamp { fsp, .. } => {
                Decoder::Timestamp { bytes: 4 + temporal::fraction_bytes(*fsp), fsp: *fsp }
            }
            ColumnType::Char { collation, .. } => text(&collation.charset, true)?,
            ColumnType::VarChar { collation, .. } | ColumnType::Text { collation, .. } => {
                text(&collation.charset, false)?
            }
            ColumnType::Binary { .. }
            | ColumnType::VarBinary { .. }
            | ColumnType::Blob { .. }
            | ColumnType::Geometry
            | ColumnType::Vector { .. } => Decoder::Bytes,
            ColumnType::Json => Decoder::Json,
            ColumnType::Enum { elements } => {
                Decoder::Enum { elements: elements.as_slice().into(), bytes: enum_bytes(elements.len()) }
            }
            ColumnType::Set { elements } => {
                Decoder::Set { elements: elements.as_slice().into(), bytes: set_bytes(elements.len()) }
            }
            ColumnType::Uuid => Decoder::Uuid,
            ColumnType::Inet6 => Decoder::Inet6,
            ColumnType::Inet4 => Decoder::Inet4,
        })
    }

    /// Decodes `stored`, borrowing from it where that is possible.
    #[inline]
    pub(crate) fn decode<'a>(&'a self, stored: &'a [u8]) -> Result<Value<'a>> {
        match self {
            Decoder::Integer { bytes, unsigned } => integer(expect(stored, *bytes)?, *unsigned),
            Decoder::Decimal { bytes, groups, scale, .. } => {
                decimal::decode(expect(stored, *bytes)?, groups, *scale).map(Value::Decimal)
            }
            Decoder::Date => temporal::decode_date(stored),
            Decoder::Text { charset, trim } => decode_text(*charset, *trim, stored),
            Decoder::Bytes => Ok(Value::Bytes(Cow::Borrowed(stored))),
            Decoder::Float => Ok(Value::Float(f32::from_le_bytes(array(stored)?))),
            Decoder::Double => Ok(Value::Double(f64::from_le_bytes(array(stored)?))),
            _ => self.decode_rare(stored),
        }
    }

    fn decode_rare<'a>(&'a self, stored: &'a [u8]) -> Result<Value<'a>> {
        match self {
            Decoder::Bit { bytes } => Ok(Value::UInt(big_endian(expect(stored, *bytes)?))),
            Decoder::Year => Ok(Value::UInt(match array::<1>(stored)? {
                [0] => 0,
                [year] => 1900 + u64::from(year),
            })),
            Decoder::Time { bytes } => temporal::decode_time(expect(stored, *bytes)?),
            Decoder::LegacyTime => temporal::decode_legacy_time(stored),
            Decoder::DateTime { bytes, fsp } => temporal::decode_datetime(expect(stored, *bytes)?, *fsp),
            Decoder::LegacyDateTime => temporal::decode_legacy_datetime(stored),
            Decoder::Timestamp { bytes, fsp } => temporal::decode_timestamp(expect(stored, *bytes)?, *fsp),
            Decoder::Json => json::to_text(stored).map(|text| Value::Text(Cow::Owned(text))),
            Decoder::Enum { elements, bytes } => {
                let number = big_endian(expect(stored, *bytes)?);
                let element = match number {
                    0 => Some(""),
                    number => elements.get(number as usize - 1).map(String::as_str),
                };
                let unknown = || Error::new(ErrorKind::Corrupt, format!("an ENUM has no element {number}"));
                element.map(|element| Value::Text(Cow::Borrowed(element))).ok_or_else(unknown)
            }
            Decoder::Set { elements, bytes } => set(big_endian(expect(stored, *bytes)?), elements),
            Decoder::Uuid => Ok(Value::Text(Cow::Owned(address::uuid_text(&array(stored)?)))),
            Decoder::Inet6 => Ok(Value::Text(Cow::Owned(address::inet6_text(array(stored)?)))),
            Decoder::Inet4 => Ok(Value::Text(Cow::Owned(address::inet4_text(array(stored)?)))),
            Decoder::Compressed { charset } => decode_compressed(*charset, stored),
            _ => Err(Error::new(ErrorKind::Corrupt, "a value has no decoder")),
        }
    }
}

fn text(charset: &str, trim: bool) -> Result<Decoder> {
    if charset == "binary" {
        return Ok(Decoder::Bytes);
    }
    charset::charset(charset).map(|charset| Decoder::Text { charset, trim })
}

fn decode_text<'a>(charset: Charset, trim: bool, stored: &'a [u8]) -> Result<Value<'a>> {
    let text = charset::decode(charset, stored)?;
    if !trim {
        return Ok(Value::Text(text));
    }
    // CHAR: the server cuts the padding.
    Ok(Value::Text(match text {
        Cow::Borrowed(text) => Cow::Borrowed(text.trim_end_matches(' ')),
        Cow::Owned(mut text) => {
            text.truncate(text.trim_end_matches(' ').len());
            Cow::Owned(text)
        }
    }))
}

fn decode_compressed(charset: Option<Charset>, stored: &[u8]) -> Result<Value<'_>> {
    let value = compressed::decompress(stored)?;
    Ok(match (charset, value) {
        (None, value) => Value::Bytes(value),
        (Some(charset), Cow::Borrowed(value)) => Value::Text(charset::decode(charset, value)?),
        (Some(charset), Cow::Owned(value)) => {
            Value::Text(Cow::Owned(charset::decode(charset, &value)?.into_owned()))
        }
    })
}

fn set<'a>(bits: u64, elements: &[String]) -> Result<Value<'a>> {
    if elements.len() < 64 && bits >> elements.len() != 0 {
        return Err(Error::new(ErrorKind::Corrupt, format!("a SET has an unknown element ({bits:#x})")));
    }
    let chosen = elements.iter().enumerate().filter(|(at, _)| bits >> at & 1 == 1);
    Ok(Value::Text(Cow::Owned(joined_elements(chosen.map(|(_, element)| element.as_str())))))
}

/// The text of a SET of these elements, which has no comma behind empty ones at its beginning.
pub fn joined_elements<'a>(elements: impl Iterator<Item = &'a str>) -> String {
    let mut text = String::new();
    for element in elements {
        if !text.is_empty() {
            text.push(',');
        }
        text.push_str(element);
    }
    text
}

#[inline]
fn integer(stored: &[u8], unsigned: bool) -> Result<Value<'static>> {
    let shift = 64 - 8 * stored.len() as u32;
    let number = big_endian(stored) << shift;
    // The sign bit is flipped so that numbers compare as bytes.
    Ok(if unsigned { Value::UInt(number >> shift) } else { Value::Int((number ^ 1 << 63) as i64 >> shift) })
}

#[inline]
fn big_endian(bytes: &[u8]) -> u64 {
    match bytes {
        [a, b, c, d] => u64::from(u32::from_be_bytes([*a, *b, *c, *d])),
        _ => bytes.iter().fold(0, |number, byte| number << 8 | u64::from(*byte)),
    }
}

#[inline]
fn expect(stored: &[u8], bytes: usize) -> Result<&[u8]> {
    if stored.len() == bytes { Ok(stored) } else { Err(width_error(stored, bytes)) }
}

#[inline]
fn array<const N: usize>(stored: &[u8]) -> Result<[u8; N]> {
    stored.try_into().map_err(|_| width_error(stored, N))
}

#[cold]
fn width_error(stored: &[u8], bytes: usize) -> Error {
    Error::new(ErrorKind::Corrupt, format!("a value has {} bytes instead of {bytes}", stored.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decode<'a>(decoder: &'a Decoder, stored: &'a [u8]) -> Value<'a> {
        decoder.decode(stored).unwrap()
    }

    #[test]
    fn empty_elements_of_a_set_have_no_comma_at_its_beginning() {
        let elements = |bits| set(bits, &["x", "", "y"].map(str::to_string)).unwrap();
        for (bits, text) in [(0, ""), (0b110, "y"), (0b011, "x,"), (0b111, "x,,y"), (0b101, "x,y")] {
            assert_eq!(elements(bits), Value::Text(text.into()), "{bits:b}");
        }
    }

    #[test]
    fn integers_of_all_widths() {
        for bytes in [1u8, 2, 3, 4, 8] {
            let signed = Decoder::new(&ColumnType::Integer { bytes, unsigned: false }).unwrap();
            let unsigned = Decoder::new(&ColumnType::Integer { bytes, unsigned: true }).unwrap();
            let width = usize::from(bytes);
            let least = i64::MIN >> (64 - 8 * width);
            assert_eq!(decode(&signed, &[0; 8][..width]), Value::Int(least));
            assert_eq!(decode(&signed, &[0xff; 8][..width]), Value::Int(-1 - least));
            assert_eq!(decode(&unsigned, &[0xff; 8][..width]), Value::UInt(u64::MAX >> (64 - 8 * width)));
            assert!(signed.decode(&[0; 9]).is_err());
        }
    }

    #[test]
    fn enums_and_sets() {
        let elements: Vec<String> = ["a", "b", "c"].map(String::from).into();
        let decoder = Decoder::new(&ColumnType::Enum { elements: elements.clone() }).unwrap();
        assert_eq!(decode(&decoder, &[0]), Value::Text("".into()));
        assert_eq!(decode(&decoder, &[3]), Value::Text("c".into()));
        assert!(decoder.decode(&[4]).is_err());
        let decoder = Decoder::new(&ColumnType::Set { elements }).unwrap();
        assert_eq!(decode(&decoder, &[5]), Value::Text("a,c".into()));
        assert!(decoder.decode(&[8]).is_err());
        assert_eq!(
            [set_bytes(8), set_bytes(9), set_bytes(32), set_bytes(33), set_bytes(64)],
            [1, 2, 4, 8, 8]
        );
    }

    #[test]
    fn years_and_bits() {
        assert_eq!(decode(&Decoder::Year, &[0]), Value::UInt(0));
        assert_eq!(decode(&Decoder::Year, &[255]), Value::UInt(2155));
        let bits = Decoder::new(&ColumnType::Bit { bits: 17 }).unwrap();
        assert_eq!(decode(&bits, &[1, 0xff, 0xff]), Value::UInt(0x1ffff));
    }
}
