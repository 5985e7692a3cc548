//! Answers of `SHOW` and `DESCRIBE`, with the columns that MySQL has there.

use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, StringArray, UInt64Array};
use datafusion::arrow::datatypes::{DataType, Field, Schema};
use datafusion::arrow::record_batch::RecordBatch;
use tanada_innodb::schema::IndexKind;
use tanada_innodb::{TableDefinition, TableStatistics};

use super::described::{self, yes};
use crate::relation::types::MYSQL_TYPE;
use crate::{Error, ErrorKind, Result};

/// The servers' number of an error without one of its own.
const UNKNOWN_ERROR: u64 = 1105;

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

/// `SHOW WARNINGS`; they have no numbers of their own.
pub(super) fn warnings(messages: &[String]) -> Result<RecordBatch> {
    table(vec![
        ("Level", text(messages.iter().map(|_| Some("Warning".to_string())))),
        ("Code", numbers(messages.iter().map(|_| Some(UNKNOWN_ERROR)))),
        ("Message", text(messages.iter().map(|message| Some(message.clone())))),
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
pub(super) fn counted(count: usize) -> Result<RecordBatch> {
    table(vec![("@@session.warning_count", numbers([Some(count as u64)].into_iter()))])
}

/// `SHOW COLUMNS` of the columns whose names are `shown`; with `full`, `SHOW FULL COLUMNS`.
pub(super) fn columns(definition: &TableDefinition, shown: &[String], full: bool) -> Result<RecordBatch> {
    let all = definition.columns.iter().enumerate();
    let (positions, columns): (Vec<usize>, Vec<&tanada_innodb::Column>) =
        all.filter(|(_, column)| shown.contains(&column.name)).unzip();
    let of_each = |of: &dyn Fn(&tanada_innodb::Column) -> Option<String>| {
        text(columns.iter().map(|column| of(column)).collect::<Vec<_>>().into_iter())
    };
    let collation = |column: &tanada_innodb::Column| {
        let collation = column.declaration.text_collation(&column.column_type);
        collation.map(|collation| collation.name.clone())
    };
    let mut answer = vec![
        ("Field", of_each(&|column| Some(column.name.clone()))),
        ("Type", of_each(&|column| Some(described::type_text(column)))),
    ];
    if full {
        answer.push(("Collation", of_each(&collation)));
    }
    answer.extend([
        ("Null", of_each(&|column| Some(yes(column.nullable)))),
        ("Key", text(positions.iter().map(|no| Some(described::key(definition, *no).to_string())))),
        ("Default", of_each(&|column| described::default_text(column, definition.server))),
        ("Extra", of_each(&|column| Some(described::extra(column, definition.server)))),
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

/// `SHOW VARIABLES`
pub(super) fn variables(variables: &[(String, Option<String>)]) -> Result<RecordBatch> {
    table(vec![
        ("Variable_name", text(variables.iter().map(|(name, _)| Some(name.clone())))),
        ("Value", text(variables.iter().map(|(_, value)| value.clone()))),
    ])
}

/// `SHOW INDEX`: a row for each part.
pub(super) fn indexes(definition: &TableDefinition, statistics: &TableStatistics) -> Result<RecordBatch> {
    let parts: Vec<_> = definition
        .indexes
        .iter()
        .enumerate()
        .filter(|(_, index)| index.name != "GEN_CLUST_INDEX")
        .flat_map(|(no, index)| {
            index.parts.iter().enumerate().map(move |(sequence, part)| (no, index, sequence, part))
        })
        .collect();
    let column = |part: &tanada_innodb::IndexPart| definition.columns.get(part.column.0);
    let distinct = |no: usize, sequence: usize| statistics.indexes.get(no)?.distinct.get(sequence).copied();
    let direction = |descending: bool| if descending { "D" } else { "A" }.to_string();
    let kind = |kind: IndexKind| if kind == IndexKind::BTree { "BTREE" } else { "OTHER" }.to_string();
    table(vec![
        ("Table", text(parts.iter().map(|_| Some(definition.name.clone())))),
        ("Non_unique", numbers(parts.iter().map(|(_, index, _, _)| Some(u64::from(!index.unique))))),
        ("Key_name", text(parts.iter().map(|(_, index, _, _)| Some(index.name.clone())))),
        ("Seq_in_index", numbers(parts.iter().map(|(_, _, sequence, _)| Some(*sequence as u64 + 1)))),
        (
            "Column_name",
            text(parts.iter().map(|(_, _, _, part)| column(part).map(|column| column.name.clone()))),
        ),
        ("Collation", text(parts.iter().map(|(_, _, _, part)| Some(direction(part.descending))))),
        ("Cardinality", numbers(parts.iter().map(|(no, _, sequence, _)| distinct(*no, *sequence)))),
        ("Sub_part_bytes", numbers(parts.iter().map(|(_, _, _, part)| part.prefix_bytes.map(u64::from)))),
        (
            "Null",
            text(
                parts.iter().map(|(_, _, _, part)| column(part).map(|column| yes_or_blank(column.nullable))),
            ),
        ),
        ("Index_type", text(parts.iter().map(|(_, index, _, _)| Some(kind(index.kind))))),
    ])
}

fn yes_or_blank(yes: bool) -> String {
    if yes { "YES" } else { "" }.to_string()
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
