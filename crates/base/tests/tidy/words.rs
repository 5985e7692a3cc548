//! Rules for words: names of tests, the width of comments and documents.
//!
//! A test is named by behaviour and object (`repeated_lookups_use_the_cached_version`), so that a list of tests reads
//! as a list of guarantees. Comments and Markdown have at most 120 columns; rustfmt leaves both
//! alone.

use crate::{assert_none, files};

const MAX_COLUMNS: usize = 120;

/// First words of a test's name that name neither behaviour nor object.
const POINTING_WORDS: [&str; 24] = [
    "what", "whatever", "who", "whoever", "whom", "whose", "where", "wherever", "when", "whenever", "so",
    "those", "these", "this", "that", "such", "it", "its", "one", "ones", "others", "there", "how", "as",
];

#[test]
fn tests_are_named_by_behaviour_and_object() {
    let complaints: Vec<String> = sources().iter().flat_map(|(path, text)| test_names(path, text)).collect();
    assert_none(&complaints);
}

#[test]
fn comments_and_documents_have_at_most_120_columns() {
    let mut complaints: Vec<String> =
        sources().iter().flat_map(|(path, text)| wide_lines(path, text, is_comment)).collect();
    complaints.extend(files("include", "h").iter().flat_map(|(path, text)| wide_lines(path, text, |_| true)));
    complaints.extend(files(".", "md").iter().flat_map(|(path, text)| wide_lines(path, text, |_| true)));
    assert_none(&complaints);
}

fn sources() -> Vec<(String, String)> {
    [files("crates", "rs"), files("fuzz", "rs")].concat()
}

/// Complains about tests whose names begin with one of [`POINTING_WORDS`]. The name follows the attribute, perhaps
/// after further attributes and comments.
fn test_names(path: &str, text: &str) -> Vec<String> {
    let mut complaints = Vec::new();
    let mut is_test = false;
    for (number, line) in text.lines().enumerate() {
        let line = line.trim_start();
        if line.starts_with("#[test]") || line.starts_with("#[tokio::test") {
            is_test = true;
        } else if !line.starts_with("#[") && !line.starts_with("//") && is_test {
            is_test = false;
            let name =
                line.split_once("fn ").map_or("", |(_, rest)| rest.split(['(', '<']).next().unwrap_or(""));
            if let Some(word) = name.split('_').next().filter(|word| POINTING_WORDS.contains(word)) {
                complaints.push(format!(
                    "{path}:{}: test {name} begins with {word:?}; name what it does to what",
                    number + 1
                ));
            }
        }
    }
    complaints
}

fn is_comment(line: &str) -> bool {
    line.trim_start().starts_with("//")
}

/// Complains about lines of more than [`MAX_COLUMNS`] characters, of those that `counts`.
fn wide_lines(path: &str, text: &str, counts: impl Fn(&str) -> bool) -> Vec<String> {
    let lines = text.lines().enumerate().filter(|(_, line)| counts(line));
    let wide = lines
        .map(|(number, line)| (number, line.chars().count()))
        .filter(|(_, columns)| *columns > MAX_COLUMNS);
    wide.map(|(number, columns)| format!("{path}:{}: {columns} columns (at most {MAX_COLUMNS})", number + 1))
        .collect()
}

#[test]
fn a_test_named_by_a_pronoun_is_noticed() {
    let text = "#[test]\n/// Why.\n#[ignore]\nfn what_is_read() {}\n\n#[tokio::test]\nasync fn who_reads() {}\nfn one_read() {}\n";
    let complaints = test_names("a.rs", text);
    assert_eq!(complaints.len(), 2);
    assert!(complaints[0].starts_with("a.rs:4: test what_is_read begins with \"what\""), "{complaints:?}");
    assert!(test_names("a.rs", "#[test]\nfn reads_are_counted() {}\nfn what_helper() {}\n").is_empty());
}

#[test]
fn a_wide_comment_is_noticed() {
    let wide = format!("// {}\nlet text = \"{}\";\n", "x".repeat(MAX_COLUMNS), "x".repeat(MAX_COLUMNS));
    assert_eq!(wide_lines("a.rs", &wide, is_comment), ["a.rs:1: 123 columns (at most 120)"]);
    assert!(wide_lines("a.md", &"ä".repeat(MAX_COLUMNS), |_| true).is_empty());
}
