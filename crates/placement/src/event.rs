//! What policies are told.

use serde::{Deserialize, Serialize};

use crate::action::Action;
use crate::costs::Costs;
use crate::footprint::{Cause, Fingerprint, Footprint, QueryId};
use crate::layout::{ChunkNo, Layout};

/// Read or write.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum IoKind {
    /// A read.
    Read,
    /// A write.
    Write,
}

/// The part of an I/O that lies in one chunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Io {
    /// Where.
    pub chunk: ChunkNo,
    /// Where it begins in the chunk.
    pub offset: u32,
    /// Read or write.
    pub kind: IoKind,
    /// Whether it began where an earlier one of its stream ended.
    pub is_sequential: bool,
    /// Bytes, in this chunk.
    pub bytes: u32,
    /// Who wanted it.
    pub query: QueryId,
    /// For which index.
    pub cause: Cause,
}

/// Something happened.
#[derive(Debug, Clone, Copy)]
pub enum Event<'a> {
    /// An I/O. A read has been sent to where its chunk lies; a write is sent when the policy has answered.
    Io(Io),
    /// A query is about to begin.
    QueryBegins {
        /// Which.
        query: QueryId,
        /// Its statement.
        fingerprint: Fingerprint,
        /// I/Os that it keeps in flight.
        depth: u32,
        /// What its plan says; empty where there is none.
        footprint: &'a Footprint,
    },
    /// A query is over.
    QueryEnds {
        /// Which.
        query: QueryId,
    },
    /// The page cache above gave a page up.
    Evicted {
        /// Where it lies.
        chunk: ChunkNo,
        /// Whether it was changed since it was read; its write comes as an [`Io`] of its own.
        is_dirty: bool,
    },
    /// A copy that the policy wanted has come to its end, or anything that it wanted was refused. Of a chunk that the
    /// policy has wanted nothing for: it lies in the fast class, from another session.
    Done {
        /// Of which chunk.
        chunk: ChunkNo,
        /// What had been wanted.
        action: Action,
        /// Whether it is as wanted.
        is_done: bool,
    },
    /// Time has passed.
    Tick,
}

/// What holds while an event is handled.
#[derive(Debug, Clone, Copy)]
pub struct Context<'a> {
    /// Nanoseconds since the beginning; never goes backwards.
    pub now_ns: u64,
    /// The chunks that exist.
    pub layout: &'a Layout,
    /// Chunks that the fast class has room for, besides those that users have pinned there: policies are not told of
    /// these, and have no say in them.
    pub capacity: u32,
    /// What the devices are good at.
    pub costs: &'a Costs,
}
