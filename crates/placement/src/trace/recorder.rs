//! A trace made while it happens.

use std::collections::HashMap;

use super::{Eviction, Record, Trace, TraceIo, TraceQuery};
use crate::footprint::{Cause, QueryId};
use crate::layout::ObjectNo;

/// Numbers what it is told of, and keeps it in order.
///
/// A trace has room for so many objects, causes and queries ([`crate::MOST_NAMES`]). What is beyond gets numbers that
/// nothing has, and I/Os of such objects are left out and [counted](Recorder::lost).
///
/// ```
/// use tanada_placement::{Fingerprint, Footprint, IoKind, Recorder, TraceIo, TraceQuery};
/// let mut recorder = Recorder::new();
/// let (object, cause) = (recorder.object("orders", 5 << 20), recorder.cause("orders.PRIMARY"));
/// let footprint = Footprint::default();
/// let query = recorder.begins(TraceQuery { name: "Q4".to_owned(), fingerprint: Fingerprint(4), footprint });
/// let (kind, is_sequential) = (IoKind::Read, false);
/// recorder.io(TraceIo { offset: 0, bytes: 16384, think_ns: 0, query, object, cause, kind, is_sequential, after: 0 });
/// recorder.ends(query);
/// assert_eq!((recorder.lost(), recorder.finish().ios()), (0, 1));
/// ```
#[derive(Debug, Clone, Default)]
pub struct Recorder {
    trace: Trace,
    objects: HashMap<String, ObjectNo>,
    causes: HashMap<String, Cause>,
    lost: u64,
}

impl Recorder {
    /// With nothing in it.
    pub fn new() -> Recorder {
        Recorder::default()
    }

    /// The number of the object of that name.
    pub fn object(&mut self, name: &str, bytes: u64) -> ObjectNo {
        if let Some(no) = self.objects.get(name) {
            return *no;
        }
        let no = ObjectNo(self.trace.objects().len() as u32);
        if !self.push(Record::Object { name: name.to_owned(), bytes }) {
            return ObjectNo(u32::MAX);
        }
        self.objects.insert(name.to_owned(), no);
        no
    }

    /// The number of the cause of that name; 0, not known, if there are too many.
    pub fn cause(&mut self, name: &str) -> Cause {
        if let Some(cause) = self.causes.get(name) {
            return *cause;
        }
        let Ok(no) = u16::try_from(self.trace.causes().len() + 1) else { return Cause::default() };
        if !self.push(Record::Cause { name: name.to_owned() }) {
            return Cause::default();
        }
        self.causes.insert(name.to_owned(), Cause(no));
        Cause(no)
    }

    /// A query begins. Its footprint names objects and causes by the numbers that they have here.
    pub fn begins(&mut self, query: TraceQuery) -> QueryId {
        let no = QueryId(self.trace.queries().len() as u32);
        if self.push(Record::Begins(query)) { no } else { QueryId(u32::MAX) }
    }

    /// A query ends.
    pub fn ends(&mut self, query: QueryId) {
        self.push(Record::Ends(query));
    }

    /// An I/O, in the order in which they are issued.
    pub fn io(&mut self, io: TraceIo) {
        self.push(Record::Io(io));
    }

    /// The page cache gave up a page.
    pub fn evicted(&mut self, page: Eviction) {
        self.push(Record::Evicted(page));
    }

    /// What had no room, or named what is not there.
    pub fn lost(&self) -> u64 {
        self.lost
    }

    /// The trace so far.
    pub fn so_far(&self) -> &Trace {
        &self.trace
    }

    /// The trace.
    pub fn finish(self) -> Trace {
        self.trace
    }

    fn push(&mut self, record: Record) -> bool {
        let is_in = self.trace.push(record).is_ok();
        self.lost += u64::from(!is_in);
        is_in
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::IoKind;
    use crate::footprint::{Fingerprint, Footprint};

    #[test]
    fn names_are_numbered_once_and_overflow_is_counted() {
        let mut recorder = Recorder::new();
        assert_eq!((recorder.object("a", 10), recorder.object("b", 20)), (ObjectNo(0), ObjectNo(1)));
        assert_eq!(
            (recorder.object("a", 30), recorder.cause("i"), recorder.cause("i")),
            (ObjectNo(0), Cause(1), Cause(1))
        );
        let query = recorder.begins(TraceQuery {
            name: String::new(),
            fingerprint: Fingerprint(1),
            footprint: Footprint::default(),
        });
        let io = |object| TraceIo {
            offset: 100,
            bytes: 8,
            think_ns: 0,
            query,
            object,
            cause: Cause(1),
            kind: IoKind::Read,
            is_sequential: false,
            after: 0,
        };
        recorder.io(io(ObjectNo(1)));
        recorder.io(io(ObjectNo(7)));
        recorder.ends(query);
        recorder.ends(QueryId(9));
        assert_eq!(recorder.lost(), 2);
        let trace = recorder.finish();
        assert_eq!((trace.objects()[1].bytes, trace.events().len()), (108, 3));
    }

    #[test]
    fn too_many_names_are_not_known() {
        let mut recorder = Recorder::new();
        let last = (0..70_000).map(|no| recorder.cause(&no.to_string())).last();
        assert_eq!(last, Some(Cause(0)));
    }
}
