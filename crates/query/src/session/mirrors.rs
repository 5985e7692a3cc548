//! Columnar mirrors of a session: where they are kept, and when they are made.

use std::path::Path;
use std::sync::{Arc, Weak};
use std::time::Duration;

use datafusion::arrow::array::{ArrayRef, BooleanArray, StringArray, UInt64Array};
use datafusion::physical_plan::ExecutionPlan;
use tokio::task::AbortHandle;

use super::files::OF_VOLUME;
use super::{Session, Shared};
use crate::columnar::Columnar;
use crate::lookup::OutOfOrderLookupJoinExec;
use crate::settings::ColumnarUse;
use crate::{Error, ErrorKind, Result};

/// How long no query has run before mirrors are made.
const QUIET: Duration = Duration::from_millis(500);
/// Leaf pages of the smallest table that is mirrored: others are read in no time.
const LEAST_PAGES: u64 = 64;

/// Of the rows of a table, the part above which looking them up takes longer than a scan of mirrors.
const MANY_ROWS_SHARE: f64 = 0.05;

/// The mirrors that a session keeps. Dropping it ends the task that makes them.
#[derive(Debug)]
pub(super) struct Kept {
    pub(super) columnar: Arc<Columnar>,
    background: AbortHandle,
}

impl Drop for Kept {
    fn drop(&mut self) {
        self.background.abort();
    }
}

/// Leaf pages of the smallest table that is mirrored; `None` if none is.
fn least_pages(usage: ColumnarUse) -> Option<u64> {
    match usage {
        ColumnarUse::Auto => Some(LEAST_PAGES),
        ColumnarUse::Always => Some(0),
        ColumnarUse::Off => None,
    }
}

/// Makes mirrors while no query runs.
async fn make_while_idle(session: Weak<Shared>, columnar: Arc<Columnar>) {
    loop {
        columnar.changed().await;
        tokio::time::sleep(QUIET).await;
        let Some(shared) = session.upgrade() else { return };
        let least = least_pages(Session { shared }.options().columnar);
        if let Some(least) = least.filter(|_| columnar.is_idle()) {
            columnar.make(least, None).await;
        }
    }
}

/// Notes the columns of tables in which a plan looks up so many rows that a scan of mirrors would be cheaper.
pub(super) fn want_looked_up(plan: &Arc<dyn ExecutionPlan>, columnar: &Columnar) {
    if let Some(join) = plan.downcast_ref::<OutOfOrderLookupJoinExec>() {
        let (source, estimate) = (join.source(), join.estimate());
        let relation = source.relation();
        let rows = relation.statistics().rows as f64;
        if estimate.outer_rows.is_some_and(|keys| keys >= MANY_ROWS_SHARE * rows) {
            let index = relation.table().definition().indexes.get(source.index().0);
            let key = index.into_iter().flat_map(|index| index.parts.iter().map(|part| part.column.0));
            let mut columns: Vec<usize> = source.columns().iter().copied().chain(key).collect();
            columns.sort_unstable();
            columns.dedup();
            let micros = estimate.lookup.map_or(0.0, |cost| cost.time_us);
            columnar.scanned(relation, &columns, Duration::from_micros(micros as u64));
        }
    }
    plan.children().into_iter().for_each(|child| want_looked_up(child, columnar));
}

impl Session {
    /// Keeps columnar mirrors of the tables that are scanned in `place` and reads them instead of pages: a folder, or
    /// `volume:FOLDER` in a volume that is mounted. They are made while no query runs, and by
    /// [`make_mirrors`](Self::make_mirrors).
    ///
    /// # Errors
    /// If there is no such place.
    pub async fn keep_mirrors(&self, place: &str) -> Result<()> {
        let executors = &self.shared.environment.executors;
        let columnar = match place.strip_prefix(OF_VOLUME) {
            None => Columnar::in_folder(Path::new(place), executors)?,
            Some(folder) if folder.trim_matches('/').is_empty() => {
                let message = "name a folder of the volume for mirrors: volume:FOLDER";
                return Err(Error::new(ErrorKind::InvalidInput, message));
            }
            Some(_) => {
                let (medium, folder) = self.location(place)?;
                Columnar::in_medium(medium, folder, executors)
            }
        };
        let session = Arc::downgrade(&self.shared);
        let background = tokio::spawn(make_while_idle(session, Arc::clone(&columnar))).abort_handle();
        *self.shared.mirrors.write() = Some(Kept { columnar, background });
        Ok(())
    }

    /// Makes the mirrors of columns that queries of this session have scanned, now; begins with none after `limit`.
    /// Gives how many were made. What goes wrong is told as a warning.
    pub async fn make_mirrors(&self, limit: Option<Duration>) -> usize {
        let options = self.options();
        let columnar = self.mirrors();
        match (columnar, least_pages(options.columnar)) {
            (Some(columnar), Some(least)) => {
                columnar.set_limit(options.columnar_bytes as u64);
                columnar.make(least, limit).await
            }
            _ => 0,
        }
    }

    /// The mirrors that are kept.
    pub(super) fn mirrors(&self) -> Option<Arc<Columnar>> {
        self.shared.mirrors.read().as_ref().map(|kept| Arc::clone(&kept.columnar))
    }
}

/// The columns of `tanada.columnar_mirrors`.
pub(super) async fn mirror_columns(shared: &Arc<Shared>) -> Vec<ArrayRef> {
    let session = Session { shared: Arc::clone(shared) };
    let columnar = session.mirrors();
    let (place, rows) = match &columnar {
        Some(columnar) => (columnar.shown(), columnar.described().await),
        None => (String::new(), Vec::new()),
    };
    let mut states = Vec::with_capacity(rows.len());
    for row in &rows {
        let Some((database, table, _)) = row.of() else {
            states.push("damaged");
            continue;
        };
        let database = shared.databases.database(database);
        let table = match database {
            Some(database) => database.open_table(table).await.ok().flatten(),
            None => None,
        };
        states.push(match table {
            Some(table) if row.is_current(table.table()) => "current",
            Some(_) => "stale",
            None => "unknown",
        });
    }
    let text = |values: Vec<Option<String>>| Arc::new(StringArray::from(values)) as ArrayRef;
    let part =
        |part: fn((&str, &str, &str)) -> String| text(rows.iter().map(|row| row.of().map(part)).collect());
    vec![
        text(rows.iter().map(|_| Some(place.clone())).collect()),
        text(rows.iter().map(|row| Some(row.name.clone())).collect()),
        part(|(database, _, _)| database.to_string()),
        part(|(_, table, _)| table.to_string()),
        part(|(_, _, column)| column.to_string()),
        Arc::new(rows.iter().map(|row| row.rows()).collect::<UInt64Array>()),
        Arc::new(rows.iter().map(|row| Some(row.bytes)).collect::<UInt64Array>()),
        Arc::new(rows.iter().map(|row| Some(row.is_used)).collect::<BooleanArray>()),
        text(states.iter().map(|state| Some((*state).to_string())).collect()),
    ]
}
