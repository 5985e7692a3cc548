//! The evaluation of HSE, small: every key is there, and nothing is left behind. Alone in its process, whose time is
//! virtual meanwhile.

#![allow(clippy::unwrap_used, reason = "a test fails so")]

use tanada_report::Report;
use tanada_ycsb::bench::{HseOptions, html, run_hse};
use tanada_ycsb::workload::{Records, Workload};

fn assert_figures(report: &Report, keys: &[&str]) {
    for key in keys {
        let figure = report.summary[*key].as_f64();
        assert!(figure.is_some_and(|figure| figure.is_finite()), "{key}: {:?}", report.summary);
    }
    let page = html(report).unwrap();
    assert!(page.contains("<svg") && page.contains(keys[0]));
}

#[test]
fn a_staging_class_is_compared_with_none_in_virtual_time() {
    let folder = tempfile::tempdir().unwrap();
    let options = HseOptions {
        records: Records { count: 3000, ..Records::default() },
        operations: 500,
        memory_bytes: 8 << 20,
        workloads: vec![Workload::A, Workload::F],
        ..HseOptions::quick(folder.path())
    };
    let report = run_hse(&options, |_| {}).unwrap();
    assert_figures(
        &report,
        &[
            "staging_over_capacity_load",
            "staging_over_capacity_a",
            "staging_over_capacity_f",
            "capacity_bytes_reduction_load",
        ],
    );
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "something is left behind");
}
