//! `make sim`: campaigns of any length, and the repetition of a failure.
//!
//! Without a word two campaigns are run, and have to do enough: each ends with an error if it cuts the power too
//! seldom, or does not pass every crash point that it can. The first tells a volume its random story 2,000 times and
//! each of the others ten times, the second tells the key-value engine its own.
//!
//! Settings come as words `NAME=VALUE`: `STORY` (default `busy`; `key-value` for the key-value engine; `all` for each),
//! `SEED` (the first, default 1), `COUNT` (of seeds, default 2000, or 1 with `POINT`), `POINT` and `OUTCOME` (only
//! those, told aloud), `DENSITY` (chance in a thousand of a cut at a point, default 100), `OUTCOMES` (judged for each
//! cut, default 3), `FAULT` (a [`Rule`](tanada_sim::Rule) as a word; may come several times), `BUG` (a planted one),
//! `CREATION=1`.
#![forbid(unsafe_code)]

use std::process::ExitCode;
use std::time::Instant;

use tanada_sim::{Case, KeyValueTrial, Report, Trial, story_names};

/// The story that is told to the key-value engine instead of a volume.
const KEY_VALUE: &str = "key-value";

/// The random story.
const BUSY: &str = "busy";

/// Seeds of the random story, unless another number is said.
const SEEDS: u64 = 2000;

/// Seeds of the key-value engine's story, and the power cuts that are claimed of them.
const KEY_VALUE_SEEDS: u64 = 120;
const KEY_VALUE_CUTS: u64 = 50_000;

/// Power cuts that are claimed of the stories of a volume.
const VOLUME_CUTS: u64 = 50_000;

/// Crash points of the engine that no story passes: nothing damages a copy.
const NOT_PASSED: [&str; 1] = ["promotion.before-dropping"];

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    match plan(&words).and_then(|plan| plan.iter().try_for_each(Campaign::run)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("{why}");
            ExitCode::FAILURE
        }
    }
}

/// Stories that are told one after the other, and what they have to do.
struct Campaign {
    /// What is the same in all of them.
    case: Case,
    trial: Trial,
    /// Stories, and how many seeds of each.
    stories: Vec<(String, u64)>,
    /// The power cuts that there have to be,
    least_cuts: u64,
    /// and the crash points that have to be passed.
    marks: Vec<&'static str>,
}

/// What the words say.
fn plan(words: &[String]) -> Result<Vec<Campaign>, String> {
    let (mut case, mut trial, mut count) = (Case::new(BUSY, 1), Trial::cuts(100, 3), None);
    let mut is_told = false;
    for word in words {
        let (name, value) = word.split_once('=').ok_or_else(|| format!("{word:?} is not NAME=VALUE"))?;
        if value.is_empty() {
            continue;
        }
        is_told = true;
        if trial.set(name, value)? {
            continue;
        }
        let number = || value.parse::<u64>().map_err(|error| format!("{word}: {error}"));
        match name {
            "STORY" => case.story = value.to_owned(),
            "SEED" => case.seed = number()?,
            "COUNT" => count = Some(number()?),
            "POINT" => case.point = Some(number()?),
            "OUTCOME" => case.outcome = Some(number()?),
            _ => return Err(format!("unknown setting {name}")),
        }
    }
    if !is_told {
        return Ok(usual(&trial));
    }
    trial.is_aloud = case.point.is_some();
    let count = count.unwrap_or(if case.point.is_some() { 1 } else { SEEDS });
    let mut stories = vec![(case.story.clone(), count)];
    if case.story == "all" {
        stories = story_names().iter().chain(&[KEY_VALUE]).map(|name| ((*name).to_owned(), count)).collect();
    }
    Ok(vec![Campaign { case, trial, stories, least_cuts: 0, marks: Vec::new() }])
}

/// What is run where nothing is said.
fn usual(trial: &Trial) -> Vec<Campaign> {
    let seeds = |name: &str| if name == BUSY { SEEDS } else { 10 };
    let of_volume = story_names().iter().map(|name| ((*name).to_owned(), seeds(name))).collect();
    let can_be_passed = |name: &&&str| !NOT_PASSED.contains(*name);
    let campaign = |stories, least_cuts, marks| Campaign {
        case: Case::new(BUSY, 1),
        trial: trial.clone(),
        stories,
        least_cuts,
        marks,
    };
    vec![
        campaign(of_volume, VOLUME_CUTS, tanada_volume::CRASH_POINTS.to_vec()),
        campaign(
            vec![(KEY_VALUE.to_owned(), KEY_VALUE_SEEDS)],
            KEY_VALUE_CUTS,
            tanada_kv::CRASH_POINTS.iter().filter(can_be_passed).copied().collect(),
        ),
    ]
}

impl Campaign {
    fn run(&self) -> Result<(), String> {
        let started = Instant::now();
        let mut total = Report::default();
        let most = self.stories.iter().map(|(_, count)| *count).max().unwrap_or_default();
        for no in 0..most {
            for (story, _) in self.stories.iter().filter(|(_, count)| no < *count) {
                let case = Case { seed: self.case.seed + no, story: story.clone(), ..self.case.clone() };
                let told = match story.as_str() {
                    KEY_VALUE => KeyValueTrial::of(&self.trial).run(&case),
                    _ => self.trial.run(&case),
                };
                total.add(&told.map_err(|failure| failure.to_string())?);
            }
        }
        println!("{total}, in {:.1} s", started.elapsed().as_secs_f64());
        for (name, count) in total.operations.iter().chain(&total.marks) {
            println!("{count:>9} {name}");
        }
        total.reaches(self.least_cuts, &self.marks)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn planned(words: &[&str]) -> Result<Vec<Campaign>, String> {
        plan(&words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>())
    }

    /// It was the volume's random story alone, whatever that did.
    #[test]
    fn the_default_campaign_covers_volume_and_engine() {
        for words in [&[][..], &["STORY=", "COUNT="]] {
            let [volume, engine] = &planned(words).unwrap()[..] else { panic!("two campaigns are planned") };
            assert!(volume.stories.contains(&(BUSY.to_owned(), SEEDS)));
            assert!(volume.marks.contains(&"journal.before-sync") && volume.least_cuts >= 50_000);
            assert_eq!(engine.stories, [(KEY_VALUE.to_owned(), KEY_VALUE_SEEDS)]);
            assert!(engine.marks.contains(&"bulk.before-manifest") && engine.least_cuts >= 50_000);
        }
    }

    #[test]
    fn a_campaign_that_does_less_than_it_has_to_fails() {
        let mut campaigns = planned(&["STORY=key-value", "SEED=3", "COUNT=1", "DENSITY=1"]).unwrap();
        let [campaign] = &mut campaigns[..] else { panic!("one campaign is planned") };
        assert_eq!(campaign.run(), Ok(()));
        campaign.marks = vec!["log.before-sync", "no such point"];
        assert_eq!(campaign.run(), Err("never passed: no such point".to_owned()));
        campaign.least_cuts = 50_000;
        assert!(campaign.run().unwrap_err().contains("fewer than 50000"));
    }

    #[test]
    fn arguments_select_the_campaign() {
        let stories = |words: &[&str]| planned(words).unwrap().remove(0).stories;
        assert_eq!(stories(&["SEED=7"]), [("busy".to_owned(), 2000)]);
        assert_eq!(stories(&["STORY=naming", "POINT=3"]), [("naming".to_owned(), 1)]);
        let all = stories(&["STORY=all", "COUNT=5"]);
        assert_eq!(all.len(), story_names().len() + 1);
        assert_eq!(all.last(), Some(&(KEY_VALUE.to_owned(), 5)));
        for word in ["SEED", "SEED=x", "SEEDS=1", "BUG=?"] {
            assert!(planned(&[word]).is_err(), "{word}");
        }
    }
}
