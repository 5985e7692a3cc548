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

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use super::core::Core;
use super::store::StoreState;
use crate::entry::SegmentNo;
use crate::log::frame::{OperationKind, Payload};
use crate::objects::ObjectKind;
use crate::tree::garbage::Space;
use crate::{Error, ErrorKind, Result};

/// Why writers are stalled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cause {
    /// Memtables wait to be flushed.
    MemoryTables,
    /// Too many kvsets at the root.
    RootKvsets,
    /// The fastest class is nearly full, and spills lag behind.
    FastClass,
    /// The log has no space: it is written to, or a segment is being prepared.
    Log,
    /// Values take up far more space than is in use of them.
    Space,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Pressure {
    None,
    Slow(Duration, Cause),
    Stop(Cause),
}

/// Longest delay of a write for root kvsets.
const MAX_DELAY: Duration = Duration::from_millis(1);

/// Longest delay of a write for space on the fastest class.
const MAX_DELAY_FOR_FAST_CLASS: Duration = Duration::from_micros(250);

/// Longest delay of a write for garbage.
const MAX_DELAY_FOR_GARBAGE: Duration = Duration::from_millis(10);
const SLOWED_FOR_SPACE: [f64; 2] = [1.25, 1.75];

/// Garbage below this many value segments delays no writes, unless it is a quarter of the free space.
const MIN_EXCESS_SEGMENTS: u64 = 2;

/// Fraction of the fastest class in use from which on writes are delayed.
const DELAY_FROM_FRACTION: f64 = 0.875;

/// Returns the delay of writes at this used share of the fastest class, the next need of the log included.
fn slowed_for_room(share: f64) -> Duration {
    MAX_DELAY_FOR_FAST_CLASS
        .mul_f64(((share - DELAY_FROM_FRACTION) / (1.0 - DELAY_FROM_FRACTION)).clamp(0.0, 1.0))
}

/// Returns the delay of writes for garbage.
fn slowed_for_space(space: Space, segment_bytes: u64, free_bytes: u64) -> Duration {
    let [from, to] = SLOWED_FOR_SPACE;
    if space.excess < (MIN_EXCESS_SEGMENTS * segment_bytes).min(free_bytes / 4) {
        return Duration::ZERO;
    }
    MAX_DELAY_FOR_GARBAGE.mul_f64(((space.over - from) / (to - from)).clamp(0.0, 1.0))
}

/// Returns whether anything is put in.
pub(super) fn has_puts(payload: &Payload) -> bool {
    payload.operations().flatten().any(|operation| operation.kind == OperationKind::Put)
}

impl Core {
    /// Notes how much space a store takes beyond what it needs.
    pub(crate) fn note_space(&self, store: &Arc<StoreState>, space: Space) {
        let time = slowed_for_space(space, store.settings().value_segment_bytes, self.free_for_jobs().0);
        if store.cleaning.set_slowed(time) {
            self.update_pressure([store]);
            self.background.progress.notify();
        }
    }

    /// Looks whether the tables that wait to be flushed have as much memory as they may, all stores' together.
    fn look_at_tables(&self) -> bool {
        let settings = self.settings();
        let most = (settings.waiting_tables as u64).saturating_mul(settings.table_bytes());
        let waiting: u64 = self.stores.read().iter().map(|store| store.waiting_bytes()).sum();
        self.background.tables_wait.store(waiting >= most, Ordering::Release);
        waiting >= most
    }

    fn pressure(&self, store: &StoreState) -> Pressure {
        let view = store.view.read();
        let settings = self.settings();
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
        let for_root = MAX_DELAY * (kvsets - settings.slow_root_kvsets + 1) as u32 / steps;
        match for_space > for_root {
            true => Pressure::Slow(for_space, Cause::Space),
            false => Pressure::Slow(for_root, Cause::RootKvsets),
        }
    }

    /// To be called when something came to the fastest class or left it, and `share` of what the database may have
    /// there is in use.
    pub(crate) fn update_room(&self, share: f64) {
        let lags = share > DELAY_FROM_FRACTION && self.spills_lag();
        let time = if lags { slowed_for_room(share) } else { Duration::ZERO };
        self.slowed_us.store(time.as_micros() as u32, Ordering::Relaxed);
        self.hurry.room.store(lags, Ordering::Relaxed);
    }

    /// Bytes of values at the store's root that a spill would take from the fastest class.
    pub(super) fn spillable_bytes(&self, store: &StoreState) -> u64 {
        let Some(fastest) = self.classes.fastest() else { return 0 };
        let classes = self.objects.volume().classes();
        let Some(class) = classes.iter().find(|class| class.name == fastest) else { return 0 };
        let placement = self.classes.wanted(&store.policy());
        if !placement.is_ok_and(|placement| placement.moves_values && placement.leaf_values != fastest) {
            return 0;
        }
        let tree = store.view.read().tree.clone();
        let references = tree.root.iter().flat_map(|kvset| &kvset.record().info.references);
        let there = references.filter(|references| self.lies_on(references.segment, class.number));
        there.map(|references| references.stored_bytes).sum()
    }

    /// Returns whether a spill is due that would take values from the fastest class.
    fn spills_lag(&self) -> bool {
        // Not under the lock of the list, which what follows takes again: between the two somebody may wait to change
        // it.
        let stores = self.stores.read().clone();
        stores.iter().any(|store| {
            let bytes = self.spillable_bytes(store);
            let kvsets = store.view.read().tree.root.len();
            bytes > 0 && (kvsets >= self.root_kvsets() || self.log_pressure(bytes) >= 1.0)
        })
    }

    /// Returns whether a segment, which may have been meant for another class, lies on this one.
    pub(crate) fn lies_on(&self, segment: SegmentNo, class: u8) -> bool {
        let object = self.objects.find(ObjectKind::Segment, segment);
        let first = object.and_then(|object| object.chunks(0..1).first().and_then(|chunk| chunk.home));
        first.is_some_and(|home| home.class == class)
    }

    /// Ends the work in the background as soon as may be, and waits for it.
    pub(crate) async fn end_background(&self) {
        self.hurry.end.store(true, Ordering::Relaxed);
        self.background.end().await;
    }

    /// To be called when tables or kvsets of stores came or went.
    pub(crate) fn update_pressure<'a>(&self, changed: impl IntoIterator<Item = &'a Arc<StoreState>>) {
        changed.into_iter().for_each(|store| self.update_level(store));
        let tables_wait = self.look_at_tables();
        let stores = self.stores.read().clone();
        let is_pressed = tables_wait || stores.iter().any(|store| store.pressure.load(Ordering::Relaxed) > 0);
        self.hurry.writers.store(is_pressed, Ordering::Relaxed);
        let has_mirrors = |store: &StoreState| !store.view.read().tree.mirrors.is_empty();
        let comes_free = stores.iter().any(|store| has_mirrors(store) || self.spillable_bytes(store) > 0);
        self.classes.set_log_comes_free(comes_free);
        self.classes.note_fastest();
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
        let slowed_us = self.slowed_us.load(Ordering::Relaxed);
        if slowed_us > 0 {
            let time = Duration::from_micros(u64::from(slowed_us));
            self.counters.slowed.add(1);
            self.counters.stalled(Cause::FastClass, time);
            self.environment.sleep(time).await;
        }
        if store.pressure.load(Ordering::Acquire) == 0 && !self.background.tables_wait.load(Ordering::Acquire)
        {
            return Ok(());
        }
        let mut stalled: Option<(Cause, Duration)> = None;
        // Since when nothing could be flushed.
        let mut failed = None;
        let admitted = loop {
            let progress = self.background.progress.notified();
            if self.background.is_stopping() {
                break Err(Error::new(ErrorKind::Closed, "the database was closed"));
            }
            if let Some(error) = self.writing.as_ref().and_then(|writing| writing.log.failure()) {
                break Err(error);
            }
            let pressure = match self.look_at_tables() {
                true => Pressure::Stop(Cause::MemoryTables),
                false => self.pressure(store),
            };
            match pressure {
                Pressure::None => break Ok(()),
                // When jobs have no space, only deletes make some.
                Pressure::Slow(_, Cause::Space) if self.objects.is_short() && !has_puts(payload) => {
                    break Ok(());
                }
                Pressure::Slow(time, cause) => {
                    self.counters.slowed.add(1);
                    self.counters.stalled(cause, time);
                    self.environment.sleep(time).await;
                    break Ok(());
                }
                Pressure::Stop(cause) => {
                    let _waits = self.turns.waits();
                    stalled.get_or_insert((cause, self.environment.now()));
                    let Some(error) = self.background_error() else {
                        progress.await;
                        continue;
                    };
                    let failed = *failed.get_or_insert_with(|| self.environment.now());
                    if error.kind() != ErrorKind::NoSpace || !self.room_may_come(failed, None).await? {
                        break Err(error);
                    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writes_are_slowed_gradually_and_no_more_than_so_much() {
        assert_eq!(slowed_for_room(0.0), Duration::ZERO);
        assert_eq!(slowed_for_room(DELAY_FROM_FRACTION), Duration::ZERO);
        let half = slowed_for_room((1.0 + DELAY_FROM_FRACTION) / 2.0);
        assert!(half > MAX_DELAY_FOR_FAST_CLASS / 3 && half < MAX_DELAY_FOR_FAST_CLASS * 2 / 3, "{half:?}");
        assert_eq!(slowed_for_room(1.0), MAX_DELAY_FOR_FAST_CLASS);
        assert_eq!(slowed_for_room(7.0), MAX_DELAY_FOR_FAST_CLASS);
    }
}
