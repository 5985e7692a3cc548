//! A store: what its handles share, and what users call.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};

use bytes::Bytes;
use parking_lot::{Mutex, RwLock};

use super::batch::{Batch, behind_prefix, expiry};
use super::core::{Check, Core, OpenTransaction};
use super::live::LiveStoreSettings;
use super::low_space::Thinned;
use super::merges::Taken;
use super::packing::Kept;
use super::promotion::Promotion;
use super::relocation::Unsettled;
use super::remirroring::Remirroring;
use super::snapshot::Snapshot;
use super::tombstones::Cleaning;
use crate::cache::Owner;
use crate::entry::SequenceNo;
use crate::keyfile::KeyHash;
use crate::log::frame::{OperationKind, StoreNo};
use crate::memory::Memtable;
use crate::settings::{StoreSettings, WriteOptions};
use crate::transaction::{Cursor, CursorOptions};
use crate::tree::heat::HotKeys;
use crate::tree::policy::MediaPolicy;
use crate::tree::reorder::ScanWaste;
use crate::tree::{TreeState, TreeTombstones};
use crate::{Error, ErrorKind, Result, StoreOverrides};

/// The sources of a store's versions, from newest to oldest.
#[derive(Debug, Clone)]
pub(crate) struct View {
    /// Written to.
    pub(crate) active: Arc<Memtable>,
    /// Full, newest first; each is flushed, oldest first.
    pub(crate) waiting: Vec<Arc<Memtable>>,
    pub(crate) tree: Arc<TreeState>,
    /// Lookups at earlier numbers do not bound what is newest: a delete may have been dropped along with what it hid,
    /// or a bulk load brought versions with an earlier number.
    pub(crate) known_since: SequenceNo,
}

/// Attempts of an update before it becomes a transaction.
const MAX_UPDATE_ATTEMPTS: u64 = 3;

/// Most keys whose reads are counted.
const MAX_HOT_KEYS: usize = 1 << 16;

/// Creates the read counters of a store with these settings.
fn hot_keys(settings: &StoreSettings) -> usize {
    if settings.promoted_bytes_per_second > 0 { MAX_HOT_KEYS } else { 0 }
}

/// State that all handles of a store share.
#[derive(Debug)]
pub(crate) struct StoreState {
    /// Which of the databases that this process has opened is its own.
    pub(crate) database: u64,
    pub(crate) no: StoreNo,
    pub(crate) name: String,
    /// Changed under the manifest's lock alone.
    pub(crate) live: LiveStoreSettings,
    /// Changed under the commit lock alone, as far as the memtables go.
    pub(crate) view: RwLock<View>,
    /// Write stall of the store; see [`super::write_stall`].
    pub(crate) pressure: AtomicU8,
    /// One job of its tree at a time, but for merges at the root.
    pub(crate) has_job: AtomicBool,
    pub(crate) taken: Mutex<Taken>,
    pub(crate) unsettled: Unsettled,
    /// Visible share of the last flushed memtable.
    pub(crate) kept: Kept,
    /// Keys that are read often from slow classes.
    pub(crate) hot: HotKeys,
    pub(crate) promotion: Promotion,
    /// Reads of slow classes while the fastest one has space.
    pub(crate) unmirrored: Remirroring,
    /// State of tombstone compactions.
    pub(crate) cleaning: Cleaning,
    /// Waste of scans that read values in small pieces.
    pub(crate) scattered: ScanWaste,
    /// Leaves that were merged with what the root hides of them.
    pub(crate) thinned: Mutex<Thinned>,
    pub(crate) tombstones: TreeTombstones,
    /// Owner of the store's values in the cache.
    pub(crate) owner: Owner,
    /// The largest sequence number that left the memtables.
    pub(crate) flushed_sequence: AtomicU64,
    pub(crate) is_dropped: AtomicBool,
}

impl StoreState {
    pub(crate) fn new(
        database: u64,
        no: StoreNo,
        name: &str,
        settings: &StoreSettings,
        (active, tree): (Memtable, TreeState),
        owner: Owner,
    ) -> Arc<StoreState> {
        let view =
            View { active: Arc::new(active), waiting: Vec::new(), tree: Arc::new(tree), known_since: 0 };
        Arc::new(StoreState {
            database,
            no,
            name: name.to_owned(),
            live: LiveStoreSettings::new(settings),
            view: RwLock::new(view),
            pressure: AtomicU8::new(0),
            has_job: AtomicBool::new(false),
            taken: Mutex::default(),
            unsettled: Unsettled::default(),
            kept: Kept::default(),
            hot: HotKeys::new(hot_keys(settings)),
            promotion: Promotion::default(),
            unmirrored: Remirroring::default(),
            cleaning: Cleaning::default(),
            scattered: ScanWaste::default(),
            thinned: Mutex::default(),
            tombstones: TreeTombstones::default(),
            owner,
            flushed_sequence: AtomicU64::new(0),
            is_dropped: AtomicBool::new(false),
        })
    }

    /// Returns whether anything was done to a key from `start` to `end` after `since`; also if that is not known any
    /// more.
    pub(crate) fn may_have_changed(&self, start: &[u8], end: Option<&[u8]>, since: SequenceNo) -> bool {
        let view = self.view.read();
        self.flushed_sequence.load(Ordering::Acquire) > since
            || view.active.changed_in(start, end, since)
            || view.waiting.iter().any(|table| table.changed_in(start, end, since))
    }

    /// Returns whether anything was done to a key after `since`; also if that is not known any more.
    pub(crate) fn key_may_have_changed(&self, key: &[u8], since: SequenceNo) -> bool {
        let hash = KeyHash::of(key);
        let view = self.view.read();
        self.flushed_sequence.load(Ordering::Acquire) > since
            || std::iter::once(&view.active)
                .chain(&view.waiting)
                .any(|table| table.has_newer(key, hash, since))
    }

    /// Bytes in its memtables that wait to be flushed.
    pub(crate) fn waiting_bytes(&self) -> u64 {
        self.view.read().waiting.iter().map(|table| table.bytes()).sum()
    }

    /// Bytes in its memtables.
    pub(crate) fn table_bytes(&self) -> u64 {
        let view = self.view.read();
        view.active.bytes() + view.waiting.iter().map(|table| table.bytes()).sum::<u64>()
    }

    /// Versions in its memtables.
    pub(crate) fn logged_versions(&self) -> u64 {
        self.in_tables(Memtable::versions)
    }

    /// Bytes of the keys and values of those.
    pub(crate) fn logged_bytes(&self) -> u64 {
        self.in_tables(Memtable::data_bytes)
    }

    fn in_tables(&self, amount: impl Fn(&Memtable) -> u64) -> u64 {
        let view = self.view.read();
        amount(&view.active) + view.waiting.iter().map(|table| amount(table)).sum::<u64>()
    }

    /// Its settings as they are now.
    pub(crate) fn settings(&self) -> Arc<StoreSettings> {
        self.live.now()
    }

    /// Which classes keys and values go to now.
    pub(crate) fn policy(&self) -> MediaPolicy {
        self.settings().policy.clone()
    }

    pub(crate) fn set_settings(&self, settings: &StoreSettings) {
        self.live.set(settings);
        self.hot.count_up_to(hot_keys(settings));
    }

    pub(crate) fn check_there(&self) -> Result<()> {
        if self.is_dropped.load(Ordering::Acquire) {
            return Err(Error::new(ErrorKind::NotFound, format!("store {:?} was dropped", self.name)));
        }
        Ok(())
    }

    /// Returns the expiry of an entry written now, by the settings.
    pub(crate) fn default_expiry(&self, core: &Core) -> Option<u32> {
        let time_to_live_s = self.live.time_to_live_s()?;
        expiry(core.environment.wall_time_s(), time_to_live_s)
    }
}

/// A handle of a store. Cheap to clone.
#[derive(Clone)]
pub struct Store {
    core: Arc<Core>,
    state: Arc<StoreState>,
}

impl fmt::Debug for Store {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Store").field("name", &self.state.name).finish_non_exhaustive()
    }
}

impl Store {
    pub(crate) fn new(core: Arc<Core>, state: Arc<StoreState>) -> Store {
        Store { core, state }
    }

    pub(crate) fn core(&self) -> &Arc<Core> {
        &self.core
    }

    pub(crate) fn state(&self) -> &Arc<StoreState> {
        &self.state
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.state.name
    }

    /// Its settings as they are now.
    pub fn settings(&self) -> StoreSettings {
        (*self.state.settings()).clone()
    }

    /// Changes settings, for good and while the store is in use; what is not named stays. Entries that are written and
    /// files that are made from now on follow them; jobs bring what is there to what limits and policies say, beside
    /// other work, and [`compact`](Self::compact) does so at once.
    ///
    /// # Errors
    /// `InvalidInput`, or `NotFound` if a policy names a class that the volume has not; then nothing is changed.
    /// `ReadOnly`, `Device`.
    pub async fn set_settings(&self, changes: &StoreOverrides) -> Result<()> {
        self.core.set_store_settings(&self.state, changes).await
    }

    /// Changes which classes keys and values go to, for good. What is written from now on goes where the policy says;
    /// what lies elsewhere is moved beside other work, as long as the fastest class has space to spare, and by
    /// [`compact`](Self::compact) at once.
    ///
    /// # Errors
    /// `NotFound` if it names a class that the volume has not; `InvalidInput` if its `root.values` is not the log's
    /// class; `ReadOnly`, `Device`.
    pub async fn set_policy(&self, policy: &MediaPolicy) -> Result<()> {
        let changes = StoreOverrides { policy: Some(policy.clone()), ..StoreOverrides::default() };
        self.set_settings(&changes).await
    }

    /// Writes a key as the settings say.
    ///
    /// # Errors
    /// As [`Database::write`](crate::Database::write).
    pub async fn put(&self, key: &[u8], value: &[u8]) -> Result<()> {
        self.put_with(key, value, &WriteOptions::default()).await
    }

    /// Writes a key.
    ///
    /// # Errors
    /// As [`Database::write`](crate::Database::write).
    pub async fn put_with(&self, key: &[u8], value: &[u8], options: &WriteOptions) -> Result<()> {
        let mut batch = Batch::for_one(key, value);
        batch.put(self, key, value);
        self.core.write(batch, options).await
    }

    /// The value of a key.
    ///
    /// # Errors
    /// `Corrupted`, `Device`.
    pub async fn get(&self, key: &[u8]) -> Result<Option<Bytes>> {
        self.core.get(&self.state, key, None).await
    }

    /// The value that a key had.
    ///
    /// # Errors
    /// As [`get`](Self::get); `InvalidInput` if the snapshot is another database's.
    pub async fn get_at(&self, snapshot: &Snapshot, key: &[u8]) -> Result<Option<Bytes>> {
        let sequence = self.sequence_of(snapshot)?;
        self.core.get(&self.state, key, Some(sequence)).await
    }

    pub(crate) fn sequence_of(&self, snapshot: &Snapshot) -> Result<SequenceNo> {
        if !snapshot.is_of(&self.core.snapshots) {
            return Err(Error::invalid("the snapshot is of another database, or of an earlier opening"));
        }
        Ok(snapshot.sequence())
    }

    /// Deletes a key.
    ///
    /// # Errors
    /// As [`Database::write`](crate::Database::write).
    pub async fn delete(&self, key: &[u8]) -> Result<()> {
        self.delete_with(key, &WriteOptions::default()).await
    }

    /// Deletes a key.
    ///
    /// # Errors
    /// As [`Database::write`](crate::Database::write).
    pub async fn delete_with(&self, key: &[u8], options: &WriteOptions) -> Result<()> {
        let mut batch = Batch::for_one(key, b"");
        batch.delete(self, key);
        self.core.write(batch, options).await
    }

    /// Deletes all keys that begin with `prefix`, in time that does not depend on how many they are.
    ///
    /// # Errors
    /// As [`Database::write`](crate::Database::write).
    pub async fn delete_prefix(&self, prefix: &[u8]) -> Result<()> {
        self.delete_range(prefix, behind_prefix(prefix).as_deref()).await
    }

    /// Deletes the keys from `start` on that are smaller than `end`; all from `start` on without an end. In time that
    /// does not depend on how many they are.
    ///
    /// # Errors
    /// As [`Database::write`](crate::Database::write).
    pub async fn delete_range(&self, start: &[u8], end: Option<&[u8]>) -> Result<()> {
        let mut batch = Batch::new();
        batch.delete_range(self, start, end);
        self.core.write(batch, &WriteOptions::default()).await
    }

    /// Reads, changes and writes a key, so that no other write to it comes between; `change` may be called more than
    /// once. `None` deletes. What was written.
    ///
    /// # Errors
    /// As [`get`](Self::get) and [`Database::write`](crate::Database::write).
    pub async fn update(
        &self,
        key: &[u8],
        change: impl Fn(Option<&Bytes>) -> Option<Bytes>,
        options: &WriteOptions,
    ) -> Result<Option<Bytes>> {
        let mut tries = 0;
        loop {
            // Writes of others are noted for a transaction, also across flushes.
            let open = (tries >= MAX_UPDATE_ATTEMPTS).then(|| self.core.open_transaction());
            let at = open.as_ref().map(OpenTransaction::sequence);
            let (old, read_at) = self.core.get_with_number(&self.state, key, at).await?;
            let new = change(old.as_ref());
            let mut batch = Batch::for_one(key, new.as_deref().unwrap_or_default());
            match &new {
                Some(value) => batch.put(self, key, value),
                None => batch.add(&self.state, OperationKind::Delete, key, b"", None),
            }
            let check =
                open.as_ref().map_or(Check::Unchanged(read_at), |open| Check::Transaction(open, None));
            match self.core.commit(batch, options, Some(check)).await {
                // Another writer was faster; or a flush came between, and it is not known whether one was.
                Err(error) if error.kind() == ErrorKind::Conflict => tries += 1,
                Err(error) => return Err(error),
                Ok(()) => return Ok(new),
            }
        }
    }

    /// Writes out what is in memory, and does all jobs of the tree, those included that could wait: afterwards a key is
    /// in one place. What is written meanwhile is not waited for. If the future is dropped, what it has done stays
    /// done, and what the job under way has written is deleted soon.
    ///
    /// # Errors
    /// `NoSpace`, `Corrupted`, `Device`; `NotFound` if the store is dropped.
    pub async fn compact(&self) -> Result<()> {
        self.core.compact(&self.state).await
    }

    /// A cursor before the first key.
    pub fn cursor(&self, options: CursorOptions) -> Cursor {
        Cursor::new(self, options)
    }
}
