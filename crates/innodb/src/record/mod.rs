//! Records: where the fields of a row lie in its page.
//!
//! Three record forms meet here (`rem0rec`): COMPACT and DYNAMIC share one, REDUNDANT has its own, and both servers
//! extend them so that columns can be added and dropped without a rebuild. [`Shape`] is what is known of an index
//! beforehand, [`Spans`] is one record taken apart.

mod compact;
mod layout;
mod redundant;
mod shape;

pub(crate) use layout::Layout;
pub(crate) use shape::{FieldShape, Shape, longest_bytes};

use crate::{Error, ErrorKind, Result};

/// Where one field lies, or why it lies nowhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Span {
    start: u32,
    /// Length; the top bit marks a field whose rest lies outside of the page.
    length: u32,
}

const NULL: u32 = u32::MAX;
const ABSENT: u32 = u32::MAX - 1;
const EXTERNAL_BIT: u32 = 1 << 30;

impl Span {
    pub(crate) const NULL: Span = Span { start: NULL, length: 0 };
    /// The record is older than the field: it has the field's default.
    pub(crate) const ABSENT: Span = Span { start: ABSENT, length: 0 };

    #[inline]
    pub(crate) fn new(start: usize, length: usize, external: bool) -> Span {
        Span { start: start as u32, length: length as u32 | if external { EXTERNAL_BIT } else { 0 } }
    }

    #[inline]
    pub(crate) fn is_null(self) -> bool {
        self.start == NULL
    }

    #[inline]
    pub(crate) fn is_absent(self) -> bool {
        self.start == ABSENT
    }

    #[inline]
    pub(crate) fn is_external(self) -> bool {
        self.length & EXTERNAL_BIT != 0
    }

    /// The span of a field that lies `bytes` further on; the same for one that lies nowhere.
    #[inline]
    pub(crate) fn moved(self, bytes: usize) -> Span {
        let start = if self.start >= ABSENT { self.start } else { self.start + bytes as u32 };
        Span { start, length: self.length }
    }

    /// The field's bytes in the page; empty if it lies nowhere.
    #[inline]
    pub(crate) fn bytes(self, page: &[u8]) -> &[u8] {
        let (start, length) = (self.start as usize, (self.length & !EXTERNAL_BIT) as usize);
        // Checked when the span was made; NULL and ABSENT start past any page.
        page.get(start..start + length).unwrap_or_default()
    }
}

/// Spans of a record's fields; reused from record to record.
pub(crate) type Spans = Vec<Span>;

/// What a record is, by its header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Header {
    /// Marked as deleted, to be purged.
    pub(crate) deleted: bool,
    /// The smallest node pointer of its level, or on MariaDB's leaves the instant metadata.
    pub(crate) min_rec: bool,
    /// A node pointer by its status bits (REDUNDANT records do not say).
    pub(crate) node_pointer: bool,
}

/// Fields of a record at most (`REC_MAX_N_FIELDS`).
pub(crate) const MAX_FIELDS: usize = 1023;

const INFO_MIN_REC: u8 = 0x10;
const INFO_DELETED: u8 = 0x20;
const INFO_ROW_VERSION: u8 = 0x40;
const INFO_OLD_INSTANT: u8 = 0x80;
/// Set only after instant changes, on MySQL.
const INFO_VERSIONED: u8 = INFO_ROW_VERSION | INFO_OLD_INSTANT;

/// The header of the record at `origin`.
#[inline]
pub(crate) fn header(page: &[u8], origin: usize, compact: bool) -> Result<Header> {
    let info = |before: usize| origin.checked_sub(before).and_then(|at| page.get(at)).copied();
    let (info, status) = if compact { (info(5), info(3)) } else { (info(6), Some(0)) };
    let (Some(info), Some(status)) = (info, status) else { return Err(outside(origin)) };
    Ok(Header {
        deleted: info & INFO_DELETED != 0,
        min_rec: info & INFO_MIN_REC != 0,
        node_pointer: compact && status & 7 == 1,
    })
}

/// Finds the first `count` fields of the leaf record at `origin`.
#[inline]
pub(crate) fn parse_leaf(
    page: &[u8],
    origin: usize,
    compact: bool,
    shape: &Shape,
    count: usize,
    spans: &mut Spans,
) -> Result<()> {
    if compact {
        compact::parse_leaf(page, origin, shape, count, spans)
    } else {
        redundant::parse_leaf(page, origin, shape, count, spans)
    }
}

/// Bytes that the COMPACT leaf record at `origin` takes by `shape`, its header included.
pub(crate) fn compact_bytes(page: &[u8], origin: usize, shape: &Shape) -> Result<usize> {
    compact::bytes(page, origin, shape)
}

/// Whether the REDUNDANT leaf record at `origin` may be one of `shape`.
pub(crate) fn redundant_fits(page: &[u8], origin: usize, shape: &Shape) -> Result<bool> {
    redundant::fits(page, origin, shape)
}

/// Finds the first `count` key fields of the node pointer at `origin`; `count` may be all of them.
#[inline]
pub(crate) fn parse_node_key(
    page: &[u8],
    origin: usize,
    compact: bool,
    shape: &Shape,
    count: usize,
    spans: &mut Spans,
) -> Result<()> {
    if compact {
        compact::parse_node(page, origin, shape, count, spans).map(|_| ())
    } else {
        redundant::parse_node(page, origin, count, spans)
    }
}

/// The page number that the node pointer at `origin` holds.
pub(crate) fn child(
    page: &[u8],
    origin: usize,
    compact: bool,
    shape: &Shape,
    spans: &mut Spans,
) -> Result<u32> {
    let span = if compact {
        let end = compact::parse_node(page, origin, shape, shape.node_fields, spans)?;
        Span::new(end, 4, false)
    } else {
        redundant::parse_node(page, origin, shape.node_fields + 1, spans)?;
        spans.last().copied().ok_or_else(|| outside(origin))?
    };
    let bytes: [u8; 4] = span.bytes(page).try_into().map_err(|_| outside(origin))?;
    Ok(u32::from_be_bytes(bytes))
}

#[cold]
pub(crate) fn outside(origin: usize) -> Error {
    Error::new(ErrorKind::Corrupt, format!("the record at {origin} reaches outside of its page"))
}

#[cold]
pub(crate) fn malformed(origin: usize, what: &str) -> Error {
    Error::new(ErrorKind::Corrupt, format!("the record at {origin} {what}"))
}
