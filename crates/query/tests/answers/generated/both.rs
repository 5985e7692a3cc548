//! A MariaDB with random databases, and Tanada on copies of its files: both can be asked at any time.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};

use futures::StreamExt;
use tanada_innodb::MountOptions;
use tanada_query::Session;
use tempfile::TempDir;

use super::loose::is_alike;
use super::node::Query;
use super::schema::{Database, Table};
use crate::asking::{ask, mount};
use crate::printed::{Answer, ask_server};
use crate::server::{Kind, Server};
use crate::verdict::Verdict;

/// Queries that Tanada is asked at once.
const AT_ONCE: usize = 2;

/// Both sides.
pub struct Both {
    server: Server,
    session: Session,
    folder: TempDir,
    /// Copies of databases with fewer rows.
    copies: AtomicU32,
}

/// A query with both answers.
pub struct Asked {
    pub query: Query,
    pub server: Answer,
    pub tanada: Answer,
    pub verdict: Verdict,
}

impl Both {
    /// Starts the server and makes the databases.
    pub async fn start(databases: &[Database]) -> Both {
        let folder = tempfile::tempdir().unwrap();
        let server = Server::start(Kind::MariaDb, folder.path());
        for database in databases {
            let refusals = server.run(&database.sql()).refusals;
            assert!(refusals.is_empty(), "{refusals:?}\n{}", database.sql());
        }
        for database in databases {
            let names: Vec<String> = database.tables.iter().map(|table| table.name.clone()).collect();
            export(&server, folder.path(), &database.name, &names);
        }
        let first = folder.path().join("read").join(&databases[0].name);
        let session = mount(&first, true).await;
        let options = MountOptions { allow_stale: true, ..MountOptions::default() };
        for database in &databases[1..] {
            let path = folder.path().join("read").join(&database.name);
            session.mount_innodb(&path, &options).await.unwrap();
        }
        session.use_database(&databases[0].name).unwrap();
        Both { server, session, folder, copies: AtomicU32::new(0) }
    }

    /// The folder with the tables' files.
    pub fn files(&self) -> std::path::PathBuf {
        self.folder.path().join("read")
    }

    /// Asks both.
    pub async fn ask(&self, database: &str, queries: Vec<Query>) -> Vec<Asked> {
        let texts: Vec<String> = queries.iter().map(ToString::to_string).collect();
        let servers = ask_server(&self.server, database, &texts);
        let asked = texts.iter().enumerate().map(async |(no, sql)| (no, ask(&self.session, sql).await));
        let answers: BTreeMap<usize, Answer> =
            futures::stream::iter(asked).buffer_unordered(AT_ONCE).collect().await;
        let both = queries.into_iter().zip(servers).zip(answers.into_values());
        both.map(|((query, server), tanada)| Asked::new(query, server, tanada)).collect()
    }

    /// A smaller query that is still wrong. At most `tries` queries are asked.
    pub async fn shrink(&self, database: &str, wrong: Asked, tries: usize) -> Asked {
        let (mut best, mut left) = (wrong, tries);
        let has_rows = |asked: &Asked| matches!(asked.server, Answer::Rows { .. });
        loop {
            let mut candidates = best.query.smaller();
            candidates.sort_by_cached_key(|query| query.to_string().len());
            candidates.truncate(left);
            left -= candidates.len();
            let is_useful =
                |asked: &Asked| asked.verdict == Verdict::Wrong && has_rows(asked) == has_rows(&best);
            let mut found = None;
            for some in candidates.chunks(25) {
                let asked = self.ask(database, some.to_vec()).await;
                found = asked.into_iter().find(&is_useful);
                if found.is_some() {
                    break;
                }
            }
            match found {
                Some(smaller) => best = smaller,
                None => return best,
            }
        }
    }
}

impl Both {
    /// Statements that make the tables of a wrong query with few rows, so that it still is wrong; both answers then.
    pub async fn shrink_rows(&self, database: &Database, wrong: &Asked, tries: usize) -> (String, Asked) {
        let sql = wrong.query.to_string();
        let is_used = |table: &&Table| sql.contains(&format!("{}.{} ", database.name, table.name));
        let used: Vec<&Table> = database.tables.iter().filter(is_used).collect();
        let mut rows: Vec<(usize, usize)> = Vec::new();
        for (no, table) in used.iter().enumerate() {
            rows.extend((0..table.count()).map(|row| (no, row)));
        }
        let mut best = None;
        let mut part = rows.len().div_ceil(2);
        let (mut at, mut left) = (0, tries);
        while part > 0 && left > 0 {
            if at >= rows.len() {
                (part, at) = (if part == 1 { 0 } else { part.div_ceil(2) }, 0);
                continue;
            }
            left -= 1;
            let mut fewer = rows.clone();
            fewer.drain(at..(at + part).min(rows.len()));
            let name = format!("{}_{}", database.name, self.copies.fetch_add(1, Ordering::Relaxed));
            let tables: String = used
                .iter()
                .enumerate()
                .map(|(no, table)| table.sql(|row| fewer.contains(&(no, row))))
                .collect();
            match self.ask_copy(database, &name, &tables, wrong).await {
                Some(asked) if asked.verdict == Verdict::Wrong => {
                    rows = fewer;
                    best = Some((tables, asked));
                }
                _ => at += part,
            }
        }
        best.unwrap_or_else(|| (used.iter().map(|table| table.sql(|_| true)).collect(), wrong.again()))
    }

    /// Asks a query over a database `name` with other rows.
    async fn ask_copy(&self, of: &Database, name: &str, tables: &str, asked: &Asked) -> Option<Asked> {
        let made = self.server.run(&format!("create database {name}; use {name};\n{tables}"));
        if !made.refusals.is_empty() {
            return None;
        }
        let names: Vec<String> = of.tables.iter().map(|table| table.name.clone()).collect();
        let names: Vec<String> =
            names.into_iter().filter(|table| tables.contains(&format!("create table {table}("))).collect();
        export(&self.server, self.folder.path(), name, &names);
        let path = self.folder.path().join("read").join(name);
        let options = MountOptions { allow_stale: true, ..MountOptions::default() };
        self.session.mount_innodb(&path, &options).await.ok()?;
        let sql = asked.query.to_string().replace(&format!("{}.t", of.name), &format!("{name}.t"));
        let server = ask_server(&self.server, name, std::slice::from_ref(&sql)).remove(0);
        let tanada = ask(&self.session, &sql).await;
        Some(Asked::new(asked.query.clone(), server, tanada))
    }
}

impl Asked {
    fn again(&self) -> Asked {
        Asked::new(self.query.clone(), self.server.clone(), self.tanada.clone())
    }

    fn new(query: Query, server: Answer, tanada: Answer) -> Asked {
        let exact = Verdict::of(&server, &tanada, query.is_ordered());
        let is_alike = exact == Verdict::Wrong && is_alike(&query.to_string(), &server, &tanada);
        let verdict = if is_alike { Verdict::Equal } else { exact };
        Asked { query, server, tanada, verdict }
    }
}

/// Has the server write all pages of a database and copies its files.
fn export(server: &Server, folder: &Path, database: &str, tables: &[String]) {
    let names: Vec<String> = tables.iter().map(|table| format!("{database}.{table}")).collect();
    if !names.is_empty() {
        let refusals = server.run(&format!("flush tables {} for export;", names.join(", "))).refusals;
        assert!(refusals.is_empty(), "{refusals:?}");
    }
    let to = folder.join("read").join(database);
    fs::create_dir_all(&to).unwrap();
    for entry in fs::read_dir(folder.join("data").join(database)).unwrap() {
        let entry = entry.unwrap();
        if entry.path().extension().is_some_and(|end| end == "ibd" || end == "frm") {
            fs::copy(entry.path(), to.join(entry.file_name())).unwrap();
        }
    }
}
