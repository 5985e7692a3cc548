//! Rows that go out together.

use std::ops::Range;

use datafusion::arrow::array::{ArrayRef, RecordBatch, UInt32Array};
use datafusion::arrow::compute::{BatchCoalescer, take};
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::common::{Result, exec_datafusion_err, internal_datafusion_err};
use tokio::sync::mpsc::Sender;

/// What columns the rows of a join have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Columns {
    StreamedFirst,
    BufferedFirst,
    /// The streamed ones alone.
    Streamed,
}

/// Gathers pairs of rows of one streamed and one buffered batch at a time, and sends batches of them.
pub(super) struct Pairs {
    columns: Columns,
    batch_rows: usize,
    streamed: Half,
    buffered: Half,
    coalescer: BatchCoalescer,
    receiver: Sender<Result<RecordBatch>>,
}

/// One side of the pairs.
struct Half {
    /// The batch that rows are of, and its number; an empty one before the first.
    batch: RecordBatch,
    number: Option<u64>,
    /// Rows; `None` where the other row has no partner.
    rows: Vec<Option<u32>>,
}

impl Pairs {
    /// Pairs of rows of the schemas `streamed` and `buffered`, sent in batches of `batch_rows` of `schema`.
    pub(super) fn new(
        columns: Columns,
        (streamed, buffered): (SchemaRef, SchemaRef),
        schema: SchemaRef,
        batch_rows: usize,
        receiver: Sender<Result<RecordBatch>>,
    ) -> Pairs {
        let coalescer = BatchCoalescer::new(schema, batch_rows);
        let (streamed, buffered) = (Half::new(streamed), Half::new(buffered));
        Pairs { columns, batch_rows, streamed, buffered, coalescer, receiver }
    }

    /// Streamed rows are of `batch` from now on, number `number`.
    ///
    /// # Errors
    /// As [`Pairs::flush`].
    pub(super) async fn stream_from(&mut self, batch: &RecordBatch, number: u64) -> Result<()> {
        if self.streamed.number != Some(number) {
            self.flush().await?;
            self.streamed.read_from(batch, number);
        }
        Ok(())
    }

    /// Buffered rows are of `batch` from now on, number `number`.
    ///
    /// # Errors
    /// As [`Pairs::flush`].
    pub(super) async fn buffer_from(&mut self, batch: &RecordBatch, number: u64) -> Result<()> {
        if self.buffered.number != Some(number) {
            self.flush().await?;
            self.buffered.read_from(batch, number);
        }
        Ok(())
    }

    /// A streamed row with each of `buffered`.
    ///
    /// # Errors
    /// As [`Pairs::flush`].
    pub(super) async fn push(&mut self, streamed: usize, buffered: Range<usize>) -> Result<()> {
        self.streamed.rows.extend(std::iter::repeat_n(Some(streamed as u32), buffered.len()));
        self.buffered.rows.extend(buffered.map(|row| Some(row as u32)));
        self.flush_if_full().await
    }

    /// Streamed rows without partners.
    ///
    /// # Errors
    /// As [`Pairs::flush`].
    pub(super) async fn push_streamed(&mut self, rows: Range<usize>) -> Result<()> {
        self.buffered.rows.extend(std::iter::repeat_n(None, rows.len()));
        self.streamed.rows.extend(rows.map(|row| Some(row as u32)));
        self.flush_if_full().await
    }

    /// Buffered rows without partners.
    ///
    /// # Errors
    /// As [`Pairs::flush`].
    pub(super) async fn push_buffered(&mut self, rows: Range<usize>) -> Result<()> {
        self.streamed.rows.extend(std::iter::repeat_n(None, rows.len()));
        self.buffered.rows.extend(rows.map(|row| Some(row as u32)));
        self.flush_if_full().await
    }

    async fn flush_if_full(&mut self) -> Result<()> {
        match self.streamed.rows.len() >= self.batch_rows {
            true => self.flush().await,
            false => Ok(()),
        }
    }

    /// Sends what there is, but for what a batch is not full of.
    ///
    /// # Errors
    /// If nobody waits for rows any more.
    async fn flush(&mut self) -> Result<()> {
        if self.streamed.rows.is_empty() {
            return Ok(());
        }
        let streamed = self.streamed.take()?;
        let columns = match self.columns {
            Columns::Streamed => {
                self.buffered.rows.clear();
                streamed
            }
            Columns::StreamedFirst => [streamed, self.buffered.take()?].concat(),
            Columns::BufferedFirst => [self.buffered.take()?, streamed].concat(),
        };
        let schema = self.coalescer.schema();
        self.coalescer.push_batch(RecordBatch::try_new(schema, columns)?)?;
        self.send().await
    }

    async fn send(&mut self) -> Result<()> {
        while let Some(batch) = self.coalescer.next_completed_batch() {
            let sent = self.receiver.send(Ok(batch)).await;
            sent.map_err(|_| exec_datafusion_err!("nobody waits for the rows of a join"))?;
        }
        Ok(())
    }

    /// Sends all that is left.
    ///
    /// # Errors
    /// As [`Pairs::flush`].
    pub(super) async fn finish(mut self) -> Result<()> {
        self.flush().await?;
        self.coalescer.finish_buffered_batch()?;
        self.send().await
    }
}

impl Half {
    fn new(schema: SchemaRef) -> Half {
        Half { batch: RecordBatch::new_empty(schema), number: None, rows: Vec::new() }
    }

    fn read_from(&mut self, batch: &RecordBatch, number: u64) {
        self.batch = batch.clone();
        self.number = Some(number);
    }

    /// The columns of the rows, which are none afterwards.
    fn take(&mut self) -> Result<Vec<ArrayRef>> {
        if self.rows.iter().flatten().any(|row| *row as usize >= self.batch.num_rows()) {
            return Err(internal_datafusion_err!("a join names a row that its batch does not have"));
        }
        let rows: UInt32Array = self.rows.drain(..).collect();
        self.batch.columns().iter().map(|column| Ok(take(column, &rows, None)?)).collect()
    }
}
