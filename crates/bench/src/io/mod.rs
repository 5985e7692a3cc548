//! `tanada bench io`: random reads by executor tasks against fio's io_uring, on the same file, depth and processor.
//!
//! 1. Make a file of random bytes, every block written, unless one is given.
//! 2. For each depth and repeat: fio, Tanada, each alone on the same processor, taking turns so that a disturbed minute
//!    harms both.
//! 3. Compare medians.
//!
//! fio runs with what makes it fastest here: registered buffers and files, and batches of submissions and completions.
//! Tanada's side is one executor thread with as many tasks as the depth; each reads page after page through its query's
//! gate.

mod data_file;
mod other;
mod ours;

use std::path::PathBuf;
use std::time::{SystemTime, UNIX_EPOCH};

use serde::Serialize;
use tanada_base::SplitMix64;

use crate::{Error, ErrorKind, Result};
use data_file::DataFile;
use other::Fio;
use tanada_report::{Report, Table, median};

/// Settings of the benchmark.
#[derive(Debug, Clone, Serialize)]
pub struct IoBenchOptions {
    /// A folder to make the data file in (it is removed afterwards), or a file to read.
    pub path: PathBuf,
    /// Size of the data file that is made.
    pub file_bytes: u64,
    /// Bytes a read.
    pub block_bytes: usize,
    /// Reads in flight.
    pub depths: Vec<usize>,
    /// Seconds a run.
    pub seconds: f64,
    /// Runs of each side at each depth.
    pub repeats: usize,
    /// Processor that both sides are pinned to; `None` for the last one allowed.
    pub processor: Option<usize>,
}

impl IoBenchOptions {
    /// 4 GiB, 16 KiB reads, depths 1, 4, 16, 64 and 256, five runs of five seconds.
    pub fn new(path: impl Into<PathBuf>) -> IoBenchOptions {
        IoBenchOptions {
            path: path.into(),
            file_bytes: 4 << 30,
            block_bytes: 16 << 10,
            depths: vec![1, 4, 16, 64, 256],
            seconds: 5.0,
            repeats: 5,
            processor: None,
        }
    }

    /// 512 MiB, depths 1, 64 and 256, three runs of one second: well under a minute.
    pub fn quick(path: impl Into<PathBuf>) -> IoBenchOptions {
        IoBenchOptions {
            file_bytes: 512 << 20,
            depths: vec![1, 64, 256],
            seconds: 1.0,
            repeats: 3,
            ..IoBenchOptions::new(path)
        }
    }

    fn check(&self) -> Result<()> {
        let is_usable = self.block_bytes.is_power_of_two()
            && (4096..=1 << 20).contains(&self.block_bytes)
            && self.file_bytes >= 4 * self.block_bytes as u64
            && self.depths.iter().all(|depth| (1..=4096).contains(depth))
            && !self.depths.is_empty()
            && self.seconds >= 0.1
            && self.repeats > 0;
        if is_usable {
            return Ok(());
        }
        Err(Error::new(
            ErrorKind::InvalidInput,
            "cannot run: blocks are a power of two from 4 KiB to 1 MiB, the file holds at least four, depths are 1 to 4096, \
             runs last 0.1 s or more",
        ))
    }
}

/// One run of one side.
#[derive(Debug, Clone, Serialize)]
pub struct Run {
    /// `fio` or `tanada`.
    pub side: &'static str,
    /// Reads in flight.
    pub depth: usize,
    /// Which repeat.
    pub repeat: usize,
    /// Reads a second.
    pub iops: f64,
    /// Mean latency.
    pub latency_us_mean: f64,
    /// Median latency.
    pub latency_us_p50: f64,
    /// Latency of the slowest hundredth.
    pub latency_us_p99: f64,
    /// Processor time a read, user and kernel.
    pub cpu_us_per_io: f64,
}

/// Runs the benchmark. `progress` is told before each run what comes.
///
/// # Errors
/// If fio is not installed, the file cannot be made or read, or options make no sense.
pub fn run(options: &IoBenchOptions, mut progress: impl FnMut(&str)) -> Result<Report> {
    options.check()?;
    let fio = Fio::find()?;
    progress(&format!("making a file of {} MiB in {}", options.file_bytes >> 20, options.path.display()));
    let file = DataFile::prepare(&options.path, options.file_bytes)?;
    let processor = match options.processor {
        Some(processor) => processor,
        None => ours::last_processor()?,
    };
    let mut runs = Vec::new();
    for repeat in 0..options.repeats {
        for depth in &options.depths {
            progress(&format!("depth {depth}, run {} of {}", repeat + 1, options.repeats));
            let side = Side { options, file: &file, processor, depth: *depth, repeat, seed: fresh_seed() };
            // Who goes first alternates too: the second may find the device warmer.
            if repeat % 2 == 0 {
                runs.push(fio.run(&side)?);
                runs.push(ours::run(&side)?);
            } else {
                runs.push(ours::run(&side)?);
                runs.push(fio.run(&side)?);
            }
        }
    }
    Ok(report(options, &file, &fio, processor, &runs))
}

/// What one side is asked to do.
struct Side<'a> {
    options: &'a IoBenchOptions,
    file: &'a DataFile,
    processor: usize,
    depth: usize,
    repeat: usize,
    seed: u64,
}

/// A seed that no earlier run had: blocks read before may be cached below this machine.
fn fresh_seed() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    SplitMix64::new(now.as_nanos() as u64).next_u64() >> 16
}

fn report(options: &IoBenchOptions, file: &DataFile, fio: &Fio, processor: usize, runs: &[Run]) -> Report {
    let mut report = Report::new("io", options, file.path());
    if let Some(settings) = report.settings.as_object_mut() {
        settings.insert("fio".to_owned(), fio.version().into());
        settings.insert("processor".to_owned(), processor.into());
    }
    runs.iter().for_each(|run| report.add_run(run));
    let of = |side: &str, depth: usize, figure: fn(&Run) -> f64| {
        median(runs.iter().filter(|run| run.side == side && run.depth == depth).map(figure))
    };
    let titles =
        ["depth", "fio IOPS", "tanada IOPS", "ratio", "fio us", "tanada us", "fio CPU us", "tanada CPU us"];
    let mut table = Table::new(&titles);
    for depth in options.depths.iter().copied() {
        let both = |figure: fn(&Run) -> f64| (of("fio", depth, figure), of("tanada", depth, figure));
        let (fio_iops, our_iops) = both(|run| run.iops);
        let (fio_latency, our_latency) = both(|run| run.latency_us_mean);
        let (fio_cpu, our_cpu) = both(|run| run.cpu_us_per_io);
        table.add(vec![
            depth.to_string(),
            format!("{fio_iops:.0}"),
            format!("{our_iops:.0}"),
            format!("{:.3}", our_iops / fio_iops),
            format!("{fio_latency:.1}"),
            format!("{our_latency:.1}"),
            format!("{fio_cpu:.1}"),
            format!("{our_cpu:.1}"),
        ]);
        match depth {
            1 => report.summarize("added_latency_us_depth_1", our_latency - fio_latency),
            _ => report.summarize(&format!("uring_of_fio_depth_{depth}"), our_iops / fio_iops),
        }
    }
    report.tables.push(table);
    report
}
