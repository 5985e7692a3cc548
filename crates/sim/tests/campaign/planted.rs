//! Bugs on demand: a campaign that does not find them guards nothing.

use tanada_sim::{Failure, Trial};
use tanada_volume::PlantedBug;

use crate::{seeds, try_all};

fn found(planted_bug: PlantedBug, story: &str) -> Failure {
    let trial = Trial { planted_bug, ..Trial::cuts(300, 4) };
    match try_all(&trial, &seeds(story, 1..60)) {
        Ok(report) => panic!("{planted_bug:?} was not found by {report}"),
        Err(failure) => {
            println!("{planted_bug:?}: {failure}");
            failure
        }
    }
}

/// What was found is found again by what the failure says, and is not there without the bug.
fn is_found(planted_bug: PlantedBug, story: &str) {
    let failure = found(planted_bug, story);
    let command = format!("make sim STORY={story} SEED={}", failure.case.seed);
    assert!(failure.to_string().contains(&command) && failure.to_string().contains(" BUG="));
    let trial = Trial { planted_bug, ..Trial::cuts(300, 4) };
    assert_eq!(trial.run(&failure.case).expect_err("it is repeated").what, failure.what);
    let sound = Trial { planted_bug: PlantedBug::None, ..trial };
    assert!(sound.run(&failure.case).is_ok());
}

#[test]
fn a_mapping_that_switches_before_the_copy_is_durable_is_found() {
    is_found(PlantedBug::SwitchBeforeSync, "busy");
    is_found(PlantedBug::SwitchBeforeSync, "moving");
}

#[test]
fn space_that_is_used_again_before_its_freeing_is_durable_is_found() {
    is_found(PlantedBug::ReuseBeforeFree, "busy");
}

#[test]
fn a_superblock_that_names_a_checkpoint_before_it_is_durable_is_found() {
    is_found(PlantedBug::SuperblockBeforeCheckpoint, "busy");
    is_found(PlantedBug::SuperblockBeforeCheckpoint, "stopping");
}

#[test]
fn a_sync_that_makes_mappings_durable_before_the_data_is_found() {
    is_found(PlantedBug::MapBeforeData, "busy");
}

#[test]
fn attributes_that_are_forgotten_are_found() {
    is_found(PlantedBug::ForgetAttributes, "busy");
    is_found(PlantedBug::ForgetAttributes, "attributes");
}

#[test]
fn a_quota_that_is_overrun_is_found() {
    is_found(PlantedBug::OverrunQuota, "busy");
    is_found(PlantedBug::OverrunQuota, "attributes");
}

#[test]
fn a_pin_that_is_not_obeyed_is_found() {
    is_found(PlantedBug::IgnorePin, "busy");
    is_found(PlantedBug::IgnorePin, "attributes");
}

#[test]
fn an_io_that_is_counted_in_half_of_the_places_is_found() {
    is_found(PlantedBug::CountHalf, "busy");
}

#[test]
fn pages_that_are_journaled_before_their_data_are_durable_are_found() {
    is_found(PlantedBug::JournalPagesBeforeData, "transformed");
    is_found(PlantedBug::JournalPagesBeforeData, "pages");
}

#[test]
fn blocks_that_are_used_again_before_their_pages_have_left_durably_are_found() {
    is_found(PlantedBug::ReusePagesEarly, "transformed");
}

#[test]
fn a_sync_that_does_not_wait_for_cleaners_is_found() {
    is_found(PlantedBug::SyncBeforeCleaners, "transformed");
    is_found(PlantedBug::SyncBeforeCleaners, "database");
}

#[test]
fn a_mirror_that_must_be_readable_is_found() {
    is_found(PlantedBug::TrustMirrors, "mirrored");
}
