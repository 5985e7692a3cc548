//! Which versions outlive a merge.
//!
//! Point versions and range tombstones of a key make one timeline. A version is seen by the snapshots from its own
//! sequence number (that of the end, if a bulk load brought it) up to, and without, the number from which on the next
//! one in the timeline is seen; the newest is seen by all that come. What no snapshot sees is dropped. At the bottom of
//! the tree, where nothing older lies below, deletes are dropped, too, unless an older version of the same key is kept
//! for an older snapshot. What has expired counts as deleted.

use std::collections::BTreeSet;

use super::kway::Merge;
use super::readers::Readers;
use super::source::{Direction, Source, Step};
use crate::Result;
use crate::entry::{Content, FirstHome, RangeTombstone, SequenceNo, Version};
use crate::merge::view::is_live;
use crate::tombstone::RangeTombstones;

/// What retention depends on.
#[derive(Debug, Clone)]
pub(crate) struct Retention {
    pub(crate) readers: Readers,
    /// Seconds since 1970.
    pub(crate) now_s: u64,
    /// Nothing older than what is merged lies below it.
    pub(crate) is_bottom: bool,
}

impl Retention {
    /// Leaves of a key's versions (newest first) those to be kept.
    pub(crate) fn apply(&self, versions: &mut Vec<Version>, tombstones: &[SequenceNo]) {
        let mut last: Option<SequenceNo> = None;
        let mut newer: Option<SequenceNo> = None;
        versions.retain_mut(|version| {
            let sequence = version.sequence;
            if last.replace(sequence) == Some(sequence) {
                // A promoted kvset repeats it.
                return false;
            }
            let seen_from = self.readers.seen_from(sequence);
            let tombstone = tombstones.iter().rev().copied().find(|tombstone| *tombstone > sequence);
            let until = match (newer, tombstone) {
                (Some(newer), Some(tombstone)) => Some(newer.min(tombstone)),
                (newer, tombstone) => newer.or(tombstone),
            };
            // A write during the load may have hidden it before it was visible.
            newer = Some(until.map_or(seen_from, |until| until.min(seen_from)));
            if !is_live(version, self.now_s) {
                (version.content, version.expires_s) = (Content::Deleted, None);
            }
            until.is_none_or(|until| self.readers.has(seen_from, until))
        });
        if self.is_bottom {
            let kept = versions.iter().rposition(|version| version.content != Content::Deleted);
            versions.truncate(kept.map_or(0, |last| last + 1));
        }
    }

    /// The tombstones in `start..end` that are kept, cut to it.
    pub(crate) fn tombstones_within(
        &self,
        tombstones: &RangeTombstones,
        start: &[u8],
        end: Option<&[u8]>,
    ) -> Vec<RangeTombstone> {
        let keeps = |all: &[SequenceNo], sequence| self.keeps_tombstone(all, sequence);
        tombstones.within(start, end, &self.readers.numbers, keeps)
    }

    /// Returns whether a range tombstone is kept, of those over the same keys (newest first).
    fn keeps_tombstone(&self, tombstones: &[SequenceNo], sequence: SequenceNo) -> bool {
        let newer = tombstones.iter().rev().copied().find(|newer| *newer > sequence);
        let is_seen = newer.is_none_or(|newer| self.readers.has(sequence, newer));
        // At the bottom it hides only what is kept for a snapshot before it.
        is_seen && (!self.is_bottom || self.readers.has(0, sequence))
    }
}

/// A merge, key by key.
pub(crate) struct Groups<S> {
    merge: Merge<S>,
    tombstones: RangeTombstones,
    key: Vec<u8>,
    versions: Vec<Version>,
    before: u64,
    /// Versions of the key, before some were dropped.
    key_versions: usize,
    /// Sources that repeat versions of older ones.
    copies: BTreeSet<usize>,
    /// Number of the first sources that only hide versions of the others, and the tombstones of those others.
    masks: usize,
    unmasked: Option<RangeTombstones>,
    /// Numbers of the key's versions in those.
    masking: Vec<SequenceNo>,
}

impl<S: Source> Groups<S> {
    /// From the first key on that is not smaller than `start`.
    ///
    /// # Errors
    /// Those of the sources.
    pub(crate) async fn new(
        sources: Vec<S>,
        tombstones: RangeTombstones,
        start: Option<&[u8]>,
    ) -> Result<Groups<S>> {
        let mut merge = Merge::new(sources);
        merge.seek(Direction::Forward, start).await?;
        let (key, versions, copies) = (Vec::new(), Vec::new(), BTreeSet::new());
        let (masks, unmasked, masking) = (0, None, Vec::new());
        Ok(Groups {
            merge,
            tombstones,
            key,
            versions,
            before: 0,
            key_versions: 0,
            copies,
            masks,
            unmasked,
            masking,
        })
    }

    /// Merges the first `masks` sources only for what they hide of the others, whose tombstones are `unmasked`. None of
    /// their versions are passed on.
    pub(crate) fn masked_by(mut self, masks: usize, unmasked: RangeTombstones) -> Groups<S> {
        (self.masks, self.unmasked) = (masks, Some(unmasked));
        self
    }

    /// The sources with these indices repeat versions of older ones. What they have is left out; what they repeat gets
    /// the place of the copy's value as that of its mirror.
    pub(crate) fn with_copies(mut self, copies: BTreeSet<usize>) -> Groups<S> {
        self.copies = copies;
        self
    }

    /// The tombstones of what is passed on.
    pub(crate) fn tombstones(&self) -> &RangeTombstones {
        self.unmasked.as_ref().unwrap_or(&self.tombstones)
    }

    /// The key of the next group, if there is one.
    pub(crate) fn peek(&self) -> Option<&[u8]> {
        self.merge.key()
    }

    /// Collects the versions of the next key and leaves those that are kept; `false` at the end. There may be none
    /// left.
    ///
    /// # Errors
    /// Those of the sources.
    pub(crate) async fn next(&mut self, retention: &Retention) -> Result<bool> {
        self.versions.clear();
        self.masking.clear();
        let Some(key) = self.merge.key() else { return Ok(false) };
        self.key.clear();
        self.key.extend_from_slice(key);
        let mut copy: Option<(SequenceNo, FirstHome)> = None;
        while self.merge.key().is_some_and(|key| key == self.key) {
            let mut version = self.merge.version()?;
            if self.merge.top().is_some_and(|top| top < self.masks) {
                self.masking.push(version.sequence);
                self.versions.push(version);
            } else if self.merge.top().is_some_and(|top| self.copies.contains(&top)) {
                if let Content::At(pointer) = &version.content {
                    let home = FirstHome { segment: pointer.segment, offset: pointer.offset };
                    copy = Some((version.sequence, home));
                }
            } else {
                // Of equal versions the newer source, the copy, came first.
                if let Some((_, home)) = copy.filter(|(sequence, _)| *sequence == version.sequence) {
                    version.mirror = Some(home);
                }
                self.versions.push(version);
            }
            if self.merge.advance()? == Step::Load {
                self.merge.load().await?;
            }
        }
        self.key_versions = self.versions.len();
        self.before += self.key_versions as u64;
        let tombstones = self.tombstones.sequences_over(&self.key, &retention.readers.numbers);
        retention.apply(&mut self.versions, &tombstones);
        if !self.masking.is_empty() {
            self.versions.retain(|version| !self.masking.contains(&version.sequence));
        }
        Ok(true)
    }

    /// The key, and its versions that are kept, newest first.
    pub(crate) fn group(&mut self) -> (&[u8], &mut Vec<Version>) {
        (&self.key, &mut self.versions)
    }

    /// Returns whether the key was written more than once in what is merged, so that it will probably be written again
    /// soon.
    pub(crate) fn is_hot(&self) -> bool {
        self.key_versions > 1
    }

    /// Versions that were merged so far, kept or not.
    pub(crate) fn merged(&self) -> u64 {
        self.before
    }
}
