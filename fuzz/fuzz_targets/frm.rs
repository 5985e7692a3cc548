//! MariaDB's `.frm` and `.par` files, edited, or from any bytes.
#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use tanada_fuzz::{Input, samples};
use tanada_innodb::schema::{is_innodb_frm, partition_names, table_from_frm};

/// All `.frm` and `.par` files, each with whether it is a `.par`.
static SAMPLES: LazyLock<Vec<(bool, Vec<u8>)>> = LazyLock::new(|| {
    let archives = ["fixtures/cases.tar.zst", "fixtures/forms.tar.zst", "fixtures/rare.tar.zst"];
    let wanted = |name: &str| name.ends_with(".frm") || name.ends_with(".par");
    let files = archives.iter().flat_map(|archive| samples(archive, wanted));
    files.map(|(name, bytes)| (name.ends_with(".par"), bytes)).collect()
});

fuzz_target!(
    // Outside of the time that an input may take.
    init: {
        LazyLock::force(&SAMPLES);
    },
    |bytes: &[u8]| {
        let mut input = Input(bytes);
        let (mut is_par, mut file) = match input.byte() {
            0 => (false, Vec::new()),
            _ => input.choose(&SAMPLES).clone(),
        };
        if file.is_empty() {
            is_par = input.byte() & 1 == 1;
            file = input.0.to_vec();
        } else {
            input.edit_bytes(&mut file);
        }
        if is_par {
            let _ = partition_names(&file);
        } else {
            let _ = is_innodb_frm(&file);
            let _ = table_from_frm(&file, "d", "t");
        }
    }
);
