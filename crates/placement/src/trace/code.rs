//! Records as bytes: `docs/trace-format.md`.
//!
//! I/Os are told by their difference from the one before in the same block, so a block
//! stands for itself.
//!
//! Invariant: whatever the bytes, decoding ends with records or an error; nothing is allocated that the bytes cannot
//! fill.

use tanada_base::Reader;

use super::{Eviction, Record, TraceIo, TraceQuery};
use crate::event::IoKind;
use crate::footprint::{Access, Cause, Extent, Fingerprint, Footprint, Pattern, QueryId};
use crate::layout::ObjectNo;
use crate::numbers::{Wrong, byte, narrow, put, put_name, take, take_count, take_name};

const OBJECT: u8 = 1;
const CAUSE: u8 = 2;
const BEGINS: u8 = 3;
const ENDS: u8 = 4;
const EVICTED: u8 = 5;
const END: u8 = 6;
const IO: u8 = 16;

const IO_IS_WRITE: u8 = 1;
const IO_IS_SEQUENTIAL: u8 = 2;
const IO_IS_OF_THE_SAME: u8 = 4;
const IO_CONTINUES: u8 = 8;
const IO_IS_AFTER: u8 = 32;

/// What I/Os are told against.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct State {
    query: u32,
    object: u32,
    cause: u16,
    offset: u64,
    end: u64,
}

/// The mark of a clean end.
pub(super) fn put_end(bytes: &mut Vec<u8>) {
    bytes.push(END);
}

/// Adds the record to the block's `bytes`.
pub(super) fn put_record(record: &Record, state: &mut State, bytes: &mut Vec<u8>) {
    match record {
        Record::Object { name, bytes: size } => {
            bytes.push(OBJECT);
            put_name(name, bytes);
            put(*size, bytes);
        }
        Record::Cause { name } => {
            bytes.push(CAUSE);
            put_name(name, bytes);
        }
        Record::Begins(query) => put_query(query, bytes),
        Record::Ends(query) => {
            bytes.push(ENDS);
            put(query.0.into(), bytes);
        }
        Record::Evicted(page) => {
            bytes.push(EVICTED);
            [page.object.0.into(), page.offset, page.bytes.into(), page.is_dirty.into()]
                .into_iter()
                .for_each(|number| put(number, bytes));
        }
        Record::Io(io) => put_io(io, state, bytes),
    }
}

fn put_query(query: &TraceQuery, bytes: &mut Vec<u8>) {
    bytes.push(BEGINS);
    put_name(&query.name, bytes);
    bytes.extend_from_slice(&query.fingerprint.0.to_be_bytes());
    put(query.footprint.accesses.len() as u64, bytes);
    for access in &query.footprint.accesses {
        put(access.object.0.into(), bytes);
        put(access.cause.0.into(), bytes);
        match access.pattern {
            Pattern::SequentialScan => bytes.push(0),
            Pattern::RandomLookUps { expected } => {
                bytes.push(1);
                put(expected, bytes);
            }
            Pattern::IndexRange => bytes.push(2),
        }
        put(access.expected_pages, bytes);
        put(access.page_bytes.into(), bytes);
        put(access.stage.into(), bytes);
        put(access.extents.len() as u64, bytes);
        for extent in &access.extents {
            put(extent.offset, bytes);
            put(extent.len, bytes);
        }
    }
}

fn put_io(io: &TraceIo, state: &mut State, bytes: &mut Vec<u8>) {
    let is_same = (io.query.0, io.object.0, io.cause.0) == (state.query, state.object, state.cause);
    let continues = is_same && io.offset == state.end;
    let flag = |is_set: bool, flag: u8| if is_set { flag } else { 0 };
    bytes.push(
        IO | flag(io.kind == IoKind::Write, IO_IS_WRITE)
            | flag(io.is_sequential, IO_IS_SEQUENTIAL)
            | flag(is_same, IO_IS_OF_THE_SAME)
            | flag(continues, IO_CONTINUES)
            | flag(io.after > 0, IO_IS_AFTER),
    );
    if !is_same {
        put(io.query.0.into(), bytes);
        put(io.object.0.into(), bytes);
        put(io.cause.0.into(), bytes);
    }
    if !continues {
        let difference = io.offset.wrapping_sub(state.offset) as i64;
        put((difference << 1 ^ difference >> 63) as u64, bytes);
    }
    put(io.bytes.into(), bytes);
    put(io.think_ns.into(), bytes);
    if io.after > 0 {
        put(io.after.into(), bytes);
    }
    let end = io.offset.wrapping_add(io.bytes.into());
    *state = State { query: io.query.0, object: io.object.0, cause: io.cause.0, offset: io.offset, end };
}

/// What stands in a block.
pub(super) enum Decoded {
    Record(Record),
    End,
}

/// The next record.
pub(super) fn take_record(reader: &mut Reader<'_>, state: &mut State) -> Result<Decoded, Wrong> {
    let at = reader.position();
    let tag = byte(reader)?;
    let record = match tag {
        OBJECT => Record::Object { name: take_name(reader)?, bytes: take(reader)? },
        CAUSE => Record::Cause { name: take_name(reader)? },
        BEGINS => Record::Begins(take_query(reader)?),
        ENDS => Record::Ends(QueryId(narrow(take(reader)?, "a query")?)),
        EVICTED => Record::Evicted(Eviction {
            object: ObjectNo(narrow(take(reader)?, "an object")?),
            offset: take(reader)?,
            bytes: narrow(take(reader)?, "a size")?,
            is_dirty: take(reader)? != 0,
        }),
        END => return Ok(Decoded::End),
        tag if tag & 0xf0 & !IO_IS_AFTER == IO => Record::Io(take_io(tag, reader, state)?),
        tag => return Err(format!("{tag} at byte {at} of the block is no record")),
    };
    Ok(Decoded::Record(record))
}

fn take_query(reader: &mut Reader<'_>) -> Result<TraceQuery, Wrong> {
    let name = take_name(reader)?;
    let fingerprint = Fingerprint(reader.u64().map_err(|error| error.to_string())?);
    let count = take_count(reader, 7)?;
    let accesses = (0..count).map(|_| take_access(reader)).collect::<Result<_, _>>()?;
    Ok(TraceQuery { name, fingerprint, footprint: Footprint { accesses } })
}

fn take_access(reader: &mut Reader<'_>) -> Result<Access, Wrong> {
    let object = ObjectNo(narrow(take(reader)?, "an object")?);
    let cause = Cause(narrow(take(reader)?, "a cause")?);
    let pattern = match byte(reader)? {
        0 => Pattern::SequentialScan,
        1 => Pattern::RandomLookUps { expected: take(reader)? },
        2 => Pattern::IndexRange,
        other => return Err(format!("{other} is no access pattern")),
    };
    let expected_pages = take(reader)?;
    let page_bytes = narrow(take(reader)?, "a page size")?;
    let stage = narrow(take(reader)?, "a stage")?;
    let count = take_count(reader, 2)?;
    let extent = |_| Ok::<_, Wrong>(Extent { offset: take(reader)?, len: take(reader)? });
    let extents = (0..count).map(extent).collect::<Result<_, _>>()?;
    Ok(Access { object, cause, extents, pattern, expected_pages, earlier_pages: None, page_bytes, stage })
}

fn take_io(tag: u8, reader: &mut Reader<'_>, state: &mut State) -> Result<TraceIo, Wrong> {
    let is = |flag: u8| tag & flag != 0;
    if !is(IO_IS_OF_THE_SAME) {
        state.query = narrow(take(reader)?, "a query")?;
        state.object = narrow(take(reader)?, "an object")?;
        state.cause = narrow(take(reader)?, "a cause")?;
    }
    let offset = if is(IO_CONTINUES) {
        state.end
    } else {
        let coded = take(reader)?;
        state.offset.wrapping_add((coded >> 1) ^ (coded & 1).wrapping_neg())
    };
    let bytes: u32 = narrow(take(reader)?, "a size")?;
    let think_ns = narrow(take(reader)?, "a time")?;
    let after = if is(IO_IS_AFTER) { narrow(take(reader)?, "a distance")? } else { 0 };
    (state.offset, state.end) = (offset, offset.wrapping_add(bytes.into()));
    Ok(TraceIo {
        offset,
        bytes,
        think_ns,
        query: QueryId(state.query),
        object: ObjectNo(state.object),
        cause: Cause(state.cause),
        kind: if is(IO_IS_WRITE) { IoKind::Write } else { IoKind::Read },
        is_sequential: is(IO_IS_SEQUENTIAL),
        after,
    })
}
