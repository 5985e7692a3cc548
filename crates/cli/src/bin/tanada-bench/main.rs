//! `tanada bench`: the benchmarks, as table on stdout and JSON in a file. `tanada` starts this program.

mod costs;
mod keyvalue;
mod pages;
mod queries;
mod tiering;

use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, Parser, Subcommand};
use tanada::failure::{Failure, Outcome, one_line};
use tanada::interruption::interruptible;
use tanada::output::writable;
use tanada_base::ByteSize;
use tanada_bench::ErrorKind;
use tanada_bench::io::IoBenchOptions;
use tanada_bench::mount::MountBenchOptions;
use tanada_bench::ooode::Settings;
use tanada_bench::volume::VolumeBenchOptions;
use tanada_io::ModelSpec;
use tanada_report::Report;
use tanada_sample::{EmulatedSettings, SAMPLES};

#[global_allocator]
static ALLOCATOR: tanada_io::Allocator = tanada_io::Allocator;

/// Measure against fio and against other servers.
#[derive(Debug, Parser)]
#[command(
    name = "tanada bench",
    bin_name = "tanada bench",
    version,
    propagate_version = true,
    subcommand_required = true
)]
struct Arguments {
    #[command(subcommand)]
    benchmark: Benchmark,
}

#[derive(Debug, Subcommand)]
enum Benchmark {
    /// Random 16 KiB reads through the I/O layer against fio, on one core
    Io(IoArguments),
    /// The first query of TPC-H over a file of rows, by each way to read it, against fio
    IoParallel(queries::IoParallelArguments),
    /// The out-of-order experiment: a join by index look-ups on cold data, in order, out of order, fio, MariaDB
    Ooode(Box<OoodeArguments>),
    /// The 22 queries of TPC-H, cold and warm, beside another build of this program
    Tpch(queries::TpchArguments),
    /// Scans of a table with instantly added and dropped columns, beside the same table rebuilt
    Instant(queries::InstantArguments),
    /// Filters, groups and joins of texts by collation, beside the same by bytes, and beside MariaDB
    Collation(queries::CollationArguments),
    /// What the cost model predicts and chooses, beside what plans take
    CostModel(costs::CostModelArguments),
    /// One join by look-ups and by hashing, from few outer rows to all, beside the choice of the cost model
    JoinChoice(costs::JoinChoiceArguments),
    /// The pre-query placement evaluation: nine queries on a small fast class, under every policy
    Pst(Box<tiering::PstArguments>),
    /// YCSB on the key-value engine, beside RocksDB or fjall
    Ycsb(Box<keyvalue::YcsbArguments>),
    /// The key-value engine with and without a staging class, on emulated devices
    Hse(Box<keyvalue::HseArguments>),
    /// How long opening a key-value database of 100 GB and of 10 TB takes, and after a stop
    KvOpen(keyvalue::OpenArguments),
    /// What a tiered volume costs against the bare device, moves of chunks, opening
    Volume(VolumeBenchArguments),
    /// What a mounted volume costs against a plain FUSE passthrough
    Mount(MountBenchArguments),
    /// LinkBench on MariaDB: compression by the server, by a mounted volume, and none
    PageCompression(Box<pages::PageCompressionArguments>),
}

/// Arguments that all benchmarks take.
#[derive(Debug, Args)]
struct Common {
    /// Under a minute, on a small data set
    #[arg(long)]
    quick: bool,
    /// Write environment, settings, every run and the summary to FILE; - is stdout
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Runs of every side
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    runs: Option<u32>,
    /// I/Os in flight, separated by commas
    #[arg(long, value_name = "N,N", value_delimiter = ',', value_parser = clap::value_parser!(u32).range(0..=4096))]
    depths: Vec<u32>,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tanada bench io --quick
  tanada bench io --path /mnt/nvme --json io.json
  tanada bench io --path /mnt/nvme/large.file --depths 1,64,256

Needs fio (Debian's package fio).")]
struct IoArguments {
    #[command(flatten)]
    common: Common,
    /// A folder to make a file in (removed afterwards), or a file to read
    #[arg(long, value_name = "PATH", default_value = ".")]
    path: PathBuf,
    /// Size of the file that is made
    #[arg(long, value_name = "SIZE")]
    size: Option<ByteSize>,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tanada bench ooode --quick                        # the bundled sample
  scripts/make-tpch work/tpch-sf1 1                 # larger files, made with MariaDB
  tanada bench ooode --innodb work/tpch-sf1/data --against mariadb --json ooode.json
  tanada bench ooode --innodb work/tpch-sf1/data --emulate 8xhdd-7200 --disks 1,2,4,8

Needs fio (package fio), and for --against mariadb the packages mariadb-server and mariadb-client.
A depth of 0 adapts. The files are only read; MariaDB gets a copy, removed afterwards.
With --emulate the files lie on disks that are not there, and the query runs in virtual time (docs/device-models.md).")]
struct OoodeArguments {
    #[command(flatten)]
    common: Common,
    /// The data directory; without it the bundled sample
    #[arg(long, value_name = "DIR", required_unless_present = "quick")]
    innodb: Option<PathBuf>,
    /// The database, where the directory has several; tpch when there is one
    #[arg(long, value_name = "NAME")]
    database: Option<String>,
    /// A file with another query whose join has an index
    #[arg(long, value_name = "FILE")]
    query: Option<PathBuf>,
    /// Another server that takes part
    #[arg(long, value_name = "SERVER", value_parser = ["mariadb"])]
    against: Option<String>,
    /// Page cache, and the server's buffer pool
    #[arg(long, value_name = "SIZE", default_value = "256MiB")]
    cache: ByteSize,
    /// Place the files on an emulated device, [N x ]PRESET[:KEY=VALUE,...], and compare in order with out of order
    /// there
    #[arg(long, value_name = "MODEL", conflicts_with = "against")]
    emulate: Option<ModelSpec>,
    /// With --emulate: members of the array, separated by commas; without it 1, 2, 4, ... up to those of the model
    #[arg(long, value_name = "N,N", value_delimiter = ',', requires = "emulate", value_parser = clap::value_parser!(u32).range(1..=4096))]
    disks: Vec<u32>,
    /// With --emulate: in virtual time only
    #[arg(long, requires = "emulate")]
    no_real_time: bool,
    /// A folder for copies; without it they go beside the files
    #[arg(long, value_name = "DIR")]
    work: Option<PathBuf>,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tanada bench volume --quick
  tanada bench volume --dir /mnt/nvme --json volume.json

Files are made in the folder and removed afterwards: four times --size at most.")]
struct VolumeBenchArguments {
    /// Under a minute, on a small data set
    #[arg(long)]
    quick: bool,
    /// Write environment, settings, every run and the summary to FILE; - is stdout
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// The folder to make files in
    #[arg(long, value_name = "DIR", default_value = ".")]
    dir: PathBuf,
    /// Size of the object that is read, written and moved
    #[arg(long, value_name = "SIZE")]
    size: Option<ByteSize>,
    /// Rounds; in each, every side runs once
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    rounds: Option<u32>,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tanada bench mount --quick
  tanada bench mount --dir /mnt/nvme --json mount.json

It takes root, /dev/fuse and fio. Files are made in the folder and removed afterwards: twice --size.")]
struct MountBenchArguments {
    /// About a minute, on a small data set
    #[arg(long)]
    quick: bool,
    /// Write environment, settings, every run and the summary to FILE; - is stdout
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// The folder to make files in
    #[arg(long, value_name = "DIR", default_value = ".")]
    dir: PathBuf,
    /// Size of each file
    #[arg(long, value_name = "SIZE")]
    size: Option<ByteSize>,
    /// Rounds; in each, every side runs once
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    rounds: Option<u32>,
    /// Threads that read requests, of the volume and of the passthrough; one for each core by default
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(1..=64))]
    threads: Option<u8>,
}

fn main() -> ExitCode {
    tanada_io::give_memory_back_soon();
    tanada_io::set_warning_sink(|warning| eprintln!("tanada: warning: {}", one_line(warning)));
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(error) => return tanada::usage(&error),
    };
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return Failure::failed(format!("cannot start the runtime: {error}")).report(),
    };
    let outcome = runtime.block_on(run(arguments));
    runtime.shutdown_background();
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(),
    }
}

/// Runs the subcommand.
async fn run(arguments: Arguments) -> Outcome {
    // Better now than after the work.
    let (json, html) = match &arguments.benchmark {
        Benchmark::Io(arguments) => (&arguments.common.json, &None),
        Benchmark::IoParallel(arguments) => (&arguments.json, &None),
        Benchmark::CostModel(arguments) => (arguments.json(), &None),
        Benchmark::JoinChoice(arguments) => arguments.files(),
        Benchmark::Ooode(arguments) => (&arguments.common.json, &None),
        Benchmark::Tpch(arguments) => (&arguments.json, &None),
        Benchmark::Instant(arguments) => (&arguments.json, &None),
        Benchmark::Collation(arguments) => (&arguments.json, &None),
        Benchmark::Pst(arguments) => arguments.files(),
        Benchmark::Volume(arguments) => (&arguments.json, &None),
        Benchmark::Mount(arguments) => (&arguments.json, &None),
        Benchmark::PageCompression(arguments) => (&arguments.json, &arguments.html),
        Benchmark::Ycsb(arguments) => (&arguments.common.json, &arguments.common.html),
        Benchmark::Hse(arguments) => (&arguments.common.json, &arguments.common.html),
        Benchmark::KvOpen(arguments) => (&arguments.json, &None),
    };
    for path in json.iter().chain(html).filter(|path| *path != Path::new("-")) {
        writable(path)?;
    }
    match arguments.benchmark {
        Benchmark::Io(arguments) => io(arguments).await,
        Benchmark::IoParallel(arguments) => blocking(move || queries::io_parallel(arguments)).await,
        Benchmark::CostModel(arguments) => blocking(move || costs::cost_model(arguments)).await,
        Benchmark::JoinChoice(arguments) => blocking(move || costs::join_choices(arguments)).await,
        Benchmark::Ooode(arguments) => ooode(*arguments).await,
        Benchmark::Tpch(arguments) => blocking(move || queries::tpch(arguments)).await,
        Benchmark::Instant(arguments) => queries::instant(arguments).await,
        Benchmark::Collation(arguments) => queries::collation(arguments).await,
        Benchmark::Pst(arguments) => tiering::run(*arguments).await,
        Benchmark::Volume(arguments) => volume(arguments).await,
        Benchmark::Mount(arguments) => blocking(move || mount(arguments)).await,
        Benchmark::PageCompression(arguments) => blocking(move || pages::run(*arguments)).await,
        Benchmark::Ycsb(arguments) => blocking(move || keyvalue::ycsb(*arguments)).await,
        Benchmark::Hse(arguments) => blocking(move || keyvalue::hse(*arguments)).await,
        Benchmark::KvOpen(arguments) => blocking(move || keyvalue::open(arguments)).await,
    }
}

/// Runs what blocks; Ctrl-C ends the process as it ends any other.
async fn blocking(work: impl FnOnce() -> Outcome + Send + 'static) -> Outcome {
    let work = tokio::task::spawn_blocking(work).await;
    work.map_err(|error| Failure::failed(format!("the benchmark stopped: {error}")))?
}

async fn io(arguments: IoArguments) -> Outcome {
    let IoArguments { common, path, size } = arguments;
    let mut options = if common.quick { IoBenchOptions::quick(path) } else { IoBenchOptions::new(path) };
    options.file_bytes = size.map_or(options.file_bytes, ByteSize::bytes);
    options.repeats = common.runs.map_or(options.repeats, |runs| runs as usize);
    if !common.depths.is_empty() {
        options.depths = sizes(&common.depths);
    }
    let json = common.json;
    // Not interruptible: it blocks, and Ctrl-C ends the process as it ends any other.
    let work = tokio::task::spawn_blocking(move || tanada_bench::io::run(&options, progress));
    let report = work.await.map_err(|error| Failure::failed(format!("the benchmark stopped: {error}")))?;
    publish(&report.map_err(failure)?, json.as_deref())
}

async fn ooode(arguments: OoodeArguments) -> Outcome {
    if arguments.emulate.is_some() {
        return emulated(arguments).await;
    }
    let OoodeArguments { common, innodb, database, query, against, cache, work, .. } = arguments;
    let mut settings = match innodb {
        Some(directory) => Settings::new(directory),
        None => Settings::of_sample(sample_directory()?),
    };
    if common.quick {
        settings = settings.quick();
    }
    settings.runs = common.runs.map_or(settings.runs, |runs| runs as usize);
    if !common.depths.is_empty() {
        settings.depths = sizes(&common.depths);
    }
    if let Some(file) = query {
        settings.query = query_text(&file)?;
    }
    settings.database = database;
    settings.cache_bytes = cache.bytes();
    settings.against_mariadb = against.is_some();
    settings.work = work;
    let report = interruptible(tanada_bench::ooode::run(settings, &progress)).await?.map_err(failure)?;
    publish(&report, common.json.as_deref())
}

/// The experiment on an emulated array.
async fn emulated(arguments: OoodeArguments) -> Outcome {
    let OoodeArguments { common, innodb, database, query, emulate, disks, no_real_time, cache, .. } =
        arguments;
    let Some(model) = emulate else { return Err(Failure::usage("name a device with --emulate")) };
    let mut settings = match innodb {
        Some(directory) => EmulatedSettings::new(directory, model),
        None => EmulatedSettings::of_sample(sample_directory()?, model),
    };
    if common.quick {
        settings.runs = 1;
    }
    settings.runs = common.runs.map_or(settings.runs, |runs| runs as usize);
    if !disks.is_empty() {
        settings.disks = disks;
    }
    match common.depths.as_slice() {
        [] => {}
        [depth] => settings.depth = *depth as usize,
        _ => return Err(Failure::usage("--emulate takes one depth; 0 adapts")),
    }
    if let Some(file) = query {
        settings.query = query_text(&file)?;
    }
    settings.database = database;
    settings.cache_bytes = cache.bytes();
    settings.real_time = !no_real_time;
    let work = tokio::task::spawn_blocking(move || tanada_sample::run_emulated(settings, &progress));
    let report = work.await.map_err(|error| Failure::failed(format!("the benchmark stopped: {error}")))?;
    publish(&report.map_err(failure)?, common.json.as_deref())
}

/// The data directory of the bundled sample that MariaDB wrote, unpacked.
fn sample_directory() -> Outcome<PathBuf> {
    let sample = SAMPLES.iter().find(|sample| sample.directory.starts_with("mariadb"));
    let Some(sample) = sample else { return Err(Failure::usage("name a data directory with --innodb")) };
    sample.data_directory(&tanada::default_folder()).map_err(failure)
}

fn query_text(file: &Path) -> Outcome<String> {
    std::fs::read_to_string(file)
        .map_err(|error| Failure::failed(format!("cannot read the query from {}: {error}", file.display())))
}

async fn volume(arguments: VolumeBenchArguments) -> Outcome {
    let VolumeBenchArguments { quick, json, dir, size, rounds } = arguments;
    let mut options = if quick { VolumeBenchOptions::quick(dir) } else { VolumeBenchOptions::new(dir) };
    options.data_bytes = size.map_or(options.data_bytes, ByteSize::bytes);
    options.moves = options.moves.min(options.data_bytes >> 20);
    options.rounds = rounds.map_or(options.rounds, |rounds| rounds as usize);
    let work = tokio::task::spawn_blocking(move || tanada_bench::volume::run(&options, progress));
    let report = work.await.map_err(|error| Failure::failed(format!("the benchmark stopped: {error}")))?;
    publish(&report.map_err(failure)?, json.as_deref())
}

fn mount(arguments: MountBenchArguments) -> Outcome {
    let MountBenchArguments { quick, json, dir, size, rounds, threads } = arguments;
    let mut options = if quick { MountBenchOptions::quick(dir) } else { MountBenchOptions::new(dir) };
    options.data_bytes = size.map_or(options.data_bytes, ByteSize::bytes);
    options.rounds = rounds.map_or(options.rounds, |rounds| rounds as usize);
    options.threads = threads.map_or(options.threads, usize::from);
    let report = tanada_bench::mount::run(&options, progress).map_err(failure)?;
    publish(&report, json.as_deref())
}

fn sizes(depths: &[u32]) -> Vec<usize> {
    depths.iter().map(|depth| *depth as usize).collect()
}

fn progress(text: &str) {
    if std::io::stderr().is_terminal() {
        eprintln!("{text} ...");
    }
}

fn failure(error: tanada_bench::Error) -> Failure {
    if error.kind() == ErrorKind::InvalidInput { Failure::usage(error) } else { Failure::failed(error) }
}

fn publish(report: &Report, json: Option<&Path>) -> Outcome {
    use std::io::Write;
    let mut out = std::io::stdout().lock();
    match json {
        Some(path) if path == Path::new("-") => writeln!(out, "{}", report.to_json())?,
        Some(path) => {
            write!(out, "{report}")?;
            std::fs::write(path, report.to_json() + "\n")
                .map_err(|error| Failure::failed(format!("cannot write {}: {error}", path.display())))?;
        }
        None => write!(out, "{report}")?,
    }
    Ok(out.flush()?)
}

/// The command that is measured: `tanada`, beside this program.
fn program() -> Outcome<PathBuf> {
    let own = std::env::current_exe()
        .map_err(|error| Failure::failed(format!("the path of this program cannot be told: {error}")))?;
    let program = own.with_file_name("tanada");
    if program.is_file() {
        return Ok(program);
    }
    let folder = own.parent().unwrap_or(&own).display();
    Err(Failure::failed(format!("tanada, which is measured, is not in {folder}: put it there")))
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    #[test]
    fn the_arguments_are_consistent() {
        super::Arguments::command().debug_assert();
    }
}
