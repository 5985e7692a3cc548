//! `make sim`: campaigns of any length, and the repetition of a failure.
//!
//! Settings come as words `NAME=VALUE`: `STORY` (default `busy`), `SEED` (first seed, default 1), `COUNT` (seeds, default 1000, or 1 with `POINT`),
//! `POINT`, `OUTCOME` (only those), `DENSITY` (chance in a thousand of a cut at a point), `OUTCOMES` (judged for each cut), `LOUD=1` (say each seed).
#![forbid(unsafe_code)]

use std::process::ExitCode;
use std::time::Instant;

use tanada_sim::{Case, Report, Trial};

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
    let mut is_loud = false;
    for word in std::env::args().skip(1) {
        let (name, value) = word.split_once('=').ok_or_else(|| format!("{word:?} is not NAME=VALUE"))?;
        if value.is_empty() {
            continue;
        }
        let number = || value.parse::<u64>().map_err(|error| format!("{word}: {error}"));
        match name {
            "STORY" => case.story = value.to_owned(),
            "SEED" => case.seed = number()?,
            "COUNT" => count = Some(number()?),
            "POINT" => case.point = Some(number()?),
            "OUTCOME" => case.outcome = Some(number()?),
            "DENSITY" => trial.density.per_thousand = number()? as u32,
            "LOUD" => is_loud = number()? > 0,
            "OUTCOMES" => trial.density.outcomes = number()?,
            _ => return Err(format!("unknown setting {name}")),
        }
    }
    trial.is_aloud = case.point.is_some();
    let count = count.unwrap_or(if case.point.is_some() { 1 } else { 1000 });
    let started = Instant::now();
    let mut total = Report::default();
    for seed in case.seed..case.seed + count {
        let case = Case { seed, ..case.clone() };
        if is_loud {
            eprintln!("seed {seed}");
        }
        let report = trial.run(&case).map_err(|failure| failure.to_string())?;
        total.add(&report);
    }
    println!("{total}, in {:.1} s", started.elapsed().as_secs_f64());
    for (name, count) in total.operations.iter().chain(&total.marks) {
        println!("{count:>9} {name}");
    }
    Ok(())
}
