//! The 22 queries of TPC-H over a data directory, cold and warm, beside another build of the program if one is named.
//!
//! 1. Each round runs every query in a process of its own, once cold and several times warm ([`crate::statement`]).
//!    With a baseline the other build runs the query right before or after, in turns, so that a change of the
//!    machine's speed meets both.
//! 2. Every answer of every run is compared: with the server's, if the directory is the bundled sample, and otherwise
//!    with the first one.
//! 3. Figures are medians over the rounds of a query, and their sums over all queries. Ratios are those of this build
//!    over the baseline.
//!
//! Processor time is reported too: on a shared machine it varies less than the time that passes.

mod columnar;
mod duckdb;
mod figures;

use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::statement::Mounted;
use crate::{Error, ErrorKind, Result};
use tanada_report::{Report, median};
use tanada_sample::{SampleQuery, answer};

pub use columnar::{ColumnarSettings, run as run_columnar};

/// What to measure.
#[derive(Debug, Clone, Serialize)]
pub struct TpchSettings {
    /// The data directory.
    pub innodb: PathBuf,
    /// The database.
    pub database: String,
    /// The program whose queries are measured.
    pub program: PathBuf,
    /// Another build of it to compare with.
    pub baseline: Option<PathBuf>,
    /// Numbers of the queries, 1 to 22.
    pub queries: Vec<u32>,
    /// Rounds.
    pub runs: usize,
    /// Warm runs of a query in each round.
    pub warm_runs: usize,
    /// Page cache.
    pub cache_bytes: u64,
    /// Whether the directory is the bundled sample, whose answers are known.
    pub is_sample: bool,
}

impl TpchSettings {
    /// All queries on `innodb` by `program`.
    pub fn new(innodb: PathBuf, program: PathBuf) -> TpchSettings {
        TpchSettings {
            innodb,
            database: "tpch".to_owned(),
            program,
            baseline: None,
            queries: (1..=22).collect(),
            runs: 5,
            warm_runs: 5,
            cache_bytes: 1 << 30,
            is_sample: false,
        }
    }

    /// Less of everything: under a minute on the sample.
    #[must_use]
    pub fn quick(self) -> TpchSettings {
        TpchSettings { runs: 1, warm_runs: 2, ..self }
    }
}

/// Which build ran.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Build {
    /// The build that is measured.
    Measured,
    /// The build that it is compared with.
    Baseline,
}

/// One process: a query, cold and warm.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TpchRun {
    /// The round, from 1.
    pub round: usize,
    /// The query: `q1` to `q22`.
    pub query: &'static str,
    /// Which build ran.
    pub build: Build,
    /// Time of the first run in the process.
    pub cold_seconds: f64,
    /// Times of the others.
    pub warm_seconds: Vec<f64>,
    /// Processor time of the process.
    pub cpu_seconds: f64,
}

impl TpchRun {
    /// Median of the warm runs.
    fn warm(&self) -> f64 {
        median(self.warm_seconds.iter().copied())
    }
}

/// Runs the benchmark; `progress` is given a line about each step. Blocks.
///
/// # Errors
/// If a build cannot run, a query fails, or two answers differ.
pub fn run(settings: &TpchSettings, progress: &dyn Fn(&str)) -> Result<Report> {
    if settings.runs == 0 || settings.warm_runs == 0 {
        return Err(Error::new(ErrorKind::InvalidInput, "at least one run and one warm run are needed"));
    }
    let queries = chosen(&settings.queries)?;
    let mut runs = Vec::new();
    let mut first_answers = vec![None; queries.len()];
    for round in 1..=settings.runs {
        for (query, first) in queries.iter().zip(&mut first_answers) {
            progress(&format!("round {round} of {}, {}", settings.runs, query.name));
            for build in builds(settings, round) {
                runs.push(measure(settings, round, query, build, first)?);
            }
        }
    }
    let mut report = Report::new("tpch", settings, &settings.innodb);
    runs.iter().for_each(|run| report.add_run(run));
    figures::put(&runs, &queries, settings.baseline.is_some(), &mut report);
    Ok(report)
}

fn chosen(numbers: &[u32]) -> Result<Vec<&'static SampleQuery>> {
    let query = |number: &u32| {
        let place = (*number as usize).checked_sub(1);
        place.and_then(|place| tanada_sample::TPCH_ALL.get(place)).ok_or_else(|| {
            Error::new(ErrorKind::InvalidInput, format!("there is no query {number}: they are 1 to 22"))
        })
    };
    if numbers.is_empty() {
        return Err(Error::new(ErrorKind::InvalidInput, "at least one query is needed"));
    }
    numbers.iter().map(query).collect()
}

/// The builds in the order of a round, which changes from round to round.
fn builds(settings: &TpchSettings, round: usize) -> Vec<Build> {
    match (&settings.baseline, round % 2) {
        (None, _) => vec![Build::Measured],
        (Some(_), 1) => vec![Build::Measured, Build::Baseline],
        (Some(_), _) => vec![Build::Baseline, Build::Measured],
    }
}

fn measure(
    settings: &TpchSettings,
    round: usize,
    query: &'static SampleQuery,
    build: Build,
    first: &mut Option<String>,
) -> Result<TpchRun> {
    let program: &Path = match (build, &settings.baseline) {
        (Build::Baseline, Some(baseline)) => baseline,
        _ => &settings.program,
    };
    let mounted = Mounted {
        program,
        innodb: &settings.innodb,
        database: Some(&settings.database),
        cache_bytes: settings.cache_bytes,
        columnar: None,
    };
    let in_query =
        |error: Error| Error::new(error.kind(), format!("{} by {}: {error}", query.name, program.display()));
    let timed = mounted.time(query.sql, settings.warm_runs).map_err(in_query)?;
    for rows in timed.answers {
        if settings.is_sample {
            answer::check(rows, query.answer).map_err(in_query)?;
        } else if let Some(first) = first {
            answer::check(rows, first).map_err(in_query)?;
        } else {
            // A header line comes first where answers are compared.
            *first = Some(format!("\n{}", rows.join("\n")));
        }
    }
    Ok(TpchRun {
        round,
        query: query.name,
        build,
        cold_seconds: timed.cold_seconds,
        warm_seconds: timed.warm_seconds,
        cpu_seconds: timed.cpu_seconds,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queries_are_chosen_by_number() {
        assert_eq!(
            chosen(&[22, 1]).unwrap().iter().map(|query| query.name).collect::<Vec<_>>(),
            ["q22", "q1"]
        );
        for wrong in [&[0][..], &[23], &[]] {
            assert_eq!(chosen(wrong).unwrap_err().kind(), ErrorKind::InvalidInput);
        }
    }

    #[test]
    fn builds_take_turns() {
        let mut settings = TpchSettings::new(PathBuf::new(), PathBuf::new());
        assert_eq!(builds(&settings, 1), [Build::Measured]);
        settings.baseline = Some(PathBuf::new());
        assert_eq!(builds(&settings, 1), [Build::Measured, Build::Baseline]);
        assert_eq!(builds(&settings, 2), [Build::Baseline, Build::Measured]);
    }
}
