//! The article's charts as an HTML page: load time, requests, disk space, each by device and arm.

use serde_json::Value;
use tanada_chart::{Chart, Page, Series};
use tanada_report::{Report, median};

use super::operation::MIX;
use crate::{Error, Result};

/// A figure of a run, as it stands in a report.
type Figure<'a> = &'a dyn Fn(&Value) -> Option<f64>;

/// A page with the charts of a report of [`run`](super::run).
///
/// # Errors
/// If a chart cannot be drawn.
pub fn html(report: &Report) -> Result<String> {
    let names = |key: &str| -> Vec<String> {
        let values = report.settings[key].as_array().into_iter().flatten();
        values.filter_map(|value| value.as_str().map(str::to_owned)).collect()
    };
    let (arms, devices) = (names("arms"), names("devices"));
    let mut page = Page::new("Page compression: LinkBench's workload on MariaDB").with_text(
        "Devices other than disk are emulated (docs/device-models.md). What the arms are and how the figures compare \
         with the article's is in docs/papers/innodb-page-compression.md.",
    );
    let mib = |key: &'static str| move |run: &Value| Some(run[key].as_f64()? / f64::from(1 << 20));
    let (loaded, rewritten) = (mib("allocated_bytes_load"), mib("allocated_bytes_rewrite"));
    let written = mib("written_bytes_requests");
    let figures: [(&str, &str, Figure<'_>); 8] = [
        ("Load time", "s", &|run| run["load_seconds"].as_f64()),
        ("Requests", "requests/s", &|run| run["requests_per_second"].as_f64()),
        ("Disk space after the load", "MiB", &loaded),
        ("Disk space after three updates of every row", "MiB", &rewritten),
        ("Written to the device by requests and updates", "MiB", &written),
        ("Extents", "extents", &|run| run["extents"].as_f64()),
        ("Sequential scan after the updates", "s", &|run| run["scan_seconds"].as_f64()),
        ("Drop of the tables", "s", &|run| run["drop_seconds"].as_f64()),
    ];
    for (title, unit, figure) in figures {
        let mut chart = Chart::bars(title, &devices, unit);
        for arm in &arms {
            let bars =
                devices.iter().enumerate().map(|(no, device)| (no as f64, of(report, device, arm, figure)));
            chart = chart.with(Series::new(arm.as_str(), bars));
        }
        page = with(page, &chart)?;
    }
    let operations: Vec<String> = MIX.iter().map(|(_, name, _)| (*name).to_owned()).collect();
    for device in &devices {
        let mut chart = Chart::bars(format!("99th percentile of latencies, {device}"), &operations, "ms");
        for arm in &arms {
            let bars = operations.iter().enumerate().map(|(no, operation)| {
                let p99 = |run: &Value| Some(run["operations"][operation]["p99_us"].as_f64()? / 1000.0);
                (no as f64, of(report, device, arm, &p99))
            });
            chart = chart.with(Series::new(arm.as_str(), bars));
        }
        page = with(page, &chart)?;
    }
    Ok(page.with_report(report).html())
}

fn with(page: Page, chart: &Chart) -> Result<Page> {
    page.with_chart(chart).map_err(|error| Error::failed(error.to_string()))
}

/// The median over the rounds of an arm.
fn of(report: &Report, device: &str, arm: &str, figure: Figure<'_>) -> f64 {
    let own = report.runs.iter().filter(|run| run["device"] == device && run["arm"] == arm);
    median(own.filter_map(figure))
}

#[cfg(test)]
mod tests {
    use super::super::figures::{report, tests::run};
    use super::super::graph::Graph;
    use super::*;

    #[test]
    fn a_page_has_the_charts_of_the_article() {
        let options = super::super::PageCompressionOptions::quick("/");
        let runs: Vec<_> = options
            .devices
            .iter()
            .flat_map(|device| options.arms.iter().map(move |arm| run(arm, device, 7)))
            .collect();
        let report = report(&options, &Graph::new(100), &runs);
        assert_eq!(of(&report, "sata-ssd", "mount_lz4", &|run| run["load_seconds"].as_f64()), 7.0);
        let page = html(&report).unwrap();
        assert_eq!(page.matches("<svg").count(), 10);
        for text in ["Requests", "mount_lz4", "sata-ssd", "Drop of the tables"] {
            assert!(page.contains(text), "{text}");
        }
    }
}
