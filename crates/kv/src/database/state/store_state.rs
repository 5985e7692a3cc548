//! What all parts of an open database know of a store: its memtables, its tree, and what was noted about its use.

use crate::tuning::space::MEMORY;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};

use parking_lot::{Mutex, RwLock};

use crate::cache::Owner;
use crate::database::background::Background;
use crate::database::live::LiveStoreSettings;
use crate::database::state::cleaning::Cleaning;
use crate::database::state::promotion::Promotion;
use crate::database::state::remirroring::Remirroring;
use crate::database::state::taken::Taken;
use crate::database::state::task_states::TaskStates;
use crate::database::state::unsettled::Unsettled;
use crate::entry::{SequenceNo, expiry};
use crate::environment::Environment;
use crate::keyfile::KeyHash;
use crate::log::frame::StoreNo;
use crate::memory::Memtable;
use crate::settings::{FilterMemory, StoreSettings};
use crate::tree::heat::HotKeys;
use crate::tree::policy::MediaPolicy;
use crate::tree::reorder::ScanWaste;
use crate::tree::{TreeState, TreeTombstones};
use crate::{Error, ErrorKind, Result};

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

/// Creates the read counters of a store with these settings.
fn hot_keys(settings: &StoreSettings) -> usize {
    if settings.promoted_bytes_per_second > 0 { MEMORY.max_hot_keys } else { 0 }
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
    /// Write stall of the store; see [`crate::database::commit::write_stall`].
    pub(crate) pressure: AtomicU8,
    /// One job of its tree at a time, but for merges at the root.
    pub(crate) has_job: AtomicBool,
    pub(crate) taken: Mutex<Taken>,
    pub(crate) unsettled: Unsettled,
    /// Keys that are read often from slow classes.
    pub(crate) hot: HotKeys,
    pub(crate) promotion: Promotion,
    /// Reads of slow classes while the fastest one has space.
    pub(crate) unmirrored: Remirroring,
    /// State of tombstone compactions.
    pub(crate) cleaning: Cleaning,
    /// Waste of scans that read values in small pieces.
    pub(crate) scattered: ScanWaste,
    /// What one kind of maintenance alone has to know.
    pub(crate) tasks: TaskStates,
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
            hot: HotKeys::new(hot_keys(settings)),
            promotion: Promotion::default(),
            unmirrored: Remirroring::default(),
            cleaning: Cleaning::default(),
            scattered: ScanWaste::default(),
            tasks: TaskStates::default(),
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

    /// Takes the filters that are to stay in memory there, as far as there is space.
    pub(crate) async fn hold_filters(&self, background: &Background) {
        let filters = self.settings().filters;
        if filters != FilterMemory::Paged {
            let tree = self.view.read().tree.clone();
            for kvset in tree.kvsets() {
                if background.is_stopping() {
                    return;
                }
                kvset.hold_filter(filters).await;
            }
        }
    }

    pub(crate) fn check_there(&self) -> Result<()> {
        if self.is_dropped.load(Ordering::Acquire) {
            return Err(Error::new(ErrorKind::NotFound, format!("store {:?} was dropped", self.name)));
        }
        Ok(())
    }

    /// Returns the expiry of an entry written now, by the settings.
    pub(crate) fn default_expiry(&self, environment: &dyn Environment) -> Option<u32> {
        let time_to_live_s = self.live.time_to_live_s()?;
        expiry(environment.wall_time_s(), time_to_live_s)
    }
}
