//! The operator's stream: keeps a bounded window of outer rows in flight and hands on what comes.

use std::collections::HashSet;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll};

use datafusion::arrow::compute::concat_batches;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::arrow::record_batch::RecordBatch;
use datafusion::common::{DataFusionError, Result};
use datafusion::execution::{RecordBatchStream, SendableRecordBatchStream};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_plan::metrics::{BaselineMetrics, Count};
use futures::future::BoxFuture;
use futures::stream::FuturesUnordered;
use futures::{FutureExt, Stream, StreamExt};
use tokio::sync::mpsc;

use super::budget::Charge;
use super::chunk::{Chunk, ChunkContext, Ready};
use super::kind::Kind;
use super::outer::{Grouping, OuterBatch};
use super::source::LookupSource;
use crate::explain::IoMetrics;

/// Most groups of a chunk: enough to pay for a task, few enough to spread over executors.
const CHUNK_GROUPS: usize = 64;
/// Memory of a key with its place in a table, about.
const KEY_BYTES: usize = 64;
/// Outer rows that are not cut into fewer for lack of memory.
const LEAST_ROWS: usize = 16;
/// Output batches that may wait for the consumer.
const WAITING_BATCHES: usize = 16;

/// Metrics of one partition.
pub(super) struct LookupMetrics {
    pub(super) baseline: BaselineMetrics,
    pub(super) io: IoMetrics,
    /// Rows of the outer side.
    pub(super) outer_rows: Count,
    /// Keys looked up.
    pub(super) lookups: Count,
}

/// See the module.
pub(super) struct LookupStream<S: LookupSource> {
    schema: SchemaRef,
    keys: Vec<Arc<dyn PhysicalExpr>>,
    outer: SendableRecordBatchStream,
    outer_ended: bool,
    /// Outer rows that wait for memory.
    waiting: Option<RecordBatch>,
    /// The outer batch that is being cut into chunks.
    current: Option<Current<S>>,
    context: Arc<ChunkContext<S>>,
    running: FuturesUnordered<BoxFuture<'static, (usize, Result<()>)>>,
    /// Keys of earlier outer rows, where each is to be looked up once.
    seen: HashSet<S::Key>,
    /// Groups in flight.
    in_flight: usize,
    /// Most of them.
    window: usize,
    sender: mpsc::Sender<Ready>,
    receiver: mpsc::Receiver<Ready>,
    metrics: LookupMetrics,
    ended: bool,
}

struct Current<S: LookupSource> {
    outer: Arc<OuterBatch<S::Key>>,
    charge: Arc<Charge>,
    next: usize,
    chunk: usize,
}

impl<S: LookupSource> LookupStream<S> {
    pub(super) fn new(
        schema: SchemaRef,
        keys: Vec<Arc<dyn PhysicalExpr>>,
        outer: SendableRecordBatchStream,
        context: Arc<ChunkContext<S>>,
        matches_per_key: f64,
        metrics: LookupMetrics,
    ) -> LookupStream<S> {
        let (sender, receiver) = mpsc::channel(WAITING_BATCHES);
        let options = context.query.options();
        let window =
            if context.query.in_order() { 1 } else { window_groups(options.io_depth, matches_per_key) };
        LookupStream {
            schema,
            keys,
            outer,
            outer_ended: false,
            waiting: None,
            current: None,
            running: FuturesUnordered::new(),
            seen: HashSet::new(),
            in_flight: 0,
            window,
            sender,
            receiver,
            metrics,
            ended: false,
            context,
        }
    }

    /// Whether one more chunk may start. With nothing in flight one always may, or nothing would ever go on.
    fn room(&self) -> bool {
        self.running.is_empty() || (self.in_flight < self.window && self.context.share.has_room())
    }

    /// Starts chunks of the current outer batch while there is room; whether it started any.
    fn launch(&mut self) -> bool {
        let before = self.running.len();
        while self.room()
            && let Some(current) = &mut self.current
        {
            let end = current.outer.groups().min(current.next + current.chunk);
            let groups = end - current.next;
            let number = |no: usize| u32::try_from(no).unwrap_or(u32::MAX);
            let chunk = Chunk {
                context: Arc::clone(&self.context),
                outer: Arc::clone(&current.outer),
                charge: Arc::clone(&current.charge),
                groups: number(current.next)..number(end),
                hopeless: current.next == 0,
                sender: self.sender.clone(),
            };
            current.next = end;
            if end == current.outer.groups() {
                self.current = None;
            }
            let handle = self.context.query.executors().spawn(move || chunk.run());
            self.running.push(
                handle
                    .map(move |outcome| match outcome {
                        Ok(result) => (groups, result),
                        Err(error) => (groups, Err(DataFusionError::External(Box::new(error)))),
                    })
                    .boxed(),
            );
            self.in_flight += groups;
        }
        self.running.len() > before
    }

    /// Encodes the keys of an outer batch; `false` if it has to wait for memory. With nothing in flight it is halved
    /// until a part has room.
    fn prepare(&mut self, mut batch: RecordBatch) -> Result<bool> {
        let _timer = self.metrics.baseline.elapsed_compute().timer();
        let charge = loop {
            // Its columns, and per row a key with its place in the groups.
            let rows = batch.num_rows();
            match self.context.share.try_charge(batch.get_array_memory_size() + rows * KEY_BYTES) {
                Ok(charge) => break Arc::new(charge),
                Err(_) if !self.running.is_empty() => {
                    self.waiting = Some(joined_with(batch, self.waiting.take())?);
                    return Ok(false);
                }
                Err(error) if rows <= LEAST_ROWS => return Err(error),
                Err(_) => {
                    let rest = batch.slice(rows / 2, rows - rows / 2);
                    self.waiting = Some(joined_with(rest, self.waiting.take())?);
                    // Copied, so that it holds no more than its own rows.
                    batch = concat_batches(&batch.schema(), [&batch.slice(0, rows / 2)])?;
                }
            }
        };
        let rows = batch.num_rows();
        let mut values = Vec::with_capacity(self.keys.len());
        for key in &self.keys {
            values.push(key.evaluate(&batch)?.into_array(rows)?);
        }
        let found = self.context.source.keys(&values, rows)?;
        let in_order = self.context.query.in_order();
        let grouping = match self.context.assembly.kind {
            Kind::Found => Grouping::Once(&mut self.seen),
            _ if in_order => Grouping::Single,
            _ => Grouping::Shared,
        };
        let outer = OuterBatch::new(batch, values, found, grouping);
        if self.context.assembly.kind == Kind::Found {
            // Kept until the end, so not part of what is in flight.
            let bytes = outer.groups() * KEY_BYTES;
            self.context.share.reservation().try_grow(bytes)?;
        }
        self.metrics.outer_rows.add(rows);
        self.metrics.lookups.add(outer.groups());
        // Small batches are spread, too: several chunks for each executor, so that all end at about the same time.
        let spread = outer.groups().div_ceil(self.context.query.executors().threads() * 8);
        // In order a window of one group admits one chunk, and that runs its groups one after the other.
        let chunk = if in_order { CHUNK_GROUPS } else { spread.clamp(1, CHUNK_GROUPS) };
        self.current = Some(Current { outer: Arc::new(outer), charge, next: 0, chunk });
        Ok(true)
    }

    /// Takes outer batches in and starts their chunks, as far as there is room.
    fn advance(&mut self, cx: &mut Context<'_>) -> Result<()> {
        loop {
            while let Poll::Ready(Some((groups, result))) = self.running.poll_next_unpin(cx) {
                self.in_flight -= groups;
                result?;
            }
            if self.launch() {
                // What has just been started is polled once, so that its end wakes this task.
                continue;
            }
            if self.current.is_some() || !self.room() {
                return Ok(());
            }
            let batch = match self.waiting.take() {
                Some(batch) => batch,
                None if self.outer_ended => return Ok(()),
                None => match self.outer.poll_next_unpin(cx) {
                    Poll::Ready(Some(batch)) => batch?,
                    Poll::Ready(None) => {
                        self.outer_ended = true;
                        return Ok(());
                    }
                    Poll::Pending => return Ok(()),
                },
            };
            if batch.num_rows() > 0 && !self.prepare(batch)? {
                return Ok(());
            }
        }
    }

    /// Joins small batches that are there already into one.
    fn gather(&mut self, first: Ready, cx: &mut Context<'_>) -> Result<RecordBatch> {
        let target = self.context.batch_rows;
        let mut rows = first.batch.num_rows();
        let mut parts = vec![first];
        while rows < target / 2
            && let Poll::Ready(Some(ready)) = self.receiver.poll_recv(cx)
        {
            rows += ready.batch.num_rows();
            parts.push(ready);
        }
        match parts.as_slice() {
            [only] => Ok(only.batch.clone()),
            parts => Ok(concat_batches(&self.schema, parts.iter().map(|part| &part.batch))?),
        }
    }

    fn poll_batch(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<RecordBatch>>> {
        if self.ended {
            return Poll::Ready(None);
        }
        let outcome = match self.advance(cx) {
            Err(error) => Some(Err(error)),
            Ok(()) => match self.receiver.poll_recv(cx) {
                Poll::Ready(Some(ready)) => {
                    self.context.hungry.store(false, Ordering::Relaxed);
                    Some(self.gather(ready, cx))
                }
                // A receiver that has used up its turn says "pending" although batches wait.
                _ if self.finished() && self.receiver.is_empty() => None,
                _ => {
                    self.context.hungry.store(true, Ordering::Relaxed);
                    return Poll::Pending;
                }
            },
        };
        if !matches!(outcome, Some(Ok(_))) {
            self.ended = true;
            self.current = None;
            self.running = FuturesUnordered::new();
        }
        self.publish();
        Poll::Ready(outcome)
    }

    /// Whether nothing is left to be looked up.
    fn finished(&self) -> bool {
        self.outer_ended && self.running.is_empty() && self.current.is_none() && self.waiting.is_none()
    }

    fn publish(&self) {
        self.metrics.io.record(&self.context.io.counters().snapshot());
    }
}

impl<S: LookupSource> Stream for LookupStream<S> {
    type Item = Result<RecordBatch>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = self.get_mut();
        let polled = this.poll_batch(cx);
        this.metrics.baseline.record_poll(polled)
    }
}

impl<S: LookupSource> RecordBatchStream for LookupStream<S> {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }
}

/// A stream that is dropped early has cost I/O, too.
impl<S: LookupSource> Drop for LookupStream<S> {
    fn drop(&mut self) {
        self.publish();
    }
}

/// Rows, and behind them those that waited before.
fn joined_with(rows: RecordBatch, behind: Option<RecordBatch>) -> Result<RecordBatch> {
    Ok(match behind {
        Some(behind) => concat_batches(&rows.schema(), [&rows, &behind])?,
        None => rows,
    })
}

/// Outer rows in flight that keep `depth` I/Os busy: twice as many, since each chain is between two I/Os now and then.
/// An adaptive gate may go to a depth of about 512. A row with many matches is many I/Os, so there are fewer of them,
/// but not so few that a wrong estimate starves the device.
fn window_groups(depth: usize, matches_per_key: f64) -> usize {
    let most = if depth == 0 { 1_024 } else { depth.saturating_mul(2).clamp(CHUNK_GROUPS, 8_192) };
    let enough = (most as f64 * 4.0 / matches_per_key.max(1.0)) as usize;
    enough.clamp(most.min(256), most)
}

#[cfg(test)]
mod tests {
    use super::window_groups;

    #[test]
    fn the_window_follows_depth_and_matches() {
        assert_eq!(window_groups(0, 1.0), 1_024);
        assert_eq!(window_groups(0, 8.0), 512);
        assert_eq!(window_groups(0, 1e9), 256);
        assert_eq!(window_groups(1, 30.0), 64);
        assert_eq!(window_groups(1_024, 1.0), 2_048);
    }
}
