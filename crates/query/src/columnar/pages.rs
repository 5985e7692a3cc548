//! The rows of a table in the order of its pages, as batches: what mirrors are made of.

use std::ops::{Bound, ControlFlow};
use std::sync::Arc;

use datafusion::arrow::datatypes::SchemaRef;
use datafusion::arrow::record_batch::RecordBatch;
use futures::stream::{self, BoxStream};
use futures::{StreamExt, TryStreamExt};
use tanada_innodb::{Access, ColumnNo, IndexNo, KeyRange, LeafRun, Row, RowReceiver, Rows, Table};
use tanada_io::{Executors, IoContext};

use crate::Result;
use crate::relation::{ArrowSink, InnodbRelation};

/// Runs of leaves that one task decodes.
const RUNS_PER_TASK: usize = 4;
/// Rows of a batch, about.
const BATCH_ROWS: usize = 8192;
/// Bytes of a batch, about.
const BATCH_BYTES: usize = 4 << 20;

fn everything() -> KeyRange {
    KeyRange { lower: Bound::Unbounded, upper: Bound::Unbounded }
}

/// Collects rows as batches.
struct Collector {
    sink: ArrowSink,
    batches: Vec<RecordBatch>,
    failure: Option<crate::Error>,
}

impl Collector {
    fn cut_if_full(&mut self) -> ControlFlow<()> {
        if self.sink.rows() < BATCH_ROWS && self.sink.bytes() < BATCH_BYTES {
            return ControlFlow::Continue(());
        }
        self.cut()
    }

    fn cut(&mut self) -> ControlFlow<()> {
        match self.sink.finish() {
            Ok(batch) => {
                self.batches.push(batch);
                ControlFlow::Continue(())
            }
            Err(error) => {
                self.failure = Some(error);
                ControlFlow::Break(())
            }
        }
    }
}

impl RowReceiver for Collector {
    fn rows(&mut self, rows: &mut Rows<'_>) -> tanada_innodb::Result<ControlFlow<()>> {
        self.sink.extend(rows)?;
        Ok(self.cut_if_full())
    }

    fn row(&mut self, row: &Row<'_>) -> tanada_innodb::Result<ControlFlow<()>> {
        row.decode(&mut self.sink)?;
        self.sink.end_row();
        Ok(self.cut_if_full())
    }
}

/// All that decoding needs.
struct Decoder {
    table: Arc<Table>,
    access: Access,
    /// The relation's fields.
    schema: SchemaRef,
    columns: Vec<usize>,
    io: IoContext,
}

impl Decoder {
    async fn decode(&self, runs: &[LeafRun]) -> Result<Vec<RecordBatch>> {
        let sink = ArrowSink::new(&self.schema, &self.columns, true);
        let mut collector = Collector { sink, batches: Vec::new(), failure: None };
        let range = everything();
        for run in runs {
            let scan = self.table.scan_columns(&self.access, run, &range, &self.io, &mut collector);
            scan.await?;
            if let Some(failure) = collector.failure.take() {
                return Err(failure);
            }
        }
        if collector.sink.rows() > 0 && collector.cut().is_break() {
            return Err(collector.failure.take().unwrap_or_else(|| {
                crate::Error::new(crate::ErrorKind::Internal, "rows were not collected")
            }));
        }
        Ok(collector.batches)
    }
}

/// All rows of a relation with some of its columns, in the order of its pages. The same files give
/// the same rows in the same order. `before_each` is awaited before each read.
pub(crate) async fn everything_in_order<F: Future<Output = ()> + Send + 'static>(
    relation: &InnodbRelation,
    columns: &[usize],
    executors: &Arc<Executors>,
    io: &IoContext,
    before_each: impl Fn() -> F + Send + 'static,
) -> Result<BoxStream<'static, Result<RecordBatch>>> {
    let numbers: Vec<ColumnNo> = columns.iter().copied().map(ColumnNo).collect();
    let (table, schema) = (relation.table(), relation.schema());
    let access = table.access(IndexNo(0), &numbers)?;
    let (of, context) = (Arc::clone(table), io.clone());
    let runs = executors
        .spawn(move || async move { of.leaves(IndexNo(0), &everything(), &context).await })
        .await??;
    let decoder = Arc::new(Decoder {
        table: Arc::clone(table),
        access,
        schema: Arc::clone(schema),
        columns: columns.to_vec(),
        io: io.clone(),
    });
    let parts: Vec<Vec<LeafRun>> = runs.chunks(RUNS_PER_TASK).map(<[LeafRun]>::to_vec).collect();
    let in_flight = executors.threads() + 1;
    let executors = Arc::clone(executors);
    let decoded = stream::iter(parts)
        .then(move |runs| {
            let ready = before_each();
            async move {
                ready.await;
                runs
            }
        })
        .map(move |runs| {
            let decoder = Arc::clone(&decoder);
            let decoding = executors.spawn(move || async move { decoder.decode(&runs).await });
            async move { decoding.await? }
        })
        .buffered(in_flight);
    let batches =
        decoded.map_ok(|batches| stream::iter(batches.into_iter().map(Ok::<_, crate::Error>))).try_flatten();
    Ok(batches.boxed())
}
