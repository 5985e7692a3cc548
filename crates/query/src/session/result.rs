//! A running statement.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use datafusion::arrow::datatypes::{Schema, SchemaRef};
use datafusion::arrow::record_batch::{RecordBatch, RecordBatchOptions};
use datafusion::execution::SendableRecordBatchStream;
use datafusion::physical_plan::display::DisplayableExecutionPlan;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{EmptyRecordBatchStream, ExecutionPlan};
use futures::StreamExt;
use parking_lot::Mutex;
use tanada_innodb::Loss;

use super::context::QueryContext;
use super::header;
use super::progress::QueryWatch;
use crate::Result;
use crate::columnar::Busy;
use crate::placement::Ending;
use crate::predict::{Prediction, predict};

/// What a statement cost.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct QueryReport {
    /// From `execute` to the end of the stream (or now).
    pub elapsed: Duration,
    /// Rows handed out.
    pub rows: u64,
    /// Device I/Os.
    pub ios: u64,
    /// Bytes read.
    pub bytes: u64,
    /// Pages found in the cache.
    pub cache_hits: u64,
    /// Mean I/Os in flight while at least one was.
    pub depth_mean: f64,
    /// Most I/Os in flight.
    pub depth_max: u64,
    /// What was left out because it is damaged (`tanada.skip_damaged`).
    pub lost: Vec<Loss>,
    /// What else whoever asked should know.
    pub warnings: Vec<String>,
    /// Warnings of conversions that the server gives, too; SHOW WARNINGS has their texts.
    pub noted: u64,
}

/// A running statement: its schema and batches, and what it cost so far.
pub struct QueryResult {
    stream: SendableRecordBatchStream,
    plan: Option<Arc<dyn ExecutionPlan>>,
    context: Arc<QueryContext>,
    clock: Arc<Clock>,
    /// While it runs, no mirrors are made.
    busy: Arc<Mutex<Option<Busy>>>,
    /// Behind the stream: whoever watches the query learns of its end when all of it was dropped.
    ending: Option<Ending>,
}

/// What the stream noted.
#[derive(Debug)]
pub(super) struct Clock {
    begun: Instant,
    ended: Mutex<Option<Instant>>,
    rows: AtomicU64,
}

impl Clock {
    /// From the beginning to the end of the stream, or to now.
    pub(super) fn elapsed(&self) -> Duration {
        self.ended.lock().unwrap_or_else(Instant::now).duration_since(self.begun)
    }

    /// The rows handed out, once they are all.
    pub(super) fn rows(&self) -> Option<u64> {
        self.ended.lock().map(|_| self.rows.load(Ordering::Relaxed))
    }
}

/// The schema with names as they are shown.
fn shown(schema: &SchemaRef) -> SchemaRef {
    if schema.fields().iter().all(|field| header::shown(field.name()) == field.name()) {
        return Arc::clone(schema);
    }
    let fields = schema.fields().iter().map(|field| {
        let name = header::shown(field.name()).to_string();
        field.as_ref().clone().with_name(name)
    });
    Arc::new(Schema::new_with_metadata(fields.collect::<Vec<_>>(), schema.metadata().clone()))
}

/// The batch under `schema`, which differs in names alone.
fn named(batch: RecordBatch, schema: &SchemaRef) -> datafusion::common::Result<RecordBatch> {
    let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    let (_, columns, _) = batch.into_parts();
    Ok(RecordBatch::try_new_with_options(Arc::clone(schema), columns, &options)?)
}

impl QueryResult {
    pub(super) fn new(
        stream: SendableRecordBatchStream,
        plan: Option<Arc<dyn ExecutionPlan>>,
        context: Arc<QueryContext>,
        begun: Instant,
    ) -> QueryResult {
        let clock = Arc::new(Clock { begun, ended: Mutex::default(), rows: AtomicU64::new(0) });
        let noted = Arc::clone(&clock);
        let schema = shown(&stream.schema());
        let end = Arc::clone(&clock);
        let busy = Arc::new(Mutex::new(context.columnar().map(|columnar| columnar.begin())));
        let over = Arc::clone(&busy);
        let renamed = (stream.schema() != schema).then(|| Arc::clone(&schema));
        let counted = stream
            .map(move |batch| match &renamed {
                Some(schema) => batch.and_then(|batch| named(batch, schema)),
                None => batch,
            })
            .inspect(move |batch| {
                if let Ok(batch) = batch {
                    noted.rows.fetch_add(batch.num_rows() as u64, Ordering::Relaxed);
                }
            })
            .chain(futures::stream::poll_fn(move |_| {
                end.ended.lock().get_or_insert_with(Instant::now);
                over.lock().take();
                std::task::Poll::Ready(None)
            }));
        let stream = Box::pin(RecordBatchStreamAdapter::new(schema, counted));
        QueryResult { stream, plan, context, clock, busy, ending: None }
    }

    /// Names the columns.
    pub(super) fn under(mut self, header: Option<Vec<String>>) -> QueryResult {
        let schema = self.stream.schema();
        let Some(header) = header.filter(|header| header.len() == schema.fields().len()) else {
            return self;
        };
        let fields = schema.fields().iter().zip(header);
        let fields = fields.map(|(field, name)| field.as_ref().clone().with_name(name));
        let schema: SchemaRef =
            Arc::new(Schema::new_with_metadata(fields.collect::<Vec<_>>(), schema.metadata().clone()));
        let none = Box::pin(EmptyRecordBatchStream::new(Arc::clone(&schema)));
        let stream = std::mem::replace(&mut self.stream, none);
        let renamed = Arc::clone(&schema);
        let stream = stream.map(move |batch| batch.and_then(|batch| named(batch, &renamed)));
        self.stream = Box::pin(RecordBatchStreamAdapter::new(schema, stream));
        self
    }

    /// Tells the query's watchers of its end.
    pub(super) fn ending_with(mut self, ending: Ending) -> QueryResult {
        let watched = Arc::clone(&ending.0);
        let schema = self.stream.schema();
        let none = Box::pin(EmptyRecordBatchStream::new(Arc::clone(&schema)));
        let stream = std::mem::replace(&mut self.stream, none);
        let told = stream.chain(futures::stream::poll_fn(move |_| {
            watched.end();
            std::task::Poll::Ready(None)
        }));
        self.stream = Box::pin(RecordBatchStreamAdapter::new(schema, told));
        self.ending = Some(ending);
        self
    }

    /// The same query with what `change` makes of its stream.
    pub(super) fn map_stream(
        mut self,
        change: impl FnOnce(SendableRecordBatchStream) -> SendableRecordBatchStream,
    ) -> QueryResult {
        let none = Box::pin(EmptyRecordBatchStream::new(self.stream.schema()));
        self.stream = change(std::mem::replace(&mut self.stream, none));
        self
    }

    /// What counts its rows.
    pub(super) fn clock(&self) -> Arc<Clock> {
        Arc::clone(&self.clock)
    }

    /// Columns of the result.
    pub fn schema(&self) -> SchemaRef {
        self.stream.schema()
    }

    /// The batches. Dropping the stream cancels the query and its I/O.
    pub fn stream(&mut self) -> &mut SendableRecordBatchStream {
        &mut self.stream
    }

    /// All batches at once.
    pub async fn collect(&mut self) -> Result<Vec<RecordBatch>> {
        let mut batches = Vec::new();
        while let Some(batch) = self.stream.next().await {
            batches.push(batch?);
        }
        Ok(batches)
    }

    /// Stops the query and its I/O; what it cost can still be asked for.
    pub fn cancel(&mut self) {
        self.stream = Box::pin(EmptyRecordBatchStream::new(self.schema()));
        self.clock.ended.lock().get_or_insert_with(Instant::now);
        self.busy.lock().take();
        self.ending = None;
    }

    /// Whoever holds it can ask how far the query is.
    pub fn watch(&self) -> QueryWatch {
        QueryWatch {
            plan: self.plan.clone(),
            context: Arc::clone(&self.context),
            clock: Arc::clone(&self.clock),
        }
    }

    /// What it cost until now.
    pub fn report(&self) -> QueryReport {
        let io = self.context.io().counters().snapshot();
        QueryReport {
            elapsed: self.clock.elapsed(),
            rows: self.clock.rows.load(Ordering::Relaxed),
            ios: io.ios,
            bytes: io.bytes,
            cache_hits: io.cache_hits,
            depth_mean: io.depth_mean,
            depth_max: io.depth_max,
            lost: self.context.lost(),
            warnings: self.context.warnings(),
            noted: self.context.noted().lock().count,
        }
    }

    /// The physical plan, for its metrics; none for statements without one.
    pub fn plan(&self) -> Option<&Arc<dyn ExecutionPlan>> {
        self.plan.as_ref()
    }

    /// What the cost model says of the plan, cold; `None` for statements without one.
    pub fn prediction(&self) -> Option<Prediction> {
        let cores = self.context.executors().threads();
        self.plan.as_ref().map(|plan| predict(plan, self.context.options(), cores))
    }

    /// The physical plan with metrics, as EXPLAIN ANALYZE prints it; empty for statements without a plan.
    pub fn analyzed_plan(&self) -> String {
        let shown = |plan: &Arc<dyn ExecutionPlan>| {
            DisplayableExecutionPlan::with_metrics(plan.as_ref()).indent(false).to_string()
        };
        self.plan.as_ref().map(shown).unwrap_or_default()
    }
}

impl std::fmt::Debug for QueryResult {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("QueryResult")
            .field("schema", &self.schema())
            .field("clock", &self.clock)
            .finish_non_exhaustive()
    }
}
