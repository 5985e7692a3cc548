//! Database servers on a mounted, compressed volume, each as its distribution has it.
//!
//! 1. A client commits rows one by one and is told of each.
//! 2. The server is killed under that load, started again, and recovers by itself.
//! 3. The process that serves the mount is killed under the same load, then the server; the volume is mounted again.
//! 4. After each, what the client was told of is there, and the server's own check of its files finds nothing.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::chown;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::mount::{Served, refusal};

/// How long a load runs before something is killed.
const LOAD: Duration = Duration::from_millis(1500);

/// A kind of database.
pub trait Database {
    /// Makes an empty database in a folder that is not there yet.
    fn make(&self, data: &Path);
    /// Starts the server and waits until it answers; none for a library.
    fn start(&self, data: &Path) -> Option<Child>;
    /// A client that takes statements from standard input and writes answers line by line.
    fn client(&self, data: &Path) -> Command;
    /// What makes the table `t` with a key `n` and a text.
    fn table(&self) -> &'static str;
    /// What prints lines that all contain `ok` if its files are sound.
    fn check(&self) -> &'static str;
    /// What stops the server in order.
    fn stop(&self, data: &Path, server: Option<Child>);
}

fn succeed(command: &mut Command) {
    let output = command.output().unwrap();
    let said =
        String::from_utf8_lossy(&output.stderr).into_owned() + &String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{command:?}: {said}");
}

pub fn ask(database: &dyn Database, data: &Path, text: &str) -> Result<String, String> {
    let mut client = database.client(data);
    let mut child =
        client.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let _ = child.stdin.take().unwrap().write_all(text.as_bytes());
    let output = child.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    let error = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    if output.status.success() && error.is_empty() { Ok(said) } else { Err(format!("{said} {error}")) }
}

pub fn answer(database: &dyn Database, data: &Path, text: &str) -> String {
    ask(database, data, text).unwrap_or_else(|error| panic!("{text}: {error}"))
}

/// Waits until the server answers.
fn until_ready(database: &dyn Database, data: &Path, mut server: Child, log: &Path) -> Child {
    let begun = Instant::now();
    while ask(database, data, "select 1;\n").is_err() {
        let ended = server.try_wait().unwrap();
        let said = || fs::read_to_string(log).unwrap_or_default();
        assert!(ended.is_none(), "the server ended: {}", said());
        assert!(begun.elapsed() < Duration::from_secs(120), "the server does not answer: {}", said());
        std::thread::sleep(Duration::from_millis(100));
    }
    server
}

/// A client that commits rows one by one.
pub struct Load {
    child: Child,
    writer: std::thread::JoinHandle<()>,
    reader: std::thread::JoinHandle<Option<u64>>,
}

impl Load {
    /// Begins to commit rows from `first` on.
    pub fn begin(database: &dyn Database, data: &Path, first: u64) -> Load {
        let mut client = database.client(data);
        let mut child =
            client.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let (mut input, output) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        let writer = std::thread::spawn(move || {
            let mut no = first;
            loop {
                let text = format!("row {no} ").repeat(60);
                let line = format!("insert into t values ({no}, '{text}');\nselect {no};\n");
                if input.write_all(line.as_bytes()).is_err() {
                    return;
                }
                no += 1;
            }
        });
        let reader = std::thread::spawn(move || {
            let numbers = BufReader::new(output).lines().map_while(Result::ok);
            numbers.filter_map(|line| line.trim().parse::<u64>().ok()).last()
        });
        Load { child, writer, reader }
    }

    /// Whether the client is still at work.
    pub fn is_running(&mut self) -> bool {
        self.child.try_wait().unwrap().is_none()
    }

    /// Ends it; the last row that it was told of as committed, if there is any.
    pub fn end(mut self) -> Option<u64> {
        let _ = self.child.kill();
        self.child.wait().unwrap();
        self.writer.join().unwrap();
        self.reader.join().unwrap()
    }
}

/// Commits rows from `first` on for a while, then calls `kill`; the last row that was committed.
fn load(database: &dyn Database, data: &Path, first: u64, kill: impl FnOnce()) -> u64 {
    let running = Load::begin(database, data, first);
    std::thread::sleep(LOAD);
    kill();
    // What the client does not get through by now it never will.
    std::thread::sleep(Duration::from_millis(300));
    running.end().expect("nothing was committed")
}

fn judge(database: &dyn Database, data: &Path, committed: u64) {
    let found = answer(database, data, &format!("select count(*) from t where n <= {committed};\n"));
    assert_eq!(found, committed.to_string(), "rows that were committed are missing");
    let checked = answer(database, data, database.check());
    let is_sound = |line: &str| line.to_lowercase().contains("ok");
    assert!(!checked.is_empty() && checked.lines().all(is_sound), "{checked}");
}

fn survive(database: &dyn Database, compression: &str, cleaners: u8) {
    if refusal().is_some() {
        return;
    }
    let mut served = Served::with_cleaners("2GiB", cleaners);
    let folder = served.root().join("databases");
    fs::create_dir(&folder).unwrap();
    let value = format!("user.tanada.compression={compression}");
    set_attribute(&folder, &value);
    let data = folder.join("data");
    database.make(&data);
    let mut server = database.start(&data);
    answer(database, &data, database.table());

    let mut kill = || {
        if let Some(server) = &mut server {
            server.kill().unwrap();
            server.wait().unwrap();
        }
    };
    let mut committed = load(database, &data, 1, &mut kill);
    server = database.start(&data);
    judge(database, &data, committed);

    let next = answer(database, &data, "select max(n) + 1 from t;\n").parse::<u64>().unwrap();
    committed = committed.max(load(database, &data, next, || {
        // The server's files give errors from here on, so it cannot go on.
        served.kill();
        if let Some(server) = &mut server {
            let _ = server.kill();
            server.wait().unwrap();
        }
    }));
    served.mount();
    server = database.start(&data);
    judge(database, &data, committed);
    database.stop(&data, server);
    served.end();
    let checked = crate::tanada(&["volume", "check", &served.volume()]).output();
    assert!(!checked.contains("error"), "{checked}");
    eprintln!("{committed} rows were committed");
}

/// Sets an extended attribute, `NAME=VALUE`.
pub fn set_attribute(path: &Path, value: &str) {
    let (name, value) = value.split_once('=').unwrap();
    let flags = rustix::fs::XattrFlags::empty();
    rustix::fs::setxattr(path, name, value.as_bytes(), flags).unwrap();
}

/// The first of these programs that is there.
pub fn program(candidates: &[&str]) -> Option<PathBuf> {
    let found = candidates.iter().map(PathBuf::from).find(|path| path.exists());
    if found.is_none() {
        eprintln!("skipped: there is none of {candidates:?}; scripts/setup --test installs it");
    }
    found
}

pub struct MariaDb {
    server: PathBuf,
    /// Outside of the volume, so that it outlives the mount.
    beside: tempfile::TempDir,
}

impl MariaDb {
    /// As it is installed; none where it is not.
    pub fn find() -> Option<MariaDb> {
        let server = program(&["/usr/sbin/mariadbd", "/usr/bin/mariadbd"])?;
        // A socket's path has a limit.
        Some(MariaDb { server, beside: tempfile::tempdir().unwrap() })
    }

    /// A client of whoever listens at `socket`.
    pub fn client_at(socket: &Path) -> Command {
        let mut client = Command::new("mariadb");
        client.arg("--no-defaults").arg(format!("--socket={}", socket.display()));
        client.args(["--user=root", "--batch", "--skip-column-names", "--unbuffered", "mysql"]);
        client
    }

    pub fn socket(&self) -> PathBuf {
        self.beside.path().join("s")
    }
}

impl Database for MariaDb {
    fn make(&self, data: &Path) {
        let mut install = Command::new("mariadb-install-db");
        // Beside the volume, and copied: the system tables are made by thousands of small statements.
        let made = self.beside.path().join("made");
        install.arg("--no-defaults").arg(format!("--datadir={}", made.display()));
        install.args(["--user=root", "--auth-root-authentication-method=normal", "--skip-test-db"]);
        succeed(&mut install);
        succeed(Command::new("cp").arg("-a").arg(&made).arg(data));
        // What no file was synced for is lost when the mount is killed, as in a power cut.
        succeed(Command::new("find").arg(data).args(["-exec", "sync", "{}", "+"]));
    }

    fn start(&self, data: &Path) -> Option<Child> {
        let log = self.beside.path().join("log");
        let out = fs::File::create(&log).unwrap();
        let mut server = Command::new(&self.server);
        server.arg("--no-defaults").arg(format!("--datadir={}", data.display()));
        server.arg(format!("--socket={}", self.socket().display()));
        server.args(["--user=root", "--skip-networking", "--innodb-flush-method=O_DIRECT"]);
        server.args(["--innodb-buffer-pool-size=24M", "--innodb-log-file-size=16M", "--pid-file=pid"]);
        let server = server.stdout(out.try_clone().unwrap()).stderr(out).spawn().unwrap();
        Some(until_ready(self, data, server, &log))
    }

    fn client(&self, _data: &Path) -> Command {
        MariaDb::client_at(&self.socket())
    }

    fn table(&self) -> &'static str {
        "create table t (n bigint primary key, text varchar(2000), key (text(20))) engine=innodb;\n"
    }

    fn check(&self) -> &'static str {
        "check table t extended;\n"
    }

    fn stop(&self, data: &Path, server: Option<Child>) {
        answer(self, data, "shutdown;\n");
        assert!(server.unwrap().wait().unwrap().success());
    }
}

#[test]
fn mariadb_loses_nothing_that_it_committed() {
    let Some(database) = MariaDb::find() else { return };
    survive(&database, "lz4", 2);
}

pub struct Postgres {
    programs: PathBuf,
    beside: tempfile::TempDir,
    /// The server refuses to run as root.
    user: (u32, u32),
}

impl Postgres {
    /// As it is installed; none where it is not.
    pub fn find() -> Option<Postgres> {
        let programs =
            ["/usr/lib/postgresql/15/bin", "/usr/lib/postgresql/17/bin", "/usr/lib/postgresql/16/bin"];
        let programs = program(&programs)?;
        let user = user("postgres").or_else(|| user("nobody"))?;
        let beside = tempfile::tempdir().unwrap();
        chown(beside.path(), Some(user.0), Some(user.1)).unwrap();
        Some(Postgres { programs, beside, user })
    }

    /// The folder of its socket.
    pub fn folder(&self) -> &Path {
        self.beside.path()
    }

    /// A client of whoever listens in `folder`.
    pub fn client_at(&self, folder: &Path) -> Command {
        let mut client = self.command("psql");
        client.arg("-h").arg(folder).args(["-U", "postgres", "-qAtX", "-v", "ON_ERROR_STOP=1"]);
        client
    }

    fn command(&self, name: &str) -> Command {
        let mut command = Command::new(self.programs.join(name));
        if fs::metadata("/proc/self").is_ok_and(|own| std::os::unix::fs::MetadataExt::uid(&own) == 0) {
            std::os::unix::process::CommandExt::uid(&mut command, self.user.0);
            std::os::unix::process::CommandExt::gid(&mut command, self.user.1);
        }
        command.current_dir(self.beside.path());
        command
    }
}

impl Database for Postgres {
    fn make(&self, data: &Path) {
        fs::create_dir(data).unwrap();
        chown(data, Some(self.user.0), Some(self.user.1)).unwrap();
        let mut initdb = self.command("initdb");
        initdb.arg("-D").arg(data).args(["-U", "postgres", "--auth=trust", "--data-checksums"]);
        initdb.args(["--locale=C", "--encoding=UTF8", "--no-instructions"]);
        succeed(&mut initdb);
    }

    fn start(&self, data: &Path) -> Option<Child> {
        let log = self.beside.path().join("log");
        let out = fs::File::create(&log).unwrap();
        let mut server = self.command("postgres");
        server.arg("-D").arg(data).arg("-k").arg(self.beside.path());
        server.args(["-c", "listen_addresses=", "-c", "shared_buffers=16MB", "-c", "max_wal_size=32MB"]);
        let server = server.stdout(out.try_clone().unwrap()).stderr(out).spawn().unwrap();
        Some(until_ready(self, data, server, &log))
    }

    fn client(&self, _data: &Path) -> Command {
        self.client_at(self.beside.path())
    }

    fn table(&self) -> &'static str {
        "create extension amcheck; create table t (n bigint primary key, body text); create index on t (body);\n"
    }

    fn check(&self) -> &'static str {
        "select case when bt_index_check(indexrelid, true) is null then 'broken' else 'ok' end
           from pg_index where indrelid = 't'::regclass;
         select 'ok' from (select count(*) from verify_heapam('t')) as found (rows) where rows = 0;\n"
    }

    fn stop(&self, data: &Path, server: Option<Child>) {
        let mut stop = self.command("pg_ctl");
        succeed(stop.arg("-D").arg(data).args(["stop", "-m", "fast", "-s"]));
        server.unwrap().wait().unwrap();
    }
}

/// User and group of a name.
fn user(name: &str) -> Option<(u32, u32)> {
    let table = fs::read_to_string("/etc/passwd").ok()?;
    let line = table.lines().find(|line| line.split(':').next() == Some(name))?;
    let mut numbers = line.split(':').skip(2).map(str::parse);
    Some((numbers.next()?.ok()?, numbers.next()?.ok()?))
}

#[test]
fn postgresql_loses_nothing_that_it_committed() {
    let Some(database) = Postgres::find() else { return };
    survive(&database, "zstd:1", 0);
}

struct Sqlite {
    journal_mode: &'static str,
}

impl Database for Sqlite {
    fn make(&self, data: &Path) {
        fs::create_dir(data).unwrap();
        let made = answer(self, data, &format!("pragma journal_mode = {};\n", self.journal_mode));
        assert_eq!(made, self.journal_mode);
    }

    fn start(&self, _data: &Path) -> Option<Child> {
        None
    }

    fn client(&self, data: &Path) -> Command {
        // With less than `extra` the end of a commit in the mode `delete`, an unlink, may be lost with the power.
        let mut client = Command::new("stdbuf");
        client.args(["-oL", "sqlite3", "-batch", "-bail", "-cmd", "pragma synchronous = extra"]);
        client.arg(data.join("file.db"));
        client
    }

    fn table(&self) -> &'static str {
        "create table t (n integer primary key, body text); create index i on t (body);\n"
    }

    fn check(&self) -> &'static str {
        "pragma integrity_check;\n"
    }

    fn stop(&self, _data: &Path, _server: Option<Child>) {}
}

#[test]
fn sqlite_loses_nothing_that_it_committed() {
    if program(&["/usr/bin/sqlite3"]).is_none() {
        return;
    }
    survive(&Sqlite { journal_mode: "wal" }, "lz4", 1);
    survive(&Sqlite { journal_mode: "delete" }, "none", 0);
}
