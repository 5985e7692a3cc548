//! `information_schema`: what is said of mounted databases, in the columns that both servers have.
//!
//! | table | a row for each |
//! |---|---|
//! | `schemata` | database |
//! | `tables` | table and view |
//! | `views` | view |
//! | `columns` | column of a table |
//! | `statistics` | part of an index that can be read |
//!
//! Columns whose values lie outside of the files, or are not read, are left out, so that whoever asks for one is told.
//! Of tables that cannot be opened only the names are known: one must not hide the others.

use std::sync::{Arc, Weak};

use async_trait::async_trait;
use datafusion::arrow::array::{ArrayRef, StringViewArray, UInt64Array};
use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::arrow::record_batch::RecordBatch;
use datafusion::catalog::{MemTable, SchemaProvider, TableProvider};
use datafusion::common::Result;
use tanada_innodb::schema::{RowFormat, Server};
use tanada_innodb::{Collation, Column, ColumnType, Declaration, Display, TableDefinition};

use super::described::{default_text, extra, key, type_text, yes};
use super::{Session, Shared};
use crate::catalog::InnodbTable;
use crate::relation::types::field;

/// The schema under which the engine finds these tables.
pub(super) const INFORMATION: &str = "tanada_information_schema";

/// The tables of `information_schema`.
#[derive(Clone)]
pub(super) struct InformationSchema {
    session: Weak<Shared>,
}

/// A value of a row.
enum Cell {
    Text(Option<String>),
    Number(Option<u64>),
}

use Cell::{Number, Text};

fn text(value: impl Into<String>) -> Cell {
    Text(Some(value.into()))
}

/// Columns of names that MySQL compares as the file system does.
const FILE_NAMES: [&str; 3] = ["TABLE_SCHEMA", "TABLE_NAME", "SCHEMA_NAME"];

const TABLES: [(&str, &[(&str, DataType)]); 5] = [
    (
        "columns",
        &[
            ("TABLE_CATALOG", DataType::Utf8),
            ("TABLE_SCHEMA", DataType::Utf8),
            ("TABLE_NAME", DataType::Utf8),
            ("COLUMN_NAME", DataType::Utf8),
            ("ORDINAL_POSITION", DataType::UInt64),
            ("COLUMN_DEFAULT", DataType::Utf8),
            ("IS_NULLABLE", DataType::Utf8),
            ("DATA_TYPE", DataType::Utf8),
            ("CHARACTER_MAXIMUM_LENGTH", DataType::UInt64),
            ("CHARACTER_OCTET_LENGTH", DataType::UInt64),
            ("NUMERIC_PRECISION", DataType::UInt64),
            ("NUMERIC_SCALE", DataType::UInt64),
            ("DATETIME_PRECISION", DataType::UInt64),
            ("CHARACTER_SET_NAME", DataType::Utf8),
            ("COLLATION_NAME", DataType::Utf8),
            ("COLUMN_TYPE", DataType::Utf8),
            ("COLUMN_KEY", DataType::Utf8),
            ("EXTRA", DataType::Utf8),
            ("PRIVILEGES", DataType::Utf8),
            ("COLUMN_COMMENT", DataType::Utf8),
        ],
    ),
    ("schemata", &[("CATALOG_NAME", DataType::Utf8), ("SCHEMA_NAME", DataType::Utf8)]),
    (
        "statistics",
        &[
            ("TABLE_CATALOG", DataType::Utf8),
            ("TABLE_SCHEMA", DataType::Utf8),
            ("TABLE_NAME", DataType::Utf8),
            ("NON_UNIQUE", DataType::UInt64),
            ("INDEX_SCHEMA", DataType::Utf8),
            ("INDEX_NAME", DataType::Utf8),
            ("SEQ_IN_INDEX", DataType::UInt64),
            ("COLUMN_NAME", DataType::Utf8),
            ("COLLATION", DataType::Utf8),
            ("NULLABLE", DataType::Utf8),
            ("INDEX_TYPE", DataType::Utf8),
        ],
    ),
    (
        "tables",
        &[
            ("TABLE_CATALOG", DataType::Utf8),
            ("TABLE_SCHEMA", DataType::Utf8),
            ("TABLE_NAME", DataType::Utf8),
            ("TABLE_TYPE", DataType::Utf8),
            ("ENGINE", DataType::Utf8),
            ("ROW_FORMAT", DataType::Utf8),
            ("TABLE_COLLATION", DataType::Utf8),
        ],
    ),
    (
        "views",
        &[
            ("TABLE_CATALOG", DataType::Utf8),
            ("TABLE_SCHEMA", DataType::Utf8),
            ("TABLE_NAME", DataType::Utf8),
        ],
    ),
];

impl InformationSchema {
    pub(super) fn new(session: Weak<Shared>) -> Arc<InformationSchema> {
        Arc::new(InformationSchema { session })
    }

    /// The columns of a table at `server`.
    pub(super) fn schema(table: &str, server: Server) -> Option<SchemaRef> {
        let (_, columns) = TABLES.iter().find(|(name, _)| name.eq_ignore_ascii_case(table))?;
        let of = |(name, data_type): &(&str, DataType)| {
            let collation = match server {
                Server::MySql if FILE_NAMES.contains(name) => "utf8mb3_bin",
                _ => "utf8mb3_general_ci",
            };
            let column = Column {
                name: (*name).to_string(),
                column_type: match (data_type, Collation::with_name(collation)) {
                    (DataType::Utf8, Some(collation)) => ColumnType::VarChar { length: 64, collation },
                    _ => ColumnType::Integer { bytes: 8, unsigned: true },
                },
                display: Display::default(),
                nullable: true,
                invisible: false,
                virtual_expression: None,
                compressed: false,
                comment: String::new(),
                declaration: Declaration::default(),
            };
            field(&column, server)
        };
        Some(Arc::new(Schema::new(columns.iter().map(of).collect::<Vec<_>>())))
    }

    async fn rows(&self, table: &str) -> Result<Vec<Vec<Cell>>> {
        let mut rows = Vec::new();
        let Some(shared) = self.session.upgrade() else { return Ok(rows) };
        let session = Session { shared };
        for name in session.database_names() {
            let Ok(database) = session.database_or_default(Some(&name)) else { continue };
            if table == "schemata" {
                rows.push(vec![text("def"), text(&name)]);
                continue;
            }
            let views = database.views().await.unwrap_or_default();
            match table {
                "views" => rows.extend(views.iter().map(|view| vec![text("def"), text(&name), text(view)])),
                "tables" => rows.extend(views.iter().map(|view| {
                    let mut row = vec![text("def"), text(&name), text(view), text("VIEW")];
                    row.extend([Text(None), Text(None), Text(None)]);
                    row
                })),
                _ => {}
            }
            if table == "views" {
                continue;
            }
            for named in database.tables() {
                match database.open_table(&named).await {
                    Ok(Some(opened)) => of_table(table, &opened, &mut rows),
                    _ if table == "tables" => {
                        let mut row = vec![text("def"), text(&name), text(&named), text("BASE TABLE")];
                        row.extend([text("InnoDB"), Text(None), Text(None)]);
                        rows.push(row);
                    }
                    _ => {}
                }
            }
        }
        Ok(rows)
    }
}

fn of_table(table: &str, opened: &InnodbTable, rows: &mut Vec<Vec<Cell>>) {
    let definition = opened.table().definition();
    let place = || vec![text("def"), text(&definition.database), text(&definition.name)];
    match table {
        "tables" => {
            let kind = match (definition.server, definition.row_end) {
                (Server::MariaDb, Some(_)) => "SYSTEM VERSIONED",
                _ => "BASE TABLE",
            };
            let row_format = match definition.row_format {
                RowFormat::Redundant => "Redundant",
                RowFormat::Compact => "Compact",
                RowFormat::Dynamic => "Dynamic",
                RowFormat::Compressed => "Compressed",
            };
            let collation = definition.collation.as_ref().map(|collation| collation.name.clone());
            let mut row = place();
            row.extend([text(kind), text("InnoDB"), text(row_format), Text(collation)]);
            rows.push(row);
        }
        "columns" => rows.extend((0..definition.columns.len()).map(|no| {
            let mut row = place();
            row.extend(of_column(definition, no));
            row
        })),
        "statistics" => {
            let own = definition.indexes.iter().filter(|index| index.name != "GEN_CLUST_INDEX");
            for (index, (no, part)) in
                own.flat_map(|index| index.parts.iter().enumerate().map(move |part| (index, part)))
            {
                let Some(column) = definition.columns.get(part.column.0) else { continue };
                let mut row = place();
                row.extend([
                    Number(Some(u64::from(!index.unique))),
                    text(&definition.database),
                    text(&index.name),
                    Number(Some(no as u64 + 1)),
                    text(&column.name),
                    text(if part.descending { "D" } else { "A" }),
                    text(if column.nullable { "YES" } else { "" }),
                    text("BTREE"),
                ]);
                rows.push(row);
            }
        }
        _ => {}
    }
}

/// The row of `columns` behind the table's name.
fn of_column(definition: &TableDefinition, no: usize) -> Vec<Cell> {
    let Some(column) = definition.columns.get(no) else { return Vec::new() };
    let spelled = type_text(column);
    let data_type: String = spelled.chars().take_while(|c| c.is_ascii_alphanumeric()).collect();
    let collation = column.declaration.text_collation(&column.column_type);
    let (characters, octets) = lengths(&column.column_type, collation.map_or(1, |of| of.max_bytes));
    let (precision, scale, fraction) = digits(column);
    let default = match definition.server {
        Server::MySql => default_text(column, Server::MySql),
        Server::MariaDb => quoted_default(column),
    };
    vec![
        text(&column.name),
        Number(Some(no as u64 + 1)),
        Text(default),
        text(yes(column.nullable)),
        text(data_type),
        Number(characters),
        Number(octets),
        Number(precision),
        Number(scale),
        Number(fraction),
        Text(collation.map(|of| of.charset.clone())),
        Text(collation.map(|of| of.name.clone())),
        text(spelled),
        text(key(definition, no)),
        text(extra(column, definition.server)),
        text("select,insert,update,references"),
        text(&column.comment),
    ]
}

/// MariaDB writes a default as SQL would: texts in quotes, and the word NULL.
fn quoted_default(column: &Column) -> Option<String> {
    use tanada_innodb::DefaultValue;
    match &column.declaration.default {
        DefaultValue::Null => Some("NULL".to_string()),
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
            Some(if is_number { value.clone() } else { format!("'{}'", value.replace('\'', "''")) })
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

impl std::fmt::Debug for InformationSchema {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("InformationSchema").finish_non_exhaustive()
    }
}

#[async_trait]
impl SchemaProvider for InformationSchema {
    fn table_names(&self) -> Vec<String> {
        TABLES.iter().map(|(name, _)| (*name).to_string()).collect()
    }

    async fn table(&self, name: &str) -> Result<Option<Arc<dyn TableProvider>>> {
        let server = self.session.upgrade().map(|shared| Session { shared }.options().server);
        let Some(schema) = Self::schema(name, server.unwrap_or(Server::MySql)) else { return Ok(None) };
        let rows = self.rows(&name.to_ascii_lowercase()).await?;
        let column = |(no, field): (usize, &Arc<Field>)| -> ArrayRef {
            let cells = rows.iter().map(|row| row.get(no));
            match field.data_type() {
                DataType::Utf8View => Arc::new(
                    cells
                        .map(|cell| match cell {
                            Some(Text(text)) => text.as_deref(),
                            _ => None,
                        })
                        .collect::<StringViewArray>(),
                ),
                _ => Arc::new(
                    cells
                        .map(|cell| match cell {
                            Some(Number(number)) => *number,
                            _ => None,
                        })
                        .collect::<UInt64Array>(),
                ),
            }
        };
        let columns = schema.fields().iter().enumerate().map(column).collect();
        let batch = RecordBatch::try_new(Arc::clone(&schema), columns)?;
        Ok(Some(Arc::new(MemTable::try_new(schema, vec![vec![batch]])?)))
    }

    fn table_exist(&self, name: &str) -> bool {
        TABLES.iter().any(|(table, _)| table.eq_ignore_ascii_case(name))
    }
}
