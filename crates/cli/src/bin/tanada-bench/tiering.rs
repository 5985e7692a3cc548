//! `tanada bench pst`: the arguments, and what they are as settings.

use std::path::{Path, PathBuf};

use clap::Args;
use tanada::failure::{Failure, Outcome};
use tanada::interruption::interruptible;
use tanada::range::{policies, shares};
use tanada_bench::pst::PstSettings;
use tanada_bench::pst::rdbms::{Rdbms, RdbmsSettings};
use tanada_io::ModelSpec;
use tanada_report::Report;
use tanada_sample::TPCH_ALL;

use crate::{failure, program, progress, publish, sample_directory};

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tanada bench pst --quick                                    # the bundled sample, in virtual time
  scripts/make-tpch work/tpch-sf1 1                           # TPC-H at scale 1, made with MariaDB
  tanada bench pst --json pst.json --html pst.html            # all policies, 0 to 100 %
  tanada bench pst --innodb DIR --policy benefit,lru:fifo --fast-share 20..50 --no-live
  tanada bench pst --live-share 30 --live-policy benefit,static,plan --no-real-time
  tanada bench pst --select --json select.json                # all 22 queries on slow and on fast devices
  tanada bench pst --rdbms mariadb --quick                    # MariaDB on a mounted volume, the bundled sample's rows
  tanada bench pst --rdbms postgres --json pg.json --html pg.html --fast-share 20,40

The policies are compared by replays of what the queries read. At some shares the queries also run on a volume
(--live-share, --live-policy).
With --rdbms a server runs the queries, on a mounted volume and in real time; policies that place blocks, like lru, are
replays of what it read. That takes root, /dev/fuse and the server (scripts/setup --test).
All devices are emulated (docs/device-models.md); what the figures mean is in docs/papers/pst.md.")]
pub struct PstArguments {
    /// In virtual time alone, on a volume at one share
    #[arg(long)]
    quick: bool,
    /// Write environment, settings, every run and the summary to FILE; - is stdout
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Let this server run the queries: mariadb or postgres
    #[arg(long, value_name = "SERVER", conflicts_with_all = ["live_share", "live_policy", "no_live", "no_real_time", "depth", "traces"])]
    rdbms: Option<Rdbms>,
    /// Run all 22 queries on the slow devices alone and on the fast ones, as the paper's authors chose their nine
    #[arg(long, conflicts_with_all = ["rdbms", "queries", "policy", "fast_share", "live_share", "live_policy", "html", "traces"])]
    select: bool,
    /// Numbers of TPC-H's queries, separated by commas; without it the paper's nine
    #[arg(long, value_name = "N,N", value_delimiter = ',', value_parser = clap::value_parser!(u32).range(1..=22))]
    queries: Vec<u32>,
    /// Write a page with the paper's figures to FILE
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// The data directory; without it work/tpch-sf1/data, or with --quick the bundled sample
    #[arg(long, value_name = "DIR")]
    innodb: Option<PathBuf>,
    /// The database
    #[arg(long, value_name = "NAME", default_value = "tpch")]
    database: String,
    /// Policies with their options, separated by commas; without it all but in-page-logging, with --rdbms static, lru,
    /// plan and benefit
    #[arg(long, value_name = "NAME,NAME")]
    policy: Option<String>,
    /// Room of the fast class in per cent of the tables: A..B is in steps of ten; without it 0..100
    #[arg(long, value_name = "A..B | N,N")]
    fast_share: Option<String>,
    /// Shares at which the queries run on a volume too; without it 20,50,80, with --quick 50
    #[arg(long, value_name = "A..B | N,N")]
    live_share: Option<String>,
    /// Policies of the runs on a volume: benefit, off, static, plan, history, spike [default: benefit,static]
    #[arg(long, value_name = "NAME,NAME")]
    live_policy: Option<String>,
    /// Replay traces alone, no runs on a volume
    #[arg(long, conflicts_with_all = ["live_share", "live_policy"])]
    no_live: bool,
    /// Runs on a volume in virtual time alone
    #[arg(long)]
    no_real_time: bool,
    /// Devices of the fast class
    #[arg(long, value_name = "MODEL", default_value = "sata-ssd")]
    fast: ModelSpec,
    /// Devices of the slow class
    #[arg(long, value_name = "MODEL", default_value = "3xhdd-7200")]
    slow: ModelSpec,
    /// I/Os in flight out of order
    #[arg(long, value_name = "N", default_value_t = 32, value_parser = clap::value_parser!(u32).range(2..=4096))]
    depth: u32,
    /// Replays of each policy and share
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100))]
    runs: Option<u32>,
    /// Keep the recorded traces in DIR, for tanada simulate
    #[arg(long, value_name = "DIR")]
    traces: Option<PathBuf>,
    /// A folder for volumes; without it a temporary one
    #[arg(long, value_name = "DIR")]
    work: Option<PathBuf>,
}

impl PstArguments {
    /// The files of the report and of the page.
    pub fn files(&self) -> (&Option<PathBuf>, &Option<PathBuf>) {
        (&self.json, &self.html)
    }
}

/// Where scripts/make-tpch puts TPC-H at the paper's scale, as its examples name it.
const SCALE_1: &str = "work/tpch-sf1";

/// The data of the tiering paper: TPC-H at scale 1.
fn scale_1_directory() -> Outcome<PathBuf> {
    let directory = Path::new(SCALE_1).join("data");
    if directory.is_dir() {
        return Ok(directory);
    }
    Err(Failure::usage(format!(
        "there is no {}: make it with scripts/make-tpch {SCALE_1} 1, name another data directory with --innodb, or take \
         the sample with --quick",
        directory.display()
    )))
}

/// Runs `tanada bench pst`.
pub async fn run(mut arguments: PstArguments) -> Outcome {
    let innodb = match arguments.innodb.take() {
        Some(directory) => directory,
        None if arguments.quick => sample_directory()?,
        None => scale_1_directory()?,
    };
    if let Some(rdbms) = arguments.rdbms {
        return on_a_server(arguments, rdbms, innodb).await;
    }
    let mut settings = PstSettings::new(innodb);
    if arguments.quick {
        settings = settings.quick();
    }
    settings.database = arguments.database;
    if !arguments.queries.is_empty() {
        settings.queries = named_queries(&arguments.queries);
    }
    if let Some(named) = arguments.policy {
        settings.policies = policies("--policy", &named)?;
    }
    if let Some(named) = arguments.fast_share {
        settings.shares = shares("--fast-share", &named, 0)?;
    }
    if let Some(named) = arguments.live_share {
        settings.live_shares = shares("--live-share", &named, 1)?;
    }
    if let Some(named) = arguments.live_policy {
        settings.live_policies = policies("--live-policy", &named)?;
    }
    if arguments.no_live {
        settings.live_shares.clear();
    }
    settings.real_time &= !arguments.no_real_time;
    (settings.fast, settings.slow, settings.depth) = (arguments.fast, arguments.slow, arguments.depth);
    settings.runs = arguments.runs.map_or(settings.runs, |runs| runs as usize);
    // Interrupted, what the volumes have taken is given back.
    let temporary = match arguments.work {
        Some(_) => None,
        None => Some(
            tempfile::tempdir()
                .map_err(|error| Failure::failed(format!("cannot make a temporary folder: {error}")))?,
        ),
    };
    settings.traces = arguments.traces;
    settings.work = arguments.work.or(temporary.as_ref().map(|folder| folder.path().to_owned()));
    if arguments.select {
        let run = move || tanada_bench::pst::select::run(&settings, &progress);
        return finish(run, tanada_bench::pst::html, None, arguments.json.as_deref()).await;
    }
    let html = arguments.html.as_deref();
    let run = move || tanada_bench::pst::run(settings, &progress);
    finish(run, tanada_bench::pst::html, html, arguments.json.as_deref()).await
}

/// The evaluation with a server on a mounted volume.
async fn on_a_server(arguments: PstArguments, rdbms: Rdbms, innodb: PathBuf) -> Outcome {
    let mut settings = RdbmsSettings::new(rdbms, innodb, program()?);
    if arguments.quick {
        settings = settings.quick();
    }
    settings.database = arguments.database;
    if !arguments.queries.is_empty() {
        settings.queries = named_queries(&arguments.queries);
    }
    if let Some(named) = arguments.policy {
        settings.policies = policies("--policy", &named)?;
    }
    if let Some(named) = arguments.fast_share {
        settings.shares = shares("--fast-share", &named, 0)?;
    }
    (settings.fast, settings.slow) = (arguments.fast, arguments.slow);
    settings.runs = arguments.runs.map_or(settings.runs, |runs| runs as usize);
    settings.work = arguments.work;
    let run = move || tanada_bench::pst::rdbms::run(&settings, &progress);
    let html = arguments.html.as_deref();
    finish(run, tanada_bench::pst::rdbms::html, html, arguments.json.as_deref()).await
}

fn named_queries(numbers: &[u32]) -> Vec<(String, String)> {
    let is_named = |name: &str| numbers.iter().any(|number| name == format!("q{number}"));
    let named = TPCH_ALL.iter().filter(|query| is_named(query.name));
    named.map(|query| (query.name.to_owned(), query.sql.to_owned())).collect()
}

/// Runs what blocks, and writes its report and its page.
async fn finish(
    run: impl FnOnce() -> tanada_bench::Result<Report> + Send + 'static,
    page: fn(&Report) -> tanada_bench::Result<String>,
    html: Option<&Path>,
    json: Option<&Path>,
) -> Outcome {
    let work = tokio::task::spawn_blocking(run);
    let report = interruptible(work)
        .await?
        .map_err(|error| Failure::failed(format!("the benchmark stopped: {error}")))?;
    let report = report.map_err(failure)?;
    if let Some(path) = html {
        let page = page(&report).map_err(failure)?;
        std::fs::write(path, page)
            .map_err(|error| Failure::failed(format!("cannot write {}: {error}", path.display())))?;
    }
    publish(&report, json)
}
