//! Chunk traces: what was read and written, by which query, for which index. Recorded once, replayed under any policy.
//!
//! [`Trace`] is a trace in memory. [`TraceWriter`] and [`TraceReader`] keep it in files (`docs/trace-format.md`);
//! [`import`] makes one from logs of other tools.

mod code;
mod file;
pub mod import;
mod recorder;

use serde::{Deserialize, Serialize};

use crate::event::IoKind;
use crate::footprint::{Cause, Fingerprint, Footprint, QueryId};
use crate::layout::{Layout, ObjectNo};
use crate::{Error, Result};

pub use file::{End, TraceReader, TraceWriter};
pub use recorder::Recorder;

/// Objects, causes and queries that a trace may have.
pub const MOST_NAMES: usize = 65_536;

/// An I/O as it was asked for, wherever it went.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct TraceIo {
    /// Where in the object.
    pub offset: u64,
    /// Bytes.
    pub bytes: u32,
    /// Nanoseconds from the completion of the I/O before to this one: what the query computed meanwhile.
    pub think_ns: u32,
    /// Who wanted it.
    pub query: QueryId,
    /// In which object.
    pub object: ObjectNo,
    /// For which index.
    pub cause: Cause,
    /// Read or write.
    pub kind: IoKind,
    /// Whether it began where an earlier one of its stream ended.
    pub is_sequential: bool,
    /// How many I/Os of the query before it is the one whose end let it begin; 0 if that is not known, or any other's
    /// end lets it begin.
    #[serde(default)]
    pub after: u32,
}

/// One entry of a trace. Names come before what uses them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Record {
    /// An object; its number is that of the objects before it.
    Object {
        /// Its name.
        name: String,
        /// Its bytes when the trace begins.
        bytes: u64,
    },
    /// A cause; its number is one more than that of the causes before it, 0 being what is not known.
    Cause {
        /// The index's name.
        name: String,
    },
    /// A query begins; its number is that of the queries before it.
    Begins(TraceQuery),
    /// A query ends.
    Ends(QueryId),
    /// An I/O.
    Io(TraceIo),
    /// The page cache gave up a page.
    Evicted(Eviction),
}

/// A page that the page cache gave up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Eviction {
    /// Where in the object.
    pub offset: u64,
    /// Bytes.
    pub bytes: u32,
    /// In which object.
    pub object: ObjectNo,
    /// Whether it had been changed.
    pub is_dirty: bool,
}

/// One execution of a query.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TraceQuery {
    /// For people.
    pub name: String,
    /// Its statement.
    pub fingerprint: Fingerprint,
    /// What its plan said.
    pub footprint: Footprint,
}

/// An object of a trace.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TraceObject {
    /// Its name.
    pub name: String,
    /// Its bytes, all I/Os included.
    pub bytes: u64,
}

/// What happens in a trace, in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum TraceEvent {
    /// A query begins.
    Begins(QueryId),
    /// A query ends.
    Ends(QueryId),
    /// An I/O.
    Io(TraceIo),
    /// The page cache gave up a page.
    Evicted(Eviction),
}

/// A trace in memory.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Trace {
    objects: Vec<TraceObject>,
    causes: Vec<String>,
    queries: Vec<TraceQuery>,
    events: Vec<TraceEvent>,
    ios: u64,
}

impl Trace {
    /// Objects, by their number.
    pub fn objects(&self) -> &[TraceObject] {
        &self.objects
    }

    /// Causes, from number 1 on.
    pub fn causes(&self) -> &[String] {
        &self.causes
    }

    /// Queries, by their number.
    pub fn queries(&self) -> &[TraceQuery] {
        &self.queries
    }

    /// What happens, in order.
    pub fn events(&self) -> &[TraceEvent] {
        &self.events
    }

    /// I/Os in all.
    pub fn ios(&self) -> u64 {
        self.ios
    }

    /// Bytes of all objects.
    pub fn bytes(&self) -> u64 {
        self.objects.iter().fold(0, |sum, object| sum.saturating_add(object.bytes))
    }

    /// The objects as chunks of `chunk_bytes`. Each object begins with a chunk of its own.
    pub fn layout(&self, chunk_bytes: u64) -> Layout {
        let mut layout = Layout::new(chunk_bytes);
        for object in &self.objects {
            layout.add(&object.name, object.bytes);
        }
        layout
    }

    /// Adds a record.
    ///
    /// # Errors
    /// If it names an object or query that did not come before, or is one too many.
    pub fn push(&mut self, record: Record) -> Result<()> {
        match record {
            Record::Object { name, bytes } => {
                within(self.objects.len(), "objects")?;
                self.objects.push(TraceObject { name, bytes });
            }
            Record::Cause { name } => {
                within(self.causes.len() + 1, "causes")?;
                self.causes.push(name);
            }
            Record::Begins(query) => {
                within(self.queries.len(), "queries")?;
                for access in &query.footprint.accesses {
                    self.object(access.object)?;
                }
                self.events.push(TraceEvent::Begins(QueryId(self.queries.len() as u32)));
                self.queries.push(query);
            }
            Record::Ends(query) => {
                if query.0 as usize >= self.queries.len() {
                    return Err(Error::corrupted(format!("query {} ends and never began", query.0)));
                }
                self.events.push(TraceEvent::Ends(query));
            }
            Record::Io(io) => {
                self.touch(io.object, io.offset, io.bytes)?;
                self.events.push(TraceEvent::Io(io));
                self.ios += 1;
            }
            Record::Evicted(page) => {
                self.touch(page.object, page.offset, page.bytes)?;
                self.events.push(TraceEvent::Evicted(page));
            }
        }
        Ok(())
    }

    fn object(&mut self, object: ObjectNo) -> Result<&mut TraceObject> {
        let count = self.objects.len();
        self.objects.get_mut(object.0 as usize).ok_or_else(|| {
            Error::corrupted(format!("object {} is used, and there are {count} so far", object.0))
        })
    }

    /// The object has at least these bytes, of which there are some.
    fn touch(&mut self, object: ObjectNo, offset: u64, bytes: u32) -> Result<()> {
        let object = self.object(object)?;
        if bytes == 0 {
            let name = &object.name;
            return Err(Error::corrupted(format!(
                "an I/O or a page of 0 bytes at offset {offset} of {name}"
            )));
        }
        let end = offset.checked_add(u64::from(bytes)).filter(|end| *end <= MOST_BYTES);
        let end = end.ok_or_else(|| {
            Error::corrupted(format!("offset {offset} of {} is beyond what a trace may address", object.name))
        })?;
        object.bytes = object.bytes.max(end);
        Ok(())
    }

    /// Everything as records, in an order in which it can be pushed again.
    pub fn records(&self) -> impl Iterator<Item = Record> + '_ {
        self.records_since(&mut Mark::default())
    }

    /// What came since the mark, as records that can be pushed after those before. The mark goes to the end.
    pub fn records_since<'a>(&'a self, mark: &mut Mark) -> impl Iterator<Item = Record> + use<'a> {
        let end = Mark { objects: self.objects.len(), causes: self.causes.len(), events: self.events.len() };
        let from = std::mem::replace(mark, end);
        let objects = self
            .objects
            .iter()
            .skip(from.objects)
            .map(|object| Record::Object { name: object.name.clone(), bytes: object.bytes });
        let causes = self.causes.iter().skip(from.causes).map(|name| Record::Cause { name: name.clone() });
        let events = self.events.iter().skip(from.events).filter_map(|event| match event {
            TraceEvent::Begins(query) => self.queries.get(query.0 as usize).cloned().map(Record::Begins),
            TraceEvent::Ends(query) => Some(Record::Ends(*query)),
            TraceEvent::Io(io) => Some(Record::Io(*io)),
            TraceEvent::Evicted(page) => Some(Record::Evicted(*page)),
        });
        objects.chain(causes).chain(events)
    }
}

/// How much of a trace that grows has been taken ([`Trace::records_since`]); at first nothing.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Mark {
    objects: usize,
    causes: usize,
    events: usize,
}

/// Bytes of an object that a trace may address: what keeps chunk numbers, at 4 KiB each, within their 32 bits.
pub const MOST_BYTES: u64 = 1 << 43;

fn within(count: usize, what: &str) -> Result<()> {
    if count >= MOST_NAMES {
        return Err(Error::corrupted(format!("the trace has more than {MOST_NAMES} {what}")));
    }
    Ok(())
}
