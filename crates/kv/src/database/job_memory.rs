//! What jobs hold in memory.

use std::sync::atomic::Ordering;

use super::core::Core;
use crate::stream::Pieces;
use crate::tree::JobContext;

/// The part of a job's memory that each of its streams may take.
const STREAM_PART: u64 = 32;

/// Memory that a job takes from the cache.
pub(super) struct JobMemory<'a> {
    core: &'a Core,
    bytes: u64,
}

impl JobMemory<'_> {
    pub(super) async fn take(core: &Core, bytes: u64) -> JobMemory<'_> {
        let memory = JobMemory::note(core, bytes);
        core.share_memory().await;
        memory
    }

    fn note(core: &Core, bytes: u64) -> JobMemory<'_> {
        core.background.job_bytes.fetch_add(bytes, Ordering::Relaxed);
        JobMemory { core, bytes }
    }

    /// Reserves the memory of a job; if a caller waits for it, also what the cache does not use, so that more values
    /// move in a round or a batch.
    pub(super) async fn for_job<'a>(
        core: &'a Core,
        context: &mut JobContext,
        is_awaited: bool,
    ) -> JobMemory<'a> {
        let memory = {
            let _taking = core.background.taking.lock();
            if is_awaited {
                context.batch_bytes = context.batch_bytes.max(batch_of(core.unused_bytes()));
            }
            JobMemory::note(core, context.batch_bytes / 5 * 8)
        };
        core.share_memory().await;
        memory
    }
}

impl Drop for JobMemory<'_> {
    fn drop(&mut self) {
        self.core.background.job_bytes.fetch_sub(self.bytes, Ordering::Relaxed);
        self.core.share_more_memory();
    }
}

/// Bytes of a job's batch: beside it there is what is read ahead of the next one and what is on its way, an eighth
/// each, what is being written, and what the allocator takes beside values.
pub(super) fn batch_of(job_bytes: u64) -> u64 {
    job_bytes / 8 * 5
}

impl Core {
    /// Bytes of values that a job may hold in memory at once: the jobs that run together share what is there for
    /// buffers.
    pub(crate) fn job_bytes(&self) -> u64 {
        let settings = self.settings();
        let jobs = settings.concurrent_jobs.min(self.stores.read().len()).max(1) as u64;
        (settings.jobs_bytes() / jobs).max(256 << 10)
    }

    /// Pieces of what is written one after the other.
    pub(crate) fn pieces(&self) -> Pieces {
        Pieces::several(self.job_bytes() / STREAM_PART)
    }

    /// The same where no more than this many bytes are written: what is small does not take pieces that stay empty.
    pub(crate) fn pieces_of(&self, bytes: u64) -> Pieces {
        Pieces::several(bytes.min(self.job_bytes() / STREAM_PART))
    }

    /// Bytes that a job may hold without taking anything from the cache that is in it, but for a little; no more than a
    /// third of all, for tables may come meanwhile.
    fn unused_bytes(&self) -> u64 {
        let cache = self.opener.cache.counters();
        let free = self.opener.cache.budget_bytes().saturating_sub(cache.upper_bytes + cache.lower_bytes);
        (free / 4 * 3).min(self.settings().memory_bytes / 3)
    }
}
