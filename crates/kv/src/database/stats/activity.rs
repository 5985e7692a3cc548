//! What a database has done, since an opening or over its life: sums alone, so that those of openings can be added.
//!
//! The manifest has those of all openings before. They are written at the end of an opening, and now and then with a
//! memtable that is flushed; what came after that is not counted if the process stops.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::database::stats::counters::{JobStatistics, StallStatistics, ratio};
use crate::latency::{LatencyBucket, LatencySummary};
use crate::written::WrittenBytes;

/// Counters of a database's operations.
///
/// ```
/// # let folder = tempfile::tempdir().unwrap();
/// # tanada_kv::example::run(folder.path(), async |database, store| {
/// store.put(b"key", b"value").await?;
/// store.get(b"key").await?;
/// let activity = database.statistics().since_opening;
/// assert_eq!((activity.operations_written, activity.gets, activity.gets_from_memory), (1, 1, 1));
/// # Ok(()) }).unwrap();
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Activity {
    /// Openings for writing.
    pub openings: u64,
    /// Puts, deletes and ranges that were written.
    pub operations_written: u64,
    /// Bytes of them: keys, ends of ranges, and values as they are stored.
    pub bytes_written: u64,
    /// Bytes of bulk loads.
    pub bytes_loaded: u64,
    /// Bytes written, by class and by cause.
    pub written: BTreeMap<String, WrittenBytes>,
    /// Bytes of values that jobs read.
    pub bytes_read_by_jobs: u64,
    /// Lookups.
    pub gets: u64,
    /// Lookups answered by memtables.
    pub gets_from_memory: u64,
    /// Pages, filters and values that were read because the cache did not have them.
    pub cache_loads: u64,
    /// Cache loads of values.
    pub cache_value_loads: u64,
    /// Syncs of the log.
    pub log_syncs: u64,
    /// Memtables that were flushed.
    pub flushes: u64,
    /// Tree jobs, and those that found no space.
    pub jobs: u64,
    /// See above.
    pub jobs_without_space: u64,
    /// Jobs that had an effect, by kind: `spill`, `merge`, `compaction`, `garbage`, `mirrors`, `join` or `drop`. A
    /// compaction that rewrites values is `garbage`.
    pub jobs_by_kind: BTreeMap<String, JobStatistics>,
    /// Bytes of values that were copied to the fastest class because they are read often.
    pub bytes_promoted: u64,
    /// Bytes that were moved to the classes that policies want.
    pub bytes_relocated: u64,
    /// Objects that were deleted.
    pub objects_deleted: u64,
    /// Writes that were slowed.
    pub writes_slowed: u64,
    /// Writes that had to wait or were slowed, by cause; because the fast class is nearly full, and for space, they are
    /// slowed only.
    pub stalls: Vec<StallStatistics>,
    /// Latencies of batches, waits for the log included; one in sixteen is sampled. Ascending.
    pub write_latencies: Vec<LatencyBucket>,
    /// Latencies of lookups; one in sixteen is sampled. Ascending.
    pub read_latencies: Vec<LatencyBucket>,
}

impl Activity {
    /// Bytes written to objects over bytes written by users.
    ///
    /// ```
    /// use tanada_kv::Activity;
    ///
    /// assert_eq!(Activity::default().write_amplification(), 0.0);
    /// ```
    pub fn write_amplification(&self) -> f64 {
        ratio(self.written_by().all(), self.bytes_written.saturating_add(self.bytes_loaded))
    }

    /// Pages, filters and values that were read over lookups that memtables did not answer.
    pub fn read_amplification(&self) -> f64 {
        ratio(self.cache_loads, self.gets.saturating_sub(self.gets_from_memory))
    }

    /// Bytes written by cause, to all classes.
    ///
    /// ```
    /// # let folder = tempfile::tempdir().unwrap();
    /// # tanada_kv::example::run(folder.path(), async |database, store| {
    /// store.put(b"key", b"value").await?;
    /// database.sync().await?;
    /// assert!(database.statistics().since_opening.written_by().log > 0);
    /// # Ok(()) }).unwrap();
    /// ```
    pub fn written_by(&self) -> WrittenBytes {
        self.written.values().fold(WrittenBytes::default(), |sum, written| sum.with(written))
    }

    /// Returns the latency summary of batches.
    pub fn writes(&self) -> LatencySummary {
        LatencySummary::of(&self.write_latencies)
    }

    /// Returns the latency summary of lookups.
    pub fn reads(&self) -> LatencySummary {
        LatencySummary::of(&self.read_latencies)
    }

    /// Both together. Sums that are too large stay at what is largest.
    pub(crate) fn with(&self, other: &Activity) -> Activity {
        let sum = u64::saturating_add;
        let mut stalls = self.stalls.clone();
        for more in &other.stalls {
            match stalls.iter_mut().find(|stall| stall.cause == more.cause) {
                Some(stall) => {
                    (stall.count, stall.us) = (sum(stall.count, more.count), sum(stall.us, more.us))
                }
                None => stalls.push(more.clone()),
            }
        }
        let mut written = self.written.clone();
        for (class, more) in &other.written {
            let sum = written.entry(class.clone()).or_default();
            *sum = sum.with(more);
        }
        let mut jobs_by_kind = self.jobs_by_kind.clone();
        for (kind, more) in &other.jobs_by_kind {
            let sum = jobs_by_kind.entry(kind.clone()).or_default();
            *sum = sum.with(more);
        }
        Activity {
            openings: sum(self.openings, other.openings),
            operations_written: sum(self.operations_written, other.operations_written),
            bytes_written: sum(self.bytes_written, other.bytes_written),
            bytes_loaded: sum(self.bytes_loaded, other.bytes_loaded),
            written,
            bytes_read_by_jobs: sum(self.bytes_read_by_jobs, other.bytes_read_by_jobs),
            gets: sum(self.gets, other.gets),
            gets_from_memory: sum(self.gets_from_memory, other.gets_from_memory),
            cache_loads: sum(self.cache_loads, other.cache_loads),
            cache_value_loads: sum(self.cache_value_loads, other.cache_value_loads),
            log_syncs: sum(self.log_syncs, other.log_syncs),
            flushes: sum(self.flushes, other.flushes),
            jobs: sum(self.jobs, other.jobs),
            jobs_without_space: sum(self.jobs_without_space, other.jobs_without_space),
            jobs_by_kind,
            bytes_promoted: sum(self.bytes_promoted, other.bytes_promoted),
            bytes_relocated: sum(self.bytes_relocated, other.bytes_relocated),
            objects_deleted: sum(self.objects_deleted, other.objects_deleted),
            writes_slowed: sum(self.writes_slowed, other.writes_slowed),
            stalls,
            write_latencies: added(&self.write_latencies, &other.write_latencies),
            read_latencies: added(&self.read_latencies, &other.read_latencies),
        }
    }
}

fn added(a: &[LatencyBucket], b: &[LatencyBucket]) -> Vec<LatencyBucket> {
    let mut counts: BTreeMap<u64, u64> = BTreeMap::new();
    for bucket in a.iter().chain(b) {
        let count = counts.entry(bucket.up_to_ns).or_default();
        *count = count.saturating_add(bucket.count);
    }
    counts.into_iter().map(|(up_to_ns, count)| LatencyBucket { up_to_ns, count }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn activities_add_up() {
        let bucket = |up_to_ns, count| LatencyBucket { up_to_ns, count };
        let stall = |cause: &str, count, us| StallStatistics { cause: cause.to_owned(), count, us };
        let jobs = |kinds: &[(&str, u64)]| -> BTreeMap<String, JobStatistics> {
            let of = |count| JobStatistics { count, versions: 10 * count, us: 100 * count };
            kinds.iter().map(|(kind, count)| ((*kind).to_owned(), of(*count))).collect()
        };
        let on = |class: &str, log| {
            BTreeMap::from([(class.to_owned(), WrittenBytes { log, ..WrittenBytes::default() })])
        };
        let a = Activity {
            openings: 1,
            gets: 10,
            cache_loads: 5,
            bytes_written: 100,
            written: [on("fast", 100), on("slow", 50)].into_iter().flatten().collect(),
            stalls: vec![stall("log", 1, 10)],
            jobs_by_kind: jobs(&[("spill", 2)]),
            read_latencies: vec![bucket(10, 1), bucket(30, 2)],
            ..Activity::default()
        };
        let b = Activity {
            openings: 1,
            gets: u64::MAX,
            gets_from_memory: 3,
            written: on("slow", 7),
            stalls: vec![stall("space", 7, 8), stall("log", 2, 5)],
            jobs_by_kind: jobs(&[("garbage", 1), ("spill", 3)]),
            read_latencies: vec![bucket(20, 1), bucket(30, 5)],
            ..Activity::default()
        };
        let both = a.with(&b);
        assert_eq!((both.openings, both.gets, both.gets_from_memory), (2, u64::MAX, 3));
        assert_eq!(both.stalls, [stall("log", 3, 15), stall("space", 7, 8)]);
        assert_eq!(both.jobs_by_kind, jobs(&[("garbage", 1), ("spill", 5)]));
        assert_eq!(both.read_latencies, [bucket(10, 1), bucket(20, 1), bucket(30, 7)]);
        assert_eq!(both.reads().samples, 9);
        assert_eq!(
            (both.written["fast"].log, both.written["slow"].log, both.written_by().log),
            (100, 57, 157)
        );
        assert_eq!((a.write_amplification(), a.read_amplification()), (1.5, 0.5));
        assert_eq!(Activity::default().with(&a), a);
        let text = serde_json::to_string(&both).unwrap();
        assert_eq!(serde_json::from_str::<Activity>(&text).unwrap(), both);
        // What later versions count besides is passed over.
        assert_eq!(serde_json::from_str::<Activity>(r#"{"gets": 3, "news": 4}"#).unwrap().gets, 3);
    }
}
