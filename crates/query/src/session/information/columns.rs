//! Columns of tables.

use tanada_innodb::schema::Server;
use tanada_innodb::schema::description::ColumnDescription;
use tanada_innodb::{Column, ColumnType, DefaultValue, TableDefinition};

use super::Described;
use super::rows::Row;
use super::tables::place;
use crate::session::create_table::literal;
use crate::session::described::{
    Spelling, bytes_as_text, default_text, escaped, extra, hexadecimal, key_of, shown_type, type_text, yes,
};

/// The rows of a table in COLUMNS.
pub(super) fn of_table(described: &Described<'_>) -> Vec<Row> {
    let definition = described.definition;
    let mut rows: Vec<Row> = Vec::with_capacity(definition.columns.len());
    for (no, column) in definition.columns.iter().enumerate() {
        let of_column = described.description.and_then(|of| of.columns.get(no));
        if of_column.is_some_and(|of| of.is_hidden) {
            continue;
        }
        let place = place(definition).with("ORDINAL_POSITION", rows.len() + 1);
        rows.push(
            of_column_no(place, definition, column, of_column, Spelling::of(described.description))
                .with("COLUMN_KEY", key_of(definition, described.description, no)),
        );
    }
    rows
}

fn of_column_no(
    place: Row,
    definition: &TableDefinition,
    column: &Column,
    description: Option<&ColumnDescription>,
    spelling: Spelling,
) -> Row {
    let spelled = type_text(column);
    let data_type: String = spelled.chars().take_while(|c| c.is_ascii_alphanumeric()).collect();
    let collation = column.declaration.text_collation(&column.column_type);
    let (characters, octets) = lengths(&column.column_type, collation.map_or(1, |of| of.max_bytes));
    let (precision, scale, fraction) = digits(column);
    let default = match definition.server {
        Server::MySql => default_text(column, Server::MySql, spelling),
        Server::MariaDb => quoted_default(column, spelling),
    };
    let expression = generated(definition.server, column, description);
    place
        .with("COLUMN_NAME", &column.name)
        .maybe("COLUMN_DEFAULT", default)
        .with("IS_NULLABLE", yes(column.nullable))
        .with("DATA_TYPE", data_type)
        .maybe("CHARACTER_MAXIMUM_LENGTH", characters)
        .maybe("CHARACTER_OCTET_LENGTH", octets)
        .maybe("NUMERIC_PRECISION", precision)
        .maybe("NUMERIC_SCALE", scale)
        .maybe("DATETIME_PRECISION", fraction)
        .maybe("CHARACTER_SET_NAME", collation.map(|of| &of.charset))
        .maybe("COLLATION_NAME", collation.map(|of| &of.name))
        .with("COLUMN_TYPE", shown_type(column))
        .with("EXTRA", extra(column, definition.server, description))
        .with("PRIVILEGES", "select,insert,update,references")
        .with("COLUMN_COMMENT", &column.comment)
        .with("IS_GENERATED", if expression.is_some() { "ALWAYS" } else { "NEVER" })
        .maybe("GENERATION_EXPRESSION", expression.or((definition.server == Server::MySql).then(String::new)))
        .maybe("SRS_ID", description.and_then(|of| of.srid))
}

/// The expression of a generated column.
fn generated(server: Server, column: &Column, description: Option<&ColumnDescription>) -> Option<String> {
    if let Some(boundary) = description.and_then(|of| of.row_period) {
        return Some(format!("ROW {boundary}"));
    }
    let expression = column.virtual_expression.as_ref().or(column.declaration.stored_expression.as_ref())?;
    Some(if server == Server::MySql { escaped(expression) } else { expression.clone() })
}

/// MariaDB writes a default as SQL would: texts in quotes, and the word NULL.
fn quoted_default(column: &Column, spelling: Spelling) -> Option<String> {
    match &column.declaration.default {
        DefaultValue::Bytes(bytes) if spelling == Spelling::Of11 => Some(hexadecimal(bytes)),
        DefaultValue::Bytes(bytes) => Some(literal(&bytes_as_text(bytes))),
        DefaultValue::Null => column.nullable.then(|| "NULL".to_string()),
        DefaultValue::Value(value) => {
            let is_number = matches!(
                column.column_type,
                ColumnType::Integer { .. }
                    | ColumnType::Decimal { .. }
                    | ColumnType::Float
                    | ColumnType::Double
                    | ColumnType::Year
                    | ColumnType::Bit { .. }
            );
            Some(if is_number { value.clone() } else { literal(value) })
        }
        DefaultValue::Expression(text) => Some(text.clone()),
        DefaultValue::None | DefaultValue::Unknown => None,
    }
}

/// Most characters and most bytes of a text.
fn lengths(column_type: &ColumnType, character_bytes: u8) -> (Option<u64>, Option<u64>) {
    let of = |characters: u64| (Some(characters), Some(characters * u64::from(character_bytes)));
    let large = |length_bytes: u8| (1_u64 << (8 * u32::from(length_bytes).min(4))) - 1;
    match column_type {
        ColumnType::Char { length, .. } | ColumnType::VarChar { length, .. } => of(u64::from(*length)),
        ColumnType::Binary { length } | ColumnType::VarBinary { length } => {
            (Some(u64::from(*length)), Some(u64::from(*length)))
        }
        // Their characters are as many as fit, were each as long as the longest.
        ColumnType::Text { length_bytes, .. } | ColumnType::Blob { length_bytes } => {
            (Some(large(*length_bytes)), Some(large(*length_bytes)))
        }
        ColumnType::Enum { elements } => {
            of(elements.iter().map(|element| element.chars().count() as u64).max().unwrap_or_default())
        }
        ColumnType::Set { elements } => {
            let sum: u64 = elements.iter().map(|element| element.chars().count() as u64).sum();
            of(sum + (elements.len() as u64).saturating_sub(1))
        }
        ColumnType::Vector { dimensions, .. } => {
            let bytes = Some(4 * u64::from(*dimensions));
            (bytes, bytes)
        }
        _ => (None, None),
    }
}

/// Digits of a number, those behind its point, and those of a fraction of a second.
fn digits(column: &Column) -> (Option<u64>, Option<u64>, Option<u64>) {
    let decimals = column.display.decimals.map(u64::from);
    let width = column.display.width.filter(|_| decimals.is_some()).map(u64::from);
    match &column.column_type {
        ColumnType::Integer { bytes, unsigned } => {
            let precision = match (bytes, unsigned) {
                (1, _) => 3,
                (2, _) => 5,
                (3, _) => 7,
                (4, _) => 10,
                (_, false) => 19,
                (_, true) => 20,
            };
            (Some(precision), Some(0), None)
        }
        ColumnType::Decimal { precision, scale, .. } => {
            (Some(u64::from(*precision)), Some(u64::from(*scale)), None)
        }
        ColumnType::Float => (width.or(Some(12)), decimals, None),
        ColumnType::Double => (width.or(Some(22)), decimals, None),
        ColumnType::Bit { bits } => (Some(u64::from(*bits)), None, None),
        ColumnType::Time { fsp, .. }
        | ColumnType::DateTime { fsp, .. }
        | ColumnType::Timestamp { fsp, .. } => (None, None, Some(u64::from(*fsp))),
        _ => (None, None, None),
    }
}
