//! MySQL and MariaDB, asked over a connection of their own.
//!
//! 1. The session is read only, so that nothing that is explained can change data, and gives up after some seconds.
//!    Writes are explained in a transaction that is rolled back.
//! 2. MySQL is asked for JSON format 1, which tells partitions and constant tables; where it refuses, for format 2.
//! 3. What names stand for is in the note that the server leaves beside its answer; MariaDB leaves one beside
//!    `EXPLAIN EXTENDED` alone.

use std::path::PathBuf;

use futures::FutureExt;
use futures::future::BoxFuture;
use mysql_async::prelude::Queryable;
use mysql_async::{Conn, OptsBuilder, Row};

use super::credentials::Target;
use crate::{
    Error, FileReads, PlanSource, PlannedAccess, Result, RunningStatement, Statistics, normalized, plan,
};

/// Sets the session up; each where the server knows it.
const SETTINGS: [&str; 5] = [
    "set session transaction read only",
    "set session max_execution_time = 5000",
    "set session max_statement_time = 5",
    "set session lock_wait_timeout = 2",
    "set session explain_json_format_version = 1",
];

/// A connection to MySQL or MariaDB.
#[derive(Debug)]
pub struct MySql {
    connection: Conn,
    database: Option<String>,
    is_mariadb: bool,
    data: PathBuf,
}

impl MySql {
    /// Connects.
    ///
    /// # Errors
    /// If the server refuses.
    pub async fn connect(target: &Target) -> Result<MySql> {
        let mut options = OptsBuilder::default()
            .user(target.user.clone())
            .pass(target.password.text().map(str::to_owned))
            .db_name(target.database.clone())
            .prefer_socket(false)
            .stmt_cache_size(0)
            .tcp_nodelay(true);
        options = match (&target.socket, &target.address) {
            (Some(socket), _) => options.socket(Some(socket.display().to_string())),
            (None, Some((host, port))) => options.ip_or_hostname(host.clone()).tcp_port(*port),
            (None, None) => options,
        };
        let mut connection = Conn::new(options).await.map_err(Error::server)?;
        for setting in SETTINGS {
            // MySQL and MariaDB each know some of them.
            let _ = connection.query_drop(setting).await;
        }
        let facts: Option<(String, String)> =
            connection.query_first("select @@version, @@datadir").await.map_err(Error::server)?;
        let (version, data) = facts.ok_or_else(|| Error::protocol("the server has no version"))?;
        Ok(MySql {
            connection,
            database: target.database.clone(),
            is_mariadb: version.to_lowercase().contains("mariadb"),
            data: data.into(),
        })
    }

    /// The server's data directory, as the server sees it.
    pub fn data_directory(&self) -> &std::path::Path {
        &self.data
    }

    async fn enter(&mut self, database: Option<&str>) -> Result<()> {
        if let Some(database) = database.filter(|database| self.database.as_deref() != Some(*database)) {
            let quoted = database.replace('`', "``");
            self.connection.query_drop(format!("use `{quoted}`")).await.map_err(Error::server)?;
            self.database = Some(database.to_owned());
        }
        Ok(())
    }

    /// The first value of the answer to a statement.
    async fn value(&mut self, statement: &str) -> Result<String> {
        let row: Option<Row> = self.connection.query_first(statement).await.map_err(Error::server)?;
        let value = row.and_then(|mut row| row.take_opt::<String, _>(0)).and_then(std::result::Result::ok);
        value.ok_or_else(|| Error::protocol("the server's EXPLAIN is empty"))
    }

    /// The statement as the server rewrote it for the `EXPLAIN` before.
    async fn rewritten(&mut self) -> String {
        let rows: Vec<(String, u32, String)> =
            self.connection.query("show warnings").await.unwrap_or_default();
        let notes = rows.into_iter().filter(|(_, code, _)| *code == 1003).map(|(_, _, text)| text);
        notes.collect::<Vec<_>>().join("\n")
    }

    async fn explain(&mut self, database: Option<&str>, statement: &str) -> Result<Vec<PlannedAccess>> {
        self.enter(database).await?;
        let statement = statement.trim().trim_end_matches(';');
        let first = normalized(statement.get(..64).unwrap_or(statement));
        let writes = ["update", "delete", "insert", "replace"].iter().any(|verb| first.starts_with(verb));
        if !writes {
            return self.explain_here(statement).await;
        }
        // A session that may only read explains no writes either.
        for begin in ["set session transaction read write", "start transaction"] {
            self.connection.query_drop(begin).await.map_err(Error::server)?;
        }
        let explained = self.explain_here(statement).await;
        for end in ["rollback", "set session transaction read only"] {
            self.connection.query_drop(end).await.map_err(Error::server)?;
        }
        explained
    }

    async fn explain_here(&mut self, statement: &str) -> Result<Vec<PlannedAccess>> {
        let answer = self.value(&format!("explain format=json {statement}")).await;
        let own = self.database.clone();
        if self.is_mariadb {
            let answer = answer?;
            let extended: std::result::Result<Vec<Row>, _> =
                self.connection.query(format!("explain extended {statement}")).await;
            let rewritten = if extended.is_ok() { self.rewritten().await } else { String::new() };
            return plan::mysql(&answer, &rewritten, own.as_deref());
        }
        match answer {
            Ok(answer) => {
                let rewritten = self.rewritten().await;
                plan::mysql(&answer, &rewritten, own.as_deref())
            }
            // The hypergraph optimizer knows format 2 alone.
            Err(refused) => {
                let changed = self.connection.query_drop("set session explain_json_format_version = 2").await;
                if changed.is_err() {
                    return Err(refused);
                }
                let answer = self.value(&format!("explain format=json {statement}")).await;
                let _ = self.connection.query_drop("set session explain_json_format_version = 1").await;
                plan::mysql(&answer?, "", own.as_deref())
            }
        }
    }

    /// Runs a statement and counts its rows.
    ///
    /// # Errors
    /// The server's.
    pub async fn run(&mut self, statement: &str) -> Result<u64> {
        self.connection.query_drop("set session transaction read write").await.map_err(Error::server)?;
        for unlimited in ["set session max_execution_time = 0", "set session max_statement_time = 0"] {
            let _ = self.connection.query_drop(unlimited).await;
        }
        let mut result = self.connection.query_iter(statement).await.map_err(Error::server)?;
        let mut rows = 0;
        result.for_each(|_| rows += 1).await.map_err(Error::server)?;
        result.drop_result().await.map_err(Error::server)?;
        Ok(rows)
    }
}

impl PlanSource for MySql {
    fn accesses<'a>(
        &'a mut self,
        database: Option<&'a str>,
        statement: &'a str,
    ) -> BoxFuture<'a, Result<Vec<PlannedAccess>>> {
        self.explain(database, statement).boxed()
    }
}

/// What other connections run: MySQL,
const STATEMENTS_OF_MYSQL: &str = "select id, db, info from performance_schema.processlist \
     where command in ('Query', 'Execute') and info is not null and id <> connection_id()";
/// and MariaDB.
const STATEMENTS_OF_MARIADB: &str = "select id, db, info from information_schema.processlist \
     where command in ('Query', 'Execute') and info is not null and id <> connection_id()";

impl Statistics for MySql {
    fn statements(&mut self) -> BoxFuture<'_, Result<Vec<RunningStatement>>> {
        async move {
            let query = if self.is_mariadb { STATEMENTS_OF_MARIADB } else { STATEMENTS_OF_MYSQL };
            let rows: Vec<(u64, Option<String>, String)> =
                self.connection.query(query).await.map_err(Error::server)?;
            let of = |(connection, database, statement)| RunningStatement { connection, database, statement };
            Ok(rows.into_iter().map(of).collect())
        }
        .boxed()
    }

    fn rows<'a>(&'a mut self, database: &'a str, table: &'a str) -> BoxFuture<'a, Result<Option<f64>>> {
        async move {
            let statement = "select cast(table_rows as double) from information_schema.tables \
                             where table_schema = ? and table_name = ?";
            let rows: Option<Option<f64>> =
                self.connection.exec_first(statement, (database, table)).await.map_err(Error::server)?;
            Ok(rows.flatten())
        }
        .boxed()
    }

    fn file_reads(&mut self) -> BoxFuture<'_, Result<Vec<FileReads>>> {
        async move {
            let statement = "select file_name, cast(count_read as unsigned), cast(sum_number_of_bytes_read as unsigned) \
                             from performance_schema.file_summary_by_instance \
                             where event_name = 'wait/io/file/innodb/innodb_data_file' and count_read > 0";
            let rows: Vec<(String, u64, u64)> = self.connection.query(statement).await.map_err(Error::server)?;
            let of = |(file, reads, bytes): (String, u64, u64)| {
                let file = PathBuf::from(file);
                let file = if file.is_absolute() { file } else { self.data.join(file) };
                FileReads { file, reads, bytes }
            };
            Ok(rows.into_iter().map(of).collect())
        }
        .boxed()
    }
}
