//! `bufferpool-extension` (SSD buffer pool extensions): clean pages that the page cache gives up go to the fast class.
//!
//! 1. A clean page that is evicted is put into the fast class, from memory. What is there already is not written again.
//! 2. The victim is that of LRU-2: the page whose last reference but one is oldest; pages with one reference go first,
//!    the oldest of them.
//! 3. A reference is a read that reaches the volume. A written page is dropped.

use std::collections::BTreeSet;

use tanada_placement::{
    Action, ChunkNo, Context, Decision, Io, IoKind, Options, Policy, Reason, Result, Source,
};

use super::blocks::{BLOCK_BYTES, BlockCache, Copied, cached, drop_for};

/// The last reference but one, and the last; 0 for none.
#[derive(Debug, Clone, Copy, Default)]
struct Page {
    before: u64,
    last: u64,
    is_cached: bool,
}

#[derive(Debug, Clone)]
struct Extension {
    block_bytes: u64,
    clock: u64,
    pages: Vec<Page>,
    cached: BTreeSet<(u64, u64, ChunkNo)>,
}

pub(super) fn make(options: &mut Options, _: u64) -> Result<Box<dyn Policy>> {
    let block_bytes = options.size("block", BLOCK_BYTES)?;
    Ok(cached(Extension { block_bytes, clock: 0, pages: Vec::new(), cached: BTreeSet::new() }))
}

impl Extension {
    fn page(&mut self, chunk: ChunkNo) -> Page {
        if self.pages.len() <= chunk.index() {
            self.pages.resize(chunk.index() + 1, Page::default());
        }
        self.pages[chunk.index()]
    }

    fn referenced(&mut self, chunk: ChunkNo) {
        self.clock += 1;
        let old = self.page(chunk);
        let new = Page { before: old.last, last: self.clock, ..old };
        self.pages[chunk.index()] = new;
        if old.is_cached {
            self.cached.remove(&(old.before, old.last, chunk));
            self.cached.insert((new.before, new.last, chunk));
        }
    }

    fn drop(&mut self, chunk: ChunkNo) {
        let page = self.page(chunk);
        self.cached.remove(&(page.before, page.last, chunk));
        self.pages[chunk.index()].is_cached = false;
    }

    fn gave_up(&mut self, context: &Context<'_>, chunk: ChunkNo, decisions: &mut Vec<Decision>) {
        let page = self.page(chunk);
        if page.is_cached || context.capacity == 0 {
            return;
        }
        if self.cached.len() as u64 >= u64::from(context.capacity)
            && let Some((_, _, victim)) = self.cached.first().copied()
        {
            self.drop(victim);
            decisions.push(drop_for(victim, chunk));
        }
        self.pages[chunk.index()].is_cached = true;
        self.cached.insert((page.before, page.last, chunk));
        decisions.push(Decision::new(chunk, Action::Mirror(Source::Memory), Reason::Evicted));
    }
}

impl BlockCache for Extension {
    const NAME: &'static str = "bufferpool-extension";

    fn block_bytes(&self) -> u64 {
        self.block_bytes
    }

    fn io(&mut self, _: &Context<'_>, io: &Io, _: &mut Vec<Decision>) {
        match io.kind {
            IoKind::Read => self.referenced(io.chunk),
            IoKind::Write => self.drop(io.chunk),
        }
    }

    fn evicted(
        &mut self,
        context: &Context<'_>,
        chunk: ChunkNo,
        is_dirty: bool,
        decisions: &mut Vec<Decision>,
    ) {
        if !is_dirty {
            self.gave_up(context, chunk, decisions);
        }
    }

    fn done(&mut self, _: &Context<'_>, done: Copied, _: &mut Vec<Decision>) {
        if !done.is_done {
            self.drop(done.chunk);
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::policy::tests::bench;

    #[test]
    fn only_clean_pages_that_are_given_up_go_there() {
        let mut bench = bench("bufferpool-extension", 100, 2);
        assert!(bench.read(1).is_empty() && bench.evict(1, true).is_empty());
        assert_eq!(bench.evict(1, false), ["fill 1"]);
        assert!(bench.evict(1, false).is_empty());
    }

    #[test]
    fn pages_referenced_twice_outlive_those_referenced_once() {
        let mut bench = bench("bufferpool-extension", 100, 2);
        for page in [1, 1, 2] {
            bench.read(page);
        }
        bench.evict(1, false);
        bench.evict(2, false);
        bench.read(3);
        assert_eq!(bench.evict(3, false), ["drop 2", "fill 3"]);
        bench.read(4);
        assert_eq!(bench.evict(4, false), ["drop 3", "fill 4"]);
        bench.write(1);
        bench.read(5);
        assert_eq!(bench.evict(5, false), ["fill 5"]);
    }
}
