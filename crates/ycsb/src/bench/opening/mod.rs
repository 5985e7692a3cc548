//! `tanada bench kv-open`: how long opening a key-value database takes, at sizes that no test has.
//!
//! 1. A database [whose counts are those of the size](database) is loaded, sorted; then some of its keys are written
//!    again at random, so that leaves have several kvsets and these refer to many segments. It is closed and opened a
//!    few times, each time with devices opened anew and past the kernel's cache.
//! 2. It is stopped in the middle of writing, and opened.
//! 3. The same with an empty one, and with one (whose sizes are not divided) that has as much log to replay as there
//!    may be.
//!
//! Reported are times of the volume's and the database's opening and of the first read, what was read, and by how much
//! the process grew.

mod database;
mod job;
mod sparse;

use std::ffi::OsString;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use tanada_base::ByteSize;

use super::Progress;
use crate::{Error, Result};
use database::Place;
pub use job::OpeningJob;
use tanada_report::{Report, Table, median};

/// Settings of the benchmark.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct OpeningOptions {
    /// Where files are made; they are removed afterwards.
    pub directory: PathBuf,
    /// Bytes of keys and values that databases stand for.
    pub sizes: Vec<u64>,
    /// All sizes are divided by it; with 1 they are the real ones.
    pub divisor: u64,
    /// Bytes of a chunk of the volume, before they are divided.
    pub chunk_bytes: u64,
    /// Bytes of a value; those that are replayed have 1,000.
    pub value_bytes: usize,
    /// Keys that are written again.
    pub updates: u64,
    /// Bytes of log that may have to be replayed.
    pub replay_bytes: u64,
    /// Openings of each.
    pub rounds: usize,
    /// The program, with its arguments, that is told an [`OpeningJob`]: a process of its own for each opening, whose
    /// memory is that of the opening. Without one, all is done in this process.
    #[serde(skip)]
    pub program: Vec<OsString>,
}

impl OpeningOptions {
    /// 100 GB and 10 TB, divided by 256; the log as it is set by default.
    pub fn new(directory: impl Into<PathBuf>) -> OpeningOptions {
        OpeningOptions {
            directory: directory.into(),
            sizes: vec![100_000_000_000, 10_000_000_000_000],
            divisor: 256,
            chunk_bytes: 1 << 20,
            value_bytes: 10_000,
            updates: 20_000,
            replay_bytes: 1 << 30,
            rounds: 5,
            program: Vec::new(),
        }
    }

    /// 10 GB and 100 GB, and less log: well under a minute.
    pub fn quick(directory: impl Into<PathBuf>) -> OpeningOptions {
        OpeningOptions {
            sizes: vec![10_000_000_000, 100_000_000_000],
            updates: 5_000,
            replay_bytes: 128 << 20,
            rounds: 3,
            ..OpeningOptions::new(directory)
        }
    }

    fn check(&self) -> Result<()> {
        let is_usable = self.rounds > 0
            && (1..=1 << 20).contains(&self.divisor)
            && (1..=1 << 20).contains(&self.value_bytes)
            && self.chunk_bytes.is_power_of_two()
            && self.divisor.is_power_of_two()
            && self.sizes.iter().all(|size| *size < 1 << 50);
        if is_usable {
            return Ok(());
        }
        Err(Error::invalid(
            "cannot run: there is at least one opening, the divisor and a chunk's bytes are powers of two, and a value has 1 byte to 1 MiB",
        ))
    }
}

/// One opening.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Opening {
    /// Bytes that the database stands for.
    pub stands_for_bytes: u64,
    /// `closed`, or `stopped` in the middle of writing.
    pub after: String,
    /// Which round.
    pub round: usize,
    /// Until the volume is open.
    pub volume_s: f64,
    /// From then on until the database is open, its log replayed.
    pub database_s: f64,
    /// From then on until a record was read.
    pub first_read_s: f64,
    /// Bytes that opening the database read of the class with keys, log and manifest,
    pub bytes_read: u64,
    /// in so many I/Os,
    pub reads: u64,
    /// and of the class with values.
    pub value_bytes_read: u64,
    /// Bytes of log that were replayed, and operations in them.
    pub replayed_bytes: u64,
    /// See above.
    pub replayed_operations: u64,
    /// By how much the process grew, at most, while volume and database were opened;
    pub memory_bytes: u64,
    /// by how much when the volume was open.
    pub volume_memory_bytes: u64,
    /// What the database consists of.
    pub leaves: usize,
    /// In leaves and at the root.
    pub kvsets: usize,
    /// Segments of values.
    pub value_segments: usize,
    /// Chunks of the volume that are in use.
    pub chunks: u64,
    /// Bytes of the manifest.
    pub manifest_bytes: u64,
    /// Bytes of key files.
    pub key_bytes: u64,
}

impl Opening {
    fn seconds(&self) -> f64 {
        self.volume_s + self.database_s
    }
}

const CLOSED: &str = "closed";
const STOPPED: &str = "stopped";

/// Runs the benchmark. `progress` is told before each part what comes.
///
/// # Errors
/// If files cannot be made in the folder, a device fails, or options make no sense.
pub fn run_opening(options: &OpeningOptions, progress: Progress) -> Result<Report> {
    options.check()?;
    let mut report = Report::new("kv-open", options, &options.directory);
    let mut openings = Vec::new();
    for (size, divisor) in
        [(0, 1)].into_iter().chain(options.sizes.iter().map(|size| (*size, options.divisor)))
    {
        let options = OpeningOptions { divisor, ..options.clone() };
        openings.extend(measure(&options, size, progress)?);
    }
    openings.iter().for_each(|opening| report.add_run(opening));
    summarize(options, &openings, &mut report);
    Ok(report)
}

/// Makes one database and opens it.
fn measure(options: &OpeningOptions, size: u64, progress: Progress) -> Result<Vec<Opening>> {
    let folder = tempfile::Builder::new()
        .prefix("tanada-bench-kv-open-")
        .tempdir_in(&options.directory)
        .map_err(|error| Error::at_path("make a folder in", &options.directory, &error))?;
    let place = Place::new(options, size, folder.path().to_owned()).in_memory();
    let (name, records, updates) = (ByteSize::new(size), place.settings.records(), options.updates);
    progress(&format!("making {name}: {} of keys and values", ByteSize::new(place.settings.data_bytes)));
    place.with(move |bench| async move {
        let opened = bench.create().await?;
        if records > 0 {
            opened.load(records).await?;
            opened.update(records, updates).await?;
        }
        opened.close().await
    })?;
    place.save()?;
    drop(place);
    let job = |after: &str, round, stops_after_bytes| OpeningJob {
        options: options.clone(),
        stands_for_bytes: size,
        folder: folder.path().to_owned(),
        after: after.to_owned(),
        round,
        stops_after_bytes,
    };
    // The log may be as long as is set, with what is around keys and values; of a divided database it is divided too.
    let log_bytes = options.replay_bytes / options.divisor / 8 * 7;
    let mut openings = Vec::new();
    for after in [CLOSED, STOPPED] {
        for round in 0..options.rounds {
            progress(&format!("opening {name}, {after}, round {} of {}", round + 1, options.rounds));
            if after == STOPPED {
                job(after, round, Some(log_bytes)).perform_by_program()?;
            }
            openings.push(job(after, round, None).perform_by_program()?);
        }
    }
    Ok(openings)
}

/// A size as part of a key: `100gb`.
fn label(bytes: u64) -> String {
    const UNITS: [(&str, u64); 4] =
        [("tb", 1_000_000_000_000), ("gb", 1_000_000_000), ("mb", 1_000_000), ("b", 1)];
    let unit = UNITS.iter().find(|(_, unit)| bytes >= *unit && bytes.is_multiple_of(*unit));
    match unit {
        Some((name, unit)) => format!("{}{name}", bytes / unit),
        None => "empty".to_owned(),
    }
}

fn summarize(options: &OpeningOptions, openings: &[Opening], report: &mut Report) {
    let mut table = Table::new(&[
        "stands for",
        "after",
        "seconds",
        "of these the volume",
        "first read, ms",
        "MB read",
        "MB replayed",
        "MB of memory",
        "leaves",
        "kvsets",
        "segments",
        "chunks",
    ]);
    for size in std::iter::once(0).chain(options.sizes.iter().copied()) {
        for after in [CLOSED, STOPPED] {
            let runs =
                || openings.iter().filter(move |run| run.stands_for_bytes == size && run.after == after);
            let of = |figure: &dyn Fn(&Opening) -> f64| median(runs().map(figure));
            let mb = |figure: fn(&Opening) -> u64| of(&|run| figure(run) as f64 / 1e6);
            let Some(last) = runs().next_back() else { continue };
            let (seconds, volume_s) = (of(&Opening::seconds), of(&|run| run.volume_s));
            let (replayed, memory) = (mb(|run| run.replayed_bytes), mb(|run| run.memory_bytes));
            table.add(vec![
                label(size),
                after.to_owned(),
                format!("{seconds:.3}"),
                format!("{volume_s:.3}"),
                format!("{:.1}", of(&|run| run.first_read_s * 1e3)),
                format!("{:.1}", mb(|run| run.bytes_read)),
                format!("{replayed:.0}"),
                format!("{memory:.0}"),
                last.leaves.to_string(),
                last.kvsets.to_string(),
                last.value_segments.to_string(),
                last.chunks.to_string(),
            ]);
            let name = if after == CLOSED { label(size) } else { format!("{}_{after}", label(size)) };
            report.summarize(&format!("open_seconds_{name}"), seconds);
            report.summarize(&format!("open_memory_mb_{name}"), memory);
            if after == STOPPED && replayed > 0.0 {
                report.summarize(&format!("replayed_mb_{name}"), replayed);
            }
        }
    }
    report.tables.push(table);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_small_run_fills_in_every_key() {
        let folder = tempfile::tempdir().unwrap();
        let options = OpeningOptions {
            sizes: vec![2_000_000_000],
            updates: 500,
            replay_bytes: 8 << 20,
            rounds: 1,
            ..OpeningOptions::quick(folder.path())
        };
        let report = run_opening(&options, |_| {}).unwrap();
        for key in [
            "open_seconds_empty",
            "open_seconds_2gb",
            "open_seconds_2gb_stopped",
            "replayed_mb_empty_stopped",
        ] {
            assert!(
                report.summary[key].as_f64().is_some_and(|value| value > 0.0),
                "{key}: {:?}",
                report.summary
            );
        }
        let of = |after: &str, key: &str| {
            let run = report
                .runs
                .iter()
                .find(|run| run["stands_for_bytes"] == 2_000_000_000_u64 && run["after"] == after);
            run.unwrap()[key].as_u64().unwrap()
        };
        // Counts are those of 2 GB, and of what was written again and is in the log: leaves of 512 MiB, segments of 64
        // MiB, chunks of 1 MiB.
        assert!((3..=8).contains(&of(CLOSED, "leaves")), "{:?}", report.runs);
        assert!((25..=200).contains(&of(CLOSED, "value_segments")), "{:?}", report.runs);
        assert!((1900..=10_000).contains(&of(CLOSED, "chunks")), "{:?}", report.runs);
        assert!(of(CLOSED, "kvsets") >= 4 && of(CLOSED, "value_bytes_read") == 0, "{:?}", report.runs);
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "nothing is left behind");
        assert!(run_opening(&OpeningOptions { divisor: 3, ..options }, |_| {}).is_err());
    }

    #[test]
    fn sizes_are_named() {
        let names: Vec<String> = [0, 100_000_000_000, 10_000_000_000_000, 1_500_000].map(label).to_vec();
        assert_eq!(names, ["empty", "100gb", "10tb", "1500000b"]);
    }
}
