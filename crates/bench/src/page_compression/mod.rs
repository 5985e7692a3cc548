//! `tanada bench page-compression`: the evaluation of the article on transparent page compression.
//!
//! LinkBench's workload on MariaDB: on a plain file system without compression, with `ROW_FORMAT=COMPRESSED` and with
//! `PAGE_COMPRESSED`; on a mounted volume without compression, with pages but without a codec, with LZ4 and with
//! Zstandard. Each on the machine's disk and on an emulated device, side by side in one run; in each round every arm
//! runs once, and rounds begin with another arm each.
//!
//! How many cleaners a volume has is swept as well.
//!
//! - [`graph`] and [`access`]: which rows there are, and which are asked for; [`operation`]: what requests do;
//! - [`server`]: MariaDB with the article's settings; [`place`]: where its files lie;
//! - [`phases`] and [`arm`]: load, requests, rewrite, scan, drop.

mod access;
mod arm;
mod figures;
mod graph;
mod operation;
mod page;
mod phases;
mod place;
mod server;

use std::path::PathBuf;

use serde::Serialize;
use tanada_io::ModelSpec;
use tanada_mount::kernel_refusal;

use self::arm::{Arm, Setting};
use self::graph::Graph;
use crate::{Error, ErrorKind, Result};
use tanada_report::Report;

pub use arm::{ARMS, Run};
pub use page::html;
pub use phases::Latencies;

/// What the machine's disk is called beside emulated devices.
pub const DISK: &str = "disk";

/// Bytes that a node takes with its links, in all tables and after the rewrite, generously.
const BYTES_PER_NODE: u64 = 8 << 10;

/// What a data directory takes besides: system tables, undo logs, doublewrite area.
const BYTES_OF_SERVER: u64 = 512 << 20;

/// Settings of the benchmark.
#[derive(Debug, Clone, Serialize)]
pub struct PageCompressionOptions {
    /// A folder to make files in; they are removed afterwards.
    pub directory: PathBuf,
    /// Nodes of the graph.
    pub nodes: u64,
    /// Connections that make requests at once.
    pub requesters: usize,
    /// Seconds of requests.
    pub seconds: f64,
    /// Rounds; in each, every arm runs once on every device.
    pub rounds: usize,
    /// InnoDB's buffer pool.
    pub pool_bytes: u64,
    /// InnoDB's redo log.
    pub log_bytes: u64,
    /// The arms, of [`ARMS`].
    pub arms: Vec<String>,
    /// `disk`, and models of emulated devices.
    pub devices: Vec<String>,
    /// Threads that read the kernel's requests for a mounted volume.
    pub threads: usize,
}

impl PageCompressionOptions {
    /// A million nodes, the article's 64 requesters for five minutes, three rounds. As in the article the buffer pool
    /// holds about half of the data.
    pub fn new(directory: impl Into<PathBuf>) -> PageCompressionOptions {
        PageCompressionOptions {
            directory: directory.into(),
            nodes: 1_000_000,
            requesters: 64,
            seconds: 300.0,
            rounds: 3,
            pool_bytes: 512 << 20,
            log_bytes: 512 << 20,
            arms: ARMS.map(str::to_owned).to_vec(),
            devices: [DISK, "sata-ssd"].map(str::to_owned).to_vec(),
            threads: std::thread::available_parallelism().map_or(2, usize::from),
        }
    }

    /// 20,000 nodes, five seconds of requests, one round, two cleaners or none: some minutes.
    pub fn quick(directory: impl Into<PathBuf>) -> PageCompressionOptions {
        let has_few = |arm: &&str| !["mount_lz4_cleaners_1", "mount_lz4_cleaners_4"].contains(arm);
        PageCompressionOptions {
            arms: ARMS.into_iter().filter(has_few).map(str::to_owned).collect(),
            nodes: 20_000,
            seconds: 5.0,
            rounds: 1,
            pool_bytes: 16 << 20,
            log_bytes: 32 << 20,
            ..PageCompressionOptions::new(directory)
        }
    }

    /// What a device has to hold.
    fn capacity_bytes(&self) -> u64 {
        self.nodes * BYTES_PER_NODE + self.log_bytes + BYTES_OF_SERVER
    }

    fn arms(&self) -> Result<Vec<Arm>> {
        let arm = |name: &String| {
            let known = || format!("there is no arm {name:?}; the arms are {}", ARMS.join(", "));
            Arm::named(name).ok_or_else(|| Error::new(ErrorKind::InvalidInput, known()))
        };
        self.arms.iter().map(arm).collect()
    }

    fn check(&self) -> Result<()> {
        let invalid = |why: String| Err(Error::new(ErrorKind::InvalidInput, why));
        if self.rounds == 0 || self.seconds < 0.1 || self.requesters == 0 {
            return invalid("there is at least one round, of 0.1 s, with one requester".to_owned());
        }
        if !(100..=u64::from(u32::MAX)).contains(&self.nodes) {
            return invalid(format!("{} nodes: from 100 to {} can be had", self.nodes, u32::MAX));
        }
        if self.devices.is_empty() || self.arms.is_empty() {
            return invalid("at least one arm and one device are needed".to_owned());
        }
        for device in self.devices.iter().filter(|device| *device != DISK) {
            if let Err(error) = device.parse::<ModelSpec>() {
                return invalid(format!("{device:?} is neither {DISK} nor a model of a device: {error}"));
            }
        }
        Ok(())
    }
}

/// Runs the benchmark. `progress` is told before each part what comes. Blocks: call it from a thread that may.
///
/// # Errors
/// `InvalidInput` for settings that nothing can be run with; `Missing` without MariaDB; if volumes cannot be mounted
/// here, or an arm fails.
pub fn run(options: &PageCompressionOptions, progress: fn(&str)) -> Result<Report> {
    options.check()?;
    let arms = options.arms()?;
    if let Some(why) = kernel_refusal() {
        return Err(Error::failed(format!("the benchmark mounts volumes, which cannot be done here: {why}")));
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let runtime = runtime.map_err(|error| Error::failed(format!("cannot start the runtime: {error}")))?;
    let folder = tempfile::Builder::new()
        .prefix("tanada-bench-pages-")
        .tempdir_in(&options.directory)
        .map_err(|error| Error::at_path("make a folder in", &options.directory, &error))?;
    let template = folder.path().join("template");
    progress("making a data directory");
    server::install(&template, options)?;
    progress("making the graph");
    let graph = Graph::new(options.nodes);
    let setting = Setting { options, graph: &graph, template: &template };
    let mut runs = Vec::new();
    for round in 0..options.rounds {
        for device in &options.devices {
            let first = round % arms.len();
            for arm in arms.iter().cycle().skip(first).take(arms.len()) {
                progress(&format!("{} on {device}, round {} of {}", arm.name, round + 1, options.rounds));
                runs.push(runtime.block_on(setting.run(arm, device, round))?);
            }
        }
    }
    Ok(figures::report(options, &graph, &runs))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_that_nothing_can_be_run_with_are_refused() {
        let with = |change: fn(&mut PageCompressionOptions)| {
            let mut options = PageCompressionOptions::quick("/nowhere");
            change(&mut options);
            let error = run(&options, |_| {}).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidInput, "{error}");
            error.to_string()
        };
        assert!(with(|options| options.nodes = 5).contains("nodes"));
        assert!(with(|options| options.rounds = 0).contains("round"));
        assert!(with(|options| options.arms = vec!["mount_rot13".to_owned()]).contains("mount_lz4"));
        assert!(with(|options| options.devices = vec!["floppy".to_owned()]).contains("floppy"));
        assert!(with(|options| options.devices.clear()).contains("device"));
    }
}
