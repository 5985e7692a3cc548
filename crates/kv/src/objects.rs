//! The objects of a database: names, numbers, and what is to be deleted.
//!
//! Invariants:
//! - a number is never given twice, be it to a key file or to a segment;
//! - whatever is read through has a [`Lease`] on its object; when the last lease of an object that was *retired* is
//!   gone, its number is to be deleted. An object that was not retired is left alone, so that closing a database
//!   deletes nothing;
//! - what a job or a load writes is a *draft*, retired from the beginning: whenever whoever writes gives up, its leases
//!   go, and so does it. It is kept from the moment on in which a manifest record that names it is durable.
//!
//! Retire an object when the manifest record that drops it is durable, not before: after a stop the manifest decides
//! what is referenced.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use parking_lot::Mutex;
use tanada_io::BufferPool;
use tanada_volume::{Attributes, ClassInfo, Object, Volume};

use crate::written::{Purpose, Written, WrittenBytes};
use crate::{Error, ErrorKind, Result};

/// The number of a database's first object.
pub(crate) const FIRST_OBJECT: u64 = 1;

/// The kind of an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum ObjectKind {
    Manifest,
    /// Log segments and value segments.
    Segment,
    Keys,
}

impl ObjectKind {
    fn prefix(self) -> &'static str {
        match self {
            ObjectKind::Manifest => "manifest",
            ObjectKind::Segment => "segment",
            ObjectKind::Keys => "keys",
        }
    }
}

/// Which class an object goes to instead of the one that is wanted, if it is not that one.
type Steward = Box<dyn Fn(&str) -> Option<String> + Send + Sync>;

/// Makes, finds and deletes the objects of one database.
pub(crate) struct Objects {
    volume: Volume,
    database: String,
    next: AtomicU64,
    buffers: Arc<BufferPool>,
    retired: Mutex<Vec<(ObjectKind, u64)>>,
    /// The database is closed: numbers are another opening's to give.
    takes_none: AtomicBool,
    steward: OnceLock<Steward>,
    written: Written,
    /// Bytes of the volume that are to stay free, and those of them that jobs leave to the log.
    kept_free: AtomicU64,
    kept_for_log: AtomicU64,
    /// Memtables that have something in them: each takes a chunk at least when it is flushed.
    tables: AtomicU64,
    /// Fewer chunks were free at the last check.
    is_short: AtomicBool,
    /// Bytes that the database may have on the fastest class beyond those that it has, when that was looked at last.
    left_on_fastest: AtomicU64,
}

impl fmt::Debug for Objects {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Objects").field("database", &self.database).finish_non_exhaustive()
    }
}

impl Objects {
    /// `next` is larger than every number in use.
    pub(crate) fn new(volume: Volume, database: &str, next: u64, buffers: Arc<BufferPool>) -> Arc<Objects> {
        let (database, next) = (database.to_owned(), AtomicU64::new(next));
        let (retired, takes_none) = (Mutex::default(), AtomicBool::new(false));
        let (steward, written) = (OnceLock::new(), Written::default());
        let (kept_free, kept_for_log, tables) = Default::default();
        Arc::new(Objects {
            volume,
            database,
            next,
            buffers,
            retired,
            takes_none,
            steward,
            written,
            kept_free,
            kept_for_log,
            tables,
            is_short: AtomicBool::new(false),
            left_on_fastest: AtomicU64::new(u64::MAX),
        })
    }

    /// Sets how many bytes of the volume stay reserved, how many of them for the log alone, and how much each memtable
    /// takes.
    pub(crate) fn keep_free(&self, bytes: u64, for_log: u64, tables: u64) {
        self.kept_free.store(bytes, Ordering::Relaxed);
        self.kept_for_log.store(for_log, Ordering::Relaxed);
        self.tables.store(tables, Ordering::Relaxed);
        self.look_at_room();
    }

    /// Counts one more memtable with data.
    pub(crate) fn note_table(&self) {
        self.tables.fetch_add(1, Ordering::Relaxed);
        self.look_at_room();
    }

    /// The bytes that are free, and those that are to be; notes whether they are fewer.
    pub(crate) fn look_at_room(&self) -> (u64, u64) {
        let (free, kept) = self.room();
        self.is_short.store(free < kept, Ordering::Relaxed);
        (free, kept)
    }

    /// The bytes that are free, and those that are to be.
    pub(crate) fn room(&self) -> (u64, u64) {
        let free = self.free_by_class().into_iter().map(|(free, _)| free).sum();
        // The key file of the first one is counted already.
        let tables = self.tables.load(Ordering::Relaxed).saturating_sub(1) * self.volume.chunk_bytes();
        (free, self.kept_free.load(Ordering::Relaxed) + tables)
    }

    /// Returns for each class that takes objects, fastest first, the bytes that the database may still use there, and
    /// all its bytes.
    pub(crate) fn free_by_class(&self) -> Vec<(u64, u64)> {
        let chunk_bytes = self.volume.chunk_bytes();
        let mut classes = self.volume.classes();
        classes.retain(|class| !class.is_draining && !class.is_failed);
        let free = |class: &ClassInfo| class.free() * chunk_bytes;
        let mut free: Vec<_> =
            classes.iter().map(|class| (free(class), class.chunks * chunk_bytes)).collect();
        // The only one takes all there is.
        if let [(of_fastest, _), _, ..] = &mut free[..] {
            *of_fastest = (*of_fastest).min(self.left_on_fastest.load(Ordering::Relaxed));
        }
        free
    }

    /// Notes how much more the database may have on the fastest class of several.
    pub(crate) fn note_left_on_fastest(&self, bytes: Option<u64>) {
        self.left_on_fastest.store(bytes.unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    /// Returns whether there is space for this many bytes, which may give others only much later, beside what the log
    /// wants.
    pub(crate) fn have_room_for(&self, bytes: u64) -> bool {
        let (free, _) = self.look_at_room();
        free >= self.kept_for_log.load(Ordering::Relaxed) + bytes
    }

    /// Returns whether there is space for keys, which give others as soon as they are there: half of what the log wants
    /// stays, in whole chunks.
    pub(crate) fn have_room_for_keys(&self) -> bool {
        let (free, _) = self.look_at_room();
        let chunk_bytes = self.volume.chunk_bytes();
        free >= self.kept_for_log.load(Ordering::Relaxed) / 2 / chunk_bytes * chunk_bytes
    }

    /// Returns whether hardly more is free than what the log wants.
    pub(crate) fn have_hardly_room(&self) -> bool {
        let (free, _) = self.room();
        free <= self.kept_for_log.load(Ordering::Relaxed)
    }

    /// Returns whether less was free than is to be when that was looked at.
    pub(crate) fn is_short(&self) -> bool {
        self.is_short.load(Ordering::Relaxed)
    }

    /// Notes that a closer check found enough space until more objects are made.
    pub(crate) fn has_looked(&self) {
        self.is_short.store(false, Ordering::Relaxed);
    }

    pub(crate) fn volume(&self) -> &Volume {
        &self.volume
    }

    pub(crate) fn buffers(&self) -> &Arc<BufferPool> {
        &self.buffers
    }

    /// Notes that this many bytes of an object were written, from there on.
    pub(crate) fn note_written(&self, purpose: Purpose, object: &Object, from: u64, bytes: u64) {
        self.written.note(&self.volume, purpose, object, from, bytes);
    }

    /// Bytes that were written, by class.
    pub(crate) fn written(&self) -> BTreeMap<String, WrittenBytes> {
        self.written.by_class()
    }

    /// The name of an object.
    pub(crate) fn name(&self, kind: ObjectKind, no: u64) -> String {
        format!("kv/{}/{}-{no}", self.database, kind.prefix())
    }

    /// Lists all objects by kind and number.
    pub(crate) fn list(&self) -> Vec<(ObjectKind, u64)> {
        let folder = format!("kv/{}/", self.database);
        let named = |object: Object| {
            let name = object.name();
            let (prefix, no) = name.strip_prefix(&folder)?.rsplit_once('-')?;
            let kinds = [ObjectKind::Manifest, ObjectKind::Segment, ObjectKind::Keys];
            let kind = kinds.into_iter().find(|kind| kind.prefix() == prefix)?;
            Some((kind, no.parse().ok()?))
        };
        self.volume.objects().into_iter().filter_map(named).collect()
    }

    /// A number that was never given.
    pub(crate) fn draw(&self) -> u64 {
        self.next.fetch_add(1, Ordering::Relaxed)
    }

    /// A number that is larger than all that were given.
    pub(crate) fn next(&self) -> u64 {
        self.next.load(Ordering::Relaxed)
    }

    /// Has each new object's class asked for. To be called once.
    pub(crate) fn ask(&self, steward: impl Fn(&str) -> Option<String> + Send + Sync + 'static) {
        let _ = self.steward.set(Box::new(steward));
    }

    /// Refuses new objects from now on.
    pub(crate) fn refuse_new(&self) {
        self.takes_none.store(true, Ordering::Release);
    }

    /// Makes an object with a number of its own, on `class` if there is space.
    ///
    /// # Errors
    /// `ReadOnly`, `Closed`.
    pub(crate) fn create(self: &Arc<Self>, kind: ObjectKind, class: Option<&str>) -> Result<(Lease, Object)> {
        if self.takes_none.load(Ordering::Acquire) {
            return Err(Error::new(ErrorKind::Closed, "the database is closed"));
        }
        let no = self.draw();
        let name = self.name(kind, no);
        let instead = class.and_then(|class| self.steward.get()?(class));
        let class = instead.or(class.map(str::to_owned));
        let attributes = Attributes { class, ..Attributes::default() };
        let object = match self.volume.create_object(&name, &attributes) {
            // The class was removed a moment ago: whichever has space takes it.
            Err(error) if error.kind() == tanada_volume::ErrorKind::NotFound => {
                self.volume.create_object(&name, &Attributes::default())
            }
            made => made,
        };
        let object = object.map_err(|error| Error::volume(format!("cannot make object {name:?}"), &error))?;
        self.look_at_room();
        Ok((self.lease(kind, no), object))
    }

    /// The same, deleted when its last lease goes, unless it is [kept](Lease::keep) before.
    ///
    /// # Errors
    /// As [`create`](Self::create).
    pub(crate) fn draft(self: &Arc<Self>, kind: ObjectKind, class: Option<&str>) -> Result<(Lease, Object)> {
        let (lease, object) = self.create(kind, class)?;
        lease.retire();
        Ok((lease, object))
    }

    /// Opens an object that is there.
    ///
    /// # Errors
    /// `NotFound`.
    pub(crate) fn open(self: &Arc<Self>, kind: ObjectKind, no: u64) -> Result<(Lease, Object)> {
        let name = self.name(kind, no);
        let object = self.volume.open_object(&name);
        let object = object.map_err(|error| Error::volume(format!("cannot open object {name:?}"), &error))?;
        Ok((self.lease(kind, no), object))
    }

    /// The object itself, if it is there; whoever asks makes sure that it is not deleted meanwhile, or does not mind.
    pub(crate) fn find(&self, kind: ObjectKind, no: u64) -> Option<Object> {
        self.volume.open_object(&self.name(kind, no)).ok()
    }

    fn lease(self: &Arc<Self>, kind: ObjectKind, no: u64) -> Lease {
        let held = Held { objects: self.clone(), kind, no, is_retired: AtomicBool::new(false) };
        Lease { held: Arc::new(held) }
    }

    /// A retired object that nobody reads any more; each is given once, unless it is given back.
    pub(crate) fn take_retired(&self) -> Option<(ObjectKind, u64)> {
        self.retired.lock().pop()
    }

    /// Returns an object whose deletion failed, to be taken again.
    pub(crate) fn give_back_retired(&self, kind: ObjectKind, no: u64) {
        self.retired.lock().push((kind, no));
    }

    /// Deletes drafts at once, for somebody wants their room; those that cannot be deleted now are retired.
    pub(crate) async fn delete_drafts(&self, drafts: &[Lease]) {
        drafts.iter().for_each(Lease::retire);
        for lease in drafts {
            if self.delete(lease.kind(), lease.no()).await.is_ok() {
                lease.keep();
            }
        }
    }

    /// Deletes an object; one that is not there is as good as deleted.
    ///
    /// # Errors
    /// `ReadOnly`.
    pub(crate) async fn delete(&self, kind: ObjectKind, no: u64) -> Result<()> {
        let name = self.name(kind, no);
        match self.volume.delete(&name).await {
            Err(error) if error.kind() != tanada_volume::ErrorKind::NotFound => {
                Err(Error::volume(format!("cannot delete object {name:?}"), &error))
            }
            _ => Ok(()),
        }
    }
}

#[derive(Debug)]
struct Held {
    objects: Arc<Objects>,
    kind: ObjectKind,
    no: u64,
    is_retired: AtomicBool,
}

impl Drop for Held {
    fn drop(&mut self) {
        if self.is_retired.load(Ordering::Acquire) {
            self.objects.retired.lock().push((self.kind, self.no));
        }
    }
}

/// Keeps an object from being deleted. Cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct Lease {
    held: Arc<Held>,
}

impl Lease {
    pub(crate) fn no(&self) -> u64 {
        self.held.no
    }

    pub(crate) fn kind(&self) -> ObjectKind {
        self.held.kind
    }

    /// Not to be deleted when the last lease is gone: a record of the manifest names it.
    pub(crate) fn keep(&self) {
        self.held.is_retired.store(false, Ordering::Release);
    }

    /// To be deleted when the last lease is gone.
    pub(crate) fn retire(&self) {
        self.held.is_retired.store(true, Ordering::Release);
    }
}
