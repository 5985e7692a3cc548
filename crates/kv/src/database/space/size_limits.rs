//! How large segments and leaves are: as set, but no more than a part of their class. What is left of one has to be
//! rewritten before its space is free, and a volume that is nearly full has little space for that.

use crate::tuning::space::SIZES;
use std::sync::Arc;

use tanada_volume::Volume;

use crate::database::space::account::SpaceManager;
use crate::database::state::store_state::StoreState;
use crate::settings::DatabaseSettings;
use crate::tree::Kvset;
use crate::tree::job::{data_bytes, key_bytes};
use crate::tree::policy::Placement;

/// Sizes of what a store has.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Shares {
    /// Most bytes of a value segment.
    pub(crate) segment_bytes: u64,
    /// A segment with fewer bytes is small: what it has could be a half of another one, and its last chunk may be more
    /// than a quarter of it.
    pub(crate) small_segment_bytes: u64,
    /// Most bytes of a leaf, all kvsets together.
    pub(crate) leaf_bytes: u64,
}

impl SpaceManager {
    /// The sizes where things go by `placement`.
    pub(crate) fn shares(&self, store: &StoreState, placement: Option<&Placement>) -> Shares {
        let volume = self.shared.objects.volume();
        let (classes, chunk_bytes) = (volume.classes(), volume.chunk_bytes());
        let bytes_of = |name: Option<&String>| {
            let class = classes.iter().find(|class| Some(&class.name) == name);
            class.map_or(u64::MAX, |class| class.chunks.saturating_mul(chunk_bytes))
        };
        let values = placement.map(|placement| &placement.leaf_values);
        // On the fastest class parts of what that may have at most, for its limit is looked at when one is made.
        let is_limited = values.is_some() && values == self.shared.classes.fastest().as_ref();
        let settings = store.settings();
        let limit = self.shared.settings().fast_class_bytes.filter(|_| is_limited).unwrap_or(u64::MAX);
        let of_class = bytes_of(values) / SIZES.min_segments_per_class;
        let segment_bytes = settings.value_segment_bytes.min(limit / 8).min(of_class).max(chunk_bytes);
        let tree = store.view.read().tree.clone();
        let sum = |of: fn(&Arc<Kvset>) -> u64| tree.kvsets().map(of).sum::<u64>();
        let (keys, all) = (sum(key_bytes).max(1), sum(data_bytes));
        let most_keys =
            bytes_of(placement.map(|placement| &placement.leaf_keys)) / SIZES.min_leaves_per_class;
        let leaf_bytes = (most_keys as f64 / keys as f64 * all.max(keys) as f64) as u64;
        Shares {
            segment_bytes,
            small_segment_bytes: (SIZES.small_segment_chunks * chunk_bytes).min(segment_bytes / 2),
            leaf_bytes: settings.leaf_bytes.min(leaf_bytes.max(SIZES.min_chunks_per_leaf * chunk_bytes)),
        }
    }
}

/// Bytes that the database may have on each class, the fastest one first: its limit there does not count where there is
/// no other one. Classes that it may have nothing of are left out.
pub(crate) fn room_by_class(volume: &Volume, settings: &DatabaseSettings) -> Vec<u64> {
    let classes = volume.classes();
    let limit = settings.fast_class_bytes.filter(|_| classes.len() > 1);
    let mut rooms: Vec<u64> =
        classes.iter().map(|class| class.chunks.saturating_mul(volume.chunk_bytes())).collect();
    if let (Some(fastest), Some(limit)) = (rooms.first_mut(), limit) {
        *fastest = limit.min(*fastest);
    }
    rooms.retain(|room| *room > 0);
    rooms
}

/// Bytes of a log segment: as set, but no more than a 32nd of what the database may have on the fastest class, for a
/// segment takes up room as long as anything in it is used where it is, and one is always being filled and another one
/// ready.
pub(crate) fn log_segment_bytes(volume: &Volume, settings: &DatabaseSettings) -> u64 {
    let rooms = room_by_class(volume, settings);
    let Some(fastest) = rooms.first() else { return settings.log_segment_bytes };
    let share = fastest / SIZES.min_log_segments_per_class;
    settings.log_segment_bytes.min(share.max(settings.group_bytes()).max(1 << 20))
}
