//! Rows into batches: decoded, filtered, cut to size.

use std::collections::VecDeque;
use std::ops::ControlFlow;
use std::sync::Arc;

use datafusion::arrow::array::BooleanArray;
use datafusion::arrow::compute::{BatchCoalescer, filter_record_batch};
use datafusion::arrow::datatypes::{Schema, SchemaRef};
use datafusion::arrow::record_batch::{RecordBatch, RecordBatchOptions};
use datafusion::common::cast::as_boolean_array;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::common::{DataFusionError, Result};
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_expr::utils::collect_columns;
use datafusion::physical_expr::{PhysicalExpr, conjunction};
use tanada_innodb::{ColumnNo, Row, RowReceiver, Rows};

use super::prefilter::Prefilter;
use crate::collation::with_direct_comparisons;
use crate::relation::{ArrowSink, InnodbRelation};

/// A batch is cut, although it has fewer rows, after this many bytes for each of the rows that it may have.
const BYTES_PER_ROW: usize = 512;

/// What is decoded and what becomes of it.
#[derive(Debug)]
pub(super) struct Decoding {
    /// The relation's fields.
    relation_schema: SchemaRef,
    /// Table columns that are decoded: the output first, then what only predicates need.
    pub columns: Vec<usize>,
    /// Over the decoded columns.
    predicate: Option<Arc<dyn PhysicalExpr>>,
    /// What of the predicate is tested before a row is decoded.
    prefilter: Prefilter,
    /// Fields of the output.
    output: SchemaRef,
    /// Rows of a batch.
    batch_rows: usize,
}

impl Decoding {
    /// Decodes `projection` and applies `filters` (over the relation's schema), into batches of `batch_rows`.
    pub(super) fn new(
        relation: &InnodbRelation,
        projection: &[usize],
        filters: &[Arc<dyn PhysicalExpr>],
        batch_rows: usize,
    ) -> Result<Decoding> {
        let columns = decoded_columns(projection, filters);
        let moved = |filter: &Arc<dyn PhysicalExpr>| -> Result<Arc<dyn PhysicalExpr>> {
            Arc::clone(filter)
                .transform_up(|node| {
                    let Some(column) = node.downcast_ref::<Column>() else {
                        return Ok(Transformed::no(node));
                    };
                    let position = columns.iter().position(|decoded| *decoded == column.index());
                    let position = position
                        .ok_or_else(|| DataFusionError::Internal(format!("{column} is not decoded")))?;
                    Ok(Transformed::yes(
                        Arc::new(Column::new(column.name(), position)) as Arc<dyn PhysicalExpr>
                    ))
                })
                .data()
        };
        let filters = filters.iter().map(moved).collect::<Result<Vec<_>>>()?;
        let predicate = (!filters.is_empty()).then(|| conjunction(filters));
        let predicate = predicate.map(|all| with_direct_comparisons(all).data()).transpose()?;
        let prefilter = Prefilter::new(predicate.as_slice());
        let output = Arc::new(relation.schema().project(projection)?);
        let relation_schema = Arc::clone(relation.schema());
        Ok(Decoding { relation_schema, columns, predicate, prefilter, output, batch_rows })
    }

    /// What is tested before a row is decoded.
    pub(super) fn prefilter(&self) -> &Prefilter {
        &self.prefilter
    }

    /// Bytes after which a batch is cut.
    fn batch_bytes(&self) -> usize {
        self.batch_rows * BYTES_PER_ROW
    }

    /// The decoded columns as numbers of the table.
    pub(super) fn column_numbers(&self) -> Vec<ColumnNo> {
        self.columns.iter().copied().map(ColumnNo).collect()
    }
}

/// Columns that have to be read: the output first, then what only predicates need.
pub(crate) fn decoded_columns(projection: &[usize], filters: &[Arc<dyn PhysicalExpr>]) -> Vec<usize> {
    let mut columns = projection.to_vec();
    let mut more: Vec<usize> =
        filters.iter().flat_map(collect_columns).map(|column| column.index()).collect();
    more.sort_unstable();
    more.dedup();
    more.retain(|column| !projection.contains(column));
    columns.extend(more);
    columns
}

/// Takes rows, gives batches.
#[derive(Debug)]
pub(super) struct Gatherer {
    decoding: Arc<Decoding>,
    sink: ArrowSink,
    /// Joins what predicates leave of several batches; not needed without a predicate, not possible without columns.
    coalescer: Option<BatchCoalescer>,
    ready: VecDeque<RecordBatch>,
    failure: Option<DataFusionError>,
}

impl Gatherer {
    pub(super) fn new(decoding: Arc<Decoding>, takes_partial_dates: bool) -> Gatherer {
        let sink = ArrowSink::new(&decoding.relation_schema, &decoding.columns, takes_partial_dates);
        let joins = decoding.predicate.is_some() && !decoding.output.fields().is_empty();
        let coalescer = joins.then(|| BatchCoalescer::new(Arc::clone(&decoding.output), decoding.batch_rows));
        Gatherer { decoding, sink, coalescer, ready: VecDeque::new(), failure: None }
    }

    /// Takes a row. Breaks off after a failure, which [`Gatherer::next`] then gives.
    pub(super) fn on_row(&mut self, row: &Row<'_>) -> tanada_innodb::Result<ControlFlow<()>> {
        if !self.decoding.prefilter.passes(row)? {
            return Ok(ControlFlow::Continue(()));
        }
        row.decode(&mut self.sink)?;
        self.sink.end_row();
        let (rows, bytes) = (self.decoding.batch_rows, self.decoding.batch_bytes());
        Ok(self.cut_if(self.sink.rows() >= rows || self.sink.bytes() >= bytes))
    }

    fn on_rows(&mut self, rows: &mut Rows<'_>) -> tanada_innodb::Result<ControlFlow<()>> {
        self.decoding.prefilter.retain(rows)?;
        if self
            .cut_if(self.sink.rows() > 0 && self.sink.rows() + rows.len() > self.decoding.batch_rows)
            .is_break()
        {
            return Ok(ControlFlow::Break(()));
        }
        self.sink.extend(rows)?;
        Ok(self.cut_if(self.sink.bytes() >= self.decoding.batch_bytes()))
    }

    fn cut_if(&mut self, is_full: bool) -> ControlFlow<()> {
        if is_full && let Err(error) = self.cut() {
            self.failure = Some(error);
            return ControlFlow::Break(());
        }
        ControlFlow::Continue(())
    }

    /// The next batch that is ready.
    pub(super) fn next(&mut self) -> Result<Option<RecordBatch>> {
        match self.failure.take() {
            Some(error) => Err(error),
            None => Ok(self.ready.pop_front()),
        }
    }

    /// Makes the rest ready.
    pub(super) fn finish(&mut self) -> Result<()> {
        if self.sink.rows() > 0 {
            self.cut()?;
        }
        if let Some(coalescer) = &mut self.coalescer {
            coalescer.finish_buffered_batch()?;
            self.ready.extend(std::iter::from_fn(|| coalescer.next_completed_batch()));
        }
        Ok(())
    }

    /// Filters what the sink holds.
    fn cut(&mut self) -> Result<()> {
        let batch = self.sink.finish()?;
        self.filter(batch)
    }

    /// Takes rows whose columns are decoded, in the order of [`Decoding::columns`]. Those that the prefilter drops may
    /// be among them if `is_tested` is false.
    pub(super) fn on_batch(&mut self, batch: RecordBatch, is_tested: bool) -> Result<()> {
        let columns = batch.columns();
        let mask = match is_tested {
            true => None,
            false => self.decoding.prefilter.mask(batch.num_rows(), |slot| columns.get(slot))?,
        };
        let batch = match mask {
            Some(mask) => filter_record_batch(&batch, &BooleanArray::new(mask, None))?,
            None => batch,
        };
        let most = self.decoding.batch_rows.max(1);
        for start in (0..batch.num_rows()).step_by(most) {
            let rows = most.min(batch.num_rows() - start);
            self.filter(batch.slice(start, rows))?;
        }
        Ok(())
    }

    /// Fields of the decoded columns.
    pub(super) fn decoded_schema(&self) -> &SchemaRef {
        self.sink.schema()
    }

    /// Filters rows whose columns are decoded.
    fn filter(&mut self, batch: RecordBatch) -> Result<()> {
        let Some(predicate) = &self.decoding.predicate else {
            self.ready.push_back(batch);
            return Ok(());
        };
        let result = predicate.evaluate(&batch)?.into_array(batch.num_rows())?;
        let mask = as_boolean_array(&result)?;
        let output: Vec<usize> = (0..self.decoding.output.fields().len()).collect();
        match &mut self.coalescer {
            Some(coalescer) => {
                let projected = batch.project(&output)?.with_schema(Arc::clone(&self.decoding.output))?;
                coalescer.push_batch_with_filter(projected, mask)?;
                self.ready.extend(std::iter::from_fn(|| coalescer.next_completed_batch()));
            }
            None => {
                let options = RecordBatchOptions::new().with_row_count(Some(mask.true_count()));
                self.ready.push_back(RecordBatch::try_new_with_options(
                    Arc::new(Schema::empty()),
                    vec![],
                    &options,
                )?);
            }
        }
        Ok(())
    }
}

impl RowReceiver for Gatherer {
    fn rows(&mut self, rows: &mut Rows<'_>) -> tanada_innodb::Result<ControlFlow<()>> {
        self.on_rows(rows)
    }

    fn row(&mut self, row: &Row<'_>) -> tanada_innodb::Result<ControlFlow<()>> {
        self.on_row(row)
    }
}
