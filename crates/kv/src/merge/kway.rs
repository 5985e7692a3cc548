//! Many sources as one.
//!
//! A binary heap of the sources that are at a version; the first in order is on top. Of sources with the same key and
//! sequence number, the newer source (the one with the smaller index) comes first; in reverse it comes last.

use std::cmp::Ordering;

use futures::future::{BoxFuture, try_join_all};

use super::source::{Direction, Source, Step};
use crate::Result;
use crate::entry::{SequenceNo, Version};

impl Source for Box<dyn Source> {
    fn seek(&mut self, direction: Direction, bound: Option<&[u8]>) -> Result<Step> {
        (**self).seek(direction, bound)
    }

    fn advance(&mut self) -> Result<Step> {
        (**self).advance()
    }

    fn load(&mut self) -> BoxFuture<'_, Result<()>> {
        (**self).load()
    }

    fn key(&self) -> Option<&[u8]> {
        (**self).key()
    }

    fn sequence(&self) -> SequenceNo {
        (**self).sequence()
    }

    fn version(&self) -> Result<Version> {
        (**self).version()
    }
}

/// A merge of sources, the newest first.
pub(crate) struct Merge<S> {
    sources: Vec<S>,
    direction: Direction,
    /// Indexes of sources that are at a version.
    heap: Vec<usize>,
    /// The source on top has to load before anything is known.
    is_loading: bool,
}

impl<S: Source> Merge<S> {
    pub(crate) fn new(sources: Vec<S>) -> Merge<S> {
        Merge { sources, direction: Direction::Forward, heap: Vec::new(), is_loading: false }
    }

    pub(crate) fn direction(&self) -> Direction {
        self.direction
    }

    /// Goes to the first version at or behind the bound, see [`Source::seek`]. All sources load at once.
    ///
    /// # Errors
    /// Those of the sources.
    pub(crate) async fn seek(&mut self, direction: Direction, bound: Option<&[u8]>) -> Result<()> {
        self.direction = direction;
        self.heap.clear();
        self.is_loading = false;
        let mut loads = Vec::new();
        for source in &mut self.sources {
            if source.seek(direction, bound)? == Step::Load {
                loads.push(source.load());
            }
        }
        try_join_all(loads).await?;
        self.heap.extend((0..self.sources.len()).filter(|index| self.sources[*index].key().is_some()));
        for position in (0..self.heap.len() / 2).rev() {
            self.sift_down(position);
        }
        Ok(())
    }

    /// Goes one version further.
    ///
    /// # Errors
    /// Those of the sources.
    #[inline]
    pub(crate) fn advance(&mut self) -> Result<Step> {
        let Some(top) = self.heap.first() else { return Ok(Step::Done) };
        if self.sources[*top].advance()? == Step::Load {
            self.is_loading = true;
            return Ok(Step::Load);
        }
        self.settle();
        Ok(Step::Done)
    }

    /// Ends what [`advance`](Self::advance) began.
    ///
    /// # Errors
    /// Those of the sources.
    pub(crate) async fn load(&mut self) -> Result<()> {
        if let Some(top) = self.heap.first().filter(|_| self.is_loading) {
            self.sources[*top].load().await?;
            self.is_loading = false;
            self.settle();
        }
        Ok(())
    }

    /// Puts the source on top where it belongs now.
    #[inline]
    fn settle(&mut self) {
        if self.sources[self.heap[0]].key().is_none() {
            self.heap.swap_remove(0);
        }
        self.sift_down(0);
    }

    /// The index of the source that is first.
    #[inline]
    pub(crate) fn top(&self) -> Option<usize> {
        self.heap.first().copied()
    }

    #[inline]
    pub(crate) fn key(&self) -> Option<&[u8]> {
        self.sources[self.top()?].key()
    }

    /// Returns the key of the present version; meaningless without one.
    #[inline]
    pub(crate) fn sequence(&self) -> SequenceNo {
        self.top().map_or(0, |top| self.sources[top].sequence())
    }

    /// The version it is at.
    ///
    /// # Errors
    /// Those of the source, `Corrupted` if there is none.
    pub(crate) fn version(&self) -> Result<Version> {
        match self.top() {
            Some(top) => self.sources[top].version(),
            None => Err(crate::Error::corrupted("a merge without a version")),
        }
    }

    fn order(&self, a: usize, b: usize) -> Ordering {
        let (first, second) = (&self.sources[a], &self.sources[b]);
        let by_key = first.key().cmp(&second.key());
        let forward = by_key.then_with(|| second.sequence().cmp(&first.sequence())).then(a.cmp(&b));
        match self.direction {
            Direction::Forward => forward,
            Direction::Reverse => forward.reverse(),
        }
    }

    fn sift_down(&mut self, mut position: usize) {
        loop {
            let mut child = 2 * position + 1;
            if child >= self.heap.len() {
                return;
            }
            if child + 1 < self.heap.len()
                && self.order(self.heap[child + 1], self.heap[child]) == Ordering::Less
            {
                child += 1;
            }
            if self.order(self.heap[position], self.heap[child]) != Ordering::Greater {
                return;
            }
            self.heap.swap(position, child);
            position = child;
        }
    }
}
