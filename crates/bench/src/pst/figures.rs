//! Medians, ratios and tables.

use serde::Serialize;
use serde_json::{Map, Value, json};
use tanada_placement::{Outcome, Trace};

use super::{IN_ORDER, LiveRun, OUT_OF_ORDER, PstSettings};
use crate::report::{Report, Table, median};

/// One replay.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Replayed {
    /// `replay`.
    pub kind: &'static str,
    /// `in_order` or `out_of_order`.
    pub execution: &'static str,
    /// Clients that ran queries at once.
    pub clients: usize,
    /// Room of the fast class, in per cent.
    pub share: u32,
    /// Of the models and the policy.
    pub seed: u64,
    /// What came of it.
    #[serde(flatten)]
    pub outcome: Outcome,
}

/// Medians over the replays of one execution.
pub(super) struct Medians<'a> {
    pub(super) runs: &'a [Replayed],
    pub(super) execution: &'a str,
    pub(super) clients: usize,
}

impl Medians<'_> {
    /// Of whatever `figure` gives.
    pub(super) fn of(&self, policy: &str, share: u32, figure: impl Fn(&Outcome) -> f64) -> f64 {
        let is_meant = |run: &&Replayed| {
            run.execution == self.execution
                && run.clients == self.clients
                && run.share == share
                && run.outcome.policy == policy
        };
        median(self.runs.iter().filter(is_meant).map(|run| figure(&run.outcome)))
    }

    pub(super) fn total_s(&self, policy: &str, share: u32) -> f64 {
        self.of(policy, share, |outcome| outcome.total_s)
    }

    /// A figure of one policy over that of another, at each share where there is room at all.
    fn ratios(
        &self,
        shares: &[u32],
        policy: &str,
        other: &str,
        figure: impl Fn(&Outcome) -> f64,
    ) -> Vec<f64> {
        let shares = shares.iter().filter(|share| **share > 0);
        let ratio = |share: &u32| self.of(policy, *share, &figure) / self.of(other, *share, &figure);
        shares.map(ratio).filter(|ratio| ratio.is_finite()).collect()
    }
}

fn least(ratios: &[f64]) -> f64 {
    ratios.iter().copied().fold(f64::NAN, f64::min)
}

fn most(ratios: &[f64]) -> f64 {
    ratios.iter().copied().fold(f64::NAN, f64::max)
}

/// A value with four significant digits; null where there is none.
fn figure(value: f64) -> Value {
    match value {
        value if !value.is_finite() => Value::Null,
        0.0 => json!(0.0),
        value => {
            let scale = 10f64.powi(3 - value.abs().log10().floor() as i32);
            json!((value * scale).round() / scale)
        }
    }
}

pub(super) fn put(
    settings: &PstSettings,
    traces: &[(&'static str, Trace)],
    replayed: &[Replayed],
    live: &[LiveRun],
    report: &mut Report,
) {
    for (execution, trace) in traces {
        let medians = Medians { runs: replayed, execution, clients: 1 };
        report.tables.push(totals(settings, execution, trace, &medians));
    }
    let mut add = |key: &str, value: &dyn Fn(&'static str) -> f64| {
        let mut both = Map::new();
        for execution in [IN_ORDER, OUT_OF_ORDER] {
            both.insert(execution.to_owned(), figure(value(execution)));
        }
        report.summary.insert(key.to_owned(), Value::Object(both));
    };
    let shares = &settings.shares;
    let of = |execution| Medians { runs: replayed, execution, clients: 1 };
    let total = |outcome: &Outcome| outcome.total_s;
    add("benefit_over_static_best", &|execution| {
        least(&of(execution).ratios(shares, "benefit", "static", total))
    });
    add("benefit_over_static_worst", &|execution| {
        most(&of(execution).ratios(shares, "benefit", "static", total))
    });
    add("plan_over_static_best", &|execution| least(&of(execution).ratios(shares, "plan", "static", total)));
    add("lru_over_static_best", &|execution| least(&of(execution).ratios(shares, "lru", "static", total)));
    add("q5_benefit_over_static_best", &|execution| {
        least(&of(execution).ratios(shares, "benefit", "static", |outcome| outcome.seconds_of("q5")))
    });
    add("benefit_over_best_other_worst", &|execution| {
        let medians = of(execution);
        let others = || settings.policies.iter().filter(|policy| *policy != "benefit" && *policy != "off");
        let ratio = |share: &u32| {
            let best = others().map(|other| medians.total_s(other, *share)).fold(f64::NAN, f64::min);
            medians.total_s("benefit", *share) / best
        };
        most(&shares.iter().filter(|share| **share > 0).map(ratio).collect::<Vec<_>>())
    });
    if settings.clients > 1 {
        let mixed = |execution| Medians { runs: replayed, execution, clients: settings.clients };
        add("mixed_benefit_over_static_worst", &|execution| {
            most(&mixed(execution).ratios(shares, "benefit", "static", total))
        });
    }
    put_live(settings, replayed, live, report);
}

/// Seconds by share and policy.
fn totals(settings: &PstSettings, execution: &str, trace: &Trace, medians: &Medians<'_>) -> Table {
    let what = format!("{execution}, {} I/Os, {} MiB: share %", trace.ios(), trace.bytes() >> 20);
    let mut header = vec![what.as_str()];
    header.extend(settings.policies.iter().map(String::as_str));
    let mut table = Table::new(&header);
    for share in &settings.shares {
        let mut row = vec![share.to_string()];
        row.extend(settings.policies.iter().map(|policy| format!("{:.1}", medians.total_s(policy, *share))));
        table.add(row);
    }
    table
}

/// Live runs beside each other and beside the replay.
fn put_live(settings: &PstSettings, replayed: &[Replayed], live: &[LiveRun], report: &mut Report) {
    if live.is_empty() {
        return;
    }
    let mut table =
        Table::new(&["on a volume", "policy", "share %", "virtual, s", "real, s", "replay, s", "I/Os"]);
    let (mut over_real, mut over_virtual) = (Vec::new(), Vec::new());
    for run in live.iter().filter(|run| run.time == "virtual") {
        let medians = Medians { runs: replayed, execution: run.execution, clients: 1 };
        let replay = medians.total_s(&run.policy, run.share);
        let is_same = |other: &&LiveRun| {
            other.time == "real"
                && (other.execution, &other.policy, other.share) == (run.execution, &run.policy, run.share)
        };
        let real = live.iter().find(is_same).map(|real| real.total_s);
        over_real.extend(real.map(|real| run.total_s / real));
        over_virtual.push(replay / run.total_s);
        table.add(vec![
            run.execution.to_owned(),
            run.policy.clone(),
            run.share.to_string(),
            format!("{:.1}", run.total_s),
            real.map_or_else(|| "-".to_owned(), |real| format!("{real:.1}")),
            format!("{replay:.1}"),
            run.ios.to_string(),
        ]);
    }
    report.tables.push(table);
    let range = |ratios: &[f64]| json!({ "least": figure(least(ratios)), "most": figure(most(ratios)) });
    if settings.real_time {
        report.summary.insert("virtual_over_real_time".to_owned(), range(&over_real));
    }
    report.summary.insert("replay_over_virtual_time".to_owned(), range(&over_virtual));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(policy: &str, share: u32, total_s: f64) -> Replayed {
        let outcome = Outcome { policy: policy.to_owned(), total_s, ..Outcome::default() };
        Replayed { kind: "replay", execution: IN_ORDER, clients: 1, share, seed: 1, outcome }
    }

    #[test]
    fn ratios_are_those_of_the_medians_where_there_is_room() {
        let mut runs = vec![run("static", 0, 9.0), run("benefit", 0, 90.0)];
        for (share, seconds) in [(10, 8.0), (20, 6.0)] {
            runs.extend([run("static", share, 10.0), run("benefit", share, seconds)]);
        }
        runs.push(run("benefit", 20, 7.0));
        runs.push(run("benefit", 20, 100.0));
        let medians = Medians { runs: &runs, execution: IN_ORDER, clients: 1 };
        let ratios = medians.ratios(&[0, 10, 20], "benefit", "static", |outcome| outcome.total_s);
        assert_eq!(ratios, [0.8, 0.7]);
        assert_eq!((least(&ratios), most(&ratios)), (0.7, 0.8));
        assert_eq!(figure(0.123_456), json!(0.1235));
        assert_eq!(figure(f64::NAN), Value::Null);
    }
}
