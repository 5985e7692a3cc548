//! Pages: header, type, checksum, decompression.
//!
//! A page goes through these steps, once, when it is read:
//!
//! 1. the image on disk is checked against its checksum ([`checksum`]), its number and its tablespace ([`codec`]);
//! 2. if the server compressed it, it is decompressed to the tablespace's page size ([`compression`], [`zip`]);
//! 3. it becomes a [`Page`], which is shared and never changes.
//!
//! A page whose LSN is behind the end of the redo log that was found beside its file is refused too: the file and the
//! log are not of the same moment, and the log would hold changes that the file lacks or a transaction that was never
//! committed.
//!
//! Invariant: the bytes of a [`Page`] that came from a file are as many as the tablespace's page size, and unless they
//! are all zero (allocated, never written) their header names the page and the tablespace that were asked for. In a
//! file with ROW_FORMAT=COMPRESSED pages of B+trees have the size that the server works with, others that of the file.

pub(crate) mod checksum;
pub(crate) mod codec;
pub(crate) mod compression;
pub(crate) mod header;
mod xz;
pub mod zip;

pub use header::page_type;

use std::fmt;
use std::sync::Arc;

use tanada_io::Buffer;

/// Number of a page in its tablespace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PageNo(pub u32);

impl PageNo {
    /// What links hold that lead nowhere (FIL_NULL).
    pub const NULL: PageNo = PageNo(u32::MAX);
}

impl fmt::Display for PageNo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Number of a tablespace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SpaceId(pub u32);

impl fmt::Display for SpaceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Log sequence number: a position in a server's redo log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Lsn(pub u64);

impl fmt::Display for Lsn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Page size: 4, 8, 16, 32 or 64 KiB; in a file with ROW_FORMAT=COMPRESSED 1 to 16 KiB.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PageSize(pub u32);

impl PageSize {
    /// In bytes, as a length.
    pub const fn bytes(self) -> usize {
        self.0 as usize
    }

    /// Pages of an extent: 1 MiB up to 16 KiB pages, 64 pages from there on (`fsp0types.h`).
    pub const fn extent_pages(self) -> u32 {
        if self.0 <= 16384 { (1 << 20) / self.0 } else { 64 }
    }
}

/// A verified, decompressed page. Cheap to clone, shared.
#[derive(Debug, Clone)]
pub struct Page(Arc<PageInner>);

#[derive(Debug)]
struct PageInner {
    space: SpaceId,
    number: PageNo,
    bytes: PageBytes,
}

/// Where a page's bytes lie.
pub(crate) enum PageBytes {
    /// The buffer they were read into.
    Buffer(Buffer),
    /// The heap: decompressed, or made by hand.
    Heap(Vec<u8>),
    /// The heap: as they were stored, taken out of a larger block.
    Stored(Vec<u8>),
    /// `len` bytes from `start` of what several pages were read into.
    Run {
        /// The whole run.
        run: Arc<Buffer>,
        /// Where the page starts.
        start: usize,
        /// Its length.
        len: usize,
    },
}

impl fmt::Debug for PageBytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let place = match self {
            PageBytes::Buffer(_) => "buffer",
            PageBytes::Heap(_) => "heap",
            PageBytes::Stored(_) => "stored",
            PageBytes::Run { .. } => "run",
        };
        f.write_str(place)
    }
}

impl Page {
    pub(crate) fn new(space: SpaceId, number: PageNo, bytes: PageBytes) -> Page {
        Page(Arc::new(PageInner { space, number, bytes }))
    }

    /// A page of the given bytes, unverified: for tests and tools that build pages by hand.
    pub fn from_vec(space: SpaceId, number: PageNo, bytes: Vec<u8>) -> Page {
        Page::new(space, number, PageBytes::Heap(bytes))
    }

    /// Whether nobody has written it: it is all zeros, and does not name itself. Page 0 does not tell.
    pub(crate) fn is_unwritten(&self) -> bool {
        self.number().0 != 0 && header::u32_at(self.bytes(), header::NUMBER) == 0
    }

    /// Its number.
    pub fn number(&self) -> PageNo {
        self.0.number
    }

    /// Its tablespace.
    pub fn space(&self) -> SpaceId {
        self.0.space
    }

    /// FIL_PAGE_TYPE after decompression; 0 (allocated) for a page that was never written.
    pub fn page_type(&self) -> u16 {
        header::u16_at(self.bytes(), header::TYPE)
    }

    /// Whether it was stored in fewer bytes than it has.
    pub(crate) fn was_compressed(&self) -> bool {
        matches!(self.0.bytes, PageBytes::Heap(_))
    }

    /// The page before it on its level of a B+tree, if any.
    pub fn previous(&self) -> Option<PageNo> {
        header::link_at(self.bytes(), header::PREVIOUS)
    }

    /// The page after it on its level of a B+tree, if any.
    pub fn next(&self) -> Option<PageNo> {
        header::link_at(self.bytes(), header::NEXT)
    }

    /// All bytes.
    #[inline]
    pub fn bytes(&self) -> &[u8] {
        match &self.0.bytes {
            PageBytes::Buffer(buffer) => buffer,
            PageBytes::Heap(bytes) | PageBytes::Stored(bytes) => bytes,
            PageBytes::Run { run, start, len } => &run[*start..*start + *len],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn header_fields_of_a_short_page_read_as_zero() {
        let page = Page::from_vec(SpaceId(1), PageNo(2), vec![0xff; 10]);
        assert_eq!(page.page_type(), 0);
        assert_eq!(page.next(), None);
    }

    #[test]
    fn links_are_read_and_null_is_none() {
        let mut bytes = vec![0; 64];
        bytes[8..16].copy_from_slice(&[0, 0, 0, 7, 0xff, 0xff, 0xff, 0xff]);
        let page = Page::from_vec(SpaceId(1), PageNo(2), bytes);
        assert_eq!(page.previous(), Some(PageNo(7)));
        assert_eq!(page.next(), None);
        assert_eq!((page.space(), page.number()), (SpaceId(1), PageNo(2)));
    }

    #[test]
    fn an_extent_is_a_mebibyte_or_64_pages() {
        let pages = [4096, 8192, 16384, 32768, 65536].map(|bytes| PageSize(bytes).extent_pages());
        assert_eq!(pages, [256, 128, 64, 64, 64]);
    }
}
