//! Temporal columns of before MySQL 5.6 behind a statement that does not say in which form they are.

use std::path::Path;

use tanada_innodb::{Catalog, ErrorKind, IndexNo, KeyRange, MountOptions, Result};

use crate::fixtures::unpacked;
use crate::support::{environment, run, scan, spelled, stored_columns, types};

/// The rows of a table of which there is nothing but the file and `statement`.
fn rows(table: &str, statement: &str) -> Result<Vec<String>> {
    let folder = tempfile::tempdir().unwrap();
    let source = unpacked("old-times").join("mariadb-10.11/times").join(table).with_extension("ibd");
    let copy = folder.path().join("times");
    std::fs::create_dir(&copy).unwrap();
    std::fs::copy(source, copy.join(table).with_extension("ibd")).unwrap();
    let ddl = folder.path().join("dump.sql");
    std::fs::write(&ddl, statement).unwrap();
    let environment = environment(true);
    let within = environment.clone();
    let options = MountOptions { allow_stale: true, ddl: vec![ddl], ..MountOptions::default() };
    let table = table.to_owned();
    run(&environment, move || async move {
        let catalog = Catalog::open(Path::new(&copy), &options, &within).await?;
        let table = catalog.table("times", &table).await?;
        let columns = stored_columns(&table);
        let found = scan(&table, &table.access(IndexNo(0), &columns)?, &KeyRange::all()).await?;
        Ok(spelled(&found, &types(&table, &columns)).iter().map(|row| row.join(" ")).collect())
    })
}

#[test]
fn temporal_forms_are_told_by_the_rows() {
    let both = "create table old_both (id int primary key, a time, b datetime, key(a));";
    let expected = ["1 12:34:56 2020-01-02 03:04:05", "2 -00:00:01 1999-12-31 23:59:59"];
    assert_eq!(rows("old_both", both).unwrap(), expected);
    let times = ["1 12:59:59", "2 -838:59:59", "3 00:00:59", "4 10:43:47", "5 02:27:39", "6 17:51:03"];
    assert_eq!(rows("old_time", "create table old_time (id int primary key, a time);").unwrap(), times);
    let new = "create table new_both (id int primary key, a time, b datetime(2));";
    assert_eq!(rows("new_both", new).unwrap(), ["1 12:34:56 2020-01-02 03:04:05.25"]);
    let with_json = "create table new_time (id int primary key, a time, j json);";
    let expected = ["1 12:34:56 [1]", "2 23:59:59 {\"a\": 1}", "3 01:02:03 NULL"];
    assert_eq!(rows("new_time", with_json).unwrap(), expected);
}

/// 00:01:00 is stored as 100, which is 00:01:36 in the form of today.
#[test]
fn times_that_fit_both_forms_are_refused_until_the_statement_says_which() {
    let statement = |form: &str| format!("create table ambiguous (id int primary key, a time {form});");
    let error = rows("ambiguous", &statement("")).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidInput);
    assert!(error.to_string().contains("/* 5.5 binary format */"), "{error}");
    for (form, value) in [
        ("/* 5.5 binary format */", "00:01:00"),
        ("/* mariadb-5.3 */", "00:01:00"),
        ("/* mysql-5.6 */", "00:01:36"),
    ] {
        assert_eq!(rows("ambiguous", &statement(form)).unwrap(), [format!("1 {value}")], "{form}");
    }
    // Both forms have midnight alike.
    let midnight = rows("midnight", "create table midnight (id int primary key, a time);").unwrap();
    assert_eq!(midnight, ["1 00:00:00", "2 NULL"]);
}
