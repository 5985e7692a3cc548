//! MySQL column types as Arrow fields.
//!
//! The Arrow type carries the value; the field's metadata keeps the MySQL type under [`MYSQL_TYPE`], because text
//! output needs what the Arrow type does not say: fractional digits of a time, the width of a BIT, that a number is a
//! year.

use std::collections::HashMap;

use datafusion::arrow::datatypes::{DataType, Field, TimeUnit};
use tanada_innodb::schema::Server;
use tanada_innodb::{Column, ColumnType};

use super::vector::vector_type;
use crate::binding::KIND;
use crate::expression::Kind;

/// Metadata key of the MySQL type, e.g. `time(3)`.
pub const MYSQL_TYPE: &str = "mysql.type";

/// Metadata key of DATE and DATETIME columns that are NOT NULL: `IS NULL` in WHERE finds their zero dates.
pub const NOT_NULL_DATE: &str = "tanada.not_null_date";

/// Metadata key of the width to which zeros fill the text of a number (ZEROFILL).
pub const ZEROS: &str = "mysql.zeros";

/// Metadata key of texts of MariaDB: `yes` if the server takes them for documents, `no` if it does not.
pub const DOCUMENT: &str = "tanada.document";

/// [`MYSQL_TYPE`] of YEAR(2).
pub const SHORT_YEAR: &str = "year(2)";

/// The type with the digits that the column shows.
fn shown_type(column: &Column) -> String {
    let name = mysql_type(&column.column_type);
    match (&column.column_type, column.display.width, column.display.decimals) {
        (ColumnType::Float | ColumnType::Double, width, Some(decimals)) => {
            format!("{name}({},{decimals})", width.unwrap_or(53))
        }
        (ColumnType::Year, Some(_), _) => SHORT_YEAR.to_string(),
        _ => name,
    }
}

/// The field of a column of `server`.
pub fn field(column: &Column, server: Server) -> Field {
    let nullable = column.nullable || column.virtual_expression.is_some();
    let mut metadata = HashMap::from([(MYSQL_TYPE.to_string(), shown_type(column))]);
    if let Some(width) = column.display.width.filter(|_| column.display.zerofill) {
        metadata.insert(ZEROS.to_string(), width.to_string());
    }
    if let Ok(kind) = Kind::of(column, server)
        && let Ok(kind) = serde_json::to_string(&kind)
    {
        metadata.insert(KIND.to_string(), kind);
    }
    // A definition that says nothing but the types leaves it open.
    if server == Server::MariaDb && !column.declaration.type_text.is_empty() {
        let is_document = if column.declaration.is_document { "yes" } else { "no" };
        metadata.insert(DOCUMENT.to_string(), is_document.to_string());
    }
    if !nullable && matches!(column.column_type, ColumnType::Date | ColumnType::DateTime { .. }) {
        metadata.insert(NOT_NULL_DATE.to_string(), String::new());
    }
    Field::new(&column.name, data_type(&column.column_type), nullable).with_metadata(metadata)
}

/// The Arrow type of a MySQL type.
pub fn data_type(column_type: &ColumnType) -> DataType {
    match column_type {
        ColumnType::Integer { bytes, unsigned } => integer(*bytes, *unsigned),
        ColumnType::Decimal { precision, scale, .. } if *precision <= 38 => {
            DataType::Decimal128(*precision, scale.cast_signed())
        }
        ColumnType::Decimal { precision, scale, .. } => DataType::Decimal256(*precision, scale.cast_signed()),
        ColumnType::Float => DataType::Float32,
        ColumnType::Double => DataType::Float64,
        ColumnType::Bit { .. } => DataType::UInt64,
        ColumnType::Year => DataType::UInt16,
        ColumnType::Date => DataType::Date32,
        ColumnType::Time { fsp, .. } => DataType::Duration(unit(*fsp)),
        ColumnType::DateTime { fsp, .. } => DataType::Timestamp(unit(*fsp), None),
        ColumnType::Timestamp { fsp, .. } => DataType::Timestamp(unit(*fsp), Some("+00:00".into())),
        ColumnType::Char { .. }
        | ColumnType::VarChar { .. }
        | ColumnType::Text { .. }
        | ColumnType::Json
        | ColumnType::Enum { .. }
        | ColumnType::Set { .. }
        | ColumnType::Uuid
        | ColumnType::Inet6
        | ColumnType::Inet4 => DataType::Utf8View,
        ColumnType::Binary { .. }
        | ColumnType::VarBinary { .. }
        | ColumnType::Blob { .. }
        | ColumnType::Geometry => DataType::BinaryView,
        ColumnType::Vector { dimensions, .. } => vector_type(*dimensions),
    }
}

/// The type as `DESCRIBE` prints it.
pub fn mysql_type(column_type: &ColumnType) -> String {
    let unsigned =
        |name: &str, unsigned: bool| if unsigned { format!("{name} unsigned") } else { name.to_string() };
    let with_fsp = |name: &str, fsp: u8| if fsp == 0 { name.to_string() } else { format!("{name}({fsp})") };
    let elements = |name: &str, elements: &[String]| {
        let quoted: Vec<String> =
            elements.iter().map(|element| format!("'{}'", element.replace('\'', "''"))).collect();
        format!("{name}({})", quoted.join(","))
    };
    match column_type {
        ColumnType::Integer { bytes, unsigned: without_sign } => {
            let name = match bytes {
                1 => "tinyint",
                2 => "smallint",
                3 => "mediumint",
                4 => "int",
                _ => "bigint",
            };
            unsigned(name, *without_sign)
        }
        ColumnType::Decimal { precision, scale, unsigned: without_sign } => {
            unsigned(&format!("decimal({precision},{scale})"), *without_sign)
        }
        ColumnType::Float => "float".to_string(),
        ColumnType::Double => "double".to_string(),
        ColumnType::Bit { bits } => format!("bit({bits})"),
        ColumnType::Year => "year".to_string(),
        ColumnType::Date => "date".to_string(),
        ColumnType::Time { fsp, .. } => with_fsp("time", *fsp),
        ColumnType::DateTime { fsp, .. } => with_fsp("datetime", *fsp),
        ColumnType::Timestamp { fsp, .. } => with_fsp("timestamp", *fsp),
        ColumnType::Char { length, .. } => format!("char({length})"),
        ColumnType::VarChar { length, .. } => format!("varchar({length})"),
        ColumnType::Binary { length } => format!("binary({length})"),
        ColumnType::VarBinary { length } => format!("varbinary({length})"),
        ColumnType::Text { length_bytes, .. } => format!("{}text", size_name(*length_bytes)),
        ColumnType::Blob { length_bytes } => format!("{}blob", size_name(*length_bytes)),
        ColumnType::Json => "json".to_string(),
        ColumnType::Enum { elements: of } => elements("enum", of),
        ColumnType::Set { elements: of } => elements("set", of),
        ColumnType::Geometry => "geometry".to_string(),
        ColumnType::Vector { dimensions, .. } => format!("vector({dimensions})"),
        ColumnType::Uuid => "uuid".to_string(),
        ColumnType::Inet6 => "inet6".to_string(),
        ColumnType::Inet4 => "inet4".to_string(),
    }
}

fn size_name(length_bytes: u8) -> &'static str {
    match length_bytes {
        1 => "tiny",
        2 => "",
        3 => "medium",
        _ => "long",
    }
}

fn integer(bytes: u8, unsigned: bool) -> DataType {
    match (bytes, unsigned) {
        (1, false) => DataType::Int8,
        (1, true) => DataType::UInt8,
        (2, false) => DataType::Int16,
        (2, true) => DataType::UInt16,
        (3 | 4, false) => DataType::Int32,
        (3 | 4, true) => DataType::UInt32,
        (_, false) => DataType::Int64,
        (_, true) => DataType::UInt64,
    }
}

/// The coarsest unit that holds `fsp` fractional digits.
fn unit(fsp: u8) -> TimeUnit {
    match fsp {
        0 => TimeUnit::Second,
        1..=3 => TimeUnit::Millisecond,
        _ => TimeUnit::Microsecond,
    }
}

/// Whether a value may live off its page, so that sampling would have to fetch more pages for it.
pub fn is_large(column_type: &ColumnType) -> bool {
    match column_type {
        ColumnType::Text { length_bytes, .. } | ColumnType::Blob { length_bytes } => *length_bytes > 1,
        ColumnType::Json | ColumnType::Geometry => true,
        ColumnType::Vector { is_blob, .. } => *is_blob,
        ColumnType::VarChar { length, .. } | ColumnType::VarBinary { length } => *length > 1024,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_keep_what_text_output_needs() {
        let column = |column_type| Column {
            name: "c".to_string(),
            column_type,
            display: tanada_innodb::Display::default(),
            nullable: false,
            invisible: false,
            virtual_expression: None,
            compressed: false,
            comment: String::new(),
            declaration: tanada_innodb::Declaration::default(),
        };
        let field = |column: &Column| field(column, Server::MySql);
        let time = field(&column(ColumnType::Time { fsp: 3, legacy: false }));
        assert_eq!(time.data_type(), &DataType::Duration(TimeUnit::Millisecond));
        assert_eq!(time.metadata()[MYSQL_TYPE], "time(3)");
        assert!(!time.is_nullable());
        let date = field(&column(ColumnType::Date));
        assert!(!date.is_nullable() && date.metadata().contains_key(NOT_NULL_DATE));
        let decimal = field(&column(ColumnType::Decimal { precision: 65, scale: 30, unsigned: false }));
        assert_eq!(decimal.data_type(), &DataType::Decimal256(65, 30));
        let set = ColumnType::Set { elements: vec!["it's".to_string(), "b".to_string()] };
        assert_eq!(mysql_type(&set), "set('it''s','b')");
    }
}
