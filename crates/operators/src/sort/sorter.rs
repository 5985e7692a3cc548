//! What a sort keeps in memory, and when it writes.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use datafusion::arrow::array::RecordBatch;
use datafusion::common::runtime::SpawnedTask;
use datafusion::common::{Result, exec_datafusion_err};
use datafusion::execution::memory_pool::MemoryReservation;
use datafusion::physical_plan::spill::{SpillManager, get_record_batch_memory_size};

use super::buffer::{Buffer, Sorted};
use super::merge::Merge;
use super::run::Run;
use crate::keys::Keys;

/// Runs that are merged at once, at least.
const LEAST_FAN_IN: usize = 2;
/// Batches of a run that are in memory while it is merged: the one that is merged and, by its bytes, what was read of
/// the next and its keys.
const BATCHES_OF_A_RUN: usize = 2;

/// Sorts batches, in memory or beyond.
pub(super) struct Sorter {
    keys: Arc<Keys>,
    batch_rows: usize,
    reservation: MemoryReservation,
    spills: SpillManager,
    buffer: Buffer,
    runs: Vec<Run>,
    /// Set when nobody wants the rows any more.
    stop: Stop,
}

/// Tells those who work beside that nobody waits for them, once it is dropped.
#[derive(Debug, Default)]
struct Stop(Arc<AtomicBool>);

/// The rows in order.
pub(super) struct Output {
    rows: Rows,
    /// The memory that they take, until they have been put out.
    _memory: MemoryReservation,
}

enum Rows {
    Memory(Sorted),
    Merge(Box<Merge>),
}

impl Sorter {
    pub(super) fn new(
        keys: Keys,
        batch_rows: usize,
        reservation: MemoryReservation,
        spills: SpillManager,
    ) -> Sorter {
        let (buffer, runs, stop) = (Buffer::default(), Vec::new(), Stop::default());
        let keys = Arc::new(keys);
        Sorter { keys, batch_rows, reservation, spills, buffer, runs, stop }
    }

    /// Takes a batch; what is in memory is written first if there is no room for it.
    ///
    /// # Errors
    /// If writing fails.
    pub(super) async fn insert(&mut self, batch: RecordBatch) -> Result<()> {
        if batch.num_rows() == 0 {
            return Ok(());
        }
        let keys = self.keys.of(&batch)?;
        let bytes = get_record_batch_memory_size(&batch) + Buffer::bytes_of(&keys);
        if self.reservation.try_grow(bytes).is_err() {
            if !self.buffer.is_empty() {
                self.write_run().await?;
            }
            if self.reservation.try_grow(bytes).is_err() {
                // It is there already.
                self.reservation.grow(bytes);
            }
        }
        self.buffer.push(batch, keys);
        Ok(())
    }

    /// The rows in order.
    ///
    /// # Errors
    /// If writing or reading fails.
    pub(super) async fn finish(mut self) -> Result<Output> {
        if self.runs.is_empty() {
            let (buffer, batch_rows) = (std::mem::take(&mut self.buffer), self.batch_rows);
            let sorted = beside(move || buffer.sorted(batch_rows)).await?;
            return Ok(Output { rows: Rows::Memory(sorted), _memory: self.reservation });
        }
        if !self.buffer.is_empty() {
            self.write_run().await?;
        }
        let mut fan_in = self.fan_in();
        while self.runs.len() > fan_in {
            // The shortest ones, and so few that the last merge is of as many as possible.
            self.runs.sort_by_key(|run| std::cmp::Reverse(run.rows));
            let count = (self.runs.len() - fan_in + 1).min(fan_in);
            let runs = self.runs.split_off(self.runs.len() - count);
            let merge = self.merge(runs, fan_in - count).await?;
            let batches = futures::stream::try_unfold(merge, |mut merge| async move {
                Ok(merge.next().await?.map(|batch| (batch, merge)))
            });
            let merged = Run::write(&self.spills, batches).await?;
            self.runs.extend(merged);
            fan_in = self.fan_in();
        }
        let runs = std::mem::take(&mut self.runs);
        let ahead = (fan_in - runs.len()).max(1);
        let merge = self.merge(runs, ahead).await?;
        Ok(Output { rows: Rows::Merge(Box::new(merge)), _memory: self.reservation })
    }

    async fn merge(&self, runs: Vec<Run>, ahead: usize) -> Result<Merge> {
        let runs = runs.into_iter().map(|run| run.read(&self.spills)).collect::<Result<_>>()?;
        Merge::new(Arc::clone(&self.keys), runs, self.batch_rows, ahead.max(1)).await
    }

    /// Runs of which a batch has room in memory at once, with the memory for them.
    fn fan_in(&self) -> usize {
        let bytes = self.runs.iter().map(|run| run.batch_bytes).max().unwrap_or(0).max(1) * BATCHES_OF_A_RUN;
        // Twice as many as there are runs, so that each can be read ahead.
        let mut count = 2 * self.runs.len();
        while count > LEAST_FAN_IN && self.reservation.try_resize(count * bytes).is_err() {
            count = (count * 3 / 4).max(LEAST_FAN_IN);
        }
        if count <= LEAST_FAN_IN {
            self.reservation.resize(count * bytes);
        }
        count
    }

    /// Sorts what is in memory and writes it.
    async fn write_run(&mut self) -> Result<()> {
        let (buffer, batch_rows) = (std::mem::take(&mut self.buffer), self.batch_rows);
        let (spills, stop) = (self.spills.clone(), Arc::clone(&self.stop.0));
        let write = move || {
            let sorted = buffer.sorted(batch_rows).take_while(|_| !stop.load(Ordering::Relaxed));
            futures::executor::block_on(Run::write(&spills, futures::stream::iter(sorted)))
        };
        self.runs.extend(beside(write).await??);
        self.reservation.free();
        Ok(())
    }
}

impl Output {
    /// The next rows; `None` at the end.
    ///
    /// # Errors
    /// If a run cannot be read.
    pub(super) async fn next(&mut self) -> Result<Option<RecordBatch>> {
        match &mut self.rows {
            Rows::Memory(sorted) => sorted.next().transpose(),
            Rows::Merge(merge) => merge.next().await,
        }
    }
}

impl Drop for Stop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Runs what takes long, or waits for a device, on a thread for that.
async fn beside<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T> {
    let done = SpawnedTask::spawn_blocking(work).join_unwind().await;
    done.map_err(|error| exec_datafusion_err!("a sort was given up: {error}"))
}
