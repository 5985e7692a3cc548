//! A MariaDB of its own for the tests, which share it; the last one stops it.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, Weak};
use std::time::{Duration, Instant};

use tanada_advisor::server::credentials::Target;
use tempfile::TempDir;

const SERVERS: [&str; 2] = ["/usr/sbin/mariadbd", "/usr/bin/mariadbd"];

const SCHEMA: &str = "
    create database shop;
    use shop;
    create table orders (o_id int primary key, o_customer int, o_total int, o_text varchar(300), key o_customer (o_customer));
    insert into orders select seq, seq % 1000, seq % 977, repeat('order ', 40) from seq_1_to_30000;
    create table part (p_id int primary key, p_year int, p_text varchar(200)) partition by range (p_id)
        (partition p1 values less than (5000), partition p2 values less than (10001));
    insert into part select seq, seq % 10, repeat('part ', 30) from seq_1_to_10000;
    create table t (n int primary key, text longtext);
    analyze table orders, part;
    flush tables orders, part for export;
    unlock tables;
";

#[derive(Debug)]
pub struct MariaDb {
    process: Child,
    folder: TempDir,
}

impl MariaDb {
    /// The server; none where it is not installed.
    pub fn get() -> Option<Arc<MariaDb>> {
        static SHARED: Mutex<Weak<MariaDb>> = Mutex::new(Weak::new());
        let program = SERVERS.iter().find(|path| Path::new(path).exists());
        let Some(program) = program else {
            eprintln!("skipped: there is none of {SERVERS:?}; scripts/setup --test installs it");
            return None;
        };
        let mut shared = SHARED.lock().unwrap();
        if let Some(running) = shared.upgrade() {
            return Some(running);
        }
        let started = Arc::new(MariaDb::start(program));
        *shared = Arc::downgrade(&started);
        Some(started)
    }

    fn start(program: &str) -> MariaDb {
        let folder = tempfile::tempdir().unwrap();
        let data = folder.path().join("data");
        let mut install = Command::new("mariadb-install-db");
        install.arg("--no-defaults").arg(format!("--datadir={}", data.display()));
        install.args(["--user=root", "--auth-root-authentication-method=normal", "--skip-test-db"]);
        let installed = install.output().unwrap();
        assert!(installed.status.success(), "{}", String::from_utf8_lossy(&installed.stderr));
        let log = fs::File::create(folder.path().join("log")).unwrap();
        let mut server = Command::new(program);
        server.arg("--no-defaults").arg(format!("--datadir={}", data.display()));
        server.arg(format!("--socket={}", folder.path().join("s").display()));
        server.args(["--user=root", "--skip-networking", "--innodb-buffer-pool-size=32M", "--pid-file=pid"]);
        server.args(["--max-allowed-packet=64M", "--innodb-log-file-size=96M", "--local-infile=1"]);
        server.arg("--innodb-flush-log-at-trx-commit=0");
        let process = server.stdout(log.try_clone().unwrap()).stderr(log).spawn().unwrap();
        let server = MariaDb { process, folder };
        let begun = Instant::now();
        while server.try_ask(&server.socket(), &[], "select 1;").is_err() {
            assert!(begun.elapsed() < Duration::from_secs(60), "the server does not answer");
            std::thread::sleep(Duration::from_millis(50));
        }
        server.ask(SCHEMA);
        server
    }

    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    pub fn socket(&self) -> PathBuf {
        self.folder.path().join("s")
    }

    pub fn target(&self) -> Target {
        Target {
            user: Some("root".into()),
            socket: Some(self.socket()),
            database: Some("shop".into()),
            ..Target::default()
        }
    }

    /// What the client prints for statements.
    pub fn try_ask(&self, socket: &Path, options: &[&str], statements: &str) -> Result<String, String> {
        let mut client = Command::new("mariadb");
        client.arg("--no-defaults").arg(format!("--socket={}", socket.display()));
        client.args(["--user=root", "--batch", "--max-allowed-packet=64M", "--local-infile=1"]).args(options);
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
        self.try_ask(&self.socket(), &[], statements).unwrap()
    }
}

impl Drop for MariaDb {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
