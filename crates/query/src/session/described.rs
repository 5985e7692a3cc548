//! Columns as DESCRIBE, SHOW COLUMNS and information_schema print them.

use tanada_innodb::schema::Server;
use tanada_innodb::schema::TableDescription;
use tanada_innodb::schema::description::{ColumnDescription, KeyDescription, KeyKind, KeyPartOf};
use tanada_innodb::{Column, ColumnNo, DefaultValue, TableDefinition};

use crate::relation::types::mysql_type;

/// The type as the table's server spells it.
pub(super) fn type_text(column: &Column) -> String {
    match column.declaration.type_text.as_str() {
        "" => mysql_type(&column.column_type),
        text => text.to_string(),
    }
}

/// How MariaDB spells definitions, by its version.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Spelling {
    /// As 10.11 does: INVISIBLE before the default, defaults of bytes as texts.
    Of10,
    /// As 11.8 does: INVISIBLE behind the default, defaults of bytes in hexadecimal digits.
    Of11,
    /// As a version between these does, which is not known.
    Unknown,
}

impl Spelling {
    const FIRST_UNKNOWN: u32 = 101_200;
    const FIRST_OF_11: u32 = 110_800;

    /// The spelling of the server that has the table.
    pub(super) fn of(description: Option<&TableDescription>) -> Spelling {
        let version = description.and_then(|of| of.server_version).unwrap_or_default();
        match () {
            () if version < Self::FIRST_UNKNOWN => Spelling::Of10,
            () if version < Self::FIRST_OF_11 => Spelling::Unknown,
            () => Spelling::Of11,
        }
    }
}

/// The default of a column of bytes in hexadecimal digits.
pub(super) fn hexadecimal(bytes: &[u8]) -> String {
    let digits: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("x'{digits}'")
}

/// The default of a column of bytes as MariaDB 10.11 shows it: with a question mark for each byte that is no text.
pub(super) fn bytes_as_text(bytes: &[u8]) -> String {
    let mut text = String::new();
    for chunk in bytes.utf8_chunks() {
        text.push_str(chunk.valid());
        text.extend(chunk.invalid().iter().map(|_| '?'));
    }
    text
}

/// The default; `None` is printed as NULL. MySQL escapes quotes in expressions.
pub(super) fn default_text(column: &Column, server: Server, spelling: Spelling) -> Option<String> {
    match &column.declaration.default {
        DefaultValue::Bytes(bytes) if spelling == Spelling::Of11 => Some(hexadecimal(bytes)),
        DefaultValue::Bytes(bytes) => Some(bytes_as_text(bytes)),
        DefaultValue::Unknown | DefaultValue::None | DefaultValue::Null => None,
        DefaultValue::Expression(text) if server == Server::MySql => Some(escaped(text)),
        DefaultValue::Value(text) | DefaultValue::Expression(text) => Some(text.clone()),
    }
}

/// An expression as MySQL's dictionary has it: with its quotes and backslashes escaped.
pub(super) fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\").replace('\'', "\\'")
}

/// What else is said of a column.
pub(super) fn extra(column: &Column, server: Server, description: Option<&ColumnDescription>) -> String {
    let declaration = &column.declaration;
    let is_mysql = server == Server::MySql;
    let mut words = Vec::new();
    if declaration.auto_increment {
        words.push("auto_increment".to_string());
    }
    if is_mysql && matches!(declaration.default, DefaultValue::Expression(_)) {
        words.push("DEFAULT_GENERATED".to_string());
    }
    words.extend(declaration.on_update.as_ref().map(|value| format!("on update {value}")));
    words.extend(column.virtual_expression.as_ref().map(|_| "VIRTUAL GENERATED".to_string()));
    words.extend(declaration.stored_expression.as_ref().map(|_| "STORED GENERATED".to_string()));
    if description.is_some_and(|of| of.row_period.is_some()) {
        words.push("STORED GENERATED".to_string());
    }
    words.extend(column.invisible.then(|| "INVISIBLE".to_string()));
    if description.is_some_and(|of| of.without_versioning) {
        words.push("WITHOUT SYSTEM VERSIONING".to_string());
    }
    words.join(if is_mysql { " " } else { ", " })
}

/// The type as it is shown: with COMPRESSED of MariaDB.
pub(super) fn shown_type(column: &Column) -> String {
    let compressed = if column.compressed { " /*M!100301 COMPRESSED*/" } else { "" };
    format!("{}{compressed}", type_text(column))
}

/// `PRI`, `UNI`, `MUL` or nothing, for the column at position `no`; keys that are not read are in the description.
pub(super) fn key_of(
    definition: &TableDefinition,
    description: Option<&TableDescription>,
    no: usize,
) -> &'static str {
    let of_indexes = key(definition, no);
    let keys = description.map_or(&[][..], |of| &of.keys);
    let is_first = |key: &&KeyDescription| {
        key.parts.first().is_some_and(|part| part.of == KeyPartOf::Column(ColumnNo(no)))
    };
    let mut first = keys.iter().filter(is_first);
    match of_indexes {
        "" | "MUL" if first.clone().any(|key| key.kind == KeyKind::Unique && key.parts.len() == 1) => "UNI",
        "" if first.next().is_some() => "MUL",
        known => known,
    }
}

/// `PRI`, `UNI`, `MUL` or nothing, for the column at position `no`, by the indexes that are read.
///
/// Where a table has no primary key, the unique key that takes its place is called so.
fn key(definition: &TableDefinition, no: usize) -> &'static str {
    let has_part = |index: &tanada_innodb::Index| index.parts.iter().any(|part| part.column.0 == no);
    let is_first = |index: &tanada_innodb::Index| index.parts.first().is_some_and(|part| part.column.0 == no);
    let clustered = definition.indexes.first().filter(|index| index.unique && !index.parts.is_empty());
    if clustered.is_some_and(has_part) {
        return "PRI";
    }
    let first = || definition.indexes.iter().filter(|index| is_first(index));
    match first().any(|index| index.unique && index.parts.len() == 1) {
        true => "UNI",
        false if first().next().is_some() => "MUL",
        false => "",
    }
}

/// `YES` or `NO`.
pub(super) fn yes(yes: bool) -> String {
    if yes { "YES" } else { "NO" }.to_string()
}
