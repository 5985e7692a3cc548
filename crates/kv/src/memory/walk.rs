//! A memtable as a source of merges.
//!
//! - [`MemorySource`] goes both ways, beside writers, for whoever reads: it takes versions out of the table a few at a
//!   time, which costs one search for all of them, and gives values themselves.
//! - [`TableSource`] goes forward, to write a table out: it looks at versions where they lie, and gives pointers to
//!   long values in the log; [`TableValues`] follows it with the values.

use std::cmp::Ordering;
use std::collections::VecDeque;
use std::ops::Bound;
use std::sync::Arc;

use bytes::Bytes;
use futures::future::BoxFuture;

use super::key::{AsVersionKey, VersionKey, VersionKeyRef, compare};
use super::table::{MemoryContent, Memtable, MemtableVersion, TableEntry};
use crate::entry::{Content, SequenceNo, Version};
use crate::merge::{Direction, Source, Step};
use crate::value::codec::plain_value;
use crate::{Error, Result};

/// Versions of the first batch.
const FIRST_BATCH: usize = 4;
/// Most versions of a batch.
const MAX_BATCH: usize = 64;

/// Walks a memtable.
#[derive(Debug)]
pub(crate) struct MemorySource {
    /// Goes before the table, whose blocks are used again.
    taken: VecDeque<(VersionKey, MemtableVersion)>,
    table: Arc<Memtable>,
    direction: Direction,
    count: usize,
}

impl MemorySource {
    pub(crate) fn new(table: Arc<Memtable>) -> MemorySource {
        MemorySource { table, direction: Direction::Forward, taken: VecDeque::new(), count: FIRST_BATCH }
    }

    fn take(&mut self, bound: Bound<VersionKeyRef<'_>>) {
        self.taken = match self.direction {
            Direction::Forward => self.table.forward(bound, self.count).into(),
            Direction::Reverse => self.table.backward(bound, self.count).into(),
        };
        self.count = (self.count * 2).min(MAX_BATCH);
    }
}

impl Source for MemorySource {
    fn seek(&mut self, direction: Direction, bound: Option<&[u8]>) -> Result<Step> {
        self.direction = direction;
        self.count = FIRST_BATCH;
        self.take(before_versions(direction, bound));
        Ok(Step::Done)
    }

    fn advance(&mut self) -> Result<Step> {
        if let Some((key, _)) = self.taken.pop_front()
            && self.taken.is_empty()
        {
            self.take(Bound::Excluded(key.as_version_key()));
        }
        Ok(Step::Done)
    }

    fn load(&mut self) -> BoxFuture<'_, Result<()>> {
        Box::pin(std::future::ready(Ok(())))
    }

    fn key(&self) -> Option<&[u8]> {
        self.taken.front().map(|(key, _)| key.key())
    }

    fn sequence(&self) -> SequenceNo {
        self.taken.front().map_or(0, |(key, _)| key.sequence)
    }

    fn version(&self) -> Result<Version> {
        let Some((key, version)) = self.taken.front() else {
            return Err(Error::corrupted("a walk without a version"));
        };
        let MemoryContent::Value { home } = &version.content else { return Ok(version.to_version(key)) };
        let value = plain_value(key.pair.shared_value(), home.as_ref())?;
        Ok(Version::new(key.sequence, version.expires_s, Content::Inline(value)))
    }
}

/// Returns the bound that a walk begins at to include all versions of its first key; in reverse, none of the given key.
fn before_versions(direction: Direction, bound: Option<&[u8]>) -> Bound<VersionKeyRef<'_>> {
    // The newest version of a key comes first, so nothing of it lies before this.
    let first = |key| VersionKeyRef::new(key, SequenceNo::MAX);
    match (direction, bound) {
        (_, None) => Bound::Unbounded,
        (Direction::Forward, Some(key)) => Bound::Included(first(key)),
        (Direction::Reverse, Some(key)) => Bound::Excluded(first(key)),
    }
}

/// Walks a memtable forward.
pub(crate) struct TableSource<'a> {
    table: &'a Memtable,
    entry: Option<TableEntry<'a>>,
}

impl<'a> TableSource<'a> {
    pub(crate) fn new(table: &'a Memtable) -> TableSource<'a> {
        TableSource { table, entry: None }
    }
}

impl Source for TableSource<'_> {
    fn seek(&mut self, direction: Direction, bound: Option<&[u8]>) -> Result<Step> {
        if direction == Direction::Reverse {
            return Err(Error::invalid("tables are written out forward"));
        }
        self.entry = self.table.first_from(before_versions(direction, bound));
        Ok(Step::Done)
    }

    fn advance(&mut self) -> Result<Step> {
        self.entry = self.entry.as_ref().and_then(TableEntry::next);
        Ok(Step::Done)
    }

    fn load(&mut self) -> BoxFuture<'_, Result<()>> {
        Box::pin(std::future::ready(Ok(())))
    }

    fn key(&self) -> Option<&[u8]> {
        self.entry.as_ref().map(|entry| entry.key().key())
    }

    fn sequence(&self) -> SequenceNo {
        self.entry.as_ref().map_or(0, |entry| entry.key().sequence)
    }

    fn version(&self) -> Result<Version> {
        let entry = self.entry.as_ref().ok_or_else(|| Error::corrupted("a walk without a version"))?;
        Ok(entry.version().to_version(entry.key()))
    }
}

/// Values of a memtable, as they are stored, in the order of its versions.
pub(crate) struct TableValues<'a> {
    next: Option<TableEntry<'a>>,
}

impl<'a> TableValues<'a> {
    pub(crate) fn new(table: &'a Memtable) -> TableValues<'a> {
        TableValues { next: table.first_from(before_versions(Direction::Forward, None)) }
    }

    /// The value of a version, which comes after those that were asked for before; `None` if there is none such.
    pub(crate) fn value_of(&mut self, key: &[u8], sequence: SequenceNo) -> Option<Bytes> {
        let wanted = VersionKeyRef::new(key, sequence);
        while let Some(entry) = &self.next {
            match compare(entry.key().as_version_key(), wanted) {
                Ordering::Less => self.next = entry.next(),
                Ordering::Equal => return Some(entry.key().pair.shared_value()),
                Ordering::Greater => return None,
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::entry::Pair;

    proptest! {
        #[test]
        fn walks_begin_at_their_start_key_and_skip_no_entry(
            keys in proptest::collection::btree_set((0u8..30, 1u64..9), 0..200),
            bound in proptest::option::of(0u8..30),
        ) {
            let table = Arc::new(Memtable::small());
            for (key, sequence) in &keys {
                let version = MemtableVersion { expires_s: None, content: MemoryContent::Value { home: None } };
                table.insert(Pair::copied(&[*key], &[*key]), *sequence, version);
            }
            let mut sorted: Vec<(u8, u64)> = keys.into_iter().collect();
            sorted.sort_by_key(|(key, sequence)| (*key, u64::MAX - sequence));
            for direction in [Direction::Forward, Direction::Reverse] {
                let mut expected = sorted.clone();
                match direction {
                    Direction::Forward => expected.retain(|(key, _)| bound.is_none_or(|bound| *key >= bound)),
                    Direction::Reverse => {
                        expected.retain(|(key, _)| bound.is_none_or(|bound| *key < bound));
                        expected.reverse();
                    }
                }
                let mut source = MemorySource::new(table.clone());
                let bytes = bound.map(|bound| [bound]);
                let mut found = Vec::new();
                assert_eq!(source.seek(direction, bytes.as_ref().map(|bytes| &bytes[..])).unwrap(), Step::Done);
                while let Some(key) = source.key() {
                    found.push((key[0], source.sequence()));
                    assert_eq!(source.version().unwrap().sequence, source.sequence());
                    assert_eq!(source.advance().unwrap(), Step::Done);
                }
                prop_assert_eq!(found, expected);
            }
        }
    }
}
