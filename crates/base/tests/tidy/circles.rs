//! Circles of files: files of a crate that name each other, directly or by way of others. A reader can begin with none
//! of them.
//!
//! 1. Of each file outside of tests the paths count that begin with `crate`, `self` or `super`, in `use` and in code.
//! 2. A path leads to the file that defines its name: names that another file imports or exports again are followed.
//! 3. Files that reach each other are one circle. Their number per crate has a limit, which only goes down.

use std::collections::{BTreeMap, BTreeSet};

use crate::{assert_none, files};

/// Most circles of files of a crate.
const MAX_CIRCLES: [(&str, usize); 4] = [("capi", 0), ("kv", 1), ("sim", 2), ("volume", 0)];

/// Most names of one name that are followed, each to the next.
const MAX_STEPS: usize = 12;

type Path = Vec<String>;

#[test]
fn circles_of_files_do_not_become_more() {
    let complaints = MAX_CIRCLES.iter().filter_map(|(name, most)| {
        let folder = format!("crates/{name}/src");
        let found = circles(&modules(&folder, files(&folder, "rs")));
        (found.len() != *most).then(|| {
            let hint = if found.len() < *most { ": lower the limit" } else { "" };
            format!(
                "crates/{name}: {} circles of files, and {most} is the limit{hint}: {found:?}",
                found.len()
            )
        })
    });
    assert_none(&complaints.collect::<Vec<_>>());
}

/// The files of a crate by their modules, without tests.
fn modules(folder: &str, files: Vec<(String, String)>) -> BTreeMap<Path, String> {
    let module = |path: &str| {
        let inside = path.strip_prefix(folder)?.trim_start_matches('/').strip_suffix(".rs")?;
        let mut names: Path = inside.split('/').map(str::to_owned).collect();
        if matches!(names.last().map(String::as_str), Some("mod" | "lib" | "main")) {
            names.pop();
        }
        (!names.iter().any(|name| name == "tests")).then_some(names)
    };
    files.into_iter().filter_map(|(path, text)| Some((module(&path)?, code_of(&text)))).collect()
}

/// Code without comments, the insides of strings, and modules of tests.
fn code_of(text: &str) -> String {
    let mut code = String::new();
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let skipped = if rest.starts_with("//") {
            rest.find('\n').unwrap_or(rest.len())
        } else if rest.starts_with("'\"'") || rest.starts_with("'\\\"'") {
            rest[1..].find('\'').map_or(rest.len(), |end| end + 2)
        } else if rest.starts_with("r#\"") {
            rest.find("\"#").map_or(rest.len(), |end| end + 2)
        } else if c == '"' {
            let mut escaped = false;
            let end = rest[1..].find(|c| {
                let is_end = c == '"' && !escaped;
                escaped = c == '\\' && !escaped;
                is_end
            });
            end.map_or(rest.len(), |end| end + 2)
        } else {
            code.push(c);
            c.len_utf8()
        };
        rest = &rest[skipped..];
    }
    let mut kept = String::new();
    let mut rest = code.as_str();
    while let Some(start) = rest.find("#[cfg(test)]") {
        kept.push_str(&rest[..start]);
        let item = &rest[start..];
        let is_block = item.find('{').unwrap_or(item.len()) < item.find(';').unwrap_or(item.len());
        let indent = rest[..start].len() - rest[..start].trim_end_matches(' ').len();
        let end = if is_block { format!("\n{}}}", " ".repeat(indent)) } else { ";".to_owned() };
        rest = item.find(&end).map_or("", |at| &item[at + end.len()..]);
    }
    kept + rest
}

/// The names of a `use`: what each is called here, and its path.
fn expand(prefix: &str, tree: &str, into: &mut Vec<(String, String)>) {
    let mut depth = 0;
    let parts = tree.split(|c| {
        depth += i32::from(c == '{') - i32::from(c == '}');
        c == ',' && depth == 0
    });
    for part in parts.map(str::trim).filter(|part| !part.is_empty()) {
        match part.split_once('{') {
            Some((before, inside)) => {
                expand(&format!("{prefix}{before}"), inside.trim_end_matches('}').trim(), into);
            }
            None => {
                let (path, name) = part.split_once(" as ").unwrap_or((part, part));
                let name = name.rsplit("::").next().unwrap_or(name);
                into.push((name.trim().to_owned(), format!("{prefix}{}", path.trim())));
            }
        }
    }
}

/// Returns the path from the crate's root, if it leads into the crate.
fn absolute(module: &Path, path: &str, all: &BTreeMap<Path, String>) -> Option<Path> {
    let mut names: Vec<&str> = path.trim_end_matches("::self").split("::").collect();
    let mut base = module.clone();
    match names.first().copied()? {
        "crate" => {
            base.clear();
            names.remove(0);
        }
        "self" => drop(names.remove(0)),
        "super" => {
            while names.first() == Some(&"super") {
                base.pop();
                names.remove(0);
            }
        }
        first => {
            base.push(first.to_owned());
            let is_child = all.contains_key(&base);
            base.pop();
            is_child.then_some(())?;
        }
    }
    base.extend(names.into_iter().map(str::to_owned));
    Some(base)
}

/// Files that reach each other, each with all others of its circle.
fn circles(all: &BTreeMap<Path, String>) -> Vec<Vec<String>> {
    let mut named: BTreeMap<&Path, BTreeMap<String, Path>> = BTreeMap::new();
    let mut used: BTreeMap<&Path, BTreeSet<Path>> = BTreeMap::new();
    for (module, code) in all {
        let mut rest = String::new();
        let mut lines = code.split_inclusive('\n');
        while let Some(line) = lines.next() {
            let after = line.trim_start();
            let vis = after.strip_prefix("pub").map_or(after, |rest| {
                rest.strip_prefix('(').and_then(|rest| rest.split_once(')')).map_or(rest, |(_, rest)| rest)
            });
            let Some(tree) = vis.trim_start().strip_prefix("use ") else {
                rest.push_str(line);
                continue;
            };
            let mut tree = tree.to_owned();
            while !tree.contains(';') {
                let Some(next) = lines.next() else { break };
                tree.push_str(next);
            }
            let is_export = after.starts_with("pub");
            let mut names = Vec::new();
            expand("", tree.split(';').next().unwrap_or_default(), &mut names);
            for (name, path) in names {
                let Some(path) = absolute(module, &path, all) else { continue };
                if !is_export {
                    used.entry(module).or_default().insert(path.clone());
                }
                named.entry(module).or_default().insert(name, path);
            }
        }
        for start in ["crate::", "super::", "self::"] {
            for (at, _) in rest.match_indices(start) {
                let is_word = |c: char| c.is_alphanumeric() || c == '_';
                if rest[..at].ends_with(|c| is_word(c) || c == ':') {
                    continue;
                }
                let len = rest[at..].find(|c| !is_word(c) && c != ':').unwrap_or(rest.len() - at);
                let path = absolute(module, rest[at..at + len].trim_end_matches(':'), all);
                used.entry(module).or_default().extend(path);
            }
        }
    }
    let edges: BTreeMap<&Path, BTreeSet<&Path>> = used
        .iter()
        .map(|(module, paths)| {
            let reached = paths.iter().filter_map(|path| defining(path, all, &named, MAX_STEPS));
            (*module, reached.filter(|reached| reached != module).collect())
        })
        .collect();
    let reach: BTreeMap<&Path, BTreeSet<&Path>> =
        all.keys().map(|module| (module, reached_from(module, &edges))).collect();
    let mut found: Vec<Vec<String>> = Vec::new();
    let mut seen: BTreeSet<&Path> = BTreeSet::new();
    for module in all.keys() {
        let circle: Vec<&Path> =
            reach[module].iter().copied().filter(|other| reach[other].contains(module)).collect();
        if !circle.is_empty() && seen.insert(module) {
            seen.extend(&circle);
            found.push(circle.iter().map(|module| module.join("::")).collect());
        }
    }
    found
}

/// The module that defines what a path names.
fn defining<'a>(
    path: &[String],
    all: &'a BTreeMap<Path, String>,
    named: &BTreeMap<&Path, BTreeMap<String, Path>>,
    steps: usize,
) -> Option<&'a Path> {
    let known = (0..=path.len()).rev().find_map(|len| all.get_key_value(&path[..len]))?.0;
    let next = path.get(known.len()).and_then(|name| named.get(known)?.get(name));
    match next.filter(|next| next[..] != path[..(known.len() + 1).min(path.len())]) {
        Some(next) if steps > 0 => {
            let rest = &path[known.len() + 1..];
            defining(&[next, rest].concat(), all, named, steps - 1)
        }
        _ => Some(known),
    }
}

fn reached_from<'a>(module: &'a Path, edges: &BTreeMap<&'a Path, BTreeSet<&'a Path>>) -> BTreeSet<&'a Path> {
    let mut reached: BTreeSet<&Path> = BTreeSet::new();
    let mut left = vec![module];
    while let Some(module) = left.pop() {
        for next in edges.get(module).into_iter().flatten() {
            if reached.insert(*next) {
                left.push(*next);
            }
        }
    }
    reached
}

fn circles_of(files: &[(&str, &str)]) -> Vec<Vec<String>> {
    let files = files.iter().map(|(path, text)| (format!("src/{path}"), (*text).to_owned())).collect();
    circles(&modules("src", files))
}

#[test]
fn files_that_name_each_other_are_a_circle() {
    let found = circles_of(&[
        ("lib.rs", "mod a;\nmod b;\nmod c;\npub use a::A;\n"),
        ("a.rs", "use crate::b::{B, C};\npub struct A;\n"),
        ("b.rs", "pub struct B;\nfn b() { super::c::f() }\n"),
        ("c.rs", "use crate::A;\nfn f() {}\n"),
    ]);
    assert_eq!(found, [["a", "b", "c"]]);
}

#[test]
fn names_in_tests_comments_and_strings_make_no_circle() {
    let found = circles_of(&[
        ("lib.rs", "mod a;\nmod b;\n"),
        ("a.rs", "use crate::b::B;\n"),
        (
            "b.rs",
            "// crate::a::A\nconst B: &str = \"crate::a::A\";\n#[cfg(test)]\nmod tests {\n    use crate::a::A;\n}\n",
        ),
    ]);
    assert_eq!(found, Vec::<Vec<String>>::new());
}
