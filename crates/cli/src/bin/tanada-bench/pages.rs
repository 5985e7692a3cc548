//! `tanada bench page-compression`: what it takes.

use std::path::PathBuf;

use clap::Args;
use tanada::failure::{Failure, Outcome};
use tanada_base::ByteSize;
use tanada_bench::page_compression::{self, PageCompressionOptions};

use super::{failure, progress, publish};

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tanada bench page-compression --quick
  tanada bench page-compression --dir /mnt/nvme --json pages.json --html pages.html
  tanada bench page-compression --arms plain,mount_none,mount_lz4 --devices disk --nodes 100000 --seconds 60

It takes root, /dev/fuse, and the packages mariadb-server and e2fsprogs. Arms: plain, row_format_compressed and
page_compressed on a file system; mount_none, mount_pages (pages, no codec), mount_lz4 and mount_zstd on a mounted
volume; with _cleaners_N behind it the volume has N cleaners. Devices: disk, which is the machine's, and models of others (docs/device-models.md).
Files are made in the folder and removed afterwards: about 2 KiB for each node, and 1 GiB.")]
pub(crate) struct PageCompressionArguments {
    /// A few minutes, on a small data set
    #[arg(long)]
    quick: bool,
    /// Write environment, settings, every run and the summary to FILE; - is stdout
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
    /// Write a page with the article's charts to FILE
    #[arg(long, value_name = "FILE")]
    pub(crate) html: Option<PathBuf>,
    /// The folder to make files in
    #[arg(long, value_name = "DIR", default_value = ".")]
    dir: PathBuf,
    /// Nodes of the graph; LinkBench says that a million of them are 1 GB
    #[arg(long, value_name = "N")]
    nodes: Option<u64>,
    /// Connections that make requests at once
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    requesters: Option<u32>,
    /// Seconds of requests
    #[arg(long, value_name = "SECONDS")]
    seconds: Option<f64>,
    /// Rounds; in each, every arm runs once on every device
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    rounds: Option<u32>,
    /// InnoDB's buffer pool
    #[arg(long, value_name = "SIZE")]
    pool: Option<ByteSize>,
    /// InnoDB's redo log
    #[arg(long, value_name = "SIZE")]
    log: Option<ByteSize>,
    /// Arms, separated by commas; all by default
    #[arg(long, value_name = "NAME,NAME", value_delimiter = ',')]
    arms: Vec<String>,
    /// Devices, separated by spaces; by default disk and sata-ssd
    #[arg(long, value_name = "MODEL", num_args = 1..)]
    devices: Vec<String>,
    /// Threads that read the kernel's requests for a volume; one for each core by default
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(1..=64))]
    threads: Option<u8>,
}

/// Runs the benchmark.
pub(crate) fn run(arguments: PageCompressionArguments) -> Outcome {
    let dir = arguments.dir;
    let mut options =
        if arguments.quick { PageCompressionOptions::quick(dir) } else { PageCompressionOptions::new(dir) };
    options.nodes = arguments.nodes.unwrap_or(options.nodes);
    options.requesters = arguments.requesters.map_or(options.requesters, |count| count as usize);
    options.seconds = arguments.seconds.unwrap_or(options.seconds);
    options.rounds = arguments.rounds.map_or(options.rounds, |rounds| rounds as usize);
    options.pool_bytes = arguments.pool.map_or(options.pool_bytes, ByteSize::bytes);
    options.log_bytes = arguments.log.map_or(options.log_bytes, ByteSize::bytes);
    options.threads = arguments.threads.map_or(options.threads, usize::from);
    if !arguments.arms.is_empty() {
        options.arms = arguments.arms;
    }
    if !arguments.devices.is_empty() {
        options.devices = arguments.devices;
    }
    let report = page_compression::run(&options, progress).map_err(failure)?;
    if let Some(path) = &arguments.html {
        let page = page_compression::html(&report).map_err(failure)?;
        std::fs::write(path, page)
            .map_err(|error| Failure::failed(format!("cannot write {}: {error}", path.display())))?;
    }
    publish(&report, arguments.json.as_deref())
}
