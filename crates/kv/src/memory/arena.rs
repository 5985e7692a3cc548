//! The memory that pairs lie in: blocks which a table fills one after another, and which the next tables use again.
//!
//! A piece of memory for each pair costs more than the copy: it is freed by another thread than the one that asked for
//! it, long after it left all caches, and goes back to the system meanwhile.
//!
//! 1. Who holds the commit lock copies a pair behind the one before. A table's first blocks are small, so that many
//!    stores that are hardly written to do not take much. Long pairs have memory of their own.
//! 2. When a table is gone, its blocks are [kept](Blocks) for others, as many as a full table has.
//! 3. What was not needed for a while goes.
//!
//! Invariant: a block is filled anew only if nobody refers to anything in it. So what readers are given that outlives
//! the table has to be a copy.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use parking_lot::Mutex;

use crate::notify::Notify;

/// Most bytes of a block.
const MAX_BLOCK_BYTES: u64 = 256 << 10;

/// Least bytes of a block.
const MIN_BLOCK_BYTES: u64 = 4 << 10;

/// Bytes of a memtable's first block, unless its first pair is longer.
const FIRST_BLOCK_BYTES: u64 = 512;

/// A full memtable has at least this many blocks.
const MIN_BLOCKS_PER_MEMTABLE: u64 = 32;

/// A pair longer than this fraction (1/n) of a block has memory of its own.
const LONG_PAIR_DIVISOR: usize = 8;

/// Longer pairs are never stored in a block.
pub(crate) const MAX_PAIR_BYTES_IN_BLOCK: usize = MAX_BLOCK_BYTES as usize / LONG_PAIR_DIVISOR;

/// The next block of a memtable has at most this fraction (1/n) of the bytes of those before.
const GROWTH_DIVISOR: u64 = 2;

/// Idle blocks are freed if none was needed for this long.
const IDLE_CHECK_INTERVAL: Duration = Duration::from_secs(1);

/// Blocks that a database's tables use one after another.
pub(crate) struct Blocks {
    block_bytes: usize,
    /// Most idle blocks that are kept: those of a full memtable.
    most: usize,
    idle: Mutex<Idle>,
    /// Told when some lie idle where none did: somebody has to look at them.
    returned: Notify,
}

#[derive(Default)]
struct Idle {
    blocks: Vec<BytesMut>,
    /// The fewest that there were since the last look.
    fewest: usize,
    looked: Duration,
    is_closed: bool,
}

impl fmt::Debug for Blocks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Blocks").field("idle", &self.idle_bytes()).finish_non_exhaustive()
    }
}

impl Blocks {
    /// Creates a pool for memtables of this size.
    pub(crate) fn new(table_bytes: u64, returned: Notify) -> Blocks {
        let bytes = (table_bytes / MIN_BLOCKS_PER_MEMTABLE).clamp(MIN_BLOCK_BYTES, MAX_BLOCK_BYTES);
        let block_bytes = 1u64 << bytes.ilog2();
        let most = (table_bytes / block_bytes) as usize;
        Blocks { block_bytes: block_bytes as usize, most, idle: Mutex::default(), returned }
    }

    /// Bytes of a full table.
    pub(crate) fn table_bytes(&self) -> u64 {
        (self.most * self.block_bytes) as u64
    }

    /// Bytes that no table uses.
    pub(crate) fn idle_bytes(&self) -> u64 {
        (self.idle.lock().blocks.len() * self.block_bytes) as u64
    }

    fn take(&self) -> BytesMut {
        let mut idle = self.idle.lock();
        let block = idle.blocks.pop();
        idle.fewest = idle.fewest.min(idle.blocks.len());
        drop(idle);
        block.unwrap_or_else(|| BytesMut::with_capacity(self.block_bytes))
    }

    /// Keeps those of a table that nobody refers to any more.
    fn give(&self, blocks: impl Iterator<Item = BytesMut>) {
        let had_any = self.idle_bytes() > 0;
        for mut block in blocks {
            block.clear();
            if !block.try_reclaim(self.block_bytes) {
                continue;
            }
            let mut idle = self.idle.lock();
            if idle.blocks.len() < self.most && !idle.is_closed {
                idle.blocks.push(block);
            }
        }
        if !had_any && self.idle_bytes() > 0 {
            self.returned.notify();
        }
    }

    /// Nothing is kept any more from now on.
    pub(crate) fn close(&self) {
        let mut idle = self.idle.lock();
        idle.is_closed = true;
        let unneeded = std::mem::take(&mut idle.blocks);
        drop(idle);
        drop(unneeded);
    }

    /// Lets those go that nobody needed since the last look, if that is a while ago; when to look again, if any are
    /// left.
    pub(crate) fn look(&self, now: Duration) -> Option<Duration> {
        let mut idle = self.idle.lock();
        let passed = now.saturating_sub(idle.looked);
        if passed < IDLE_CHECK_INTERVAL {
            return (!idle.blocks.is_empty()).then(|| IDLE_CHECK_INTERVAL - passed);
        }
        let left = idle.blocks.len() - idle.fewest.min(idle.blocks.len());
        let unneeded = idle.blocks.split_off(left);
        (idle.fewest, idle.looked) = (left, now);
        drop(idle);
        drop(unneeded);
        (left > 0).then_some(IDLE_CHECK_INTERVAL)
    }
}

/// The blocks of one table.
pub(crate) struct Arena {
    /// `None` if every pair stays where it is.
    blocks: Option<Arc<Blocks>>,
    own: Mutex<Own>,
}

#[derive(Default)]
struct Own {
    open: BytesMut,
    full: Vec<BytesMut>,
    bytes: u64,
}

impl fmt::Debug for Arena {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Arena").field("bytes", &self.own.lock().bytes).finish_non_exhaustive()
    }
}

impl Arena {
    pub(crate) fn new(blocks: Option<Arc<Blocks>>) -> Arena {
        Arena { blocks, own: Mutex::default() }
    }

    /// Returns whether what is so long is copied to a block.
    #[inline]
    pub(crate) fn takes(&self, len: usize) -> bool {
        self.blocks.as_ref().is_some_and(|blocks| len <= blocks.block_bytes / LONG_PAIR_DIVISOR)
    }

    /// A copy in a block, and the bytes of memory that came to the table by it. Only what it [takes](Self::takes).
    pub(crate) fn copy(&self, bytes: &[u8]) -> (Bytes, u64) {
        let mut own = self.own.lock();
        let mut taken = 0;
        if own.open.capacity() < bytes.len() {
            let next = self.next(&own, bytes.len());
            taken = next.capacity() as u64;
            own.bytes += taken;
            let full = std::mem::replace(&mut own.open, next);
            own.full.push(full);
        }
        own.open.extend_from_slice(bytes);
        (own.open.split().freeze(), taken)
    }

    fn next(&self, own: &Own, len: usize) -> BytesMut {
        let Some(blocks) = &self.blocks else { return BytesMut::with_capacity(len) };
        let growing = (own.bytes / GROWTH_DIVISOR).max(FIRST_BLOCK_BYTES) as usize;
        if growing >= blocks.block_bytes {
            return blocks.take();
        }
        BytesMut::with_capacity(growing.max(len))
    }
}

impl Drop for Arena {
    fn drop(&mut self) {
        if let Some(blocks) = &self.blocks {
            let own = self.own.get_mut();
            blocks.give(std::mem::take(&mut own.full).into_iter().chain([std::mem::take(&mut own.open)]));
        }
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;

    use super::*;

    /// Blocks of 8 KiB, 32 of them at most.
    fn blocks() -> Arc<Blocks> {
        Arc::new(Blocks::new(256 << 10, Notify::default()))
    }

    fn filled(blocks: &Arc<Blocks>, bytes: usize) -> (Arena, Vec<Bytes>) {
        let arena = Arena::new(Some(blocks.clone()));
        let pairs = (0..bytes / 1000).map(|i| arena.copy(&[i as u8; 1000]).0).collect();
        (arena, pairs)
    }

    #[test]
    fn arena_copies_equal_their_input_and_all_memory_is_counted() {
        let arena = Arena::new(Some(blocks()));
        assert!(arena.takes(1024) && !arena.takes(1025));
        let (mut pairs, mut taken) = (Vec::new(), 0);
        for i in 0..100usize {
            let (pair, more) = arena.copy(&vec![i as u8; i * 10]);
            pairs.push(pair);
            taken += more;
        }
        assert!(pairs.iter().enumerate().all(|(i, pair)| **pair == vec![i as u8; i * 10]));
        let own = arena.own.lock();
        let held: usize = pairs.iter().map(Bytes::len).sum();
        assert_eq!(taken, own.bytes);
        assert!(taken as usize >= held && (taken as usize) < 2 * held + 4096, "{taken} for {held}");
    }

    #[test]
    fn a_table_begins_with_little() {
        let (arena, _) = filled(&blocks(), 1000);
        assert_eq!(arena.own.lock().bytes, 1000);
    }

    #[test]
    fn unreferenced_blocks_are_reused() {
        let blocks = blocks();
        let (arena, pairs) = filled(&blocks, 100_000);
        let kept = pairs.last().cloned().unwrap();
        drop(pairs);
        assert_eq!(blocks.idle_bytes(), 0);
        let told = blocks.returned.notified();
        drop(arena);
        let idle = blocks.idle_bytes();
        assert!(told.now_or_never().is_some());
        assert!(idle > 50_000, "{idle}");
        let (arena, pairs) = filled(&blocks, 100_000);
        assert!(blocks.idle_bytes() < idle);
        assert_eq!(*kept, [99; 1000]);
        assert!(pairs.iter().enumerate().all(|(i, pair)| **pair == [i as u8; 1000]));
        drop((pairs, arena));
        assert!(blocks.idle_bytes() > idle);
    }

    #[test]
    fn no_more_are_kept_than_a_full_table_has() {
        let blocks = blocks();
        let tables: Vec<_> = (0..3).map(|_| filled(&blocks, 256_000)).collect();
        for (arena, pairs) in tables {
            drop(pairs);
            drop(arena);
        }
        assert_eq!(blocks.idle_bytes(), 256 << 10);
        blocks.close();
        drop(filled(&blocks, 100_000).0);
        assert_eq!(blocks.idle_bytes(), 0);
    }

    #[test]
    fn idle_blocks_are_freed_after_a_second() {
        let blocks = blocks();
        let fill = |bytes| {
            let (arena, pairs) = filled(&blocks, bytes);
            drop((pairs, arena));
        };
        fill(200_000);
        let idle = blocks.idle_bytes();
        let at = Duration::from_millis;
        assert_eq!(blocks.look(at(10_000)), Some(IDLE_CHECK_INTERVAL));
        assert_eq!(blocks.look(at(10_400)), Some(at(600)));
        assert_eq!(blocks.idle_bytes(), idle);
        // What this table takes and gives back was needed.
        fill(100_000);
        let again = blocks.look(at(11_000));
        assert!(again.is_some() && (1..idle).contains(&blocks.idle_bytes()), "{}", blocks.idle_bytes());
        assert_eq!(blocks.look(at(12_000)), None);
        assert_eq!(blocks.idle_bytes(), 0);
    }

    #[test]
    fn without_blocks_nothing_is_copied() {
        assert!(!Arena::new(None).takes(1));
    }
}
