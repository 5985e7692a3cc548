//! What the policies share that run the fast class as a cache of blocks: a [`BlockCache`] says what it does with each
//! event that concerns it, and [`cached`] makes a policy of it.

use std::fmt::Debug;

use tanada_placement::{
    Action, ChunkNo, Context, Decision, Event, Footprint, Granularity, Io, Policy, QueryId, Reason, Route,
    Source,
};

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

/// A copy came to its end.
#[derive(Debug, Clone, Copy)]
pub(super) struct Copied {
    pub(super) chunk: ChunkNo,
    pub(super) action: Action,
    pub(super) is_done: bool,
}

/// A cache of blocks.
pub(super) trait BlockCache: Debug + Clone + Send + 'static {
    /// As it is registered.
    const NAME: &'static str;

    /// Bytes of a block.
    fn block_bytes(&self) -> u64;

    /// Something happened; it is told what below.
    fn any(&mut self, _context: &Context<'_>) {}

    /// A read or a write of a block.
    fn io(&mut self, context: &Context<'_>, io: &Io, decisions: &mut Vec<Decision>);

    /// The page cache gives up a page of the block.
    fn evicted(&mut self, _: &Context<'_>, _chunk: ChunkNo, _is_dirty: bool, _: &mut Vec<Decision>) {}

    /// What it wanted is done, or failed.
    fn done(&mut self, _: &Context<'_>, _done: Copied, _: &mut Vec<Decision>) {}

    /// A query begins, with what its plan says.
    fn query_begins(&mut self, _query: QueryId, _footprint: &Footprint) {}

    /// A query ends.
    fn query_ends(&mut self, _query: QueryId) {}

    /// About a second has passed.
    fn tick(&mut self, _: &Context<'_>, _: &mut Vec<Decision>) {}

    /// Where an I/O goes.
    fn route(&mut self, _io: &Io) -> Route {
        Route::Mapped
    }
}

/// A cache as a policy.
pub(super) fn cached(cache: impl BlockCache) -> Box<dyn Policy> {
    Box::new(Cached(cache))
}

#[derive(Debug, Clone)]
struct Cached<C>(C);

impl<C: BlockCache> Policy for Cached<C> {
    fn name(&self) -> &'static str {
        C::NAME
    }

    fn boxed(&self) -> Box<dyn Policy> {
        Box::new(self.clone())
    }

    fn granularity(&self) -> Granularity {
        Granularity::Block(self.0.block_bytes())
    }

    fn handle(&mut self, context: &Context<'_>, event: &Event<'_>, decisions: &mut Vec<Decision>) {
        self.0.any(context);
        match event {
            Event::Io(io) => self.0.io(context, io, decisions),
            Event::Evicted { chunk, is_dirty } => self.0.evicted(context, *chunk, *is_dirty, decisions),
            Event::Done { chunk, action, is_done } => {
                let done = Copied { chunk: *chunk, action: *action, is_done: *is_done };
                self.0.done(context, done, decisions);
            }
            Event::QueryBegins { query, footprint, .. } => self.0.query_begins(*query, footprint),
            Event::QueryEnds { query } => self.0.query_ends(*query),
            Event::Tick => self.0.tick(context, decisions),
        }
    }

    fn route(&mut self, io: &Io) -> Route {
        self.0.route(io)
    }
}
