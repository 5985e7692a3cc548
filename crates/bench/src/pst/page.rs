//! The paper's figures as an HTML page with plots.

use plotters::prelude::*;
use serde_json::Value;

use crate::report::{Report, median};
use crate::{Error, Result};

const SIZE: (u32, u32) = (920, 460);

/// A line: what it is called, and its points.
struct Line {
    name: String,
    points: Vec<(f64, f64)>,
}

/// A page with the figures of a report of [`run`](super::run).
///
/// # Errors
/// If a plot cannot be drawn.
pub fn html(report: &Report) -> Result<String> {
    let mut page = String::from(
        "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>Pre-query placement</title>\n\
         <style>body{font-family:sans-serif;max-width:60em;margin:2em auto}pre{background:#f4f4f4;padding:1em;overflow:auto}</style></head><body>\n\
         <h1>Pre-query placement: nine queries of TPC-H</h1>\n\
         <p>Devices are emulated and times are virtual (docs/device-models.md, docs/papers/pst.md). Shares are the room of the fast class in per cent \
         of the data.</p>\n",
    );
    for (execution, title) in [(super::IN_ORDER, "in order"), (super::OUT_OF_ORDER, "out of order")] {
        let figures: [(&str, &str); 3] = [
            ("total_s", "Total time, s"),
            ("slow_ios", "I/Os to the slow class"),
            ("relocation_slow_ios", "I/Os of relocations to the slow class"),
        ];
        for (key, label) in figures {
            page += &plot(
                &format!("{label}, {title}"),
                label,
                &lines(report, execution, &|run| run[key].as_f64()),
            )?;
        }
        for query in ["q5", "q9"] {
            let seconds = |run: &Value| seconds_of(run, query);
            let label = format!("{}, s", query.to_uppercase());
            page += &plot(&format!("{label}, {title}"), &label, &lines(report, execution, &seconds))?;
        }
    }
    let summary = serde_json::to_string_pretty(&report.summary).unwrap_or_default();
    page += &format!("<h2>Summary</h2>\n<pre>{}</pre>\n", escaped(&summary));
    let tables: Vec<String> = report.tables.iter().map(ToString::to_string).collect();
    page += &format!("<h2>Tables</h2>\n<pre>{}</pre>\n</body></html>\n", escaped(&tables.join("\n")));
    Ok(page)
}

fn seconds_of(run: &Value, query: &str) -> Option<f64> {
    let queries = run["queries"].as_array()?;
    let own = queries.iter().filter(|one| one["name"] == query);
    Some(own.filter_map(|one| one["seconds"].as_f64()).sum())
}

/// What all seeds gave, share by share.
type Shares = Vec<(f64, Vec<f64>)>;

/// A line for each policy, over the shares: medians of the replays of one client, as in the tables.
fn lines(report: &Report, execution: &str, figure: &dyn Fn(&Value) -> Option<f64>) -> Vec<Line> {
    let mut found: Vec<(&str, Shares)> = Vec::new();
    for run in &report.runs {
        let is_meant = run["kind"] == "replay" && run["execution"] == execution && run["clients"] == 1;
        let values = (run["policy"].as_str(), run["share"].as_f64(), figure(run));
        let (true, (Some(policy), Some(share), Some(value))) = (is_meant, values) else { continue };
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
    let line = |(name, shares): (&str, Shares)| Line {
        name: name.to_owned(),
        points: shares.into_iter().map(point).collect(),
    };
    found.into_iter().map(line).collect()
}

fn plot(title: &str, label: &str, lines: &[Line]) -> Result<String> {
    let mut svg = String::new();
    draw(&mut svg, label, lines).map_err(|error| Error::failed(format!("cannot draw {title}: {error}")))?;
    Ok(format!("<h2>{}</h2>\n{svg}\n", escaped(title)))
}

fn draw(
    svg: &mut String,
    label: &str,
    lines: &[Line],
) -> std::result::Result<(), Box<dyn std::error::Error>> {
    let points = || lines.iter().flat_map(|line| &line.points);
    let most = points().map(|(_, y)| *y).fold(0.0, f64::max).max(1e-9);
    let to = points().map(|(x, _)| *x).fold(10.0, f64::max);
    let area = SVGBackend::with_string(svg, SIZE).into_drawing_area();
    area.fill(&WHITE)?;
    let mut chart = ChartBuilder::on(&area)
        .margin(12)
        .x_label_area_size(40)
        .y_label_area_size(76)
        .build_cartesian_2d(0.0..to, 0.0..most * 1.05)?;
    chart.configure_mesh().x_desc("room of the fast class, %").y_desc(label).draw()?;
    for (no, line) in lines.iter().enumerate() {
        let color = HSLColor(no as f64 / lines.len().max(1) as f64, 0.8, 0.42);
        let width = if line.name == "benefit" { 3 } else { 1 };
        let series =
            LineSeries::new(line.points.iter().copied(), ShapeStyle::from(&color).stroke_width(width));
        let drawn = chart.draw_series(series)?;
        drawn.label(line.name.as_str()).legend(move |(x, y)| {
            PathElement::new([(x, y), (x + 18, y)], ShapeStyle::from(&color).stroke_width(2))
        });
    }
    chart
        .configure_series_labels()
        .position(SeriesLabelPosition::UpperRight)
        .background_style(WHITE.mix(0.8))
        .border_style(BLACK)
        .draw()?;
    area.present()?;
    Ok(())
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
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
            lines(&report, "in_order", &|run| seconds_of(run, "q5"))[0].points,
            [(0.0, 1.5), (50.0, 1.5)]
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
        let lines = lines(&report, "in_order", &|run| run["total_s"].as_f64());
        assert_eq!(
            lines.iter().map(|line| line.points.as_slice()).collect::<Vec<_>>(),
            [[(10.0, 5.0), (20.0, 2.5)]]
        );
    }
}
