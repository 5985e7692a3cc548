//! `tanada kv stat`, `check` and `compact`.

use clap::Args;
use tanada_kv::{Activity, StallStatistics};
use tanada_report::Table;

use super::{Place, closing};
use crate::failure::{Failure, Outcome};
use crate::output::{OutputArguments, count, say, size};

/// Arguments of `tanada kv stat`.
#[derive(Debug, Args)]
pub struct StatArguments {
    #[command(flatten)]
    output: OutputArguments,
}

pub(super) async fn stat(place: &Place, arguments: StatArguments) -> Outcome {
    let database = place.read().await?;
    let statistics = database.statistics();
    closing(&database, place.named_store(&database)).await?;
    arguments.output.print(&statistics, |statistics| {
        let mut classes = Table::new(&["class", "log and values", "keys", "manifest"]);
        for class in &statistics.classes {
            classes.add(vec![
                class.name.clone(),
                size(class.segment_bytes),
                size(class.key_bytes),
                size(class.manifest_bytes),
            ]);
        }
        let mut stores =
            Table::new(&["store", "versions", "keys", "values", "in the log", "kvsets", "leaves"]);
        for store in &statistics.stores {
            stores.add(vec![
                store.name.clone(),
                (store.versions + store.logged_versions).to_string(),
                size(store.key_bytes),
                size(store.inline_bytes + store.value_bytes),
                size(store.logged_bytes),
                (store.root_kvsets + store.leaf_kvsets).to_string(),
                store.leaves.to_string(),
            ]);
        }
        let lifetime = lifetime(&statistics.lifetime);
        // What is in the log alone is in no kvset yet.
        let amplification = match statistics.bytes_in_use {
            0 => "-".to_owned(),
            _ => format!("{:.2}", statistics.space_amplification),
        };
        format!("{classes}\n{stores}\nspace amplification {amplification}\n\n{lifetime}")
    })
}

/// What was done over all openings, in words.
fn lifetime(activity: &Activity) -> String {
    let by = activity.written_by();
    let mut text = format!(
        "Over {}, as far as the manifest was told:\n\
         {} written ({}) and {} loaded; {} to devices (write amplification {:.2})\n\
         {}, of which memory answered {}; {} from devices (read amplification {:.2})\n",
        count(activity.openings, "opening"),
        count(activity.operations_written, "operation"),
        size(activity.bytes_written),
        size(activity.bytes_loaded),
        size(by.all()),
        activity.write_amplification(),
        count(activity.gets, "look-up"),
        activity.gets_from_memory,
        count(activity.cache_loads, "load"),
        activity.read_amplification(),
    );
    let columns = ["written to", "log", "keys from memory", "keys by jobs", "values by jobs", "manifest"];
    let mut written = Table::new(&columns);
    for (class, by) in &activity.written {
        let bytes = [by.log, by.flush_keys, by.job_keys, by.job_values, by.manifest];
        written.add([class.clone()].into_iter().chain(bytes.map(size)).collect());
    }
    text += &format!("\n{written}");
    let mut latencies = Table::new(&["latency, us", "samples", "p50", "p99", "p99.9", "most"]);
    for (what, latency) in [("writes", activity.writes()), ("reads", activity.reads())] {
        let us = [latency.us_p50, latency.us_p99, latency.us_p999, latency.us_max];
        let us = us.into_iter().map(|us| format!("{us:.1}"));
        latencies.add([what.to_owned(), latency.samples.to_string()].into_iter().chain(us).collect());
    }
    text += &format!("\n{latencies}\n");
    if !activity.jobs_by_kind.is_empty() {
        let mut jobs = Table::new(&["jobs", "number", "versions", "seconds"]);
        for (kind, job) in &activity.jobs_by_kind {
            let seconds = format!("{:.1}", job.us as f64 / 1e6);
            jobs.add(vec![kind.clone(), job.count.to_string(), job.versions.to_string(), seconds]);
        }
        text += &format!("{jobs}\n");
    }
    let stalled = activity.stalls.iter().filter(|stall| stall.count > 0);
    let stalls = stalls_in_words(stalled);
    text += &format!(
        "writes that were slowed: {}; that were slowed or waited: {stalls}\n",
        activity.writes_slowed
    );
    text
}

fn stalls_in_words<'a>(stalls: impl Iterator<Item = &'a StallStatistics>) -> String {
    let stalls = stalls
        .map(|stall| format!("{} for {} ({:.1} ms)", stall.count, stall.cause, stall.us as f64 / 1000.0));
    let stalls: Vec<String> = stalls.collect();
    if stalls.is_empty() { "none".to_owned() } else { stalls.join(", ") }
}

/// Arguments of `tanada kv check`.
#[derive(Debug, Args)]
pub struct CheckArguments {
    #[command(flatten)]
    output: OutputArguments,
}

pub(super) async fn check(place: &Place, arguments: CheckArguments) -> Outcome {
    let database = place.read().await?;
    let checked = async {
        place.named_store(&database)?;
        Ok(database.check().await?)
    };
    let checked = checked.await;
    let report = closing(&database, checked).await?;
    arguments.output.print(&report, |report| {
        let mut text = format!(
            "{}, {}, {} ({}) read and verified",
            count(report.kvsets, "kvset"),
            count(report.versions, "version"),
            count(report.values, "value"),
            size(report.value_bytes)
        );
        if report.logged_versions > 0 {
            text += &format!(", and {} in the log", count(report.logged_versions, "version"));
        }
        text.push('\n');
        report.findings.iter().for_each(|finding| text += &format!("{finding}\n"));
        if !report.damaged_copies.is_empty() {
            text += "Copies on a faster class cannot be read. Nothing is lost with them; who writes takes them away when they are met:\n";
            report.damaged_copies.iter().for_each(|copy| text += &format!("  {copy}\n"));
        }
        text
    })?;
    match report.findings.len() {
        0 => Ok(()),
        wrong => Err(Failure::failed(format!(
            "database '{}' is damaged: {}; restore it from a copy",
            place.database,
            count(wrong as u64, "finding")
        ))),
    }
}

pub(super) async fn compact(place: &Place) -> Outcome {
    let database = place.write().await?;
    let before = database.statistics();
    let compacted = async { Ok(place.store(&database)?.compact().await?) };
    let compacted = compacted.await;
    let after = database.statistics();
    closing(&database, compacted).await?;
    let mirrored = |statistics: &tanada_kv::Statistics| -> u64 {
        statistics.stores.iter().map(|store| store.mirrored_bytes).sum()
    };
    // What the log has ready is made in full before anything is in it, and would hide what was gained; copies make way
    // where there is no room.
    let bytes = |statistics: &tanada_kv::Statistics| -> u64 {
        let classes = statistics.classes.iter();
        let all: u64 = classes
            .map(|class| (class.segment_bytes + class.key_bytes).saturating_sub(class.log_bytes))
            .sum();
        all.saturating_sub(mirrored(statistics))
    };
    let copies = match mirrored(&after) {
        0 => String::new(),
        copies => format!("; {} of copies on a faster class besides", size(copies)),
    };
    let in_use = size(after.bytes_in_use);
    say(&format!(
        "{} before, {} now, {in_use} of it in use{copies}\n",
        size(bytes(&before)),
        size(bytes(&after))
    ))
}
