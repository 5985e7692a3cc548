//! Versions of a store's keys in memory, on a skip list.

use std::ops::Bound;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use crossbeam_skiplist::SkipMap;
use crossbeam_skiplist::map::Entry;

use super::arena::{Arena, Blocks};
use super::bits::KeyBits;
use super::key::{AsVersionKey, VersionKey, VersionKeyRef};
use super::tombstones::GrowingTombstones;
use crate::entry::{Content, Pair, Pointer, RangeTombstone, SequenceNo, Version};
use crate::keyfile::KeyHash;
use crate::log::Lsn;
use crate::slices::Slices;
use crate::tombstone::RangeTombstones;

/// Bytes of a version beside key and value: a node of the skip list with its links, and what an allocator rounds up.
const OVERHEAD: u64 =
    ((size_of::<VersionKey>() + size_of::<Listed>() + 3 * size_of::<usize>()) * 9 / 8) as u64;

/// Bytes of a range tombstone beside its keys: itself and two fragments with their lists, twice while sets are merged.
const TOMBSTONE_BYTES: u64 = 1 << 10;

/// The contents of a version in a memtable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MemoryContent {
    Deleted,
    /// The value is what lies behind the key.
    Value {
        /// Its place in the log, if the value is kept apart from its key.
        home: Option<Pointer>,
    },
}

/// A version in memory; its key, its value and its number are its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct MemtableVersion {
    pub(crate) expires_s: Option<u32>,
    pub(crate) content: MemoryContent,
}

/// The result of a lookup in a memtable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Found {
    /// This version, and its value as it is stored.
    Version(MemtableVersion, Bytes),
    /// A tombstone over a range deleted it.
    Hidden(SequenceNo),
}

/// A version in the list.
#[derive(Debug)]
struct Listed {
    version: MemtableVersion,
    was_read: AtomicBool,
}

/// Versions of keys in memory.
#[derive(Debug)]
pub(crate) struct Memtable {
    /// Unique among the tables of a database.
    pub(crate) no: u64,
    /// Log position before which no write is in it.
    pub(crate) start: Lsn,
    /// Log position behind which no write is in it, once it is full.
    end: OnceLock<Lsn>,
    versions: SkipMap<VersionKey, Listed>,
    /// Bits of its keys, which reject absent ones, unless it is small.
    keys: Option<KeyBits>,
    /// Has to go behind what lies in it.
    arena: Arena,
    tombstones: GrowingTombstones,
    bytes: AtomicU64,
    data_bytes: AtomicU64,
    /// Whether any version was looked up.
    was_read: AtomicBool,
    /// Whether anything is deleted in it, and whether that was told.
    has_deletes: AtomicBool,
    are_deletes_told: AtomicBool,
}

impl Memtable {
    /// Creates a memtable that will be flushed.
    pub(crate) fn new(no: u64, start: Lsn, blocks: &Arc<Blocks>) -> Memtable {
        let keys = KeyBits::new(blocks.table_bytes());
        Memtable { keys: Some(keys), ..Memtable::on(no, start, Arena::new(Some(blocks.clone()))) }
    }

    /// Creates a small memtable.
    pub(crate) fn small() -> Memtable {
        Memtable::on(0, 0, Arena::new(None))
    }

    fn on(no: u64, start: Lsn, arena: Arena) -> Memtable {
        let (versions, tombstones) = (SkipMap::new(), GrowingTombstones::default());
        let (bytes, data_bytes) = (AtomicU64::new(0), AtomicU64::new(0));
        let was_read = AtomicBool::new(false);
        Memtable {
            no,
            start,
            end: OnceLock::new(),
            versions,
            keys: None,
            arena,
            tombstones,
            bytes,
            data_bytes,
            was_read,
            has_deletes: AtomicBool::new(false),
            are_deletes_told: AtomicBool::new(false),
        }
    }

    /// Adds a version. Of two with one number, which one batch has written, the first counts: a version that was there
    /// would go later than the table, when all threads have passed by, and hold a block until then.
    pub(crate) fn insert(&self, pair: Pair, sequence: SequenceNo, version: MemtableVersion) {
        let data = pair.len() as u64;
        if let Some(keys) = &self.keys {
            keys.add(KeyHash::of(pair.key()));
        }
        let (pair, taken) = match self.arena.takes(pair.len()) {
            true => pair.copied_to(|bytes| self.arena.copy(bytes)),
            // An allocator rounds up, and holds back for later.
            false => (pair.into_own(), data / 4 * 5),
        };
        if version.content == MemoryContent::Deleted {
            self.has_deletes.store(true, Ordering::Relaxed);
        }
        let listed = Listed { version, was_read: AtomicBool::new(false) };
        let before = self.versions.len();
        self.versions.get_or_insert(VersionKey::new(pair, sequence), listed);
        let is_new = self.versions.len() > before;
        self.bytes.fetch_add(taken + OVERHEAD, Ordering::Relaxed);
        self.data_bytes.fetch_add(if is_new { data } else { 0 }, Ordering::Relaxed);
    }

    /// Frees it, a part at a time: others of the thread have their turn in between.
    pub(crate) async fn take_apart(self) {
        let mut portions = Slices::default();
        for version in self.versions {
            drop(version);
            portions.note().await;
        }
    }

    pub(crate) fn delete_range(&self, tombstone: RangeTombstone) {
        let end_len = tombstone.end.as_ref().map_or(0, Bytes::len);
        self.bytes.fetch_add((tombstone.start.len() + end_len) as u64 + TOMBSTONE_BYTES, Ordering::Relaxed);
        self.tombstones.add(tombstone);
        self.has_deletes.store(true, Ordering::Relaxed);
    }

    /// Returns whether anything is deleted in it.
    pub(crate) fn has_deletes(&self) -> bool {
        self.has_deletes.load(Ordering::Relaxed)
    }

    /// The same, to whoever asks first when it is so.
    pub(crate) fn tells_of_deletes(&self) -> bool {
        self.has_deletes()
            && !self.are_deletes_told.load(Ordering::Relaxed)
            && !self.are_deletes_told.swap(true, Ordering::Relaxed)
    }

    /// Nothing is written to it any more.
    pub(crate) fn close(&self, end: Lsn) {
        let _ = self.end.set(end);
    }

    /// Returns the log position at which it was sealed.
    pub(crate) fn end(&self) -> Option<Lsn> {
        self.end.get().copied()
    }

    /// Versions in it.
    pub(crate) fn versions(&self) -> u64 {
        self.versions.len() as u64
    }

    /// Bytes that it takes up, roughly.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Bytes of the keys and values in it.
    pub(crate) fn data_bytes(&self) -> u64 {
        self.data_bytes.load(Ordering::Relaxed)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.bytes() == 0
    }

    /// Looks up `key` with this `hash` at `snapshot`; `None` if older sources have to be searched.
    pub(crate) fn get(&self, key: &[u8], hash: KeyHash, snapshot: SequenceNo) -> Option<Found> {
        let hidden = self.tombstones.newest_over(key, snapshot);
        match (self.newest(key, hash, snapshot), hidden) {
            (Some(entry), hidden) if hidden.is_none_or(|hidden| hidden <= entry.key().sequence) => {
                let listed = entry.value();
                for was_read in [&listed.was_read, &self.was_read] {
                    if !was_read.load(Ordering::Relaxed) {
                        was_read.store(true, Ordering::Relaxed);
                    }
                }
                Some(Found::Version(listed.version, self.value(entry.key())))
            }
            (_, Some(hidden)) => Some(Found::Hidden(hidden)),
            (_, None) => None,
        }
    }

    /// Returns whether anything was done here to `key`, which has this `hash`, after `since`.
    pub(crate) fn has_newer(&self, key: &[u8], hash: KeyHash, since: SequenceNo) -> bool {
        if self.tombstones.newest_over(key, SequenceNo::MAX).is_some_and(|tombstone| tombstone > since) {
            return true;
        }
        self.newest(key, hash, SequenceNo::MAX).is_some_and(|entry| entry.key().sequence > since)
    }

    /// The newest version of `key` that `snapshot` sees, deleted ranges not looked at.
    #[inline]
    fn newest(
        &self,
        key: &[u8],
        hash: KeyHash,
        snapshot: SequenceNo,
    ) -> Option<Entry<'_, VersionKey, Listed>> {
        if self.keys.as_ref().is_some_and(|keys| !keys.may_have(hash)) {
            return None;
        }
        let from = VersionKeyRef::new(key, snapshot);
        let from: &dyn AsVersionKey = &from;
        self.versions.lower_bound(Bound::Included(from)).filter(|entry| *entry.key().key() == *key)
    }

    /// A version's value as it is stored, for whoever may have it longer than there is the table.
    pub(crate) fn value(&self, key: &VersionKey) -> Bytes {
        match self.arena.takes(key.pair.len()) {
            true => key.pair.copied_value(),
            false => key.pair.shared_value(),
        }
    }

    /// Returns whether any version in it was looked up.
    pub(crate) fn was_read(&self) -> bool {
        self.was_read.load(Ordering::Relaxed)
    }

    /// Returns each version that is the newest of its key, has a value kept apart, and was looked up here or `is_used`.
    pub(crate) fn used_values(
        &self,
        is_used: impl Fn(&[u8], SequenceNo) -> bool,
    ) -> impl Iterator<Item = Option<(VersionKey, MemtableVersion)>> {
        let mut last: Option<Entry<'_, VersionKey, Listed>> = None;
        self.versions.iter().map(move |entry| {
            let (key, listed) = (entry.key(), entry.value());
            let is_newest = !last.as_ref().is_some_and(|last| last.key().has_key_of(key));
            let is_apart = matches!(listed.version.content, MemoryContent::Value { home: Some(_) });
            let is_wanted = || listed.was_read.load(Ordering::Relaxed) || is_used(key.key(), key.sequence);
            let used = (is_newest && is_apart && is_wanted()).then(|| (key.clone(), listed.version));
            last = Some(entry);
            used
        })
    }

    /// Returns whether anything was done to a key from `start` to `end` after `since`.
    pub(crate) fn changed_in(&self, start: &[u8], end: Option<&[u8]>, since: SequenceNo) -> bool {
        let from = VersionKeyRef::new(start, SequenceNo::MAX);
        let from: &dyn AsVersionKey = &from;
        let mut entry = self.versions.lower_bound(Bound::Included(from));
        while let Some(version) = entry {
            if end.is_some_and(|end| *version.key().key() >= *end) {
                break;
            }
            if version.key().sequence > since {
                return true;
            }
            entry = version.next();
        }
        self.tombstones.sets().iter().flat_map(|set| set.iter()).any(|tombstone| {
            tombstone.sequence > since
                && end.is_none_or(|end| *tombstone.start < *end)
                && tombstone.end.as_ref().is_none_or(|its_end| **its_end > *start)
        })
    }

    /// Returns whether any range was deleted in it.
    pub(crate) fn has_tombstones(&self) -> bool {
        !self.tombstones.is_empty()
    }

    /// All range tombstones now, in one set.
    pub(crate) fn tombstones(&self) -> RangeTombstones {
        self.tombstones.all()
    }

    /// All range tombstones now.
    pub(crate) fn tombstone_sets(&self) -> Vec<Arc<RangeTombstones>> {
        self.tombstones.sets()
    }

    /// The first version that is not before `from`, from which one walks on.
    pub(crate) fn first_from(&self, from: Bound<VersionKeyRef<'_>>) -> Option<TableEntry<'_>> {
        self.versions.lower_bound(as_bound(&from)).map(|entry| TableEntry { entry })
    }

    /// Up to `count` versions from `from` on, in order.
    pub(crate) fn forward(
        &self,
        from: Bound<VersionKeyRef<'_>>,
        count: usize,
    ) -> Vec<(VersionKey, MemtableVersion)> {
        let bound = as_bound(&from);
        let mut versions = Vec::with_capacity(count);
        let mut entry = self.versions.lower_bound(bound);
        while let Some(version) = entry.take_if(|_| versions.len() < count) {
            versions.push((version.key().clone(), version.value().version));
            entry = version.next();
        }
        versions
    }

    /// Up to `count` versions before `before`, the last one first.
    pub(crate) fn backward(
        &self,
        before: Bound<VersionKeyRef<'_>>,
        count: usize,
    ) -> Vec<(VersionKey, MemtableVersion)> {
        let bound = as_bound(&before);
        let mut versions = Vec::with_capacity(count);
        let mut entry = self.versions.upper_bound(bound);
        while let Some(version) = entry.take_if(|_| versions.len() < count) {
            versions.push((version.key().clone(), version.value().version));
            entry = version.prev();
        }
        versions
    }
}

/// A version where it lies in a table. It stays there as long as the table does.
pub(crate) struct TableEntry<'a> {
    entry: Entry<'a, VersionKey, Listed>,
}

impl<'a> TableEntry<'a> {
    pub(crate) fn key(&self) -> &VersionKey {
        self.entry.key()
    }

    pub(crate) fn version(&self) -> &MemtableVersion {
        &self.entry.value().version
    }

    /// The one behind it.
    pub(crate) fn next(&self) -> Option<TableEntry<'a>> {
        self.entry.next().map(|entry| TableEntry { entry })
    }
}

fn as_bound<'a>(bound: &'a Bound<VersionKeyRef<'_>>) -> Bound<&'a (dyn AsVersionKey + 'a)> {
    match bound {
        Bound::Included(key) => Bound::Included(key),
        Bound::Excluded(key) => Bound::Excluded(key),
        Bound::Unbounded => Bound::Unbounded,
    }
}

impl MemtableVersion {
    /// Converts it for a kvset: long values as pointers into the log, short ones inline.
    pub(crate) fn to_version(self, key: &VersionKey) -> Version {
        let content = match self.content {
            MemoryContent::Deleted => Content::Deleted,
            MemoryContent::Value { home: Some(pointer) } => Content::At(pointer),
            MemoryContent::Value { home: None } => Content::Inline(key.pair.shared_value()),
        };
        Version::new(key.sequence, self.expires_s, content)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;
    use crate::entry::Codec;
    use crate::notify::Notify;

    #[derive(Debug, Clone)]
    enum Step {
        Put(u8, u8),
        Delete(u8),
        DeleteRange(u8, Option<u8>),
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let step = prop_oneof![
            4 => (0u8..20, any::<u8>()).prop_map(|(key, value)| Step::Put(key, value)),
            2 => (0u8..20).prop_map(Step::Delete),
            1 => (0u8..20, proptest::option::of(0u8..20)).prop_map(|(start, end)| Step::DeleteRange(start, end)),
        ];
        proptest::collection::vec(step, 0..60)
    }

    fn get(table: &Memtable, key: &[u8], snapshot: SequenceNo) -> Option<Found> {
        table.get(key, KeyHash::of(key), snapshot)
    }

    const SHORT_VERSION: MemtableVersion =
        MemtableVersion { expires_s: None, content: MemoryContent::Value { home: None } };
    const DELETED: MemtableVersion = MemtableVersion { expires_s: None, content: MemoryContent::Deleted };

    proptest! {
        /// At every sequence number the table gives what a map held then.
        #[test]
        fn every_snapshot_is_as_it_was(steps in steps()) {
            let table = Memtable::new(1, 0, &Arc::new(Blocks::new(1 << 20, Notify::default())));
            let mut states: Vec<BTreeMap<u8, Option<u8>>> = vec![BTreeMap::new()];
            for (i, step) in steps.iter().enumerate() {
                let sequence = i as u64 + 1;
                let mut state = states[i].clone();
                match step {
                    Step::Put(key, byte) => {
                        table.insert(Pair::copied(&[*key], &[*byte]), sequence, SHORT_VERSION);
                        state.insert(*key, Some(*byte));
                    }
                    Step::Delete(key) => {
                        table.insert(Pair::copied(&[*key], b""), sequence, DELETED);
                        state.insert(*key, None);
                    }
                    Step::DeleteRange(start, end) => {
                        let bytes = |key: u8| Bytes::from(vec![key]);
                        table.delete_range(RangeTombstone { start: bytes(*start), end: end.map(bytes), sequence });
                        for key in *start..end.unwrap_or(20) {
                            state.insert(key, None);
                        }
                    }
                }
                states.push(state);
            }
            for (sequence, state) in states.iter().enumerate() {
                for key in 0..20u8 {
                    let found = get(&table, &[key], sequence as u64).map(|found| match found {
                        Found::Version(MemtableVersion { content: MemoryContent::Value { .. }, .. }, bytes) => Some(bytes[0]),
                        _ => None,
                    });
                    prop_assert_eq!(found, state.get(&key).copied(), "key {} at {}", key, sequence);
                }
            }
        }

        #[test]
        fn walks_give_all_versions_in_order(keys in proptest::collection::btree_set((0u8..9, 1u64..9), 0..40), count in 1usize..9) {
            let table = Memtable::new(1, 0, &Arc::new(Blocks::new(1 << 20, Notify::default())));
            for (key, sequence) in &keys {
                table.insert(Pair::copied(&[*key], b"x"), *sequence, SHORT_VERSION);
            }
            let mut expected: Vec<(u8, u64)> = keys.into_iter().collect();
            expected.sort_by_key(|(key, sequence)| (*key, u64::MAX - sequence));
            let mut forward = Vec::new();
            let mut last: Option<VersionKey> = None;
            loop {
                let from = last.as_ref().map_or(Bound::Unbounded, |last| Bound::Excluded(last.as_version_key()));
                let more = table.forward(from, count);
                let Some((key, _)) = more.last() else { break };
                last = Some(key.clone());
                forward.extend(more.iter().map(|(key, _)| (key.key()[0], key.sequence)));
            }
            prop_assert_eq!(&forward, &expected);
            let mut backward = Vec::new();
            let mut last: Option<VersionKey> = None;
            loop {
                let before = last.as_ref().map_or(Bound::Unbounded, |last| Bound::Excluded(last.as_version_key()));
                let more = table.backward(before, count);
                let Some((key, _)) = more.last() else { break };
                last = Some(key.clone());
                backward.extend(more.iter().map(|(key, _)| (key.key()[0], key.sequence)));
            }
            backward.reverse();
            prop_assert_eq!(&backward, &expected);
        }
    }

    #[test]
    fn the_newest_values_that_were_read_are_known() {
        let table = Memtable::new(1, 0, &Arc::new(Blocks::new(1 << 20, Notify::default())));
        let home = Pointer { segment: 1, offset: 0, stored_len: 1, len: 1, codec: Codec::None, checksum: 0 };
        let far = MemtableVersion { expires_s: None, content: MemoryContent::Value { home: Some(home) } };
        let put = |key: &'static str, sequence, version| {
            table.insert(Pair::copied(key.as_bytes(), b"x"), sequence, version);
        };
        put("old", 1, far);
        assert!(!table.was_read());
        get(&table, b"old", 9);
        assert!(table.was_read());
        put("old", 2, far);
        put("short", 3, SHORT_VERSION);
        get(&table, b"short", 9);
        put("read", 4, far);
        get(&table, b"read", 9);
        put("unread", 5, far);
        let used = |name: &'static str| move |key: &[u8], _: SequenceNo| key == name.as_bytes();
        let read: Vec<_> = table.used_values(used("short")).flatten().collect();
        assert_eq!(read.len(), 1);
        assert_eq!((read[0].0.key(), read[0].0.sequence, read[0].1), (&b"read"[..], 4, far));
        assert_eq!(table.used_values(used("short")).count(), 5);
        let both = table.used_values(used("unread")).flatten().map(|(key, _)| key.sequence);
        assert_eq!(both.collect::<Vec<_>>(), [4, 5]);
    }

    #[test]
    fn changes_of_a_range_are_seen() {
        let table = Memtable::new(1, 0, &Arc::new(Blocks::new(1 << 20, Notify::default())));
        table.insert(Pair::copied(b"b", b"x"), 5, SHORT_VERSION);
        assert!(table.changed_in(b"a", Some(b"c"), 4));
        assert!(!table.changed_in(b"a", Some(b"c"), 5));
        assert!(!table.changed_in(b"a", Some(b"b"), 4));
        assert!(table.changed_in(b"a", None, 4));
        table.delete_range(RangeTombstone { start: Bytes::from_static(b"m"), end: None, sequence: 9 });
        assert!(table.changed_in(b"x", Some(b"y"), 8));
        assert!(!table.changed_in(b"c", Some(b"m"), 8));
    }

    #[test]
    fn lookup_results_do_not_pin_a_block() {
        let idle = |holds: bool| {
            let blocks = Arc::new(Blocks::new(256 << 10, Notify::default()));
            let table = Memtable::new(1, 0, &blocks);
            let key = |no: u64| no.to_be_bytes();
            (0..200).for_each(|no| table.insert(Pair::copied(&key(no), &[no as u8; 900]), no, SHORT_VERSION));
            let found: Vec<_> = (0..200).filter(|_| holds).map(|no| get(&table, &key(no), 999)).collect();
            drop(table);
            for (no, found) in found.into_iter().enumerate() {
                assert_eq!(found, Some(Found::Version(SHORT_VERSION, Bytes::from(vec![no as u8; 900]))));
            }
            blocks.idle_bytes()
        };
        assert!(idle(false) > 100_000);
        assert_eq!(idle(true), idle(false));
    }

    #[test]
    fn overwritten_keys_of_a_batch_count_once_and_pin_no_block() {
        let blocks = Arc::new(Blocks::new(256 << 10, Notify::default()));
        let table = Memtable::new(1, 0, &blocks);
        for no in 0..200u64 {
            table.insert(Pair::copied(b"key", &[7; 900]), no, SHORT_VERSION);
            table.insert(Pair::copied(b"key", &[8; 900]), no, SHORT_VERSION);
        }
        assert_eq!(get(&table, b"key", 99), Some(Found::Version(SHORT_VERSION, Bytes::from(vec![7; 900]))));
        assert_eq!((table.versions(), table.data_bytes()), (200, 200 * 903));
        drop(table);
        assert_eq!(blocks.idle_bytes(), 256 << 10);
    }

    #[test]
    fn a_table_holds_no_memory_of_a_batch() {
        let table = Memtable::new(1, 0, &Arc::new(Blocks::new(1 << 20, Notify::default())));
        let batch = Bytes::from(vec![1; 300_000]);
        table.insert(Pair::new(batch.slice(..100), 10), 1, SHORT_VERSION);
        table.insert(Pair::new(batch.slice(100..200_000), 10), 2, SHORT_VERSION);
        assert!(batch.is_unique());
    }
}
