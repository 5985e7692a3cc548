//! The key-value engine's promises after power cuts, failing devices and rot.

use tanada_sim::{Case, KeyValueTrial, Report};

fn told(seeds: std::ops::Range<u64>, trial: &KeyValueTrial) -> Report {
    let mut total = Report::default();
    for seed in seeds {
        let case = Case::new("key-value", seed);
        match trial.run(&case) {
            Ok(report) => total.add(&report),
            Err(failure) => panic!("{failure}"),
        }
    }
    println!("{total}");
    total.operations.iter().chain(&total.marks).for_each(|(name, count)| println!("{count:>9} {name}"));
    total
}

#[test]
fn what_was_acknowledged_survives_power_cuts() {
    let report = told(0..20, &KeyValueTrial::cuts(30, 2));
    assert!(report.cuts > 100);
}
