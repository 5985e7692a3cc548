//! Pages that were written and are in memory until a cleaner has stored their images.
//!
//! Invariants, kept under the lock of the [page state](super::state):
//! - readers see a page that is here as it is here, whatever its word says;
//! - whoever gives a page another word, or none, takes it out;
//! - its bytes are never changed: a write replaces them, so a cleaner knows by their address whether they are still
//!   those that it has stored;
//! - a page keeps its age when it is written again, so that a sync comes to its end however often that happens.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The contents of a page.
pub(crate) type PageBytes = Arc<[u8]>;

/// Memory for dirty pages, shared by all objects of a volume.
#[derive(Debug)]
pub(crate) struct DirtyMemory {
    limit_bytes: u64,
    used_bytes: AtomicU64,
}

impl DirtyMemory {
    pub(crate) fn new(limit_bytes: u64) -> Arc<DirtyMemory> {
        Arc::new(DirtyMemory { limit_bytes, used_bytes: AtomicU64::new(0) })
    }

    pub(crate) fn limit_bytes(&self) -> u64 {
        self.limit_bytes
    }

    pub(crate) fn used_bytes(&self) -> u64 {
        self.used_bytes.load(Ordering::SeqCst)
    }

    /// Memory for `pages` pages of `page_bytes`, if that much is left.
    pub(crate) fn take(self: &Arc<Self>, pages: u64, page_bytes: u64) -> Option<Vec<Room>> {
        let wanted = pages * page_bytes;
        let fits = |used: u64| used.checked_add(wanted).filter(|sum| *sum <= self.limit_bytes);
        self.used_bytes.fetch_update(Ordering::SeqCst, Ordering::SeqCst, fits).ok()?;
        Some((0..pages).map(|_| Room { memory: self.clone(), bytes: page_bytes }).collect())
    }
}

/// Memory of one page; given back when dropped.
#[derive(Debug)]
pub(crate) struct Room {
    memory: Arc<DirtyMemory>,
    bytes: u64,
}

impl Drop for Room {
    fn drop(&mut self) {
        self.memory.used_bytes.fetch_sub(self.bytes, Ordering::SeqCst);
    }
}

#[derive(Debug)]
struct DirtyPage {
    bytes: PageBytes,
    age: u64,
    /// Somebody is about to store it.
    is_claimed: bool,
    _room: Room,
}

/// The dirty pages of one object.
#[derive(Debug, Default)]
pub(crate) struct DirtyPages {
    pages: BTreeMap<u64, DirtyPage>,
    /// Pages by age, the oldest first.
    by_age: BTreeMap<u64, u64>,
    next_age: u64,
}

impl DirtyPages {
    pub(crate) fn len(&self) -> u64 {
        self.pages.len() as u64
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.pages.is_empty()
    }

    /// What a page holds, if it is here.
    pub(crate) fn get(&self, page: u64) -> Option<&PageBytes> {
        self.pages.get(&page).map(|dirty| &dirty.bytes)
    }

    /// Numbers of pages from `first` on.
    pub(crate) fn numbers_from(&self, first: u64) -> impl Iterator<Item = u64> {
        self.pages.range(first..).map(|(page, _)| *page)
    }

    /// Pages that were put before now are younger than this.
    pub(crate) fn age(&self) -> u64 {
        self.next_age
    }

    /// Puts what a page holds now.
    pub(crate) fn put(&mut self, page: u64, bytes: PageBytes, room: Room) {
        if let Some(dirty) = self.pages.get_mut(&page) {
            (dirty.bytes, dirty.is_claimed) = (bytes, false);
            return;
        }
        let age = self.next_age;
        self.next_age += 1;
        self.by_age.insert(age, page);
        self.pages.insert(page, DirtyPage { bytes, age, is_claimed: false, _room: room });
    }

    /// Takes a page out: it has another word.
    pub(crate) fn remove(&mut self, page: u64) {
        if let Some(dirty) = self.pages.remove(&page) {
            self.by_age.remove(&dirty.age);
        }
    }

    /// Takes the pages `first..end` out.
    pub(crate) fn remove_range(&mut self, first: u64, end: u64) {
        let pages: Vec<u64> = self.pages.range(first..end.max(first)).map(|(page, _)| *page).collect();
        pages.into_iter().for_each(|page| self.remove(page));
    }

    /// Claims up to `most` pages of an age below `until` that nobody has claimed, the oldest first.
    pub(crate) fn claim(&mut self, most: usize, until: u64) -> Vec<(u64, PageBytes)> {
        let mut claimed = Vec::new();
        for page in self.by_age.range(..until).map(|(_, page)| page) {
            if claimed.len() >= most {
                break;
            }
            if let Some(dirty) = self.pages.get_mut(page).filter(|dirty| !dirty.is_claimed) {
                dirty.is_claimed = true;
                claimed.push((*page, dirty.bytes.clone()));
            }
        }
        claimed
    }

    /// Whether there is a page of an age below `until`.
    pub(crate) fn has_older(&self, until: u64) -> bool {
        self.by_age.range(..until).next().is_some()
    }

    /// Whether there is a page of an age below `until` that nobody has claimed.
    pub(crate) fn has_unclaimed_older(&self, until: u64) -> bool {
        let is_free = |page: &u64| self.pages.get(page).is_some_and(|dirty| !dirty.is_claimed);
        self.by_age.range(..until).any(|(_, page)| is_free(page))
    }

    /// Whether there is a page that nobody has claimed.
    pub(crate) fn has_unclaimed(&self) -> bool {
        self.pages.values().any(|dirty| !dirty.is_claimed)
    }

    /// Whether a page holds just these bytes still.
    pub(crate) fn is_still(&self, page: u64, bytes: &PageBytes) -> bool {
        self.get(page).is_some_and(|now| Arc::ptr_eq(now, bytes))
    }

    /// Whoever claimed these bytes does not store them.
    pub(crate) fn unclaim(&mut self, page: u64, bytes: &PageBytes) {
        if let Some(dirty) = self.pages.get_mut(&page)
            && Arc::ptr_eq(&dirty.bytes, bytes)
        {
            dirty.is_claimed = false;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn put(dirty: &mut DirtyPages, memory: &Arc<DirtyMemory>, page: u64, byte: u8) -> PageBytes {
        let bytes: PageBytes = vec![byte; 16].into();
        let room = memory.take(1, 16).unwrap().pop().unwrap();
        dirty.put(page, bytes.clone(), room);
        bytes
    }

    #[test]
    fn memory_is_bounded_and_given_back() {
        let memory = DirtyMemory::new(64);
        let mut dirty = DirtyPages::default();
        (0..4).for_each(|page| drop(put(&mut dirty, &memory, page, 1)));
        assert!(memory.take(1, 16).is_none() && memory.used_bytes() == 64);
        dirty.remove_range(1, 3);
        assert_eq!((memory.used_bytes(), dirty.len()), (32, 2));
        assert_eq!(dirty.numbers_from(1).collect::<Vec<_>>(), [3]);
        drop(dirty);
        assert_eq!(memory.used_bytes(), 0);
    }

    #[test]
    fn the_oldest_pages_are_claimed_first_and_once() {
        let memory = DirtyMemory::new(1 << 10);
        let mut dirty = DirtyPages::default();
        let seven = put(&mut dirty, &memory, 7, 1);
        put(&mut dirty, &memory, 3, 1);
        let until = dirty.age();
        put(&mut dirty, &memory, 9, 1);
        assert_eq!(dirty.claim(1, u64::MAX), [(7, seven.clone())]);
        assert_eq!(dirty.claim(9, until).len(), 1);
        assert!(dirty.has_unclaimed() && dirty.has_older(until));
        dirty.unclaim(7, &seven);
        assert_eq!(dirty.claim(9, until), [(7, seven)]);
        (3..8).for_each(|page| dirty.remove(page));
        assert!(!dirty.has_older(until) && !dirty.is_empty());
    }

    #[test]
    fn a_page_that_is_written_again_keeps_its_age_and_loses_its_claim() {
        let memory = DirtyMemory::new(1 << 10);
        let mut dirty = DirtyPages::default();
        let old = put(&mut dirty, &memory, 7, 1);
        let until = dirty.age();
        dirty.claim(1, until);
        let new = put(&mut dirty, &memory, 7, 2);
        assert!(!dirty.is_still(7, &old) && dirty.is_still(7, &new));
        assert_eq!(memory.used_bytes(), 16);
        // The claim of the old bytes is of no account any more.
        dirty.unclaim(7, &old);
        assert_eq!(dirty.claim(1, until), [(7, new)]);
    }
}
