//! Who owns which page, by the extent descriptors and the segment inodes (`fsp0fsp.h`).
//!
//! Space is given to segments in extents; the first pages of a segment are single ones from extents that several share.
//! Every group of as many pages as a page has bytes starts with a page of descriptors, page 0 being the first:
//!
//! 1. the inodes name each segment's single pages;
//! 2. a descriptor's state tells whose the extent is: nobody's, shared, or one segment's; a bit for each page tells
//!    whether it is used. (MySQL also lends the first extent of a group to a segment, whose first two pages stay what
//!    they are.)
//! 3. pages behind the free limit were never given to anyone.
//!
//! Reads the pages of descriptors and inodes only. Each page is said to be of one owner; what contradicts that (a page
//! that two segments have, one in use that its descriptor calls free, an extent of a segment that has no inode) is
//! damage.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use futures::StreamExt;
use futures::stream::{self, TryStreamExt};
use tanada_io::IoContext;

use super::Tablespace;
use super::header::{FSP_FREE_LIMIT, XDES_ARRAY, xdes_bytes, xdes_count};
use super::ranges::{PageRange, push};
use super::segment::fragments;
use crate::page::header::{page_type, u32_at, u64_at};
use crate::{Page, PageNo, Result};

const SEGMENT: usize = 0;
const STATE: usize = 20;
const BITMAP: usize = 24;
const STATE_FREE: u32 = 1;
const STATE_FREE_FRAGMENTS: u32 = 2;
const STATE_FULL_FRAGMENTS: u32 = 3;
const STATE_OF_SEGMENT: u32 = 4;
/// MySQL.
const STATE_LENT: u32 = 5;
/// The descriptors and the bitmap of the change buffer, at the start of each group.
const OF_GROUP: u32 = 2;
/// Page reads in flight at once.
const READS: usize = 32;

/// Where an inode lies: its page and the offset there.
pub(crate) type InodeAddress = (PageNo, u16);

/// The pages of one segment, ascending.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct SegmentPages {
    pub(crate) used: Vec<PageRange>,
    /// In its extents, but not used yet or no more.
    pub(crate) reserved: Vec<PageRange>,
}

/// All pages of a space by owner.
#[derive(Debug, Default)]
pub(crate) struct Owners {
    /// By segment id.
    pub(crate) segments: HashMap<u64, SegmentPages>,
    pub(crate) inodes: HashMap<InodeAddress, u64>,
    pub(crate) free: Vec<PageRange>,
    /// Used by the space itself.
    pub(crate) system: Vec<PageRange>,
}

/// One extent's descriptor.
struct Descriptor<'a> {
    first: PageNo,
    bytes: &'a [u8],
}

impl Descriptor<'_> {
    fn is_free(&self, page: PageNo) -> bool {
        // Two bits a page, the lower one set if it is free.
        let at = 2 * (page.0 - self.first.0) as usize;
        self.bytes.get(BITMAP + at / 8).is_some_and(|byte| byte >> (at % 8) & 1 == 1)
    }
}

impl Tablespace {
    /// Who owns which page of the file.
    ///
    /// # Errors
    /// `Corrupt` if inodes and descriptors are damaged or contradict each other.
    pub(crate) async fn owners(&self, context: &IoContext) -> Result<Owners> {
        let mut owners = Owners::default();
        let singles = self.single_pages(&mut owners, context).await?;
        let first = self.page(PageNo(0), context).await?;
        let limit = u32_at(first.bytes(), FSP_FREE_LIMIT).min(self.pages());
        let groups = (0..limit).step_by(self.page_size().bytes());
        let read =
            |group: u32| async move { self.page(PageNo(group), context).await.map(|page| (page, group)) };
        let mut groups = stream::iter(groups).map(read).buffered(READS);
        let mut seen_singles = 0;
        while let Some((page, group)) = groups.try_next().await? {
            if !self.is_of_type(&page, &[page_type::FSP_HEADER, page_type::XDES]) {
                let what = format!("it has type {} where extents should be described", page.page_type());
                return Err(self.corrupt(page.number(), &what));
            }
            seen_singles += self.take_group(&page, group, limit, &singles, &mut owners)?;
        }
        if seen_singles != singles.len() {
            return Err(self.corrupt(PageNo(0), "a segment has a page that its extent does not share out"));
        }
        let behind = PageRange { first: PageNo(limit), pages: self.pages().saturating_sub(limit) };
        super::ranges::push_range(&mut owners.free, behind);
        Ok(owners)
    }

    /// The segments that have single pages, by page. Fills in the inodes.
    async fn single_pages(&self, owners: &mut Owners, context: &IoContext) -> Result<HashMap<PageNo, u64>> {
        let mut singles = HashMap::new();
        for inode in self.segments(context).await? {
            let page = self.page(inode.page, context).await?;
            if owners.segments.insert(inode.id, SegmentPages::default()).is_some() {
                return Err(self.corrupt(inode.page, &format!("segment {} has two inodes", inode.id)));
            }
            owners.inodes.insert((inode.page, inode.offset), inode.id);
            for no in fragments(&page, inode.offset, self.logical_page_size()) {
                let what = match singles.entry(no) {
                    _ if no.0 == 0 || no.0 >= self.pages() => {
                        format!("lies outside of the file{}", self.shortage())
                    }
                    Entry::Occupied(_) => "is of two segments".to_owned(),
                    Entry::Vacant(place) => {
                        place.insert(inode.id);
                        continue;
                    }
                };
                let what = format!("page {no} of segment {} {what}", inode.id);
                return Err(self.corrupt(inode.page, &what));
            }
        }
        Ok(singles)
    }

    /// Takes the pages of one group of extents, below `limit`; gives the number of single pages met.
    fn take_group(
        &self,
        page: &Page,
        group: u32,
        limit: u32,
        singles: &HashMap<PageNo, u64>,
        owners: &mut Owners,
    ) -> Result<usize> {
        let logical = self.logical_page_size();
        let (each, extent) = (xdes_bytes(logical), logical.extent_pages());
        let mut seen = 0;
        for no in 0..xdes_count(self.page_size(), logical) {
            let first = group.saturating_add(no * extent);
            if first >= limit {
                break;
            }
            let start = XDES_ARRAY + no as usize * each;
            let bytes = page.bytes().get(start..start + each).unwrap_or_default();
            let descriptor = Descriptor { first: PageNo(first), bytes };
            let end = first.saturating_add(extent).min(limit);
            for no in (first..end).map(PageNo) {
                seen += usize::from(singles.contains_key(&no));
                self.take_page(no, group, &descriptor, singles.get(&no).copied(), owners)?;
            }
        }
        Ok(seen)
    }

    fn take_page(
        &self,
        no: PageNo,
        group: u32,
        descriptor: &Descriptor<'_>,
        single: Option<u64>,
        owners: &mut Owners,
    ) -> Result<()> {
        let damaged = |what: &str| {
            let extent = descriptor.first;
            Err(self
                .corrupt(PageNo(group), &format!("the descriptor of the extent at page {extent}: {what}")))
        };
        let state = u32_at(descriptor.bytes, STATE);
        let free = state == STATE_FREE || descriptor.is_free(no);
        let is_shared = matches!(state, STATE_FREE_FRAGMENTS | STATE_FULL_FRAGMENTS | STATE_LENT);
        let segment = match single {
            Some(_) if free || !is_shared => return damaged(&format!("page {no} is in use by a segment")),
            Some(segment) => Some(segment),
            None => match state {
                STATE_FREE | STATE_FREE_FRAGMENTS | STATE_FULL_FRAGMENTS => None,
                STATE_OF_SEGMENT => Some(u64_at(descriptor.bytes, SEGMENT)),
                STATE_LENT if no.0 - group < OF_GROUP => None,
                STATE_LENT => Some(u64_at(descriptor.bytes, SEGMENT)),
                state => return damaged(&format!("{state} is no state")),
            },
        };
        let to = match segment {
            None if free => &mut owners.free,
            None => &mut owners.system,
            Some(segment) => match owners.segments.get_mut(&segment) {
                None => return damaged(&format!("segment {segment} is not there")),
                Some(pages) if free => &mut pages.reserved,
                Some(pages) => &mut pages.used,
            },
        };
        push(to, no);
        Ok(())
    }
}

/// What the descriptor of its extent says of a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Use {
    Free,
    /// In use, from an extent that segments share.
    Single,
    /// In use by this segment.
    Segment(u64),
    /// The descriptor is damaged.
    Unknown,
}

impl Tablespace {
    /// What the descriptors that can be read say of each page up to the size that the file has or should have.
    pub(crate) async fn uses(&self, context: &IoContext) -> Vec<Use> {
        let pages = self.pages().max(self.declared_pages().min(self.pages().saturating_mul(64)));
        let mut uses = Vec::with_capacity(pages as usize);
        let (each, extent) = (xdes_bytes(self.page_size()), self.page_size().extent_pages());
        let mut limit = None;
        for group in (0..pages).step_by(self.page_size().bytes()) {
            let page = self
                .page(PageNo(group), context)
                .await
                .ok()
                .filter(|page| matches!(page.page_type(), page_type::FSP_HEADER | page_type::XDES));
            if group == 0 {
                limit = page.as_ref().map(|page| u32_at(page.bytes(), FSP_FREE_LIMIT));
            }
            let end = pages.min(group.saturating_add(self.page_size().0));
            for no in group..end {
                let at = XDES_ARRAY + ((no - group) / extent) as usize * each;
                let bytes = page.as_ref().and_then(|page| page.bytes().get(at..at + each));
                uses.push(match bytes {
                    _ if limit.is_some_and(|limit| no >= limit) => Use::Free,
                    Some(bytes) => use_of(&Descriptor { first: PageNo(no - no % extent), bytes }, PageNo(no)),
                    None => Use::Unknown,
                });
            }
        }
        uses
    }
}

fn use_of(descriptor: &Descriptor<'_>, no: PageNo) -> Use {
    match u32_at(descriptor.bytes, STATE) {
        STATE_FREE => Use::Free,
        STATE_FREE_FRAGMENTS | STATE_FULL_FRAGMENTS | STATE_OF_SEGMENT | STATE_LENT
            if descriptor.is_free(no) =>
        {
            Use::Free
        }
        STATE_FREE_FRAGMENTS | STATE_FULL_FRAGMENTS => Use::Single,
        STATE_OF_SEGMENT | STATE_LENT => Use::Segment(u64_at(descriptor.bytes, SEGMENT)),
        _ => Use::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::FileExt;
    use std::sync::Arc;

    use tanada_io::{ExecutorOptions, Executors, Gate, GateLimits, Method};

    use super::*;
    use crate::page::header;
    use crate::{Environment, ErrorKind, PageCache};

    const PAGE: usize = 4096;
    const EXTENT: usize = 256;
    const SPACE: u32 = 9;
    /// Pages, of two groups: the second has one extent.
    const PAGES: u32 = 4096 + EXTENT as u32;

    fn put(page: &mut [u8], at: usize, value: u32) {
        page[at..at + 4].copy_from_slice(&value.to_be_bytes());
    }

    /// A page of `page_type`, with nothing but its header.
    fn page(no: u32, page_type: u16) -> Vec<u8> {
        let mut page = vec![0; PAGE];
        put(&mut page, header::NUMBER, no);
        put(&mut page, header::SPACE, SPACE);
        page[header::TYPE..header::TYPE + 2].copy_from_slice(&page_type.to_be_bytes());
        page
    }

    /// Writes descriptor `no` of `page`: its segment, its state, and how many pages are used, from the first on.
    fn describe(page: &mut [u8], no: usize, segment: u32, state: u32, used: usize) {
        let at = XDES_ARRAY + no * (24 + EXTENT / 4);
        put(page, at + SEGMENT + 4, segment);
        put(page, at + STATE, state);
        page[at + BITMAP..at + BITMAP + EXTENT / 4].fill(0xff);
        (0..used).for_each(|used| page[at + BITMAP + used / 4] &= !(1 << (2 * (used % 4))));
    }

    /// A space with segment 1, whose single page is `single`: the first extent is shared, the second in `state` of
    /// segment 1, and that of the second group lent to it.
    fn space(single: u32, state: u32, owner: u32) -> Result<Owners> {
        let mut first = page(0, page_type::FSP_HEADER);
        for (at, value) in [(38, SPACE), (46, PAGES), (FSP_FREE_LIMIT, PAGES - 1), (54, 0x40c1)] {
            put(&mut first, at, value);
        }
        // The lists of INODE pages: one full, none else.
        for (at, link) in [(118 + 4, 2), (134 + 4, u32::MAX)] {
            put(&mut first, at, link);
        }
        describe(&mut first, 0, 0, STATE_FREE_FRAGMENTS, 4);
        describe(&mut first, 1, owner, state, 10);
        (2..16).for_each(|no| describe(&mut first, no, 0, STATE_FREE, 0));
        let mut inodes = page(2, page_type::INODE);
        put(&mut inodes, header::DATA + 6, u32::MAX);
        let inode = header::DATA + 12;
        put(&mut inodes, inode + 4, 1);
        put(&mut inodes, inode + 60, 97_937_874);
        inodes[inode + 64..inode + 64 + 4 * EXTENT / 2].fill(0xff);
        put(&mut inodes, inode + 64, single);
        let mut second = page(4096, page_type::XDES);
        describe(&mut second, 0, 1, STATE_LENT, 3);
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t.ibd");
        let file = std::fs::File::create(&path).unwrap();
        for (no, page) in [(0, first), (2, inodes), (4096, second)] {
            file.write_all_at(&page, no * PAGE as u64).unwrap();
        }
        file.set_len(u64::from(PAGES) * PAGE as u64).unwrap();
        let options = ExecutorOptions { threads: 1, method: Method::Threads, ..ExecutorOptions::default() };
        let executors = Executors::start(options).unwrap();
        let cache = PageCache::new(1 << 20);
        let environment = Arc::new(Environment::new(executors.clone(), cache, Method::Threads, false));
        let owners = move || async move {
            let gate = Gate::new(GateLimits::default());
            Tablespace::open(&path, &environment).await?.owners(&IoContext::new(gate)).await
        };
        executors.block_on(owners).unwrap()
    }

    fn range(first: u32, pages: u32) -> PageRange {
        PageRange { first: PageNo(first), pages }
    }

    #[test]
    fn shared_owned_and_lent_extents_are_told_apart() {
        let owners = space(3, STATE_OF_SEGMENT, 1).unwrap();
        assert_eq!(owners.system, [range(0, 3), range(4096, 2)]);
        // The last page is behind the free limit.
        assert_eq!(owners.free, [range(4, 252), range(512, 4096 - 512), range(PAGES - 1, 1)]);
        let segment = &owners.segments[&1];
        assert_eq!(segment.used, [range(3, 1), range(256, 10), range(4098, 1)]);
        assert_eq!(segment.reserved, [range(266, 246), range(4099, 252)]);
        let owners = space(3, STATE_FREE, 0).unwrap();
        assert_eq!(owners.free, [range(4, 4092), range(PAGES - 1, 1)]);
    }

    #[test]
    fn contradictions_are_damage() {
        for (single, state, owner) in [
            (3, STATE_OF_SEGMENT, 2),
            (3, 0, 1),
            (3, 6, 1),
            (4, STATE_OF_SEGMENT, 1),
            (256, STATE_OF_SEGMENT, 1),
            (600, STATE_OF_SEGMENT, 1),
            (PAGES, STATE_OF_SEGMENT, 1),
            (0, STATE_OF_SEGMENT, 1),
        ] {
            let error = space(single, state, owner).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Corrupt, "{single} {state} {owner}: {error}");
        }
    }
}
