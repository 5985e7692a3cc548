//! `tanada bench cost-model` and `join-choice`: the arguments, and what they are as settings.

use std::path::{Path, PathBuf};

use clap::Args;
use tanada::failure::{Failure, Outcome};
use tanada_base::ByteSize;
use tanada_bench::cost_model::{
    self, CostModelSettings, Data, JoinChoiceSettings, Place, join_choice, join_choice_html,
};
use tanada_query::cost::{Measurements, use_measurements};
use tanada_sample::SAMPLES;

use crate::{failure, progress, publish, sample_directory};

/// What the files lie on, if nothing is named.
const PLACES: [&str; 2] = ["8xhdd-7200", "nvme"];

#[derive(Debug, Args)]
struct DataArguments {
    /// A minute or two, on the bundled sample
    #[arg(long)]
    quick: bool,
    /// Write environment, settings, every run and the summary to FILE; - is stdout
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// The data directory with the tables of TPC-H; without it the bundled sample
    #[arg(long, value_name = "DIR")]
    innodb: Option<PathBuf>,
    /// The database
    #[arg(long, value_name = "NAME", default_value = "tpch")]
    database: String,
    /// Media, separated by commas: emulated devices (docs/device-models.md), and disk, where the files are [default:
    /// 8xhdd-7200,nvme]
    #[arg(long, value_name = "MEDIUM,MEDIUM", value_delimiter = ',')]
    media: Vec<String>,
    /// Runs of each plan
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    runs: Option<u32>,
    /// Page cache, emptied before each run
    #[arg(long, value_name = "SIZE", default_value = "256MiB")]
    cache: ByteSize,
    /// What `tanada calibrate` has measured; without it the defaults, or for emulated devices their models
    #[arg(long, value_name = "FILE")]
    calibration: Option<PathBuf>,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tanada bench cost-model --quick
  scripts/make-tpch work/tpch-sf1 1                 # larger files, made with MariaDB
  tanada bench cost-model --innodb work/tpch-sf1/data --media 8xhdd-7200,nvme,disk --json cost-model.json")]
pub struct CostModelArguments {
    #[command(flatten)]
    data: DataArguments,
    /// Numbers of the queries, separated by commas; without it all 22
    #[arg(long, value_name = "N,N", value_delimiter = ',', value_parser = clap::value_parser!(u32).range(1..=22))]
    queries: Vec<u32>,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tanada bench join-choice --quick
  tanada bench join-choice --innodb work/tpch-sf1/data --media 8xhdd-7200,nvme,disk --html join-choice.html")]
pub struct JoinChoiceArguments {
    #[command(flatten)]
    data: DataArguments,
    /// Shares of the outer rows in per cent, separated by commas
    #[arg(long, value_name = "PERCENT,PERCENT", value_delimiter = ',')]
    shares: Vec<f64>,
    /// Write the charts as a page to FILE
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
}

impl CostModelArguments {
    /// Where the report goes.
    pub fn json(&self) -> &Option<PathBuf> {
        &self.data.json
    }
}

impl JoinChoiceArguments {
    /// Where the report goes, and the page.
    pub fn files(&self) -> (&Option<PathBuf>, &Option<PathBuf>) {
        (&self.data.json, &self.html)
    }
}

impl DataArguments {
    fn data(&self) -> Outcome<(Data, Vec<Place>)> {
        if let Some(path) = &self.calibration {
            let missing = || Failure::failed(format!("there is no calibration {}", path.display()));
            use_measurements(Measurements::read(path).map_err(Failure::failed)?.ok_or_else(missing)?);
        }
        let innodb = self.innodb.clone().map_or_else(sample_directory, Ok)?;
        let is_sample = SAMPLES.iter().any(|sample| sample.is_at(&innodb));
        let named: Vec<&str> = match self.media.is_empty() {
            true => PLACES.to_vec(),
            false => self.media.iter().map(String::as_str).collect(),
        };
        let places = named.into_iter().map(|name| place(name, is_sample)).collect::<Outcome<_>>()?;
        let data =
            Data { database: self.database.clone(), cache_bytes: self.cache.bytes(), ..Data::new(innodb) };
        Ok((data, places))
    }
}

/// Files of the sample fill few tracks, which a disk that reads ahead would have in its buffer at once.
fn place(name: &str, is_sample: bool) -> Outcome<Place> {
    if name == "disk" {
        return Ok(Place::Disk);
    }
    let is_plain_disk = name.contains("hdd") && !name.contains(':');
    let text = if is_sample && is_plain_disk { format!("{name}:read-ahead=off") } else { name.to_owned() };
    text.parse().map(Place::Emulated).map_err(|error| Failure::usage(format!("--media {name}: {error}")))
}

/// Runs `tanada bench cost-model`. Blocks.
pub fn cost_model(arguments: CostModelArguments) -> Outcome {
    let (data, places) = arguments.data.data()?;
    let mut settings = CostModelSettings::new(data, places);
    if arguments.data.quick {
        settings = settings.quick();
    }
    if !arguments.queries.is_empty() {
        settings.queries = arguments.queries;
    }
    settings.runs = arguments.data.runs.map_or(settings.runs, |runs| runs as usize);
    let report = cost_model::run(&settings, &progress).map_err(failure)?;
    publish(&report, arguments.data.json.as_deref())
}

/// Runs `tanada bench join-choice`. Blocks.
pub fn join_choices(arguments: JoinChoiceArguments) -> Outcome {
    let (data, places) = arguments.data.data()?;
    let mut settings = JoinChoiceSettings::new(data, places);
    if arguments.data.quick {
        settings = settings.quick();
    }
    if !arguments.shares.is_empty() {
        settings.per_cents = arguments.shares;
    }
    settings.runs = arguments.data.runs.map_or(settings.runs, |runs| runs as usize);
    let report = join_choice(&settings, &progress).map_err(failure)?;
    if let Some(path) = &arguments.html {
        write_page(path, &join_choice_html(&report).map_err(failure)?)?;
    }
    publish(&report, arguments.data.json.as_deref())
}

fn write_page(path: &Path, page: &str) -> Outcome {
    std::fs::write(path, page)
        .map_err(|error| Failure::failed(format!("cannot write {}: {error}", path.display())))
}
