//! `tanada bench ycsb`: the load and the workloads, on Tanada and on another engine.
//!
//! 1. Each engine gets media of its own: equal ones, empty.
//! 2. The load, then the workloads in their order, each on what the one before it left. D and E add records; YCSB's order has D and E last.
//! 3. Rounds take turns: the engine that was first in one is last in the next. Figures are medians over the rounds.

use std::collections::BTreeMap;

use super::places::Places;
use super::summary::summarize;
use super::{Job, Progress, YcsbOptions, room};
use crate::drive::{Clients, Driver, Phase};
use crate::engine::ClassFolder;
use crate::measure::Run;
use crate::media::random_reads_per_second;
use crate::report::Report;
use crate::workload::Workload;
use crate::{Error, Result};

/// The name of Tanada's runs.
pub(super) const OWN: &str = "tanada";

/// Runs the benchmark. `progress` is told before each part what comes.
///
/// # Errors
/// If media cannot be made, an engine fails, or options make no sense.
pub fn run_ycsb(options: &YcsbOptions, progress: Progress) -> Result<Report> {
    run_ycsb_with(options, progress, |_| Ok(()))
}

/// As [`run_ycsb`]; `save` gets the report of all rounds so far after each of them.
///
/// # Errors
/// As there, and what `save` gives.
pub fn run_ycsb_with(
    options: &YcsbOptions,
    progress: Progress,
    mut save: impl FnMut(&Report) -> Result<()>,
) -> Result<Report> {
    options.check()?;
    progress(&room::check(options)?);
    let mut runs = Vec::new();
    let begun = Report::new("ycsb", options, &options.directory);
    let mut report = begun.clone();
    for round in 0..options.rounds {
        for tiers in &options.tiers {
            let mut engines = options.engines();
            if round % 2 == 1 {
                engines.reverse();
            }
            for engine in engines {
                let done = data_set(options, engine, tiers, round, progress);
                runs.extend(done.map_err(Error::with_advice)?);
            }
        }
        report = begun.clone();
        runs.iter().for_each(|run| report.add_run(run));
        summarize(options, &runs, &mut report);
        save(&report)?;
    }
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
    let peer = options.against.iter().find(|peer| peer.engine == engine);
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
        let job = Job {
            engine: engine.to_owned(),
            tiers: tiers.to_owned(),
            phase,
            round,
            driver: Driver { records, clients, ..options.driver(phase, round) },
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
            Some(peer) => peer.perform(&job, places.guard()),
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
