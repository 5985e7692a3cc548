//! `tanada sql --columnar`: mirrors are made beside the statements, and cost no answer where they cannot be written.

use std::path::Path;
use std::process::Command;

use super::{directory, run, sql, work_folder};

const SUM: &str = "select sum(l_orderkey), max(l_shipdate) from lineitem";

fn mirrors(folder: &Path) -> usize {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries.filter(|path| path.extension().is_some_and(|extension| extension == "mirror")).count()
}

#[test]
fn the_second_run_reads_what_the_first_one_made() {
    let folder = tempfile::tempdir_in(work_folder()).unwrap();
    let cache = folder.path().join("cache").display().to_string();
    let expected = sql(&["-c", SUM]).output();
    assert_eq!(sql(&["--columnar", &cache, "-c", SUM]).output(), expected);
    assert_eq!(mirrors(Path::new(&cache)), 2);
    let explained = format!("explain {SUM}; select count(*) as n from tanada.columnar_mirrors");
    let plan = sql(&["--columnar", &cache, "-c", &explained]).output();
    assert!(plan.contains("access=mirrors of 2 columns") && plan.ends_with("n\n2\n"), "{plan}");
    assert_eq!(sql(&["--columnar", &cache, "-c", SUM]).output(), expected);
    let off = ["--columnar", &cache, "--set", "tanada.columnar=off", "-c", &format!("explain {SUM}")];
    assert!(!sql(&off).output().contains("access=mirrors"));
}

#[test]
fn answers_come_although_mirrors_find_no_room() {
    let folder = tempfile::tempdir_in(work_folder()).unwrap();
    let cache = folder.path().join("cache");
    let expected = sql(&["-c", SUM]).output();
    let script = "trap '' XFSZ; ulimit -f 8; exec \"$0\" \"$@\"";
    let mut command = Command::new("sh");
    command.args(["-c", script, env!("CARGO_BIN_EXE_tanada"), "sql", "--database", "tpch", "--innodb"]);
    command.arg(directory("mysql-9.7")).arg("--columnar").arg(&cache).args(["-c", SUM]);
    let outcome = run(&mut command, "");
    assert_eq!((outcome.code, outcome.stdout), (0, expected));
    assert_eq!(outcome.stderr.matches("no more mirrors are made").count(), 1, "{}", outcome.stderr);
    assert_eq!(std::fs::read_dir(&cache).unwrap().count(), 1, "the lock alone");
}
