//! An input of a join, and the place that has been reached in it.

use std::cmp::Ordering;
use std::sync::Arc;

use datafusion::arrow::array::{Array, RecordBatch};
use datafusion::arrow::buffer::NullBuffer;
use datafusion::common::Result;
use datafusion::execution::SendableRecordBatchStream;
use futures::StreamExt;

use crate::keys::{BatchKeys, Keys};

/// An input.
pub(super) struct Side {
    stream: SendableRecordBatchStream,
    keys: Keys,
    /// Whether a key with a NULL equals nothing.
    null_differs: bool,
    /// The batch that is read; `None` at the end.
    current: Option<Current>,
    /// Batches before it.
    batches: u64,
}

/// A batch and its keys.
#[derive(Clone)]
pub(super) struct Current {
    pub(super) batch: RecordBatch,
    keys: Arc<BatchKeys>,
    /// Rows whose keys equal nothing are NULL here.
    nulls: Option<NullBuffer>,
    pub(super) row: usize,
    /// Its place among the batches of its input.
    pub(super) number: u64,
}

impl Side {
    /// Begins to read `stream`, which is sorted as `keys` says.
    ///
    /// # Errors
    /// If it cannot be read.
    pub(super) async fn new(
        stream: SendableRecordBatchStream,
        keys: Keys,
        null_differs: bool,
    ) -> Result<Side> {
        let mut side = Side { stream, keys, null_differs, current: None, batches: 0 };
        side.load().await?;
        Ok(side)
    }

    /// The next row; `None` at the end.
    pub(super) fn current(&self) -> Option<&Current> {
        self.current.as_ref()
    }

    /// Goes to row `row` of the batch, or to the next batch behind its last one.
    ///
    /// # Errors
    /// If it cannot be read.
    pub(super) async fn go_to(&mut self, row: usize) -> Result<()> {
        match &mut self.current {
            Some(current) if row < current.batch.num_rows() => current.row = row,
            _ => self.load().await?,
        }
        Ok(())
    }

    async fn load(&mut self) -> Result<()> {
        self.current = None;
        while let Some(batch) = self.stream.next().await.transpose()? {
            if batch.num_rows() == 0 {
                continue;
            }
            let columns = self.keys.columns(&batch)?;
            let nulls = columns.iter().filter(|_| self.null_differs).fold(None, |nulls, column| {
                NullBuffer::union(nulls.as_ref(), column.logical_nulls().as_ref())
            });
            let keys = Arc::new(self.keys.of_columns(&columns)?);
            self.current = Some(Current { batch, keys, nulls, row: 0, number: self.batches });
            self.batches += 1;
            break;
        }
        Ok(())
    }
}

impl Current {
    /// Whether the row's key equals nothing.
    pub(super) fn is_null(&self) -> bool {
        self.nulls.as_ref().is_some_and(|nulls| nulls.is_null(self.row))
    }

    /// How the row's key compares with that of `other`.
    pub(super) fn compare(&self, other: &Current) -> Ordering {
        self.compare_at(self.row, other)
    }

    /// The end of the rows from this one on that have the key of `other`, which this one has.
    pub(super) fn end_of(&self, other: &Current) -> usize {
        let rows = self.row + 1..self.batch.num_rows();
        rows.into_iter()
            .find(|row| self.compare_at(*row, other) != Ordering::Equal)
            .unwrap_or(self.batch.num_rows())
    }

    fn compare_at(&self, row: usize, other: &Current) -> Ordering {
        let by_prefix = self.keys.prefix(row).cmp(&other.keys.prefix(other.row));
        by_prefix.then_with(|| self.keys.compare_rest(row, &other.keys, other.row))
    }
}
