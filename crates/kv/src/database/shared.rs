//! What all parts of an open database share: its stores, objects, settings, clock, counters and notifications.
//!
//! The parts stand on one another, each knows those before it: memory budget, space manager, committer, installer,
//! mirrors, relocator, jobs, flusher, scheduler. [`Core`](super::core::Core) has them all.
//!
//! Locks, in the order in which they may be taken: the commit lock, the list of stores, a store's view, the registered
//! snapshots, the log's state. None is held over an await.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use parking_lot::{Mutex, RwLock};
use tanada_volume::Claim;

use crate::classes::Classes;
use crate::crash::CrashPoints;
use crate::database::background::Background;
use crate::database::coop::YieldBudget;
use crate::database::live::LiveDatabaseSettings;
use crate::database::snapshot::Snapshots;
use crate::database::state::store_state::StoreState;
use crate::database::stats::activity::Activity;
use crate::database::stats::counters::Counters;
use crate::environment::Environment;
use crate::log::writer::Log;
use crate::manifest::Manifest;
use crate::objects::Objects;
use crate::pace::Hurry;
use crate::settings::DatabaseSettings;
use crate::tree::Opener;
use crate::{Error, ErrorKind, Result};

/// State of an opening for writing.
#[derive(Debug)]
pub(crate) struct Writing {
    pub(crate) log: Arc<Log>,
    pub(crate) manifest: Manifest,
}

/// See the module's head.
pub(crate) struct Shared {
    pub(crate) name: String,
    /// Which of the databases that this process has opened.
    pub(crate) instance: u64,
    /// Changed under the manifest's lock alone.
    pub(crate) live: LiveDatabaseSettings,
    pub(crate) objects: Arc<Objects>,
    pub(crate) opener: Opener,
    pub(crate) environment: Arc<dyn Environment>,
    pub(crate) crash: CrashPoints,
    /// `None` if it was opened read-only.
    pub(crate) writing: Option<Writing>,
    pub(crate) stores: RwLock<Vec<Arc<StoreState>>>,
    pub(crate) snapshots: Arc<Snapshots>,
    pub(crate) background: Background,
    pub(crate) counters: Counters,
    /// Counters of earlier openings.
    pub(crate) earlier: Activity,
    /// Time when the counters were last written to the manifest.
    pub(crate) activity_noted: Mutex<Option<Duration>>,
    pub(crate) turns: YieldBudget,
    /// Whether jobs have time.
    pub(crate) hurry: Arc<Hurry>,
    /// Say what goes where.
    pub(crate) classes: Arc<Classes>,
    pub(crate) is_closed: AtomicBool,
    /// The right to have it open in this process, until it is closed.
    pub(crate) claim: Mutex<Option<Arc<Claim>>>,
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared").field("name", &self.name).finish_non_exhaustive()
    }
}

impl Shared {
    /// Its settings as they are now.
    pub(crate) fn settings(&self) -> Arc<DatabaseSettings> {
        self.live.now()
    }

    pub(crate) fn writing(&self) -> Result<&Writing> {
        if self.is_closed.load(Ordering::Acquire) {
            return Err(Error::new(ErrorKind::Closed, format!("database {:?} is closed", self.name)));
        }
        self.writing.as_ref().ok_or_else(|| {
            Error::new(ErrorKind::ReadOnly, format!("database {:?} was opened read-only", self.name))
        })
    }

    pub(crate) fn check_open(&self) -> Result<()> {
        if self.is_closed.load(Ordering::Acquire) {
            return Err(Error::new(ErrorKind::Closed, format!("database {:?} is closed", self.name)));
        }
        Ok(())
    }

    /// Returns whether an entry that expires then is expired now.
    pub(crate) fn is_expired(&self, expires_s: Option<u32>) -> bool {
        expires_s.is_some_and(|expires_s| u64::from(expires_s) <= self.environment.wall_time_s())
    }

    /// Returns the error that keeps flushes and jobs from making progress, if there is one.
    pub(crate) fn background_error(&self) -> Option<Error> {
        self.background.failed.lock().clone()
    }

    /// Ends the work in the background as soon as may be, and waits for it.
    pub(crate) async fn end_background(&self) {
        self.hurry.end.store(true, Ordering::Relaxed);
        self.background.end().await;
    }
}
