//! What I/Os cost, by class, pattern and depth.

use serde::{Deserialize, Serialize};

/// Depths that figures are kept for.
pub const DEPTHS: [u32; 5] = [1, 4, 16, 64, 256];

/// A figure at each of [`DEPTHS`].
pub type ByDepth = [f64; 5];

/// What is read of something.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct Reads {
    /// Pages at random.
    pub random: f32,
    /// Pages where their stream has just read, or next to it: what a disk with several of them at hand reads in one
    /// sweep.
    pub close: f32,
    /// I/Os that begin where their stream's last ended,
    pub sequential: f32,
    /// and their bytes, with those of the others that a scan begins with.
    pub bytes: f32,
}

impl Reads {
    /// No more than that.
    pub(crate) fn random(pages: f32) -> Reads {
        Reads { random: pages, ..Reads::default() }
    }

    /// No more than that.
    pub(crate) fn sequential(ios: f32, bytes: f32) -> Reads {
        Reads { sequential: ios, bytes, ..Reads::default() }
    }

    pub(crate) fn plus(self, other: Reads, by: f32) -> Reads {
        Reads {
            random: self.random + other.random * by,
            close: self.close + other.close * by,
            sequential: self.sequential + other.sequential * by,
            bytes: self.bytes + other.bytes * by,
        }
    }

    /// As I/Os.
    pub(crate) fn ios(&self) -> f64 {
        f64::from(self.random) + f64::from(self.close) + f64::from(self.sequential)
    }

    /// Whether there is nothing of it, but for what rounding left.
    pub(crate) fn is_nothing(&self) -> bool {
        self.random + self.close + self.sequential < 0.01
    }
}

/// What a class of devices is good at. Times are those that the class is kept busy: at depth 1 the latency, deeper the
/// latency over the gain.
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

    /// Seconds that a page takes which is close to the one before: its share of one positioning, and the way there, as
    /// if read in sequence. Never more than one at random.
    fn close_s(&self, load: Load) -> f64 {
        let swept_s = self.random_s(1) / load.close_depth + self.sequential_s(SCAN_BYTES, load.depth);
        self.random_s(load.depth).min(swept_s)
    }

    /// Seconds that the class is kept busy by such reads. What interferes with a stream costs it its place.
    pub fn busy_s(&self, reads: &Reads, load: Load) -> f64 {
        let random_s = self.random_s(load.depth);
        let close_s = self.close_s(load);
        f64::from(reads.random) * random_s
            + f64::from(reads.close) * (close_s + load.interference * (random_s - close_s))
            + f64::from(reads.sequential) * load.interference * random_s
            + self.sequential_s(f64::from(reads.bytes), load.scan_depth)
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
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Load {
    /// Reads in flight.
    pub depth: u32,
    /// Those of them that read one stream in sequence. A stream that waits for look-ups between its reads has one.
    pub scan_depth: u32,
    /// Those of them that are close to one another, at least 1.
    pub close_depth: f64,
    /// How often something else comes between the I/Os of a stream, 0 to 1.
    pub interference: f64,
}

impl Load {
    /// Of one I/O after the other.
    pub const IN_ORDER: Load = Load { depth: 1, scan_depth: 1, close_depth: 1.0, interference: 0.0 };

    /// Of a query with such reads, and `depth` I/Os in flight: what it mostly does has the depth.
    pub fn of(depth: u32, reads: &Reads) -> Load {
        let is_scan = reads.sequential > reads.random + reads.close;
        let close_depth = f64::from(depth) * f64::from(reads.close) / reads.ios().max(1.0);
        let scan_depth = if is_scan { depth } else { 1 };
        Load { depth, scan_depth, close_depth: close_depth.max(1.0), interference: 0.0 }
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
    /// Seconds saved by such reads from the fast class. Negative where the slow class is faster.
    pub fn saved_s(&self, reads: &Reads, load: Load) -> f64 {
        self.slow.busy_s(reads, load) - self.fast.busy_s(reads, load)
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
        let saved = |depth, reads: Reads| costs.saved_s(&reads, Load::of(depth, &reads));
        assert!(saved(1, Reads::random(100.0)) > 0.7);
        assert!(saved(64, Reads::sequential(2e4, 1e9)) < 0.0);
        let mixed = Reads { random: 1e6, ..Reads::sequential(2e4, 1e9) };
        assert_eq!(Load::of(64, &mixed).scan_depth, 1, "the stream waits for its look-ups");
        assert!(costs.copy_up_s((1 << 20) as f64) > 0.01);
    }

    #[test]
    fn close_reads_are_swept_up_together_if_there_are_several() {
        let costs = Costs::default();
        let saved = |depth| {
            let close = Reads { close: 100.0, ..Reads::default() };
            costs.saved_s(&close, Load::of(depth, &close))
                / costs.saved_s(&Reads::random(100.0), Load::of(depth, &close))
        };
        assert!((0.99..1.01).contains(&saved(1)), "{}", saved(1));
        assert!(saved(64) < 0.2, "{}", saved(64));
    }

    #[test]
    fn costs_between_measured_depths_are_interpolated() {
        let figures = [16.0, 8.0, 4.0, 2.0, 1.0];
        assert_eq!((at_depth(&figures, 0), at_depth(&figures, 1), at_depth(&figures, 4)), (16.0, 16.0, 8.0));
        assert_eq!((at_depth(&figures, 2), at_depth(&figures, 100_000)), (12.0, 1.0));
    }
}
