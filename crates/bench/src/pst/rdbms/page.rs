//! The paper's figures of a server on a mounted volume, as an HTML page beside the paper's own.

use serde_json::Value;
use tanada_chart::{Chart, Page, Series};
use tanada_report::{Report, median};

use super::LIVE;
use super::figures::{PAPER, PAPER_BEST};
use crate::pst::page::{Figure, lines, seconds_of};
use crate::{Error, Result};

/// A page with the charts of a report of [`run`](super::run).
///
/// # Errors
/// If a chart cannot be drawn.
pub fn html(report: &Report) -> Result<String> {
    let mut page = Page::new("Pre-query placement for a server on a mounted volume").with_text(&format!(
        "{}. Runs on the mounted volume are in real time; devices are emulated (docs/device-models.md, \
         docs/papers/pst.md). Shares are the room of the fast class in per cent of the tables' files. The paper's best \
         ratio of all nine queries over static is {PAPER_BEST}; its text does not say at which share.",
        report.setup
    ));
    let figures: [(&str, &str, Figure<'_>); 5] = [
        ("Total time", "s", &|run| run["total_s"].as_f64()),
        ("I/Os to the slow class", "I/Os", &|run| run["slow_ios"].as_f64()),
        ("I/Os of relocations to the slow class", "I/Os", &|run| run["relocation_slow_ios"].as_f64()),
        ("Q5", "s", &|run| seconds_of(run, "q5")),
        ("Q9", "s", &|run| seconds_of(run, "q9")),
    ];
    for (title, unit, figure) in figures {
        let chart = Chart::lines(title, "room of the fast class, %", unit);
        let live = lines(report, &|run| run["kind"] == LIVE, figure);
        page = with(page, live.into_iter().fold(chart, Chart::with))?;
    }
    let chart = Chart::lines("Total time in replays of the recorded run", "room of the fast class, %", "s");
    let replays = lines(report, &|run| run["kind"] == "replay", &|run| run["total_s"].as_f64());
    if !replays.is_empty() {
        page = with(page, replays.into_iter().fold(chart, Chart::with))?;
    }
    if let Some(chart) = over_static(report, "All queries over static", &|run| run["total_s"].as_f64()) {
        page = with(page, chart)?;
    }
    for (query, share, ratio) in PAPER {
        let title = format!("{} over static", query.to_uppercase());
        let paper = Series::of_paper("PST, the paper's best", [(share, ratio)]);
        if let Some(chart) = over_static(report, &title, &|run| seconds_of(run, query)) {
            page = with(page, chart.with(paper))?;
        }
    }
    Ok(page.with_report(report).html())
}

fn with(page: Page, chart: Chart) -> Result<Page> {
    page.with_chart(&chart).map_err(|error| Error::failed(error.to_string()))
}

/// A chart of `plan` and `benefit`: a figure over that of `static`; none where neither ran beside it.
fn over_static(report: &Report, title: &str, figure: Figure<'_>) -> Option<Chart> {
    let of = |policy: &str, share: f64| {
        let is_meant = |run: &&Value| {
            run["kind"] == LIVE && run["policy"] == policy && run["share"].as_f64() == Some(share)
        };
        let values: Vec<f64> = report.runs.iter().filter(is_meant).filter_map(figure).collect();
        (!values.is_empty()).then(|| median(values))
    };
    let mut shares: Vec<f64> = report.runs.iter().filter_map(|run| run["share"].as_f64()).collect();
    shares.sort_by(f64::total_cmp);
    shares.dedup();
    let mut series = Vec::new();
    for policy in ["plan", "benefit"] {
        let ratio = |share: &f64| {
            let (own, fixed) = (of(policy, *share)?, of("static", *share)?);
            (fixed > 0.0).then(|| (*share, own / fixed))
        };
        let points: Vec<(f64, f64)> = shares.iter().filter_map(ratio).collect();
        if !points.is_empty() {
            let own = Series::new(policy, points);
            series.push(if policy == "benefit" { own.thick() } else { own });
        }
    }
    let chart = Chart::lines(title, "room of the fast class, %", "time over static");
    (!series.is_empty()).then(|| series.into_iter().fold(chart, Chart::with))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_page_has_ratios_over_static_beside_the_papers() {
        let mut report = Report::new("pst", &(), std::path::Path::new("/"));
        for (policy, total_s) in [("static", 8.0), ("benefit", 4.0), ("plan", 6.0)] {
            report.runs.push(json!({
                "kind": "live", "execution": "mariadb", "clients": 1, "share": 30, "policy": policy,
                "total_s": total_s, "slow_ios": 5, "relocation_slow_ios": 1,
                "queries": [{"name": "q5", "seconds": total_s / 4.0}, {"name": "q9", "seconds": 1.0}],
            }));
        }
        let page = html(&report).unwrap();
        assert_eq!(page.matches("<svg").count(), 8);
        assert!(page.contains("<td>0.5</td>") && page.contains("<td>0.62</td>"), "{page}");
    }
}
