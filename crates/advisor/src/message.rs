//! What an advisor and the process that serves a mount tell each other: lines of JSON over a socket in the volume's
//! folder.
//!
//! 1. A line is at most [`MAX_LINE_BYTES`] long. A request has one answer, in order.
//! 2. A query that was begun ends when the client says so, or when its connection is gone.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use tanada_placement::{Extent, Pattern};

/// The socket's name in the volume's folder.
pub const SOCKET: &str = "advice";

/// Bytes of a line, at most.
pub const MAX_LINE_BYTES: usize = 16 << 20;

/// An access to one file, as its host names the file.
#[derive(Debug, Clone, PartialEq)]
pub struct AccessInFile {
    /// The file.
    pub file: PathBuf,
    /// `table.index`.
    pub index: String,
    /// The index's bytes.
    pub extents: Vec<Extent>,
    /// How it is read.
    pub pattern: Pattern,
    /// Page reads expected.
    pub expected_pages: u64,
    /// Bytes of a page.
    pub page_bytes: u32,
    /// When in the query: 0 first.
    pub stage: u32,
}

/// An access to one object.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ObjectAccess {
    /// The object's name.
    pub object: String,
    /// `table.index`.
    pub index: String,
    /// The index's bytes.
    pub extents: Vec<Extent>,
    /// How it is read.
    pub pattern: Pattern,
    /// Page reads expected.
    pub expected_pages: u64,
    /// Bytes of a page.
    pub page_bytes: u32,
    /// When in the query: 0 first.
    pub stage: u32,
}

/// A query that is about to begin, or might.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Announcement {
    /// Stands for the statement without its literals.
    pub fingerprint: u64,
    /// I/Os that it keeps in flight.
    pub depth: u32,
    /// What it reads.
    pub accesses: Vec<ObjectAccess>,
}

/// What a server has counted for an object.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ObjectReads {
    /// The object's name.
    pub object: String,
    /// Reads.
    pub reads: u64,
    /// Bytes read.
    pub bytes: u64,
}

/// What an advisor wants.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Request {
    /// To know what would be done for a query.
    Forecast(Announcement),
    /// To have it placed: it begins.
    Begin(Announcement),
    /// A query is over.
    End {
        /// Its number.
        query: u32,
    },
    /// To know when nothing is left to do.
    Settle,
    /// To know of the relocations so far, from this number on.
    Placed {
        /// The number of the first.
        from: u64,
    },
    /// The server's counters, for objects of which the volume has counted nothing.
    Counted(Vec<ObjectReads>),
}

/// What it gets.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    /// What would be done.
    Forecast(Foreseen),
    /// The query's number.
    Begun {
        /// It.
        query: u32,
    },
    /// It is done.
    Done,
    /// Relocations.
    Placed(Vec<Relocated>),
    /// It cannot be done.
    Refused {
        /// Why.
        why: String,
    },
}

/// What a policy would do for a query.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Foreseen {
    /// The policy's name.
    pub policy: String,
    /// For each access: in which classes its chunks are, the bytes of the index in each.
    pub classes: Vec<Vec<(String, u64)>>,
    /// Moves, the first some hundred.
    pub moves: Vec<Move>,
    /// All moves,
    pub move_count: u32,
    /// and the bytes that they copy.
    pub move_bytes: u64,
    /// Seconds that they save, the copies not subtracted,
    pub gain_s: f64,
    /// and seconds that the copies take.
    pub cost_s: f64,
    /// Earlier runs of the statement that the policy remembers.
    pub remembered_runs: u32,
}

/// A move that would be done.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Move {
    /// The object.
    pub object: String,
    /// Its chunk.
    pub chunk: u64,
    /// The verb.
    pub order: String,
    /// Why.
    pub why: String,
}

/// A relocation that was done or refused.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Relocated {
    /// Its number.
    pub no: u64,
    /// The object.
    pub object: String,
    /// Its chunk.
    pub chunk: u64,
    /// The verb, in the past tense.
    pub action: String,
    /// Why.
    pub why: String,
    /// Bytes copied.
    pub bytes: u64,
    /// Why it was not done.
    pub refusal: Option<String>,
}
