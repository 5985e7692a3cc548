//! The limit of the fastest class, `fast_class_bytes`.
//!
//! Who makes an object asks first, and makes it on another class once what lies on the fastest one, with what the log
//! needs next, would be more than the limit. Where the other classes are full, what is left of the limit is all the
//! room there is, and puts are refused as in a volume that is full ([`super::reservation`]). Counting that takes time
//! where there are many objects, so it is done now and then as long as whatever is made surely fits, and each time when
//! it may not.
//!
//! Sizes of log segments and memtables, and what is kept for deletes, go by the limit where it counts, as by the
//! size of a class.
//!
//! When the limit is lowered, memtables are flushed, mirrors go, spills are due, and what leaves have there goes to the
//! next class ([`crate::database::maintenance::relocation`]), until the database is within it. When the volume's
//! classes change, whoever changes them, all of that is looked at anew.

use crate::tuning::space::SIZES;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::database::shared::Writing;
use crate::database::space::account::SpaceManager;
use crate::database::space::size_limits::log_segment_bytes;
use crate::database::space::watch::Watch;

impl SpaceManager {
    /// Looks whether the fastest class is as full as it may get, or nearly.
    pub(crate) fn watch_fast_class(&self) {
        let share = self.look_at_limit().map_or(0.0, |(limit, needed)| {
            needed.saturating_sub(self.mirrored_bytes()) as f64 / limit.max(1) as f64
        });
        self.update_room(share);
    }

    /// Looks whether the fastest class is as full as the database may make it: its limit, and the bytes there with
    /// those that it needs next.
    fn look_at_limit(&self) -> Option<(u64, u64)> {
        let settings = self.shared.settings();
        let Some(limit) = settings.fast_class_bytes else {
            self.shared.classes.set_fast_full(false);
            self.shared.objects.note_left_on_fastest(None);
            return None;
        };
        // Log segments are prepared ahead, so there has to be space for two.
        let reserve = (2 * log_segment_bytes(self.shared.objects.volume(), &settings)).min(limit / 4);
        let used = self.fast_class_bytes();
        let needed = used + reserve;
        self.shared.objects.note_left_on_fastest(Some(limit.saturating_sub(used)));
        self.shared.classes.set_fast_full(needed > limit);
        Some((limit, needed))
    }

    /// Returns how many new objects certainly fit into the rest of the limit, growth of objects that are being written
    /// included.
    fn still_fit(&self, limit: u64, needed: u64) -> u64 {
        let log_segment = log_segment_bytes(self.shared.objects.volume(), &self.shared.settings());
        let largest = (2 * log_segment).min(limit / 8).max(1);
        (limit.saturating_sub(needed) / largest).saturating_sub(SIZES.growing_objects)
    }

    /// Has objects made elsewhere as soon as the fastest class is as full as it may get: a job or a load goes on for
    /// long.
    pub(crate) fn keep_limit(space: &Arc<SpaceManager>) {
        let weak = Arc::downgrade(space);
        space.shared.objects.ask(move |class| {
            let space = weak.upgrade()?;
            let Watch { next_count_ns, still_fit, .. } = &space.limit;
            let began = space.shared.environment.now();
            let less = |fit: u64| fit.checked_sub(1);
            let fits = still_fit.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less).is_ok();
            let may_be_too_many = !fits && !space.shared.classes.is_fast_full();
            if may_be_too_many || began.as_nanos() as u64 >= next_count_ns.load(Ordering::Relaxed) {
                let (limit, needed) = space.look_at_limit()?;
                still_fit.store(space.still_fit(limit, needed), Ordering::Relaxed);
                let ended = space.shared.environment.now();
                let next = ended + ended.saturating_sub(began) * SIZES.count_pause_factor;
                next_count_ns.store(next.as_nanos() as u64, Ordering::Relaxed);
            }
            space.shared.classes.instead_of(class)
        });
    }

    /// Has workers look again whenever the volume's classes change, whoever changes them: what there was no space for
    /// goes where it belongs.
    pub(crate) fn follow_classes(space: &Arc<SpaceManager>) {
        if space.shared.writing.is_none() {
            return;
        }
        // Accounts for what a crash or another owner of the volume has left.
        space.watch_fast_class();
        if space.shared.classes.is_fast_full() {
            space.unsettle();
        }
        let weak = Arc::downgrade(space);
        let listener = space.shared.objects.volume().on_class_change(move || {
            let Some(space) = weak.upgrade() else { return };
            space.unsettle();
            if let Some(writing) = &space.shared.writing {
                space.look_anew(writing);
            }
            space.limit.note_log_unsettled();
            space.shared.background.work.notify();
            space.shared.background.progress.notify();
        });
        // Called only once.
        let _ = space.class_listener.set(listener);
    }

    /// Has each object looked at that may lie elsewhere than it is meant to.
    fn unsettle(&self) {
        for store in &*self.shared.stores.read() {
            store.unsettled.note_all(&store.view.read().tree);
        }
    }

    /// Looks at the limit, whenever that was looked at last.
    fn count_anew(&self) {
        self.limit.still_fit.store(0, Ordering::Relaxed);
        self.limit.next_count_ns.store(0, Ordering::Relaxed);
        self.watch_fast_class();
    }

    /// Sizes go by the limit, or by the class where that does not count, and what was counted was for another one.
    fn look_anew(&self, writing: &Writing) {
        let segment_bytes = || log_segment_bytes(self.shared.objects.volume(), &self.shared.settings());
        // Concurrent changes see each other's effect.
        let mut bytes = segment_bytes();
        loop {
            writing.log.set_segment_bytes(bytes);
            let now = segment_bytes();
            if now == bytes {
                break;
            }
            bytes = now;
        }
        self.count_anew();
        self.note_reserve();
    }

    /// To be called when there is another limit. Returns whether the fastest class is beyond it: then the log that
    /// memtables need has to leave with them.
    pub(crate) fn limit_changed(&self, writing: &Writing) -> bool {
        self.look_anew(writing);
        self.shared.classes.is_fast_full()
    }

    /// Bytes on the fastest class beyond the limit that neither mirrors nor spills free.
    pub(crate) fn over_limit(&self) -> u64 {
        let Some(limit) =
            self.shared.settings().fast_class_bytes.filter(|_| self.shared.classes.is_fast_full())
        else {
            return 0;
        };
        let stores = self.shared.stores.read().clone();
        let spillable: u64 = stores.iter().map(|store| self.spillable_bytes(store)).sum();
        self.fast_class_bytes().saturating_sub(self.mirrored_bytes() + spillable).saturating_sub(limit)
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use crate::database::maintenance::turn::Turn;
    use crate::environment::wait_for;
    use crate::testing::TestVolume;
    use crate::{Database, DatabaseOverrides, DatabaseSettings, PolicyTemplate, StoreSettings};

    /// Workers who look while another has the turn, and are told nothing when that ends, look again.
    #[test]
    fn segments_held_by_another_worker_leave_the_fastest_class_later() {
        let volume = TestVolume::new();
        let settings = DatabaseSettings {
            memory_bytes: 4 << 20,
            memory_table_bytes: 128 << 10,
            log_segment_bytes: 1 << 20,
            ..DatabaseSettings::default()
        };
        let environment = volume.environment();
        let database =
            wait_for(Database::create(&volume.volume, "test", &settings, environment.clone())).unwrap();
        let settings =
            StoreSettings { policy: PolicyTemplate::StagingOnly.into(), ..StoreSettings::default() };
        let store = wait_for(database.create_store("a", &settings)).unwrap();
        for no in 0..10_000u32 {
            wait_for(store.put(&no.to_be_bytes(), &[7; 1000])).unwrap();
        }
        wait_for(store.compact()).unwrap();
        let core = store.core();
        let turn = loop {
            if let Some(turn) = Turn::take(&core.shared, store.state()) {
                break turn;
            }
            std::thread::yield_now();
        };
        let limit =
            DatabaseOverrides { fast_class_bytes: Some(Some(4 << 20)), ..DatabaseOverrides::default() };
        wait_for(database.set_settings(&limit)).unwrap();
        // Till all workers have looked.
        std::thread::sleep(Duration::from_millis(500));
        assert!(core.space.over_limit() > 4 << 20, "{}", core.space.over_limit());
        drop(turn);
        let began = Instant::now();
        while core.space.over_limit() > 0 {
            assert!(began.elapsed() < Duration::from_secs(60), "{} bytes too many", core.space.over_limit());
            std::thread::sleep(Duration::from_millis(10));
        }
        wait_for(database.close()).unwrap();
    }
}
