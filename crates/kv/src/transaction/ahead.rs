//! What a cursor has read ahead.
//!
//! Neighbours in the order of keys are often neighbours in a segment too: values moved there in that order. So a cursor decides on several keys, and reads
//! their values together. The first time these are few, for many cursors are asked for little; then more each time, up to a bound.
//!
//! Only for what cannot change under the cursor: what a snapshot sees.

use std::collections::VecDeque;

use bytes::Bytes;

use crate::Result;
use crate::cache::{Owner, VersionId};
use crate::entry::{Content, Pointer, SequenceNo};
use crate::merge::{Source, View};
use crate::value::Segments;

/// Keys that are read together at first, how many times more the next time, and at most.
const FIRST_KEYS: usize = 8;
const GROWTH: usize = 2;
const MOST_KEYS: usize = 64;

/// With so many bytes of values there are enough keys.
const ENOUGH_BYTES: u64 = 128 << 10;

/// A key, its value, and when it expires.
#[derive(Debug, Clone)]
pub(crate) struct Entry {
    pub(crate) key: Bytes,
    pub(crate) value: Bytes,
    pub(crate) expires_s: Option<u32>,
}

/// What was read together.
#[derive(Debug)]
pub(crate) struct Scan {
    /// The first key, if there is one.
    pub(crate) first: Option<Bytes>,
    /// Where the values lie that are kept apart from their keys.
    pub(crate) pointers: Vec<Pointer>,
    /// Those of them that came from a device.
    pub(crate) loaded: usize,
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
}

impl Ahead {
    pub(super) fn new(keys_only: bool) -> Ahead {
        Ahead { keys_only, ..Ahead::default() }
    }

    /// Forgets what was read.
    pub(super) fn clear(&mut self) {
        *self = Ahead::new(self.keys_only);
    }

    /// What comes next.
    pub(super) fn take(&mut self) -> Option<Entry> {
        self.ready.pop_front()
    }

    pub(super) fn ready(&self) -> usize {
        self.ready.len()
    }

    /// Whether there is nothing behind what is ready.
    pub(super) fn is_end(&self) -> bool {
        self.is_end
    }

    /// Keys to be read together next.
    pub(super) fn next_keys(&self) -> usize {
        (self.keys * GROWTH).clamp(FIRST_KEYS, MOST_KEYS)
    }

    /// Reads up to `keys` keys of the store `owner` that begin with `prefix`, and their values.
    ///
    /// # Errors
    /// `Corrupted`, or if a device fails; for any of them.
    pub(super) async fn fill<S: Source>(
        &mut self,
        view: &mut View<S>,
        prefix: &[u8],
        (segments, owner): (&Segments, Owner),
        keys: usize,
    ) -> Result<Scan> {
        let mut entries: Vec<Entry> = Vec::with_capacity(keys);
        // Those whose values are read: their indexes, and where.
        let mut pointed: Vec<(usize, SequenceNo, Pointer)> = Vec::new();
        let mut bytes = 0;
        let mut is_end = false;
        while entries.len() < keys && bytes < ENOUGH_BYTES {
            let is_there = view.step().await?;
            let version = view.version().filter(|_| is_there && view.key().starts_with(prefix));
            let Some(version) = version else {
                is_end = true;
                break;
            };
            let value = match &version.content {
                Content::Inline(_) | Content::At(_) if self.keys_only => Bytes::new(),
                Content::Inline(value) => value.clone(),
                Content::At(pointer) => {
                    bytes += u64::from(pointer.stored_len);
                    pointed.push((entries.len(), version.sequence, *pointer));
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
        let versions = pointed.iter().map(|&(index, sequence, pointer)| {
            let key = &*entries[index].key;
            (VersionId::new(owner, key, sequence), pointer)
        });
        let (values, loaded) = segments.read_all(&versions.collect::<Vec<_>>()).await?;
        for (&(index, ..), value) in pointed.iter().zip(values) {
            entries[index].value = value;
        }
        let pointers = pointed.into_iter().map(|(_, _, pointer)| pointer).collect();
        self.ready.extend(entries);
        self.keys = keys;
        self.is_end = is_end;
        Ok(Scan { first: self.ready.front().map(|entry| entry.key.clone()), pointers, loaded })
    }
}
