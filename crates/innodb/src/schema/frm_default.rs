//! Defaults in a `.frm`: a row of all default values, in the server's form of rows.
//!
//! The row begins with a bit for each column that can be NULL (behind one unused bit, unless rows are packed); each
//! column's value lies where the column's entry says. Numbers are little-endian without a flipped sign; dates likewise;
//! the newer times are as InnoDB stores them.

use super::frm_bytes::Bytes;
use super::{ColumnType, DefaultValue};
use crate::Result;
use crate::value::{Decoder, Value, decimal_bytes, enum_bytes, fraction_bytes, set_bytes};

const KEYS_AT: usize = 6;
const KEYS_LEN: usize = 14;
const LONG_KEYS_LEN: usize = 47;
const ROW_LEN: usize = 16;
const OPTIONS: usize = 30;
const PACKED: u16 = 1;

/// The row of defaults, read column by column.
pub(super) struct DefaultRow<'a> {
    row: Bytes<'a>,
    /// The bit of the next column that can be NULL.
    bit: usize,
}

/// A column's entry, as far as its default needs it.
pub(super) struct Entry<'a> {
    pub(super) column_type: &'a ColumnType,
    /// Where its value lies, from 1.
    pub(super) position: usize,
    /// Length in bytes.
    pub(super) length: u16,
    pub(super) nullable: bool,
    /// Whether it has to be named.
    pub(super) has_none: bool,
    /// Whether its value has a byte before it that says how it is compressed.
    pub(super) compressed: bool,
}

impl<'a> DefaultRow<'a> {
    pub(super) fn locate(frm: Bytes<'a>) -> Result<DefaultRow<'a>> {
        let keys_len = match frm.u16(KEYS_LEN)? {
            u16::MAX => frm.size32(LONG_KEYS_LEN)?,
            len => usize::from(len),
        };
        let row = frm.slice(frm.size16(KEYS_AT)? + keys_len, frm.size16(ROW_LEN)?)?;
        let is_packed = frm.u16(OPTIONS)? & PACKED != 0;
        Ok(DefaultRow { row, bit: usize::from(!is_packed) })
    }

    /// The default of the next column.
    pub(super) fn next(&mut self, entry: &Entry<'_>) -> Result<DefaultValue> {
        let mut is_null = false;
        if entry.nullable {
            is_null = self.row.u8(self.bit / 8)? >> (self.bit % 8) & 1 == 1;
            self.bit += 1;
        }
        if entry.has_none {
            return Ok(DefaultValue::None);
        }
        if is_null {
            return Ok(DefaultValue::Null);
        }
        let Some(stored) = self.stored(entry)? else { return Ok(DefaultValue::Unknown) };
        let decoder = Decoder::new(entry.column_type)?;
        let value = decoder.decode(&stored)?;
        if let Value::Bytes(bytes) = &value
            && !bytes.is_empty()
        {
            return Ok(DefaultValue::Bytes(bytes.to_vec()));
        }
        Ok(DefaultValue::Value(match (&value, entry.column_type) {
            (Value::UInt(bits), ColumnType::Bit { .. }) => format!("b'{bits:b}'"),
            _ => value.to_mysql_text(entry.column_type),
        }))
    }

    /// The value as InnoDB stores it.
    fn stored(&self, entry: &Entry<'_>) -> Result<Option<Vec<u8>>> {
        let Some(at) = entry.position.checked_sub(1) else { return Ok(None) };
        let bytes = |len: usize| self.row.slice(at, len).map(|bytes| bytes.as_slice().to_vec());
        let reversed = |len: usize| {
            bytes(len).map(|mut bytes| {
                bytes.reverse();
                bytes
            })
        };
        let signed = |len: usize| {
            reversed(len).map(|mut bytes| {
                if let Some(first) = bytes.first_mut() {
                    *first ^= 0x80;
                }
                bytes
            })
        };
        Ok(Some(match entry.column_type {
            ColumnType::Integer { bytes: len, unsigned: true } => reversed(usize::from(*len))?,
            ColumnType::Integer { bytes: len, unsigned: false } => signed(usize::from(*len))?,
            ColumnType::Date => signed(3)?,
            ColumnType::Float => bytes(4)?,
            ColumnType::Double => bytes(8)?,
            ColumnType::Decimal { precision, scale, .. } => bytes(decimal_bytes(*precision, *scale))?,
            ColumnType::Year => bytes(1)?,
            ColumnType::Time { fsp, legacy: false } => bytes(3 + fraction_bytes(*fsp))?,
            ColumnType::DateTime { fsp, legacy: false } => bytes(5 + fraction_bytes(*fsp))?,
            ColumnType::Timestamp { fsp, legacy: false } => bytes(4 + fraction_bytes(*fsp))?,
            ColumnType::Enum { elements } => reversed(enum_bytes(elements.len()))?,
            ColumnType::Set { elements } => reversed(set_bytes(elements.len()))?,
            ColumnType::Bit { bits } => bytes(usize::from(*bits).div_ceil(8))?,
            ColumnType::Uuid | ColumnType::Inet6 => bytes(16)?,
            ColumnType::Inet4 => bytes(4)?,
            ColumnType::Binary { length } => bytes(usize::try_from(*length).unwrap_or(usize::MAX))?,
            ColumnType::Char { .. } => {
                let mut text = bytes(usize::from(entry.length))?;
                while text.last() == Some(&b' ') {
                    text.pop();
                }
                text
            }
            ColumnType::VarChar { .. } | ColumnType::VarBinary { .. } => {
                let (prefix, len) = match entry.length {
                    ..256 => (1, usize::from(self.row.u8(at)?)),
                    _ => (2, self.row.size16(at)?),
                };
                let value = self.row.slice(at + prefix, len)?.as_slice();
                match (entry.compressed, value) {
                    (false, value) | (true, [0, value @ ..]) => value.to_vec(),
                    (true, []) => Vec::new(),
                    (true, _) => return Ok(None),
                }
            }
            _ => return Ok(None),
        }))
    }
}
