//! What a database takes up: bytes on each class, segments that are needed, and how urgent it is to free some.

use crate::tuning::writes::STALLS;
use std::collections::BTreeSet;
use std::sync::atomic::Ordering;
use std::time::Duration;

use crate::database::space::account::SpaceManager;
use crate::database::state::store_state::StoreState;
use crate::database::stats::statistics::ClassStatistics;
use crate::entry::SegmentNo;
use crate::objects::ObjectKind;

/// Returns the delay of writes at this used share of the fastest class, the next need of the log included.
fn slowed_for_room(share: f64) -> Duration {
    STALLS
        .max_delay_for_fast_class
        .mul_f64(((share - STALLS.delay_from_fraction) / (1.0 - STALLS.delay_from_fraction)).clamp(0.0, 1.0))
}

impl SpaceManager {
    /// Bytes of chunks of the database's objects, by class.
    pub(crate) fn class_statistics(&self) -> Vec<ClassStatistics> {
        let volume = self.shared.objects.volume();
        let classes = volume.classes();
        let mut statistics: Vec<ClassStatistics> = classes
            .iter()
            .map(|class| ClassStatistics {
                name: class.name.clone(),
                most_reads_per_second: self.shared.opener.segments.most_reads_per_second(&class.name),
                ..ClassStatistics::default()
            })
            .collect();
        let held = self.held_segments();
        for (kind, no) in self.shared.objects.list() {
            let Ok(object) = volume.open_object(&self.shared.objects.name(kind, no)) else { continue };
            let is_logs_own = kind == ObjectKind::Segment && !held.contains(&no);
            for home in object.chunks(0..u64::MAX).into_iter().filter_map(|chunk| chunk.home) {
                let index = classes.iter().position(|class| class.number == home.class);
                let Some(class) = index.map(|index| &mut statistics[index]) else { continue };
                class.log_bytes += if is_logs_own { volume.chunk_bytes() } else { 0 };
                *match kind {
                    ObjectKind::Segment => &mut class.segment_bytes,
                    ObjectKind::Keys => &mut class.key_bytes,
                    ObjectKind::Manifest => &mut class.manifest_bytes,
                } += volume.chunk_bytes();
            }
        }
        statistics
    }

    /// Kvsets at the root that make a spill due.
    pub(crate) fn root_kvsets(&self) -> usize {
        (self.shared.settings().slow_root_kvsets / 2).max(2)
    }

    /// Returns the urgency of emptying log segments on the fastest class: 1 if it is due. The root of the store holds
    /// `log_bytes` in them.
    pub(crate) fn log_pressure(&self, log_bytes: u64) -> f64 {
        let limit = self.shared.settings().fast_class_bytes;
        if log_bytes == 0 && limit.is_none() {
            return 0.0;
        }
        let mirrored = self.mirrored_bytes();
        // Before a limit is reached, so that there is time to make room.
        let by_limit = limit.map_or(0.0, |limit| {
            self.fast_class_bytes().saturating_sub(mirrored) as f64 / (limit.max(1) as f64 * 0.75)
        });
        // The log would go on to a slow class once this one is full. What is free is to be no less than what spills
        // could free.
        let volume = self.shared.objects.volume();
        let by_room = match self.free_on_fastest() {
            Some(free) if volume.classes().len() > 1 => log_bytes as f64 / (free + mirrored).max(1) as f64,
            _ => 0.0,
        };
        by_limit.max(by_room)
    }

    /// Bytes that the database takes up on the fastest class.
    pub(crate) fn fast_class_bytes(&self) -> u64 {
        let fastest = self.shared.classes.fastest();
        let statistics = self.class_statistics().into_iter();
        let fastest = statistics.filter(|class| fastest.as_ref() == Some(&class.name));
        fastest.map(|class| class.segment_bytes + class.key_bytes + class.manifest_bytes).sum()
    }

    /// Bytes that are free on the class that has most, and all of its bytes.
    pub(crate) fn free_for_jobs(&self) -> (u64, u64) {
        self.shared.objects.free_by_class().into_iter().max().unwrap_or_default()
    }

    /// Bytes that are free on the fastest class, whoever else uses it.
    pub(crate) fn free_on_fastest(&self) -> Option<u64> {
        let volume = self.shared.objects.volume();
        let fastest = self.shared.classes.fastest()?;
        let fastest = volume.classes().into_iter().find(|class| class.name == fastest)?;
        Some(fastest.free() * volume.chunk_bytes())
    }

    /// Segments that trees reference, over all stores.
    pub(crate) fn referenced_segments(&self) -> BTreeSet<SegmentNo> {
        let stores = self.shared.stores.read();
        let trees = stores.iter().map(|store| store.view.read().tree.clone());
        trees.flat_map(|tree| tree.references().into_keys()).collect()
    }

    /// Segments that stay whether they are mirrors or not: what trees reference, and the log.
    pub(crate) fn needed_segments(&self) -> BTreeSet<SegmentNo> {
        let mut needed = self.referenced_segments();
        needed.extend(self.shared.writing.iter().flat_map(|writing| writing.log.segments()));
        needed
    }

    /// Bytes that would be free without mirrors: segments of the log that nothing else needs.
    pub(crate) fn mirrored_bytes(&self) -> u64 {
        let stores = self.shared.stores.read().clone();
        let mut mirrors: BTreeSet<SegmentNo> = BTreeSet::new();
        stores.iter().for_each(|store| mirrors.extend(store.view.read().tree.mirrors.keys()));
        if mirrors.is_empty() {
            return 0;
        }
        let Some(fastest) = self.fastest_number() else { return 0 };
        let needed = self.needed_segments();
        mirrors.difference(&needed).map(|segment| self.bytes_on(*segment, fastest)).sum()
    }

    /// Bytes that a segment takes up on a class.
    pub(crate) fn bytes_on(&self, segment: SegmentNo, class: u8) -> u64 {
        let Some(object) = self.shared.objects.find(ObjectKind::Segment, segment) else { return 0 };
        let chunks = object.chunks(0..u64::MAX).into_iter();
        let there = chunks.filter(|chunk| chunk.home.is_some_and(|home| home.class == class));
        there.count() as u64 * self.shared.objects.volume().chunk_bytes()
    }

    pub(crate) fn fastest_number(&self) -> Option<u8> {
        let fastest = self.shared.classes.fastest()?;
        let classes = self.shared.objects.volume().classes();
        classes.iter().find(|class| class.name == fastest).map(|class| class.number)
    }

    /// Bytes that the database may have on the fastest class.
    pub(crate) fn fast_room(&self) -> u64 {
        let fastest = self.shared.classes.fastest();
        let class = self.shared.objects.volume().classes().into_iter();
        let class = class.filter(|class| fastest.as_ref() == Some(&class.name));
        let size = class.map(|class| class.chunks * self.shared.objects.volume().chunk_bytes()).sum();
        self.shared.settings().fast_class_bytes.map_or(size, |limit| limit.min(size))
    }

    /// To be called when something came to the fastest class or left it, and `share` of what the database may have
    /// there is in use.
    pub(crate) fn update_room(&self, share: f64) {
        let lags = share > STALLS.delay_from_fraction && self.spills_lag();
        let time = if lags { slowed_for_room(share) } else { Duration::ZERO };
        self.slowed_us.store(time.as_micros() as u32, Ordering::Relaxed);
        self.shared.hurry.room.store(lags, Ordering::Relaxed);
    }

    /// Bytes of values at the store's root that a spill would take from the fastest class.
    pub(crate) fn spillable_bytes(&self, store: &StoreState) -> u64 {
        let Some(fastest) = self.shared.classes.fastest() else { return 0 };
        let classes = self.shared.objects.volume().classes();
        let Some(class) = classes.iter().find(|class| class.name == fastest) else { return 0 };
        let placement = self.shared.classes.wanted(&store.policy());
        if !placement.is_ok_and(|placement| placement.moves_values && placement.leaf_values != fastest) {
            return 0;
        }
        let tree = store.view.read().tree.clone();
        let references = tree.root.iter().flat_map(|kvset| &kvset.record().info.references);
        let there = references.filter(|references| self.lies_on(references.segment, class.number));
        there.map(|references| references.stored_bytes).sum()
    }

    /// Returns whether a spill is due that would take values from the fastest class.
    pub(crate) fn spills_lag(&self) -> bool {
        // Not under the lock of the list, which what follows takes again: between the two somebody may wait to change
        // it.
        let stores = self.shared.stores.read().clone();
        stores.iter().any(|store| {
            let bytes = self.spillable_bytes(store);
            let kvsets = store.view.read().tree.root.len();
            bytes > 0 && (kvsets >= self.root_kvsets() || self.log_pressure(bytes) >= 1.0)
        })
    }

    /// Returns whether a segment, which may have been meant for another class, lies on this one.
    pub(crate) fn lies_on(&self, segment: SegmentNo, class: u8) -> bool {
        let object = self.shared.objects.find(ObjectKind::Segment, segment);
        let first = object.and_then(|object| object.chunks(0..1).first().and_then(|chunk| chunk.home));
        first.is_some_and(|home| home.class == class)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writes_are_slowed_gradually_and_no_more_than_so_much() {
        assert_eq!(slowed_for_room(0.0), Duration::ZERO);
        assert_eq!(slowed_for_room(STALLS.delay_from_fraction), Duration::ZERO);
        let half = slowed_for_room((1.0 + STALLS.delay_from_fraction) / 2.0);
        assert!(
            half > STALLS.max_delay_for_fast_class / 3 && half < STALLS.max_delay_for_fast_class * 2 / 3,
            "{half:?}"
        );
        assert_eq!(slowed_for_room(1.0), STALLS.max_delay_for_fast_class);
        assert_eq!(slowed_for_room(7.0), STALLS.max_delay_for_fast_class);
    }
}
