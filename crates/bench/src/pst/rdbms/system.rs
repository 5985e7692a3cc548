//! The systems that take part: how they are made, started, asked and stopped. None of them is changed.

use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::str::FromStr;

use mysql_async::prelude::Queryable;
use mysql_async::{Conn, Row, Value};
use rustix::process::{Pid, Signal, kill_process};
use serde::Serialize;
use tokio_postgres::{Config, NoTls, SimpleQueryMessage};

use crate::process::Process;
use crate::server::{self, Server as MariaDbServer};
use crate::{Error, Result};

/// The database of the tables in the servers.
pub(super) const DATABASE: &str = "tpch";

/// Smallest buffer pool that MariaDB takes.
const MIN_POOL_BYTES: u64 = 6 << 20;

/// The cache while the rows are loaded.
const LOADING_POOL_BYTES: u64 = 256 << 20;

/// Where PostgreSQL's programs lie, the newest first.
const POSTGRES_PROGRAMS: [&str; 4] = [
    "/usr/lib/postgresql/18/bin",
    "/usr/lib/postgresql/17/bin",
    "/usr/lib/postgresql/16/bin",
    "/usr/lib/postgresql/15/bin",
];

/// A system.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Rdbms {
    /// MariaDB.
    MariaDb,
    /// PostgreSQL.
    Postgres,
}

impl FromStr for Rdbms {
    type Err = String;

    fn from_str(name: &str) -> std::result::Result<Rdbms, String> {
        match name {
            "mariadb" => Ok(Rdbms::MariaDb),
            "postgres" => Ok(Rdbms::Postgres),
            other => Err(format!("{other:?} is neither mariadb nor postgres")),
        }
    }
}

impl Rdbms {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Rdbms::MariaDb => "mariadb",
            Rdbms::Postgres => "postgres",
        }
    }
}

/// A system with what it takes to run it here.
#[derive(Debug, Clone)]
pub(super) struct System {
    pub(super) rdbms: Rdbms,
    /// Bytes of its own cache.
    pub(super) pool_bytes: u64,
    /// User and group of PostgreSQL, which refuses to run as root.
    user: Option<(u32, u32)>,
    programs: PathBuf,
}

impl System {
    /// The system as it is installed.
    pub(super) fn find(rdbms: Rdbms) -> Result<System> {
        let mut system =
            System { rdbms, pool_bytes: LOADING_POOL_BYTES, user: None, programs: PathBuf::new() };
        if rdbms == Rdbms::Postgres {
            let found = POSTGRES_PROGRAMS.iter().map(PathBuf::from).find(|path| path.exists());
            let missing = || {
                let why = std::io::ErrorKind::NotFound.into();
                Error::program("postgres", "postgresql", &why)
            };
            system.programs = found.ok_or_else(missing)?;
            if is_root() {
                system.user = user("postgres").or_else(|| user("nobody"));
            }
        }
        Ok(system)
    }

    /// Gives a folder to the user of the server.
    pub(super) fn own(&self, folder: &Path) -> Result<()> {
        let Some((user, group)) = self.user else { return Ok(()) };
        std::os::unix::fs::chown(folder, Some(user), Some(group))
            .map_err(|error| Error::at_path("change the owner of", folder, &error))
    }

    /// Makes an empty data directory.
    pub(super) fn install(&self, data: &Path) -> Result<()> {
        if self.rdbms == Rdbms::MariaDb {
            return server::install(data, &[LOG_SIZE.to_owned()]);
        }
        let mut initdb = self.command("initdb", data.parent().unwrap_or(data));
        initdb.arg("-D").arg(data).args(["-U", "postgres", "--auth=trust", "--locale=C", "--encoding=UTF8"]);
        let output = initdb.stdin(Stdio::null()).output();
        let output = output.map_err(|error| Error::program("initdb", "postgresql", &error))?;
        if output.status.success() {
            return Ok(());
        }
        Err(Error::failed(format!("initdb failed: {}", String::from_utf8_lossy(&output.stderr).trim())))
    }

    fn command(&self, name: &str, folder: &Path) -> Command {
        let mut command = Command::new(self.programs.join(name));
        if let Some((user, group)) = self.user {
            command.uid(user).gid(group);
        }
        command.current_dir(folder);
        command
    }

    /// Starts the server on a data directory; its socket and log lie in `beside`.
    pub(super) async fn start(&self, data: &Path, beside: &Path) -> Result<Server> {
        match self.rdbms {
            Rdbms::MariaDb => {
                let pool = self.pool_bytes.max(MIN_POOL_BYTES);
                let mut settings = vec![format!("--innodb-buffer-pool-size={pool}"), LOG_SIZE.to_owned()];
                // Files of statements are no part of the volume, and estimates do not change under way.
                settings.push(format!("--tmpdir={}", beside.display()));
                settings.extend(
                    ["--innodb-flush-method=O_DIRECT", "--innodb-stats-auto-recalc=OFF"].map(str::to_owned),
                );
                Ok(Server::MariaDb(MariaDbServer::start(data, beside, &settings).await?))
            }
            Rdbms::Postgres => {
                let mut command = self.command("postgres", beside);
                command.arg("-D").arg(data).arg("-k").arg(beside);
                command.args(["-c", "listen_addresses=", "-c", "autovacuum=off", "-c", "jit=off"]);
                // One stream of reads, as in MySQL.
                command.args(["-c", "max_parallel_workers_per_gather=0"]);
                command.arg("-c").arg(format!("shared_buffers={}kB", (self.pool_bytes >> 10).max(128)));
                let log = beside.join("log");
                let mut process = Process::start(command, "postgres", "postgresql", &log)?;
                process.until(async || connect_postgres(beside, "postgres").await.is_ok()).await?;
                Ok(Server::Postgres { process, folder: beside.to_owned() })
            }
        }
    }
}

/// A small redo log: it is written when a server starts.
const LOG_SIZE: &str = "--innodb-log-file-size=16777216";

fn is_root() -> bool {
    std::fs::metadata("/proc/self").is_ok_and(|own| std::os::unix::fs::MetadataExt::uid(&own) == 0)
}

/// User and group of that name.
fn user(name: &str) -> Option<(u32, u32)> {
    let table = std::fs::read_to_string("/etc/passwd").ok()?;
    let line = table.lines().find(|line| line.split(':').next() == Some(name))?;
    let mut numbers = line.split(':').skip(2).map(str::parse);
    Some((numbers.next()?.ok()?, numbers.next()?.ok()?))
}

/// A running server; it is killed when it is dropped.
#[derive(Debug)]
pub(super) enum Server {
    MariaDb(MariaDbServer),
    Postgres {
        process: Process,
        /// Of the socket.
        folder: PathBuf,
    },
}

impl Server {
    /// The option of `tanada advise` for its URL.
    pub(super) fn option(&self) -> &'static str {
        match self {
            Server::MariaDb(_) => "mysql",
            Server::Postgres { .. } => "postgres",
        }
    }

    /// The URL that `tanada advise` takes.
    pub(super) fn url(&self) -> String {
        match self {
            Server::MariaDb(server) => {
                format!("mysql://root@/{DATABASE}?socket={}", server.socket().display())
            }
            Server::Postgres { folder, .. } => {
                format!("postgres://postgres@/{DATABASE}?socket={}", folder.display())
            }
        }
    }

    /// A client of the server itself.
    pub(super) async fn connect(&self) -> Result<Client> {
        match self {
            Server::MariaDb(server) => Ok(Client::MariaDb(server.connect(DATABASE).await?)),
            Server::Postgres { folder, .. } => {
                Ok(Client::Postgres(connect_postgres(folder, DATABASE).await?))
            }
        }
    }

    /// A client that may make the database.
    pub(super) async fn administer(&self) -> Result<Client> {
        match self {
            Server::MariaDb(server) => Ok(Client::MariaDb(server.connect("").await?)),
            Server::Postgres { folder, .. } => {
                Ok(Client::Postgres(connect_postgres(folder, "postgres").await?))
            }
        }
    }

    /// Where a proxy has to listen in `folder` so that clients of this kind find it there.
    pub(super) fn proxy_path(&self, folder: &Path) -> PathBuf {
        folder.join(match self {
            Server::MariaDb(_) => "proxy",
            Server::Postgres { .. } => ".s.PGSQL.5432",
        })
    }

    /// A client of the proxy that listens at `path`.
    pub(super) async fn connect_through(&self, path: &Path) -> Result<Client> {
        match self {
            Server::MariaDb(_) => Ok(Client::MariaDb(server::connect(path, DATABASE).await?)),
            Server::Postgres { .. } => {
                let folder = path.parent().unwrap_or(path);
                Ok(Client::Postgres(connect_postgres(folder, DATABASE).await?))
            }
        }
    }

    /// The process that computes what `client` asks.
    pub(super) async fn process_of(&self, client: &mut Client) -> Option<i32> {
        match self {
            Server::MariaDb(server) => server.process_id().and_then(|id| i32::try_from(id).ok()),
            Server::Postgres { .. } => {
                client.rows("select pg_backend_pid()").await.ok()?.first()?.parse().ok()
            }
        }
    }

    /// Stops the server in order.
    pub(super) async fn stop(self) -> Result<()> {
        match self {
            Server::MariaDb(server) => server.stop().await,
            Server::Postgres { process, .. } => {
                let id = process.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
                if let Some(id) = id {
                    // Breaks the connections of clients, if there are any left.
                    kill_process(id, Signal::INT)
                        .map_err(|error| Error::failed(format!("cannot stop postgres: {error}")))?;
                }
                process.ended().await
            }
        }
    }
}

async fn connect_postgres(folder: &Path, database: &str) -> Result<tokio_postgres::Client> {
    let mut config = Config::new();
    config.user("postgres").dbname(database).host_path(folder);
    let (client, connection) = config.connect(NoTls).await.map_err(said)?;
    // Its end is seen by whoever asks next.
    tokio::spawn(async move { connection.await.ok() });
    Ok(client)
}

fn said(error: tokio_postgres::Error) -> Error {
    match error.as_db_error() {
        Some(refused) => Error::failed(format!("PostgreSQL: {}", refused.message())),
        None => Error::failed(format!("PostgreSQL: {error}")),
    }
}

/// A client of a server or of a proxy.
#[derive(Debug)]
pub(super) enum Client {
    MariaDb(Conn),
    Postgres(tokio_postgres::Client),
}

impl Client {
    /// Runs a statement that has no rows.
    pub(super) async fn run(&mut self, statement: &str) -> Result<()> {
        self.rows(statement).await.map(drop)
    }

    /// The answer to a statement: a line for each row, values with tabs between them.
    pub(super) async fn rows(&mut self, statement: &str) -> Result<Vec<String>> {
        match self {
            Client::MariaDb(connection) => {
                let rows: Vec<Row> = connection.query(statement).await.map_err(server::failed)?;
                let line = |row: &Row| {
                    let values = (0..row.len()).map(|no| row.as_ref(no).map_or_else(String::new, text));
                    values.collect::<Vec<_>>().join("\t")
                };
                Ok(rows.iter().map(line).collect())
            }
            Client::Postgres(client) => {
                let answers = client.simple_query(statement).await.map_err(said)?;
                let line = |answer: &SimpleQueryMessage| match answer {
                    SimpleQueryMessage::Row(row) => {
                        let values: Vec<&str> =
                            (0..row.len()).map(|no| row.get(no).unwrap_or("NULL")).collect();
                        Some(values.join("\t"))
                    }
                    _ => None,
                };
                Ok(answers.iter().filter_map(line).collect())
            }
        }
    }

    /// Closes the connection in order.
    pub(super) async fn close(self) {
        if let Client::MariaDb(connection) = self {
            let _ = connection.disconnect().await;
        }
    }
}

/// A value as the text protocol has it.
fn text(value: &Value) -> String {
    match value {
        Value::Bytes(bytes) => String::from_utf8_lossy(bytes).into_owned(),
        Value::NULL => "NULL".to_owned(),
        other => other.as_sql(true),
    }
}
