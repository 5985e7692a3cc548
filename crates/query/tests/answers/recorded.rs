//! Queries whose answers a MariaDB 10.11 gave once, on files that the installed MariaDB makes now.
//!
//! `exceptions.tsv` lists queries that are not to be equal, each with its reason; `known.tsv` those that are not equal
//! yet.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};

use tanada_query::Session;

use crate::asking::{ask, mount};
use crate::known::{self, Differences};
use crate::printed::Answer;
use crate::server::{Kind, Server};
use crate::verdict::{Verdict, shown};

/// Complaints that are shown.
const MAX_SHOWN: usize = 40;
/// The database of the script with setup and queries.
const REPORTED: &str = "reported";

/// The recorder's server had this character set; the one of a server without a configuration is latin1.
const CHARSET: &str =
    "set names utf8mb4; set character_set_server = utf8mb4, collation_server = utf8mb4_general_ci;\n";

struct Recorded {
    category: String,
    database: String,
    sql: String,
    is_ordered: bool,
    answer: Answer,
}

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/answers").join(name)
}

fn unpacked(name: &str) -> String {
    let file = File::open(fixture(name)).unwrap_or_else(|error| panic!("{name}: {error}"));
    String::from_utf8(zstd::decode_all(file).unwrap()).unwrap()
}

/// The queries with an answer each.
fn queries() -> Vec<Recorded> {
    let text = |value: &serde_json::Value| value.as_str().unwrap().to_owned();
    let recorded = |line: &str| {
        let value: serde_json::Value = serde_json::from_str(line).unwrap();
        let answer = match value["server"][0].as_str().unwrap() {
            "ok" => Answer::of_text(value["server"][1].as_str().unwrap()),
            _ => Answer::Error(text(&value["server"][1])),
        };
        Recorded {
            category: text(&value["cat"]),
            database: text(&value["db"]),
            sql: text(&value["sql"]),
            is_ordered: value["ordered"].as_bool().unwrap(),
            answer,
        }
    };
    unpacked("queries.jsonl.zst").lines().map(recorded).chain(reported().1).collect()
}

/// The setup and the queries of the script rebuilt from public reports.
fn reported() -> (String, Vec<Recorded>) {
    let script = fs::read_to_string(fixture("reported.sql")).unwrap();
    let answers: serde_json::Value =
        serde_json::from_str(&fs::read_to_string(fixture("reported.expected.json")).unwrap()).unwrap();
    let mut parts = script.split("-- q ");
    let setup = parts.next().unwrap().to_owned();
    let recorded = |part: &str| {
        let (name, sql) = part.split_once('\n').unwrap();
        let answer = &answers[name];
        let rows = answer["out"].as_str().unwrap();
        let answer = match answer["rc"].as_i64().unwrap() {
            0 => Answer::of_text(&format!("\n{rows}")),
            _ => Answer::Error(answer["err"].as_str().unwrap().to_owned()),
        };
        let sql = sql.trim().trim_end_matches(';').to_owned();
        let is_ordered = sql.rsplit(')').next().unwrap().contains("order by");
        Recorded { category: "reported".to_owned(), database: REPORTED.to_owned(), sql, is_ordered, answer }
    };
    (setup, parts.map(recorded).collect())
}

/// Queries that are not to be equal, and why.
fn exceptions() -> BTreeMap<String, String> {
    let text = fs::read_to_string(known::path("exceptions.tsv")).unwrap();
    let lines = text.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    let pair = |line: &str| {
        let (reason, query) = line.split_once('\t').unwrap_or_else(|| panic!("no reason: {line}"));
        (query.to_owned(), reason.to_owned())
    };
    lines.map(pair).collect()
}

/// A data directory with all tables of the queries, left by a clean shutdown.
fn data_directory(folder: &Path) -> PathBuf {
    let server = Server::start(Kind::MariaDb, folder);
    let setup = format!("create database {REPORTED}; use {REPORTED}; {}", reported().0);
    for sql in [unpacked("app.sql.zst"), unpacked("txt.sql.zst"), setup] {
        let refusals = server.run(&format!("{CHARSET}{sql}")).refusals;
        assert!(refusals.is_empty(), "{refusals:?}");
    }
    server.stop(false)
}

/// One line of the table of results.
#[derive(Default)]
struct Counts([usize; 3]);

async fn compare_all(data: &Path) -> (Differences, Vec<String>) {
    let exceptions = exceptions();
    let mut used: Vec<&String> = Vec::new();
    let queries = queries();
    let mut sessions: BTreeMap<&str, Session> = BTreeMap::new();
    let (mut differences, mut details) = (Differences::new(), Vec::new());
    let mut counts: BTreeMap<&str, Counts> = BTreeMap::new();
    for query in &queries {
        if !sessions.contains_key(query.database.as_str()) {
            let session = mount(data, false).await;
            session.use_database(&query.database).unwrap();
            sessions.insert(&query.database, session);
        }
        let found = ask(&sessions[query.database.as_str()], &query.sql).await;
        let verdict = Verdict::of(&query.answer, &found, query.is_ordered);
        if let Some((listed, _)) = exceptions.get_key_value(&query.sql) {
            used.push(listed);
            continue;
        }
        counts.entry(&query.category).or_default().0[verdict as usize] += 1;
        if verdict != Verdict::Equal {
            let key = (query.database.clone(), query.sql.replace(['\n', '\t'], " "));
            differences.insert(key, verdict);
            details.push(format!(
                "{}: {}: {}\n{}",
                verdict.word(),
                query.category,
                query.sql,
                shown(&query.answer, &found)
            ));
        }
    }
    for (category, Counts([equal, refused, wrong])) in counts {
        eprintln!("{category:14} {equal:5} equal {refused:5} refused {wrong:5} wrong");
    }
    let unused: Vec<&String> = exceptions.keys().filter(|query| !used.contains(query)).collect();
    assert!(unused.is_empty(), "exceptions that no recorded query has: {unused:?}");
    (differences, details)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn recorded_queries_have_the_servers_answers() {
    let folder = tempfile::tempdir().unwrap();
    let data = data_directory(folder.path());
    let (differences, details) = compare_all(&data).await;
    let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join("answers-differences.txt");
    fs::write(&file, details.join("\n\n")).unwrap();
    let complaints = known::check("known.tsv", &differences);
    let shown = complaints.iter().take(MAX_SHOWN).cloned().collect::<Vec<_>>().join("\n");
    assert!(
        complaints.is_empty(),
        "{} queries (both answers of all that differ: {}):\n{shown}",
        complaints.len(),
        file.display()
    );
}
