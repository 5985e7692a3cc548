//! The depth search over emulated arrays, on the pure model: it has to find the depth at which the elevators profit.

use std::time::Duration;

use tanada_base::SplitMix64;

use super::depth::DepthSearch;
use crate::Operation;
use crate::model::{Array, Command};

/// How random reads went under the search: the depth after each thousandth of `ios`, the rate of the last quarter.
fn search(model: &str, ios: u64, seed: u64) -> (Vec<usize>, f64) {
    let mut array = Array::new(&model.parse().unwrap(), seed);
    let extent = 1u64 << 40;
    array.set_extent(extent);
    let mut search = DepthSearch::new();
    let mut random = SplitMix64::new(seed);
    let mut started = std::collections::HashMap::new();
    let (mut next, mut completed, mut began, mut now) = (0, 0, 0, 0);
    let mut depths = Vec::new();
    let mut done = Vec::new();
    while completed < ios {
        while started.len() < search.limit() {
            let offset = random.below(extent / 16384) * 16384;
            started.insert(next, now);
            array.arrive(now, Command { id: next, operation: Operation::Read, offset, len: 16384 });
            next += 1;
        }
        now = array.next_event().unwrap();
        array.advance(now, &mut done);
        for (id, at) in done.drain(..) {
            let latency = at - started.remove(&id).unwrap();
            search.completed(Duration::from_nanos(at), Duration::from_nanos(latency), true);
            completed += 1;
            if completed == ios / 4 * 3 {
                began = at;
            }
            if completed % (ios / 1000) == 0 {
                depths.push(search.limit());
            }
        }
    }
    (depths, (ios - ios / 4 * 3) as f64 * 1e9 / (now - began) as f64)
}

/// The depth that was in force most of the last half.
fn settled(depths: &[usize]) -> usize {
    let mut last = depths[depths.len() / 2..].to_vec();
    last.sort_unstable();
    last[last.len() / 2]
}

#[test]
fn eight_disks_get_a_full_queue_each() {
    for seed in 1..4 {
        let (depths, rate) = search("8xhdd-7200", 60_000, seed);
        assert!(settled(&depths) >= 8 * 32, "{} with seed {seed}", settled(&depths));
        // What a fixed depth of 256 reaches, less what probing costs.
        assert!(rate > 1750.0, "{rate}");
        let reached = depths.iter().position(|depth| *depth >= 256);
        assert!(reached.is_some_and(|thousandths| thousandths < 100), "{reached:?}");
    }
}

#[test]
fn a_thousand_disks_get_a_full_queue_each() {
    let (depths, rate) = search("1024xhdd-7200", 200_000, 1);
    assert_eq!(settled(&depths), 1024 * 32);
    assert!(rate > 200_000.0, "{rate}");
}

#[test]
fn a_fast_ssd_is_not_flooded() {
    let (depths, rate) = search("nvme", 200_000, 1);
    assert!(settled(&depths) <= 64, "{}", settled(&depths));
    assert!(rate > 200_000.0, "{rate}");
}
