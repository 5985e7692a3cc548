//! Cursors: keys and values of a store in order, as a snapshot has them.
//!
//! A cursor stands in a *gap* between two keys. It walks a merge of all sources, which is built when it is needed and
//! thrown away when the cursor goes elsewhere: after a seek, a change of direction or a refresh the merge is sought
//! anew at the gap. The merge may be ahead of the gap by what was [read ahead](super::ahead).

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;

use super::overlay::Committed;
use super::prefetch::{Ahead, Entry, Origin};
use crate::Result;
use crate::database::{Snapshot, Store, behind_prefix};
use crate::entry::{Content, SequenceNo};
use crate::memory::{MemorySource, Memtable};
use crate::merge::{Direction, Source, View, Visibility};
use crate::tombstone::SeenTombstones;
use crate::tree::TreeState;

/// Which keys a cursor walks over.
///
/// ```
/// use tanada_kv::CursorOptions;
///
/// let keys = CursorOptions { keys_only: true, ..CursorOptions::prefix(b"2026-") };
/// assert_eq!(&keys.prefix[..], b"2026-");
/// ```
#[derive(Debug, Clone, Default)]
pub struct CursorOptions {
    /// Only keys that begin so. Default: all.
    pub prefix: Bytes,
    /// The snapshot to read. Default: the state when the cursor is created.
    pub snapshot: Option<Snapshot>,
    /// Keys alone: values are not read, and come empty. Default: no.
    pub keys_only: bool,
    /// How many keys will probably be read from where the cursor stands or is set to: so many are read, 1,024 and 128
    /// KiB at most at once, so that none is read without effect. Default: 0, not known; a few are read together at
    /// first, then more each time. A transaction's cursor begins anew when that writes to the store.
    pub expected_keys: usize,
}

impl CursorOptions {
    /// Only keys that begin with `prefix`.
    pub fn prefix(prefix: &[u8]) -> CursorOptions {
        CursorOptions { prefix: Bytes::copy_from_slice(prefix), ..CursorOptions::default() }
    }
}

/// The position of a cursor.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Gap {
    Begin,
    /// Just before this key, be it there or not.
    Before(Bytes),
    /// Just behind it.
    Behind(Bytes),
    End,
}

/// A merge of all sources, and the tree among them.
struct Merged {
    view: View<Box<dyn Source>>,
    tree: Arc<TreeState>,
}

/// Walks over the keys of a store; it stands between two of them, at first before all. What it sees does not change
/// until it is [refreshed](Self::refresh).
///
/// ```
/// use tanada_kv::CursorOptions;
///
/// # let folder = tempfile::tempdir().unwrap();
/// # tanada_kv::example::run(folder.path(), async |database, store| {
/// for key in [b"a", b"b", b"c"] {
///     store.put(key, b"value").await?;
/// }
/// let mut cursor = store.cursor(CursorOptions::default());
/// cursor.seek(b"b").await?;
/// assert_eq!(&cursor.next().await?.unwrap().0[..], b"b");
/// assert_eq!(&cursor.previous().await?.unwrap().0[..], b"b"); // back over the same key
/// assert_eq!(&cursor.previous().await?.unwrap().0[..], b"a");
/// # Ok(()) }).unwrap();
/// ```
pub struct Cursor {
    store: Store,
    prefix: Bytes,
    snapshot: Snapshot,
    /// Whether it sees another snapshot once it is refreshed: a transaction's does not.
    follows: bool,
    /// The writes of its transaction.
    own: Option<Arc<Memtable>>,
    /// Bytes of that when it was last looked at: they grow with each write.
    own_bytes: u64,
    gap: Gap,
    /// The merge, behind what was read ahead from the gap.
    merged: Option<Merged>,
    ahead: Ahead,
}

impl fmt::Debug for Cursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cursor").field("store", &self.store).field("gap", &self.gap).finish_non_exhaustive()
    }
}

/// The first key behind `key`.
fn successor(key: &[u8]) -> Vec<u8> {
    [key, b"\0"].concat()
}

impl Cursor {
    pub(crate) fn new(store: &Store, options: CursorOptions) -> Cursor {
        let CursorOptions { prefix, snapshot, keys_only, expected_keys } = options;
        let snapshot = snapshot.unwrap_or_else(|| store.core().shared.snapshots.take());
        Cursor {
            store: store.clone(),
            prefix,
            snapshot,
            follows: true,
            own: None,
            own_bytes: 0,
            gap: Gap::Begin,
            merged: None,
            ahead: Ahead::new(keys_only, expected_keys),
        }
    }

    /// A transaction's, over its snapshot and what it writes itself.
    pub(crate) fn within(
        store: &Store,
        options: CursorOptions,
        snapshot: Snapshot,
        own: Arc<Memtable>,
    ) -> Cursor {
        let options = CursorOptions { snapshot: Some(snapshot), ..options };
        Cursor { follows: false, own: Some(own), ..Cursor::new(store, options) }
    }

    /// Goes before the first key that is not smaller than `key`.
    ///
    /// # Errors
    /// `Corrupted`, `Device`; so for all methods.
    pub async fn seek(&mut self, key: &[u8]) -> Result<()> {
        self.leave();
        self.gap = match behind_prefix(&self.prefix) {
            _ if *key <= *self.prefix => Gap::Begin,
            Some(end) if *key >= *end => Gap::End,
            _ => Gap::Before(Bytes::copy_from_slice(key)),
        };
        self.store.core().shared.check_open()
    }

    /// Goes before all keys.
    pub fn seek_to_begin(&mut self) {
        self.leave();
        self.gap = Gap::Begin;
    }

    /// Goes behind the last key.
    ///
    /// ```
    /// use tanada_kv::CursorOptions;
    ///
    /// # let folder = tempfile::tempdir().unwrap();
    /// # tanada_kv::example::run(folder.path(), async |database, store| {
    /// store.put(b"last", b"value").await?;
    /// let mut cursor = store.cursor(CursorOptions::default());
    /// cursor.seek_to_end().await?;
    /// assert_eq!(&cursor.previous().await?.unwrap().0[..], b"last");
    /// # Ok(()) }).unwrap();
    /// ```
    ///
    /// # Errors
    /// See [`seek`](Self::seek).
    pub async fn seek_to_end(&mut self) -> Result<()> {
        self.leave();
        self.gap = Gap::End;
        self.store.core().shared.check_open()
    }

    /// The key behind the cursor, which goes over it; `None` at the end.
    ///
    /// # Errors
    /// See [`seek`](Self::seek).
    pub async fn next(&mut self) -> Result<Option<(Bytes, Bytes)>> {
        Ok(self.next_entry().await?.map(|entry| (entry.key, entry.value)))
    }

    /// The same, with the time at which it expires.
    pub(crate) async fn next_entry(&mut self) -> Result<Option<Entry>> {
        self.step(Direction::Forward).await
    }

    /// The key before the cursor, which goes over it; `None` at the beginning.
    ///
    /// # Errors
    /// See [`seek`](Self::seek).
    pub async fn previous(&mut self) -> Result<Option<(Bytes, Bytes)>> {
        let entry = self.step(Direction::Reverse).await?;
        Ok(entry.map(|entry| (entry.key, entry.value)))
    }

    /// Bytes of the values behind the cursor that do not expire, as they are stored, without reading them; no more are
    /// counted when they are more than `enough`.
    pub(crate) async fn value_bytes(&self, enough: u64) -> Result<u64> {
        let mut merged = self.build()?;
        merged.view.seek(Direction::Forward, self.bound(Direction::Forward).as_deref()).await?;
        let mut bytes = 0;
        while bytes <= enough && merged.view.step().await? {
            let Some(version) = merged.view.version().filter(|_| merged.view.key().starts_with(&self.prefix))
            else {
                break;
            };
            bytes += match &version.content {
                _ if version.expires_s.is_some() => 0,
                Content::Inline(value) => value.len() as u64,
                Content::At(pointer) => u64::from(pointer.stored_len),
                Content::Deleted => 0,
            };
        }
        Ok(bytes)
    }

    /// From here on it sees what is there now, and stays where it is. A transaction's cursor goes on to see the
    /// transaction's snapshot.
    ///
    /// ```
    /// use tanada_kv::CursorOptions;
    ///
    /// # let folder = tempfile::tempdir().unwrap();
    /// # tanada_kv::example::run(folder.path(), async |database, store| {
    /// let mut cursor = store.cursor(CursorOptions::default());
    /// store.put(b"key", b"value").await?;
    /// assert!(cursor.next().await?.is_none());
    /// cursor.refresh();
    /// assert!(cursor.previous().await?.is_some()); // before the end, where it stands
    /// # Ok(()) }).unwrap();
    /// ```
    pub fn refresh(&mut self) {
        if self.follows {
            self.snapshot = self.store.core().shared.snapshots.take();
        }
        self.leave();
    }

    /// Returns the bound of a walk: forward its first key, in reverse the key that it ends before.
    fn bound(&self, direction: Direction) -> Option<Vec<u8>> {
        match (&self.gap, direction) {
            (Gap::Before(key), _) => Some(key.to_vec()),
            (Gap::Behind(key), _) => Some(successor(key)),
            (Gap::Begin, _) => Some(self.prefix.to_vec()),
            (Gap::End, _) => behind_prefix(&self.prefix),
        }
    }

    async fn step(&mut self, direction: Direction) -> Result<Option<Entry>> {
        self.store.core().shared.check_open()?;
        self.store.state().check_there()?;
        let at_edge = match direction {
            Direction::Forward => self.gap == Gap::End,
            Direction::Reverse => self.gap == Gap::Begin,
        };
        if at_edge {
            return Ok(None);
        }
        // Later writes of the transaction are visible at once.
        let own_bytes = self.own.as_ref().map_or(0, |own| own.bytes());
        let has_written = own_bytes != self.own_bytes;
        if has_written {
            self.own_bytes = own_bytes;
            self.leave();
        }
        if self.merged.as_ref().is_some_and(|merged| merged.view.direction() != direction) {
            self.merged = None;
            self.ahead.turn();
        }
        if self.ahead.ready() == 0 && !self.ahead.is_end() {
            // A caller that writes at each step would waste all but one of the prefetched keys.
            let keys = if has_written { 1 } else { self.ahead.next_keys() };
            self.read_ahead(direction, keys).await?;
        }
        let Some(entry) = self.ahead.take() else {
            self.leave();
            self.gap = if direction == Direction::Forward { Gap::End } else { Gap::Begin };
            return Ok(None);
        };
        self.gap = match direction {
            Direction::Forward => Gap::Behind(entry.key.clone()),
            Direction::Reverse => Gap::Before(entry.key.clone()),
        };
        Ok(Some(entry))
    }

    /// Forgets the merge: the cursor goes elsewhere.
    fn leave(&mut self) {
        self.merged = None;
        self.ahead.clear();
    }

    /// Prefetches the next keys, if none are left.
    async fn read_ahead(&mut self, direction: Direction, mut keys: usize) -> Result<()> {
        loop {
            // If this fails or is dropped, the merge is rebuilt at the gap.
            let mut merged = match self.merged.take() {
                Some(merged) => merged,
                None => {
                    let bound = self.bound(direction);
                    let mut merged = self.build()?;
                    merged.view.seek(direction, bound.as_deref()).await?;
                    merged
                }
            };
            let segments = self.store.core().shared.opener.segments.clone();
            let owner = self.store.state().owner;
            let from = Origin { segments: &segments, owner, tree: &merged.tree };
            match self.ahead.fill(&mut merged.view, &self.prefix, &from, keys).await {
                Ok(scan) => {
                    self.merged = Some(merged);
                    self.store.core().reader.note_scan(self.store.state(), scan);
                    return Ok(());
                }
                // Keys before a failing one are returned before the error.
                Err(_) if keys > 1 => keys = 1,
                Err(error) => return Err(error),
            }
        }
    }

    /// The merge of all sources.
    fn build(&self) -> Result<Merged> {
        let core = self.store.core();
        let snapshot = self.store.sequence_of(&self.snapshot)?;
        let view = self.store.state().view.read().clone();
        // Asked for behind the tree: a load that this has was noted before.
        let unseen = core.shared.snapshots.unseen_at(snapshot);
        let tables = std::iter::once(&view.active).chain(&view.waiting);
        let mut tombstones = SeenTombstones::default();
        tombstones.add(self.store.state().tombstones.of(&view.tree), snapshot);
        let mut sources: Vec<Box<dyn Source>> = Vec::new();
        for table in tables {
            table.tombstone_sets().into_iter().for_each(|set| tombstones.add(set, snapshot));
            sources.push(Box::new(MemorySource::new(table.clone())));
        }
        sources.extend(view.tree.sources());
        let mut upper = snapshot;
        if let Some(own) = &self.own {
            // Later commits of others are filtered here, so that the merge may see everything else.
            upper = SequenceNo::MAX;
            own.tombstone_sets().into_iter().for_each(|set| tombstones.add(set, SequenceNo::MAX));
            let committed = sources.into_iter();
            sources = committed
                .map(|source| Box::new(Committed::new(source, snapshot)) as Box<dyn Source>)
                .collect();
            sources.insert(0, Box::new(MemorySource::new(own.clone())));
        }
        let now_s = core.shared.environment.wall_time_s();
        let visibility = Visibility { snapshot: upper, unseen, now_s, tombstones };
        Ok(Merged { view: View::new(sources, visibility), tree: view.tree })
    }
}
