//! The servers' types in Arrow fields.

use std::collections::HashMap;

use datafusion::arrow::datatypes::{DataType, Field, TimeUnit};
use datafusion::common::ScalarValue;

use crate::expression::{Collating, IMPLICIT, Kind, Refusal, Rules, Width};
use crate::relation::types::MYSQL_TYPE;
use crate::text::digits_of_double;

/// Metadata key of the type of an expression, a [`Kind`] as JSON.
pub(crate) const KIND: &str = "tanada.kind";

/// Metadata key of the collation by which a document of MariaDB compares, where it is another than that of columns.
pub(crate) const JSON_COLLATION: &str = "tanada.json_collation";

/// Metadata key of a CASE or IF of which MySQL may show other digits than those of its type.
pub(crate) const OWN_DIGITS: &str = "tanada.own_digits";

/// Metadata key of a decimal of MySQL that is computed with more digits than its type shows.
pub(super) const CARRIES: &str = "tanada.carries";

/// The server's type of the values of a field.
///
/// # Errors
/// If the Arrow type has no counterpart.
pub(crate) fn kind_of(field: &Field) -> Result<Kind, Refusal> {
    if let Some(kind) = field.metadata().get(KIND)
        && let Ok(kind) = serde_json::from_str(kind)
    {
        return Ok(kind);
    }
    let mysql_type = field.metadata().get(MYSQL_TYPE).map_or("", String::as_str);
    if matches!(mysql_type, "uuid" | "inet4" | "inet6" | "geometry") || mysql_type.starts_with("vector") {
        return Err(Refusal::new(format!("a value of type {mysql_type}")));
    }
    match (digits_of_double(mysql_type), field.data_type()) {
        (Some(digits), DataType::Float64) => Ok(Kind::Double { decimals: u8::try_from(digits).ok() }),
        (_, data_type) => of_arrow(data_type),
    }
}

/// The type of what has no metadata: a result of the engine's own operators.
fn of_arrow(data_type: &DataType) -> Result<Kind, Refusal> {
    Ok(match data_type {
        DataType::Null => Kind::Null,
        DataType::Boolean | DataType::Int8 | DataType::Int16 | DataType::Int32 | DataType::Int64 => {
            Kind::Int { unsigned: false }
        }
        DataType::UInt8 | DataType::UInt16 | DataType::UInt32 | DataType::UInt64 => {
            Kind::Int { unsigned: true }
        }
        DataType::Decimal32(_, scale)
        | DataType::Decimal64(_, scale)
        | DataType::Decimal128(_, scale)
        | DataType::Decimal256(_, scale) => Kind::Decimal { scale: u8::try_from(*scale).unwrap_or(0) },
        DataType::Float64 => Kind::Double { decimals: None },
        DataType::Float32 => Kind::Float,
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => Kind::Text(Collating {
            collation: None,
            charset: Some("utf8mb4".to_string()),
            strength: IMPLICIT,
            wide: false,
        }),
        DataType::Binary | DataType::LargeBinary | DataType::BinaryView | DataType::FixedSizeBinary(_) => {
            Kind::Bytes
        }
        DataType::Date32 => Kind::Date,
        DataType::Timestamp(unit, _) => Kind::DateTime { fsp: digits(*unit) },
        DataType::Duration(unit) => Kind::Time { fsp: digits(*unit) },
        DataType::Dictionary(_, values) => of_arrow(values)?,
        other => return Err(Refusal::new(format!("a value of type {other}"))),
    })
}

/// How wide an integer of a field is.
pub(super) fn width_of(field: &Field) -> Width {
    let is_medium = field.metadata().get(MYSQL_TYPE).is_some_and(|name| name.starts_with("mediumint"));
    match field.data_type() {
        DataType::Int8 | DataType::Int16 | DataType::UInt8 | DataType::UInt16 => Width::Short,
        DataType::Int32 | DataType::UInt32 if is_medium => Width::Short,
        DataType::Int32 | DataType::UInt32 => Width::Integer,
        _ => Width::Long,
    }
}

/// The digits after the point that a decimal's type shows, if its values have more.
pub(super) fn shown_digits(field: &Field) -> Option<u8> {
    let kind = field.metadata().get(KIND).and_then(|kind| serde_json::from_str(kind).ok());
    match (field.data_type(), kind) {
        (DataType::Decimal128(_, has) | DataType::Decimal256(_, has), Some(Kind::Decimal { scale }))
            if *has > scale.cast_signed() =>
        {
            Some(scale)
        }
        _ => None,
    }
}

fn digits(unit: TimeUnit) -> u8 {
    match unit {
        TimeUnit::Second => 0,
        TimeUnit::Millisecond => 3,
        TimeUnit::Microsecond | TimeUnit::Nanosecond => 6,
    }
}

/// The type of a literal without metadata; a text's collation is the connection's, which is the server's default.
pub(super) fn kind_of_literal(value: &ScalarValue, rules: &Rules) -> Result<Kind, Refusal> {
    Ok(match of_arrow(&value.data_type())? {
        Kind::Text(_) => Kind::Text(Collating::connection(&rules.connection)),
        kind => kind,
    })
}

/// The Arrow type in which values of a server's type are computed.
pub(super) fn arrow_type(kind: &Kind) -> DataType {
    match kind {
        Kind::Null => DataType::Null,
        Kind::Padded { of, .. } => arrow_type(of),
        Kind::Int { unsigned: false } => DataType::Int64,
        Kind::Int { unsigned: true } | Kind::Bit { .. } => DataType::UInt64,
        Kind::Year => DataType::UInt16,
        Kind::Decimal { scale } => DataType::Decimal128(38, scale.cast_signed()),
        Kind::Double { .. } => DataType::Float64,
        Kind::Float => DataType::Float32,
        Kind::Text(_) | Kind::Choice(_) | Kind::Json => DataType::Utf8View,
        Kind::Bytes | Kind::Hex => DataType::BinaryView,
        Kind::Date => DataType::Date32,
        Kind::Time { .. } => DataType::Duration(TimeUnit::Microsecond),
        Kind::DateTime { .. } | Kind::Timestamp { .. } => DataType::Timestamp(TimeUnit::Microsecond, None),
    }
}

/// How a value of a server's type is printed (see [`MYSQL_TYPE`]).
fn mysql_type(kind: &Kind) -> Option<String> {
    let with_fsp = |name: &str, fsp: u8| if fsp == 0 { name.to_string() } else { format!("{name}({fsp})") };
    Some(match kind {
        Kind::Year => "year".to_string(),
        Kind::Bit { bits } => format!("bit({bits})"),
        Kind::Date => "date".to_string(),
        Kind::Time { fsp } => with_fsp("time", *fsp),
        Kind::DateTime { fsp } | Kind::Timestamp { fsp } => with_fsp("datetime", *fsp),
        Kind::Json => "json".to_string(),
        Kind::Double { decimals: Some(decimals) } => format!("double(53,{decimals})"),
        _ => return None,
    })
}

/// A field of values of a server's type.
pub(crate) fn field_of(name: &str, kind: &Kind, nullable: bool) -> Field {
    let metadata = metadata_of(kind);
    Field::new(name, arrow_type(kind), nullable || *kind == Kind::Null).with_metadata(metadata)
}

/// The metadata of a field of values of a server's type.
pub(crate) fn metadata_of(kind: &Kind) -> HashMap<String, String> {
    // What is computed has no zeros before it.
    if let Kind::Padded { of, .. } = kind {
        return metadata_of(of);
    }
    let mut metadata = HashMap::new();
    if let Ok(text) = serde_json::to_string(kind) {
        metadata.insert(KIND.to_string(), text);
    }
    if let Some(text) = mysql_type(kind) {
        metadata.insert(MYSQL_TYPE.to_string(), text);
    }
    metadata
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_keep_the_type_of_an_expression() {
        let collating = Collating { strength: 0, ..Collating::named("latin1_bin", 0) };
        for kind in [Kind::Text(collating), Kind::Time { fsp: 3 }, Kind::Decimal { scale: 4 }, Kind::Null] {
            assert_eq!(kind_of(&field_of("c", &kind, true)).unwrap(), kind);
        }
        let fixed = field_of("c", &Kind::Double { decimals: Some(2) }, true);
        assert_eq!(fixed.metadata().get(MYSQL_TYPE).map(String::as_str), Some("double(53,2)"));
        let plain = Field::new("c", DataType::Timestamp(TimeUnit::Millisecond, None), true);
        assert_eq!(kind_of(&plain).unwrap(), Kind::DateTime { fsp: 3 });
    }
}
