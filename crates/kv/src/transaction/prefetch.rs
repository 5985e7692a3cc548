//! What a cursor has read ahead.
//!
//! Neighbours in the order of keys are often neighbours in a segment too: values moved there in that order. So a cursor
//! decides on several keys, and reads their values together. The first time these are few, for many cursors are asked
//! for little; then more each time, up to a bound.
//!
//! What a snapshot sees cannot change under the cursor; when the transaction that it belongs to writes, what was read
//! ahead is forgotten.

use crate::tuning::reads::SCANS;
use std::collections::VecDeque;

use bytes::Bytes;

use crate::Result;
use crate::cache::{Owner, VersionId};
use crate::entry::{Content, FirstHome, Pointer, SequenceNo};
use crate::merge::{Source, View};
use crate::tree::TreeState;
use crate::value::{Segment, Segments, Wanted};

/// Longer values have memory of their own and are not copied.
const MAX_COPIED_BYTES: usize = crate::memory::MAX_PAIR_BYTES_IN_BLOCK;

/// A key, its value, and when it expires.
#[derive(Debug, Clone)]
pub(crate) struct Entry {
    pub(crate) key: Bytes,
    pub(crate) value: Bytes,
    pub(crate) expires_s: Option<u32>,
}

/// Entries that were read together.
#[derive(Debug)]
pub(crate) struct Scan {
    /// The first key, if there is one.
    pub(crate) first: Option<Bytes>,
    /// Places of the values that are kept apart from their keys.
    pub(crate) pointers: Vec<Pointer>,
    /// Number of values that came from a device.
    pub(crate) loaded: usize,
}

/// The sources of values.
#[derive(Debug)]
pub(super) struct Origin<'a> {
    pub(super) segments: &'a Segments,
    /// Owner of the values in the cache.
    pub(super) owner: Owner,
    /// The tree whose mirrors may be read.
    pub(super) tree: &'a TreeState,
}

impl Origin<'_> {
    fn mirror(&self, first: FirstHome, pointer: &Pointer) -> Option<(Segment, Pointer)> {
        let (mirror, pointer) = self.tree.open_mirror(first, pointer)?;
        let segment = mirror.segment()?;
        mirror.note_read();
        Some((segment, pointer))
    }
}

/// Keys and values that come next.
#[derive(Debug, Default)]
pub(super) struct Ahead {
    ready: VecDeque<Entry>,
    /// Keys that were read together last time.
    keys: usize,
    /// Behind what is ready there is nothing.
    is_end: bool,
    /// Values are left out.
    keys_only: bool,
    /// Keys that will probably be read from one place; 0 if nobody knows.
    expected_keys: usize,
    /// Expected keys that were not read yet.
    expected_left: usize,
}

/// The value for whoever may have it for long. It may lie in a page or a block with many others.
fn own(value: &Bytes) -> Bytes {
    if value.len() > MAX_COPIED_BYTES { value.clone() } else { Bytes::copy_from_slice(value) }
}

impl Ahead {
    pub(super) fn new(keys_only: bool, expected_keys: usize) -> Ahead {
        Ahead { keys_only, expected_keys, expected_left: expected_keys, ..Ahead::default() }
    }

    /// Forgets what was read: the cursor goes elsewhere.
    pub(super) fn clear(&mut self) {
        *self = Ahead::new(self.keys_only, self.expected_keys);
    }

    /// Forgets what was read: the cursor turns back. How far it will go that way nobody has said.
    pub(super) fn turn(&mut self) {
        self.clear();
        self.expected_left = 0;
    }

    /// Removes and returns the next entry.
    pub(super) fn take(&mut self) -> Option<Entry> {
        self.ready.pop_front()
    }

    pub(super) fn ready(&self) -> usize {
        self.ready.len()
    }

    /// Returns whether there is nothing behind what is ready.
    pub(super) fn is_end(&self) -> bool {
        self.is_end
    }

    /// Keys to be read together next.
    pub(super) fn next_keys(&self) -> usize {
        if self.expected_left > 0 {
            return self.expected_left.min(SCANS.max_expected_keys);
        }
        (self.keys * SCANS.growth_factor).clamp(SCANS.first_keys, SCANS.max_keys)
    }

    /// Reads up to `keys` keys of the store `owner` that begin with `prefix`, and their values.
    ///
    /// # Errors
    /// `Corrupted`, or if a device fails; for any of them.
    pub(super) async fn fill<S: Source>(
        &mut self,
        view: &mut View<S>,
        prefix: &[u8],
        from: &Origin<'_>,
        keys: usize,
    ) -> Result<Scan> {
        let mut entries: Vec<Entry> = Vec::with_capacity(keys);
        // The entries whose values are read: index and place.
        let mut pointed: Vec<(usize, SequenceNo, Pointer, Option<FirstHome>)> = Vec::new();
        let mut bytes = 0;
        let mut is_end = false;
        while entries.len() < keys && bytes < SCANS.target_value_bytes {
            let is_there = view.step().await?;
            let version = view.version().filter(|_| is_there && view.key().starts_with(prefix));
            let Some(version) = version else {
                is_end = true;
                break;
            };
            let value = match &version.content {
                Content::Inline(_) | Content::At(_) if self.keys_only => Bytes::new(),
                Content::Inline(value) => {
                    bytes += value.len() as u64;
                    own(value)
                }
                Content::At(pointer) => {
                    bytes += u64::from(pointer.stored_len);
                    pointed.push((entries.len(), version.sequence, *pointer, version.mirror));
                    Bytes::new()
                }
                Content::Deleted => {
                    is_end = true;
                    break;
                }
            };
            let expires_s = version.expires_s;
            entries.push(Entry { key: Bytes::copy_from_slice(view.key()), value, expires_s });
        }
        let wanted = pointed.iter().map(|&(index, sequence, pointer, first_home)| {
            let id = VersionId::new(from.owner, &entries[index].key, sequence);
            Wanted { id, pointer, first_home }
        });
        let wanted: Vec<Wanted<'_>> = wanted.collect();
        let mirror = |first, pointer: &Pointer| from.mirror(first, pointer);
        let (values, loaded) = from.segments.read_all(&wanted, mirror).await?;
        drop(wanted);
        for (&(index, ..), value) in pointed.iter().zip(values) {
            entries[index].value = value;
        }
        let pointers = pointed.into_iter().map(|(_, _, pointer, _)| pointer).collect();
        self.ready.extend(entries);
        self.keys = if self.expected_left > 0 { 0 } else { keys };
        self.expected_left = self.expected_left.saturating_sub(self.ready.len());
        self.is_end = is_end;
        Ok(Scan { first: self.ready.front().map(|entry| entry.key.clone()), pointers, loaded })
    }
}
