//! Queries are announced to those who watch the session: placement and recordings.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use datafusion::physical_plan::ExecutionPlan;
use tanada_placement::{Fingerprint, QueryId};

use super::Session;
use super::command::{self, Command};
use super::context::QueryContext;
use super::explain::plan_of;
use crate::placement::{
    Announcement, Ending, OnPlaced, PlacedChunk, PlannedAccess, PlannedFiles, Recording, Steering, Wanted,
    Watcher, accesses, file_accesses, fingerprint,
};
use crate::relation::FileFootprint;
use crate::settings::TanadaOptions;
use crate::{Error, ErrorKind, Result};

/// How the settings want chunks placed.
pub(super) fn wanted(options: &TanadaOptions) -> Wanted {
    let bytes = options.placement_bytes_per_second as u64;
    Wanted { policy: options.placement.clone(), bytes_per_second: (bytes > 0).then_some(bytes) }
}

/// Characters of a statement that stand for it before people.
const NAME_CHARACTERS: usize = 80;

/// A statement before it is respelled.
#[derive(Debug, Clone)]
pub(super) struct Text {
    pub(super) fingerprint: Fingerprint,
    pub(super) name: String,
}

/// The beginning of a statement in one line; a comment in front of it is its name.
pub(super) fn name_of(sql: &str) -> String {
    let comment = sql.trim_start().strip_prefix("/*").and_then(|rest| rest.split_once("*/"));
    let text = comment.map_or(sql, |(comment, _)| comment);
    let words: Vec<&str> = text.split_whitespace().collect();
    words.join(" ").chars().take(NAME_CHARACTERS).collect()
}

/// What placement has done or was refused so far on one volume.
pub(super) fn placed_by(steering: &Steering) -> impl Iterator<Item = PlacedChunk> {
    let volume = steering.directory().path().to_owned();
    steering.placed().into_iter().map(move |noted| PlacedChunk::new(&volume, noted))
}

impl Session {
    /// Records the queries that begin from now on; `None` ends it.
    pub fn record(&self, recording: Option<Recording>) {
        *self.shared.recording.write() = recording;
    }

    /// Waits until placement has nothing left to do on any mounted volume.
    pub async fn settle(&self) {
        let placements = self.shared.placements.read().clone();
        for steering in placements {
            steering.settle().await;
        }
    }

    /// Relocations that placement has done or was refused so far on volumes, the newest 1,024 of each. Copies that are
    /// under way when the session is [closed](Self::close) come to their end there: all are known after it alone.
    pub fn placed(&self) -> Vec<PlacedChunk> {
        let mut placed = self.shared.placed.read().clone();
        placed.extend(self.shared.placements.read().iter().flat_map(|steering| placed_by(steering)));
        placed
    }

    /// Has each relocation told of as soon as placement has done it or was refused it, on volumes that are mounted from
    /// now on. What is told waits for whoever listens.
    pub fn on_placed(&self, listener: impl Fn(&PlacedChunk) + Send + Sync + 'static) {
        *self.shared.on_placed.write() = Some(OnPlaced::new(listener));
    }

    /// The number of a query that begins now.
    pub(super) fn next_query(&self) -> QueryId {
        QueryId(self.shared.queries.fetch_add(1, Ordering::Relaxed))
    }

    /// Has chunks placed as the settings say now.
    pub(super) fn want_placement(&self) -> Result<()> {
        let wanted = wanted(&self.options());
        self.shared.placements.read().iter().try_for_each(|steering| steering.want(&wanted))
    }

    /// Those who are told of a query that begins now.
    pub(super) fn watchers(&self, options: &TanadaOptions) -> Result<Vec<Arc<dyn Watcher>>> {
        let recording = self.shared.recording.read().clone();
        let recording = recording.map(|recording| Arc::new(recording) as Arc<dyn Watcher>);
        let mut watchers: Vec<Arc<dyn Watcher>> = recording.into_iter().collect();
        let wanted = wanted(options);
        for steering in self.shared.placements.read().iter() {
            steering.want(&wanted)?;
            if steering.places() {
                watchers.push(Arc::clone(steering) as _);
            }
        }
        Ok(watchers)
    }

    /// Tells the query's watchers what its plan is going to read, and looks whether the files are what they were. The
    /// query is over when what this gives is dropped.
    pub(super) async fn announce(
        &self,
        text: Text,
        plan: &Arc<dyn ExecutionPlan>,
        context: &Arc<QueryContext>,
    ) -> Ending {
        let watched = context.watched();
        let ending = Ending(Arc::clone(watched));
        if !watched.has_watchers() && self.shared.volumes.read().is_empty() {
            return ending;
        }
        let announcement = Arc::new(self.announcement(text, plan, context).await);
        let names = announcement.accesses.iter().map(|access| access.path.as_path());
        context.warn(self.check_adopted(names));
        if watched.has_watchers() && !announcement.tables.is_empty() {
            watched.begin(&announcement);
        }
        ending
    }

    /// What a query is going to read where, as its plan says: for each index in each file the pages expected, how they
    /// are read, and the extents in which they lie; of an `EXPLAIN`, what it explains is going to read. Nothing of it
    /// is run; planning reads some pages of tables that were not opened before.
    ///
    /// # Errors
    /// As [`execute`](Self::execute); `Unsupported` if it is no query.
    pub async fn footprint(&self, sql: &str) -> Result<Vec<FileFootprint>> {
        let tokens = command::tokens(sql)?;
        if !matches!(command::recognise(&tokens)?, Command::Query) {
            return Err(Error::new(ErrorKind::Unsupported, "only a query has a footprint"));
        }
        let context = self.query_context()?;
        let database = self.database();
        let text = Text { fingerprint: fingerprint(&tokens, database.as_deref()), name: name_of(sql) };
        let prepared = self.prepared(sql, &tokens).await?;
        let state = self.state_for(&context);
        let (explained, mut plan) = self.planned(prepared, &state).await?;
        if let Some(statement) = explained {
            plan = plan_of(statement, &state).await?;
        }
        Ok(self.announcement(text, &plan, &context).await.accesses)
    }

    /// What a plan is going to read where. An access to a table whose indexes cannot be located is left out: if its
    /// file is damaged, the query itself says so when it gets there.
    pub(super) async fn announcement(
        &self,
        text: Text,
        plan: &Arc<dyn ExecutionPlan>,
        context: &Arc<QueryContext>,
    ) -> Announcement {
        let mut found = Vec::new();
        let mut tables = Vec::new();
        for PlannedAccess { relation, access } in accesses(plan) {
            let Ok(places) = relation.places(context.executors(), context.io()).await else { continue };
            found.extend(relation.footprint_in(&access, &places));
            if !tables.iter().any(|table| Arc::ptr_eq(table, &places)) {
                tables.push(places);
            }
        }
        for PlannedFiles { footprints, places } in file_accesses(plan) {
            found.extend(footprints);
            tables.push(places);
        }
        Announcement {
            query: context.watched().query(),
            name: text.name,
            fingerprint: text.fingerprint,
            depth: context.depth(),
            accesses: found,
            tables,
        }
    }
}
