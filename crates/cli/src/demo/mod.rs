//! `tanada demo`: the main job on real files, with nothing but this program.
//!
//! 1. Unpack the bundled InnoDB files of both servers (once).
//! 2. Run the out-of-order experiment's query on cold data, in order and out of order, taking turns; medians.
//! 3. Run three TPC-H queries on cold data, planned by the cost model.
//! 4. Check every answer against the one that the server itself gave.
//! 5. Run the experiment on one and on eight emulated disks, in virtual time.

use std::io::Write;
use std::path::{Path, PathBuf};

use clap::Args;
use tanada_base::ByteSize;
use tanada_innodb::MountOptions;
use tanada_query::{QueryReport, Session, SessionOptions};
use tanada_report::{Table, median};
use tanada_sample::{EXPERIMENT, EmulatedSettings, SAMPLES, Sample, SampleQuery, TPCH};

use crate::failure::{Failure, Outcome};

/// What the disks of the experiment are.
const EMULATED: &str = "8xhdd-7200";

/// Runs of each side, on cold data.
const RUNS: usize = 5;

/// Arguments of `tanada demo`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tanada demo
  tanada demo --dir /mnt/slow-disk/tanada     # unpack the sample on another device and measure that")]
pub struct DemoArguments {
    /// Where the sample is unpacked (100 MB); found again next time. Without it tanada's folder among the user's caches
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
}

/// Runs the subcommand.
pub async fn run(arguments: DemoArguments) -> Outcome {
    let folder = arguments.dir.unwrap_or_else(tanada::default_folder);
    say(&format!(
        "TPC-H at scale 0.02, as InnoDB files that MySQL 9.7 and MariaDB 10.11 wrote, in {}.\n\
         Every run is cold: Tanada's page cache is emptied before it, and files are read past the kernel's cache.\n\n",
        folder.display()
    ))?;
    let mut join =
        Table::new(&["server, query, execution", "seconds", "I/Os", "mean depth", "most", "in order / this"]);
    let mut tpch = Table::new(&["server, query", "seconds", "rows", "I/Os", "read", "mean depth", "most"]);
    let mut answers = 0;
    let mut directories = Vec::new();
    for sample in &SAMPLES {
        let directory = sample.data_directory(&folder).map_err(Failure::failed)?;
        let session = open(&directory).await?;
        for query in &EXPERIMENT {
            answers += compare_orders(&session, sample, query, &mut join).await?;
        }
        answers += run_tpch(&session, sample, &mut tpch).await?;
        directories.push(directory);
    }
    let emulated = on_emulated_disks(directories.first().cloned().unwrap_or_default()).await?;
    say(&format!(
        "The out-of-order experiment: a join by index look-ups, one I/O at a time and out of order; medians of {RUNS} runs.\n\
         Both sides run the same plan (set tanada.lookup_join = 'always').\n{join}\n\
         TPC-H queries, planned by the cost model:\n{tpch}\n\
         All {answers} answers are those of the servers themselves.\n\n\
         The line items of a brand again, on disks that are emulated (7,200 rpm, RAID-0; virtual time, nobody waits for them):\n{emulated}\n\
         These files fill few tracks of eight disks, which flatters them; tanada bench ooode --emulate measures larger ones.\n\n{}",
        next_steps(&directories)
    ))
}

async fn open(directory: &Path) -> Outcome<Session> {
    let session = Session::new(SessionOptions::default())?;
    session.mount_innodb(directory, &MountOptions::default()).await?;
    session.use_database("tpch")?;
    Ok(session)
}

/// A query of the experiment, both ways; gives how many answers were checked.
async fn compare_orders(
    session: &Session,
    sample: &Sample,
    query: &SampleQuery,
    table: &mut Table,
) -> Outcome<usize> {
    session.set("tanada.lookup_join", "always").await?;
    // Opening the tables and sampling their statistics is not what is compared.
    session.execute(&format!("explain {}", query.sql)).await?.collect().await?;
    let sides = [("in_order", "in order"), ("out_of_order", "out of order")];
    let mut reports = [Vec::new(), Vec::new()];
    for _ in 0..RUNS {
        for (side, reports) in sides.iter().zip(&mut reports) {
            session.set("tanada.execution", side.0).await?;
            reports.push(cold_run(session, query).await?);
        }
    }
    let seconds = |reports: &[QueryReport]| median(reports.iter().map(|report| report.elapsed.as_secs_f64()));
    let in_order = seconds(&reports[0]);
    for (side, reports) in sides.iter().zip(&reports) {
        let figure = |figure: fn(&QueryReport) -> f64| median(reports.iter().map(figure));
        table.add(vec![
            format!("{}, {}, {}", sample.server, query.title, side.1),
            format!("{:.4}", seconds(reports)),
            format!("{:.0}", figure(|report| report.ios as f64)),
            format!("{:.1}", figure(|report| report.depth_mean)),
            format!("{:.0}", figure(|report| report.depth_max as f64)),
            format!("{:.1}x", in_order / seconds(reports).max(f64::MIN_POSITIVE)),
        ]);
    }
    Ok(2 * RUNS)
}

/// The other queries, as the planner wants them; gives how many answers were checked.
async fn run_tpch(session: &Session, sample: &Sample, table: &mut Table) -> Outcome<usize> {
    session.set("tanada.lookup_join", "auto").await?;
    session.set("tanada.execution", "out_of_order").await?;
    for query in &TPCH {
        let report = cold_run(session, query).await?;
        table.add(vec![
            format!("{}, {} {}", sample.server, query.name.to_uppercase(), query.title),
            format!("{:.3}", report.elapsed.as_secs_f64()),
            report.rows.to_string(),
            report.ios.to_string(),
            ByteSize::new(report.bytes).to_string(),
            format!("{:.1}", report.depth_mean),
            report.depth_max.to_string(),
        ]);
    }
    Ok(TPCH.len())
}

/// The experiment on emulated arrays, as a table.
async fn on_emulated_disks(directory: PathBuf) -> Outcome<Table> {
    let model = EMULATED.parse().map_err(Failure::failed)?;
    let settings = EmulatedSettings {
        disks: vec![1, 8],
        runs: 1,
        real_time: false,
        ..EmulatedSettings::of_sample(directory, model)
    };
    let work = tokio::task::spawn_blocking(move || tanada_sample::run_emulated(settings, &|_| {}));
    let report = work.await.map_err(|error| Failure::failed(format!("the experiment stopped: {error}")))?;
    let tables = report.map_err(Failure::failed)?.tables;
    tables.into_iter().next().ok_or_else(|| Failure::failed("the experiment gave no figures"))
}

async fn cold_run(session: &Session, query: &SampleQuery) -> Outcome<QueryReport> {
    session.clear_cache();
    let mut result = session.execute(query.sql.trim().trim_end_matches(';')).await?;
    let batches = result.collect().await?;
    let report = result.report();
    let wrong = |error| {
        Failure::failed(format!("{}: {error}; this is a fault in tanada, please report it", query.name))
    };
    let rows = tanada_sample::answer::lines(&batches).map_err(wrong)?;
    tanada_sample::answer::check(rows, query.answer).map_err(wrong)?;
    Ok(report)
}

fn next_steps(directories: &[PathBuf]) -> String {
    let directory = directories.first().map(|directory| directory.display().to_string()).unwrap_or_default();
    format!(
        "Next:\n  \
         tanada sql --innodb {directory} --database tpch        # a shell on these files\n  \
         tanada sql --innodb /path/to/datadir                   # your own, after a clean shutdown of the server, or a prepared backup\n  \
         tanada bench ooode --quick                             # depth by depth, against fio\n"
    )
}

fn say(text: &str) -> Outcome {
    let mut out = std::io::stdout().lock();
    out.write_all(text.as_bytes())?;
    Ok(out.flush()?)
}
