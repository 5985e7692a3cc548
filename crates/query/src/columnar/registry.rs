//! Which mirrors there are, which columns were scanned, and how many queries run.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;
use parking_lot::Mutex;
use tanada_io::{Executors, IoContext};
use tokio::sync::Notify;

use super::file::{Description, MirrorFile};
use super::identity::{MirrorKey, definition_digest};
use super::space::Space;
use super::types::{group_rows, refusal};
use crate::relation::InnodbRelation;
use crate::store::{Medium, Reading};
use crate::{Error, ErrorKind, Result};

/// How long names of mirrors are remembered: those that other processes make are found after that.
const NAMES_LAST: Duration = Duration::from_secs(1);

/// The mirrors of a session.
#[derive(Debug)]
pub(crate) struct Columnar {
    pub(super) space: Space,
    pub(super) state: Mutex<State>,
    /// Queries that run.
    queries: AtomicUsize,
    /// A query has ended, or a scan.
    changed: Notify,
    /// Most bytes of mirrors.
    limit: AtomicU64,
    /// One at a time makes mirrors.
    pub(super) making: tokio::sync::Mutex<()>,
}

#[derive(Debug, Default)]
pub(super) struct State {
    names: Option<(Instant, HashSet<String>)>,
    open: HashMap<String, Arc<MirrorFile>>,
    /// Scans by table.
    pub(super) wanted: BTreeMap<String, Wanted>,
    /// Mirrors that were used in this session.
    used: HashSet<String>,
    /// Why there are no mirrors: by the names of these, and by table.
    pub(super) left_out: HashMap<String, String>,
    /// Why no mirrors are made any more.
    pub(super) stopped: Option<String>,
    /// What went wrong, for the next query to tell.
    warnings: Vec<String>,
}

/// What scans have read of a table.
#[derive(Debug, Clone)]
pub(super) struct Wanted {
    pub(super) relation: Arc<InnodbRelation>,
    /// Scans by column.
    pub(super) scans: BTreeMap<usize, u64>,
    /// Time that they took, together.
    pub(super) took: Duration,
}

/// What was found for a scan.
#[derive(Debug)]
pub(crate) enum Finding {
    /// Mirrors of all its columns.
    Found(Arc<MirroredColumns>),
    /// Why pages are read.
    Pages(String),
}

/// The mirrors of all columns of a scan.
#[derive(Debug)]
pub struct MirroredColumns {
    pub(super) columnar: Arc<Columnar>,
    key: MirrorKey,
    /// By the columns of the scan; of a scan without columns one that tells the rows.
    files: Vec<Arc<MirrorFile>>,
    columns: usize,
}

/// A query that runs. Dropping it ends that.
#[derive(Debug)]
pub(crate) struct Busy(Arc<Columnar>);

impl Drop for Busy {
    fn drop(&mut self) {
        self.0.queries.fetch_sub(1, Ordering::AcqRel);
        self.0.changed.notify_waiters();
    }
}

impl Columnar {
    /// The mirrors in the folder `path` of the host.
    ///
    /// # Errors
    /// If it is no folder, or cannot be made.
    pub(crate) fn in_folder(path: &Path, executors: &Arc<Executors>) -> Result<Arc<Columnar>> {
        Ok(Columnar::of(Space::of_host(path, executors)?))
    }

    /// The mirrors in the folder called `folder` of another medium.
    pub(crate) fn in_medium(
        medium: Arc<dyn Medium>,
        folder: String,
        executors: &Arc<Executors>,
    ) -> Arc<Columnar> {
        Columnar::of(Space::of_medium(medium, folder, executors))
    }

    fn of(space: Space) -> Arc<Columnar> {
        Arc::new(Columnar {
            space,
            state: Mutex::default(),
            queries: AtomicUsize::new(0),
            changed: Notify::new(),
            limit: AtomicU64::new(u64::MAX),
            making: tokio::sync::Mutex::default(),
        })
    }

    /// What people call the place of the mirrors.
    pub(crate) fn shown(&self) -> String {
        self.space.shown()
    }

    /// Sets the most bytes of mirrors.
    pub(crate) fn set_limit(&self, bytes: u64) {
        self.limit.store(bytes, Ordering::Relaxed);
    }

    pub(super) fn limit(&self) -> u64 {
        self.limit.load(Ordering::Relaxed)
    }

    /// A query begins.
    pub(crate) fn begin(self: &Arc<Self>) -> Busy {
        self.queries.fetch_add(1, Ordering::AcqRel);
        Busy(Arc::clone(self))
    }

    /// Whether no query runs.
    pub(crate) fn is_idle(&self) -> bool {
        self.queries.load(Ordering::Acquire) == 0
    }

    /// Waits until a query ends, or a scan.
    pub(crate) async fn changed(&self) {
        self.changed.notified().await;
    }

    /// Waits until no query runs.
    pub(super) async fn idle(&self) {
        loop {
            let changed = self.changed.notified();
            if self.is_idle() {
                return;
            }
            changed.await;
        }
    }

    /// Notes a scan of all rows of a table that has read pages.
    pub(crate) fn scanned(&self, relation: &Arc<InnodbRelation>, columns: &[usize], took: Duration) {
        let definition = relation.table().definition();
        let may_be = |column: &usize| definition.columns.get(*column).is_some_and(|of| refusal(of).is_none());
        let mut state = self.state.lock();
        let wanted = state.wanted.entry(id_of(relation)).or_insert_with(|| Wanted {
            relation: Arc::clone(relation),
            scans: BTreeMap::new(),
            took: Duration::ZERO,
        });
        wanted.took += took;
        for column in columns.iter().copied().filter(|column| may_be(column)) {
            *wanted.scans.entry(column).or_default() += 1;
        }
        drop(state);
        self.changed.notify_waiters();
    }

    /// Whether there is a mirror called `name`.
    pub(super) fn has(&self, name: &str) -> bool {
        let mut state = self.state.lock();
        let is_old = state.names.as_ref().is_none_or(|(at, _)| at.elapsed() > NAMES_LAST);
        if is_old {
            state.names = Some((Instant::now(), self.space.names().into_iter().collect()));
        }
        state.names.as_ref().is_some_and(|(_, names)| names.contains(name))
    }

    /// Names of the mirrors of a table that are there.
    fn names_of(&self, key: &MirrorKey) -> Vec<String> {
        let prefix = key.prefix();
        self.has("");
        let state = self.state.lock();
        let names = state.names.iter().flat_map(|(_, names)| names);
        let mut names: Vec<String> = names.filter(|name| name.starts_with(&prefix)).cloned().collect();
        names.sort_unstable();
        names
    }

    /// Forgets which mirrors there are.
    pub(super) fn forget_names(&self) {
        self.state.lock().names = None;
    }

    /// Whether a mirror was used in this session.
    pub(super) fn is_used(&self, name: &str) -> bool {
        self.state.lock().used.contains(name)
    }

    /// The mirrors of `columns` of a relation, if all are there and of the relation's files as they are now.
    pub(crate) async fn find(
        self: &Arc<Self>,
        relation: &InnodbRelation,
        columns: &[usize],
        orders_dates: bool,
    ) -> Finding {
        match self.found(relation, columns, orders_dates).await {
            Ok(found) => Finding::Found(Arc::new(found)),
            Err(why) => Finding::Pages(why),
        }
    }

    async fn found(
        self: &Arc<Self>,
        relation: &InnodbRelation,
        columns: &[usize],
        orders_dates: bool,
    ) -> std::result::Result<MirroredColumns, String> {
        let key = MirrorKey::of(relation).map_err(|error| error.to_string())?;
        let definition = relation.table().definition();
        let shown = |column: &usize| definition.columns.get(*column).map_or("?", |of| of.name.as_str());
        let mut wanted: Vec<(usize, String)> =
            columns.iter().map(|column| (*column, key.name(*column))).collect();
        if columns.is_empty() {
            let any = self.names_of(&key).into_iter().find_map(|name| {
                let number = name.strip_prefix(&key.prefix())?.split('.').next()?.parse().ok()?;
                Some((number, name))
            });
            wanted.extend(any);
        }
        let (mut files, mut missing) = (Vec::with_capacity(wanted.len()), Vec::new());
        for (column, name) in &wanted {
            let of = definition.columns.get(*column).ok_or("a column is unknown")?;
            if let Some(why) = refusal(of) {
                return Err(format!("column {} {why}", of.name));
            }
            match self.open(&key, name, *column, relation).await? {
                Some(file) => files.push(file),
                None => missing.push((column, name)),
            }
        }
        if let Some((_, name)) = missing.first() {
            let state = self.state.lock();
            let of_table = || state.left_out.get(&id_of(relation)).cloned();
            let why = state.left_out.get(*name).cloned().or_else(of_table).or_else(|| state.stopped.clone());
            let why = why.map(|why| format!(": {why}")).unwrap_or_default();
            let names: Vec<&str> = missing.iter().map(|(column, _)| shown(column)).collect();
            let noun = if names.len() == 1 { "column" } else { "columns" };
            return Err(format!("no mirror of {noun} {}{why}", names.join(", ")));
        }
        let Some(first) = files.first() else { return Err("no column has a mirror".to_string()) };
        let rows = (first.description.rows, first.description.group_rows);
        if files.iter().any(|file| (file.description.rows, file.description.group_rows) != rows)
            || rows.1 != group_rows(definition)
        {
            return Err("mirrors of its columns do not fit each other".to_string());
        }
        let partial = files.iter().find(|file| orders_dates && file.description.has_partial_dates);
        if let Some(file) = partial {
            return Err(format!("column {} has dates that no calendar has", file.description.column));
        }
        Ok(MirroredColumns { columnar: Arc::clone(self), key, files, columns: columns.len() })
    }

    /// A mirror, if it is there and sound.
    async fn open(
        &self,
        key: &MirrorKey,
        name: &str,
        column: usize,
        relation: &InnodbRelation,
    ) -> std::result::Result<Option<Arc<MirrorFile>>, String> {
        if let Some(open) = self.state.lock().open.get(name) {
            return Ok(Some(Arc::clone(open)));
        }
        if !self.has(name) {
            return Ok(None);
        }
        let data_type = relation.schema().field(column).data_type();
        let at = self.space.at(name);
        match MirrorFile::open(&self.space.store, &at, &key.state, column, data_type).await {
            Ok(file) => {
                let file = Arc::new(file);
                self.space.touch(name);
                let mut state = self.state.lock();
                state.used.insert(name.to_owned());
                state.open.insert(name.to_owned(), Arc::clone(&file));
                Ok(Some(file))
            }
            Err(error) if error.kind() == ErrorKind::NotFound => {
                self.forget_names();
                Ok(None)
            }
            Err(error) => {
                self.drop_damaged(&at).await;
                let what = format!("{error}; it was deleted, and pages are read");
                self.state.lock().warnings.push(what.clone());
                Err(what)
            }
        }
    }

    /// What went wrong since this was asked for before.
    pub(crate) fn take_warnings(&self) -> Vec<String> {
        std::mem::take(&mut self.state.lock().warnings)
    }

    /// Deletes the mirror in the file `at`, which is damaged.
    pub(crate) async fn drop_damaged(&self, at: &str) {
        let name = at.rsplit('/').next().unwrap_or(at);
        self.state.lock().open.remove(name);
        self.space.delete(name).await;
        self.forget_names();
    }

    /// Drops what is known of a mirror that is deleted.
    pub(super) fn forget(&self, name: &str) {
        self.state.lock().open.remove(name);
        self.space.store.forget(&self.space.at(name));
    }

    /// What each mirror says of itself, and its size; `None` for one that cannot be read.
    pub(crate) async fn described(&self) -> Vec<MirrorRow> {
        let mut rows = Vec::new();
        for (name, kept) in self.space.kept() {
            let described = MirrorFile::describe(&self.space.store, &self.space.at(&name)).await.ok();
            let is_used = self.is_used(&name);
            let description = described.map(|(description, _)| description);
            rows.push(MirrorRow { name, bytes: kept.bytes, is_used, description });
        }
        rows
    }
}

/// A mirror, for somebody to look at.
#[derive(Debug)]
pub(crate) struct MirrorRow {
    pub(crate) name: String,
    pub(crate) bytes: u64,
    pub(crate) is_used: bool,
    description: Option<Description>,
}

impl MirrorRow {
    /// Database, table and column.
    pub(crate) fn of(&self) -> Option<(&str, &str, &str)> {
        let description = self.description.as_ref()?;
        Some((&description.database, &description.table, &description.column))
    }

    /// Rows.
    pub(crate) fn rows(&self) -> Option<u64> {
        self.description.as_ref().map(|description| description.rows)
    }

    /// Whether it is of the files of `table` as they are now.
    pub(crate) fn is_current(&self, table: &tanada_innodb::Table) -> bool {
        let state = self.description.as_ref().map(|description| description.state.as_str());
        let digest = definition_digest(table.definition());
        MirrorKey::of_table(table, &digest).is_ok_and(|key| Some(key.state.as_str()) == state)
    }
}

impl MirroredColumns {
    /// Columns that are read.
    pub(crate) fn columns(&self) -> usize {
        self.columns
    }

    /// The mirrors of the columns, none of a scan without columns.
    pub(crate) fn files(&self) -> &[Arc<MirrorFile>] {
        self.files.get(..self.columns).unwrap_or_default()
    }

    /// Groups of rows.
    pub(crate) fn groups(&self) -> usize {
        self.files.first().map_or(0, |file| file.groups())
    }

    /// All rows.
    pub(crate) fn rows(&self) -> u64 {
        self.files.first().map_or(0, |file| file.description.rows)
    }

    /// Rows of a group; the last one may have fewer.
    pub(crate) fn group_rows(&self) -> u64 {
        self.files.first().map_or(1, |file| file.description.group_rows).max(1)
    }

    /// Bytes that are read.
    pub(crate) fn bytes(&self) -> u64 {
        self.files().iter().map(|file| file.bytes).sum()
    }

    /// Whether the table's files are still those that the mirrors are of.
    ///
    /// # Errors
    /// With the reason if not.
    pub(crate) fn check_current(&self, relation: &InnodbRelation) -> Result<()> {
        match MirrorKey::of(relation)? == self.key {
            true => Ok(()),
            false => Err(Error::new(ErrorKind::Data, "its files have changed")),
        }
    }

    /// Begins to read a group of rows of a mirror.
    ///
    /// # Errors
    /// If it is cut off.
    pub(crate) fn read(&self, file: &MirrorFile, group: usize, io: &IoContext) -> Result<Reading> {
        let store = self.columnar.space.store.through(io.clone());
        store.start_ranges(&file.name, vec![file.place(group)])
    }

    /// The mirrors that it is of.
    pub(crate) fn columnar(&self) -> &Arc<Columnar> {
        &self.columnar
    }
}

/// What tells tables apart.
fn id_of(relation: &InnodbRelation) -> String {
    let definition = relation.table().definition();
    let paths: Vec<_> = definition.partitions.iter().map(|partition| &partition.path).collect();
    format!("{}.{} {paths:?}", definition.database, definition.name)
}

/// The only range that was read.
pub(crate) fn only(ranges: Vec<Bytes>) -> Bytes {
    ranges.into_iter().next().unwrap_or_default()
}
