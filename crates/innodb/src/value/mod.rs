//! Column values: stored form -> [`Value`].

mod address;
mod charset;
mod compressed;
mod decimal;
mod decode;
mod encode;
mod json;
mod temporal;
mod text;

use std::borrow::Cow;

use crate::Result;

pub use address::{address_key, address_text};
pub(crate) use decimal::stored_bytes as decimal_bytes;
pub use decode::joined_elements;
pub(crate) use decode::{Decoder, enum_bytes, set_bytes};
pub(crate) use encode::Encoder;
pub(crate) use temporal::fraction_bytes;

/// A DECIMAL: `unscaled / 10^scale` as a 256-bit two's complement integer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Decimal {
    /// High 128 bits (signed).
    pub high: i128,
    /// Low 128 bits.
    pub low: u128,
    /// Digits after the point.
    pub scale: u8,
}

/// A decoded value that borrows from its page where it can.
#[derive(Debug, Clone, PartialEq)]
pub enum Value<'a> {
    /// NULL.
    Null,
    /// Signed integers.
    Int(i64),
    /// Unsigned integers, BIT, YEAR (four digits; 0 is the zero year).
    UInt(u64),
    /// FLOAT.
    Float(f32),
    /// DOUBLE.
    Double(f64),
    /// DECIMAL.
    Decimal(Decimal),
    /// CHAR (trailing spaces cut), VARCHAR, TEXT, ENUM, SET, JSON as text, UUID, INET: UTF-8.
    Text(Cow<'a, str>),
    /// BINARY, VARBINARY, BLOB, GEOMETRY, VECTOR.
    Bytes(Cow<'a, [u8]>),
    /// DATE: days since 1970-01-01.
    Date(i32),
    /// DATETIME (local, no zone) or TIMESTAMP (UTC): microseconds since 1970-01-01 00:00:00.
    DateTime(i64),
    /// TIME: signed microseconds.
    Time(i64),
    /// A zero or partial date (0000-00-00, 2024-00-10) that no calendar has; as the server prints it.
    ZeroDate(String),
}

/// Takes the values of rows, column by column.
pub trait RowSink {
    /// The value of projected column `slot` (0-based position in the projection given to [`crate::Table::access`]) of
    /// the current row.
    fn push(&mut self, slot: usize, value: Value<'_>) -> Result<()>;
}
