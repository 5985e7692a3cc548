//! Mirrors: segments on the fastest class in which values may be read that leaves have on a slower one. A version in a leaf says where its value is there,
//! too; whether that may be used is the tree's to say.
//!
//! 1. A spill that moves values says of each where the log wrote it ([`FirstHome`](crate::entry::FirstHome)), and adds the log's segments to the tree's
//!    mirrors; or, of log segments that are mostly garbage, where in a segment of copies it is, which is added in their place. A compaction does that for what
//!    has no mirror, and a merge of promoted kvsets with what they repeat adds the segments of their copies.
//! 2. Whoever reads a value looks whether the segment is one of them, and reads there; if that fails, for whatever reason, where the leaf has it. The checksum
//!    is the same for both.
//! 3. A mirror goes by an edit alone, and is closed then: trees that were before, which a cursor may hold for long, do not keep its segment. What leaves say
//!    of it stays, and leads nowhere: a segment's number is never given twice.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use parking_lot::RwLock;

use crate::value::Segment;

/// A segment as a mirror.
#[derive(Debug, Clone, Default)]
pub(crate) struct Mirror {
    /// Of values that leaves have elsewhere.
    pub(crate) stored_bytes: u64,
    /// In trees that are read.
    pub(crate) opened: Option<Arc<OpenMirror>>,
}

impl PartialEq for Mirror {
    /// As records of a manifest.
    fn eq(&self, other: &Mirror) -> bool {
        self.stored_bytes == other.stored_bytes
    }
}

impl Eq for Mirror {}

/// A mirror that is open. Until it is closed, its segment is not deleted.
#[derive(Debug)]
pub(crate) struct OpenMirror {
    segment: RwLock<Option<Segment>>,
    /// Values that were read in it; halved whenever room is made.
    reads: AtomicU64,
    /// So often it stayed when room was made.
    stayed: AtomicU64,
    /// Something in it could not be read.
    is_damaged: AtomicBool,
}

/// A mirror that stayed so often has shown what it is worth.
const SHOWN_AFTER: u64 = 4;

impl OpenMirror {
    pub(crate) fn new(segment: Segment) -> Arc<OpenMirror> {
        Arc::new(OpenMirror {
            segment: RwLock::new(Some(segment)),
            reads: AtomicU64::new(0),
            stayed: AtomicU64::new(0),
            is_damaged: AtomicBool::new(false),
        })
    }

    /// To be read in, unless it is closed. To be held no longer than that takes.
    pub(crate) fn segment(&self) -> Option<Segment> {
        self.segment.read().clone()
    }

    /// It is none any more, in whatever tree.
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

    /// Reads, if enough of it was seen to tell.
    pub(crate) fn reads(&self) -> Option<u64> {
        let has_shown = self.stayed.load(Ordering::Relaxed) >= SHOWN_AFTER;
        has_shown.then(|| self.reads.load(Ordering::Relaxed))
    }

    /// Room was made, and it stays.
    pub(crate) fn stays(&self) {
        self.stayed.fetch_add(1, Ordering::Relaxed);
        self.reads.store(self.reads.load(Ordering::Relaxed) / 2, Ordering::Relaxed);
    }
}
