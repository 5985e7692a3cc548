//! Records of every row format, with instant columns of both servers, in sealed pages: the definition is that of the
//! sound table, pages from the first root on are edited.
#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use tanada_fuzz::{Base, Input, bases, table};

static BASES: LazyLock<Vec<Base>> = LazyLock::new(|| {
    let archives = [
        "fixtures/cases.tar.zst",
        "fixtures/altered.tar.zst",
        "fixtures/forms.tar.zst",
        "fixtures/rare.tar.zst",
    ];
    let folders = ["c_dynamic/", "c_redundant/", "c_altered/", "c_forms/", "c_rare/"];
    let mut bases = bases(&archives, |name| folders.iter().any(|folder| name.contains(folder)));
    bases.retain(|base| {
        base.definition
            .as_ref()
            .is_some_and(|definition| table::rows(base.file.clone(), definition) <= MAX_ROWS)
    });
    bases
});

/// Rows of a sound table; more of them make executions slow.
const MAX_ROWS: usize = 120;

/// The first page that a tree has.
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
