//! A statement in a `tanada sql` process of its own, timed from outside, so that any build of the program can be a
//! side of a comparison.
//!
//! 1. The process gets `select 1` and then the statement several times, with `--timing`: a line on standard error
//!    ends each of them.
//! 2. The time of a run is that between the arrivals of two such lines: planning, reading, and writing the rows.
//! 3. The first run is cold: tables are opened, statistics sampled, and pages read past the kernel's cache. The runs
//!    after it are warm.
//! 4. The answers are split by the numbers of rows in the lines.

use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{ChildStderr, Command, Stdio};
use std::time::Instant;

use nix::sys::resource::{UsageWho, getrusage};

use crate::{Error, Result};

/// A program and what it mounts.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Mounted<'a> {
    /// The `tanada` program.
    pub(crate) program: &'a Path,
    /// The data directory.
    pub(crate) innodb: &'a Path,
    /// The default database.
    pub(crate) database: Option<&'a str>,
    /// Page cache.
    pub(crate) cache_bytes: u64,
    /// A folder for columnar mirrors.
    pub(crate) columnar: Option<&'a Path>,
}

/// The runs of a statement in one process.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Timed {
    /// The first run.
    pub(crate) cold_seconds: f64,
    /// The others, at least one.
    pub(crate) warm_seconds: Vec<f64>,
    /// Processor time of the whole process, its start included.
    pub(crate) cpu_seconds: f64,
    /// The rows of each run, without headers.
    pub(crate) answers: Vec<Vec<String>>,
    /// From the end of the last run to the end of the process.
    pub(crate) after_seconds: f64,
}

/// The line that ends a statement: when it came, and how many rows it tells.
#[derive(Debug, Clone, Copy)]
struct Ended {
    at: Instant,
    rows: usize,
}

impl Mounted<'_> {
    /// Runs `sql` once cold and `warm_runs` times warm.
    ///
    /// # Errors
    /// If the program cannot be started or fails.
    pub(crate) fn time(&self, sql: &str, warm_runs: usize) -> Result<Timed> {
        self.time_each(&vec![sql; 1 + warm_runs])
    }

    /// Runs statements, each once: the first of them is the cold one.
    ///
    /// # Errors
    /// If the program cannot be started or fails.
    pub(crate) fn time_each(&self, statements: &[&str]) -> Result<Timed> {
        let mut text = "select 1;\n".to_owned();
        for sql in statements {
            text.push_str(sql.trim().trim_end_matches(';'));
            text.push_str(";\n");
        }
        let mut command = Command::new(self.program);
        command.arg("sql").arg("--innodb").arg(self.innodb);
        if let Some(database) = self.database {
            command.args(["--database", database]);
        }
        if let Some(columnar) = self.columnar {
            command.arg("--columnar").arg(columnar);
        }
        command.args(["--format", "tsv", "--timing", "--cache", &self.cache_bytes.to_string()]);
        command.args(["-c", &text]).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let cpu_before = cpu_seconds_of_children()?;
        let failed = |error| {
            let program = self.program.display();
            Error::failed(format!("cannot run {program}: {error}"))
        };
        let mut child = command.spawn().map_err(failed)?;
        let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
        let reader = std::thread::spawn(move || {
            let mut text = String::new();
            stdout.map_or(Ok(0), |mut out| out.read_to_string(&mut text)).map(|_| text)
        });
        let heard = stderr.map(listen).unwrap_or_default();
        let status = child.wait().map_err(failed)?;
        let ended = Instant::now();
        let cpu_seconds = cpu_seconds_of_children()? - cpu_before;
        let output = reader.join().map_err(|_| Error::failed("an answer could not be read"))?;
        let output = output.map_err(failed)?;
        if !status.success() {
            let program = self.program.display();
            return Err(Error::failed(format!("{program} failed ({status}): {}", heard.last_words)));
        }
        let mut timed = timed(&heard.ended, &output, statements.len(), cpu_seconds)?;
        timed.after_seconds = heard.ended.last().map_or(0.0, |last| (ended - last.at).as_secs_f64());
        Ok(timed)
    }
}

/// What came on standard error.
#[derive(Debug, Default)]
struct Heard {
    ended: Vec<Ended>,
    last_words: String,
}

fn listen(stderr: ChildStderr) -> Heard {
    let mut heard = Heard::default();
    for line in BufReader::new(stderr).lines().map_while(std::result::Result::ok) {
        match rows_of(&line) {
            Some(rows) => heard.ended.push(Ended { at: Instant::now(), rows }),
            None => heard.last_words = line,
        }
    }
    heard
}

/// The number of rows in `2,000 rows, 0.184 s, ...`; `None` for another line.
fn rows_of(line: &str) -> Option<usize> {
    let (count, rest) = line.split_once(" row")?;
    let rest = rest.strip_prefix('s').unwrap_or(rest);
    let (seconds, _) = rest.strip_prefix(", ")?.split_once(" s")?;
    seconds.parse::<f64>().ok()?;
    count.replace(',', "").parse().ok()
}

fn timed(ended: &[Ended], output: &str, runs: usize, cpu_seconds: f64) -> Result<Timed> {
    if ended.len() != runs + 1 {
        let found = ended.len();
        return Err(Error::failed(format!("{found} statements were timed instead of {}", runs + 1)));
    }
    let mut lines = output.lines();
    let mut answers = Vec::with_capacity(runs);
    for (no, end) in ended.iter().enumerate() {
        // A result without rows has no header either.
        let header = usize::from(end.rows > 0);
        let rows: Vec<String> =
            lines.by_ref().take(header + end.rows).skip(header).map(str::to_owned).collect();
        if rows.len() != end.rows {
            return Err(Error::failed(format!("an answer has {} rows instead of {}", rows.len(), end.rows)));
        }
        // The first statement only says that the process has started.
        if no > 0 {
            answers.push(rows);
        }
    }
    let mut seconds = ended.windows(2).map(|pair| (pair[1].at - pair[0].at).as_secs_f64());
    let cold_seconds = seconds.next().unwrap_or(f64::NAN);
    let warm_seconds = seconds.collect();
    Ok(Timed { cold_seconds, warm_seconds, cpu_seconds, answers, after_seconds: 0.0 })
}

/// Processor time of all child processes that have ended.
fn cpu_seconds_of_children() -> Result<f64> {
    let usage = getrusage(UsageWho::RUSAGE_CHILDREN)
        .map_err(|error| Error::failed(format!("processor time cannot be told: {error}")))?;
    let seconds = |time: nix::sys::time::TimeVal| time.tv_sec() as f64 + time.tv_usec() as f64 / 1e6;
    Ok(seconds(usage.user_time()) + seconds(usage.system_time()))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;
    use std::time::Duration;

    use super::*;

    #[test]
    fn cost_lines_and_warnings_are_distinguished() {
        assert_eq!(rows_of("1 row, 1.234 s"), Some(1));
        assert_eq!(
            rows_of("2,000 rows, 0.184 s, 3,210 I/Os (50.2 MiB), depth 57.3 mean 256 max"),
            Some(2000)
        );
        assert_eq!(rows_of("tanada: warning: 3 rows, or so"), None);
        assert_eq!(rows_of(""), None);
    }

    #[test]
    fn runs_are_split_by_their_rows() {
        let start = Instant::now();
        let at = |millis: u64, rows: usize| Ended { at: start + Duration::from_millis(millis), rows };
        let output = "1\n1\nn\tm\n1\t2\nn\tm\n1\t2\n";
        let found = timed(&[at(0, 1), at(500, 1), at(600, 1)], output, 2, 0.25).unwrap();
        assert_eq!((found.cold_seconds, found.warm_seconds[0]), (0.5, 0.1));
        assert_eq!(found.answers, [["1\t2"], ["1\t2"]]);
        let empty = timed(&[at(0, 1), at(1, 0), at(2, 0)], "1\n1\n", 2, 0.0).unwrap();
        assert_eq!(empty.answers, [Vec::<String>::new(), Vec::new()]);
        assert!(timed(&[at(0, 1)], output, 2, 0.0).is_err());
        assert!(timed(&[at(0, 1), at(1, 9)], output, 1, 0.0).is_err());
    }

    #[test]
    fn a_program_that_fails_is_an_error_with_its_last_words() {
        let folder = tempfile::tempdir().unwrap();
        let program = folder.path().join("program");
        std::fs::write(&program, "#!/bin/sh\necho no such table >&2\nexit 1\n").unwrap();
        std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
        let mounted = Mounted {
            program: &program,
            innodb: folder.path(),
            database: None,
            cache_bytes: 1 << 20,
            columnar: None,
        };
        let error = mounted.time("select 2", 1).unwrap_err().to_string();
        assert!(error.contains("no such table"), "{error}");
        let missing = folder.path().join("missing");
        assert!(Mounted { program: &missing, ..mounted }.time("select 2", 1).is_err());
    }
}
