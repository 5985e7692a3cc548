//! What was committed while transactions are open, so that they can tell whether they come too late.
//!
//! While at least one is open, each commit notes the hashes of the keys it wrote and its deleted ranges, with its sequence number. A transaction
//! that began at sequence number `s` conflicts with every note that is newer than `s` on a key it wrote (or, serializable, read). When no
//! transaction is open, everything is forgotten. Whether something in a range changed, the memory tables tell.
//!
//! Invariant: for every open transaction, every write since it began is noted. Two keys with one hash conflict without need, which is allowed.

use std::collections::{BTreeMap, HashMap};
use std::hash::{BuildHasherDefault, DefaultHasher, Hash, Hasher};

use bytes::Bytes;

use crate::entry::SequenceNo;
use crate::log::frame::{Operation, OperationKind, Payload, StoreNo};

/// Ranges and keys that were read.
#[derive(Debug, Default)]
pub(crate) struct ReadSet {
    pub(crate) keys: Vec<(StoreNo, Bytes)>,
    /// From the first key on, up to the second one (not included), or without end.
    pub(crate) ranges: Vec<(StoreNo, Bytes, Option<Bytes>)>,
}

#[derive(Debug)]
struct NotedRange {
    store: StoreNo,
    start: Bytes,
    end: Option<Bytes>,
    sequence: SequenceNo,
}

/// Recent commits.
#[derive(Debug, Default)]
pub(crate) struct Recent {
    /// Open transactions by the number they began at.
    open: BTreeMap<SequenceNo, usize>,
    hashes: HashMap<u64, SequenceNo, BuildHasherDefault<DefaultHasher>>,
    ranges: Vec<NotedRange>,
    /// Notes from which on it is worth forgetting those that no transaction needs.
    prune_at: usize,
}

fn hash(store: StoreNo, key: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    (store, key).hash(&mut hasher);
    hasher.finish()
}

const FEWEST_TO_PRUNE: usize = 1 << 16;

impl Recent {
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
        }
    }

    #[inline]
    pub(crate) fn is_used(&self) -> bool {
        !self.open.is_empty()
    }

    /// Notes what a commit wrote.
    pub(crate) fn note(&mut self, payload: &Payload, sequence: SequenceNo) {
        for operation in payload.operations().flatten() {
            match operation.kind {
                OperationKind::Put | OperationKind::Delete => {
                    self.hashes.insert(hash(operation.store, operation.pair.key()), sequence);
                }
                OperationKind::DeleteRange | OperationKind::DeleteFrom => {
                    let end = range_end(&operation).map(Bytes::copy_from_slice);
                    let start = Bytes::copy_from_slice(operation.pair.key());
                    self.ranges.push(NotedRange { store: operation.store, start, end, sequence });
                }
            }
        }
        if self.hashes.len() + self.ranges.len() > self.prune_at.max(FEWEST_TO_PRUNE) {
            self.prune();
        }
    }

    fn prune(&mut self) {
        let oldest = self.open.keys().next().copied().unwrap_or(SequenceNo::MAX);
        self.hashes.retain(|_, sequence| *sequence > oldest);
        self.ranges.retain(|range| range.sequence > oldest);
        self.prune_at = 2 * (self.hashes.len() + self.ranges.len());
    }

    /// Whether a commit since `since` touched what `payload` writes, or what was read. `is_range_changed` says so of the keys in a range.
    pub(crate) fn conflicts(
        &self,
        payload: &Payload,
        read: Option<&ReadSet>,
        since: SequenceNo,
        is_range_changed: impl Fn(StoreNo, &[u8], Option<&[u8]>) -> bool,
    ) -> bool {
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
        writes_changed || read.is_some_and(has_read_changed)
    }

    fn is_key_changed(&self, store: StoreNo, key: &[u8], since: SequenceNo) -> bool {
        self.hashes.get(&hash(store, key)).is_some_and(|sequence| *sequence > since)
            || self.ranges.iter().any(|range| {
                range.store == store
                    && range.sequence > since
                    && *range.start <= *key
                    && range.end.as_ref().is_none_or(|end| *key < **end)
            })
    }
}

/// Where a deleted range ends, if it does.
pub(crate) fn range_end(operation: &Operation) -> Option<&[u8]> {
    (operation.kind == OperationKind::DeleteRange).then_some(operation.pair.value())
}
