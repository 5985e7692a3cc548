//! Where look-ups find their rows.

use std::fmt::Debug;
use std::future::Future;
use std::hash::Hash;
use std::ops::ControlFlow;
use std::sync::Arc;

use datafusion::arrow::array::ArrayRef;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::arrow::record_batch::RecordBatch;
use datafusion::common::{DataFusionError, Result, ScalarValue};
use tanada_innodb::{Access, ColumnType, IndexNo, Key, Row};
use tanada_io::IoContext;

use super::key::{KeyColumn, narrowed, widens};
use crate::relation::{ArrowSink, InnodbRelation};
use crate::session::context::QueryContext;

/// Gathers found rows.
pub trait Gather: 'static {
    /// Whole rows since the last [`Gather::finish`].
    fn rows(&self) -> usize;
    /// Bytes held, about.
    fn bytes(&self) -> usize;
    /// The rows so far; it is empty again.
    fn finish(&mut self) -> Result<RecordBatch>;
}

/// Called for each found row with a function that adds the row to a sink; `Break` ends the look-up early.
pub type OnMatch<'a, S> = &'a mut dyn FnMut(
    &mut dyn FnMut(&mut S) -> tanada_innodb::Result<()>,
) -> tanada_innodb::Result<ControlFlow<()>>;

/// An index that can be searched by key, with the columns that are read through it.
pub trait LookupSource: Debug + Send + Sync + Sized + 'static {
    /// A key in searchable form.
    type Key: Clone + Eq + Hash + Send + Sync + Unpin + 'static;
    /// What rows are decoded into.
    type Sink: Gather;

    /// Fields of found rows.
    fn schema(&self) -> &SchemaRef;
    /// The same index with other columns: positions in [`LookupSource::schema`].
    fn with_columns(&self, columns: &[usize]) -> Result<Self>;
    /// Keys of `rows` rows whose key values are `columns`; `None` where nothing can match (NULL, or a value that the
    /// column cannot hold).
    fn keys(&self, columns: &[ArrayRef], rows: usize) -> Result<Vec<Option<Self::Key>>>;
    /// An empty sink.
    fn sink(&self, query: &QueryContext) -> Self::Sink;
    /// Hands out all rows with `key`, in any order. Runs on an executor's thread.
    fn lookup(
        &self,
        key: &Self::Key,
        io: &IoContext,
        on_match: OnMatch<'_, Self::Sink>,
    ) -> impl Future<Output = Result<()>>;
    /// Relation and index, for `EXPLAIN`.
    fn describe(&self) -> String;
}

/// Where the value of a key part comes from.
#[derive(Debug, Clone, PartialEq)]
pub enum KeyPart {
    /// The n-th key value of the outer row.
    Outer(usize),
    /// A constant that a predicate on the inner side asks for.
    Constant(ScalarValue),
}

/// An index of an InnoDB table.
#[derive(Debug, Clone)]
pub struct InnodbSource {
    relation: Arc<InnodbRelation>,
    access: Access,
    columns: Vec<usize>,
    parts: Vec<KeyPart>,
    schema: SchemaRef,
}

impl InnodbSource {
    /// Looks rows up by the first `parts.len()` parts of `index` and reads `columns` (positions in the relation's
    /// schema).
    pub fn new(
        relation: Arc<InnodbRelation>,
        index: IndexNo,
        parts: Vec<KeyPart>,
        columns: Vec<usize>,
    ) -> Result<InnodbSource> {
        let numbers: Vec<tanada_innodb::ColumnNo> =
            columns.iter().copied().map(tanada_innodb::ColumnNo).collect();
        let access = relation.table().access(index, &numbers).map_err(external)?;
        let schema = Arc::new(relation.schema().project(&columns)?);
        Ok(InnodbSource { relation, access, columns, parts, schema })
    }

    /// The relation.
    pub fn relation(&self) -> &Arc<InnodbRelation> {
        &self.relation
    }

    /// The index.
    pub fn index(&self) -> IndexNo {
        self.access.index()
    }

    /// Whether the index holds all columns, so that no bookmark is followed.
    pub fn covering(&self) -> bool {
        self.access.covering()
    }

    /// Columns read, as positions in the relation's schema.
    pub fn columns(&self) -> &[usize] {
        &self.columns
    }

    /// Values for a key part in the type of its column.
    fn as_stored(&self, part: usize, values: &ArrayRef) -> Result<ArrayRef> {
        let definition = self.relation.table().definition();
        let index = definition.indexes.get(self.access.index().0);
        let column = index.and_then(|index| index.parts.get(part)).map(|part| part.column.0);
        match column.and_then(|column| self.relation.schema().fields().get(column)) {
            Some(field)
                if field.data_type() != values.data_type()
                    && widens(field.data_type(), values.data_type()) =>
            {
                narrowed(values, field.data_type())
            }
            _ => Ok(Arc::clone(values)),
        }
    }

    fn column_type(&self, part: usize) -> Option<&ColumnType> {
        let definition = self.relation.table().definition();
        let index = definition.indexes.get(self.access.index().0)?;
        let column = index.parts.get(part)?.column;
        definition.columns.get(column.0).map(|column| &column.column_type)
    }
}

impl LookupSource for InnodbSource {
    type Key = Key;
    type Sink = ArrowSink;

    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn with_columns(&self, columns: &[usize]) -> Result<InnodbSource> {
        let missing =
            || DataFusionError::Internal("a look-up was asked for a column it does not have".to_string());
        let columns: Option<Vec<usize>> =
            columns.iter().map(|slot| self.columns.get(*slot).copied()).collect();
        let columns = columns.ok_or_else(missing)?;
        InnodbSource::new(Arc::clone(&self.relation), self.access.index(), self.parts.clone(), columns)
    }

    fn keys(&self, columns: &[ArrayRef], rows: usize) -> Result<Vec<Option<Key>>> {
        let mut constants = Vec::with_capacity(self.parts.len());
        for part in &self.parts {
            constants.push(match part {
                KeyPart::Constant(value) => Some(value.to_array()?),
                KeyPart::Outer(_) => None,
            });
        }
        let mut readers = Vec::with_capacity(self.parts.len());
        for (no, (part, constant)) in self.parts.iter().zip(&constants).enumerate() {
            let array = match (part, constant) {
                (KeyPart::Outer(column), _) => columns.get(*column),
                (KeyPart::Constant(_), array) => array.as_ref(),
            };
            let array =
                array.ok_or_else(|| DataFusionError::Internal("a look-up key lacks a value".to_string()))?;
            let array = self.as_stored(no, array)?;
            readers
                .push((KeyColumn::new(&array, self.column_type(no))?, matches!(part, KeyPart::Constant(_))));
        }
        let (table, index) = (self.relation.table(), self.access.index());
        let mut keys = Vec::with_capacity(rows);
        let mut values = Vec::with_capacity(readers.len());
        for row in 0..rows {
            values.clear();
            values.extend(
                readers.iter().map_while(|(reader, constant)| reader.value(if *constant { 0 } else { row })),
            );
            keys.push(match values.len() == readers.len() {
                true => table.key(index, &values).map_err(external)?,
                false => None,
            });
        }
        Ok(keys)
    }

    fn sink(&self, query: &QueryContext) -> ArrowSink {
        ArrowSink::new(self.relation.schema(), &self.columns, !query.orders_dates())
    }

    async fn lookup(&self, key: &Key, io: &IoContext, on_match: OnMatch<'_, ArrowSink>) -> Result<()> {
        let mut on_row = |row: &Row<'_>| {
            on_match(&mut |sink| {
                row.decode(sink)?;
                sink.end_row();
                Ok(())
            })
        };
        self.relation.table().lookup(&self.access, key, io, &mut on_row).await.map_err(external)
    }

    fn describe(&self) -> String {
        let definition = self.relation.table().definition();
        let index = definition.indexes.get(self.access.index().0).map_or("?", |index| index.name.as_str());
        let reads = if self.access.covering() { "" } else { " + rows" };
        format!("{}.{}{reads}", definition.name, index)
    }
}

impl Gather for ArrowSink {
    fn rows(&self) -> usize {
        ArrowSink::rows(self)
    }
    fn bytes(&self) -> usize {
        ArrowSink::bytes(self)
    }
    fn finish(&mut self) -> Result<RecordBatch> {
        ArrowSink::finish(self).map_err(external)
    }
}

fn external<E: std::error::Error + Send + Sync + 'static>(error: E) -> DataFusionError {
    DataFusionError::External(Box::new(error))
}
