//! `tanada bench ycsb`: the load and the workloads, on Tanada and on another engine.
//!
//! 1. Each engine gets media of its own: equal ones, empty.
//! 2. The load, then the workloads in their order, each on what the one before it left. D and E add records; YCSB's
//!    order has D and E last.
//! 3. Engines take turns: all of them do a phase before the next one begins, for a machine may be faster in one quarter
//!    of an hour than in the next. Who was first in a phase is last in the one after it, and in the next round. Only
//!    where there is no room for the data of all of them one follows the other.
//!
//! Figures are medians over the rounds.

use std::collections::BTreeMap;

use super::places::Places;
use super::room::Room;
use super::summary::summarize;
use super::{Job, Peer, Progress, YcsbOptions};
use crate::drive::{Clients, Driver, Phase};
use crate::engine::ClassFolder;
use crate::measure::Run;
use crate::media::random_reads_per_second;
use crate::workload::{Records, Workload};
use crate::{Error, Result};
use tanada_report::Report;

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
    let room = Room::of(options)?;
    progress(&room.to_string());
    let mut runs = Vec::new();
    let mut begun = Report::new("ycsb", options, &options.directory);
    begun.setup = options.to_string();
    let mut report = begun.clone();
    for round in 0..options.rounds {
        for tiers in &options.tiers {
            let mut engines = options.engines();
            if round % 2 == 1 {
                engines.reverse();
            }
            for together in engines.chunks(room.together()) {
                let done = phases_in_turn(options, together, tiers, round, progress);
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

/// All phases of some engines, each on a data set of its own, which go at the end.
fn phases_in_turn(
    options: &YcsbOptions,
    engines: &[&str],
    tiers: &str,
    round: usize,
    progress: Progress,
) -> Result<Vec<Run>> {
    let in_round = format!("round {} of {}", round + 1, options.rounds);
    let data_sets = engines.iter().map(|engine| DataSet::create(options, engine, tiers));
    let mut data_sets = data_sets.collect::<Result<Vec<_>>>()?;
    for data_set in &mut data_sets {
        // What is compared with it is what Tanada reads in C.
        if data_set.peer.is_none() && options.workloads.contains(&Workload::C) {
            progress(&format!("random reads, {tiers}, {in_round}"));
            data_set.device_iops = device_iops(options, &data_set.places)?;
        }
    }
    let mut runs = Vec::new();
    let phases = std::iter::once(Phase::Load).chain(options.workloads.iter().copied().map(Phase::Run));
    for phase in phases {
        for data_set in &mut data_sets {
            let what = format!("{}, {tiers}, {}", data_set.engine, phase.name());
            progress(&format!("{what}, {in_round}"));
            let run = data_set.perform(options, phase, round);
            runs.push(run.map_err(|error| Error::failed(format!("{what}: {error}")))?);
        }
        data_sets.reverse();
    }
    Ok(runs)
}

/// Of one engine, in one round.
struct DataSet<'a> {
    engine: &'a str,
    tiers: &'a str,
    /// None for Tanada.
    peer: Option<&'a Peer>,
    places: Places,
    /// As many as there are by now.
    records: Records,
    /// Random reads a second of each class, where they were measured.
    device_iops: BTreeMap<String, f64>,
}

impl<'a> DataSet<'a> {
    /// An empty one.
    fn create(options: &'a YcsbOptions, engine: &'a str, tiers: &'a str) -> Result<DataSet<'a>> {
        Ok(DataSet {
            engine,
            tiers,
            peer: options.against.iter().find(|peer| peer.engine == engine),
            places: Places::create(&options.directory, options.media, tiers, options.sizes())?,
            records: options.records,
            device_iops: BTreeMap::new(),
        })
    }

    /// Has the engine do a phase.
    fn perform(&mut self, options: &YcsbOptions, phase: Phase, round: usize) -> Result<Run> {
        let clients = match (options.clients, self.peer) {
            (Clients::Tasks(count), Some(_)) => Clients::Threads(count),
            (clients, _) => clients,
        };
        let job = Job {
            engine: self.engine.to_owned(),
            tiers: self.tiers.to_owned(),
            phase,
            round,
            driver: Driver { records: self.records, clients, ..options.driver(phase, round) },
            classes: self.places.classes.clone(),
            has_devices: self.places.has_devices,
            memory_bytes: options.memory_bytes,
            durable_within_ms: options.durable_within_ms,
            warm_up_s: options.warm_up_s,
            settles: true,
            threads: options.threads,
            engine_settings: match self.peer {
                Some(_) => serde_json::Value::Null,
                None => options.engine_settings.clone(),
            },
        };
        let run = match self.peer {
            Some(peer) => peer.perform(&job, self.places.guard()),
            None => job.perform(),
        }?;
        self.records.count = run.records;
        Ok(Run { device_iops: self.device_iops.clone(), ..run })
    }
}

/// Random reads a second of each class by as many clients as the run has.
fn device_iops(options: &YcsbOptions, places: &Places) -> Result<BTreeMap<String, f64>> {
    // As long as a short workload, where those are short.
    let seconds = if options.seconds > 0.0 { options.seconds.clamp(0.1, 2.0) } else { 2.0 };
    let measured = |class: &ClassFolder| {
        let iops = random_reads_per_second(&class.path, class.size_bytes, options.clients, seconds)?;
        Ok((class.name.clone(), iops))
    };
    places.classes.iter().map(measured).collect()
}
