//! Where things lie on a disk, and how long the arm and the platter take to bring them together.
//!
//! A seek over the share `x` of the stroke takes `track + a sqrt(x) + b x`: the arm accelerates first (square root) and
//! coasts over long ways (linear). `a` and `b` follow from the data sheet's average and full-stroke seeks: over all
//! pairs of places the mean of `sqrt(x)` is 8/15 and that of `x` is 1/3.
//!
//! The platter turns all the time; an address's angle is its place within its track. Tracks are as long as the
//! sustained rate fills in one turn, so head switches and skew are in the rate, and a sequential run of any length
//! needs no further positioning.

use crate::model::SpindleSpec;
use crate::model::command::{Nanos, nanos};

#[derive(Debug)]
pub(super) struct Geometry {
    turn: Nanos,
    track_bytes: u64,
    seek_track: f64,
    root: f64,
    linear: f64,
    /// Addresses over the whole stroke.
    stroke_bytes: f64,
    span: f64,
    capacity: u64,
    /// Of the platter at time 0.
    phase: f64,
}

impl Geometry {
    pub(super) fn new(spec: &SpindleSpec, phase: f64) -> Geometry {
        let turn = 60_000_000_000 / spec.rpm.max(1);
        let track_bytes = (u128::from(spec.rate) * u128::from(turn) / 1_000_000_000).max(512) as u64;
        let track = nanos(spec.seek_track) as f64;
        let average = nanos(spec.seek_average) as f64 - track;
        let full = nanos(spec.seek_full) as f64 - track;
        // average = 8/15 a + 1/3 b and full = a + b; neither part may shorten a longer way.
        let root = ((average - full / 3.0) * 5.0).clamp(0.0, full.max(0.0));
        let mut geometry = Geometry {
            turn,
            track_bytes,
            seek_track: track,
            root,
            linear: (full - root).max(0.0),
            stroke_bytes: 1.0,
            span: spec.span,
            capacity: spec.capacity,
            phase,
        };
        geometry.set_extent(0);
        geometry
    }

    /// The data spans `bytes`.
    pub(super) fn set_extent(&mut self, bytes: u64) {
        let bytes = bytes.max(1) as f64;
        self.stroke_bytes = match self.capacity {
            0 if self.span > 0.0 => bytes / self.span,
            0 => f64::INFINITY,
            capacity => (capacity as f64).max(bytes),
        };
    }

    pub(super) fn track_bytes(&self) -> u64 {
        self.track_bytes
    }

    pub(super) fn seek(&self, from: u64, to: u64) -> Nanos {
        if from / self.track_bytes == to / self.track_bytes {
            return 0;
        }
        let x = (from.abs_diff(to) as f64 / self.stroke_bytes).min(1.0);
        (self.seek_track + self.root * x.sqrt() + self.linear * x) as Nanos
    }

    /// From `now` until `address` is under the head.
    pub(super) fn rotation(&self, now: Nanos, address: u64) -> Nanos {
        let platter = self.phase + (now % self.turn) as f64 / self.turn as f64;
        let angle = (address % self.track_bytes) as f64 / self.track_bytes as f64;
        let wait = (angle - platter).rem_euclid(1.0);
        // What lies under the head right now has not just passed by because of rounding.
        if wait > 1.0 - 1e-6 { 0 } else { (wait * self.turn as f64) as Nanos }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{MemberSpec, Preset};

    fn geometry() -> Geometry {
        let MemberSpec::Spindle(mut spec) = Preset::Hdd7200.member() else { panic!("a disk") };
        spec.capacity = 500_000_000_000;
        Geometry::new(&spec, 0.25)
    }

    #[test]
    fn seeks_are_those_of_the_data_sheet() {
        let geometry = geometry();
        assert_eq!(geometry.seek(0, geometry.track_bytes() - 1), 0);
        let near = geometry.seek(0, geometry.track_bytes());
        assert!((500_000..530_000).contains(&near), "{near}");
        assert_eq!(geometry.seek(0, 500_000_000_000) / 10_000, 1735);
        let mut random = tanada_base::SplitMix64::new(1);
        let mut sum = 0;
        for _ in 0..100_000 {
            sum += geometry.seek(random.below(500_000_000_000), random.below(500_000_000_000));
        }
        let mean_us = sum / 100_000 / 1000;
        assert!((7900..8100).contains(&mean_us), "{mean_us}");
    }

    #[test]
    fn the_platter_brings_every_address_once_a_turn() {
        let geometry = geometry();
        let address = 7 * geometry.track_bytes() + 12_345;
        let wait = geometry.rotation(1000, address);
        assert!(wait < geometry.turn);
        assert!(geometry.rotation(1000 + wait, address) < 10_000);
        let half = geometry.rotation(0, geometry.track_bytes() / 4 + geometry.track_bytes() / 2);
        assert!(half.abs_diff(geometry.turn / 2) < 10, "{half}");
    }
}
