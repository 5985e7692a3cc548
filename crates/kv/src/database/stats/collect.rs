//! Collects the statistics of an open database.

use crate::database::core::Core;
use crate::database::handle::Database;
use crate::database::stats::counters::ratio;
use crate::database::stats::statistics::{Statistics, StoreStatistics};

impl Database {
    /// Counters since the opening, and what there is now.
    pub fn statistics(&self) -> Statistics {
        self.core.statistics()
    }
}

impl Core {
    fn statistics(&self) -> Statistics {
        let activity = self.shared.activity();
        let stores: Vec<StoreStatistics> = self.store_statistics();
        let classes = self.space.class_statistics();
        let in_use =
            stores.iter().map(|store| store.key_bytes + store.inline_bytes + store.value_bytes).sum();
        let taken =
            classes.iter().map(|class| class.segment_bytes + class.key_bytes + class.manifest_bytes).sum();
        let cache = self.shared.opener.cache.counters();
        Statistics {
            write_amplification: activity.write_amplification(),
            bytes_in_use: in_use,
            bytes_allocated: taken,
            space_amplification: ratio(taken.saturating_sub(self.space.mirrored_bytes()), in_use),
            read_amplification: activity.read_amplification(),
            cache_bytes: cache.upper_bytes + cache.lower_bytes,
            resident_filter_bytes: self.shared.opener.cache.reserved_bytes(),
            memory_table_bytes: self.memory.memory_table_bytes(),
            snapshots: self.shared.snapshots.held().0,
            classes,
            stores,
            writes: activity.writes(),
            reads: activity.reads(),
            lifetime: self.shared.earlier.with(&activity),
            since_opening: activity,
        }
    }

    fn store_statistics(&self) -> Vec<StoreStatistics> {
        let stores = self.shared.stores.read().clone();
        let statistics = stores.iter().map(|store| {
            let view = store.view.read().clone();
            let mirrored = view.tree.mirrors.values().map(|mirror| mirror.stored_bytes);
            let mut statistics = StoreStatistics {
                name: store.name.clone(),
                waiting_tables: view.waiting.len(),
                logged_versions: store.logged_versions(),
                logged_bytes: store.logged_bytes(),
                root_kvsets: view.tree.root.len(),
                leaves: view.tree.leaves.len(),
                leaf_kvsets: view.tree.leaves.iter().map(|leaf| leaf.kvsets.len()).sum(),
                value_segments: view.tree.segments.keys().filter(|no| view.tree.is_referenced(**no)).count(),
                mirrors: view.tree.mirrors.len(),
                mirrored_bytes: mirrored.sum(),
                ..StoreStatistics::default()
            };
            for kvset in view.tree.kvsets() {
                let info = &kvset.record().info;
                statistics.versions += info.entries;
                statistics.key_bytes += info.key_bytes;
                statistics.inline_bytes += info.inline_bytes;
                statistics.value_bytes += info.referenced_bytes();
            }
            statistics
        });
        statistics.collect()
    }
}
