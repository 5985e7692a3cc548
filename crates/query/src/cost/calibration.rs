//! What a machine and its media can do, as numbers of the cost formula.

use serde::{Deserialize, Serialize};
use tanada_placement::{ClassCosts, DEPTHS};

/// Bytes of a page in [`MediumCosts`].
const PAGE_BYTES: f64 = 16_384.0;
/// More depth is worth it as long as each fourfold of it gives this much more.
const WORTH_IT: f64 = 1.1;

/// I/Os a second with `depth` of them in flight.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct DepthRate {
    /// I/Os in flight.
    pub depth: f64,
    /// I/Os a second.
    pub iops: f64,
}

/// What a medium can do. The defaults are those of a fast network block device of a small virtual machine.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct MediumCosts {
    /// Sequential reads of 1 MiB with four in flight, in MB/s; default 5,000.
    pub sequential_mb_per_s: f64,
    /// The same with one in flight, in MB/s; default 4,000.
    pub sequential_mb_per_s_in_order: f64,
    /// Sequential writes of 1 MiB with four in flight, in MB/s; default 1,000.
    pub sequential_write_mb_per_s: f64,
    /// Random 16 KiB reads, ascending depths; default 11,500 at depth 1 up to 100,000 at 1,024.
    pub random_reads: Vec<DepthRate>,
    /// Random 16 KiB writes, ascending depths; default 5,000 at depth 1 up to 30,000 at 64.
    pub random_writes: Vec<DepthRate>,
    /// Depth that an adaptive gate reaches; default 256.
    pub adaptive_depth: f64,
}

impl Default for MediumCosts {
    fn default() -> Self {
        MediumCosts {
            sequential_mb_per_s: 5_000.0,
            sequential_mb_per_s_in_order: 4_000.0,
            sequential_write_mb_per_s: 1_000.0,
            random_reads: rates(&[
                (1.0, 11_500.0),
                (4.0, 37_000.0),
                (16.0, 50_000.0),
                (64.0, 82_000.0),
                (256.0, 95_000.0),
                (1_024.0, 100_000.0),
            ]),
            random_writes: rates(&[(1.0, 5_000.0), (16.0, 20_000.0), (64.0, 30_000.0)]),
            adaptive_depth: 256.0,
        }
    }
}

fn rates(points: &[(f64, f64)]) -> Vec<DepthRate> {
    points.iter().map(|(depth, iops)| DepthRate { depth: *depth, iops: *iops }).collect()
}

impl MediumCosts {
    /// Random reads a second at `depth`, between measured points on a logarithmic scale of depth; at the ends the
    /// nearest point.
    pub fn iops(&self, depth: f64) -> f64 {
        at_depth(&self.random_reads, depth)
    }

    /// The same of writes.
    pub fn write_iops(&self, depth: f64) -> f64 {
        at_depth(&self.random_writes, depth)
    }

    /// Latency of one read with nothing else in flight, in microseconds.
    pub fn latency_us(&self) -> f64 {
        1e6 / self.iops(1.0)
    }

    /// All figures, to be checked.
    pub(super) fn figures(&self) -> Vec<f64> {
        let rates =
            self.random_reads.iter().chain(&self.random_writes).flat_map(|rate| [rate.depth, rate.iops]);
        let others = [
            self.sequential_mb_per_s,
            self.sequential_mb_per_s_in_order,
            self.sequential_write_mb_per_s,
            self.adaptive_depth,
        ];
        rates.chain(others).collect()
    }

    /// The depth beyond which four times as many I/Os in flight bring less than a tenth more.
    pub fn worthwhile_depth(rates: &[DepthRate]) -> f64 {
        let mut reached = rates.first().map_or(1.0, |rate| rate.depth);
        for pair in rates.windows(2) {
            let [low, high] = pair else { break };
            let gain = (high.iops / low.iops.max(1e-9)).powf(4f64.ln() / (high.depth / low.depth).ln());
            if gain < WORTH_IT {
                break;
            }
            reached = high.depth;
        }
        reached
    }
}

impl From<&ClassCosts> for MediumCosts {
    /// What the measurement of a device model found.
    fn from(costs: &ClassCosts) -> MediumCosts {
        let rate = |seconds: f64| 1.0 / seconds.max(1e-9);
        let random_reads: Vec<DepthRate> = DEPTHS
            .iter()
            .zip(costs.random_read_s)
            .map(|(depth, seconds)| DepthRate { depth: f64::from(*depth), iops: rate(seconds) })
            .collect();
        let write = rate(costs.chunk_write_s * PAGE_BYTES);
        MediumCosts {
            sequential_mb_per_s: rate(costs.sequential_read_s[1]) / 1e6,
            sequential_mb_per_s_in_order: rate(costs.sequential_read_s[0]) / 1e6,
            sequential_write_mb_per_s: rate(costs.chunk_write_s) / 1e6,
            random_writes: vec![DepthRate { depth: 4.0, iops: write.min(rate(costs.random_read_s[1])) }],
            adaptive_depth: MediumCosts::worthwhile_depth(&random_reads),
            random_reads,
        }
    }
}

fn at_depth(points: &[DepthRate], depth: f64) -> f64 {
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

/// What work takes the processor, in microseconds of one core.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct CpuCosts {
    /// One random I/O, batched; default 8.
    pub io_us: f64,
    /// Reading sequentially and verifying, per page of 16 KiB; default 3.
    pub page_us: f64,
    /// Stepping to a record and handing it out; default 0.08.
    pub row_us: f64,
    /// Decoding one column of a record; default 0.02.
    pub column_us: f64,
    /// Decoding one value of a columnar mirror; default 0.005.
    pub mirrored_value_us: f64,
    /// Encoding a key, one descent through cached pages and bookkeeping of its chain; default 4.
    pub lookup_us: f64,
    /// Following one bookmark (another descent); default 2.
    pub bookmark_us: f64,
    /// Adding a row to a hash table; default 0.1.
    pub hash_build_us: f64,
    /// Probing a hash table with a row; default 0.05.
    pub hash_probe_us: f64,
    /// Comparing two rows in a sort or a merge; default 0.02.
    pub comparison_us: f64,
    /// Computing one expression or predicate for a row; default 0.005.
    pub expression_us: f64,
}

impl Default for CpuCosts {
    fn default() -> Self {
        CpuCosts {
            io_us: 8.0,
            page_us: 3.0,
            row_us: 0.08,
            column_us: 0.02,
            mirrored_value_us: 0.005,
            lookup_us: 4.0,
            bookmark_us: 2.0,
            hash_build_us: 0.1,
            hash_probe_us: 0.05,
            comparison_us: 0.02,
            expression_us: 0.005,
        }
    }
}

impl CpuCosts {
    /// All figures, to be checked.
    pub(super) fn figures(&self) -> [f64; 11] {
        [
            self.io_us,
            self.page_us,
            self.row_us,
            self.column_us,
            self.mirrored_value_us,
            self.lookup_us,
            self.bookmark_us,
            self.hash_build_us,
            self.hash_probe_us,
            self.comparison_us,
            self.expression_us,
        ]
    }
}

/// Constants of the cost model: a medium's and the machine's. The defaults are those of a small virtual machine;
/// measured ones replace them.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Calibration {
    /// The medium.
    pub medium: MediumCosts,
    /// The processor.
    pub cpu: CpuCosts,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn iops_grow_with_depth_and_meet_the_points() {
        let medium = MediumCosts::default();
        for point in &medium.random_reads {
            assert!((medium.iops(point.depth) - point.iops).abs() < 1e-6);
        }
        let rates: Vec<f64> = (0..12).map(|power| medium.iops(f64::from(1 << power))).collect();
        assert!(rates.windows(2).all(|pair| pair[0] <= pair[1]), "{rates:?}");
    }

    #[test]
    fn a_calibration_survives_json_and_partial_ones_are_completed() {
        let mut calibration = Calibration::default();
        calibration.cpu.io_us = 21.0;
        let text = serde_json::to_string(&calibration).unwrap();
        assert_eq!(serde_json::from_str::<Calibration>(&text).unwrap(), calibration);
        assert_eq!(serde_json::from_str::<Calibration>(r#"{"cpu": {"io_us": 21.0}}"#).unwrap(), calibration);
        assert!(serde_json::from_str::<Calibration>(r#"{"cpu": {"io": 21.0}}"#).is_err());
    }

    #[test]
    fn depth_is_worth_it_as_long_as_it_brings_more() {
        let rates = rates(&[(1.0, 100.0), (4.0, 300.0), (16.0, 600.0), (64.0, 610.0), (256.0, 900.0)]);
        assert_eq!(MediumCosts::worthwhile_depth(&rates), 16.0);
        assert_eq!(MediumCosts::worthwhile_depth(&[]), 1.0);
    }

    #[test]
    fn a_disk_is_slower_at_random_than_an_ssd_and_knows_less_depth() {
        let costs =
            |model: &str| MediumCosts::from(&tanada_placement::measure(&model.parse().unwrap(), 1 << 30));
        let (disks, nvme) = (costs("8xhdd-7200"), costs("nvme"));
        assert!(disks.iops(1.0) < 300.0 && nvme.iops(1.0) > 5_000.0, "{disks:?} {nvme:?}");
        assert!(disks.iops(256.0) > disks.iops(1.0) * 4.0);
        assert!(disks.sequential_mb_per_s > 300.0, "{disks:?}");
    }
}
