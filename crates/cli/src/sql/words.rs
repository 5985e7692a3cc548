//! What the Tab key offers in the shell: SQL words, and the tables and columns of the default database.

use std::collections::BTreeSet;

use datafusion::arrow::array::RecordBatch;
use tanada_query::Session;
use tokio::runtime::Handle;

const SQL_WORDS: [&str; 46] = [
    "and",
    "as",
    "asc",
    "between",
    "by",
    "case",
    "count",
    "cross",
    "desc",
    "describe",
    "distinct",
    "else",
    "end",
    "exists",
    "explain",
    "explain analyze",
    "from",
    "group by",
    "having",
    "in",
    "inner",
    "interval",
    "is",
    "join",
    "left",
    "like",
    "limit",
    "max",
    "min",
    "not",
    "null",
    "on",
    "or",
    "order by",
    "outer",
    "right",
    "select",
    "set",
    "show databases",
    "show tables",
    "sum",
    "then",
    "union",
    "use",
    "when",
    "where",
];

/// Words to complete; those of a database are read when Tab is first pressed in it.
pub struct Words {
    session: Session,
    handle: Handle,
    database: Option<String>,
    words: BTreeSet<String>,
}

impl Words {
    /// Words for `session`; reading names blocks on `handle`'s runtime.
    pub fn new(session: &Session, handle: Handle) -> Words {
        let words = SQL_WORDS.iter().map(|word| word.to_string()).collect();
        Words { session: session.clone(), handle, database: None, words }
    }

    /// Words that begin with `start`, case ignored.
    pub fn starting_with(&mut self, start: &str) -> Vec<String> {
        self.refresh();
        let start = start.to_lowercase();
        self.words.iter().filter(|word| word.to_lowercase().starts_with(&start)).cloned().collect()
    }

    fn refresh(&mut self) {
        let database = self.session.database();
        if database == self.database {
            return;
        }
        self.words = SQL_WORDS.iter().map(|word| word.to_string()).collect();
        if let Some(name) = &database {
            let literal = name.replace('\'', "''");
            let sql = format!(
                "select table_name, column_name from information_schema.columns where table_schema = '{literal}'"
            );
            // Completion is a courtesy: when names cannot be read, the words of SQL remain.
            if let Some(batches) = self.handle.block_on(rows(&self.session, &sql)) {
                self.words.extend(batches.iter().flat_map(names));
            }
        }
        self.database = database;
    }
}

async fn rows(session: &Session, sql: &str) -> Option<Vec<RecordBatch>> {
    session.execute(sql).await.ok()?.collect().await.ok()
}

fn names(batch: &RecordBatch) -> Vec<String> {
    let schema = batch.schema();
    let texts = schema
        .fields()
        .iter()
        .zip(batch.columns())
        .filter_map(|(field, array)| tanada_query::text::column_text(field, array).ok());
    texts.flatten().flatten().filter_map(|bytes| String::from_utf8(bytes).ok()).collect()
}
