//! Filters, groups and joins of texts by collation, beside the same texts compared by bytes, and beside MariaDB.
//!
//! 1. A MariaDB makes a table of ASCII texts and one of others, each text in three columns: in a collation that is the
//!    order of the bytes, in `utf8mb4_general_ci`, and in `utf8mb4_uca1400_nopad_ai_ci`, which has the weights that
//!    MariaDB gives to `utf8mb4_0900_ai_ci`. Texts differ by more than their case, so that all answers are the same.
//! 2. Each round runs each query on each column, in a process of its own ([`crate::statement`]), in turns.
//! 3. The server runs the same queries, all pages in its buffer pool.
//!
//! `ascii_over_bytes` and `unicode_over_bytes` are the worst ratios of warm times to those by bytes, `over_mariadb` is
//! the least speed against the server.

use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::ooode::mariadb::MariaDb;
use crate::statement::{Mounted, Timed};
use crate::{Error, ErrorKind, Result};
use tanada_report::{Report, Table, cell, median};
use tanada_sample::answer;

const DATABASE: &str = "collations";
/// The tables, by the texts in them.
const TEXTS: [&str; 2] = ["ascii", "unicode"];
/// The columns, by how they compare; the first by bytes.
const COLUMNS: [&str; 3] = ["bytes", "general", "uca"];
const COLLATIONS: [&str; 3] = ["utf8mb4_nopad_bin", "utf8mb4_general_ci", "utf8mb4_uca1400_nopad_ai_ci"];
/// Rows to a text.
const REPEATS: u64 = 25;

/// The queries, by what they do with texts.
const QUERIES: [Query; 3] = [
    ("filter", |text, column| {
        format!("select count(*), min(id) from {text} where {column} >= 'Name 3' and {column} < 'Name 5'")
    }),
    ("group", |text, column| {
        format!("select count(*), max(n) from (select {column}, count(*) n from {text} group by {column}) x")
    }),
    ("join", |text, column| {
        format!("select count(*), sum(v) from {text} t join {text}_names s on t.{column} = s.{column}")
    }),
];

/// What to measure.
#[derive(Debug, Clone, Serialize)]
pub struct CollationSettings {
    /// The program whose queries are measured.
    pub program: PathBuf,
    /// Rows of each table.
    pub rows: u64,
    /// Rounds.
    pub runs: usize,
    /// Warm runs in each round, and runs of the server.
    pub warm_runs: usize,
    /// Page cache, and the server's buffer pool.
    pub cache_bytes: u64,
    /// Where the server's files go; the folder for temporary files without it.
    pub work: Option<PathBuf>,
}

impl CollationSettings {
    /// Tables of 500,000 rows, queried by `program`.
    pub fn new(program: PathBuf) -> CollationSettings {
        CollationSettings { program, rows: 500_000, runs: 5, warm_runs: 5, cache_bytes: 1 << 30, work: None }
    }

    /// Less of everything: under a minute.
    #[must_use]
    pub fn quick(self) -> CollationSettings {
        CollationSettings { rows: 100_000, runs: 2, warm_runs: 3, ..self }
    }
}

/// One query on one column, cold and warm.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CollationRun {
    /// The round, from 1; 0 is the server's.
    pub round: usize,
    /// Which texts: `ascii` or `unicode`.
    pub text: &'static str,
    /// Which query: `filter`, `group` or `join`.
    pub query: &'static str,
    /// Which column: `bytes`, `general` or `uca`.
    pub column: &'static str,
    /// Times of the warm runs.
    pub warm_seconds: Vec<f64>,
}

/// Statements that make the tables of about `rows` rows.
fn statements(rows: u64) -> String {
    let names = (rows / REPEATS).max(1);
    let mut statements = String::new();
    for text in TEXTS {
        let value = match text {
            "ascii" => "concat('Name ', s.seq, ' of some street')",
            _ => "concat('Name ', s.seq, ' größer über Łódź')",
        };
        let columns: Vec<String> = COLUMNS
            .iter()
            .zip(COLLATIONS)
            .map(|(name, collation)| format!("{name} varchar(40) collate {collation} not null"))
            .collect();
        let (columns, values) = (columns.join(", "), [value; 3].join(", "));
        let keys = COLUMNS.map(|name| format!("key ({name})")).join(", ");
        statements += &format!(
            "create table {text} (id int not null primary key, {columns}) character set utf8mb4;
             insert into {text} select n.seq * {names} + s.seq, {values}
               from seq_0_to_{} n, seq_1_to_{names} s;
             create table {text}_names (id int not null primary key, v int not null, {columns}, {keys})
               character set utf8mb4;
             insert into {text}_names select s.seq, s.seq % 7, {values} from seq_1_to_{names} s where s.seq % 2 = 0;\n",
            REPEATS - 1
        );
    }
    statements
}

/// Runs the benchmark; `progress` is given a line about each step.
///
/// # Errors
/// If the server or the program cannot run, or two answers to a query differ.
pub async fn run(settings: CollationSettings, progress: &(dyn Fn(&str) + Sync)) -> Result<Report> {
    if settings.runs == 0 || settings.warm_runs == 0 {
        return Err(Error::new(ErrorKind::InvalidInput, "at least one run and one warm run are needed"));
    }
    progress("making the tables with MariaDB");
    let mut server = MariaDb::fresh(settings.work.as_deref(), settings.cache_bytes).await?;
    let innodb = server.fill(DATABASE, &format!("set names utf8mb4;\n{}", statements(settings.rows))).await?;
    progress("querying MariaDB");
    let mut runs = Vec::new();
    let mut answers: Vec<(String, String)> = Vec::new();
    let queries: Vec<String> = each().map(|(text, (_, query), column)| query(text, column)).collect();
    let measured = server.warm_runs(DATABASE, &queries, settings.warm_runs).await?;
    for ((text, (query, _), column), (seconds, rows)) in each().zip(measured) {
        runs.push(CollationRun { round: 0, text, query, column, warm_seconds: seconds });
        answers.push((format!("{text} {query}"), rows));
    }
    for round in 1..=settings.runs {
        progress(&format!("round {round} of {}", settings.runs));
        let (of_round, directory, known) = (settings.clone(), innodb.clone(), answers.clone());
        let measured = tokio::task::spawn_blocking(move || measure(&of_round, &directory, round, &known));
        runs.extend(measured.await.map_err(|error| Error::failed(format!("a round stopped: {error}")))??);
    }
    let mut report = Report::new("collation", &settings, &innodb);
    runs.iter().for_each(|run| report.add_run(run));
    put_figures(&runs, &mut report);
    // Its files are removed with it.
    drop(server);
    Ok(report)
}

type Query = (&'static str, fn(&str, &str) -> String);

/// Each text, query and column.
fn each() -> impl Iterator<Item = (&'static str, Query, &'static str)> {
    TEXTS.into_iter().flat_map(|text| {
        QUERIES
            .into_iter()
            .flat_map(move |query| COLUMNS.into_iter().map(move |column| (text, query, column)))
    })
}

fn measure(
    settings: &CollationSettings,
    innodb: &Path,
    round: usize,
    known: &[(String, String)],
) -> Result<Vec<CollationRun>> {
    let mounted = Mounted {
        program: &settings.program,
        innodb,
        database: Some(DATABASE),
        cache_bytes: settings.cache_bytes,
        columnar: None,
    };
    let mut runs = Vec::new();
    for (text, (name, query), column) in each() {
        let sql = query(text, column);
        let timed: Timed = mounted.time(&sql, settings.warm_runs)?;
        let what = format!("{text} {name}");
        for (_, expected) in known.iter().filter(|(own, _)| *own == what) {
            for rows in &timed.answers {
                answer::check(rows.clone(), expected)
                    .map_err(|error| Error::failed(format!("{sql}: {error}")))?;
            }
        }
        runs.push(CollationRun { round, text, query: name, column, warm_seconds: timed.warm_seconds });
    }
    Ok(runs)
}

fn put_figures(runs: &[CollationRun], report: &mut Report) {
    let mut table = Table::new(&[
        "texts",
        "query",
        "column",
        "warm, s",
        "over bytes",
        "MariaDB, s",
        "speed over MariaDB",
    ]);
    let mut speed = f64::INFINITY;
    for text in TEXTS {
        let mut worst = 0.0f64;
        for (query, _) in QUERIES {
            let of = |column: &str, is_server: bool| {
                let wanted = |run: &&CollationRun| {
                    let same = run.text == text && run.query == query && run.column == column;
                    same && is_server == (run.round == 0)
                };
                median(runs.iter().filter(wanted).map(|run| median(run.warm_seconds.iter().copied())))
            };
            for column in COLUMNS {
                let (own, server) = (of(column, false), of(column, true));
                let (over_bytes, over_server) = (own / of(COLUMNS[0], false), server / own);
                if column != COLUMNS[0] {
                    worst = worst.max(over_bytes);
                    speed = speed.min(over_server);
                    report.summarize(&format!("{text}_{query}_{column}_over_bytes"), over_bytes);
                    report.summarize(&format!("{text}_{query}_{column}_over_mariadb"), over_server);
                }
                table.add(vec![
                    text.to_owned(),
                    query.to_owned(),
                    column.to_owned(),
                    cell(own, 4),
                    cell(over_bytes, 3),
                    cell(server, 4),
                    cell(over_server, 2),
                ]);
            }
        }
        report.summarize(&format!("{text}_over_bytes"), worst);
    }
    report.summarize("over_mariadb", speed);
    report.tables.push(table);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_worst_ratios_are_reported() {
        let mut runs = Vec::new();
        for (text, (query, _), column) in each() {
            let seconds = match (text, query, column) {
                (_, _, "bytes") => 1.0,
                ("ascii", "join", "uca") => 1.5,
                ("unicode", "group", "general") => 2.5,
                _ => 1.25,
            };
            runs.push(CollationRun { round: 0, text, query, column, warm_seconds: vec![5.0] });
            runs.push(CollationRun { round: 1, text, query, column, warm_seconds: vec![seconds] });
        }
        let mut report = Report::new("collation", &(), Path::new("/"));
        put_figures(&runs, &mut report);
        assert_eq!(report.summary["ascii_over_bytes"], 1.5);
        assert_eq!(report.summary["unicode_over_bytes"], 2.5);
        assert_eq!(report.summary["over_mariadb"], 2.0);
        assert_eq!(report.summary["ascii_filter_general_over_bytes"], 1.25);
    }
}
