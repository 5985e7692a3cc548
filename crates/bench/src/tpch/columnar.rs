//! The 22 queries of TPC-H with columnar mirrors, without them, and by DuckDB on Parquet files.
//!
//! 1. `COPY` writes the tables as Parquet files, for DuckDB.
//! 2. Each round runs all queries, each once, in a process of each side: without mirrors; with a folder for mirrors
//!    that is empty (the first run, which makes them when its queries are done); with the same folder again; by DuckDB.
//!    The order of the sides changes from round to round, but the first run stays before the second.
//! 3. Answers of all sides are compared: with the server's, if the directory is the bundled sample, and otherwise with
//!    the first ones.
//! 4. Figures are sums over all queries of the medians over the rounds.
//!
//! Making mirrors is no part of a query's time: how long the process lasts after its last query is a figure of its own.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde::Serialize;

use super::duckdb::{Answered, DuckDb, TABLES};
use super::{TpchSettings, chosen};
use crate::statement::Mounted;
use crate::{Error, ErrorKind, Result};
use tanada_report::{Report, Table, cell, median};
use tanada_sample::{SampleQuery, answer};

/// What to measure, beside what is said of the queries.
#[derive(Debug, Clone, Serialize)]
pub struct ColumnarSettings {
    /// The data, the program, the queries and the rounds.
    pub tpch: TpchSettings,
    /// The Python whose module DuckDB is.
    pub python: PathBuf,
    /// A folder for mirrors and Parquet files; without it a temporary one.
    pub work: Option<PathBuf>,
}

/// Who answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
enum Side {
    /// Pages alone.
    Without,
    /// Mirrors are kept, and there are none yet.
    First,
    /// The mirrors of the first run are there.
    Mirrored,
    DuckDb,
}

const SIDES: [(Side, &str); 4] = [
    (Side::Without, "without"),
    (Side::First, "first_run"),
    (Side::Mirrored, "mirrored"),
    (Side::DuckDb, "duckdb"),
];

/// All queries by one side.
#[derive(Debug, Clone, Serialize)]
struct SideRun {
    round: usize,
    side: Side,
    /// By query.
    seconds: BTreeMap<&'static str, f64>,
    /// From the end of the last query to the end of the process.
    after_seconds: f64,
}

/// Runs the benchmark; `progress` is given a line about each step. Blocks.
///
/// # Errors
/// If a side cannot run, a query fails, or two answers differ.
pub fn run(settings: &ColumnarSettings, progress: &dyn Fn(&str)) -> Result<Report> {
    let tpch = &settings.tpch;
    if tpch.runs == 0 {
        return Err(Error::new(ErrorKind::InvalidInput, "at least one run is needed"));
    }
    let queries = chosen(&tpch.queries)?;
    let failed = |error: std::io::Error| Error::failed(format!("cannot make a folder: {error}"));
    let temporary = match &settings.work {
        Some(work) => tempfile::tempdir_in(work),
        None => tempfile::tempdir(),
    };
    let work = temporary.map_err(failed)?;
    let (cache, files) = (work.path().join("mirrors"), work.path().join("parquet"));
    std::fs::create_dir(&files).map_err(failed)?;
    let duckdb = DuckDb::of(&settings.python);
    if duckdb.is_some() {
        progress("writing Parquet files for DuckDB");
        write_files(tpch, &files)?;
    }
    let mut answers = Answers { expected: vec![None; queries.len()], is_sample: tpch.is_sample };
    let mut runs = Vec::new();
    for round in 1..=tpch.runs {
        let _ = std::fs::remove_dir_all(&cache);
        for side in order(round) {
            progress(&format!("round {round} of {}, {}", tpch.runs, name(side)));
            let run = match (side, &duckdb) {
                (Side::DuckDb, None) => continue,
                (Side::DuckDb, Some(duckdb)) => {
                    let answered = duckdb.run(&files, &queries)?;
                    for (no, answered) in answered.iter().enumerate() {
                        answers.check_duckdb(no, queries[no], answered)?;
                    }
                    let seconds = queries.iter().zip(&answered).map(|(of, run)| (of.name, run.seconds));
                    SideRun { round, side, seconds: seconds.collect(), after_seconds: 0.0 }
                }
                _ => own(tpch, (round, side), &queries, &cache, &mut answers)?,
            };
            runs.push(run);
        }
    }
    let mut report = Report::new("tpch-columnar", settings, &tpch.innodb);
    report.setup = match &duckdb {
        Some(duckdb) => format!("DuckDB {} reads Parquet files that Tanada wrote.", duckdb.version),
        None => format!("DuckDB is left out: {} has no module of it.", settings.python.display()),
    };
    runs.iter().for_each(|run| report.add_run(run));
    report.summarize("mirror_bytes", bytes_in(&cache) as f64);
    put(&runs, &queries, &mut report);
    Ok(report)
}

fn name(side: Side) -> &'static str {
    SIDES.iter().find(|(of, _)| *of == side).map_or("", |(_, name)| name)
}

/// The sides in the order of a round.
fn order(round: usize) -> [Side; 4] {
    match round % 2 {
        1 => [Side::Without, Side::First, Side::Mirrored, Side::DuckDb],
        _ => [Side::First, Side::Without, Side::DuckDb, Side::Mirrored],
    }
}

/// All queries by the program.
fn own(
    tpch: &TpchSettings,
    (round, side): (usize, Side),
    queries: &[&'static SampleQuery],
    cache: &Path,
    answers: &mut Answers,
) -> Result<SideRun> {
    let mounted = Mounted {
        program: &tpch.program,
        innodb: &tpch.innodb,
        database: Some(&tpch.database),
        cache_bytes: tpch.cache_bytes,
        columnar: (side != Side::Without).then_some(cache),
    };
    let statements: Vec<&str> = queries.iter().map(|query| query.sql).collect();
    let timed = mounted.time_each(&statements)?;
    let times = std::iter::once(timed.cold_seconds).chain(timed.warm_seconds);
    let seconds = queries.iter().zip(times).map(|(query, seconds)| (query.name, seconds)).collect();
    for (no, rows) in timed.answers.into_iter().enumerate() {
        answers.check(no, queries[no], rows, name(side))?;
    }
    Ok(SideRun { round, side, seconds, after_seconds: timed.after_seconds })
}

/// Writes all tables as Parquet files.
fn write_files(tpch: &TpchSettings, folder: &Path) -> Result<()> {
    let copy = |table: &&str| {
        let file = folder.join(format!("{table}.parquet"));
        format!("copy {table} to '{}'", file.display())
    };
    let statements: Vec<String> = TABLES.iter().map(copy).collect();
    let mut command = Command::new(&tpch.program);
    command.arg("sql").arg("--innodb").arg(&tpch.innodb).args(["--database", &tpch.database]);
    let output = command.args(["-c", &statements.join("; ")]).stdin(Stdio::null()).output();
    let output =
        output.map_err(|error| Error::failed(format!("cannot run {}: {error}", tpch.program.display())))?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(Error::failed(format!("COPY failed: {}", said.lines().last().unwrap_or_default())))
}

/// What each query has to answer.
struct Answers {
    expected: Vec<Option<String>>,
    is_sample: bool,
}

impl Answers {
    /// The same of an answer of DuckDB.
    fn check_duckdb(&self, no: usize, query: &SampleQuery, answered: &Answered) -> Result<()> {
        let expected = match self.is_sample {
            true => query.answer,
            false => self.expected[no].as_deref().unwrap_or_default(),
        };
        let in_query = |error: Error| Error::failed(format!("{} by DuckDB: {error}", query.name));
        answered.check(expected).map_err(in_query)
    }

    /// Compares the rows of a side.
    fn check(&mut self, no: usize, query: &SampleQuery, rows: Vec<String>, side: &str) -> Result<()> {
        let in_query =
            |error: Error| Error::new(error.kind(), format!("{} of the side {side}: {error}", query.name));
        if self.is_sample {
            return answer::check(rows, query.answer).map_err(in_query);
        }
        match &self.expected[no] {
            Some(expected) => answer::check(rows, expected).map_err(in_query),
            None => {
                // A header line comes first where answers are compared.
                self.expected[no] = Some(format!("\n{}", rows.join("\n")));
                Ok(())
            }
        }
    }
}

fn bytes_in(folder: &Path) -> u64 {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.metadata().ok()).map(|metadata| metadata.len()).sum()
}

/// Puts the table and the summary of `runs` into `report`.
fn put(runs: &[SideRun], queries: &[&SampleQuery], report: &mut Report) {
    let of = |side: Side| runs.iter().filter(move |run| run.side == side);
    let sides: Vec<(Side, &str)> = SIDES.into_iter().filter(|(side, _)| of(*side).next().is_some()).collect();
    let mut titles = vec!["query".to_owned()];
    titles.extend(sides.iter().map(|(_, name)| format!("{}, s", name.replace('_', " "))));
    let titles: Vec<&str> = titles.iter().map(String::as_str).collect();
    let mut table = Table::new(&titles);
    let mut totals: BTreeMap<Side, f64> = BTreeMap::new();
    for query in queries {
        let mut row = vec![query.name.to_owned()];
        for (side, name) in &sides {
            let seconds = median(of(*side).filter_map(|run| run.seconds.get(query.name).copied()));
            *totals.entry(*side).or_default() += seconds;
            report.summarize(&format!("{}_{name}_seconds", query.name), seconds);
            row.push(cell(seconds, 4));
        }
        table.add(row);
    }
    let mut row = vec!["all".to_owned()];
    row.extend(sides.iter().map(|(side, _)| cell(totals[side], 4)));
    table.add(row);
    report.tables.push(table);
    for (side, name) in &sides {
        report.summarize(&format!("{name}_total_seconds"), totals[side]);
    }
    report.summarize("making_seconds", median(of(Side::First).map(|run| run.after_seconds)));
    let ratio = |side: Side, over: Side| Some(totals.get(&side)? / totals.get(&over)?);
    for (key, side, over) in [
        ("mirrored_total_over_duckdb", Side::Mirrored, Side::DuckDb),
        ("mirrored_total_over_without", Side::Mirrored, Side::Without),
        ("first_run_over_without", Side::First, Side::Without),
    ] {
        if let Some(ratio) = ratio(side, over) {
            report.summarize(key, ratio);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tanada_sample::TPCH_ALL;

    fn side_run(round: usize, side: Side, seconds: f64) -> SideRun {
        SideRun { round, side, seconds: [("q1", seconds), ("q2", 1.0)].into(), after_seconds: 3.0 }
    }

    #[test]
    fn ratios_are_those_of_sums_of_medians() {
        let mut runs = Vec::new();
        for (round, noise) in [(1, 0.0), (2, 8.0), (3, 0.5)] {
            runs.push(side_run(round, Side::Without, 7.0 + noise));
            runs.push(side_run(round, Side::First, 7.0 + noise));
            runs.push(side_run(round, Side::Mirrored, 1.0 + noise));
            runs.push(side_run(round, Side::DuckDb, 0.75 + noise));
        }
        let queries = [&TPCH_ALL[0], &TPCH_ALL[1]];
        let mut report = Report::new("tpch-columnar", &(), Path::new("/"));
        put(&runs, &queries, &mut report);
        assert_eq!(report.summary["first_run_over_without"], 1.0);
        assert_eq!(report.summary["mirrored_total_over_duckdb"], 1.111);
        assert_eq!(
            (&report.summary["making_seconds"], &report.summary["q1_mirrored_seconds"]),
            (&3.0.into(), &1.5.into())
        );
        runs.retain(|run| run.side != Side::DuckDb);
        let mut report = Report::new("tpch-columnar", &(), Path::new("/"));
        put(&runs, &queries, &mut report);
        assert!(report.summary.keys().all(|key| !key.contains("duckdb")));
        assert_eq!(order(1).len() + order(2).len(), 8);
    }
}
