//! Sessions over the samples.

use std::path::PathBuf;

use datafusion::arrow::record_batch::RecordBatch;
use tanada_innodb::MountOptions;
use tanada_io::Method;
use tanada_query::text::column_text;
use tanada_query::{QueryReport, Result, Session, SessionOptions};

use crate::fixtures::unpacked;

/// The servers whose files there are: folder of the data directory, archive.
pub const SERVERS: [(&str, &str); 2] =
    [("mysql-9.7", "tpch-sf0.02-mysql-9.7"), ("mariadb-10.11", "tpch-sf0.02-mariadb-10.11")];

/// Both execution modes.
pub const EXECUTIONS: [&str; 2] = ["out_of_order", "in_order"];

/// All ways to read files.
pub const METHODS: [Method; 4] = [Method::Uring, Method::Aio, Method::Threads, Method::Buffered];

/// A result: header, rows of fields (`None` is NULL), and what it cost.
#[derive(Debug)]
pub struct Answer {
    pub header: Vec<String>,
    pub rows: Vec<Vec<Option<String>>>,
    pub report: QueryReport,
}

/// The folder of a server's TPC-H data directory.
pub fn tpch_directory(server: (&str, &str)) -> PathBuf {
    unpacked(server.1).join(server.0)
}

/// A session with two executors and a small cache.
pub fn session(method: Method) -> Session {
    let options = SessionOptions { executors: 2, method, cache_bytes: 16 << 20, ..SessionOptions::default() };
    Session::new(options).unwrap()
}

/// A session over a server's data directory, with database `tpch`.
pub async fn tpch(server: (&str, &str), method: Method) -> Session {
    let session = session(method);
    session.mount_innodb(&tpch_directory(server), &MountOptions::default()).await.unwrap();
    session.use_database("tpch").unwrap();
    session
}

/// Mounts folders of the case tables, which come without their server's logs.
pub async fn mount_cases(session: &Session, server: &str) -> Vec<String> {
    let options = MountOptions { allow_stale: true, ..MountOptions::default() };
    let (databases, _) = session.mount_innodb(&unpacked("cases").join(server), &options).await.unwrap();
    databases
}

/// Runs a statement to its end.
pub async fn run(session: &Session, sql: &str) -> Result<Answer> {
    let mut result = session.execute(sql).await?;
    let batches: Vec<RecordBatch> = result.collect().await?;
    let schema = result.schema();
    let header = schema.fields().iter().map(|field| field.name().clone()).collect();
    let mut rows = Vec::new();
    for batch in &batches {
        let columns: Vec<Vec<Option<Vec<u8>>>> = schema
            .fields()
            .iter()
            .zip(batch.columns())
            .map(|(field, array)| column_text(field, array))
            .collect::<Result<_>>()?;
        let text =
            |field: &Option<Vec<u8>>| field.as_ref().map(|bytes| String::from_utf8_lossy(bytes).into_owned());
        rows.extend(
            (0..batch.num_rows())
                .map(|row| columns.iter().map(|column| text(&column[row])).collect::<Vec<_>>()),
        );
    }
    Ok(Answer { header, rows, report: result.report() })
}

/// One value.
pub async fn value(session: &Session, sql: &str) -> Option<String> {
    let answer = run(session, sql).await.unwrap_or_else(|error| panic!("{sql}: {error}"));
    assert_eq!((answer.rows.len(), answer.rows[0].len()), (1, 1), "{sql}");
    answer.rows[0][0].clone()
}
