//! Segments: who owns which extents and fragment pages (`fsp0fsp.cc`).
//!
//! Each B+tree has two segments, one for its leaves and one for the levels above. A segment's inode lists up to half an
//! extent of single ("fragment") pages, then whole extents. Inodes fill INODE pages, which two lists on page 0 name:
//! full ones, and ones with room.
//!
//! To find the roots of all trees without a dictionary:
//! 1. walk both lists;
//! 2. read the first fragment page of every inode in use: a segment for upper levels gets the root as its first page;
//! 3. it is a root if it is a B+tree page whose header points back at the inode.

use std::collections::HashSet;

use futures::StreamExt;
use futures::stream;
use tanada_io::IoContext;

use super::Tablespace;
use crate::page::header::{self, link_at, page_type, u16_at, u32_at, u64_at};
use crate::{ErrorKind, Page, PageNo, PageSize, Result};

/// Base nodes of the lists on page 0: length, first and last address.
const FULL_INODE_PAGES: usize = 118;
const FREE_INODE_PAGES: usize = 134;
/// A list node's address of its successor follows that of its predecessor: page and offset each.
const ADDRESS_BYTES: usize = 6;

/// Where inodes start on their page, behind the list node.
const INODES: usize = header::DATA + 12;
const INODE_MAGIC: u32 = 97_937_874;

/// In a B+tree page: index id and the address of the inode of the upper levels' segment.
const INDEX_ID: usize = 66;
const TOP_SEGMENT: usize = 84;

/// Page reads in flight at once.
const READS: usize = 32;

/// A segment in use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct SegmentInode {
    /// Segment id, not 0.
    pub(super) id: u64,
    /// Where the inode lies.
    pub(super) page: PageNo,
    /// Where on that page.
    pub(super) offset: u16,
    /// First fragment page.
    pub(super) first_fragment: Option<PageNo>,
}

/// The roots of the trees of a space.
#[derive(Debug, Default)]
pub(crate) struct Roots {
    /// Root page and index id, ascending ids.
    pub(crate) sound: Vec<(PageNo, u64)>,
    /// First pages of segments that cannot be read: roots, or leaves of trees of which the root is another page.
    pub(crate) damaged: Vec<PageNo>,
    /// Whether the segments themselves cannot be read, so that any number of roots is missing.
    pub(crate) incomplete: bool,
}

/// Bytes of an inode: id, counters, three list bases and magic take 64, then half an extent of page numbers.
fn inode_bytes(page_size: PageSize) -> usize {
    64 + 4 * (page_size.extent_pages() as usize / 2)
}

/// The inodes in use on `page`; `Err` is the offset of one that is damaged.
pub(super) fn inodes(
    page: &Page,
    page_size: PageSize,
) -> impl Iterator<Item = std::result::Result<SegmentInode, usize>> {
    let bytes = page.bytes();
    let each = inode_bytes(page_size);
    let count = bytes.len().saturating_sub(INODES + 10) / each;
    (0..count).map(move |i| INODES + i * each).filter_map(move |offset| {
        let id = u64_at(bytes, offset);
        if id == 0 {
            return None;
        }
        if u32_at(bytes, offset + 60) != INODE_MAGIC {
            return Some(Err(offset));
        }
        let first_fragment = link_at(bytes, offset + 64);
        Some(Ok(SegmentInode { id, page: page.number(), offset: offset as u16, first_fragment }))
    })
}

/// The single pages of the segment whose inode is at `offset` of `page`.
pub(super) fn fragments(page: &Page, offset: u16, page_size: PageSize) -> impl Iterator<Item = PageNo> {
    let slots = page_size.extent_pages() as usize / 2;
    (0..slots).filter_map(move |slot| link_at(page.bytes(), usize::from(offset) + 64 + 4 * slot))
}

impl Tablespace {
    /// All segments in use.
    pub(super) async fn segments(&self, context: &IoContext) -> Result<Vec<SegmentInode>> {
        let first = self.page(PageNo(0), context).await?;
        let mut seen = HashSet::new();
        let mut segments = Vec::new();
        for list in [FULL_INODE_PAGES, FREE_INODE_PAGES] {
            let mut next = link_at(first.bytes(), list + 4);
            while let Some(no) = next {
                if !seen.insert(no) {
                    return Err(self.corrupt(no, "the list of INODE pages comes back to it"));
                }
                let page = self.page(no, context).await?;
                if !self.is_of_type(&page, &[page_type::INODE]) {
                    return Err(self.corrupt(no, "it is in the list of INODE pages, but is none"));
                }
                for inode in inodes(&page, self.logical_page_size()) {
                    let damaged = |offset| {
                        self.corrupt(no, &format!("the segment inode at offset {offset} is damaged"))
                    };
                    segments.push(inode.map_err(damaged)?);
                }
                next = link_at(page.bytes(), header::DATA + ADDRESS_BYTES);
            }
        }
        Ok(segments)
    }

    /// Root pages of the index trees in this space, found from the segment inodes (for files without SDI): (root page,
    /// index id), ascending index id; the SDI index left out, SPATIAL ones not.
    pub async fn index_roots(&self, context: &IoContext) -> Result<Vec<(PageNo, u64)>> {
        // What is wrong with the segments is an error here.
        self.segments(context).await?;
        Ok(self.roots(context).await?.sound)
    }

    /// The same, with pages that may be roots but are damaged.
    pub(crate) async fn roots(&self, context: &IoContext) -> Result<Roots> {
        let segments = match self.segments(context).await {
            Ok(segments) => segments,
            Err(error) if error.kind() == ErrorKind::Corrupt => {
                return Ok(Roots { incomplete: true, ..Roots::default() });
            }
            Err(error) => return Err(error),
        };
        let candidates = segments.into_iter().filter_map(|inode| Some((inode, inode.first_fragment?)));
        let candidates = candidates.filter(|(_, no)| self.sdi_root() != Some(*no));
        let read = |(inode, no)| async move {
            let page = self.page(no, context).await;
            (no, page.map(|page| (self.is_lost(&page), root_of(&inode, &page))))
        };
        let mut pages = stream::iter(candidates).map(read).buffer_unordered(READS);
        let mut roots = Roots::default();
        while let Some((no, page)) = pages.next().await {
            match page {
                Ok((true, _)) => roots.damaged.push(no),
                Ok((false, root)) => roots.sound.extend(root),
                Err(error) if error.kind() == ErrorKind::Corrupt => roots.damaged.push(no),
                Err(error) => return Err(error),
            }
        }
        roots.sound.sort_unstable_by_key(|(root, id)| (*id, *root));
        Ok(roots)
    }
}

/// `page` and its index id, if it is the root of the tree whose upper levels are in the segment `inode`.
fn root_of(inode: &SegmentInode, page: &Page) -> Option<(PageNo, u64)> {
    let tree = matches!(page.page_type(), page_type::INDEX | page_type::RTREE | page_type::INSTANT);
    let bytes = page.bytes();
    let points_back = u32_at(bytes, TOP_SEGMENT) == page.space().0
        && link_at(bytes, TOP_SEGMENT + 4) == Some(inode.page)
        && u16_at(bytes, TOP_SEGMENT + 8) == inode.offset;
    (tree && points_back).then(|| (page.number(), u64_at(bytes, INDEX_ID)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SpaceId;

    fn inode_page(page_size: PageSize, fill: impl FnOnce(&mut [u8])) -> Page {
        let mut bytes = vec![0; page_size.bytes()];
        fill(&mut bytes);
        Page::from_vec(SpaceId(1), PageNo(2), bytes)
    }

    fn put_inode(bytes: &mut [u8], offset: usize, id: u64, magic: u32, fragment: u32) {
        bytes[offset..offset + 8].copy_from_slice(&id.to_be_bytes());
        bytes[offset + 60..offset + 64].copy_from_slice(&magic.to_be_bytes());
        bytes[offset + 64..offset + 68].copy_from_slice(&fragment.to_be_bytes());
    }

    #[test]
    fn a_page_holds_as_many_inodes_as_servers_put_there() {
        // 85 on 16 KiB as in the servers' sources; the last of each size must be found, and nothing behind it.
        for (size, bytes, count) in [(4096, 576, 7), (8192, 320, 25), (16384, 192, 85), (65536, 192, 341)] {
            let size = PageSize(size);
            let page = inode_page(size, |page| {
                for i in 0..count {
                    put_inode(page, INODES + i * bytes, i as u64 + 1, INODE_MAGIC, u32::MAX);
                }
            });
            let found: Vec<u64> = inodes(&page, size).map(|inode| inode.unwrap().id).collect();
            assert_eq!(found, (1..=count as u64).collect::<Vec<_>>());
        }
    }

    #[test]
    fn free_inodes_are_passed_over_and_damaged_ones_told() {
        let size = PageSize(16384);
        let page = inode_page(size, |page| {
            put_inode(page, INODES + 192, 9, INODE_MAGIC, 4);
            put_inode(page, INODES + 3 * 192, 10, INODE_MAGIC + 1, 5);
        });
        let found: Vec<_> = inodes(&page, size).collect();
        let offset = (INODES + 192) as u16;
        let inode = SegmentInode { id: 9, page: PageNo(2), offset, first_fragment: Some(PageNo(4)) };
        assert_eq!(found, [Ok(inode), Err(INODES + 3 * 192)]);
    }
}
