//! MySQL's page compression: any stream in a right frame, a page that is compressed and has to come back as it was,
//! and such a page with edits.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tanada_fuzz::compression::{compress, first_page, mysql_image, plain_page};
use tanada_fuzz::seal::Seal;
use tanada_fuzz::{Input, table};

/// A file of MySQL 9.7 with dictionary information, which there is none of.
const FLAGS: u32 = 0x4021;
const VERSION: u32 = 90_700;

fuzz_target!(|bytes: &[u8]| {
    let mut input = Input(bytes);
    let (kind, number) = (input.byte() % 3, 1 + input.byte() % 2);
    let edits = if kind == 2 { input.bytes(32) } else { &[] };
    let page = plain_page(if kind == 0 { &[] } else { input.0 }, Seal::Classic);
    let stream = match kind {
        0 => input.0.to_vec(),
        _ => compress(number, &page[38..]).expect("an encoder"),
    };
    let mut image = mysql_image(&page, number, &stream);
    if kind == 2 {
        image.truncate(38 + stream.len());
        Input(edits).edit_bytes(&mut image);
        image.resize(tanada_fuzz::compression::PAGE, 0);
    }
    let found = table::page([first_page(FLAGS, VERSION, Seal::Classic), image].concat(), 1);
    // What does not get smaller is cut here, and would have been stored as it is by the server.
    if kind == 1 && stream.len() <= page.len() - 38 {
        assert!(found.is_ok_and(|found| found == page), "a page does not come back");
    }
});
