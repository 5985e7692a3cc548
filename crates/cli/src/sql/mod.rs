//! `tanada sql`: statements from `-c`, `-f` or stdin, or an interactive shell.

mod cost;
mod interrupt;
mod running;
mod shell;
mod statement;
mod words;

use std::io::{IsTerminal, Read, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use clap::Args;
use tanada_query::Session;
use tanada_query::placement::Recording;
use tokio::runtime::Runtime;

use statement::Display;

use crate::failure::{Failure, Outcome, one_line};
use crate::format::Format;
use crate::interruption::interruptible;
use crate::options::MountArguments;
use crate::output::{count, writable};

/// Arguments of `tanada sql`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tanada sql --innodb /var/lib/mysql                              # a shell over a server that was shut down
  tanada sql --innodb backup/ --database shop -c 'select count(*) from orders'
  tanada sql --volume vol -c 'show databases'                     # adopted or imported into a tiered volume
  tanada sql --innodb shop/orders.ibd -f report.sql --format csv > report.csv
  tanada sql --volume vol -f queries.sql --record run.trace       # and then: tanada simulate run.trace
  tanada sql --innodb backup/ --database shop -c \"copy orders to 'orders.parquet'\"
  tanada sql --innodb backup/ --columnar cache/ -f report.sql     # faster from the second run on
  tanada sql --parquet lake/ -c 'show tables'                     # each *.parquet file, each folder of them
  tanada sql --innodb broken/ --skip-damaged -c 'select * from orders' > orders.tsv   # all that can still be read
  echo 'show tables' | tanada sql --innodb backup/ --set tanada.execution=in_order

Without -c and -f, SQL is read from stdin; on a terminal an interactive shell starts.
Exit codes: 0 done, 1 a statement or a file failed, 2 wrong arguments, 3 done, but rows are missing (--skip-damaged).")]
pub struct SqlArguments {
    #[command(flatten)]
    mounts: MountArguments,
    /// Statements to run, separated by semicolons; the first that fails ends the run
    #[arg(short = 'c', long = "command", value_name = "SQL", conflicts_with = "file")]
    command: Option<String>,
    /// A file with statements; - is stdin
    #[arg(short = 'f', long, value_name = "FILE")]
    file: Option<PathBuf>,
    /// How results are written; without it boxes on a terminal, tsv elsewhere
    #[arg(long, value_enum)]
    format: Option<Format>,
    /// Record what is read from where as a trace for tanada simulate; what a query read is there at its end
    #[arg(long, value_name = "FILE")]
    record: Option<PathBuf>,
    /// Go on after a statement that fails; its error names the line where it begins, and the exit code is 1 in the end
    #[arg(long)]
    force: bool,
    /// After each statement, say on stderr what it cost (the shell does so anyway)
    #[arg(long)]
    timing: bool,
}

/// Runs the subcommand.
pub fn run(runtime: &Runtime, arguments: SqlArguments) -> Outcome {
    let on_terminal = std::io::stdout().is_terminal();
    let format = arguments.format.unwrap_or(if on_terminal { Format::Table } else { Format::Tsv });
    let text = match (&arguments.command, &arguments.file) {
        (Some(command), _) => Some(command.clone()),
        (None, Some(file)) => Some(file_text(file)?),
        (None, None) if std::io::stdin().is_terminal() => None,
        (None, None) => Some(file_text(Path::new("-"))?),
    };
    if let Some(path) = &arguments.record {
        // Better now than after the work.
        if path == Path::new("-") {
            return Err(Failure::failed("a recording goes to a file, not to standard output: name one"));
        }
        // To open a pipe is to wait for whoever reads it.
        if path.exists() && !path.is_file() {
            return Err(Failure::failed(format!(
                "a recording goes to a file, and {} is none",
                path.display()
            )));
        }
        writable(path)?;
    }
    let session = runtime.block_on(arguments.mounts.session())?;
    let recording = arguments.record.as_ref().map(|_| Recording::default());
    if let (Some(path), Some(recording)) = (&arguments.record, &recording) {
        recording.keep_in(path)?;
    }
    session.record(recording.clone());
    let outcome = match text {
        // Interrupted, what was read and learned so far is kept all the same.
        Some(text) => {
            let begun = Instant::now();
            let outcome = runtime
                .block_on(interruptible(run_all(&session, &text, format, &arguments)))
                .and_then(|outcome| outcome);
            if outcome.is_ok() {
                make_mirrors(runtime, &session, begun.elapsed());
            }
            outcome
        }
        None => shell::run(runtime, &session, format),
    };
    let closed = match runtime.block_on(session.close()) {
        Ok(warnings) => {
            warnings.iter().for_each(|warning| eprintln!("tanada: warning: {}", one_line(warning)));
            Ok(())
        }
        Err(error) => Err(Failure::from(error)),
    };
    // What was read until something failed is worth keeping.
    let recorded = match recording {
        Some(recording) => recording.finish().map(drop).map_err(Failure::from),
        None => Ok(()),
    };
    outcome.and(closed).and(recorded)
}

/// Makes mirrors of what was scanned: those that are begun within the time that the statements took. Whoever does not
/// want to wait for that interrupts it; what is unfinished then is removed.
fn make_mirrors(runtime: &Runtime, session: &Session, limit: Duration) {
    let _ = runtime.block_on(interruptible(session.make_mirrors(Some(limit))));
}

/// Runs the statements of `text` in order until one fails, or all of them with `--force`.
async fn run_all(session: &Session, text: &str, format: Format, arguments: &SqlArguments) -> Outcome {
    let mut out = std::io::BufWriter::with_capacity(64 << 10, std::io::stdout().lock());
    let display = Display::new(format);
    let (mut is_short, mut failed) = (false, 0);
    for statement in Session::statements(text)? {
        match statement::run(session, &statement, display, &mut out).await {
            Ok(report) => {
                is_short |= statement::warn(&report);
                if arguments.timing {
                    eprintln!("{}", cost::line(&report));
                }
            }
            Err(failure) if arguments.force && !failure.is_broken_pipe() => {
                out.flush()?;
                statement::show_at(&statement, &failure);
                failed += 1;
            }
            Err(failure) => return Err(failure),
        }
    }
    match (failed, is_short) {
        (0, false) => Ok(()),
        (0, true) => Err(Failure::rows_missing()),
        (failed, _) => Err(Failure::failed(format!("{} failed", count(failed, "statement")))),
    }
}

fn file_text(path: &Path) -> Outcome<String> {
    let mut text = String::new();
    let read = if path == Path::new("-") {
        std::io::stdin().read_to_string(&mut text)
    } else {
        std::fs::File::open(path).and_then(|mut file| file.read_to_string(&mut text))
    };
    match read {
        Ok(_) => Ok(text),
        Err(error) => Err(Failure::failed(format!("cannot read SQL from {}: {error}", path.display()))),
    }
}
