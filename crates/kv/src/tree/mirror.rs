//! Mirrors: segments on the fastest class in which values may be read that leaves have on a slower one. A version in a
//! leaf says where its value is there, too; whether that may be used is the tree's to say.
//!
//! 1. A spill that moves values says of each where the log wrote it ([`FirstHome`](crate::entry::FirstHome)), and adds
//!    the log's segments to the tree's mirrors; or, of log segments that are mostly garbage, where in a segment of
//!    copies it is, which is added in their place. A compaction does that for what has no mirror, and a merge of
//!    promoted kvsets with what they repeat adds the segments of their copies.
//! 2. Whoever reads a value looks whether the segment is one of them, and reads there; if that fails, for whatever
//!    reason, where the leaf has it. The checksum is the same for both.
//! 3. A mirror goes by an edit alone, and is closed then: trees that were before, which a cursor may hold for long, do
//!    not keep its segment. What leaves say of it stays, and leads nowhere: a segment's number is never given twice.

use crate::tuning::tree::JOBS;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use parking_lot::RwLock;

use crate::value::Segment;

/// A segment as a mirror.
#[derive(Debug, Clone, Default)]
pub(crate) struct Mirror {
    /// Stored bytes of values that leaves have elsewhere.
    pub(crate) stored_bytes: u64,
    /// In trees that are read.
    pub(crate) opened: Option<Arc<OpenMirror>>,
}

impl PartialEq for Mirror {
    /// Compares as records of a manifest.
    fn eq(&self, other: &Mirror) -> bool {
        self.stored_bytes == other.stored_bytes
    }
}

impl Eq for Mirror {}

/// A mirror that is open. Until it is closed, its segment is not deleted.
#[derive(Debug)]
pub(crate) struct OpenMirror {
    segment: RwLock<Option<Segment>>,
    /// Values that were read in it, or might have been; halved at the end of each round.
    reads: AtomicU64,
    /// Ends of rounds that it has yet to see before enough was seen of it.
    unseen: AtomicU64,
    /// Something in it could not be read.
    is_damaged: AtomicBool,
}

impl OpenMirror {
    /// A mirror from now on; rounds begin, too, if the database `is_opened`.
    pub(crate) fn new(segment: Segment, is_opened: bool) -> Arc<OpenMirror> {
        Arc::new(OpenMirror {
            segment: RwLock::new(Some(segment)),
            reads: AtomicU64::new(0),
            unseen: AtomicU64::new(if is_opened { 1 } else { JOBS.min_rounds }),
            is_damaged: AtomicBool::new(false),
        })
    }

    /// To be read in, unless it is closed. To be held no longer than that takes.
    pub(crate) fn segment(&self) -> Option<Segment> {
        self.segment.read().clone()
    }

    /// Marks it as evicted, in every tree.
    pub(crate) fn close(&self) {
        *self.segment.write() = None;
    }

    /// A value was read in it.
    pub(crate) fn note_read(&self) {
        self.reads.fetch_add(1, Ordering::Relaxed);
    }

    /// Something in it could not be read: it is of no use.
    pub(crate) fn note_damage(&self) {
        self.is_damaged.store(true, Ordering::Relaxed);
    }

    pub(crate) fn is_damaged(&self) -> bool {
        self.is_damaged.load(Ordering::Relaxed)
    }

    /// Values that were read in it, as far as they count yet.
    pub(crate) fn reads(&self) -> u64 {
        self.reads.load(Ordering::Relaxed)
    }

    /// The same, if enough was seen to tell.
    pub(crate) fn shown_reads(&self) -> Option<u64> {
        (self.unseen.load(Ordering::Relaxed) == 0).then(|| self.reads())
    }

    /// Ends a round of reads: earlier ones are halved `halvings` times. Must not be called concurrently.
    pub(crate) fn end_round(&self, halvings: u32) {
        self.unseen.store(self.unseen.load(Ordering::Relaxed).saturating_sub(1), Ordering::Relaxed);
        self.reads.store(self.reads() >> halvings, Ordering::Relaxed);
    }
}
