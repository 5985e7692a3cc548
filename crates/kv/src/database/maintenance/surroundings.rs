//! What the choice of a store's next job depends on beside its tree.

use crate::tuning::maintenance::LOW_SPACE;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::database::maintenance::pick::root_bytes;
use crate::database::maintenance::runner::JobRunner;
use crate::database::memory::job_memory::batch_of;
use crate::database::shared::Writing;
use crate::database::state::store_state::StoreState;
use crate::entry::SegmentNo;
use crate::objects::ObjectKind;
use crate::tree::job::{LogSegmentUse, PickSettings, Surroundings};
use crate::tree::jobs::{bytes_of_a_round, values_of_a_round};
use crate::tree::{TreeState, referenced};

impl JobRunner {
    pub(crate) fn pick_settings(&self, store: &StoreState) -> PickSettings {
        let placement = self.shared.classes.placement(&store.policy()).ok();
        let shares = self.space.shares(store, placement.as_ref());
        PickSettings {
            leaf_bytes: shares.leaf_bytes,
            space_amplification: store.settings().space_amplification,
            // Writers are slowed only when spills cannot keep pace.
            root_kvsets: self.space.root_kvsets(),
            root_bytes: root_bytes(
                self.space.fast_room(),
                self.space.root_kvsets() as u64 * self.shared.settings().table_bytes(),
            ),
            // A batch of keys and of what lies beside them; values are moved in one round, whatever they have.
            spill_bytes: self.memory.job_bytes(),
            moved_values: values_of_a_round(batch_of(self.memory.job_bytes())),
            moved_bytes: bytes_of_a_round(shares.segment_bytes),
            small_segment_bytes: shares.small_segment_bytes,
            ..PickSettings::default()
        }
    }

    /// Returns what `pick` needs beside the tree of a store.
    pub(crate) fn surroundings(
        &self,
        writing: &Writing,
        store: &Arc<StoreState>,
        tree: &TreeState,
    ) -> Surroundings {
        let leaves = tree.leaves.iter().flat_map(|leaf| &leaf.kvsets).flat_map(referenced);
        let logs: BTreeSet<SegmentNo> = leaves.filter(|no| !tree.segments.contains_key(no)).collect();
        let elsewhere = if logs.is_empty() {
            BTreeSet::new()
        } else {
            self.needed_elsewhere(writing, store, tree, &logs)
        };
        let log_segments: BTreeMap<SegmentNo, LogSegmentUse> = logs
            .into_iter()
            .filter_map(|no| {
                let object = self
                    .shared
                    .objects
                    .volume()
                    .open_object(&self.shared.objects.name(ObjectKind::Segment, no))
                    .ok()?;
                let is_needed_elsewhere = elsewhere.contains(&no);
                Some((no, LogSegmentUse { bytes: object.size_bytes(), is_needed_elsewhere }))
            })
            .collect();
        let log_bytes = tree.root.iter().map(|kvset| kvset.record().info.data_bytes()).sum();
        let log_pressure = self.space.log_pressure(log_bytes);
        let (free, all) = self.space.free_for_jobs();
        Surroundings {
            log_pressure,
            overwritten: store.cleaning.overwritten(),
            free_bytes: Some(free),
            is_tight: free < all / LOW_SPACE.low_space_divisor,
            log_segments,
        }
    }

    /// Returns those of `segments` that others need even when the leaves of the store have no values in them.
    fn needed_elsewhere(
        &self,
        writing: &Writing,
        store: &Arc<StoreState>,
        tree: &TreeState,
        segments: &BTreeSet<SegmentNo>,
    ) -> BTreeSet<SegmentNo> {
        let mut needed: BTreeSet<SegmentNo> = writing.log.segments().into_iter().collect();
        let of_these = |no: &SegmentNo| segments.contains(no);
        for other in &*self.shared.stores.read() {
            let of_other = other.view.read().tree.clone();
            if Arc::ptr_eq(other, store) {
                needed.extend(tree.root.iter().flat_map(referenced).filter(of_these));
            } else {
                needed.extend(of_other.kvsets().flat_map(referenced).filter(of_these));
            }
            needed.extend(of_other.mirrors.keys());
        }
        needed
    }
}
