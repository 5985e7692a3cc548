//! How long operations took.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::counters::Counter;

/// Buckets for each power of two.
const STEPS_PER_OCTAVE: u64 = 4;

const BUCKETS: usize = 40 * STEPS_PER_OCTAVE as usize;

/// Counts durations by their size, to a fifth or so.
#[derive(Debug)]
pub(crate) struct Latencies {
    buckets: [Counter; BUCKETS],
}

impl Default for Latencies {
    fn default() -> Latencies {
        Latencies { buckets: std::array::from_fn(|_| Counter::default()) }
    }
}

/// The bucket of a duration.
fn bucket(duration: Duration) -> usize {
    let ns = (duration.as_nanos() as u64).max(STEPS_PER_OCTAVE);
    let power = u64::from(ns.ilog2());
    let step = (ns >> (power - STEPS_PER_OCTAVE.ilog2() as u64)) - STEPS_PER_OCTAVE;
    ((power * STEPS_PER_OCTAVE + step) as usize).min(BUCKETS - 1)
}

/// The largest duration of a bucket, about.
fn limit(bucket: usize) -> Duration {
    let (power, step) = (bucket as u64 / STEPS_PER_OCTAVE, bucket as u64 % STEPS_PER_OCTAVE);
    Duration::from_nanos(((STEPS_PER_OCTAVE + step + 1) << power) / STEPS_PER_OCTAVE)
}

impl Latencies {
    pub(crate) fn add(&self, duration: Duration) {
        self.buckets[bucket(duration)].add(1);
    }

    /// Buckets that have something, ascending.
    pub(crate) fn histogram(&self) -> Vec<LatencyBucket> {
        let counts = self.buckets.iter().map(Counter::get).enumerate().filter(|(_, count)| *count > 0);
        let buckets =
            counts.map(|(bucket, count)| LatencyBucket { up_to_ns: limit(bucket).as_nanos() as u64, count });
        buckets.collect()
    }
}

/// Operations that took about as long as each other.
///
/// ```
/// # let folder = tempfile::tempdir().unwrap();
/// # tanada_kv::example::run(folder.path(), async |database, store| {
/// store.put(b"key", b"value").await?;
/// let buckets = database.statistics().since_opening.write_latencies;
/// assert!(buckets.windows(2).all(|pair| pair[0].up_to_ns < pair[1].up_to_ns));
/// # Ok(()) }).unwrap();
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct LatencyBucket {
    /// Upper bound of the bucket in nanoseconds; the lower one is that of the bucket before.
    pub up_to_ns: u64,
    /// Operations.
    pub count: u64,
}

/// Latency summary of one kind of operation; one in sixteen is sampled.
///
/// ```
/// # let folder = tempfile::tempdir().unwrap();
/// # tanada_kv::example::run(folder.path(), async |database, store| {
/// store.put(b"key", b"value").await?;
/// let writes = database.statistics().writes;
/// assert!(writes.us_p50 <= writes.us_max);
/// # Ok(()) }).unwrap();
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct LatencySummary {
    /// Operations that were measured.
    pub samples: u64,
    /// Half of them took no longer, in microseconds,
    pub us_p50: f64,
    /// 99 of 100,
    pub us_p99: f64,
    /// 999 of 1000,
    pub us_p999: f64,
    /// and all of them.
    pub us_max: f64,
}

impl LatencySummary {
    /// Returns the summary of a histogram with ascending buckets.
    pub(crate) fn of(buckets: &[LatencyBucket]) -> LatencySummary {
        let count = buckets.iter().fold(0, |sum: u64, bucket| sum.saturating_add(bucket.count));
        let percentile = |share: f64| {
            let wanted = (count as f64 * share).ceil() as u64;
            let mut sum = 0u64;
            let reached = buckets.iter().find(|bucket| {
                sum = sum.saturating_add(bucket.count);
                sum >= wanted && sum > 0
            });
            reached.map_or(0.0, |bucket| bucket.up_to_ns as f64 / 1000.0)
        };
        LatencySummary {
            samples: count,
            us_p50: percentile(0.5),
            us_p99: percentile(0.99),
            us_p999: percentile(0.999),
            us_max: percentile(1.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_found_in_their_buckets() {
        let mut last = 0;
        for ns in (4..5000u64).chain((1..40).map(|power| 1 << power)).filter(|ns| *ns >= 4) {
            let duration = Duration::from_nanos(ns);
            let bucket = bucket(duration);
            assert!(limit(bucket) >= duration && limit(bucket) <= duration * 3 / 2, "{ns}");
            last = last.max(bucket);
        }
        assert!(last < BUCKETS);
    }

    #[test]
    fn percentiles_cover_added_samples() {
        let latencies = Latencies::default();
        assert_eq!(LatencySummary::of(&latencies.histogram()), LatencySummary::default());
        for us in 1..=1000 {
            latencies.add(Duration::from_micros(us));
        }
        let summary = LatencySummary::of(&latencies.histogram());
        assert_eq!(summary.samples, 1000);
        assert!((500.0..650.0).contains(&summary.us_p50), "{summary:?}");
        assert!((990.0..1300.0).contains(&summary.us_p99), "{summary:?}");
    }
}
