//! A PostgreSQL of its own for the tests, which share it; the last one stops it.

use std::fs;
use std::io::Write;
use std::os::unix::fs::{MetadataExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, Weak};
use std::time::{Duration, Instant};

use tanada_advisor::server::credentials::Target;
use tempfile::TempDir;

const PROGRAMS: [&str; 4] = [
    "/usr/lib/postgresql/15/bin",
    "/usr/lib/postgresql/16/bin",
    "/usr/lib/postgresql/17/bin",
    "/usr/lib/postgresql/18/bin",
];

const SCHEMA: &str = "
    create schema shop;
    create table shop.orders (o_id int primary key, o_customer int, o_total int, o_text text);
    insert into shop.orders select n, n % 1000, n % 977, repeat('order ', 40) from generate_series(1, 30000) n;
    create index o_customer on shop.orders (o_customer);
    create table shop.part (p_id int, p_text text) partition by range (p_id);
    create table shop.part_1 partition of shop.part for values from (0) to (5000);
    create table shop.part_2 partition of shop.part for values from (5000) to (10000);
    insert into shop.part select n, repeat('part ', 30) from generate_series(0, 9999) n;
    vacuum analyze;
    checkpoint;
";

#[derive(Debug)]
pub struct Postgres {
    process: Child,
    folder: TempDir,
    programs: PathBuf,
    /// The server refuses to run as root.
    user: Option<(u32, u32)>,
}

impl Postgres {
    /// The server; none where it is not installed.
    pub fn get() -> Option<Arc<Postgres>> {
        static SHARED: Mutex<Weak<Postgres>> = Mutex::new(Weak::new());
        let programs = PROGRAMS.iter().map(PathBuf::from).find(|path| path.join("postgres").exists());
        let Some(programs) = programs else {
            eprintln!("skipped: there is none of {PROGRAMS:?}; scripts/setup --test installs it");
            return None;
        };
        let mut shared = SHARED.lock().unwrap();
        if let Some(running) = shared.upgrade() {
            return Some(running);
        }
        let started = Arc::new(Postgres::start(programs));
        *shared = Arc::downgrade(&started);
        Some(started)
    }

    fn start(programs: PathBuf) -> Postgres {
        let folder = tempfile::tempdir().unwrap();
        let is_root = fs::metadata("/proc/self").unwrap().uid() == 0;
        let user = is_root.then(|| user("postgres").or_else(|| user("nobody")).unwrap());
        if let Some((user, group)) = user {
            chown(folder.path(), Some(user), Some(group)).unwrap();
        }
        let data = folder.path().join("data");
        let mut initdb = command(&programs, user, "initdb", folder.path());
        initdb.arg("-D").arg(&data).args(["-U", "postgres", "--auth=trust", "--locale=C", "--encoding=UTF8"]);
        let made = initdb.args(["--no-sync", "--no-instructions"]).output().unwrap();
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        let log = fs::File::create(folder.path().join("log")).unwrap();
        let mut server = command(&programs, user, "postgres", folder.path());
        server.arg("-D").arg(&data).arg("-k").arg(folder.path());
        server.args(["-c", "listen_addresses=", "-c", "fsync=off", "-c", "autovacuum=off"]);
        let process = server.stdout(log.try_clone().unwrap()).stderr(log).spawn().unwrap();
        let server = Postgres { process, folder, programs, user };
        let begun = Instant::now();
        while server.try_ask(server.folder(), &[], "select 1;").is_err() {
            assert!(begun.elapsed() < Duration::from_secs(60), "the server does not answer");
            std::thread::sleep(Duration::from_millis(50));
        }
        server.ask(SCHEMA);
        server
    }

    /// The folder of the data directory, `data`, and of the server's socket.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// The path of the server's socket.
    pub fn socket(&self) -> PathBuf {
        self.folder.path().join(".s.PGSQL.5432")
    }

    pub fn target(&self) -> Target {
        Target {
            user: Some("postgres".into()),
            socket: Some(self.folder.path().to_owned()),
            database: Some("postgres".into()),
            ..Target::default()
        }
    }

    /// One of the server's programs.
    pub fn command(&self, name: &str) -> Command {
        command(&self.programs, self.user, name, self.folder.path())
    }

    /// What the client prints for statements, asked of whoever listens in `folder`.
    pub fn try_ask(&self, folder: &Path, options: &[&str], statements: &str) -> Result<String, String> {
        let mut client = self.command("psql");
        client.arg("-h").arg(folder).args(["-U", "postgres", "-qAtX", "-v", "ON_ERROR_STOP=1"]).args(options);
        let piped = client.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = piped.spawn().unwrap();
        let mut input = child.stdin.take().unwrap();
        let text = statements.to_owned();
        let writer = std::thread::spawn(move || drop(input.write_all(text.as_bytes())));
        let output = child.wait_with_output().unwrap();
        writer.join().unwrap();
        let said = String::from_utf8(output.stdout).unwrap();
        match output.status.success() {
            true => Ok(said),
            false => Err(String::from_utf8_lossy(&output.stderr).into_owned()),
        }
    }

    pub fn ask(&self, statements: &str) -> String {
        self.try_ask(self.folder(), &[], statements).unwrap()
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        let mut stop = self.command("pg_ctl");
        let _ =
            stop.arg("-D").arg(self.folder().join("data")).args(["stop", "-m", "immediate", "-s"]).status();
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn command(programs: &Path, user: Option<(u32, u32)>, name: &str, folder: &Path) -> Command {
    let mut command = Command::new(programs.join(name));
    if let Some((user, group)) = user {
        command.uid(user).gid(group);
    }
    command.current_dir(folder);
    command
}

/// User and group of a name.
fn user(name: &str) -> Option<(u32, u32)> {
    let table = fs::read_to_string("/etc/passwd").ok()?;
    let line = table.lines().find(|line| line.split(':').next() == Some(name))?;
    let mut numbers = line.split(':').skip(2).map(str::parse);
    Some((numbers.next()?.ok()?, numbers.next()?.ok()?))
}
