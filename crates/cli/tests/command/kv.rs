//! `tanada kv`: keys and values in a volume, and what is refused.

use std::io::Write;
use std::process::{Command, Stdio};
use std::time::Duration;

use tempfile::TempDir;

use crate::{Outcome, tanada, tanada_with_stdin};

/// A volume with two classes.
struct Made {
    folder: TempDir,
    volume: String,
}

impl Made {
    fn new() -> Made {
        let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        let volume = folder.path().join("vol").display().to_string();
        let class = |name: &str, size: &str| format!("{name}={volume}/{name},size={size}");
        let (fast, slow) = (class("fast", "32MiB"), class("slow", "512MiB"));
        tanada(&["volume", "create", &volume, "--class", &fast, "--class", &slow]).output();
        Made { folder, volume }
    }

    fn kv(&self, arguments: &[&str]) -> Outcome {
        self.fed(arguments, "")
    }

    fn fed(&self, arguments: &[&str], stdin: &str) -> Outcome {
        tanada_with_stdin(&[&["kv", &self.volume] as &[&str], arguments].concat(), stdin)
    }

    fn volume(&self, command: &[&str], arguments: &[&str]) -> Outcome {
        tanada(&[&["volume"] as &[&str], command, &[&self.volume], arguments].concat())
    }
}

fn lines(numbers: std::ops::Range<u32>) -> String {
    numbers.map(|no| format!("key{no:05}\tvalue {no}\n")).collect()
}

#[test]
fn what_is_put_comes_back() {
    let made = Made::new();
    assert_eq!(made.kv(&["put", "user:17", "Aiko"]).output(), "");
    assert_eq!(made.kv(&["get", "user:17"]).output(), "Aiko\n");
    assert_eq!(made.fed(&["load"], &lines(0..1000)).output(), "1000 keys written, 16.5 KiB\n");
    let scanned = made.kv(&["scan", "--prefix", "key0099", "--limit", "2"]).output();
    assert_eq!(scanned, "key00990\tvalue 990\nkey00991\tvalue 991\n");
    made.kv(&["delete", "--prefix", "key"]).output();
    assert_eq!(made.kv(&["scan"]).output(), "user:17\tAiko\n");
    made.kv(&["compact"]).output();
    assert_eq!(made.kv(&["check"]).output(), "1 kvset, 1 version, 0 values (0 B) read and verified\n");
}

/// What was read is written and durable though more may come, and what a stop leaves in the log alone is told.
#[test]
fn a_load_that_waits_for_more_loses_nothing() {
    let made = Made::new();
    let mut running = Command::new(env!("CARGO_BIN_EXE_tanada"))
        .args(["kv", &made.volume, "load"])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let mut input = running.stdin.take().unwrap();
    input.write_all(lines(0..1000).as_bytes()).unwrap();
    input.flush().unwrap();
    // The log is on its way to the fast class; so long as it is not there, the class's file does not have the last line's value.
    let log = std::fs::read_dir(&made.volume).unwrap().map(|entry| entry.unwrap().path());
    let log = log.into_iter().find(|path| path.ends_with("fast")).unwrap();
    let is_written = || std::fs::read(&log).unwrap().windows(9).any(|bytes| bytes == b"value 999");
    assert!((0..600).any(|_| {
        std::thread::sleep(Duration::from_millis(100));
        is_written()
    }));
    running.kill().unwrap();
    running.wait().unwrap();
    drop(input);
    assert_eq!(made.kv(&["scan"]).output(), lines(0..1000));
    let checked = made.kv(&["check"]).output();
    assert_eq!(
        checked,
        "0 kvsets, 0 versions, 0 values (0 B) read and verified, and 1000 versions in the log\n"
    );
}

#[test]
fn a_load_that_fails_says_where_and_how_much_is_there() {
    let made = Made::new();
    let error = made.fed(&["load"], &(lines(0..10) + "no tab here\n" + &lines(10..20))).error(1);
    assert!(
        error.contains("line 11: there is no tab") && error.contains("10 keys before that are written"),
        "{error}"
    );
    assert_eq!(made.kv(&["scan"]).output(), lines(0..10));
}

#[test]
fn what_would_do_harm_is_refused() {
    let made = Made::new();
    made.kv(&["put", "a", "1"]).output();
    for command in ["stat", "check", "scan"] {
        let error = made.kv(&["--store", "none", command]).error(1);
        assert!(error.contains("\"none\""), "{error}");
    }
    let objects = made.volume(&["ls"], &[]).output();
    let manifest = objects.split_whitespace().find(|word| word.contains("/manifest-")).unwrap().to_owned();
    let error = made.volume(&["rm"], &[&manifest]).error(1);
    assert!(error.contains("kv/default removes all of it"), "{error}");

    // Files with data, those of another volume among them.
    let other = made.folder.path().join("other").display().to_string();
    let taken = format!("fast={}/fast,size=64MiB", made.volume);
    let error = tanada(&["volume", "create", &other, "--class", &taken]).error(1);
    assert!(error.contains("has data in it"), "{error}");
    let twice = format!("a={other}/x:{other}/x,size=64MiB");
    let error = tanada(&["volume", "create", &other, "--class", &twice]).error(2);
    assert!(error.contains("named twice"), "{error}");

    made.volume(&["class", "drain"], &["fast"]).output();
    let error = made.volume(&["class", "drain"], &["slow"]).error(1);
    assert!(error.contains("only one that takes chunks"), "{error}");
    assert_eq!(made.kv(&["get", "a"]).output(), "1\n");
    made.kv(&["put", "b", "2"]).output();

    made.volume(&["rm"], &["kv/default"]).output();
    assert!(made.kv(&["get", "a"]).error(1).contains("there is no database"));
}
