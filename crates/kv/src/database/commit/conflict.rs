//! What was committed while transactions are open, so that they can tell whether they come too late.
//!
//! While at least one is open, each commit notes the hashes of the keys it wrote and its deleted ranges, with its
//! sequence number. A transaction that began at sequence number `s` conflicts with every note that is newer than `s` on
//! a key it wrote (or, serializable, read). When no transaction is open, everything is forgotten. Whether something in
//! a range changed, the memtables tell.
//!
//! Notes are bounded: one transaction that is never ended would have every key noted that is ever written. When there
//! are too many the older half is forgotten, and who began before the last of those is *too old* to be checked.
//!
//! Invariant: for every open transaction that is not too old, every write since it began is noted. Two keys with one
//! hash conflict without need, which is allowed.

use crate::tuning::writes::COMMITS;
use std::collections::{BTreeMap, HashMap};
use std::hash::{BuildHasherDefault, DefaultHasher, Hash, Hasher};

use bytes::Bytes;

use crate::database::commit::last_writes::LastWrites;
use crate::entry::{RangeTombstone, SequenceNo};
use crate::log::frame::{Operation, OperationKind, Payload, StoreNo};
use crate::memory::tombstones::GrowingTombstones;

/// Ranges and keys that were read.
#[derive(Debug, Default)]
pub(crate) struct ReadSet {
    pub(crate) keys: Vec<(StoreNo, Bytes)>,
    /// From the first key on, up to the second one (not included), or without end.
    pub(crate) ranges: Vec<(StoreNo, Bytes, Option<Bytes>)>,
}

/// Why a commit is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Conflict {
    /// Another commit wrote what it wrote or read.
    Changed,
    /// The transaction is older than the notes of commits.
    TooOld,
}

/// Recent commits.
#[derive(Debug)]
pub(crate) struct Recent {
    /// Open transactions by the number they began at.
    open: BTreeMap<SequenceNo, usize>,
    hashes: HashMap<u64, SequenceNo, BuildHasherDefault<DefaultHasher>>,
    ranges: HashMap<StoreNo, GrowingTombstones>,
    range_count: usize,
    /// Notes from which on it is worth forgetting those that no transaction needs.
    prune_at: usize,
    /// Most notes that are kept.
    most: usize,
    /// The newest note that was forgotten though somebody may need it.
    forgotten: SequenceNo,
    /// Last writes of key groups, for updates without a transaction; present since the first of them.
    last: Option<LastWrites>,
}

fn hash(store: StoreNo, key: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    (store, key).hash(&mut hasher);
    hasher.finish()
}

/// Bytes of a note, growth of the table included.
const NOTE_BYTES: u64 = 48;

impl Recent {
    /// Creates the notes of a database with this memory budget.
    pub(crate) fn new(memory_bytes: u64) -> Recent {
        let most = (memory_bytes / COMMITS.memory_divisor / NOTE_BYTES).max(COMMITS.min_capacity);
        Recent {
            open: BTreeMap::new(),
            hashes: HashMap::default(),
            ranges: HashMap::new(),
            range_count: 0,
            prune_at: 0,
            most: usize::try_from(most).unwrap_or(usize::MAX),
            forgotten: 0,
            last: None,
        }
    }

    pub(crate) fn opened(&mut self, sequence: SequenceNo) {
        *self.open.entry(sequence).or_default() += 1;
    }

    pub(crate) fn closed(&mut self, sequence: SequenceNo) {
        if let Some(count) = self.open.get_mut(&sequence) {
            *count -= 1;
            if *count == 0 {
                self.open.remove(&sequence);
            }
        }
        if self.open.is_empty() {
            self.hashes.clear();
            self.ranges.clear();
            self.range_count = 0;
        }
    }

    /// Returns whether anybody wants to know what commits write.
    #[inline]
    pub(crate) fn is_used(&self) -> bool {
        self.has_open() || self.last.is_some()
    }

    fn has_open(&self) -> bool {
        !self.open.is_empty()
    }

    /// Notes what a commit wrote.
    pub(crate) fn note(&mut self, payload: &Payload, sequence: SequenceNo) {
        let has_open = self.has_open();
        for operation in payload.operations().flatten() {
            match operation.kind {
                OperationKind::Put | OperationKind::Delete => {
                    let hash = hash(operation.store, operation.pair.key());
                    if let Some(last) = &mut self.last {
                        last.note(hash, sequence);
                    }
                    if has_open {
                        self.hashes.insert(hash, sequence);
                    }
                }
                OperationKind::DeleteRange | OperationKind::DeleteFrom => {
                    if let Some(last) = &mut self.last {
                        last.note_all(sequence);
                    }
                    if !has_open {
                        continue;
                    }
                    let end = range_end(&operation).map(Bytes::copy_from_slice);
                    let start = Bytes::copy_from_slice(operation.pair.key());
                    self.ranges.entry(operation.store).or_default().add(RangeTombstone {
                        start,
                        end,
                        sequence,
                    });
                    self.range_count += 1;
                }
            }
        }
        let notes = self.notes();
        if notes > self.prune_at.max(COMMITS.min_notes_to_prune).min(self.most) {
            self.prune();
        }
    }

    /// Notes that keys from `first` to `last` may have been written, if that is of interest to anybody.
    pub(crate) fn note_keys(&mut self, store: StoreNo, first: Bytes, last: &[u8], sequence: SequenceNo) {
        if let Some(last) = &mut self.last {
            last.note_all(sequence);
        }
        if self.has_open() {
            let end = Some([last, &[0]].concat().into());
            self.ranges.entry(store).or_default().add(RangeTombstone { start: first, end, sequence });
            self.range_count += 1;
        }
    }

    /// Returns whether `key` may have been written after `since`, as far as that takes no search. `now` is the number
    /// of the last commit.
    pub(crate) fn may_have_changed(
        &mut self,
        store: StoreNo,
        key: &[u8],
        since: SequenceNo,
        now: SequenceNo,
    ) -> bool {
        self.last.get_or_insert_with(|| LastWrites::new(now)).may_be_after(hash(store, key), since)
    }

    /// Ranges take as much as many keys.
    fn notes(&self) -> usize {
        self.hashes.len() + COMMITS.notes_per_range * self.range_count
    }

    fn prune(&mut self) {
        self.forget(self.open.keys().next().copied().unwrap_or(SequenceNo::MAX));
        if self.notes() > self.most / 2 {
            let mut sequences: Vec<SequenceNo> = self.hashes.values().copied().collect();
            for set in self.ranges.values().flat_map(GrowingTombstones::sets) {
                sequences.extend(set.iter().flat_map(|range| [range.sequence; COMMITS.notes_per_range]));
            }
            let older = sequences.len() - self.most / 2;
            let (_, newest, _) = sequences.select_nth_unstable(older);
            self.forgotten = self.forgotten.max(*newest);
            self.forget(self.forgotten);
        }
        self.prune_at = 2 * self.notes();
    }

    /// Notes up to that one.
    fn forget(&mut self, up_to: SequenceNo) {
        self.hashes.retain(|_, sequence| *sequence > up_to);
        self.range_count = 0;
        for ranges in self.ranges.values_mut() {
            let newer = GrowingTombstones::default();
            for range in
                ranges.sets().iter().flat_map(|set| set.iter()).filter(|range| range.sequence > up_to)
            {
                newer.add(range.clone());
                self.range_count += 1;
            }
            *ranges = newer;
        }
        self.ranges.retain(|_, ranges| !ranges.is_empty());
    }

    /// Returns whether a commit since `since` touched what `payload` writes, or what was read, as far as that is known.
    /// `is_range_changed` says so of the keys in a range.
    pub(crate) fn conflicts(
        &self,
        payload: &Payload,
        read: Option<&ReadSet>,
        since: SequenceNo,
        is_range_changed: impl Fn(StoreNo, &[u8], Option<&[u8]>) -> bool,
    ) -> Option<Conflict> {
        if since < self.forgotten {
            return Some(Conflict::TooOld);
        }
        let mut operations = payload.operations().flatten();
        let writes_changed = operations.any(|operation| match operation.kind {
            OperationKind::Put | OperationKind::Delete => {
                self.is_key_changed(operation.store, operation.pair.key(), since)
            }
            OperationKind::DeleteRange | OperationKind::DeleteFrom => {
                is_range_changed(operation.store, operation.pair.key(), range_end(&operation))
            }
        });
        let has_read_changed = |read: &ReadSet| {
            read.keys.iter().any(|(store, key)| self.is_key_changed(*store, key, since))
                || read
                    .ranges
                    .iter()
                    .any(|(store, start, end)| is_range_changed(*store, start, end.as_deref()))
        };
        (writes_changed || read.is_some_and(has_read_changed)).then_some(Conflict::Changed)
    }

    fn is_key_changed(&self, store: StoreNo, key: &[u8], since: SequenceNo) -> bool {
        self.hashes.get(&hash(store, key)).is_some_and(|sequence| *sequence > since)
            || self.ranges.get(&store).is_some_and(|ranges| {
                ranges.newest_over(key, SequenceNo::MAX).is_some_and(|sequence| sequence > since)
            })
    }
}

/// Returns the end of a deleted range; `None` if it is unbounded.
pub(crate) fn range_end(operation: &Operation) -> Option<&[u8]> {
    (operation.kind == OperationKind::DeleteRange).then_some(operation.pair.value())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::entry::Codec;
    use crate::log::frame::{NewOperation, PayloadBuilder};

    fn operation(kind: OperationKind, key: &[u8], value: &[u8]) -> Payload {
        let mut builder = PayloadBuilder::with_capacity(64);
        let value_len = value.len() as u32;
        builder.push(&NewOperation {
            store: 1,
            kind,
            key,
            value,
            value_len,
            codec: Codec::None,
            expires_s: None,
        });
        builder.finish()
    }

    fn put(key: u64) -> Payload {
        operation(OperationKind::Put, &key.to_be_bytes(), b"value")
    }

    fn conflict(recent: &Recent, key: u64, since: SequenceNo) -> Option<Conflict> {
        recent.conflicts(&put(key), None, since, |_, _, _| false)
    }

    #[test]
    fn a_long_transaction_does_not_grow_the_conflict_log_without_bound() {
        let mut recent = Recent::new(4 << 20);
        let most = recent.most as u64;
        recent.opened(0);
        for sequence in 1..=most {
            recent.note(&put(sequence), sequence);
        }
        assert_eq!((conflict(&recent, 5, 0), conflict(&recent, 0, 0)), (Some(Conflict::Changed), None));
        for sequence in most + 1..=10 * most {
            recent.note(&put(sequence), sequence);
            assert!(recent.notes() <= recent.most + 1, "{} notes", recent.notes());
        }
        assert_eq!(conflict(&recent, 0, 0), Some(Conflict::TooOld));
        // What began a moment ago is told exactly.
        let now = 10 * most;
        recent.opened(now - 10);
        assert_eq!(conflict(&recent, now - 9, now - 10), Some(Conflict::Changed));
        assert_eq!(conflict(&recent, now - 10, now - 10), None);
        recent.closed(0);
        recent.closed(now - 10);
        assert_eq!(recent.notes(), 0);
    }

    #[test]
    fn ranges_are_noted_and_forgotten_as_keys_are() {
        let mut recent = Recent::new(4 << 20);
        recent.opened(0);
        let end = 100u64.to_be_bytes();
        recent.note(&operation(OperationKind::DeleteRange, &50u64.to_be_bytes(), &end), 1);
        assert_eq!(conflict(&recent, 50, 0), Some(Conflict::Changed));
        assert_eq!((conflict(&recent, 50, 1), conflict(&recent, 100, 0)), (None, None));
        for sequence in 2..=recent.most as u64 {
            recent.note(&operation(OperationKind::DeleteFrom, &sequence.to_be_bytes(), b""), sequence);
            assert!(recent.notes() <= recent.most + COMMITS.notes_per_range, "{} notes", recent.notes());
        }
        assert_eq!(conflict(&recent, 50, 0), Some(Conflict::TooOld));
    }
}
