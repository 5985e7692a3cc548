//! One join with an outer side of any size: by look-ups, by hashing, and as the cost model chooses.
//!
//! 1. The outer side is a range of the parts, from a few to all; the inner side are the line items, reached by a
//!    secondary index and bookmarks, or read as a whole and hashed.
//! 2. On each medium, for each size of the outer side: both ways and the choice, cold.
//! 3. The choice is compared with the better of the two: `choice_over_best_max` and `_p90`.

use serde::Serialize;
use serde_json::Value;
use tanada_chart::{Chart, Page, Series};
use tanada_report::{Report, Table, median};

use super::figures::p90;
use super::place::check_same;
use super::{Data, Place, Placed};
use crate::{Error, ErrorKind, Result};

/// Ways to join.
const WAYS: [(&str, &str); 3] = [("look-ups", "always"), ("hash", "never"), ("chosen", "auto")];

/// What to measure.
#[derive(Debug, Clone, Serialize)]
pub struct JoinChoiceSettings {
    /// The data.
    pub data: Data,
    /// What it lies on.
    pub places: Vec<Place>,
    /// Shares of the outer rows, in per cent.
    pub per_cents: Vec<f64>,
    /// Runs of each; the median counts.
    pub runs: usize,
}

impl JoinChoiceSettings {
    /// From 0.001 to 100 % on `places`.
    pub fn new(data: Data, places: Vec<Place>) -> JoinChoiceSettings {
        let per_cents = vec![0.001, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0];
        JoinChoiceSettings { data, places, per_cents, runs: 3 }
    }

    /// Fewer points, once.
    #[must_use]
    pub fn quick(self) -> JoinChoiceSettings {
        JoinChoiceSettings { per_cents: vec![0.1, 1.0, 10.0, 100.0], runs: 1, ..self }
    }
}

#[derive(Debug, Clone, PartialEq, Serialize)]
struct JoinRun {
    place: String,
    per_cent: f64,
    outer_rows: u64,
    way: &'static str,
    run: usize,
    seconds: f64,
    predicted_seconds: f64,
    ios: u64,
    operators: String,
}

/// Runs the benchmark; `progress` hears what happens. Blocks: call it from a thread that may.
///
/// # Errors
/// If a run fails, or two ways give different answers.
pub fn join_choice(settings: &JoinChoiceSettings, progress: &dyn Fn(&str)) -> Result<Report> {
    let is_usable = settings.runs > 0 && !settings.places.is_empty() && !settings.per_cents.is_empty();
    if !is_usable || settings.per_cents.iter().any(|share| !(0.0..=100.0).contains(share)) {
        let message = "at least one run, one medium and one share from 0 to 100 per cent are needed";
        return Err(Error::new(ErrorKind::InvalidInput, message));
    }
    let mut runs = Vec::new();
    for place in &settings.places {
        let placed = Placed::open(&settings.data, place)?;
        let most = placed.cold("select max(p_partkey) from part")?.answer;
        let parts: f64 = most
            .first()
            .and_then(|row| row.trim().parse().ok())
            .ok_or_else(|| Error::failed("the table part is empty, so there is nothing to join"))?;
        for per_cent in &settings.per_cents {
            let outer_rows = (parts * per_cent / 100.0).ceil().max(1.0) as u64;
            let sql = format!(
                "select count(*), sum(l_quantity) from part join lineitem on l_partkey = p_partkey \
                 where p_partkey <= {outer_rows}"
            );
            let mut first: Option<Vec<String>> = None;
            for run in 1..=settings.runs {
                for (way, lookup_join) in WAYS {
                    progress(&format!(
                        "{place}, {per_cent} % of the parts, {way}, run {run} of {}",
                        settings.runs
                    ));
                    placed.set(&[("tanada.lookup_join", lookup_join)])?;
                    let cold = placed.cold(&sql)?;
                    match &first {
                        Some(first) => check_same(&format!("{way} on {place}"), first, &cold.answer)?,
                        None => first = Some(cold.answer.clone()),
                    }
                    runs.push(JoinRun {
                        place: place.to_string(),
                        per_cent: *per_cent,
                        outer_rows,
                        way,
                        run,
                        seconds: cold.seconds,
                        predicted_seconds: cold.prediction.time_us / 1e6,
                        ios: cold.ios,
                        operators: cold.plan,
                    });
                }
            }
        }
    }
    let mut report = Report::new("join-choice", settings, &settings.data.innodb);
    runs.iter().for_each(|run| report.add_run(run));
    put_figures(settings, &runs, &mut report);
    Ok(report)
}

fn seconds_of(runs: &[JoinRun], place: &str, per_cent: f64, way: &str) -> f64 {
    let own = runs.iter().filter(|run| run.place == place && run.per_cent == per_cent && run.way == way);
    median(own.map(|run| run.seconds))
}

fn put_figures(settings: &JoinChoiceSettings, runs: &[JoinRun], report: &mut Report) {
    let mut table = Table::new(&[
        "medium",
        "outer rows, %",
        "look-ups, s",
        "hash, s",
        "chosen, s",
        "took",
        "chosen / best",
    ]);
    let mut ratios = Vec::new();
    for place in &settings.places {
        let place = place.to_string();
        for per_cent in &settings.per_cents {
            let [lookups, hash, chosen] =
                ["look-ups", "hash", "chosen"].map(|way| seconds_of(runs, &place, *per_cent, way));
            let took = runs
                .iter()
                .find(|run| run.place == place && run.per_cent == *per_cent && run.way == "chosen")
                .map_or("", |run| if run.operators.contains("Lookup") { "look-ups" } else { "hash" });
            let ratio = chosen / lookups.min(hash).max(f64::MIN_POSITIVE);
            ratios.push(ratio);
            table.add(vec![
                place.clone(),
                format!("{per_cent}"),
                format!("{lookups:.4}"),
                format!("{hash:.4}"),
                format!("{chosen:.4}"),
                took.to_owned(),
                format!("{ratio:.2}"),
            ]);
        }
    }
    report.tables.push(table);
    report.summarize("choice_over_best_max", ratios.iter().copied().fold(0.0, f64::max));
    report.summarize("choice_over_best_p90", p90(ratios));
}

/// A page with both ways and the choice drawn, for each medium.
///
/// # Errors
/// If a chart cannot be drawn.
pub fn join_choice_html(report: &Report) -> Result<String> {
    let mut page = Page::new("Look-ups or hashing: the choice of the cost model").with_text(
        "One join of the parts with the line items of TPC-H, cold, by the share of the parts that are joined. Times on \
         emulated devices are virtual.",
    );
    let mut places: Vec<&str> = report.runs.iter().filter_map(|run| run["place"].as_str()).collect();
    places.dedup();
    for place in places {
        let chart = Chart::lines(place, "outer rows, logarithm of per cent", "seconds, logarithm");
        let chart = WAYS.iter().fold(chart, |chart, (way, _)| {
            let line = Series::new(*way, points(&report.runs, place, way));
            chart.with(if *way == "chosen" { line.thick() } else { line })
        });
        page = page.with_chart(&chart).map_err(|error| Error::failed(error.to_string()))?;
    }
    Ok(page.with_report(report).html())
}

fn points(runs: &[Value], place: &str, way: &str) -> Vec<(f64, f64)> {
    let own = || runs.iter().filter(|run| run["place"] == place && run["way"] == way);
    let mut shares: Vec<f64> = own().filter_map(|run| run["per_cent"].as_f64()).collect();
    shares.sort_by(f64::total_cmp);
    shares.dedup();
    let seconds = |share: f64| {
        let at = own().filter(|run| run["per_cent"].as_f64() == Some(share));
        median(at.filter_map(|run| run["seconds"].as_f64()))
    };
    shares.into_iter().map(|share| (share.log10(), seconds(share).max(1e-9).log10())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_choice_is_compared_with_the_better_way() {
        let data = Data::new(std::path::PathBuf::new());
        let mut settings = JoinChoiceSettings::new(data, vec![Place::Disk]);
        settings.per_cents = vec![1.0, 100.0];
        let run = |per_cent, way, seconds| JoinRun {
            place: "disk".to_owned(),
            per_cent,
            outer_rows: 1,
            way,
            run: 1,
            seconds,
            predicted_seconds: 0.0,
            ios: 0,
            operators: "OutOfOrderLookupJoin RelationScan".to_owned(),
        };
        let runs = [
            run(1.0, "look-ups", 1.0),
            run(1.0, "hash", 4.0),
            run(1.0, "chosen", 1.5),
            run(100.0, "look-ups", 8.0),
            run(100.0, "hash", 4.0),
            run(100.0, "chosen", 4.0),
        ];
        let mut report = Report::new("join-choice", &(), std::path::Path::new("/"));
        runs.iter().for_each(|run| report.add_run(run));
        put_figures(&settings, &runs, &mut report);
        assert_eq!(report.summary["choice_over_best_max"], 1.5);
        let page = join_choice_html(&report).unwrap();
        assert_eq!(page.matches("<svg").count(), 1);
    }
}
