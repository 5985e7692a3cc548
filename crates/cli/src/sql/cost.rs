//! The line that says what a statement cost.

use tanada_base::ByteSize;
use tanada_query::QueryReport;

/// `66 rows, 0.184 s, 3,210 I/Os (50.2 MiB), depth 57.3 mean 256 max, 12 cache hits`.
pub fn line(report: &QueryReport) -> String {
    let seconds = report.elapsed.as_secs_f64();
    let mut line = counted(report.rows, "row");
    let warnings = report.warnings.len() as u64 + report.noted;
    if warnings > 0 {
        line += &format!(", {}", counted(warnings, "warning"));
    }
    line += &format!(", {seconds:.3} s");
    if report.ios > 0 {
        line += &format!(
            ", {} ({}), depth {:.1} mean {} max",
            counted(report.ios, "I/O"),
            ByteSize::new(report.bytes),
            report.depth_mean,
            grouped(report.depth_max)
        );
    }
    if report.ios > 0 || report.cache_hits > 0 {
        line += &format!(", {}", counted(report.cache_hits, "cache hit"));
    }
    line
}

/// `1 row`, `2,000 rows`.
pub fn counted(count: u64, noun: &str) -> String {
    format!("{} {noun}{}", grouped(count), if count == 1 { "" } else { "s" })
}

/// `1234567` as `1,234,567`.
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (position, digit) in digits.chars().enumerate() {
        if position > 0 && (digits.len() - position).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn thousands_are_grouped() {
        for (number, text) in [(0, "0"), (999, "999"), (1000, "1,000"), (12345678, "12,345,678")] {
            assert_eq!(grouped(number), text);
        }
    }

    #[test]
    fn io_is_named_when_there_was_some() {
        let mut report =
            QueryReport { rows: 1, elapsed: Duration::from_millis(1234), ..QueryReport::default() };
        assert_eq!(line(&report), "1 row, 1.234 s");
        report.warnings.push("a warning".to_owned());
        assert_eq!(line(&report), "1 row, 1 warning, 1.234 s");
        report.warnings.clear();
        report = QueryReport {
            ios: 3210,
            bytes: 3210 * 16384,
            depth_mean: 57.31,
            depth_max: 1024,
            cache_hits: 1,
            ..report
        };
        assert_eq!(
            line(&report),
            "1 row, 1.234 s, 3,210 I/Os (50.2 MiB), depth 57.3 mean 1,024 max, 1 cache hit"
        );
    }
}
