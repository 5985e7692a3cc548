//! What goes wrong says so in one line and by the exit code.

use std::io::Read;
use std::path::Path;
use std::process::{Command, Stdio};

use super::{directory, sql, tanada, tanada_with_stdin, unexpected};

fn mounted(path: &Path, more: &[&str]) -> super::Outcome {
    let path = path.display().to_string();
    tanada(&[&["sql", "--innodb", &path] as &[&str], more].concat())
}

/// A copy of the MariaDB sample that a test may damage; tables other than the small ones left out.
fn damaged(damage: impl FnOnce(&Path)) -> tempfile::TempDir {
    let folder = tempfile::tempdir_in(super::work_folder()).unwrap();
    let source = directory("mariadb-10.11");
    std::fs::create_dir(folder.path().join("tpch")).unwrap();
    let files = [
        "ibdata1",
        "ib_logfile0",
        "tpch/nation.ibd",
        "tpch/nation.frm",
        "tpch/supplier.ibd",
        "tpch/supplier.frm",
    ];
    for file in files {
        std::fs::copy(source.join(file), folder.path().join(file)).unwrap();
    }
    damage(folder.path());
    folder
}

fn overwrite(path: &Path, offset: usize, bytes: &[u8]) {
    let mut content = std::fs::read(path).unwrap();
    content[offset..offset + bytes.len()].copy_from_slice(bytes);
    std::fs::write(path, content).unwrap();
}

#[test]
fn wrong_arguments_are_bad_usage() {
    for arguments in [
        &["sql", "--nonsense"] as &[&str],
        &["sql", "-c", "select 1", "-f", "x.sql"],
        &["sql", "--format", "xml", "-c", "select 1"],
        &["sql", "--cache", "much", "-c", "select 1"],
        &["sql", "--set", "tanada.execution", "-c", "select 1"],
        &["sql", "--memory", "0", "-c", "select 1"],
        &["nothing"],
    ] {
        tanada(arguments).error(2);
    }
    for arguments in [&["bench", "ooode"] as &[&str], &[]] {
        let outcome = tanada(arguments);
        assert_eq!((outcome.code, outcome.stdout.as_str()), (2, ""), "{arguments:?}");
        assert!(!outcome.stderr.is_empty());
    }
}

#[test]
fn a_query_that_fails_before_its_first_row_writes_nothing() {
    for format in ["table", "tsv", "csv", "json"] {
        let outcome = sql(&[
            "--format",
            format,
            "-c",
            "select 9223372036854775807 + n_nationkey from nation where n_nationkey > 0",
        ]);
        assert_eq!(outcome.stdout, "", "{format}");
        assert!(outcome.error(1).contains("out of the range of BIGINT"));
    }
}

#[test]
fn skipped_damage_is_listed_and_has_an_exit_code_of_its_own() {
    const PAGE: usize = 16384;
    // The last of three leaves.
    let folder = damaged(|folder| overwrite(&folder.join("tpch/supplier.ibd"), 6 * PAGE, &[0; PAGE]));
    let query = "select sum(s_acctbal) from supplier";
    let error = mounted(folder.path(), &["-c", query]).error_after_warnings(1);
    assert!(error.contains("supplier.ibd") && error.contains("--skip-damaged"), "{error}");
    let outcome = mounted(folder.path(), &["--skip-damaged", "-c", "select count(*) as n from supplier"]);
    assert_eq!((outcome.code, outcome.stdout.as_str()), (3, "n\n140\n"), "{}", outcome.stderr);
    for part in ["supplier.ibd: page 6 of index PRIMARY: about ", "rows are missing"] {
        assert!(outcome.stderr.contains(part), "{}", outcome.stderr);
    }
    // By key, too, no row is missing without a word.
    for (key, n) in [(1, 1), (199, 0)] {
        let query = format!("select count(*) as n from supplier where s_suppkey = {key}");
        let outcome = mounted(folder.path(), &["--set", "tanada.skip_damaged=true", "-c", &query]);
        assert_eq!((outcome.code, outcome.stdout), (3, format!("n\n{n}\n")), "{}", outcome.stderr);
    }
    let outcome = mounted(folder.path(), &["--skip-damaged", "-c", "select count(*) as n from nation"]);
    assert_eq!((outcome.stdout.as_str(), outcome.code, outcome.stderr.as_str()), ("n\n25\n", 0, ""));
}

#[test]
fn help_is_no_failure_and_has_examples() {
    for arguments in [
        &["sql", "--help"] as &[&str],
        &["demo", "--help"],
        &["bench", "io", "--help"],
        &["bench", "ooode", "--help"],
        &["bench", "volume", "--help"],
    ] {
        assert!(tanada(arguments).output().contains("Examples:"), "{arguments:?}");
    }
    assert!(tanada(&["--version"]).output().starts_with("tanada "));
}

#[test]
fn a_wrong_setting_is_bad_usage_and_names_the_right_ones() {
    let error = tanada(&["sql", "--set", "tanada.execution=sideways", "-c", "select 1"]).error(2);
    assert!(error.contains("out_of_order"), "{error}");
    let error = tanada(&["sql", "--set", "tanada.speed=9", "-c", "select 1"]).error(2);
    assert!(error.contains("tanada.io_depth"), "{error}");
}

#[test]
fn a_path_that_is_not_there_is_named() {
    let error = mounted(Path::new("/nowhere/at/all"), &["-c", "select 1"]).error(1);
    assert!(error.contains("/nowhere/at/all"), "{error}");
    let error = tanada(&["sql", "-f", "/nowhere.sql"]).error(1);
    assert!(error.contains("/nowhere.sql"), "{error}");
    let empty = tempfile::tempdir().unwrap();
    let error = mounted(empty.path(), &["-c", "select 1"]).error(1);
    assert!(error.contains(&empty.path().display().to_string()), "{error}");
}

#[test]
fn unknown_names_and_wrong_sql_are_said() {
    let error = sql(&["-c", "select * from lineitems"]).error(1);
    assert!(error.contains("lineitems"), "{error}");
    let error = sql(&["-c", "select l_colour from lineitem"]).error(1);
    assert!(error.contains("l_colour"), "{error}");
    sql(&["-c", "selectt 1"]).error(1);
    sql(&["-c", "select 'open"]).error(1);
    let error = sql(&["--database", "shop", "-c", "select 1"]).code;
    assert_eq!(error, 2, "--database twice");
    let directory = directory("mysql-9.7");
    let error = mounted(&directory, &["--database", "shop", "-c", "select 1"]).error(1);
    assert!(error.contains("shop"), "{error}");
}

#[test]
fn the_first_statement_that_fails_ends_the_run() {
    let outcome = tanada_with_stdin(&["sql"], "select 1 as a; select * from nothing; select 2 as b;");
    assert_eq!((outcome.code, outcome.stdout.as_str()), (1, "a\n1\n"));
}

#[test]
fn a_truncated_file_is_an_error_that_names_it() {
    let folder = damaged(|folder| {
        let file = std::fs::OpenOptions::new().write(true).open(folder.join("tpch/supplier.ibd")).unwrap();
        file.set_len(5 * 16384 + 100).unwrap();
    });
    let query = "select sum(s_acctbal) from supplier";
    let error = mounted(folder.path(), &["-c", query]).error_after_warnings(1);
    assert!(error.contains("supplier"), "{error}");
    let other = mounted(folder.path(), &["-c", "select count(*) as n from nation"]);
    assert_eq!(other.output(), "n\n25\n", "the other tables are there");
}

#[test]
fn a_damaged_page_is_an_error_and_never_an_answer() {
    let folder = damaged(|folder| overwrite(&folder.join("tpch/nation.ibd"), 3 * 16384 + 200, b"??"));
    let error = mounted(folder.path(), &["-c", "select * from nation"]).error(1);
    assert!(error.contains("nation.ibd") && error.contains("page 3"), "{error}");
}

#[test]
fn files_of_a_server_that_did_not_shut_down_are_refused_unless_accepted_by_name() {
    let folder = damaged(|folder| overwrite(&folder.join("ib_logfile0"), 4096, &[0; 8192]));
    let count = ["-c", "select count(*) as n from nation"];
    let error = mounted(folder.path(), &count).error(1);
    assert!(error.contains("--allow-stale"), "{error}");
    let stale = mounted(folder.path(), &[&count as &[&str], &["--allow-stale"]].concat());
    assert_eq!((stale.code, stale.stdout.as_str()), (0, "n\n25\n"));
    assert!(stale.stderr.starts_with("tanada: warning: "), "{}", stale.stderr);
}

#[test]
fn a_closed_pipe_is_not_an_error() {
    let mut child = Command::new(env!("CARGO_BIN_EXE_tanada"))
        .args(["sql", "--innodb", &directory("mysql-9.7").display().to_string(), "--database", "tpch"])
        .args(["-c", "select * from lineitem"])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut first = [0; 10];
    child.stdout.take().unwrap().read_exact(&mut first).unwrap();
    let output = child.wait_with_output().unwrap();
    let stderr = unexpected(&String::from_utf8_lossy(&output.stderr));
    assert_eq!((output.status.code(), stderr.as_str()), (Some(0), ""));
}
