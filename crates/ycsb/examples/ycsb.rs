//! The benchmarks without the rest of Tanada: `cargo run --release -p tanada-ycsb --example ycsb -- ycsb --quick`.

use std::fs::OpenOptions;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, Parser, Subcommand};
use tanada_report::Report;
use tanada_ycsb::Result;
use tanada_ycsb::bench::{
    HseOptions, OpeningJob, OpeningOptions, Peer, YcsbOptions, html, run_hse, run_opening, run_ycsb_with,
};
use tanada_ycsb::drive::Clients;
use tanada_ycsb::media::MediaKind;
use tanada_ycsb::workload::{Distribution, Workload};

/// As the command line has it.
#[global_allocator]
static ALLOCATOR: tanada_io::Allocator = tanada_io::Allocator;

/// YCSB for Tanada's key-value engine and others.
#[derive(Parser)]
struct Command {
    #[command(subcommand)]
    benchmark: Benchmark,
}

#[derive(Subcommand)]
enum Benchmark {
    /// The load and workloads A to F.
    Ycsb(Ycsb),
    /// What a staging class gives, on emulated devices.
    Hse(Hse),
    /// How long opening takes.
    KvOpen(KvOpen),
}

#[derive(Args)]
struct Output {
    /// Where files are made while it runs.
    #[arg(long, default_value = ".")]
    directory: PathBuf,
    /// Ends in under a minute.
    #[arg(long)]
    quick: bool,
    /// Where the report goes as JSON; its page goes beside it as HTML.
    #[arg(long)]
    out: Option<PathBuf>,
    /// Records.
    #[arg(long)]
    records: Option<u64>,
    /// Operations of a workload.
    #[arg(long)]
    operations: Option<u64>,
    /// Workloads, as in abcfde.
    #[arg(long)]
    workloads: Option<String>,
    /// Memory of an engine, in MiB.
    #[arg(long)]
    memory_mib: Option<u64>,
    /// Rounds.
    #[arg(long)]
    rounds: Option<usize>,
    /// Settings of Tanada's database and store, as JSON: a list of both.
    #[arg(long)]
    settings: Option<String>,
}

#[derive(Args)]
struct Ycsb {
    #[command(flatten)]
    output: Output,
    /// Engines to compare with: rocksdb, rocksdb-blob, fjall. Their program has to lie beside this one.
    #[arg(long, value_delimiter = ',')]
    against: Vec<String>,
    /// The program of the engines to compare with, if it lies elsewhere.
    #[arg(long)]
    program: Option<PathBuf>,
    /// Only the engines to compare with run.
    #[arg(long, requires = "against")]
    alone: bool,
    /// What files lie on: limited, unlimited, folder. The first that is possible by default.
    #[arg(long)]
    media: Option<String>,
    /// Classes: staging, capacity; or both, with a comma, one after the other.
    #[arg(long, value_delimiter = ',')]
    tiers: Vec<String>,
    /// Client threads.
    #[arg(long)]
    threads: Option<usize>,
    /// Clients as tasks instead of threads.
    #[arg(long)]
    tasks: Option<usize>,
    /// Operations a second that are due: an open loop.
    #[arg(long)]
    target: Option<f64>,
    /// Seconds that a workload runs before it is measured.
    #[arg(long)]
    warm_up: Option<f64>,
    /// Bytes that an engine may use of the staging class, as a share of the data.
    #[arg(long)]
    staging_share: Option<f64>,
    /// How records are chosen, whatever the workload: zipfian, latest, uniform, hotspot, sequential.
    #[arg(long)]
    distribution: Option<Distribution>,
    /// Updates read a record and change one field, instead of replacing all.
    #[arg(long)]
    update_one_field: bool,
    /// Milliseconds after which a write is durable; 0 for before it is acknowledged.
    #[arg(long)]
    durable_within: Option<u16>,
    /// Most seconds of a workload.
    #[arg(long)]
    seconds: Option<f64>,
}

#[derive(Args)]
struct Hse {
    #[command(flatten)]
    output: Output,
    /// Lets CPU time pass as well.
    #[arg(long)]
    cpu: bool,
}

#[derive(Args)]
struct KvOpen {
    /// Where files are made while it runs.
    #[arg(long, default_value = ".")]
    directory: PathBuf,
    /// Ends in under a minute.
    #[arg(long)]
    quick: bool,
    /// Where the report goes as JSON.
    #[arg(long)]
    out: Option<PathBuf>,
    /// Bytes that databases stand for.
    #[arg(long, value_delimiter = ',')]
    sizes: Vec<u64>,
    /// What sizes are divided by.
    #[arg(long)]
    divide_by: Option<u64>,
    /// Bytes of a volume's chunk before they are divided.
    #[arg(long)]
    chunk_bytes: Option<u64>,
    /// Keys that are written again.
    #[arg(long)]
    updates: Option<u64>,
    /// Bytes of log to replay.
    #[arg(long)]
    replay_bytes: Option<u64>,
    /// Openings of each.
    #[arg(long)]
    rounds: Option<usize>,
    /// Does one opening, as it is told on standard input.
    #[arg(long, hide = true)]
    job: bool,
}

fn workloads(letters: &str) -> Result<Vec<Workload>> {
    letters.chars().map(|letter| letter.to_string().parse()).collect()
}

fn settings(text: Option<&String>) -> Result<serde_json::Value> {
    let parsed = text.map(|text| serde_json::from_str(text)).transpose();
    Ok(parsed
        .map_err(|error| tanada_ycsb::Error::invalid(format!("--settings: {error}")))?
        .unwrap_or_default())
}

fn ycsb(arguments: &Ycsb) -> Result<Report> {
    let output = &arguments.output;
    let mut options = match output.quick {
        true => YcsbOptions::quick(&output.directory),
        false => YcsbOptions::new(&output.directory),
    };
    options.records.count = output.records.unwrap_or(options.records.count);
    options.operations = output.operations.unwrap_or(options.operations);
    options.rounds = output.rounds.unwrap_or(options.rounds);
    options.seconds = arguments.seconds.unwrap_or(options.seconds);
    options.warm_up_s = arguments.warm_up.unwrap_or(options.warm_up_s);
    options.staging_share = arguments.staging_share.unwrap_or(options.staging_share);
    options.distribution = arguments.distribution;
    options.update_all_fields = !arguments.update_one_field;
    options.durable_within_ms = arguments.durable_within.unwrap_or(options.durable_within_ms);
    options.own = !arguments.alone;
    options.target_per_second = arguments.target.unwrap_or(0.0);
    options.memory_bytes = output.memory_mib.map_or(options.memory_bytes, |mib| mib << 20);
    options.engine_settings = settings(output.settings.as_ref())?;
    if let Some(letters) = &output.workloads {
        options.workloads = workloads(letters)?;
    }
    if !arguments.tiers.is_empty() {
        options.tiers.clone_from(&arguments.tiers);
    }
    options.clients = match (arguments.threads, arguments.tasks) {
        (_, Some(tasks)) => Clients::Tasks(tasks),
        (Some(threads), None) => Clients::Threads(threads),
        (None, None) => options.clients,
    };
    options.media = match arguments.media.as_deref() {
        None => options.media,
        Some("limited") => MediaKind::Limited,
        Some("unlimited") => MediaKind::Unlimited,
        Some("folder") => MediaKind::Folder,
        Some(other) => {
            return Err(tanada_ycsb::Error::invalid(format!("{other:?}: limited, unlimited or folder")));
        }
    };
    let peer = |engine: &String| match &arguments.program {
        Some(program) => Ok(Peer { program: program.clone(), engine: engine.clone() }),
        None => Peer::beside_this_program(engine),
    };
    options.against = arguments.against.iter().map(peer).collect::<Result<_>>()?;
    run_ycsb_with(&options, |what| eprintln!("{what}"), |report| save(report, output.out.as_deref()))
}

fn hse(arguments: &Hse) -> Result<Report> {
    let output = &arguments.output;
    let mut options = match output.quick {
        true => HseOptions::quick(&output.directory),
        false => HseOptions::new(&output.directory),
    };
    options.cpu = arguments.cpu;
    options.records.count = output.records.unwrap_or(options.records.count);
    options.operations = output.operations.unwrap_or(options.operations);
    options.rounds = output.rounds.unwrap_or(options.rounds);
    options.memory_bytes = output.memory_mib.map_or(options.memory_bytes, |mib| mib << 20);
    options.engine_settings = settings(output.settings.as_ref())?;
    if let Some(letters) = &output.workloads {
        options.workloads = workloads(letters)?;
    }
    run_hse(&options, |what| eprintln!("{what}"))
}

fn kv_open(arguments: &KvOpen) -> Result<Report> {
    let mut options = match arguments.quick {
        true => OpeningOptions::quick(&arguments.directory),
        false => OpeningOptions::new(&arguments.directory),
    };
    if !arguments.sizes.is_empty() {
        options.sizes.clone_from(&arguments.sizes);
    }
    options.divisor = arguments.divide_by.unwrap_or(options.divisor);
    options.chunk_bytes = arguments.chunk_bytes.unwrap_or(options.chunk_bytes);
    options.updates = arguments.updates.unwrap_or(options.updates);
    options.replay_bytes = arguments.replay_bytes.unwrap_or(options.replay_bytes);
    options.rounds = arguments.rounds.unwrap_or(options.rounds);
    let own = std::env::current_exe().map_err(tanada_ycsb::Error::failed)?;
    options.program = [own.into(), "kv-open".into(), "--job".into()].into();
    run_opening(&options, |what| eprintln!("{what}"))
}

fn job() -> Result<()> {
    let job: OpeningJob = serde_json::from_reader(std::io::stdin()).map_err(tanada_ycsb::Error::failed)?;
    println!("{}", serde_json::to_string(&job.perform()?).map_err(tanada_ycsb::Error::failed)?);
    Ok(())
}

fn save(report: &Report, out: Option<&Path>) -> Result<()> {
    let Some(path) = out else { return Ok(()) };
    let failed = |error| tanada_ycsb::Error::failed(format!("cannot write {}: {error}", path.display()));
    std::fs::write(path, report.to_json() + "\n").map_err(failed)
}

/// What cannot be written is told before the work, not after it.
fn writable(path: &Path) -> Result<()> {
    let failed = |error| tanada_ycsb::Error::invalid(format!("cannot write {}: {error}", path.display()));
    OpenOptions::new().append(true).create(true).open(path).map(drop).map_err(failed)
}

fn run(command: &Command) -> Result<()> {
    let out = match &command.benchmark {
        Benchmark::Ycsb(arguments) => &arguments.output.out,
        Benchmark::Hse(arguments) => &arguments.output.out,
        Benchmark::KvOpen(arguments) => &arguments.out,
    };
    out.as_deref().map_or(Ok(()), writable)?;
    let (report, out, has_page) = match &command.benchmark {
        Benchmark::Ycsb(arguments) => (ycsb(arguments)?, &arguments.output.out, true),
        Benchmark::Hse(arguments) => (hse(arguments)?, &arguments.output.out, true),
        Benchmark::KvOpen(arguments) if arguments.job => return job(),
        Benchmark::KvOpen(arguments) => (kv_open(arguments)?, &arguments.out, false),
    };
    print!("{report}");
    save(&report, out.as_deref())?;
    match out {
        Some(path) if has_page => std::fs::write(path.with_extension("html"), html(&report)?)
            .map_err(|error| tanada_ycsb::Error::failed(format!("cannot write the page: {error}"))),
        _ => Ok(()),
    }
}

fn main() -> ExitCode {
    tanada_io::give_memory_back_at_once();
    match run(&Command::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}
