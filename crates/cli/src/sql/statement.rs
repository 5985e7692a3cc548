//! One statement: run it and write its rows as they come.

use std::io::{IsTerminal, Write};

use futures::StreamExt;
use tanada_query::{Error, Loss, LostRows, QueryReport, Session, StatementText};
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use super::running::{REFRESH, RunningLine};
use crate::failure::{Failure, Outcome, one_line};
use crate::format::Format;
use crate::output::count;

/// Batches that wait to be written; more would only fill memory.
const MAX_WAITING_BATCHES: usize = 2;

/// How results are shown.
#[derive(Debug, Clone, Copy)]
pub struct Display {
    /// The format of statements that do not end with `\G`.
    format: Format,
    /// Whether rows go to a terminal.
    is_terminal: bool,
    /// Whether a terminal shows what is written to stderr.
    has_progress: bool,
}

impl Display {
    /// Results in `format` on stdout.
    pub fn new(format: Format) -> Display {
        let [is_terminal, has_progress] = [std::io::stdout().is_terminal(), std::io::stderr().is_terminal()];
        Display { format, is_terminal, has_progress }
    }

    /// The terminal's columns, asked for each statement: a window may have become another size.
    fn width(self) -> Option<usize> {
        let size = self.is_terminal.then(|| console::Term::stdout().size_checked()).flatten();
        size.map(|(_, columns)| usize::from(columns)).filter(|columns| *columns > 0)
    }
}

/// Runs `statement`, writes its result to `out` batch by batch, and gives what it cost. Dropping the future cancels the
/// query and its I/O.
///
/// A query that fails before its first row leaves nothing in `out`, not even a header.
///
/// The query runs in a task of its own: rows are spelled while more are read, and whoever waits for a key press is
/// never held up by an operator that computes for a while.
pub async fn run(
    session: &Session,
    statement: &StatementText,
    display: Display,
    out: &mut impl Write,
) -> Outcome<QueryReport> {
    let mut result = session.execute(&statement.sql).await?;
    // Now, for if the query fails they may be the reason.
    for warning in result.report().warnings {
        eprintln!("tanada: warning: {}", one_line(&warning));
    }
    let format = if statement.is_vertical { Format::Vertical } else { display.format };
    let mut writer = format.writer(display.width());
    let schema = result.schema();
    let watch = result.watch();
    let mut has_begun = false;
    let (sender, mut batches) = mpsc::channel(MAX_WAITING_BATCHES);
    // A set aborts its tasks when it is dropped.
    let mut tasks = JoinSet::new();
    tasks.spawn(async move {
        while let Some(batch) = result.stream().next().await {
            if sender.send(batch).await.is_err() {
                break;
            }
        }
        result.report()
    });
    let mut line = RunningLine::default();
    let mut ticks = tokio::time::interval(REFRESH);
    loop {
        let next = tokio::select! {
            next = batches.recv() => next,
            // Rows on the same terminal show themselves how far the statement is.
            _ = ticks.tick(), if display.has_progress && !(has_begun && display.is_terminal) => {
                line.show(&watch);
                continue;
            }
        };
        let Some(batch) = next else { break };
        let batch = batch.map_err(Error::from)?;
        if display.is_terminal {
            line.clear();
        }
        if !std::mem::replace(&mut has_begun, true) {
            writer.begin(&schema, out)?;
        }
        writer.batch(&batch, out)?;
    }
    line.clear();
    let report = match tasks.join_next().await {
        Some(Ok(report)) => report,
        Some(Err(error)) => {
            return Err(Failure::failed(format!("a fault in tanada, please report it: {error}")));
        }
        None => return Err(Failure::failed("the query was cancelled")),
    };
    if !has_begun {
        writer.begin(&schema, out)?;
    }
    writer.end(out)?;
    out.flush()?;
    Ok(report)
}

/// What the result does not say itself goes to stderr. Returns whether rows are missing.
pub fn warn(report: &QueryReport) -> bool {
    for loss in &report.lost {
        eprintln!("tanada: warning: {}", one_line(&loss.to_string()));
    }
    let is_short = report.lost.iter().any(|loss| loss.rows != LostRows::Zero);
    if is_short {
        eprintln!("tanada: warning: {}", total(&report.lost));
    }
    is_short
}

/// How much was lost in all.
fn total(lost: &[Loss]) -> String {
    let (mut rows, mut is_known, mut is_exact) = (0u64, true, true);
    for loss in lost {
        match loss.rows {
            LostRows::Zero => {}
            LostRows::Exactly(count) => rows += count,
            LostRows::About(count) => (rows, is_exact) = (rows + count, false),
            LostRows::Unknown => is_known = false,
        }
    }
    let pages = count(lost.len() as u64, "page");
    match (is_known, is_exact) {
        (false, _) => format!("{pages} damaged: {rows} rows at least are missing from the result, about"),
        (true, false) => format!("{pages} damaged: about {rows} rows are missing from the result"),
        (true, true) => format!("{pages} damaged: {rows} rows are missing from the result"),
    }
}

/// Shows a failure in the shell.
pub fn show(failure: &Failure) {
    eprintln!("error: {failure}");
}

/// Shows the failure of a statement after which others are run.
pub fn show_at(statement: &StatementText, failure: &Failure) {
    eprintln!("tanada: line {}: {failure}", statement.line);
}
