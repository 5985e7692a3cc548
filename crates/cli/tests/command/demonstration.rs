//! `tanada demo`, whole: both servers, both orders, all answers checked.

use super::{tanada, work_folder};

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
