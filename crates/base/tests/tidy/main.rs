//! Keeps the house in order: sizes, heads, layers and leftovers, for every crate of the workspace.
//!
//! It lives in the lowest crate, so it runs in seconds, without the query engine. Each rule is a function from text to
//! complaints, with a unit test that feeds it bad input: a rule that cannot fail guards nothing.

mod circles;
mod commits;
mod documents;
mod layers;
mod source;
mod words;

use std::fs;
use std::path::{Path, PathBuf};

/// The workspace's folder.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("the workspace")
}

/// Files under `folder` whose names end in `.extension`, build output and data left out; each with its path from the
/// root and its text.
fn files(folder: &str, extension: &str) -> Vec<(String, String)> {
    let root = root();
    let mut found = Vec::new();
    let mut folders = vec![root.join(folder)];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display())) {
            let path = entry.expect("an entry").path();
            let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            if path.is_dir() {
                let skipped = name.starts_with('.')
                    || name.starts_with("target")
                    || matches!(name, "fixtures" | "work");
                if !skipped {
                    folders.push(path);
                }
            } else if path.extension().is_some_and(|found| found == extension) {
                let text =
                    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
                let inside = path.strip_prefix(&root).expect("below the root").display().to_string();
                found.push((inside, text));
            }
        }
    }
    found.sort();
    assert!(!found.is_empty(), "no .{extension} files under {folder}: the test looks at the wrong place");
    found
}

/// Fails with all complaints at once.
fn assert_none(complaints: &[String]) {
    assert!(complaints.is_empty(), "{} complaints:\n{}", complaints.len(), complaints.join("\n"));
}
