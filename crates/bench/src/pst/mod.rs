//! The pre-query storage tiering paper's evaluation: nine queries of TPC-H on a volume of three disks and one SSD,
//! under every policy, by the share of the data that the SSD has room for.
//!
//! 1. [`record`](recorded): the queries run in order on the bare files, and out of order on the slow class in virtual
//!    time, with a page cache of a third of the data; what they read becomes a trace. Out of order they are recorded
//!    twice, and policies learn from the first time.
//! 2. The trace is replayed in virtual time under every policy at every share, interleaved, with several seeds:
//!    relocations take their time from the same devices, so they count as query time.
//! 3. [`live`]: at some shares the queries run on a real volume over the same models, placed by the policies
//!    themselves, in virtual time and in real time. How far replay, virtual time and real time agree is part of the
//!    summary.
//! 4. Every answer of every run is compared with the first one.
//!
//! [`rdbms`] is the same with a server that keeps its files on a mounted volume.

mod figures;
mod live;
mod page;
pub mod rdbms;
mod recorded;
pub mod select;

use std::path::PathBuf;

use serde::Serialize;
use tanada_io::ModelSpec;
use tanada_placement::Trace;
use tanada_replay::{Outcome, Pace, SimulationOptions, sweep_after};

use crate::{Error, ErrorKind, Result};
use tanada_report::Report;

pub use figures::Replayed;
pub use live::LiveRun;
pub use page::html;

/// One I/O at a time.
pub const IN_ORDER: &str = "in_order";
/// Many in flight.
pub const OUT_OF_ORDER: &str = "out_of_order";

/// What to measure.
#[derive(Debug, Clone, Serialize)]
pub struct PstSettings {
    /// The data directory.
    pub innodb: PathBuf,
    /// The database.
    pub database: String,
    /// The paper's queries, or others.
    pub queries: Vec<(String, String)>,
    /// Policies that are replayed.
    pub policies: Vec<String>,
    /// Room of the fast class in per cent of what the queries' tables have.
    pub shares: Vec<u32>,
    /// Shares at which the queries run on a volume.
    pub live_shares: Vec<u32>,
    /// Policies of those runs: such as place chunks.
    pub live_policies: Vec<String>,
    /// Whether those runs are made in real time too.
    pub real_time: bool,
    /// Devices of the fast class.
    pub fast: ModelSpec,
    /// Devices of the slow class.
    pub slow: ModelSpec,
    /// I/Os in flight out of order.
    pub depth: u32,
    /// Page cache as a part of the tables' bytes.
    pub cache_share: f64,
    /// Replays of each policy and share, each with another seed.
    pub runs: usize,
    /// Clients of the mixed workload; 0 leaves it out.
    pub clients: usize,
    /// A folder in which the recorded traces are kept.
    pub traces: Option<PathBuf>,
    /// A folder for volumes; a temporary one if there is none.
    pub work: Option<PathBuf>,
}

impl PstSettings {
    /// The paper's evaluation on `innodb`: TPC-H with the DBT-3 indexes in the database `tpch`.
    pub fn new(innodb: PathBuf) -> PstSettings {
        let query = |query: &tanada_sample::SampleQuery| (query.name.to_owned(), query.sql.to_owned());
        let policies = tanada_replay::POLICIES.iter().map(|registered| registered.name);
        PstSettings {
            innodb,
            database: "tpch".to_owned(),
            queries: tanada_sample::TIERING.iter().map(query).collect(),
            // It writes logs of updates, and the queries update nothing.
            policies: policies.filter(|name| *name != "in-page-logging").map(str::to_owned).collect(),
            shares: (0..=100).step_by(10).collect(),
            live_shares: vec![20, 50, 80],
            live_policies: ["benefit", "static"].map(str::to_owned).to_vec(),
            real_time: true,
            fast: ModelSpec::new(tanada_io::Preset::SataSsd),
            slow: ModelSpec::new(tanada_io::Preset::Hdd7200).times(3),
            depth: 32,
            cache_share: 1.0 / 3.0,
            runs: 3,
            clients: 8,
            traces: None,
            work: None,
        }
    }

    /// A quick look: live runs at one share, in virtual time alone.
    pub fn quick(self) -> PstSettings {
        PstSettings { real_time: false, live_shares: vec![50], ..self }
    }

    /// The policy of that name, as it was asked for: without options if there is that, else the first with some.
    fn policy<'a>(&'a self, name: &'a str) -> &'a str {
        let first = self.policies.iter().find(|policy| is_named(policy, name));
        if self.policies.iter().any(|policy| policy == name) {
            name
        } else {
            first.map_or(name, String::as_str)
        }
    }

    fn pace(&self, execution: &str) -> Pace {
        if execution == IN_ORDER { Pace::InOrder } else { Pace::OutOfOrder { depth: self.depth } }
    }

    fn options(
        &self,
        execution: &str,
        policy: &str,
        share: u32,
        clients: usize,
        seed: u64,
    ) -> SimulationOptions {
        SimulationOptions {
            fast: self.fast.clone(),
            slow: self.slow.clone(),
            pace: self.pace(execution),
            clients,
            seed,
            ..SimulationOptions::new(policy, f64::from(share) / 100.0)
        }
    }
}

/// Whether `policy`, options and all, is the one of that name.
fn is_named(policy: &str, name: &str) -> bool {
    policy.split(':').next() == Some(name)
}

/// Runs the evaluation; `progress` hears what happens. Blocks: call it from a thread that may.
///
/// # Errors
/// `InvalidInput` for settings that nothing can be run with, a live policy that is for replays alone among them; when a
/// run fails, or two runs give different answers.
pub fn run(settings: PstSettings, progress: &(dyn Fn(&str) + Sync)) -> Result<Report> {
    if settings.runs == 0 || settings.queries.is_empty() || settings.shares.is_empty() {
        return Err(Error::new(
            ErrorKind::InvalidInput,
            "at least one run, one query and one share are needed",
        ));
    }
    // Better now than after the recording.
    for policy in &settings.live_policies {
        live::check(policy)?;
    }
    let mut answers = recorded::Answers::default();
    let (mut traces, mut trainings) = (Vec::new(), Vec::new());
    for execution in [IN_ORDER, OUT_OF_ORDER] {
        // Out of order no run reads in the order of another, so policies learn from one that is not the one that
        // counts.
        let training = if execution == IN_ORDER {
            None
        } else {
            progress(&format!("recording {} queries, {execution}, to learn from", settings.queries.len()));
            Some(recorded::record(&settings, execution, "out_of_order_before", &mut answers)?)
        };
        trainings.push(training);
        progress(&format!("recording {} queries, {execution}", settings.queries.len()));
        traces.push((execution, recorded::record(&settings, execution, execution, &mut answers)?));
    }
    let mut report = Report::new("pst", &settings, &settings.innodb);
    if let Some(settings) = report.settings.as_object_mut() {
        settings.insert("emulated".to_owned(), true.into());
    }
    let mut replayed = Vec::new();
    for ((execution, trace), training) in traces.iter().zip(&trainings) {
        let pair = (training.as_ref().unwrap_or(trace), trace);
        replayed.extend(replay(&settings, execution, pair, 1, progress)?);
        if settings.clients > 1 {
            replayed.extend(replay(&settings, execution, pair, settings.clients, progress)?);
        }
    }
    let mut live = Vec::new();
    for (execution, trace) in &traces {
        live.extend(live::run(&settings, execution, trace.bytes(), &mut answers, progress)?);
    }
    replayed.iter().for_each(|run| report.add_run(run));
    live.iter().for_each(|run| report.add_run(run));
    figures::put(&settings, &traces, &replayed, &live, &mut report);
    Ok(report)
}

/// Replays of all policies at all shares; of several clients only those of `benefit` and `static`.
fn replay(
    settings: &PstSettings,
    execution: &'static str,
    (training, trace): (&Trace, &Trace),
    clients: usize,
    progress: &(dyn Fn(&str) + Sync),
) -> Result<Vec<Replayed>> {
    let is_mixed = clients > 1;
    let mut runs = Vec::new();
    for seed in 1..=settings.runs as u64 {
        for share in &settings.shares {
            for policy in &settings.policies {
                if !is_mixed || is_named(policy, "benefit") || is_named(policy, "static") {
                    runs.push((*share, settings.options(execution, policy, *share, clients, seed)));
                }
            }
        }
    }
    let options: Vec<SimulationOptions> = runs.iter().map(|(_, options)| options.clone()).collect();
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let all = options.len();
    let told = |done: usize| {
        if done.is_multiple_of(50) {
            progress(&format!("replays {execution}, {clients} clients: {done} of {all}"));
        }
    };
    let outcomes = sweep_after(training, trace, None, &options, threads, &told)
        .map_err(|error| Error::failed(error.to_string()))?;
    let run = |((share, options), outcome): (&(u32, SimulationOptions), Outcome)| Replayed {
        kind: "replay",
        execution,
        clients,
        share: *share,
        seed: options.seed,
        outcome,
    };
    Ok(runs.iter().zip(outcomes).map(run).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_policy_of_blocks_does_not_run_on_a_volume() {
        for (policy, said) in
            [("lru:fifo", "lru places blocks"), ("mru", "mru"), ("history:ahead=0", "ahead")]
        {
            let settings =
                PstSettings { live_policies: vec![policy.to_owned()], ..PstSettings::new("/nowhere".into()) };
            let error = run(settings, &|_| ()).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidInput, "{error}");
            assert!(error.to_string().contains(said), "{error}");
        }
        for policy in PstSettings::new("/nowhere".into()).live_policies {
            live::check(&policy).unwrap();
        }
    }
}
