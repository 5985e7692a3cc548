//! Answers of SHOW that are made of `information_schema`: its rows under other names of columns.

use std::sync::Arc;

use datafusion::arrow::datatypes::{Field, Schema};
use datafusion::arrow::record_batch::RecordBatch;
use tanada_innodb::schema::Server;

use super::command::{OfServer, TableName};
use super::context::QueryContext;
use super::information::rows::{Row, batch};
use super::information::{Described, InformationSchema, keys};
use super::{Session, answer, create_view, liked};
use crate::catalog::Database;
use crate::{Error, ErrorKind, Result};

/// Columns of an answer: their names, and what they are called in `information_schema`.
type Columns = &'static [(&'static str, &'static str)];

/// `SHOW TABLE STATUS`; MariaDB's has two columns more.
const STATUS: Columns = &[
    ("Name", "TABLE_NAME"),
    ("Engine", "ENGINE"),
    ("Version", "VERSION"),
    ("Row_format", "ROW_FORMAT"),
    ("Rows", "TABLE_ROWS"),
    ("Avg_row_length", "AVG_ROW_LENGTH"),
    ("Data_length", "DATA_LENGTH"),
    ("Max_data_length", "MAX_DATA_LENGTH"),
    ("Index_length", "INDEX_LENGTH"),
    ("Data_free", "DATA_FREE"),
    ("Auto_increment", "AUTO_INCREMENT"),
    ("Create_time", "CREATE_TIME"),
    ("Update_time", "UPDATE_TIME"),
    ("Check_time", "CHECK_TIME"),
    ("Collation", "TABLE_COLLATION"),
    ("Checksum", "CHECKSUM"),
    ("Create_options", "CREATE_OPTIONS"),
    ("Comment", "TABLE_COMMENT"),
    ("Max_index_length", "MAX_INDEX_LENGTH"),
    ("Temporary", "TEMPORARY"),
];

/// `SHOW INDEX`; the last columns are those of one server each.
const INDEX: Columns = &[
    ("Table", "TABLE_NAME"),
    ("Non_unique", "NON_UNIQUE"),
    ("Key_name", "INDEX_NAME"),
    ("Seq_in_index", "SEQ_IN_INDEX"),
    ("Column_name", "COLUMN_NAME"),
    ("Collation", "COLLATION"),
    ("Cardinality", "CARDINALITY"),
    ("Sub_part", "SUB_PART"),
    ("Packed", "PACKED"),
    ("Null", "NULLABLE"),
    ("Index_type", "INDEX_TYPE"),
    ("Comment", "COMMENT"),
    ("Index_comment", "INDEX_COMMENT"),
    ("Ignored", "IGNORED"),
    ("Visible", "IS_VISIBLE"),
    ("Expression", "EXPRESSION"),
];

const CHARACTER_SETS: Columns = &[
    ("Charset", "CHARACTER_SET_NAME"),
    ("Description", "DESCRIPTION"),
    ("Default collation", "DEFAULT_COLLATE_NAME"),
    ("Maxlen", "MAXLEN"),
];

const COLLATIONS: Columns = &[
    ("Collation", "COLLATION_NAME"),
    ("Charset", "CHARACTER_SET_NAME"),
    ("Id", "ID"),
    ("Default", "IS_DEFAULT"),
    ("Compiled", "IS_COMPILED"),
    ("Sortlen", "SORTLEN"),
    ("Pad_attribute", "PAD_ATTRIBUTE"),
];

const ENGINES: Columns = &[
    ("Engine", "ENGINE"),
    ("Support", "SUPPORT"),
    ("Comment", "COMMENT"),
    ("Transactions", "TRANSACTIONS"),
    ("XA", "XA"),
    ("Savepoints", "SAVEPOINTS"),
];

/// Most views that a view is made of.
const MAX_DEPTH: u32 = 64;

/// Rows of `table` under other names; columns that the server does not have are left out.
fn renamed(table: &str, columns: Columns, rows: &[Row], server: Server) -> Result<RecordBatch> {
    let internal = || Error::new(ErrorKind::Internal, format!("{table} has no columns"));
    let schema = InformationSchema::schema(table, server).ok_or_else(internal)?;
    let mut fields = Vec::with_capacity(columns.len());
    let mut names = Vec::with_capacity(columns.len());
    for (shown, name) in columns {
        if let Ok(field) = schema.field_with_name(name) {
            let field = Field::new(*shown, field.data_type().clone(), true);
            let of = schema.field_with_name(name).map(|of| of.metadata().clone()).unwrap_or_default();
            fields.push(field.with_metadata(of));
            names.push((*name).to_string());
        }
    }
    Ok(batch(&Arc::new(Schema::new(fields)), &names, rows)?)
}

/// The rows whose `column` is like `pattern`.
fn matching(rows: Vec<Row>, column: &str, pattern: Option<&str>) -> Result<Vec<Row>> {
    let names = rows.iter().filter_map(|row| row.value(column).map(str::to_string)).collect();
    let kept = liked(names, pattern)?;
    Ok(rows
        .into_iter()
        .filter(|row| row.value(column).is_some_and(|name| kept.iter().any(|of| of == name)))
        .collect())
}

impl Session {
    pub(super) async fn shown_of_server(&self, what: OfServer, pattern: Option<&str>) -> Result<RecordBatch> {
        let server = self.options().server;
        let (table, columns, name) = match what {
            OfServer::CharacterSets => ("CHARACTER_SETS", CHARACTER_SETS, "CHARACTER_SET_NAME"),
            OfServer::Collations => ("COLLATIONS", COLLATIONS, "COLLATION_NAME"),
            OfServer::Engines => ("ENGINES", ENGINES, "ENGINE"),
        };
        let rows = InformationSchema::new(Arc::downgrade(&self.shared)).rows(table).await?;
        renamed(table, columns, &matching(rows, name, pattern)?, server)
    }

    pub(super) async fn shown_status(
        &self,
        database: Option<&str>,
        pattern: Option<&str>,
    ) -> Result<RecordBatch> {
        let home = self.database_or_default(database)?;
        let mut rows = self.rows_of("TABLES", &home).await;
        rows.sort_by(|a, b| a.value("TABLE_NAME").cmp(&b.value("TABLE_NAME")));
        renamed("TABLES", STATUS, &matching(rows, "TABLE_NAME", pattern)?, self.options().server)
    }

    /// `SHOW INDEX`. Cardinalities are estimated from pages that are sampled.
    pub(super) async fn shown_indexes(
        &self,
        name: &TableName,
        context: &Arc<QueryContext>,
    ) -> Result<RecordBatch> {
        let table = self.table(name).await?;
        let home = self.database_or_default(name.database.as_deref())?;
        let description = home.description(&name.table).await.ok();
        let definition = table.table().definition();
        let statistics = table.relation(context).await?.statistics();
        let distinct = |index: &str, part: &str| -> Option<u64> {
            let no = definition.indexes.iter().position(|of| of.name == index)?;
            let part: usize = part.parse().ok()?;
            statistics.indexes.get(no)?.distinct.get(part.checked_sub(1)?).copied()
        };
        let described = Described { definition, description: description.as_ref() };
        let rows: Vec<Row> = keys::statistics(&described)
            .into_iter()
            .map(|row| {
                let place = row.value("INDEX_NAME").zip(row.value("SEQ_IN_INDEX"));
                let distinct = place.and_then(|(index, part)| distinct(index, part));
                row.maybe("CARDINALITY", distinct)
            })
            .collect();
        renamed("STATISTICS", INDEX, &rows, self.options().server)
    }

    /// `SHOW CREATE VIEW`
    pub(super) async fn created_view(&self, home: &Database, name: &str) -> Result<RecordBatch> {
        let Some(view) = home.view(name).await? else {
            return Err(super::no_table(name, home.name()));
        };
        let default = self.database();
        let is_here = default.as_deref() == Some(home.name());
        let left_out = match (self.options().server, default.as_deref()) {
            (Server::MySql, default) => default,
            (Server::MariaDb, Some(default)) if is_here => {
                self.is_within(&view.query, default, 0).await?.then_some(default)
            }
            (Server::MariaDb, _) => None,
        };
        let text = create_view::view(home.name(), name, &view, is_here, left_out)?;
        answer::create_view(name, text, &view)
    }

    /// Whether all tables of a view's query are in `database`, those of its views, too.
    async fn is_within(&self, query: &str, database: &str, depth: u32) -> Result<bool> {
        for (home, name) in create_view::tables(query)? {
            if home != database {
                return Ok(false);
            }
            let inner = self.database_named(&home)?.view(&name).await?;
            if let Some(inner) = inner
                && (depth >= MAX_DEPTH
                    || !Box::pin(self.is_within(&inner.query, database, depth + 1)).await?)
            {
                return Ok(false);
            }
        }
        Ok(true)
    }
}
