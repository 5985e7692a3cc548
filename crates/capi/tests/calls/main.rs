//! Every call of `include/tanada_kv.h` through its symbol: what it does, and what it refuses.
#![allow(clippy::unwrap_used)]

mod batches;
mod cursors;
mod databases;
mod expiry;
mod loads;
mod misuse;
mod reads;
mod settings;
mod stores;
mod symbols;
mod transactions;
mod world;

use std::collections::BTreeSet;
use std::path::Path;

/// Names of functions of the engine in a text.
fn functions(text: &str) -> BTreeSet<&str> {
    let is_name = |c: char| c.is_ascii_lowercase() || c == '_';
    let starts = text.match_indices("tanada_kv_").map(|(at, _)| at);
    let names = starts.filter_map(|at| {
        let len = text[at..].find(|c| !is_name(c))?;
        text[at + len..].starts_with('(').then(|| &text[at..at + len])
    });
    names.collect()
}

#[test]
fn every_function_of_the_header_is_called_by_a_test() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let header = std::fs::read_to_string(root.join("../../include/tanada_kv.h")).unwrap();
    let declared = functions(&header);
    assert!(declared.len() > 60, "{declared:?}");
    let mut tests = String::new();
    for file in std::fs::read_dir(root.join("tests/calls")).unwrap() {
        let path = file.unwrap().path();
        if !path.ends_with("symbols.rs") {
            tests += &std::fs::read_to_string(path).unwrap();
        }
    }
    let called = functions(&tests);
    let left: Vec<_> = declared.difference(&called).collect();
    assert!(left.is_empty(), "no test calls {left:?}");
}
