//! The memory that jobs take from the cache.

use crate::database::memory::budget::MemoryBudget;
use crate::stream::Pieces;
use crate::tree::JobContext;
use crate::tuning::space::MEMORY;

/// Memory that a job takes from the cache.
pub(crate) struct JobMemory<'a> {
    memory: &'a MemoryBudget,
    bytes: u64,
}

impl JobMemory<'_> {
    /// Takes this many bytes.
    pub(crate) async fn take(memory: &MemoryBudget, bytes: u64) -> JobMemory<'_> {
        let bytes = memory.take_for_job(&memory.shared.settings(), |_| bytes);
        let taken = JobMemory { memory, bytes };
        memory.shrink_cache().await;
        taken
    }

    /// Reserves the memory of a job; if a caller waits for it, also what the cache does not use, so that more values
    /// move in a round or a batch.
    pub(crate) async fn for_job<'a>(
        memory: &'a MemoryBudget,
        context: &mut JobContext,
        is_awaited: bool,
    ) -> JobMemory<'a> {
        let bytes = memory.take_for_job(&memory.shared.settings(), |unused| {
            if is_awaited {
                context.batch_bytes = context.batch_bytes.max(batch_of(unused));
            }
            context.batch_bytes / 5 * 8
        });
        let taken = JobMemory { memory, bytes };
        memory.shrink_cache().await;
        taken
    }
}

impl Drop for JobMemory<'_> {
    fn drop(&mut self) {
        self.memory.return_from_job(self.bytes);
        self.memory.grow_cache();
    }
}

/// Bytes of a job's batch: beside it there is what is read ahead of the next one and what is on its way, an eighth
/// each, what is being written, and what the allocator takes beside values.
pub(crate) fn batch_of(job_bytes: u64) -> u64 {
    job_bytes / 8 * 5
}

impl MemoryBudget {
    /// Returns the pieces of a sequential write.
    pub(crate) fn pieces(&self) -> Pieces {
        Pieces::several(self.job_bytes() / MEMORY.stream_divisor)
    }

    /// The same for a write of at most this many bytes, which takes no empty pieces.
    pub(crate) fn pieces_of(&self, bytes: u64) -> Pieces {
        Pieces::several(bytes.min(self.job_bytes() / MEMORY.stream_divisor))
    }
}
