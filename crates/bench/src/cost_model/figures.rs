//! Figures of the runs of plans.

use tanada_report::{Report, Table, median};

use super::PlanRun;

const CHOSEN: &str = "chosen";

/// A query on a medium.
struct Case {
    place: String,
    query: &'static str,
    chosen_s: f64,
    predicted_s: f64,
    best_s: f64,
    best: &'static str,
}

impl Case {
    fn choice_over_best(&self) -> f64 {
        self.chosen_s / self.best_s.max(f64::MIN_POSITIVE)
    }

    fn prediction_error(&self) -> f64 {
        (self.predicted_s / self.chosen_s.max(f64::MIN_POSITIVE) - 1.0).abs()
    }
}

fn cases(runs: &[PlanRun]) -> Vec<Case> {
    let mut cases: Vec<Case> = Vec::new();
    for run in runs.iter().filter(|run| run.plan == CHOSEN) {
        if cases.iter().any(|case| case.place == run.place && case.query == run.query) {
            continue;
        }
        let own = || runs.iter().filter(|other| other.place == run.place && other.query == run.query);
        let of = |plan: &str, figure: fn(&PlanRun) -> f64| {
            median(own().filter(|run| run.plan == plan).map(figure))
        };
        let mut plans: Vec<&'static str> = own().map(|run| run.plan).collect();
        plans.sort_unstable();
        plans.dedup();
        let timed = plans.into_iter().map(|plan| (plan, of(plan, |run| run.seconds)));
        let best = timed.min_by(|a, b| a.1.total_cmp(&b.1)).unwrap_or((CHOSEN, f64::INFINITY));
        cases.push(Case {
            place: run.place.clone(),
            query: run.query,
            chosen_s: of(CHOSEN, |run| run.seconds),
            predicted_s: of(CHOSEN, |run| run.predicted_seconds),
            best_s: best.1,
            best: best.0,
        });
    }
    cases
}

/// The value below which nine of ten lie.
pub(super) fn p90(values: impl IntoIterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.into_iter().collect();
    values.sort_by(f64::total_cmp);
    let place = ((values.len() as f64 * 0.9).ceil() as usize).saturating_sub(1);
    values.get(place).copied().unwrap_or(0.0)
}

pub(super) fn put(runs: &[PlanRun], report: &mut Report) {
    let cases = cases(runs);
    let mut table = Table::new(&[
        "medium",
        "query",
        "chosen, s",
        "predicted, s",
        "error",
        "best, s",
        "best plan",
        "chosen / best",
    ]);
    for case in &cases {
        table.add(vec![
            case.place.clone(),
            case.query.to_owned(),
            format!("{:.4}", case.chosen_s),
            format!("{:.4}", case.predicted_s),
            format!("{:.0} %", case.prediction_error() * 100.0),
            format!("{:.4}", case.best_s),
            case.best.to_owned(),
            format!("{:.2}", case.choice_over_best()),
        ]);
    }
    report.tables.push(table);
    let chosen = || runs.iter().filter(|run| run.plan == CHOSEN);
    report.summarize("prediction_error_median", median(cases.iter().map(Case::prediction_error)));
    report.summarize("choice_over_best_p90", p90(cases.iter().map(Case::choice_over_best)));
    let most = cases.iter().map(Case::choice_over_best).fold(0.0, f64::max);
    report.summarize("choice_over_best_max", most);
    report.summarize("q_error_median", median(chosen().flat_map(|run| run.q_errors.iter().copied())));
    report.summarize("q_error_p90", p90(chosen().flat_map(|run| run.q_errors.iter().copied())));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(query: &'static str, plan: &'static str, seconds: f64, predicted_seconds: f64) -> PlanRun {
        PlanRun {
            place: "nvme".to_owned(),
            query,
            plan,
            run: 1,
            seconds,
            predicted_seconds,
            predicted_io_seconds: 0.0,
            predicted_cpu_seconds: 0.0,
            ios: 1,
            q_errors: vec![1.0, 3.0],
            operators: String::new(),
        }
    }

    #[test]
    fn a_choice_is_compared_with_the_best_plan_and_a_prediction_with_the_time() {
        let runs = [
            run("q1", CHOSEN, 2.0, 1.0),
            run("q1", "look-ups", 1.0, 9.0),
            run("q2", CHOSEN, 4.0, 5.0),
            run("q2", "look-ups", 8.0, 9.0),
        ];
        let mut report = Report::new("cost-model", &(), std::path::Path::new("/"));
        put(&runs, &mut report);
        assert_eq!(report.summary["choice_over_best_max"], 2.0);
        assert_eq!(report.summary["choice_over_best_p90"], 2.0);
        assert_eq!(report.summary["prediction_error_median"], 0.375);
        assert_eq!(report.summary["q_error_median"], 2.0);
        assert_eq!(p90((1..=10).map(f64::from)), 9.0);
    }
}
