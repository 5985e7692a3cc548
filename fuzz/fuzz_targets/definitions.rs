//! Table definitions: SDI, `.frm`, `.par` and `CREATE TABLE` from any bytes are a definition or an error.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tanada_innodb::Server;
use tanada_innodb::schema::{partition_names, table_from_ddl, table_from_frm, table_from_sdi};

fuzz_target!(|input: &[u8]| {
    let Some((kind, bytes)) = input.split_first() else { return };
    match kind % 4 {
        0 => drop(table_from_sdi(bytes)),
        1 => drop(table_from_frm(bytes, "d", "t")),
        2 => drop(partition_names(bytes)),
        _ => {
            let text = String::from_utf8_lossy(bytes);
            drop(table_from_ddl(&text, "d", "t", Server::MariaDb));
        }
    }
});
