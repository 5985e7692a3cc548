//! A report as an HTML page with charts.

use tanada_chart::{Chart, Page, Series};
use tanada_report::{Report, median};

use crate::measure::{LatencySummary, Run};
use crate::workload::Operation;
use crate::{Error, Result};

/// What of a run is shown.
type Figure<'a> = &'a dyn Fn(&Run) -> f64;

/// A percentile of an operation's latencies.
type Percentile = fn(&LatencySummary) -> f64;

const PERCENTILES: [(&str, Percentile); 3] = [
    ("median", |summary| summary.us_p50),
    ("99th percentile", |summary| summary.us_p99),
    ("99.9th percentile", |summary| summary.us_p999),
];

/// A page with the figures of a report of [`run_ycsb`](super::run_ycsb) or [`run_hse`](super::run_hse).
///
/// # Errors
/// If a chart cannot be drawn.
pub fn html(report: &Report) -> Result<String> {
    let runs: Vec<Run> =
        report.runs.iter().filter_map(|run| serde_json::from_value(run.clone()).ok()).collect();
    let title = match report.benchmark.as_str() {
        "hse" => "What a staging class gives: YCSB on emulated devices",
        _ => "YCSB",
    };
    let mut page = Page::new(title).with_text(&media(report));
    let mut phases: Vec<String> = Vec::new();
    for run in &runs {
        if !phases.contains(&run.phase) {
            phases.push(run.phase.clone());
        }
    }
    let figures: [(&str, Figure<'_>); 11] = [
        ("Operations a second", &|run| run.operations_per_second),
        ("Operations a second, settling included", &Run::settled_operations_per_second),
        ("Bytes written to capacity, MB", &|run| run.class_bytes_written("capacity") / 1e6),
        ("Bytes written to staging, MB", &|run| run.class_bytes_written("staging") / 1e6),
        ("Bytes written to capacity over bytes of clients", &|run| run.write_amplification("capacity")),
        ("Bytes written to staging over bytes of clients", &|run| run.write_amplification("staging")),
        ("Bytes read over bytes that clients read", &Run::read_amplification),
        ("Bytes of files over bytes of keys and values", &Run::space_amplification),
        ("CPU seconds for a million operations", &|run| {
            (run.cpu_user_s + run.cpu_system_s) / run.operations.max(1) as f64 * 1e6
        }),
        ("CPU seconds of settling", &|run| run.settle_cpu_s),
        ("Most main memory, MB", &|run| run.memory_bytes_most as f64 / 1e6),
    ];
    for (label, figure) in figures {
        page = with_bars(page, label, (&runs, &phases), figure)?;
    }
    for operation in Operation::ALL.map(Operation::name) {
        let of =
            |run: &Run, percentile: Percentile| run.latencies.get(operation).map_or(f64::NAN, percentile);
        if !runs.iter().any(|run| run.latencies.get(operation).is_some_and(|summary| summary.count > 0)) {
            continue;
        }
        for (name, percentile) in PERCENTILES {
            let label = format!("{}: {name}, us", operation.replace('_', "-"));
            page = with_bars(page, &label, (&runs, &phases), &|run| of(run, percentile))?;
        }
    }
    for phase in &phases {
        let first: Vec<&Run> = runs.iter().filter(|run| run.phase == *phase && run.round == 0).collect();
        let interval_s = first.first().map_or(1.0, |run| run.interval_s);
        let chart = Chart::lines(format!("Throughput over time: {phase}"), "seconds", "operations a second");
        let line = |run: &&Run| {
            let over_time = run.throughput.iter().enumerate();
            Series::new(side_name(run), over_time.map(|(step, value)| (step as f64 * interval_s, *value)))
        };
        page = drawn(page, &first.iter().map(line).fold(chart, Chart::with))?;
    }
    Ok(page.with_report(report).html())
}

fn drawn(page: Page, chart: &Chart) -> Result<Page> {
    page.with_chart(chart).map_err(Error::failed)
}

/// A bar for each side in each phase.
fn with_bars(
    page: Page,
    label: &str,
    (runs, phases): (&[Run], &[String]),
    figure: Figure<'_>,
) -> Result<Page> {
    let chart = Chart::bars(label, phases, label);
    drawn(page, &sides(runs, phases, figure).into_iter().fold(chart, Chart::with))
}

/// What it ran on, in a sentence.
fn media(report: &Report) -> String {
    match report.settings["media"].as_str() {
        Some("limited") => "All engines ran on loop devices that the kernel limits to the same rates: capacity 400/120 MB/s and 15,000/4,000 IOPS, \
             staging 1,000/400 MB/s and 60,000/30,000 IOPS."
            .to_owned(),
        Some("unlimited") => "All engines ran on loop devices on this machine's disk, without limits.".to_owned(),
        Some(_) => "All engines ran on this machine's disk.".to_owned(),
        None => {
            let model = |key: &str| report.settings[key].as_str().unwrap_or_default().to_owned();
            let (capacity, staging) = (model("capacity_model"), model("staging_model"));
            format!("Devices are emulated ({capacity}; {staging}) and times are virtual (docs/device-models.md).")
        }
    }
}

fn side_name(run: &Run) -> String {
    format!("{}, {}", run.engine, if run.tiers == "staging" { "with staging" } else { "capacity only" })
}

/// Medians over the rounds, for each side and phase.
fn sides(runs: &[Run], phases: &[String], figure: Figure<'_>) -> Vec<Series> {
    let mut names: Vec<String> = runs.iter().map(side_name).collect();
    names.sort_unstable();
    names.dedup();
    let value = |name: &str, phase: &str| {
        let is_meant = |run: &&Run| run.phase == phase && side_name(run) == name;
        median(runs.iter().filter(is_meant).map(figure).filter(|value| value.is_finite()))
    };
    let side = |name: String| {
        let values: Vec<f64> = phases.iter().map(|phase| value(&name, phase)).collect();
        Series::new(name, values.into_iter().enumerate().map(|(group, value)| (group as f64, value)))
    };
    names.into_iter().map(side).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use std::path::Path;

    #[test]
    fn a_page_has_a_bar_for_each_side_and_a_line_for_each_phase() {
        let mut report = Report::new("ycsb", &json!({"media": "limited"}), Path::new("/"));
        for engine in ["tanada", "rocks<db>"] {
            for phase in ["load", "a"] {
                report.add_run(&Run {
                    engine: engine.to_owned(),
                    tiers: "staging".to_owned(),
                    phase: phase.to_owned(),
                    operations_per_second: 5000.0,
                    latencies: [("scan".to_owned(), LatencySummary { count: 1, ..Default::default() })]
                        .into(),
                    interval_s: 0.5,
                    throughput: vec![4000.0, 6000.0],
                    ..Run::default()
                });
            }
        }
        let page = html(&report).unwrap();
        // Figures, percentiles of the one operation that there was, and a line for each phase.
        assert_eq!(page.matches("<svg").count(), 11 + 3 + 2);
        assert!(page.contains("scan: 99th percentile") && !page.contains("read: 99th percentile"));
        assert!(page.contains("tanada, with staging") && !page.contains("<db>"));
        let runs: Vec<Run> =
            report.runs.iter().map(|run| serde_json::from_value::<Run>(run.clone()).unwrap()).collect();
        let phases = ["load".to_owned(), "a".to_owned()];
        let sides = sides(&runs, &phases, &|run| run.operations_per_second);
        let bars = |name: &str| Series::new(name, [(0.0, 5000.0), (1.0, 5000.0)]);
        assert_eq!(sides, [bars("rocks<db>, with staging"), bars("tanada, with staging")]);
    }
}
