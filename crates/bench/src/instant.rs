//! Scans of a table whose columns were added and dropped instantly, beside the same table rebuilt.
//!
//! 1. A MariaDB makes both tables: rows before, between and after the changes, which are all instant; the other table
//!    is a copy by `INSERT ... SELECT`. A directory with two such tables of any server can be named instead.
//! 2. Each round scans both, each in a process of its own ([`crate::statement`]), in turns. Both answers must be the
//!    same.
//! 3. `speed_of_rebuilt` is the time of the rebuilt table over that of the other: 1 is as fast. `instant_over_rebuilt`
//!    is the least of them in warm scans.

use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::ooode::mariadb::MariaDb;
use crate::statement::{Mounted, Timed};
use crate::{Error, ErrorKind, Result};
use tanada_report::{Report, Table, cell, median};
use tanada_sample::answer;

/// The figure that the least speed is taken of.
const WARM: &str = "warm";
/// The database and the tables that are made.
const DATABASE: &str = "scans";
const TABLES: [&str; 2] = ["instant", "rebuilt"];

/// What to measure.
#[derive(Debug, Clone, Serialize)]
pub struct InstantSettings {
    /// The program whose scans are measured.
    pub program: PathBuf,
    /// A data directory with both tables; without it MariaDB makes one.
    pub innodb: Option<PathBuf>,
    /// The database in it.
    pub database: String,
    /// The table with instant changes, and the same table rebuilt.
    pub tables: [String; 2],
    /// Rows of the tables that are made.
    pub rows: u64,
    /// Rounds.
    pub runs: usize,
    /// Warm runs in each round.
    pub warm_runs: usize,
    /// Page cache, and the server's buffer pool.
    pub cache_bytes: u64,
    /// Where the server's files go; the folder for temporary files without it.
    pub work: Option<PathBuf>,
}

impl InstantSettings {
    /// Tables of 600,000 rows, scanned by `program`.
    pub fn new(program: PathBuf) -> InstantSettings {
        InstantSettings {
            program,
            innodb: None,
            database: DATABASE.to_owned(),
            tables: TABLES.map(str::to_owned),
            rows: 600_000,
            runs: 7,
            warm_runs: 9,
            cache_bytes: 1 << 30,
            work: None,
        }
    }

    /// Less of everything: under a minute.
    #[must_use]
    pub fn quick(self) -> InstantSettings {
        InstantSettings { rows: 90_000, runs: 3, warm_runs: 5, ..self }
    }
}

/// One process: a scan, cold and warm.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct InstantRun {
    /// The round, from 1.
    pub round: usize,
    /// Which scan: `leading`, `added` or `all` columns.
    pub scan: &'static str,
    /// The table.
    pub table: String,
    /// Time of the first run in the process.
    pub cold_seconds: f64,
    /// Times of the others.
    pub warm_seconds: Vec<f64>,
    /// Processor time of the process.
    pub cpu_seconds: f64,
}

/// What is scanned: columns that were there from the start, columns that came later, and all of them.
const SCANS: [(&str, &str); 3] = [
    ("leading", "select count(*), sum(id), sum(a), max(b) from"),
    ("added", "select count(*), sum(d), max(e), sum(f) from"),
    ("all", "select count(*), sum(id), sum(a), max(b), sum(d), max(e), sum(f) from"),
];

/// Statements that make both tables of about `rows` rows.
fn statements(rows: u64) -> String {
    let third = (rows / 3).max(1);
    let insert = |from: u64, values: &str| {
        format!("insert into instant select {values} from seq_{}_to_{};\n", from + 1, from + third)
    };
    let values = "seq * 7 % 1000, concat('name ', seq % 977)";
    [
        "create table instant (id int not null primary key, a int not null, b varchar(20), c int not null,
            k int not null) row_format=dynamic;\n"
            .to_owned(),
        insert(0, &format!("seq, {values}, 1, seq % 100")),
        "alter table instant add column d int not null default 5, algorithm=instant;
        alter table instant drop column c, algorithm=instant;\n"
            .to_owned(),
        insert(third, &format!("seq, {values}, seq % 100, seq % 31")),
        "alter table instant add column e varchar(12) default 'later' after a, algorithm=instant;
        alter table instant add column f decimal(10,2) not null default 1.25 first, algorithm=instant;\n"
            .to_owned(),
        insert(2 * third, "seq / 4, seq, seq * 7 % 1000, null, concat('name ', seq % 977), seq % 100, seq % 31"),
        "update instant set e = 'changed' where id % 10 = 3;
        create table rebuilt (f decimal(10,2) not null default 1.25, id int not null primary key, a int not null,
            e varchar(12) default 'later', b varchar(20), k int not null, d int not null default 5)
            row_format=dynamic;
        insert into rebuilt select f, id, a, e, b, k, d from instant order by id;\n"
            .to_owned(),
    ]
    .concat()
}

/// Runs the benchmark; `progress` is given a line about each step.
///
/// # Errors
/// If the server or the program cannot run, or the two tables give different answers.
pub async fn run(settings: InstantSettings, progress: &(dyn Fn(&str) + Sync)) -> Result<Report> {
    if settings.runs == 0 || settings.warm_runs == 0 {
        return Err(Error::new(ErrorKind::InvalidInput, "at least one run and one warm run are needed"));
    }
    let mut server = None;
    let innodb = match &settings.innodb {
        Some(directory) => directory.clone(),
        None => {
            progress("making the tables with MariaDB");
            let fresh = MariaDb::fresh(settings.work.as_deref(), settings.cache_bytes).await?;
            server.insert(fresh).fill(DATABASE, &statements(settings.rows)).await?
        }
    };
    let mut runs = Vec::new();
    for round in 1..=settings.runs {
        progress(&format!("round {round} of {}", settings.runs));
        let (of_round, directory) = (settings.clone(), innodb.clone());
        let measured = tokio::task::spawn_blocking(move || measure_round(&of_round, &directory, round));
        runs.extend(measured.await.map_err(|error| Error::failed(format!("a round stopped: {error}")))??);
    }
    let mut report = Report::new("instant", &settings, &innodb);
    runs.iter().for_each(|run| report.add_run(run));
    put_figures(&runs, &settings.tables, &mut report);
    // Its files are removed with it.
    drop(server);
    Ok(report)
}

fn measure_round(settings: &InstantSettings, innodb: &Path, round: usize) -> Result<Vec<InstantRun>> {
    let mounted = Mounted {
        program: &settings.program,
        innodb,
        database: Some(&settings.database),
        cache_bytes: settings.cache_bytes,
        columnar: None,
    };
    let mut runs = Vec::new();
    for (scan, select) in SCANS {
        let mut first: Option<String> = None;
        let mut tables: Vec<&String> = settings.tables.iter().collect();
        if round.is_multiple_of(2) {
            tables.reverse();
        }
        for table in tables {
            let timed = mounted.time(&format!("{select} `{table}`"), settings.warm_runs)?;
            compare(&timed, &mut first, table)?;
            runs.push(InstantRun {
                round,
                scan,
                table: table.clone(),
                cold_seconds: timed.cold_seconds,
                warm_seconds: timed.warm_seconds,
                cpu_seconds: timed.cpu_seconds,
            });
        }
    }
    Ok(runs)
}

/// Checks the answers of all runs against the first.
fn compare(timed: &Timed, first: &mut Option<String>, table: &str) -> Result<()> {
    for rows in &timed.answers {
        let first = first.get_or_insert_with(|| format!("\n{}", rows.join("\n")));
        answer::check(rows.clone(), first)
            .map_err(|error| Error::failed(format!("a scan of {table}: {error}")))?;
    }
    Ok(())
}

fn put_figures(runs: &[InstantRun], tables: &[String; 2], report: &mut Report) {
    type Figure = (&'static str, fn(&InstantRun) -> f64);
    let figures: [Figure; 3] = [
        ("cold", |run| run.cold_seconds),
        (WARM, |run| median(run.warm_seconds.iter().copied())),
        ("cpu", |run| run.cpu_seconds),
    ];
    let mut least = f64::INFINITY;
    let mut table = Table::new(&["scan", "figure", "instant, s", "rebuilt, s", "speed of rebuilt"]);
    for (scan, _) in SCANS {
        for (name, seconds) in figures {
            let of = |table: &String| {
                median(runs.iter().filter(|run| run.scan == scan && run.table == *table).map(seconds))
            };
            let [instant, rebuilt] = [of(&tables[0]), of(&tables[1])];
            table.add(vec![
                scan.to_owned(),
                name.to_owned(),
                cell(instant, 4),
                cell(rebuilt, 4),
                cell(rebuilt / instant, 3),
            ]);
            let speed = rebuilt / instant;
            report.summarize(&format!("{scan}_{name}_speed_of_rebuilt"), speed);
            if name == WARM {
                least = least.min(speed);
            }
        }
    }
    report.summarize("instant_over_rebuilt", least);
    report.tables.push(table);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn speeds_are_those_of_the_medians() {
        let run = |round: usize, table: &str, warm: f64| InstantRun {
            round,
            scan: "all",
            table: table.to_owned(),
            cold_seconds: 2.0,
            warm_seconds: vec![warm],
            cpu_seconds: 1.0,
        };
        let runs =
            [run(1, "instant", 4.0), run(1, "rebuilt", 2.0), run(2, "instant", 4.0), run(2, "rebuilt", 4.0)];
        let mut report = Report::new("instant", &(), Path::new("/"));
        put_figures(&runs, &TABLES.map(str::to_owned), &mut report);
        assert_eq!(report.summary["all_warm_speed_of_rebuilt"], 0.75);
        assert_eq!(report.summary["all_cold_speed_of_rebuilt"], 1.0);
        assert_eq!(report.summary["instant_over_rebuilt"], 0.75);
    }

    #[test]
    fn another_answer_is_an_error() {
        let timed = |rows: &[&str]| Timed {
            cold_seconds: 1.0,
            warm_seconds: vec![1.0],
            cpu_seconds: 1.0,
            after_seconds: 0.0,
            answers: vec![rows.iter().map(|row| (*row).to_owned()).collect()],
        };
        let mut first = None;
        compare(&timed(&["1\t2"]), &mut first, "instant").unwrap();
        compare(&timed(&["1\t2"]), &mut first, "rebuilt").unwrap();
        assert!(compare(&timed(&["1\t3"]), &mut first, "rebuilt").is_err());
    }
}
