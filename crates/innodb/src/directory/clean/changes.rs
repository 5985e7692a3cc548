//! Changes of pages in a redo log: which pages, and where the last change of each begins.
//!
//! MariaDB (10.8 and later, `mtr0types.h`): a record's first byte has the flag "same page as before" (0x80), a type
//! (0x70), and its length; unless the page is the same, tablespace and page number follow as numbers of one to five
//! bytes. Records of files have the flag too, where no page came before. All records can be stepped over.
//!
//! MySQL (`log0recv.cc`, `mtr0types.h`): a record's length follows from its type alone, so that only the first record
//! of each block is read, which the block's header points to: type (the flag 0x80 says that it is the only one of its
//! mini-transaction), tablespace, page number. Mostly this is a row's page or an undo page.

use super::blocks::{BLOCK, HEADER, is_intact};
use crate::page::header::{u16_at, u32_at};
use crate::space::LoggedPages;
use crate::{Lsn, PageNo, SpaceId};

/// MariaDB: the flag of a record about the page of the one before.
const SAME_PAGE: u8 = 0x80;
const TYPE_MASK: u8 = 0x70;
const FREE_PAGE: u8 = 0x00;
/// Records of a file, where no page came before.
const FILE_CREATE: u8 = 0x80;
const FILE_DELETE: u8 = 0x90;
/// Notes that change nothing.
const OPTION: u8 = 0x70;

/// Adds the changes of the mini-transaction of MariaDB that begins at `lsn`. `record_bytes` gives the length of a
/// record.
pub(super) fn add_mariadb(
    records: &[u8],
    lsn: Lsn,
    record_bytes: impl Fn(&[u8]) -> Option<usize>,
    pages: &mut LoggedPages,
) {
    let mut rest = records;
    let mut current = None;
    while let Some(length) = record_bytes(rest).filter(|length| *length <= rest.len()) {
        let (record, later) = rest.split_at(length);
        rest = later;
        let same = record[0] & SAME_PAGE != 0;
        if !same {
            let at = place_of_space(record);
            let space = number(record.get(at..));
            let page = space.and_then(|(_, bytes)| number(record.get(at + bytes..)));
            current = space.zip(page).map(|((space, _), (page, _))| (SpaceId(space), PageNo(page)));
        }
        let Some((space, page)) = current else {
            if matches!(record[0] & (SAME_PAGE | TYPE_MASK), FILE_CREATE | FILE_DELETE) {
                let named = number(record.get(place_of_space(record)..));
                named.into_iter().for_each(|(space, _)| pages.replaced(SpaceId(space)));
            }
            continue;
        };
        match record[0] & TYPE_MASK {
            FREE_PAGE => pages.freed(space, page),
            OPTION => {}
            _ => pages.changed(space, page, lsn),
        }
    }
}

/// Where a record names its tablespace: behind a length that does not fit the first byte.
fn place_of_space(record: &[u8]) -> usize {
    match record[0] & 15 {
        0 => 1 + number(record.get(1..)).map_or(5, |(_, bytes)| bytes),
        _ => 1,
    }
}

/// A number of one to five bytes with its length; each length starts where the shorter one ends.
pub(super) fn number(bytes: Option<&[u8]>) -> Option<(u32, usize)> {
    let bytes = bytes?;
    let first = u32::from(*bytes.first()?);
    let (length, base, mask) = match first {
        0..0x80 => (1, 0, 0x7f),
        0x80..0xc0 => (2, 0x80, 0x3f),
        0xc0..0xe0 => (3, 0x4080, 0x1f),
        0xe0..0xf0 => (4, 0x20_4080, 0x0f),
        0xf0 => (5, 0x1020_4080, 0),
        _ => return None,
    };
    let rest = bytes.get(1..length)?;
    let value = rest.iter().fold(first & mask, |value, byte| value << 8 | u32::from(*byte));
    Some((value.checked_add(base)?, length))
}

/// MySQL: the flag of a record that is the only one of its mini-transaction.
const SINGLE: u8 = 0x80;

/// Whether records of MySQL of this type change the page that they name.
fn changes_page(record_type: u8) -> bool {
    matches!(record_type, 1 | 2 | 4 | 8..=11 | 13..=22 | 24..=27 | 29 | 30 | 36..=46 | 48..=53 | 57..=59 | 63 | 64 | 67..=76)
}

/// Adds the changes in `blocks` of MySQL's log, the first of which holds `lsn`; those at `end` and after it do not
/// count.
pub(super) fn add_mysql(blocks: &[u8], lsn: u64, end: u64, pages: &mut LoggedPages) {
    let first = lsn / BLOCK as u64;
    for (block, number) in blocks.chunks_exact(BLOCK).zip(first..) {
        let is_of_place = u32_at(block, 0) & 0x7fff_ffff == (number as u32 & 0x3fff_ffff) + 1;
        if number * BLOCK as u64 >= end || !is_of_place || !is_intact(block) {
            continue;
        }
        let filled = usize::from(u16_at(block, 4) & 0x7fff).min(BLOCK - 4);
        let start = usize::from(u16_at(block, 6));
        let at = number * BLOCK as u64 + start as u64;
        if start < HEADER || start >= filled || at >= end {
            continue;
        }
        if let Some((space, page)) = mysql_page(&block[start..filled]) {
            pages.changed(space, page, Lsn(at));
        }
    }
}

/// The page that a record of MySQL changes.
fn mysql_page(record: &[u8]) -> Option<(SpaceId, PageNo)> {
    let (record_type, rest) = record.split_first()?;
    if !changes_page(record_type & !SINGLE) {
        return None;
    }
    let (space, bytes) = mysql_number(rest)?;
    let (page, _) = mysql_number(rest.get(bytes..)?)?;
    Some((SpaceId(space), PageNo(page)))
}

/// A number as MySQL shortens it, with its length; numbers near 2^32 have forms of their own.
fn mysql_number(bytes: &[u8]) -> Option<(u32, usize)> {
    let (length, mask, base) = match *bytes.first()? {
        0..0x80 => (1, 0x7f, 0),
        0x80..0xc0 => (2, 0x3fff, 0),
        0xc0..0xe0 => (3, 0x1f_ffff, 0),
        0xe0..0xf0 => (4, 0xfff_ffff, 0),
        0xf0..0xf8 => (5, u32::MAX, 0),
        0xf8..0xfc => (2, 0x3ff, 0xffff_fc00),
        0xfc..0xfe => (3, 0x1_ffff, 0xfffe_0000),
        0xfe.. => (4, 0xff_ffff, 0xff00_0000),
    };
    let value = bytes.get(..length)?.iter().fold(0u32, |value, byte| value << 8 | u32::from(*byte));
    Some((value & mask | base, length))
}

#[cfg(test)]
mod tests {
    use super::super::blocks::tests::seal;
    use super::*;

    #[test]
    fn records_of_mariadb_name_the_pages_that_they_change() {
        let length = |record: &[u8]| Some(1 + usize::from(record.first()? & 15));
        let mut pages = LoggedPages::default();
        // Page 3 of tablespace 5 twice; page 0x80 of tablespace 5 freed; a note about page 9.
        let records =
            [&[0x34, 5, 3, 1, 2][..], &[0xb2, 7, 7], &[0x03, 5, 0x80, 0], &[0x73, 5, 9, 0]].concat();
        pages.changed(SpaceId(5), PageNo(0x80), Lsn(1));
        add_mariadb(&records, Lsn(100), length, &mut pages);
        let found = pages.of(SpaceId(5)).unwrap();
        assert_eq!(found.len(), 1);
        assert_eq!(found[&PageNo(3)], Lsn(100));
        // A record about a file.
        add_mariadb(&[0xb4, 6, 0, b'a', b'b'], Lsn(200), length, &mut pages);
        assert_eq!(pages.of(SpaceId(6)), None);
        // Another file took the place of the one that was deleted.
        add_mariadb(&[0x94, 6, 0, b'a', b'b'], Lsn(300), length, &mut pages);
        assert!(pages.of(SpaceId(5)).is_some());
        add_mariadb(&[0x94, 5, 0, b'a', b'b'], Lsn(300), length, &mut pages);
        assert_eq!(pages.of(SpaceId(5)), None);
        add_mariadb(&[0x34, 5, 3, 1, 2], Lsn(400), length, &mut pages);
        assert_eq!(pages.of(SpaceId(5)).unwrap()[&PageNo(3)], Lsn(400));
    }

    #[test]
    fn numbers_of_mariadb_start_where_shorter_ones_end() {
        for (bytes, value) in [
            (&[0x7f][..], Some((0x7f, 1))),
            (&[0x80, 0], Some((0x80, 2))),
            (&[0xc0, 0, 1], Some((0x4081, 3))),
            (&[0xf0, 0, 0, 0, 0], Some((0x1020_4080, 5))),
            (&[0xf0, 0xff, 0xff, 0xff, 0xff], None),
            (&[0x80], None),
            (&[], None),
        ] {
            assert_eq!(number(Some(bytes)), value, "{bytes:x?}");
        }
    }

    #[test]
    fn the_first_record_of_each_block_of_mysql_counts() {
        let mut log = Vec::new();
        for (no, record) in
            [&[0xa6, 5, 0x80, 0x80][..], &[1, 0xfb, 0xfe, 3], &[33, 7, 0], &[1, 8, 1]].into_iter().enumerate()
        {
            let mut block = vec![0; BLOCK];
            block[..4].copy_from_slice(&(16 + no as u32 + 1).to_be_bytes());
            block[4..6].copy_from_slice(&(HEADER as u16 + 20).to_be_bytes());
            block[6..8].copy_from_slice(&(HEADER as u16).to_be_bytes());
            block[HEADER..HEADER + record.len()].copy_from_slice(record);
            seal(&mut block);
            log.extend(block);
        }
        let mut pages = LoggedPages::default();
        add_mysql(&log, 8192, 8192 + 3 * 512, &mut pages);
        assert_eq!(pages.of(SpaceId(5)).unwrap()[&PageNo(0x80)], Lsn(8192 + 12));
        assert_eq!(pages.of(SpaceId(0xffff_fffe)).unwrap()[&PageNo(3)], Lsn(8192 + 512 + 12));
        // A record about a file, and one at the end.
        assert_eq!((pages.of(SpaceId(7)), pages.of(SpaceId(8))), (None, None));
        log[20] ^= 1;
        let mut damaged = LoggedPages::default();
        add_mysql(&log, 8192, 8192 + 512, &mut damaged);
        assert_eq!(damaged, LoggedPages::default());
    }
}
