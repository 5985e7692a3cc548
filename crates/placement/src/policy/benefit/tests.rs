//! What the policy wants for a query, on a bench.

use crate::layout::{ObjectNo, Rule, Tier};
use crate::policy::tests::bench as on_bench;
use crate::testing::*;

#[test]
fn planned_lookups_are_mirrored_and_scans_are_not() {
    let mut bench = on_bench("benefit", 20, 10);
    let wanted = bench.begin(1, &[look_ups(3..5, 400), scan(5..20)]);
    assert_eq!(wanted, ["mirror 3", "mirror 4"]);
    assert!(bench.done_all().is_empty());
}

#[test]
fn unprofitable_copies_are_not_made() {
    // A copy keeps the slow class busy for six milliseconds, and whoever reads one page after the other has half of it
    // meanwhile.
    let mut bench = on_bench("benefit", 20, 10);
    assert!(bench.begin(1, &[look_ups(0..20, 5)]).is_empty());
    // Deep queues read a page in less than two, and a copy takes from them what it needs.
    let mut bench = on_bench("benefit", 20, 10);
    bench.depth = 32;
    assert!(bench.begin(1, &[look_ups(0..20, 20)]).is_empty());
}

#[test]
fn a_copy_beside_a_lone_reader_costs_half_of_the_class_and_pays_sooner() {
    // Three reads of two chunks: 10.9 ms saved by one, which its copy keeps the disks busy for 6.3 ms and the SSD for
    // 5.1 ms.
    let mut bench = on_bench("benefit", 20, 20);
    let mut wanted = bench.begin(1, &[look_ups(0..4, 6)]);
    wanted.extend(bench.done_all());
    assert_eq!(wanted, ["mirror 0", "mirror 1", "mirror 2", "mirror 3"]);
}

#[test]
fn neighbours_are_copied_one_after_the_other() {
    let mut bench = on_bench("benefit", 20, 10);
    let wanted = bench.begin(1, &[look_ups(3..5, 400), look_ups(9..10, 900), look_ups(5..6, 800)]);
    assert_eq!(wanted, ["mirror 3", "mirror 4", "mirror 5", "mirror 9"]);
}

#[test]
fn the_most_valuable_chunks_are_copied_up_to_capacity() {
    let mut bench = on_bench("benefit", 20, 2);
    let wanted = bench.begin(1, &[look_ups(0..3, 300), look_ups(7..9, 2000)]);
    assert_eq!(wanted, ["mirror 7", "mirror 8"]);
    assert!(bench.done_all().is_empty());
}

#[test]
fn mirrors_yield_to_more_valuable_chunks() {
    let mut bench = on_bench("benefit", 20, 1);
    assert_eq!(bench.begin(1, &[look_ups(0..1, 500)]), ["mirror 0"]);
    bench.done_all();
    bench.end();
    assert_eq!(bench.begin(2, &[look_ups(9..10, 500)]), ["drop 0", "mirror 9"]);
}

/// It waited for I/Os of a next query, so that nothing was fetched for it.
#[test]
fn a_ranking_that_the_last_query_has_not_paid_for_is_made_when_time_has() {
    let mut bench = on_bench("benefit", 6000, 1);
    let reads: Vec<u32> = std::iter::repeat_n(0, 500).chain(1..5990).collect();
    for _ in 0..3 {
        bench.train_query(1, &[look_ups(0..1, 500)], &reads);
        bench.train_query(2, &[look_ups(5995..5996, 500)], &[5995; 500]);
    }
    assert_eq!(bench.begin(1, &[look_ups(0..1, 500), look_ups(1..5990, 10)]), ["mirror 0"]);
    bench.done_all();
    assert!(bench.end().is_empty());
    let at_ns = bench.policy.thinks_at_ns().unwrap();
    bench.now_ns = at_ns - 1;
    assert!(bench.think().is_empty());
    bench.now_ns = at_ns;
    assert_eq!(bench.think(), ["drop 0", "mirror 5995"]);
    assert_eq!(bench.policy.thinks_at_ns(), None);
}

#[test]
fn chunks_that_the_query_has_passed_are_not_copied() {
    let mut bench = on_bench("benefit", 40, 1);
    // It reads chunk 0 first and chunk 30 afterwards.
    let reads: Vec<u32> = (0..8192).map(|no| if no < 4096 { 0 } else { 30 }).collect();
    bench.train_query(1, &[look_ups(0..40, 8192)], &reads);
    bench.train_query(2, &[], &[5]);
    bench.prepare();
    bench.begin(1, &[look_ups(0..40, 8192)]);
    bench.done_all();
    let mut wanted = Vec::new();
    for chunk in &reads[..8000] {
        bench.now_ns += 1_000_000;
        wanted.extend(bench.read(*chunk));
        wanted.extend(bench.done_all());
    }
    // Chunk 0 was there from the beginning; it goes when it is done with, and does not come back.
    assert_eq!(wanted, ["drop 0", "mirror 30"]);
}

/// The disks read it faster than the SSD; but somebody has to wait until they are there.
#[test]
fn chunks_that_disks_read_faster_stay_unless_the_first_seek_outweighs_it() {
    let prepared = |chunks: u32, room| {
        let mut bench = on_bench("benefit", 400, room);
        (bench.depth, bench.bytes) = (32, 1 << 20);
        bench.train_query(1, &[scan(0..chunks.into())], &(0..chunks).collect::<Vec<_>>());
        bench.prepare().len()
    };
    assert_eq!(prepared(4, 400), 4);
    let of_many = prepared(300, 400);
    assert!((1..200).contains(&of_many), "{of_many}");
    // Without room for most of the rest, what is free stays free.
    assert!(prepared(4, 2) <= 2);
}

#[test]
fn reads_that_nothing_announced_are_rent() {
    let mut bench = on_bench("benefit", 20, 2);
    let wanted: Vec<_> = (0..5).flat_map(|_| bench.read(6)).collect();
    assert_eq!(wanted, ["mirror 6"]);
}

#[test]
fn interleaved_sequential_streams_do_not_trigger_promotion() {
    let mut bench = on_bench("benefit", 40, 20);
    bench.costs.slow.sequential_read_s = bench.costs.fast.sequential_read_s;
    let mut run = || {
        let mut wanted = bench.begin(1, &[]);
        for page in 0..128 {
            for first in [3, 12, 30] {
                bench.offset = page % 64 * bench.bytes;
                wanted.extend(bench.read(first + page / 64));
                wanted.extend(bench.done_all());
            }
        }
        wanted.extend(bench.end());
        wanted
    };
    let wanted: Vec<_> = (0..2).flat_map(|_| run()).collect();
    // One read at random is more than its copy takes from a lone reader.
    assert_eq!(wanted, ["mirror 3", "mirror 12", "mirror 30"]);
}

#[test]
fn a_scan_has_to_come_to_where_it_begins() {
    let mut bench = on_bench("benefit", 40, 20);
    bench.costs.slow.sequential_read_s = bench.costs.fast.sequential_read_s;
    let mut run = || {
        let mut wanted = bench.begin(1, &[]);
        for chunk in [3, 12] {
            for page in 0..4 {
                bench.offset = page * bench.bytes;
                wanted.extend(bench.read_on(chunk));
                wanted.extend(bench.done_all());
            }
        }
        wanted.extend(bench.end());
        wanted
    };
    let wanted: Vec<_> = (0..2).flat_map(|_| run()).collect();
    assert_eq!(wanted, ["mirror 3", "mirror 12"]);
}

#[test]
fn the_next_query_is_estimated_at_the_last_depth() {
    let run = |depth| {
        let mut bench = on_bench("benefit", 40, 40);
        bench.depth = depth;
        let reads: Vec<u32> = (0..60).map(|no| no * 7 % 20).collect();
        for _ in 0..3 {
            bench.train_query(1, &[], &reads);
            bench.train_query(2, &[], &[]);
        }
        let beside = bench.begin(2, &[]).len();
        // The first comes next, and nothing is under way.
        beside + bench.end().len()
    };
    assert_eq!((run(1), run(32)), (4, 0), "three reads at random are worth a copy if each is waited for");
}

#[test]
fn chunks_of_the_following_query_are_prefetched_when_idle() {
    let mut bench = on_bench("benefit", 20, 4);
    for _ in 0..3 {
        bench.train_query(1, &[look_ups(0..1, 300)], &[0; 300]);
        bench.train_query(2, &[look_ups(8..9, 300)], &[8; 300]);
    }
    let mut wanted = bench.begin(1, &[look_ups(0..1, 300)]);
    wanted.extend(bench.done_all());
    assert_eq!(wanted, ["mirror 0", "mirror 8"]);
}

#[test]
fn a_saturated_fast_class_gets_no_more() {
    let mut bench = on_bench("benefit", 100, 100);
    bench.depth = 64;
    // Both classes are as quick: only what both can do at once is gained.
    bench.costs.slow.random_read_s = [4e-3, 1e-3, 4e-4, 2e-4, 2e-4];
    bench.costs.fast.random_read_s = [1e-3, 4e-4, 2e-4, 1e-4, 1e-4];
    let mut wanted = bench.begin(1, &[look_ups(0..100, 1_000_000)]);
    wanted.extend(bench.done_all());
    assert_eq!(wanted.len(), 70, "with these both together take least");
}

#[test]
fn writes_stay_within_their_budget() {
    let refused = super::super::policy("benefit:write-budget=0", 0).unwrap_err().to_string();
    assert!(refused.contains("no bound"), "{refused}");
    let mut bench = on_bench("benefit:write-budget=2MiB", 20, 20);
    let mut wanted = bench.begin(1, &[look_ups(0..20, 10_000)]);
    wanted.extend(bench.done_all());
    assert_eq!(wanted.len(), 3, "a second's worth, and the chunk that exceeds it");
}

#[test]
fn chunks_pinned_to_the_slow_class_are_not_requested() {
    let mut bench = on_bench("benefit", 20, 20);
    bench.layout.set_rule(ObjectNo(0), Rule { pin: Some(Tier::Slow), quota_chunks: None });
    assert!(bench.begin(1, &[look_ups(0..20, 10_000)]).is_empty());
}

/// It was wanted there, refused, and wanted again by the next query.
#[test]
fn chunks_pinned_to_the_fast_class_are_left_to_their_pin() {
    let mut bench = on_bench("benefit", 20, 10);
    bench.layout.set_rule(ObjectNo(0), Rule { pin: Some(Tier::Fast), quota_chunks: None });
    assert!(bench.begin(1, &[look_ups(3..5, 4000)]).is_empty());
    assert!((0..20).all(|_| bench.read(9).is_empty()), "nor for what nothing announced");
}

/// What was prepared was neither bounded nor counted.
#[test]
fn prepared_copies_count_in_the_write_budget() {
    let prepared = |policy: &str| {
        let mut bench = on_bench(policy, 20, 10);
        bench.train_query(1, &[look_ups(0..8, 800)], &[0, 1, 2, 3, 4, 5, 6, 7].repeat(50));
        let wanted = bench.prepare();
        bench.done_all();
        (wanted.len(), bench)
    };
    assert_eq!(prepared("benefit").0, 8);
    let (wanted, mut bench) = prepared("benefit:write-budget=2MiB");
    // One more than two seconds in advance would be.
    assert_eq!(wanted, 3);
    assert!(bench.begin(2, &[look_ups(10..14, 4000)]).is_empty(), "it is used up");
    bench.now_ns += 1_000_000_000;
    assert!(!bench.begin(3, &[look_ups(10..14, 4000)]).is_empty());
}
