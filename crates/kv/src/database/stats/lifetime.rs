//! The activity of a database: since its opening, and over its life.

use crate::tuning::writes::BACKGROUND;

use crate::database::shared::Shared;
use crate::database::stats::activity::Activity;

impl Shared {
    /// Since the opening.
    pub(crate) fn activity(&self) -> Activity {
        let counters = &self.counters;
        let cache = self.opener.cache.counters();
        let log_syncs = self.writing.as_ref().map_or(0, |writing| writing.log.counters().syncs.get());
        Activity {
            openings: u64::from(self.writing.is_some()),
            operations_written: counters.written_operations.get(),
            bytes_written: counters.written_bytes.get(),
            bytes_loaded: counters.loaded_bytes.get(),
            written: self.objects.written(),
            bytes_read_by_jobs: counters.job_read_bytes.get(),
            gets: counters.gets.get(),
            gets_from_memory: counters.gets_from_memory.get(),
            cache_loads: cache.loads,
            cache_value_loads: cache.value_loads,
            log_syncs,
            flushes: counters.flushes.get(),
            jobs: counters.jobs.get(),
            jobs_without_space: counters.jobs_without_space.get(),
            jobs_by_kind: counters.jobs_by_kind(),
            bytes_promoted: counters.promoted_bytes.get(),
            bytes_relocated: counters.relocated_bytes.get(),
            objects_deleted: counters.deleted_objects.get(),
            writes_slowed: counters.slowed.get(),
            stalls: counters.stalls(),
            write_latencies: counters.writes.histogram(),
            read_latencies: counters.reads.histogram(),
        }
    }

    /// Over all openings.
    pub(crate) fn lifetime(&self) -> Activity {
        self.earlier.with(&self.activity())
    }

    /// The same, if the manifest has not been told for a while.
    pub(crate) fn lifetime_if_due(&self) -> Option<Activity> {
        let now = self.environment.now();
        let mut noted = self.activity_noted.lock();
        let is_due = noted.is_none_or(|noted| now.saturating_sub(noted) >= BACKGROUND.min_note_interval);
        is_due.then(|| {
            *noted = Some(now);
            self.lifetime()
        })
    }
}
