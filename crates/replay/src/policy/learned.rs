//! `learned` (CLIC): which hint sets' pages are read again soon is learned, and they stay.
//!
//! 1. A request's hint set is the index it is for, and whether it reads or writes.
//! 2. Each block remembers its last request, in the cache or, for some of the last that are not, in an out-queue. A
//!    read of such a block counts for the hint set of that last request: one re-read, after so many requests.
//! 3. After a window of requests, the priority of a hint set is (re-reads / requests) / mean distance, averaged with
//!    what it was. Counts are kept for the `top` most frequent hint sets (Space-Saving).
//! 4. A block that misses enters if there is room or its priority is above that of the lowest cached one, which is then
//!    dropped, oldest first.

use std::collections::{BTreeSet, HashMap, VecDeque};

use tanada_placement::{
    ChunkNo, Context, Decision, Io, IoKind, MOST_COUNTED, Options, Policy, Reason, Result,
};

use super::blocks::{BLOCK_BYTES, BlockCache, Copied, cached, drop_for, fill};
use crate::lists::Lists;

/// Entries of the out-queue per block of the cache.
const OUT_QUEUE: usize = 5;

/// How much a new window counts against what was known.
const NEW: f64 = 0.5;

type Hint = u32;

#[derive(Debug, Default, Clone, Copy)]
struct Seen {
    requests: u64,
    rereads: u64,
    distance: u64,
}

#[derive(Debug, Clone, Copy)]
struct Last {
    hint: Hint,
    at: u64,
    is_cached: bool,
}

#[derive(Debug, Clone)]
struct Clic {
    block_bytes: u64,
    window: u64,
    top: usize,
    /// Requests so far.
    clock: u64,
    last: HashMap<ChunkNo, Last>,
    out: VecDeque<(ChunkNo, u64)>,
    seen: HashMap<Hint, Seen>,
    priorities: HashMap<Hint, f64>,
    /// Hint sets get a list each, most recent first.
    lists: Lists,
    list_of: HashMap<Hint, usize>,
    /// Hint sets by priority; their bits order as they do, being positive.
    order: BTreeSet<(u64, usize)>,
}

/// Hint sets that get a list of their own; the others share the last.
const MOST_LISTS: usize = 1024;

pub(super) fn make(options: &mut Options, _: u64) -> Result<Box<dyn Policy>> {
    let block_bytes = options.size("block", BLOCK_BYTES)?;
    Ok(cached(Clic {
        block_bytes,
        window: u64::from(options.count("window", 20_000, 1..=MOST_COUNTED)?),
        top: options.count("top", 100, 1..=MOST_COUNTED)? as usize,
        clock: 0,
        last: HashMap::new(),
        out: VecDeque::new(),
        seen: HashMap::new(),
        priorities: HashMap::new(),
        lists: Lists::new(MOST_LISTS),
        list_of: HashMap::new(),
        order: BTreeSet::new(),
    }))
}

impl Clic {
    fn priority(&self, hint: Hint) -> f64 {
        self.priorities.get(&hint).copied().unwrap_or(0.0)
    }

    fn list(&mut self, hint: Hint) -> usize {
        if let Some(list) = self.list_of.get(&hint) {
            return *list;
        }
        let list = self.list_of.len().min(MOST_LISTS - 1);
        self.list_of.insert(hint, list);
        self.order.insert((self.priority(hint).to_bits(), list));
        list
    }

    /// Counts the request, and the re-read if it is one.
    fn learn(&mut self, io: &Io, hint: Hint) {
        if let Some(last) = self.last.get(&io.chunk)
            && io.kind == IoKind::Read
            && let Some(seen) = self.seen.get_mut(&last.hint)
        {
            seen.rereads += 1;
            seen.distance += self.clock - last.at;
        }
        if self.seen.len() >= self.top && !self.seen.contains_key(&hint) {
            // Space-Saving: the newcomer takes the place and the count of the least frequent.
            let least = self.seen.iter().map(|(hint, seen)| (seen.requests, *hint)).min();
            if let Some((requests, least)) = least {
                self.seen.remove(&least);
                self.seen.insert(hint, Seen { requests, ..Seen::default() });
            }
        }
        self.seen.entry(hint).or_default().requests += 1;
        if self.clock.is_multiple_of(self.window) {
            self.end_window();
        }
    }

    fn end_window(&mut self) {
        for (hint, seen) in std::mem::take(&mut self.seen) {
            let distance = seen.distance as f64 / seen.rereads.max(1) as f64;
            let value = seen.rereads as f64 / seen.requests.max(1) as f64 / distance.max(1.0);
            let known = self.priorities.get(&hint).map_or(value, |old| old * (1.0 - NEW) + value * NEW);
            self.priorities.insert(hint, known);
        }
        let lists: Vec<_> = self.list_of.iter().map(|(hint, list)| (*hint, *list)).collect();
        self.order = lists.into_iter().map(|(hint, list)| (self.priority(hint).to_bits(), list)).collect();
    }

    fn remember(&mut self, chunk: ChunkNo, hint: Hint, is_cached: bool, capacity: u32) {
        self.last.insert(chunk, Last { hint, at: self.clock, is_cached });
        if !is_cached {
            self.out.push_back((chunk, self.clock));
        }
        while self.out.len() > OUT_QUEUE * capacity.max(1) as usize {
            let Some((oldest, at)) = self.out.pop_front() else { return };
            if self.last.get(&oldest).is_some_and(|last| last.at == at && !last.is_cached) {
                self.last.remove(&oldest);
            }
        }
    }

    fn looked_up(&mut self, context: &Context<'_>, io: &Io, decisions: &mut Vec<Decision>) {
        self.clock += 1;
        let hint = u32::from(io.cause.0) << 1 | u32::from(io.kind == IoKind::Write);
        self.learn(io, hint);
        let list = self.list(hint);
        let is_write = io.kind == IoKind::Write;
        let is_cached = self.lists.contains(io.chunk);
        if is_cached && !is_write {
            self.lists.push_front(list, io.chunk);
        } else if is_cached {
            // Written around the cache, as the storage server of the paper does for a read cache.
            self.lists.remove(io.chunk);
        }
        let enters = !is_cached && !is_write && self.admit(context, io.chunk, hint, decisions);
        if enters {
            self.lists.push_front(list, io.chunk);
            let reason = Reason::Promising { priority: self.priority(hint) };
            decisions.push(fill(io, self.block_bytes, reason));
        }
        self.remember(io.chunk, hint, enters || (is_cached && !is_write), context.capacity);
    }

    fn admit(
        &mut self,
        context: &Context<'_>,
        chunk: ChunkNo,
        hint: Hint,
        decisions: &mut Vec<Decision>,
    ) -> bool {
        if self.lists.len() < context.capacity {
            return true;
        }
        let lowest = self.order.iter().find(|(_, list)| self.lists.len_of(*list) > 0).copied();
        let Some((bits, list)) = lowest else { return false };
        if self.priority(hint).to_bits() <= bits {
            return false;
        }
        let Some(victim) = self.lists.pop_back(list) else { return false };
        if let Some(last) = self.last.get_mut(&victim) {
            last.is_cached = false;
            self.out.push_back((victim, last.at));
        }
        decisions.push(drop_for(victim, chunk));
        true
    }
}

impl BlockCache for Clic {
    const NAME: &'static str = "learned";

    fn block_bytes(&self) -> u64 {
        self.block_bytes
    }

    fn io(&mut self, context: &Context<'_>, io: &Io, decisions: &mut Vec<Decision>) {
        self.looked_up(context, io, decisions);
    }

    fn done(&mut self, _: &Context<'_>, done: Copied, _: &mut Vec<Decision>) {
        if !done.is_done && done.action.takes_room() {
            self.lists.remove(done.chunk);
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::policy::tests::bench;
    use tanada_placement::testing::*;

    #[test]
    fn reread_hint_sets_evict_others() {
        let mut bench = bench("learned:window=100", 10_000, 20);
        let mut once = 1000;
        let mut round = |bench: &mut Bench| {
            let mut answers = Vec::new();
            for block in 0..20 {
                bench.cause = 1;
                once += 1;
                answers.extend(bench.read(once));
                bench.cause = 2;
                answers.extend(bench.read(block));
            }
            answers
        };
        // First come first served, while nothing is known; then the blocks that return take over, and those that pass
        // by are not let in.
        assert!(round(&mut bench).len() <= 20);
        for _ in 0..10 {
            round(&mut bench);
        }
        assert!(round(&mut bench).is_empty());
        bench.cause = 2;
        assert!((0..20).all(|block| bench.read(block).is_empty()), "all that return are cached");
    }
}
