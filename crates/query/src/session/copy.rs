//! `COPY (SELECT ...) TO 'file'`: a query whose rows become a file.

use std::sync::Arc;

use datafusion::common::Result as DataFusionResult;
use datafusion::execution::SendableRecordBatchStream;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::sql::parser::{CopyToSource, Statement};
use datafusion::sql::sqlparser::ast::Value;
use datafusion::sql::sqlparser::tokenizer::Token;
use futures::StreamExt;

use super::context::QueryContext;
use super::{QueryResult, Session, answer, dialect};
use crate::copy::{CopyOptions, FileWriter};
use crate::store::FileStore;
use crate::{Error, ErrorKind, Result};

/// What a COPY says.
#[derive(Debug)]
pub(super) struct Copy {
    /// The query.
    pub(super) sql: String,
    target: String,
    options: CopyOptions,
}

/// Reads a COPY.
///
/// # Errors
/// If it is none, or has clauses or options that are not known.
pub(super) fn read(sql: &str, tokens: &[Token]) -> Result<Copy> {
    let Statement::CopyTo(copy) = dialect::parse(sql)? else {
        return Err(Error::new(ErrorKind::InvalidInput, "write COPY (SELECT ...) TO 'file.parquet'"));
    };
    if !copy.partitioned_by.is_empty() {
        return Err(Error::new(
            ErrorKind::Unsupported,
            "PARTITIONED BY of COPY is not supported; one COPY writes one file",
        ));
    }
    let options: Vec<(String, String)> =
        copy.options.iter().map(|(key, value)| (key.clone(), option_text(value))).collect();
    let options = CopyOptions::new(copy.stored_as.as_deref(), &copy.target, &options)?;
    let sql = match &copy.source {
        CopyToSource::Relation(name) => format!("SELECT * FROM {name}"),
        CopyToSource::Query(_) => in_parentheses(tokens),
    };
    Ok(Copy { sql, target: copy.target, options })
}

pub(super) fn option_text(value: &Value) -> String {
    match value {
        Value::SingleQuotedString(text) | Value::DoubleQuotedString(text) => text.clone(),
        Value::EscapedStringLiteral(text) | Value::Number(text, _) => text.clone(),
        other => other.to_string(),
    }
}

/// The text between the first parenthesis and its end, as it was written: names of columns are made of it.
fn in_parentheses(tokens: &[Token]) -> String {
    let mut depth = 0_usize;
    let mut text = String::new();
    for token in tokens {
        match token {
            Token::LParen => depth += 1,
            Token::RParen if depth == 1 => break,
            Token::RParen => depth = depth.saturating_sub(1),
            _ => {}
        }
        let is_first = depth == 1 && text.is_empty() && matches!(token, Token::LParen);
        if depth > 0 && !is_first {
            text.push_str(&token.to_string());
        }
    }
    text
}

impl Session {
    /// Makes a file of a running query; its rows are one row that says what was written.
    pub(super) async fn copied(
        &self,
        copy: Copy,
        result: QueryResult,
        context: &Arc<QueryContext>,
    ) -> Result<QueryResult> {
        let (medium, name) = self.location(&copy.target)?;
        let shown = medium.shown(&name);
        let executors = &self.shared.environment.executors;
        let store = FileStore::new(medium, Arc::clone(executors), context.io().for_operator(0));
        let schema = result.schema();
        let writer = FileWriter::new(&copy.options.format, &schema)?;
        let overwrites = copy.options.overwrites;
        // Now, so that nothing is read if there is no place for it.
        let upload = store.create(&name, overwrites).await?;
        let header = answer::copied(0, 0, &shown)?.schema();
        Ok(result.into_one_row(header, move |rows| async move {
            let mut rows: SendableRecordBatchStream = rows;
            let (mut upload, mut writer, mut count) = (upload, writer, 0u64);
            while let Some(batch) = rows.next().await {
                let batch = batch?;
                count += batch.num_rows() as u64;
                upload.append(&writer.write(&batch)?).await?;
            }
            upload.append(&writer.finish(&schema)?).await?;
            let bytes = upload.commit().await?;
            let done: DataFusionResult<_> = Ok(answer::copied(count, bytes, &shown)?);
            done
        }))
    }
}

impl QueryResult {
    /// The same query, whose stream is the one batch that is made of its rows.
    fn into_one_row<F, M>(self, schema: datafusion::arrow::datatypes::SchemaRef, make: M) -> QueryResult
    where
        M: FnOnce(SendableRecordBatchStream) -> F + Send + 'static,
        F: Future<Output = DataFusionResult<datafusion::arrow::record_batch::RecordBatch>> + Send + 'static,
    {
        self.map_stream(move |rows| {
            let batch = futures::stream::once(async move { make(rows).await });
            Box::pin(RecordBatchStreamAdapter::new(schema, batch))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::tokens;
    use super::*;

    fn copy(sql: &str) -> Result<Copy> {
        read(sql, &tokens(sql)?)
    }

    #[test]
    fn the_query_is_what_stands_in_parentheses() {
        let read =
            copy("copy (select f((1)) as `a)`, ')' from t) to 'x.csv' options (overwrite true)").unwrap();
        assert_eq!((read.sql.as_str(), read.target.as_str()), ("select f((1)) as `a)`, ')' from t", "x.csv"));
        assert!(read.options.overwrites);
        assert_eq!(copy("copy d.t to 'x.parquet'").unwrap().sql, "SELECT * FROM d.t");
        for wrong in [
            "copy t",
            "copy t to 'x'",
            "copy t to 'x.csv' partitioned by (a)",
            "copy t to 'x.csv' options (a 1)",
        ] {
            assert!(copy(wrong).is_err(), "{wrong}");
        }
    }
}
