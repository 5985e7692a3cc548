//! The probe phase of a query: what its look-up joins read, from the plan's metrics.
//!
//! With `w` the sum of the I/Os' latencies and `d` the time-weighted mean number in flight while at least one was, the
//! time with at least one in flight is `w / d`: each instant of it adds as much to `w` as there are I/Os in flight.

use std::sync::Arc;

use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::metrics::{MetricValue, MetricsSet};

use super::ratio;

/// I/O of the look-up joins of a plan.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(super) struct Probe {
    pub(super) ios: u64,
    /// Sum of the latencies.
    pub(super) wait_seconds: f64,
    /// Mean in flight while at least one was.
    pub(super) depth_mean: f64,
}

impl Probe {
    pub(super) fn active_seconds(&self) -> f64 {
        ratio(self.wait_seconds, self.depth_mean)
    }

    pub(super) fn iops(&self) -> f64 {
        ratio(self.ios as f64, self.active_seconds())
    }
}

/// The look-up join with most I/Os; `None` when the plan has none.
pub(super) fn of_plan(plan: &Arc<dyn ExecutionPlan>) -> Option<Probe> {
    let own =
        (plan.name() == "OutOfOrderLookupJoinExec").then(|| plan.metrics().as_ref().map(read)).flatten();
    let below = plan.children().into_iter().filter_map(of_plan);
    own.into_iter().chain(below).max_by_key(|probe| probe.ios)
}

fn read(metrics: &MetricsSet) -> Probe {
    let all = metrics.aggregate_by_name();
    let value = |name: &str| all.iter().map(|metric| metric.value()).find(|value| value.name() == name);
    let wait_nanoseconds = match value("io_wait") {
        Some(MetricValue::Time { time, .. }) => time.value(),
        _ => 0,
    };
    Probe {
        ios: value("ios").map_or(0, |value| value.as_usize() as u64),
        wait_seconds: wait_nanoseconds as f64 / 1e9,
        depth_mean: value("io_depth").map_or(0.0, |value| mean_of(&value.to_string())),
    }
}

/// The number behind `mean` in `mean 57.3 max 256`.
fn mean_of(text: &str) -> f64 {
    let mut words = text.split_whitespace().skip_while(|word| *word != "mean");
    words.nth(1).and_then(|word| word.parse().ok()).unwrap_or(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_with_io_in_flight_follows_from_latencies_and_depth() {
        let probe = Probe { ios: 1000, wait_seconds: 3.2, depth_mean: mean_of("mean 32.0 max 64") };
        assert!((probe.active_seconds() - 0.1).abs() < 1e-12);
        assert!((probe.iops() - 10_000.0).abs() < 1e-6);
        assert_eq!(mean_of("nothing"), 0.0);
        assert_eq!(Probe::default().iops(), 0.0);
    }
}
