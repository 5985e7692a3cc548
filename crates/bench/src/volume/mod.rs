//! `tanada bench volume`: what a tiered volume costs against the bare devices below it.
//!
//! 1. *Through*: the same reads and writes on an object of a one-class volume and on a file beside it, taking turns;
//!    medians of the rounds.
//! 2. *Moving*: chunks move between two classes; beside it a plain copy between two files, and the device's own
//!    bandwidth. Then random reads, alone and while chunks move under the default budget, taking turns. And the same
//!    between two emulated devices, a QLC SSD and an NVMe SSD, in virtual time: there the moves are measured while
//!    random reads go on, of the faster device and then of the slower one.
//! 3. *Opening*: a volume of a million chunks, mapped in random order. Its metadata are on the device; of its class
//!    only the label is kept, since opening reads nothing else of it.
//!
//! 4. *Transforms*: writes of an object with LZ4 against one without, on an emulated SATA SSD in virtual time; random
//!    reads of both.
//!
//! Everything lies in one folder, so on one disk: there, a move reads and writes the same device, and a plain copy is
//! what it can reach.

mod blank;
mod load;
mod moving;
mod opening;
mod stage;
mod through;
mod transforms;

use std::path::PathBuf;

use serde::Serialize;
use tanada_io::{ExecutorOptions, Executors};

use crate::{Error, ErrorKind, Result};
use stage::Stage;
use tanada_report::{Report, Table, median};

/// Settings of the benchmark.
#[derive(Debug, Clone, Serialize)]
pub struct VolumeBenchOptions {
    /// A folder to make files in; they are removed afterwards.
    pub directory: PathBuf,
    /// Bytes of the object that is read and written.
    pub data_bytes: u64,
    /// Chunks of 1 MiB that are moved.
    pub moves: u64,
    /// Seconds a run.
    pub seconds: f64,
    /// Rounds; in each, every side runs once.
    pub rounds: usize,
    /// Chunks of the volume that is opened.
    pub opened_chunks: u64,
}

impl VolumeBenchOptions {
    /// 2 GiB, 1,000 moves, five rounds of three seconds.
    pub fn new(directory: impl Into<PathBuf>) -> VolumeBenchOptions {
        VolumeBenchOptions {
            directory: directory.into(),
            data_bytes: 2 << 30,
            moves: 1000,
            seconds: 3.0,
            rounds: 5,
            opened_chunks: 1_000_000,
        }
    }

    /// 512 MiB, 250 moves, three rounds of half a second: under a minute.
    pub fn quick(directory: impl Into<PathBuf>) -> VolumeBenchOptions {
        VolumeBenchOptions {
            data_bytes: 512 << 20,
            moves: 250,
            seconds: 0.5,
            rounds: 3,
            ..VolumeBenchOptions::new(directory)
        }
    }

    fn check(&self) -> Result<()> {
        let is_usable = self.rounds > 0
            && self.seconds >= 0.1
            && self.moves > 0
            && self.moves << 20 <= self.data_bytes
            && self.data_bytes.is_multiple_of(1 << 20)
            && (256..=10_000_000).contains(&self.opened_chunks);
        if is_usable {
            return Ok(());
        }
        let message = "cannot run: there is at least one round of 0.1 s, and the data are whole MiB, at least one for each move";
        Err(Error::new(ErrorKind::InvalidInput, message))
    }
}

/// One run of one side.
#[derive(Debug, Clone, Serialize)]
pub struct Run {
    /// What is measured: a key of the summary, or what it is compared with.
    pub what: &'static str,
    /// `device` or `volume`.
    pub side: &'static str,
    /// Which round.
    pub round: usize,
    /// I/Os a second.
    pub ios_per_second: f64,
    /// Bytes a second, in MiB.
    pub mib_per_second: f64,
    /// Median latency; 0 where it is not measured.
    pub latency_us_p50: f64,
    /// Latency of the slowest hundredth.
    pub latency_us_p99: f64,
    /// Seconds it took.
    pub seconds: f64,
}

/// Runs the benchmark. `progress` is told before each part what comes.
///
/// # Errors
/// If files cannot be made in the folder, a device fails, or options make no sense.
pub fn run(options: &VolumeBenchOptions, progress: fn(&str)) -> Result<Report> {
    options.check()?;
    let executors = Executors::start(ExecutorOptions { threads: 1, ..ExecutorOptions::default() })
        .map_err(|error| Error::failed(error.to_string()))?;
    let mut runs = Vec::new();
    for part in ["reading and writing", "moving", "opening", "transforms"] {
        let stage = Stage::new(options, &executors)?;
        let measured = executors.block_on(move || async move {
            match part {
                "reading and writing" => through::run(&stage, progress).await,
                "transforms" => transforms::run(&stage, progress).await,
                "moving" => moving::run(&stage, progress).await,
                _ => opening::run(&stage, progress).await,
            }
        });
        runs.extend(measured.map_err(|error| Error::failed(error.to_string()))??);
    }
    Ok(report(options, &runs))
}

/// What of a run counts.
type Figure = fn(&Run) -> f64;

fn report(options: &VolumeBenchOptions, runs: &[Run]) -> Report {
    let mut report = Report::new("volume", options, &options.directory);
    runs.iter().for_each(|run| report.add_run(run));
    let of = |what: &str, side: &str, figure: Figure| {
        median(runs.iter().filter(|run| run.what == what && run.side == side).map(figure))
    };
    let mut table = Table::new(&["", "device", "volume", "unit"]);
    let figures: [(&str, &str, Figure); 20] = [
        ("random_16k_depth_64", "IOPS", |run| run.ios_per_second),
        ("random_16k_depth_1", "us", |run| run.latency_us_p50),
        ("sequential_read", "MiB/s", |run| run.mib_per_second),
        ("sequential_write", "MiB/s", |run| run.mib_per_second),
        ("copy_or_move", "MiB/s", |run| run.mib_per_second),
        ("foreground_alone", "IOPS", |run| run.ios_per_second),
        ("foreground_while_moving", "IOPS", |run| run.ios_per_second),
        ("model_read", "MiB/s", |run| run.mib_per_second),
        ("model_write", "MiB/s", |run| run.mib_per_second),
        ("model_move", "MiB/s", |run| run.mib_per_second),
        ("model_foreground_alone", "IOPS", |run| run.ios_per_second),
        ("model_foreground_while_moving", "IOPS", |run| run.ios_per_second),
        ("model_moved_beside", "MiB/s", |run| run.mib_per_second),
        ("model_slower_foreground_alone", "IOPS", |run| run.ios_per_second),
        ("model_slower_foreground_while_moving", "IOPS", |run| run.ios_per_second),
        ("model_moved_beside_slower_foreground", "MiB/s", |run| run.mib_per_second),
        ("none_write", "MiB/s", |run| run.mib_per_second),
        ("lz4_write", "MiB/s", |run| run.mib_per_second),
        ("none_read", "us", |run| run.latency_us_p50),
        ("lz4_read", "us", |run| run.latency_us_p50),
    ];
    for (what, unit, figure) in figures {
        let cell = |side| match of(what, side, figure) {
            0.0 => String::new(),
            value => format!("{value:.0}"),
        };
        table.add(vec![what.replace('_', " "), cell("device"), cell("volume"), unit.to_owned()]);
    }
    let ratio = |what: &str, figure: Figure| of(what, "volume", figure) / of(what, "device", figure);
    let latency: Figure = |run| run.latency_us_p50;
    let bandwidth: Figure = |run| run.mib_per_second;
    let iops: Figure = |run| run.ios_per_second;
    let slower = of("model_write", "device", bandwidth).min(of("model_read", "device", bandwidth));
    let loss = |during: &str, alone: &str| 1.0 - of(during, "volume", iops) / of(alone, "volume", iops);
    let summary = [
        ("read_iops_of_device", ratio("random_16k_depth_64", iops)),
        (
            "added_latency_us",
            of("random_16k_depth_1", "volume", latency) - of("random_16k_depth_1", "device", latency),
        ),
        ("sequential_read_of_device", ratio("sequential_read", bandwidth)),
        ("sequential_write_of_device", ratio("sequential_write", bandwidth)),
        ("move_bandwidth_of_slower", of("model_moved_beside", "volume", bandwidth) / slower),
        ("foreground_loss_while_moving", loss("model_foreground_while_moving", "model_foreground_alone")),
        ("move_bandwidth_alone_of_slower", of("model_move", "volume", bandwidth) / slower),
        (
            "move_bandwidth_beside_slower_foreground",
            of("model_moved_beside_slower_foreground", "volume", bandwidth) / slower,
        ),
        (
            "slower_foreground_loss_while_moving",
            loss("model_slower_foreground_while_moving", "model_slower_foreground_alone"),
        ),
        ("move_bandwidth_of_copy", ratio("copy_or_move", bandwidth)),
        ("moved_mib_per_second_beside_foreground", of("model_moved_beside", "volume", bandwidth)),
        ("foreground_loss_on_one_disk", loss("foreground_while_moving", "foreground_alone")),
        ("moved_mib_per_second_on_one_disk", of("moved_beside", "volume", bandwidth)),
        ("lz4_write_over_none", of("lz4_write", "volume", bandwidth) / of("none_write", "volume", bandwidth)),
        ("decompress_added_us", of("lz4_read", "volume", latency) - of("none_read", "volume", latency)),
        (
            if options.opened_chunks == 1_000_000 { "open_seconds_1m_chunks" } else { "open_seconds" },
            of("open", "volume", |run| run.seconds),
        ),
    ];
    summary.into_iter().for_each(|(key, value)| report.summarize(key, value));
    report.tables.push(table);
    report
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_small_run_fills_in_every_key() {
        let folder = tempfile::tempdir().unwrap();
        let options = VolumeBenchOptions {
            data_bytes: 8 << 20,
            moves: 4,
            seconds: 0.1,
            rounds: 1,
            opened_chunks: 4096,
            ..VolumeBenchOptions::new(folder.path())
        };
        let report = run(&options, |_| {}).unwrap();
        for key in [
            "read_iops_of_device",
            "added_latency_us",
            "sequential_read_of_device",
            "sequential_write_of_device",
            "move_bandwidth_of_slower",
            "foreground_loss_while_moving",
            "lz4_write_over_none",
            "decompress_added_us",
            "open_seconds",
        ] {
            assert!(report.summary[key].as_f64().is_some_and(f64::is_finite), "{key}: {:?}", report.summary);
        }
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "nothing is left behind");
        assert!(run(&VolumeBenchOptions { moves: 9, ..options }, |_| {}).is_err());
    }
}
