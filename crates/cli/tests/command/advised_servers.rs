//! A server on a mounted volume with a policy, its clients behind `tanada advise --proxy`; each of the three is killed
//! with -9 under load, in turn.
//!
//! 1. One client commits rows through the proxy, another one beside it; a third one reads what is placed.
//! 2. The proxy is killed: who came through it has lost his connection, who did not goes on. A new proxy takes its
//!    place.
//! 3. The server is killed and started again: the proxy is the same, and serves new clients.
//! 4. The mount is killed, and with it the server. Both come back; the proxy is still the same.
//! 5. After each, what clients were told of as committed is there, and the server's own check finds nothing.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use crate::mount::{Served, refusal};
use crate::mounted_servers::{Database, Load, MariaDb, Postgres, answer, ask, set_attribute};
use crate::tanada;

/// How long a load runs before something is killed.
const LOAD: Duration = Duration::from_millis(800);

/// Until a client whose connection is broken has noticed.
const NOTICED: Duration = Duration::from_millis(400);

/// Rows of the client that does not come through the proxy begin here.
const BESIDE: u64 = 1_000_000_000;

/// A database as clients of the proxy see it.
struct Proxied<'a> {
    database: &'a dyn Database,
    client: Box<dyn Fn() -> Command + 'a>,
}

impl Database for Proxied<'_> {
    fn make(&self, data: &Path) {
        self.database.make(data);
    }

    fn start(&self, data: &Path) -> Option<Child> {
        self.database.start(data)
    }

    fn client(&self, _data: &Path) -> Command {
        (self.client)()
    }

    fn table(&self) -> &'static str {
        self.database.table()
    }

    fn check(&self) -> &'static str {
        self.database.check()
    }

    fn stop(&self, data: &Path, server: Option<Child>) {
        self.database.stop(data, server);
    }
}

/// The proxy of `option`, `--mysql URL` or `--postgres URL`.
struct Proxy {
    arguments: Vec<String>,
    socket: PathBuf,
    process: Option<Child>,
}

impl Proxy {
    fn start(&mut self) {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tanada"));
        command.args(&self.arguments).arg("--proxy").arg(&self.socket);
        let mut process = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let mut said = String::new();
        BufReader::new(process.stdout.take().unwrap()).read_line(&mut said).unwrap();
        assert!(said.starts_with("listening at "), "{said:?}");
        // Clients of PostgreSQL are another user's.
        let open = std::os::unix::fs::PermissionsExt::from_mode(0o777);
        fs::set_permissions(&self.socket, open).unwrap();
        self.process = Some(process);
    }

    fn kill(&mut self) {
        let mut process = self.process.take().unwrap();
        process.kill().unwrap();
        process.wait().unwrap();
    }

    fn is_running(&mut self) -> bool {
        self.process.as_mut().is_some_and(|process| process.try_wait().unwrap().is_none())
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        if let Some(mut process) = self.process.take() {
            let _ = process.kill();
            let _ = process.wait();
        }
    }
}

/// A server, so that nothing is left running when a test fails.
struct Server(Option<Child>);

impl Server {
    fn kill(&mut self) {
        if let Some(mut server) = self.0.take() {
            let _ = server.kill();
            server.wait().unwrap();
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Some(mut server) = self.0.take() {
            let _ = server.kill();
            let _ = server.wait();
        }
    }
}

/// Clients that commit rows: through the proxy, and beside it.
struct Loads {
    proxied: Load,
    beside: Load,
    first: [u64; 2],
}

impl Loads {
    fn begin(proxied: &Proxied<'_>, data: &Path) -> Loads {
        let next = |from: u64, to: u64| {
            let statement =
                format!("select coalesce(max(n) + 1, {from}) from t where n >= {from} and n < {to};\n");
            answer(proxied.database, data, &statement).parse().unwrap()
        };
        let first = [next(1, BESIDE), next(BESIDE, 2 * BESIDE)];
        let (through, beside) =
            (Load::begin(proxied, data, first[0]), Load::begin(proxied.database, data, first[1]));
        // What is placed: the server reads it anew for each client.
        let reads = "select count(*) from t where n < 0 or n > 0;\n";
        answer(proxied, data, reads);
        std::thread::sleep(LOAD);
        Loads { proxied: through, beside, first }
    }

    /// Ends both; what was committed is there, and the server's check finds nothing.
    fn end(self) -> impl FnOnce(&dyn Database, &Path) {
        let Loads { proxied, beside, first } = self;
        let last = [proxied.end(), beside.end()];
        move |database: &dyn Database, data: &Path| {
            for (first, last) in first.into_iter().zip(last) {
                let last = last.expect("nothing was committed");
                let count = format!("select count(*) from t where n between {first} and {last};\n");
                let found = answer(database, data, &count);
                assert_eq!(found, (last - first + 1).to_string(), "rows that were committed are missing");
            }
            let checked = answer(database, data, database.check());
            let is_sound = |line: &str| line.to_lowercase().contains("ok");
            assert!(!checked.is_empty() && checked.lines().all(is_sound), "{checked}");
        }
    }
}

fn survive(proxied: &Proxied<'_>, arguments: [&str; 2], socket: PathBuf) {
    let database = proxied.database;
    let classes = ["fast=VOLUME,size=64MiB", "slow=VOLUME,size=1GiB"];
    let mut served = Served::with_classes(&classes, Some("benefit"), 0);
    let folder = served.root().join("databases");
    fs::create_dir(&folder).unwrap();
    set_attribute(&folder, "user.tanada.class=slow");
    let data = folder.join("data");
    database.make(&data);
    let mut server = Server(database.start(&data));
    answer(database, &data, database.table());
    let volume = served.volume();
    let arguments = ["advise", arguments[0], arguments[1], "--volume", &volume].map(str::to_owned).to_vec();
    let mut proxy = Proxy { arguments, socket, process: None };
    proxy.start();

    let mut loads = Loads::begin(proxied, &data);
    proxy.kill();
    std::thread::sleep(NOTICED);
    assert!(!loads.proxied.is_running(), "a connection outlived its proxy");
    assert!(loads.beside.is_running(), "a connection without a proxy was broken");
    loads.end()(database, &data);
    assert!(ask(proxied, &data, "select 1;\n").is_err());
    proxy.start();

    let loads = Loads::begin(proxied, &data);
    server.kill();
    std::thread::sleep(NOTICED);
    let judge = loads.end();
    assert!(ask(proxied, &data, "select 1;\n").is_err());
    server = Server(database.start(&data));
    judge(database, &data);
    assert_eq!(answer(proxied, &data, "select 2;\n"), "2");

    let loads = Loads::begin(proxied, &data);
    served.kill();
    std::thread::sleep(NOTICED);
    // Its files give errors from here on, so it cannot go on.
    server.kill();
    let judge = loads.end();
    served.mount();
    server = Server(database.start(&data));
    judge(database, &data);
    assert!(proxy.is_running(), "the proxy ended with the mount or the server");
    let loads = Loads::begin(proxied, &data);
    loads.end()(database, &data);

    drop(proxy);
    database.stop(&data, server.0.take());
    served.end();
    let checked = tanada(&["volume", "check", &volume]).output();
    assert!(checked.starts_with("sound"), "{checked}");
}

#[test]
fn clients_of_mariadb_lose_their_connection_alone_whatever_is_killed() {
    if refusal().is_some() {
        return;
    }
    let Some(mariadb) = MariaDb::find() else { return };
    let socket = mariadb.socket().with_file_name("p");
    let url = format!("mysql://root@/mysql?socket={}", mariadb.socket().display());
    let client = || MariaDb::client_at(&mariadb.socket().with_file_name("p"));
    let proxied = Proxied { database: &mariadb, client: Box::new(client) };
    survive(&proxied, ["--mysql", &url], socket);
}

#[test]
fn clients_of_postgresql_lose_their_connection_alone_whatever_is_killed() {
    if refusal().is_some() {
        return;
    }
    let Some(postgres) = Postgres::find() else { return };
    let folder = postgres.folder().join("proxied");
    fs::create_dir(&folder).unwrap();
    let socket = folder.join(".s.PGSQL.5432");
    let url = format!("postgres://postgres@/postgres?socket={}", postgres.folder().display());
    let client = || postgres.client_at(&folder);
    let proxied = Proxied { database: &postgres, client: Box::new(client) };
    survive(&proxied, ["--postgres", &url], socket);
}
