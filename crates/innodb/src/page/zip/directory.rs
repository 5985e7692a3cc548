//! The directory of a compressed page: two bytes for each record, from the end of the page downwards, in key order;
//! those of freed records follow. The top bits tell that a record is marked as deleted, and that the page directory has
//! a slot for it.

use super::{DIRECTORY_SLOTS, Fault, HEADER, HEAP_COUNT, HEAP_TOP, RECORD_COUNT, RECORDS};
use crate::page::header::{self, u16_at};

const DELETED: u16 = 0x8000;
const OWNER: u16 = 0x4000;
const OFFSET: u16 = 0x3fff;

const IS_COMPACT: u16 = 0x8000;
/// Infimum and supremum come first in the heap.
const FIRST_HEAP_NO: u16 = 2;
const INFIMUM: usize = 99;
const SUPREMUM: usize = 112;
/// Headers and texts of infimum and supremum, from 94 on.
const BOUNDS: [u8; 26] = *b"\x01\x00\x02\x00\x00infimum\x00\x00\x00\x0b\x00\x00supremum";
const INFO_DELETED: u8 = 0x20;
const INFO_MIN_RECORD: u8 = 0x10;
/// Most records that a slot of the page directory owns.
const MOST_OWNED: u8 = 8;

/// The records of a page.
pub(super) struct Directory {
    /// The entries of the records, in key order, then those of freed ones.
    entries: Vec<u16>,
    /// How many are not freed.
    used: usize,
    /// Origins in the order of the heap, which is ascending, and whether each is in use.
    pub(super) origins: Vec<(u16, bool)>,
    /// Where no record reaches.
    pub(super) heap_top: usize,
    /// Where the directory starts in the stored page.
    pub(super) starts_at: usize,
}

impl Directory {
    /// Reads the directory of `image`, which holds a page of `size` bytes.
    pub(super) fn read(image: &[u8], size: usize) -> Result<Directory, Fault> {
        let heap_count = u16_at(image, HEAP_COUNT);
        let count = (heap_count & !IS_COMPACT).checked_sub(FIRST_HEAP_NO).map(usize::from);
        let count = count.filter(|_| heap_count & IS_COMPACT != 0).ok_or("its heap has no records")?;
        let used = usize::from(u16_at(image, RECORD_COUNT));
        if used > count {
            return Err("it has more records than its heap");
        }
        let starts_at = image.len().checked_sub(2 * count).filter(|start| *start > super::STREAM);
        let starts_at = starts_at.ok_or("its directory is larger than the page")?;
        let heap_top = usize::from(u16_at(image, HEAP_TOP));
        let slots = usize::from(u16_at(image, DIRECTORY_SLOTS));
        if heap_top < RECORDS || heap_top + 2 * slots + header::TRAILER > size {
            return Err("its heap is larger than the page");
        }
        let entries: Vec<u16> = image[starts_at..]
            .rchunks_exact(2)
            .map(|entry| u16::from_be_bytes([entry[0], entry[1]]))
            .collect();
        let mut origins: Vec<(u16, bool)> =
            entries.iter().enumerate().map(|(no, entry)| (entry & OFFSET, no < used)).collect();
        origins.sort_unstable();
        let mut least = RECORDS + HEADER;
        for (origin, _) in &origins {
            let origin = usize::from(*origin);
            if origin < least || origin > heap_top {
                return Err("its directory names an impossible record");
            }
            least = origin + HEADER;
        }
        if entries[used..].iter().any(|entry| entry & !OFFSET != 0) {
            return Err("its directory marks a freed record");
        }
        Ok(Directory { entries, used, origins, heap_top, starts_at })
    }

    /// Writes what follows from the directory: infimum, supremum, the headers of records, and the page directory. The
    /// first record of a level above the leaves is marked if the page `is_first` there.
    pub(super) fn link(&self, page: &mut [u8], is_leaf: bool, is_first: bool) -> Result<(), Fault> {
        page[super::STREAM..RECORDS].copy_from_slice(&BOUNDS);
        let status = u16::from(!is_leaf);
        for (no, (origin, _)) in (FIRST_HEAP_NO..).zip(&self.origins) {
            let at = usize::from(*origin) - 4;
            page[at..at + 2].copy_from_slice(&(no << 3 | status).to_be_bytes());
        }
        let mut slots = Slots { end: page.len() - header::TRAILER, count: 0 };
        slots.push(page, INFIMUM);
        let mut info = if is_first && !is_leaf { INFO_MIN_RECORD } else { 0 };
        let (mut owned, mut last) = (1, INFIMUM);
        for entry in &self.entries[..self.used] {
            let origin = usize::from(entry & OFFSET);
            if entry & DELETED != 0 {
                info |= INFO_DELETED;
            }
            if entry & OWNER != 0 {
                info |= owned;
                owned = 0;
                slots.push(page, origin);
            }
            owned += 1;
            if owned > MOST_OWNED + 1 {
                return Err("its directory has too few owners");
            }
            point(page, last, origin);
            page[origin - HEADER] = info;
            (last, info) = (origin, 0);
        }
        point(page, last, SUPREMUM);
        page[SUPREMUM - HEADER] = owned;
        slots.push(page, SUPREMUM);
        if slots.count != usize::from(u16_at(page, DIRECTORY_SLOTS)) {
            return Err("its directory has not as many owners as its header says");
        }
        let freed = self.entries[self.used..].iter().map(|entry| usize::from(*entry));
        let next = freed.clone().skip(1).chain(std::iter::once(0));
        for (origin, next) in freed.zip(next) {
            match next {
                0 => page[origin - 2..origin].fill(0),
                next => point(page, origin, next),
            }
        }
        Ok(())
    }
}

/// Makes `to` the successor of the record at `from`. The offset is relative, modulo 64 KiB.
fn point(page: &mut [u8], from: usize, to: usize) {
    let offset = (to as u16).wrapping_sub(from as u16);
    page[from - 2..from].copy_from_slice(&offset.to_be_bytes());
}

/// The page directory, which grows downwards from the trailer.
struct Slots {
    end: usize,
    count: usize,
}

impl Slots {
    /// Adds a slot, if there is room; the count tells later whether there was.
    fn push(&mut self, page: &mut [u8], origin: usize) {
        self.count += 1;
        let at = self.end.saturating_sub(2 * self.count);
        if let Some(slot) = page.get_mut(at..at + 2).filter(|_| at > RECORDS) {
            slot.copy_from_slice(&(origin as u16).to_be_bytes());
        }
    }
}
