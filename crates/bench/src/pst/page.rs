//! The paper's figures as an HTML page with plots.

use serde_json::Value;
use tanada_chart::{Chart, Page, Series};
use tanada_report::{Report, median};

use crate::{Error, Result};

/// A page with the figures of a report of [`run`](super::run).
///
/// # Errors
/// If a plot cannot be drawn.
pub fn html(report: &Report) -> Result<String> {
    let mut page = Page::new("Pre-query placement: nine queries of TPC-H").with_text(
        "Devices are emulated and times are virtual (docs/device-models.md, docs/papers/pst.md). Shares are the room of \
         the fast class in per cent of the data.",
    );
    for (execution, title) in [(super::IN_ORDER, "in order"), (super::OUT_OF_ORDER, "out of order")] {
        let figures: [(&str, &str); 3] = [
            ("total_s", "Total time, s"),
            ("slow_ios", "I/Os to the slow class"),
            ("relocation_slow_ios", "I/Os of relocations to the slow class"),
        ];
        for (key, label) in figures {
            page = with_chart(page, report, execution, (label, title), &|run| run[key].as_f64())?;
        }
        for query in ["q5", "q9"] {
            let label = format!("{}, s", query.to_uppercase());
            page = with_chart(page, report, execution, (&label, title), &|run| seconds_of(run, query))?;
        }
    }
    Ok(page.with_report(report).html())
}

/// What a figure is of a run.
pub(super) type Figure<'a> = &'a dyn Fn(&Value) -> Option<f64>;

fn with_chart(
    page: Page,
    report: &Report,
    execution: &str,
    (label, title): (&str, &str),
    figure: Figure<'_>,
) -> Result<Page> {
    let chart = Chart::lines(format!("{label}, {title}"), "room of the fast class, %", label);
    let is_meant =
        |run: &Value| run["kind"] == "replay" && run["execution"] == execution && run["clients"] == 1;
    let chart = lines(report, &is_meant, figure).into_iter().fold(chart, Chart::with);
    page.with_chart(&chart).map_err(|error| Error::failed(error.to_string()))
}

pub(super) fn seconds_of(run: &Value, query: &str) -> Option<f64> {
    let queries = run["queries"].as_array()?;
    let own = queries.iter().filter(|one| one["name"] == query);
    Some(own.filter_map(|one| one["seconds"].as_f64()).sum())
}

/// What all seeds gave, share by share.
type Shares = Vec<(f64, Vec<f64>)>;

/// A line for each policy, over the shares: medians of the runs that are meant.
pub(super) fn lines(report: &Report, is_meant: &dyn Fn(&Value) -> bool, figure: Figure<'_>) -> Vec<Series> {
    let mut found: Vec<(&str, Shares)> = Vec::new();
    for run in &report.runs {
        let values = (run["policy"].as_str(), run["share"].as_f64(), figure(run));
        let (true, (Some(policy), Some(share), Some(value))) = (is_meant(run), values) else { continue };
        let no = found.iter().position(|(name, _)| *name == policy).unwrap_or(found.len());
        if no == found.len() {
            found.push((policy, Vec::new()));
        }
        let shares = &mut found[no].1;
        match shares.iter_mut().find(|(other, _)| *other == share) {
            Some((_, values)) => values.push(value),
            None => shares.push((share, vec![value])),
        }
    }
    let point = |(share, values): (f64, Vec<f64>)| (share, median(values));
    let line = |(name, shares): (&str, Shares)| {
        let series = Series::new(name, shares.into_iter().map(point));
        if name == "benefit" { series.thick() } else { series }
    };
    found.into_iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_page_has_a_line_for_each_policy() {
        let mut report = Report::new("pst", &(), std::path::Path::new("/"));
        for (policy, share, total_s) in [("benefit", 0, 9.0), ("benefit", 50, 3.0), ("lru<b>", 50, 5.0)] {
            report.runs.push(json!({
                "kind": "replay", "execution": "in_order", "clients": 1, "seed": 1, "share": share, "policy": policy,
                "total_s": total_s, "slow_ios": 5, "relocation_slow_ios": 1, "queries": [{"name": "q5", "seconds": 1.5}],
            }));
        }
        assert_eq!(
            lines(&report, &|_| true, &|run| seconds_of(run, "q5"))[0],
            Series::new("benefit", [(0.0, 1.5), (50.0, 1.5)]).thick()
        );
        let page = html(&report).unwrap();
        assert_eq!(page.matches("<svg").count(), 10);
        assert!(page.contains("benefit") && !page.contains("<b>"));
    }

    /// The first seed's replays were drawn, beside tables of medians.
    #[test]
    fn points_are_the_medians_of_all_seeds() {
        let mut report = Report::new("pst", &(), std::path::Path::new("/"));
        for (seed, share, total_s) in [(1, 10, 9.0), (2, 10, 4.0), (3, 10, 5.0), (1, 20, 3.0), (2, 20, 2.0)] {
            for clients in [1, 8] {
                report.runs.push(json!({
                    "kind": "replay", "execution": "in_order", "clients": clients, "seed": seed, "share": share,
                    "policy": "benefit", "total_s": total_s * f64::from(clients),
                }));
            }
        }
        let lines = lines(&report, &|run| run["clients"] == 1, &|run| run["total_s"].as_f64());
        assert_eq!(lines, [Series::new("benefit", [(10.0, 5.0), (20.0, 2.5)]).thick()]);
    }
}
