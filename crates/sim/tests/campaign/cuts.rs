//! Power cuts: what was synced is there, what was not is old or new, and nothing else is ever seen.

use tanada_sim::{Case, Trial, story_names};
use tanada_volume::CRASH_POINTS;

use crate::{all_hold, seeds};

const FIXED: fn() -> Vec<&'static str> = || {
    story_names()
        .iter()
        .copied()
        .filter(|name| !["busy", "mirrored", "transformed", "database"].contains(name))
        .collect()
};

#[test]
fn power_cuts_in_random_stories_lose_nothing_that_was_synced() {
    let report = all_hold(&Trial::cuts(100, 3), &seeds("busy", 1..121));
    println!("{report}");
    assert!(report.cuts >= 20_000, "{report}");
    assert!(report.second_cuts >= 5_000, "{report}");
    for operation in
        ["write", "read", "sync", "move", "mirror", "drain class", "remove class", "adopt", "give up"]
    {
        assert!(report.operations.get(operation).is_some_and(|count| *count >= 3), "few of {operation}");
    }
}

#[test]
fn a_power_cut_after_every_io_of_the_fixed_stories_loses_nothing_that_was_synced() {
    let stories = FIXED();
    assert!(stories.len() >= 10);
    let mut cases: Vec<Case> = stories.iter().map(|story| Case::new(story, 1)).collect();
    // The volumes of even seeds have cleaners.
    cases.extend(["pages", "altering"].map(|story| Case::new(story, 2)));
    let report = all_hold(&Trial::cuts(1000, 3), &cases);
    println!("{report}");
    assert!(report.points > report.ios, "each I/O is a point, and so is each crash point: {report}");
}

/// Reads of mirrors fail, the mirrors' device is gone or its label has rotted: it costs speed, and power cuts change
/// nothing of that.
#[test]
fn faults_of_mirrors_cost_only_speed() {
    let report = all_hold(&Trial::cuts(30, 2), &seeds("mirrored", 1..61));
    println!("{report}");
    for (operation, least) in [("write", 1000), ("read", 1000), ("mirror", 300), ("lose mirrors", 30)] {
        assert!(report.operations.get(operation).is_some_and(|count| *count >= least), "few of {operation}");
    }
}

#[test]
fn power_cuts_lose_no_synced_page_of_compressed_and_encrypted_objects() {
    let report = all_hold(&Trial::cuts(60, 3), &seeds("transformed", 1..41));
    println!("{report}");
    for operation in ["write", "read", "sync", "move", "mirror", "alter", "optimize", "truncate", "punch"] {
        assert!(report.operations.get(operation).is_some_and(|count| *count >= 3), "few of {operation}");
    }
}

/// A page that was written as a whole is old or new as a whole: what a database needs a doublewrite area for elsewhere.
#[test]
fn pages_of_a_database_are_never_torn_with_a_doublewrite_area_or_without() {
    let report = all_hold(&Trial::cuts(100, 3), &seeds("database", 1..25));
    println!("{report}");
    assert!(report.cuts > 2000, "{report}");
}

#[test]
fn a_power_cut_while_a_volume_is_made_leaves_a_volume_or_none() {
    let trial = Trial { cuts_creation: true, ..Trial::cuts(1000, 20) };
    let cases: Vec<Case> = (1..6).map(|seed| Case::new("naming", seed)).collect();
    all_hold(&trial, &cases);
}

#[test]
fn every_crash_point_is_reached() {
    let cases: Vec<Case> = FIXED().iter().map(|story| Case::new(story, 2)).collect();
    let report = all_hold(&Trial::cuts(20, 1), &cases);
    let missed: Vec<_> = CRASH_POINTS.iter().filter(|name| !report.marks.contains_key(*name)).collect();
    assert!(missed.is_empty(), "never reached: {missed:?}");
}

/// A volume that asked the machine for the time, or a hash map for its order, would break this.
#[test]
fn the_same_seed_gives_the_same_run() {
    for seed in 1..4 {
        let run = || Trial::cuts(50, 2).run(&Case::new("busy", seed)).unwrap();
        assert_eq!(run(), run());
    }
}
