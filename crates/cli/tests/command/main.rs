//! The command as people and scripts meet it: arguments, output, exit codes. One binary, because each links the query
//! engine.
#![allow(clippy::unwrap_used)]

mod advise;
mod advised_servers;
mod batch;
mod benchmarks;
mod calibrate;
mod columnar;
mod demonstration;
mod failures;
mod innodb;
mod interactive;
mod killed;
mod kv;
mod mount;
mod mounted_servers;
mod simulate;
mod volume;

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use tanada_sample::SAMPLES;

/// What the command did.
#[derive(Debug)]
struct Outcome {
    code: i32,
    stdout: String,
    stderr: String,
}

impl Outcome {
    /// Standard output of a run that has to succeed and to say nothing on stderr.
    #[track_caller]
    fn output(self) -> String {
        assert_eq!((self.code, self.stderr.as_str()), (0, ""), "stdout: {}", self.stdout);
        self.stdout
    }

    /// The one line on stderr of a run that has to fail with `code` and to print nothing.
    #[track_caller]
    fn error(self, code: i32) -> String {
        assert_eq!((self.code, self.stdout.as_str()), (code, ""), "stderr: {}", self.stderr);
        assert_eq!(self.stderr.lines().count(), 1, "{}", self.stderr);
        assert!(self.stderr.starts_with("tanada: "), "{}", self.stderr);
        self.stderr
    }

    /// The same for a run that may warn before it fails.
    #[track_caller]
    fn error_after_warnings(mut self, code: i32) -> String {
        let is_warning = |line: &&str| line.starts_with("tanada: warning: ");
        self.stderr = self.stderr.lines().skip_while(is_warning).map(|line| format!("{line}\n")).collect();
        self.error(code)
    }
}

/// Runs `tanada` with `arguments` and `stdin`.
fn tanada_with_stdin(arguments: &[&str], stdin: impl AsRef<[u8]>) -> Outcome {
    run(Command::new(env!("CARGO_BIN_EXE_tanada")).args(arguments), stdin)
}

/// Runs `tanada` in `folder`.
fn tanada_in(folder: &Path, arguments: &[&str]) -> Outcome {
    run(Command::new(env!("CARGO_BIN_EXE_tanada")).args(arguments).current_dir(folder), "")
}

fn run(command: &mut Command, stdin: impl AsRef<[u8]>) -> Outcome {
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the command starts");
    // A command that fails early does not read its input.
    let _ = child.stdin.take().expect("a pipe").write_all(stdin.as_ref());
    let output = child.wait_with_output().expect("the command ends");
    Outcome {
        code: output.status.code().expect("no signal"),
        stdout: String::from_utf8(output.stdout).expect("UTF-8"),
        stderr: unexpected(&String::from_utf8(output.stderr).expect("UTF-8")),
    }
}

/// What was said on stderr, but for the one thing that is always said of the MySQL sample: its undo tablespaces were
/// left out of it.
fn unexpected(stderr: &str) -> String {
    let expected = |line: &&str| line.starts_with("tanada: warning: ") && line.contains("/undo_001");
    stderr.split_inclusive('\n').filter(|line| !expected(line)).collect()
}

fn tanada(arguments: &[&str]) -> Outcome {
    tanada_with_stdin(arguments, "")
}

/// `tanada sql` over the MySQL sample's database `tpch`.
fn sql(arguments: &[&str]) -> Outcome {
    let directory = directory("mysql-9.7").display().to_string();
    tanada(&[&["sql", "--innodb", &directory, "--database", "tpch"] as &[&str], arguments].concat())
}

/// Where samples are unpacked, once for all tests.
fn work_folder() -> &'static Path {
    Path::new(env!("CARGO_TARGET_TMPDIR"))
}

/// The data directory of a sample.
fn directory(name: &str) -> PathBuf {
    static UNPACKED: OnceLock<Vec<PathBuf>> = OnceLock::new();
    let all = UNPACKED.get_or_init(|| {
        SAMPLES.iter().map(|sample| sample.data_directory(work_folder()).expect("unpacked")).collect()
    });
    all.iter().find(|path| path.ends_with(name)).expect("a sample").clone()
}
