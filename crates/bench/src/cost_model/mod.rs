//! How good the cost model is: what it predicts and chooses, beside what plans take.
//!
//! [`run`]: each query of TPC-H on each medium, cold, by the plan that is chosen and by plans that are forced.
//!
//! 1. `prediction_error_median`: how far the predicted time of the chosen plan is from the time that it took.
//! 2. `choice_over_best_p90` and `_max`: the chosen plan's time over the best plan's.
//! 3. `q_error_median`: by which factor estimated rows of scans, joins and aggregations are off.
//!
//! [`join_choice`]: one join with an outer side of any size; both ways to join, and the choice.
//!
//! Emulated devices run in virtual time; every answer of every plan is compared.

mod choice;
mod figures;
mod place;

use serde::Serialize;
use tanada_report::Report;
use tanada_sample::TPCH_ALL;

use crate::{Error, ErrorKind, Result};
pub use choice::{JoinChoiceSettings, join_choice, join_choice_html};
use place::check_same;
pub use place::{Data, Place, Placed};

/// Settings that leave a choice or force one.
const PLANS: [(&str, &str, &str); 5] = [
    ("chosen", "auto", "auto"),
    ("look-ups", "always", "auto"),
    ("no look-ups", "never", "auto"),
    ("no indexes", "never", "never"),
    ("look-ups, whole scans", "always", "never"),
];

/// What to measure.
#[derive(Debug, Clone, Serialize)]
pub struct CostModelSettings {
    /// The data.
    pub data: Data,
    /// What it lies on.
    pub places: Vec<Place>,
    /// Numbers of the queries, 1 to 22.
    pub queries: Vec<u32>,
    /// Runs of each plan; the median counts.
    pub runs: usize,
}

impl CostModelSettings {
    /// All queries of `data` on `places`.
    pub fn new(data: Data, places: Vec<Place>) -> CostModelSettings {
        CostModelSettings { data, places, queries: (1..=22).collect(), runs: 3 }
    }

    /// Some of the queries, once.
    #[must_use]
    pub fn quick(self) -> CostModelSettings {
        CostModelSettings { queries: vec![1, 3, 4, 6, 12, 14, 17, 19], runs: 1, ..self }
    }
}

/// One run of one plan.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PlanRun {
    /// What the files lay on.
    pub place: String,
    /// `q1` to `q22`.
    pub query: &'static str,
    /// Which plan.
    pub plan: &'static str,
    /// From 1.
    pub run: usize,
    /// The time that it took.
    pub seconds: f64,
    /// What was predicted.
    pub predicted_seconds: f64,
    /// Of that, I/O and the processor of all cores.
    pub predicted_io_seconds: f64,
    /// The processor's part.
    pub predicted_cpu_seconds: f64,
    /// I/Os done.
    pub ios: u64,
    /// By which factors estimates of rows were off.
    pub q_errors: Vec<f64>,
    /// Joins and scans.
    pub operators: String,
}

/// Runs the benchmark; `progress` hears what happens. Blocks: call it from a thread that may.
///
/// # Errors
/// If a plan fails, or two plans of a query give different answers.
pub fn run(settings: &CostModelSettings, progress: &dyn Fn(&str)) -> Result<Report> {
    if settings.runs == 0 || settings.queries.is_empty() || settings.places.is_empty() {
        return Err(Error::new(
            ErrorKind::InvalidInput,
            "at least one run, one query and one medium are needed",
        ));
    }
    let mut runs = Vec::new();
    for place in &settings.places {
        let placed = Placed::open(&settings.data, place)?;
        for number in &settings.queries {
            let query = TPCH_ALL
                .get((*number as usize).wrapping_sub(1))
                .ok_or_else(|| Error::new(ErrorKind::InvalidInput, format!("there is no query {number}")))?;
            let mut first: Option<Vec<String>> = None;
            for run in 1..=settings.runs {
                for (plan, lookup_join, index_scan) in PLANS {
                    progress(&format!("{place}, {}, {plan}, run {run} of {}", query.name, settings.runs));
                    placed.set(&[("tanada.lookup_join", lookup_join), ("tanada.index_scan", index_scan)])?;
                    let cold = placed.cold(query.sql)?;
                    let what = format!("{} by the plan '{plan}' on {place}", query.name);
                    match &first {
                        Some(first) => check_same(&what, first, &cold.answer)?,
                        None => first = Some(cold.answer.clone()),
                    }
                    runs.push(PlanRun {
                        place: place.to_string(),
                        query: query.name,
                        plan,
                        run,
                        seconds: cold.seconds,
                        predicted_seconds: cold.prediction.time_us / 1e6,
                        predicted_io_seconds: cold.prediction.io_us / 1e6,
                        predicted_cpu_seconds: cold.prediction.cpu_us / 1e6,
                        ios: cold.ios,
                        q_errors: cold.rows.iter().map(|row| row.q_error()).collect(),
                        operators: cold.plan,
                    });
                }
            }
        }
    }
    let mut report = Report::new("cost-model", settings, &settings.data.innodb);
    runs.iter().for_each(|run| report.add_run(run));
    figures::put(&runs, &mut report);
    Ok(report)
}
