//! The syntax tree of a JSON_TABLE -> its columns and how they are filled.

use std::sync::Arc;

use datafusion::sql::sqlparser::ast::{
    JsonTableColumn, JsonTableColumnErrorHandling, JsonTableNamedColumn, ValueWithSpan,
};
use tanada_innodb::schema::table_from_ddl;
use tanada_innodb::{Column, Server};

use crate::expression::{JsonItem, JsonOtherwise, JsonTable, JsonValueColumn, Rules, json_path};
use crate::{Error, ErrorKind, Result};

/// The names of all columns, in their order.
pub(crate) fn names(columns: &[JsonTableColumn]) -> Vec<String> {
    let mut names = Vec::new();
    for column in columns {
        match column {
            JsonTableColumn::Named(named) => names.push(named.name.value.clone()),
            JsonTableColumn::ForOrdinality(name) => names.push(name.value.clone()),
            JsonTableColumn::Nested(nested) => names.extend(self::names(&nested.columns)),
        }
    }
    names
}

/// The columns and the rows of a JSON_TABLE; `collation` is that of its texts.
///
/// # Errors
/// If the server does not have it, or not exactly so.
pub(super) fn table(
    path: &ValueWithSpan,
    columns: &[JsonTableColumn],
    rules: &Rules,
    collation: &str,
) -> Result<(Arc<JsonTable>, Vec<Column>)> {
    let mut types = Vec::new();
    declare(columns, rules, &mut types);
    let charset = collation.split('_').next().unwrap_or_default();
    let text = format!(
        "create table json_table ({}) default charset={charset} collate={collation}",
        types.join(", ")
    );
    let server = rules.server();
    let declared = table_from_ddl(&text, "json", "json_table", server)
        .map_err(|error| Error::new(ErrorKind::Unsupported, format!("JSON_TABLE: {error}")))?;
    let declared = declared.map(|table| table.columns).unwrap_or_default();
    let names = names(columns);
    if declared.len() != names.len() {
        return Err(Error::new(ErrorKind::Unsupported, "a column of this type in JSON_TABLE is not run"));
    }
    let own = declared.into_iter().zip(names).map(|(column, name)| Column { name, nullable: true, ..column });
    let own: Vec<Column> = own.collect();
    let mut slot = 0;
    let items = items(columns, &own, rules, &mut slot)?;
    let path = json_path(&text_of(path)?, rules.mysql).map_err(refused)?;
    Ok((Arc::new(JsonTable::new(path, items, slot, server == Server::MySql)), own))
}

fn refused(refusal: crate::expression::Refusal) -> Error {
    Error::new(ErrorKind::InvalidInput, format!("JSON_TABLE: {refusal}"))
}

/// The declarations of the columns, under names of their own.
fn declare(columns: &[JsonTableColumn], rules: &Rules, types: &mut Vec<String>) {
    for column in columns {
        let of_type = match column {
            JsonTableColumn::Named(named) => named.r#type.to_string(),
            JsonTableColumn::ForOrdinality(_) if rules.mysql => "bigint".to_string(),
            JsonTableColumn::ForOrdinality(_) => "int".to_string(),
            JsonTableColumn::Nested(nested) => {
                declare(&nested.columns, rules, types);
                continue;
            }
        };
        types.push(format!("`c{}` {of_type}", types.len()));
    }
}

fn items(
    columns: &[JsonTableColumn],
    own: &[Column],
    rules: &Rules,
    slot: &mut usize,
) -> Result<Vec<JsonItem>> {
    let mut items = Vec::with_capacity(columns.len());
    for column in columns {
        let at = *slot;
        let declared = own.get(at);
        items.push(match column {
            JsonTableColumn::Nested(nested) => JsonItem::Nested {
                path: json_path(&text_of(&nested.path)?, rules.mysql).map_err(refused)?,
                items: self::items(&nested.columns, own, rules, slot)?,
            },
            JsonTableColumn::ForOrdinality(_) => {
                *slot += 1;
                JsonItem::Ordinality { slot: at }
            }
            JsonTableColumn::Named(named) => {
                *slot += 1;
                let missing = || Error::new(ErrorKind::Internal, "a column of JSON_TABLE is not declared");
                item(named, declared.ok_or_else(missing)?, at, rules)?
            }
        });
    }
    Ok(items)
}

fn item(named: &JsonTableNamedColumn, declared: &Column, slot: usize, rules: &Rules) -> Result<JsonItem> {
    let path = json_path(&text_of(&named.path)?, rules.mysql).map_err(refused)?;
    let column_type = declared.column_type.clone();
    if named.exists {
        return Ok(JsonItem::Exists { slot, path, column_type });
    }
    let is_document = named.r#type.to_string().eq_ignore_ascii_case("json");
    let otherwise = [otherwise(named.on_empty.as_ref(), rules)?, otherwise(named.on_error.as_ref(), rules)?];
    let column = JsonValueColumn::new(&declared.name, slot, column_type, is_document, path, otherwise, rules);
    Ok(JsonItem::Value(column.map_err(refused)?))
}

fn otherwise(of: Option<&JsonTableColumnErrorHandling>, rules: &Rules) -> Result<JsonOtherwise> {
    Ok(match of {
        None | Some(JsonTableColumnErrorHandling::Null) => JsonOtherwise::Null,
        Some(JsonTableColumnErrorHandling::Error) => JsonOtherwise::Error,
        Some(JsonTableColumnErrorHandling::Default(value)) => match value.value.clone().into_string() {
            Some(text) => JsonOtherwise::Default(text),
            None if rules.mysql => {
                let message = "non-string DEFAULT value for a column in a JSON_TABLE expression";
                return Err(Error::new(ErrorKind::Unsupported, message));
            }
            None => JsonOtherwise::Default(value.to_string()),
        },
    })
}

/// The text of a literal.
fn text_of(value: &ValueWithSpan) -> Result<String> {
    let text = value.value.clone().into_string();
    text.ok_or_else(|| Error::new(ErrorKind::InvalidInput, format!("{value} is no JSON path")))
}
