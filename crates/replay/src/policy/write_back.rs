//! `write-back` (bcache): reads and writes go to the cache, whose room is given out in buckets.
//!
//! 1. Blocks fill the open bucket one behind the other. When it is full, the next is a free one, or the least recently
//!    used bucket without dirty blocks, all of whose blocks are dropped. If all are dirty, the request passes the cache
//!    by.
//! 2. A write makes its block dirty. Above `dirty` percent of the cache, the oldest dirty blocks are written back, some
//!    at once. (bcache's controller settles at that share; its pacing by rates is not modelled.)
//! 3. A stream beyond `cutoff` sequential bytes passes the cache by.
//!
//! Invariant: a dirty block is in the cache, and in `dirty`, oldest first, unless it is being written back.

use std::collections::VecDeque;

use tanada_placement::{
    Action, ChunkNo, Context, Decision, Io, IoKind, Options, Policy, Reason, Result, Source,
};

use super::blocks::{BLOCK_BYTES, BlockCache, Copied, cached, drop_for, fill};
use super::streams::Streams;
use crate::lists::Lists;

/// Blocks that are written back at once.
const MOST_CLEANING: u32 = 16;

/// Buckets that are looked at for one without dirty blocks.
const MOST_LOOKED_AT: usize = 64;

const NO_BUCKET: u32 = u32::MAX;

#[derive(Debug, Default, Clone)]
struct Bucket {
    blocks: Vec<ChunkNo>,
    dirty: u32,
}

#[derive(Debug, Clone, Copy)]
struct Block {
    bucket: u32,
    is_dirty: bool,
    is_cleaning: bool,
}

const ABSENT: Block = Block { bucket: NO_BUCKET, is_dirty: false, is_cleaning: false };

#[derive(Debug, Clone)]
struct Bcache {
    block_bytes: u64,
    blocks_per_bucket: u32,
    cutoff: u64,
    dirty_percent: u32,
    blocks: Vec<Block>,
    buckets: Vec<Bucket>,
    order: Lists,
    open: u32,
    dirty: VecDeque<ChunkNo>,
    dirty_blocks: u32,
    cleaning: u32,
    streams: Streams,
}

pub(super) fn make(options: &mut Options, _: u64) -> Result<Box<dyn Policy>> {
    let block_bytes = options.size("block", BLOCK_BYTES)?;
    let bucket = options.size("bucket", 512 << 10)?;
    Ok(cached(Bcache {
        block_bytes,
        blocks_per_bucket: (bucket / block_bytes).max(1) as u32,
        cutoff: options.size("cutoff", 4 << 20)?,
        dirty_percent: options.count("dirty", 10, 0..=100)?,
        blocks: Vec::new(),
        buckets: Vec::new(),
        order: Lists::new(1),
        open: NO_BUCKET,
        dirty: VecDeque::new(),
        dirty_blocks: 0,
        cleaning: 0,
        streams: Streams::default(),
    }))
}

impl Bcache {
    fn block(&mut self, chunk: ChunkNo) -> &mut Block {
        if self.blocks.len() <= chunk.index() {
            self.blocks.resize(chunk.index() + 1, ABSENT);
        }
        &mut self.blocks[chunk.index()]
    }

    /// Room for a block in the open bucket; another bucket is opened if it is full.
    fn allocate(&mut self, context: &Context<'_>, chunk: ChunkNo, decisions: &mut Vec<Decision>) -> bool {
        let most = context.capacity / self.blocks_per_bucket;
        let is_full = |bucket: &Bucket| bucket.blocks.len() as u32 >= self.blocks_per_bucket;
        if self.buckets.get(self.open as usize).is_none_or(is_full) {
            if (self.buckets.len() as u32) < most {
                self.open = self.buckets.len() as u32;
                self.buckets.push(Bucket::default());
            } else {
                let Some(bucket) = self.reclaimable() else { return false };
                for victim in std::mem::take(&mut self.buckets[bucket as usize].blocks) {
                    // A block that a write took away from here lies elsewhere, or nowhere.
                    if self.block(victim).bucket == bucket {
                        *self.block(victim) = ABSENT;
                        decisions.push(drop_for(victim, chunk));
                    }
                }
                self.open = bucket;
            }
        }
        let open = self.open;
        self.buckets[open as usize].blocks.push(chunk);
        self.order.push_front(0, ChunkNo(open));
        *self.block(chunk) = Block { bucket: open, ..ABSENT };
        true
    }

    fn reclaimable(&self) -> Option<u32> {
        let mut candidate = self.order.back(0);
        for _ in 0..MOST_LOOKED_AT {
            let bucket = candidate?;
            if self.buckets[bucket.index()].dirty == 0 {
                return Some(bucket.0);
            }
            candidate = self.order.before(bucket);
        }
        None
    }

    fn looked_up(&mut self, context: &Context<'_>, io: &Io, decisions: &mut Vec<Decision>) {
        let run = self.streams.note(io);
        let block = *self.block(io.chunk);
        let is_cached = block.bucket != NO_BUCKET;
        if is_cached {
            self.order.push_front(0, ChunkNo(block.bucket));
        } else if run > self.cutoff || !self.allocate(context, io.chunk, decisions) {
            return;
        }
        match io.kind {
            IoKind::Read if is_cached => {}
            IoKind::Read => decisions.push(fill(io, self.block_bytes, Reason::Referenced)),
            IoKind::Write => self.write(io.chunk, decisions),
        }
        self.write_back(context, decisions);
    }

    fn write(&mut self, chunk: ChunkNo, decisions: &mut Vec<Decision>) {
        let block = self.block(chunk);
        if !block.is_dirty {
            block.is_dirty = true;
            let bucket = block.bucket;
            self.buckets[bucket as usize].dirty += 1;
            self.dirty_blocks += 1;
            self.dirty.push_back(chunk);
            decisions.push(Decision::new(chunk, Action::Promote(Source::Written), Reason::Referenced));
        }
    }

    fn write_back(&mut self, context: &Context<'_>, decisions: &mut Vec<Decision>) {
        while u64::from(self.dirty_blocks - self.cleaning) * 100
            > u64::from(context.capacity) * u64::from(self.dirty_percent)
            && self.cleaning < MOST_CLEANING
        {
            let Some(chunk) = self.dirty.pop_front() else { return };
            self.block(chunk).is_cleaning = true;
            self.cleaning += 1;
            let percent = u64::from(self.dirty_blocks) * 100 / u64::from(context.capacity.max(1));
            let reason = Reason::TooDirty { percent: percent as u32 };
            decisions.push(Decision::new(chunk, Action::Clean, reason));
        }
    }

    fn cleaned(&mut self, chunk: ChunkNo, is_done: bool) {
        let block = self.block(chunk);
        if !std::mem::take(&mut block.is_cleaning) {
            return;
        }
        if is_done {
            block.is_dirty = false;
            let bucket = block.bucket;
            self.buckets[bucket as usize].dirty -= 1;
            self.dirty_blocks -= 1;
        } else {
            self.dirty.push_back(chunk);
        }
        self.cleaning -= 1;
    }

    /// The driver would not have it.
    fn refused(&mut self, chunk: ChunkNo) {
        let block = std::mem::replace(self.block(chunk), ABSENT);
        if block.is_dirty {
            self.buckets[block.bucket as usize].dirty -= 1;
            self.dirty_blocks -= 1;
            self.cleaning -= u32::from(block.is_cleaning);
            self.dirty.retain(|other| *other != chunk);
        }
    }
}

impl BlockCache for Bcache {
    const NAME: &'static str = "write-back";

    fn block_bytes(&self) -> u64 {
        self.block_bytes
    }

    fn io(&mut self, context: &Context<'_>, io: &Io, decisions: &mut Vec<Decision>) {
        self.looked_up(context, io, decisions);
    }

    fn done(&mut self, context: &Context<'_>, done: Copied, decisions: &mut Vec<Decision>) {
        if done.action == Action::Clean {
            self.cleaned(done.chunk, done.is_done);
            self.write_back(context, decisions);
        } else if !done.is_done && done.action.takes_room() {
            self.refused(done.chunk);
        }
    }

    fn tick(&mut self, context: &Context<'_>, decisions: &mut Vec<Decision>) {
        self.write_back(context, decisions);
    }
}

#[cfg(test)]
mod tests {
    use crate::policy::tests::bench;

    #[test]
    fn the_least_recently_used_bucket_is_evicted_whole() {
        let mut bench = bench("write-back:bucket=32KiB", 100, 4);
        for block in 0..4 {
            assert_eq!(bench.read(block), [format!("fill {block}")]);
        }
        bench.read(0);
        assert_eq!(bench.read(9), ["drop 2", "drop 3", "fill 9"]);
        assert_eq!(bench.read(2), ["fill 2"]);
    }

    #[test]
    fn dirty_blocks_are_written_back_above_their_share_and_keep_their_bucket_until_then() {
        let mut bench = bench("write-back:bucket=16KiB,dirty=50", 100, 4);
        assert_eq!(bench.write(0), ["promote-written 0"]);
        assert_eq!(bench.write(1), ["promote-written 1"]);
        assert!(bench.write(1).is_empty(), "it is dirty already");
        assert_eq!(bench.write(2), ["promote-written 2", "clean 0"]);
        bench.read(3);
        // The oldest bucket is being cleaned, the next two are dirty: the fourth makes room.
        assert_eq!(bench.read(4), ["drop 3", "fill 4"]);
        bench.done_all();
        assert_eq!(bench.read(5), ["drop 0", "fill 5"]);
    }

    #[test]
    fn long_streams_pass_by() {
        let mut bench = bench("write-back:cutoff=32KiB,bucket=16KiB", 100, 50);
        let filled: usize = (0..6).map(|block| bench.read_on(block).len()).sum();
        assert_eq!(filled, 2);
    }
}
