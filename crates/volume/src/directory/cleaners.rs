//! The threads of cleaners: executors of their own, so that transforming pages holds up nobody's I/O.

use std::sync::{Arc, Weak};

use tanada_io::{ExecutorOptions, Executors, Method};

use crate::parts::{CleanerWork, Cleaners, SpawnCleaner};
use crate::{Error, Result};

/// Memory for pages that wait for a cleaner, in bytes.
pub const CLEANER_MEMORY_BYTES: u64 = 64 << 20;

/// See the module's head. When it is dropped the threads end: what they have on the device is waited for, and what they
/// have not begun is left in memory.
#[derive(Debug)]
pub(super) struct CleanerThreads {
    executors: Arc<Executors>,
}

impl CleanerThreads {
    /// Starts so many, none for 0.
    pub(super) fn start(threads: usize, method: Method) -> Result<Option<CleanerThreads>> {
        if threads == 0 {
            return Ok(None);
        }
        let options = ExecutorOptions { threads, method, registered_bytes: 0, ..ExecutorOptions::default() };
        let executors =
            Executors::start(options).map_err(|error| Error::io("threads of cleaners", &error))?;
        Ok(Some(CleanerThreads { executors }))
    }

    /// The part of a volume whose cleaners run here.
    pub(super) fn part(&self) -> Cleaners {
        Cleaners {
            count: self.executors.threads(),
            memory_bytes: CLEANER_MEMORY_BYTES,
            spawn: Arc::new(OnThreads { executors: Arc::downgrade(&self.executors) }),
        }
    }
}

#[derive(Debug)]
struct OnThreads {
    executors: Weak<Executors>,
}

impl SpawnCleaner for OnThreads {
    fn spawn(&self, work: CleanerWork) {
        // Without the threads a sync stores what waits.
        if let Some(executors) = self.executors.upgrade() {
            executors.spawn(move || work).detach();
        }
    }
}
