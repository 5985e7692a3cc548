//! What the policies share that run the fast class as a cache of blocks.

use crate::action::{Action, Decision, Reason, Source};
use crate::event::Io;
use crate::layout::ChunkNo;

/// InnoDB's page: what such caches are asked for at once, so a smaller block only costs memory.
pub(super) const BLOCK_BYTES: u64 = 16 << 10;

/// The block is put into the cache: filled from memory if the I/O had all of it.
pub(super) fn fill(io: &Io, block_bytes: u64, reason: Reason) -> Decision {
    let source = if u64::from(io.bytes) >= block_bytes { Source::Memory } else { Source::Copy };
    Decision::new(io.chunk, Action::Mirror(source), reason)
}

/// A block gives its room to another.
pub(super) fn drop_for(victim: ChunkNo, other: ChunkNo) -> Decision {
    Decision::new(victim, Action::DropMirror, Reason::MakesRoom { other })
}

#[cfg(test)]
pub(super) mod testing {
    //! A policy on a bench: told of chunks by number, it answers in words.

    use std::ops::Range;

    use crate::footprint::{Access, Cause, Extent, Fingerprint, Footprint, Pattern, QueryId};
    use crate::layout::{Layout, ObjectNo};
    use crate::policy::policy;
    use crate::*;

    pub(crate) struct Bench {
        pub(crate) policy: Box<dyn Policy>,
        pub(crate) layout: Layout,
        pub(crate) capacity: u32,
        pub(crate) costs: Costs,
        pub(crate) now_ns: u64,
        pub(crate) cause: u16,
        pub(crate) query: u32,
        pub(crate) offset: u32,
        pub(crate) bytes: u32,
        pub(crate) depth: u32,
        pending: Vec<Decision>,
    }

    /// Look-ups in one object's chunks.
    pub(crate) fn look_ups(chunks: Range<u64>, expected: u64) -> Access {
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
    pub(crate) fn scan(chunks: Range<u64>) -> Access {
        let pages = (chunks.end - chunks.start) * 64;
        Access { pattern: Pattern::SequentialScan, expected_pages: pages, ..look_ups(chunks, 0) }
    }

    impl Bench {
        pub(crate) fn new(text: &str, chunks: u64, capacity: u32) -> Bench {
            let policy = policy(text, 1).unwrap();
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

        pub(crate) fn handle(&mut self, event: &Event<'_>) -> Vec<String> {
            let mut decisions = Vec::new();
            let (now_ns, capacity) = (self.now_ns, self.capacity);
            let context = Context { now_ns, layout: &self.layout, capacity, costs: &self.costs };
            self.policy.handle(&context, event, &mut decisions);
            self.pending.extend(&decisions);
            decisions.iter().map(words).collect()
        }

        pub(crate) fn think(&mut self) -> Vec<String> {
            let mut decisions = Vec::new();
            let (now_ns, capacity) = (self.now_ns, self.capacity);
            let context = Context { now_ns, layout: &self.layout, capacity, costs: &self.costs };
            self.policy.think(&context, &mut decisions);
            self.pending.extend(&decisions);
            decisions.iter().map(words).collect()
        }

        pub(crate) fn read(&mut self, chunk: u32) -> Vec<String> {
            self.handle(&Event::Io(self.io(chunk, IoKind::Read, false)))
        }

        pub(crate) fn read_on(&mut self, chunk: u32) -> Vec<String> {
            self.handle(&Event::Io(self.io(chunk, IoKind::Read, true)))
        }

        pub(crate) fn write(&mut self, chunk: u32) -> Vec<String> {
            self.handle(&Event::Io(self.io(chunk, IoKind::Write, false)))
        }

        pub(crate) fn route(&mut self, chunk: u32, kind: IoKind) -> Route {
            let io = self.io(chunk, kind, false);
            self.policy.route(&io)
        }

        pub(crate) fn evict(&mut self, chunk: u32, is_dirty: bool) -> Vec<String> {
            self.handle(&Event::Evicted { chunk: ChunkNo(chunk), is_dirty })
        }

        pub(crate) fn begin(&mut self, query: u32, accesses: &[Access]) -> Vec<String> {
            self.query = query;
            let footprint = Footprint { accesses: accesses.to_vec() };
            let (query, fingerprint, depth) = (QueryId(query), Fingerprint(u64::from(query)), self.depth);
            self.handle(&Event::QueryBegins { query, fingerprint, depth, footprint: &footprint })
        }

        pub(crate) fn end(&mut self) -> Vec<String> {
            self.handle(&Event::QueryEnds { query: QueryId(self.query) })
        }

        /// All that was wanted so far is done; what is wanted then is in the answer and done too.
        pub(crate) fn done_all(&mut self) -> Vec<String> {
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

        pub(crate) fn train(&mut self, chunk: u32) {
            let io = self.io(chunk, IoKind::Read, false);
            self.learn(&Event::Io(io));
        }

        pub(crate) fn train_query(&mut self, query: u32, accesses: &[Access], reads: &[u32]) {
            self.query = query;
            let footprint = Footprint { accesses: accesses.to_vec() };
            let (query, fingerprint, depth) = (QueryId(query), Fingerprint(u64::from(query)), self.depth);
            self.learn(&Event::QueryBegins { query, fingerprint, depth, footprint: &footprint });
            for chunk in reads {
                self.train(*chunk);
            }
            self.learn(&Event::QueryEnds { query });
        }

        pub(crate) fn prepare(&mut self) -> Vec<String> {
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
}
