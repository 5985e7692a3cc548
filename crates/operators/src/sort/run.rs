//! A sorted sequence of rows that was written, and is read once.

use std::borrow::Borrow;
use std::sync::Arc;

use datafusion::arrow::array::RecordBatch;
use datafusion::common::Result;
use datafusion::execution::{SendableRecordBatchStream, SpillFile};
use datafusion::physical_plan::spill::SpillManager;
use futures::{Stream, StreamExt};

/// What a run is called where files are made.
const NAME: &str = "a run of a sort";

/// A run.
pub(super) struct Run {
    file: Arc<dyn SpillFile>,
    pub(super) rows: usize,
    /// Bytes of its largest batch in memory.
    pub(super) batch_bytes: usize,
}

impl Run {
    /// Writes `batches`; `None` if there are none.
    ///
    /// # Errors
    /// If no file can be made, a write has failed, the space is used up, or a batch is an error.
    pub(super) async fn write<B: Borrow<RecordBatch>>(
        spills: &SpillManager,
        batches: impl Stream<Item = Result<B>>,
    ) -> Result<Option<Run>> {
        let mut batches = std::pin::pin!(batches);
        let mut file = spills.create_in_progress_file(NAME)?;
        let (mut rows, mut batch_bytes) = (0, 0);
        while let Some(batch) = batches.next().await {
            let batch = batch?;
            rows += batch.borrow().num_rows();
            batch_bytes = batch_bytes.max(file.append_batch(batch.borrow())?);
        }
        Ok(file.finish()?.map(|file| Run { file, rows, batch_bytes }))
    }

    /// Its batches, as they were written.
    ///
    /// # Errors
    /// If it cannot be opened.
    pub(super) fn read(self, spills: &SpillManager) -> Result<SendableRecordBatchStream> {
        spills.read_spill_as_stream_unbuffered(self.file, None)
    }
}
