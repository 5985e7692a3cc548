//! The right to do a job of a store, and what came of looking for one.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tanada_volume::Claim;

use crate::Result;
use crate::database::shared::Shared;
use crate::database::state::store_state::StoreState;
use crate::notify::Notify;

/// The result of looking for a job and running it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    Progress,
    Idle,
    /// A job is due and finds no space; no event will announce when it does.
    NoSpace,
    /// A job will be due after this time.
    RetryAfter(Duration),
}

impl Outcome {
    /// Combines the outcomes of two tasks, of which this one comes first.
    pub(crate) fn or(self, other: Outcome) -> Outcome {
        match (self, other) {
            (did, Outcome::Idle) => did,
            (Outcome::RetryAfter(one), Outcome::RetryAfter(other)) => Outcome::RetryAfter(one.min(other)),
            (Outcome::Idle, Outcome::RetryAfter(later)) => Outcome::RetryAfter(later),
            (did, Outcome::RetryAfter(_)) => did,
            (_, other) => other,
        }
    }
}

/// The right to do a job of a store.
#[derive(Debug)]
pub(crate) struct Turn {
    store: Arc<StoreState>,
    progress: Notify,
    /// The workers' notification, if it is not one of them that has the turn: they may have passed the store by
    /// meanwhile.
    work: Option<Notify>,
    /// Keeps the database from being opened while the owner of the turn may still write. Workers need none, since a
    /// close waits for them.
    pub(crate) claim: Option<Arc<Claim>>,
}

impl Turn {
    /// Takes the turn for a worker, which looks for further jobs afterwards.
    pub(crate) fn take(shared: &Shared, store: &Arc<StoreState>) -> Option<Turn> {
        let is_free = !store.has_job.swap(true, Ordering::AcqRel);
        is_free.then(|| Turn {
            store: store.clone(),
            progress: shared.background.progress.clone(),
            work: None,
            claim: None,
        })
    }

    /// Takes the turn for a caller that is not a worker.
    pub(crate) fn take_from_workers(shared: &Shared, store: &Arc<StoreState>) -> Option<Turn> {
        let mut turn = Turn::take(shared, store)?;
        turn.work = Some(shared.background.work.clone());
        turn.claim = shared.claim.lock().clone();
        Some(turn)
    }

    /// Waits for it.
    ///
    /// # Errors
    /// If the database takes no writes.
    pub(crate) async fn wait(shared: &Shared, store: &Arc<StoreState>) -> Result<Turn> {
        loop {
            let progress = shared.background.progress.notified();
            shared.writing()?;
            if let Some(turn) = Turn::take_from_workers(shared, store) {
                return Ok(turn);
            }
            progress.await;
        }
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        self.store.has_job.store(false, Ordering::Release);
        self.progress.notify();
        if let Some(work) = &self.work {
            work.notify();
        }
    }
}
