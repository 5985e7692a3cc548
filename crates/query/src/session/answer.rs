//! Answers of `SHOW` and `DESCRIBE`, with the columns that MySQL has there.

use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, StringArray, UInt64Array};
use datafusion::arrow::datatypes::{DataType, Field, Schema};
use datafusion::arrow::record_batch::RecordBatch;
use tanada_innodb::schema::{Server, TableDescription};
use tanada_innodb::{TableDefinition, ViewDescription};

use super::described::{self, yes};
use crate::expression::Note;
use crate::relation::types::MYSQL_TYPE;
use crate::{Error, ErrorKind, Result};

/// The servers' number of an error without one of its own.
const UNKNOWN_ERROR: u64 = 1105;
/// `max_error_count`, how many warnings a server keeps.
const MAX_ERROR_COUNT_MYSQL: usize = 1024;
const MAX_ERROR_COUNT_MARIADB: usize = 64;

/// One column of names.
pub(super) fn names(header: &str, names: &[String]) -> Result<RecordBatch> {
    table(vec![(header, text(names.iter().map(|name| Some(name.clone()))))])
}

/// `SHOW FULL TABLES`
pub(super) fn tables(header: &str, names: &[String], views: &[String]) -> Result<RecordBatch> {
    let kind = |name: &String| if views.contains(name) { "VIEW" } else { "BASE TABLE" }.to_string();
    table(vec![
        (header, text(names.iter().map(|name| Some(name.clone())))),
        ("Table_type", text(names.iter().map(|name| Some(kind(name))))),
    ])
}

/// `SHOW WARNINGS`: Tanada's own, which have no numbers, and those of the server, of which it keeps the first.
pub(super) fn warnings(messages: &[String], noted: &[Note], server: Server) -> Result<RecordBatch> {
    let most = if server == Server::MySql { MAX_ERROR_COUNT_MYSQL } else { MAX_ERROR_COUNT_MARIADB };
    let own = messages.iter().map(|message| ("Warning", UNKNOWN_ERROR, message.clone()));
    let of_server = noted.iter().map(|note| (note.level, u64::from(note.code), note.text.clone()));
    let rows: Vec<(&str, u64, String)> = own.chain(of_server).take(most).collect();
    table(vec![
        ("Level", text(rows.iter().map(|(level, ..)| Some((*level).to_string())))),
        ("Code", numbers(rows.iter().map(|(_, code, _)| Some(*code)))),
        ("Message", text(rows.iter().map(|(.., message)| Some(message.clone())))),
    ])
}

/// What a COPY has written.
pub(super) fn copied(rows: u64, bytes: u64, file: &str) -> Result<RecordBatch> {
    table(vec![
        ("rows", numbers([Some(rows)].into_iter())),
        ("bytes", numbers([Some(bytes)].into_iter())),
        ("file", text([Some(file.to_string())].into_iter())),
    ])
}

/// `SHOW COUNT(*) WARNINGS`
pub(super) fn counted(count: u64) -> Result<RecordBatch> {
    table(vec![("@@session.warning_count", numbers([Some(count)].into_iter()))])
}

/// `SHOW COLUMNS` of the columns whose names are `shown`; with `full`, `SHOW FULL COLUMNS`.
pub(super) fn columns(
    definition: &TableDefinition,
    description: Option<&TableDescription>,
    shown: &[String],
    full: bool,
) -> Result<RecordBatch> {
    let described = |no: usize| description.and_then(|of| of.columns.get(no));
    let spelling = described::Spelling::of(description);
    let all = definition.columns.iter().enumerate();
    let (positions, columns): (Vec<usize>, Vec<&tanada_innodb::Column>) = all
        .filter(|(_, column)| shown.contains(&column.name))
        .filter(|(no, _)| !described(*no).is_some_and(|of| of.is_hidden))
        .unzip();
    let of_each = |of: &dyn Fn(&tanada_innodb::Column) -> Option<String>| {
        text(columns.iter().map(|column| of(column)).collect::<Vec<_>>().into_iter())
    };
    let collation = |column: &tanada_innodb::Column| {
        let collation = column.declaration.text_collation(&column.column_type);
        collation.map(|collation| collation.name.clone())
    };
    let mut answer = vec![
        ("Field", of_each(&|column| Some(column.name.clone()))),
        ("Type", of_each(&|column| Some(described::shown_type(column)))),
    ];
    if full {
        answer.push(("Collation", of_each(&collation)));
    }
    answer.extend([
        ("Null", of_each(&|column| Some(yes(column.nullable)))),
        (
            "Key",
            text(
                positions.iter().map(|no| Some(described::key_of(definition, description, *no).to_string())),
            ),
        ),
        ("Default", of_each(&|column| described::default_text(column, definition.server, spelling))),
        (
            "Extra",
            text(
                positions
                    .iter()
                    .zip(&columns)
                    .map(|(no, column)| Some(described::extra(column, definition.server, described(*no)))),
            ),
        ),
    ]);
    if full {
        answer.push(("Privileges", of_each(&|_| Some("select,insert,update,references".to_string()))));
        answer.push(("Comment", of_each(&|column| Some(column.comment.clone()))));
    }
    table(answer)
}

/// `SHOW COLUMNS` of a table that is no file's.
pub(super) fn fields(schema: &Schema) -> Result<RecordBatch> {
    let fields = schema.fields();
    let kind = |field: &Field| field.metadata().get(MYSQL_TYPE).cloned();
    table(vec![
        ("Field", text(fields.iter().map(|field| Some(field.name().clone())))),
        ("Type", text(fields.iter().map(|field| kind(field)))),
        ("Null", text(fields.iter().map(|field| Some(yes(field.is_nullable()))))),
        ("Key", text(fields.iter().map(|_| Some(String::new())))),
        ("Default", text(fields.iter().map(|_| None))),
        ("Extra", text(fields.iter().map(|_| Some(String::new())))),
    ])
}

/// `SHOW CREATE TABLE`
pub(super) fn create_table(name: &str, statement: String) -> Result<RecordBatch> {
    table(vec![
        ("Table", text([Some(name.to_string())].into_iter())),
        ("Create Table", text([Some(statement)].into_iter())),
    ])
}

/// `SHOW CREATE VIEW`
pub(super) fn create_view(name: &str, statement: String, view: &ViewDescription) -> Result<RecordBatch> {
    table(vec![
        ("View", text([Some(name.to_string())].into_iter())),
        ("Create View", text([Some(statement)].into_iter())),
        ("character_set_client", text([view.client_charset.clone()].into_iter())),
        ("collation_connection", text([view.connection_collation.clone()].into_iter())),
    ])
}

/// `SHOW CREATE DATABASE`
pub(super) fn create_database(name: &str, statement: String) -> Result<RecordBatch> {
    table(vec![
        ("Database", text([Some(name.to_string())].into_iter())),
        ("Create Database", text([Some(statement)].into_iter())),
    ])
}

/// `SHOW VARIABLES`
pub(super) fn variables(variables: &[(String, Option<String>)]) -> Result<RecordBatch> {
    table(vec![
        ("Variable_name", text(variables.iter().map(|(name, _)| Some(name.clone())))),
        ("Value", text(variables.iter().map(|(_, value)| value.clone()))),
    ])
}

fn text(values: impl Iterator<Item = Option<String>>) -> ArrayRef {
    Arc::new(values.collect::<StringArray>())
}

fn numbers(values: impl Iterator<Item = Option<u64>>) -> ArrayRef {
    Arc::new(values.collect::<UInt64Array>())
}

fn table(columns: Vec<(&str, ArrayRef)>) -> Result<RecordBatch> {
    let field = |(name, array): &(&str, ArrayRef)| {
        let kind = if *array.data_type() == DataType::Utf8 { "varchar" } else { "bigint unsigned" };
        Field::new(*name, array.data_type().clone(), true)
            .with_metadata([(MYSQL_TYPE.to_string(), kind.to_string())].into())
    };
    let schema = Schema::new(columns.iter().map(field).collect::<Vec<_>>());
    RecordBatch::try_new(Arc::new(schema), columns.into_iter().map(|(_, array)| array).collect())
        .map_err(|error| Error::new(ErrorKind::Internal, error.to_string()))
}
