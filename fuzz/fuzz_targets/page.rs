//! Pages of every kind with checksums made right: the tablespace header, extents, inodes, roots and leaves, of both
//! servers and several page sizes. The table is mounted and read with its definition.
#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use tanada_fuzz::{Base, Input, bases, table};

static BASES: LazyLock<Vec<Base>> = LazyLock::new(|| {
    let archives = [
        "fixtures/cases.tar.zst",
        "fixtures/page-sizes.tar.zst",
        "fixtures/altered.tar.zst",
        "fixtures/rare.tar.zst",
    ];
    let tables = ["empty_t", "k/c_sizes/g", "c_altered/t1", "c_altered/t4", "c_rare/added", "c_rare/no_key"];
    bases(&archives, |name| tables.iter().any(|table| name.ends_with(table)))
});

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
        table::mount(file, base.frm.as_ref());
    }
);
