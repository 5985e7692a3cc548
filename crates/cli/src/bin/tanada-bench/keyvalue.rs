//! `tanada bench ycsb`, `tanada bench hse` and `tanada bench kv-open`.

use std::path::{Path, PathBuf};

use clap::Args;
use tanada::failure::{Failure, Outcome};
use tanada_base::ByteSize;
use tanada_report::Report;
use tanada_ycsb::ErrorKind;
use tanada_ycsb::bench::{
    HseOptions, OpeningJob, OpeningOptions, Peer, YcsbOptions, html, run_hse, run_opening, run_ycsb_with,
};
use tanada_ycsb::drive::Clients;
use tanada_ycsb::media::MediaKind;
use tanada_ycsb::workload::{Distribution, Workload};

use crate::progress;

/// What the benchmarks that run workloads are told.
#[derive(Debug, Args)]
pub struct Common {
    /// End in about a minute; figures are rougher
    #[arg(long)]
    quick: bool,
    /// Write the whole result as JSON; - is stdout
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// Draw the result as a page
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
    /// A folder for the data while it runs
    #[arg(long, value_name = "DIR", default_value = ".")]
    dir: PathBuf,
    /// Records of 1,000 bytes
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    records: Option<u64>,
    /// Operations of each workload, at most
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    operations: Option<u64>,
    /// Workloads and their order, as in acf
    #[arg(long, value_name = "LETTERS", value_parser = workloads)]
    workloads: Option<Workloads>,
    /// Memory of an engine
    #[arg(long, value_name = "SIZE")]
    memory: Option<ByteSize>,
    /// How often all is done
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    rounds: Option<u64>,
}

#[derive(Debug, Clone)]
struct Workloads(Vec<Workload>);

fn workloads(letters: &str) -> Result<Workloads, String> {
    let parsed = letters.chars().map(|letter| letter.to_string().parse::<Workload>());
    let parsed = parsed.collect::<Result<Vec<_>, _>>().map_err(|error| error.to_string())?;
    match parsed.iter().enumerate().find(|(no, workload)| parsed[..*no].contains(workload)) {
        _ if parsed.is_empty() => Err("name at least one of a, b, c, d, e, f".to_owned()),
        Some((_, twice)) => Err(format!("{twice} is named twice")),
        None => Ok(Workloads(parsed)),
    }
}

/// A number from 0 on, which "nan" and "inf" are not.
fn number(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(value) if value.is_finite() && value >= 0.0 => Ok(value),
        _ => Err("a number from 0 on is wanted".to_owned()),
    }
}

fn distribution(text: &str) -> Result<Distribution, String> {
    text.parse().map_err(|error: tanada_ycsb::Error| error.to_string())
}

/// Arguments of `tanada bench ycsb`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tanada bench ycsb --quick
  tanada bench ycsb --dir /mnt/nvme --against rocksdb --json ycsb.json --html ycsb.html
  tanada bench ycsb --against rocksdb,fjall --distribution uniform
  tanada bench ycsb --tasks 256 --workloads c        # 256 requests in flight instead of 96
  tanada bench ycsb --threads 4                      # four clients that wait, each a thread

Without arguments:
  2000000 records of 1000 B (1.9 GiB), 384 MiB of memory for each engine, 2.9 GiB of staging, on loop devices that are limited to the speed of a class
  96 requests in flight; writes durable within 100 ms; of each workload at most 10000000 operations and 20 s, after 20 s that are not measured
  three rounds of workloads abcfde; folders instead of devices without root
With --quick:
  250000 records of 1000 B (243.9 MiB), 64 MiB of memory for each engine, 365 MiB of staging, on loop devices that are limited to the speed of a class
  96 requests in flight; writes durable within 100 ms; of each workload at most 10000000 operations and 1 s
  one round

RocksDB and fjall are in a program of their own, which is not built by default:
cargo build --release --manifest-path crates/compare/Cargo.toml, then put tanada-compare beside tanada.")]
pub struct YcsbArguments {
    #[command(flatten)]
    pub common: Common,
    /// Other engines beside it, separated by commas
    #[arg(long, value_name = "ENGINE,ENGINE", value_delimiter = ',', value_parser = ["rocksdb", "rocksdb-usual-levels", "rocksdb-blob", "fjall"])]
    against: Vec<String>,
    /// What the data lie on: limited (devices of a known speed, needs root), unlimited (the same without limits),
    /// folder
    #[arg(long, value_name = "MEDIA", value_parser = media)]
    media: Option<MediaKind>,
    /// Classes: staging (and capacity), capacity (alone), or both in turn
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = ["staging", "capacity"])]
    tiers: Vec<String>,
    /// Clients that wait, each a thread
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=10_000), conflicts_with = "tasks")]
    threads: Option<u64>,
    /// Requests in flight, without threads; other engines get as many threads
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=100_000))]
    tasks: Option<u64>,
    /// Operations a second that are due: latencies count from then on; 0 for as many as clients can do
    #[arg(long, value_name = "RATE", value_parser = number)]
    target: Option<f64>,
    /// Seconds of each workload, at most; 0 for no end but that of --operations
    #[arg(long, value_name = "SECONDS", value_parser = number)]
    seconds: Option<f64>,
    /// Seconds that each workload runs before it is measured
    #[arg(long, value_name = "SECONDS", value_parser = number)]
    warm_up: Option<f64>,
    /// What an engine may use of the staging class, as a share of the data
    #[arg(long, value_name = "SHARE", value_parser = number)]
    staging_share: Option<f64>,
    /// Choose records otherwise than the workloads do: zipfian, latest, uniform, hotspot, sequential
    #[arg(long, value_name = "NAME", value_parser = distribution)]
    distribution: Option<Distribution>,
    /// Updates change one field, which means reading the record first, instead of replacing all fields
    #[arg(long)]
    update_one_field: bool,
    /// Writes are durable after so many milliseconds at the latest; 0 for before they are acknowledged
    #[arg(long, value_name = "MS", value_parser = clap::value_parser!(u16).range(0..=1000))]
    durable_within: Option<u16>,
}

fn media(text: &str) -> Result<MediaKind, String> {
    match text {
        "limited" => Ok(MediaKind::Limited),
        "unlimited" => Ok(MediaKind::Unlimited),
        "folder" => Ok(MediaKind::Folder),
        other => Err(format!("{other} is none of limited, unlimited, folder")),
    }
}

/// Arguments of `tanada bench hse`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tanada bench hse --quick
  tanada bench hse --dir /mnt/nvme --json hse.json --html hse.html

Without arguments, one round of workloads abcdf:
  1000000 records of 1000 B (975.6 MiB), 128 MiB of memory, 4xsata-qlc with nvme before it and without, emulated in virtual time
  96 clients; 1000000 operations of each workload; only devices take time
With --quick, one round of workloads af:
  50000 records of 1000 B (48.8 MiB), 16 MiB of memory, 4xsata-qlc with nvme before it and without, emulated in virtual time
  96 clients; 30000 operations of each workload; only devices take time")]
pub struct HseArguments {
    #[command(flatten)]
    pub common: Common,
    /// Let the processor's time pass as well as the devices'
    #[arg(long)]
    cpu: bool,
}

/// Arguments of `tanada bench kv-open`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tanada bench kv-open --quick
  tanada bench kv-open --dir /mnt/nvme --json kv-open.json
  tanada bench kv-open --sizes 100GB --divide-by 1      # whole key files: 4 GB, in some minutes

A database of 10 TB has as many leaves, kvsets, segments and chunks as one of 40 GB whose sizes are all divided by 256. That one is made, past the log
and with values that are zeros and lie in memory; an opening reads no values. Keys, log and manifest lie in the folder: about a thirtieth of the
bytes, and 1 GiB of log.")]
pub struct OpenArguments {
    /// End in well under a minute, with 10 GB and 100 GB
    #[arg(long)]
    quick: bool,
    /// Write the whole result as JSON; - is stdout
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// A folder for files while it runs
    #[arg(long, value_name = "DIR", default_value = ".")]
    dir: PathBuf,
    /// Bytes that databases stand for, separated by commas
    #[arg(long, value_name = "SIZE,SIZE", value_delimiter = ',')]
    sizes: Vec<ByteSize>,
    /// What all sizes are divided by, a power of two
    #[arg(long, value_name = "N")]
    divide_by: Option<u64>,
    /// Size of a volume's chunk before it is divided
    #[arg(long, value_name = "SIZE")]
    chunk_size: Option<ByteSize>,
    /// Keys that are written again, at random, after the load
    #[arg(long, value_name = "N")]
    updates: Option<u64>,
    /// Log that may have to be replayed
    #[arg(long, value_name = "SIZE")]
    replay: Option<ByteSize>,
    /// Openings of each
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    rounds: Option<u32>,
    /// Do one opening, as this program tells itself on standard input
    #[arg(long, hide = true, conflicts_with_all = ["quick", "json", "dir", "sizes"])]
    job: bool,
}

pub(super) fn open(arguments: OpenArguments) -> Outcome {
    let OpenArguments { quick, json, dir, sizes, divide_by, chunk_size, updates, replay, rounds, job } =
        arguments;
    if job {
        return one_opening();
    }
    let mut options = if quick { OpeningOptions::quick(dir) } else { OpeningOptions::new(dir) };
    if !sizes.is_empty() {
        options.sizes = sizes.into_iter().map(ByteSize::bytes).collect();
    }
    options.divisor = divide_by.unwrap_or(options.divisor);
    options.chunk_bytes = chunk_size.map_or(options.chunk_bytes, ByteSize::bytes);
    options.updates = updates.unwrap_or(options.updates);
    options.replay_bytes = replay.map_or(options.replay_bytes, ByteSize::bytes);
    options.rounds = rounds.map_or(options.rounds, |rounds| rounds as usize);
    let own = std::env::current_exe()
        .map_err(|error| Failure::failed(format!("cannot find this program: {error}")))?;
    options.program = [own.into(), "kv-open".into(), "--job".into()].into();
    let report = run_opening(&options, progress).map_err(failure)?;
    publish(&report, json.as_deref(), None)
}

fn one_opening() -> Outcome {
    tanada_io::give_memory_back_at_once();
    let told =
        |error: serde_json::Error| Failure::usage(format!("--job is for this program's own use: {error}"));
    let job: OpeningJob = serde_json::from_reader(std::io::stdin()).map_err(told)?;
    let opening = job.perform().map_err(failure)?;
    let text = serde_json::to_string(&opening).map_err(|error| Failure::failed(error.to_string()))?;
    tanada::output::say(&text)
}

pub(super) fn ycsb(arguments: YcsbArguments) -> Outcome {
    tanada_io::give_memory_back_at_once();
    let YcsbArguments {
        common,
        against,
        media,
        tiers,
        threads,
        tasks,
        target,
        seconds,
        warm_up,
        staging_share,
        distribution,
        update_one_field,
        durable_within,
    } = arguments;
    let mut options =
        if common.quick { YcsbOptions::quick(&common.dir) } else { YcsbOptions::new(&common.dir) };
    options.records.count = common.records.unwrap_or(options.records.count);
    options.operations = common.operations.unwrap_or(options.operations);
    options.rounds = common.rounds.map_or(options.rounds, |rounds| rounds as usize);
    options.memory_bytes = common.memory.map_or(options.memory_bytes, ByteSize::bytes);
    options.seconds = seconds.unwrap_or(options.seconds);
    options.warm_up_s = warm_up.unwrap_or(options.warm_up_s);
    options.staging_share = staging_share.unwrap_or(options.staging_share);
    options.target_per_second = target.unwrap_or(options.target_per_second);
    options.media = media.unwrap_or(options.media);
    options.distribution = distribution;
    options.update_all_fields = !update_one_field;
    options.durable_within_ms = durable_within.unwrap_or(options.durable_within_ms);
    if let Some(Workloads(workloads)) = common.workloads {
        options.workloads = workloads;
    }
    if !tiers.is_empty() {
        options.tiers = tiers;
    }
    options.clients = match (threads, tasks) {
        (_, Some(tasks)) => Clients::Tasks(tasks as usize),
        (Some(threads), None) => Clients::Threads(threads as usize),
        (None, None) => options.clients,
    };
    let peers = against.iter().map(|engine| Peer::beside_this_program(engine));
    options.against = peers.collect::<Result<_, _>>().map_err(failure)?;
    let file = common.json.clone().filter(|path| path != Path::new("-"));
    // A round that fails leaves those before it.
    let save = |report: &Report| match &file {
        Some(path) => std::fs::write(path, report.to_json() + "\n").map_err(|error| {
            tanada_ycsb::Error::new(ErrorKind::Failed, format!("cannot write {}: {error}", path.display()))
        }),
        None => Ok(()),
    };
    let report = run_ycsb_with(&options, progress, save).map_err(failure)?;
    publish(&report, common.json.as_deref(), common.html.as_deref())
}

pub(super) fn hse(arguments: HseArguments) -> Outcome {
    tanada_io::give_memory_back_at_once();
    let HseArguments { common, cpu } = arguments;
    let mut options =
        if common.quick { HseOptions::quick(&common.dir) } else { HseOptions::new(&common.dir) };
    options.cpu = cpu;
    options.records.count = common.records.unwrap_or(options.records.count);
    options.operations = common.operations.unwrap_or(options.operations);
    options.rounds = common.rounds.map_or(options.rounds, |rounds| rounds as usize);
    options.memory_bytes = common.memory.map_or(options.memory_bytes, ByteSize::bytes);
    if let Some(Workloads(workloads)) = common.workloads {
        options.workloads = workloads;
    }
    let report = run_hse(&options, progress).map_err(failure)?;
    publish(&report, common.json.as_deref(), common.html.as_deref())
}

fn failure(error: tanada_ycsb::Error) -> Failure {
    if error.kind() == ErrorKind::InvalidInput { Failure::usage(error) } else { Failure::failed(error) }
}

fn publish(report: &Report, json: Option<&Path>, page: Option<&Path>) -> Outcome {
    let write = |path: &Path, text: String| {
        std::fs::write(path, text)
            .map_err(|error| Failure::failed(format!("cannot write {}: {error}", path.display())))
    };
    let whole = report.to_json() + "\n";
    let is_told = json != Some(Path::new("-"));
    // What people read first: it is not lost with a file that cannot be written.
    tanada::output::say(&if is_told { report.to_string() } else { whole.clone() })?;
    if let Some(path) = json.filter(|_| is_told) {
        write(path, whole)?;
    }
    match page {
        Some(path) => write(path, html(report).map_err(failure)?),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn help_shows_the_defaults_of_benchmarks() {
        fn help_of<T: Args>() -> String {
            let command = T::augment_args(clap::Command::new("bench"));
            command.get_after_help().map(ToString::to_string).unwrap_or_default()
        }
        let lines = |setting: String| setting.replace('\n', "\n  ");
        let help = help_of::<YcsbArguments>();
        for options in [YcsbOptions::new(""), YcsbOptions::quick("")] {
            let options = YcsbOptions { media: MediaKind::Limited, ..options };
            let setting = lines(options.to_string());
            assert!(help.contains(&setting), "{setting}\n{help}");
        }
        let help = help_of::<HseArguments>();
        for options in [HseOptions::new(""), HseOptions::quick("")] {
            let setting = lines(options.to_string());
            assert!(help.contains(&setting), "{setting}\n{help}");
        }
    }
}
