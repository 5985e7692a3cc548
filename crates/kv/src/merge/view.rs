//! What a snapshot sees of a merge: of every key the newest version up to the snapshot, unless that is a delete, is
//! hidden by a range tombstone, or has expired.
//!
//! The loops wait for nothing; where a source has to load they leave off, and are entered again afterwards.

use super::kway::Merge;
use super::source::{Direction, Source, Step};
use crate::Result;
use crate::entry::{Content, SequenceNo, Version};
use crate::tombstone::SeenTombstones;

/// The reader of a view.
#[derive(Debug, Clone)]
pub(crate) struct Visibility {
    pub(crate) snapshot: SequenceNo,
    /// Numbers of loads that it does not see though they are not larger.
    pub(crate) unseen: Vec<SequenceNo>,
    /// Seconds since 1970.
    pub(crate) now_s: u64,
    /// Tombstones of all sources.
    pub(crate) tombstones: SeenTombstones,
}

/// Returns whether a version that is the newest up to a snapshot is a value at all.
pub(crate) fn is_live(version: &Version, now_s: u64) -> bool {
    let has_expired = version.expires_s.is_some_and(|expires_s| u64::from(expires_s) <= now_s);
    !has_expired && version.content != Content::Deleted
}

impl Visibility {
    /// Returns whether what has that number was there at the snapshot's time.
    fn reaches(&self, sequence: SequenceNo) -> bool {
        sequence <= self.snapshot && !self.unseen.contains(&sequence)
    }

    fn sees(&self, key: &[u8], version: &Version) -> bool {
        let hidden_up_to = self.tombstones.newest_over(key);
        is_live(version, self.now_s) && hidden_up_to.is_none_or(|hidden| version.sequence >= hidden)
    }
}

enum Progress {
    At,
    End,
    Load,
}

/// Walks the keys that a snapshot sees.
pub(crate) struct View<S> {
    merge: Merge<S>,
    visibility: Visibility,
    /// The key that was decided last; in reverse, the one that is looked at.
    key: Vec<u8>,
    has_key: bool,
    version: Option<Version>,
    must_advance: bool,
}

impl<S: Source> View<S> {
    pub(crate) fn new(sources: Vec<S>, visibility: Visibility) -> View<S> {
        let merge = Merge::new(sources);
        View { merge, visibility, key: Vec::new(), has_key: false, version: None, must_advance: false }
    }

    /// Goes before the first key that is not smaller than `bound`; in reverse behind the last one that is smaller.
    /// [`step`](Self::step) then goes to it.
    ///
    /// # Errors
    /// Those of the sources.
    pub(crate) async fn seek(&mut self, direction: Direction, bound: Option<&[u8]>) -> Result<()> {
        self.has_key = false;
        self.must_advance = false;
        self.version = None;
        self.merge.seek(direction, bound).await
    }

    /// Goes one key further, in the direction of the last seek; `false` at the end.
    ///
    /// # Errors
    /// Those of the sources.
    pub(crate) async fn step(&mut self) -> Result<bool> {
        self.version = None;
        loop {
            let progress = match self.merge.direction() {
                Direction::Forward => self.step_forward()?,
                Direction::Reverse => self.step_reverse()?,
            };
            match progress {
                Progress::At => return Ok(true),
                Progress::End => return Ok(false),
                Progress::Load => self.merge.load().await?,
            }
        }
    }

    pub(crate) fn direction(&self) -> Direction {
        self.merge.direction()
    }

    /// The key it is at.
    pub(crate) fn key(&self) -> &[u8] {
        &self.key
    }

    /// The version it is at; `None` before the first step and at the end.
    pub(crate) fn version(&self) -> Option<&Version> {
        self.version.as_ref()
    }

    fn advance(&mut self) -> Result<Step> {
        if !std::mem::take(&mut self.must_advance) {
            return Ok(Step::Done);
        }
        self.merge.advance()
    }

    fn step_forward(&mut self) -> Result<Progress> {
        loop {
            if self.advance()? == Step::Load {
                return Ok(Progress::Load);
            }
            let Some(key) = self.merge.key() else { return Ok(Progress::End) };
            self.must_advance = true;
            let is_decided = self.has_key && key == self.key;
            if is_decided || !self.visibility.reaches(self.merge.sequence()) {
                continue;
            }
            self.key.clear();
            self.key.extend_from_slice(key);
            self.has_key = true;
            let version = self.merge.version()?;
            if self.visibility.sees(&self.key, &version) {
                self.version = Some(version);
                return Ok(Progress::At);
            }
        }
    }

    /// Versions come oldest first: the last one up to the snapshot is known when the next key comes.
    fn step_reverse(&mut self) -> Result<Progress> {
        loop {
            if self.advance()? == Step::Load {
                return Ok(Progress::Load);
            }
            let key = self.merge.key();
            if self.has_key && key.is_none_or(|key| key != self.key) {
                self.has_key = false;
                match &self.version {
                    Some(version) if self.visibility.sees(&self.key, version) => return Ok(Progress::At),
                    _ => self.version = None,
                }
            }
            let Some(key) = self.merge.key() else { return Ok(Progress::End) };
            if !self.has_key {
                self.key.clear();
                self.key.extend_from_slice(key);
                self.has_key = true;
            }
            if self.visibility.reaches(self.merge.sequence()) {
                self.version = Some(self.merge.version()?);
            }
            self.must_advance = true;
        }
    }
}
