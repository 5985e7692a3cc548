//! Bugs of the key-value engine on demand: a campaign that does not find them guards nothing.

use tanada_kv::PlantedBug;
use tanada_sim::{Case, Failure, KeyValueTrial};

fn trial(planted_bug: PlantedBug) -> KeyValueTrial {
    KeyValueTrial { planted_bug, ..KeyValueTrial::cuts(50, 2) }
}

fn found(planted_bug: PlantedBug) -> Failure {
    let cases = (0..20).map(|seed| Case::new("key-value", seed));
    let failure = cases.into_iter().find_map(|case| trial(planted_bug).run(&case).err());
    failure.unwrap_or_else(|| panic!("{planted_bug:?} was not found"))
}

/// What was found is found again by what the failure says, and is not there without the bug.
fn is_found(planted_bug: PlantedBug, words: &str) {
    let failure = found(planted_bug);
    println!("{planted_bug:?}: {failure}");
    assert!(failure.what.contains(words), "{failure}");
    let command = format!("make sim STORY=key-value SEED={}", failure.case.seed);
    assert!(failure.to_string().contains(&command));
    assert!(failure.to_string().contains(&format!(" BUG={planted_bug:?}")));
    assert_eq!(trial(planted_bug).run(&failure.case).expect_err("it is repeated").what, failure.what);
    assert!(trial(PlantedBug::None).run(&failure.case).is_ok());
}

#[test]
fn conflicts_that_are_left_out_are_found() {
    is_found(PlantedBug::LeaveOutConflicts, "LostUpdate");
}

#[test]
fn reads_that_are_not_checked_are_found() {
    // Write skew, or a read of what was written over before.
    is_found(PlantedBug::ForgetReads, "Serializable: ");
}

#[test]
fn a_snapshot_that_is_taken_too_late_is_found() {
    is_found(PlantedBug::SnapshotTooLate, "Read");
}

#[test]
fn a_batch_that_is_replayed_in_part_is_found() {
    is_found(PlantedBug::ReplayInPart, "");
}

#[test]
fn an_acknowledgement_before_the_sync_is_found() {
    is_found(PlantedBug::AcknowledgeBeforeSync, "");
}

#[test]
fn a_delete_that_is_dropped_above_older_versions_is_found() {
    is_found(PlantedBug::DropDeletes, "");
}

#[test]
fn a_torn_frame_that_is_taken_for_whole_is_found() {
    is_found(PlantedBug::CutTooLate, "");
}

#[test]
fn a_manifest_that_counts_before_it_is_durable_is_found() {
    is_found(PlantedBug::SkipManifestSync, "");
}
