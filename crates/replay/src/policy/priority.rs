//! `priority` (hStorage-DB): a cache of blocks that knows the class of each request.
//!
//! 1. Sequential requests neither enter the cache nor change it.
//! 2. Random ones have the priority of their access's place in the query's plan, what is read first highest; what no
//!    plan names comes last.
//! 3. A block that misses enters if there is room, or in exchange for the least recently used block of the lowest
//!    priority, unless that is higher than its own. A hit takes the request's priority.
//! 4. Updates are the cache's write buffer: written blocks have a priority before all reads, and are written back when
//!    they are a tenth of the cache.

use std::collections::{HashMap, VecDeque};

use tanada_placement::{
    Action, ChunkNo, Context, Decision, Footprint, Io, IoKind, Options, Policy, QueryId, Reason, Result,
    Source,
};

use super::blocks::{BLOCK_BYTES, BlockCache, Copied, cached, drop_for, fill};
use crate::lists::Lists;

const PRIORITIES: usize = 8;
const WRITES: usize = 0;
const HIGHEST_READ: usize = 1;
const LOWEST: usize = PRIORITIES - 1;

/// The write buffer's share of the cache, in percent.
const BUFFER_PERCENT: u64 = 10;

#[derive(Debug, Clone)]
struct HStorage {
    block_bytes: u64,
    lists: Lists,
    by_cause: HashMap<(QueryId, u16), usize>,
    dirty: VecDeque<ChunkNo>,
    is_dirty: Vec<bool>,
}

pub(super) fn make(options: &mut Options, _: u64) -> Result<Box<dyn Policy>> {
    let block_bytes = options.size("block", BLOCK_BYTES)?;
    Ok(cached(HStorage {
        block_bytes,
        lists: Lists::new(PRIORITIES),
        by_cause: HashMap::new(),
        dirty: VecDeque::new(),
        is_dirty: Vec::new(),
    }))
}

impl HStorage {
    fn learn(&mut self, query: QueryId, footprint: &Footprint) {
        for access in &footprint.accesses {
            let priority = (HIGHEST_READ + access.stage as usize).min(LOWEST - 1);
            let known = self.by_cause.entry((query, access.cause.0)).or_insert(priority);
            *known = priority.min(*known);
        }
    }

    fn dirty_flag(&mut self, chunk: ChunkNo) -> &mut bool {
        if self.is_dirty.len() <= chunk.index() {
            self.is_dirty.resize(chunk.index() + 1, false);
        }
        &mut self.is_dirty[chunk.index()]
    }

    /// Room for a block of `priority`.
    fn admit(
        &mut self,
        context: &Context<'_>,
        chunk: ChunkNo,
        priority: usize,
        decisions: &mut Vec<Decision>,
    ) -> bool {
        if self.lists.len() >= context.capacity {
            let lowest = (priority.max(HIGHEST_READ)..PRIORITIES).rev();
            let Some(victim) = lowest.filter_map(|list| self.lists.back(list)).next() else { return false };
            self.lists.remove(victim);
            decisions.push(drop_for(victim, chunk));
        }
        self.lists.push_front(priority, chunk);
        true
    }

    fn looked_up(&mut self, context: &Context<'_>, io: &Io, decisions: &mut Vec<Decision>) {
        if io.kind == IoKind::Write {
            return self.write(context, io, decisions);
        }
        if io.is_sequential {
            return;
        }
        let priority = self.by_cause.get(&(io.query, io.cause.0)).copied().unwrap_or(LOWEST);
        if *self.dirty_flag(io.chunk) {
            return;
        }
        if self.lists.contains(io.chunk) {
            self.lists.push_front(priority, io.chunk);
        } else if self.admit(context, io.chunk, priority, decisions) {
            let reason = Reason::Class { priority: priority as u32 };
            decisions.push(fill(io, self.block_bytes, reason));
        }
    }

    fn write(&mut self, context: &Context<'_>, io: &Io, decisions: &mut Vec<Decision>) {
        if *self.dirty_flag(io.chunk) {
            return;
        }
        if self.lists.contains(io.chunk) {
            self.lists.push_front(WRITES, io.chunk);
        } else if !self.admit(context, io.chunk, WRITES, decisions) {
            return;
        }
        *self.dirty_flag(io.chunk) = true;
        self.dirty.push_back(io.chunk);
        let reason = Reason::Class { priority: WRITES as u32 };
        decisions.push(Decision::new(io.chunk, Action::Promote(Source::Written), reason));
        let percent = self.dirty.len() as u64 * 100 / u64::from(context.capacity.max(1));
        if percent > BUFFER_PERCENT
            && let Some(oldest) = self.dirty.pop_front()
        {
            let reason = Reason::TooDirty { percent: percent as u32 };
            decisions.push(Decision::new(oldest, Action::Clean, reason));
        }
    }
}

impl BlockCache for HStorage {
    const NAME: &'static str = "priority";

    fn block_bytes(&self) -> u64 {
        self.block_bytes
    }

    fn io(&mut self, context: &Context<'_>, io: &Io, decisions: &mut Vec<Decision>) {
        self.looked_up(context, io, decisions);
    }

    fn query_begins(&mut self, query: QueryId, footprint: &Footprint) {
        self.learn(query, footprint);
    }

    fn query_ends(&mut self, query: QueryId) {
        self.by_cause.retain(|(other, _), _| *other != query);
    }

    fn done(&mut self, _: &Context<'_>, done: Copied, _: &mut Vec<Decision>) {
        let Copied { chunk, action, is_done } = done;
        if action == Action::Clean {
            if is_done {
                *self.dirty_flag(chunk) = false;
                self.lists.push_front(HIGHEST_READ, chunk);
            } else {
                self.dirty.push_back(chunk);
            }
        } else if !is_done && action.takes_room() {
            self.lists.remove(chunk);
            *self.dirty_flag(chunk) = false;
            self.dirty.retain(|other| *other != chunk);
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::policy::tests::bench;
    use tanada_placement::testing::*;
    use tanada_placement::{Access, Cause};

    fn access(cause: u16, stage: u32) -> Access {
        Access { cause: Cause(cause), stage, ..look_ups(0..1, 5) }
    }

    #[test]
    fn a_lower_priority_does_not_push_out_a_higher_one() {
        let mut bench = bench("priority", 100, 2);
        bench.begin(1, &[access(1, 0), access(2, 1)]);
        bench.cause = 1;
        assert_eq!(bench.read(10), ["fill 10"]);
        bench.cause = 2;
        assert_eq!(bench.read(20), ["fill 20"]);
        assert_eq!(bench.read(21), ["drop 20", "fill 21"]);
        bench.cause = 1;
        assert_eq!(bench.read(11), ["drop 21", "fill 11"]);
        bench.cause = 2;
        assert!(bench.read(22).is_empty());
    }

    #[test]
    fn sequential_requests_change_nothing() {
        let mut bench = bench("priority", 100, 2);
        bench.begin(1, &[access(1, 0)]);
        bench.read(1);
        bench.read(2);
        assert!(bench.read_on(3).is_empty() && bench.read_on(1).is_empty());
        assert_eq!(bench.read(4), ["drop 1", "fill 4"]);
    }

    #[test]
    fn written_blocks_are_kept_until_written_back() {
        let mut bench = bench("priority", 100, 10);
        assert_eq!(bench.write(1), ["promote-written 1"]);
        assert_eq!(bench.write(2), ["promote-written 2", "clean 1"]);
        bench.done_all();
        assert_eq!(bench.write(1), ["promote-written 1", "clean 2"]);
    }
}
