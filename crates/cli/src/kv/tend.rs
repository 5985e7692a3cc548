//! `tanada kv stat`, `check` and `compact`.

use clap::Args;
use tanada_bench::report::Table;

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
        let mut stores = Table::new(&["store", "versions", "keys", "values", "kvsets", "leaves"]);
        for store in &statistics.stores {
            stores.add(vec![
                store.name.clone(),
                (store.versions + store.logged_versions).to_string(),
                size(store.key_bytes),
                size(store.inline_bytes + store.value_bytes),
                (store.root_kvsets + store.leaf_kvsets).to_string(),
                store.leaves.to_string(),
            ]);
        }
        format!("{classes}\n{stores}\nspace amplification {:.2}\n", statistics.space_amplification)
    })
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
    let database = place.write(false).await?;
    let before = database.statistics();
    let compacted = async { Ok(place.store(&database)?.compact().await?) };
    let compacted = compacted.await;
    let after = database.statistics();
    closing(&database, compacted).await?;
    // What the log has ready is made in full before anything is in it, and would hide what was gained.
    let bytes = |statistics: &tanada_kv::Statistics| -> u64 {
        let classes = statistics.classes.iter();
        classes.map(|class| class.segment_bytes + class.key_bytes - class.log_bytes).sum()
    };
    let in_use = size(after.bytes_in_use);
    say(&format!("{} before, {} now, {in_use} of it in use\n", size(bytes(&before)), size(bytes(&after))))
}
