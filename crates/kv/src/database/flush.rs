//! Writing memtables out to kvsets.
//!
//! 1. Under the commit lock a full table is closed: the log's open group is closed too, so that the log can be replayed
//!    from there, and the store gets a new table.
//! 2. The log is made durable to the table's end: the kvset points to values in it.
//! 3. The table's versions that anybody can see go to a key file, long values as pointers into the log; or into a
//!    segment of their own, if most of the log is [garbage already](super::packing).
//! 4. Values that were looked up in the table go to the cache, for the table is about to go; so do those that take the
//!    place of a version there.
//! 5. One change of the manifest adds the kvset and says from where on the log is needed. Then the kvset takes the
//!    table's place.
//! 6. Log segments that are needed neither by a replay nor by a kvset are deleted.
//!
//! A store's tables are flushed oldest first, so that the root of its tree is in order; small ones of several
//! stores are flushed at once.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use futures::future::join_all;

use super::core::{Core, Writing, plain_value};
use super::mirrors::Trim;
use super::packing::Packing;
use super::store::StoreState;
use crate::cache::{Newest, VersionId};
use crate::crash::PlantedBug;
use crate::entry::SequenceNo;
use crate::keyfile::{KeyFileOptions, KeyFileWriter};
use crate::log::Lsn;
use crate::manifest::{DatabaseRecord, LogRecord, Record};
use crate::memory::{MemoryContent, Memtable, TableSource};
use crate::merge::{Groups, Retention};
use crate::notify::yield_now;
use crate::objects::{Lease, ObjectKind};
use crate::tree::{Change, Edit, KvsetKind, KvsetRecord, Place, Position};
use crate::written::Purpose;
use crate::{Error, ErrorKind, Result};

/// Keys that are written before the task yields.
const KEYS_PER_SLICE: u64 = 256;

/// How many times the total size of memtables is checked while one of them fills.
pub(super) const MEMTABLE_BUDGET_CHECKS_PER_TABLE: u64 = 4;

/// Most bytes of all active memtables together, in full memtables.
const MAX_ACTIVE_MEMTABLES: u64 = 2;

/// Bytes of values that are copied before the task yields.
const COPIED_BYTES_PER_SLICE: usize = 256 << 10;

/// Most small memtables that are flushed as a group, so that their syncs run concurrently.
const MAX_GROUPED_MEMTABLES: usize = 16;
/// Most bytes of a group of small memtables.
const MAX_GROUPED_BYTES: u64 = 1 << 20;

/// Delay before a flush looks for space again.
const SPACE_RETRY_DELAY: Duration = Duration::from_millis(100);

impl Core {
    /// Bytes at which a table is flushed.
    fn table_bytes(&self) -> u64 {
        self.table_bytes.load(Ordering::Relaxed)
    }

    /// Closes tables that are full, under the commit lock.
    pub(crate) fn make_room(&self, writing: &Writing, stores: &[Arc<StoreState>], end: Lsn) {
        let table_bytes = self.table_bytes();
        let mut has_deletes = false;
        let is_full = |store: &&Arc<StoreState>| {
            let view = store.view.read();
            has_deletes |= view.active.tells_of_deletes();
            view.active.bytes() >= table_bytes
        };
        self.close_tables(writing, stores.iter().filter(is_full));
        if has_deletes {
            // Should nobody write any more, what they hide is to go.
            self.background.work.notify();
        }
        if end >= self.counters.next_look.get() {
            self.look_around(writing, end);
        }
    }

    /// Now and then: closes tables of stores that nobody writes to any more, if they hold back the log, and the largest
    /// as long as all of them together take up too much.
    fn look_around(&self, writing: &Writing, end: Lsn) {
        let table_bytes = self.table_bytes();
        self.counters.next_look.set(end + table_bytes / MEMTABLE_BUDGET_CHECKS_PER_TABLE);
        // The cache has to give way.
        self.background.work.notify();
        let stores = self.stores.read().clone();
        let mut active: Vec<(Arc<Memtable>, &Arc<StoreState>)> =
            stores.iter().map(|store| (store.view.read().active.clone(), store)).collect();
        active.retain(|(table, _)| !table.is_empty());
        let oldest = end.saturating_sub(self.settings().log_replay_bytes);
        let held_back = active.extract_if(.., |(table, _)| table.start < oldest);
        let mut due: Vec<&Arc<StoreState>> = held_back.map(|(_, store)| store).collect();
        let mut total: u64 = active.iter().map(|(table, _)| table.bytes()).sum();
        active.sort_unstable_by_key(|(table, _)| table.bytes());
        while total > MAX_ACTIVE_MEMTABLES * table_bytes
            && let Some((table, store)) = active.pop()
        {
            total = total.saturating_sub(table.bytes());
            due.push(store);
        }
        self.close_tables(writing, due);
    }

    /// Gives stores new tables, those that have anything in theirs. Under the commit lock.
    pub(crate) fn close_tables<'a>(
        &self,
        writing: &Writing,
        stores: impl IntoIterator<Item = &'a Arc<StoreState>>,
    ) {
        let closes = |store: &&Arc<StoreState>| self.close_table(writing, store);
        let closed: Vec<&Arc<StoreState>> = stores.into_iter().filter(closes).collect();
        if !closed.is_empty() {
            self.update_pressure(closed);
            self.background.work.notify();
        }
    }

    /// Returns whether there was anything in the store's table.
    fn close_table(&self, writing: &Writing, store: &StoreState) -> bool {
        let mut view = store.view.write();
        if view.active.is_empty() {
            return false;
        }
        let end = writing.log.cut();
        let no = self.next_table.fetch_add(1, Ordering::Relaxed);
        let full = std::mem::replace(&mut view.active, Arc::new(Memtable::new(no, end, &self.memory.blocks)));
        full.close(end);
        view.waiting.insert(0, full);
        true
    }

    /// Writes out the table that has waited longest, and small ones beside it; whether there was one.
    pub(crate) async fn flush_next(&self) -> bool {
        let Ok(writing) = self.writing() else { return false };
        self.shrink_cache().await;
        let due = self.due_together();
        if due.is_empty() {
            return false;
        }
        let all = self.flush_together(writing, &due).await;
        for ((_, table), done) in due.into_iter().zip(&all) {
            if done.is_ok() {
                self.background.take_apart(table, &self.environment);
            }
        }
        let flushed = most_severe(all);
        self.shrink_cache().await;
        match flushed {
            Ok(()) => {
                self.background.failed.lock().take();
                self.background.progress.notify();
                true
            }
            Err(error) => {
                let may_pass = may_pass(&error);
                self.flush_failed(writing, error);
                if may_pass {
                    // The spare log segment is for later, and this flush frees more of the log.
                    writing.log.give_back_ready();
                    let _ = self.delete_retired().await;
                    self.environment.sleep(SPACE_RETRY_DELAY).await;
                }
                may_pass
            }
        }
    }

    fn flush_failed(&self, writing: &Writing, error: Error) {
        match error.kind() {
            ErrorKind::NoSpace => {
                // Counted before it can be seen.
                self.background.failures.add(1);
                *self.background.failed.lock() = Some(error);
            }
            // The log is intact, but no memtable can be flushed any more.
            _ => writing.log.fail(&error),
        }
        self.background.progress.notify();
    }

    /// Returns the error that keeps flushes and jobs from making progress, if there is one.
    pub(crate) fn background_error(&self) -> Option<Error> {
        self.background.failed.lock().clone()
    }

    /// The table that has waited longest, and those behind it that may be flushed at the same time: of other
    /// stores, small, and if there is space for all.
    fn due_together(&self) -> Vec<(Arc<StoreState>, Arc<Memtable>)> {
        let oldest =
            |store: &Arc<StoreState>| Some((store.clone(), store.view.read().waiting.last()?.clone()));
        let mut due: Vec<_> = self.stores.read().iter().filter_map(oldest).collect();
        due.sort_unstable_by_key(|(_, table)| table.no);
        // When space is short, each flush needs the space that the one before frees.
        let most = if self.objects.is_short() { 1 } else { MAX_GROUPED_MEMTABLES };
        let mut bytes = 0;
        let mut is_small = |(_, table): &(_, Arc<Memtable>)| {
            bytes += table.bytes();
            bytes <= MAX_GROUPED_BYTES
        };
        let small = due.iter().take(most).take_while(|one| is_small(one)).count();
        due.truncate(small.max(1));
        due
    }

    /// Writes out everything and ends the work in the background.
    ///
    /// # Errors
    /// `NoSpace`, `Device`.
    pub(crate) async fn end(&self, writing: &Writing) -> Result<()> {
        self.end_background().await;
        // Jobs that came to completion early leave what they had written.
        let _ = self.delete_retired().await;
        let mut flushed = self.flush_all(writing).await;
        let closed = writing.log.close().await;
        writing.log.ended().await;
        if flushed.as_ref().is_err_and(|error| error.kind() == ErrorKind::NoSpace) {
            // The segment that the log had ready has given its space back.
            let _ = self.delete_retired().await;
            if self.flush_all(writing).await.is_ok() {
                flushed = Ok(());
            }
        }
        if closed.is_ok() {
            // The next opening takes some.
            self.make_room_at_last(writing).await;
        }
        // A failed log is more severe than a full volume, which loses nothing.
        let ended = match closed.and(flushed) {
            Ok(()) => self.note_end(writing).await,
            failed => failed,
        };
        self.refuse_changes(writing).await;
        ended?;
        self.delete_retired().await
    }

    /// Keeps operations that other handles have in progress from changing the manifest and making objects.
    pub(crate) async fn refuse_changes(&self, writing: &Writing) {
        // A change in progress may rewrite the manifest.
        writing.manifest.refuse(Error::new(ErrorKind::Closed, "the database is closed")).await;
        self.objects.refuse_new();
    }

    /// Writes out everything.
    ///
    /// # Errors
    /// `NoSpace`, `Device`.
    pub(crate) async fn flush_all(&self, writing: &Writing) -> Result<()> {
        {
            let _commit = self.commit.lock();
            let stores = self.stores.read().clone();
            self.close_tables(writing, &stores);
        }
        loop {
            let due = self.due_together();
            if due.is_empty() {
                return Ok(());
            }
            most_severe(self.flush_together(writing, &due).await)?;
        }
    }

    async fn flush_together(
        &self,
        writing: &Writing,
        due: &[(Arc<StoreState>, Arc<Memtable>)],
    ) -> Vec<Result<()>> {
        join_all(due.iter().map(|(store, table)| self.flush(writing, store, table))).await
    }

    async fn flush(&self, writing: &Writing, store: &Arc<StoreState>, table: &Arc<Memtable>) -> Result<()> {
        let end =
            table.end().ok_or_else(|| Error::invalid("a table that is written to cannot be written out"))?;
        writing.log.sync_to(end).await?;
        self.make_room_for_table(writing, store).await;
        // CRASH: the log has everything.
        self.crash.reached("flush.before-keys");
        let (record, packed) = self.write_table(store, table).await?;
        let edit = Edit {
            changes: record
                .iter()
                .map(|kvset| Change::AddKvset {
                    place: Place::Root,
                    position: Position::Top,
                    kvset: kvset.clone(),
                })
                .collect(),
        };
        let tree = store.view.read().tree.clone();
        let opened = self.opener.holding(store.settings().filters).open_added(&tree, &edit).await?;
        // Its objects are deleted below, unless a reader holds them.
        drop(tree);
        // CRASH: the key file is an orphan, and the log has everything.
        self.crash.reached("flush.before-manifest");
        if let Some(record) = &record {
            self.keep_values(store, table, record.info.largest_sequence).await;
        }
        if self.snapshots.to_keep().numbers.len() > 1 {
            let tree = store.view.read().tree.clone();
            store.cleaning.note_kept(&tree, record.iter().map(|kvset| kvset.no));
        }
        let mut begin = None;
        let make = || {
            if store.is_dropped.load(Ordering::Acquire) {
                return None;
            }
            let (mut records, log_begin) = self.log_records(writing, Some((store, table)));
            begin = Some(log_begin);
            if !edit.is_empty() {
                records.insert(0, Record::Edit { store: store.no, edit: edit.clone() });
            }
            records.extend(self.lifetime_if_due().map(|activity| Record::Activity(Box::new(activity))));
            Some(records)
        };
        let install = |_: &DatabaseRecord| -> Result<()> {
            let mut view = store.view.write();
            view.tree = Arc::new(view.tree.apply_opened(&edit, &opened)?);
            if let Some(record) = &record {
                store.flushed_sequence.fetch_max(record.info.largest_sequence, Ordering::AcqRel);
            }
            view.waiting.retain(|other| !Arc::ptr_eq(other, table));
            Ok(())
        };
        let appended = writing.manifest.append_made(packed.as_slice(), make, install).await;
        let Some(installed) = self.made_or_discarded(appended, record.as_ref()).await? else {
            // Packed values are deleted with their lease.
            store.view.write().waiting.retain(|other| !Arc::ptr_eq(other, table));
            return self.discard(record.as_ref()).await;
        };
        installed?;
        // CRASH: the kvset has what the log need not have any more.
        self.crash.reached("flush.after-manifest");
        self.counters.flushes.add(1);
        self.update_pressure([store]);
        self.background.work.notify();
        if let Some(begin) = begin {
            self.forget_log_before(writing, begin);
        }
        self.delete_retired().await?;
        // Jobs may be busy for long.
        self.trim_mirrors(writing, Trim::Due).await?;
        self.watch_fast_class();
        Ok(())
    }

    /// Puts into the cache what was looked up while it was in memory, and what takes the place of a version in the
    /// cache: it will be looked up again. No other table has numbers up to the table's last one.
    async fn keep_values(&self, store: &StoreState, table: &Memtable, last: SequenceNo) {
        let cache = &self.opener.cache;
        let holds_values = !cache.never_had_values();
        if !holds_values && !table.was_read() {
            return;
        }
        let has_older = |key: &[u8], sequence| {
            holds_values && cache.has_older(&VersionId::new(store.owner, key, sequence))
        };
        let has_tombstones = table.has_tombstones();
        let (mut keys, mut bytes_kept) = (0, 0);
        for used in table.used_values(has_older) {
            keys += 1;
            if let Some((key, version)) = used
                && !self.is_expired(version.expires_s)
                && let MemoryContent::Value { home: Some(home) } = version.content
            {
                let newest =
                    (!has_tombstones).then_some(Newest { up_to: last, expires_s: version.expires_s });
                let id = VersionId { newest, ..VersionId::new(store.owner, key.key(), key.sequence) };
                let is_kept = cache.takes_value(&id, home.len as usize);
                // A reader of a value that does not decompress gets an error; here there is no reader.
                if let Some(value) =
                    is_kept.then(|| plain_value(key.pair.shared_value(), Some(&home)).ok()).flatten()
                {
                    cache.keep_value(&id, &value);
                    bytes_kept += value.len();
                }
            }
            if keys >= KEYS_PER_SLICE || bytes_kept >= COPIED_BYTES_PER_SLICE {
                (keys, bytes_kept) = (0, 0);
                yield_now().await;
            }
        }
    }

    /// A change that found no space is tried again with another file.
    async fn made_or_discarded<T>(&self, made: Result<T>, record: Option<&KvsetRecord>) -> Result<T> {
        if made.as_ref().is_err_and(|error| error.kind() == ErrorKind::NoSpace) {
            self.discard(record).await?;
        }
        made
    }

    async fn discard(&self, record: Option<&KvsetRecord>) -> Result<()> {
        match record {
            Some(record) => self.objects.delete(ObjectKind::Keys, record.no).await,
            None => Ok(()),
        }
    }

    /// Writes a table's key file, and its values if they are packed; `None` if nothing in it has to be kept.
    async fn write_table(
        &self,
        store: &StoreState,
        table: &Arc<Memtable>,
    ) -> Result<(Option<KvsetRecord>, Option<Lease>)> {
        // Values that cannot be packed stay in the log.
        if let Some(packing) = self.packing(store, table).await.unwrap_or_default() {
            match self.write_keys(store, table, Some(packing)).await {
                Err(error) if error.kind() == ErrorKind::NoSpace => self.delete_retired().await?,
                written => return written,
            }
        }
        self.write_keys(store, table, None).await
    }

    async fn write_keys(
        &self,
        store: &StoreState,
        table: &Arc<Memtable>,
        packing: Option<Packing<'_>>,
    ) -> Result<(Option<KvsetRecord>, Option<Lease>)> {
        let placement = self.classes.placement(&store.policy())?;
        let (lease, object) = self.objects.create(ObjectKind::Keys, Some(&placement.root_keys))?;
        let no = lease.no();
        let written = self.write_versions(store, table, packing, (no, object)).await;
        match written {
            Ok((None, _)) => self.objects.delete(ObjectKind::Keys, no).await.map(|()| (None, None)),
            Ok(written) => Ok(written),
            Err(error) => {
                // An object that cannot be deleted is an orphan.
                let _ = self.objects.delete(ObjectKind::Keys, no).await;
                Err(error)
            }
        }
    }

    async fn write_versions(
        &self,
        store: &StoreState,
        table: &Arc<Memtable>,
        mut packing: Option<Packing<'_>>,
        (no, object): (u64, tanada_volume::Object),
    ) -> Result<(Option<KvsetRecord>, Option<Lease>)> {
        let settings = store.settings();
        let options = KeyFileOptions {
            page_bytes: settings.page_bytes,
            filter_bits_per_key: settings.filter_bits_per_key,
            pieces: self.pieces_of(table.bytes()),
        };
        let mut writer = KeyFileWriter::new(no, object, self.objects.buffers(), options);
        let retention = Retention {
            readers: self.snapshots.to_keep(),
            now_s: self.environment.wall_time_s(),
            is_bottom: self.crash.has(PlantedBug::DropDeletes),
        };
        let tombstones = table.tombstones();
        let kept = retention.tombstones_within(&tombstones, b"", None);
        let mut groups = Groups::new(vec![TableSource::new(table)], tombstones, None).await?;
        let (mut keys, mut versions_kept) = (0u64, 0);
        while groups.next(&retention).await? {
            keys += 1;
            if keys.is_multiple_of(KEYS_PER_SLICE) {
                yield_now().await;
            }
            let (key, versions) = groups.group();
            versions_kept += versions.len() as u64;
            for version in versions.iter() {
                match &mut packing {
                    Some(packing) => writer.add(key, &packing.pack(key, version).await?).await?,
                    None => writer.add(key, version).await?,
                }
            }
        }
        store.kept.note(groups.merged(), versions_kept);
        if writer.is_empty() && kept.is_empty() {
            return Ok((None, None));
        }
        kept.into_iter().for_each(|tombstone| writer.add_range_tombstone(tombstone));
        let (info, object) = writer.finish().await?;
        self.objects.note_written(Purpose::FlushKeys, &object, 0, object.size_bytes());
        let packed = match packing {
            Some(packing) => packing.finish(self).await?,
            None => None,
        };
        Ok((Some(KvsetRecord { no, kind: KvsetKind::Data, info }), packed))
    }

    /// Returns the manifest records of the log when `without` has become a kvset: from where on each store needs it,
    /// and from where on a replay does. Must be made when nothing can be appended before it, since an older record is
    /// then outdated.
    pub(crate) fn log_records(
        &self,
        writing: &Writing,
        without: Option<(&Arc<StoreState>, &Arc<Memtable>)>,
    ) -> (Vec<Record>, Lsn) {
        let commit = self.commit.lock();
        let end = writing.log.cut();
        let mut records = Vec::new();
        let mut begin = end;
        for store in &*self.stores.read() {
            let mut view = store.view.write();
            let is_left = |table: &&Arc<Memtable>| {
                without
                    .is_none_or(|(other, written)| !Arc::ptr_eq(other, store) || !Arc::ptr_eq(written, table))
            };
            let oldest = view.waiting.iter().rev().find(is_left).map(|table| table.start);
            if oldest.is_none() && view.active.is_empty() {
                let no = view.active.no;
                view.active = Arc::new(Memtable::new(no, end, &self.memory.blocks));
            }
            let lsn = oldest.unwrap_or(view.active.start);
            begin = begin.min(lsn);
            // The manifest's records of other stores are older, but no store has flushed since.
            if without.is_none_or(|(written, _)| Arc::ptr_eq(written, store)) {
                records.push(Record::Flushed { store: store.no, lsn });
            }
        }
        records.push(Record::Log(LogRecord {
            begin,
            segment: writing.log.segment_at(begin),
            durable: writing.log.durable(),
            sequence: commit.sequence,
        }));
        (records, begin)
    }

    /// Says in the manifest that the log is whole to its end, which then is known to have been durable.
    pub(crate) async fn note_end(&self, writing: &Writing) -> Result<()> {
        let mut begin = None;
        let make = || {
            let (mut records, log_begin) = self.log_records(writing, None);
            begin = Some(log_begin);
            records.push(Record::Activity(Box::new(self.lifetime())));
            Some(records)
        };
        writing.manifest.append_made(&[], make, |_| ()).await?;
        if let Some(begin) = begin {
            self.forget_log_before(writing, begin);
        }
        Ok(())
    }
}

/// Returns whether what failed may go well later.
fn may_pass(error: &Error) -> bool {
    error.kind() == ErrorKind::NoSpace
}

/// Returns the most severe error, permanent before transient.
fn most_severe(all: Vec<Result<()>>) -> Result<()> {
    let failures = all.into_iter().filter_map(Result::err);
    failures.min_by_key(may_pass).map_or(Ok(()), Err)
}
