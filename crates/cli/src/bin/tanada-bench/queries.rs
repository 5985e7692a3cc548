//! `tanada bench tpch`, `instant`, `collation` and `io-parallel`: the arguments, and what they are as
//! settings.

use std::path::PathBuf;

use clap::Args;
use tanada::failure::{Failure, Outcome};
use tanada::interruption::interruptible;
use tanada_base::ByteSize;
use tanada_bench::collation::CollationSettings;
use tanada_bench::instant::InstantSettings;
use tanada_bench::io_parallel::IoParallelSettings;
use tanada_bench::tpch::{ColumnarSettings, TpchSettings};
use tanada_sample::SAMPLES;

use crate::{failure, program, progress, publish, sample_directory};

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tanada bench tpch --quick                         # the bundled sample
  scripts/make-tpch work/tpch-sf1 1                 # larger files, made with MariaDB
  tanada bench tpch --innodb work/tpch-sf1/data --json tpch.json
  tanada bench tpch --innodb work/tpch-sf1/data --baseline ../old/tanada --queries 1,6
  tanada bench tpch --columnar --innodb work/tpch-sf1/data   # columnar mirrors, and DuckDB if there is such a module

Each query runs in a process of its own: once cold, then warm. With --baseline another build takes turns with this one,
and the figures called over_baseline are this build's time over that build's.")]
pub struct TpchArguments {
    /// Under a minute, on the bundled sample
    #[arg(long)]
    quick: bool,
    /// Write environment, settings, every run and the summary to FILE; - is stdout
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// The data directory; without it the bundled sample
    #[arg(long, value_name = "DIR")]
    innodb: Option<PathBuf>,
    /// The database
    #[arg(long, value_name = "NAME", default_value = "tpch")]
    database: String,
    /// Another build of tanada to compare with
    #[arg(long, value_name = "PROGRAM")]
    baseline: Option<PathBuf>,
    /// Numbers of the queries, separated by commas; without it all 22
    #[arg(long, value_name = "N,N", value_delimiter = ',', value_parser = clap::value_parser!(u32).range(1..=22))]
    queries: Vec<u32>,
    /// Rounds
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    runs: Option<u32>,
    /// Warm runs of each query in a round
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    warm_runs: Option<u32>,
    /// Page cache
    #[arg(long, value_name = "SIZE", default_value = "1GiB")]
    cache: ByteSize,
    /// All queries in one process: without columnar mirrors, with new ones, with those of the run before, and by DuckDB
    /// on Parquet files
    #[arg(long, conflicts_with_all = ["baseline", "warm_runs"])]
    columnar: bool,
    /// The Python whose module DuckDB is; without such a module DuckDB is left out
    #[arg(long, value_name = "PROGRAM", default_value = "python3", requires = "columnar")]
    python: PathBuf,
    /// A folder for mirrors and Parquet files; without it a temporary one
    #[arg(long, value_name = "DIR", requires = "columnar")]
    work: Option<PathBuf>,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tanada bench instant --quick
  tanada bench instant --rows 2000000 --json instant.json
  tanada bench instant --innodb DIR --database test --tables changed,copy

Without --innodb it needs the packages mariadb-server and mariadb-client. Tables of a directory that is named need
the columns id, a, b, d, e and f.")]
pub struct InstantArguments {
    /// Under a minute, on small tables
    #[arg(long)]
    quick: bool,
    /// Write environment, settings, every run and the summary to FILE; - is stdout
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// A data directory with both tables; without it MariaDB makes one
    #[arg(long, value_name = "DIR", requires = "database")]
    innodb: Option<PathBuf>,
    /// The database in it
    #[arg(long, value_name = "NAME", requires = "innodb")]
    database: Option<String>,
    /// The table with instant columns, and the same table rebuilt [default: instant,rebuilt]
    #[arg(long, value_name = "NAME,NAME", value_delimiter = ',', requires = "innodb")]
    tables: Vec<String>,
    /// Rows of the tables that are made
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(3..=100_000_000))]
    rows: Option<u64>,
    /// Rounds
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    runs: Option<u32>,
    /// Page cache, and the server's buffer pool
    #[arg(long, value_name = "SIZE", default_value = "1GiB")]
    cache: ByteSize,
    /// A folder for the server's files; without it that for temporary files
    #[arg(long, value_name = "DIR")]
    work: Option<PathBuf>,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tanada bench collation --quick
  tanada bench collation --rows 2000000 --json collation.json

It needs the packages mariadb-server and mariadb-client.")]
pub struct CollationArguments {
    /// Under a minute, on small tables
    #[arg(long)]
    quick: bool,
    /// Write environment, settings, every run and the summary to FILE; - is stdout
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// Rows of each table
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(100..=100_000_000))]
    rows: Option<u64>,
    /// Rounds
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    runs: Option<u32>,
    /// Page cache, and the server's buffer pool
    #[arg(long, value_name = "SIZE", default_value = "1GiB")]
    cache: ByteSize,
    /// A folder for the server's files; without it that for temporary files
    #[arg(long, value_name = "DIR")]
    work: Option<PathBuf>,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tanada bench io-parallel --quick
  tanada bench io-parallel --path /mnt/nvme --scale 30 --blocks 1MiB,16MiB --json scan.json

Needs fio (Debian's package fio), and room for the file: 768 MB for each unit of the scale.")]
pub struct IoParallelArguments {
    /// A minute, at scale 1
    #[arg(long)]
    quick: bool,
    /// Write environment, settings, every run and the summary to FILE; - is stdout
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// The folder for the file, which is removed afterwards
    #[arg(long, value_name = "DIR", default_value = ".")]
    path: PathBuf,
    /// Scale factor of TPC-H
    #[arg(long, value_name = "N")]
    scale: Option<f64>,
    /// Sizes of reads, separated by commas
    #[arg(long, value_name = "SIZE,SIZE", value_delimiter = ',')]
    blocks: Vec<ByteSize>,
    /// Rounds
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    runs: Option<u32>,
}

/// Runs `tanada bench io-parallel`. Blocks.
pub fn io_parallel(arguments: IoParallelArguments) -> Outcome {
    let mut settings = IoParallelSettings::new(arguments.path);
    if arguments.quick {
        settings = settings.quick();
    }
    settings.scale = arguments.scale.unwrap_or(settings.scale);
    if !arguments.blocks.is_empty() {
        settings.block_bytes = arguments.blocks.iter().map(|size| size.bytes() as usize).collect();
    }
    settings.runs = arguments.runs.map_or(settings.runs, |runs| runs as usize);
    let report = tanada_bench::io_parallel::run(&settings, &progress).map_err(failure)?;
    publish(&report, arguments.json.as_deref())
}

/// Runs `tanada bench tpch`. Blocks.
pub fn tpch(arguments: TpchArguments) -> Outcome {
    let innodb = arguments.innodb.map_or_else(sample_directory, Ok)?;
    let is_sample = SAMPLES.iter().any(|sample| sample.is_at(&innodb));
    let mut settings = TpchSettings::new(innodb, program()?);
    if arguments.quick {
        settings = settings.quick();
    }
    settings.is_sample = is_sample;
    settings.database = arguments.database;
    settings.baseline = arguments.baseline;
    if !arguments.queries.is_empty() {
        settings.queries = arguments.queries;
    }
    settings.runs = arguments.runs.map_or(settings.runs, |runs| runs as usize);
    settings.warm_runs = arguments.warm_runs.map_or(settings.warm_runs, |runs| runs as usize);
    settings.cache_bytes = arguments.cache.bytes();
    let report = match arguments.columnar {
        true => {
            let (python, work) = (arguments.python, arguments.work);
            let settings = ColumnarSettings { tpch: settings, python, work };
            tanada_bench::tpch::run_columnar(&settings, &progress)
        }
        false => tanada_bench::tpch::run(&settings, &progress),
    };
    let report = report.map_err(failure)?;
    publish(&report, arguments.json.as_deref())
}

/// Runs `tanada bench instant`.
pub async fn instant(arguments: InstantArguments) -> Outcome {
    let mut settings = InstantSettings::new(program()?);
    if arguments.quick {
        settings = settings.quick();
    }
    settings.innodb = arguments.innodb;
    settings.database = arguments.database.unwrap_or(settings.database);
    if !arguments.tables.is_empty() {
        settings.tables = arguments
            .tables
            .try_into()
            .map_err(|_| Failure::usage("--tables takes two names: with instant columns, and rebuilt"))?;
    }
    settings.rows = arguments.rows.unwrap_or(settings.rows);
    settings.runs = arguments.runs.map_or(settings.runs, |runs| runs as usize);
    settings.cache_bytes = arguments.cache.bytes();
    settings.work = arguments.work;
    let report = interruptible(tanada_bench::instant::run(settings, &progress)).await?.map_err(failure)?;
    publish(&report, arguments.json.as_deref())
}

/// Runs `tanada bench collation`.
pub async fn collation(arguments: CollationArguments) -> Outcome {
    let mut settings = CollationSettings::new(program()?);
    if arguments.quick {
        settings = settings.quick();
    }
    settings.rows = arguments.rows.unwrap_or(settings.rows);
    settings.runs = arguments.runs.map_or(settings.runs, |runs| runs as usize);
    settings.cache_bytes = arguments.cache.bytes();
    settings.work = arguments.work;
    let report = interruptible(tanada_bench::collation::run(settings, &progress)).await?.map_err(failure)?;
    publish(&report, arguments.json.as_deref())
}
