//! The pages of one object as they are in memory, as the metadata know them, and as a sync that is under way has noted
//! them.
//!
//! A page whose word in memory is not that of the metadata is *fresh*. A sync notes the words of all fresh pages, makes
//! their data durable, and then journals these words, even if a later write has replaced one of them meanwhile: the
//! sync has promised them. So blocks of a noted word are kept until another one is journaled for the page.

use std::collections::{BTreeMap, VecDeque};

use super::Stored;
use super::dirty::DirtyPages;
use super::map::{PAGES_PER_LEAF, PageMap};
use super::space::Space;
use crate::metadata::journal::Lsn;
use crate::metadata::{Queue, Record};

/// A page whose word the metadata do not have.
#[derive(Debug, Clone, Copy)]
struct FreshPage {
    /// The word that they have.
    journaled: u64,
    /// The word that a sync has noted; it was not journaled yet.
    noted: Option<u64>,
}

/// Blocks that no page has any more.
#[derive(Debug)]
struct Retired {
    block: u64,
    blocks: u8,
    /// They are free when this change is durable,
    lsn: Lsn,
    /// and when this period of grace is over.
    period: u64,
}

/// See the module's head.
#[derive(Debug)]
pub(crate) struct PageState {
    map: PageMap,
    fresh: BTreeMap<u64, FreshPage>,
    retired: VecDeque<Retired>,
    pub(crate) dirty: DirtyPages,
    pub(crate) space: Space,
    /// The logical size that the metadata have.
    pub(crate) journaled_size: u64,
    /// What was done to pages since the opening.
    pub(crate) counters: PageCounters,
}

/// What was done to pages since the opening.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct PageCounters {
    pub(crate) written: u64,
    pub(crate) read: u64,
    pub(crate) rewritten_in_part: u64,
}

/// Words that left the map by a change.
#[derive(Debug, Default)]
pub(crate) struct FreedWords {
    /// The metadata have these,
    pub(crate) journaled: Vec<u64>,
    /// and never had these.
    pub(crate) fresh: Vec<u64>,
}

impl PageState {
    pub(crate) fn new(map: PageMap, space: Space, journaled_size: u64) -> PageState {
        PageState {
            map,
            fresh: BTreeMap::new(),
            retired: VecDeque::new(),
            dirty: DirtyPages::default(),
            space,
            journaled_size,
            counters: PageCounters::default(),
        }
    }

    /// The word of a page.
    pub(crate) fn word(&self, page: u64) -> u64 {
        self.map.get(page)
    }

    /// All pages that are no holes, with their words.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u64, u64)> {
        self.map.iter_from(0)
    }

    /// Whether a page was written, and is stored or waits for a cleaner.
    pub(crate) fn is_written(&self, page: u64) -> bool {
        self.map.get(page) != 0 || self.dirty.get(page).is_some()
    }

    /// Whether any page of `first..end` is no hole.
    pub(crate) fn has_data(&self, first: u64, end: u64) -> bool {
        self.next_data(first).is_some_and(|page| page < end)
    }

    /// The first page from `first` on that is no hole.
    pub(crate) fn next_data(&self, first: u64) -> Option<u64> {
        let stored = self.map.iter_from(first).next().map(|(page, _)| page);
        stored.into_iter().chain(self.dirty.numbers_from(first).next()).min()
    }

    /// The first hole from page `first` on.
    pub(crate) fn next_hole(&self, first: u64) -> u64 {
        let mut stored = self.map.iter_from(first).map(|(page, _)| page).peekable();
        let mut dirty = self.dirty.numbers_from(first).peekable();
        let mut at = first;
        loop {
            let is_stored = stored.next_if_eq(&at).is_some();
            let is_dirty = dirty.next_if_eq(&at).is_some();
            if !is_stored && !is_dirty {
                return at;
            }
            at += 1;
        }
    }

    pub(crate) fn has_fresh(&self) -> bool {
        !self.fresh.is_empty()
    }

    /// Gives a page another word; `period` is that of the grace of who may still read what it had. What waited for a
    /// cleaner is of no account any more.
    pub(crate) fn switch(&mut self, page: u64, word: u64, period: u64) {
        self.dirty.remove(page);
        let old = self.map.set(page, word);
        match self.fresh.get(&page) {
            None => {
                if old != word {
                    self.fresh.insert(page, FreshPage { journaled: old, noted: None });
                }
            }
            Some(fresh) if old != fresh.journaled && Some(old) != fresh.noted => {
                self.retire([old], 0, period)
            }
            Some(_) => {}
        }
    }

    /// Notes the words of all fresh pages, for a sync.
    pub(crate) fn note(&mut self, period: u64) {
        let mut dropped = Vec::new();
        for (page, fresh) in &mut self.fresh {
            let word = self.map.get(*page);
            // What an earlier sync noted and did not come to journal is of no use, unless it is there still.
            dropped.extend(fresh.noted.filter(|noted| *noted != word && *noted != fresh.journaled));
            fresh.noted = Some(word);
        }
        self.retire(dropped, 0, period);
    }

    /// Journals what was noted of the pages `first..end`; the words that the metadata had instead.
    pub(crate) fn journal_noted(&mut self, id: u64, first: u64, end: u64, queue: &mut Queue) -> Vec<u64> {
        let mut replaced = Vec::new();
        let mut done = Vec::new();
        let mut run: Option<(u64, Vec<u64>)> = None;
        for (page, fresh) in self.fresh.range_mut(first..end.max(first)) {
            let Some(noted) = fresh.noted.take() else { continue };
            replaced.push(std::mem::replace(&mut fresh.journaled, noted));
            if self.map.get(*page) == noted {
                done.push(*page);
            }
            match &mut run {
                Some((from, words))
                    if *from + words.len() as u64 == *page && words.len() < PAGES_PER_LEAF as usize =>
                {
                    words.push(noted);
                }
                _ => {
                    push_run(id, run.take(), queue);
                    run = Some((*page, vec![noted]));
                }
            }
        }
        push_run(id, run, queue);
        for page in done {
            self.fresh.remove(&page);
        }
        replaced
    }

    /// Makes holes of `count` pages from `first` on, within a change of the journal.
    pub(crate) fn unmap(&mut self, id: u64, first: u64, count: u64, queue: &mut Queue) -> FreedWords {
        let end = first.saturating_add(count);
        self.dirty.remove_range(first, end);
        let mut freed = FreedWords::default();
        let mapped: Vec<(u64, u64)> = self.map.iter_from(first).take_while(|(page, _)| *page < end).collect();
        let fresh: Vec<u64> = self.fresh.range(first..end).map(|(page, _)| *page).collect();
        for (page, word) in mapped {
            self.map.set(page, 0);
            if !self.fresh.contains_key(&page) {
                freed.journaled.push(word);
            } else {
                freed.fresh.push(word);
            }
        }
        for page in fresh {
            let Some(FreshPage { journaled, noted }) = self.fresh.remove(&page) else { continue };
            freed.fresh.extend(noted.filter(|noted| !freed.fresh.contains(noted)));
            freed.journaled.push(journaled);
        }
        freed.journaled.retain(|word| *word != 0);
        freed.fresh.retain(|word| *word != 0);
        if !freed.journaled.is_empty() {
            queue.push(&Record::PagesUnmapped { id, first, count });
        }
        freed
    }

    /// The words that the metadata have, in records.
    pub(crate) fn journaled(&self, id: u64) -> Vec<Record> {
        let mut records = Vec::new();
        let mut pages: Vec<(u64, u64)> =
            self.map.iter_from(0).filter(|(page, _)| !self.fresh.contains_key(page)).collect();
        pages.extend(
            self.fresh.iter().map(|(page, fresh)| (*page, fresh.journaled)).filter(|(_, word)| *word != 0),
        );
        pages.sort_unstable();
        for (page, word) in pages {
            match records.last_mut() {
                Some(Record::Pages { first, words, .. })
                    if *first + words.len() as u64 == page && words.len() < PAGES_PER_LEAF as usize =>
                {
                    words.push(word);
                }
                _ => records.push(Record::Pages { id, first: page, words: vec![word] }),
            }
        }
        records
    }

    /// Notes that the blocks of `words` left the mapping with change `lsn` (0: the metadata never had them).
    pub(crate) fn retire(&mut self, words: impl IntoIterator<Item = u64>, lsn: Lsn, period: u64) {
        let stored = words.into_iter().filter_map(Stored::of);
        self.retired.extend(stored.map(|Stored { block, blocks, .. }| Retired {
            block,
            blocks,
            lsn,
            period,
        }));
    }

    /// Makes retired blocks free that may be.
    pub(crate) fn reclaim(&mut self, is_free: impl Fn(Lsn, u64) -> bool) {
        while let Some(first) = self.retired.front()
            && is_free(first.lsn, first.period)
        {
            let Some(Retired { block, blocks, .. }) = self.retired.pop_front() else { return };
            let was_taken = self.space.give_back(block, blocks);
            debug_assert!(was_taken, "blocks {block} to {} are free already", block + u64::from(blocks));
        }
    }

    /// The last period of grace that retired blocks wait for.
    pub(crate) fn newest_retired(&self) -> Option<u64> {
        self.retired.iter().map(|retired| retired.period).max()
    }

    /// Blocks that wait to become free.
    pub(crate) fn retired_blocks(&self) -> u64 {
        self.retired.iter().map(|retired| u64::from(retired.blocks)).sum()
    }
}

fn push_run(id: u64, run: Option<(u64, Vec<u64>)>, queue: &mut Queue) {
    if let Some((first, words)) = run {
        queue.push(&Record::Pages { id, first, words });
        queue.end_group();
    }
}
