//! `lru` (FlashCache): a set-associative read cache of blocks, filled by every read that misses.
//!
//! 1. A block belongs to one set: runs of as many neighbours as a set has ways go to the sets in turn.
//! 2. A read that misses puts its block into its set, where the least recently used (with `fifo`: the oldest) makes
//!    room.
//! 3. A write goes to the slow class and takes the block out of the cache (write-around).
//! 4. With `skip-sequential` a stream that has read so many bytes in sequence is not cached any further.
//!
//! FlashCache's own default is FIFO; the pre-query storage tiering paper compares with LRU, and so it is the default
//! here.

use tanada_placement::{Context, Decision, Io, IoKind, MOST_COUNTED, Options, Policy, Reason, Result};

use super::blocks::{BLOCK_BYTES, BlockCache, Copied, cached, drop_for, fill};
use super::streams::Streams;
use crate::lists::Lists;

/// The sequential bytes from which `skip-sequential` without a value skips.
const SKIP_BYTES: u64 = 1 << 20;

#[derive(Debug, Clone)]
struct FlashCache {
    block_bytes: u64,
    is_fifo: bool,
    skip_bytes: u64,
    ways: u32,
    sets: u32,
    lists: Lists,
    streams: Streams,
}

pub(super) fn make(options: &mut Options, _: u64) -> Result<Box<dyn Policy>> {
    let block_bytes = options.size("block", BLOCK_BYTES)?;
    Ok(cached(FlashCache {
        block_bytes,
        is_fifo: options.switch("fifo")?,
        skip_bytes: options.size_or_off("skip-sequential", SKIP_BYTES)?,
        ways: options.count("ways", 512, 1..=MOST_COUNTED)?,
        sets: 0,
        lists: Lists::new(0),
        streams: Streams::default(),
    }))
}

impl FlashCache {
    fn read(&mut self, context: &Context<'_>, io: &Io, decisions: &mut Vec<Decision>) {
        let is_skipped = self.skip_bytes > 0 && self.streams.note(io) > self.skip_bytes;
        if self.sets == 0 {
            self.sets = (context.capacity / self.ways).max(1);
            self.lists = Lists::new(self.sets as usize);
        }
        let set = (io.chunk.0 / self.ways % self.sets) as usize;
        if self.lists.contains(io.chunk) {
            if !self.is_fifo {
                self.lists.push_front(set, io.chunk);
            }
            return;
        }
        let room = context.capacity / self.sets;
        if is_skipped || room == 0 {
            return;
        }
        if self.lists.len_of(set) >= room
            && let Some(victim) = self.lists.pop_back(set)
        {
            decisions.push(drop_for(victim, io.chunk));
        }
        self.lists.push_front(set, io.chunk);
        decisions.push(fill(io, self.block_bytes, Reason::Referenced));
    }
}

impl BlockCache for FlashCache {
    const NAME: &'static str = "lru";

    fn block_bytes(&self) -> u64 {
        self.block_bytes
    }

    fn io(&mut self, context: &Context<'_>, io: &Io, decisions: &mut Vec<Decision>) {
        match io.kind {
            IoKind::Read => self.read(context, io, decisions),
            IoKind::Write => {
                self.lists.remove(io.chunk);
            }
        }
    }

    fn done(&mut self, _: &Context<'_>, done: Copied, _: &mut Vec<Decision>) {
        if !done.is_done {
            self.lists.remove(done.chunk);
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::policy::tests::bench;

    #[test]
    fn the_least_recently_used_block_is_evicted() {
        let mut bench = bench("lru", 100, 2);
        assert_eq!(bench.read(1), ["fill 1"]);
        assert_eq!(bench.read(2), ["fill 2"]);
        assert!(bench.read(1).is_empty());
        assert_eq!(bench.read(3), ["drop 2", "fill 3"]);
    }

    #[test]
    fn fifo_evicts_the_oldest_block() {
        let mut bench = bench("lru:fifo", 100, 2);
        bench.read(1);
        bench.read(2);
        bench.read(1);
        assert_eq!(bench.read(3), ["drop 1", "fill 3"]);
    }

    #[test]
    fn sets_do_not_help_each_other() {
        // Two sets of two ways: 0 1 and 4 5 go to the first, 2 3 to the second.
        let mut bench = bench("lru:ways=2", 100, 4);
        for block in [0, 1] {
            bench.read(block);
        }
        assert_eq!(bench.read(4), ["drop 0", "fill 4"]);
        assert_eq!(bench.read(2), ["fill 2"]);
    }

    #[test]
    fn long_streams_and_writes_bypass_the_cache() {
        let mut bench = bench("lru:skip-sequential=32KiB", 100, 50);
        let filled: usize = (0..6).map(|block| bench.read_on(block).len()).sum();
        assert_eq!(filled, 2);
        assert!(bench.write(0).is_empty());
        assert_eq!(bench.read(0), ["fill 0"]);
    }
}
