//! The SQL corpus: each file of `tests/corpus` over both servers' files, all I/O methods, both execution modes.
//!
//! Files are in the format of sqllogictest; labels are the server (`mysql`, `mariadb`) for what only one of them has.

use std::path::{Path, PathBuf};

use sqllogictest::{DBOutput, DefaultColumnType, Runner};
use tanada_innodb::MountOptions;
use tanada_io::Method;
use tanada_query::{Error, Session};

use crate::fixtures::unpacked;
use crate::sessions::{EXECUTIONS, METHODS, SERVERS, run, session, tpch, tpch_directory};
use crate::volumes::{Way, volume_with};

struct Connection(Session);

#[async_trait::async_trait]
impl sqllogictest::AsyncDB for Connection {
    type Error = Error;
    type ColumnType = DefaultColumnType;

    async fn run(&mut self, sql: &str) -> Result<DBOutput<DefaultColumnType>, Error> {
        let answer = run(&self.0, sql).await?;
        if answer.header.is_empty() {
            return Ok(DBOutput::StatementComplete(0));
        }
        let shown = |field: Option<String>| match field {
            None => "NULL".to_string(),
            Some(text) if text.is_empty() => "(empty)".to_string(),
            Some(text) => text,
        };
        let types = vec![DefaultColumnType::Any; answer.header.len()];
        let rows = answer.rows.into_iter().map(|row| row.into_iter().map(shown).collect()).collect();
        Ok(DBOutput::Rows { types, rows })
    }

    async fn shutdown(&mut self) {}

    fn engine_name(&self) -> &str {
        "tanada"
    }
}

pub fn files() -> Vec<PathBuf> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/corpus");
    let mut files: Vec<PathBuf> =
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    assert!(files.len() >= 5, "{files:?}");
    files
}

async fn over_all_files(server: (&'static str, &'static str), method: Method, execution: &str) {
    let mut failures = Vec::new();
    for file in files() {
        let session = tpch(server, method).await;
        let options = MountOptions { allow_stale: true, ..MountOptions::default() };
        let cases = unpacked("cases").join(server.0).join("c_dynamic");
        session.mount_innodb(&cases, &options).await.unwrap();
        failures.extend(run_file(&session, &file, server.0, execution).await);
    }
    assert!(failures.is_empty(), "{method:?}: {}", failures.join("\n"));
}

/// The same over a volume that has both folders, adopted or imported.
async fn over_a_volume(server: (&'static str, &'static str), way: Way, execution: &str) {
    let cases = unpacked("cases").join(server.0).join("c_dynamic");
    let folder = volume_with(&[("data", tpch_directory(server)), ("c_dynamic", cases)], way).await;
    let mut failures = Vec::new();
    for file in files() {
        let session = session(Method::Uring);
        let options = MountOptions { allow_stale: true, ..MountOptions::default() };
        session.mount_volume(folder.path(), &options).await.unwrap();
        session.use_database("tpch").unwrap();
        failures.extend(run_file(&session, &file, server.0, execution).await);
        session.close().await.unwrap();
    }
    assert!(failures.is_empty(), "{way:?}: {}", failures.join("\n"));
}

/// What of `file` gives other answers.
pub async fn run_file(session: &Session, file: &Path, server: &str, execution: &str) -> Vec<String> {
    run(session, &format!("set tanada.execution = '{execution}'")).await.unwrap();
    let mut runner = Runner::new(|| async { Ok(Connection(session.clone())) });
    runner.add_label(server.split('-').next().unwrap());
    let mut failures = Vec::new();
    for record in sqllogictest::parse_file(file).unwrap() {
        if let Err(error) = runner.run_async(record).await {
            failures.push(format!("{server} {execution}: {}", error.display(false)));
        }
    }
    failures
}

/// Both orders of execution by the first method, and one of them by each other method.
fn ways() -> impl Iterator<Item = (Method, &'static str)> {
    let first = EXECUTIONS.iter().map(|execution| (METHODS[0], *execution));
    first.chain(METHODS[1..].iter().copied().zip(EXECUTIONS.into_iter().cycle()))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn corpus_on_mysql() {
    for (method, execution) in ways() {
        over_all_files(SERVERS[0], method, execution).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn corpus_on_mariadb() {
    for (method, execution) in ways() {
        over_all_files(SERVERS[1], method, execution).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn corpus_on_adopted_files() {
    over_a_volume(SERVERS[0], Way::Adopt, EXECUTIONS[0]).await;
    over_a_volume(SERVERS[1], Way::Adopt, EXECUTIONS[1]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn corpus_on_imported_files() {
    over_a_volume(SERVERS[1], Way::Import, EXECUTIONS[0]).await;
}
