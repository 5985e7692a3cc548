//! Makes mirrors of columns that scans have read.
//!
//! 1. Of all tables whose columns are wanted, that comes first on which the most time was spent.
//! 2. The table's files have been untouched for a while, and are the same before and after they are read.
//! 3. The pages are read once; each column has a thread that encodes it, and a file that it is written to.
//! 4. When all are complete, room is made for them within the budget, and they get their names.
//!
//! While a query runs, no more pages are read.

use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use datafusion::arrow::array::ArrayRef;
use futures::StreamExt;
use tanada_io::{Gate, GateLimits, IoContext};
use tokio::runtime::Handle;
use tokio::task::JoinHandle;

use super::file::Description;
use super::identity::MirrorKey;
use super::pages::everything_in_order;
use super::registry::{Columnar, Wanted};
use super::types::group_rows;
use super::writer::ColumnWriter;
use crate::relation::InnodbRelation;
use crate::store::Upload;
use crate::{Error, ErrorKind, Result};

/// How long files have to be untouched before they are mirrored: longer than a tick of any file system's clock.
const SETTLED: Duration = Duration::from_secs(2);
/// Batches that wait for being encoded, of each column.
const WAITING_BATCHES: usize = 4;
/// What reading may have in flight.
const GATE: GateLimits = GateLimits { ios: Some(16), bytes: 16 << 20 };
/// A mirror takes at most about this part of the memory that its values take.
const STORED_SHARE: f64 = 0.5;

/// Why making ended early.
enum Ended {
    /// This table's files cannot be mirrored, or not yet.
    Table(String),
    /// Nothing can be written.
    Place(Error),
}

impl Columnar {
    /// Makes the mirrors that are wanted and missing, of tables with at least `least_pages` leaves; begins with none
    /// after `limit`. Gives how many were made.
    pub(crate) async fn make(self: &Arc<Self>, least_pages: u64, limit: Option<Duration>) -> usize {
        let _only = self.making.lock().await;
        let begun = Instant::now();
        let mut wanted: Vec<(String, Wanted)> = {
            let state = self.state.lock();
            if state.stopped.is_some() {
                return 0;
            }
            state.wanted.iter().map(|(id, wanted)| (id.clone(), wanted.clone())).collect()
        };
        wanted.sort_by_key(|(_, wanted)| std::cmp::Reverse(wanted.took));
        let mut made = 0;
        for (id, wanted) in wanted {
            let pages = wanted.relation.statistics().indexes.first().map_or(0, |index| index.leaf_pages);
            if pages < least_pages || wanted.scans.is_empty() {
                continue;
            }
            if limit.is_some_and(|limit| begun.elapsed() >= limit) {
                break;
            }
            match self.make_of(&wanted).await {
                Ok(count) => {
                    made += count;
                    self.state.lock().wanted.remove(&id);
                }
                // It is wanted still.
                Err(Ended::Table(why)) => {
                    self.state.lock().left_out.insert(id, why);
                }
                Err(Ended::Place(error)) => {
                    let why = format!("no more mirrors are made in {}: {error}", self.shown());
                    tanada_io::warn(&why);
                    self.state.lock().stopped = Some(why);
                    break;
                }
            }
        }
        made
    }

    async fn make_of(self: &Arc<Self>, wanted: &Wanted) -> std::result::Result<usize, Ended> {
        let relation = &wanted.relation;
        let key = MirrorKey::of(relation).map_err(|error| Ended::Table(error.to_string()))?;
        let missing: Vec<usize> =
            wanted.scans.keys().copied().filter(|column| !self.has(&key.name(*column))).collect();
        if missing.is_empty() {
            return Ok(0);
        }
        settled(&key).await?;
        let lock = self.space.lock().await.map_err(Ended::Place)?;
        let Some(_lock) = lock else {
            return Err(Ended::Table("another process makes mirrors".to_string()));
        };
        self.forget_names();
        self.space.delete_stale(&key).await;
        let columns = self.affordable(wanted, &key, missing).await;
        if columns.is_empty() {
            return Ok(0);
        }
        let uploads = self.written(relation, &key, &columns).await?;
        if MirrorKey::of(relation).ok().as_ref() != Some(&key) {
            return Err(Ended::Table("its files have changed".to_string()));
        }
        let mut made = 0;
        for (column, upload) in uploads {
            let name = key.name(column);
            let prefix = key.prefix();
            let may_go = |other: &str| !self.is_used(other) && !other.starts_with(&prefix);
            if !self.space.make_room(upload.bytes(), self.limit(), may_go).await {
                self.leave_out(name);
                continue;
            }
            upload.commit().await.map_err(Ended::Place)?;
            self.forget(&name);
            made += 1;
        }
        self.forget_names();
        Ok(made)
    }

    /// The columns whose mirrors may have room, those that are scanned the most first.
    async fn affordable(&self, wanted: &Wanted, key: &MirrorKey, mut missing: Vec<usize>) -> Vec<usize> {
        let relation = &wanted.relation;
        let rows = relation.statistics().rows as f64;
        missing.sort_by_key(|column| std::cmp::Reverse(wanted.scans.get(column).copied()));
        let kept = self.space.kept();
        // What is used in this session, and what is of this table, stays.
        let stays = kept.iter().filter(|(name, _)| self.is_used(name) || name.starts_with(&key.prefix()));
        let mut total: u64 = stays.map(|(_, kept)| kept.bytes).sum();
        let mut columns = Vec::new();
        for column in missing {
            let bytes = (rows * relation.column_bytes(column) * STORED_SHARE) as u64;
            if total.saturating_add(bytes) > self.limit() {
                self.leave_out(key.name(column));
                continue;
            }
            total += bytes;
            columns.push(column);
        }
        columns.sort_unstable();
        columns
    }

    fn leave_out(&self, name: String) {
        let why = "the budget of mirrors (tanada.columnar_bytes) is used up".to_string();
        self.state.lock().left_out.insert(name, why);
    }

    /// Writes the mirrors of `columns`, complete but for their names.
    async fn written(
        self: &Arc<Self>,
        relation: &Arc<InnodbRelation>,
        key: &MirrorKey,
        columns: &[usize],
    ) -> std::result::Result<Vec<(usize, Upload)>, Ended> {
        let mut writers = Vec::with_capacity(columns.len());
        for column in columns {
            writers.push(self.writer(relation, key, *column).await.map_err(Ended::Place)?);
        }
        let io = IoContext::new(Gate::new(GATE));
        let executors = self.space.store.executors();
        let own = Arc::clone(self);
        let before_each = move || {
            let own = Arc::clone(&own);
            async move { own.idle().await }
        };
        // A table that cannot be scanned says so when it is scanned.
        let unreadable = |error: Error| Ended::Table(error.to_string());
        let batches = everything_in_order(relation, columns, executors, &io, before_each).await;
        let mut batches = batches.map_err(unreadable)?;
        'reading: while let Some(batch) = batches.next().await {
            let batch = batch.map_err(unreadable)?;
            for (values, (sender, _)) in batch.columns().iter().zip(&writers) {
                if sender.send(Arc::clone(values)).await.is_err() {
                    break 'reading;
                }
            }
        }
        let mut uploads = Vec::with_capacity(columns.len());
        let mut failure = None;
        for (column, (sender, writing)) in columns.iter().zip(writers) {
            drop(sender);
            match writing.await {
                Ok(Ok(upload)) => uploads.push((*column, upload)),
                Ok(Err(error)) => failure = failure.or(Some(error)),
                Err(error) => failure = failure.or(Some(Error::new(ErrorKind::Internal, error.to_string()))),
            }
        }
        match failure {
            None => Ok(uploads),
            Some(error) => Err(Ended::Place(error)),
        }
    }

    /// Starts the thread that encodes a column.
    async fn writer(
        &self,
        relation: &InnodbRelation,
        key: &MirrorKey,
        column: usize,
    ) -> Result<(async_channel::Sender<ArrayRef>, JoinHandle<Result<Upload>>)> {
        let definition = relation.table().definition();
        let description = Description {
            state: key.state.clone(),
            database: definition.database.clone(),
            table: definition.name.clone(),
            column: definition.columns.get(column).map(|of| of.name.clone()).unwrap_or_default(),
            column_no: column,
            rows: 0,
            group_rows: group_rows(definition),
            checksums: Vec::new(),
            has_partial_dates: false,
        };
        let mut upload = self.space.store.create(&self.space.at(&key.name(column)), true).await?;
        let mut writer = ColumnWriter::new(relation.schema().field(column).data_type(), description)?;
        let (sender, values) = async_channel::bounded::<ArrayRef>(WAITING_BATCHES);
        let runtime = Handle::current();
        let writing = tokio::task::spawn_blocking(move || {
            while let Ok(values) = values.recv_blocking() {
                let bytes = writer.write(&values)?;
                runtime.block_on(upload.append(&bytes))?;
            }
            let rest = writer.finish()?;
            runtime.block_on(upload.append(&rest))?;
            Ok(upload)
        });
        Ok((sender, writing))
    }
}

/// Waits until the files have been untouched for long enough.
async fn settled(key: &MirrorKey) -> std::result::Result<(), Ended> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos() as i128);
    let ready = key.newest_ns + SETTLED.as_nanos() as i128;
    match ready - now {
        ..=0 => Ok(()),
        wait if wait <= SETTLED.as_nanos() as i128 => {
            tokio::time::sleep(Duration::from_nanos(wait as u64)).await;
            Ok(())
        }
        // By the clock of the file system it was written in the future.
        _ => Err(Ended::Table("its files were written by another clock".to_string())),
    }
}
