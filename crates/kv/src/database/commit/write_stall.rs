//! Holding writers back when memtables or trees cannot keep pace.
//!
//! Each store has a level: none, *slow* (each write waits a little, the longer the more kvsets are at the root) or
//! *stop* (writes wait until something was done). It is set whenever tables or kvsets come or go; a write looks at it
//! without a lock.
//!
//! Tables that wait take memory, whosever they are: when all stores' together are as many bytes as one store's full
//! tables may be, writes to any store wait.
//!
//! They are slowed, too, when values take up far more space than is in use of them: jobs that free it lag behind.
//!
//! The database has one more: writes are slowed when the fastest class is nearly as full as it may get, and a spill is
//! due that would free some of it; so that spills can keep pace, before the log goes to a slower class. They are never
//! stopped for that: the log has a place to go to. A class that is full without such a limit is the log's affair, which
//! waits a while for space (`log::writer`).

use crate::tuning::writes::STALLS;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use crate::database::commit::committer::Committer;
use crate::database::state::store_state::StoreState;
use crate::database::stats::counters::Cause;
use crate::log::frame::Payload;
use crate::tree::garbage::Space;
use crate::{Error, ErrorKind, Result};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Pressure {
    None,
    Slow(Duration, Cause),
    Stop(Cause),
}

const SLOWED_FOR_SPACE: [f64; 2] = [1.25, 1.75];

/// Returns the delay of writes for garbage.
fn slowed_for_space(space: Space, segment_bytes: u64, free_bytes: u64) -> Duration {
    let [from, to] = SLOWED_FOR_SPACE;
    if space.excess < (STALLS.min_excess_segments * segment_bytes).min(free_bytes / 4) {
        return Duration::ZERO;
    }
    STALLS.max_delay_for_garbage.mul_f64(((space.over - from) / (to - from)).clamp(0.0, 1.0))
}

impl Committer {
    /// Notes how much space a store takes beyond what it needs.
    pub(crate) fn note_space(&self, store: &Arc<StoreState>, space: Space) {
        let time =
            slowed_for_space(space, store.settings().value_segment_bytes, self.space.free_for_jobs().0);
        if store.cleaning.set_slowed(time) {
            self.update_pressure([store]);
            self.shared.background.progress.notify();
        }
    }

    /// Looks whether the tables that wait to be flushed have as much memory as they may, all stores' together.
    fn look_at_tables(&self) -> bool {
        let settings = self.shared.settings();
        let most = (settings.waiting_tables as u64).saturating_mul(settings.table_bytes());
        let waiting: u64 = self.shared.stores.read().iter().map(|store| store.waiting_bytes()).sum();
        self.tables_wait.store(waiting >= most, Ordering::Release);
        waiting >= most
    }

    fn pressure(&self, store: &StoreState) -> Pressure {
        let view = store.view.read();
        let settings = self.shared.settings();
        if view.waiting.len() >= settings.waiting_tables {
            return Pressure::Stop(Cause::MemoryTables);
        }
        let kvsets = view.tree.root.len();
        if kvsets >= settings.most_root_kvsets {
            return Pressure::Stop(Cause::RootKvsets);
        }
        let for_space = store.cleaning.slowed();
        if kvsets < settings.slow_root_kvsets {
            return if for_space.is_zero() {
                Pressure::None
            } else {
                Pressure::Slow(for_space, Cause::Space)
            };
        }
        let steps = (settings.most_root_kvsets - settings.slow_root_kvsets).max(1) as u32;
        let for_root = STALLS.max_delay * (kvsets - settings.slow_root_kvsets + 1) as u32 / steps;
        match for_space > for_root {
            true => Pressure::Slow(for_space, Cause::Space),
            false => Pressure::Slow(for_root, Cause::RootKvsets),
        }
    }

    /// To be called when tables or kvsets of stores came or went.
    pub(crate) fn update_pressure<'a>(&self, changed: impl IntoIterator<Item = &'a Arc<StoreState>>) {
        changed.into_iter().for_each(|store| self.update_level(store));
        let tables_wait = self.look_at_tables();
        let stores = self.shared.stores.read().clone();
        let is_pressed = tables_wait || stores.iter().any(|store| store.pressure.load(Ordering::Relaxed) > 0);
        self.shared.hurry.writers.store(is_pressed, Ordering::Relaxed);
        let has_mirrors = |store: &StoreState| !store.view.read().tree.mirrors.is_empty();
        let comes_free =
            stores.iter().any(|store| has_mirrors(store) || self.space.spillable_bytes(store) > 0);
        self.shared.classes.set_log_comes_free(comes_free);
        self.shared.classes.note_fastest();
    }

    fn update_level(&self, store: &StoreState) {
        let level = match self.pressure(store) {
            Pressure::None => 0,
            Pressure::Slow(..) => 1,
            Pressure::Stop(_) => 2,
        };
        store.pressure.store(level, Ordering::Release);
    }

    /// Waits until the store takes a write.
    ///
    /// # Errors
    /// If it never will: the database is closed or poisoned.
    pub(crate) async fn admit(&self, store: &Arc<StoreState>, payload: &Payload) -> Result<()> {
        let slowed_us = self.space.slowed_us.load(Ordering::Relaxed);
        if slowed_us > 0 {
            let time = Duration::from_micros(u64::from(slowed_us));
            self.shared.counters.slowed.add(1);
            self.shared.counters.stalled(Cause::FastClass, time);
            self.shared.environment.sleep(time).await;
        }
        if store.pressure.load(Ordering::Acquire) == 0 && !self.tables_wait.load(Ordering::Acquire) {
            return Ok(());
        }
        let mut stalled: Option<(Cause, Duration)> = None;
        // Since when nothing could be flushed.
        let mut failed = None;
        let admitted = loop {
            let progress = self.shared.background.progress.notified();
            if self.shared.background.is_stopping() {
                break Err(Error::new(ErrorKind::Closed, "the database was closed"));
            }
            if let Some(error) = self.shared.writing.as_ref().and_then(|writing| writing.log.failure()) {
                break Err(error);
            }
            let pressure = match self.look_at_tables() {
                true => Pressure::Stop(Cause::MemoryTables),
                false => self.pressure(store),
            };
            match pressure {
                Pressure::None => break Ok(()),
                // When jobs have no space, only deletes make some.
                Pressure::Slow(_, Cause::Space) if self.shared.objects.is_short() && !payload.has_puts() => {
                    break Ok(());
                }
                Pressure::Slow(time, cause) => {
                    self.shared.counters.slowed.add(1);
                    self.shared.counters.stalled(cause, time);
                    self.shared.environment.sleep(time).await;
                    break Ok(());
                }
                Pressure::Stop(cause) => {
                    let _waits = self.shared.turns.waits();
                    stalled.get_or_insert((cause, self.shared.environment.now()));
                    let Some(error) = self.shared.background_error() else {
                        progress.await;
                        continue;
                    };
                    let failed = *failed.get_or_insert_with(|| self.shared.environment.now());
                    if error.kind() != ErrorKind::NoSpace || !self.space.room_may_come(failed, None).await? {
                        break Err(error);
                    }
                }
            }
        };
        if let Some((cause, since)) = stalled {
            let took = self.shared.environment.now().saturating_sub(since);
            self.shared.counters.stalled(cause, took);
        }
        admitted
    }
}
