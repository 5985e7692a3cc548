//! Rules for Rust files.

use crate::{assert_none, files};

const MAX_LINES_PER_FILE: usize = 700;
const MAX_LINES_PER_FUNCTION: usize = 80;

/// Written apart, so that this file does not complain about itself.
const LEFTOVERS: [&str; 5] = [
    concat!("todo", "!("),
    concat!("unimplemented", "!("),
    concat!("dbg", "!("),
    concat!("FIX", "ME"),
    concat!("XX", "X:"),
];

const VAGUE_NAMES: [&str; 5] = ["utils", "common", "helpers", "misc", "manager"];

#[test]
fn every_file_has_a_head_and_a_reasonable_size() {
    let complaints: Vec<String> =
        files("crates", "rs").iter().flat_map(|(path, text)| check(path, text)).collect();
    assert_none(&complaints);
}

fn check(path: &str, text: &str) -> Vec<String> {
    let mut complaints = Vec::new();
    let lines = text.lines().count();
    if lines > MAX_LINES_PER_FILE {
        complaints.push(format!(
            "{path}: {lines} lines; find the second idea in it (at most {MAX_LINES_PER_FILE})"
        ));
    }
    if !text.starts_with("//!") {
        complaints.push(format!("{path}:1: begins without a //! head that says what it is and why"));
    }
    if path.split(['/', '.']).any(|part| VAGUE_NAMES.contains(&part)) {
        complaints.push(format!("{path}: is named after nothing in particular"));
    }
    for (number, line) in text.lines().enumerate() {
        if let Some(leftover) = LEFTOVERS.iter().find(|leftover| line.contains(**leftover)) {
            complaints.push(format!("{path}:{}: leftover {leftover}", number + 1));
        }
    }
    for (number, name, length) in functions(text) {
        if length > MAX_LINES_PER_FUNCTION {
            complaints.push(format!(
                "{path}:{number}: fn {name} has {length} lines (at most {MAX_LINES_PER_FUNCTION})"
            ));
        }
    }
    complaints
}

/// Line, name and length in lines of each function with a body. Relies on rustfmt: a body ends with a brace at the
/// indentation of its `fn`.
fn functions(text: &str) -> Vec<(usize, String, usize)> {
    let lines: Vec<&str> = text.lines().collect();
    let mut found = Vec::new();
    for (start, line) in lines.iter().enumerate() {
        let Some(name) = function_name(line) else { continue };
        let indentation = &line[..line.len() - line.trim_start().len()];
        let end = format!("{indentation}}}");
        let without_body = format!("{indentation})");
        for (length, line) in lines[start..].iter().enumerate() {
            let signature_ends = length == 0 || line.starts_with(&without_body);
            if signature_ends && (line.ends_with(';') || line.ends_with('}')) {
                break;
            }
            if length > 0 && *line == end {
                found.push((start + 1, name.to_owned(), length + 1));
                break;
            }
        }
    }
    found
}

fn function_name(line: &str) -> Option<&str> {
    let mut words = line.split_whitespace();
    let qualifiers = ["pub", "pub(crate)", "pub(super)", "const", "async", "unsafe", "extern", "\"C\""];
    let name = match words.find(|word| !qualifiers.contains(word))? {
        "fn" => words.next()?,
        _ => return None,
    };
    name.split(['(', '<']).next()
}

#[test]
fn a_long_file_is_noticed() {
    let text = format!("//! Head.\n{}", "// more\n".repeat(MAX_LINES_PER_FILE));
    assert_eq!(check("crates/x/src/lib.rs", &text).len(), 1);
    assert!(check("crates/x/src/lib.rs", "//! Head.\n").is_empty());
}

#[test]
fn a_missing_head_a_leftover_and_a_vague_name_are_noticed() {
    assert!(check("a.rs", "use std::fs;\n")[0].contains("head"));
    let text = format!("//! Head.\nfn f() {{ {} }}\n", concat!("todo", "!()"));
    assert!(check("a.rs", &text)[0].starts_with("a.rs:2: leftover"));
    assert!(check("crates/x/src/utils/a.rs", "//! Head.\n")[0].contains("nothing in particular"));
    assert!(check("crates/x/src/helpers.rs", "//! Head.\n")[0].contains("nothing in particular"));
}

#[test]
fn a_long_function_is_noticed_wherever_it_is() {
    let body = "        x += 1;\n".repeat(MAX_LINES_PER_FUNCTION - 1);
    let text = format!(
        "//! Head.\nimpl A {{\n    pub async fn long<T>(\n        x: T,\n    ) -> u8\n    where\n        T: B,\n    {{\n{body}    }}\n    fn short(&self) {{}}\n    fn none(&self);\n}}\n"
    );
    let found = functions(&text);
    assert_eq!(found, [(3, "long".to_owned(), MAX_LINES_PER_FUNCTION + 6)]);
    assert_eq!(
        check("a.rs", &text),
        [format!(
            "a.rs:3: fn long has {} lines (at most {MAX_LINES_PER_FUNCTION})",
            MAX_LINES_PER_FUNCTION + 6
        )]
    );
}

#[test]
fn a_function_inside_another_counts_for_itself() {
    let text = "fn outer() {\n    fn inner() {\n        a();\n    }\n    inner();\n}\n";
    assert_eq!(functions(text), [(1, "outer".to_owned(), 6), (2, "inner".to_owned(), 3)]);
}
