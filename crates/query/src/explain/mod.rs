//! What operators tell `EXPLAIN ANALYZE` about their I/O.
//!
//! | metric | meaning |
//! |---|---|
//! | `ios` | device I/Os completed |
//! | `io_bytes` | bytes they read |
//! | `cache_hits` | pages found in memory instead |
//! | `io_wait` | sum of the I/Os' latencies (more than the elapsed time where many are in flight) |
//! | `io_depth` | I/Os in flight: time-weighted mean while at least one was, and the most |
//!
//! Invariant: what has been published never exceeds the last snapshot, so recording one twice changes nothing.

use std::any::Any;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use datafusion::physical_plan::metrics::{
    Count, CustomMetricValue, ExecutionPlanMetricsSet, MetricBuilder, MetricCategory, MetricType,
    MetricValue, Time,
};
use parking_lot::Mutex;
use tanada_io::IoSnapshot;

/// The I/O metrics of one partition of an operator.
#[derive(Debug)]
pub struct IoMetrics {
    ios: Count,
    bytes: Count,
    cache_hits: Count,
    wait: Time,
    depth: Arc<Depth>,
    published: Mutex<IoSnapshot>,
}

impl IoMetrics {
    /// Registers the metrics for `partition`.
    pub fn new(metrics: &ExecutionPlanMetricsSet, partition: usize) -> IoMetrics {
        let builder = || MetricBuilder::new(metrics).with_type(MetricType::Summary);
        let depth = Arc::new(Depth::default());
        let value = MetricValue::Custom { name: "io_depth".into(), value: Arc::clone(&depth) as _ };
        builder().with_partition(partition).build(value);
        IoMetrics {
            ios: builder().counter("ios", partition),
            bytes: builder().with_category(MetricCategory::Bytes).counter("io_bytes", partition),
            cache_hits: builder().counter("cache_hits", partition),
            wait: builder().subset_time("io_wait", partition),
            depth,
            published: Mutex::new(IoSnapshot::default()),
        }
    }

    /// Publishes a reading of the operator's counters; later readings replace earlier ones.
    pub fn record(&self, snapshot: &IoSnapshot) {
        let mut published = self.published.lock();
        let new = |now: u64, before: u64| usize::try_from(now.saturating_sub(before)).unwrap_or(usize::MAX);
        self.ios.add(new(snapshot.ios, published.ios));
        self.bytes.add(new(snapshot.bytes, published.bytes));
        self.cache_hits.add(new(snapshot.cache_hits, published.cache_hits));
        let waited = snapshot.wait.saturating_sub(published.wait);
        if waited > Duration::ZERO {
            self.wait.add_duration(waited);
        }
        self.depth.set(snapshot);
        *published = *snapshot;
    }
}

/// I/Os in flight. Of several partitions the means are weighted by their I/Os and the largest maximum counts.
#[derive(Debug, Default)]
struct Depth(Mutex<DepthReading>);

#[derive(Debug, Default, Clone, Copy, PartialEq)]
struct DepthReading {
    ios: u64,
    mean: f64,
    max: u64,
}

impl Depth {
    fn set(&self, snapshot: &IoSnapshot) {
        *self.0.lock() =
            DepthReading { ios: snapshot.ios, mean: snapshot.depth_mean, max: snapshot.depth_max };
    }
}

impl fmt::Display for Depth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let reading = *self.0.lock();
        write!(f, "mean {:.1} max {}", reading.mean, reading.max)
    }
}

impl CustomMetricValue for Depth {
    fn new_empty(&self) -> Arc<dyn CustomMetricValue> {
        Arc::new(Depth::default())
    }

    fn aggregate(&self, other: Arc<dyn CustomMetricValue>) {
        let Some(other) = other.as_any().downcast_ref::<Depth>() else { return };
        let other = *other.0.lock();
        let mut own = self.0.lock();
        let ios = own.ios + other.ios;
        if ios > 0 {
            own.mean = (own.mean * own.ios as f64 + other.mean * other.ios as f64) / ios as f64;
        }
        own.ios = ios;
        own.max = own.max.max(other.max);
    }

    fn as_any(&self) -> &dyn Any {
        self
    }

    fn as_usize(&self) -> usize {
        usize::try_from(self.0.lock().max).unwrap_or(usize::MAX)
    }

    fn is_eq(&self, other: &Arc<dyn CustomMetricValue>) -> bool {
        other.as_any().downcast_ref::<Depth>().is_some_and(|other| {
            let other = *other.0.lock();
            *self.0.lock() == other
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn snapshot(ios: u64, mean: f64, max: u64) -> IoSnapshot {
        IoSnapshot {
            ios,
            bytes: ios * 16_384,
            cache_hits: 2 * ios,
            depth_mean: mean,
            depth_max: max,
            wait: Duration::from_micros(ios * 100),
        }
    }

    fn shown(metrics: &ExecutionPlanMetricsSet, name: &str) -> String {
        let all = metrics.clone_inner().aggregate_by_name();
        let found = all.iter().find(|metric| metric.value().name() == name).expect(name);
        found.value().to_string()
    }

    #[test]
    fn a_later_reading_replaces_an_earlier_one() {
        let metrics = ExecutionPlanMetricsSet::new();
        let io = IoMetrics::new(&metrics, 0);
        io.record(&snapshot(10, 2.0, 4));
        io.record(&snapshot(30, 3.0, 8));
        io.record(&snapshot(30, 3.0, 8));
        assert_eq!(shown(&metrics, "ios"), "30");
        assert_eq!(shown(&metrics, "cache_hits"), "60");
        assert_eq!(shown(&metrics, "io_wait"), "3.00ms");
        assert_eq!(shown(&metrics, "io_depth"), "mean 3.0 max 8");
    }

    #[test]
    fn partitions_add_up_and_depths_are_weighted() {
        let metrics = ExecutionPlanMetricsSet::new();
        IoMetrics::new(&metrics, 0).record(&snapshot(10, 2.0, 9));
        IoMetrics::new(&metrics, 1).record(&snapshot(30, 6.0, 7));
        assert_eq!(shown(&metrics, "ios"), "40");
        assert_eq!(shown(&metrics, "io_depth"), "mean 5.0 max 9");
    }
}
