//! Counting what a database does, and what it takes up.

use std::collections::BTreeMap;
use std::time::Duration;

use parking_lot::Mutex;
use serde::{Deserialize, Serialize};

use super::Database;
use super::activity::Activity;
use super::core::Core;
use super::write_stall::Cause;
use crate::counters::Counter;
use crate::latency::{Latencies, LatencySummary};
use crate::objects::ObjectKind;

/// Counters of an open database.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    pub(crate) written_operations: Counter,
    /// Bytes of batches: keys, values, and a little for each operation.
    pub(crate) written_bytes: Counter,
    pub(crate) loaded_bytes: Counter,
    pub(crate) gets: Counter,
    pub(crate) gets_from_memory: Counter,
    pub(crate) flushes: Counter,
    pub(crate) jobs: Counter,
    pub(crate) jobs_by_kind: Mutex<BTreeMap<&'static str, JobStatistics>>,
    pub(crate) jobs_without_space: Counter,
    pub(crate) job_read_bytes: Counter,
    pub(crate) promoted_bytes: Counter,
    pub(crate) relocated_bytes: Counter,
    pub(crate) slowed: Counter,
    pub(crate) memory_stalls: Stalls,
    pub(crate) root_stalls: Stalls,
    pub(crate) room_stalls: Stalls,
    pub(crate) log_stalls: Stalls,
    pub(crate) space_stalls: Stalls,
    pub(crate) deleted_objects: Counter,
    /// Log position at which idle memtables are checked next.
    pub(crate) next_look: Counter,
    pub(crate) writes: Latencies,
    pub(crate) reads: Latencies,
}

/// Times that writers had to wait.
#[derive(Debug, Default)]
pub(crate) struct Stalls {
    pub(crate) count: Counter,
    pub(crate) us: Counter,
}

impl Stalls {
    fn summary(&self, cause: &str) -> StallStatistics {
        StallStatistics { cause: cause.to_owned(), count: self.count.get(), us: self.us.get() }
    }
}

impl Counters {
    pub(crate) fn stalled(&self, cause: Cause, took: Duration) {
        let stalls = match cause {
            Cause::MemoryTables => &self.memory_stalls,
            Cause::RootKvsets => &self.root_stalls,
            Cause::FastClass => &self.room_stalls,
            Cause::Log => &self.log_stalls,
            Cause::Space => &self.space_stalls,
        };
        stalls.count.add(1);
        stalls.us.add(took.as_micros() as u64);
    }

    /// Notes a job of that kind, which replaced kvsets with `versions` versions.
    pub(crate) fn note_job(&self, kind: &'static str, versions: u64, took: Duration) {
        let us = took.as_micros() as u64;
        let job = JobStatistics { count: 1, versions, us };
        let mut jobs = self.jobs_by_kind.lock();
        let before = jobs.entry(kind).or_default();
        *before = before.with(&job);
    }

    pub(crate) fn jobs_by_kind(&self) -> BTreeMap<String, JobStatistics> {
        self.jobs_by_kind.lock().iter().map(|(kind, jobs)| ((*kind).to_owned(), jobs.clone())).collect()
    }

    pub(crate) fn stalls(&self) -> Vec<StallStatistics> {
        vec![
            self.memory_stalls.summary("memtables"),
            self.root_stalls.summary("root kvsets"),
            self.room_stalls.summary("fast class"),
            self.log_stalls.summary("log"),
            self.space_stalls.summary("space"),
        ]
    }

    /// Returns whether an operation is one of those that are measured.
    pub(crate) fn is_measured(counter: &Counter) -> bool {
        counter.get().is_multiple_of(16)
    }
}

/// Counters of a database since it was opened, and what it takes up now.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Statistics {
    /// Counters since the opening.
    #[serde(flatten)]
    pub since_opening: Activity,
    /// Bytes written to objects over bytes written by users.
    pub write_amplification: f64,
    /// Bytes of keys and values in kvsets that are in use.
    pub bytes_in_use: u64,
    /// Bytes that objects take up: those, garbage, mirrors, what the log has and has ready, the manifest, and what is
    /// left of their last chunks.
    pub bytes_allocated: u64,
    /// Bytes of all objects but what mirrors alone need over those of keys and values in kvsets that are in use;
    /// versions that only snapshots see count as in use.
    pub space_amplification: f64,
    /// Pages, filters and values that were read over lookups that memtables did not answer.
    pub read_amplification: f64,
    /// Bytes in the cache.
    pub cache_bytes: u64,
    /// Bytes of filters that stay in memory.
    #[serde(default)]
    pub resident_filter_bytes: u64,
    /// Bytes that memtables take up, and what is kept for the next ones.
    pub memory_table_bytes: u64,
    /// Snapshots that are held.
    pub snapshots: usize,
    /// Bytes on each class, fastest first.
    pub classes: Vec<ClassStatistics>,
    /// The stores, in order of their making.
    pub stores: Vec<StoreStatistics>,
    /// Batches, and what waited for the log to be durable.
    pub writes: LatencySummary,
    /// Lookups.
    pub reads: LatencySummary,
    /// Counters over the life of the database: all openings for writing, this one included.
    #[serde(default)]
    pub lifetime: Activity,
}

/// Writes that had to wait for one cause.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct StallStatistics {
    /// `memtables`, `root kvsets`, `fast class`, `log` or `space`.
    pub cause: String,
    /// Number of stalls.
    pub count: u64,
    /// Total time in microseconds.
    pub us: u64,
}

/// Tree jobs of one kind.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct JobStatistics {
    /// Number of jobs.
    pub count: u64,
    /// Versions in the kvsets that they took away; none if these went to another place as they are.
    pub versions: u64,
    /// Total time in microseconds, with the rests for others.
    pub us: u64,
}

impl JobStatistics {
    /// Both together.
    pub(crate) fn with(&self, other: &JobStatistics) -> JobStatistics {
        let sum = u64::saturating_add;
        JobStatistics {
            count: sum(self.count, other.count),
            versions: sum(self.versions, other.versions),
            us: sum(self.us, other.us),
        }
    }
}

/// Bytes of a database on a class.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ClassStatistics {
    /// The class's name.
    pub name: String,
    /// Bytes of log and value segments.
    pub segment_bytes: u64,
    /// Bytes of segments without values of kvsets: the log's active and spare segments, and what a replay would read.
    /// They are allocated in advance.
    pub log_bytes: u64,
    /// Bytes of key files.
    pub key_bytes: u64,
    /// Bytes of the manifest.
    pub manifest_bytes: u64,
    /// Reads of values that it is given in a second, if it holds up what is more.
    #[serde(default)]
    pub most_reads_per_second: Option<u64>,
}

/// Size and shape of a store.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct StoreStatistics {
    /// Its name.
    pub name: String,
    /// Memtables that wait to be flushed.
    pub waiting_tables: usize,
    /// Kvsets at the root.
    pub root_kvsets: usize,
    /// Leaves, and the kvsets in all of them.
    pub leaves: usize,
    /// See above.
    pub leaf_kvsets: usize,
    /// Spilled kvsets whose values are kept where the log wrote them, too, and read there.
    #[serde(default)]
    pub mirrors: usize,
    /// Bytes of those values.
    #[serde(default)]
    pub mirrored_bytes: u64,
    /// Versions in kvsets.
    pub versions: u64,
    /// Versions in memtables, and otherwise in the log alone.
    pub logged_versions: u64,
    /// Bytes of the keys and values of those.
    #[serde(default)]
    pub logged_bytes: u64,
    /// Bytes of keys in kvsets.
    pub key_bytes: u64,
    /// Bytes of values beside them.
    pub inline_bytes: u64,
    /// Bytes of values in segments that are in use.
    pub value_bytes: u64,
    /// Value segments.
    pub value_segments: usize,
}

pub(super) fn ratio(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}

impl Database {
    /// Counters since the opening, and what there is now.
    pub fn statistics(&self) -> Statistics {
        self.core.statistics()
    }
}

impl Core {
    fn statistics(&self) -> Statistics {
        let activity = self.activity();
        let stores: Vec<StoreStatistics> = self.store_statistics();
        let classes = self.class_statistics();
        let in_use =
            stores.iter().map(|store| store.key_bytes + store.inline_bytes + store.value_bytes).sum();
        let taken =
            classes.iter().map(|class| class.segment_bytes + class.key_bytes + class.manifest_bytes).sum();
        let cache = self.opener.cache.counters();
        Statistics {
            write_amplification: activity.write_amplification(),
            bytes_in_use: in_use,
            bytes_allocated: taken,
            space_amplification: ratio(taken.saturating_sub(self.mirrored_bytes()), in_use),
            read_amplification: activity.read_amplification(),
            cache_bytes: cache.upper_bytes + cache.lower_bytes,
            resident_filter_bytes: self.opener.cache.reserved_bytes(),
            memory_table_bytes: self.memory_table_bytes(),
            snapshots: self.snapshots.held().0,
            classes,
            stores,
            writes: activity.writes(),
            reads: activity.reads(),
            lifetime: self.earlier.with(&activity),
            since_opening: activity,
        }
    }

    fn memory_table_bytes(&self) -> u64 {
        let tables: u64 = self.stores.read().iter().map(|store| store.table_bytes()).sum();
        tables + self.memory.blocks.idle_bytes()
    }

    fn store_statistics(&self) -> Vec<StoreStatistics> {
        let stores = self.stores.read().clone();
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

    /// Bytes of chunks of the database's objects, by class.
    pub(crate) fn class_statistics(&self) -> Vec<ClassStatistics> {
        let volume = self.objects.volume();
        let classes = volume.classes();
        let mut statistics: Vec<ClassStatistics> = classes
            .iter()
            .map(|class| ClassStatistics {
                name: class.name.clone(),
                most_reads_per_second: self.opener.segments.most_reads_per_second(&class.name),
                ..ClassStatistics::default()
            })
            .collect();
        let held = self.held_segments();
        for (kind, no) in self.objects.list() {
            let Ok(object) = volume.open_object(&self.objects.name(kind, no)) else { continue };
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
}
