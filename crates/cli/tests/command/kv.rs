//! `tanada kv`: keys and values in a volume, and what is refused.

use std::ffi::OsStr;
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::process::{Command, Stdio};
use std::time::Duration;

use tempfile::TempDir;

use crate::{Outcome, run, tanada, tanada_with_stdin};

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
fn put_values_are_returned_by_get_and_scan() {
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

#[test]
fn digits_come_from_stdin_as_from_arguments() {
    let made = Made::new();
    made.fed(&["--hex", "put", "6b", "-"], "76fF\n").output();
    assert_eq!(made.kv(&["--hex", "get", "6b"]).output(), "76ff\n");
    assert!(made.fed(&["--hex", "put", "6b", "-"], "6B\t76").error(2).contains("hexadecimal"));
    assert_eq!(made.kv(&["--hex", "get", "6b"]).output(), "76ff\n");
}

#[test]
fn a_key_that_is_no_text_is_told_of_hex() {
    let made = Made::new();
    let mut put = Command::new(env!("CARGO_BIN_EXE_tanada"));
    put.args(["kv", &made.volume, "put"]).arg(OsStr::from_bytes(b"k\xff")).arg("v");
    assert!(run(&mut put, "").error(2).contains("--hex"));
}

#[test]
fn a_database_that_cannot_be_opened_is_listed_with_its_reason() {
    let made = Made::new();
    made.kv(&["put", "a", "b"]).output();
    let fast = std::fs::File::options().write(true).open(made.folder.path().join("vol/fast")).unwrap();
    let end = fast.metadata().unwrap().len();
    fast.set_len(1 << 20).unwrap();
    fast.set_len(end).unwrap();
    let ls = made.kv(&["ls"]);
    assert_eq!((ls.code, ls.stderr.as_str()), (1, "tanada: cannot be opened: default\n"));
    let listed = ls.stdout;
    let lines: Vec<&str> = listed.lines().collect();
    assert!(lines[1].contains("(cannot be opened)") && lines[1].len() < 80, "{listed}");
    assert!(lines[2].starts_with("default: ") && lines[2].contains("kv/default/"), "{listed}");
}

#[test]
fn a_scan_has_both_ends_in_both_directions() {
    let made = Made::new();
    made.fed(&["load"], &lines(0..20)).output();
    let scanned = |arguments: &[&str]| made.kv(&[&["scan"] as &[&str], arguments].concat()).output();
    let backwards =
        |numbers: std::ops::Range<u32>| -> String { numbers.rev().map(|no| lines(no..no + 1)).collect() };
    let (from, to) = ("key00003", "key00007");
    assert_eq!(scanned(&["--to", to]), lines(0..7));
    assert_eq!(scanned(&["--from", from, "--to", to]), lines(3..7));
    assert_eq!(scanned(&["--from", from, "--to", to, "--reverse"]), backwards(3..7));
    assert_eq!(scanned(&["--to", to, "--reverse", "--limit", "2"]), backwards(5..7));
    assert_eq!(scanned(&["--from", "key00017x", "--reverse"]), backwards(18..20));
    // A prefix and ends that lie beyond it.
    let narrow = &["--prefix", "key0001", "--from", "a", "--to", "z"] as &[&str];
    assert_eq!(scanned(narrow), lines(10..20));
    assert_eq!(scanned(&[narrow, &["--reverse"]].concat()), backwards(10..20));
    assert_eq!(scanned(&["--prefix", "key0000", "--to", "key00002", "--reverse"]), backwards(0..2));
    assert_eq!(scanned(&["--prefix", "key0001", "--to", "key00002", "--reverse"]), "");
    // Digits are keys as well: those of key00003 and key00005.
    let digits = ["--hex", "scan", "--keys", "--from", "0x6b65793030303033", "--to", "6b65793030303035"];
    assert_eq!(made.kv(&digits).output(), "6b65793030303033\n6b65793030303034\n");
    for wrong in [
        &["scan", "--from", to, "--to", from] as &[&str],
        &["scan", "--to", ""],
        &["--hex", "scan", "--to", "key"],
    ] {
        made.kv(wrong).error(2);
    }
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
    // The log is on its way to the fast class; so long as it is not there, the class's file does not have the last
    // line's value.
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
    assert!(made.fed(&["load"], "no tab here\n").error(1).contains("stdin, line 1: there is no tab"));
    let error = made.kv(&["scan"]).error(1);
    assert!(error.contains("there is no database"), "{error}: what wrote nothing leaves nothing");
    assert!(error.contains("tanada kv load"), "{error}");
    let error = made.fed(&["load"], &(lines(0..10) + "no tab here\n" + &lines(10..20))).error(1);
    assert!(
        error.contains("line 11: there is no tab") && error.contains("10 keys before that are written"),
        "{error}"
    );
    assert_eq!(made.kv(&["scan"]).output(), lines(0..10));
    let endless = "x".repeat(67_200_000);
    let error = made.fed(&["load"], &endless).error(1);
    assert!(error.contains("from line 1 on") && error.contains("no key with a value"), "{error}");
    let error = made.fed(&["put", "a", "-"], &endless).error(1);
    assert!(error.contains("longer than 67108864 bytes"), "{error}");
    let error = made.fed(&["load"], "a\tb\nno tab here\n").error(1);
    assert!(error.contains("1 key before that is written"), "{error}");
}

/// What the engine had taken but the device had not was said to be written. A limit of the size of files stands for a
/// full disk.
#[test]
fn a_load_whose_device_takes_no_more_promises_nothing_for_the_last() {
    let made = Made::new();
    made.kv(&["put", "a", "1"]).output();
    let command = format!(
        "trap '' XFSZ; ulimit -f 40000; seq 1000000 | awk '{{ print $1 \"\\tvalue\" $1 }}' | {} kv {} load",
        env!("CARGO_BIN_EXE_tanada"),
        made.volume
    );
    let output = std::process::Command::new("sh").args(["-c", &command]).output().unwrap();
    let error = String::from_utf8(output.stderr).unwrap();
    assert_eq!((output.status.code(), output.stdout.as_slice()), (Some(1), &b""[..]), "{error}");
    let there = made.kv(&["scan"]).output().lines().count();
    match error.trim().rsplit("; ").next().unwrap().strip_suffix(" keys before that are written") {
        // And the one from before.
        Some(written) => assert!(there > written.parse().unwrap(), "{there}: {error}"),
        None => assert!(error.contains("the last may be lost"), "{error}"),
    }
    assert_eq!(made.kv(&["get", "a"]).output(), "1\n");
    made.kv(&["check"]).output();
}

/// It was told of the first object that could not be written.
#[test]
fn without_a_class_nothing_is_written_and_it_is_said_why() {
    let made = Made::new();
    made.fed(&["load"], &(0..2000).map(|no| format!("{no}\t{}\n", "x".repeat(1000))).collect::<String>())
        .output();
    made.kv(&["compact"]).output();
    let slow = std::path::Path::new(&made.volume).join("slow");
    std::fs::rename(&slow, slow.with_extension("away")).unwrap();
    let error = made.kv(&["put", "a", "1"]).error(1);
    assert!(error.contains("cannot open database \"default\" for writing"), "{error}");
    assert!(error.contains("slow (device 0): put back the files"), "{error}");
    std::fs::rename(slow.with_extension("away"), &slow).unwrap();
    assert_eq!(made.kv(&["put", "a", "1"]).output(), "");
}

#[test]
fn harmful_commands_are_refused() {
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

/// Settings, policies and what writes are told come to the engine; what is not named stays.
#[test]
fn settings_and_policies_are_given_and_changed() {
    let made = Made::new();
    let of_store = r#"{"time_to_live_s": 3600, "compression": "lz4"}"#;
    let limit = made.folder.path().join("limit.json");
    std::fs::write(&limit, r#"{"fast_class_bytes": 16777216}"#).unwrap();
    let limit = limit.to_str().unwrap();
    let wrong = made.kv(&["create", "--settings", r#"{"ttl": 1}"#, "--database-settings", limit]).error(2);
    assert!(wrong.contains("unknown field `ttl`"), "{wrong}");
    let wrong = made.kv(&["create", "--policy", "no_such"]).error(2);
    assert!(wrong.contains("staging_max_capacity"), "{wrong}");
    // What cannot be made as a whole is not made in part.
    let wrong = made.kv(&["create", "--settings", r#"{"page_bytes": 1}"#, "--database-settings", limit]);
    assert!(wrong.error(2).contains("page_bytes"));
    assert_eq!(made.kv(&["ls"]).output(), "there are no databases\n");
    let both = ["create", "--settings", of_store, "--policy", "staging_only", "--database-settings", limit];
    assert_eq!(made.kv(&both).output(), "");
    assert!(made.kv(&both).error(1).contains("change its settings"));
    assert!(made.kv(&["create"]).error(1).contains("there is a store \"default\" already"));

    assert_eq!(made.kv(&["settings", r#"{"memory_bytes": 67108864}"#]).output(), "");
    assert!(made.kv(&["settings", r#"{"memory": 1}"#]).error(2).contains("memory"));
    for command in [&["settings"][..], &["get", "a"]] {
        let error = made.kv(&[&["--store", "none"], command].concat()).error(1);
        assert!(
            error.contains("no store \"none\" in database \"default\", which has \"default\""),
            "{error}"
        );
    }
    let error = made.kv(&["settings", "--set", "leaf_bytes=0"]).error(2);
    assert!(error.contains("leaf_bytes is not between 64 KiB"), "{error}");
    let shown = made.kv(&["settings"]).output();
    let is_said = |what: &str| assert!(shown.contains(what), "{what} in {shown}");
    [r#""fast_class_bytes": 16777216"#, r#""memory_bytes": 67108864"#].into_iter().for_each(is_said);
    [r#""time_to_live_s": 3600"#, r#""compression": "lz4""#].into_iter().for_each(is_said);

    // One by one, of the database and of a store that is there.
    let of_database = ["settings", "--set", "durability=sync", "--set", "fast_class_bytes=null"];
    assert_eq!(made.kv(&of_database).output(), "");
    assert_eq!(
        made.kv(&["settings", "--set", "compression=zstd", "--set", "time_to_live_s=60"]).output(),
        ""
    );
    assert!(
        made.kv(&["settings", "--set", "mirrors=false", "--set", "page_bytes=1"])
            .error(2)
            .contains("page_bytes")
    );
    assert!(made.kv(&["settings", "--set", "ttl=1"]).error(2).contains("ttl"));
    let wrong = made.kv(&["settings", "--set", "durability=sync", "--set", "memory_bytes=much"]).error(2);
    assert!(wrong.contains("memory_bytes"), "{wrong}");
    assert_eq!(made.kv(&["settings", "--set", "memory_bytes=64MiB"]).output(), "");
    assert!(
        made.kv(&["--store", "none", "settings", "--set", "mirrors=false"]).error(1).contains("\"none\"")
    );
    let shown = made.kv(&["settings"]).output();
    let is_said = |what: &str| assert!(shown.contains(what), "{what} in {shown}");
    [r#""fast_class_bytes": null"#, r#""durability": "sync""#].into_iter().for_each(is_said);
    [r#""time_to_live_s": 60"#, r#""compression": "zstd""#].into_iter().for_each(is_said);
    [r#""mirrors": true"#, r#""memory_bytes": 67108864"#].into_iter().for_each(is_said);

    assert_eq!(made.kv(&["policy"]).output(), "\"staging_only\"\n");
    assert_eq!(made.kv(&["policy", "capacity_only"]).output(), "");
    assert_eq!(made.kv(&["policy"]).output(), "\"capacity_only\"\n");
    let own = r#"{"root": {"keys": "fast", "values": "log"}, "leaf": {"keys": "fast", "values": "none"}}"#;
    assert!(made.kv(&["policy", own]).error(1).contains("\"none\""));
    made.kv(&["policy", &own.replace("none", "slow")]).output();
    assert!(made.kv(&["policy"]).output().contains("\"values\": \"slow\""));
}

#[test]
fn deleted_ranges_and_expired_keys_are_not_returned() {
    let made = Made::new();
    made.fed(&["load", "--compression", "zstd"], &lines(0..10)).output();
    for wrong in [
        &["delete"] as &[&str],
        &["delete", "a", "--from", "b"],
        &["delete", "--prefix", "a", "--to", "b"],
        &["delete", "--from", "key00005", "--to", "key00005"],
        &["delete", "--to", ""],
        &["delete", "--prefix", ""],
        &["put", "a", "b", "--ttl", "0"],
    ] {
        made.kv(wrong).error(2);
    }
    made.kv(&["delete", "--from", "key00002", "--to", "key00004"]).output();
    made.kv(&["delete", "--to", "key00001"]).output();
    made.kv(&["delete", "--from", "key00008"]).output();
    assert_eq!(made.kv(&["scan"]).output(), lines(1..2) + &lines(4..8));
    made.kv(&["put", "soon", "gone", "--ttl", "1"]).output();
    made.kv(&["put", "late", "kept", "--ttl", "1000"]).output();
    std::thread::sleep(Duration::from_secs(2));
    assert_eq!(made.kv(&["scan", "--prefix", "soon"]).output(), "");
    assert_eq!(made.kv(&["get", "late"]).output(), "kept\n");
}

#[test]
fn databases_and_stores_are_listed_copied_and_dropped() {
    let made = Made::new();
    made.kv(&["put", "a", "1"]).output();
    made.kv(&["--store", "other", "put", "b", "2"]).output();
    made.kv(&["checkpoint", "copy"]).output();
    made.kv(&["put", "a", "later"]).output();
    assert!(made.kv(&["checkpoint", "copy"]).error(1).contains("already"));
    assert!(made.kv(&["--database", "none", "checkpoint", "x"]).error(1).contains("'none'"));
    assert_eq!(made.kv(&["--database", "copy", "get", "a"]).output(), "1\n");
    let listed = made.kv(&["ls", "--json"]).output();
    let names = |word: &str| listed.matches(&format!("\"name\": \"{word}\"")).count();
    assert_eq!([names("copy"), names("default"), names("other")], [1, 3, 2], "{listed}");
    assert_eq!(listed.matches(r#""policy": "staging_max_capacity""#).count(), 4);
    made.kv(&["--database", "copy", "drop", "other"]).output();
    assert!(made.kv(&["--database", "copy", "drop", "other"]).error(1).contains("\"other\""));
    made.kv(&["--database", "copy", "drop", "default"]).output();
    let listed = made.kv(&["ls"]).output();
    assert!(listed.contains("(no stores)") && listed.lines().count() >= 4, "{listed}");
    made.kv(&["destroy", "copy"]).output();
    assert!(made.kv(&["destroy", "copy"]).error(1).contains("\"copy\""));
    assert!(!made.kv(&["ls"]).output().contains("copy"));
    assert_eq!(made.kv(&["get", "a"]).output(), "later\n");
}

/// What was put is in the log, and the log is on a device: that the rest of the volume is full is no failure of the
/// put.
#[test]
fn a_put_that_fills_the_volume_has_succeeded() {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let volume = folder.path().join("vol").display().to_string();
    // A segment of the log, the manifest, and nothing else.
    tanada(&["volume", "create", &volume, "--class", &format!("only={volume}/only,size=2MiB")]).output();
    let put = tanada(&["kv", &volume, "put", "a", "1"]);
    assert_eq!((put.code, put.stdout.as_str()), (0, ""), "{}", put.stderr);
    assert_eq!(put.stderr.lines().count(), 1, "{}", put.stderr);
    assert!(put.stderr.starts_with("tanada: warning: ") && put.stderr.contains("enlarge a class"));
    assert_eq!(tanada(&["kv", &volume, "get", "a"]).output(), "1\n");
    // What the log alone has counts.
    let listed = tanada(&["kv", &volume, "ls"]).output();
    assert!(listed.split_whitespace().collect::<Vec<_>>().join(" ").ends_with("1 2 B"), "{listed}");
    // One that is not there has not.
    let error = tanada(&["kv", &volume, "put", "b", "2"]).error(1);
    assert!(error.contains("enlarge a class"), "{error}");
    assert_eq!(tanada(&["kv", &volume, "scan"]).output(), "a\t1\n");
}

#[test]
fn a_small_volume_accepts_writes_until_it_is_full() {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let volume = folder.path().join("vol").display().to_string();
    tanada(&["volume", "create", &volume, "--class", &format!("only={volume}/only,size=8MiB")]).output();
    // Options of all commands may stand behind them.
    for no in 0..5 {
        tanada(&["kv", &volume, "put", &format!("key{no}"), "value", "--database", "small"]).output();
    }
    // The last free chunk is what the log has ready.
    tanada(&["kv", &volume, "--database", "small", "compact"]).output();
    assert_eq!(tanada(&["kv", &volume, "get", "key4", "--database", "small"]).output(), "value\n");
    assert_eq!(tanada(&["kv", &volume, "scan", "--database", "small"]).output().lines().count(), 5);
}
