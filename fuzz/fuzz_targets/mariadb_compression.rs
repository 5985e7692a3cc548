//! MariaDB's page compression with and without full_crc32: any stream of each algorithm in a right frame, a page that
//! is compressed and has to come back as it was, and such a page with edits.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tanada_fuzz::compression::{
    PAGE, compress, first_page, full_crc32_image, mariadb_image, plain_page, seal_stored,
};
use tanada_fuzz::seal::Seal;
use tanada_fuzz::{Input, table};

/// Flags of a file with full_crc32, pages of 16 KiB and an algorithm; of one without.
const FULL_CRC32: u32 = 0x15;
const CLASSIC: u32 = 0x1_0021;

fuzz_target!(|bytes: &[u8]| {
    let mut input = Input(bytes);
    let how = input.byte();
    let (kind, number) = (how % 3, 1 + input.byte() % 6);
    let is_full = how & 0x80 != 0;
    let seal = if is_full { Seal::FullCrc32 } else { Seal::Classic };
    let edits = if kind == 2 { input.bytes(32) } else { &[] };
    let page = plain_page(if kind == 0 { &[] } else { input.0 }, seal);
    let compressed = if kind == 0 { None } else { compress(number, &page) };
    let comes_back = kind == 1 && compressed.as_ref().is_some_and(|stream| stream.len() < PAGE - 300);
    let stream = compressed.unwrap_or_else(|| input.0.to_vec());
    let mut image =
        if is_full { full_crc32_image(&page, &stream) } else { mariadb_image(&page, number, &stream) };
    if kind == 2 {
        Input(edits).edit_bytes(&mut image);
        image.resize(PAGE, 0);
        if is_full {
            seal_stored(&mut image);
        }
    }
    let flags = if is_full { FULL_CRC32 | u32::from(number) << 5 } else { CLASSIC };
    let found = table::page([first_page(flags, 0, seal), image].concat(), 1);
    if comes_back {
        assert!(found.is_ok_and(|found| found == page), "a page does not come back");
    }
});
