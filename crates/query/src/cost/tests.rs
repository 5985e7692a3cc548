//! Monotonicity and crossover of the cost model.

use super::*;

fn model() -> CostModel {
    CostModel::new(Calibration::default(), 2, 0)
}

/// A table of six million rows in 1 GB with a secondary index, thirty rows a key.
fn lineitem() -> (RelationShape, IndexShape) {
    let clustered = IndexShape { height: 3.0, leaf_pages: 65_000.0, contiguity: 0.98 };
    let secondary = IndexShape { height: 3.0, leaf_pages: 8_000.0, contiguity: 0.5 };
    (RelationShape { rows: 6e6, page_bytes: 16_384.0, cached_pages: 16_384.0, clustered }, secondary)
}

fn by_part(keys: f64) -> Work {
    let (relation, index) = lineitem();
    model().lookup(&relation, &Lookups { keys, matches_per_key: 30.0, index, bookmarks: true, columns: 3.0 })
}

fn by_scan(keys: f64) -> Work {
    let (relation, _) = lineitem();
    model().full_scan(&relation, 3.0).with(model().hash(keys, relation.rows))
}

#[test]
fn distinct_pages_are_bounded_by_pages_and_reads() {
    assert_eq!(distinct_pages(0.0, 10.0), 0.0);
    assert_eq!(distinct_pages(1.0, 10.0), 1.0);
    assert_eq!(distinct_pages(10.0, 0.0), 0.0);
    assert!((distinct_pages(1e9, 10.0) - 10.0).abs() < 1e-3);
    assert!((distinct_pages(100.0, 1e6) - 100.0).abs() < 1e-6);
    // Half of the pages are touched by P ln 2 reads.
    assert!((distinct_pages(1e4, 1e4 * 2f64.ln()) - 5e3).abs() < 1.0);
}

#[test]
fn pages_that_the_cache_cannot_hold_are_read_again() {
    assert_eq!(page_reads(1e4, 1e5, 1e4), distinct_pages(1e4, 1e5));
    assert_eq!(page_reads(1e4, 1e3, 2e3), distinct_pages(1e4, 1e3));
    // A cache of a quarter: three of four requests miss once it is full.
    let reads = page_reads(1e4, 1e5, 2.5e3);
    let until_full = 1e4 * (4f64 / 3.0).ln();
    assert!((reads - (2.5e3 + (1e5 - until_full) * 0.75)).abs() < 1.0, "{reads}");
    assert!(page_reads(1e4, 1e5, 0.0) > 0.99e5);
    assert!(page_reads(1e4, 1e5, 2.5e3) < page_reads(1e4, 1e5, 2e3));
}

#[test]
fn more_work_never_takes_less_time() {
    let times: Vec<f64> = (0..24).map(|power| model().time(by_part(f64::from(1 << power))).time_us).collect();
    assert!(times.windows(2).all(|pair| pair[0] <= pair[1]), "{times:?}");
    let (relation, index) = lineitem();
    for bookmark in [false, true] {
        let times: Vec<f64> = (0..=10)
            .map(|tenth| {
                let share = f64::from(tenth) / 10.0;
                let work = match bookmark {
                    true => model().bookmark_scan(&relation, &index, share, 3.0),
                    false => model().range_scan(&relation, &index, share, 3.0),
                };
                model().time(work).time_us
            })
            .collect();
        assert!(times.windows(2).all(|pair| pair[0] <= pair[1]), "{times:?}");
    }
}

#[test]
fn few_keys_are_looked_up_and_many_are_hashed() {
    let cheaper = |keys: f64| model().time(by_part(keys)).time_us < model().time(by_scan(keys)).time_us;
    assert!(cheaper(312.0), "0.16 % of 200,000 parts");
    assert!(!cheaper(200_000.0), "every part");
    // One crossover between them.
    let changes = (0..100).map(|i| cheaper(312.0 + f64::from(i) * 2_000.0)).collect::<Vec<_>>();
    assert_eq!(changes.windows(2).filter(|pair| pair[0] != pair[1]).count(), 1);
}

#[test]
fn in_order_costs_many_times_more_for_lookups_and_little_more_for_scans() {
    let in_order = model().in_order();
    let lookup = in_order.time(by_part(312.0)).time_us / model().time(by_part(312.0)).time_us;
    assert!(lookup > 6.0, "{lookup}");
    let scan = in_order.time(by_scan(312.0)).time_us / model().time(by_scan(312.0)).time_us;
    assert!(scan < 3.0, "{scan}");
}

#[test]
fn an_index_that_covers_is_cheaper() {
    let (relation, index) = lineitem();
    let lookups = Lookups { keys: 1_000.0, matches_per_key: 30.0, index, bookmarks: false, columns: 2.0 };
    let covered = model().time(model().lookup(&relation, &lookups)).time_us;
    let fetched = model().time(model().lookup(&relation, &Lookups { bookmarks: true, ..lookups })).time_us;
    assert!(covered * 3.0 < fetched);
}

#[test]
fn a_single_lookup_takes_its_chain() {
    let (relation, index) = lineitem();
    let lookups = Lookups { keys: 1.0, matches_per_key: 1.0, index, bookmarks: true, columns: 1.0 };
    let time = model().time(model().lookup(&relation, &lookups)).time_us;
    assert!(time >= 6.0 * model().calibration().medium.latency_us());
}
