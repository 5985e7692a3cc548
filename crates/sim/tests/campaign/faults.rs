//! Disks that fail: errors are reported, nothing unsynced counts as durable, and after the next opening all that was
//! synced is there.

use tanada_io::Operation;
use tanada_sim::{
    Case, Fault, Report, Rule, Trial, When, a_device_is_gone, rot_of_a_superblock, rot_of_metadata,
    story_names,
};

use crate::{all_hold, seeds, try_all};

fn with(rules: Vec<Rule>, per_thousand: u32) -> Trial {
    Trial { rules, ..Trial::cuts(per_thousand, 2) }
}

/// Fails the n-th I/O, n = 0, 1, 2, ... until none fails.
fn each_io_fails_once(story: &str, operation: Option<Operation>) -> Report {
    let mut total = Report::default();
    for n in 0.. {
        let rule = Rule { operation, ..Rule::nth(Fault::Error, n) };
        let report = match with(vec![rule], 40).run(&Case::new(story, 3)) {
            Ok(report) => report,
            Err(failure) => panic!("I/O {n} failed: {failure}"),
        };
        total.add(&report);
        if report.faults == 0 {
            break;
        }
    }
    assert!(total.faults >= 5, "{total}");
    total
}

#[test]
fn each_io_of_a_story_may_fail() {
    for story in ["writing", "truncating", "moving", "mirroring", "changing-classes", "naming", "pages"] {
        println!("{story}: {}", each_io_fails_once(story, None));
    }
}

#[test]
fn after_a_failed_sync_nothing_unsynced_counts_as_durable() {
    for story in ["filling-the-journal", "syncing-together", "stopping", "punching"] {
        each_io_fails_once(story, Some(Operation::Sync));
    }
    let rule = Rule::new(Fault::Error, When::PerMillion(20_000)).of(Operation::Sync);
    let report = all_hold(&with(vec![rule], 50), &seeds("busy", 1..60));
    assert!(report.faults > 20, "{report}");
}

#[test]
fn errors_at_random_lose_nothing_that_was_synced() {
    let rule = Rule::new(Fault::Error, When::PerMillion(10_000));
    let report = all_hold(&with(vec![rule], 50), &seeds("busy", 100..160));
    assert!(report.faults > 20, "{report}");
}

#[test]
fn full_devices_refuse_writes_and_keep_data() {
    let rule = Rule::new(Fault::NoSpace, When::PerMillion(30_000));
    let report = all_hold(&with(vec![rule], 50), &seeds("busy", 200..240));
    assert!(report.faults > 20, "{report}");
}

#[test]
fn errors_and_full_devices_lose_no_synced_page() {
    for (fault, first) in [(Fault::Error, 1), (Fault::NoSpace, 100), (Fault::Short, 200)] {
        let rule = Rule::new(fault, When::PerMillion(15_000));
        let report = all_hold(&with(vec![rule], 50), &seeds("transformed", first..first + 15));
        assert!(report.faults > 10, "{fault:?}: {report}");
    }
    let rule = Rule::new(Fault::NoSpace, When::PerMillion(200_000)).of(Operation::Write);
    all_hold(&with(vec![rule], 50), &seeds("altering", 1..6));
}

#[test]
fn short_transfers_are_no_errors() {
    let rule = Rule::new(Fault::Short, When::PerMillion(200_000));
    let report = all_hold(&with(vec![rule], 50), &seeds("busy", 300..340));
    assert!(report.faults > 1000, "{report}");
}

/// The oracle would also notice a disk that lies: it is not the volume that makes its own judgement come true.
#[test]
fn disks_that_ignore_syncs_or_writes_are_found() {
    for fault in [Fault::LyingSync, Fault::LostWrite, Fault::Misdirected, Fault::FlipOnWrite] {
        let rule = Rule::new(fault, When::PerMillion(100_000));
        let found = try_all(&with(vec![rule], 300), &seeds("busy", 1..40));
        assert!(found.is_err(), "{fault:?} went unnoticed");
    }
}

#[test]
fn metadata_that_rotted_after_a_clean_stop_are_an_error_or_make_no_difference() {
    let mut refused = 0;
    for story in story_names() {
        match rot_of_metadata(&Case::new(story, 4), 300) {
            Ok(report) => refused += report.refused,
            Err(failure) => panic!("{failure}"),
        }
    }
    assert!(refused > 20, "{refused} of {} were refused", 300 * story_names().len());
}

#[test]
fn a_single_valid_superblock_suffices_after_a_power_cut() {
    for story in story_names() {
        for seed in 6..9 {
            if let Err(failure) = rot_of_a_superblock(&Case::new(story, seed), 40) {
                panic!("{failure}");
            }
        }
    }
}

#[test]
fn a_missing_device_hides_its_own_objects_only() {
    let mut unreadable = 0;
    for story in story_names() {
        match a_device_is_gone(&Case::new(story, 5)) {
            Ok(report) => unreadable += report.unreadable,
            Err(failure) => panic!("{failure}"),
        }
    }
    assert!(unreadable > 10, "{unreadable}");
}
