//! A chunk: some groups of an outer batch, looked up concurrently by one task on an executor.

use std::cell::RefCell;
use std::future::Future;
use std::ops::{ControlFlow, Range};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Poll;

use datafusion::arrow::record_batch::RecordBatch;
use datafusion::common::{DataFusionError, Result};
use datafusion::physical_plan::metrics::{Count, Time};
use futures::StreamExt;
use tanada_io::IoContext;
use tokio::sync::mpsc;

use super::assembly::Assembly;
use super::budget::{Charge, Share};
use super::compaction::compacted;
use super::kind::Kind;
use super::outer::OuterBatch;
use super::source::{Gather, LookupSource};
use crate::session::context::QueryContext;

/// Rows that are worth a batch of their own while the consumer has nothing to do.
const HUNGRY_ROWS: usize = 128;
/// Bytes that are handed on whatever their number of rows.
const FULL_BYTES: usize = 1 << 20;

/// An output batch on its way to the stream.
#[derive(Debug)]
pub(super) struct Ready {
    pub(super) batch: RecordBatch,
    _charge: Charge,
}

/// What all chunks of a stream share.
#[derive(Debug)]
pub(super) struct ChunkContext<S: LookupSource> {
    pub(super) source: Arc<S>,
    pub(super) assembly: Arc<Assembly>,
    pub(super) query: Arc<QueryContext>,
    pub(super) io: IoContext,
    /// Whether the consumer waits.
    pub(super) hungry: AtomicBool,
    pub(super) share: Arc<Share>,
    pub(super) batch_rows: usize,
    /// CPU time of the chunks.
    pub(super) compute: Time,
    /// Rows found by the look-ups, before predicates.
    pub(super) found: Count,
}

/// A chunk to be run.
pub(super) struct Chunk<S: LookupSource> {
    pub(super) context: Arc<ChunkContext<S>>,
    pub(super) outer: Arc<OuterBatch<S::Key>>,
    /// Kept until the chunk ends: the memory of the outer batch.
    pub(super) charge: Arc<Charge>,
    pub(super) groups: Range<u32>,
    /// Whether this chunk also answers for rows that can match nothing (one chunk of each batch does).
    pub(super) hopeless: bool,
    pub(super) sender: mpsc::Sender<Ready>,
}

/// What a chunk has found and not yet handed on.
struct Gathered<'a, S: LookupSource> {
    context: &'a ChunkContext<S>,
    outer: &'a OuterBatch<S::Key>,
    sink: S::Sink,
    /// The group of each row in the sink.
    groups: Vec<u32>,
    /// Groups whose look-up has ended since the last flush.
    ended: Vec<u32>,
    /// Outer rows that have matched; empty if nothing asks.
    matched: Vec<bool>,
    ready: Vec<Ready>,
    failed: Option<DataFusionError>,
}

impl<S: LookupSource> Chunk<S> {
    /// Looks all groups up and sends what they give. Ends early if nobody receives any more.
    pub(super) async fn run(self) -> Result<()> {
        let context = Arc::clone(&self.context);
        timed(self.work(), context.compute.clone()).await
    }

    async fn work(self) -> Result<()> {
        let _held = &self.charge;
        let gathered = RefCell::new(Gathered::new(&self.context, &self.outer));
        if self.hopeless {
            gathered.borrow_mut().give_up()?;
            send(&self.sender, &gathered).await;
        }
        let at_once = if self.context.query.in_order() { 1 } else { self.groups.len().max(1) };
        let mut chains = pin!(
            futures::stream::iter(self.groups.clone())
                .map(|group| self.chain(group, &gathered))
                .buffer_unordered(at_once)
        );
        while let Some(group) = chains.next().await {
            gathered.borrow_mut().end(group?)?;
            if !send(&self.sender, &gathered).await {
                return Ok(());
            }
        }
        gathered.borrow_mut().flush()?;
        send(&self.sender, &gathered).await;
        Ok(())
    }

    /// The chain of one group; gives the group back.
    async fn chain(&self, group: u32, gathered: &RefCell<Gathered<'_, S>>) -> Result<u32> {
        let key = self.outer.keys.get(group as usize);
        let key = key.ok_or_else(|| DataFusionError::Internal("a look-up lacks its key".to_string()))?;
        let only_existence = self.context.assembly.decided_by_existence();
        let mut on_match = |decode: &mut dyn FnMut(&mut S::Sink) -> tanada_innodb::Result<()>| {
            let mut gathered = gathered.borrow_mut();
            decode(&mut gathered.sink)?;
            gathered.groups.push(group);
            if gathered.full()
                && let Err(error) = gathered.flush()
            {
                gathered.failed = Some(error);
                return Ok(ControlFlow::Break(()));
            }
            Ok(if only_existence { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
        };
        self.context.source.lookup(key, &self.context.io, &mut on_match).await?;
        match gathered.borrow_mut().failed.take() {
            Some(error) => Err(error),
            None => Ok(group),
        }
    }
}

impl<'a, S: LookupSource> Gathered<'a, S> {
    fn new(context: &'a ChunkContext<S>, outer: &'a OuterBatch<S::Key>) -> Self {
        let marks = if context.assembly.kind.marks() { outer.batch.num_rows() } else { 0 };
        Gathered {
            context,
            outer,
            sink: context.source.sink(&context.query),
            groups: Vec::new(),
            ended: Vec::new(),
            matched: vec![false; marks],
            ready: Vec::new(),
            failed: None,
        }
    }

    fn full(&self) -> bool {
        self.groups.len() >= self.context.batch_rows || self.sink.bytes() >= FULL_BYTES
    }

    /// Notes that a group's look-up has ended; hands rows on if somebody waits for them.
    fn end(&mut self, group: u32) -> Result<()> {
        self.ended.push(group);
        let rows =
            self.groups.len().max(if self.context.assembly.kind.marks() { self.ended.len() } else { 0 });
        if rows >= HUNGRY_ROWS && self.context.hungry.load(Ordering::Relaxed) {
            self.flush()?;
        }
        Ok(())
    }

    /// Rows without a key that can match are unmatched from the start.
    fn give_up(&mut self) -> Result<()> {
        if !self.context.assembly.kind.waits() || self.outer.hopeless.is_empty() {
            return Ok(());
        }
        let batch = self.context.assembly.alone(self.outer, self.outer.hopeless.clone(), |_| false)?;
        self.push(batch)
    }

    /// Turns what has been gathered into output.
    fn flush(&mut self) -> Result<()> {
        let assembly = &self.context.assembly;
        let groups = std::mem::take(&mut self.groups);
        if !groups.is_empty() {
            self.context.found.add(groups.len());
            let found = self.sink.finish()?;
            let pairs = assembly.pairs(self.outer, &groups, found)?;
            let fresh = self.mark(pairs.outer.values());
            if assembly.kind.joins() {
                self.push(assembly.joined(self.outer, &pairs)?)?;
            } else if assembly.kind == Kind::Semi {
                self.push(assembly.alone(self.outer, fresh, |_| true)?)?;
            }
            // The vector is used again: its room has proved useful.
            self.groups = groups;
            self.groups.clear();
        }
        self.settle()
    }

    /// Marks outer rows as matched; gives those that were not before.
    fn mark(&mut self, rows: &[u32]) -> Vec<u32> {
        if self.matched.is_empty() {
            return Vec::new();
        }
        let mut fresh = Vec::new();
        for row in rows {
            if let Some(matched) = self.matched.get_mut(*row as usize)
                && !std::mem::replace(matched, true)
            {
                fresh.push(*row);
            }
        }
        fresh
    }

    /// Hands on outer rows of ended groups that wait for their verdict. All their pairs have been through
    /// [`Self::flush`].
    fn settle(&mut self) -> Result<()> {
        let ended = std::mem::take(&mut self.ended);
        let kind = self.context.assembly.kind;
        if !kind.waits() || ended.is_empty() {
            return Ok(());
        }
        let matched = |row: u32| self.matched.get(row as usize).copied().unwrap_or(false);
        let rows = ended.iter().flat_map(|group| self.outer.rows(*group));
        let rows: Vec<u32> = rows.filter(|row| kind == Kind::Mark || !matched(*row)).collect();
        let batch = self.context.assembly.alone(self.outer, rows, matched)?;
        self.push(batch)
    }

    fn push(&mut self, batch: RecordBatch) -> Result<()> {
        if batch.num_rows() > 0 {
            let batch = compacted(batch)?;
            let charge = self.context.share.charge(batch.get_array_memory_size());
            self.ready.push(Ready { batch, _charge: charge });
        }
        Ok(())
    }
}

/// Sends what is ready; false if nobody receives.
async fn send<S: LookupSource>(sender: &mpsc::Sender<Ready>, gathered: &RefCell<Gathered<'_, S>>) -> bool {
    let ready = std::mem::take(&mut gathered.borrow_mut().ready);
    for batch in ready {
        if sender.send(batch).await.is_err() {
            return false;
        }
    }
    true
}

/// Runs a future and adds the time its polls take to `time`.
async fn timed<F: Future>(future: F, time: Time) -> F::Output {
    let mut future = pin!(future);
    std::future::poll_fn(|cx| {
        let _timer = time.timer();
        match future.as_mut().poll(cx) {
            Poll::Ready(output) => Poll::Ready(output),
            Poll::Pending => Poll::Pending,
        }
    })
    .await
}
