//! `smq` (dm-cache's stochastic multi-queue): few bits per block, levels of equal population instead of counters.
//!
//! 1. Every I/O touches its hotspot block (16 neighbouring cache blocks) in a queue of 64 levels. The first touch in a
//!    period (1 s) moves it up by 1, 2 or 4 levels, and the least recently used block of the level it comes to goes
//!    down in exchange.
//! 2. At the end of a period the levels are made equally full again, and the hotspot queue is judged by the share of
//!    touches that went to its upper quarter: below 1/16 poor, below 1/8 fair, else good. The worse, the longer the
//!    jumps.
//! 3. A block that misses is promoted if its hotspot's level is at least 64 - T. T is 32 while room is free; else it
//!    follows from the cache's hit rate, less when the queue is judged fair or poor. Writes need two levels more.
//! 4. Cached blocks are in a queue of the same kind (period 60 s); the last of its lowest level makes room.
//!
//! Copies under way are at most 1 MiB, dm-cache's migration threshold.

use tanada_placement::{
    Action, ChunkNo, Context, Decision, Io, IoKind, Options, Policy, Reason, Result, Source,
};

use super::blocks::{BlockCache, Copied, cached, drop_for};
use crate::lists::Lists;

const LEVELS: usize = 64;
const BLOCKS_PER_HOTSPOT: u32 = 16;
const HOTSPOT_PERIOD_NS: u64 = 1_000_000_000;
const CACHE_PERIOD_NS: u64 = 60_000_000_000;
const MIGRATION_BYTES: u64 = 1 << 20;
const THRESHOLDS: [u32; 17] = [1, 1, 1, 2, 4, 6, 7, 8, 7, 6, 4, 4, 3, 3, 2, 2, 1];

/// A queue of levels.
#[derive(Debug, Clone)]
struct Queue {
    lists: Lists,
    touched: Vec<bool>,
    hits: u64,
    misses: u64,
}

impl Queue {
    fn new() -> Queue {
        Queue { lists: Lists::new(LEVELS), touched: Vec::new(), hits: 0, misses: 0 }
    }

    fn is_first_touch(&mut self, no: ChunkNo) -> bool {
        if self.touched.len() <= no.index() {
            self.touched.resize(no.index() + 1, false);
        }
        !std::mem::replace(&mut self.touched[no.index()], true)
    }

    /// Touches an entry that is in the queue; the level that it is in then.
    fn touch(&mut self, no: ChunkNo, jump: usize) -> usize {
        let level = self.lists.list_of(no).unwrap_or(0);
        if level >= LEVELS * 3 / 4 {
            self.hits += 1;
        } else {
            self.misses += 1;
        }
        if !self.is_first_touch(no) {
            return level;
        }
        let new = (level + jump).min(LEVELS - 1);
        if new != level
            && let Some(other) = self.lists.back(new)
        {
            self.lists.push_front(level, other);
        }
        self.lists.push_front(new, no);
        new
    }

    fn lowest(&self) -> Option<ChunkNo> {
        (0..LEVELS).find_map(|level| self.lists.back(level))
    }

    /// The touches in the upper quarter, in 1/256ths.
    fn confidence(&self) -> u64 {
        (self.hits << 8).checked_div(self.hits + self.misses).unwrap_or(0)
    }

    /// The period ends: levels equally full, entries untouched, half of the counts forgotten.
    fn end_period(&mut self) {
        let (len, levels) = (self.lists.len(), LEVELS as u32);
        for level in 0..LEVELS - 1 {
            let target = len / levels + u32::from(len % levels > level as u32);
            while self.lists.len_of(level) < target {
                let Some(from) = (level + 1..LEVELS).find(|from| self.lists.len_of(*from) > 0) else { break };
                if let Some(no) = self.lists.pop_back(from) {
                    self.lists.push_front(level, no);
                }
            }
            while self.lists.len_of(level) > target {
                let Some(no) = self.lists.front(level) else { break };
                self.lists.push_back(level + 1, no);
            }
        }
        self.touched.fill(false);
        self.hits /= 2;
        self.misses /= 2;
    }
}

#[derive(Debug, Clone)]
struct Smq {
    block_bytes: u64,
    hotspots: Queue,
    cached: Queue,
    cache_hits: u64,
    cache_misses: u64,
    period_ends_ns: u64,
    cache_period_ends_ns: u64,
    jump: usize,
    threshold: u32,
    copying: u64,
}

pub(super) fn make(options: &mut Options, _: u64) -> Result<Box<dyn Policy>> {
    let block_bytes = options.size("block", 64 << 10)?;
    Ok(cached(Smq {
        block_bytes,
        hotspots: Queue::new(),
        cached: Queue::new(),
        cache_hits: 0,
        cache_misses: 0,
        period_ends_ns: HOTSPOT_PERIOD_NS,
        cache_period_ends_ns: CACHE_PERIOD_NS,
        jump: 1,
        threshold: 32,
        copying: 0,
    }))
}

impl Smq {
    fn end_periods(&mut self, context: &Context<'_>) {
        if context.now_ns >= self.period_ends_ns {
            let (divisor, jump) = match self.hotspots.confidence() {
                0..16 => (4, 4),
                16..32 => (2, 2),
                _ => (1, 1),
            };
            self.jump = jump;
            let all = self.cache_hits + self.cache_misses;
            let sixteenths = (self.cache_hits * 16).checked_div(all).unwrap_or(0) as usize;
            let is_full = self.cached.lists.len() >= context.capacity;
            let threshold = if is_full { THRESHOLDS[sixteenths.min(16)] } else { 32 };
            self.threshold = (threshold / divisor).max(1);
            self.hotspots.end_period();
            self.cache_hits /= 2;
            self.cache_misses /= 2;
            self.period_ends_ns = context.now_ns + HOTSPOT_PERIOD_NS;
        }
        if context.now_ns >= self.cache_period_ends_ns {
            self.cached.end_period();
            self.cache_period_ends_ns = context.now_ns + CACHE_PERIOD_NS;
        }
    }

    /// The level of the I/O's hotspot block, touched.
    fn touch_hotspot(&mut self, context: &Context<'_>, io: &Io) -> u32 {
        let hotspot = ChunkNo(io.chunk.0 / BLOCKS_PER_HOTSPOT);
        if !self.hotspots.lists.contains(hotspot) {
            // As many hotspot blocks are remembered as cover the cache four times over.
            let most = (context.capacity / 4).max(1024);
            if self.hotspots.lists.len() >= most
                && let Some(lowest) = self.hotspots.lowest()
            {
                self.hotspots.lists.remove(lowest);
            }
            self.hotspots.lists.push_front(0, hotspot);
            self.hotspots.is_first_touch(hotspot);
            self.hotspots.misses += 1;
            return 0;
        }
        self.hotspots.touch(hotspot, self.jump) as u32
    }

    fn looked_up(&mut self, context: &Context<'_>, io: &Io, decisions: &mut Vec<Decision>) {
        let level = self.touch_hotspot(context, io);
        if self.cached.lists.contains(io.chunk) {
            self.cache_hits += 1;
            if io.kind == IoKind::Write {
                self.cached.lists.remove(io.chunk);
            } else {
                self.cached.touch(io.chunk, 1);
            }
            return;
        }
        self.cache_misses += 1;
        let extra = if io.kind == IoKind::Write { 2 } else { 0 };
        let wanted = LEVELS as u32 - self.threshold.min(LEVELS as u32) + extra;
        if level < wanted || (self.copying + 1) * self.block_bytes > MIGRATION_BYTES.max(self.block_bytes) {
            return;
        }
        if self.cached.lists.len() >= context.capacity {
            let Some(victim) = self.cached.lowest() else { return };
            self.cached.lists.remove(victim);
            decisions.push(drop_for(victim, io.chunk));
        }
        self.cached.lists.push_front(LEVELS / 2, io.chunk);
        self.copying += 1;
        let reason = Reason::Hot { level, threshold: wanted };
        decisions.push(Decision::new(io.chunk, Action::Mirror(Source::Copy), reason));
    }
}

impl BlockCache for Smq {
    const NAME: &'static str = "smq";

    fn block_bytes(&self) -> u64 {
        self.block_bytes
    }

    fn any(&mut self, context: &Context<'_>) {
        self.end_periods(context);
    }

    fn io(&mut self, context: &Context<'_>, io: &Io, decisions: &mut Vec<Decision>) {
        self.looked_up(context, io, decisions);
    }

    fn done(&mut self, _: &Context<'_>, done: Copied, _: &mut Vec<Decision>) {
        if let Action::Mirror(_) = done.action {
            self.copying = self.copying.saturating_sub(1);
            if !done.is_done {
                self.cached.lists.remove(done.chunk);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::tests::bench;

    #[test]
    fn hotspots_of_every_period_are_promoted() {
        let mut bench = bench("smq", 1 << 16, 1000);
        let mut promoted = Vec::new();
        for period in 0..60u32 {
            bench.now_ns += HOTSPOT_PERIOD_NS;
            promoted.extend(bench.read(5));
            // Passers-by, each once.
            promoted.extend((0..50).flat_map(|no| bench.read(1000 + (period * 50 + no) * 16)));
            bench.done_all();
        }
        assert_eq!(promoted, ["mirror 5"]);
    }

    #[test]
    fn levels_are_equally_full_after_a_period() {
        let mut queue = Queue::new();
        for no in 0..640 {
            queue.lists.push_front(if no < 400 { 0 } else { 63 }, ChunkNo(no));
        }
        queue.end_period();
        for level in 0..LEVELS {
            assert_eq!(queue.lists.len_of(level), 10, "level {level}");
        }
        // The older half of the order below is still below.
        assert!(queue.lists.list_of(ChunkNo(0)) < queue.lists.list_of(ChunkNo(399)));
    }

    #[test]
    fn a_touch_counts_once_a_period_and_swaps() {
        let mut queue = Queue::new();
        queue.lists.push_front(0, ChunkNo(1));
        queue.lists.push_front(1, ChunkNo(2));
        assert_eq!(queue.touch(ChunkNo(1), 1), 1);
        assert_eq!(queue.lists.list_of(ChunkNo(2)), Some(0));
        assert_eq!(queue.touch(ChunkNo(1), 1), 1);
        queue.end_period();
    }
}
