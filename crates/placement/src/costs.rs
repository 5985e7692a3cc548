//! What I/Os cost, by class, pattern and depth.

use serde::{Deserialize, Serialize};

/// Depths that figures are kept for.
pub const DEPTHS: [u32; 5] = [1, 4, 16, 64, 256];

/// A figure at each of [`DEPTHS`].
pub type ByDepth = [f64; 5];

/// What a class of devices is good at. Times are those that the class is kept busy: at depth 1 the latency, deeper the latency over the gain.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct ClassCosts {
    /// Seconds per random page read, 16 KiB.
    pub random_read_s: ByDepth,
    /// Seconds per byte read in sequence, 64 KiB each.
    pub sequential_read_s: ByDepth,
    /// Seconds to read a chunk of 1 MiB somewhere, per byte, a few at once.
    pub chunk_read_s: f64,
    /// The same, written.
    pub chunk_write_s: f64,
}

impl ClassCosts {
    /// Seconds that a random page read takes at `depth`.
    pub fn random_s(&self, depth: u32) -> f64 {
        at_depth(&self.random_read_s, depth)
    }

    /// Seconds that `bytes` in sequence take at `depth`.
    pub fn sequential_s(&self, bytes: f64, depth: u32) -> f64 {
        bytes * at_depth(&self.sequential_read_s, depth)
    }
}

/// Between two depths that are known, by the logarithm of the depth.
fn at_depth(figures: &ByDepth, depth: u32) -> f64 {
    let wanted = f64::from(depth.max(1)).log2() / 2.0;
    let below = (wanted.floor() as usize).min(figures.len() - 1);
    let above = (below + 1).min(figures.len() - 1);
    let share = (wanted - below as f64).clamp(0.0, 1.0);
    figures[below] * (1.0 - share) + figures[above] * share
}

/// How a query issues its I/Os.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Load {
    /// Reads in flight.
    pub depth: u32,
    /// Those of them that read one stream in sequence. A stream that waits for look-ups between its reads has one.
    pub scan_depth: u32,
}

impl Load {
    /// Of a query with so many random reads and bytes in sequence, and `depth` I/Os in flight: what it mostly does has the depth.
    pub fn of(depth: u32, random: f64, bytes: f64) -> Load {
        let is_scan = bytes / SCAN_BYTES > random;
        Load { depth, scan_depth: if is_scan { depth } else { 1 } }
    }
}

/// Bytes of one I/O of a scan.
const SCAN_BYTES: f64 = 65536.0;

/// Both classes.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Costs {
    /// The faster one.
    pub fast: ClassCosts,
    /// The slower one.
    pub slow: ClassCosts,
}

impl Costs {
    /// Seconds saved by `random` page reads and `bytes` in sequence from the fast class. Negative where the slow class is faster.
    pub fn saved_s(&self, random: f64, bytes: f64, load: Load) -> f64 {
        let (slow, fast) = (&self.slow, &self.fast);
        random * (slow.random_s(load.depth) - fast.random_s(load.depth))
            + slow.sequential_s(bytes, load.scan_depth)
            - fast.sequential_s(bytes, load.scan_depth)
    }

    /// Seconds that both classes together are kept busy by copying `bytes` up.
    pub fn copy_up_s(&self, bytes: f64) -> f64 {
        bytes * (self.slow.chunk_read_s + self.fast.chunk_write_s)
    }

    /// Seconds that both classes together are kept busy by copying `bytes` down.
    pub fn copy_down_s(&self, bytes: f64) -> f64 {
        bytes * (self.fast.chunk_read_s + self.slow.chunk_write_s)
    }
}

impl Default for Costs {
    /// Three disks of 7,200 rpm and one SATA SSD, roughly. For tests; measure the devices that there are.
    fn default() -> Costs {
        Costs {
            fast: ClassCosts {
                random_read_s: [160e-6, 70e-6, 61e-6, 61e-6, 61e-6],
                sequential_read_s: [6e-9, 3.8e-9, 3.8e-9, 3.8e-9, 3.8e-9],
                chunk_read_s: 3.8e-9,
                chunk_write_s: 4.9e-9,
            },
            slow: ClassCosts {
                random_read_s: [7.4e-3, 3.4e-3, 1.8e-3, 1.4e-3, 1.3e-3],
                sequential_read_s: [7e-9, 3e-9, 2.3e-9, 2.3e-9, 2.3e-9],
                chunk_read_s: 6e-9,
                chunk_write_s: 6e-9,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn random_reads_profit_and_scans_of_an_array_do_not() {
        let costs = Costs::default();
        assert!(costs.saved_s(100.0, 0.0, Load::of(1, 100.0, 0.0)) > 0.7);
        assert!(costs.saved_s(0.0, 1e9, Load::of(64, 0.0, 1e9)) < 0.0);
        assert_eq!(Load::of(64, 1e6, 1e9).scan_depth, 1, "the stream waits for its look-ups");
        assert!(costs.copy_up_s((1 << 20) as f64) > 0.01);
    }

    #[test]
    fn depths_between_lie_between() {
        let figures = [16.0, 8.0, 4.0, 2.0, 1.0];
        assert_eq!((at_depth(&figures, 0), at_depth(&figures, 1), at_depth(&figures, 4)), (16.0, 16.0, 8.0));
        assert_eq!((at_depth(&figures, 2), at_depth(&figures, 100_000)), (12.0, 1.0));
    }
}
