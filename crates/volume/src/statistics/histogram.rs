//! Latencies in buckets whose bounds grow by the square root of two: every power of two of nanoseconds has two.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Buckets of a histogram.
pub const LATENCY_BUCKETS: usize = 72;

/// The bucket of a latency: two for every power of two from 512 ns; what is shorter is in the first, what is longer
/// than half a minute in the last.
fn bucket(latency: Duration) -> usize {
    let ns = (latency.as_nanos().min(u128::from(u64::MAX)) as u64).max(512);
    let power = ns.ilog2();
    // The square root of two is 181/128.
    let upper_half = ns >> (power - 7) >= 181;
    (((power - 9) * 2) as usize + usize::from(upper_half)).min(LATENCY_BUCKETS - 1)
}

/// The upper bound of a bucket.
fn bound(bucket: usize) -> Duration {
    let power = 9 + bucket as u32 / 2;
    let ns = if bucket.is_multiple_of(2) { (181u64 << power) >> 7 } else { 1 << (power + 1) };
    Duration::from_nanos(ns)
}

/// A histogram that is added to from any thread.
#[derive(Debug)]
pub(crate) struct LatencyCounters {
    buckets: [AtomicU64; LATENCY_BUCKETS],
}

impl Default for LatencyCounters {
    fn default() -> LatencyCounters {
        LatencyCounters { buckets: std::array::from_fn(|_| AtomicU64::new(0)) }
    }
}

impl LatencyCounters {
    pub(crate) fn count(&self, latency: Duration) {
        self.buckets[bucket(latency)].fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn snapshot(&self) -> Histogram {
        Histogram { buckets: self.buckets.iter().map(|bucket| bucket.load(Ordering::Relaxed)).collect() }
    }
}

/// Counted latencies.
///
/// ```
/// use tanada_volume::Attributes;
///
/// # let folder = tempfile::tempdir().unwrap();
/// # tanada_volume::example::run(folder.path(), async |volume| {
/// let object = volume.create_object("a", &Attributes::default())?;
/// object.write_bytes(0, &[7; 4096]).await?;
/// let latency = object.statistics().written.latency;
/// assert_eq!(latency.count(), 1);
/// assert_eq!(latency.percentile(0.5), latency.percentile(0.99));
/// # Ok(()) }).unwrap();
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Histogram {
    buckets: Vec<u64>,
}

impl Histogram {
    /// All latencies counted.
    pub fn count(&self) -> u64 {
        self.buckets.iter().sum()
    }

    /// The upper bound of the bucket in which the latency lies that `share` (0 to 1) of all do not exceed; zero if none
    /// was counted.
    pub fn percentile(&self, share: f64) -> Duration {
        let wanted = (self.count() as f64 * share).ceil().max(1.0) as u64;
        let mut seen = 0;
        for (no, count) in self.buckets.iter().enumerate() {
            seen += count;
            if seen >= wanted {
                return bound(no);
            }
        }
        Duration::ZERO
    }

    /// Upper bound and count of each bucket that is not empty.
    pub fn buckets(&self) -> impl Iterator<Item = (Duration, u64)> {
        self.buckets
            .iter()
            .enumerate()
            .filter(|(_, count)| **count > 0)
            .map(|(no, count)| (bound(no), *count))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_latency_lies_below_the_bound_of_its_bucket_and_above_the_one_before() {
        for ns in (512..100_000).step_by(7).chain([1_000_000, 20_000_000, 5_000_000_000]) {
            let latency = Duration::from_nanos(ns);
            let no = bucket(latency);
            assert!(
                latency <= bound(no) + Duration::from_nanos(bound(no).as_nanos() as u64 / 100),
                "{ns} in {no}"
            );
            assert!(no == 0 || latency.as_nanos() * 101 / 100 >= bound(no - 1).as_nanos(), "{ns} in {no}");
        }
        assert_eq!(bucket(Duration::ZERO), 0);
        assert_eq!(bucket(Duration::from_secs(86400)), LATENCY_BUCKETS - 1);
    }

    #[test]
    fn percentiles_are_bounds_of_buckets() {
        let counters = LatencyCounters::default();
        for _ in 0..99 {
            counters.count(Duration::from_micros(80));
        }
        counters.count(Duration::from_millis(8));
        let histogram = counters.snapshot();
        assert_eq!(histogram.count(), 100);
        assert!(histogram.percentile(0.5) < Duration::from_micros(100));
        assert!(histogram.percentile(0.999) > Duration::from_millis(7));
        assert_eq!(histogram.buckets().count(), 2);
        assert_eq!(Histogram::default().percentile(0.5), Duration::ZERO);
    }
}
