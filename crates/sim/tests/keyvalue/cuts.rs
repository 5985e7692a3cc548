//! The key-value engine's promises after power cuts, failing devices and rot.

use std::num::NonZero;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use tanada_kv::CRASH_POINTS;
use tanada_sim::{Case, Fault, KeyValueTrial, Report, Rule};

/// Tells the stories of these seeds on all processors.
fn told(seeds: std::ops::Range<u64>, trial: &KeyValueTrial) -> Report {
    let total = Mutex::new(Report::default());
    let next = AtomicU64::new(seeds.start);
    let tell = || {
        while let Some(seed) = Some(next.fetch_add(1, Ordering::Relaxed)).filter(|seed| *seed < seeds.end) {
            let told = trial.run(&Case::new("key-value", seed));
            total.lock().unwrap().add(&told.unwrap_or_else(|failure| panic!("{failure}")));
        }
    };
    std::thread::scope(|scope| {
        let threads = std::thread::available_parallelism().map_or(1, NonZero::get) as u64;
        for _ in 1..threads.min(seeds.end - seeds.start) {
            scope.spawn(tell);
        }
        tell();
    });
    let total = total.into_inner().unwrap();
    println!("{total}");
    total.operations.iter().chain(&total.marks).for_each(|(name, count)| println!("{count:>9} {name}"));
    total
}

#[test]
fn acknowledged_writes_survive_power_cuts() {
    let report = told(0..42, &KeyValueTrial::cuts(160, 3));
    assert!(report.cuts >= 30_000, "{report}");
    // Transactions met each other.
    assert!(report.operations["conflict"] > 100, "{report}");
    // Stores came and went, were loaded, and readers lost patience.
    for name in ["load", "load given up", "store made", "store dropped", "get dropped"] {
        assert!(report.operations.get(name).is_some_and(|count| *count > 20), "{name}: {report}");
    }
    // Somebody looked after it all, and what had expired was dropped.
    let cares = [
        "compaction",
        "copy",
        "class emptied",
        "batch that expires",
        "compaction of what expires",
        "settings",
    ];
    for name in cares {
        assert!(report.operations.get(name).is_some_and(|count| *count > 5), "{name}: {report}");
    }
    // Copies are damaged by nothing here, and made now and then.
    let rare = ["promotion.before-manifest", "promotion.before-dropping"];
    for name in CRASH_POINTS.iter().filter(|name| !rare.contains(name)) {
        assert!(report.marks.contains_key(name), "{name} was never passed");
    }
}

/// An engine that asked the machine for the time, a hash map for its order or a cache with hashes of its own for what
/// to drop would break this.
#[test]
fn the_same_seed_gives_the_same_run() {
    for seed in 0..12 {
        let run = || KeyValueTrial::cuts(20, 1).run(&Case::new("key-value", seed)).unwrap();
        assert_eq!(run(), run(), "seed {seed}");
    }
}

/// Stories in each of which another I/O meets `fault`, the first one in the first, until there is none left that it
/// could meet; how often it struck. Each ends with a power cut, and each seventh has some before that, too.
fn one_after_the_other(fault: Fault) -> u64 {
    let (mut struck, mut spared) = (0, 0);
    for no in 0.. {
        let rules = vec![Rule::nth(fault, no)];
        let per_thousand = if no % 7 == 0 { 20 } else { 0 };
        let trial =
            KeyValueTrial { rules, steps: 30, transactions: 12, ..KeyValueTrial::cuts(per_thousand, 1) };
        let told = told(no..no + 1, &trial).faults;
        struck += told;
        // Some stories are longer than others.
        spared = if told == 0 { spared + 1 } else { 0 };
        if spared == 20 {
            break;
        }
    }
    struck
}

/// Any write or sync that fails ends the writes, not the reads; and what was durable before is there after the next
/// opening.
#[test]
fn a_device_that_fails_costs_nothing_that_was_durable() {
    let struck = one_after_the_other(Fault::Error);
    assert!(struck > 390, "{struck}");
}

/// A device may say that it is full, whatever it promised.
#[test]
fn a_device_that_is_full_costs_nothing_that_was_durable() {
    let struck = one_after_the_other(Fault::NoSpace);
    assert!(struck > 100, "{struck}");
}

/// A flipped bit is an error, or nobody reads it.
#[test]
fn rot_is_never_read_as_data() {
    let mut noticed = 0;
    for seed in 0..6 {
        let case = Case::new("key-value", seed);
        noticed += KeyValueTrial::cuts(0, 1).rot(&case, 60).unwrap_or_else(|failure| panic!("{failure}"));
    }
    assert!(noticed > 20, "{noticed}");
}

/// The next segment of the same opening begins in the block behind it, so replay went on there, and a batch was missing
/// in between.
#[test]
fn a_torn_frame_in_the_last_block_of_a_segment_ends_the_log() {
    told(291..292, &KeyValueTrial::cuts(100, 3));
}
