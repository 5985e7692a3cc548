//! Rows of `information_schema`: values by the names of columns, of which a table has those of its server.

use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, StringArray};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::arrow::record_batch::RecordBatch;
use datafusion::common::Result;

/// A row. A column that it does not name is NULL.
#[derive(Debug, Clone, Default)]
pub(in crate::session) struct Row(Vec<(&'static str, String)>);

impl Row {
    /// The row with a value more.
    pub(super) fn with(mut self, column: &'static str, value: impl ToString) -> Row {
        self.0.push((column, value.to_string()));
        self
    }

    /// The row with a value more, if there is one.
    pub(in crate::session) fn maybe(self, column: &'static str, value: Option<impl ToString>) -> Row {
        match value {
            Some(value) => self.with(column, value),
            None => self,
        }
    }

    /// The value of a column as text.
    pub(in crate::session) fn value(&self, column: &str) -> Option<&str> {
        self.0.iter().find(|(name, _)| *name == column).map(|(_, value)| value.as_str())
    }
}

/// A batch of rows, whose fields have the values of `columns`.
pub(in crate::session) fn batch(schema: &SchemaRef, columns: &[String], rows: &[Row]) -> Result<RecordBatch> {
    let mut arrays: Vec<ArrayRef> = Vec::with_capacity(columns.len());
    for (field, column) in schema.fields().iter().zip(columns) {
        let texts: StringArray = rows.iter().map(|row| row.value(column)).collect();
        arrays.push(cast(&texts, field.data_type())?);
    }
    Ok(RecordBatch::try_new(Arc::clone(schema), arrays)?)
}
