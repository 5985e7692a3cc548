//! Medians over the rounds of [`run_ycsb`](super::run_ycsb), ratios of two engines, and tables.

use super::ycsb::OWN;
use super::{WITH_STAGING, YcsbOptions};
use crate::measure::Run;
use crate::workload::Workload;
use tanada_report::{Report, Table, cell, median};

/// Medians over the rounds of one engine.
struct Medians<'a> {
    runs: &'a [Run],
    tiers: &'a str,
}

impl Medians<'_> {
    fn of(&self, engine: &str, phase: &str, figure: impl Fn(&Run) -> f64) -> f64 {
        let is_meant = |run: &&Run| run.engine == engine && run.tiers == self.tiers && run.phase == phase;
        let figures = self.runs.iter().filter(is_meant).map(figure);
        median(figures.filter(|figure| figure.is_finite()))
    }
}

/// Adds keys and tables to the report.
pub(super) fn summarize(options: &YcsbOptions, runs: &[Run], report: &mut Report) {
    // Summaries are those of the run with staging, where there is one.
    let with_staging = options.tiers.iter().find(|tiers| *tiers == WITH_STAGING);
    let Some(tiers) = with_staging.or(options.tiers.first()) else { return };
    let medians = Medians { runs, tiers };
    let phases: Vec<String> =
        std::iter::once("load".to_owned()).chain(options.workloads.iter().map(Workload::to_string)).collect();
    for tiers in &options.tiers {
        let medians = Medians { runs, tiers };
        report.tables.push(speeds(options, &medians, &phases));
        report.tables.push(bytes(options, &medians, &phases));
    }
    for peer in &options.against {
        let other = peer.engine.replace('-', "_");
        let ratio = |phase: &str, figure: &dyn Fn(&Run) -> f64| {
            medians.of(OWN, phase, figure) / medians.of(&peer.engine, phase, figure)
        };
        for phase in &phases {
            let value = ratio(phase, &|run| run.operations_per_second);
            report.summarize(&format!("{phase}_over_{other}"), value);
        }
        let settled = ratio("load", &Run::settled_operations_per_second);
        report.summarize(&format!("load_settled_over_{other}"), settled);
        for phase in phases.iter().filter(|phase| ["a", "f"].contains(&phase.as_str())) {
            report.summarize(&format!("{phase}_p999_over_{other}"), ratio(phase, &|run| run.us_p999("read")));
        }
        for class in ["capacity", "staging"] {
            let value = medians.of(&peer.engine, "load", |run| run.write_amplification(class));
            report.summarize(&format!("{other}_{class}_bytes_over_logical_load"), value);
        }
    }
    if !options.own {
        report.summary.retain(|key, _| key.contains("_bytes_"));
        return;
    }
    for class in ["capacity", "staging"] {
        let value = medians.of(OWN, "load", |run| run.write_amplification(class));
        report.summarize(&format!("{class}_bytes_over_logical_load"), value);
    }
    let in_c = |figure: &dyn Fn(&Run) -> f64| medians.of(OWN, "c", figure);
    for (key, value) in [
        ("c_misses_per_second", in_c(&Run::misses_per_second)),
        ("device_iops", in_c(&Run::device_iops_as_read)),
        ("c_misses_over_device_iops", in_c(&|run| run.misses_per_second() / run.device_iops_as_read())),
    ] {
        if phases.iter().any(|phase| phase == "c") {
            report.summarize(key, value);
        }
    }
    let own = runs.iter().filter(|run| run.engine == OWN);
    let most = own.map(|run| run.memory_bytes_most).max().unwrap_or(0);
    report.summarize("memory_over_budget", most as f64 / options.memory_bytes as f64);
}

/// Rates, latencies, CPU time and memory.
fn speeds(options: &YcsbOptions, medians: &Medians<'_>, phases: &[String]) -> Table {
    let titles = [
        medians.tiers,
        "phase",
        "op/s",
        "read p99.9 us",
        "write p99.9 us",
        "CPU s",
        "settle s",
        "settle CPU s",
        "MiB",
    ];
    let write = |run: &Run| {
        let us = ["update", "insert", "read_modify_write"].map(|operation| run.us_p999(operation));
        us.into_iter().find(|us| us.is_finite()).unwrap_or(f64::NAN)
    };
    let read = |run: &Run| {
        let us = run.us_p999("read");
        if us.is_finite() { us } else { run.us_p999("scan") }
    };
    table(options, medians, phases, &titles, |of| {
        vec![
            cell(of(&|run| run.operations_per_second), 0),
            cell(of(&read), 0),
            cell(of(&write), 0),
            cell(of(&|run| run.cpu_user_s + run.cpu_system_s), 1),
            cell(of(&|run| run.settle_s), 1),
            cell(of(&|run| run.settle_cpu_s), 1),
            cell(of(&|run| run.memory_bytes_most as f64) / f64::from(1 << 20), 0),
        ]
    })
}

/// Bytes written and read by class, for each byte of the clients' too, and bytes that are taken.
fn bytes(options: &YcsbOptions, medians: &Medians<'_>, phases: &[String]) -> Table {
    let titles = [
        medians.tiers,
        "phase",
        "capacity written x",
        "staging written x",
        "capacity read MB",
        "staging read MB",
        "read x",
        "space x",
    ];
    table(options, medians, phases, &titles, |of| {
        vec![
            cell(of(&|run| run.write_amplification("capacity")), 2),
            cell(of(&|run| run.write_amplification("staging")), 2),
            cell(of(&|run| run.class_bytes_read("capacity") / 1e6), 0),
            cell(of(&|run| run.class_bytes_read("staging") / 1e6), 0),
            cell(of(&Run::read_amplification), 2),
            cell(of(&Run::space_amplification), 2),
        ]
    })
}

/// The median of a figure.
type Median<'a> = &'a dyn Fn(&dyn Fn(&Run) -> f64) -> f64;

/// A row for each engine and phase, of the cells that `cells` makes of medians.
fn table(
    options: &YcsbOptions,
    medians: &Medians<'_>,
    phases: &[String],
    titles: &[&str],
    cells: impl Fn(Median<'_>) -> Vec<String>,
) -> Table {
    let mut table = Table::new(titles);
    for engine in options.engines() {
        for phase in phases {
            let mut row = vec![engine.to_owned(), phase.clone()];
            row.extend(cells(&|figure| medians.of(engine, phase, figure)));
            table.add(row);
        }
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::Peer;
    use std::path::{Path, PathBuf};

    fn run(engine: &str, phase: &str, rate: f64, us_p999: f64) -> Run {
        let summary = crate::measure::LatencySummary { us_p999, count: 1, ..Default::default() };
        let written =
            crate::engine::ClassBytes { name: "staging".to_owned(), bytes_read: 2500, bytes_written: 300 };
        Run {
            engine: engine.to_owned(),
            tiers: WITH_STAGING.to_owned(),
            phase: phase.to_owned(),
            operations_per_second: rate,
            latencies: [("read".to_owned(), summary)].into(),
            classes_settled: vec![written],
            logical_bytes_written: 200,
            logical_bytes_read: 1000,
            operations: 3000,
            seconds: 3000.0 / rate,
            settle_s: if engine == OWN { 2000.0 / rate } else { 0.0 },
            memory_bytes_most: 3 << 20,
            ..Run::default()
        }
    }

    #[test]
    fn misses_of_c_are_divided_by_device_iops() {
        let class = |name: &str, bytes_read| crate::engine::ClassBytes {
            name: name.to_owned(),
            bytes_read,
            bytes_written: 0,
        };
        let c = Run {
            cache_misses: Some(9000),
            device_iops: [("staging".to_owned(), 40_000.0), ("capacity".to_owned(), 10_000.0)].into(),
            classes: vec![class("staging", 200), class("capacity", 600)],
            ..run(OWN, "c", 1000.0, 1.0)
        };
        // A quarter at 40,000 and three quarters at 10,000.
        let iops = 1.0 / (0.25 / 40_000.0 + 0.75 / 10_000.0);
        assert!((c.device_iops_as_read() - iops).abs() < 1e-6, "{}", c.device_iops_as_read());
        let options = YcsbOptions { workloads: vec![Workload::C], ..YcsbOptions::new("/") };
        let mut report = Report::new("ycsb", &(), Path::new("/"));
        summarize(&options, &[c], &mut report);
        assert_eq!(report.summary["c_misses_per_second"], 3000.0);
        assert_eq!(report.summary["c_misses_over_device_iops"], 0.2437);
        assert_eq!(report.summary["device_iops"], 12_308.0);
    }

    #[test]
    fn uncounted_figures_are_dashes_without_keys() {
        let uncounted =
            |engine: &str| Run { classes_settled: Vec::new(), ..run(engine, "load", 1000.0, 1.0) };
        let peer = Peer { program: PathBuf::new(), engine: "rocksdb".to_owned() };
        let options =
            YcsbOptions { against: vec![peer], workloads: vec![Workload::C], ..YcsbOptions::new("/") };
        let mut report = Report::new("ycsb", &(), Path::new("/"));
        summarize(&options, &[run(OWN, "load", 1000.0, 1.0), uncounted("rocksdb")], &mut report);
        assert!(report.summary.contains_key("staging_bytes_over_logical_load"));
        assert!(!report.summary.keys().any(|key| key.starts_with("rocksdb_")), "{:?}", report.summary);
        // C did not run.
        assert!(
            !report.summary.contains_key("c_over_rocksdb") && report.summary.values().all(|v| v.is_number())
        );
        let bytes = report.tables[1].to_string();
        let row = bytes.lines().find(|line| line.starts_with("rocksdb")).unwrap();
        assert_eq!(row.matches(" -").count(), 6, "{bytes}");
    }

    #[test]
    fn ratios_are_computed_from_medians_with_named_keys() {
        let peer = Peer { program: PathBuf::new(), engine: "rocksdb".to_owned() };
        let options = YcsbOptions {
            against: vec![peer],
            memory_bytes: 6 << 20,
            workloads: vec![Workload::A, Workload::F],
            ..YcsbOptions::new("/")
        };
        let mut runs = Vec::new();
        for (rate, us) in [(100.0, 10.0), (300.0, 30.0), (900.0, 20.0)] {
            for phase in ["load", "a", "f"] {
                runs.push(run(OWN, phase, rate, us));
                runs.push(run("rocksdb", phase, rate / 2.0, us * 4.0));
            }
        }
        let mut report = Report::new("ycsb", &(), Path::new("/"));
        summarize(&options, &runs, &mut report);
        for key in ["load_over_rocksdb", "a_over_rocksdb", "f_over_rocksdb"] {
            assert_eq!(report.summary[key], 2.0, "{key}");
        }
        for key in ["a_p999_over_rocksdb", "f_p999_over_rocksdb"] {
            assert_eq!(report.summary[key], 0.25, "{key}");
        }
        assert_eq!(report.summary["staging_bytes_over_logical_load"], 1.5);
        assert_eq!(report.summary["capacity_bytes_over_logical_load"], 0.0);
        assert_eq!(report.summary["memory_over_budget"], 0.5);
        // Twice as fast, and two thirds of the time of the load again to settle.
        assert_eq!(report.summary["load_settled_over_rocksdb"], 1.2);
        let tables: Vec<String> = report.tables.iter().map(ToString::to_string).collect();
        assert!(tables[0].contains("rocksdb") && tables[0].contains("settle CPU s"), "{}", tables[0]);
        assert!(tables[1].contains("2.50"), "{}", tables[1]);
    }
}
