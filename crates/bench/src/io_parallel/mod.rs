//! `tanada bench io-parallel`: the first query of TPC-H over rows of LINEITEM, by each way to read them (after "I/O
//! parallelisation of DBMS queries", 2013).
//!
//! 1. Make a file of rows of a fixed length, as the paper has it.
//! 2. In each round: fio reads it once at each block size; each way reads it once at each block size, and computes the
//!    query. All answers must be equal.
//! 3. Figures are medians over the rounds. Reads pass the kernel's cache, but those of `buffered`.
//!
//! `scan_of_fio` is the speed of the best way over fio's best. The setup line says which setting that is, so a user
//! finds the best one for a device.

mod lineitem;
mod ways;

use std::path::PathBuf;
use std::time::Instant;

use nix::sys::resource::{UsageWho, getrusage};
use serde::Serialize;
use tanada_base::ByteSize;
use tanada_io::Method;

use crate::{Error, ErrorKind, Result, fio};
use lineitem::{Answer, Lineitem, ROWS_OF_SCALE_1};
use tanada_report::{Report, Table, median};
pub use ways::Way;

/// Reads that fio has in flight.
const DEPTH_OF_FIO: usize = 16;
/// The smallest and the largest block.
const BLOCKS: (usize, usize) = (4 << 10, 64 << 20);

/// What to measure.
#[derive(Debug, Clone, Serialize)]
pub struct IoParallelSettings {
    /// The folder for the file.
    pub folder: PathBuf,
    /// Scale factor: rows of LINEITEM in six millions.
    pub scale: f64,
    /// Bytes that are read at once.
    pub block_bytes: Vec<usize>,
    /// The ways, each at each block size.
    pub ways: Vec<Way>,
    /// Rounds.
    pub runs: usize,
}

/// One way, once.
#[derive(Debug, Clone, Serialize)]
pub struct Run {
    /// The way, or fio.
    pub way: String,
    /// Bytes that are read at once.
    pub block_bytes: usize,
    /// The round, from 1.
    pub round: usize,
    /// Time of the query.
    pub seconds: f64,
    /// Bytes read a second, in MB.
    pub mb_per_second: f64,
    /// Processor time in the program.
    pub user_seconds: f64,
    /// Processor time in the kernel.
    pub kernel_seconds: f64,
}

impl IoParallelSettings {
    /// Scale factor 10 in `folder`, blocks from 256 KiB to 16 MiB.
    pub fn new(folder: PathBuf) -> IoParallelSettings {
        let executors = |method, depth| Way::Executors { method, depth };
        IoParallelSettings {
            folder,
            scale: 10.0,
            block_bytes: vec![256 << 10, 1 << 20, 4 << 20, 16 << 20],
            ways: vec![
                Way::Read { sync: false },
                Way::Read { sync: true },
                Way::Beside { buffers: 1 },
                Way::Beside { buffers: 4 },
                Way::Pread { threads: 2 },
                Way::Pread { threads: 4 },
                Way::Pread { threads: 8 },
                Way::Pread { threads: 16 },
                executors(Method::Aio, 8),
                executors(Method::Threads, 8),
                executors(Method::Buffered, 8),
                executors(Method::Uring, 2),
                executors(Method::Uring, 8),
            ],
            runs: 3,
        }
    }

    /// Scale factor 1, two block sizes, one round: a minute.
    #[must_use]
    pub fn quick(self) -> IoParallelSettings {
        IoParallelSettings { scale: 1.0, block_bytes: vec![256 << 10, 4 << 20], runs: 1, ..self }
    }

    fn check(&self) -> Result<()> {
        let are_blocks = self
            .block_bytes
            .iter()
            .all(|bytes| bytes.is_power_of_two() && (BLOCKS.0..=BLOCKS.1).contains(bytes));
        let is_usable = are_blocks
            && !self.block_bytes.is_empty()
            && !self.ways.is_empty()
            && self.runs > 0
            && self.scale > 0.0
            && self.scale <= 1000.0;
        if is_usable {
            return Ok(());
        }
        let message = "cannot run: blocks are powers of two from 4 KiB to 64 MiB, a scale is more than 0 and at most 1000";
        Err(Error::new(ErrorKind::InvalidInput, message))
    }
}

/// Runs the benchmark; `progress` is told what comes.
///
/// # Errors
/// If fio is not installed, the file cannot be made or read, two answers differ, or settings make no sense.
pub fn run(settings: &IoParallelSettings, progress: &dyn Fn(&str)) -> Result<Report> {
    settings.check()?;
    let largest = settings.block_bytes.iter().copied().max().unwrap_or(BLOCKS.1);
    let rows = (settings.scale * ROWS_OF_SCALE_1 as f64) as u64;
    progress(&format!("making {rows} rows in {}", settings.folder.display()));
    let file = Lineitem::make(&settings.folder, rows, largest as u64)?;
    let mut runs = Vec::new();
    let mut expected: Option<Answer> = None;
    for round in 1..=settings.runs {
        for block_bytes in settings.block_bytes.iter().copied() {
            progress(&format!("round {round} of {}, fio, blocks of {}", settings.runs, size(block_bytes)));
            let speed = fio::sequential_bytes_per_second(file.path(), block_bytes, DEPTH_OF_FIO)?;
            let (way, seconds) = ("fio".to_owned(), file.bytes as f64 / speed);
            let (mb_per_second, user_seconds, kernel_seconds) = (speed / 1e6, f64::NAN, f64::NAN);
            runs.push(Run { way, block_bytes, round, seconds, mb_per_second, user_seconds, kernel_seconds });
            for way in &settings.ways {
                progress(&format!(
                    "round {round} of {}, {}, blocks of {}",
                    settings.runs,
                    way.name(),
                    size(block_bytes)
                ));
                let (run, answer) = measure(*way, &file, block_bytes, round)?;
                runs.push(run);
                if *expected.get_or_insert(answer) != answer {
                    return Err(Error::failed(format!(
                        "{}: another answer than the first way's",
                        way.name()
                    )));
                }
            }
        }
    }
    Ok(report(settings, &file, &runs))
}

fn measure(way: Way, file: &Lineitem, block_bytes: usize, round: usize) -> Result<(Run, Answer)> {
    let (before, began) = (cpu_seconds()?, Instant::now());
    let answer = way.run(file, block_bytes)?;
    let (seconds, after) = (began.elapsed().as_secs_f64(), cpu_seconds()?);
    let run = Run {
        way: way.name(),
        block_bytes,
        round,
        seconds,
        mb_per_second: file.bytes as f64 / 1e6 / seconds,
        user_seconds: after.0 - before.0,
        kernel_seconds: after.1 - before.1,
    };
    Ok((run, answer))
}

/// Processor time of this process in user mode and in the kernel.
fn cpu_seconds() -> Result<(f64, f64)> {
    let usage = getrusage(UsageWho::RUSAGE_SELF)
        .map_err(|error| Error::failed(format!("cannot read the processor time: {error}")))?;
    let seconds = |time: nix::sys::time::TimeVal| time.tv_sec() as f64 + time.tv_usec() as f64 / 1e6;
    Ok((seconds(usage.user_time()), seconds(usage.system_time())))
}

fn size(bytes: usize) -> ByteSize {
    ByteSize::new(bytes as u64)
}

fn report(settings: &IoParallelSettings, file: &Lineitem, runs: &[Run]) -> Report {
    let mut report = Report::new("io-parallel", settings, file.path());
    runs.iter().for_each(|run| report.add_run(run));
    let of = |way: &str, block_bytes: usize, figure: fn(&Run) -> f64| {
        median(runs.iter().filter(|run| run.way == way && run.block_bytes == block_bytes).map(figure))
    };
    let mut names: Vec<String> = vec!["fio".to_owned()];
    names.extend(settings.ways.iter().map(|way| way.name()));
    let mut table = Table::new(&["way", "block", "MB/s", "seconds", "user %", "kernel %"]);
    let (mut best, mut best_of_fio): (Option<(String, usize, f64)>, f64) = (None, 0.0);
    for name in &names {
        for block_bytes in settings.block_bytes.iter().copied() {
            let speed = of(name, block_bytes, |run| run.mb_per_second);
            let share = |figure: fn(&Run) -> f64| match of(name, block_bytes, figure) {
                share if share.is_finite() => format!("{:.0}", share * 100.0),
                _ => "-".to_owned(),
            };
            table.add(vec![
                name.clone(),
                size(block_bytes).to_string(),
                format!("{speed:.0}"),
                format!("{:.3}", of(name, block_bytes, |run| run.seconds)),
                share(|run| run.user_seconds / run.seconds),
                share(|run| run.kernel_seconds / run.seconds),
            ]);
            // What the kernel's cache gives is no speed of the device.
            let is_cached = name.starts_with(ways::method_name(Method::Buffered));
            if name == "fio" {
                best_of_fio = best_of_fio.max(speed);
            } else if !is_cached && best.as_ref().is_none_or(|(_, _, most)| speed > *most) {
                best = Some((name.clone(), block_bytes, speed));
            }
        }
    }
    report.tables.push(table);
    report.setup = format!(
        "Q1 over {} rows of {} bytes, each way once at each block size in {} rounds, medians",
        file.bytes / lineitem::ROW_BYTES as u64,
        lineitem::ROW_BYTES,
        settings.runs
    );
    if let Some((name, block_bytes, speed)) = best {
        report.setup += &format!("; best: {name}, blocks of {}", size(block_bytes));
        report.summarize("scan_of_fio", speed / best_of_fio);
        report.summarize("best_mb_per_second", speed);
        report.summarize("fio_mb_per_second", best_of_fio);
    }
    report
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_ways_give_one_answer() {
        let folder = tempfile::tempdir().unwrap();
        let file = Lineitem::make(folder.path(), 40_000, 256 << 10).unwrap();
        let settings = IoParallelSettings::new(folder.path().to_owned());
        let mut answers = Vec::new();
        for way in settings.ways {
            match way.run(&file, 256 << 10) {
                Ok(answer) => answers.push(answer),
                // A kernel or container may lack a method.
                Err(error) => assert!(error.to_string().contains("cannot be read by"), "{error}"),
            }
        }
        assert!(answers.len() >= 8 && answers.iter().all(|answer| *answer == answers[0]));
    }

    #[test]
    fn settings_without_sense_are_refused() {
        let mut settings = IoParallelSettings::new(PathBuf::from("."));
        settings.block_bytes = vec![5000];
        assert!(run(&settings, &|_| {}).unwrap_err().to_string().contains("powers of two"));
    }
}
