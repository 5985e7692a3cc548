//! The SQL corpus: each file of `tests/corpus` over both servers' files, all I/O methods, both execution modes.
//!
//! Files are in the format of sqllogictest; labels are the server (`mysql`, `mariadb`) for what only one of them has.

use std::path::PathBuf;

use sqllogictest::{DBOutput, DefaultColumnType, Runner};
use tanada_innodb::MountOptions;
use tanada_io::Method;
use tanada_query::{Error, Session};

use crate::fixtures::unpacked;
use crate::sessions::{EXECUTIONS, METHODS, SERVERS, run, tpch};

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

fn files() -> Vec<PathBuf> {
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
        run(&session, &format!("set tanada.execution = '{execution}'")).await.unwrap();
        let mut runner = Runner::new(|| async { Ok(Connection(session.clone())) });
        runner.add_label(server.0.split('-').next().unwrap());
        for record in sqllogictest::parse_file(&file).unwrap() {
            if let Err(error) = runner.run_async(record).await {
                failures.push(format!("{} {method:?} {execution}: {}", server.0, error.display(false)));
            }
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn corpus_on_mysql() {
    for method in METHODS {
        for execution in EXECUTIONS {
            over_all_files(SERVERS[0], method, execution).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn corpus_on_mariadb() {
    for method in METHODS {
        for execution in EXECUTIONS {
            over_all_files(SERVERS[1], method, execution).await;
        }
    }
}
