//! Loading sorted data, past the log and the memtables.
//!
//! 1. The store's turn for jobs is taken, and what it has is brought into its leaves, so that nothing older than the
//!    load lies above them.
//! 2. A sequence number is taken at a moment when nothing of the store is in memory or at the root: all that is loaded
//!    has it, and nothing else.
//! 3. Long values go to value segments of the leaves' class, keys with pointers to key files, one for each leaf that
//!    the keys lie in; where there are no leaves yet, one for each leaf's worth of bytes.
//! 4. One change of the manifest adds all of it on top of the leaves. What others wrote meanwhile is newer, and lies
//!    above.
//! 5. Another sequence number is taken in that moment: who reads at a smaller one passes over all that has the first.
//!    Merges keep for such readers what they see ([`crate::merge::Readers`]), and treat what was loaded as any other
//!    version otherwise.
//!
//! So snapshots that were taken before the end see nothing of it. Transactions that are open then, and write what was
//! loaded, or read it and are serializable, have a conflict.

use crate::tuning::writes::BACKGROUND;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use bytes::Bytes;

use crate::database::core::Core;
use crate::database::maintenance::manual::{thorough, written_out};
use crate::database::maintenance::turn::Turn;
use crate::database::state::store_state::StoreState;
use crate::database::store::Store;
use crate::entry::{Codec, Content, LONGEST_KEY, LONGEST_VALUE, SequenceNo, Version};
use crate::keyfile::KeyFileWriter;
use crate::merge::Load;
use crate::objects::{Lease, ObjectKind};
use crate::tree::edit::SegmentRecord;
use crate::tree::garbage::Space;
use crate::tree::{Change, Edit, JobContext, KvsetKind, KvsetRecord, LeafNo, Place, Position, TreeState};
use crate::value::SegmentWriter;
use crate::written::Purpose;
use crate::{Error, ErrorKind, Result};

/// A kvset that is being filled.
struct Filling {
    writer: KeyFileWriter,
    lease: Lease,
    leaf: LeafNo,
    /// The leaf's first key, if it is a new one.
    new_start: Option<Bytes>,
    /// The first key behind the leaf, if it is not a new one.
    end: Option<Bytes>,
    bytes: u64,
}

struct FillingSegment {
    writer: SegmentWriter,
    lease: Lease,
}

/// A load of sorted keys and values; dropped before [`finish`](Self::finish), it leaves nothing: what it has written is
/// deleted soon.
///
/// ```
/// # let folder = tempfile::tempdir().unwrap();
/// # tanada_kv::example::run(folder.path(), async |database, store| {
/// let mut load = store.bulk_load().await?;
/// for no in 0u32..1000 {
///     load.put(&no.to_be_bytes(), b"value").await?; // in ascending order
/// }
/// assert_eq!(load.finish().await?, 1000 * (4 + 5));
/// # Ok(()) }).unwrap();
/// ```
pub struct BulkLoad {
    core: Arc<Core>,
    store: Arc<StoreState>,
    _turn: Turn,
    context: JobContext,
    tree: Arc<TreeState>,
    sequence: SequenceNo,
    codec: Codec,
    expires_s: Option<u32>,
    first: Option<Bytes>,
    last: Option<Vec<u8>>,
    next_leaf: LeafNo,
    keys: Option<Filling>,
    values: Option<FillingSegment>,
    /// Segments that are complete; they come before the kvsets that refer to them.
    segments: Vec<Change>,
    /// Leaves and kvsets.
    kvsets: Vec<Change>,
    /// Objects that are complete: drafts, until a record of the manifest names them.
    made: Vec<Lease>,
    bytes: u64,
    /// Why it cannot go on: a put failed, or was given up on its way, so that what it had begun is not whole.
    failure: Option<Error>,
}

impl std::fmt::Debug for BulkLoad {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("BulkLoad")
            .field("store", &self.store.name)
            .field("bytes", &self.bytes)
            .finish_non_exhaustive()
    }
}

impl Store {
    /// Begins a load of keys in ascending order, which is far cheaper than as many puts: each byte is written once. The
    /// store can be read and written meanwhile; its tree jobs wait, and so do another load and `compact`, until this
    /// one is finished or dropped. What is written to the same keys meanwhile is newer than what is loaded.
    ///
    /// # Errors
    /// `Conflict` if so much is written to the store that no moment is found to begin; `NotFound` if the store is
    /// dropped; `NoSpace`, `Device`.
    pub async fn bulk_load(&self) -> Result<BulkLoad> {
        let (core, store) = (self.core().clone(), self.state().clone());
        let turn = Turn::wait(&core.shared, &store).await?;
        for _ in 0..BACKGROUND.max_settle_attempts {
            core.settle(&store).await?;
            if let Some((tree, sequence)) = core.begin_load(&store) {
                // No job can free space until the load ends.
                core.committer.note_space(&store, Space::default());
                let context = core.jobs.job_context(&store)?;
                let codec = Codec::from(store.settings().compression);
                let (expires_s, next_leaf) =
                    (store.default_expiry(&*core.shared.environment), tree.next_leaf().max(1));
                return Ok(BulkLoad {
                    core,
                    store,
                    _turn: turn,
                    context,
                    tree: Arc::new(tree.without_mirrors()),
                    sequence,
                    codec,
                    expires_s,
                    first: None,
                    last: None,
                    next_leaf,
                    keys: None,
                    values: None,
                    segments: Vec::new(),
                    kvsets: Vec::new(),
                    made: Vec::new(),
                    bytes: 0,
                    failure: None,
                });
            }
        }
        Err(Error::new(ErrorKind::Conflict, format!("store {:?} is written to all the time", store.name)))
    }
}

impl Core {
    /// Brings what the store has by now into its leaves; the caller has its turn.
    async fn settle(&self, store: &Arc<StoreState>) -> Result<()> {
        let writing = self.shared.writing()?;
        let thorough = thorough(&self.jobs, writing, store);
        written_out(&self.jobs, writing, &thorough).await?;
        while thorough.has_any_at_root(&store.view.read().tree) {
            store.check_there()?;
            self.jobs.do_job(writing, store, Some(&thorough)).await?;
        }
        store.check_there()
    }

    /// A number for a load, if nothing of the store is anywhere but in its leaves.
    fn begin_load(&self, store: &StoreState) -> Option<(Arc<TreeState>, SequenceNo)> {
        let mut commit = self.committer.commit.lock();
        let view = store.view.read();
        let is_settled = view.active.is_empty() && view.waiting.is_empty() && view.tree.root.is_empty();
        is_settled.then(|| {
            commit.sequence += 1;
            self.shared.snapshots.publish(commit.sequence);
            (view.tree.clone(), commit.sequence)
        })
    }
}

/// Most bytes of a key in a message.
const MAX_SHOWN_KEY_BYTES: usize = 64;

impl BulkLoad {
    /// Adds a key, larger than all before. After `NoSpace` or `Device`, and when it was given up on its way, the load
    /// is of no use any more: drop it, and begin another one.
    ///
    /// # Errors
    /// `InvalidInput` if it is not larger, or key or value are too long; `NoSpace`, `Device`, `Closed`.
    pub async fn put(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        self.put_expiring(key, value, self.expires_s).await
    }

    /// The same, with a time at which it expires that is not the store's.
    pub(crate) async fn put_expiring(
        &mut self,
        key: &[u8],
        value: &[u8],
        expires_s: Option<u32>,
    ) -> Result<()> {
        // Objects of the load may be deleted once the database is closed.
        self.core.shared.writing()?;
        self.check_whole()?;
        for (what, len, most) in [("key", key.len(), LONGEST_KEY), ("value", value.len(), LONGEST_VALUE)] {
            if len > most {
                let message = format!("a {what} of a load has {len} bytes, at most {most} are possible");
                return Err(Error::invalid(message));
            }
        }
        if self.last.as_ref().is_some_and(|last| key <= &last[..]) {
            let shown = key[..key.len().min(MAX_SHOWN_KEY_BYTES)].escape_ascii();
            let more = if key.len() > MAX_SHOWN_KEY_BYTES { "..." } else { "" };
            return Err(Error::invalid(format!(
                "key \"{shown}{more}\" of a load is not larger than the one before"
            )));
        }
        let given_up = "a put of this load was given up on its way: begin the load anew";
        self.failure = Some(Error::invalid(given_up));
        let added = self.add(key, value, expires_s).await;
        self.failure = added.as_ref().err().map(|error| {
            Error::new(error.kind(), format!("a put of this load failed ({error}): begin the load anew"))
        });
        added
    }

    /// # Errors
    /// Why a put before did not ends.
    fn check_whole(&self) -> Result<()> {
        self.failure.clone().map_or(Ok(()), Err)
    }

    async fn add(&mut self, key: &[u8], value: &[u8], expires_s: Option<u32>) -> Result<()> {
        let content = if value.len() >= self.store.live.separate_from_bytes() {
            Content::At(self.write_value(value).await?)
        } else {
            Content::Inline(Bytes::copy_from_slice(value))
        };
        self.enter_leaf(key).await?;
        let version = Version::new(self.sequence, expires_s, content);
        let Some(keys) = &mut self.keys else { return Ok(()) };
        keys.writer.add(key, &version).await?;
        keys.bytes += (key.len() + value.len()) as u64;
        self.bytes += (key.len() + value.len()) as u64;
        self.first.get_or_insert_with(|| Bytes::copy_from_slice(key));
        let last = self.last.get_or_insert_default();
        last.clear();
        last.extend_from_slice(key);
        Ok(())
    }

    async fn write_value(&mut self, value: &[u8]) -> Result<crate::entry::Pointer> {
        let is_full =
            |segment: &FillingSegment| segment.writer.is_full(value.len(), self.context.segment_bytes);
        if self.values.as_ref().is_some_and(is_full) {
            self.end_segment().await?;
        }
        if self.values.is_none() {
            self.admit().await?;
            let class = &self.context.placement.leaf_values;
            let (lease, object) = self.core.shared.objects.draft(ObjectKind::Segment, Some(class))?;
            let writer = SegmentWriter::new(
                lease.no(),
                object,
                self.core.shared.objects.buffers(),
                self.context.key_files.pieces,
            )
            .await?;
            self.values = Some(FillingSegment { writer, lease });
        }
        match &mut self.values {
            Some(segment) => segment.writer.append(value, self.codec).await,
            None => Err(Error::invalid("a load without a segment")),
        }
    }

    /// Waits for space for one object more.
    async fn admit(&self) -> Result<()> {
        if self.core.shared.objects.is_short() {
            self.core.space.wait_for_reserve(0, Some(self.store.no)).await
        } else {
            Ok(())
        }
    }

    /// Makes sure that the kvset that is being filled is one for `key`.
    async fn enter_leaf(&mut self, key: &[u8]) -> Result<()> {
        let leaf_bytes = self.context.leaf_bytes;
        let is_over = self.keys.as_ref().is_some_and(|keys| match (&keys.new_start, &keys.end) {
            (Some(_), _) => keys.bytes >= leaf_bytes,
            (None, end) => end.as_ref().is_some_and(|end| key >= &end[..]),
        });
        if is_over {
            self.end_kvset().await?;
        }
        if self.keys.is_some() {
            return Ok(());
        }
        let (leaf, new_start, end) = match self.tree.leaf_index(key) {
            Some(index) => (self.tree.leaves[index].no, None, self.tree.leaf_end(index).cloned()),
            None if self.kvsets.iter().any(|change| matches!(change, Change::AddLeaf { .. })) => {
                let no = self.next_leaf;
                self.next_leaf += 1;
                (no, Some(Bytes::copy_from_slice(key)), None)
            }
            None => (0, Some(Bytes::new()), None),
        };
        self.admit().await?;
        let class = &self.context.placement.leaf_keys;
        let (lease, object) = self.core.shared.objects.draft(ObjectKind::Keys, Some(class))?;
        let writer = KeyFileWriter::new(
            lease.no(),
            object,
            self.core.shared.objects.buffers(),
            self.context.key_files,
        );
        if let Some(start) = &new_start {
            self.kvsets.push(Change::AddLeaf { leaf, start: start.clone() });
        }
        self.keys = Some(Filling { writer, lease, leaf, new_start, end, bytes: 0 });
        Ok(())
    }

    async fn end_kvset(&mut self) -> Result<()> {
        let Some(Filling { writer, lease, leaf, .. }) = self.keys.take() else { return Ok(()) };
        self.made.push(lease.clone());
        let (info, object) = writer.finish().await?;
        self.core.shared.objects.note_written(Purpose::JobKeys, &object, 0, object.size_bytes());
        let kvset = KvsetRecord { no: lease.no(), kind: KvsetKind::Data, info };
        self.kvsets.push(Change::AddKvset { place: Place::Leaf(leaf), position: Position::Top, kvset });
        Ok(())
    }

    async fn end_segment(&mut self) -> Result<()> {
        let Some(FillingSegment { writer, lease }) = self.values.take() else { return Ok(()) };
        self.made.push(lease.clone());
        let stored_bytes = writer.stored_bytes();
        let object = writer.finish().await?;
        self.core.shared.objects.note_written(Purpose::JobValues, &object, 0, object.size_bytes());
        self.core.shared.opener.segments.add(lease.clone(), object);
        let class = Some(self.context.placement.leaf_values.clone());
        let segment = SegmentRecord { no: lease.no(), stored_bytes, class };
        self.segments.push(Change::AddSegment { segment });
        Ok(())
    }

    /// Makes the load durable, and visible to readers that begin from now on; existing snapshots, transactions and
    /// cursors see nothing of it. Returns the bytes of keys and values.
    ///
    /// # Errors
    /// `NoSpace`, `Device`, `NotFound` if the store was dropped, `Closed` if the database was closed; why a put failed,
    /// if one did.
    pub async fn finish(mut self) -> Result<u64> {
        self.core.shared.writing()?;
        self.check_whole()?;
        self.end_segment().await?;
        self.end_kvset().await?;
        self.store.check_there()?;
        let changes: Vec<Change> = self.segments.drain(..).chain(self.kvsets.drain(..)).collect();
        if changes.is_empty() {
            return Ok(0);
        }
        let writing = self.core.shared.writing()?;
        // Earlier writes may not be lost if the load is durable.
        writing.log.sync_to(writing.log.end()).await?;
        // CRASH: what was loaded are orphans.
        self.core.shared.crash.reached("bulk.before-manifest");
        let edit = Edit { changes };
        let records = || self.core.committer.log_records(writing, None).0;
        let range = self.first.take().zip(self.last.take());
        let snapshots = &self.core.shared.snapshots;
        // Transactions that are open may have read what was there before.
        let begin = || {
            let mut commit = self.core.committer.commit.lock();
            commit.sequence += 1;
            snapshots.note_load(Load { begin: self.sequence, end: commit.sequence });
            if let Some((first, last)) = range {
                let sequence = commit.sequence;
                commit.recent.note_keys(self.store.no, first, &last, sequence);
            }
            self.store.flushed_sequence.fetch_max(commit.sequence, Ordering::AcqRel);
            move || snapshots.publish(commit.sequence)
        };
        let added = (&edit, &*self.made);
        self.core.jobs.installer.install_between(writing, &self.store, added, records, true, begin).await?;
        self.core.shared.counters.loaded_bytes.add(self.bytes);
        self.core.shared.background.work.notify();
        Ok(self.bytes)
    }
}

impl Drop for BulkLoad {
    fn drop(&mut self) {
        let filling = self.keys.take().map(|keys| keys.lease);
        let segment = self.values.take().map(|values| values.lease);
        let made: Vec<Lease> = self.made.drain(..).chain(filling).chain(segment).collect();
        if !made.is_empty() {
            drop(made);
            self.core.shared.background.work.notify();
        }
    }
}
