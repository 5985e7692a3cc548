//! The out-of-order experiment (OoODE, 2009): a nested-loop join whose every outer row drives its own chain of I/Os, on
//! cold data.
//!
//! 1. Each round runs all sides once, one after the other, so that a change of the machine's mood meets all of them: in
//!    order, out of order at each depth, fio's random reads of the same file at each depth, and MariaDB on a copy of
//!    the same files when asked for.
//! 2. Cold means: the own page cache is emptied and files are read past the kernel's cache; MariaDB is started anew
//!    with O_DIRECT and a buffer pool of the same size. What the device or a hypervisor caches is the same for all.
//! 3. Every answer of every run is compared with the first one.
//!
//! `of_fio_iops` compares the probe phase alone: the look-up join's I/Os over the time it had at least one in flight.

pub(crate) mod mariadb;
mod probe;
mod side;

use std::path::{Path, PathBuf};

use serde::Serialize;
use tanada_innodb::MountOptions;
use tanada_query::{Session, SessionOptions};

use crate::{Error, ErrorKind, Result, fio};
use side::{Run, Side};
use tanada_report::{Report, Table, median};

/// InnoDB's page, what a look-up reads.
const BLOCK_BYTES: u32 = 16 << 10;

/// What to measure.
#[derive(Debug, Clone, Serialize)]
pub struct Settings {
    /// The data directory.
    pub innodb: PathBuf,
    /// The database, where the directory has several.
    pub database: Option<String>,
    /// The statement.
    pub query: String,
    /// Rounds.
    pub runs: usize,
    /// I/Os in flight, out of order and in fio; 0 lets the engine adapt.
    pub depths: Vec<usize>,
    /// Page cache, and MariaDB's buffer pool.
    pub cache_bytes: u64,
    /// How long fio measures each depth.
    pub fio_seconds: f64,
    /// Whether MariaDB takes part.
    pub against_mariadb: bool,
    /// Where MariaDB's copy of the files goes; beside them without it.
    pub work: Option<PathBuf>,
}

impl Settings {
    /// The experiment on `innodb`.
    pub fn new(innodb: PathBuf) -> Settings {
        Settings {
            innodb,
            database: None,
            query: tanada_sample::EXPERIMENT[0].sql.to_owned(),
            runs: 5,
            depths: vec![1, 4, 16, 64, 256, 1024, 0],
            cache_bytes: 256 << 20,
            fio_seconds: 2.0,
            against_mariadb: false,
            work: None,
        }
    }

    /// The experiment on the bundled sample, whose data directory `innodb` is: with more parts to look up, since the
    /// files are small.
    pub fn of_sample(innodb: PathBuf) -> Settings {
        Settings { query: tanada_sample::EXPERIMENT[1].sql.to_owned(), ..Settings::new(innodb) }
    }

    /// Less of everything: under a minute on the sample.
    #[must_use]
    pub fn quick(self) -> Settings {
        Settings { runs: 3, fio_seconds: 0.5, ..self }
    }
}

/// Runs the experiment; `progress` hears what happens.
///
/// # Errors
/// When a side fails, or two sides give different answers.
pub async fn run(settings: Settings, progress: &(dyn Fn(&str) + Sync)) -> Result<Report> {
    if settings.runs == 0 || settings.depths.is_empty() {
        return Err(Error::new(ErrorKind::InvalidInput, "at least one run and one depth are needed"));
    }
    let session = session(&settings).await?;
    let database = settings.database.clone().or_else(|| session.database()).ok_or_else(|| {
        Error::new(ErrorKind::InvalidInput, "the directory has several databases; name one with --database")
    })?;
    let fio_file = largest_tablespace(&settings.innodb, &database)?;
    let server = if settings.against_mariadb {
        progress("copying the files for MariaDB");
        Some(
            mariadb::MariaDb::prepare(&settings.innodb, settings.work.as_deref(), settings.cache_bytes)
                .await?,
        )
    } else {
        None
    };
    // Tables are opened and statistics sampled here, outside of what is timed; MariaDB gets the same by an EXPLAIN of
    // its own.
    session.execute(&format!("explain {}", settings.query)).await?.collect().await?;
    let mut sides = Sides { session, settings, database, fio_file, server, runs: Vec::new(), answer: None };
    for round in 1..=sides.settings.runs {
        progress(&format!("round {round} of {}", sides.settings.runs));
        sides.round(round).await?;
    }
    let mut report = Report::new("ooode", &sides.settings, &sides.settings.innodb);
    if let Some(settings) = report.settings.as_object_mut() {
        settings.insert("fio_file".to_owned(), sides.fio_file.display().to_string().into());
    }
    sides.runs.iter().for_each(|run| report.add_run(run));
    Figures::of(&sides.runs, &sides.settings.depths).put_into(&mut report);
    Ok(report)
}

async fn session(settings: &Settings) -> Result<Session> {
    let session =
        Session::new(SessionOptions { cache_bytes: settings.cache_bytes, ..SessionOptions::default() })?;
    let (databases, _) = session.mount_innodb(&settings.innodb, &MountOptions::default()).await?;
    match &settings.database {
        Some(database) => session.use_database(database)?,
        None if databases.iter().any(|name| name == "tpch") => session.use_database("tpch")?,
        None => {}
    }
    // The experiment is about this join; on small data the cost model might prefer to hash.
    session.set("tanada.lookup_join", "always").await?;
    Ok(session)
}

/// The largest tablespace of the database: the table that is looked up, and enough of it for fio not to repeat itself.
fn largest_tablespace(directory: &Path, database: &str) -> Result<PathBuf> {
    let inside = directory.join(database);
    let folder = if inside.is_dir() { inside } else { directory.to_owned() };
    let entries = std::fs::read_dir(&folder).map_err(|error| Error::at_path("list", &folder, &error))?;
    let tablespaces = entries
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|e| e == "ibd"));
    tablespaces.max_by_key(|path| path.metadata().map_or(0, |metadata| metadata.len())).ok_or_else(|| {
        Error::new(ErrorKind::InvalidInput, format!("{} holds no .ibd file", folder.display()))
    })
}

struct Sides {
    session: Session,
    settings: Settings,
    database: String,
    fio_file: PathBuf,
    server: Option<mariadb::MariaDb>,
    runs: Vec<Run>,
    answer: Option<String>,
}

impl Sides {
    async fn round(&mut self, round: usize) -> Result<()> {
        self.query(round, Side::InOrder, 1).await?;
        for depth in self.settings.depths.clone() {
            self.query(round, Side::OutOfOrder, depth).await?;
            if depth > 0 {
                let reads =
                    fio::random_reads(&self.fio_file, BLOCK_BYTES, depth, self.settings.fio_seconds).await?;
                self.runs.push(Run::of_fio(round, &reads));
            }
        }
        if let Some(server) = &mut self.server {
            let (seconds, answer) = server.cold_run(&self.database, &self.settings.query).await?;
            self.runs.push(Run::of_mariadb(round, seconds));
            self.compare("MariaDB", answer)?;
        }
        Ok(())
    }

    async fn query(&mut self, round: usize, side: Side, depth: usize) -> Result<()> {
        let execution = if side == Side::InOrder { "in_order" } else { "out_of_order" };
        self.session.set("tanada.execution", execution).await?;
        self.session.set("tanada.io_depth", &depth.to_string()).await?;
        self.session.clear_cache();
        let mut result = self.session.execute(&self.settings.query).await?;
        let batches = result.collect().await?;
        let probe = result.plan().and_then(probe::of_plan).ok_or_else(|| {
            Error::new(
                ErrorKind::InvalidInput,
                "the query's plan has no look-up join; is there an index on the join key?",
            )
        })?;
        self.runs.push(Run::of_query(round, side, depth, &result.report(), &probe));
        let answer = tanada_sample::answer::lines(&batches)?.join("\n");
        self.compare(&format!("{execution} at depth {depth}"), format!("\n{answer}"))
    }

    /// `answer` is a header line and rows.
    fn compare(&mut self, who: &str, answer: String) -> Result<()> {
        match &self.answer {
            None => self.answer = Some(answer),
            Some(first) => {
                let rows = answer.lines().skip(1).map(str::to_owned).collect();
                tanada_sample::answer::check(rows, first)
                    .map_err(|error| Error::failed(format!("{who}: {error}")))?;
            }
        }
        Ok(())
    }
}

/// Medians of the runs.
#[derive(Debug, PartialEq)]
struct Figures {
    in_order_seconds: f64,
    mariadb_seconds: Option<f64>,
    depths: Vec<AtDepth>,
}

/// Medians at one depth.
#[derive(Debug, PartialEq)]
struct AtDepth {
    depth: usize,
    seconds: f64,
    ios: f64,
    depth_mean: f64,
    probe_iops: f64,
    /// None where the depth is adaptive.
    fio_iops: Option<f64>,
}

impl AtDepth {
    fn of_fio(&self) -> Option<f64> {
        self.fio_iops.map(|fio| ratio(self.probe_iops, fio))
    }
}

impl Figures {
    fn of(runs: &[Run], depths: &[usize]) -> Figures {
        let of = |side: Side, depth: usize, figure: fn(&Run) -> Option<f64>| {
            median(runs.iter().filter(|run| run.side == side && run.depth == depth).filter_map(figure))
        };
        let at = |depth: usize| AtDepth {
            depth,
            seconds: of(Side::OutOfOrder, depth, |run| run.seconds),
            ios: of(Side::OutOfOrder, depth, |run| run.io.map(|io| io.ios as f64)),
            depth_mean: of(Side::OutOfOrder, depth, |run| run.io.map(|io| io.depth_mean)),
            probe_iops: of(Side::OutOfOrder, depth, |run| run.iops),
            fio_iops: (depth > 0).then(|| of(Side::Fio, depth, |run| run.iops)),
        };
        let mariadb_took_part = runs.iter().any(|run| run.side == Side::MariaDb);
        Figures {
            in_order_seconds: of(Side::InOrder, 1, |run| run.seconds),
            mariadb_seconds: mariadb_took_part.then(|| of(Side::MariaDb, 1, |run| run.seconds)),
            depths: depths.iter().map(|depth| at(*depth)).collect(),
        }
    }

    /// The depth with the shortest time, of those that `eligible` admits.
    fn fastest(&self, eligible: impl Fn(&AtDepth) -> bool) -> Option<&AtDepth> {
        let depths = self.depths.iter().filter(|at| eligible(at));
        depths.min_by(|a, b| a.seconds.total_cmp(&b.seconds))
    }

    fn put_into(&self, report: &mut Report) {
        let mut table = Table::new(&[
            "side",
            "seconds",
            "over in order",
            "I/Os",
            "mean depth",
            "probe IOPS",
            "fio IOPS",
            "of fio",
        ]);
        let mut other = |name: &str, seconds: f64| {
            table.add(vec![
                name.to_owned(),
                format!("{seconds:.3}"),
                format!("{:.1}x", ratio(self.in_order_seconds, seconds)),
            ]);
        };
        if let Some(seconds) = self.mariadb_seconds {
            other("MariaDB", seconds);
        }
        other("in order", self.in_order_seconds);
        for at in &self.depths {
            let name =
                if at.depth == 0 { "adaptive depth".to_owned() } else { format!("depth {}", at.depth) };
            table.add(vec![
                name,
                format!("{:.3}", at.seconds),
                format!("{:.1}x", ratio(self.in_order_seconds, at.seconds)),
                format!("{:.0}", at.ios),
                format!("{:.1}", at.depth_mean),
                format!("{:.0}", at.probe_iops),
                at.fio_iops.map(|iops| format!("{iops:.0}")).unwrap_or_default(),
                at.of_fio().map(|ratio| format!("{ratio:.2}")).unwrap_or_default(),
            ]);
        }
        report.tables.push(table);
        if let Some(fastest) = self.fastest(|_| true) {
            report.summarize("speedup_over_in_order", ratio(self.in_order_seconds, fastest.seconds));
            if let Some(seconds) = self.mariadb_seconds {
                report.summarize("speedup_over_mariadb", ratio(seconds, fastest.seconds));
            }
            report.summarize("fastest_depth", fastest.depth as f64);
        }
        if let Some(of_fio) = self.fastest(|at| at.fio_iops.is_some()).and_then(AtDepth::of_fio) {
            report.summarize("of_fio_iops", of_fio);
        }
    }
}

/// `a / b`, zero where there is nothing to divide by.
fn ratio(a: f64, b: f64) -> f64 {
    if b > 0.0 { a / b } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(side: Side, depth: usize, seconds: f64, iops: f64) -> Run {
        Run { round: 1, side, depth, seconds: Some(seconds), iops: Some(iops), io: None }
    }

    fn summary(runs: &[Run], depths: &[usize]) -> Report {
        let mut report = Report::new("ooode", &(), Path::new("/"));
        Figures::of(runs, depths).put_into(&mut report);
        report
    }

    #[test]
    fn the_fastest_depth_is_summed_up() {
        let runs = [
            run(Side::InOrder, 1, 8.0, 100.0),
            run(Side::OutOfOrder, 16, 2.0, 800.0),
            run(Side::Fio, 16, 1.0, 1600.0),
            run(Side::OutOfOrder, 64, 1.0, 1800.0),
            run(Side::Fio, 64, 1.0, 2000.0),
            run(Side::MariaDb, 1, 12.0, 0.0),
        ];
        let report = summary(&runs, &[16, 64]);
        assert_eq!(report.summary["fastest_depth"], 64.0);
        assert_eq!(report.summary["speedup_over_in_order"], 8.0);
        assert_eq!(report.summary["of_fio_iops"], 0.9);
        assert_eq!(report.summary["speedup_over_mariadb"], 12.0);
        assert!(report.tables[0].to_string().contains("0.50"));
    }

    #[test]
    fn an_adaptive_depth_has_no_counterpart_in_fio() {
        let runs = [
            run(Side::InOrder, 1, 8.0, 100.0),
            run(Side::OutOfOrder, 0, 1.0, 900.0),
            run(Side::OutOfOrder, 16, 2.0, 800.0),
            run(Side::Fio, 16, 1.0, 1000.0),
        ];
        let report = summary(&runs, &[16, 0]);
        assert_eq!(report.summary["fastest_depth"], 0.0);
        assert_eq!(report.summary["of_fio_iops"], 0.8);
        assert!(!report.summary.contains_key("speedup_over_mariadb"));
    }
}
