//! Rules for documents and scripts: they hold for every reader, not for the machine they were written on.

use std::collections::BTreeSet;
use std::fs;

use crate::{assert_none, files, root};

const REQUIRED: [&str; 12] = [
    "README.md",
    "LICENSE",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "SECURITY.md",
    "deny.toml",
    "Makefile",
    ".ci/run",
    "scripts/setup",
    "docs/ARCHITECTURE.md",
    "docs/GUARANTEES.md",
    "docs/papers/ooode.md",
];

/// Parts of paths and addresses of one machine or network. Written apart, so that this file does not complain about
/// itself.
const PRIVATE: [&str; 9] = [
    concat!("/ro", "ot/"),
    concat!("/ho", "me/"),
    concat!("/wo", "rk/"),
    concat!("/tm", "p/"),
    concat!("arti", "factory"),
    concat!(".inter", "nal"),
    concat!("local", "host:"),
    concat!("127.0", ".0.1"),
    concat!("index.cra", "tes.io"),
];

#[test]
fn the_house_has_its_documents() {
    let missing: Vec<String> = REQUIRED
        .iter()
        .filter(|path| !root().join(path).is_file())
        .map(|path| format!("{path} is missing"))
        .collect();
    assert_none(&missing);
}

#[test]
fn documents_name_no_machine() {
    let mut texts = files(".", "md");
    for path in ["Makefile", ".ci/run", "scripts/setup", "scripts/make-tpch", "deny.toml", "Cargo.toml"] {
        texts.push((
            path.to_owned(),
            fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}")),
        ));
    }
    let complaints: Vec<String> = texts.iter().flat_map(|(path, text)| machine_words(path, text)).collect();
    assert_none(&complaints);
}

#[test]
fn the_readme_names_both_commands() {
    let text = fs::read_to_string(root().join("README.md")).expect("a README");
    assert_none(&missing_commands(&text));
}

#[test]
fn every_guarantee_names_a_test_that_exists() {
    let text = fs::read_to_string(root().join("docs/GUARANTEES.md")).expect("the guarantees");
    let sources = files("crates", "rs");
    let names: BTreeSet<&str> = sources.iter().flat_map(|(_, text)| function_names(text)).collect();
    let exists = |name: &str| names.contains(name);
    assert_none(&guarantees_without_test(&text, exists));
    assert_none(&rows_without_test(&text, exists));
}

/// What stands between `fn ` and a parenthesis.
fn function_names(text: &str) -> impl Iterator<Item = &str> {
    text.split("fn ").skip(1).filter_map(|rest| rest.split_once('(')).map(|(name, _)| name)
}

fn machine_words(path: &str, text: &str) -> Vec<String> {
    let lines = text.lines().enumerate();
    let complain = |(number, line): (usize, &str)| {
        let word = PRIVATE.iter().find(|word| line.contains(**word))?;
        Some(format!("{path}:{}: names {word:?}, which is of one machine", number + 1))
    };
    lines.filter_map(complain).collect()
}

fn missing_commands(readme: &str) -> Vec<String> {
    let commands = ["make demo", "make test"];
    commands
        .iter()
        .filter(|command| !readme.contains(**command))
        .map(|command| format!("README.md does not name `{command}`"))
        .collect()
}

/// A guarantee is a list item; the tests are the words in backquotes behind its "Test:" or "Tests:".
fn guarantees_without_test(text: &str, exists: impl Fn(&str) -> bool) -> Vec<String> {
    let mut complaints = Vec::new();
    let items = text.split("\n- ").skip(1);
    for item in items {
        let item = item.split("\n\n").next().unwrap_or(item);
        let title = item.lines().next().unwrap_or_default();
        let tests =
            item.split_once("Test:").or_else(|| item.split_once("Tests:")).map_or("", |(_, tests)| tests);
        let names: Vec<&str> = tests.split('`').skip(1).step_by(2).collect();
        if names.is_empty() {
            complaints.push(format!("no test is named for: {title}"));
        }
        let unknown = names.iter().filter(|name| !exists(name.rsplit("::").next().unwrap_or(name)));
        complaints.extend(unknown.map(|name| format!("there is no test {name}, named for: {title}")));
    }
    if complaints.is_empty() && !text.contains("\n- ") {
        complaints.push("no guarantee is listed".to_owned());
    }
    complaints
}

/// Rows of tables whose last column is called "Tests": it has to name some, in backquotes.
fn rows_without_test(text: &str, exists: impl Fn(&str) -> bool) -> Vec<String> {
    let last_cell =
        |line: &str| line.trim_end_matches('|').rsplit('|').next().map(str::trim).map(str::to_owned);
    let mut complaints = Vec::new();
    let mut is_inside = false;
    for line in text.lines() {
        let cell = line.starts_with('|').then(|| last_cell(line)).flatten().unwrap_or_default();
        is_inside = line.starts_with('|') && (is_inside || cell == "Tests");
        if !is_inside || cell == "Tests" || cell.chars().all(|sign| matches!(sign, '-' | ':')) {
            continue;
        }
        let names: Vec<&str> = cell.split('`').skip(1).step_by(2).collect();
        if names.is_empty() {
            complaints.push(format!("no test is named for: {line}"));
        }
        let unknown = names.iter().filter(|name| !exists(name));
        complaints.extend(unknown.map(|name| format!("there is no test {name}, named for: {line}")));
    }
    complaints
}

#[test]
fn a_row_of_guarantees_without_a_test_is_noticed() {
    let text = "| server | Tests |\n|---|---|\n| A | `known` |\n| B | none |\n| C | `unknown` |\n\n| x |\n|---|\n| y |\n";
    let complaints = rows_without_test(text, |name| name == "known");
    assert_eq!(
        complaints,
        ["no test is named for: | B | none |", "there is no test unknown, named for: | C | `unknown` |"]
    );
}

#[test]
fn a_path_of_one_machine_is_noticed() {
    let text = format!("fine\nsee {}x\n", concat!("/ho", "me/"));
    assert_eq!(machine_words("a.md", &text).len(), 1);
    assert!(machine_words("a.md", &text)[0].starts_with("a.md:2:"));
}

#[test]
fn a_readme_without_its_commands_is_noticed() {
    assert_eq!(missing_commands("Run `make demo`."), ["README.md does not name `make test`"]);
}

#[test]
fn a_guarantee_without_a_test_is_noticed() {
    let text = "# G\n\n- Nothing is lost.\n- Nothing panics. Tests: `crate::known`,\n  `unknown`.\n";
    let complaints = guarantees_without_test(text, |name| name == "known");
    assert_eq!(
        complaints,
        [
            "no test is named for: Nothing is lost.",
            "there is no test unknown, named for: Nothing panics. Tests: `crate::known`,"
        ]
    );
    assert!(guarantees_without_test("# G\n", |_| true).len() == 1);
}
