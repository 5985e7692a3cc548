//! Differences that are known: a list that may only become shorter.
//!
//! A line of the list is `verdict<TAB>database<TAB>query`. A query that is not equal has to be in it with its verdict;
//! a query in it that has become equal has to be taken out. `make answers-known` writes the list anew, and refuses to
//! if more queries would be wrong than before.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use crate::verdict::Verdict;

/// Writes the list instead of comparing with it.
const WRITE: &str = "TANADA_WRITE_KNOWN";

/// Verdicts by database and query.
pub type Differences = BTreeMap<(String, String), Verdict>;

/// The list `name` of this folder.
pub fn path(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/answers").join(name)
}

fn parse(text: &str) -> Differences {
    let mut differences = Differences::new();
    for line in text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        let fields: Vec<&str> = line.splitn(3, '\t').collect();
        let [word, database, query] = fields[..] else { panic!("not three fields: {line}") };
        let verdict = match word {
            "wrong" => Verdict::Wrong,
            "refused" => Verdict::Refused,
            _ => panic!("neither wrong nor refused: {line}"),
        };
        differences.insert((database.to_owned(), query.to_owned()), verdict);
    }
    differences
}

fn spelled(differences: &Differences) -> String {
    let mut lines: Vec<String> = differences
        .iter()
        .map(|((database, query), verdict)| format!("{}\t{database}\t{query}\n", verdict.word()))
        .collect();
    lines.sort();
    lines.concat()
}

fn count(differences: &Differences, verdict: Verdict) -> usize {
    differences.values().filter(|of| **of == verdict).count()
}

/// Compares what was found with the list `name`, or writes the list. Returns complaints.
pub fn check(name: &str, found: &Differences) -> Vec<String> {
    let path = path(name);
    let known = parse(&fs::read_to_string(&path).unwrap_or_default());
    if std::env::var_os(WRITE).is_some() {
        let [before, now] = [&known, found].map(|list| count(list, Verdict::Wrong));
        if !known.is_empty() && now > before {
            return vec![format!("{now} queries are wrong and were {before}: {name} stays as it is")];
        }
        fs::write(&path, spelled(found)).unwrap();
        return Vec::new();
    }
    complaints(name, &known, found)
}

fn complaints(name: &str, known: &Differences, found: &Differences) -> Vec<String> {
    let mut complaints = Vec::new();
    for ((database, query), verdict) in found {
        match known.get(&(database.clone(), query.clone())) {
            Some(listed) if listed == verdict => {}
            // Better than known; the list is to say so.
            Some(Verdict::Wrong) => {
                complaints.push(format!("{name} calls it wrong, and it is refused: {query}"))
            }
            _ => complaints.push(format!("{} and not known to be: {database}: {query}", verdict.word())),
        }
    }
    let mended = known.keys().filter(|key| !found.contains_key(key));
    complaints.extend(mended.map(|(_, query)| format!("{name} lists it, and it is equal now: {query}")));
    complaints
}

#[test]
fn new_and_mended_differences_are_complained_about() {
    let list = |text: &str| parse(&text.replace(' ', "\t"));
    let known = list("wrong app a\nrefused app b\nwrong app c\n");
    assert!(complaints("k", &known, &known).is_empty());
    let found = list("wrong app a\nwrong app b\nrefused app d\n");
    let complained = complaints("k", &known, &found);
    assert_eq!(
        complained,
        [
            "wrong and not known to be: app: b",
            "refused and not known to be: app: d",
            "k lists it, and it is equal now: c"
        ]
    );
    assert_eq!(parse(&spelled(&known)), known);
}
