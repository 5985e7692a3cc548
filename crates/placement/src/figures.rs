//! What modelled devices are good at, measured on the models themselves: closed loops, as a calibration would run them
//! on real devices.

use tanada_base::SplitMix64;
use tanada_io::{ModelQueue, ModelSpec, Operation};

use crate::costs::{ByDepth, ClassCosts, DEPTHS};

const PAGE_BYTES: u64 = 16 << 10;
const SCAN_BYTES: u64 = 64 << 10;
const CHUNK_BYTES: u64 = 1 << 20;

/// Chunks that a relocation copies at once.
const COPIES: u64 = 4;

/// An array that is measured by as many I/Os as one disk.
const FEW_DISKS: u32 = 3;

#[derive(Debug, Clone, Copy)]
struct Load {
    operation: Operation,
    is_random: bool,
    bytes: u64,
    depth: u64,
    ios: u64,
}

/// The costs of the class, with its data spread over `extent_bytes`.
pub fn measure(spec: &ModelSpec, extent_bytes: u64) -> ClassCosts {
    let extent = extent_bytes.max(64 << 20);
    let run = |load| seconds_per_io(spec, extent, load);
    // At random so many that each disk of a wide array has seen as many as one of three: its cache keeps streams apart,
    // and is full after some.
    let times = u64::from(spec.members().div_ceil(FEW_DISKS));
    let read = |is_random, bytes, depth: u32| {
        let depth = u64::from(depth);
        let ios = (600 + 4 * depth) * if is_random { times } else { 1 };
        run(Load { operation: Operation::Read, is_random, bytes, depth, ios })
    };
    let chunk = |operation| {
        run(Load { operation, is_random: true, bytes: CHUNK_BYTES, depth: COPIES, ios: 300 })
            / CHUNK_BYTES as f64
    };
    ClassCosts {
        random_read_s: by_depth(|depth| read(true, PAGE_BYTES, depth)),
        sequential_read_s: by_depth(|depth| read(false, SCAN_BYTES, depth) / SCAN_BYTES as f64),
        chunk_read_s: chunk(Operation::Read),
        chunk_write_s: chunk(Operation::Write),
    }
}

/// More depth never makes a device slower; chance may make it look so.
fn by_depth(mut figure: impl FnMut(u32) -> f64) -> ByDepth {
    let mut least = f64::INFINITY;
    DEPTHS.map(|depth| {
        least = least.min(figure(depth));
        least
    })
}

/// Of the last two thirds, after caches and buffers are full.
fn seconds_per_io(spec: &ModelSpec, extent: u64, load: Load) -> f64 {
    let mut queue = ModelQueue::new(spec, 42);
    queue.set_extent(extent);
    let mut random = SplitMix64::new(7);
    let mut next = 0;
    let mut start = |queue: &mut ModelQueue| {
        let place =
            if load.is_random { random.below(extent / load.bytes) } else { next % (extent / load.bytes) };
        next += 1;
        queue.submit(0, load.operation, place * load.bytes, load.bytes);
    };
    (0..load.depth).for_each(|_| start(&mut queue));
    let (mut completed, mut began, mut now, mut done) = (0, 0, 0, Vec::new());
    while completed < load.ios {
        let Some(at) = queue.next_event_ns() else { break };
        now = at;
        queue.advance(at, &mut done);
        for _ in done.drain(..) {
            completed += 1;
            if completed == load.ios / 3 {
                began = now;
            }
            start(&mut queue);
        }
    }
    (now - began) as f64 / 1e9 / (load.ios - load.ios / 3) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_array_of_disks_is_slow_at_random_and_quick_at_scans() {
        let disks = measure(&"3xhdd-7200".parse().unwrap(), 3 << 30);
        let ssd = measure(&"sata-ssd".parse().unwrap(), 1 << 30);
        println!("{disks:?}\n{ssd:?}");
        assert!((6e-3..9e-3).contains(&disks.random_s(1)), "{disks:?}");
        assert!(disks.random_s(64) < disks.random_s(1) / 3.0);
        assert!(ssd.random_s(1) < disks.random_s(1) / 30.0);
        // Little data fit into the caches of many disks.
        let wide = measure(&"64xhdd-7200".parse().unwrap(), 256 << 20);
        assert!(wide.random_s(1) < disks.random_s(1) / 4.0, "{wide:?}");
        // Three disks stream more than one SATA SSD.
        assert!(disks.sequential_s(1e9, 64) < ssd.sequential_s(1e9, 64));
    }
}
