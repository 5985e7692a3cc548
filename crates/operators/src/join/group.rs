//! The buffered rows of one key.

use std::ops::Range;
use std::sync::Arc;

use datafusion::arrow::array::RecordBatch;
use datafusion::common::{Result, internal_datafusion_err};
use datafusion::execution::SpillFile;
use datafusion::physical_plan::spill::SpillManager;
use futures::{Stream, StreamExt};

/// What the rows of a key are called where files are made.
const NAME: &str = "rows of one key of a join";

/// Rows of one key.
pub(super) enum Group {
    Memory(Vec<Part>),
    Written(Arc<dyn SpillFile>),
}

/// Rows of one batch.
pub(super) struct Part {
    pub(super) batch: RecordBatch,
    /// The batch, as one of its input or of what was written.
    pub(super) number: u64,
    pub(super) rows: Range<usize>,
}

impl Part {
    /// Its rows alone.
    fn batch(&self) -> RecordBatch {
        self.batch.slice(self.rows.start, self.rows.len())
    }
}

/// Writes the batches of `first` and of `parts`.
///
/// # Errors
/// If writing fails, or a part is an error.
pub(super) async fn write(
    spills: &SpillManager,
    first: Vec<Part>,
    parts: impl Stream<Item = Result<Part>>,
) -> Result<Group> {
    let mut parts = std::pin::pin!(parts);
    let mut file = spills.create_in_progress_file(NAME)?;
    for part in first {
        file.append_batch(&part.batch())?;
    }
    while let Some(part) = parts.next().await {
        file.append_batch(&part?.batch())?;
    }
    let file = file.finish()?.ok_or_else(|| internal_datafusion_err!("a group of a join has no rows"))?;
    Ok(Group::Written(file))
}
