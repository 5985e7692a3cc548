//! What is drawn has the probabilities that YCSB's definitions give: chi-square tests and proportions, of fixed seeds.

#![allow(clippy::unwrap_used, reason = "a test fails so")]

use std::collections::BTreeMap;
use std::sync::Arc;

use tanada_base::SplitMix64;
use tanada_ycsb::draw::{
    AcknowledgedCounter, Hotspot, Latest, ScrambledZipfian, ZIPFIAN_CONSTANT, Zipfian, fnv_hash_64, zeta,
};
use tanada_ycsb::workload::{Distribution, Draws, LONGEST_SCAN, Operation, Workload};

const DRAWS: u64 = 2_000_000;

/// The chi-square statistic of counts against probabilities, over its degrees of freedom.
///
/// It is near 1 if the counts have those probabilities: with 100 cells or more, above 1.5 less than once in a thousand.
fn chi_square(counts: &[u64], probabilities: &[f64]) -> f64 {
    let draws = counts.iter().sum::<u64>() as f64;
    let terms = counts.iter().zip(probabilities).map(|(count, probability)| {
        let expected = draws * probability;
        assert!(expected >= 5.0, "a cell is too small for the test");
        (*count as f64 - expected).powi(2) / expected
    });
    terms.sum::<f64>() / (counts.len() - 1) as f64
}

/// The probabilities of Gray's method: exact for 0 and 1, and for the others what its curve gives each of them.
fn drawn_probability(items: u64, zeta_n: f64, number: u64) -> f64 {
    let theta = ZIPFIAN_CONSTANT;
    let second = 0.5f64.powf(theta);
    let eta = (1.0 - (2.0 / items as f64).powf(1.0 - theta)) / (1.0 - (1.0 + second) / zeta_n);
    // The `u` from which on at least `number` is drawn by the curve.
    let from = |number: u64| 1.0 - (1.0 - (number as f64 / items as f64).powf(1.0 - theta)) / eta;
    let curve_begins = (1.0 + second) / zeta_n;
    match number {
        0 => 1.0 / zeta_n + (from(1) - curve_begins).max(0.0),
        1 => second / zeta_n + (from(2) - from(1).max(curve_begins)).max(0.0),
        _ => from(number + 1).min(1.0) - from(number).max(curve_begins).min(1.0),
    }
}

#[test]
fn zipfian_numbers_have_the_probabilities_of_the_method() {
    let items = 1000;
    let zipfian = Zipfian::new(items, ZIPFIAN_CONSTANT);
    let zeta_n = zeta(0, items, ZIPFIAN_CONSTANT, 0.0);
    let mut counts = vec![0; items as usize];
    let mut random = SplitMix64::new(3);
    (0..DRAWS).for_each(|_| counts[zipfian.next(&mut random) as usize] += 1);
    let probabilities: Vec<f64> = (0..items).map(|number| drawn_probability(items, zeta_n, number)).collect();
    let sum: f64 = probabilities.iter().sum();
    assert!((sum - 1.0).abs() < 1e-9, "{sum}");
    let statistic = chi_square(&counts, &probabilities);
    assert!(statistic < 1.3, "{statistic}");
}

#[test]
fn zipfian_numbers_are_close_to_the_analytic_distribution() {
    let items = 1000;
    let zipfian = Zipfian::new(items, ZIPFIAN_CONSTANT);
    let zeta_n = zeta(0, items, ZIPFIAN_CONSTANT, 0.0);
    let mut counts = vec![0u64; items as usize];
    let mut random = SplitMix64::new(4);
    (0..DRAWS).for_each(|_| counts[zipfian.next(&mut random) as usize] += 1);
    let analytic = |number: usize| ((number + 1) as f64).powf(-ZIPFIAN_CONSTANT) / zeta_n;
    // The first two are exact in the method; what follows is off by some per cent for the next, less then.
    for (number, tolerance) in [(0, 0.01), (1, 0.01), (2, 0.2), (10, 0.1), (100, 0.1), (900, 0.2)] {
        let ratio = counts[number] as f64 / DRAWS as f64 / analytic(number);
        assert!((ratio - 1.0).abs() < tolerance, "{number}: {ratio}");
    }
    let (mut drawn, mut expected) = (0.0, 0.0);
    for (number, count) in counts.iter().enumerate() {
        drawn += *count as f64 / DRAWS as f64;
        expected += analytic(number);
        assert!((drawn - expected).abs() < 0.03, "the first {number} have {drawn} instead of {expected}");
    }
}

#[test]
fn scrambled_numbers_are_hashed_zipfian_ones_over_ten_billion() {
    let (items, drawn_from) = (500, 10_000_000_001);
    let zeta_n = 26.469_028_201_783_02;
    let scrambled = ScrambledZipfian::new(items);
    let mut counts = vec![0; items as usize];
    let mut random = SplitMix64::new(5);
    (0..DRAWS).for_each(|_| counts[scrambled.next(&mut random) as usize] += 1);
    // The popular ones one by one; the rest, each of a tiny share, falls on all items alike.
    let mut probabilities = vec![0.0; items as usize];
    let mut known = 0.0;
    for number in 0..2_000_000 {
        let probability = drawn_probability(drawn_from, zeta_n, number);
        probabilities[(fnv_hash_64(number) % items) as usize] += probability;
        known += probability;
    }
    probabilities.iter_mut().for_each(|probability| *probability += (1.0 - known) / items as f64);
    let statistic = chi_square(&counts, &probabilities);
    assert!(statistic < 1.4, "{statistic}");
    let most = counts.iter().max().copied().unwrap_or(0) as f64 / DRAWS as f64;
    assert!((0.037..0.045).contains(&most), "the most popular item has {most}");
}

#[test]
fn the_constant_of_ten_billion_items_is_zeta_of_them() {
    // By Euler and Maclaurin: the sum to a million, the integral beyond it, and half the difference of the ends.
    let (from, to) = (1_000_000f64, 10_000_000_000f64);
    let theta = ZIPFIAN_CONSTANT;
    let integral = (to.powf(1.0 - theta) - from.powf(1.0 - theta)) / (1.0 - theta);
    let ends = (to.powf(-theta) - from.powf(-theta)) / 2.0;
    let sum = zeta(0, from as u64, theta, 0.0) + integral + ends;
    assert!((sum - 26.469_028_201_783_02).abs() < 1e-6, "{sum}");
}

#[test]
fn uniform_and_sequential_draws_reach_all_records_alike() {
    let count = 200;
    for (distribution, least, most) in
        [(Distribution::Uniform, 0.6, 1.4), (Distribution::Sequential, 0.0, 0.01)]
    {
        let inserted = Arc::new(AcknowledgedCounter::new(count));
        let mut draws = Draws::new(Workload::C, Some(distribution), inserted, DRAWS, 1);
        let mut counts = vec![0; count as usize];
        (0..400_000).for_each(|_| counts[draws.draw().record as usize] += 1);
        let statistic = chi_square(&counts, &vec![1.0 / count as f64; count as usize]);
        assert!((least..most).contains(&statistic), "{distribution:?}: {statistic}");
    }
}

#[test]
fn a_fifth_of_the_records_gets_four_fifths_of_a_hotspot() {
    let hotspot = Hotspot::new(1000, 0.2, 0.8);
    let mut counts = vec![0; 1000];
    let mut random = SplitMix64::new(6);
    (0..DRAWS).for_each(|_| counts[hotspot.next(&mut random) as usize] += 1);
    let probabilities: Vec<f64> =
        (0..1000).map(|no| if no < 200 { 0.8 / 200.0 } else { 0.2 / 800.0 }).collect();
    let statistic = chi_square(&counts, &probabilities);
    assert!(statistic < 1.3, "{statistic}");
}

#[test]
fn the_newest_record_is_the_most_popular_as_records_are_added() {
    let mut latest = Latest::new(100);
    let mut random = SplitMix64::new(7);
    let mut distances: BTreeMap<u64, u64> = BTreeMap::new();
    for draw in 0..DRAWS {
        let newest = 100 + draw * 900 / DRAWS;
        *distances.entry(newest - latest.next(newest, &mut random)).or_default() += 1;
    }
    // By then there are 1,000 records: the share of the newest lies between those of 100 and of 1,000.
    let share = distances[&0] as f64 / DRAWS as f64;
    let of = |items| 1.0 / zeta(0, items, ZIPFIAN_CONSTANT, 0.0);
    assert!((of(1000)..of(100)).contains(&share), "{share}");
    assert!(distances[&0] > distances[&1] && distances[&1] > distances[&5] && distances[&5] > distances[&50]);
}

#[test]
fn operations_come_in_their_proportions() {
    const OPERATIONS: u64 = 200_000;
    for workload in Workload::ALL {
        let inserted = Arc::new(AcknowledgedCounter::new(1000));
        let mut draws = Draws::new(workload, None, inserted.clone(), OPERATIONS, 1);
        let mut counts: BTreeMap<Operation, u64> = BTreeMap::new();
        let mut lengths = vec![0; LONGEST_SCAN as usize];
        for _ in 0..OPERATIONS {
            let drawn = draws.draw();
            *counts.entry(drawn.operation).or_default() += 1;
            match drawn.operation {
                Operation::Insert => inserted.acknowledge(drawn.record),
                Operation::Scan => lengths[drawn.length as usize - 1] += 1,
                _ => assert_eq!(drawn.length, 1),
            }
        }
        assert_eq!(counts.len(), workload.proportions().len(), "{workload}");
        for (operation, proportion) in workload.proportions() {
            let share = counts[operation] as f64 / OPERATIONS as f64;
            // Five standard deviations.
            let tolerance = 5.0 * (proportion * (1.0 - proportion) / OPERATIONS as f64).sqrt();
            assert!((share - proportion).abs() <= tolerance, "{workload}: {operation:?} {share}");
        }
        if workload == Workload::E {
            let statistic = chi_square(&lengths, &[1.0 / LONGEST_SCAN as f64; LONGEST_SCAN as usize]);
            assert!(statistic < 1.5, "{statistic}");
        }
    }
}
