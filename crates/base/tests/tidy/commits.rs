//! Rules for commits, from the one on that brought this file: a subject of at most 72 columns, about one topic.
//!
//! In a copy without history there is nothing to look at, and the rule holds. In a shallow clone it looks at what is
//! there.

use std::process::Command;

use crate::{assert_none, root};

const MAX_SUBJECT_COLUMNS: usize = 72;

const THIS_FILE: &str = "crates/base/tests/tidy/commits.rs";

#[test]
fn commit_subjects_are_short_and_about_one_topic() {
    let complaints: Vec<String> = subjects().iter().filter_map(|subject| check(subject)).collect();
    assert_none(&complaints);
}

/// Subjects of the commits since the one that added this file; none without git or history.
fn subjects() -> Vec<String> {
    let Some(added) = git(&["log", "--diff-filter=A", "--format=%H", "--", THIS_FILE]) else {
        return Vec::new();
    };
    let Some(first) = added.lines().last() else { return Vec::new() };
    let range = format!("{first}..HEAD");
    let subjects = git(&["log", "--no-merges", "--format=%s", &range]).unwrap_or_default();
    subjects.lines().map(str::to_owned).collect()
}

/// What git prints; `None` if there is no git or no repository.
fn git(arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").current_dir(root()).args(arguments).output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).into_owned())
}

fn check(subject: &str) -> Option<String> {
    let columns = subject.chars().count();
    if columns > MAX_SUBJECT_COLUMNS {
        return Some(format!("{subject:?} has {columns} columns (at most {MAX_SUBJECT_COLUMNS})"));
    }
    if subject.contains(';') {
        return Some(format!("{subject:?} joins several topics: make several commits"));
    }
    if !subject.starts_with(|first: char| first.is_uppercase() || first.is_ascii_digit()) {
        return Some(format!("{subject:?} does not begin with a capital letter"));
    }
    None
}

#[test]
fn a_long_and_a_joined_subject_are_noticed() {
    assert!(
        check(&format!("A{}", "b".repeat(MAX_SUBJECT_COLUMNS))).is_some_and(|why| why.contains("73 columns"))
    );
    assert!(check("Evict mirrors; name tests").is_some_and(|why| why.contains("several topics")));
    assert!(check("evict mirrors").is_some());
    assert_eq!(check("Evict mirrors of deleted values"), None);
}
