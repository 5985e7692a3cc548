//! Medians, ratios and tables.

use serde::Serialize;
use serde_json::{Map, Value, json};
use tanada_placement::Trace;
use tanada_replay::Outcome;

use super::{IN_ORDER, LiveRun, OUT_OF_ORDER, PstSettings, is_named};
use tanada_report::{Report, Table, median};

/// One run of the queries under a policy.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Replayed {
    /// `replay`; `live` of a server on a mounted volume.
    pub kind: &'static str,
    /// `in_order` or `out_of_order`; of a server its name.
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
    /// Of whatever `figure` gives; none without replays.
    pub(super) fn of(&self, policy: &str, share: u32, figure: impl Fn(&Outcome) -> f64) -> Option<f64> {
        let is_meant = |run: &&Replayed| {
            run.execution == self.execution
                && run.clients == self.clients
                && run.share == share
                && run.outcome.policy == policy
        };
        let figures: Vec<f64> = self.runs.iter().filter(is_meant).map(|run| figure(&run.outcome)).collect();
        (!figures.is_empty()).then(|| median(figures))
    }

    pub(super) fn total_s(&self, policy: &str, share: u32) -> Option<f64> {
        self.of(policy, share, |outcome| outcome.total_s)
    }

    /// A figure of each policy at each share, where there is one.
    pub(super) fn by_share(
        &self,
        policies: &[String],
        shares: &[u32],
        figure: impl Fn(&Outcome) -> f64,
    ) -> Value {
        let mut all = Map::new();
        for policy in policies {
            let of = |share: &u32| Some((share.to_string(), json!(self.of(policy, *share, &figure)?)));
            let own: Map<String, Value> = shares.iter().filter_map(of).collect();
            if !own.is_empty() {
                all.insert(policy.clone(), Value::Object(own));
            }
        }
        Value::Object(all)
    }

    /// A figure of one policy over that of another, at each share where there is room at all and both were replayed.
    pub(super) fn ratios(
        &self,
        shares: &[u32],
        policy: &str,
        other: &str,
        figure: impl Fn(&Outcome) -> f64,
    ) -> Vec<f64> {
        let shares = shares.iter().filter(|share| **share > 0);
        let ratio = |share: &u32| Some(self.of(policy, *share, &figure)? / self.of(other, *share, &figure)?);
        shares.filter_map(ratio).filter(|ratio| ratio.is_finite()).collect()
    }

    /// Seconds of `policy` over those of the best of `others`, at each share where there is room at all.
    pub(super) fn over_best(&self, shares: &[u32], policy: &str, others: &[&str]) -> Vec<f64> {
        let ratio = |share: &u32| {
            let best = others.iter().filter_map(|other| self.total_s(other, *share)).min_by(f64::total_cmp);
            Some(self.total_s(policy, *share)? / best?)
        };
        shares
            .iter()
            .filter(|share| **share > 0)
            .filter_map(ratio)
            .filter(|ratio| ratio.is_finite())
            .collect()
    }
}

pub(super) fn least(ratios: &[f64]) -> f64 {
    ratios.iter().copied().fold(f64::NAN, f64::min)
}

pub(super) fn most(ratios: &[f64]) -> f64 {
    ratios.iter().copied().fold(f64::NAN, f64::max)
}

/// A value with four significant digits; null where there is none.
pub(super) fn figure(value: f64) -> Value {
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
    let [benefit, fixed, plan, lru] = ["benefit", "static", "plan", "lru"].map(|name| settings.policy(name));
    let others: Vec<&str> =
        settings.policies.iter().map(String::as_str).filter(|policy| !is_named(policy, "benefit")).collect();
    add("benefit_over_static_best", &|execution| least(&of(execution).ratios(shares, benefit, fixed, total)));
    add("benefit_over_static_worst", &|execution| most(&of(execution).ratios(shares, benefit, fixed, total)));
    add("plan_over_static_best", &|execution| least(&of(execution).ratios(shares, plan, fixed, total)));
    add("lru_over_static_best", &|execution| least(&of(execution).ratios(shares, lru, fixed, total)));
    add("q5_benefit_over_static_best", &|execution| {
        least(&of(execution).ratios(shares, benefit, fixed, |outcome| outcome.seconds_of("q5")))
    });
    add("benefit_over_best_other_worst", &|execution| {
        most(&of(execution).over_best(shares, benefit, &others))
    });
    for policy in [benefit, plan] {
        let name = policy.split(':').next().unwrap_or(policy);
        add(&format!("{name}_slow_ios_over_static_best"), &|execution| {
            least(&of(execution).ratios(shares, policy, fixed, |outcome| outcome.slow_ios as f64))
        });
    }
    if settings.clients > 1 {
        let mixed = |execution| Medians { runs: replayed, execution, clients: settings.clients };
        add("mixed_benefit_over_static_worst", &|execution| {
            most(&mixed(execution).ratios(shares, benefit, fixed, total))
        });
    }
    put_ios(settings, replayed, report);
    put_live(settings, replayed, live, report);
}

/// A key of the summary, and the figure of a run.
type Figure = (&'static str, fn(&Outcome) -> f64);

/// The paper's figures 4 and 5.
pub(super) const IOS: [Figure; 2] = [
    ("slow_ios", |outcome| outcome.slow_ios as f64),
    ("relocation_slow_ios", |outcome| outcome.relocation_slow_ios as f64),
];

/// The paper's figures 4 and 5: I/Os to the slow class, those of queries and those of relocations.
fn put_ios(settings: &PstSettings, replayed: &[Replayed], report: &mut Report) {
    for (key, figure) in IOS {
        let mut both = Map::new();
        for execution in [IN_ORDER, OUT_OF_ORDER] {
            let medians = Medians { runs: replayed, execution, clients: 1 };
            both.insert(execution.to_owned(), medians.by_share(&settings.policies, &settings.shares, figure));
        }
        report.summary.insert(key.to_owned(), Value::Object(both));
    }
}

/// For a table.
pub(super) fn seconds(figure: Option<f64>) -> String {
    figure.map_or_else(|| "-".to_owned(), |seconds| format!("{seconds:.1}"))
}

/// Seconds by share and policy.
fn totals(settings: &PstSettings, execution: &str, trace: &Trace, medians: &Medians<'_>) -> Table {
    let what = format!("{execution}, {} I/Os, {} MiB: share %", trace.ios(), trace.bytes() >> 20);
    let mut header = vec![what.as_str()];
    header.extend(settings.policies.iter().map(String::as_str));
    let mut table = Table::new(&header);
    for share in &settings.shares {
        let mut row = vec![share.to_string()];
        row.extend(settings.policies.iter().map(|policy| seconds(medians.total_s(policy, *share))));
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
    let (mut over_real, mut over_virtual, mut replay_over_real) = (Vec::new(), Vec::new(), Vec::new());
    for run in live.iter().filter(|run| run.time == "virtual") {
        let medians = Medians { runs: replayed, execution: run.execution, clients: 1 };
        let replay = medians.total_s(&run.policy, run.share);
        let is_same = |other: &&LiveRun| {
            other.time == "real"
                && (other.execution, &other.policy, other.share) == (run.execution, &run.policy, run.share)
        };
        let real = live.iter().find(is_same).map(|real| real.total_s);
        over_real.extend(real.map(|real| run.total_s / real));
        over_virtual.extend(replay.map(|replay| replay / run.total_s));
        replay_over_real.extend(replay.zip(real).map(|(replay, real)| replay / real));
        table.add(vec![
            run.execution.to_owned(),
            run.policy.clone(),
            run.share.to_string(),
            format!("{:.1}", run.total_s),
            seconds(real),
            seconds(replay),
            run.ios.to_string(),
        ]);
    }
    report.tables.push(table);
    let mut add = |key: &str, value: Value| report.summary.insert(key.to_owned(), value);
    add("replay_over_virtual_time", range(&over_virtual));
    add("live_virtual_benefit_over_static", live_over_static(live, "virtual"));
    if settings.real_time {
        add("virtual_over_real_time", range(&over_real));
        add("replay_over_real_time", range(&replay_over_real));
        add("live_real_benefit_over_static", live_over_static(live, "real"));
    }
}

pub(super) fn range(ratios: &[f64]) -> Value {
    json!({ "least": figure(least(ratios)), "most": figure(most(ratios)) })
}

/// Seconds of `benefit` over those of `static` on a volume, over the shares at which both ran.
fn live_over_static(live: &[LiveRun], time: &str) -> Value {
    let total_s = |execution: &str, name: &str, share: u32| {
        let mut runs = live.iter().filter(|run| run.time == time && run.execution == execution);
        runs.find(|run| run.share == share && is_named(&run.policy, name)).map(|run| run.total_s)
    };
    let mut both = Map::new();
    for execution in [IN_ORDER, OUT_OF_ORDER] {
        let mut shares: Vec<u32> = live.iter().map(|run| run.share).collect();
        shares.sort_unstable();
        shares.dedup();
        let ratio = |share: &u32| {
            Some(total_s(execution, "benefit", *share)? / total_s(execution, "static", *share)?)
        };
        let ratios: Vec<f64> = shares.iter().filter_map(ratio).filter(|ratio| ratio.is_finite()).collect();
        both.insert(execution.to_owned(), range(&ratios));
    }
    Value::Object(both)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(policy: &str, share: u32, total_s: f64) -> Replayed {
        let outcome = Outcome { policy: policy.to_owned(), total_s, ..Outcome::default() };
        Replayed { kind: "replay", execution: IN_ORDER, clients: 1, share, seed: 1, outcome }
    }

    #[test]
    fn ratios_are_computed_from_medians_at_replayed_shares() {
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

    fn settings(policies: &[&str], shares: &[u32]) -> PstSettings {
        PstSettings {
            policies: policies.iter().map(|policy| (*policy).to_owned()).collect(),
            shares: shares.to_vec(),
            ..PstSettings::new("/".into())
        }
    }

    fn report(settings: &PstSettings, runs: &[Replayed], live: &[LiveRun]) -> Report {
        let mut report = Report::new("pst", &(), std::path::Path::new("/"));
        put(settings, &[(IN_ORDER, Trace::default())], runs, live, &mut report);
        report
    }

    #[test]
    fn ratios_need_a_replayed_share() {
        let runs = [run("static", 10, 8.0), run("lru", 10, 16.0)];
        let live = LiveRun {
            kind: "live",
            execution: IN_ORDER,
            policy: "benefit".to_owned(),
            share: 30,
            time: "virtual",
            total_s: 5.0,
            queries: Vec::new(),
            ios: 1,
        };
        let report = report(&settings(&["static", "lru"], &[10]), &runs, &[live]);
        for key in [
            "benefit_over_static_best",
            "benefit_over_static_worst",
            "plan_over_static_best",
            "q5_benefit_over_static_best",
            "benefit_over_best_other_worst",
            "mixed_benefit_over_static_worst",
        ] {
            assert_eq!(report.summary[key], json!({ "in_order": null, "out_of_order": null }), "{key}");
        }
        assert_eq!(report.summary["lru_over_static_best"], json!({ "in_order": 2.0, "out_of_order": null }));
        assert_eq!(report.summary["replay_over_virtual_time"], json!({ "least": null, "most": null }));
        let last_row = |table: &Table| -> Vec<String> {
            table.to_string().lines().last().unwrap().split_whitespace().map(str::to_owned).collect()
        };
        assert_eq!(last_row(&report.tables[1]), [IN_ORDER, "benefit", "30", "5.0", "-", "-", "1"]);
        let no_replay = settings(&["static", "plan"], &[10]);
        let medians = Medians { runs: &runs, execution: IN_ORDER, clients: 1 };
        let table = totals(&no_replay, IN_ORDER, &Trace::default(), &medians);
        assert_eq!(last_row(&table), ["10", "8.0", "-"]);
    }

    /// No key told how far the sweep, which is a replay, is from what the queries take in real time.
    #[test]
    fn replays_are_compared_with_real_time_and_benefit_with_static_on_a_volume() {
        let live = |policy: &str, share: u32, time: &'static str, total_s: f64| LiveRun {
            kind: "live",
            execution: IN_ORDER,
            policy: policy.to_owned(),
            share,
            time,
            total_s,
            queries: Vec::new(),
            ios: 1,
        };
        let runs = [run("benefit", 20, 8.0), run("benefit", 50, 6.0), run("static", 20, 12.0)];
        let live = [
            live("benefit", 20, "virtual", 9.0),
            live("benefit", 20, "real", 10.0),
            live("benefit", 50, "virtual", 5.0),
            live("benefit", 50, "real", 5.0),
            live("static", 20, "virtual", 12.0),
            live("static", 20, "real", 16.0),
        ];
        let mut settings = settings(&["benefit", "static"], &[20, 50]);
        let summary = report(&settings, &runs, &live).summary;
        let nothing = json!({ "least": null, "most": null });
        let of_share =
            |ratio: f64| json!({ "in_order": { "least": ratio, "most": ratio }, "out_of_order": nothing });
        assert_eq!(summary["virtual_over_real_time"], json!({ "least": 0.75, "most": 1.0 }));
        assert_eq!(summary["replay_over_real_time"], json!({ "least": 0.75, "most": 1.2 }));
        assert_eq!(summary["live_virtual_benefit_over_static"], of_share(0.75));
        assert_eq!(summary["live_real_benefit_over_static"], of_share(0.625));
        settings.real_time = false;
        let summary = report(&settings, &runs, &live).summary;
        assert!(summary.keys().all(|key| !key.contains("real")), "{:?}", summary.keys());
    }

    #[test]
    fn off_is_another_policy_and_options_leave_a_policy_its_name() {
        let names = ["benefit:write-budget=1MiB", "off", "static"];
        let runs = [run(names[0], 10, 8.0), run("off", 10, 4.0), run("static", 10, 16.0)];
        let summary = report(&settings(&names, &[10]), &runs, &[]).summary;
        assert_eq!(summary["benefit_over_static_worst"]["in_order"], json!(0.5));
        assert_eq!(summary["benefit_over_best_other_worst"]["in_order"], json!(2.0));
    }
}
