//! A page as a node of a B+tree: its header, its directory, its chain of records.
//!
//! Nothing in a page is believed: every origin lies between the supremum and the directory, and a walk takes at most as
//! many steps as the page has records in its heap, so that a chain that bites its tail ends.

use crate::page::header::{self, page_type, u16_at, u64_at};
use crate::record;
use crate::{Error, ErrorKind, Page, PageNo, Result};

const SLOTS: usize = 38;
const HEAP_RECORDS: usize = 42;
const INSTANT: usize = 50;
const LEVEL: usize = 64;
const INDEX_ID: usize = 66;
const COMPACT_BIT: u16 = 0x8000;
const SLOT_BYTES: usize = 2;

/// Origins of the two records that every page has: COMPACT, REDUNDANT.
const INFIMUM: [usize; 2] = [99, 101];
const SUPREMUM: [usize; 2] = [112, 116];

/// A checked page of a B+tree.
#[derive(Debug, Clone)]
pub(crate) struct Node {
    page: Page,
    compact: bool,
    level: u16,
    index_id: u64,
    slots: usize,
    /// First byte of the directory; records end before.
    directory: usize,
    supremum: usize,
    /// Most records a walk can meet.
    heap_records: usize,
}

fn corrupt(what: impl Into<String>) -> Error {
    Error::new(ErrorKind::Corrupt, what)
}

impl Node {
    /// Checks the header of `page`.
    ///
    /// # Errors
    /// `Corrupt` if it is no page of a B+tree.
    pub(crate) fn new(page: Page) -> Result<Node> {
        let bytes = page.bytes();
        let page_type = page.page_type();
        if !matches!(page_type, page_type::INDEX | page_type::INSTANT) {
            if page.is_unwritten() {
                return Err(corrupt("it is all zeros where a page of a B+tree should be"));
            }
            return Err(corrupt(format!("it has type {page_type} and is no page of a B+tree")));
        }
        let slots = usize::from(u16_at(bytes, SLOTS));
        let heap = u16_at(bytes, HEAP_RECORDS);
        let compact = heap & COMPACT_BIT != 0;
        let supremum = SUPREMUM[usize::from(!compact)];
        let directory = bytes.len().saturating_sub(header::TRAILER + SLOT_BYTES * slots);
        if slots < 2 || directory <= supremum {
            return Err(corrupt(format!("its directory has {slots} slots")));
        }
        Ok(Node {
            compact,
            level: u16_at(bytes, LEVEL),
            index_id: u64_at(bytes, INDEX_ID),
            slots,
            directory,
            supremum,
            heap_records: usize::from(heap & !COMPACT_BIT),
            page,
        })
    }

    /// The page.
    pub(crate) fn page(&self) -> &Page {
        &self.page
    }

    /// All bytes.
    #[inline]
    pub(crate) fn bytes(&self) -> &[u8] {
        self.page.bytes()
    }

    /// Whether its records are COMPACT (or DYNAMIC), not REDUNDANT.
    #[inline]
    pub(crate) fn is_compact(&self) -> bool {
        self.compact
    }

    /// 0 for a leaf.
    pub(crate) fn level(&self) -> u16 {
        self.level
    }

    /// The index's id.
    pub(crate) fn index_id(&self) -> u64 {
        self.index_id
    }

    /// On MariaDB's root of a clustered index with instant columns: the number of core fields.
    pub(crate) fn core_fields(&self) -> Option<usize> {
        let instant = self.page.page_type() == page_type::INSTANT;
        instant.then(|| usize::from(u16_at(self.bytes(), INSTANT) >> 3))
    }

    /// The next node of the level.
    pub(crate) fn next(&self) -> Option<PageNo> {
        self.page.next()
    }

    /// The origin of the infimum, from which a walk starts.
    #[inline]
    pub(crate) fn infimum(&self) -> usize {
        INFIMUM[usize::from(!self.compact)]
    }

    /// The record after the one at `origin`; `None` at the end.
    #[inline]
    pub(crate) fn after(&self, origin: usize) -> Result<Option<usize>> {
        let bytes = self.bytes();
        let link = usize::from(u16_at(bytes, origin.wrapping_sub(2)));
        // COMPACT links are relative and wrap at the page size, a power of two.
        let next = if self.compact { (origin + link) & (bytes.len() - 1) } else { link };
        if next == self.supremum {
            return Ok(None);
        }
        self.check(next, origin).map(Some)
    }

    #[inline]
    fn check(&self, origin: usize, from: usize) -> Result<usize> {
        if origin > self.supremum && origin < self.directory {
            Ok(origin)
        } else {
            Err(corrupt(format!("the link at {from} leads to {origin}, where no record can be")))
        }
    }

    /// A walk along the records after the one at `origin`.
    #[inline]
    pub(crate) fn records_after(&self, origin: usize) -> Records<'_> {
        Records { node: self, origin, left: self.heap_records }
    }

    /// A walk along all records.
    pub(crate) fn records(&self) -> Records<'_> {
        self.records_after(self.infimum())
    }

    /// The last record for which `before` holds, or the infimum: `before` must hold for a beginning of the records
    /// only.
    ///
    /// # Errors
    /// If the directory or the chain is damaged, and what `before` returns.
    #[inline]
    pub(crate) fn last_before(&self, mut before: impl FnMut(usize) -> Result<bool>) -> Result<usize> {
        // Slot 0 is the infimum, the last the supremum.
        let (mut low, mut high) = (0, self.slots - 1);
        let mut found = self.infimum();
        while high - low > 1 {
            let middle = (low + high) / 2;
            let origin = self.slot(middle)?;
            if before(origin)? {
                (low, found) = (middle, origin);
            } else {
                high = middle;
            }
        }
        let mut records = self.records_after(found);
        while let Some(origin) = records.next()? {
            if !before(origin)? {
                break;
            }
            found = origin;
        }
        Ok(found)
    }

    #[inline]
    fn slot(&self, no: usize) -> Result<usize> {
        let at = self.bytes().len() - header::TRAILER - SLOT_BYTES * (no + 1);
        self.check(usize::from(u16_at(self.bytes(), at)), at)
    }

    /// The header of the record at `origin`.
    #[inline]
    pub(crate) fn header(&self, origin: usize) -> Result<record::Header> {
        record::header(self.bytes(), origin, self.compact)
    }

    /// Whether the record at `origin` of a leaf is a row: neither deleted nor MariaDB's instant metadata.
    #[inline]
    pub(crate) fn is_row(&self, origin: usize) -> Result<bool> {
        let header = self.header(origin)?;
        Ok(!header.deleted && !header.min_rec)
    }
}

/// A walk along the records of a node in key order.
#[derive(Debug)]
pub(crate) struct Records<'a> {
    node: &'a Node,
    origin: usize,
    left: usize,
}

impl Records<'_> {
    /// The origin of the next record, `None` after the last.
    ///
    /// # Errors
    /// If the chain is damaged.
    #[inline]
    pub(crate) fn next(&mut self) -> Result<Option<usize>> {
        let next = self.node.after(self.origin)?;
        if let Some(origin) = next {
            self.left =
                self.left.checked_sub(1).ok_or_else(|| corrupt("its chain of records does not end"))?;
            self.origin = origin;
        }
        Ok(next)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SpaceId;

    /// A COMPACT leaf with records of one byte.
    fn page(keys: &[u8]) -> Vec<u8> {
        let mut bytes = vec![0; 4096];
        let mut put = |at: usize, value: u16| bytes[at..at + 2].copy_from_slice(&value.to_be_bytes());
        put(header::TYPE, page_type::INDEX);
        put(HEAP_RECORDS, COMPACT_BIT | (keys.len() + 2) as u16);
        let origins: Vec<usize> = (0..keys.len()).map(|at| 130 + 20 * at).collect();
        let chain = [&[99], origins.as_slice(), &[112]].concat();
        chain.windows(2).for_each(|pair| put(pair[0] - 2, (pair[1] as u16).wrapping_sub(pair[0] as u16)));
        // A slot for every second record.
        let slots: Vec<usize> =
            std::iter::once(99).chain(origins.iter().copied().skip(1).step_by(2)).chain([112]).collect();
        put(SLOTS, slots.len() as u16);
        slots.iter().enumerate().for_each(|(no, origin)| put(4096 - 8 - 2 * (no + 1), *origin as u16));
        origins.iter().zip(keys).for_each(|(origin, key)| bytes[*origin] = *key);
        bytes
    }

    fn node(bytes: Vec<u8>) -> Result<Node> {
        Node::new(Page::from_vec(SpaceId(1), PageNo(4), bytes))
    }

    #[test]
    fn a_search_finds_the_last_smaller() {
        for count in 0..12u8 {
            let keys: Vec<u8> = (0..count).map(|key| key * 2 + 1).collect();
            let node = node(page(&keys)).unwrap();
            for sought in 0..=2 * count + 1 {
                let found = node.last_before(|origin| Ok(node.bytes()[origin] < sought)).unwrap();
                let expected = keys.iter().rposition(|key| *key < sought).map_or(99, |at| 130 + 20 * at);
                assert_eq!(found, expected, "{sought} among {count}");
            }
            let mut records = node.records();
            let mut seen = Vec::new();
            while let Some(origin) = records.next().unwrap() {
                seen.push(node.bytes()[origin]);
            }
            assert_eq!(seen, keys);
        }
    }

    #[test]
    fn a_chain_that_bites_its_tail_ends() {
        let mut bytes = page(&[1, 2, 3]);
        bytes[168..170].copy_from_slice(&(-20i16).to_be_bytes());
        let node = node(bytes).unwrap();
        let mut records = node.records();
        let error = loop {
            match records.next() {
                Ok(Some(_)) => {}
                Ok(None) => panic!("it ended well"),
                Err(error) => break error,
            }
        };
        assert!(error.to_string().contains("does not end"), "{error}");
    }

    #[test]
    fn links_out_of_the_page_are_refused() {
        let mut bytes = page(&[1]);
        bytes[97..99].copy_from_slice(&[0, 1]);
        assert!(node(bytes).unwrap().records().next().is_err());
        assert!(node(vec![0; 4096]).is_err());
        let mut bytes = page(&[1]);
        bytes[SLOTS..SLOTS + 2].copy_from_slice(&[0xff, 0xff]);
        assert!(node(bytes).is_err());
    }
}
