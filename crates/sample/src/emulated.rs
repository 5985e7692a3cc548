//! The experiment on disks that are not there: in order and out of order over a growing array, as the paper has it
//! (RAID-0, segments of 128 KiB).
//!
//! 1. For each number of disks all files of the data directory are placed on one emulated array; bytes come from the
//!    files, times from the model.
//! 2. The query runs cold, in order and out of order, in virtual time: nobody waits for a disk, the clock jumps.
//! 3. On the largest array it runs out of order in real time too. Both times must agree: `virtual_over_real_time`.
//! 4. Every answer of every run is compared with the first one.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use futures::future::BoxFuture;
use serde::Serialize;
use tanada_innodb::{FileKind, Files, HostFiles, Lock, MountOptions};
use tanada_io::{Device, GateLimits, Method, ModelSpec, ModelledArray, Timeline, VirtualTimeOptions};
use tanada_query::{Session, SessionOptions};
use tanada_report::{Report, Table, median};
use tokio::runtime::Runtime;

use crate::{EXPERIMENT, Error, ErrorKind, Result};

/// What to measure.
#[derive(Debug, Clone, Serialize)]
pub struct EmulatedSettings {
    /// The data directory.
    pub innodb: PathBuf,
    /// The database, where the directory has several.
    pub database: Option<String>,
    /// The statement.
    pub query: String,
    /// The device; its number of members is replaced by each of `disks`.
    pub model: ModelSpec,
    /// Members of the array, ascending.
    pub disks: Vec<u32>,
    /// Runs in virtual time.
    pub runs: usize,
    /// Whether the largest array is measured in real time too.
    pub real_time: bool,
    /// Most I/Os in flight out of order; 0 adapts.
    pub depth: usize,
    /// Page cache.
    pub cache_bytes: u64,
    /// Seed of the devices.
    pub seed: u64,
}

impl EmulatedSettings {
    /// The experiment on `innodb`, on arrays of 1, 2, 4, ... up to as many members as `model` has.
    pub fn new(innodb: PathBuf, model: ModelSpec) -> EmulatedSettings {
        let most = model.members().max(1);
        let mut disks: Vec<u32> =
            std::iter::successors(Some(1u32), |n| n.checked_mul(2)).take_while(|n| *n < most).collect();
        disks.push(most);
        EmulatedSettings {
            innodb,
            database: None,
            query: EXPERIMENT[0].sql.to_owned(),
            model,
            disks,
            runs: 3,
            real_time: true,
            depth: 0,
            cache_bytes: 256 << 20,
            seed: 1,
        }
    }

    /// The experiment on the bundled sample, whose data directory `innodb` is. Its files are so small that a disk's
    /// read-ahead would soon hold them whole, so disks have none, unless the model says otherwise.
    pub fn of_sample(innodb: PathBuf, model: ModelSpec) -> EmulatedSettings {
        let text = model.to_string();
        let separator = if text.contains(':') { ',' } else { ':' };
        let without = format!("{text}{separator}read-ahead=0").parse();
        let model = if text.contains("read-ahead") { model } else { without.unwrap_or(model) };
        EmulatedSettings { query: EXPERIMENT[1].sql.to_owned(), ..EmulatedSettings::new(innodb, model) }
    }
}

/// One run.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct EmulatedRun {
    /// Members of the array.
    pub disks: u32,
    /// `in_order` or `out_of_order`.
    pub execution: &'static str,
    /// `virtual` or `real`.
    pub time: &'static str,
    /// Time of the query, on that clock.
    pub seconds: f64,
    /// Device I/Os.
    pub ios: u64,
    /// Mean in flight while at least one was.
    pub depth_mean: f64,
    /// Most in flight.
    pub depth_max: u64,
}

const IN_ORDER: &str = "in_order";
const OUT_OF_ORDER: &str = "out_of_order";

/// Runs the experiment; `progress` hears what happens. Blocks: call it from a thread that may.
///
/// # Errors
/// When a run fails, or two runs give different answers.
pub fn run(settings: EmulatedSettings, progress: &(dyn Fn(&str) + Sync)) -> Result<Report> {
    if settings.runs == 0 || settings.disks.is_empty() || settings.disks.contains(&0) {
        return Err(Error::new(ErrorKind::InvalidInput, "at least one run and one disk are needed"));
    }
    let mut measured = Measured { settings: &settings, runs: Vec::new(), answer: None };
    for run in 1..=settings.runs {
        for disks in &settings.disks {
            progress(&format!("run {run} of {} in virtual time, disks: {disks}", settings.runs));
            for execution in [IN_ORDER, OUT_OF_ORDER] {
                let timeline = Timeline::virtual_time(VirtualTimeOptions::default());
                measured.on_array(*disks, &timeline, execution)?;
            }
        }
    }
    let largest = settings.disks.iter().copied().max().unwrap_or(1);
    if settings.real_time {
        for run in 1..=settings.runs {
            progress(&format!("run {run} of {} in real time, disks: {largest}", settings.runs));
            measured.on_array(largest, &Timeline::real(), OUT_OF_ORDER)?;
        }
    }
    let runs = measured.runs;
    let mut report = Report::new("ooode", &settings, &settings.innodb);
    if let Some(settings) = report.settings.as_object_mut() {
        settings.insert("emulated".to_owned(), true.into());
    }
    runs.iter().for_each(|run| report.add_run(run));
    put_figures(&runs, &settings, &mut report);
    Ok(report)
}

struct Measured<'a> {
    settings: &'a EmulatedSettings,
    runs: Vec<EmulatedRun>,
    answer: Option<String>,
}

impl Measured<'_> {
    /// Runs the query once, in a new session on a new array of `disks` members: neither heads nor drives' buffers
    /// remember another run.
    fn on_array(&mut self, disks: u32, timeline: &Timeline, execution: &'static str) -> Result<()> {
        let runtime = runtime_on(timeline)?;
        let _takes_part = timeline.register_thread();
        let model = self.settings.model.clone().times(disks);
        let files = EmulatedFiles { array: timeline.array(&model, self.settings.seed) };
        runtime.block_on(async {
            let session = self.session(files, disks).await?;
            let run = self.query(&session, timeline, disks, execution).await?;
            self.runs.push(run);
            Ok(())
        })
    }

    async fn session(&self, files: EmulatedFiles, disks: u32) -> Result<Session> {
        let settings = self.settings;
        let options = SessionOptions { cache_bytes: settings.cache_bytes, ..SessionOptions::default() };
        let session = Session::new(options)?;
        let options = MountOptions::default();
        let mounted = session.mount_innodb_in(Arc::new(files), &settings.innodb, &options);
        let (databases, _) = mounted.await?;
        match &settings.database {
            Some(database) => session.use_database(database)?,
            None if databases.iter().any(|name| name == "tpch") => session.use_database("tpch")?,
            None => {}
        }
        session.set("tanada.lookup_join", "always").await?;
        session.set("tanada.io_depth", &settings.depth.to_string()).await?;
        // Large arrays have room for more than the default.
        let in_flight = GateLimits::for_spindles(disks).bytes;
        session.set("tanada.io_bytes", &in_flight.to_string()).await?;
        // Tables are opened and statistics sampled here, outside of what is timed.
        session.execute(&format!("explain {}", settings.query)).await?.collect().await?;
        Ok(session)
    }

    async fn query(
        &mut self,
        session: &Session,
        timeline: &Timeline,
        disks: u32,
        execution: &'static str,
    ) -> Result<EmulatedRun> {
        session.set("tanada.execution", execution).await?;
        session.clear_cache();
        let clock = timeline.clock();
        let begun = clock.now();
        let mut result = session.execute(&self.settings.query).await?;
        let batches = result.collect().await?;
        let seconds = clock.now().saturating_sub(begun).as_secs_f64();
        let report = result.report();
        let time = if timeline.is_virtual() { "virtual" } else { "real" };
        self.compare(&format!("{execution} on {disks} disks in {time} time"), &batches)?;
        Ok(EmulatedRun {
            disks,
            execution,
            time,
            seconds,
            ios: report.ios,
            depth_mean: report.depth_mean,
            depth_max: report.depth_max,
        })
    }

    fn compare(&mut self, who: &str, batches: &[datafusion::arrow::record_batch::RecordBatch]) -> Result<()> {
        let rows = crate::answer::lines(batches)?;
        match &self.answer {
            None => self.answer = Some(format!("\n{}", rows.join("\n"))),
            Some(first) => {
                crate::answer::check(rows, first).map_err(|error| Error::failed(format!("{who}: {error}")))?
            }
        }
        Ok(())
    }
}

/// A runtime whose threads take part in `timeline`.
///
/// # Errors
/// When its threads cannot be started.
pub fn runtime_on(timeline: &Timeline) -> Result<Runtime> {
    let [start, stop, park, unpark] = std::array::from_fn(|_| timeline.clone());
    tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .on_thread_start(move || start.thread_started())
        .on_thread_stop(move || stop.thread_stopped())
        .on_thread_park(move || park.thread_idle())
        .on_thread_unpark(move || unpark.thread_busy())
        .build()
        .map_err(|error| Error::failed(format!("cannot start the runtime: {error}")))
}

/// `a / b`, zero where there is nothing to divide by.
fn ratio(a: f64, b: f64) -> f64 {
    if b > 0.0 { a / b } else { 0.0 }
}

/// Medians over the runs of one side.
fn seconds(runs: &[EmulatedRun], disks: u32, execution: &str, time: &str) -> f64 {
    let of_side = |run: &&EmulatedRun| run.disks == disks && run.execution == execution && run.time == time;
    median(runs.iter().filter(of_side).map(|run| run.seconds))
}

fn put_figures(runs: &[EmulatedRun], settings: &EmulatedSettings, report: &mut Report) {
    let mut table = Table::new(&[
        "disks (emulated)",
        "in order, s",
        "out of order, s",
        "speed-up",
        "I/Os",
        "mean depth",
        "out of order over the smallest array",
    ]);
    let smallest = settings.disks.iter().copied().min().unwrap_or(1);
    let base = seconds(runs, smallest, OUT_OF_ORDER, "virtual");
    for disks in &settings.disks {
        let [in_order, out_of_order] =
            [IN_ORDER, OUT_OF_ORDER].map(|execution| seconds(runs, *disks, execution, "virtual"));
        let last = runs.iter().rev().find(|run| run.disks == *disks && run.execution == OUT_OF_ORDER);
        table.add(vec![
            format!("{disks} x {}", settings.model.preset().name()),
            format!("{in_order:.3}"),
            format!("{out_of_order:.3}"),
            format!("{:.1}x", ratio(in_order, out_of_order)),
            last.map_or_else(String::new, |run| run.ios.to_string()),
            last.map_or_else(String::new, |run| format!("{:.0}", run.depth_mean)),
            format!("{:.1}x", ratio(base, out_of_order)),
        ]);
        report.summarize(&format!("speedup_over_in_order_{disks}_disks"), ratio(in_order, out_of_order));
    }
    report.tables.push(table);
    let in_order: Vec<f64> =
        settings.disks.iter().map(|disks| seconds(runs, *disks, IN_ORDER, "virtual")).collect();
    let (least, most) = in_order.iter().fold((f64::MAX, 0.0f64), |(a, b), s| (a.min(*s), b.max(*s)));
    report.summarize("in_order_slowest_over_fastest_array", ratio(most, least));
    if settings.real_time {
        let largest = settings.disks.iter().copied().max().unwrap_or(1);
        let [by_virtual, by_real] =
            ["virtual", "real"].map(|time| seconds(runs, largest, OUT_OF_ORDER, time));
        report.summarize("virtual_over_real_time", ratio(by_virtual, by_real));
    }
}

/// The host's files on an emulated array.
#[derive(Debug)]
pub struct EmulatedFiles {
    array: ModelledArray,
}

impl EmulatedFiles {
    /// All files lie on `array`, each from when it is first opened.
    pub fn new(array: ModelledArray) -> EmulatedFiles {
        EmulatedFiles { array }
    }
}

impl Files for EmulatedFiles {
    fn kind(&self, path: &Path) -> io::Result<FileKind> {
        HostFiles.kind(path)
    }

    fn entries(&self, folder: &Path) -> io::Result<Vec<PathBuf>> {
        HostFiles.entries(folder)
    }

    fn read<'a>(
        &'a self,
        path: &'a Path,
        offset: u64,
        most_bytes: usize,
    ) -> BoxFuture<'a, io::Result<Vec<u8>>> {
        HostFiles.read(path, offset, most_bytes)
    }

    fn open(&self, path: &Path, method: Method) -> tanada_io::Result<Device> {
        self.array.place(HostFiles.open(path, method)?)
    }

    fn real_path(&self, path: &Path) -> io::Result<PathBuf> {
        HostFiles.real_path(path)
    }

    fn lock(&self, path: &Path) -> Option<Lock> {
        HostFiles.lock(path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(disks: u32, execution: &'static str, time: &'static str, seconds: f64) -> EmulatedRun {
        EmulatedRun { disks, execution, time, seconds, ios: 1, depth_mean: 1.0, depth_max: 1 }
    }

    #[test]
    fn ratios_are_those_of_the_medians() {
        let settings = EmulatedSettings::new(PathBuf::new(), "8xhdd-7200".parse().unwrap());
        assert_eq!(settings.disks, [1, 2, 4, 8]);
        let mut runs = vec![run(8, OUT_OF_ORDER, "real", 1.25)];
        for disks in [1, 2, 4, 8] {
            runs.push(run(disks, IN_ORDER, "virtual", 10.0));
            runs.push(run(disks, OUT_OF_ORDER, "virtual", 8.0 / f64::from(disks)));
        }
        let mut report = Report::new("ooode", &(), Path::new("/"));
        put_figures(&runs, &settings, &mut report);
        assert_eq!(report.summary["speedup_over_in_order_8_disks"], 10.0);
        assert_eq!(report.summary["virtual_over_real_time"], 0.8);
        assert_eq!(report.summary["in_order_slowest_over_fastest_array"], 1.0);
    }

    #[test]
    fn disks_of_the_sample_do_not_read_ahead() {
        let model =
            |text: &str| EmulatedSettings::of_sample(PathBuf::new(), text.parse().unwrap()).model.to_string();
        assert_eq!(model("8xhdd-7200"), "8xhdd-7200:read-ahead=off");
        assert_eq!(model("hdd-7200:read-ahead=2MiB"), "hdd-7200:read-ahead=2MiB");
        assert_eq!(model("4xsata-ssd"), "4xsata-ssd");
    }

    #[test]
    fn an_array_of_six_is_reached_by_powers_of_two() {
        let settings = EmulatedSettings::new(PathBuf::new(), "6xsata-ssd".parse().unwrap());
        assert_eq!(settings.disks, [1, 2, 4, 6]);
    }
}
