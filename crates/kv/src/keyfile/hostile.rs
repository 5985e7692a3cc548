//! Parts of key files from any bytes, and checksums made right, for fuzzers.

use bytes::Bytes;

use super::filter::FilterPart;
use super::footer::{FOOTER_BYTES, Footer, parse_tail};
use super::hash::KeyHash;
use super::page::{Page, PageAddress, PageKind, checksum};
use super::payload;
use crate::wire::Malformed;

const UNIT: usize = 4096;

fn put(bytes: &mut [u8], at: usize, value: &[u8]) {
    if let Some(place) = bytes.get_mut(at..at + value.len()) {
        place.copy_from_slice(value);
    }
}

fn number<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    bytes.get(at..)?.first_chunk().copied()
}

/// Makes checksums right, and has pages and footer be of file `file_no`.
pub(crate) fn mend(bytes: &mut [u8], file_no: u64) {
    let Some(footer_at) = bytes.len().checked_sub(FOOTER_BYTES) else { return };
    let tail_offset =
        number(bytes, footer_at + 43).map_or(0, u64::from_be_bytes).min(footer_at as u64) as usize;
    let tail_bytes = number(bytes, footer_at + 51).map_or(0, u64::from_be_bytes);
    let tail_end = (tail_offset as u64).saturating_add(tail_bytes).min(footer_at as u64) as usize;
    let mut at = 0;
    while at < tail_offset {
        let units = number(bytes, at + 12).map_or(1, u16::from_be_bytes).max(1);
        let end = (at + usize::from(units) * UNIT).min(tail_offset);
        let sum = checksum(file_no, &bytes[at..end]);
        put(bytes, at, &sum.to_be_bytes());
        at = end;
    }
    put(bytes, footer_at + 17, &file_no.to_be_bytes());
    let sum = crc32c::crc32c(&bytes[tail_offset..tail_end]);
    put(bytes, footer_at + 59, &sum.to_be_bytes());
    let sum = crc32c::crc32c(&bytes[footer_at..footer_at + FOOTER_BYTES - 4]);
    put(bytes, footer_at + FOOTER_BYTES - 4, &sum.to_be_bytes());
}

/// Reads bytes as a page with the right checksum, at the place where it says that it is.
pub(crate) fn page(bytes: &[u8]) -> Result<(), Malformed> {
    let mut bytes = bytes.to_vec();
    let no = number(&bytes, 4).map_or(0, u32::from_be_bytes);
    let units = number(&bytes, 12).map_or(0, u16::from_be_bytes);
    let sum = checksum(7, &bytes);
    put(&mut bytes, 0, &sum.to_be_bytes());
    let page = Page::parse(Bytes::from(bytes), 7, PageAddress { no, units })?;
    if page.kind == PageKind::Filter {
        for hashes in [0, 1, no as u16] {
            FilterPart::parse(&page, hashes)?.may_contain(KeyHash::of(b"key"));
        }
        return Ok(());
    }
    for (key, sequence) in [(&b""[..], 0), (b"key", 5), (&[0xff; 300], u64::MAX)] {
        // Each of them may fail; the others are looked at all the same.
        let _ = page.search(key, sequence);
        let _ = page.search_child(key, sequence);
        let _ = page.ends_with(key);
    }
    for index in 0..page.restarts() {
        let _ = page.restart(index);
    }
    let mut at = super::page::HEADER_BYTES;
    while !page.is_end(at) {
        let entry = page.entry(at)?;
        let _ = payload::version(page.bytes(), entry.payload_at, entry.end);
        let _ = payload::page(entry.payload);
        assert!(entry.end > at, "an entry without an end");
        at = entry.end;
    }
    Ok(())
}

/// Reads bytes as a footer with the right checksum, and as a tail.
pub(crate) fn ends(bytes: &[u8]) {
    let mut footer = bytes.to_vec();
    footer.resize(FOOTER_BYTES, 0);
    mend(&mut footer, 7);
    let _ = Footer::parse(&footer, 7, 1 << 20);
    let _ = parse_tail(bytes);
}
