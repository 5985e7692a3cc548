//! Reading and decoding the pieces of one partition.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use datafusion::arrow::array::ArrayRef;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::arrow::record_batch::{RecordBatch, RecordBatchOptions};
use datafusion::common::Result as DataFusionResult;
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryPool, MemoryReservation};
use tanada_io::IoContext;
use tokio::sync::mpsc::Sender;

use super::convert::converted;
use super::format::Content;
use super::parquet::ParquetFile;
use super::table::LoadedTable;
use crate::explain::IoMetrics;
use crate::scan::Advance;
use crate::store::{FileStore, Reading, changed};
use crate::{Error, ErrorKind, Result};

/// Rows of a batch without columns.
const BATCH_ROWS: u64 = 8192;

/// Bytes of a text file that are read at once.
const PART_BYTES: u64 = 4 << 20;

/// A row group of a Parquet file, or a text file.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Piece {
    /// The file's position in the table.
    pub(crate) file: usize,
    /// The row group in it.
    pub(crate) group: usize,
    /// Rows, if they are known before they are read.
    pub(crate) rows: Option<u64>,
}

/// Reads the pieces of one partition.
pub(super) struct PieceReader {
    pub(super) table: Arc<LoadedTable>,
    pub(super) store: FileStore,
    pub(super) projection: Vec<usize>,
    pub(super) schema: SchemaRef,
    pub(super) limit: Option<usize>,
    pub(super) pool: Arc<dyn MemoryPool>,
    pub(super) pieces: VecDeque<Piece>,
    pub(super) io: IoContext,
    pub(super) metrics: IoMetrics,
    pub(super) advance: Arc<Advance>,
}

/// A piece that is begun.
enum Started {
    RowGroup(RowGroup),
    /// A text file is read as it is decoded.
    Text(usize),
}

/// Column chunks of a row group that are being read.
struct RowGroup {
    file: Arc<ParquetFile>,
    group: usize,
    places: Vec<Range<u64>>,
    reading: Reading,
    /// Of the chunks' bytes.
    memory: MemoryReservation,
}

type Batches = Sender<DataFusionResult<RecordBatch>>;

impl PieceReader {
    /// Sends all batches; ends when nobody wants more.
    pub(super) async fn run(&mut self, batches: &Batches) -> DataFusionResult<()> {
        let mut left = self.limit.map_or(u64::MAX, |limit| limit as u64);
        let mut next: Option<Started> = None;
        while left > 0 {
            let started = match next.take() {
                Some(started) => Some(started),
                None => match self.pieces.pop_front() {
                    Some(piece) => self.start(piece, true)?,
                    None => break,
                },
            };
            // The next one is read while this one is decoded, if there is memory for both.
            if let Some(piece) = self.pieces.front().copied() {
                next = self.start(piece, false)?;
                if next.is_some() {
                    self.pieces.pop_front();
                }
            }
            let Some(started) = started else { continue };
            let wants_more = match started {
                Started::RowGroup(group) => self.decode(group, &mut left, batches).await?,
                Started::Text(file) => self.decode_lines(file, &mut left, batches).await?,
            };
            self.metrics.record(&self.io.counters().snapshot());
            if !wants_more {
                break;
            }
            self.advance.piece_done();
        }
        Ok(())
    }

    /// Starts to read a piece; `None` if it has to wait for memory.
    fn start(&self, piece: Piece, must: bool) -> Result<Option<Started>> {
        let of = &self.table.files[piece.file];
        if self.store.opened(&of.name)?.identity != of.identity {
            return Err(changed(&of.shown));
        }
        let Content::Parquet(file) = &of.content else { return Ok(Some(Started::Text(piece.file))) };
        let columns = self.file_columns(file)?;
        let places = file.chunks(piece.group, &columns);
        let bytes: u64 = places.iter().map(|place| place.end - place.start).sum();
        let memory = MemoryConsumer::new("FileScan").register(&self.pool);
        let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
        match must {
            // Without them the scan cannot go on.
            true => memory.try_grow(bytes).map_err(|_| too_large(&of.shown, bytes))?,
            false if memory.try_grow(bytes).is_err() => return Ok(None),
            false => {}
        }
        let reading = self.store.start_ranges(&of.name, places.clone())?;
        Ok(Some(Started::RowGroup(RowGroup {
            file: Arc::clone(file),
            group: piece.group,
            places,
            reading,
            memory,
        })))
    }

    /// Positions in the file of the columns that are read.
    fn file_columns(&self, file: &ParquetFile) -> Result<Vec<usize>> {
        let position = |column: &usize| {
            let name = self.table.columns[*column].field.name();
            let position = file.schema().fields().iter().position(|field| field.name() == name);
            position.ok_or_else(|| changed(&file.shown))
        };
        self.projection.iter().map(position).collect()
    }

    /// Sends the rows of a piece; whether more are wanted.
    async fn decode(&self, started: RowGroup, left: &mut u64, batches: &Batches) -> Result<bool> {
        let RowGroup { file, group, places, reading, memory } = started;
        let columns = self.file_columns(&file)?;
        let chunks: Vec<(Range<u64>, Bytes)> = places.into_iter().zip(reading.await??).collect();
        if columns.is_empty() {
            let rows = file.metadata().row_groups().get(group).map_or(0, super::parquet::rows_of);
            return self.send_rows(rows, left, batches).await;
        }
        // The file's order is not the projection's.
        let mut sorted = columns.clone();
        sorted.sort_unstable();
        let places: Vec<usize> = columns
            .iter()
            .map(|column| sorted.iter().position(|other| other == column).unwrap_or_default())
            .collect();
        let mut rows = file.decode(group, &columns, chunks)?;
        while let Some(batch) = rows.next().await {
            let batch = batch?;
            let batch = self.table_batch(&batch, &places, &file.shown)?;
            if !self.send(batch, left, batches).await {
                return Ok(false);
            }
        }
        drop(memory);
        Ok(true)
    }

    /// Sends the rows of a text file; whether more are wanted. The next part is read while one is decoded.
    async fn decode_lines(&self, file: usize, left: &mut u64, batches: &Batches) -> Result<bool> {
        let of = &self.table.files[file];
        let Content::Text(text) = &of.content else { return Ok(true) };
        let position = |column: &usize| {
            let name = self.table.columns[*column].field.name();
            let position = text.schema.fields().iter().position(|field| field.name() == name);
            position.ok_or_else(|| changed(&of.shown))
        };
        let places: Vec<usize> = self.projection.iter().map(position).collect::<Result<_>>()?;
        let mut decoder = text.decoder()?;
        let bytes = of.identity.bytes;
        let part = |at: u64| {
            let range = at..bytes.min(at + PART_BYTES);
            (!range.is_empty()).then(|| self.store.start_ranges(&of.name, vec![range])).transpose()
        };
        let (mut at, mut reading) = (0, part(0)?);
        while let Some(read) = reading.take() {
            at += PART_BYTES;
            reading = part(at.min(bytes))?;
            let mut read = read.await??.pop().unwrap_or_default();
            while let Some(batch) = decoder.decode(&mut read).map_err(|error| text.failed(&error))? {
                let batch = self.table_batch(&batch, &places, &of.shown)?;
                if !self.send(batch, left, batches).await {
                    return Ok(false);
                }
            }
        }
        while let Some(batch) = decoder.finish().map_err(|error| text.failed(&error))? {
            let batch = self.table_batch(&batch, &places, &of.shown)?;
            if !self.send(batch, left, batches).await {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// A batch of the file as one of the table.
    fn table_batch(&self, batch: &RecordBatch, places: &[usize], shown: &str) -> Result<RecordBatch> {
        let arrays: Vec<ArrayRef> = self
            .projection
            .iter()
            .zip(places)
            .map(|(column, place)| converted(batch.column(*place), &self.table.columns[*column], shown))
            .collect::<Result<_>>()?;
        let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
        RecordBatch::try_new_with_options(Arc::clone(&self.schema), arrays, &options).map_err(|_| {
            Error::new(ErrorKind::Data, format!("the rows of {shown} do not fit its columns: it is damaged"))
        })
    }

    /// Sends a batch, or as much of it as is left to be sent; whether more are wanted.
    async fn send(&self, batch: RecordBatch, left: &mut u64, batches: &Batches) -> bool {
        let rows = (batch.num_rows() as u64).min(*left);
        *left -= rows;
        let batch = batch.slice(0, rows as usize);
        self.advance.made(batch.num_rows());
        batches.send(Ok(batch)).await.is_ok() && *left > 0
    }

    async fn send_rows(&self, mut rows: u64, left: &mut u64, batches: &Batches) -> Result<bool> {
        while rows > 0 {
            let some = rows.min(BATCH_ROWS);
            rows -= some;
            let options = RecordBatchOptions::new().with_row_count(Some(some as usize));
            let batch = RecordBatch::try_new_with_options(Arc::clone(&self.schema), Vec::new(), &options)
                .map_err(|error| Error::new(ErrorKind::Internal, error.to_string()))?;
            if !self.send(batch, left, batches).await {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

fn too_large(file: &str, bytes: usize) -> Error {
    let mib = bytes.div_ceil(1 << 20);
    let message = format!(
        "a row group of {file} needs {mib} MiB for the columns that are read; give queries more memory, or read fewer columns at once"
    );
    Error::new(ErrorKind::Resources, message)
}
