//! The MariaDB server of one arm: the article's settings, a private socket, no network.
//!
//! It is killed when [`Server`] is dropped; the data directory is the arm's.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use mysql_async::{Conn, OptsBuilder};

use super::PageCompressionOptions;
use crate::{Error, Result};

const SERVER_PACKAGE: &str = "mariadb-server";

/// How long a server may take to answer, and to stop.
const PATIENCE: Duration = Duration::from_secs(300);

const PAUSE: Duration = Duration::from_millis(50);

/// The article's settings that MariaDB has; the sizes of buffer pool and log are options.
const ARTICLE_SETTINGS: [&str; 8] = [
    "--innodb-flush-log-at-trx-commit=2",
    "--innodb-max-dirty-pages-pct=50",
    "--innodb-lru-scan-depth=2500",
    "--innodb-flush-neighbors=0",
    "--innodb-read-io-threads=8",
    "--innodb-write-io-threads=8",
    "--innodb-io-capacity=80000",
    "--innodb-io-capacity-max=100000",
];

/// The database of the tables, as LinkBench names it.
pub(super) const DATABASE: &str = "linkdb";

/// A running server.
#[derive(Debug)]
pub(super) struct Server {
    child: Option<Child>,
    socket: PathBuf,
    log: PathBuf,
}

fn settings(options: &PageCompressionOptions) -> Vec<String> {
    let mut all: Vec<String> = ARTICLE_SETTINGS.map(str::to_owned).to_vec();
    all.push(format!("--innodb-buffer-pool-size={}", options.pool_bytes));
    all.push(format!("--innodb-log-file-size={}", options.log_bytes));
    let common = ["--skip-networking", "--skip-log-bin", "--innodb-flush-method=O_DIRECT"];
    all.extend(common.map(str::to_owned));
    all
}

/// The user that runs the servers: the one who runs the benchmark, to whom the files belong.
fn user() -> Result<String> {
    let output = Command::new("id").arg("-un").output();
    let output = output.map_err(|error| Error::program("id", "coreutils", &error))?;
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// Makes an empty data directory that all arms copy.
pub(super) fn install(data: &Path, options: &PageCompressionOptions) -> Result<()> {
    let mut install = Command::new("mariadb-install-db");
    install
        .args(["--no-defaults", "--skip-test-db", "--auth-root-authentication-method=normal"])
        .arg(format!("--user={}", user()?))
        .arg(format!("--datadir={}", data.display()))
        .arg(format!("--innodb-log-file-size={}", options.log_bytes))
        .stdin(Stdio::null());
    let output = install.output();
    let output = output.map_err(|error| Error::program("mariadb-install-db", SERVER_PACKAGE, &error))?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(Error::failed(format!("mariadb-install-db failed: {}", said.trim())))
}

impl Server {
    /// Starts a server on a data directory; its socket and log lie in `beside`. Waits until it answers.
    pub(super) async fn start(
        data: &Path,
        beside: &Path,
        options: &PageCompressionOptions,
    ) -> Result<Server> {
        let (socket, log) = (beside.join("socket"), beside.join("log"));
        let file = std::fs::File::create(&log).map_err(|error| Error::at_path("write", &log, &error))?;
        let child = Command::new("mariadbd")
            .arg("--no-defaults")
            .arg(format!("--user={}", user()?))
            .arg(format!("--datadir={}", data.display()))
            .arg(format!("--socket={}", socket.display()))
            .arg(format!("--pid-file={}", beside.join("pid").display()))
            .arg(format!("--max-connections={}", options.requesters + 50))
            .args(["--innodb-buffer-pool-load-at-startup=OFF", "--innodb-buffer-pool-dump-at-shutdown=OFF"])
            .args(settings(options))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(file)
            .spawn()
            .map_err(|error| Error::program("mariadbd", SERVER_PACKAGE, &error))?;
        let mut server = Server { child: Some(child), socket, log };
        let begun = Instant::now();
        while begun.elapsed() < PATIENCE {
            let ended = server.child.as_mut().map(Child::try_wait);
            if let Some(Ok(Some(status))) = ended {
                return Err(Error::failed(format!("mariadbd ended ({status}): {}", server.said())));
            }
            if server.connect_to("").await.is_ok() {
                return Ok(server);
            }
            tokio::time::sleep(PAUSE).await;
        }
        Err(Error::failed(format!("mariadbd does not answer: {}", server.said())))
    }

    /// A connection to the database of the tables.
    pub(super) async fn connect(&self) -> Result<Conn> {
        self.connect_to(DATABASE).await
    }

    /// A connection; to no database if the name is empty.
    pub(super) async fn connect_to(&self, database: &str) -> Result<Conn> {
        let options = OptsBuilder::default()
            .user(Some("root"))
            .socket(Some(self.socket.display().to_string()))
            .db_name((!database.is_empty()).then(|| database.to_owned()))
            .init(vec!["set names latin1"]);
        Conn::new(options).await.map_err(failed)
    }

    /// Stops the server when all its pages are written.
    pub(super) async fn stop(mut self) -> Result<()> {
        use mysql_async::prelude::Queryable;
        let mut conn = self.connect_to("").await?;
        // Its answer may be lost with the connection; what counts is how the server ends.
        let _ = conn.query_drop("shutdown").await;
        drop(conn);
        let begun = Instant::now();
        while begun.elapsed() < PATIENCE {
            let Some(child) = &mut self.child else { return Ok(()) };
            match child.try_wait() {
                Ok(Some(status)) if status.success() => {
                    self.child = None;
                    return Ok(());
                }
                Ok(None) => tokio::time::sleep(PAUSE).await,
                Ok(Some(status)) => {
                    self.child = None;
                    return Err(Error::failed(format!("mariadbd ended ({status}): {}", self.said())));
                }
                Err(error) => return Err(Error::failed(format!("mariadbd is lost: {error}"))),
            }
        }
        Err(Error::failed(format!("mariadbd does not stop: {}", self.said())))
    }

    /// The first error in its log, or else the last line.
    fn said(&self) -> String {
        let text = std::fs::read_to_string(&self.log).unwrap_or_default();
        let error = text.lines().find(|line| line.contains("[ERROR]"));
        error.or(text.lines().last()).unwrap_or("it wrote no log").to_owned()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Some(child) = &mut self.child {
            // The arm has failed: its files are of no use to anybody.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// An error of a server.
pub(super) fn failed(error: mysql_async::Error) -> Error {
    Error::failed(format!("MariaDB: {error}"))
}
