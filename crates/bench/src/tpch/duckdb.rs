//! The queries by DuckDB on Parquet files, in a Python process of its own.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde::Deserialize;

use crate::{Error, Result};
use tanada_sample::SampleQuery;

/// Tables of TPC-H.
pub(super) const TABLES: [&str; 8] =
    ["customer", "lineitem", "nation", "orders", "part", "partsupp", "region", "supplier"];

/// Gets the folder of the files and the queries; prints a line for each query.
const SCRIPT: &str = r#"
import datetime, decimal, json, sys, time
import duckdb
folder, tables, queries = sys.argv[1], json.loads(sys.argv[2]), json.loads(sys.argv[3])
connection = duckdb.connect()
for table in tables:
    connection.execute(f"create view {table} as select * from read_parquet('{folder}/{table}.parquet')")
for query in queries:
    begun = time.perf_counter()
    rows = connection.execute(query).fetchall()
    seconds = time.perf_counter() - begun
    shown = [["NULL" if value is None else str(value) for value in row] for row in rows]
    print(json.dumps({"seconds": seconds, "rows": shown}), flush=True)
"#;

/// A query as it went.
#[derive(Debug, Deserialize)]
pub(super) struct Answered {
    pub(super) seconds: f64,
    rows: Vec<Vec<String>>,
}

impl Answered {
    /// Checks the rows against `expected`, a header line and rows, in any order. DuckDB's averages are doubles, so that
    /// numbers are the same if they are when they have as many digits behind the point as is expected.
    ///
    /// # Errors
    /// Names the first difference.
    pub(super) fn check(&self, expected: &str) -> Result<()> {
        let mut rows: Vec<String> = self.rows.iter().map(|row| row.join("\t")).collect();
        let mut wanted: Vec<&str> = expected.lines().skip(1).collect();
        if rows.len() != wanted.len() {
            let (found, wanted) = (rows.len(), wanted.len());
            return Err(Error::failed(format!("the answer has {found} rows instead of {wanted}")));
        }
        rows.sort_unstable();
        wanted.sort_unstable();
        match rows.iter().zip(&wanted).find(|(row, wanted)| !is_same_row(row, wanted)) {
            None => Ok(()),
            Some((row, wanted)) => {
                Err(Error::failed(format!("the answer has the row {row:?} instead of {wanted:?}")))
            }
        }
    }
}

fn is_same_row(row: &str, wanted: &str) -> bool {
    let cells = row.split('\t').zip(wanted.split('\t'));
    row.split('\t').count() == wanted.split('\t').count()
        && cells.into_iter().all(|(a, b)| is_same_cell(a, b))
}

fn is_same_cell(cell: &str, wanted: &str) -> bool {
    let number = |text: &str| text.parse::<f64>().ok();
    match (cell == wanted, number(cell), number(wanted), wanted.split_once('.')) {
        (true, ..) => true,
        (_, Some(found), Some(value), Some((_, digits))) => {
            let unit = 10f64.powi(-i32::try_from(digits.len()).unwrap_or(0));
            (found - value).abs() <= (1e-6 * value.abs()).max(0.500_001 * unit)
        }
        _ => false,
    }
}

/// DuckDB as a module of a Python.
#[derive(Debug)]
pub(super) struct DuckDb {
    python: PathBuf,
    pub(super) version: String,
}

impl DuckDb {
    /// The module of `python`; `None` if it has none.
    pub(super) fn of(python: &Path) -> Option<DuckDb> {
        let mut command = Command::new(python);
        command.args(["-c", "import duckdb; print(duckdb.__version__)"]).stdin(Stdio::null());
        let output = command.output().ok().filter(|output| output.status.success())?;
        let version = String::from_utf8_lossy(&output.stdout).trim().to_owned();
        Some(DuckDb { python: python.to_owned(), version })
    }

    /// Runs `queries` on the files in `folder`, one after the other.
    ///
    /// # Errors
    /// If the process cannot be started or fails.
    pub(super) fn run(&self, folder: &Path, queries: &[&SampleQuery]) -> Result<Vec<Answered>> {
        let statements: Vec<&str> = queries.iter().map(|query| query.sql).collect();
        let mut command = Command::new(&self.python);
        command.args(["-c", SCRIPT]).arg(folder);
        command.arg(serde_json::json!(TABLES).to_string()).arg(serde_json::json!(statements).to_string());
        let output = command.stdin(Stdio::null()).output();
        let output = output
            .map_err(|error| Error::failed(format!("cannot run {}: {error}", self.python.display())))?;
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr);
            let said = said.lines().last().unwrap_or_default();
            return Err(Error::failed(format!("DuckDB failed: {said}")));
        }
        let answers = String::from_utf8_lossy(&output.stdout);
        let answers: Vec<Answered> = answers
            .lines()
            .map(serde_json::from_str)
            .collect::<std::result::Result<_, _>>()
            .map_err(|error| Error::failed(format!("DuckDB's answers cannot be read: {error}")))?;
        match answers.len() == queries.len() {
            true => Ok(answers),
            false => Err(Error::failed(format!("DuckDB gave {} answers", answers.len()))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn averages_agree_to_the_digits_that_are_expected() {
        let rows =
            vec![vec!["b".to_owned(), "25.559607245".to_owned()], vec!["a".to_owned(), "7".to_owned()]];
        let answered = Answered { seconds: 1.0, rows };
        assert!(answered.check("name\tvalue\na\t7\nb\t25.559607\n").is_ok());
        for wrong in ["name\tvalue\na\t7\nb\t25.57\n", "h\na\t8\nb\t25.559607\n", "h\na\t7\n"] {
            assert!(answered.check(wrong).is_err(), "{wrong}");
        }
    }
}
