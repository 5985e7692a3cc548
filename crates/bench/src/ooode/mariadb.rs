//! A MariaDB server on a copy of the files, or on a new directory: private socket, no network, O_DIRECT, a buffer pool
//! of the size of our cache.
//!
//! Every run meets a server that was just started, so its pool is empty. The server is killed when [`MariaDb`] is
//! dropped, and the copy removed: the copy is worth nothing, and nothing may be left running.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};
use std::time::Duration;

use tempfile::TempDir;
use tokio::process::{Child, Command};

use crate::{Error, ErrorKind, Result};

const SERVER_PACKAGE: &str = "mariadb-server";

/// The user that the package makes for the server.
const PACKAGE_USER: &str = "mysql";

/// Smallest buffer pool that the server takes.
const MIN_POOL_BYTES: u64 = 6 << 20;

const START_TRIES: u32 = 300;
const START_PAUSE: Duration = Duration::from_millis(100);

/// A server on a copy of a data directory.
#[derive(Debug)]
pub(crate) struct MariaDb {
    // Dropped in this order: the server, then its files.
    server: Option<Child>,
    copy: TempDir,
    user: String,
    pool_bytes: u64,
}

impl MariaDb {
    /// Copies `source` to a new folder in `work` (beside it without one). System tables are made where it has none.
    pub(super) async fn prepare(source: &Path, work: Option<&Path>, cache_bytes: u64) -> Result<MariaDb> {
        if source.join("mysql.ibd").exists() {
            let message = format!(
                "{} is a MySQL directory, which MariaDB does not read; leave --against out",
                source.display()
            );
            return Err(Error::new(ErrorKind::InvalidInput, message));
        }
        if !source.join("ibdata1").exists() {
            let message = format!("{} is no MariaDB data directory: it has no ibdata1", source.display());
            return Err(Error::new(ErrorKind::InvalidInput, message));
        }
        let user = user().await?;
        let work = work.map_or_else(|| work_folder(source, &user), Path::to_owned);
        let copy = tempfile::Builder::new()
            .prefix("tanada-mariadb-")
            .tempdir_in(&work)
            .map_err(|error| Error::at_path("create a folder in", &work, &error))?;
        let mut server = MariaDb { server: None, copy, user, pool_bytes: cache_bytes.max(MIN_POOL_BYTES) };
        server.copy_files(source).await?;
        Ok(server)
    }

    /// A new data directory in a folder of its own in `work`, without any database of users.
    pub(crate) async fn fresh(work: Option<&Path>, pool_bytes: u64) -> Result<MariaDb> {
        let user = user().await?;
        let work = work.map_or_else(std::env::temp_dir, Path::to_owned);
        let copy = tempfile::Builder::new()
            .prefix("tanada-mariadb-")
            .tempdir_in(&work)
            .map_err(|error| Error::at_path("create a folder in", &work, &error))?;
        let server = MariaDb { server: None, copy, user, pool_bytes: pool_bytes.max(MIN_POOL_BYTES) };
        server.install(&server.data()).await?;
        let mut own = Command::new("chown");
        own.args(["-R", &server.user]).arg(server.copy.path());
        succeed("chown", "coreutils", own).await?;
        Ok(server)
    }

    /// Starts the server, runs `statements` in `database`, and shuts it down with everything merged and purged. Returns
    /// the data directory.
    pub(crate) async fn fill(&mut self, database: &str, statements: &str) -> Result<PathBuf> {
        self.start().await?;
        let outcome = async {
            self.client("", &format!("create database if not exists {database}")).await?;
            self.client(database, statements).await?;
            self.client("", "set global innodb_fast_shutdown = 0").await
        };
        let outcome = outcome.await;
        self.stop().await;
        outcome.map(|_| self.data())
    }

    async fn copy_files(&mut self, source: &Path) -> Result<()> {
        let data = self.data();
        let mut copy = Command::new("cp");
        copy.args(["-R", "--sparse=always", "--reflink=auto"]).arg(source).arg(&data);
        succeed("cp", "coreutils", copy).await?;
        if !data.join("mysql").exists() {
            self.add_system_tables().await?;
        }
        let mut own = Command::new("chown");
        own.args(["-R", &self.user]).arg(self.copy.path());
        succeed("chown", "coreutils", own).await
    }

    /// Takes the system tables, and the log of the engine that holds most of them, from a fresh data directory.
    async fn add_system_tables(&self) -> Result<()> {
        let fresh = self.copy.path().join("fresh");
        self.install(&fresh).await?;
        let entries = std::fs::read_dir(&fresh).map_err(|error| Error::at_path("list", &fresh, &error))?;
        for entry in entries.flatten() {
            let name = entry.file_name();
            let text = name.to_string_lossy();
            if text == "mysql" || text.starts_with("aria_log") {
                let target = self.data().join(&name);
                std::fs::rename(entry.path(), &target)
                    .map_err(|error| Error::at_path("write", &target, &error))?;
            }
        }
        std::fs::remove_dir_all(&fresh).map_err(|error| Error::at_path("remove", &fresh, &error))
    }

    /// Makes a data directory with system tables.
    async fn install(&self, directory: &Path) -> Result<()> {
        let mut install = Command::new("mariadb-install-db");
        install
            .args(["--no-defaults", "--skip-test-db", "--auth-root-authentication-method=normal"])
            .arg(format!("--datadir={}", directory.display()));
        succeed("mariadb-install-db", SERVER_PACKAGE, install).await
    }

    /// Starts the server anew, opens the tables by an EXPLAIN, then runs `query`; gives the server's own time and the
    /// answer with its header line.
    pub(super) async fn cold_run(&mut self, database: &str, query: &str) -> Result<(f64, String)> {
        self.stop().await;
        self.start().await?;
        let query = query.trim().trim_end_matches(';');
        self.client(database, &format!("explain {query}")).await?;
        let timed = format!(
            "set @begun = sysdate(6); {query}; select timestampdiff(microsecond, @begun, sysdate(6))"
        );
        let output = self.client(database, &timed).await;
        self.stop().await;
        split_time(&output?)
    }

    /// Runs each of `queries` once and then `runs` times on one started server; gives the server's own times of the
    /// latter, and the answers with their header lines.
    pub(crate) async fn warm_runs(
        &mut self,
        database: &str,
        queries: &[String],
        runs: usize,
    ) -> Result<Vec<(Vec<f64>, String)>> {
        self.start().await?;
        let mut measured = Vec::with_capacity(queries.len());
        for query in queries {
            self.client(database, query).await?;
            let timed = format!(
                "set @begun = sysdate(6); {query}; select timestampdiff(microsecond, @begun, sysdate(6))"
            );
            let (mut seconds, mut answer) = (Vec::with_capacity(runs), String::new());
            for _ in 0..runs {
                let (time, rows) = split_time(&self.client(database, &timed).await?)?;
                seconds.push(time);
                answer = rows;
            }
            measured.push((seconds, answer));
        }
        self.stop().await;
        Ok(measured)
    }

    async fn start(&mut self) -> Result<()> {
        let log_path = self.log();
        let log =
            std::fs::File::create(&log_path).map_err(|error| Error::at_path("write", &log_path, &error))?;
        let server = Command::new("mariadbd")
            .arg("--no-defaults")
            .arg(format!("--datadir={}", self.data().display()))
            .arg(format!("--socket={}", self.socket().display()))
            .arg(format!("--pid-file={}", self.copy.path().join("pid").display()))
            .arg(format!("--user={}", self.user))
            .arg(format!("--innodb-buffer-pool-size={}", self.pool_bytes))
            .args(["--skip-networking", "--skip-log-bin", "--innodb-flush-method=O_DIRECT"])
            .args(["--innodb-buffer-pool-load-at-startup=OFF", "--innodb-buffer-pool-dump-at-shutdown=OFF"])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .kill_on_drop(true)
            .spawn()
            .map_err(|error| Error::program("mariadbd", SERVER_PACKAGE, &error))?;
        let server = self.server.insert(server);
        for _ in 0..START_TRIES {
            if let Ok(Some(status)) = server.try_wait() {
                return Err(Error::failed(format!(
                    "mariadbd stopped ({status}): {}",
                    first_error(&log_path)
                )));
            }
            if client(&self.copy.path().join("socket"), "", "select 1").await.is_ok() {
                return Ok(());
            }
            tokio::time::sleep(START_PAUSE).await;
        }
        Err(Error::failed(format!("mariadbd does not answer: {}", first_error(&log_path))))
    }

    /// Asks the server to stop, so that the next start needs no recovery; kills it when it does not.
    async fn stop(&mut self) {
        let Some(mut server) = self.server.take() else { return };
        let asked = self.client("", "shutdown").await.is_ok();
        let stopped = tokio::time::timeout(Duration::from_secs(30), server.wait()).await;
        if !asked || stopped.is_err() {
            // Already gone is as good as killed.
            let _ = server.kill().await;
        }
    }

    async fn client(&self, database: &str, sql: &str) -> Result<String> {
        client(&self.socket(), database, sql).await
    }

    fn data(&self) -> PathBuf {
        self.copy.path().join("data")
    }

    fn socket(&self) -> PathBuf {
        self.copy.path().join("socket")
    }

    fn log(&self) -> PathBuf {
        self.copy.path().join("log")
    }
}

/// Runs `sql` in the client; gives what it prints in batch mode.
async fn client(socket: &Path, database: &str, sql: &str) -> Result<String> {
    let mut command = Command::new("mariadb");
    command
        .args(["--no-defaults", "--batch", "--user=root", "--execute", sql])
        .arg(format!("--socket={}", socket.display()))
        .arg(format!("--database={database}"));
    let output = run("mariadb", "mariadb-client", command).await?;
    if !output.status.success() {
        return Err(Error::failed(format!("MariaDB: {}", first_line(&output.stderr))));
    }
    String::from_utf8(output.stdout).map_err(|_| Error::failed("MariaDB's answer is not UTF-8"))
}

/// Beside the files, so that the copy is on the same device; in the folder for temporary files where `user`, if it is
/// the server's own, cannot go.
fn work_folder(source: &Path, user: &str) -> PathBuf {
    let beside = source.canonicalize().ok().and_then(|path| path.parent().map(Path::to_owned));
    let open_to_all = |path: &Path| path.metadata().is_ok_and(|metadata| metadata.mode() & 0o001 != 0);
    match beside {
        Some(path) if user != PACKAGE_USER || path.ancestors().all(open_to_all) => path,
        _ => std::env::temp_dir(),
    }
}

/// The server refuses to run as root, so root runs it as the package's user.
async fn user() -> Result<String> {
    let mut id = Command::new("id");
    id.arg("-un");
    let output = run("id", "coreutils", id).await?;
    let name = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    Ok(if name == "root" { PACKAGE_USER.to_owned() } else { name })
}

async fn succeed(program: &str, package: &str, command: Command) -> Result<()> {
    let output = run(program, package, command).await?;
    if output.status.success() {
        return Ok(());
    }
    Err(Error::failed(format!("{program} failed: {}", first_line(&output.stderr))))
}

async fn run(program: &str, package: &str, mut command: Command) -> Result<Output> {
    let output = command.stdin(Stdio::null()).kill_on_drop(true).output().await;
    output.map_err(|error| Error::program(program, package, &error))
}

fn first_line(text: &[u8]) -> String {
    String::from_utf8_lossy(text).lines().next().unwrap_or("no reason given").trim().to_owned()
}

fn first_error(log: &Path) -> String {
    let text = std::fs::read_to_string(log).unwrap_or_default();
    // What comes after the first error follows from it.
    let error = text.lines().find(|line| line.contains("[ERROR]"));
    error.or(text.lines().last()).unwrap_or("it wrote no log").to_owned()
}

/// Takes the last two lines, a header and microseconds, off `output`.
fn split_time(output: &str) -> Result<(f64, String)> {
    let lines: Vec<&str> = output.lines().collect();
    let time = lines.last().and_then(|line| line.parse::<f64>().ok());
    match (time, lines.len().checked_sub(2)) {
        (Some(microseconds), Some(end)) => Ok((microseconds / 1e6, lines[..end].join("\n"))),
        _ => Err(Error::failed("MariaDB did not say how long it took")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn split_time_parses_the_trailing_elapsed_row() {
        assert_eq!(split_time("n\tm\n1\t2\nelapsed\n1500000\n").unwrap(), (1.5, "n\tm\n1\t2".to_owned()));
        assert!(split_time("").is_err());
        assert!(split_time("n\nNULL\n").is_err());
    }

    #[tokio::test]
    async fn a_directory_of_another_server_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let error = MariaDb::prepare(folder.path(), None, 1 << 20).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidInput);
        std::fs::write(folder.path().join("mysql.ibd"), b"").unwrap();
        let error = MariaDb::prepare(folder.path(), None, 1 << 20).await.unwrap_err();
        assert!(error.to_string().contains("MySQL directory"), "{error}");
    }
}
