//! The benchmarks without the rest of Tanada: `cargo run --release -p tanada-ycsb --example ycsb -- ycsb --quick`.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Parser, Subcommand};
use tanada_ycsb::Result;
use tanada_ycsb::bench::{HseOptions, Peer, YcsbOptions, html, run_hse, run_ycsb};
use tanada_ycsb::drive::Clients;
use tanada_ycsb::media::MediaKind;
use tanada_ycsb::report::Report;
use tanada_ycsb::workload::Workload;

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
    /// The engine to compare with: rocksdb, rocksdb-blob, fjall. Its program has to lie beside this one.
    #[arg(long)]
    against: Option<String>,
    /// The program of the engine to compare with, if it lies elsewhere.
    #[arg(long)]
    program: Option<PathBuf>,
    /// Only the engine to compare with runs.
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
    options.against = match (&arguments.against, &arguments.program) {
        (None, _) => None,
        (Some(engine), Some(program)) => Some(Peer { program: program.clone(), engine: engine.clone() }),
        (Some(engine), None) => Some(Peer::beside_this_program(engine)?),
    };
    run_ycsb(&options, |what| eprintln!("{what}"))
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

fn run(command: &Command) -> Result<()> {
    let (report, output) = match &command.benchmark {
        Benchmark::Ycsb(arguments) => (ycsb(arguments)?, &arguments.output),
        Benchmark::Hse(arguments) => (hse(arguments)?, &arguments.output),
    };
    print!("{report}");
    if let Some(path) = &output.out {
        let files = [(path.clone(), report.to_json()), (path.with_extension("html"), html(&report)?)];
        for (path, text) in files {
            std::fs::write(&path, text).map_err(tanada_ycsb::Error::failed)?;
        }
    }
    Ok(())
}

fn main() -> ExitCode {
    tanada_io::give_memory_back_soon();
    match run(&Command::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}
