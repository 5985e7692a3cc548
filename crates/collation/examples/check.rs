//! Compares what this crate says of collations with what a server says: `scripts/check-collations` feeds it.
//!
//! Each line of the standard input is a question and the server's answer, separated by tabs:
//! - `weight SERVER COLLATION TEXT HEX`: the weight string;
//! - `compare SERVER COLLATION A B RESULT`: -1, 0 or 1.
//!
//! Texts are UTF-8 in hexadecimal. Differences are printed; the exit code is 1 if there are any.

use std::io::BufRead;
use std::process::ExitCode;

use tanada_collation::{Collation, Server};

fn main() -> ExitCode {
    let (mut right, mut wrong, mut unknown) = (0u64, 0u64, 0u64);
    for line in std::io::stdin().lock().lines().map_while(Result::ok) {
        match check(&line) {
            Some(None) => right += 1,
            Some(Some(own)) => {
                wrong += 1;
                if wrong <= 40 {
                    println!("{line}\there: {own}");
                }
            }
            None => unknown += 1,
        }
    }
    println!("{right} as the server, {wrong} not, {unknown} not asked");
    if wrong == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// `None` if the question is not understood, `Some(None)` if the answer is the server's, else the own answer.
fn check(line: &str) -> Option<Option<String>> {
    let fields: Vec<&str> = line.split('\t').collect();
    let [kind, server, name, rest @ ..] = fields.as_slice() else { return None };
    let server = if server.starts_with("mysql") { Server::MySql } else { Server::MariaDb };
    let collation = Collation::lookup(server, name)?;
    let (own, expected) = match (*kind, rest) {
        ("weight", [value, weights]) => {
            let own = collation.weight_string(&text(value)?);
            (own.iter().map(|byte| format!("{byte:02X}")).collect::<String>(), weights)
        }
        ("compare", [a, b, order]) => {
            let (a, b) = (text(a)?, text(b)?);
            let (mut key_a, mut key_b) = (Vec::new(), Vec::new());
            collation.sort_key(&a, &mut key_a);
            collation.sort_key(&b, &mut key_b);
            let compared = collation.compare(&a, &b);
            if compared != key_a.cmp(&key_b) {
                return Some(Some("sort keys and comparison differ".to_owned()));
            }
            ((compared as i8).to_string(), order)
        }
        _ => return None,
    };
    Some((own != **expected).then_some(own))
}

fn text(hexadecimal: &str) -> Option<String> {
    let digits = hexadecimal.as_bytes().chunks(2);
    let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok();
    String::from_utf8(digits.map(byte).collect::<Option<Vec<u8>>>()?).ok()
}
