//! A policy on a bench, for tests of policies: told of chunks by number, it answers in words.
//!
//! ```
//! use tanada_placement::testing::{Bench, look_ups};
//! let mut bench = Bench::new(tanada_placement::policy("off", 1)?, 8, 2);
//! assert!(bench.begin(1, &[look_ups(0..4, 100)]).is_empty());
//! # Ok::<(), tanada_placement::Error>(())
//! ```

use std::ops::Range;

use crate::{
    Access, Action, Cause, ChunkNo, Context, Costs, Decision, Event, Extent, Fingerprint, Footprint,
    Granularity, Io, IoKind, Layout, ObjectNo, Pattern, Policy, QueryId, Route, Source,
};

/// The policy, and what it is told of the world.
#[derive(Debug)]
pub struct Bench {
    /// The policy.
    pub policy: Box<dyn Policy>,
    /// One object, of all chunks.
    pub layout: Layout,
    /// Chunks that the fast class has room for.
    pub capacity: u32,
    /// Of the two classes.
    pub costs: Costs,
    /// The time.
    pub now_ns: u64,
    /// What I/Os are for.
    pub cause: u16,
    /// Whose I/Os they are.
    pub query: u32,
    /// Where in a chunk they begin.
    pub offset: u32,
    /// Bytes of each.
    pub bytes: u32,
    /// I/Os in flight of queries.
    pub depth: u32,
    pending: Vec<Decision>,
}

/// Look-ups in one object's chunks.
pub fn look_ups(chunks: Range<u64>, expected: u64) -> Access {
    Access {
        object: ObjectNo(0),
        cause: Cause(1),
        extents: vec![Extent { offset: chunks.start << 20, len: (chunks.end - chunks.start) << 20 }],
        pattern: Pattern::RandomLookUps { expected },
        expected_pages: expected,
        earlier_pages: None,
        page_bytes: 16384,
        stage: 0,
    }
}

/// A scan of them, page by page.
pub fn scan(chunks: Range<u64>) -> Access {
    let pages = (chunks.end - chunks.start) * 64;
    Access { pattern: Pattern::SequentialScan, expected_pages: pages, ..look_ups(chunks, 0) }
}

impl Bench {
    /// A policy for an object of `chunks`, of which the fast class has room for `capacity`.
    pub fn new(policy: Box<dyn Policy>, chunks: u64, capacity: u32) -> Bench {
        let chunk_bytes = match policy.granularity() {
            Granularity::Chunk => 1 << 20,
            Granularity::Block(bytes) => bytes,
        };
        let mut layout = Layout::new(chunk_bytes);
        layout.add("a", chunks * chunk_bytes);
        let bytes = chunk_bytes.min(16 << 10) as u32;
        let (costs, pending) = (Costs::default(), Vec::new());
        Bench {
            policy,
            layout,
            capacity,
            costs,
            now_ns: 0,
            cause: 1,
            query: 1,
            offset: 0,
            bytes,
            depth: 1,
            pending,
        }
    }

    fn io(&self, chunk: u32, kind: IoKind, is_sequential: bool) -> Io {
        let (query, cause) = (QueryId(self.query), Cause(self.cause));
        Io {
            chunk: ChunkNo(chunk),
            offset: self.offset,
            kind,
            is_sequential,
            bytes: self.bytes,
            query,
            cause,
        }
    }

    /// Tells of an event; what is wanted then.
    pub fn handle(&mut self, event: &Event<'_>) -> Vec<String> {
        let mut decisions = Vec::new();
        let (now_ns, capacity) = (self.now_ns, self.capacity);
        let context = Context { now_ns, layout: &self.layout, capacity, costs: &self.costs };
        self.policy.handle(&context, event, &mut decisions);
        self.pending.extend(&decisions);
        decisions.iter().map(words).collect()
    }

    /// Lets it think; what is wanted then.
    pub fn think(&mut self) -> Vec<String> {
        let mut decisions = Vec::new();
        let (now_ns, capacity) = (self.now_ns, self.capacity);
        let context = Context { now_ns, layout: &self.layout, capacity, costs: &self.costs };
        self.policy.think(&context, &mut decisions);
        self.pending.extend(&decisions);
        decisions.iter().map(words).collect()
    }

    /// A read at random.
    pub fn read(&mut self, chunk: u32) -> Vec<String> {
        self.handle(&Event::Io(self.io(chunk, IoKind::Read, false)))
    }

    /// A read that goes on where the last one ended.
    pub fn read_on(&mut self, chunk: u32) -> Vec<String> {
        self.handle(&Event::Io(self.io(chunk, IoKind::Read, true)))
    }

    /// A write.
    pub fn write(&mut self, chunk: u32) -> Vec<String> {
        self.handle(&Event::Io(self.io(chunk, IoKind::Write, false)))
    }

    /// Where an I/O goes.
    pub fn route(&mut self, chunk: u32, kind: IoKind) -> Route {
        let io = self.io(chunk, kind, false);
        self.policy.route(&io)
    }

    /// The page cache gives up a page of the chunk.
    pub fn evict(&mut self, chunk: u32, is_dirty: bool) -> Vec<String> {
        self.handle(&Event::Evicted { chunk: ChunkNo(chunk), is_dirty })
    }

    /// A query with its footprint.
    pub fn begin(&mut self, query: u32, accesses: &[Access]) -> Vec<String> {
        self.query = query;
        let footprint = Footprint { accesses: accesses.to_vec() };
        let (query, fingerprint, depth) = (QueryId(query), Fingerprint(u64::from(query)), self.depth);
        self.handle(&Event::QueryBegins { query, fingerprint, depth, footprint: &footprint })
    }

    /// The query ends.
    pub fn end(&mut self) -> Vec<String> {
        self.handle(&Event::QueryEnds { query: QueryId(self.query) })
    }

    /// All that was wanted so far is done; what is wanted then is in the answer and done too.
    pub fn done_all(&mut self) -> Vec<String> {
        let mut answers = Vec::new();
        while !self.pending.is_empty() {
            for decision in std::mem::take(&mut self.pending) {
                let Decision { chunk, action, .. } = decision;
                let is_copy = matches!(
                    action,
                    Action::Promote(Source::Copy)
                        | Action::Mirror(Source::Copy)
                        | Action::Demote
                        | Action::Clean
                );
                if is_copy {
                    answers.extend(self.handle(&Event::Done { chunk, action, is_done: true }));
                }
            }
        }
        answers
    }

    fn learn(&mut self, event: &Event<'_>) {
        let (now_ns, capacity) = (self.now_ns, self.capacity);
        let context = Context { now_ns, layout: &self.layout, capacity, costs: &self.costs };
        self.policy.train(&context, event);
    }

    /// A read in the run before the one that counts.
    pub fn train(&mut self, chunk: u32) {
        let io = self.io(chunk, IoKind::Read, false);
        self.learn(&Event::Io(io));
    }

    /// A query in the run before the one that counts.
    pub fn train_query(&mut self, query: u32, accesses: &[Access], reads: &[u32]) {
        self.query = query;
        let footprint = Footprint { accesses: accesses.to_vec() };
        let (query, fingerprint, depth) = (QueryId(query), Fingerprint(u64::from(query)), self.depth);
        self.learn(&Event::QueryBegins { query, fingerprint, depth, footprint: &footprint });
        for chunk in reads {
            self.train(*chunk);
        }
        self.learn(&Event::QueryEnds { query });
    }

    /// The run that counts is about to begin; what is wanted beforehand.
    pub fn prepare(&mut self) -> Vec<String> {
        let mut decisions = Vec::new();
        let (now_ns, capacity) = (self.now_ns, self.capacity);
        let context = Context { now_ns, layout: &self.layout, capacity, costs: &self.costs };
        self.policy.prepare(&context, &mut decisions);
        self.pending.extend(&decisions);
        decisions.iter().map(words).collect()
    }
}

fn words(decision: &Decision) -> String {
    assert!(decision.explain().ends_with('.'), "a sentence: {}", decision.explain());
    let verb = match decision.action {
        Action::Promote(Source::Copy) => "promote",
        Action::Promote(_) => "promote-written",
        Action::Demote => "demote",
        Action::Mirror(Source::Copy) => "mirror",
        Action::Mirror(_) => "fill",
        Action::DropMirror => "drop",
        Action::Clean => "clean",
        Action::Merge => "merge",
    };
    format!("{verb} {}", decision.chunk.0)
}
