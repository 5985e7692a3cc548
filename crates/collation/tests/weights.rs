//! Weight strings and padding as MySQL 9.7 and MariaDB 10.11 and 11.8 give them: some 60 strings with contractions,
//! expansions and trailing spaces in each of 8 collations. Every code point is compared by `scripts/check-collations`.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use tanada_collation::{Collation, Server};

#[test]
fn weight_strings_are_the_servers() {
    let file = zstd::decode_all(&include_bytes!("weights.tsv.zst")[..]).unwrap();
    let file = String::from_utf8(file).unwrap();
    let mut compared = 0;
    for line in file.lines().skip(1) {
        let fields: Vec<&str> = line.split('\t').collect();
        let [server, name, padding, text, weights] = fields.as_slice() else { panic!("{line}") };
        let server = if server.starts_with("mysql") { Server::MySql } else { Server::MariaDb };
        let collation = Collation::lookup(server, name).unwrap_or_else(|| panic!("{name}"));
        let text = String::from_utf8(bytes(text)).unwrap();
        assert_eq!(collation.weight_string(&text), bytes(weights), "{line}");
        assert_eq!(collation.pads(), *padding == "PAD SPACE", "{line}");
        compared += 1;
    }
    assert!(compared > 1000);
}

fn bytes(hexadecimal: &str) -> Vec<u8> {
    let digits = hexadecimal.as_bytes().chunks(2);
    digits.map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap()).collect()
}
