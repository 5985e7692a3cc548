//! `make sim`: campaigns of any length, and the repetition of a failure.
//!
//! Settings come as words `NAME=VALUE`: `STORY` (default `busy`; `key-value` for the key-value engine; `all` for each), `SEED` (the first, default 1), `COUNT` (of seeds, default 2000, or 1
//! with `POINT`), `POINT` and `OUTCOME` (only those, told aloud), `DENSITY` (chance in a thousand of a cut at a point, default 100), `OUTCOMES` (judged for
//! each cut, default 3), `FAULT` (a [`Rule`](tanada_sim::Rule) as a word; may come several times), `BUG` (a planted one), `CREATION=1`.
#![forbid(unsafe_code)]

use std::process::ExitCode;
use std::time::Instant;

use tanada_sim::{Case, KeyValueTrial, Report, Trial, story_names};

/// The story that is told to the key-value engine instead of a volume.
const KEY_VALUE: &str = "key-value";

fn main() -> ExitCode {
    match campaign() {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("{why}");
            ExitCode::FAILURE
        }
    }
}

fn campaign() -> Result<(), String> {
    let mut case = Case::new("busy", 1);
    let mut trial = Trial::cuts(100, 3);
    let mut count = None;
    for word in std::env::args().skip(1) {
        let (name, value) = word.split_once('=').ok_or_else(|| format!("{word:?} is not NAME=VALUE"))?;
        if value.is_empty() || trial.set(name, value)? {
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
    trial.is_aloud = case.point.is_some();
    let count = count.unwrap_or(if case.point.is_some() { 1 } else { 2000 });
    let started = Instant::now();
    let mut total = Report::default();
    let mut stories = if case.story == "all" { story_names().to_vec() } else { vec![case.story.as_str()] };
    if case.story == "all" {
        stories.push(KEY_VALUE);
    }
    for seed in case.seed..case.seed + count {
        for story in &stories {
            let case = Case { seed, story: (*story).to_owned(), ..case.clone() };
            let told =
                if *story == KEY_VALUE { KeyValueTrial::of(&trial).run(&case) } else { trial.run(&case) };
            total.add(&told.map_err(|failure| failure.to_string())?);
        }
    }
    println!("{total}, in {:.1} s", started.elapsed().as_secs_f64());
    for (name, count) in total.operations.iter().chain(&total.marks) {
        println!("{count:>9} {name}");
    }
    Ok(())
}
