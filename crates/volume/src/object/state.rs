//! What all handles of an object share, and what users may say about one.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use parking_lot::{Mutex, RwLock};

use crate::adopted::AdoptedFile;
use crate::chunk::table::ChunkTable;
use crate::metadata::{AttributeRecord, FileAttributes};
use crate::page::Pages;
use crate::statistics::{Counters, Streams};
use crate::transform::Compression;
use crate::waiting::Holds;
use crate::{Error, ErrorKind, Result};

/// Chunks that the metadata do not know of yet.
#[derive(Debug, Default)]
pub(crate) struct Fresh {
    /// By chunk: a number that no other entry ever had.
    pub(crate) entries: BTreeMap<u64, u64>,
    pub(crate) next: u64,
}

/// What all handles of an object share.
pub(crate) struct ObjectState {
    pub(crate) id: u64,
    pub(crate) name: RwLock<String>,
    pub(crate) adopted: Option<AdoptedFile>,
    pub(crate) size: AtomicU64,
    /// The size in the last record. Changed under the journal's lock.
    pub(crate) journaled_size: AtomicU64,
    pub(crate) tail_is_stale: AtomicBool,
    pub(crate) table: RwLock<ChunkTable>,
    pub(crate) holds: Arc<Holds>,
    /// One sync at a time: a hold on it is a turn.
    pub(crate) sync_turns: Arc<Holds>,
    pub(crate) fresh: Mutex<Fresh>,
    /// The last change that dropped a mirror, as long as that may not be durable, else 0. Homes change only after it
    /// is: otherwise a stop could bring back a mirror that differs from its home.
    pub(crate) dropped_mirrors: AtomicU64,
    /// A mirror was found damaged.
    pub(crate) has_distrusted: AtomicBool,
    /// Classes with writes that no sync has covered yet, a bit each.
    pub(crate) dirty_classes: AtomicU64,
    pub(crate) attributes: Mutex<AttributeRecord>,
    /// What a file system keeps of it.
    pub(crate) file: Mutex<Option<FileAttributes>>,
    /// Chunks that have a home.
    pub(crate) chunks: AtomicU64,
    pub(crate) counters: Counters,
    pub(crate) streams: Streams,
    pub(crate) is_deleted: AtomicBool,
    /// Its pages, if it has a transform, or had one: set once, under the journal's lock. The chunks, the size and the
    /// tail above are those of the stored space then.
    pub(crate) pages: OnceLock<Arc<Pages>>,
    pub(super) poisoned: Mutex<Option<Error>>,
    pub(super) is_poisoned: AtomicBool,
}

impl fmt::Debug for ObjectState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ObjectState").field("id", &self.id).field("name", &self.name).finish_non_exhaustive()
    }
}

impl ObjectState {
    pub(crate) fn new(id: u64, name: String, adopted: Option<AdoptedFile>) -> ObjectState {
        ObjectState {
            id,
            name: RwLock::new(name),
            adopted,
            size: AtomicU64::new(0),
            journaled_size: AtomicU64::new(0),
            tail_is_stale: AtomicBool::new(false),
            table: RwLock::default(),
            holds: Arc::default(),
            sync_turns: Arc::default(),
            fresh: Mutex::default(),
            dropped_mirrors: AtomicU64::new(0),
            has_distrusted: AtomicBool::new(false),
            dirty_classes: AtomicU64::new(0),
            attributes: Mutex::default(),
            file: Mutex::default(),
            chunks: AtomicU64::new(0),
            counters: Counters::default(),
            streams: Streams::default(),
            is_deleted: AtomicBool::new(false),
            pages: OnceLock::new(),
            poisoned: Mutex::new(None),
            is_poisoned: AtomicBool::new(false),
        }
    }

    /// The size now.
    pub(crate) fn size(&self) -> u64 {
        self.size.load(Ordering::SeqCst)
    }

    /// No write or sync of this object succeeds any more.
    pub(crate) fn poison(&self, why: &Error) {
        let mut poisoned = self.poisoned.lock();
        if poisoned.is_none() {
            let message = format!(
                "object {:?} takes no more writes, because an earlier write or sync failed ({why}): open the volume anew",
                self.name.read()
            );
            *poisoned = Some(Error::new(ErrorKind::Poisoned, message));
        }
        self.is_poisoned.store(true, Ordering::SeqCst);
    }

    pub(crate) fn check_not_poisoned(&self) -> Result<()> {
        if self.is_poisoned.load(Ordering::SeqCst)
            && let Some(error) = &*self.poisoned.lock()
        {
            return Err(error.clone());
        }
        Ok(())
    }

    pub(crate) fn is_poisoned(&self) -> bool {
        self.is_poisoned.load(Ordering::SeqCst)
    }

    pub(crate) fn check_there(&self) -> Result<()> {
        if self.is_deleted.load(Ordering::SeqCst) {
            return Err(Error::new(
                ErrorKind::NotFound,
                format!("object {:?} was deleted", self.name.read()),
            ));
        }
        Ok(())
    }
}

/// What a user may say about an object.
///
/// ```
/// use tanada_volume::{Attributes, Compression};
///
/// # let folder = tempfile::tempdir().unwrap();
/// # tanada_volume::example::run(folder.path(), async |volume| {
/// let packed = Attributes { compression: Compression::Zstd(3), ..Attributes::default() };
/// let object = volume.create_object("a", &packed)?;
/// object.write_bytes(0, &vec![b'x'; 1 << 20]).await?;
/// object.sync().await?;
/// assert_eq!(object.size_bytes(), 1 << 20);
/// # Ok(()) }).unwrap();
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Attributes {
    /// The class where new chunks go if there is room; by default the slowest.
    pub class: Option<String>,
    /// The class where chunks have to lie: new ones go nowhere else, and none is moved or mirrored away.
    pub pin: Option<String>,
    /// Most bytes of chunks that the object may take up, mirrors not counted.
    pub quota_bytes: Option<u64>,
    /// How new pages are compressed.
    pub compression: Compression,
    /// Bytes of a page: a power of two from 4 to 64 KiB, by default 16 KiB. It is fixed when the object gets its first
    /// transform; said of an object without one it gives it pages.
    pub page_bytes: Option<u32>,
    /// The identifier of the key under which new pages are encrypted, with AES-256 in XTS mode.
    pub encryption: Option<u16>,
}
