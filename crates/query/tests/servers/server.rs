//! Real servers: started on a folder of their own, asked through their command-line client, stopped.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// Options of every server: no network, the clock of UTC, and nothing for safety in a power cut.
const OPTIONS: [&str; 11] = [
    "--user=root",
    "--skip-networking",
    "--skip-grant-tables",
    "--skip-log-bin",
    "--default-time-zone=+00:00",
    "--innodb-buffer-pool-size=64M",
    "--innodb-flush-method=nosync",
    "--innodb-flush-log-at-trx-commit=0",
    "--innodb-doublewrite=0",
    "--innodb-stats-persistent=0",
    "--innodb-stats-auto-recalc=0",
];

/// The page size of a server that is not told another.
pub const DEFAULT_PAGE_KIB: u64 = 16;

/// The folder beside the data directory in which tables with DATA DIRECTORY may lie.
pub const FAR: &str = "far";

/// How often it is asked whether a server answers, and how long is waited in between.
const START_TRIES: u32 = 1200;
const START_WAIT: Duration = Duration::from_millis(50);

/// Which server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// MariaDB as it is installed.
    MariaDb,
    /// MariaDB 11.8 as `scripts/servers` unpacks it.
    MariaDb11,
    /// MySQL 9.7 as `scripts/servers` unpacks it.
    MySql,
}

impl Kind {
    /// Whether it is MySQL.
    pub fn is_mysql(self) -> bool {
        self == Kind::MySql
    }

    /// The folder that it was unpacked to; `None` for an installed one.
    ///
    /// # Errors
    /// If it is one of those that are unpacked and `TANADA_SERVERS` does not lead to it.
    pub fn unpacked(self) -> Result<Option<PathBuf>, String> {
        let name = match self {
            Kind::MariaDb => return Ok(None),
            Kind::MariaDb11 => "mariadb-11.8",
            Kind::MySql => "mysql-9.7",
        };
        let folder = std::env::var_os("TANADA_SERVERS").ok_or("TANADA_SERVERS is not set")?;
        // Cargo runs tests in the folder of their crate.
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(folder).join(name).join("root");
        match root.canonicalize() {
            Ok(root) => Ok(Some(root)),
            Err(error) => Err(format!("{}: {error}; scripts/servers unpacks it", root.display())),
        }
    }

    /// A command that runs one of its programs, by the name that MariaDB's has.
    fn program(self, name: &str) -> Command {
        let root = self.unpacked().unwrap_or_else(|error| panic!("{error}"));
        let name = match (self, name) {
            (Kind::MySql, "mariadbd") => "mysqld",
            (Kind::MySql, "mariadb") => "mysql",
            (_, name) => name,
        };
        let Some(root) = root else {
            let installed = Path::new("/usr/sbin").join(name);
            return if installed.exists() { Command::new(installed) } else { Command::new(name) };
        };
        let libraries = libraries(&root);
        let places = [libraries.clone(), libraries.join("private"), root.join("usr/lib/mysql/private")];
        let program = ["usr/sbin", "usr/bin"].map(|folder| root.join(folder).join(name));
        let program = program.iter().find(|program| program.exists());
        let program = program.unwrap_or_else(|| panic!("{} has no {name}", root.display()));
        let mut command = Command::new(loader(&libraries));
        command.arg("--library-path").arg(std::env::join_paths(places).unwrap()).arg(program);
        command
    }

    /// Options that tell an unpacked server where its files are.
    fn places(self) -> Vec<String> {
        let Ok(Some(root)) = self.unpacked() else { return Vec::new() };
        let share = root.join(if self.is_mysql() { "usr/share/mysql" } else { "usr/share/mariadb" });
        let mut options = vec![
            format!("--lc-messages-dir={}", share.display()),
            format!("--character-sets-dir={}", share.join("charsets").display()),
            format!("--plugin-dir={}", root.join("usr/lib/mysql/plugin").display()),
        ];
        if self.is_mysql() {
            options.extend(["--mysqlx=OFF", "--secure-file-priv=NULL"].map(str::to_owned));
        }
        options
    }
}

/// The folder with the loader of an unpacked system and its libraries.
fn libraries(root: &Path) -> PathBuf {
    let folders = fs::read_dir(root.join("usr/lib")).unwrap().map(|entry| entry.unwrap().path());
    let mut folders = folders.filter(|folder| folder.join("libc.so.6").exists());
    folders.next().unwrap_or_else(|| panic!("{} has no libraries", root.display()))
}

fn loader(libraries: &Path) -> PathBuf {
    let is_loader =
        |path: &PathBuf| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("ld-linux"));
    let mut files = fs::read_dir(libraries).unwrap().map(|entry| entry.unwrap().path());
    files.find(is_loader).unwrap_or_else(|| panic!("{} has no loader", libraries.display()))
}

/// What a client printed.
pub struct Printed {
    /// Answers, as `--batch` prints them.
    pub answers: Vec<u8>,
    /// What the server refused, a line each.
    pub refusals: Vec<String>,
}

/// A running server. It is killed when it is dropped.
pub struct Server {
    kind: Kind,
    folder: PathBuf,
    process: Child,
    /// Clients that hold a read view open.
    holders: Vec<Child>,
}

impl Server {
    /// Starts a server on `folder`, which gets its data directory `data` unless a server was started there before.
    pub fn start(kind: Kind, folder: &Path) -> Server {
        Server::start_with_pages(kind, folder, DEFAULT_PAGE_KIB)
    }

    /// The same with pages of `page_kib` KiB.
    pub fn start_with_pages(kind: Kind, folder: &Path, page_kib: u64) -> Server {
        let data = folder.join("data");
        fs::create_dir_all(folder.join(FAR)).unwrap();
        let log = folder.join("error.log");
        let common = |command: &mut Command| {
            command.arg("--no-defaults").args(kind.places()).arg(format!("--datadir={}", data.display()));
            command.arg(format!("--innodb-page-size={page_kib}k"));
            if kind.is_mysql() {
                command.arg(format!("--innodb-directories={}", folder.join(FAR).display()));
            }
            command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(File::create(&log).unwrap());
        };
        if data.exists() {
            // A server that was stopped is started again.
        } else if kind.is_mysql() {
            let mut command = kind.program("mariadbd");
            common(&mut command);
            let made = command.args(["--initialize-insecure", "--user=root", "--innodb-flush-method=nosync"]);
            assert!(made.status().unwrap().success(), "{}", fs::read_to_string(&log).unwrap());
        } else {
            fs::create_dir(&data).unwrap();
        }
        let mut command = kind.program("mariadbd");
        common(&mut command);
        command.args(OPTIONS).arg(format!("--socket={}", folder.join("s").display()));
        command.arg(format!("--pid-file={}", folder.join("pid").display()));
        let process = command.spawn().unwrap_or_else(|error| {
            panic!("the server does not start ({error}); scripts/setup --test installs MariaDB")
        });
        let mut server = Server { kind, folder: folder.to_owned(), process, holders: Vec::new() };
        for _ in 0..START_TRIES {
            let mut client = server.client();
            client.args(["-e", "select 1"]).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
            if client.status().unwrap().success() {
                return server;
            }
            if server.process.try_wait().unwrap().is_some() {
                break;
            }
            std::thread::sleep(START_WAIT);
        }
        panic!("the server does not answer: {}", fs::read_to_string(&log).unwrap());
    }

    /// The folder for DATA DIRECTORY.
    pub fn far(&self) -> PathBuf {
        self.folder.join(FAR)
    }

    fn client(&self) -> Command {
        let mut command = self.kind.program("mariadb");
        command.arg("--no-defaults").arg(format!("--socket={}", self.folder.join("s").display()));
        command.args(["--user=root", "--default-character-set=utf8mb4", "--batch", "--force"]);
        command
    }

    /// Runs statements; those that the server refuses do not end it.
    pub fn run(&self, sql: &str) -> Printed {
        let [input, answers, refusals] =
            ["statements.sql", "answers.tsv", "refusals.txt"].map(|name| self.folder.join(name));
        fs::write(&input, sql).unwrap();
        let mut client = self.client();
        client.stdin(File::open(&input).unwrap()).stdout(File::create(&answers).unwrap());
        client.stderr(File::create(&refusals).unwrap()).status().unwrap();
        let refusals = String::from_utf8_lossy(&fs::read(&refusals).unwrap()).into_owned();
        let refusals: Vec<String> =
            refusals.lines().filter(|line| line.starts_with("ERROR")).map(str::to_owned).collect();
        let gone =
            refusals.iter().find(|line| line.contains("has gone away") || line.contains("Lost connection"));
        assert!(gone.is_none(), "{gone:?}: {}", fs::read_to_string(self.folder.join("error.log")).unwrap());
        Printed { answers: fs::read(&answers).unwrap(), refusals }
    }

    /// Opens a read view that stays open until the server stops: what is deleted and updated from now on cannot be
    /// purged.
    pub fn hold_read_view(&mut self) {
        let mut client = self.client();
        let client = client.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut client = client.arg("--unbuffered").spawn().unwrap();
        let begun = "start transaction with consistent snapshot; select 'begun';\n";
        client.stdin.as_mut().unwrap().write_all(begun.as_bytes()).unwrap();
        let mut line = String::new();
        BufReader::new(client.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        assert_eq!(line.trim(), "begun");
        self.holders.push(client);
    }

    /// Stops the server and returns its data directory. A fast shutdown leaves rows to purge, a slow one does not.
    pub fn stop(mut self, fast: bool) -> PathBuf {
        self.run(&format!("set global innodb_fast_shutdown = {}; shutdown;", u8::from(fast)));
        assert!(self.process.wait().unwrap().success());
        self.folder.join("data")
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        for mut process in self.holders.drain(..) {
            let _ = process.kill();
            let _ = process.wait();
        }
        if self.process.try_wait().is_ok_and(|ended| ended.is_none()) {
            let _ = self.process.kill();
            let _ = self.process.wait();
        }
    }
}
