//! The end of a spill file at which it is written.

use std::io;
use std::sync::Arc;

use datafusion::common::Result as DataFusionResult;
use datafusion::execution::SpillWriter;

use super::file::Shared;

/// Writes behind: it waits only while several blocks are under way.
pub(super) struct Writer {
    file: Arc<Shared>,
}

impl Writer {
    pub(super) fn new(file: Arc<Shared>) -> Writer {
        Writer { file }
    }
}

impl io::Write for Writer {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.put(bytes).map_err(io::Error::other)
    }

    /// Readers see what was written at once.
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl SpillWriter for Writer {
    fn finish(&mut self) -> DataFusionResult<()> {
        Ok(self.file.finish()?)
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.file.end();
    }
}
