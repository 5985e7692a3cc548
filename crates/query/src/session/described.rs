//! Columns as DESCRIBE, SHOW COLUMNS and information_schema print them.

use tanada_innodb::schema::Server;
use tanada_innodb::{Column, DefaultValue, TableDefinition};

use crate::relation::types::mysql_type;

/// The type as the table's server spells it.
pub(super) fn type_text(column: &Column) -> String {
    match column.declaration.type_text.as_str() {
        "" => mysql_type(&column.column_type),
        text => text.to_string(),
    }
}

/// The default; `None` is printed as NULL. MySQL escapes quotes in expressions.
pub(super) fn default_text(column: &Column, server: Server) -> Option<String> {
    match &column.declaration.default {
        DefaultValue::Unknown | DefaultValue::None | DefaultValue::Null => None,
        DefaultValue::Expression(text) if server == Server::MySql => Some(text.replace('\'', "\\'")),
        DefaultValue::Value(text) | DefaultValue::Expression(text) => Some(text.clone()),
    }
}

/// What else is said of a column.
pub(super) fn extra(column: &Column, server: Server) -> String {
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
    words.extend(column.invisible.then(|| "INVISIBLE".to_string()));
    words.join(if is_mysql { " " } else { ", " })
}

/// `PRI`, `UNI`, `MUL` or nothing, for the column at position `no`.
///
/// Where a table has no primary key, the unique key that takes its place is called so.
pub(super) fn key(definition: &TableDefinition, no: usize) -> &'static str {
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
