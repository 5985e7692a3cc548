//! Medians, ratios and tables of a server's runs.

use tanada_placement::Trace;
use tanada_replay::Outcome;
use tanada_report::{Report, Table};

use super::{ProxyCost, RdbmsSettings, Replayed};
use crate::pst::figures::{IOS, Medians, figure, least, most, range, seconds};
use crate::pst::is_named;

/// A key of the summary, and what it is.
type Key<'a> = (&'a str, f64);

pub(super) fn report(
    settings: &RdbmsSettings,
    tables_bytes: u64,
    trace: &Trace,
    live: &[Replayed],
    replayed: &[Replayed],
    cost: &ProxyCost,
) -> Report {
    let mut report = Report::new("pst", settings, &settings.innodb);
    if let Some(settings) = report.settings.as_object_mut() {
        settings.insert("emulated".to_owned(), true.into());
        settings.insert("tables_bytes".to_owned(), tables_bytes.into());
        settings.insert("recorded_ios".to_owned(), trace.ios().into());
    }
    report.setup = format!(
        "{} on a mounted volume, {} MiB of tables, {} (fast) and {} (slow) emulated; policies of blocks are replays of \
         {} recorded reads",
        settings.rdbms.name(),
        tables_bytes >> 20,
        settings.fast,
        settings.slow,
        trace.ios()
    );
    live.iter().chain(replayed).for_each(|run| report.add_run(run));
    report.add_run(cost);
    let execution = settings.rdbms.name();
    let of = |runs| Medians { runs, execution, clients: 1 };
    put_ratios(settings, &of(live), &of(replayed), &mut report);
    let apart = replay_over_real_time(settings, &of(live), &of(replayed));
    report.summary.insert("replay_over_real_time".to_owned(), range(&apart));
    for (key, count) in IOS {
        let counts = of(live).by_share(&settings.policies, &settings.shares, count);
        report.summary.insert(key.to_owned(), counts);
    }
    put_proxy(settings, cost, &mut report);
    report.tables.push(totals(settings, &of(live), &of(replayed)));
    report.tables.push(ios(settings, &of(live)));
    report
}

fn put_ratios(settings: &RdbmsSettings, live: &Medians<'_>, replayed: &Medians<'_>, report: &mut Report) {
    let named = |name: &'static str| {
        let found = settings.policies.iter().find(|policy| is_named(policy, name));
        found.map_or(name, String::as_str)
    };
    let [benefit, fixed, plan, lru] = ["benefit", "static", "plan", "lru"].map(named);
    let shares = &settings.shares;
    let total = |outcome: &Outcome| outcome.total_s;
    let slow = |outcome: &Outcome| outcome.slow_ios as f64;
    let over = |policy: &str, figure: &dyn Fn(&Outcome) -> f64| live.ratios(shares, policy, fixed, figure);
    let others: Vec<&str> =
        settings.policies.iter().map(String::as_str).filter(|policy| !is_named(policy, "benefit")).collect();
    let q5 = |outcome: &Outcome| outcome.seconds_of("q5");
    let q9 = |outcome: &Outcome| outcome.seconds_of("q9");
    let keys: [Key<'_>; 12] = [
        ("benefit_over_static_best", least(&over(benefit, &total))),
        ("benefit_over_static_worst", most(&over(benefit, &total))),
        ("plan_over_static_best", least(&over(plan, &total))),
        ("plan_over_static_worst", most(&over(plan, &total))),
        // Both of them replays.
        ("lru_over_static_best", least(&replayed.ratios(shares, lru, "static", total))),
        ("q5_benefit_over_static_best", least(&over(benefit, &q5))),
        ("q5_plan_over_static_best", least(&over(plan, &q5))),
        ("q9_benefit_over_static_best", least(&over(benefit, &q9))),
        ("q9_plan_over_static_best", least(&over(plan, &q9))),
        ("benefit_over_best_other_worst", most(&live.over_best(shares, benefit, &others))),
        ("benefit_slow_ios_over_static_best", least(&over(benefit, &slow))),
        ("plan_slow_ios_over_static_best", least(&over(plan, &slow))),
    ];
    for (key, value) in keys {
        report.summary.insert(key.to_owned(), figure(value));
    }
}

/// Seconds of `static` in the replay over those on the mounted volume, at each share.
fn replay_over_real_time(settings: &RdbmsSettings, live: &Medians<'_>, replayed: &Medians<'_>) -> Vec<f64> {
    let fixed = settings.policies.iter().find(|policy| is_named(policy, "static"));
    let Some(fixed) = fixed else { return Vec::new() };
    let apart = |share: &u32| Some(replayed.total_s("static", *share)? / live.total_s(fixed, *share)?);
    settings.shares.iter().filter_map(apart).collect()
}

fn put_proxy(settings: &RdbmsSettings, cost: &ProxyCost, report: &mut Report) {
    let added = cost.proxied_us_p50 - cost.direct_us_p50;
    let kept = cost.proxied_per_second / cost.direct_per_second;
    report.summary.insert("proxy_added_us_p50".to_owned(), figure(added));
    report.summary.insert(format!("proxy_throughput_{}_clients", settings.clients), figure(kept));
    let clients = format!("{} clients, look-ups/s", cost.clients);
    let mut table = Table::new(&["look-ups by key", "one client, us p50", &clients]);
    let row =
        |name: &str, us: f64, rate: f64| vec![name.to_owned(), format!("{us:.0}"), format!("{rate:.0}")];
    table.add(row("direct", cost.direct_us_p50, cost.direct_per_second));
    table.add(row("proxy", cost.proxied_us_p50, cost.proxied_per_second));
    report.tables.push(table);
}

/// The policies with their runs: those on the mounted volume, and the replays of others and of `static`.
fn columns<'a>(settings: &'a RdbmsSettings, is_live: &dyn Fn(&str) -> bool) -> Vec<(String, &'a str)> {
    let of = |policy: &'a String| match is_live(policy) {
        true => (policy.clone(), policy.as_str()),
        false => (format!("{policy}, replay"), policy.as_str()),
    };
    settings.policies.iter().map(of).collect()
}

/// Seconds by share and policy.
fn totals(settings: &RdbmsSettings, live: &Medians<'_>, replayed: &Medians<'_>) -> Table {
    let is_live = |policy: &str| live.runs.iter().any(|run| run.outcome.policy == policy);
    let columns = columns(settings, &is_live);
    let has_replays = !replayed.runs.is_empty();
    let what = format!("{}, all queries, s: share %", settings.rdbms.name());
    let mut header = vec![what.as_str(), "off"];
    header.extend(columns.iter().map(|(title, _)| title.as_str()));
    header.extend(has_replays.then_some("static, replay"));
    let mut table = Table::new(&header);
    for share in std::iter::once(&0).chain(settings.shares.iter().filter(|share| **share > 0)) {
        let mut row = vec![share.to_string(), seconds(live.total_s("off", *share))];
        row.extend(columns.iter().map(|(_, policy)| {
            seconds(live.total_s(policy, *share).or_else(|| replayed.total_s(policy, *share)))
        }));
        row.extend(has_replays.then(|| seconds(replayed.total_s("static", *share))));
        table.add(row);
    }
    table
}

/// I/Os to the slow class, and those of relocations, by share and policy.
fn ios(settings: &RdbmsSettings, live: &Medians<'_>) -> Table {
    let policies: Vec<&str> = settings
        .policies
        .iter()
        .map(String::as_str)
        .filter(|policy| live.runs.iter().any(|run| run.outcome.policy == *policy))
        .collect();
    let mut header = vec!["I/Os to the slow class + of relocations: share %", "off"];
    header.extend(&policies);
    let mut table = Table::new(&header);
    let cell = |policy: &str, share: u32| {
        let own = live.of(policy, share, |outcome| outcome.slow_ios as f64);
        let of_relocations = live.of(policy, share, |outcome| outcome.relocation_slow_ios as f64);
        match own.zip(of_relocations) {
            Some((own, of_relocations)) => format!("{own:.0} + {of_relocations:.0}"),
            None => "-".to_owned(),
        }
    };
    for share in std::iter::once(&0).chain(settings.shares.iter().filter(|share| **share > 0)) {
        let mut row = vec![share.to_string(), cell("off", *share)];
        row.extend(policies.iter().map(|policy| cell(policy, *share)));
        table.add(row);
    }
    table
}

/// The paper's figures over `static`, as far as its text gives numbers: what, share in per cent, ratio.
pub(super) const PAPER: [(&str, f64, f64); 2] = [("q5", 30.0, 0.62), ("q9", 50.0, 0.80)];

/// The paper's best ratio of all nine queries; its text does not give the share.
pub(super) const PAPER_BEST: f64 = 0.77;

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::pst::rdbms::{LIVE, Rdbms};

    fn run(kind: &'static str, policy: &str, share: u32, total_s: f64) -> Replayed {
        let slow_ios = (total_s * 100.0) as u64;
        let outcome = Outcome {
            policy: policy.to_owned(),
            total_s,
            slow_ios,
            relocation_slow_ios: 7,
            ..Outcome::default()
        };
        Replayed { kind, execution: "mariadb", clients: 1, share, seed: 1, outcome }
    }

    #[test]
    fn live_runs_are_compared_with_live_ones_and_replays_with_replays() {
        let mut settings = RdbmsSettings::new(Rdbms::MariaDb, "/".into(), "/".into());
        settings.shares = vec![20, 50];
        let mut live = vec![run(LIVE, "off", 0, 40.0)];
        let mut replayed = Vec::new();
        for (share, fixed, benefit) in [(20, 20.0, 10.0), (50, 8.0, 8.0)] {
            live.extend([run(LIVE, "static", share, fixed), run(LIVE, "benefit", share, benefit)]);
            replayed.extend([run("replay", "lru", share, 15.0), run("replay", "static", share, 10.0)]);
        }
        let cost = ProxyCost {
            kind: "proxy",
            direct_us_p50: 70.0,
            proxied_us_p50: 150.0,
            clients: 16,
            direct_per_second: 1000.0,
            proxied_per_second: 400.0,
        };
        let report = report(&settings, 64 << 20, &Trace::default(), &live, &replayed, &cost);
        let summary = |key: &str| report.summary[key].clone();
        assert_eq!(
            (summary("benefit_over_static_best"), summary("benefit_over_static_worst")),
            (json!(0.5), json!(1.0))
        );
        assert_eq!(
            (summary("lru_over_static_best"), summary("plan_over_static_best")),
            (json!(1.5), Value::Null)
        );
        assert_eq!(summary("replay_over_real_time"), json!({ "least": 0.5, "most": 1.25 }));
        assert_eq!(summary("slow_ios")["benefit"], json!({ "20": 1000.0, "50": 800.0 }));
        assert_eq!(summary("relocation_slow_ios")["static"]["50"], 7.0);
        assert_eq!(
            (summary("proxy_added_us_p50"), summary("proxy_throughput_16_clients")),
            (json!(80.0), json!(0.4))
        );
        let text = report.tables[1].to_string();
        let row = text.lines().find(|line| line.trim_start().starts_with("20")).unwrap();
        let cells: Vec<&str> = row.split_whitespace().collect();
        assert_eq!(cells, ["20", "-", "20.0", "15.0", "-", "10.0", "10.0"], "{text}");
        assert_eq!(report.runs.len(), 10);
    }
}
