//! A scan of columnar mirrors.
//!
//! 1. Groups of rows whose bounds say that none of them can pass are left out.
//! 2. Of each other group the columns that are tested are decoded first. Where few rows pass, of the other columns
//!    nothing but these is decoded.
//! 3. What is left goes the way of decoded rows: the same tests, the same predicates, the same batches.
//! 4. A group that is damaged is noted. Its rows are read from the pages in the end: groups are numbered in the order
//!    of the pages.

use std::cell::RefCell;
use std::sync::Arc;

use bytes::Bytes;
use datafusion::arrow::array::{Array, ArrayRef, BooleanArray};
use datafusion::arrow::compute::{concat, filter, filter_record_batch};
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::arrow::record_batch::{RecordBatch, RecordBatchOptions};
use datafusion::common::Result;
use futures::StreamExt;
use parquet::arrow::arrow_reader::RowSelection;
use tanada_io::IoContext;

use super::gather::Gatherer;
use super::prefilter::Prefilter;
use crate::columnar::{MirrorFile, MirroredColumns, everything_in_order, only, restored};
use crate::relation::InnodbRelation;
use crate::session::context::QueryContext;
use crate::{Error, ErrorKind};

/// Of the rows of a group, the part above which all of them are decoded.
const FEW_ROWS_SHARE: f64 = 0.2;

/// What became of a group.
#[derive(Debug)]
pub(super) enum Outcome {
    /// All its rows were handed out.
    Done,
    /// No more rows are wanted.
    Enough,
    /// Nothing was handed out: this file is damaged.
    Damaged(String, Error),
}

/// Groups whose rows may pass.
pub(super) fn groups(mirrors: &MirroredColumns, prefilter: &Prefilter) -> Vec<usize> {
    let files = mirrors.files();
    let may_pass = |group: &usize| prefilter.may_pass(|slot| files.get(slot)?.bounds(*group));
    (0..mirrors.groups()).filter(may_pass).collect()
}

/// Reads a group of rows; `flush` sends what is ready and tells whether more is wanted.
pub(super) async fn read(
    mirrors: &MirroredColumns,
    group: usize,
    prefilter: &Prefilter,
    gatherer: &RefCell<Gatherer>,
    io: &IoContext,
    flush: impl AsyncFn() -> Result<bool>,
) -> Result<Outcome> {
    let files = mirrors.files();
    let schema = Arc::clone(gatherer.borrow().decoded_schema());
    let first_row = group as u64 * mirrors.group_rows();
    let rows = mirrors.rows().saturating_sub(first_row).min(mirrors.group_rows()) as usize;
    let hand_out = async |batch: RecordBatch| {
        gatherer.borrow_mut().on_batch(batch, true)?;
        flush().await
    };
    if files.is_empty() {
        let wants_more = hand_out(batch_of(&schema, Vec::new(), rows)?).await?;
        return Ok(if wants_more { Outcome::Done } else { Outcome::Enough });
    }
    let mut chunks = match read_chunks(mirrors, group, io).await? {
        Ok(chunks) => chunks,
        Err(damaged) => return Ok(damaged),
    };
    let tested = prefilter.slots();
    let mut columns: Vec<Option<Vec<ArrayRef>>> = files.iter().map(|_| None).collect();
    for slot in &tested {
        if let (Some(file), Some(bytes)) = (files.get(*slot), chunks.get_mut(*slot).and_then(Option::take)) {
            columns[*slot] = Some(decoded(file, group, bytes, None).await?);
        }
    }
    let masks = masks(prefilter, &columns)?;
    let passing: usize = masks.iter().flatten().map(BooleanArray::true_count).sum();
    if !tested.is_empty() && passing == 0 {
        return Ok(Outcome::Done);
    }
    let selects = !tested.is_empty() && (passing as f64) < FEW_ROWS_SHARE * rows as f64;
    let selection = selects.then(|| RowSelection::from_filters(masks.as_deref().unwrap_or_default()));
    for ((file, bytes), column) in files.iter().zip(chunks).zip(&mut columns) {
        match (bytes, column.take()) {
            (Some(bytes), _) => {
                let values = decoded(file, group, bytes, selection.clone()).await?;
                *column = Some(if selects { cut_alike(&values)? } else { values });
            }
            (None, Some(values)) if selects => {
                let kept =
                    values.iter().zip(masks.iter().flatten()).map(|(values, mask)| filter(values, mask));
                let kept: Vec<ArrayRef> = kept.collect::<std::result::Result<_, _>>()?;
                *column = Some(cut_alike(&kept)?);
            }
            (None, values) => *column = values,
        }
    }
    let columns: Vec<Vec<ArrayRef>> = columns.into_iter().map(Option::unwrap_or_default).collect();
    let parts = columns.first().map_or(0, Vec::len);
    for part in 0..parts {
        let arrays: Option<Vec<ArrayRef>> =
            columns.iter().map(|column| column.get(part).map(Arc::clone)).collect();
        let arrays = arrays.ok_or_else(|| misfit(group))?;
        let rows = arrays.first().map_or(0, |array| array.len());
        let batch = batch_of(&schema, arrays, rows)?;
        let batch = match masks.as_ref().and_then(|masks| masks.get(part)).filter(|_| !selects) {
            Some(mask) => filter_record_batch(&batch, mask)?,
            None => batch,
        };
        if !hand_out(batch).await? {
            return Ok(Outcome::Enough);
        }
    }
    Ok(Outcome::Done)
}

/// Reads the bytes of a group of all columns.
async fn read_chunks(
    mirrors: &MirroredColumns,
    group: usize,
    io: &IoContext,
) -> Result<std::result::Result<Vec<Option<Bytes>>, Outcome>> {
    let files = mirrors.files();
    let mut reading = Vec::with_capacity(files.len());
    for file in files {
        match mirrors.read(file, group, io) {
            Ok(read) => reading.push(read),
            Err(error) => return Ok(Err(Outcome::Damaged(file.name().to_owned(), error))),
        }
    }
    let mut chunks = Vec::with_capacity(files.len());
    for (file, reading) in files.iter().zip(reading) {
        let read = reading.await.map_err(Error::from).and_then(|read| read).map(only);
        match read.and_then(|bytes| file.verify(group, &bytes).map(|()| bytes)) {
            Ok(bytes) => chunks.push(Some(bytes)),
            Err(error) if error.kind() == ErrorKind::Cancelled => return Err(error.into()),
            Err(error) => return Ok(Err(Outcome::Damaged(file.name().to_owned(), error))),
        }
    }
    Ok(Ok(chunks))
}

fn misfit(group: usize) -> Error {
    Error::new(ErrorKind::Internal, format!("mirrors have different rows in group {group}"))
}

/// All values of a group, or those that are selected, in arrays of the same lengths for all columns.
async fn decoded(
    file: &MirrorFile,
    group: usize,
    bytes: Bytes,
    selection: Option<RowSelection>,
) -> Result<Vec<ArrayRef>> {
    let mut rows = file.decode(group, bytes, selection)?;
    let mut arrays = Vec::new();
    while let Some(batch) = rows.next().await {
        let batch = batch?;
        let values = batch.columns().first().ok_or_else(|| misfit(group))?;
        arrays.push(restored(values, file.data_type())?);
    }
    Ok(arrays)
}

/// The values of `parts` in arrays as a decoder makes them.
fn cut_alike(parts: &[ArrayRef]) -> Result<Vec<ArrayRef>> {
    let parts: Vec<&dyn Array> = parts.iter().map(AsRef::as_ref).collect();
    let all = concat(&parts)?;
    let most = crate::external::parquet::BATCH_ROWS;
    Ok((0..all.len()).step_by(most).map(|start| all.slice(start, most.min(all.len() - start))).collect())
}

/// Which rows of each part of a group may pass; `None` if nothing is tested.
fn masks(prefilter: &Prefilter, columns: &[Option<Vec<ArrayRef>>]) -> Result<Option<Vec<BooleanArray>>> {
    let Some(parts) = columns.iter().flatten().map(Vec::len).next() else { return Ok(None) };
    let mut masks = Vec::with_capacity(parts);
    for part in 0..parts {
        let slot = |slot: usize| columns.get(slot)?.as_ref()?.get(part);
        let rows =
            columns.iter().flatten().find_map(|column| column.get(part)).map_or(0, |array| array.len());
        let Some(mask) = prefilter.mask(rows, slot)? else { return Ok(None) };
        masks.push(BooleanArray::new(mask, None));
    }
    Ok(Some(masks))
}

fn batch_of(schema: &SchemaRef, arrays: Vec<ArrayRef>, rows: usize) -> Result<RecordBatch> {
    let options = RecordBatchOptions::new().with_row_count(Some(rows));
    Ok(RecordBatch::try_new_with_options(Arc::clone(schema), arrays, &options)?)
}

/// The groups of a scan whose mirrors are damaged.
pub(super) struct Damaged<'a> {
    pub(super) mirrors: &'a MirroredColumns,
    pub(super) groups: &'a [usize],
    pub(super) relation: &'a InnodbRelation,
    /// The columns that are decoded.
    pub(super) columns: &'a [usize],
}

impl Damaged<'_> {
    /// Reads their rows from the pages; `take` tells whether more is wanted.
    ///
    /// # Errors
    /// If the table's files are not what they were, or its pages cannot be read.
    pub(super) async fn read_pages(
        &self,
        query: &QueryContext,
        io: &IoContext,
        take: impl AsyncFn(RecordBatch) -> Result<bool>,
    ) -> Result<()> {
        let (mirrors, relation) = (self.mirrors, self.relation);
        mirrors.check_current(relation)?;
        let ready = || std::future::ready(());
        let batches = everything_in_order(relation, self.columns, query.executors(), io, ready);
        let mut batches = batches.await?;
        let mut row = 0u64;
        while let Some(batch) = batches.next().await {
            let batch = batch?;
            let mut at = 0;
            while at < batch.num_rows() {
                let group = (row + at as u64) / mirrors.group_rows();
                let end = ((group + 1) * mirrors.group_rows() - row).min(batch.num_rows() as u64) as usize;
                let is_damaged = self.groups.contains(&(group as usize));
                if is_damaged && !take(batch.slice(at, end - at)).await? {
                    return Ok(());
                }
                at = end;
            }
            row += batch.num_rows() as u64;
        }
        // Rows of the mirrors and of the pages are of the same time.
        mirrors.check_current(relation)?;
        match row == mirrors.rows() {
            true => Ok(()),
            false => Err(Error::new(ErrorKind::Data, "a mirror has other rows than its table").into()),
        }
    }
}
