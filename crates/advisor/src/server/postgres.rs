//! PostgreSQL, asked over a connection of its own.
//!
//! Where relations lie it tells itself (`pg_relation_filepath`); how long they are, their files say.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use futures::FutureExt;
use futures::future::BoxFuture;
use tokio_postgres::types::{FromSql, Type};
use tokio_postgres::{Client, Config, NoTls, SimpleQueryMessage};

use super::credentials::Target;
use crate::layout::heap;
use crate::{
    Error, FileLayout, FileReads, IndexPlaces, PlanSource, PlannedAccess, Result, RunningStatement,
    Statistics, plan,
};

/// A connection to one database of PostgreSQL.
#[derive(Debug, Clone)]
pub struct Postgres {
    client: Arc<Client>,
    data: PathBuf,
    block_bytes: u32,
}

impl Postgres {
    /// Connects. Files are looked for in `data`, where the server's data directory has another path here.
    ///
    /// # Errors
    /// If the server refuses, or does not tell its data directory.
    pub async fn connect(target: &Target, data: Option<&Path>) -> Result<Postgres> {
        let mut config = Config::new();
        config.user(target.user.as_deref().unwrap_or("postgres")).application_name("tanada advise");
        if let Some(password) = target.password.text() {
            config.password(password);
        }
        if let Some(database) = &target.database {
            config.dbname(database);
        }
        match (&target.socket, &target.address) {
            (Some(socket), _) => {
                config.host_path(socket);
            }
            (None, Some((host, port))) => {
                config.host(host).port(*port);
            }
            (None, None) => {}
        }
        let (client, connection) = config.connect(NoTls).await.map_err(said)?;
        // Its end is seen by whoever asks next.
        tokio::spawn(async move { connection.await.ok() });
        client
            .batch_execute("set default_transaction_read_only = on; set statement_timeout = '5s'; set lock_timeout = '2s'")
            .await
            .map_err(said)?;
        let row = client.query_one("select current_setting('block_size')", &[]).await.map_err(said)?;
        let block_bytes = row.get::<_, String>(0).parse().unwrap_or(8192);
        let data = match data {
            Some(data) => data.to_owned(),
            None => {
                let row = client.query_one("select current_setting('data_directory')", &[]).await;
                PathBuf::from(row.map_err(said)?.get::<_, String>(0))
            }
        };
        Ok(Postgres { client: Arc::new(client), data, block_bytes })
    }

    async fn explain(&self, statement: &str) -> Result<Vec<PlannedAccess>> {
        let statement = statement.trim().trim_end_matches(';');
        // Prepared, so it is one statement in any case: several at once could begin a transaction that writes.
        let explain = format!("explain (verbose, format json) {statement}");
        let row = self.client.query_one(&explain, &[]).await.map_err(said)?;
        let json: JsonText = row.try_get(0).map_err(said)?;
        plan::postgres::accesses(&json.0)
    }

    /// Runs a statement and counts its rows.
    ///
    /// # Errors
    /// The server's.
    pub async fn run(&self, statement: &str) -> Result<u64> {
        self.client
            .batch_execute(
                "set default_transaction_read_only = off; set statement_timeout = 0; set lock_timeout = 0",
            )
            .await
            .map_err(said)?;
        let answers = self.client.simple_query(statement).await.map_err(said)?;
        Ok(answers.iter().filter(|answer| matches!(answer, SimpleQueryMessage::Row(_))).count() as u64)
    }
}

/// The text of a value of the type `json`.
struct JsonText(String);

impl<'a> FromSql<'a> for JsonText {
    fn from_sql(
        _: &Type,
        raw: &'a [u8],
    ) -> std::result::Result<JsonText, Box<dyn std::error::Error + Sync + Send>> {
        Ok(JsonText(std::str::from_utf8(raw)?.to_owned()))
    }

    fn accepts(kind: &Type) -> bool {
        *kind == Type::JSON || *kind == Type::TEXT
    }
}

/// What the server said, with its reason.
fn said(error: tokio_postgres::Error) -> Error {
    match error.as_db_error() {
        Some(refused) => Error::server(refused.message()),
        None => Error::server(error),
    }
}

impl PlanSource for Postgres {
    fn accesses<'a>(
        &'a mut self,
        _database: Option<&'a str>,
        statement: &'a str,
    ) -> BoxFuture<'a, Result<Vec<PlannedAccess>>> {
        self.explain(statement).boxed()
    }
}

/// The paths of a relation and of its indexes.
const PATHS: &str = "
    select c.relname::text, c.relkind = 'i' or c.relkind = 'I', pg_relation_filepath(c.oid)::text
    from pg_class t join pg_namespace n on n.oid = t.relnamespace
    join pg_class c on c.oid = t.oid or c.oid in (select indexrelid from pg_index where indrelid = t.oid)
    where n.nspname = $1 and t.relname = $2 and pg_relation_filepath(c.oid) is not null";

impl FileLayout for Postgres {
    fn places<'a>(
        &'a mut self,
        database: &'a str,
        table: &'a str,
    ) -> BoxFuture<'a, Result<Vec<IndexPlaces>>> {
        async move {
            let rows = self.client.query(PATHS, &[&database, &table]).await.map_err(said)?;
            let mut found = Vec::new();
            for row in rows {
                let (name, is_index, path): (String, bool, String) = (row.get(0), row.get(1), row.get(2));
                let file = self.data.join(path);
                found.extend(heap::places(&file, &name, !is_index, self.block_bytes)?);
            }
            Ok(found)
        }
        .boxed()
    }

    fn forget(&mut self) {}
}

impl Statistics for Postgres {
    fn statements(&mut self) -> BoxFuture<'_, Result<Vec<RunningStatement>>> {
        async move {
            let statement = "select pid::int8, datname::text, query from pg_stat_activity \
                             where state = 'active' and pid <> pg_backend_pid() and datname = current_database()";
            let rows = self.client.query(statement, &[]).await.map_err(said)?;
            let of = |row: &tokio_postgres::Row| RunningStatement {
                connection: u64::try_from(row.get::<_, i64>(0)).unwrap_or(0),
                database: row.get(1),
                statement: row.get(2),
            };
            Ok(rows.iter().map(of).collect())
        }
        .boxed()
    }

    fn rows<'a>(&'a mut self, database: &'a str, table: &'a str) -> BoxFuture<'a, Result<Option<f64>>> {
        async move {
            let statement = "select c.reltuples::float8 from pg_class c join pg_namespace n on n.oid = c.relnamespace \
                             where n.nspname = $1 and c.relname = $2";
            let row = self.client.query_opt(statement, &[&database, &table]).await.map_err(said)?;
            // -1 where it was never analyzed.
            Ok(row.map(|row| row.get::<_, f64>(0)).filter(|rows| *rows >= 0.0))
        }
        .boxed()
    }

    fn file_reads(&mut self) -> BoxFuture<'_, Result<Vec<FileReads>>> {
        async move {
            let statement = "
                select pg_relation_filepath(relid)::text, heap_blks_read from pg_statio_user_tables
                where heap_blks_read > 0 and pg_relation_filepath(relid) is not null
                union all
                select pg_relation_filepath(indexrelid)::text, idx_blks_read from pg_statio_user_indexes
                where idx_blks_read > 0 and pg_relation_filepath(indexrelid) is not null";
            let rows = self.client.query(statement, &[]).await.map_err(said)?;
            let block_bytes = u64::from(self.block_bytes);
            let of = |row: &tokio_postgres::Row| {
                let reads = u64::try_from(row.get::<_, i64>(1)).unwrap_or(0);
                FileReads { file: self.data.join(row.get::<_, String>(0)), reads, bytes: reads * block_bytes }
            };
            Ok(rows.iter().map(of).collect())
        }
        .boxed()
    }
}
