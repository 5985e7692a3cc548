//! Copies of pages, in memory that goes back to the system page by page.
//!
//! Who keeps pages drops now this one and now that one. An allocator has a larger piece for dozens of them, which goes back to the system when the last one
//! of it is gone: what is dropped is as good as kept. Here a page that was dropped is used for the next one, and of those that wait for that there are few.
//!
//! Invariants: the number of a place is in `free` (it has memory), in `empty` (it was given back), not less than `fresh` (it was never used), in the hands of who
//! gives places back, or of one [`HeldPage`]; never in two of these.

use std::sync::Arc;

use parking_lot::Mutex;

use crate::mapping::Mapping;

/// Bytes of a page.
pub const PAGE_BYTES: usize = 4096;

/// So many places wait for other pages at most, or one in so many of all, whichever is less; but a few in any case.
const MOST_IDLE: usize = 512;
const IDLE_PART: usize = 64;
const LEAST_IDLE: usize = 16;

#[derive(Default)]
struct Places {
    free: Vec<u32>,
    empty: Vec<u32>,
    fresh: u32,
}

struct Shared {
    mapping: Mapping,
    most_idle: usize,
    places: Mutex<Places>,
}

/// Places for pages. Cheap to clone.
#[derive(Clone)]
pub struct HeldPages {
    shared: Arc<Shared>,
}

impl HeldPages {
    /// Room for so many; for none if the kernel refuses that, or if its own pages are larger. A place takes no memory until it is used.
    #[must_use]
    pub fn new(count: usize) -> HeldPages {
        let fits = rustix::param::page_size() == PAGE_BYTES && u32::try_from(count).is_ok();
        let mapping = Mapping::new(count.checked_mul(PAGE_BYTES).filter(|_| fits));
        let most_idle = (count / IDLE_PART).clamp(LEAST_IDLE, MOST_IDLE);
        HeldPages { shared: Arc::new(Shared { mapping, most_idle, places: Mutex::default() }) }
    }

    /// A copy of `page`; `None` if there is no room for another one, or if it has another length.
    #[must_use]
    pub fn copy(&self, page: &[u8]) -> Option<HeldPage> {
        let page: &[u8; PAGE_BYTES] = page.try_into().ok()?;
        let no = self.shared.take()?;
        // SAFETY: the place lies in the mapping, as numbers of places are less than the pages in it, and it is this one's alone from when it was taken until
        // what is made here is dropped: nobody else reads or writes it. The bytes that are copied lie elsewhere, for they are borrowed.
        unsafe { self.shared.at(no).copy_from_nonoverlapping(page.as_ptr(), PAGE_BYTES) };
        Some(HeldPage { shared: self.shared.clone(), no })
    }

    /// Bytes of places that have memory and hold no page.
    #[must_use]
    pub fn idle_bytes(&self) -> usize {
        self.shared.places.lock().free.len() * PAGE_BYTES
    }
}

impl Shared {
    fn at(&self, no: u32) -> *mut u8 {
        self.mapping.start().as_ptr().wrapping_add(no as usize * PAGE_BYTES)
    }

    fn take(&self) -> Option<u32> {
        let mut places = self.places.lock();
        places.free.pop().or_else(|| places.empty.pop()).or_else(|| {
            let is_there = (places.fresh as usize) < self.mapping.len() / PAGE_BYTES;
            is_there.then(|| {
                places.fresh += 1;
                places.fresh - 1
            })
        })
    }

    /// Takes back what [`take`](Self::take) gave. Of too many that are idle half go to the system.
    fn put(&self, no: u32) {
        let mut back = {
            let mut places = self.places.lock();
            places.free.push(no);
            if places.free.len() <= self.most_idle {
                return;
            }
            let kept = self.most_idle / 2;
            places.free.split_off(kept)
        };
        // Neighbours go together.
        back.sort_unstable();
        for run in back.chunk_by(|one, next| one + 1 == *next) {
            if let (Some(first), Some(last)) = (run.first(), run.last()) {
                self.give_back(*first, *last);
            }
        }
        self.places.lock().empty.append(&mut back);
    }

    fn give_back(&self, first: u32, last: u32) {
        let range = first as usize * PAGE_BYTES..(last as usize + 1) * PAGE_BYTES;
        // What the system does not take stays as it is, and is used again all the same.
        // SAFETY: places are pages of the system's size (`new`), and these are nobody's: they were put back by their pages, whose references have ended, and are in
        // neither list.
        let _ = unsafe { self.mapping.give_back(range) };
    }
}

/// A page that is held until this is dropped.
pub struct HeldPage {
    shared: Arc<Shared>,
    no: u32,
}

impl AsRef<[u8]> for HeldPage {
    fn as_ref(&self) -> &[u8] {
        // SAFETY: the place is in the mapping, which lives as long as `shared`, and holds a page that was copied to it before this value was made; it is this one's
        // alone, and nobody writes to it until it is dropped.
        unsafe { std::slice::from_raw_parts(self.shared.at(self.no), PAGE_BYTES) }
    }
}

impl Drop for HeldPage {
    fn drop(&mut self) {
        self.shared.put(self.no);
    }
}

impl std::fmt::Debug for HeldPages {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HeldPages").field("idle_bytes", &self.idle_bytes()).finish_non_exhaustive()
    }
}

impl std::fmt::Debug for HeldPage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HeldPage").field("no", &self.no).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::os::unix::fs::FileExt;

    use tanada_base::SplitMix64;

    use super::*;

    fn page(stamp: u64) -> [u8; PAGE_BYTES] {
        std::array::from_fn(|byte| stamp.to_le_bytes()[byte % 8])
    }

    /// Memory that the mapping takes: the kernel tells it page by page. (What it tells of whole mappings may count neighbours, for those are joined.)
    fn resident(pages: &HeldPages) -> usize {
        let map = File::open("/proc/self/pagemap").unwrap();
        let mut entries = vec![0; pages.shared.mapping.len() / PAGE_BYTES * 8];
        map.read_exact_at(&mut entries, (pages.shared.at(0) as usize / PAGE_BYTES * 8) as u64).unwrap();
        let is_there = |entry: &&[u8; 8]| u64::from_le_bytes(**entry) >> 63 == 1;
        entries.as_chunks().0.iter().filter(is_there).count() * PAGE_BYTES
    }

    #[test]
    fn a_page_is_what_was_copied_as_long_as_it_is_held_whoever_drops_others() {
        let pages = HeldPages::new(1000);
        std::thread::scope(|scope| {
            for thread in 0..4 {
                let pages = pages.clone();
                scope.spawn(move || {
                    let mut random = SplitMix64::new(thread);
                    let mut held: Vec<(u64, HeldPage)> = Vec::new();
                    for no in 0..20_000 {
                        if random.below(1000) < 500 || held.is_empty() {
                            let stamp = thread << 32 | no;
                            held.extend(pages.copy(&page(stamp)).map(|copy| (stamp, copy)));
                        } else if random.below(1000) == 0 {
                            held.clear();
                        } else {
                            let (stamp, copy) = held.swap_remove(random.below(held.len() as u64) as usize);
                            assert_eq!(copy.as_ref(), page(stamp));
                        }
                    }
                    assert!(held.iter().all(|(stamp, copy)| copy.as_ref() == page(*stamp)));
                });
            }
        });
        assert!(pages.idle_bytes() <= LEAST_IDLE * PAGE_BYTES, "{pages:?}");
        let all: Vec<_> = std::iter::from_fn(|| pages.copy(&page(7))).collect();
        assert_eq!(all.len(), 1000, "all places have come back, each once");
    }

    #[test]
    fn what_is_dropped_here_and_there_takes_no_memory() {
        let pages = HeldPages::new(8192);
        let all: Vec<_> = std::iter::from_fn(|| pages.copy(&page(7))).collect();
        assert_eq!((all.len(), resident(&pages)), (8192, 8192 * PAGE_BYTES));
        let third: Vec<_> = all.into_iter().step_by(3).collect();
        let idle = pages.idle_bytes();
        assert!(idle <= 128 * PAGE_BYTES, "{idle}");
        assert_eq!(resident(&pages), third.len() * PAGE_BYTES + idle);
        assert!(third.iter().all(|copy| copy.as_ref() == page(7)));
        drop(third);
        assert!(resident(&pages) <= 128 * PAGE_BYTES);
    }

    #[test]
    fn a_page_outlives_what_it_was_made_by_and_others_are_no_pages() {
        let pages = HeldPages::new(1);
        let copy = pages.copy(&page(1)).unwrap();
        assert!(pages.copy(&page(2)).is_none(), "there is no room");
        drop(pages);
        assert_eq!(copy.as_ref(), page(1));
        for count in [0, usize::MAX, 1 << 40] {
            assert!(HeldPages::new(count).copy(&page(1)).is_none());
        }
        let pages = HeldPages::new(1);
        assert!(pages.copy(&[0; PAGE_BYTES - 1]).is_none() && pages.copy(&[0; 2 * PAGE_BYTES]).is_none());
        assert!(pages.copy(&page(1)).is_some(), "those took no place");
    }
}
