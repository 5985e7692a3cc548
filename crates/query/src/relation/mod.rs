//! A table as operators see it: Arrow schema, statistics, sampled rows.

mod footprint;
mod sink;
pub mod types;
pub mod vector;
pub(crate) mod zero_date;

use std::collections::HashSet;
use std::ops::ControlFlow;
use std::sync::{Arc, OnceLock};

use datafusion::arrow::array::{Array, ArrayRef, new_null_array};
use datafusion::arrow::datatypes::{Field, Schema, SchemaRef};
use datafusion::arrow::record_batch::{RecordBatch, RecordBatchOptions};
use datafusion::arrow::row::{RowConverter, SortField};
use tanada_innodb::{ColumnNo, IndexNo, Table, TableDefinition, TableStatistics};
use tanada_io::{Executors, IoContext, Medium};
use tokio::sync::OnceCell;

use crate::columnar::definition_digest;
use crate::cost::{Calibrated, CostModel, IndexShape, RelationShape, calibration_of};
use crate::placement::TablePlaces;
use crate::settings::TanadaOptions;
use crate::{Error, ErrorKind, Result};
pub use footprint::{FileFootprint, RelationAccess};
pub use sink::ArrowSink;

/// Most rows kept in a sample.
pub const SAMPLE_ROWS: usize = 4096;

/// Leaf pages a sample is taken from.
const SAMPLE_PAGES: u32 = 16;

/// An open InnoDB table with what planning needs. Column `i` of [`InnodbRelation::schema`] is `ColumnNo(i)`: all
/// columns, virtual and invisible ones included.
#[derive(Debug)]
pub struct InnodbRelation {
    table: Arc<Table>,
    schema: SchemaRef,
    statistics: Arc<TableStatistics>,
    sample: RecordBatch,
    sampled: Vec<bool>,
    /// Distinct values in the sample, per column, counted when first asked for.
    sampled_distinct: Vec<OnceLock<Option<u64>>>,
    /// Where its indexes lie, once that was asked for.
    places: OnceCell<TablePlaces>,
    /// A hash of its definition, once that was asked for.
    definition_digest: OnceLock<String>,
}

impl InnodbRelation {
    /// Takes statistics and a sample of `table`: some dozen page reads at once, through `io`.
    pub async fn open(table: Arc<Table>, executors: &Executors, io: &IoContext) -> Result<InnodbRelation> {
        let schema = schema_of(table.definition());
        let io = io.clone();
        let opened = executors.spawn(move || async move {
            let statistics = table.statistics(&io).await?;
            let (sample, sampled) = take_sample(&table, &schema, &io).await?;
            let sampled_distinct = sampled.iter().map(|_| OnceLock::new()).collect();
            let (places, definition_digest) = (OnceCell::new(), OnceLock::new());
            Ok::<_, Error>(InnodbRelation {
                table,
                schema,
                statistics,
                sample,
                sampled,
                sampled_distinct,
                places,
                definition_digest,
            })
        });
        opened.await?
    }

    /// The table.
    pub fn table(&self) -> &Arc<Table> {
        &self.table
    }

    /// A hash of its definition.
    pub(crate) fn definition_digest(&self) -> &str {
        self.definition_digest.get_or_init(|| definition_digest(self.table.definition()))
    }

    /// Arrow fields of all columns, in SQL order.
    pub fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// Estimates from sampled pages.
    pub fn statistics(&self) -> &Arc<TableStatistics> {
        &self.statistics
    }

    /// Rows of some leaf pages spread over the table (at most [`SAMPLE_ROWS`]), with the fields of
    /// [`InnodbRelation::schema`], all nullable. Columns that are not sampled are NULL in all rows (virtual ones, large
    /// objects) or in those that have the value off-page: see [`InnodbRelation::sampled`].
    pub fn sample(&self) -> &RecordBatch {
        &self.sample
    }

    /// Whether column `column` has all its values in the sample.
    pub fn sampled(&self, column: usize) -> bool {
        self.sampled.get(column).copied().unwrap_or(false)
    }

    /// Distinct values of a column, estimated: by an index that begins with it, else by the sample.
    pub fn distinct(&self, column: usize) -> Option<u64> {
        let indexes = &self.table.definition().indexes;
        let by_index = indexes.iter().zip(&self.statistics.indexes).find_map(|(index, statistics)| {
            let first =
                index.parts.first().filter(|part| part.column.0 == column && part.prefix_bytes.is_none())?;
            if index.unique && index.parts.len() == 1 && !self.schema.field(first.column.0).is_nullable() {
                return Some(self.statistics.rows);
            }
            statistics.distinct.first().copied()
        });
        by_index
            .or_else(|| *self.sampled_distinct.get(column)?.get_or_init(|| self.distinct_in_sample(column)))
    }

    /// Scales what the sample has: as it is if values repeat there, else in proportion to the rows.
    fn distinct_in_sample(&self, column: usize) -> Option<u64> {
        let values = self.sample.column(column);
        let rows = values.len() as u64;
        if !self.sampled(column) || rows == 0 {
            return None;
        }
        let converter = RowConverter::new(vec![SortField::new(values.data_type().clone())]).ok()?;
        let encoded = converter.convert_columns(std::slice::from_ref(values)).ok()?;
        let distinct = encoded.iter().map(|row| row.data().to_vec()).collect::<HashSet<_>>().len() as u64;
        let repeats = distinct * 2 < rows;
        let scaled = u128::from(distinct) * u128::from(self.statistics.rows) / u128::from(rows);
        Some(if repeats { distinct } else { u64::try_from(scaled).unwrap_or(u64::MAX) })
    }

    /// Mean bytes of a column's values in memory, estimated.
    pub fn column_bytes(&self, column: usize) -> f64 {
        const UNSAMPLED_BYTES: f64 = 64.0;
        let values = self.sample.column(column);
        if !self.sampled(column) || values.is_empty() {
            return self
                .schema
                .field(column)
                .data_type()
                .primitive_width()
                .map_or(UNSAMPLED_BYTES, |width| width as f64);
        }
        values.get_array_memory_size() as f64 / values.len() as f64
    }

    /// What its first file lies on.
    pub fn medium(&self) -> Medium {
        self.table.spaces().first().map(|space| space.medium()).unwrap_or_default()
    }

    /// The cost model for what lies there, and where its figures are from.
    pub(crate) fn cost_model(&self, options: &TanadaOptions, cores: usize) -> (CostModel, Arc<Calibrated>) {
        let calibrated = calibration_of(&self.medium());
        let model = CostModel::new(calibrated.calibration.clone(), cores, options.io_depth);
        (if options.is_in_order() { model.in_order() } else { model }, calibrated)
    }

    /// Size of the table for the cost model.
    pub fn shape(&self) -> RelationShape {
        let space = self.table.spaces().first();
        let page_bytes = f64::from(space.map_or(16_384, |space| space.page_size().0));
        let held_bytes = f64::from(space.map_or(16_384, |space| space.logical_page_size().0));
        let cache_bytes = space.map_or(0, |space| space.cache().capacity_bytes());
        RelationShape {
            rows: self.statistics.rows as f64,
            page_bytes,
            cached_pages: cache_bytes as f64 / held_bytes,
            clustered: self.index_shape(IndexNo(0)),
        }
    }

    /// Size of an index for the cost model.
    pub fn index_shape(&self, index: IndexNo) -> IndexShape {
        match self.statistics.indexes.get(index.0) {
            Some(index) => IndexShape {
                height: f64::from(index.height),
                leaf_pages: index.leaf_pages as f64,
                contiguity: index.contiguity,
            },
            None => IndexShape { height: 1.0, leaf_pages: 1.0, contiguity: 0.0 },
        }
    }

    /// Whether column `column` is computed, not stored in the rows.
    pub fn is_virtual(&self, column: usize) -> bool {
        self.table.definition().columns.get(column).is_some_and(|column| column.virtual_expression.is_some())
    }
}

/// Arrow fields of all columns of a table.
pub fn schema_of(definition: &TableDefinition) -> SchemaRef {
    let field = |column| types::field(column, definition.server);
    Arc::new(Schema::new(definition.columns.iter().map(field).collect::<Vec<Field>>()))
}

/// Sampled rows under all fields, and which columns have all their values there.
async fn take_sample(table: &Table, schema: &SchemaRef, io: &IoContext) -> Result<(RecordBatch, Vec<bool>)> {
    let columns = &table.definition().columns;
    let mut sampled: Vec<bool> = columns
        .iter()
        .map(|column| column.virtual_expression.is_none() && !types::is_large(&column.column_type))
        .collect();
    let taken: Vec<usize> = (0..columns.len()).filter(|column| sampled[*column]).collect();
    let access =
        table.access(IndexNo(0), &taken.iter().map(|column| ColumnNo(*column)).collect::<Vec<_>>())?;
    // Off-page values are not fetched, so that a column which is never NULL may show it here.
    let fields: Vec<Field> =
        schema.fields().iter().map(|field| field.as_ref().clone().with_nullable(true)).collect();
    let nullable: SchemaRef = Arc::new(Schema::new(fields));
    let mut sink = ArrowSink::new(&nullable, &taken, true);
    let mut off_page = vec![false; taken.len()];
    table
        .sample(&access, SAMPLE_PAGES, io, &mut |row| {
            off_page.iter_mut().enumerate().for_each(|(slot, seen)| *seen |= row.is_off_page(slot));
            row.decode(&mut sink)?;
            sink.end_row();
            Ok(if sink.rows() < SAMPLE_ROWS { ControlFlow::Continue(()) } else { ControlFlow::Break(()) })
        })
        .await?;
    let rows = sink.rows();
    let batch = sink.finish()?;
    let mut values = batch.columns().iter();
    let arrays: Vec<ArrayRef> = schema
        .fields()
        .iter()
        .zip(&sampled)
        .map(|(field, sampled)| match sampled.then(|| values.next()).flatten() {
            Some(array) => Arc::clone(array),
            None => new_null_array(field.data_type(), rows),
        })
        .collect();
    let options = RecordBatchOptions::new().with_row_count(Some(rows));
    let sample = RecordBatch::try_new_with_options(nullable, arrays, &options).map_err(|error| {
        Error::new(ErrorKind::Internal, format!("sampled rows do not fit their columns: {error}"))
    })?;
    taken.iter().zip(off_page).filter(|(_, seen)| *seen).for_each(|(column, _)| sampled[*column] = false);
    Ok((sample, sampled))
}
