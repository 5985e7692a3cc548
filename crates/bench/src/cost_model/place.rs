//! A data directory on an emulated device, or on the disk where it lies, and statements on it, cold.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;
use tanada_innodb::MountOptions;
use tanada_io::{GateLimits, ModelSpec, RegisteredThread, Timeline, VirtualTimeOptions};
use tanada_query::predict::{Prediction, RowEstimate, row_estimates};
use tanada_query::{Session, SessionOptions};
use tanada_sample::{EmulatedFiles, answer, runtime_on};
use tokio::runtime::Runtime;

use crate::{Error, Result};

/// What the files lie on.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Place {
    /// An emulated device, in virtual time.
    Emulated(ModelSpec),
    /// The disk where they are.
    Disk,
}

impl std::fmt::Display for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Place::Emulated(spec) => write!(f, "{spec} (emulated)"),
            Place::Disk => f.write_str("disk"),
        }
    }
}

/// The data, and how it is read.
#[derive(Debug, Clone, Serialize)]
pub struct Data {
    /// The data directory.
    pub innodb: PathBuf,
    /// The database.
    pub database: String,
    /// Page cache, emptied before each run.
    pub cache_bytes: u64,
    /// Seed of emulated devices.
    pub seed: u64,
}

impl Data {
    /// TPC-H in `innodb`.
    pub fn new(innodb: PathBuf) -> Data {
        Data { innodb, database: "tpch".to_owned(), cache_bytes: 256 << 20, seed: 7 }
    }
}

/// One cold run of a statement.
#[derive(Debug, Clone)]
pub struct ColdRun {
    /// Time, of the emulated device's clock where there is one.
    pub seconds: f64,
    /// What the cost model said before.
    pub prediction: Prediction,
    /// Estimated and counted rows.
    pub rows: Vec<RowEstimate>,
    /// I/Os.
    pub ios: u64,
    /// The rows as text, sorted.
    pub answer: Vec<String>,
    /// The names of the plan's operators, in one line.
    pub plan: String,
}

/// A session on a place.
pub struct Placed {
    session: Session,
    timeline: Timeline,
    // Dropped after the session.
    runtime: Runtime,
    _takes_part: RegisteredThread,
}

impl Placed {
    /// Mounts `data` on `place`. The calling thread runs the statements.
    ///
    /// # Errors
    /// If it cannot be mounted.
    pub fn open(data: &Data, place: &Place) -> Result<Placed> {
        let timeline = match place {
            Place::Emulated(_) => Timeline::virtual_time(VirtualTimeOptions::default()),
            Place::Disk => Timeline::real(),
        };
        let runtime = runtime_on(&timeline)?;
        let takes_part = timeline.register_thread();
        let session = runtime.block_on(mounted(data, place, &timeline))?;
        Ok(Placed { session, timeline, runtime, _takes_part: takes_part })
    }

    /// Sets settings, `(tanada.lookup_join, always)`.
    ///
    /// # Errors
    /// If one does not exist.
    pub fn set(&self, settings: &[(&str, &str)]) -> Result<()> {
        self.runtime.block_on(async {
            for (key, value) in settings {
                self.session.set(key, value).await?;
            }
            Ok(())
        })
    }

    /// Runs `sql` with nothing cached; tables are opened and sampled before.
    ///
    /// # Errors
    /// If it fails.
    pub fn cold(&self, sql: &str) -> Result<ColdRun> {
        self.runtime.block_on(async {
            self.session.execute(&format!("explain {sql}")).await?.collect().await?;
            self.session.clear_cache();
            let clock = self.timeline.clock();
            let begun: Duration = clock.now();
            let mut result = self.session.execute(sql).await?;
            let prediction = result.prediction().unwrap_or_default();
            let batches = result.collect().await?;
            let seconds = clock.now().saturating_sub(begun).as_secs_f64();
            let mut answer = answer::lines(&batches)?;
            answer.sort_unstable();
            let plan = result.plan();
            Ok(ColdRun {
                seconds,
                prediction,
                rows: plan.map(row_estimates).unwrap_or_default(),
                ios: result.report().ios,
                answer,
                plan: plan.map(shape).unwrap_or_default(),
            })
        })
    }
}

/// The names of the joins and scans of a plan, from the top down.
fn shape(plan: &Arc<dyn datafusion::physical_plan::ExecutionPlan>) -> String {
    let mut names = Vec::new();
    put_names(plan, &mut names);
    names.join(" ")
}

fn put_names(plan: &Arc<dyn datafusion::physical_plan::ExecutionPlan>, names: &mut Vec<String>) {
    if plan.name().contains("Join") || plan.name().contains("Scan") {
        names.push(plan.name().trim_end_matches("Exec").to_owned());
    }
    plan.children().into_iter().for_each(|child| put_names(child, names));
}

async fn mounted(data: &Data, place: &Place, timeline: &Timeline) -> Result<Session> {
    let session =
        Session::new(SessionOptions { cache_bytes: data.cache_bytes, ..SessionOptions::default() })?;
    let options = MountOptions::default();
    match place {
        Place::Emulated(spec) => {
            let files = EmulatedFiles::new(timeline.array(spec, data.seed));
            session.mount_innodb_in(Arc::new(files), &data.innodb, &options).await?;
            // Large arrays have room for more than the default.
            let in_flight = GateLimits::for_spindles(spec.members()).bytes;
            session.set("tanada.io_bytes", &in_flight.to_string()).await?;
        }
        Place::Disk => {
            session.mount_innodb(Path::new(&data.innodb), &options).await?;
        }
    }
    session.use_database(&data.database)?;
    Ok(session)
}

/// Fails where two runs of one statement gave different answers.
///
/// # Errors
/// If they did.
pub fn check_same(what: &str, first: &[String], other: &[String]) -> Result<()> {
    let close = first.len() == other.len() && first.iter().zip(other).all(|(a, b)| is_close(a, b));
    match close {
        true => Ok(()),
        false => Err(Error::failed(format!("{what} gave another answer than the plan before"))),
    }
}

/// Two rows whose numbers differ by no more than sums of doubles in another order.
fn is_close(a: &str, b: &str) -> bool {
    let (mut left, mut right) = (a.split('\t'), b.split('\t'));
    loop {
        match (left.next(), right.next()) {
            (None, None) => return true,
            (Some(a), Some(b)) if a == b => {}
            (Some(a), Some(b)) => match (a.parse::<f64>(), b.parse::<f64>()) {
                (Ok(a), Ok(b)) if (a - b).abs() <= a.abs().max(b.abs()) * 1e-9 => {}
                _ => return false,
            },
            _ => return false,
        }
    }
}
