//! The presets against their data sheets: fio-like loads in virtual time, on the pure model.
use super::*;
use crate::Operation;
use std::collections::BinaryHeap;
use tanada_base::SplitMix64;

/// A closed loop of `depth`.
#[derive(Clone, Copy)]
struct Load {
    operation: Operation,
    random: bool,
    bytes: u64,
    depth: usize,
}

/// I/Os a second in the steady state.
fn iops(model: &str, load: Load, ios: u64) -> (f64, f64) {
    let mut array = Array::new(&model.parse().unwrap(), 42);
    let extent = 64u64 << 30;
    array.set_extent(extent);
    let mut random = SplitMix64::new(7);
    let mut next = 0;
    let mut place = move || {
        if load.random {
            random.below(extent / load.bytes) * load.bytes
        } else {
            next += load.bytes;
            next - load.bytes
        }
    };
    let mut done = Vec::new();
    let mut started = std::collections::HashMap::new();
    for id in 0..load.depth as u64 {
        started.insert(id, 0);
        array.arrive(0, Command { id, operation: load.operation, offset: place(), len: load.bytes });
    }
    let (mut completed, mut now, mut began) = (0, 0, 0);
    let mut latency = 0;
    let warm = ios / 3;
    while completed < ios {
        now = array.next_event().unwrap();
        array.advance(now, &mut done);
        for (id, at) in done.drain(..) {
            completed += 1;
            if completed == warm {
                began = at;
            }
            latency += at - started[&id];
            started.insert(id, at);
            array.arrive(at, Command { id, operation: load.operation, offset: place(), len: load.bytes });
        }
    }
    let _ = BinaryHeap::<u8>::new();
    ((completed - warm) as f64 * 1e9 / (now - began) as f64, latency as f64 / completed as f64 / 1e3)
}

#[test]
fn figures() {
    for model in [
        "hdd-7200:seek-jitter=0.4ms",
        "hdd-7200:seek-jitter=0.8ms",
        "hdd-7200:seek-jitter=1.2ms",
        "hdd-7200:span=1",
        "hdd-7200:write-cache=off",
    ] {
        for (operation, random, bytes) in [
            (Operation::Read, true, 4096),
            (Operation::Read, true, 16384),
            (Operation::Write, true, 4096),
            (Operation::Read, false, 131072),
            (Operation::Write, false, 131072),
        ] {
            print!("{model} {operation:?} random={random} {bytes}:");
            for depth in [1, 4, 16, 32, 64, 256] {
                let n = if model.contains("hdd") { 20000 } else { 100_000 };
                let (iops, us) = iops(model, Load { operation, random, bytes, depth }, n);
                if random {
                    print!(" {depth}: {iops:.0} ({us:.0}us)")
                } else {
                    print!(" {depth}: {:.1}MB/s", iops * bytes as f64 / 1e6)
                }
            }
            println!();
        }
    }
}
