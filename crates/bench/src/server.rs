//! A MariaDB server on a data directory of the caller's: a private socket, no network.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use mysql_async::prelude::Queryable;
use mysql_async::{Conn, OptsBuilder};

use crate::process::Process;
use crate::{Error, Result};

const PACKAGE: &str = "mariadb-server";

/// A running server; it is killed when it is dropped.
#[derive(Debug)]
pub(crate) struct Server {
    process: Process,
    socket: PathBuf,
}

/// The user that runs the servers: the one who runs the benchmark, to whom the files belong.
fn user() -> Result<String> {
    let output = Command::new("id").arg("-un").output();
    let output = output.map_err(|error| Error::program("id", "coreutils", &error))?;
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// Makes an empty data directory.
pub(crate) fn install(data: &Path, settings: &[String]) -> Result<()> {
    let mut install = Command::new("mariadb-install-db");
    install
        .args(["--no-defaults", "--skip-test-db", "--auth-root-authentication-method=normal"])
        .arg(format!("--user={}", user()?))
        .arg(format!("--datadir={}", data.display()))
        .args(settings)
        .stdin(Stdio::null());
    let output = install.output();
    let output = output.map_err(|error| Error::program("mariadb-install-db", PACKAGE, &error))?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(Error::failed(format!("mariadb-install-db failed: {}", said.trim())))
}

impl Server {
    /// Starts a server on a data directory; its socket and log lie in `beside`. Waits until it answers.
    pub(crate) async fn start(data: &Path, beside: &Path, settings: &[String]) -> Result<Server> {
        let socket = beside.join("socket");
        let mut command = Command::new("mariadbd");
        command
            .arg("--no-defaults")
            .arg(format!("--user={}", user()?))
            .arg(format!("--datadir={}", data.display()))
            .arg(format!("--socket={}", socket.display()))
            .arg(format!("--pid-file={}", beside.join("pid").display()))
            .args(["--skip-networking", "--skip-log-bin"])
            .args(["--innodb-buffer-pool-load-at-startup=OFF", "--innodb-buffer-pool-dump-at-shutdown=OFF"])
            .args(settings);
        let mut process = Process::start(command, "mariadbd", PACKAGE, &beside.join("log"))?;
        process.until(async || connect(&socket, "").await.is_ok()).await?;
        Ok(Server { process, socket })
    }

    /// The socket of its clients.
    pub(crate) fn socket(&self) -> &Path {
        &self.socket
    }

    /// The number of its process.
    pub(crate) fn process_id(&self) -> Option<u32> {
        self.process.id()
    }

    /// A connection; to no database if the name is empty.
    pub(crate) async fn connect(&self, database: &str) -> Result<Conn> {
        connect(&self.socket, database).await
    }

    /// Stops the server when all its pages are written.
    pub(crate) async fn stop(self) -> Result<()> {
        let mut conn = self.connect("").await?;
        // Its answer may be lost with the connection; what counts is how the server ends.
        let _ = conn.query_drop("shutdown").await;
        drop(conn);
        self.process.ended().await
    }
}

/// A connection to whoever listens at `socket`; to no database if the name is empty.
pub(crate) async fn connect(socket: &Path, database: &str) -> Result<Conn> {
    let options = OptsBuilder::default()
        .user(Some("root"))
        .socket(Some(socket.display().to_string()))
        .prefer_socket(false)
        .db_name((!database.is_empty()).then(|| database.to_owned()))
        .init(vec!["set names latin1"]);
    Conn::new(options).await.map_err(failed)
}

/// An error of a server.
pub(crate) fn failed(error: mysql_async::Error) -> Error {
    Error::failed(format!("MariaDB: {error}"))
}
