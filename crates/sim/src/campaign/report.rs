//! What a campaign did, in numbers, and how a failure says how to repeat it.

use std::collections::BTreeMap;
use std::fmt;

/// Which run of a campaign: all that is needed to repeat it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Case {
    /// Name of the story that is told ([`story_names`](super::story_names)).
    pub story: String,
    /// The seed.
    pub seed: u64,
    /// Only this point of the story, counted from 0; all of them if `None`.
    pub point: Option<u64>,
    /// Only this outcome of the power cut there; all of them if `None`.
    pub outcome: Option<u64>,
}

impl Case {
    /// All of a story.
    pub fn new(story: &str, seed: u64) -> Case {
        Case { story: story.to_owned(), seed, point: None, outcome: None }
    }

    /// The command that repeats it.
    pub fn command(&self) -> String {
        let mut command = format!("make sim STORY={} SEED={}", self.story, self.seed);
        if let Some(point) = self.point {
            command.push_str(&format!(" POINT={point}"));
        }
        if let Some(outcome) = self.outcome {
            command.push_str(&format!(" OUTCOME={outcome}"));
        }
        command
    }
}

/// A promise that was broken.
#[derive(Debug, Clone)]
pub struct Failure {
    /// Where.
    pub case: Case,
    /// What is wrong.
    pub what: String,
    /// What else the story was told with, as words of the command.
    pub settings: String,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}\n  repeat it: {}{}", self.what, self.case.command(), self.settings)
    }
}

impl std::error::Error for Failure {}

/// Counts of a campaign.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Report {
    /// Stories told to their end.
    pub stories: u64,
    /// I/Os of the stories, not of the recoveries.
    pub ios: u64,
    /// Points at which power was cut: I/Os and crash points.
    pub points: u64,
    /// Power cuts: outcomes that were recovered from and judged. Those during a recovery count too.
    pub cuts: u64,
    /// Power cuts during a recovery.
    pub second_cuts: u64,
    /// Reads judged while stories were told.
    pub reads: u64,
    /// Operations that failed as faults or full classes made them.
    pub refusals: u64,
    /// Faults that struck.
    pub faults: u64,
    /// The trace of each story.
    pub traces: Vec<u64>,
    /// How often each crash point was passed.
    pub marks: BTreeMap<&'static str, u64>,
    /// How often each operation was done.
    pub operations: BTreeMap<&'static str, u64>,
}

impl Report {
    /// Adds another's counts.
    pub fn add(&mut self, other: &Report) {
        self.stories += other.stories;
        self.ios += other.ios;
        self.points += other.points;
        self.cuts += other.cuts;
        self.second_cuts += other.second_cuts;
        self.reads += other.reads;
        self.refusals += other.refusals;
        self.faults += other.faults;
        self.traces.extend(&other.traces);
        for (name, count) in &other.marks {
            *self.marks.entry(name).or_default() += count;
        }
        for (name, count) in &other.operations {
            *self.operations.entry(name).or_default() += count;
        }
    }

    /// Whether power was cut at least so often, and each of `marks` was passed.
    ///
    /// # Errors
    /// What is lacking, in words.
    pub fn reaches(&self, least_cuts: u64, marks: &[&str]) -> Result<(), String> {
        if self.cuts < least_cuts {
            return Err(format!("{} power cuts are fewer than {least_cuts}", self.cuts));
        }
        let missed: Vec<&str> = marks.iter().copied().filter(|name| !self.marks.contains_key(name)).collect();
        if missed.is_empty() { Ok(()) } else { Err(format!("never passed: {}", missed.join(", "))) }
    }

    pub(crate) fn count(&mut self, operation: &'static str) {
        *self.operations.entry(operation).or_default() += 1;
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} power cuts ({} during a recovery) at {} points of {} stories; {} I/Os, {} reads judged, {} operations refused",
            self.cuts, self.second_cuts, self.points, self.stories, self.ios, self.reads, self.refusals
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn campaigns_that_do_too_little_name_the_missing_operations() {
        let report = Report { cuts: 5, marks: BTreeMap::from([("a", 1), ("b", 2)]), ..Report::default() };
        assert_eq!(report.reaches(5, &["a", "b"]), Ok(()));
        assert!(report.reaches(6, &["a"]).unwrap_err().contains("fewer than 6"));
        assert_eq!(report.reaches(5, &["a", "c", "d"]), Err("never passed: c, d".to_owned()));
    }

    #[test]
    fn a_failure_says_how_to_repeat_it() {
        let mut case = Case::new("busy", 17);
        assert_eq!(case.command(), "make sim STORY=busy SEED=17");
        (case.point, case.outcome) = (Some(3), Some(0));
        let settings = " BUG=MapBeforeData".to_owned();
        let failure = Failure { case, what: "object 3 is lost".to_owned(), settings };
        assert_eq!(
            failure.to_string(),
            "object 3 is lost\n  repeat it: make sim STORY=busy SEED=17 POINT=3 OUTCOME=0 BUG=MapBeforeData"
        );
    }
}
