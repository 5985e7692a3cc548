//! Holding writers back when memory tables or trees cannot keep pace.
//!
//! Each store has a level: none, *slow* (each write waits a little, the longer the more kvsets are at the root) or *stop* (writes wait until something was
//! done). It is set whenever tables or kvsets come or go; a write looks at it without a lock.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use super::core::Core;
use super::store::StoreState;
use crate::{Error, ErrorKind, Result};

/// Why writers are held back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cause {
    /// Memory tables wait to be written out.
    MemoryTables,
    /// There are too many kvsets at the root.
    RootKvsets,
    /// The log has no room: it is written to, or a segment is being prepared.
    Log,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Pressure {
    None,
    Slow(Duration),
    Stop(Cause),
}

/// The longest that a write is slowed.
const SLOWEST: Duration = Duration::from_millis(1);

impl Core {
    fn pressure(&self, store: &StoreState) -> Pressure {
        let view = store.view.read();
        let settings = &self.settings;
        if view.waiting.len() >= settings.waiting_tables {
            return Pressure::Stop(Cause::MemoryTables);
        }
        let kvsets = view.tree.root.len();
        if kvsets >= settings.most_root_kvsets {
            return Pressure::Stop(Cause::RootKvsets);
        }
        if kvsets < settings.slow_root_kvsets {
            return Pressure::None;
        }
        let steps = (settings.most_root_kvsets - settings.slow_root_kvsets).max(1) as u32;
        Pressure::Slow(SLOWEST * (kvsets - settings.slow_root_kvsets + 1) as u32 / steps)
    }

    /// To be called when tables or kvsets of a store came or went.
    pub(crate) fn update_pressure(&self, store: &StoreState) {
        let level = match self.pressure(store) {
            Pressure::None => 0,
            Pressure::Slow(_) => 1,
            Pressure::Stop(_) => 2,
        };
        store.pressure.store(level, Ordering::Release);
        let comes_free = self.stores.read().iter().any(|store| self.moves_log(store));
        self.log_comes_free.store(comes_free, Ordering::Relaxed);
    }

    /// Whether what the store has in the log is on its way to another class.
    fn moves_log(&self, store: &StoreState) -> bool {
        let view = store.view.read();
        let is_above = !view.waiting.is_empty() || !view.tree.root.is_empty();
        is_above && self.placement(&store.settings).is_ok_and(|placement| placement.moves_values)
    }

    /// Waits until the store takes a write.
    ///
    /// # Errors
    /// If it never will: the database is closed or poisoned.
    pub(crate) async fn admit(&self, store: &Arc<StoreState>) -> Result<()> {
        if store.pressure.load(Ordering::Acquire) == 0 {
            return Ok(());
        }
        let mut stalled: Option<(Cause, Duration)> = None;
        let admitted = loop {
            let progress = self.background.progress.notified();
            if self.background.is_stopping() {
                break Err(Error::new(ErrorKind::Closed, "the database was closed"));
            }
            if let Some(error) = self.writing.as_ref().and_then(|writing| writing.log.failure()) {
                break Err(error);
            }
            match self.pressure(store) {
                Pressure::None => break Ok(()),
                Pressure::Slow(time) => {
                    self.counters.slowed.add(1);
                    self.environment.sleep(time).await;
                    break Ok(());
                }
                Pressure::Stop(cause) => {
                    if let Some(error) = self.background_error(cause) {
                        break Err(error);
                    }
                    stalled.get_or_insert((cause, self.environment.now()));
                    progress.await;
                }
            }
        };
        if let Some((cause, since)) = stalled {
            let took = self.environment.now().saturating_sub(since);
            self.counters.stalled(cause, took);
        }
        admitted
    }
}
