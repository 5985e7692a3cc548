//! The table of functions in `docs/sql.md` against what is planned and run.
//!
//! `functions.tsv` has each function of the servers' manuals: its group, its names, a call, the servers that have it.

use std::collections::BTreeMap;
use std::path::Path;

use tanada_io::Method;

use crate::sessions::{run, session};

/// Of the functions that a server has, so many of 100 are computed.
const MIN_COMPUTED_PERCENT: usize = 95;

/// Longest list of names in a row of the table.
const MAX_NAMES_BYTES: usize = 68;

/// Names of functions by their state at both servers.
type ByState = BTreeMap<[&'static str; 2], Vec<&'static str>>;

/// The state of a function at both servers: `yes`, `refused`, or `–` where the server does not have it.
async fn states(call: &str, servers: &str) -> [&'static str; 2] {
    let mut states = ["–"; 2];
    for (state, server) in states.iter_mut().zip(["mysql", "mariadb"]) {
        let session = session(Method::Threads);
        run(&session, &format!("set tanada.server = '{server}'")).await.unwrap();
        let query = format!("select {call} as v from (select 1 as a, 2 as b, json_object('a', 1) as j) as t");
        let is_computed = run(&session, &query).await.is_ok();
        if servers.split(' ').any(|name| name == server) {
            *state = if is_computed { "yes" } else { "refused" };
        } else {
            assert!(!is_computed, "{server} does not have {call}");
        }
    }
    states
}

/// The names between commas, in as many rows of the table as they take.
fn lines(names: &[&str]) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for name in names {
        let name = format!("`{}`", name.replace('|', "\\|"));
        match lines.last_mut() {
            Some(line) if line.len() + name.len() < MAX_NAMES_BYTES => *line += &format!(", {name}"),
            _ => lines.push(name),
        }
    }
    lines
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_table_of_functions_says_what_is_computed() {
    let mut groups: Vec<(&str, ByState)> = Vec::new();
    let (mut known, mut computed) = ([0; 2], [0; 2]);
    for line in include_str!("functions.tsv").lines().filter(|line| !line.starts_with('#')) {
        let fields: Vec<&str> = line.split('\t').collect();
        let [group, names, call, servers] = fields[..] else { panic!("not four fields: {line}") };
        let states = states(call, servers).await;
        for (no, state) in states.iter().enumerate() {
            known[no] += usize::from(*state != "–");
            computed[no] += usize::from(*state == "yes");
        }
        if groups.last().is_none_or(|(last, _)| *last != group) {
            groups.push((group, BTreeMap::new()));
        }
        groups.last_mut().unwrap().1.entry(states).or_default().push(names);
    }
    let mut table = String::from("| functions | names | MySQL | MariaDB |\n|---|---|---|---|\n");
    for (group, by_state) in &groups {
        for ([mysql, mariadb], names) in by_state.iter().rev() {
            for names in lines(names) {
                table += &format!("| {group} | {names} | {mysql} | {mariadb} |\n");
            }
        }
    }
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/sql.md");
    let docs = std::fs::read_to_string(docs).unwrap();
    assert!(docs.contains(&table), "docs/sql.md has to have this table of functions:\n{table}");
    for (known, computed) in known.iter().zip(computed) {
        assert!(computed * 100 >= MIN_COMPUTED_PERCENT * known, "{computed} of {known} functions");
    }
}
