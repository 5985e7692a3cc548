//! `make answers-slt DIR=...`: the files of a folder in the format of SQLite's sqllogictest.
//!
//! 1. A MariaDB runs a file's statements until queries follow, and writes its tables' pages.
//! 2. Tanada answers the queries on copies of the files. If more statements follow, it goes on with 1.
//! 3. What differs from the file is asked of the server: some files expect what only other servers answer.
//!
//! The public collection is no part of the project; without `TANADA_SLT` nothing is run.

mod script;
mod values;

use std::fs;
use std::path::{Path, PathBuf};

use tanada_query::Session;

use crate::asking::{FAULT, ask, mount};
use crate::printed::{Answer, ask_server};
use crate::server::{Kind, Server};
use crate::verdict::shown;
use script::{Query, Record, records};
use values::{is_expected, is_same};

const DATABASE: &str = "slt";

#[derive(Default)]
struct Counts {
    right: u64,
    wrong: u64,
    refused: u64,
    details: Vec<String>,
}

/// All `.test` files under a folder, sorted.
fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut found = Vec::new();
    for path in entries.map(|entry| entry.unwrap().path()) {
        if path.is_dir() {
            found.extend(files(&path));
        } else if path.extension().is_some_and(|end| end == "test") {
            found.push(path);
        }
    }
    found.sort();
    found
}

struct Runner {
    server: Server,
    folder: tempfile::TempDir,
    segments: u64,
}

impl Runner {
    /// Runs statements in the database.
    fn change(&self, statements: &[String]) {
        let text: String = statements.iter().map(|sql| format!("{sql}\n;\n")).collect();
        self.server.run(&format!("use {DATABASE};\n{text}"));
    }

    /// Tanada on copies of the tables as they are now.
    async fn session(&mut self) -> Session {
        let names = self.server.run(&format!(
            "select table_name from information_schema.tables where table_schema = '{DATABASE}' and table_type = 'BASE TABLE'"
        ));
        let names = String::from_utf8(names.answers).unwrap();
        let names: Vec<String> = names.lines().skip(1).map(|name| format!("`{name}`")).collect();
        if !names.is_empty() {
            self.server.run(&format!("use {DATABASE}; flush tables {} for export;", names.join(", ")));
        }
        let old = self.folder.path().join(format!("read{}", self.segments));
        // The session before still has it open; on Unix that keeps nothing.
        let _ = fs::remove_dir_all(old);
        self.segments += 1;
        let to = self.folder.path().join(format!("read{}", self.segments)).join(DATABASE);
        fs::create_dir_all(&to).unwrap();
        for entry in fs::read_dir(self.folder.path().join("data").join(DATABASE)).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_some_and(|end| end == "ibd" || end == "frm") {
                fs::copy(&path, to.join(path.file_name().unwrap())).unwrap();
            }
        }
        let session = mount(&to, true).await;
        session.use_database(DATABASE).unwrap();
        session
    }

    async fn query(&self, session: &Session, file: &Path, query: &Query, counts: &mut Counts) {
        let found = ask(session, &query.sql).await;
        match &found {
            Answer::Rows { rows, .. } if is_expected(query, rows) => {
                counts.right += 1;
                return;
            }
            _ => {}
        }
        // On one line: a client prints the line breaks of a header as they are.
        let sql = query.sql.replace('\n', " ");
        let server = ask_server(&self.server, DATABASE, &[sql]).remove(0);
        let verdict = match (&server, &found) {
            (_, Answer::Error(error)) if error.starts_with(FAULT) => &mut counts.wrong,
            (Answer::Error(_), Answer::Error(_)) => &mut counts.right,
            (_, Answer::Error(_)) => &mut counts.refused,
            _ if is_same(query, &server, &found) => &mut counts.right,
            _ => &mut counts.wrong,
        };
        *verdict += 1;
        let place = format!("{}:{}", file.display(), query.line);
        counts.details.push(format!("{place}\n{}\n{}", query.sql, shown(&server, &found)));
    }

    async fn file(&mut self, file: &Path, counts: &mut Counts) {
        let text = String::from_utf8_lossy(&fs::read(file).unwrap()).into_owned();
        // A folder without tables is no database's, and some files ask before they make any.
        self.server.run(&format!(
            "drop database if exists {DATABASE}; create database {DATABASE}; create table {DATABASE}.no_rows(a int);"
        ));
        let mut statements = Vec::new();
        let mut session = None;
        for record in records(&text) {
            match record {
                Record::Statement(sql) => {
                    statements.push(sql);
                    session = None;
                }
                Record::Query(query) => {
                    if session.is_none() {
                        self.change(&std::mem::take(&mut statements));
                        session = Some(self.session().await);
                    }
                    if let Some(session) = &session {
                        self.query(session, file, &query, counts).await;
                    }
                }
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn files_of_a_collection_have_the_servers_answers() {
    let Some(folder) = std::env::var_os("TANADA_SLT") else {
        eprintln!("not run: TANADA_SLT names no folder with files of sqllogictest");
        return;
    };
    let at = tempfile::tempdir().unwrap();
    let server = Server::start(Kind::MariaDb, at.path());
    let mut runner = Runner { server, folder: at, segments: 0 };
    let mut counts = Counts::default();
    for file in files(Path::new(&folder)) {
        let before = (counts.right, counts.wrong, counts.refused);
        runner.file(&file, &mut counts).await;
        let Counts { right, wrong, refused, .. } = counts;
        eprintln!(
            "{}: {} right, {} wrong, {} refused",
            file.display(),
            right - before.0,
            wrong - before.1,
            refused - before.2
        );
    }
    let details = Path::new(env!("CARGO_TARGET_TMPDIR")).join("answers-slt.txt");
    fs::write(&details, counts.details.join("\n\n")).unwrap();
    let Counts { right, wrong, refused, .. } = counts;
    let all = right + wrong + refused;
    eprintln!("{all} queries: {right} right, {wrong} wrong, {refused} refused; {}", details.display());
    assert!(all > 0, "no queries");
    assert_eq!(wrong, 0, "queries are wrong, see {}", details.display());
    assert!(right * 1000 >= all * 995, "{refused} of {all} queries are refused, see {}", details.display());
}
