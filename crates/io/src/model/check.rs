//! The presets against their data sheets: fio-like loads in virtual time on the pure model, within 10 %.
//!
//! Closed loops of a fixed depth, random and sequential, reads and writes. The figures are those of
//! `docs/device-models.md`, which names where they come from; `cargo test -p tanada-io model::check -- --nocapture`
//! prints its table of results.

use std::collections::BTreeMap;

use tanada_base::SplitMix64;

use super::*;
use crate::Operation;

/// A closed loop.
#[derive(Debug, Clone, Copy)]
struct Load {
    operation: Operation,
    random: bool,
    bytes: u64,
    depth: u64,
}

const fn load(operation: Operation, random: bool, bytes: u64, depth: u64) -> Load {
    Load { operation, random, bytes, depth }
}

/// I/Os a second in the steady state: the last two thirds of `ios`.
fn iops(model: &str, load: Load, ios: u64) -> f64 {
    let mut array = Array::new(&model.parse().unwrap(), 42);
    let extent = 64u64 << 30;
    array.set_extent(extent);
    let mut random = SplitMix64::new(7);
    let mut next = 0;
    let mut start = |array: &mut Array, now, id| {
        next += load.bytes;
        let offset =
            if load.random { random.below(extent / load.bytes) * load.bytes } else { next - load.bytes };
        array.arrive(now, Command { id, operation: load.operation, offset, len: load.bytes });
    };
    (0..load.depth).for_each(|id| start(&mut array, 0, id));
    let (mut completed, mut began, mut now) = (0, 0, 0);
    let mut done = Vec::new();
    while completed < ios {
        now = array.next_event().unwrap();
        array.advance(now, &mut done);
        for (id, at) in done.drain(..) {
            completed += 1;
            if completed == ios / 3 {
                began = at;
            }
            start(&mut array, at, id);
        }
    }
    (completed - ios / 3) as f64 * 1e9 / (now - began) as f64
}

/// Enough I/Os that caches and buffers are full and chance evens out.
fn enough(model: &str) -> u64 {
    if model.contains("hdd") { 20_000 } else { 60_000 }
}

/// A preset's data sheet: I/Os a second, or bytes a second for sequential loads.
fn data_sheet(preset: Preset) -> Vec<(Load, f64)> {
    use Operation::{Read, Write};
    let random = |operation, depth, iops| (load(operation, true, 4096, depth), iops);
    let sequential = |operation, rate: f64| (load(operation, false, 128 << 10, 32), rate);
    match preset {
        // Average seek of the span 2.6 ms (see the page), half a turn 4.17 ms, overhead 0.2 ms.
        Preset::Hdd7200 => vec![random(Read, 1, 138.0), sequential(Read, 150e6), sequential(Write, 150e6)],
        Preset::SataQlc => vec![
            random(Read, 32, 83_000.0),
            random(Write, 32, 6500.0),
            sequential(Read, 540e6),
            sequential(Write, 350e6),
        ],
        Preset::SataSsd => vec![
            random(Read, 32, 39_500.0),
            random(Write, 32, 23_000.0),
            sequential(Read, 270e6),
            sequential(Write, 205e6),
        ],
        Preset::Nvme => vec![
            random(Read, 1, 1e6 / 92.0),
            random(Read, 256, 840_000.0),
            random(Write, 1, 1e6 / 21.0),
            random(Write, 256, 130_000.0),
            sequential(Read, 3500e6),
            sequential(Write, 3100e6),
        ],
        Preset::Scm => vec![
            random(Read, 1, 1e6 / 8.9),
            random(Read, 16, 550_000.0),
            random(Write, 16, 500_000.0),
            (load(Read, false, 64 << 10, 16), 2400e6),
            (load(Write, false, 64 << 10, 16), 2000e6),
        ],
    }
}

fn measure(model: &str, load: Load) -> f64 {
    let iops = iops(model, load, enough(model));
    if load.random { iops } else { iops * load.bytes as f64 }
}

#[test]
fn presets_are_within_a_tenth_of_their_data_sheets() {
    for preset in Preset::ALL {
        for (load, expected) in data_sheet(preset) {
            let measured = measure(preset.name(), load);
            let ratio = measured / expected;
            println!("| {} | {load:?} | {expected:.0} | {measured:.0} | {ratio:.2} |", preset.name());
            assert!((0.9..=1.1).contains(&ratio), "{}: {load:?}: {measured:.0}", preset.name());
        }
    }
    // On the whole disk the data sheet's own average seek counts: 8.0 + 4.17 + 0.2 ms.
    let ratio = measure("hdd-7200:span=1", load(Operation::Read, true, 4096, 1)) * 12.37e-3;
    assert!((0.9..=1.1).contains(&ratio), "{ratio}");
}

#[test]
fn depth_gains_until_the_device_is_busy_and_never_beyond_the_data_sheet() {
    for preset in Preset::ALL {
        let sheet = data_sheet(preset);
        for operation in [Operation::Read, Operation::Write] {
            for random in [true, false] {
                let bytes = if random { 4096 } else { 128 << 10 };
                let at = |depth| measure(preset.name(), load(operation, random, bytes, depth));
                let results: BTreeMap<u64, f64> = [1, 4, 16, 64, 256].map(|depth| (depth, at(depth))).into();
                println!("| {} | {operation:?} random={random} | {results:.0?} |", preset.name());
                let most = results.values().copied().fold(0.0, f64::max);
                let mut before = 0.0;
                for (depth, measured) in &results {
                    assert!(*measured > before * 0.95, "{}: {operation:?} at {depth}", preset.name());
                    before = *measured;
                }
                let of_sheet = |load: &Load| load.operation == operation && load.random == random;
                let limit = sheet.iter().filter(|(load, _)| of_sheet(load)).map(|(_, value)| *value);
                let limit = limit.fold(0.0, f64::max);
                // A disk's queue gains over the lone command that its data sheet is about.
                let limit = if preset == Preset::Hdd7200 && random { limit.max(138.0) * 2.2 } else { limit };
                assert!(most <= limit * 1.1, "{}: {operation:?} random={random}: {most}", preset.name());
            }
        }
    }
}

#[test]
fn an_array_of_disks_grows_with_depth_and_not_without() {
    let read = |model, depth| measure(model, load(Operation::Read, true, 16 << 10, depth));
    let (one, one_at_32) = (read("hdd-7200", 1), read("hdd-7200", 32));
    let eight = [1, 64, 256].map(|depth| read("8xhdd-7200", depth));
    println!("hdd-7200: {one:.0} at 1, {one_at_32:.0} at 32; 8xhdd-7200: {eight:.0?} at 1, 64, 256");
    assert!((120.0..150.0).contains(&one), "{one}");
    assert!((1.5..2.5).contains(&(one_at_32 / one)), "{one_at_32}");
    assert!((eight[0] / one - 1.0).abs() < 0.05, "in order, more disks gain nothing: {eight:?}");
    assert!(eight[1] > 8.0 * one && eight[2] > 12.0 * one, "{eight:?}");
}

#[test]
fn a_disk_streams_at_depth_one() {
    let stream = |model| measure(model, load(Operation::Read, false, 128 << 10, 1));
    assert!(stream("hdd-7200") > 140e6);
    // Without read-ahead the next request comes too late for its place, and waits for a whole turn.
    assert!(stream("hdd-7200:read-ahead=0B") < 20e6);
}

#[test]
fn reads_are_slower_while_an_ssd_programs() {
    let mean_latency = |writes: u64| {
        let mut array = Array::new(&"sata-qlc".parse().unwrap(), 1);
        let (mut done, mut sum) = (Vec::new(), 0);
        for no in 0..2000u64 {
            // The writes have passed controller and interface when the read comes, and the buffer is far from full.
            let now = no * 2_000_000;
            array.advance(now, &mut done);
            for id in 0..writes {
                let offset = (no * writes + id) << 21;
                array.arrive(now, Command { id: 1 << 40, operation: Operation::Write, offset, len: 4096 });
            }
            let now = now + 100_000;
            array.advance(now, &mut done);
            done.clear();
            array.arrive(now, Command { id: no, operation: Operation::Read, offset: no << 20, len: 4096 });
            array.advance(now + 1_900_000 - 1, &mut done);
            let at = done.iter().find(|(id, _)| *id == no).map_or(now + 1_900_000, |(_, at)| *at);
            sum += at - now;
            done.clear();
        }
        sum / 2000
    };
    let (alone, mixed) = (mean_latency(0), mean_latency(3));
    // A quarter of the reads meets a unit that programs for 0.7 ms in the mean.
    assert!((alone + 120_000..alone + 230_000).contains(&mixed), "{alone} ns alone, {mixed} ns with writes");
}

#[test]
fn a_sync_waits_for_a_disks_write_cache_and_not_for_a_protected_buffer() {
    let sync_after_writes = |model: &str| {
        let mut array = Array::new(&model.parse().unwrap(), 1);
        array.set_extent(64 << 30);
        for id in 0..16 {
            let offset = (id * 7919) << 20;
            array.arrive(0, Command { id, operation: Operation::Write, offset, len: 4096 });
        }
        array.arrive(0, Command { id: 99, operation: Operation::Sync, offset: 0, len: 0 });
        let mut done = Vec::new();
        array.advance(10_000_000_000, &mut done);
        assert_eq!((done.len(), array.next_event()), (17, None));
        done.iter().find(|(id, _)| *id == 99).unwrap().1
    };
    assert!(sync_after_writes("hdd-7200") > 30_000_000);
    assert!(sync_after_writes("nvme") < 200_000);
    assert!(sync_after_writes("nvme:protected=off") > sync_after_writes("nvme"));
}

#[test]
fn nobody_starves_in_the_elevator() {
    // A crowd of sequential readers at one end, one reader at the other.
    let mut array = Array::new(&"hdd-7200:read-ahead=0B".parse().unwrap(), 1);
    array.set_extent(64 << 30);
    let read = |id, offset| Command { id, operation: Operation::Read, offset, len: 4096 };
    let mut random = SplitMix64::new(5);
    (0..40).for_each(|id| array.arrive(0, read(id, id * 4096)));
    array.arrive(0, read(999, 63 << 30));
    let (mut done, mut served) = (Vec::new(), 0);
    loop {
        let now = array.next_event().unwrap();
        array.advance(now, &mut done);
        for (id, at) in done.drain(..) {
            served += 1;
            if id == 999 {
                return;
            }
            array.arrive(at, read(id, random.below(1 << 8) * 4096));
        }
        assert!(served < 5000, "passed over for ever");
    }
}
