//! `CREATE TABLE` statements: words of the samples' statements are exchanged, repeated and removed, and bytes are
//! edited.
#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use tanada_fuzz::{Input, samples};
use tanada_innodb::Server;
use tanada_innodb::schema::table_from_ddl;

static STATEMENTS: LazyLock<Vec<Vec<String>>> = LazyLock::new(|| {
    let archives = ["fixtures/cases.tar.zst", "fixtures/rare.tar.zst"];
    let files = archives.iter().flat_map(|archive| samples(archive, |name| name.ends_with(".create.sql")));
    files.map(|(_, bytes)| words(&String::from_utf8_lossy(&bytes))).collect()
});

/// All words of all statements.
static WORDS: LazyLock<Vec<String>> = LazyLock::new(|| {
    let mut all: Vec<String> = STATEMENTS.iter().flatten().cloned().collect();
    all.sort();
    all.dedup();
    all
});

/// Names that statements may have to be of; those of samples among them.
const NAMES: [&str; 5] = ["t", "all_types", "instant_add", "part_hash", "str_pk"];

const MAX_EDITS: usize = 24;

/// Words, spaces and signs of `text`, which is what they are together.
fn words(text: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    let mut last = None;
    for character in text.chars() {
        let kind = (character.is_alphanumeric() || character == '_').then_some(character.is_alphabetic());
        match words.last_mut() {
            Some(word) if kind.is_some() && last == Some(kind.is_some()) => word.push(character),
            _ => words.push(character.to_string()),
        }
        last = Some(kind.is_some());
    }
    words
}

fuzz_target!(
    // Outside of the time that an input may take.
    init: {
        LazyLock::force(&WORDS);
    },
    |bytes: &[u8]| {
        let mut input = Input(bytes);
        let server = if input.byte() & 1 == 0 { Server::MariaDb } else { Server::MySql };
        let name = *input.choose(&NAMES);
        let mut words = match input.byte() {
            0 => Vec::new(),
            _ => input.choose(&STATEMENTS).clone(),
        };
        for _ in 0..MAX_EDITS {
            if words.is_empty() || input.is_over() {
                break;
            }
            let (how, at) = (input.byte(), input.word() % words.len());
            let word = WORDS[input.word() % WORDS.len()].clone();
            match how % 5 {
                0 => words[at] = word,
                1 => words.insert(at, word),
                2 => drop(words.remove(at)),
                3 => words[at] = String::from_utf8_lossy(input.bytes(1 + usize::from(how >> 4))).into_owned(),
                _ => {
                    let end = (at + 1 + usize::from(how >> 3)).min(words.len());
                    let copy = words[at..end].to_vec();
                    words.splice(at..at, copy);
                }
            }
        }
        let text = if words.is_empty() { String::from_utf8_lossy(input.0).into_owned() } else { words.concat() };
        let _ = table_from_ddl(&text, "d", name, server);
    }
);
