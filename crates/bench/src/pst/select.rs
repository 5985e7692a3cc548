//! How the paper's authors chose their nine queries: all 22 of TPC-H on a volume that lies on the slow devices as a
//! whole, and on one that lies on the fast ones; those gain most from tiering whose times are furthest apart.
//!
//! Each query begins with an empty page cache, in order and in virtual time. Answers of both are compared.

use serde::Serialize;
use serde_json::json;
use tanada_innodb::MountOptions;
use tanada_io::ModelSpec;
use tanada_query::{Session, SessionOptions};
use tanada_report::{Report, Table};
use tanada_sample::{TIERING, TPCH_ALL, runtime_on};

use super::recorded::{Answers, cache_bytes, database_bytes, set};
use super::{IN_ORDER, PstSettings, live};
use crate::Result;

/// Queries that the authors chose.
const CHOSEN: usize = TIERING.len();

/// One query on one kind of device.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SelectRun {
    /// `select`.
    pub kind: &'static str,
    /// `slow` or `fast`.
    pub devices: &'static str,
    /// The query.
    pub query: String,
    /// Virtual seconds.
    pub seconds: f64,
    /// Device I/Os.
    pub ios: u64,
}

/// Runs all 22 queries on either kind of devices; `progress` hears what happens. Blocks: call it from a thread that
/// may.
///
/// # Errors
/// When a query fails, or its answers differ.
pub fn run(settings: &PstSettings, progress: &(dyn Fn(&str) + Sync)) -> Result<Report> {
    let query = |query: &tanada_sample::SampleQuery| (query.name.to_owned(), query.sql.to_owned());
    let settings = PstSettings { queries: TPCH_ALL.iter().map(query).collect(), ..settings.clone() };
    let mut answers = Answers::default();
    let mut runs = queries_on(&settings, "slow", &settings.slow, &mut answers, progress)?;
    runs.extend(queries_on(&settings, "fast", &settings.fast, &mut answers, progress)?);
    Ok(report(&settings, &runs))
}

fn queries_on(
    settings: &PstSettings,
    devices: &'static str,
    model: &ModelSpec,
    answers: &mut Answers,
    progress: &(dyn Fn(&str) + Sync),
) -> Result<Vec<SelectRun>> {
    progress(&format!("22 queries on the {devices} devices, {model}"));
    let work = live::Work::new(settings)?;
    let folder = work.path().join(format!("volume-{devices}"));
    // Adopted files lie on the devices of the slow class.
    live::make(&PstSettings { slow: model.clone(), ..settings.clone() }, &folder, 0)?;
    let timeline = live::virtual_time();
    let runtime = runtime_on(&timeline)?;
    let _takes_part = timeline.register_thread();
    let runs: Result<Vec<SelectRun>> = runtime.block_on(async {
        let cache_bytes = cache_bytes(settings, database_bytes(settings));
        let session = Session::new(SessionOptions { cache_bytes, ..SessionOptions::default() })?;
        session.set("tanada.placement", "off").await?;
        session.mount_volume(&folder, &MountOptions::default()).await?;
        set(&session, settings, IN_ORDER).await?;
        let clock = timeline.clock();
        let mut runs = Vec::new();
        for (name, sql) in &settings.queries {
            // Tables are opened and sampled before.
            session.execute(&format!("explain {sql}")).await?.collect().await?;
            session.clear_cache();
            let begun = clock.now();
            let mut result = session.execute(&format!("/* {name} */ {sql}")).await?;
            let batches = result.collect().await?;
            let seconds = clock.now().saturating_sub(begun).as_secs_f64();
            answers.compare(&format!("on the {devices} devices"), name, &batches)?;
            let (query, ios) = (name.clone(), result.report().ios);
            runs.push(SelectRun { kind: "select", devices, query, seconds, ios });
        }
        session.close().await?;
        Ok(runs)
    });
    live::remove(&folder)?;
    runs
}

/// A query with its seconds on the slow and on the fast devices.
fn pairs(runs: &[SelectRun]) -> Vec<(&str, f64, f64, u64)> {
    let mut pairs = Vec::new();
    for slow in runs.iter().filter(|run| run.devices == "slow") {
        let fast = runs.iter().find(|run| run.devices == "fast" && run.query == slow.query);
        pairs.extend(fast.map(|fast| (slow.query.as_str(), slow.seconds, fast.seconds, slow.ios)));
    }
    pairs
}

fn report(settings: &PstSettings, runs: &[SelectRun]) -> Report {
    let mut report = Report::new("pst-select", settings, &settings.innodb);
    if let Some(settings) = report.settings.as_object_mut() {
        settings.insert("emulated".to_owned(), true.into());
    }
    runs.iter().for_each(|run| report.add_run(run));
    let mut ranked = pairs(runs);
    ranked.sort_by(|a, b| (b.1 / b.2).total_cmp(&(a.1 / a.2)));
    let is_authors = |name: &str| TIERING.iter().any(|query| query.name == name);
    let mut table = Table::new(&["query", "slow, s", "fast, s", "slow over fast", "I/Os", "the authors'"]);
    for (name, slow, fast, ios) in &ranked {
        table.add(vec![
            (*name).to_owned(),
            format!("{slow:.2}"),
            format!("{fast:.2}"),
            format!("{:.1}", slow / fast),
            ios.to_string(),
            if is_authors(name) { "yes".to_owned() } else { String::new() },
        ]);
    }
    report.tables.push(table);
    let chosen: Vec<&str> = ranked.iter().take(CHOSEN).map(|(name, ..)| *name).collect();
    report.summarize("chosen_by_both", chosen.iter().filter(|name| is_authors(name)).count() as f64);
    report.summary.insert("chosen".to_owned(), json!(chosen));
    report
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queries_whose_times_are_furthest_apart_are_chosen() {
        let run = |devices: &'static str, query: &str, seconds: f64| SelectRun {
            kind: "select",
            devices,
            query: query.to_owned(),
            seconds,
            ios: 1,
        };
        let mut runs = Vec::new();
        for (no, query) in TPCH_ALL.iter().enumerate() {
            let ratio = if no < 9 { 10.0 } else { 2.0 };
            runs.extend([run("slow", query.name, ratio), run("fast", query.name, 1.0)]);
        }
        let report = report(&PstSettings::new("/".into()), &runs);
        // Of the first nine the authors took 3, 4, 5, 7, 8 and 9.
        assert_eq!((report.summary["chosen_by_both"].as_f64(), report.runs.len()), (Some(6.0), 44));
        assert_eq!(report.summary["chosen"][0], "q1");
    }
}
