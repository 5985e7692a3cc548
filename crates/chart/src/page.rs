//! A page of HTML: text, charts with the tables of their values, and what a report holds.

use std::fmt::Write;

use tanada_report::{Report, significant};

use crate::palette::dark_rules;
use crate::{Chart, Kind, Result};

/// Of all pages. Charts shrink with the page; tables and long lines get a bar to move them.
const RULES: &str = "\
:root{color-scheme:light dark}\
body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem;color:#222;background:#fff}\
h1{line-height:1.2}h2{margin-top:2.5rem}svg{width:100%;height:auto}\
pre,.values{overflow-x:auto}pre{background:#f4f4f4;padding:1em}\
table{border-collapse:collapse;font-size:.85rem}td,th{padding:.15em .7em;border-bottom:1px solid #e0e0e0;\
text-align:right;white-space:nowrap;font-variant-numeric:tabular-nums}td:first-child,th:first-child{text-align:left}";

const DARK_RULES: &str =
    "body{color:#e4e4e4;background:#161616}pre{background:#222}td,th{border-color:#3a3a3a}";

/// A page that is being written.
#[derive(Debug, Clone)]
pub struct Page {
    html: String,
}

impl Page {
    /// A page with its title.
    pub fn new(title: &str) -> Page {
        let title = escaped(title);
        let html = format!(
            "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
             <meta name=\"viewport\" content=\"width=device-width,initial-scale=1\"><title>{title}</title>\n\
             <style>{RULES}@media(prefers-color-scheme:dark){{{DARK_RULES}{}}}</style></head><body>\n<h1>{title}</h1>\n",
            dark_rules()
        );
        Page { html }
    }

    /// A paragraph.
    #[must_use]
    pub fn with_text(mut self, text: &str) -> Page {
        self.html += &format!("<p>{}</p>\n", escaped(text));
        self
    }

    /// A chart below its title, and the table of its values.
    ///
    /// # Errors
    /// If it cannot be drawn.
    pub fn with_chart(mut self, chart: &Chart) -> Result<Page> {
        self.html += &format!("<h2>{}</h2>\n{}\n{}\n", escaped(&chart.title), chart.svg()?, values(chart));
        Ok(self)
    }

    /// A heading, and text as it is.
    #[must_use]
    pub fn with_block(mut self, heading: &str, text: &str) -> Page {
        self.html += &format!("<h2>{}</h2>\n<pre>{}</pre>\n", escaped(heading), escaped(text));
        self
    }

    /// The summary, the tables, the settings and the machine of a report.
    #[must_use]
    pub fn with_report(self, report: &Report) -> Page {
        let json = |value: serde_json::Result<String>| value.unwrap_or_default();
        let tables: Vec<String> = report.tables.iter().map(ToString::to_string).collect();
        self.with_block("Summary", &json(serde_json::to_string_pretty(&report.summary)))
            .with_block("Tables", &tables.join("\n"))
            .with_block("Settings", &json(serde_json::to_string_pretty(&report.settings)))
            .with_block("Machine", &json(serde_json::to_string_pretty(&report.environment)))
    }

    /// The whole page.
    pub fn html(&self) -> String {
        format!("{}</body></html>\n", self.html)
    }
}

/// What is drawn, as a table: a row for each x or group, a column for each series.
fn values(chart: &Chart) -> String {
    let mut xs: Vec<f64> = chart.series.iter().flat_map(|series| series.finite().map(|(x, _)| x)).collect();
    xs.sort_by(f64::total_cmp);
    xs.dedup();
    let (head, groups) = match &chart.kind {
        Kind::Lines(x) => (x.as_str(), None),
        Kind::Bars(groups) => (chart.values.as_str(), Some(groups)),
    };
    let mut table = format!("<div class=\"values\"><table><tr><th>{}</th>", escaped(head));
    for series in &chart.series {
        let _ = write!(table, "<th>{}</th>", escaped(&series.name));
    }
    table += "</tr>\n";
    for x in xs {
        let name = groups.and_then(|groups| groups.get(x as usize)).cloned();
        let _ =
            write!(table, "<tr><td>{}</td>", escaped(&name.unwrap_or_else(|| significant(x, 4).to_string())));
        for series in &chart.series {
            let value = series.at(x).map(|value| significant(value, 4).to_string());
            let _ = write!(table, "<td>{}</td>", value.unwrap_or_default());
        }
        table += "</tr>\n";
    }
    table + "</table></div>"
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Series;

    #[test]
    fn a_page_has_the_values_of_its_charts_and_no_foreign_markup() {
        let lines = Chart::lines("a < b", "share, %", "s")
            .with(Series::new("lru<b>", [(0.0, 1.234_56), (50.0, f64::NAN)]))
            .with(Series::of_paper("paper", [(50.0, 3.0)]));
        let groups = ["load".to_owned(), "run".to_owned()];
        let bars = Chart::bars("bars", &groups, "MB/s").with(Series::new("one", [(0.0, 4.0), (1.0, 5.0)]));
        let page = Page::new("<t>").with_chart(&lines).unwrap().with_chart(&bars).unwrap().html();
        assert!(!page.contains("<b>") && !page.contains("<t>"));
        assert!(page.contains("<tr><td>0</td><td>1.235</td><td></td></tr>"), "{page}");
        assert!(page.contains("<tr><td>50</td><td></td><td>3</td></tr>"), "{page}");
        assert!(page.contains("<tr><td>run</td><td>5</td></tr>"), "{page}");
    }
}
