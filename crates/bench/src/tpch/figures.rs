//! Medians, sums and ratios of the runs.

use super::{Build, TpchRun};
use tanada_report::{Report, Table, cell, median};
use tanada_sample::SampleQuery;

/// What of a run is compared: its name in the summary, and its seconds.
type Figure = (&'static str, fn(&TpchRun) -> f64);

const FIGURES: [Figure; 3] =
    [("cold", |run| run.cold_seconds), ("warm", TpchRun::warm), ("cpu", |run| run.cpu_seconds)];

/// Puts the table and the summary of `runs` into `report`.
pub(super) fn put(runs: &[TpchRun], queries: &[&SampleQuery], has_baseline: bool, report: &mut Report) {
    let of = |query: &str, build: Build, (_, seconds): Figure| {
        let wanted = runs.iter().filter(|run| run.query == query && run.build == build);
        median(wanted.map(seconds))
    };
    let mut titles = vec!["query", "cold, s", "warm, s", "processor, s"];
    if has_baseline {
        titles.extend(["cold over baseline", "warm over baseline", "processor over baseline"]);
    }
    let mut table = Table::new(&titles);
    let mut totals = [[0.0; 2]; FIGURES.len()];
    for query in queries {
        let mut row = vec![query.name.to_owned()];
        let mut ratios = Vec::new();
        for (figure, total) in FIGURES.into_iter().zip(&mut totals) {
            let seconds = of(query.name, Build::Measured, figure);
            total[0] += seconds;
            row.push(cell(seconds, 4));
            report.summarize(&format!("{}_{}_seconds", query.name, figure.0), seconds);
            if has_baseline {
                let baseline = of(query.name, Build::Baseline, figure);
                total[1] += baseline;
                ratios.push(cell(seconds / baseline, 3));
                report.summarize(&format!("{}_{}_over_baseline", query.name, figure.0), seconds / baseline);
            }
        }
        row.extend(ratios);
        table.add(row);
    }
    let mut row = vec!["all".to_owned()];
    row.extend(totals.iter().map(|total| cell(total[0], 4)));
    if has_baseline {
        row.extend(totals.iter().map(|total| cell(total[0] / total[1], 3)));
    }
    table.add(row);
    report.tables.push(table);
    for ((name, _), total) in FIGURES.iter().zip(&totals) {
        report.summarize(&format!("{name}_total_seconds"), total[0]);
        if has_baseline {
            report.summarize(&format!("{name}_total_over_baseline"), total[0] / total[1]);
        }
    }
    if has_baseline {
        let [cold, warm, _] = totals;
        report.summarize("total_over_baseline", (cold[0] + warm[0]) / (cold[1] + warm[1]));
        put_spread(runs, report);
    }
}

/// The smallest and the largest ratio of any round.
fn put_spread(runs: &[TpchRun], report: &mut Report) {
    let rounds = runs.iter().map(|run| run.round).max().unwrap_or(0);
    for (name, seconds) in FIGURES {
        let sum = |round: usize, build: Build| -> f64 {
            runs.iter().filter(|run| run.round == round && run.build == build).map(seconds).sum()
        };
        let ratios = (1..=rounds).map(|round| sum(round, Build::Measured) / sum(round, Build::Baseline));
        let (least, most) =
            ratios.fold((f64::NAN, f64::NAN), |(least, most), ratio| (ratio.min(least), ratio.max(most)));
        report.summarize(&format!("{name}_total_over_baseline_least"), least);
        report.summarize(&format!("{name}_total_over_baseline_most"), most);
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use tanada_sample::TPCH_ALL;

    fn run(round: usize, query: &'static str, build: Build, cold: f64, warm: f64) -> TpchRun {
        TpchRun {
            round,
            query,
            build,
            cold_seconds: cold,
            warm_seconds: vec![warm, 9.0, warm],
            cpu_seconds: cold + warm,
        }
    }

    #[test]
    fn totals_are_sums_of_medians_and_ratios_are_over_the_baseline() {
        let queries = [&TPCH_ALL[0], &TPCH_ALL[1]];
        let mut runs = Vec::new();
        for (round, cold) in [(1, 2.0), (2, 4.0), (3, 3.0)] {
            for query in ["q1", "q2"] {
                runs.push(run(round, query, Build::Measured, cold, 1.0));
                runs.push(run(round, query, Build::Baseline, 4.0, 2.0));
            }
        }
        let mut report = Report::new("tpch", &(), Path::new("/"));
        put(&runs, &queries, true, &mut report);
        assert_eq!(report.summary["cold_total_seconds"], 6.0);
        assert_eq!(report.summary["warm_total_seconds"], 2.0);
        assert_eq!(report.summary["q1_warm_over_baseline"], 0.5);
        assert_eq!(report.summary["cold_total_over_baseline"], 0.75);
        assert_eq!(report.summary["total_over_baseline"], 0.6667);
        assert_eq!(report.summary["cold_total_over_baseline_least"], 0.5);
        assert_eq!(report.summary["cold_total_over_baseline_most"], 1.0);
        assert!(report.tables[0].to_string().contains("all"));
    }

    #[test]
    fn figures_of_a_single_build_have_no_ratios() {
        let mut report = Report::new("tpch", &(), Path::new("/"));
        put(&[run(1, "q1", Build::Measured, 1.0, 0.5)], &[&TPCH_ALL[0]], false, &mut report);
        assert_eq!(report.summary["warm_total_seconds"], 0.5);
        assert!(report.summary.keys().all(|key| !key.contains("baseline")));
    }
}
