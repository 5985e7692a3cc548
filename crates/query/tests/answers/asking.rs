//! Asking Tanada: every query in a task of its own, so that one that panics or does not end fails alone.

use std::path::Path;
use std::time::Duration;

use datafusion::arrow::record_batch::RecordBatch;
use tanada_innodb::MountOptions;
use tanada_io::Method;
use tanada_query::text::column_text;
use tanada_query::{Result, Session, SessionOptions};

use crate::printed::{Answer, field};

/// A query that lasts longer is given up.
const PATIENCE: Duration = Duration::from_secs(60);

/// Begins the error of a query that panicked or did not end: never taken for a refusal.
pub const FAULT: &str = "FAULT: ";

/// A session over a data directory, or over a folder of tables without its server's logs if `is_stale`.
pub async fn mount(folder: &Path, is_stale: bool) -> Session {
    let options = SessionOptions {
        executors: 2,
        method: Method::Threads,
        cache_bytes: 64 << 20,
        ..SessionOptions::default()
    };
    let session = Session::new(options).unwrap();
    let options = MountOptions { allow_stale: is_stale, ..MountOptions::default() };
    session.mount_innodb(folder, &options).await.unwrap();
    session
}

/// The answer to `sql`: that of its last statement that has one.
pub async fn ask(session: &Session, sql: &str) -> Answer {
    let (session, sql) = (session.clone(), sql.to_owned());
    let task = tokio::spawn(async move { run(&session, &sql).await });
    let abort = task.abort_handle();
    match tokio::time::timeout(PATIENCE, task).await {
        Ok(Ok(Ok(answer))) => answer,
        Ok(Ok(Err(error))) => Answer::Error(error.to_string()),
        Ok(Err(error)) => Answer::Error(format!("{FAULT}{error}")),
        Err(_) => {
            abort.abort();
            Answer::Error(format!("{FAULT}no end within {PATIENCE:?}"))
        }
    }
}

async fn run(session: &Session, sql: &str) -> Result<Answer> {
    let mut answer = Answer::of_text("");
    for statement in Session::split(sql)? {
        let mut result = session.execute(&statement).await?;
        let batches: Vec<RecordBatch> = result.collect().await?;
        let schema = result.schema();
        let mut rows = Vec::new();
        for batch in &batches {
            let columns = schema.fields().iter().zip(batch.columns());
            let columns = columns.map(|(of, array)| column_text(of, array)).collect::<Result<Vec<_>>>()?;
            for row in 0..batch.num_rows() {
                let fields: Vec<String> =
                    columns.iter().map(|column| field(column[row].as_deref())).collect();
                rows.push(fields.join("\t"));
            }
        }
        let names = schema.fields().iter().map(|of| field(Some(of.name().as_bytes())));
        let header = if rows.is_empty() { String::new() } else { names.collect::<Vec<_>>().join("\t") };
        answer = Answer::Rows { header, rows };
    }
    Ok(answer)
}
