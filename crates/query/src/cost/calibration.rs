//! What a machine and its medium can do, as numbers of the cost formula.

use serde::{Deserialize, Serialize};

/// Random reads a second with `depth` of them in flight.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct DepthRate {
    /// I/Os in flight.
    pub depth: f64,
    /// I/Os a second.
    pub iops: f64,
}

/// Constants of the cost model. The defaults are those of a small virtual machine with a fast network block device;
/// measured ones may replace them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Calibration {
    /// Sequential reads of 1 MiB with four in flight, in MB/s; default 5,000.
    pub sequential_mb_per_s: f64,
    /// The same with one in flight, in MB/s; default 4,000.
    pub sequential_mb_per_s_in_order: f64,
    /// Random 16 KiB reads, ascending depths; default 11,500 at depth 1 up to 100,000 at 1,024.
    pub random_reads: Vec<DepthRate>,
    /// Depth that an adaptive gate reaches; default 256.
    pub adaptive_depth: f64,
    /// CPU of one random I/O, batched, in microseconds; default 8.
    pub io_cpu_us: f64,
    /// CPU of reading sequentially and verifying, per page of 16 KiB, in microseconds; default 3.
    pub page_cpu_us: f64,
    /// CPU of stepping to a record and handing it out, in microseconds; default 0.08.
    pub row_cpu_us: f64,
    /// CPU of decoding one column of a record, in microseconds; default 0.02.
    pub column_cpu_us: f64,
    /// CPU of encoding a key, one descent through cached pages and bookkeeping of its chain, in microseconds;
    /// default 4.
    pub lookup_cpu_us: f64,
    /// CPU of following one bookmark (another descent), in microseconds; default 2.
    pub bookmark_cpu_us: f64,
    /// CPU of adding a row to a hash table, in microseconds; default 0.1.
    pub hash_build_cpu_us: f64,
    /// CPU of probing a hash table with a row, in microseconds; default 0.05.
    pub hash_probe_cpu_us: f64,
}

impl Default for Calibration {
    fn default() -> Self {
        let rate = |depth: f64, iops: f64| DepthRate { depth, iops };
        Calibration {
            sequential_mb_per_s: 5_000.0,
            sequential_mb_per_s_in_order: 4_000.0,
            random_reads: vec![
                rate(1.0, 11_500.0),
                rate(4.0, 37_000.0),
                rate(16.0, 50_000.0),
                rate(64.0, 82_000.0),
                rate(256.0, 95_000.0),
                rate(1_024.0, 100_000.0),
            ],
            adaptive_depth: 256.0,
            io_cpu_us: 8.0,
            page_cpu_us: 3.0,
            row_cpu_us: 0.08,
            column_cpu_us: 0.02,
            lookup_cpu_us: 4.0,
            bookmark_cpu_us: 2.0,
            hash_build_cpu_us: 0.1,
            hash_probe_cpu_us: 0.05,
        }
    }
}

impl Calibration {
    /// Random reads a second at `depth`, between measured points on a logarithmic scale of depth; at the ends the
    /// nearest point.
    pub fn iops(&self, depth: f64) -> f64 {
        let points = &self.random_reads;
        let (Some(first), Some(last)) = (points.first(), points.last()) else { return 1.0 };
        if depth <= first.depth {
            return first.iops.max(1.0);
        }
        for pair in points.windows(2) {
            let [low, high] = pair else { break };
            if depth <= high.depth {
                let share = (depth / low.depth).ln() / (high.depth / low.depth).ln();
                return (low.iops + (high.iops - low.iops) * share).max(1.0);
            }
        }
        last.iops.max(1.0)
    }

    /// Latency of one read with nothing else in flight, in microseconds.
    pub fn latency_us(&self) -> f64 {
        1e6 / self.iops(1.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn iops_grow_with_depth_and_meet_the_points() {
        let calibration = Calibration::default();
        for point in &calibration.random_reads {
            assert!((calibration.iops(point.depth) - point.iops).abs() < 1e-6);
        }
        let rates: Vec<f64> = (0..12).map(|power| calibration.iops(f64::from(1 << power))).collect();
        assert!(rates.windows(2).all(|pair| pair[0] <= pair[1]), "{rates:?}");
    }

    #[test]
    fn a_calibration_survives_json_and_partial_ones_are_completed() {
        let calibration = Calibration { io_cpu_us: 21.0, ..Calibration::default() };
        let text = serde_json::to_string(&calibration).unwrap();
        assert_eq!(serde_json::from_str::<Calibration>(&text).unwrap(), calibration);
        assert_eq!(serde_json::from_str::<Calibration>(r#"{"io_cpu_us": 21.0}"#).unwrap(), calibration);
        assert!(serde_json::from_str::<Calibration>(r#"{"io_cpu": 21.0}"#).is_err());
    }
}
