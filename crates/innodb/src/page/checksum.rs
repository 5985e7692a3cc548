//! Page checksums. Like the servers with a non-strict `innodb_checksum_algorithm`, a reader accepts any of the
//! algorithms, because a file keeps the pages that were written before the setting changed.
//!
//! - `crc32` (default since MySQL 5.7 and MariaDB 10.2): crc32c of bytes 4..26 XOR crc32c of bytes 38..size-8, in the
//!   header and the trailer.
//! - `innodb`: a folding hash of the same ranges in the header; the same hash of bytes 0..26 in the trailer
//!   (`ut0rnd.h`, `buf0checksum.cc`).
//! - `crc32`, legacy big-endian (MySQL 5.6 on big-endian machines): the same ranges, but in each the aligned groups of
//!   eight bytes enter the crc32c in reverse (`ut_crc32_legacy_big_endian`).
//! - `none`: 0xDEADBEEF in both.
//! - of a page in a file with ROW_FORMAT=COMPRESSED (`page_zip_calc_checksum`), the same settings give, in the header
//!   alone, of bytes 4..16, 24..26 and from 34 on: the XOR of their crc32c; their adler32; 0xDEADBEEF.
//! - `full_crc32` (MariaDB 10.4+, a property of the tablespace): crc32c of all bytes before it, in the last four bytes.

use super::header::{self, u32_at};

/// What `none` writes, and what MariaDB puts in front of a compressed page.
pub(crate) const NO_CHECKSUM_MAGIC: u32 = 0xdead_beef;

const HASH_MASK_1: u32 = 1_463_735_687;
const HASH_MASK_2: u32 = 1_653_893_711;

/// Whether `page` has what is written in place of a checksum if there is none.
pub(crate) fn is_unsealed(page: &[u8]) -> bool {
    u32_at(page, header::CHECKSUM) == NO_CHECKSUM_MAGIC
}

/// Whether a page of one of the classic algorithms is intact: checksums, and the low half of the LSN at both ends.
pub(crate) fn classic_matches(page: &[u8]) -> bool {
    let Some(trailer) = page.len().checked_sub(header::TRAILER) else { return false };
    if trailer < header::DATA || page[header::LSN + 4..header::LSN + 8] != page[trailer + 4..] {
        return false;
    }
    let stored = (u32_at(page, header::CHECKSUM), u32_at(page, trailer));
    let crc = classic_crc32(page);
    stored == (crc, crc)
        || stored == (NO_CHECKSUM_MAGIC, NO_CHECKSUM_MAGIC)
        || (stored.1 == fold(&page[..26]) && stored.0 == innodb_header_checksum(page))
        || (stored.0 == stored.1 && stored.0 == legacy_big_endian_crc32(page))
}

/// The `crc32` checksum of a page of at least 46 bytes.
pub(crate) fn classic_crc32(page: &[u8]) -> u32 {
    let body = &page[header::DATA..page.len() - header::TRAILER];
    crc32c::crc32c(&page[header::NUMBER..header::FLUSH_LSN]) ^ crc32c::crc32c(body)
}

/// The `crc32` checksum that MySQL 5.6 wrote on big-endian machines.
fn legacy_big_endian_crc32(page: &[u8]) -> u32 {
    let crc = |start: usize, end: usize| {
        // Pages are aligned in memory, so the groups are those of the offset in the page.
        let aligned = start.next_multiple_of(8).min(end);
        let groups = page[aligned..end].chunks(8);
        groups.fold(crc32c::crc32c(&page[start..aligned]), |crc, group| match group.first_chunk::<8>() {
            Some(group) => crc32c::crc32c_append(crc, &u64::from_be_bytes(*group).to_le_bytes()),
            None => crc32c::crc32c_append(crc, group),
        })
    };
    crc(header::NUMBER, header::FLUSH_LSN) ^ crc(header::DATA, page.len() - header::TRAILER)
}

/// The `innodb` checksum that the header holds.
fn innodb_header_checksum(page: &[u8]) -> u32 {
    let body = &page[header::DATA..page.len() - header::TRAILER];
    fold(&page[header::NUMBER..header::FLUSH_LSN]).wrapping_add(fold(body))
}

/// Only the low 32 bits of the servers' 64-bit fold ever show: shifts go left, so nothing comes down from the high
/// half.
fn fold(bytes: &[u8]) -> u32 {
    bytes.iter().fold(0u32, |fold, byte| {
        let mixed = ((fold ^ u32::from(*byte) ^ HASH_MASK_2) << 8).wrapping_add(fold);
        (mixed ^ HASH_MASK_1).wrapping_add(u32::from(*byte))
    })
}

/// The parts of a page that its checksum covers in a file with ROW_FORMAT=COMPRESSED.
fn zip_parts(image: &[u8]) -> Option<[&[u8]; 3]> {
    Some([
        image.get(header::NUMBER..header::LSN)?,
        image.get(header::TYPE..header::FLUSH_LSN)?,
        image.get(header::SPACE..)?,
    ])
}

/// Whether a page of a file with ROW_FORMAT=COMPRESSED is intact.
pub(crate) fn zip_matches(image: &[u8]) -> bool {
    let Some(parts) = zip_parts(image) else { return false };
    let stored = u32_at(image, header::CHECKSUM);
    stored == zip_crc32(parts) || stored == NO_CHECKSUM_MAGIC || stored == adler32(parts)
}

fn zip_crc32(parts: [&[u8]; 3]) -> u32 {
    parts.into_iter().fold(0, |checksum, part| checksum ^ crc32c::crc32c(part))
}

fn adler32(parts: [&[u8]; 3]) -> u32 {
    const MODULUS: u32 = 65521;
    let (mut sum, mut sums) = (1, 0);
    for byte in parts.into_iter().flatten() {
        sum = (sum + u32::from(*byte)) % MODULUS;
        sums = (sums + sum) % MODULUS;
    }
    sums << 16 | sum
}

/// Whether `image` ends with the crc32c of what comes before.
pub(crate) fn full_crc32_matches(image: &[u8]) -> bool {
    match image.split_last_chunk::<4>() {
        Some((body, stored)) => crc32c::crc32c(body) == u32::from_be_bytes(*stored),
        None => false,
    }
}

#[cfg(test)]
pub(crate) mod seal {
    //! Puts checksums on pages made by hand.

    use super::*;

    pub(crate) fn crc32(page: &mut [u8]) {
        let trailer = lsn(page);
        let crc = classic_crc32(page).to_be_bytes();
        page[..4].copy_from_slice(&crc);
        page[trailer..trailer + 4].copy_from_slice(&crc);
    }

    pub(crate) fn legacy_big_endian_crc32(page: &mut [u8]) {
        let trailer = lsn(page);
        // Byte by byte and group by group, unlike the code that is tested.
        let reversed = |start: usize, end: usize| {
            let mut bytes = page[start..end].to_vec();
            for group in (start..end).filter(|at| at % 8 == 0 && at + 8 <= end) {
                bytes[group - start..group - start + 8].reverse();
            }
            crc32c::crc32c(&bytes)
        };
        let crc = (reversed(4, 26) ^ reversed(38, trailer)).to_be_bytes();
        page[..4].copy_from_slice(&crc);
        page[trailer..trailer + 4].copy_from_slice(&crc);
    }

    pub(crate) fn innodb(page: &mut [u8]) {
        let trailer = lsn(page);
        let checksum = innodb_header_checksum(page).to_be_bytes();
        page[..4].copy_from_slice(&checksum);
        let old = fold(&page[..26]).to_be_bytes();
        page[trailer..trailer + 4].copy_from_slice(&old);
    }

    pub(crate) fn none(page: &mut [u8]) {
        let trailer = lsn(page);
        page[..4].copy_from_slice(&NO_CHECKSUM_MAGIC.to_be_bytes());
        page[trailer..trailer + 4].copy_from_slice(&NO_CHECKSUM_MAGIC.to_be_bytes());
    }

    pub(crate) fn full_crc32(image: &mut [u8]) {
        let end = image.len() - 4;
        let crc = crc32c::crc32c(&image[..end]).to_be_bytes();
        image[end..].copy_from_slice(&crc);
    }

    fn lsn(page: &mut [u8]) -> usize {
        let trailer = page.len() - header::TRAILER;
        page.copy_within(header::LSN + 4..header::LSN + 8, trailer + 4);
        trailer
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page() -> Vec<u8> {
        (0..4096u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 24) as u8).collect()
    }

    #[test]
    fn every_algorithm_accepts_its_page_and_no_flipped_bit_it_covers() {
        type Seal = fn(&mut [u8]);
        let seals: [(Seal, bool); 4] = [
            (seal::crc32, true),
            (seal::innodb, true),
            (seal::none, false),
            (seal::legacy_big_endian_crc32, true),
        ];
        for (seal, covers_content) in seals {
            let mut page = page();
            seal(&mut page);
            assert!(classic_matches(&page));
            for (offset, covered) in
                [(0, true), (5, covers_content), (23, true), (3000, covers_content), (4095, true)]
            {
                page[offset] ^= 0x10;
                assert_eq!(classic_matches(&page), !covered, "offset {offset}");
                page[offset] ^= 0x10;
            }
        }
    }

    #[test]
    fn full_crc32_covers_every_byte() {
        let mut page = page();
        seal::full_crc32(&mut page);
        assert!(full_crc32_matches(&page));
        for offset in [0, 25, 30, 4095] {
            page[offset] ^= 1;
            assert!(!full_crc32_matches(&page), "offset {offset}");
            page[offset] ^= 1;
        }
    }

    #[test]
    fn checksums_of_the_compressed_row_format_cover_all_but_the_lsns() {
        let page = page();
        let parts = zip_parts(&page).unwrap();
        for (checksum, covers_content) in
            [(zip_crc32(parts), true), (adler32(parts), true), (NO_CHECKSUM_MAGIC, false)]
        {
            let mut page = page.clone();
            page[..4].copy_from_slice(&checksum.to_be_bytes());
            assert!(zip_matches(&page));
            for (offset, covered) in
                [(0, true), (5, true), (17, false), (24, true), (30, false), (4095, true)]
            {
                page[offset] ^= 0x10;
                assert_eq!(
                    zip_matches(&page),
                    offset != 0 && !(covered && covers_content),
                    "offset {offset}"
                );
                page[offset] ^= 0x10;
            }
        }
    }

    /// From the definition of Adler-32.
    #[test]
    fn adler32_of_a_known_text() {
        assert_eq!(adler32([b"Wiki", b"", b"pedia"]), 0x11e6_0398);
    }

    #[test]
    fn short_images_do_not_match() {
        for len in 0..46 {
            assert!(!classic_matches(&vec![0; len]));
            assert!(!zip_matches(&vec![1; len.min(33)]));
        }
        assert!(!full_crc32_matches(&[0; 3]));
    }

    /// From the algorithm as described: fold of one byte, by hand.
    #[test]
    fn the_fold_of_single_bytes() {
        let by_hand = |byte: u32| (((byte ^ 1_653_893_711) << 8) ^ 1_463_735_687).wrapping_add(byte);
        for byte in [0u8, 1, 0x80, 0xff] {
            assert_eq!(fold(&[byte]), by_hand(u32::from(byte)));
        }
    }
}
