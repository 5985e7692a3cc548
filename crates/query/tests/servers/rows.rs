//! Tanada's rows, as it prints them.

use std::path::Path;

use datafusion::arrow::record_batch::RecordBatch;
use tanada_innodb::MountOptions;
use tanada_io::Method;
use tanada_query::text::column_text;
use tanada_query::{Result, Session, SessionOptions};

use crate::answers::{Answer, Row};

/// A session over a data directory. One without its server's logs is said to be stale.
pub async fn mount(folder: &Path, allow_stale: bool) -> Session {
    let options = SessionOptions {
        executors: 2,
        method: Method::Threads,
        cache_bytes: 64 << 20,
        ..SessionOptions::default()
    };
    let session = Session::new(options).unwrap();
    let options = MountOptions { allow_stale, ..MountOptions::default() };
    session.mount_innodb(folder, &options).await.unwrap();
    session
}

/// Runs a query to its end.
pub async fn run(session: &Session, sql: &str) -> Result<Answer> {
    let mut result = session.execute(sql).await?;
    let batches: Vec<RecordBatch> = result.collect().await?;
    let schema = result.schema();
    let header = schema.fields().iter().map(|field| field.name().clone()).collect();
    let mut rows: Vec<Row> = Vec::new();
    for batch in &batches {
        let columns = schema.fields().iter().zip(batch.columns());
        let columns: Vec<Row> =
            columns.map(|(field, array)| column_text(field, array)).collect::<Result<_>>()?;
        rows.extend(
            (0..batch.num_rows()).map(|row| columns.iter().map(|column| column[row].clone()).collect()),
        );
    }
    Ok(Answer { header, rows })
}

/// Rows as `--batch` prints them.
pub fn printed(rows: &[Vec<Option<Vec<u8>>>]) -> Vec<String> {
    let field = |value: &Option<Vec<u8>>| match value {
        None => "NULL".to_owned(),
        Some(bytes) => String::from_utf8_lossy(bytes).replace('\\', "\\\\").replace('\n', "\\n"),
    };
    rows.iter().map(|row| row.iter().map(field).collect::<Vec<_>>().join("\t")).collect()
}
