//! Room on the fastest class for mirrors and copies.

use crate::tuning::mirrors::ROOMS;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::Ordering;

use crate::database::mirrors::keeper::{Copying, MirrorKeeper};
use crate::database::shared::Writing;
use crate::database::space::size_limits::log_segment_bytes;
use crate::database::state::store_state::StoreState;
use crate::entry::SegmentNo;
use crate::objects::ObjectKind;
use crate::tree::{DenseMirrors, KvsetNo, TreeState};

/// Free space of a class that others need, too.
#[derive(Debug, Clone, Copy)]
struct Room {
    pub(crate) free: u64,
    /// Bytes that mirrors leave free for others.
    pub(crate) spared: u64,
    /// Written there already, beyond its bounds.
    pub(crate) beyond: u64,
}

impl Room {
    /// Bytes of mirrors that have to go.
    pub(crate) fn short(&self) -> u64 {
        (self.spared + self.beyond).saturating_sub(self.free)
    }

    /// Bytes that copies may take which leave `more` beside what mirrors leave.
    pub(crate) fn for_copies(&self, more: u64) -> u64 {
        self.free.saturating_sub(self.spared + more)
    }
}

impl MirrorKeeper {
    /// Returns whether there may be mirrors of what a store has in its leaves.
    pub(crate) fn are_mirrors_of_use(&self, store: &StoreState) -> bool {
        let Some(fastest) = self.shared.classes.fastest() else { return false };
        let promotes = store.settings().promoted_bytes_per_second > 0;
        let wanted = self.shared.classes.wanted(&store.policy());
        self.mirrors_what_it_spills(store)
            || (promotes && wanted.is_ok_and(|wanted| wanted.leaf_values != fastest))
    }

    /// Returns whether what is spilled is to become mirrors.
    pub(crate) fn mirrors_what_it_spills(&self, store: &StoreState) -> bool {
        let Some(fastest) = self.shared.classes.fastest() else { return false };
        let wanted = self.shared.classes.wanted(&store.policy());
        store.settings().mirrors
            && self.shared.classes.is_log_on(&fastest)
            && wanted.is_ok_and(|wanted| {
                wanted.moves_values && wanted.leaf_values != fastest && wanted.root_keys == fastest
            })
    }

    /// The fastest class and what it has free: all of it, and what the database may have there.
    fn rooms(&self) -> Vec<Room> {
        let (volume, settings) = (self.shared.objects.volume(), self.shared.settings());
        let segment_bytes = log_segment_bytes(volume, &settings);
        let spared =
            ROOMS.free_log_segments * segment_bytes + settings.table_bytes() / ROOMS.free_memtable_divisor;
        let fastest = self.shared.classes.fastest();
        let class = volume.classes().into_iter().find(|class| fastest.as_ref() == Some(&class.name));
        let of_class = class.map(|class| Room {
            free: class.free() * volume.chunk_bytes(),
            spared: spared.min(class.chunks * volume.chunk_bytes() / 2),
            beyond: 0,
        });
        let of_limit = settings.fast_class_bytes.map(|limit| {
            let taken = self.space.fast_class_bytes();
            Room {
                free: limit.saturating_sub(taken),
                // One more may be prepared before this is looked at again; objects that find the limit reached go
                // elsewhere.
                spared: (spared + segment_bytes).min(limit / 2),
                beyond: taken.saturating_sub(limit),
            }
        });
        of_class.into_iter().chain(of_limit).collect()
    }

    /// Bytes of mirrors that are in the way, as far as it can be known.
    pub(crate) fn mirrors_surplus(&self) -> u64 {
        self.rooms().iter().map(Room::short).max().unwrap_or(0)
    }

    /// Asks for space for this many bytes of copies, in place of mirrors of little worth.
    pub(crate) fn ask_for_way(&self, bytes: u64) {
        let now = self.shared.environment.now();
        let mut asked = self.asked_for_way.lock();
        if asked.is_none_or(|asked| now.saturating_sub(asked) >= ROOMS.min_eviction_interval) {
            *asked = Some(now);
            self.making_way.store(bytes, Ordering::Relaxed);
            self.shared.background.work.notify();
        }
    }

    /// Bytes of mirrors that have to go so that copies find space for `way` bytes.
    pub(crate) fn missing_for_copies(&self, way: u64) -> u64 {
        let segment_bytes = log_segment_bytes(self.shared.objects.volume(), &self.shared.settings());
        let wanted = ROOMS.free_log_segments_for_copies * segment_bytes + way;
        self.rooms().iter().map(|room| (room.spared + wanted).saturating_sub(room.free)).max().unwrap_or(0)
    }

    /// Bytes of the fastest class that may be taken for copies of what has no mirror, beside what jobs may yet take for
    /// `copying`.
    pub(crate) fn copies_room(&self, copying: u64) -> u64 {
        let segment_bytes = log_segment_bytes(self.shared.objects.volume(), &self.shared.settings());
        let rooms = self.rooms().into_iter();
        rooms
            .map(|room| room.for_copies(ROOMS.free_log_segments_for_copies * segment_bytes + copying))
            .min()
            .unwrap_or(0)
    }

    /// Bytes that may be taken there for copies in whose place log segments go: all but what the log needs meanwhile,
    /// and what jobs may yet take for `copying`.
    pub(crate) fn passing_room(&self, copying: u64) -> u64 {
        let segment_bytes = log_segment_bytes(self.shared.objects.volume(), &self.shared.settings());
        let rooms = self.rooms().into_iter();
        rooms.map(|room| room.free.saturating_sub(segment_bytes + copying)).min().unwrap_or(0)
    }

    /// Takes space for the copies that `what` says there is space for, given what other jobs may yet take.
    pub(crate) fn take_room_for_copies(
        &self,
        what: impl FnOnce(u64) -> Option<DenseMirrors>,
    ) -> (Option<DenseMirrors>, Copying<'_>) {
        let mut copying = self.copying.lock();
        let dense = what(*copying);
        let bytes = dense.as_ref().map_or(0, |dense| dense.room_bytes);
        *copying += bytes;
        (dense, Copying { copying: &self.copying, bytes })
    }

    /// Returns where live values of sparse log segments of these root kvsets are copied: such segments would be poor
    /// mirrors.
    pub(crate) fn dense_mirrors(
        &self,
        writing: &Writing,
        tree: &TreeState,
        spilled: &[KvsetNo],
        copying: u64,
    ) -> Option<DenseMirrors> {
        let class = self.shared.classes.fastest()?;
        let room_bytes = self.passing_room(copying);
        let mut in_use: BTreeMap<SegmentNo, u64> = BTreeMap::new();
        for store in self.shared.stores.read().iter() {
            let tree = store.view.read().tree.clone();
            for (segment, (_, bytes)) in tree.references() {
                *in_use.entry(segment).or_default() += bytes;
            }
            for (segment, mirror) in &tree.mirrors {
                *in_use.entry(*segment).or_default() += mirror.stored_bytes;
            }
        }
        // Memtables may have what is nowhere else yet.
        let unfinished: BTreeSet<SegmentNo> = writing.log.segments().into_iter().collect();
        let is_sparse = |segment: &SegmentNo| {
            let size = self
                .shared
                .objects
                .find(ObjectKind::Segment, *segment)
                .map_or(0, |object| object.size_bytes());
            let in_use = in_use.get(segment).copied().unwrap_or_default();
            !unfinished.contains(segment) && (in_use as f64) < size as f64 * ROOMS.sparse_live_fraction
        };
        let spilled = tree.root.iter().filter(|kvset| spilled.contains(&kvset.no()));
        let mut moved: BTreeMap<SegmentNo, u64> = BTreeMap::new();
        for references in spilled.flat_map(|kvset| &kvset.record().info.references) {
            *moved.entry(references.segment).or_default() += references.stored_bytes;
        }
        moved.retain(|segment, _| !tree.segments.contains_key(segment) && is_sparse(segment));
        let is_worth_it = moved.values().sum::<u64>()
            >= ROOMS.min_copied_chunks * self.shared.objects.volume().chunk_bytes();
        is_worth_it.then(|| DenseMirrors {
            class,
            sparse: moved.into_keys().collect(),
            room_bytes,
            ..DenseMirrors::default()
        })
    }

    /// Mirrors of what a compaction moves and has none, in room that nobody wants.
    pub(crate) fn more_mirrors(&self, copying: u64) -> Option<DenseMirrors> {
        let class = self.shared.classes.fastest()?;
        let room_bytes = self.copies_room(copying);
        let is_worth_it = room_bytes >= ROOMS.min_copied_chunks * self.shared.objects.volume().chunk_bytes();
        is_worth_it.then(|| DenseMirrors { class, room_bytes, ..DenseMirrors::default() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recently_copied_mirrors_do_not_count_as_shortage() {
        let room = Room { free: 100, spared: 40, beyond: 0 };
        assert_eq!((room.short(), room.for_copies(20)), (0, 40));
        let filled = Room { free: 100 - 40, ..room };
        assert_eq!((filled.short(), filled.for_copies(20)), (0, 0));
        assert_eq!(Room { free: 30, ..room }.short(), 10);
        assert_eq!(Room { free: 0, beyond: 7, ..room }.short(), 47);
    }
}
