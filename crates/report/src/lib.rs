//! What a benchmark leaves behind: the machine, the settings, every run of every side, and the medians.
//!
//! The same report is JSON for programs ([`Report::to_json`]) and tables for people (its `Display`). Keys of `summary`
//! are settled: scripts and later versions compare them.
//!
//! Above: benchmarks, and whatever prints a [`Table`]. Below: nothing of Tanada.
//!
//! ```
//! let mut table = tanada_report::Table::new(&["side", "IOPS"]);
//! table.add(vec!["fio".to_owned(), "41000".to_owned()]);
//! assert_eq!(table.to_string(), "side   IOPS\nfio   41000\n");
//! ```
#![forbid(unsafe_code)]
#![cfg_attr(test, allow(clippy::unwrap_used))]

use std::fmt;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use serde::Serialize;
use serde_json::{Map, Value};

/// The results of one benchmark.
#[derive(Debug, Clone, Serialize)]
pub struct Report {
    /// Its name, as on the command line.
    pub benchmark: String,
    /// The machine.
    pub environment: Environment,
    /// What was asked for.
    pub settings: Value,
    /// The same in a sentence or two, for people.
    pub setup: String,
    /// Every run, of every side, in the order they ran.
    pub runs: Vec<Value>,
    /// Medians and ratios.
    pub summary: Map<String, Value>,
    /// What a terminal shows.
    #[serde(skip)]
    pub tables: Vec<Table>,
}

impl Report {
    /// A report without runs. The file system recorded is that of `data`.
    pub fn new(benchmark: &str, settings: &impl Serialize, data: &Path) -> Report {
        Report {
            benchmark: benchmark.to_owned(),
            environment: Environment::of(data),
            settings: to_value(settings),
            setup: String::new(),
            runs: Vec::new(),
            summary: Map::new(),
            tables: Vec::new(),
        }
    }

    /// Adds a run.
    pub fn add_run(&mut self, run: &impl Serialize) {
        self.runs.push(to_value(run));
    }

    /// Adds a figure to the summary, with four significant digits; none that is not a number: it has no value.
    pub fn summarize(&mut self, key: &str, value: f64) {
        if !value.is_finite() {
            return;
        }
        self.summary.insert(key.to_owned(), significant(value, 4).into());
    }

    /// The report as pretty JSON.
    pub fn to_json(&self) -> String {
        // Only a map whose keys are not text could fail.
        serde_json::to_string_pretty(self).unwrap_or_default()
    }
}

fn to_value(data: &impl Serialize) -> Value {
    serde_json::to_value(data).unwrap_or_default()
}

/// Characters of a summary's value that a terminal shows, at most.
const MAX_SHOWN: usize = 160;

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Environment { kernel, cpu, cores, memory_mib, file_system, .. } = &self.environment;
        writeln!(f, "{cpu}, {cores} cores, {memory_mib} MiB, Linux {kernel}, {file_system}")?;
        if !self.setup.is_empty() {
            writeln!(f, "{}", self.setup)?;
        }
        for table in &self.tables {
            writeln!(f, "\n{table}")?;
        }
        let width = self.summary.keys().map(String::len).max().unwrap_or(0);
        for (key, value) in &self.summary {
            let text = value.to_string();
            // Tables of figures are for programs.
            let shown = if text.len() <= MAX_SHOWN { text.as_str() } else { "in the JSON" };
            writeln!(f, "{key:width$}  {shown}")?;
        }
        Ok(())
    }
}

/// The machine that a benchmark ran on.
#[derive(Debug, Clone, Serialize)]
pub struct Environment {
    /// Version of Tanada.
    pub tanada: String,
    /// Kernel release.
    pub kernel: String,
    /// Processor model.
    pub cpu: String,
    /// Processors this process may use.
    pub cores: usize,
    /// Main memory.
    pub memory_mib: u64,
    /// Type of the file system with the data.
    pub file_system: String,
    /// Processes that ran or waited at the start, a mean over one minute: above 1, others shared the machine.
    pub load: f64,
    /// Start, UTC.
    pub date: String,
}

impl Environment {
    /// The environment now, for data at `path`.
    pub fn of(path: &Path) -> Environment {
        let read = |file: &str| std::fs::read_to_string(file).unwrap_or_default();
        let value_of = |file: &str, key: &str| {
            let text = read(file);
            let line = text.lines().find(|line| line.starts_with(key)).unwrap_or_default().to_owned();
            line.split_once(':').map(|(_, value)| value.trim().to_owned()).unwrap_or_default()
        };
        let memory = value_of("/proc/meminfo", "MemTotal");
        let memory_kib: u64 = memory.split(' ').next().and_then(|number| number.parse().ok()).unwrap_or(0);
        let seconds = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
        Environment {
            tanada: env!("CARGO_PKG_VERSION").to_owned(),
            kernel: read("/proc/sys/kernel/osrelease").trim().to_owned(),
            cpu: value_of("/proc/cpuinfo", "model name"),
            cores: std::thread::available_parallelism().map_or(1, usize::from),
            memory_mib: memory_kib >> 10,
            file_system: file_system_of(path, &read("/proc/self/mounts")),
            load: read("/proc/loadavg").split(' ').next().and_then(|load| load.parse().ok()).unwrap_or(0.0),
            date: utc(seconds),
        }
    }
}

/// The type of the mount whose directory is the longest prefix of `path`; the last one of those, which lies on top.
fn file_system_of(path: &Path, mounts: &str) -> String {
    let path = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let fields = mounts.lines().filter_map(|line| {
        let mut fields = line.split(' ').skip(1);
        Some((fields.next()?, fields.next()?))
    });
    let holding = fields.filter(|(directory, _)| path.starts_with(directory));
    holding.max_by_key(|(directory, _)| directory.len()).map_or("unknown", |(_, kind)| kind).to_owned()
}

/// Seconds since 1970 as `YYYY-MM-DDTHH:MM:SSZ`. Days to a date as in "chrono-Compatible Low-Level Date Algorithms" (H.
/// Hinnant).
fn utc(seconds: u64) -> String {
    let (days, time) = (seconds / 86400, seconds % 86400);
    let shifted = days + 719_468;
    let (era, day_of_era) = (shifted / 146_097, shifted % 146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = year_of_era + era * 400 + u64::from(month <= 2);
    format!("{year:04}-{month:02}-{day:02}T{:02}:{:02}:{:02}Z", time / 3600, time / 60 % 60, time % 60)
}

/// The median; the mean of the middle two for an even number, `NaN` for none.
pub fn median(values: impl IntoIterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.into_iter().collect();
    values.sort_by(f64::total_cmp);
    match values.len() {
        0 => f64::NAN,
        len => (values[(len - 1) / 2] + values[len / 2]) / 2.0,
    }
}

/// A figure in a table, with so many decimal places; a dash where there is none.
pub fn cell(value: f64, places: usize) -> String {
    if value.is_finite() { format!("{value:.places$}") } else { "-".to_owned() }
}

/// `value` rounded to `digits` significant digits.
pub fn significant(value: f64, digits: i32) -> f64 {
    if value == 0.0 || !value.is_finite() {
        return value;
    }
    let places = digits - 1 - value.abs().log10().floor() as i32;
    format!("{value:.*}", places.max(0) as usize).parse().unwrap_or(value)
}

/// A table for a terminal: the first column to the left, numbers to the right.
#[derive(Debug, Clone)]
pub struct Table {
    rows: Vec<Vec<String>>,
}

impl Table {
    /// A table with these column titles.
    pub fn new(titles: &[&str]) -> Table {
        Table { rows: vec![titles.iter().map(|title| (*title).to_owned()).collect()] }
    }

    /// Adds a row.
    pub fn add(&mut self, row: Vec<String>) {
        self.rows.push(row);
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or(0);
        let width_of = |column: usize| {
            self.rows
                .iter()
                .filter_map(|row| row.get(column))
                .map(|cell| cell.chars().count())
                .max()
                .unwrap_or(0)
        };
        let widths: Vec<usize> = (0..columns).map(width_of).collect();
        for row in &self.rows {
            let mut line = String::new();
            for (column, (cell, width)) in row.iter().zip(&widths).enumerate() {
                let separator = if column == 0 { "" } else { "  " };
                line += &if column == 0 {
                    format!("{cell:width$}")
                } else {
                    format!("{separator}{cell:>width$}")
                };
            }
            writeln!(f, "{}", line.trim_end())?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians_and_digits() {
        assert_eq!(median([3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median([4.0, 1.0, 2.0, 3.0]), 2.5);
        assert!(median([]).is_nan());
        assert_eq!([cell(1.25, 1), cell(0.0, 0), cell(f64::NAN, 1)], ["1.2", "0", "-"]);
        assert_eq!(significant(0.987_654, 4), 0.9877);
        assert_eq!(significant(-1.234_56, 2), -1.2);
        assert_eq!(significant(123_456.7, 4), 123_457.0);
    }

    #[test]
    fn dates() {
        assert_eq!(utc(0), "1970-01-01T00:00:00Z");
        assert_eq!(utc(951_827_696), "2000-02-29T12:34:56Z");
        assert_eq!(utc(1_735_689_599), "2024-12-31T23:59:59Z");
    }

    #[test]
    fn the_deepest_and_topmost_mount_counts() {
        let mounts = "/dev/a / ext4 rw\nproc /proc proc rw\n/dev/b /proc tmpfs rw\n";
        assert_eq!(file_system_of(Path::new("/proc/version"), mounts), "tmpfs");
        assert_eq!(file_system_of(Path::new("/nowhere"), mounts), "ext4");
        assert_eq!(file_system_of(Path::new("/nowhere"), ""), "unknown");
    }

    #[test]
    fn tables_line_up() {
        let mut table = Table::new(&["side", "IOPS"]);
        table.add(vec!["fio".to_owned(), "41000".to_owned()]);
        table.add(vec!["tanada".to_owned(), "7".to_owned()]);
        assert_eq!(table.to_string(), "side     IOPS\nfio     41000\ntanada      7\n");
    }

    #[test]
    fn a_report_has_its_four_parts() {
        let mut report = Report::new("x", &["setting"], Path::new("/"));
        report.add_run(&1);
        report.summarize("ratio", 0.98765);
        report.summarize("unknown", f64::NAN);
        let json: Value = serde_json::from_str(&report.to_json()).unwrap();
        assert_eq!(json["settings"][0], "setting");
        assert_eq!(json["runs"][0], 1);
        assert_eq!(json["summary"]["ratio"], 0.9877);
        assert!(json["summary"].get("unknown").is_none());
        assert!(json["environment"]["kernel"].as_str().is_some_and(|kernel| !kernel.is_empty()));
    }
}
