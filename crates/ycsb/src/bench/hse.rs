//! `tanada bench hse`: what a staging class gives, after the published evaluation of HSE (2020).
//!
//! There: two billion records of 1,000 bytes, 96 clients, four QLC SATA SSDs, with and without an NVMe SSD before them;
//! YCSB's load and A, B, C, D, F. Here the devices are emulated (`4xsata-qlc`, `nvme`; docs/device-models.md) in
//! virtual time, so results do not depend on this machine's disk. The data set is smaller, and memory in proportion to
//! it.
//!
//! Without CPU time (the default) only devices take time: the evaluation ran on 28 cores, and two would be what is
//! measured otherwise. Then 96 clients do in no time what memory serves, so ratios between the two set-ups are meant,
//! not rates.

use std::fmt;
use std::path::PathBuf;

use serde::Serialize;
use tanada_base::ByteSize;
use tanada_io::{ModelSpec, Timeline, VirtualTimeOptions};

use super::guard::Guard;
use super::options::{check_engine_settings, check_memory, check_workloads};
use super::{CAPACITY_ONLY, Job, Progress, WITH_STAGING};
use crate::drive::{Clients, Driver, Phase};
use crate::engine::ClassFolder;
use crate::measure::Run;
use crate::workload::{Records, Workload};
use crate::{Error, Result};
use tanada_report::{Report, Table, cell, median};

/// Settings of the benchmark.
#[derive(Debug, Clone, Serialize)]
pub struct HseOptions {
    /// A folder to make files in; they are removed afterwards.
    pub directory: PathBuf,
    /// The device below the staging class.
    pub staging_model: String,
    /// The device below the capacity class.
    pub capacity_model: String,
    /// The records.
    pub records: Records,
    /// Operations of each workload.
    pub operations: u64,
    /// The workloads.
    pub workloads: Vec<Workload>,
    /// Clients.
    pub clients: usize,
    /// Memory for everything that the engine keeps in it.
    pub memory_bytes: u64,
    /// Bytes of the staging class, as a share of the data: there it could hold all of them.
    pub staging_share: f64,
    /// Whether CPU time passes.
    pub cpu: bool,
    /// Threads of the engine.
    pub threads: usize,
    /// Rounds.
    pub rounds: usize,
    /// Settings of the database and the store, as a list of both; null for its own.
    pub engine_settings: serde_json::Value,
}

impl HseOptions {
    /// A million records, as many operations, memory of an eighth of the data, one round.
    pub fn new(directory: impl Into<PathBuf>) -> HseOptions {
        HseOptions {
            directory: directory.into(),
            staging_model: "nvme".to_owned(),
            capacity_model: "4xsata-qlc".to_owned(),
            records: Records { count: 1_000_000, ..Records::default() },
            operations: 1_000_000,
            workloads: vec![Workload::A, Workload::B, Workload::C, Workload::D, Workload::F],
            clients: 96,
            memory_bytes: 128 << 20,
            staging_share: 1.5,
            cpu: false,
            threads: 2,
            rounds: 1,
            engine_settings: serde_json::Value::Null,
        }
    }

    /// Fifty thousand records: under a minute.
    pub fn quick(directory: impl Into<PathBuf>) -> HseOptions {
        HseOptions {
            records: Records { count: 50_000, ..Records::default() },
            operations: 30_000,
            workloads: vec![Workload::A, Workload::F],
            memory_bytes: 16 << 20,
            ..HseOptions::new(directory)
        }
    }

    fn check(&self) -> Result<()> {
        self.records.check()?;
        check_workloads(&self.workloads)?;
        check_memory(self.memory_bytes)?;
        check_engine_settings(&self.engine_settings)?;
        for model in [&self.staging_model, &self.capacity_model] {
            model.parse::<ModelSpec>().map_err(|error| Error::invalid(error.to_string()))?;
        }
        let is_usable = self.rounds > 0
            && self.operations > 0
            && (1..=100_000).contains(&self.clients)
            && self.threads > 0
            && self.staging_share > 0.0
            && self.staging_share <= 1000.0;
        if is_usable {
            Ok(())
        } else {
            Err(Error::invalid(
                "rounds, operations, clients (at most 100,000), threads and the share are above 0",
            ))
        }
    }
}

impl fmt::Display for HseOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let HseOptions { records, staging_model, capacity_model, clients, operations, .. } = self;
        let data = ByteSize::new(records.logical_bytes(records.count));
        let memory = ByteSize::new(self.memory_bytes);
        write!(f, "{} records of {} B ({data}), {memory} of memory, ", records.count, records.value_bytes())?;
        writeln!(f, "{capacity_model} with {staging_model} before it and without, emulated in virtual time")?;
        let time = if self.cpu { "the processor's time passes, too" } else { "only devices take time" };
        write!(f, "{clients} clients; {operations} operations of each workload; {time}")
    }
}

/// Runs the benchmark. `progress` is told before each part what comes.
///
/// # Errors
/// If files cannot be made, the engine fails, or options make no sense.
pub fn run_hse(options: &HseOptions, progress: Progress) -> Result<Report> {
    options.check()?;
    let mut report = Report::new("hse", options, &options.directory);
    report.setup = options.to_string();
    let mut runs = Vec::new();
    for round in 0..options.rounds {
        for tiers in [CAPACITY_ONLY, WITH_STAGING] {
            runs.extend(data_set(options, tiers, round, progress)?);
        }
    }
    runs.iter().for_each(|run| report.add_run(run));
    summarize(options, &runs, &mut report);
    Ok(report)
}

fn data_set(options: &HseOptions, tiers: &str, round: usize, progress: Progress) -> Result<Vec<Run>> {
    let folder = tempfile::Builder::new()
        .prefix("tanada-bench-hse-")
        .tempdir_in(&options.directory)
        .map_err(|error| Error::at_path("make a folder in", &options.directory, &error))?;
    let _guard = Guard::of(folder.path())?;
    let data = options.records.logical_bytes(options.records.count);
    let class = |name: &str, share: f64, model: &str| {
        let path = folder.path().join(name);
        std::fs::create_dir(&path).map_err(|error| Error::at_path("make", &path, &error))?;
        let size_bytes = ((data as f64 * share) as u64 + (512 << 20)) >> 20 << 20;
        Ok::<_, Error>(ClassFolder { name: name.to_owned(), path, size_bytes, model: Some(model.to_owned()) })
    };
    let mut classes = vec![class("capacity", 3.0, &options.capacity_model)?];
    if tiers == WITH_STAGING {
        classes.insert(0, class("staging", options.staging_share, &options.staging_model)?);
    }
    let mut records = options.records;
    let mut runs = Vec::new();
    let phases = std::iter::once(Phase::Load).chain(options.workloads.iter().copied().map(Phase::Run));
    for phase in phases {
        progress(&format!("{tiers}, {}, round {} of {}", phase.name(), round + 1, options.rounds));
        // A time of its own for each phase, in force until the engine is closed.
        let timeline = Timeline::virtual_time(VirtualTimeOptions { cpu: options.cpu });
        let job = Job {
            engine: super::ycsb::OWN.to_owned(),
            tiers: tiers.to_owned(),
            phase,
            round,
            driver: Driver {
                records,
                operations: options.operations,
                clients: Clients::Tasks(options.clients),
                interval_s: 0.1,
                seed: round as u64,
                ..Driver::default()
            },
            classes: classes.clone(),
            has_devices: false,
            memory_bytes: options.memory_bytes,
            durable_within_ms: 100,
            warm_up_s: 0.0,
            settles: true,
            threads: options.threads,
            engine_settings: options.engine_settings.clone(),
        };
        let run = job.perform();
        drop(timeline);
        let run = run.map_err(|error| Error::failed(format!("{tiers}, {}: {error}", phase.name())))?;
        records.count = run.records;
        runs.push(run);
    }
    Ok(runs)
}

fn summarize(options: &HseOptions, runs: &[Run], report: &mut Report) {
    let of = |tiers: &str, phase: &str, figure: &dyn Fn(&Run) -> f64| {
        let is_meant = |run: &&Run| run.tiers == tiers && run.phase == phase;
        median(runs.iter().filter(is_meant).map(figure).filter(|figure| figure.is_finite()))
    };
    let phases: Vec<String> =
        std::iter::once("load".to_owned()).chain(options.workloads.iter().map(Workload::to_string)).collect();
    let mut table = Table::new(&[
        "phase",
        "capacity only, op/s",
        "with staging, op/s",
        "read p99.9, us",
        "with staging",
        "MB to capacity",
        "with staging",
        "MB to staging",
    ]);
    for phase in &phases {
        let both = |figure: &dyn Fn(&Run) -> f64| {
            [CAPACITY_ONLY, WITH_STAGING].map(|tiers| of(tiers, phase, figure))
        };
        let rates = both(&|run| run.operations_per_second);
        let tails = both(&|run| run.us_p999("read"));
        let written = both(&|run| run.class_bytes_written("capacity") / 1e6);
        let staged = of(WITH_STAGING, phase, &|run| run.class_bytes_written("staging") / 1e6);
        report.summarize(&format!("staging_over_capacity_{phase}"), rates[1] / rates[0]);
        if tails[0] > 0.0 {
            report.summarize(&format!("staging_over_capacity_{phase}_p999"), tails[1] / tails[0]);
        }
        let reduction = written[0] / written[1];
        if reduction.is_finite() && (phase == "load" || written[0] > 0.0) {
            report.summarize(&format!("capacity_bytes_reduction_{phase}"), reduction);
        }
        let cells = [rates[0], rates[1], tails[0], tails[1], written[0], written[1], staged];
        let cells = cells.iter().map(|value| cell(*value, 0));
        table.add(std::iter::once(phase.clone()).chain(cells).collect());
    }
    report.tables.push(table);
    let most = runs.iter().map(|run| run.memory_bytes_most).max().unwrap_or(0);
    report.summarize("memory_over_budget", most as f64 / options.memory_bytes as f64);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::ClassBytes;
    use std::path::Path;

    #[test]
    fn nonsense_is_refused_before_anything_is_made() {
        let refused = |change: fn(&mut HseOptions)| {
            let mut options = HseOptions::quick("/nowhere");
            change(&mut options);
            let error = run_hse(&options, |what| panic!("{what}")).unwrap_err();
            assert_eq!(error.kind(), crate::ErrorKind::InvalidInput, "{error}");
        };
        refused(|options| options.memory_bytes = 1 << 10);
        refused(|options| options.workloads.clear());
        refused(|options| options.workloads = vec![Workload::A, Workload::A]);
        refused(|options| options.capacity_model = "tape".to_owned());
        refused(|options| options.staging_share = f64::NAN);
    }

    #[test]
    fn the_keys_are_ratios_of_the_two_set_ups() {
        let run = |tiers: &str, phase: &str, rate: f64, bytes_written| Run {
            tiers: tiers.to_owned(),
            phase: phase.to_owned(),
            operations_per_second: rate,
            classes_settled: vec![ClassBytes { name: "capacity".to_owned(), bytes_read: 0, bytes_written }],
            ..Run::default()
        };
        let mut runs = Vec::new();
        for phase in ["load", "a", "f"] {
            runs.push(run(CAPACITY_ONLY, phase, 10.0, 7_260_000_000));
            runs.push(run(WITH_STAGING, phase, 40.0, 2_978_000_000));
        }
        let mut report = Report::new("hse", &(), Path::new("/"));
        summarize(&HseOptions::quick("/"), &runs, &mut report);
        for key in ["staging_over_capacity_load", "staging_over_capacity_a", "staging_over_capacity_f"] {
            assert_eq!(report.summary[key], 4.0, "{key}");
        }
        assert_eq!(report.summary["capacity_bytes_reduction_load"], 2.438);
    }
}
