//! A Parquet file: its footer, and the row groups that are read of it.
//!
//! Nothing of a footer is believed before it is checked: all places lie in the file. Bounds of floating-point columns
//! are dropped, as are bounds whose order is not known: NaN is not among a column chunk's bounds, and -0.0 may be a
//! bound as 0.0, so rows would be lost or made up by whoever trusts them. Nobody sees the footer with them.

use std::ops::Range;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use bytes::Bytes;
use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef, TimeUnit};
use datafusion::arrow::record_batch::RecordBatch;
use futures::future::BoxFuture;
use futures::{FutureExt, StreamExt};
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{ArrowReaderMetadata, ArrowReaderOptions, RowSelection};
use parquet::arrow::async_reader::{
    AsyncFileReader, ParquetRecordBatchStream, ParquetRecordBatchStreamBuilder,
};
use parquet::basic::{ColumnOrder, LogicalType, Type as PhysicalType};
use parquet::errors::ParquetError;
use parquet::file::metadata::{
    ColumnChunkMetaData, ParquetMetaData, ParquetMetaDataReader, RowGroupMetaData,
};

use crate::store::{FileStore, Identity};
use crate::{Error, ErrorKind, Result};

/// What a Parquet file begins and ends with.
const MAGIC: &[u8; 4] = b"PAR1";
/// What a file with an encrypted footer ends with.
const ENCRYPTED_MAGIC: &[u8; 4] = b"PARE";
/// Length of the footer and the magic.
const TAIL_BYTES: u64 = 8;
/// Bytes that are read at once of a file's end.
const FIRST_READ_BYTES: u64 = 64 << 10;
/// Most bytes of a footer.
const MAX_FOOTER_BYTES: u64 = 1 << 30;
/// Rows of a batch.
pub(crate) const BATCH_ROWS: usize = 8192;

/// A Parquet file's footer.
#[derive(Debug)]
pub(crate) struct ParquetFile {
    /// Which version of the file it is of.
    pub(crate) identity: Identity,
    /// What messages call the file.
    pub(crate) shown: String,
    reader: ArrowReaderMetadata,
}

impl ParquetFile {
    /// Reads and checks the footer of a file.
    ///
    /// # Errors
    /// `Data` if it is no Parquet file or a damaged one, `Unsupported` if it is encrypted.
    pub(crate) async fn open(store: &FileStore, name: &str) -> Result<ParquetFile> {
        ParquetFile::open_checked(store, name, |_| Ok(())).await
    }

    /// The same; `verify` sees the footer before it is decoded.
    ///
    /// # Errors
    /// As [`open`](Self::open), and what `verify` says.
    pub(crate) async fn open_checked(
        store: &FileStore,
        name: &str,
        verify: impl FnOnce(&[u8]) -> Result<()>,
    ) -> Result<ParquetFile> {
        let identity = store.opened(name)?.identity;
        let shown = store.medium().shown(name);
        let footer = footer(store, name, &shown, identity.bytes).await?;
        verify(&footer)?;
        let (of, bytes) = (shown.clone(), identity.bytes);
        // Nothing that a file says may stop the program.
        let decoded = std::panic::catch_unwind(AssertUnwindSafe(|| {
            let metadata =
                ParquetMetaDataReader::decode_metadata(&footer).map_err(|error| damaged(&of, &error))?;
            check(&metadata, bytes, &of)?;
            let metadata = Arc::new(without_doubtful_bounds(metadata)?);
            reader_of(&metadata).map_err(|error| damaged(&of, &error))
        }));
        let reader = decoded.unwrap_or_else(|_| Err(damaged(&shown, &"its footer")))?;
        Ok(ParquetFile { identity, shown, reader })
    }

    /// The footer.
    pub(crate) fn metadata(&self) -> &Arc<ParquetMetaData> {
        self.reader.metadata()
    }

    /// The fields of its columns.
    pub(crate) fn schema(&self) -> &SchemaRef {
        self.reader.schema()
    }

    /// The column chunks of a row group that hold `columns`.
    pub(crate) fn chunks(&self, group: usize, columns: &[usize]) -> Vec<Range<u64>> {
        let Some(group) = self.metadata().row_groups().get(group) else { return Vec::new() };
        let mask = self.mask(columns);
        let leaves = group.columns().iter().enumerate().filter(|(leaf, _)| mask.leaf_included(*leaf));
        leaves.filter_map(|(_, chunk)| place(chunk)).collect()
    }

    fn mask(&self, columns: &[usize]) -> ProjectionMask {
        ProjectionMask::roots(self.metadata().file_metadata().schema_descr(), columns.iter().copied())
    }

    /// Decodes a row group whose column chunks were read.
    ///
    /// # Errors
    /// `Data` if they are damaged.
    pub(crate) fn decode(
        &self,
        group: usize,
        columns: &[usize],
        chunks: Vec<(Range<u64>, Bytes)>,
    ) -> Result<RowGroupRows> {
        self.decode_selected(group, columns, chunks, None)
    }

    /// The same of the rows of `selection` alone, if there is one.
    ///
    /// # Errors
    /// As [`decode`](Self::decode).
    pub(crate) fn decode_selected(
        &self,
        group: usize,
        columns: &[usize],
        chunks: Vec<(Range<u64>, Bytes)>,
        selection: Option<RowSelection>,
    ) -> Result<RowGroupRows> {
        let reader = Chunks { chunks, metadata: Arc::clone(self.metadata()) };
        let builder = ParquetRecordBatchStreamBuilder::new_with_metadata(reader, self.reader.clone());
        let builder = match selection {
            Some(selection) => builder.with_row_selection(selection),
            None => builder,
        };
        let rows = builder
            .with_projection(self.mask(columns))
            .with_row_groups(vec![group])
            .with_batch_size(BATCH_ROWS)
            .build()
            .map_err(|error| damaged(&self.shown, &error))?;
        Ok(RowGroupRows { rows, shown: self.shown.clone() })
    }
}

impl std::fmt::Debug for RowGroupRows {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RowGroupRows").field("shown", &self.shown).finish_non_exhaustive()
    }
}

/// Rows of a row group. The columns are those that were asked for, in the file's order.
pub(crate) struct RowGroupRows {
    rows: ParquetRecordBatchStream<Chunks>,
    shown: String,
}

impl RowGroupRows {
    /// The next batch.
    ///
    /// # Errors
    /// `Data` if the row group is damaged.
    pub(crate) async fn next(&mut self) -> Option<Result<RecordBatch>> {
        match AssertUnwindSafe(self.rows.next()).catch_unwind().await {
            Ok(next) => next.map(|batch| batch.map_err(|error| damaged(&self.shown, &error))),
            Err(_) => Some(Err(damaged(&self.shown, &"one of its pages"))),
        }
    }
}

/// Column chunks in memory.
struct Chunks {
    chunks: Vec<(Range<u64>, Bytes)>,
    metadata: Arc<ParquetMetaData>,
}

impl AsyncFileReader for Chunks {
    fn get_bytes(&mut self, range: Range<u64>) -> BoxFuture<'_, parquet::errors::Result<Bytes>> {
        let found =
            self.chunks.iter().find(|(place, _)| place.start <= range.start && range.end <= place.end);
        let part = found.and_then(|(place, bytes)| {
            let begin = usize::try_from(range.start - place.start).ok()?;
            let end = usize::try_from(range.end - place.start).ok()?;
            (begin <= end && end <= bytes.len()).then(|| bytes.slice(begin..end))
        });
        let part =
            part.ok_or_else(|| ParquetError::General("a page lies outside of its column chunk".into()));
        async move { part }.boxed()
    }

    fn get_metadata<'a>(
        &'a mut self,
        _: Option<&'a ArrowReaderOptions>,
    ) -> BoxFuture<'a, parquet::errors::Result<Arc<ParquetMetaData>>> {
        let metadata = Arc::clone(&self.metadata);
        async move { Ok(metadata) }.boxed()
    }
}

fn damaged(file: &str, what: &dyn std::fmt::Display) -> Error {
    let what = what.to_string();
    let what = what.lines().next().unwrap_or_default();
    let what = ["Parquet error: ", "Arrow: ", "EOF: "]
        .iter()
        .fold(what, |what, prefix| what.strip_prefix(prefix).unwrap_or(what));
    Error::new(ErrorKind::Data, format!("the Parquet file {file} is damaged: {what}"))
}

/// The bytes of the footer.
async fn footer(store: &FileStore, name: &str, shown: &str, bytes: u64) -> Result<Bytes> {
    let no_file = |why: &str| Error::new(ErrorKind::Data, format!("{shown} is no Parquet file: {why}"));
    if bytes < 4 + TAIL_BYTES {
        return Err(no_file(if bytes == 0 { "it is empty" } else { "it is too short" }));
    }
    let start = bytes.saturating_sub(FIRST_READ_BYTES);
    let mut parts = store.read_ranges(name, vec![0..4, start..bytes]).await?.into_iter();
    let (head, end) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
    let tail = end.len().checked_sub(TAIL_BYTES as usize).map(|at| end.slice(at..)).unwrap_or_default();
    match (tail.get(4..8), head.as_ref() == MAGIC) {
        (Some(magic), _) if magic == ENCRYPTED_MAGIC => {
            let message = format!("{shown} is encrypted; encrypted Parquet files are not read");
            return Err(Error::new(ErrorKind::Unsupported, message));
        }
        (Some(magic), true) if magic == MAGIC => {}
        (_, true) => return Err(no_file("its end is missing; it was cut off, or is still being written")),
        (_, false) => return Err(no_file("it does not begin as one")),
    }
    let len = tail.get(..4).and_then(|len| len.try_into().ok()).map_or(0, u32::from_le_bytes);
    let len = u64::from(len);
    let footer_end = bytes - TAIL_BYTES;
    if len == 0 || len > MAX_FOOTER_BYTES || len + 4 > footer_end {
        return Err(no_file("the length of its footer is wrong"));
    }
    let begin = footer_end - len;
    match begin >= start {
        true => Ok(end.slice((begin - start) as usize..(footer_end - start) as usize)),
        false => store.read_range(name, begin..footer_end).await,
    }
}

/// Rows of a row group, which was checked.
pub(crate) fn rows_of(group: &RowGroupMetaData) -> u64 {
    u64::try_from(group.num_rows()).unwrap_or(0)
}

/// Where a column chunk lies; `None` if it lies nowhere.
pub(crate) fn place(chunk: &ColumnChunkMetaData) -> Option<Range<u64>> {
    let data = u64::try_from(chunk.data_page_offset()).ok()?;
    let start = match chunk.dictionary_page_offset() {
        Some(offset) => u64::try_from(offset).ok()?,
        None => data,
    };
    let end = start.checked_add(u64::try_from(chunk.compressed_size()).ok()?)?;
    Some(start..end)
}

/// Checks that all that a footer names lies in its file.
fn check(metadata: &ParquetMetaData, bytes: u64, shown: &str) -> Result<()> {
    let columns = metadata.file_metadata().schema_descr().num_columns();
    let mut rows = 0i64;
    for group in metadata.row_groups() {
        let size = u64::try_from(group.num_rows());
        if size.is_err() || group.columns().len() != columns {
            return Err(damaged(shown, &"a row group does not fit the file's columns"));
        }
        rows = rows.saturating_add(group.num_rows());
        for chunk in group.columns() {
            if chunk.file_path().is_some() {
                let message = format!("{shown} has its columns in other files, which is not supported");
                return Err(Error::new(ErrorKind::Unsupported, message));
            }
            let lies_in_file =
                place(chunk).is_some_and(|place| place.start >= 4 && place.end <= bytes - TAIL_BYTES);
            if !lies_in_file || chunk.num_values() < 0 || chunk.uncompressed_size() < 0 {
                return Err(damaged(shown, &"a column chunk lies outside of the file"));
            }
        }
    }
    match rows == metadata.file_metadata().num_rows() {
        true => Ok(()),
        false => Err(damaged(shown, &"its row groups do not have as many rows as it says")),
    }
}

/// The footer without bounds that would lose rows.
fn without_doubtful_bounds(metadata: ParquetMetaData) -> Result<ParquetMetaData> {
    let orders: Vec<ColumnOrder> = (0..metadata.file_metadata().schema_descr().num_columns())
        .map(|leaf| metadata.file_metadata().column_order(leaf))
        .collect();
    let mut builder = metadata.into_builder();
    let groups = builder.take_row_groups().into_iter().map(|mut group| {
        for (chunk, order) in group.columns_mut().iter_mut().zip(&orders) {
            if has_doubtful_bounds(chunk, order) {
                let stripped = chunk.clone().into_builder().clear_statistics().build();
                *chunk = stripped.map_err(|error| Error::new(ErrorKind::Internal, error.to_string()))?;
            }
        }
        Ok(group)
    });
    let groups: Vec<RowGroupMetaData> = groups.collect::<Result<_>>()?;
    Ok(builder.set_row_groups(groups).build())
}

fn has_doubtful_bounds(chunk: &ColumnChunkMetaData, order: &ColumnOrder) -> bool {
    let logical = chunk.column_descr().logical_type_ref();
    match chunk.column_type() {
        PhysicalType::FLOAT | PhysicalType::DOUBLE | PhysicalType::INT96 => true,
        PhysicalType::FIXED_LEN_BYTE_ARRAY | PhysicalType::BYTE_ARRAY => {
            let is_old = chunk.statistics().is_some_and(|bounds| bounds.is_min_max_deprecated());
            is_old || *order == ColumnOrder::UNDEFINED || matches!(logical, Some(LogicalType::Float16))
        }
        PhysicalType::INT32 | PhysicalType::INT64 => {
            let is_unsigned = chunk.column_descr().sort_order() == parquet::basic::SortOrder::UNSIGNED;
            let is_old = chunk.statistics().is_some_and(|bounds| bounds.is_min_max_deprecated());
            is_unsigned && (is_old || *order == ColumnOrder::UNDEFINED)
        }
        PhysicalType::BOOLEAN => false,
    }
}

/// The reader of a footer: texts and bytes are views, INT96 is microseconds. Arrow's own schema in the file is left out
/// where it contradicts the file's.
fn reader_of(metadata: &Arc<ParquetMetaData>) -> parquet::errors::Result<ArrowReaderMetadata> {
    let options = || ArrowReaderOptions::new();
    let plain = ArrowReaderMetadata::try_new(Arc::clone(metadata), options()).or_else(|_| {
        ArrowReaderMetadata::try_new(Arc::clone(metadata), options().with_skip_arrow_metadata(true))
    })?;
    let descriptor = metadata.file_metadata().schema_descr();
    let roots = plain.schema().fields().iter().enumerate().map(|(no, field)| {
        let is_int96 = (0..descriptor.num_columns()).any(|leaf| {
            descriptor.get_column_root_idx(leaf) == no
                && descriptor.column(leaf).physical_type() == PhysicalType::INT96
        });
        let data_type = match field.data_type() {
            DataType::Utf8 | DataType::LargeUtf8 => DataType::Utf8View,
            DataType::Binary | DataType::LargeBinary => DataType::BinaryView,
            DataType::Timestamp(TimeUnit::Nanosecond, zone) if is_int96 => {
                DataType::Timestamp(TimeUnit::Microsecond, zone.clone())
            }
            other => other.clone(),
        };
        Field::clone(field).with_data_type(data_type)
    });
    let viewed = Schema::new_with_metadata(roots.collect::<Vec<_>>(), plain.schema().metadata().clone());
    match ArrowReaderMetadata::try_new(Arc::clone(metadata), options().with_schema(Arc::new(viewed))) {
        Ok(viewed) => Ok(viewed),
        Err(_) => Ok(plain),
    }
}
