//! A scan that runs: tasks on the executors' threads read, decode and filter; batches go through one bounded channel to
//! all partitions.
//!
//! 1. The driver finds the leaf runs of all ranges and puts them into one queue; keys of look-ups are a queue as they
//!    are.
//! 2. Each executor has a few readers, each of which takes the next piece of work, whoever was first. So no executor
//!    idles while there is work.
//! 3. Full batches are sent; a full channel suspends the reader, so memory is bounded.
//! 4. The streams share the receiving end. When the last of them is dropped, the driver's handle goes with it, and so
//!    do all tasks.
//!
//! In order there is one reader on one executor with one piece of work in hand.
//!
//! Invariant: `finished` is set only after every reader has sent all it had; a stream that ends without it reports an
//! error.

use std::cell::RefCell;
use std::future::Future;
use std::ops::Bound;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::Instant;

use async_channel::{Receiver, Sender};
use datafusion::arrow::record_batch::RecordBatch;
use datafusion::common::{DataFusionError, Result};
use datafusion::physical_plan::metrics::Time;
use futures::StreamExt;
use futures::stream::FuturesUnordered;
use parking_lot::Mutex;
use tanada_innodb::{Access, IndexNo, Key, KeyRange, LeafRun, Table};
use tanada_io::{IoContext, JoinHandle};

use super::advance::Advance;
use super::gather::{Decoding, Gatherer};
use super::mirrors::{self, Damaged, Outcome};
use super::path::{AccessPath, everything};
use crate::columnar::MirroredColumns;
use crate::explain::IoMetrics;
use crate::relation::InnodbRelation;
use crate::session::context::QueryContext;

/// Runs in hand per executor: reads of up to 1 MiB each.
const RUNS_IN_HAND: usize = 8;
/// Groups of rows of mirrors in hand per executor: one is decoded while others are read.
const GROUPS_IN_HAND: usize = 2;
/// Single rows in hand per reader.
const FETCHES_IN_HAND: usize = 256;
/// Readers per executor that fetch single rows: one gathers bookmarks while another waits for rows.
const FETCHERS: usize = 2;
/// Batches that wait for a stream.
const BATCHES_WAITING: usize = 8;
/// Priority of reading single rows; runs of leaves, which make such work, have less.
const FETCH_PRIORITY: u8 = 1;

/// What a scan needs to run.
#[derive(Debug)]
pub(super) struct ScanTask {
    pub table: Arc<Table>,
    pub path: AccessPath,
    pub decoding: Arc<Decoding>,
    pub limit: Option<usize>,
    pub query: Arc<QueryContext>,
    /// CPU time of reading, decoding and filtering.
    pub compute: Time,
    /// How far the scan is.
    pub advance: Arc<Advance>,
    /// The relation, whose columns may be wanted as mirrors.
    pub relation: Arc<InnodbRelation>,
}

/// A scan under way. Dropping it cancels.
#[derive(Debug)]
pub(super) struct Running {
    receiver: Receiver<Result<RecordBatch>>,
    advance: Arc<Advance>,
    finished: Arc<AtomicBool>,
    scans: IoContext,
    metrics: IoMetrics,
    _driver: JoinHandle<()>,
}

impl Running {
    pub(super) fn start(task: ScanTask, metrics: IoMetrics) -> Arc<Running> {
        let (sender, receiver) = async_channel::bounded(BATCHES_WAITING);
        let advance = Arc::clone(&task.advance);
        let finished = Arc::new(AtomicBool::new(false));
        let scans = task.query.io().for_operator(0);
        let fetches = scans.for_operator(FETCH_PRIORITY);
        let shared = Arc::new(Shared {
            queue: AtomicUsize::new(0),
            remaining: AtomicUsize::new(task.limit.unwrap_or(usize::MAX)),
            sender,
            damaged: Mutex::default(),
            scans: scans.clone(),
            fetches,
            task,
        });
        let executors = Arc::clone(shared.task.query.executors());
        let done = Arc::clone(&finished);
        let driver = executors.spawn(move || async move {
            if let Err(error) = drive(&shared).await {
                // Nobody is left to hear it if this fails.
                let _ = shared.sender.send(Err(error)).await;
            }
            done.store(true, Ordering::Release);
            shared.sender.close();
        });
        Arc::new(Running { receiver, advance, finished, scans, metrics, _driver: driver })
    }

    /// The next batch; `None` at the end.
    pub(super) async fn next(&self) -> Option<Result<RecordBatch>> {
        match self.receiver.recv().await {
            Ok(batch) => {
                self.advance.taken(batch.as_ref().map_or(0, RecordBatch::num_rows));
                Some(batch)
            }
            Err(_) => {
                self.metrics.record(&self.scans.counters().snapshot());
                let whole = self.finished.load(Ordering::Acquire);
                (!whole)
                    .then(|| Err(DataFusionError::Internal("a scan broke off before its end".to_string())))
            }
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.metrics.record(&self.scans.counters().snapshot());
    }
}

/// What all readers of a scan share.
#[derive(Debug)]
struct Shared {
    task: ScanTask,
    /// The next piece of work.
    queue: AtomicUsize,
    /// Rows still wanted.
    remaining: AtomicUsize,
    sender: Sender<Result<RecordBatch>>,
    /// Groups of rows whose mirrors are damaged.
    damaged: Mutex<Vec<usize>>,
    scans: IoContext,
    fetches: IoContext,
}

/// Pieces of work, taken in order of their numbers.
#[derive(Debug)]
enum Work {
    /// Rows of leaf runs in a range.
    Scan { access: Access, ranges: Vec<KeyRange>, runs: Vec<(usize, LeafRun)> },
    /// Rows that the bookmarks in leaf runs point to.
    Bookmarks { index: IndexNo, access: Access, ranges: Vec<KeyRange>, runs: Vec<(usize, LeafRun)> },
    /// Rows of keys.
    Lookups { access: Access, keys: Vec<Key> },
    /// Groups of rows of mirrors.
    Mirrors { mirrors: Arc<MirroredColumns>, groups: Vec<usize> },
}

async fn drive(shared: &Arc<Shared>) -> Result<()> {
    let begun = Instant::now();
    let work = Arc::new(Timed::new(plan(shared), &shared.task.compute).await?);
    shared.task.advance.begin(work.pieces());
    let in_order = shared.task.query.keeps_order();
    let executors = shared.task.query.executors();
    let workers = if in_order { 1 } else { executors.threads().min(work.pieces()).max(1) };
    let handles: Vec<_> = (0..workers)
        .map(|no| {
            let (shared, work) = (Arc::clone(shared), Arc::clone(&work));
            executors.spawn_on(no, move || async move {
                let result = Timed::new(worker(&shared, &work), &shared.task.compute).await;
                if result.is_err() {
                    // The others need not go on.
                    shared.remaining.store(0, Ordering::Relaxed);
                }
                result
            })
        })
        .collect();
    for handle in handles {
        handle.await.map_err(crate::Error::from)??;
    }
    let task = &shared.task;
    if let Work::Mirrors { mirrors, .. } = &*work {
        return shared.read_damaged(mirrors).await;
    }
    let is_whole = work.is_whole(&task.path) && shared.remaining.load(Ordering::Relaxed) > 0;
    if let Some(columnar) = task.query.columnar().filter(|_| is_whole) {
        columnar.scanned(&task.relation, &task.decoding.columns, begun.elapsed());
    }
    Ok(())
}

/// Compiles the access and finds the pieces of work.
async fn plan(shared: &Shared) -> Result<Work> {
    let ScanTask { table, path, decoding, .. } = &shared.task;
    let columns = decoding.column_numbers();
    let access = |index: IndexNo| table.access(index, &columns).map_err(crate::Error::from);
    Ok(match path {
        AccessPath::FullScan => scan_of(shared, access(IndexNo(0))?, vec![everything()]).await?,
        AccessPath::ClusteredRange { ranges } => scan_of(shared, access(IndexNo(0))?, ranges.clone()).await?,
        AccessPath::IndexOnly { index, ranges } => scan_of(shared, access(*index)?, ranges.clone()).await?,
        AccessPath::Bookmarks { index, ranges } => {
            let runs = leaf_runs(shared, *index, ranges).await?;
            Work::Bookmarks { index: *index, access: access(IndexNo(0))?, ranges: ranges.clone(), runs }
        }
        AccessPath::Lookups { index, keys } => Work::Lookups { access: access(*index)?, keys: keys.clone() },
        AccessPath::Mirrors(mirrors) => match mirrors.check_current(&shared.task.relation) {
            Ok(()) => {
                let groups = mirrors::groups(mirrors, decoding.prefilter());
                Work::Mirrors { mirrors: Arc::clone(mirrors), groups }
            }
            // Since the query was planned.
            Err(_) => scan_of(shared, access(IndexNo(0))?, vec![everything()]).await?,
        },
    })
}

async fn scan_of(shared: &Shared, access: Access, ranges: Vec<KeyRange>) -> Result<Work> {
    let runs = leaf_runs(shared, access.index(), &ranges).await?;
    Ok(Work::Scan { access, ranges, runs })
}

async fn leaf_runs(shared: &Shared, index: IndexNo, ranges: &[KeyRange]) -> Result<Vec<(usize, LeafRun)>> {
    let table = &shared.task.table;
    let found = ranges.iter().enumerate().map(async |(no, range)| {
        let runs = match shared.task.query.losses() {
            // Nothing but whole scans is planned where damage is stepped over.
            Some(losses) => table.sound_leaves(index, losses, &shared.scans).await,
            None => table.leaves(index, range, &shared.scans).await,
        };
        let runs = runs.map_err(crate::Error::from)?;
        Ok::<_, DataFusionError>(runs.into_iter().map(|run| (no, run)).collect::<Vec<_>>())
    });
    let in_hand = if shared.task.query.in_order() { 1 } else { FETCHES_IN_HAND };
    let all: Vec<Result<Vec<(usize, LeafRun)>>> =
        futures::stream::iter(found).buffered(in_hand).collect().await;
    Ok(all.into_iter().collect::<Result<Vec<_>>>()?.into_iter().flatten().collect())
}

impl Work {
    fn pieces(&self) -> usize {
        match self {
            Work::Scan { runs, .. } | Work::Bookmarks { runs, .. } => runs.len(),
            Work::Lookups { keys, .. } => keys.len(),
            Work::Mirrors { groups, .. } => groups.len(),
        }
    }

    /// Whether it reads the pages of all rows.
    fn is_whole(&self, path: &AccessPath) -> bool {
        match (self, path) {
            (Work::Scan { .. }, AccessPath::FullScan | AccessPath::Mirrors(_)) => true,
            (Work::Scan { ranges, .. }, AccessPath::IndexOnly { .. }) => {
                matches!(ranges.as_slice(), [KeyRange { lower: Bound::Unbounded, upper: Bound::Unbounded }])
            }
            _ => false,
        }
    }
}

/// All readers of one executor.
async fn worker(shared: &Shared, work: &Work) -> Result<()> {
    let in_order = shared.task.query.keeps_order();
    let readers = match work {
        _ if in_order => 1,
        Work::Scan { .. } => RUNS_IN_HAND,
        Work::Bookmarks { .. } => FETCHERS,
        Work::Lookups { .. } => 1,
        Work::Mirrors { .. } => GROUPS_IN_HAND,
    };
    let mut readers: FuturesUnordered<_> =
        (0..readers.min(work.pieces().max(1))).map(|_| reader(shared, work)).collect();
    while let Some(result) = readers.next().await {
        result?;
    }
    Ok(())
}

/// Takes pieces of work until there are none, or enough rows.
async fn reader(shared: &Shared, work: &Work) -> Result<()> {
    let task = &shared.task;
    let gatherer = Gatherer::new(Arc::clone(&task.decoding), !task.query.orders_dates());
    let mut gatherer = RefCell::new(gatherer);
    match work {
        Work::Scan { access, ranges, runs } => {
            while let Some((range, run)) = shared.take(runs) {
                match task.query.losses() {
                    Some(losses) => {
                        let mut on_row = |row: &tanada_innodb::Row<'_>| gatherer.borrow_mut().on_row(row);
                        let scan = task.table.scan_sound(access, run, losses, &shared.scans, &mut on_row);
                        scan.await.map_err(crate::Error::from)?;
                    }
                    None => {
                        let range = &ranges[*range];
                        let scan =
                            task.table.scan_columns(access, run, range, &shared.scans, gatherer.get_mut());
                        scan.await.map_err(crate::Error::from)?;
                    }
                }
                if shared.sender.is_empty() {
                    // Somebody waits: behind a selective predicate a full batch would come only at the end.
                    gatherer.borrow_mut().finish()?;
                }
                if !shared.flush(&gatherer).await? {
                    return Ok(());
                }
                task.advance.piece_done();
            }
        }
        Work::Bookmarks { index, access, ranges, runs } => {
            while let Some((range, run)) = shared.take(runs) {
                let bookmarks = task.table.bookmarks(*index, run, &ranges[*range], &shared.scans).await;
                let mut bookmarks = bookmarks.map_err(crate::Error::from)?;
                // Rows of one page are so fetched one after the other, and neighbouring pages at about the same time.
                bookmarks.sort_unstable_by(|a, b| a.place().cmp(&b.place()));
                let fetches = bookmarks.iter().map(async |bookmark| {
                    let mut on_row = |row: &tanada_innodb::Row<'_>| gatherer.borrow_mut().on_row(row);
                    let fetch = task.table.fetch(access, bookmark, &shared.fetches, &mut on_row);
                    fetch.await.map_err(crate::Error::from)?;
                    shared.flush(&gatherer).await
                });
                if !shared.all(fetches).await? {
                    return Ok(());
                }
                task.advance.piece_done();
            }
        }
        Work::Lookups { access, keys } => {
            let lookups = std::iter::from_fn(|| shared.take(keys)).map(async |key| {
                let mut on_row = |row: &tanada_innodb::Row<'_>| gatherer.borrow_mut().on_row(row);
                let lookup = task.table.lookup(access, key, &shared.fetches, &mut on_row);
                lookup.await.map_err(crate::Error::from)?;
                task.advance.piece_done();
                shared.flush(&gatherer).await
            });
            if !shared.all(lookups).await? {
                return Ok(());
            }
        }
        Work::Mirrors { mirrors, groups } => {
            if !shared.mirrors(mirrors, groups, &gatherer).await? {
                return Ok(());
            }
        }
    }
    gatherer.borrow_mut().finish()?;
    shared.flush(&gatherer).await?;
    Ok(())
}

impl Shared {
    /// The next piece of work, unless there are enough rows.
    fn take<'a, T>(&self, pieces: &'a [T]) -> Option<&'a T> {
        if self.remaining.load(Ordering::Relaxed) == 0 {
            return None;
        }
        pieces.get(self.queue.fetch_add(1, Ordering::Relaxed))
    }

    /// Reads groups of rows of mirrors. False: enough, stop.
    async fn mirrors(
        &self,
        mirrors: &MirroredColumns,
        groups: &[usize],
        gatherer: &RefCell<Gatherer>,
    ) -> Result<bool> {
        let task = &self.task;
        let prefilter = task.decoding.prefilter();
        while let Some(group) = self.take(groups) {
            let flush = async || self.flush(gatherer).await;
            match mirrors::read(mirrors, *group, prefilter, gatherer, &self.scans, flush).await? {
                Outcome::Done => {}
                Outcome::Enough => return Ok(false),
                Outcome::Damaged(file, error) => {
                    task.query.warn_once(format!("{error}; it was deleted, and pages are read"));
                    mirrors.columnar().drop_damaged(&file).await;
                    self.damaged.lock().push(*group);
                }
            }
            if self.sender.is_empty() {
                gatherer.borrow_mut().finish()?;
                if !self.flush(gatherer).await? {
                    return Ok(false);
                }
            }
            task.advance.piece_done();
        }
        Ok(true)
    }

    /// Reads the rows of damaged groups from the pages.
    async fn read_damaged(&self, mirrors: &MirroredColumns) -> Result<()> {
        let groups = std::mem::take(&mut *self.damaged.lock());
        if groups.is_empty() || self.remaining.load(Ordering::Relaxed) == 0 {
            return Ok(());
        }
        let ScanTask { relation, decoding, query, .. } = &self.task;
        let gatherer = Gatherer::new(Arc::clone(decoding), !query.orders_dates());
        let gatherer = RefCell::new(gatherer);
        let damaged = Damaged { mirrors, groups: &groups, relation, columns: &decoding.columns };
        let take = async |batch| {
            gatherer.borrow_mut().on_batch(batch, false)?;
            self.flush(&gatherer).await
        };
        damaged.read_pages(query, &self.scans, take).await?;
        gatherer.borrow_mut().finish()?;
        self.flush(&gatherer).await.map(drop)
    }

    /// Runs look-ups, a window of them at once. False: enough, stop.
    async fn all<F: Future<Output = Result<bool>>>(&self, lookups: impl Iterator<Item = F>) -> Result<bool> {
        let window = if self.task.query.keeps_order() { 1 } else { FETCHES_IN_HAND };
        let mut results = futures::stream::iter(lookups).buffer_unordered(window);
        while let Some(more) = results.next().await {
            if !more? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Sends what is ready. False: enough, stop.
    async fn flush(&self, gatherer: &RefCell<Gatherer>) -> Result<bool> {
        loop {
            let next = gatherer.borrow_mut().next()?;
            let Some(batch) = next else { break };
            if batch.num_rows() == 0 {
                continue;
            }
            let rows = batch.num_rows();
            let taken = self
                .remaining
                .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| Some(left.saturating_sub(rows)))
                .unwrap_or_default()
                .min(rows);
            self.task.advance.made(taken);
            if taken == 0 || self.sender.send(Ok(batch.slice(0, taken))).await.is_err() {
                return Ok(false);
            }
        }
        Ok(self.remaining.load(Ordering::Relaxed) > 0)
    }
}

/// Adds the time spent in the polls of a future to a metric.
#[derive(Debug)]
struct Timed<'a, F> {
    future: Pin<Box<F>>,
    time: &'a Time,
}

impl<'a, F: Future> Timed<'a, F> {
    fn new(future: F, time: &'a Time) -> Timed<'a, F> {
        Timed { future: Box::pin(future), time }
    }
}

impl<F: Future> Future for Timed<'_, F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        let _timer = self.time.timer();
        self.future.as_mut().poll(context)
    }
}
