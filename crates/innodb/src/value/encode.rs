//! [`Value`] -> stored bytes, for search keys.

use std::collections::HashSet;

use tanada_collation::{Charset, Encoded};

use super::{Decimal, Value, address, decimal, enum_bytes, set_bytes, temporal};
use crate::{ColumnType, Error, ErrorKind, Result};

const DAY_US: i64 = 86_400_000_000;

/// Writes the stored form of values of one key part.
#[derive(Debug, Clone)]
pub(crate) struct Encoder {
    column_type: ColumnType,
    charset: Option<Charset>,
    prefix_bytes: Option<usize>,
}

impl Encoder {
    /// An encoder for a key part of `column_type` of which `prefix_bytes` are indexed.
    pub(crate) fn new(column_type: &ColumnType, prefix_bytes: Option<u32>) -> Encoder {
        let charset = match column_type {
            ColumnType::Char { collation, .. }
            | ColumnType::VarChar { collation, .. }
            | ColumnType::Text { collation, .. } => Charset::lookup(&collation.charset),
            _ => None,
        };
        Encoder {
            column_type: column_type.clone(),
            charset,
            prefix_bytes: prefix_bytes.map(|bytes| bytes as usize),
        }
    }

    /// Whether each value that is shown has one stored form: not if two elements of an ENUM or SET are shown alike,
    /// or one as the empty string, which is also how no element at all is shown.
    pub(crate) fn has_one_form(&self) -> bool {
        match &self.column_type {
            ColumnType::Enum { elements } | ColumnType::Set { elements } => {
                let distinct: HashSet<&String> =
                    elements.iter().filter(|element| !element.is_empty()).collect();
                distinct.len() == elements.len()
            }
            _ => true,
        }
    }

    /// Whether several stored strings are shown as `value`, so that a search for one would miss the others.
    pub(crate) fn is_ambiguous(&self, value: &Value<'_>) -> bool {
        match (self.charset, value) {
            (Some(charset), Value::Text(text)) => charset.encode(text) == Encoded::Ambiguous,
            _ => false,
        }
    }

    /// The stored form of `value`, `None` if the column cannot hold it. NULL is not for here.
    ///
    /// # Errors
    /// `InvalidInput` if the kind of `value` does not go with the column's type.
    pub(crate) fn encode(&self, value: &Value<'_>) -> Result<Option<Vec<u8>>> {
        let stored = match &self.column_type {
            ColumnType::Integer { bytes, unsigned } => self
                .whole(value)?
                .and_then(|number| integer(number, usize::from(*bytes).clamp(1, 8), *unsigned)),
            ColumnType::Bit { bits } => self.whole(value)?.and_then(|number| {
                let fits = (0..=u64::MAX as i128).contains(&number) && number >> bits == 0;
                fits.then(|| integer(number, usize::from(*bits).clamp(1, 64).div_ceil(8), true)).flatten()
            }),
            ColumnType::Year => self.whole(value)?.and_then(|year| match year {
                0 => Some(vec![0]),
                1901..=2155 => Some(vec![(year - 1900) as u8]),
                _ => None,
            }),
            ColumnType::Decimal { precision, scale, unsigned } => {
                self.decimal(value)?.and_then(|value| decimal::encode(&value, *precision, *scale, *unsigned))
            }
            ColumnType::Float => {
                let number = self.double(value)?;
                let narrow = number as f32;
                (f64::from(narrow) == number).then(|| narrow.to_le_bytes().to_vec())
            }
            ColumnType::Double => Some(self.double(value)?.to_le_bytes().to_vec()),
            ColumnType::Date
            | ColumnType::Time { .. }
            | ColumnType::DateTime { .. }
            | ColumnType::Timestamp { .. } => self.temporal(value)?,
            _ => self.string(value)?,
        };
        Ok(stored)
    }

    fn mismatch(&self, value: &Value<'_>) -> Error {
        let message = format!("a key part of type {:?} cannot be compared with {value:?}", self.column_type);
        Error::new(ErrorKind::InvalidInput, message)
    }

    fn whole(&self, value: &Value<'_>) -> Result<Option<i128>> {
        Ok(match value {
            Value::Int(number) => Some(i128::from(*number)),
            Value::UInt(number) => Some(i128::from(*number)),
            Value::Decimal(number) => number.rescale(0).and_then(|number| number.to_i128()),
            Value::Float(number) => whole_of(f64::from(*number)),
            Value::Double(number) => whole_of(*number),
            _ => return Err(self.mismatch(value)),
        })
    }

    fn decimal(&self, value: &Value<'_>) -> Result<Option<Decimal>> {
        Ok(match value {
            Value::Decimal(number) => Some(*number),
            Value::Float(number) => Decimal::parse(&f64::from(*number).to_string()),
            Value::Double(number) => Decimal::parse(&number.to_string()),
            _ => self.whole(value)?.map(Decimal::from_i128),
        })
    }

    fn double(&self, value: &Value<'_>) -> Result<f64> {
        match value {
            Value::Int(number) => Ok(*number as f64),
            Value::UInt(number) => Ok(*number as f64),
            Value::Float(number) => Ok(f64::from(*number)),
            Value::Double(number) => Ok(*number),
            Value::Decimal(number) => number.to_string().parse().map_err(|_| self.mismatch(value)),
            _ => Err(self.mismatch(value)),
        }
    }

    fn temporal(&self, value: &Value<'_>) -> Result<Option<Vec<u8>>> {
        if let (ColumnType::Time { fsp, legacy }, Value::Time(micros)) = (&self.column_type, value) {
            let legacy = *legacy && *fsp == 0;
            let stored = if legacy {
                temporal::encode_legacy_time(*micros)
            } else {
                temporal::encode_time(*micros, *fsp)
            };
            return Ok(stored);
        }
        let micros = match value {
            Value::Date(days) => i64::from(*days) * DAY_US,
            Value::DateTime(micros) => *micros,
            Value::ZeroDate(text) => return Ok(self.zero_date(text)),
            _ => return Err(self.mismatch(value)),
        };
        match &self.column_type {
            ColumnType::Date => {
                let whole = micros.rem_euclid(DAY_US) == 0;
                Ok(temporal::encode_date(micros.div_euclid(DAY_US)).filter(|_| whole).map(Vec::from))
            }
            ColumnType::DateTime { fsp: 0, legacy: true } => Ok(temporal::encode_legacy_datetime(micros)),
            ColumnType::DateTime { fsp, .. } => Ok(temporal::encode_datetime(micros, *fsp)),
            ColumnType::Timestamp { fsp, .. } => Ok(temporal::encode_timestamp(micros, *fsp)),
            _ => Err(self.mismatch(value)),
        }
    }

    /// The stored form of a date that no calendar has.
    fn zero_date(&self, text: &str) -> Option<Vec<u8>> {
        let (date, clock) = text.split_once(' ').unwrap_or((text, "00:00:00"));
        let (clock, fraction) = clock.split_once('.').unwrap_or((clock, ""));
        let whole = |text: &str| text.parse::<i64>().ok().filter(|number| *number >= 0);
        let date: Vec<i64> = date.split('-').map(whole).collect::<Option<_>>()?;
        let clock: Vec<i64> = clock.split(':').map(whole).collect::<Option<_>>()?;
        let ([year, month, day], [hour, minute, second]) = (date.as_slice(), clock.as_slice()) else {
            return None;
        };
        let civil = (*year, u32::try_from(*month).ok()?, u32::try_from(*day).ok()?);
        let of_day =
            (hour * 3600 + minute * 60 + second) * 1_000_000 + whole(format!("{fraction:0<6}").get(..6)?)?;
        match &self.column_type {
            ColumnType::Date if of_day == 0 => temporal::pack_date(civil).map(Vec::from),
            ColumnType::DateTime { fsp: 0, legacy: true } => temporal::pack_legacy_datetime(civil, of_day),
            ColumnType::DateTime { fsp, .. } => temporal::pack_datetime(civil, of_day, *fsp),
            ColumnType::Timestamp { fsp, .. } if civil == (0, 0, 0) && of_day == 0 => {
                Some(vec![0; 4 + temporal::fraction_bytes(*fsp)])
            }
            _ => None,
        }
    }

    fn string(&self, value: &Value<'_>) -> Result<Option<Vec<u8>>> {
        if let Value::Text(text) = value {
            match &self.column_type {
                ColumnType::Enum { elements } => return Ok(enumerated(elements, text)),
                ColumnType::Set { elements } => return Ok(subset(elements, text)),
                ColumnType::Uuid => return Ok(address::uuid_bytes(text).map(Vec::from)),
                ColumnType::Inet6 => return Ok(address::inet6_bytes(text).map(Vec::from)),
                ColumnType::Inet4 => return Ok(address::inet4_bytes(text).map(Vec::from)),
                _ => {}
            }
        }
        match (&self.column_type, value, self.charset) {
            (ColumnType::Char { collation, .. }, Value::Text(text), Some(charset))
            | (ColumnType::VarChar { collation, .. }, Value::Text(text), Some(charset))
            | (ColumnType::Text { collation, .. }, Value::Text(text), Some(charset)) => {
                let stored = match charset.encode(text) {
                    Encoded::Bytes(stored) => stored,
                    Encoded::Absent => return Ok(None),
                    Encoded::Ambiguous => return Err(self.mismatch(value)),
                };
                let Some(prefix) = self.prefix_bytes else { return Ok(Some(stored.into_owned())) };
                let characters = prefix / usize::from(collation.max_bytes.max(1));
                Ok(Some(charset.prefix(&stored, characters).to_vec()))
            }
            (ColumnType::Binary { length }, Value::Bytes(bytes), _) => {
                let length = *length as usize;
                if bytes.len() > length {
                    return Ok(None);
                }
                // The column is padded with zero bytes; shorter values are found as the server would store them.
                let mut stored = bytes.to_vec();
                stored.resize(length, 0);
                stored.truncate(self.prefix_bytes.unwrap_or(length));
                Ok(Some(stored))
            }
            (
                ColumnType::VarBinary { .. }
                | ColumnType::Blob { .. }
                | ColumnType::Char { .. }
                | ColumnType::VarChar { .. }
                | ColumnType::Text { .. },
                Value::Bytes(bytes),
                _,
            ) => Ok(Some(bytes[..bytes.len().min(self.prefix_bytes.unwrap_or(usize::MAX))].to_vec())),
            _ => Err(self.mismatch(value)),
        }
    }
}

fn whole_of(number: f64) -> Option<i128> {
    let in_range = number.abs() < 1e38 && number.fract() == 0.0;
    in_range.then_some(number as i128)
}

fn integer(number: i128, bytes: usize, unsigned: bool) -> Option<Vec<u8>> {
    let bits = 8 * bytes as u32;
    let offset = if unsigned { 0 } else { 1i128 << (bits - 1) };
    let shifted = number.checked_add(offset)?;
    let fits = (0..1i128 << bits).contains(&shifted);
    fits.then(|| (shifted as u64).to_be_bytes()[8 - bytes..].to_vec())
}

fn enumerated(elements: &[String], text: &str) -> Option<Vec<u8>> {
    let number = match elements.iter().position(|element| element == text) {
        Some(at) => at + 1,
        None if text.is_empty() => 0,
        None => return None,
    };
    integer(number as i128, enum_bytes(elements.len()), true)
}

fn subset(elements: &[String], text: &str) -> Option<Vec<u8>> {
    let mut bits = 0u64;
    for name in text.split(',').filter(|name| !name.is_empty()) {
        bits |= 1u64.checked_shl(elements.iter().position(|element| element == name)? as u32)?;
    }
    integer(i128::from(bits), set_bytes(elements.len()), true)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Collation;
    use crate::value::Decoder;

    fn encode(column_type: &ColumnType, value: Value<'_>) -> Option<Vec<u8>> {
        Encoder::new(column_type, None).encode(&value).unwrap()
    }

    #[test]
    fn encoded_values_are_decoded_unchanged() {
        let decimal = |text| Value::Decimal(Decimal::parse(text).unwrap());
        let elements: Vec<String> = ["a", "b"].map(String::from).into();
        for (column_type, value) in [
            (ColumnType::Integer { bytes: 3, unsigned: false }, Value::Int(-8_388_608)),
            (ColumnType::Integer { bytes: 8, unsigned: true }, Value::UInt(u64::MAX)),
            (ColumnType::Integer { bytes: 8, unsigned: false }, Value::Int(i64::MIN)),
            (ColumnType::Decimal { precision: 15, scale: 2, unsigned: false }, decimal("-12.34")),
            (ColumnType::Float, Value::Float(1.5)),
            (ColumnType::Double, Value::Double(-1e300)),
            (ColumnType::Bit { bits: 17 }, Value::UInt(0x1_0001)),
            (ColumnType::Year, Value::UInt(1901)),
            (ColumnType::Date, Value::Date(-1)),
            (ColumnType::Date, Value::ZeroDate("0000-00-00".into())),
            (ColumnType::Date, Value::ZeroDate("2024-00-10".into())),
            (
                ColumnType::DateTime { fsp: 2, legacy: false },
                Value::ZeroDate("2024-00-10 01:02:03.50".into()),
            ),
            (
                ColumnType::DateTime { fsp: 3, legacy: false },
                Value::ZeroDate("0000-00-00 00:00:00.000".into()),
            ),
            (ColumnType::DateTime { fsp: 0, legacy: true }, Value::ZeroDate("0000-00-00 00:00:00".into())),
            (
                ColumnType::Timestamp { fsp: 6, legacy: false },
                Value::ZeroDate("0000-00-00 00:00:00.000000".into()),
            ),
            (ColumnType::Time { fsp: 3, legacy: false }, Value::Time(-1000)),
            (ColumnType::DateTime { fsp: 0, legacy: true }, Value::DateTime(1_000_000)),
            (ColumnType::Enum { elements: elements.clone() }, Value::Text("b".into())),
            (ColumnType::Set { elements }, Value::Text("a,b".into())),
            (ColumnType::Binary { length: 2 }, Value::Bytes(vec![1, 2].into())),
        ] {
            let stored = encode(&column_type, value.clone()).unwrap();
            assert_eq!(
                Decoder::new(&column_type).unwrap().decode(&stored).unwrap(),
                value,
                "{column_type:?}"
            );
        }
    }

    #[test]
    fn values_out_of_range_have_no_form() {
        let tiny = ColumnType::Integer { bytes: 1, unsigned: false };
        assert_eq!(encode(&tiny, Value::Int(128)), None);
        assert_eq!(encode(&tiny, Value::UInt(u64::MAX)), None);
        assert_eq!(encode(&tiny, Value::Decimal(Decimal::parse("1.5").unwrap())), None);
        assert_eq!(encode(&tiny, Value::Decimal(Decimal::parse("1.0").unwrap())), Some(vec![0x81]));
        assert_eq!(encode(&ColumnType::Integer { bytes: 8, unsigned: true }, Value::Int(-1)), None);
        assert_eq!(encode(&ColumnType::Bit { bits: 3 }, Value::UInt(8)), None);
        assert_eq!(encode(&ColumnType::Date, Value::DateTime(1)), None);
        assert_eq!(encode(&ColumnType::Float, Value::Double(0.1)), None);
        assert!(Encoder::new(&tiny, None).encode(&Value::Text("1".into())).is_err());
    }

    #[test]
    fn elements_that_are_shown_alike_have_several_forms() {
        for (elements, one) in [(&["a", "b"][..], true), (&["a", "b", "a"], false), (&["", "b"], false)] {
            let elements: Vec<String> = elements.iter().map(|element| element.to_string()).collect();
            assert_eq!(
                Encoder::new(&ColumnType::Set { elements: elements.clone() }, None).has_one_form(),
                one
            );
            assert_eq!(Encoder::new(&ColumnType::Enum { elements }, None).has_one_form(), one);
        }
    }

    #[test]
    fn prefixes_are_cut_at_characters() {
        let collation = Collation {
            id: 46,
            name: "utf8mb4_bin".into(),
            charset: "utf8mb4".into(),
            max_bytes: 4,
            min_bytes: 1,
        };
        let encoder = Encoder::new(&ColumnType::VarChar { length: 10, collation }, Some(8));
        assert_eq!(encoder.encode(&Value::Text("日本語".into())).unwrap(), Some("日本".into()));
    }
}
