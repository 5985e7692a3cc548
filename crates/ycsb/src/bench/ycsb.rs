//! `tanada bench ycsb`: the load and the workloads, on Tanada and on another engine.
//!
//! 1. Each engine gets media of its own: equal ones, empty.
//! 2. The load, then the workloads in their order, each on what the one before it left. D and E add records; YCSB's order has D and E last.
//! 3. Rounds take turns: the engine that was first in one is last in the next. Figures are medians over the rounds.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::Serialize;

use super::places::{Places, Sizes};
use super::summary::summarize;
use super::{CAPACITY_ONLY, Job, Peer, Progress, WITH_STAGING};
use crate::drive::{Clients, Driver, Phase};
use crate::engine::ClassFolder;
use crate::measure::Run;
use crate::media::{MediaKind, random_reads_per_second};
use crate::report::Report;
use crate::workload::{Records, Workload};
use crate::{Error, Result};

/// The name of Tanada's runs.
pub(super) const OWN: &str = "tanada";

/// Settings of the benchmark.
#[derive(Debug, Clone, Serialize)]
pub struct YcsbOptions {
    /// A folder to make files in; they are removed afterwards.
    pub directory: PathBuf,
    /// What the files lie on.
    pub media: MediaKind,
    /// Which classes there are, in turn: `capacity`, `staging`.
    pub tiers: Vec<String>,
    /// The records.
    pub records: Records,
    /// Operations of each workload.
    pub operations: u64,
    /// A workload ends after so many seconds at the latest; 0 for no end.
    pub seconds: f64,
    /// A workload runs for so many seconds before it is measured: every phase begins with cold caches.
    pub warm_up_s: f64,
    /// The workloads, in their order.
    pub workloads: Vec<Workload>,
    /// How clients run; with `Tasks`, another engine gets as many threads.
    pub clients: Clients,
    /// Operations a second that are due; 0 for a closed loop.
    pub target_per_second: f64,
    /// Whether an update replaces the whole record.
    pub update_all_fields: bool,
    /// Memory for everything an engine keeps in it.
    pub memory_bytes: u64,
    /// Bytes that an engine may use of the staging class, as a share of the data.
    pub staging_share: f64,
    /// A write is durable after so many milliseconds at the latest; 0 for before it is acknowledged.
    pub durable_within_ms: u16,
    /// Rounds.
    pub rounds: usize,
    /// Threads of Tanada; 0 for one per core.
    pub threads: usize,
    /// Whether Tanada runs; without it only the other engine does.
    pub own: bool,
    /// The engine to compare with.
    pub against: Option<Peer>,
    /// Settings of Tanada's database and store, as a list of both; null for its own.
    pub engine_settings: serde_json::Value,
}

impl YcsbOptions {
    /// Two million records of 1,000 bytes, four threads, a fifth of the data as memory, staging with room for all of them and half of them more; three rounds
    /// of 20 s a workload, after 20 s that are not measured.
    pub fn new(directory: impl Into<PathBuf>) -> YcsbOptions {
        YcsbOptions {
            directory: directory.into(),
            media: MediaKind::available(),
            tiers: vec![WITH_STAGING.to_owned()],
            records: Records { count: 2_000_000, ..Records::default() },
            operations: 10_000_000,
            seconds: 20.0,
            warm_up_s: 20.0,
            workloads: vec![Workload::A, Workload::B, Workload::C, Workload::F, Workload::D, Workload::E],
            clients: Clients::Threads(4),
            target_per_second: 0.0,
            update_all_fields: true,
            memory_bytes: 384 << 20,
            staging_share: 1.5,
            durable_within_ms: 100,
            rounds: 3,
            threads: 0,
            own: true,
            against: None,
            engine_settings: serde_json::Value::Null,
        }
    }

    /// A quarter of a million records, at most a second a workload, one round: under a minute.
    pub fn quick(directory: impl Into<PathBuf>) -> YcsbOptions {
        YcsbOptions {
            records: Records { count: 250_000, ..Records::default() },
            seconds: 1.0,
            warm_up_s: 0.0,
            memory_bytes: 64 << 20,
            rounds: 1,
            ..YcsbOptions::new(directory)
        }
    }

    fn check(&self) -> Result<()> {
        self.records.check()?;
        let tiers_are_known =
            self.tiers.iter().all(|tiers| [CAPACITY_ONLY, WITH_STAGING].contains(&tiers.as_str()));
        if !tiers_are_known || self.tiers.is_empty() || self.rounds == 0 {
            return Err(Error::invalid("there is at least one round, and the tiers are capacity or staging"));
        }
        if self.staging_share.is_nan() || self.staging_share <= 0.0 || self.memory_bytes < 8 << 20 {
            return Err(Error::invalid(
                "the staging class is larger than nothing, and memory at least 8 MiB",
            ));
        }
        Ok(())
    }

    fn sizes(&self) -> Sizes {
        let data = self.records.logical_bytes(self.records.count);
        let staging = ((data as f64 * self.staging_share) as u64).max(128 << 20);
        Sizes { staging_bytes: staging >> 20 << 20, capacity_bytes: (3 * data + (512 << 20)) >> 20 << 20 }
    }

    pub(super) fn engines(&self) -> Vec<&str> {
        let peer = self.against.iter().map(|peer| peer.engine.as_str());
        self.own.then_some(OWN).into_iter().chain(peer).collect()
    }
}

/// Runs the benchmark. `progress` is told before each part what comes.
///
/// # Errors
/// If media cannot be made, an engine fails, or options make no sense.
pub fn run_ycsb(options: &YcsbOptions, progress: Progress) -> Result<Report> {
    options.check()?;
    let mut report = Report::new("ycsb", options, &options.directory);
    let mut runs = Vec::new();
    for round in 0..options.rounds {
        for tiers in &options.tiers {
            let mut engines = options.engines();
            if round % 2 == 1 {
                engines.reverse();
            }
            for engine in engines {
                runs.extend(data_set(options, engine, tiers, round, progress)?);
            }
        }
    }
    runs.iter().for_each(|run| report.add_run(run));
    summarize(options, &runs, &mut report);
    Ok(report)
}

/// All phases of one engine on one data set.
fn data_set(
    options: &YcsbOptions,
    engine: &str,
    tiers: &str,
    round: usize,
    progress: Progress,
) -> Result<Vec<Run>> {
    let places = Places::create(&options.directory, options.media, tiers, options.sizes())?;
    let peer = options.against.as_ref().filter(|peer| peer.engine == engine && engine != OWN);
    let mut records = options.records;
    let mut runs = Vec::new();
    // What is compared with it is what Tanada reads in C.
    let device_iops = match engine == OWN && options.workloads.contains(&Workload::C) {
        true => device_iops(options, &places, tiers, round, progress)?,
        false => BTreeMap::new(),
    };
    let phases = std::iter::once(Phase::Load).chain(options.workloads.iter().copied().map(Phase::Run));
    for phase in phases {
        progress(&format!("{engine}, {tiers}, {}, round {} of {}", phase.name(), round + 1, options.rounds));
        let clients = match (options.clients, peer) {
            (Clients::Tasks(count), Some(_)) => Clients::Threads(count),
            (clients, _) => clients,
        };
        let target_per_second = if phase == Phase::Load { 0.0 } else { options.target_per_second };
        let job = Job {
            engine: engine.to_owned(),
            tiers: tiers.to_owned(),
            phase,
            round,
            driver: Driver {
                records,
                operations: options.operations,
                seconds: options.seconds,
                clients,
                target_per_second,
                distribution: None,
                update_all_fields: options.update_all_fields,
                interval_s: if options.seconds > 0.0 && options.seconds < 10.0 { 0.1 } else { 1.0 },
                seed: round as u64,
            },
            classes: places.classes.clone(),
            has_devices: places.has_devices,
            memory_bytes: options.memory_bytes,
            durable_within_ms: options.durable_within_ms,
            warm_up_s: options.warm_up_s,
            settles: true,
            threads: options.threads,
            engine_settings: match peer {
                Some(_) => serde_json::Value::Null,
                None => options.engine_settings.clone(),
            },
        };
        let run = match peer {
            Some(peer) => peer.perform(&job),
            None => job.perform(),
        };
        let run =
            run.map_err(|error| Error::failed(format!("{engine}, {tiers}, {}: {error}", phase.name())))?;
        records.count = run.records;
        runs.push(Run { device_iops: device_iops.clone(), ..run });
    }
    Ok(runs)
}

/// Random reads a second of each class by as many clients as the run has.
fn device_iops(
    options: &YcsbOptions,
    places: &Places,
    tiers: &str,
    round: usize,
    progress: Progress,
) -> Result<BTreeMap<String, f64>> {
    progress(&format!("random reads, {tiers}, round {} of {}", round + 1, options.rounds));
    // As long as a short workload, where those are short.
    let seconds = if options.seconds > 0.0 { options.seconds.clamp(0.1, 2.0) } else { 2.0 };
    let measured = |class: &ClassFolder| {
        let iops = random_reads_per_second(&class.path, class.size_bytes, options.clients, seconds)?;
        Ok((class.name.clone(), iops))
    };
    places.classes.iter().map(measured).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    #[test]
    fn nonsense_is_refused() {
        let refused = |options: YcsbOptions| run_ycsb(&options, |_| {}).is_err();
        assert!(refused(YcsbOptions { rounds: 0, ..YcsbOptions::quick("/") }));
        assert!(refused(YcsbOptions { tiers: vec!["tape".to_owned()], ..YcsbOptions::quick("/") }));
        for count in [0, u64::MAX] {
            assert!(refused(YcsbOptions {
                records: Records { count, ..Records::default() },
                ..YcsbOptions::quick("/")
            }));
        }
        assert!(refused(YcsbOptions { staging_share: f64::NAN, ..YcsbOptions::quick("/") }));
    }
}
