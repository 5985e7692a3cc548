//! Latencies of each kind of operation, in histograms with three significant digits.

use std::collections::BTreeMap;
use std::time::Duration;

use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};

use crate::workload::Operation;
use crate::{Error, Result};

/// Longest latency that is told from longer ones.
const LONGEST: Duration = Duration::from_secs(1000);

/// Latencies by operation.
#[derive(Debug, Clone)]
pub struct Latencies {
    /// In nanoseconds, in the order of [`Operation::ALL`]; they grow with what is counted.
    by_operation: [Histogram<u32>; Operation::ALL.len()],
}

/// The figures of a histogram.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct LatencySummary {
    /// Operations.
    pub count: u64,
    /// Mean latency.
    pub us_mean: f64,
    /// Median.
    pub us_p50: f64,
    /// Ninety-ninth percentile.
    pub us_p99: f64,
    /// 99.9th percentile.
    pub us_p999: f64,
    /// The longest.
    pub us_max: f64,
}

impl Latencies {
    /// Without any.
    ///
    /// # Errors
    /// If a histogram cannot be made.
    pub fn new() -> Result<Latencies> {
        let histogram = Histogram::new(3).map_err(Error::failed)?;
        Ok(Latencies { by_operation: std::array::from_fn(|_| histogram.clone()) })
    }

    /// Counts an operation.
    pub fn count(&mut self, operation: Operation, latency: Duration) {
        let ns = latency.min(LONGEST).as_nanos() as u64;
        // One that grows by itself refuses nothing.
        let counted = self.by_operation[operation as usize].record(ns);
        debug_assert!(counted.is_ok(), "a latency was not counted");
    }

    /// Adds another client's.
    ///
    /// # Errors
    /// If they do not fit, which equal histograms do.
    pub fn add(&mut self, other: &Latencies) -> Result<()> {
        for (own, other) in self.by_operation.iter_mut().zip(&other.by_operation) {
            own.add(other).map_err(Error::failed)?;
        }
        Ok(())
    }

    /// The figures of each operation that occurred, by its name.
    pub fn summaries(&self) -> BTreeMap<String, LatencySummary> {
        let all =
            Operation::ALL.iter().zip(&self.by_operation).filter(|(_, histogram)| !histogram.is_empty());
        all.map(|(operation, histogram)| {
            let us = |quantile| histogram.value_at_quantile(quantile) as f64 / 1e3;
            let summary = LatencySummary {
                count: histogram.len(),
                us_mean: histogram.mean() / 1e3,
                us_p50: us(0.5),
                us_p99: us(0.99),
                us_p999: us(0.999),
                us_max: histogram.max() as f64 / 1e3,
            };
            (operation.name().to_owned(), summary)
        })
        .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn merged_histograms_have_the_percentiles_of_all_samples() {
        let (mut one, mut other) = (Latencies::new().unwrap(), Latencies::new().unwrap());
        for us in 1..=1000 {
            let into = if us % 2 == 0 { &mut one } else { &mut other };
            into.count(Operation::Scan, Duration::from_micros(us));
        }
        one.add(&other).unwrap();
        let summaries = one.summaries();
        assert_eq!(summaries.keys().collect::<Vec<_>>(), ["scan"]);
        let scan = &summaries["scan"];
        let close = |value: f64, expected: f64| (value / expected - 1.0).abs() < 0.002;
        assert_eq!(scan.count, 1000);
        assert!(
            close(scan.us_p50, 500.0) && close(scan.us_p99, 990.0) && close(scan.us_p999, 999.0),
            "{scan:?}"
        );
        assert!(close(scan.us_max, 1000.0) && close(scan.us_mean, 500.5), "{scan:?}");
    }
}
