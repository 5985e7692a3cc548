//! `tanada demo`, whole: both servers, both orders, all answers checked; and from what a release has.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::{Outcome, run, tanada, work_folder};

#[test]
fn the_demo_shows_both_orders_on_both_servers() {
    let output = tanada(&["demo", "--dir", &work_folder().display().to_string()]).output();
    let lines = |server: &str, what: &str| {
        output.lines().filter(|line| line.starts_with(server) && line.contains(what)).count()
    };
    for server in ["MySQL 9.7", "MariaDB 10.11"] {
        assert_eq!(lines(server, "in order"), 2, "{output}");
        assert_eq!(lines(server, "out of order"), 2, "{output}");
        assert_eq!(lines(server, " Q"), 3, "{output}");
    }
    assert_eq!(lines("8 x hdd-7200", "x"), 1, "{output}");
    assert!(output.contains("All 46 answers are those of the servers"), "{output}");
    assert!(output.contains("tanada sql --innodb"), "{output}");
}

#[test]
fn a_folder_that_cannot_be_written_is_named() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let outcome = tanada(&["demo", "--dir", &file.path().join("x").display().to_string()]);
    assert_eq!(outcome.code, 1);
    assert!(outcome.stderr.contains(&file.path().display().to_string()), "{}", outcome.stderr);
}

/// What a release publishes for this machine, made of the programs that are tested, and unpacked in `folder`.
fn unpacked_release(folder: &Path) -> PathBuf {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts/release");
    let programs = Path::new(env!("CARGO_BIN_EXE_tanada")).parent().unwrap();
    let packed =
        Command::new(script).arg("--binaries").arg(programs).arg("--out").arg(folder).output().unwrap();
    assert!(packed.status.success(), "{}", String::from_utf8_lossy(&packed.stderr));
    let is_whole =
        Command::new("sha256sum").args(["--check", "SHA256SUMS"]).current_dir(folder).output().unwrap();
    assert!(is_whole.status.success(), "{}", String::from_utf8_lossy(&is_whole.stderr));
    let found = |is_wanted: fn(&Path) -> bool| {
        let mut entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
        entries.find(|path| is_wanted(path)).unwrap()
    };
    let archive = found(|path| path.extension().is_some_and(|extension| extension == "gz"));
    assert!(Command::new("tar").arg("-xzf").arg(&archive).current_dir(folder).status().unwrap().success());
    found(Path::is_dir)
}

/// Runs a program of the release, which has nothing but what lies beside it.
fn released(program: &Path, arguments: &[&str]) -> Outcome {
    run(Command::new(program).args(arguments).env_remove("CARGO_MANIFEST_DIR"), "")
}

#[test]
fn the_demo_runs_from_an_unpacked_release() {
    let folder = tempfile::tempdir().unwrap();
    let release = unpacked_release(folder.path());
    let program = release.join("tanada");
    let sample = folder.path().join("sample");
    let output = released(&program, &["demo", "--dir", sample.to_str().unwrap()]).output();
    assert!(output.contains("All 46 answers are those of the servers"), "{output}");
    assert!(released(&program, &["bench", "--help"]).stdout.contains("ooode"));

    std::fs::remove_file(release.join("tpch-sf0.02-mysql-9.7.tar.zst")).unwrap();
    let failed = released(&program, &["demo", "--dir", folder.path().to_str().unwrap()]);
    assert_eq!(failed.code, 1);
    assert!(failed.stderr.contains("tpch-sf0.02-mysql-9.7.tar.zst is not in"), "{}", failed.stderr);
    std::fs::remove_file(release.join("tanada-bench")).unwrap();
    let error = released(&program, &["bench", "io"]).error(1);
    assert!(error.contains("tanada-bench is not in") && error.contains(release.to_str().unwrap()), "{error}");
}
