//! Reads values, from log segments and from value segments alike.

use std::collections::HashMap;
use std::fmt;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};

use bytes::Bytes;
use parking_lot::{Mutex, RwLock};
use tanada_io::BufferPool;
use tanada_volume::{BLOCK_BYTES, Object};

use super::codec::decompress;
use super::header;
use super::read_limiter::ReadLimiter;
use super::replicas::ReplicaSelector;
use crate::cache::{Cache, VersionId};
use crate::entry::{Pointer, SegmentNo};
use crate::environment::Environment;
use crate::keyfile::{read_blocks, read_needed};
use crate::objects::{Lease, ObjectKind, Objects};
use crate::{Error, Result};

/// A segment that values are read from. Cheap to clone; as long as there is one, the segment is not deleted.
#[derive(Clone)]
pub(crate) struct Segment {
    shared: Arc<Shared>,
}

struct Shared {
    no: SegmentNo,
    object: Object,
    lease: Lease,
    cache: Arc<Cache>,
    buffers: Arc<BufferPool>,
    replicas: Arc<ReplicaSelector>,
    /// Rate limiter of its class.
    limiter: Option<Arc<ReadLimiter>>,
    /// It is a value segment whose header is not verified yet.
    is_unverified: AtomicBool,
}

impl fmt::Debug for Segment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Segment").field("no", &self.shared.no).finish_non_exhaustive()
    }
}

impl Segment {
    pub(crate) fn no(&self) -> SegmentNo {
        self.shared.no
    }

    /// Returns the replica selector of the database.
    pub(crate) fn replicas(&self) -> &ReplicaSelector {
        &self.shared.replicas
    }

    /// To be deleted when nobody reads it any more; see [`crate::objects`].
    pub(crate) fn retire(&self) {
        self.shared.lease.retire();
    }

    /// The value of `id` that `pointer` leads to, through the cache, and whether this call went to the segment's
    /// device. What the cache does not have is taken from `mirror`, if that has it.
    ///
    /// # Errors
    /// `Corrupted` if what is there is not what was written, or if a device fails.
    pub(crate) async fn read_by<F: Future<Output = Option<Bytes>>>(
        &self,
        id: &VersionId<'_>,
        pointer: &Pointer,
        mirror: impl FnOnce() -> F,
    ) -> Result<(Bytes, bool)> {
        let has_loaded = AtomicBool::new(false);
        let load = Box::pin(async {
            let mirrored = mirror().await.filter(|value| value.len() == pointer.len as usize);
            if let Some(value) = mirrored {
                return Ok(value);
            }
            has_loaded.store(true, Ordering::Relaxed);
            self.read_uncached(pointer).await
        });
        let value = self.shared.cache.load_value(id, pointer.len as usize, load).await?;
        Ok((value, has_loaded.into_inner()))
    }

    pub(super) fn decompressed(&self, pointer: &Pointer, stored: &Bytes) -> Result<Bytes> {
        let value = decompress(pointer.codec, stored, pointer.len as usize);
        value.ok_or_else(|| self.corrupted(pointer, "a value cannot be decompressed"))
    }

    /// The value that `pointer` leads to, from the device.
    ///
    /// # Errors
    /// As [`read_by`](Self::read_by).
    pub(crate) async fn read_uncached(&self, pointer: &Pointer) -> Result<Bytes> {
        let passed = match &self.shared.limiter {
            Some(limiter) => Some(limiter.pass().await),
            None => None,
        };
        let stored = self.read_stored(pointer).await;
        if let Some(passed) = passed {
            passed.answered();
        }
        let stored = stored?;
        self.decompressed(pointer, &stored)
    }

    /// The bytes of a value as they are stored, from the device in one I/O.
    ///
    /// # Errors
    /// As [`read_by`](Self::read_by).
    pub(crate) async fn read_stored(&self, pointer: &Pointer) -> Result<Bytes> {
        self.check(pointer, self.read_unchecked(pointer).await?)
    }

    /// The same, be they what was written or not.
    ///
    /// # Errors
    /// `Corrupted` if the segment ends before, or if a device fails.
    pub(crate) async fn read_unchecked(&self, pointer: &Pointer) -> Result<Bytes> {
        let len = pointer.stored_len as usize;
        if len == 0 {
            return Ok(Bytes::new());
        }
        let end = pointer.offset.checked_add(u64::from(pointer.stored_len));
        let end = end.filter(|end| *end <= self.shared.object.size_bytes());
        let Some(end) = end else { return Err(self.corrupted(pointer, "a value ends behind its segment")) };
        let blocks = self.read_run(pointer.offset..end).await?;
        let at = (pointer.offset % BLOCK_BYTES) as usize;
        match blocks.get(at..at + len) {
            Some(stored) => Ok(blocks.slice_ref(stored)),
            None => Err(self.corrupted(pointer, "a value ends behind its segment")),
        }
    }

    /// The blocks in which `bytes` lie, fewer if the segment ends before. What lies beside `bytes` in these blocks may
    /// be anything: a device that can does not read it.
    ///
    /// # Errors
    /// If a device fails.
    pub(crate) async fn read_run(&self, bytes: Range<u64>) -> Result<Bytes> {
        let from = bytes.start / BLOCK_BYTES * BLOCK_BYTES;
        let end = bytes.end.checked_next_multiple_of(BLOCK_BYTES).unwrap_or(u64::MAX);
        let end = end.min(self.shared.object.size_bytes().next_multiple_of(BLOCK_BYTES));
        if end <= from {
            return Ok(Bytes::new());
        }
        if self.shared.is_unverified.load(Ordering::Acquire) {
            self.verify().await?;
        }
        let needed = (bytes.start - from) as usize..(bytes.end.min(end) - from) as usize;
        read_needed(&self.shared.object, &self.shared.buffers, from, (end - from) as usize, needed).await
    }

    /// Looks at the header, before anything else is read of it.
    async fn verify(&self) -> Result<()> {
        let Shared { no, object, buffers, .. } = &*self.shared;
        let block = read_blocks(object, buffers, 0, BLOCK_BYTES as usize).await?;
        header::check(&block, *no).map_err(|malformed| malformed.of(object.name(), 0))?;
        self.shared.is_unverified.store(false, Ordering::Release);
        Ok(())
    }

    /// `stored` if it is what `pointer` leads to.
    pub(crate) fn check(&self, pointer: &Pointer, stored: Bytes) -> Result<Bytes> {
        if pointer.leads_to(&stored) {
            return Ok(stored);
        }
        Err(self.corrupted(pointer, "the checksum of a value is wrong"))
    }

    pub(crate) fn corrupted(&self, pointer: &Pointer, what: &str) -> Error {
        let (len, offset, name) = (pointer.stored_len, pointer.offset, self.shared.object.name());
        Error::corrupted(format!("object {name:?}: {what} ({len} bytes at offset {offset})"))
    }
}

/// The segments of a database that are open. Each is open at most once.
#[derive(Debug)]
pub(crate) struct Segments {
    objects: Arc<Objects>,
    pub(super) cache: Arc<Cache>,
    replicas: Arc<ReplicaSelector>,
    environment: Option<Arc<dyn Environment>>,
    /// By class; what has none goes where there is space.
    limiters: Mutex<HashMap<Option<String>, Arc<ReadLimiter>>>,
    open: RwLock<Open>,
}

/// With those that were given up since they were last looked for.
#[derive(Debug, Default)]
struct Open {
    segments: HashMap<SegmentNo, Weak<Shared>>,
    /// Number of entries at which dropped segments are pruned: twice as many as after the last pruning.
    forget_at: usize,
}

/// Fewer segments are not searched for dropped ones.
const MIN_SEGMENTS_TO_PRUNE: usize = 64;

impl Open {
    fn get(&self, no: SegmentNo) -> Option<Arc<Shared>> {
        self.segments.get(&no).and_then(Weak::upgrade)
    }

    fn insert(&mut self, shared: &Arc<Shared>) {
        if self.segments.len() >= self.forget_at {
            self.segments.retain(|_, shared| shared.strong_count() > 0);
            self.forget_at = (2 * self.segments.len()).max(MIN_SEGMENTS_TO_PRUNE);
        }
        self.segments.insert(shared.no, Arc::downgrade(shared));
    }
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared").field("no", &self.no).finish_non_exhaustive()
    }
}

impl Segments {
    /// With an environment what has a mirror is read where that is quicker, and classes are given no more reads than
    /// they answer.
    pub(crate) fn new(
        objects: &Arc<Objects>,
        cache: &Arc<Cache>,
        environment: Option<Arc<dyn Environment>>,
    ) -> Arc<Segments> {
        Arc::new(Segments {
            objects: objects.clone(),
            cache: cache.clone(),
            replicas: Arc::new(ReplicaSelector::new(environment.clone())),
            environment,
            limiters: Mutex::default(),
            open: RwLock::default(),
        })
    }

    /// Returns the read-rate limit of a class, if there is one.
    pub(crate) fn most_reads_per_second(&self, class: &str) -> Option<u64> {
        self.limiters.lock().get(&Some(class.to_owned()))?.most_reads_per_second()
    }

    fn limiter(&self, object: &Object) -> Option<Arc<ReadLimiter>> {
        let environment = self.environment.as_ref()?;
        let mut limiters = self.limiters.lock();
        let limiter = limiters.entry(object.attributes().class);
        Some(limiter.or_insert_with(|| ReadLimiter::new(environment.clone())).clone())
    }

    /// The segment, opened if it is not.
    ///
    /// # Errors
    /// `NotFound` if there is no such object.
    pub(crate) fn open(&self, no: SegmentNo) -> Result<Segment> {
        self.open_as(no, false)
    }

    /// A segment that begins with the header of a value segment, if `has_header`, which is looked at when it is read
    /// first.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub(crate) fn open_as(&self, no: SegmentNo, has_header: bool) -> Result<Segment> {
        if let Some(shared) = self.open.read().get(no) {
            return Ok(Segment { shared });
        }
        let (lease, object) = self.objects.open(ObjectKind::Segment, no)?;
        Ok(self.add_as(lease, object, has_header))
    }

    /// A segment that was made just now, or found.
    pub(crate) fn add(&self, lease: Lease, object: Object) -> Segment {
        self.add_as(lease, object, false)
    }

    fn add_as(&self, lease: Lease, object: Object, is_unverified: bool) -> Segment {
        let (no, limiter) = (lease.no(), self.limiter(&object));
        let mut open = self.open.write();
        if let Some(shared) = open.get(no) {
            return Segment { shared };
        }
        let shared = Arc::new(Shared {
            no,
            object,
            lease,
            cache: self.cache.clone(),
            buffers: self.objects.buffers().clone(),
            replicas: self.replicas.clone(),
            limiter,
            is_unverified: AtomicBool::new(is_unverified),
        });
        open.insert(&shared);
        Segment { shared }
    }
}
