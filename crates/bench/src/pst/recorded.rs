//! What the queries read, recorded: in order on the bare files; out of order on a volume that lies on the slow class,
//! in virtual time, for there it can be seen which I/Os wait for which.

use std::collections::HashMap;

use tanada_innodb::MountOptions;
use tanada_io::Timeline;
use tanada_placement::Trace;
use tanada_query::placement::Recording;
use tanada_query::{Session, SessionOptions};

use super::{IN_ORDER, PstSettings, live};
use crate::{Error, Result};
use tanada_sample::runtime_on;

/// The first answer to each query, which every other one is compared with.
#[derive(Debug, Default)]
pub(super) struct Answers(HashMap<String, String>);

impl Answers {
    pub(super) fn compare(
        &mut self,
        who: &str,
        query: &str,
        batches: &[datafusion::arrow::record_batch::RecordBatch],
    ) -> Result<()> {
        let rows = tanada_sample::answer::lines(batches)?;
        match self.0.get(query) {
            None => {
                self.0.insert(query.to_owned(), format!("\n{}", rows.join("\n")));
                Ok(())
            }
            Some(first) => tanada_sample::answer::check(rows, first)
                .map_err(|error| Error::failed(format!("{query}, {who}: {error}"))),
        }
    }
}

/// The settings that all runs of the queries have.
pub(super) async fn set(session: &Session, settings: &PstSettings, execution: &str) -> Result<()> {
    session.use_database(&settings.database)?;
    session.set("tanada.execution", execution).await?;
    // Look-ups by index wherever a join allows it, as the paper's server does.
    session.set("tanada.lookup_join", "always").await?;
    if execution != IN_ORDER {
        session.set("tanada.io_depth", &settings.depth.to_string()).await?;
    }
    Ok(())
}

/// Bytes of the page cache for tables of `bytes`.
pub(super) fn cache_bytes(settings: &PstSettings, bytes: u64) -> u64 {
    ((bytes as f64 * settings.cache_share) as u64).max(1 << 20)
}

/// Bytes of the database's files.
pub(super) fn database_bytes(settings: &PstSettings) -> u64 {
    let folder = settings.innodb.join(&settings.database);
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.metadata().ok()).map(|metadata| metadata.len()).sum()
}

/// Runs the queries, one after the other, and records them; `name` is that of the trace's file, if it is kept.
pub(super) fn record(
    settings: &PstSettings,
    execution: &str,
    name: &str,
    answers: &mut Answers,
) -> Result<Trace> {
    let is_in_order = execution == IN_ORDER;
    let timeline = if is_in_order { Timeline::real() } else { live::virtual_time() };
    let work = live::Work::new(settings)?;
    let volume = work.path().join("volume-recorded");
    if !is_in_order {
        live::make(settings, &volume, 0)?;
    }
    let runtime = runtime_on(&timeline)?;
    let _takes_part = timeline.register_thread();
    let trace = runtime.block_on(async {
        let cache_bytes = cache_bytes(settings, database_bytes(settings));
        let session = Session::new(SessionOptions { cache_bytes, ..SessionOptions::default() })?;
        let recording = if is_in_order {
            session.mount_innodb(&settings.innodb, &MountOptions::default()).await?;
            Recording::default()
        } else {
            session.set("tanada.placement", "off").await?;
            session.mount_volume(&volume, &MountOptions::default()).await?;
            Recording::default().with_waits()
        };
        set(&session, settings, execution).await?;
        // Tables are opened and sampled before.
        for (_, sql) in &settings.queries {
            session.execute(&format!("explain {sql}")).await?.collect().await?;
        }
        session.clear_cache();
        session.record(Some(recording.clone()));
        for (query, sql) in &settings.queries {
            let batches = session.execute(&format!("/* {query} */ {sql}")).await?.collect().await?;
            answers.compare(&format!("{execution} as recorded"), query, &batches)?;
        }
        if let Some(folder) = &settings.traces {
            std::fs::create_dir_all(folder).map_err(|error| Error::at_path("make", folder, &error))?;
            recording.write(&folder.join(format!("{name}.trace")))?;
        }
        session.close().await?;
        Ok(recording.trace()?)
    });
    if !is_in_order {
        live::remove(&volume)?;
    }
    trace
}
