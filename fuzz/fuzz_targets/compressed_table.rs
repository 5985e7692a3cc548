//! Pages of ROW_FORMAT=COMPRESSED with their zlib streams, modification logs and compressed off-page values,
//! checksums made right.
#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use tanada_fuzz::{Base, Input, bases, table};

static BASES: LazyLock<Vec<Base>> =
    LazyLock::new(|| bases(&["fuzz/bases/off-page.tar.zst"], |name| name.contains("/zip")));

fuzz_target!(
    // Outside of the time that an input may take.
    init: {
        LazyLock::force(&BASES);
    },
    |bytes: &[u8]| {
        let mut input = Input(bytes);
        let base = input.choose(&BASES);
        let mut file = base.file.clone();
        input.edit_pages(&mut file, base.framing, 0);
        match &base.definition {
            Some(definition) => table::read_all(file, definition),
            None => table::mount(file, base.frm.as_ref()),
        }
    }
);
