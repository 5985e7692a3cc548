//! Off-page values: chains of BLOB pages and MySQL's indexes of data pages, with references to them, in sealed pages.
#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use tanada_fuzz::{Base, Input, bases, table};

static BASES: LazyLock<Vec<Base>> =
    LazyLock::new(|| bases(&["fuzz/bases/off-page.tar.zst"], |name| name.contains("/lob")));

const FIRST_ROOT: usize = 3;

fuzz_target!(
    // Outside of the time that an input may take.
    init: {
        LazyLock::force(&BASES);
    },
    |bytes: &[u8]| {
        let mut input = Input(bytes);
        let base = input.choose(&BASES);
        let Some(definition) = &base.definition else { return };
        let mut file = base.file.clone();
        input.edit_pages(&mut file, base.framing, FIRST_ROOT);
        table::read_all(file, definition);
    }
);
