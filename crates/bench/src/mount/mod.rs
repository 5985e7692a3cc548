//! `tanada bench mount`: what a mounted volume costs against a plain FUSE passthrough and against the file system
//! below.
//!
//! fio reads and writes the same amount of data in a file of each, taking turns: the plain file; the same file through
//! a passthrough of the same library; and a file of a volume that is mounted, without compression. All with O_DIRECT.

mod passthrough;
pub(crate) mod served;

use std::path::{Path, PathBuf};
use std::process::Command;

use serde::Serialize;
use served::Served;
use tanada_mount::kernel_refusal;

use crate::{Error, ErrorKind, Result};
use tanada_report::{Report, Table, median};

const SIDES: [&str; 3] = ["plain", "passthrough", "mount"];

/// What is measured: name, fio's workload, bytes of an I/O, I/Os in flight.
const WORKLOADS: [(&str, &str, &str, u32); 5] = [
    ("random_16k_depth_1", "randread", "16k", 1),
    ("random_16k_depth_16", "randread", "16k", 16),
    ("random_write_16k_depth_16", "randwrite", "16k", 16),
    ("sequential_read", "read", "1m", 4),
    ("sequential_write", "write", "1m", 4),
];

/// Settings of the benchmark.
#[derive(Debug, Clone, Serialize)]
pub struct MountBenchOptions {
    /// A folder to make files in; they are removed afterwards.
    pub directory: PathBuf,
    /// Bytes of each file.
    pub data_bytes: u64,
    /// Seconds a run.
    pub seconds: f64,
    /// Rounds; in each, every side runs once.
    pub rounds: usize,
    /// Threads that read the kernel's requests, of the volume and of the passthrough.
    pub threads: usize,
}

impl MountBenchOptions {
    /// 2 GiB, five rounds of five seconds.
    pub fn new(directory: impl Into<PathBuf>) -> MountBenchOptions {
        let threads = std::thread::available_parallelism().map_or(2, usize::from);
        let (data_bytes, seconds, rounds) = (2 << 30, 5.0, 5);
        MountBenchOptions { directory: directory.into(), data_bytes, seconds, rounds, threads }
    }

    /// 256 MiB, three rounds of a second: about a minute.
    pub fn quick(directory: impl Into<PathBuf>) -> MountBenchOptions {
        MountBenchOptions {
            data_bytes: 256 << 20,
            seconds: 1.0,
            rounds: 3,
            ..MountBenchOptions::new(directory)
        }
    }
}

/// One run of one side.
#[derive(Debug, Clone, Serialize)]
pub struct Run {
    /// What is measured.
    pub what: &'static str,
    /// `plain`, `passthrough` or `mount`.
    pub side: &'static str,
    /// Which round.
    pub round: usize,
    /// I/Os a second.
    pub ios_per_second: f64,
    /// Bytes a second, in MiB.
    pub mib_per_second: f64,
    /// Mean latency.
    pub latency_us_mean: f64,
}

/// The three sides, and what serves them.
struct Sides {
    paths: [PathBuf; 3],
    passthrough: fuser::BackgroundSession,
    served: Served,
    // Last: its files are in use until then.
    _folder: tempfile::TempDir,
}

impl Sides {
    fn new(options: &MountBenchOptions) -> Result<Sides> {
        let folder = tempfile::Builder::new()
            .prefix("tanada-bench-mount-")
            .tempdir_in(&options.directory)
            .map_err(|error| Error::at_path("make a folder in", &options.directory, &error))?;
        let (plain, through) = (folder.path().join("plain"), folder.path().join("through"));
        std::fs::create_dir(&through).map_err(|error| Error::at_path("make", &through, &error))?;
        fill(&plain, options.data_bytes)?;
        let served = Served::new(folder.path(), options.data_bytes + (64 << 20), options.threads)?;
        let mounted = served.root().join("data");
        fill(&mounted, options.data_bytes)?;
        let passthrough = passthrough::mount(&plain, &through, options.threads)
            .map_err(|error| Error::failed(format!("cannot mount the passthrough: {error}")))?;
        let paths = [plain, through.join(passthrough::NAME), mounted];
        Ok(Sides { paths, passthrough, served, _folder: folder })
    }

    fn end(self) -> Result<()> {
        let ended = self.passthrough.umount_and_join();
        ended.map_err(|error| Error::failed(format!("cannot unmount the passthrough: {error}")))?;
        self.served.end()
    }
}

/// A file full of bytes that no layer can leave out.
fn fill(path: &Path, bytes: u64) -> Result<()> {
    use std::io::Write;
    let mut random = tanada_base::SplitMix64::new(bytes);
    let mut piece = vec![0; 1 << 20];
    let mut file = std::fs::File::create(path).map_err(|error| Error::at_path("make", path, &error))?;
    for _ in 0..bytes >> 20 {
        random.fill(&mut piece);
        file.write_all(&piece).map_err(|error| Error::at_path("write", path, &error))?;
    }
    file.sync_all().map_err(|error| Error::at_path("sync", path, &error))
}

/// Runs the benchmark. `progress` is told before each part what comes.
///
/// # Errors
/// If nothing can be mounted here, fio is missing, or files cannot be made in the folder.
pub fn run(options: &MountBenchOptions, progress: fn(&str)) -> Result<Report> {
    if let Some(why) = kernel_refusal() {
        return Err(Error::failed(format!("volumes cannot be mounted here: {why}")));
    }
    if options.rounds == 0 || options.seconds < 0.1 || options.data_bytes < 16 << 20 {
        let why = "there is at least one round of 0.1 s, and the data are at least 16 MiB";
        return Err(Error::new(ErrorKind::InvalidInput, why));
    }
    progress("writing the files");
    let sides = Sides::new(options)?;
    let mut runs = Vec::new();
    for (what, workload, block, depth) in WORKLOADS {
        progress(what);
        for round in 0..options.rounds {
            for (side, path) in SIDES.iter().zip(&sides.paths) {
                let run = fio(path, workload, block, depth, options.seconds)?;
                runs.push(Run { what, side, round, ..run });
            }
        }
    }
    sides.end()?;
    Ok(report(options, &runs))
}

/// One run of fio.
fn fio(path: &Path, workload: &str, block: &str, depth: u32, seconds: f64) -> Result<Run> {
    let output = Command::new("fio")
        .args(["--name=mount", "--ioengine=io_uring", "--direct=1", "--numjobs=1", "--randrepeat=0"])
        .args(["--norandommap=1", "--time_based=1", "--output-format=json", "--fallocate=none"])
        .arg(format!("--rw={workload}"))
        .arg(format!("--bs={block}"))
        .arg(format!("--iodepth={depth}"))
        .arg(format!("--runtime={}ms", (seconds * 1000.0).round()))
        .arg(format!("--filename={}", path.display()))
        .output()
        .map_err(|error| Error::program("fio", "fio", &error))?;
    if !output.status.success() {
        let reason = String::from_utf8_lossy(&output.stderr);
        return Err(Error::failed(format!("fio failed on {}: {}", path.display(), reason.trim())));
    }
    let start = output.stdout.iter().position(|byte| *byte == b'{').unwrap_or(0);
    let parsed: serde_json::Value = serde_json::from_slice(&output.stdout[start..])
        .map_err(|error| Error::failed(format!("fio's output is not understood: {error}")))?;
    let direction = if workload.ends_with("read") { "read" } else { "write" };
    let found = &parsed["jobs"][0][direction];
    let number = |value: &serde_json::Value| value.as_f64().unwrap_or(0.0);
    let run = Run {
        what: "",
        side: "",
        round: 0,
        ios_per_second: number(&found["iops"]),
        mib_per_second: number(&found["bw_bytes"]) / f64::from(1 << 20),
        latency_us_mean: number(&found["lat_ns"]["mean"]) / 1000.0,
    };
    if run.ios_per_second > 0.0 { Ok(run) } else { Err(Error::failed("fio did no I/O")) }
}

fn report(options: &MountBenchOptions, runs: &[Run]) -> Report {
    let mut report = Report::new("mount", options, &options.directory);
    runs.iter().for_each(|run| report.add_run(run));
    let of = |what: &str, side: &str, figure: fn(&Run) -> f64| {
        median(runs.iter().filter(|run| run.what == what && run.side == side).map(figure))
    };
    let iops: fn(&Run) -> f64 = |run| run.ios_per_second;
    let bandwidth: fn(&Run) -> f64 = |run| run.mib_per_second;
    let latency: fn(&Run) -> f64 = |run| run.latency_us_mean;
    let mut table = Table::new(&["", "plain", "passthrough", "mount", "unit"]);
    let figures = [
        ("random_16k_depth_1", "us", latency),
        ("random_16k_depth_16", "IOPS", iops),
        ("random_write_16k_depth_16", "IOPS", iops),
        ("sequential_read", "MiB/s", bandwidth),
        ("sequential_write", "MiB/s", bandwidth),
    ];
    for (what, unit, figure) in figures {
        let mut row = vec![what.replace('_', " ")];
        row.extend(SIDES.map(|side| format!("{:.0}", of(what, side, figure))));
        row.push(unit.to_owned());
        table.add(row);
    }
    let ratio =
        |what: &str, figure: fn(&Run) -> f64| of(what, "mount", figure) / of(what, "passthrough", figure);
    let summary = [
        ("iops_of_passthrough_depth_16", ratio("random_16k_depth_16", iops)),
        ("write_iops_of_passthrough_depth_16", ratio("random_write_16k_depth_16", iops)),
        ("sequential_of_passthrough", ratio("sequential_read", bandwidth)),
        ("sequential_write_of_passthrough", ratio("sequential_write", bandwidth)),
        ("latency_of_passthrough_depth_1", ratio("random_16k_depth_1", latency)),
        ("iops_depth_16", of("random_16k_depth_16", "mount", iops)),
    ];
    summary.into_iter().for_each(|(key, value)| report.summarize(key, value));
    report.tables.push(table);
    report
}
