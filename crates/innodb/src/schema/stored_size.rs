//! How long a value is in a record, if its type alone says so.

use super::ColumnType;
use crate::value::{decimal_bytes, enum_bytes, fraction_bytes, set_bytes};

impl ColumnType {
    /// Bytes of every value in a COMPACT or DYNAMIC record; `None` if records say the length. CHAR has a fixed length
    /// only where all characters of its set have one.
    pub(crate) fn fixed_bytes(&self) -> Option<usize> {
        Some(match self {
            ColumnType::Integer { bytes, .. } => usize::from(*bytes),
            ColumnType::Decimal { precision, scale, .. } => decimal_bytes(*precision, *scale),
            ColumnType::Float | ColumnType::Inet4 => 4,
            ColumnType::Double => 8,
            ColumnType::Bit { bits } => usize::from(*bits).div_ceil(8),
            ColumnType::Year => 1,
            ColumnType::Date => 3,
            ColumnType::Time { fsp, legacy: false } => 3 + fraction_bytes(*fsp),
            ColumnType::DateTime { fsp, legacy: false } => 5 + fraction_bytes(*fsp),
            ColumnType::Timestamp { fsp, legacy: false } => 4 + fraction_bytes(*fsp),
            // MariaDB's forms of before 10.1, by digits of the second.
            ColumnType::Time { fsp, legacy: true } => [3, 4, 4, 5, 5, 5, 6][usize::from(*fsp).min(6)],
            ColumnType::DateTime { fsp, legacy: true } => [8, 6, 6, 7, 7, 7, 8][usize::from(*fsp).min(6)],
            ColumnType::Timestamp { fsp, legacy: true } => {
                4 + [0, 1, 1, 2, 2, 3, 3][usize::from(*fsp).min(6)]
            }
            ColumnType::Char { length, collation } if collation.min_bytes == collation.max_bytes => {
                *length as usize * usize::from(collation.max_bytes)
            }
            ColumnType::Binary { length } => *length as usize,
            ColumnType::Enum { elements } => enum_bytes(elements.len()),
            ColumnType::Set { elements } => set_bytes(elements.len()),
            ColumnType::Uuid | ColumnType::Inet6 => 16,
            ColumnType::Char { .. }
            | ColumnType::VarChar { .. }
            | ColumnType::VarBinary { .. }
            | ColumnType::Text { .. }
            | ColumnType::Blob { .. }
            | ColumnType::Json
            | ColumnType::Geometry
            | ColumnType::Vector { .. } => return None,
        })
    }
}
