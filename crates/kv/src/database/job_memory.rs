//! The memory that jobs take from the cache.

use super::core::Core;
use crate::stream::Pieces;
use crate::tree::JobContext;

/// Each stream of a job has this fraction (1/n) of its memory.
const STREAM_DIVISOR: u64 = 32;

/// Memory that a job takes from the cache.
pub(super) struct JobMemory<'a> {
    core: &'a Core,
    bytes: u64,
}

impl JobMemory<'_> {
    /// Takes this many bytes.
    pub(super) async fn take(core: &Core, bytes: u64) -> JobMemory<'_> {
        let bytes = core.memory.take_for_job(&core.settings(), |_| bytes);
        let memory = JobMemory { core, bytes };
        core.shrink_cache().await;
        memory
    }

    /// Reserves the memory of a job; if a caller waits for it, also what the cache does not use, so that more values
    /// move in a round or a batch.
    pub(super) async fn for_job<'a>(
        core: &'a Core,
        context: &mut JobContext,
        is_awaited: bool,
    ) -> JobMemory<'a> {
        let bytes = core.memory.take_for_job(&core.settings(), |unused| {
            if is_awaited {
                context.batch_bytes = context.batch_bytes.max(batch_of(unused));
            }
            context.batch_bytes / 5 * 8
        });
        let memory = JobMemory { core, bytes };
        core.shrink_cache().await;
        memory
    }
}

impl Drop for JobMemory<'_> {
    fn drop(&mut self) {
        self.core.memory.return_from_job(self.bytes);
        self.core.grow_cache();
    }
}

/// Bytes of a job's batch: beside it there is what is read ahead of the next one and what is on its way, an eighth
/// each, what is being written, and what the allocator takes beside values.
pub(super) fn batch_of(job_bytes: u64) -> u64 {
    job_bytes / 8 * 5
}

impl Core {
    /// Returns the pieces of a sequential write.
    pub(crate) fn pieces(&self) -> Pieces {
        Pieces::several(self.job_bytes() / STREAM_DIVISOR)
    }

    /// The same for a write of at most this many bytes, which takes no empty pieces.
    pub(crate) fn pieces_of(&self, bytes: u64) -> Pieces {
        Pieces::several(bytes.min(self.job_bytes() / STREAM_DIVISOR))
    }
}
