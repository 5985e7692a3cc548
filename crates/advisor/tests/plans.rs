//! Accesses of plans that real servers have answered: MariaDB 10.11 and 11.8, MySQL 9.7 in both of its JSON formats,
//! PostgreSQL 15. `answers/*.txt` are the answers, `answers/*.accesses` what is to be made of them, which was compared
//! with the statements by hand.

#![allow(clippy::unwrap_used)]

use std::fmt::Write;

use tanada_advisor::{AccessKind, PlannedAccess, Result, plan};

/// The answers of a file: the statement's name, its plan, and the statement as it was rewritten.
fn answers(text: &str) -> Vec<(String, String, String)> {
    let mut found: Vec<(String, String, String)> = Vec::new();
    for line in text.lines() {
        if let Some(name) = line.strip_prefix("@@ ") {
            found.push((name.to_owned(), String::new(), String::new()));
        } else if let Some((_, plan, rewritten)) = found.last_mut() {
            match line.strip_prefix("Note\t1003\t") {
                Some(note) => rewritten.push_str(note),
                None => {
                    plan.push_str(line);
                    plan.push('\n');
                }
            }
        }
    }
    found
}

fn told(access: &PlannedAccess) -> String {
    let kind = match access.kind {
        AccessKind::FullScan => "scan",
        AccessKind::IndexScan => "index scan",
        AccessKind::Range => "range",
        AccessKind::LookUp => "look-up",
    };
    let index = access.index.as_ref().map(|index| format!(".{index}")).unwrap_or_default();
    let rows = access.rows.map_or("?".to_owned(), |rows| format!("{rows:.1}"));
    let mut out = format!("{}.{}{index}: {kind} of {rows} rows", access.database, access.table);
    if access.loops != 1.0 {
        let _ = write!(out, ", {:.1} times", access.loops);
    }
    if access.is_covering && access.index.is_some() {
        out += ", covering";
    }
    if let Some(partitions) = &access.partitions {
        let _ = write!(out, ", in {}", partitions.join(" "));
    }
    if access.stage > 0 {
        let _ = write!(out, ", stage {}", access.stage);
    }
    out
}

fn compare(name: &str, accesses: impl Fn(&str, &str) -> Result<Vec<PlannedAccess>>) {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/answers");
    let text = std::fs::read_to_string(folder.join(format!("{name}.txt"))).unwrap();
    let mut out = String::new();
    for (statement, plan, rewritten) in answers(&text) {
        let _ = writeln!(out, "@@ {statement}");
        match accesses(&plan, &rewritten) {
            Ok(found) => found.iter().for_each(|access| {
                let _ = writeln!(out, "{}", told(access));
            }),
            Err(error) => {
                let _ = writeln!(out, "error: {error}");
            }
        }
    }
    let expected = folder.join(format!("{name}.accesses"));
    if std::env::var_os("TANADA_RECORD_ACCESSES").is_some() {
        std::fs::write(&expected, &out).unwrap();
    }
    let expected = std::fs::read_to_string(expected).unwrap();
    for (found, expected) in out.lines().zip(expected.lines()) {
        assert_eq!(found, expected, "{name}");
    }
    assert_eq!(out.lines().count(), expected.lines().count(), "{name}");
}

fn of_mysql(plan: &str, rewritten: &str) -> Result<Vec<PlannedAccess>> {
    plan::mysql(plan, rewritten, Some("shop"))
}

#[test]
fn plans_of_mariadb_10_11_are_understood() {
    compare("mariadb-10.11", of_mysql);
}

#[test]
fn plans_of_mariadb_11_8_are_understood() {
    compare("mariadb-11.8", of_mysql);
}

#[test]
fn plans_of_mysql_9_7_in_format_1_are_understood() {
    compare("mysql-9.7-format-1", of_mysql);
}

#[test]
fn plans_of_mysql_9_7_in_format_2_are_understood() {
    compare("mysql-9.7-format-2", of_mysql);
}

#[test]
fn plans_of_postgresql_15_are_understood() {
    compare("postgresql-15", |plan, _| plan::postgres::accesses(plan));
}

#[test]
fn damaged_answers_are_errors() {
    let deep = "[".repeat(100_000);
    for answer in ["", "{}", "[]", "{\"query_block\": 1", &deep] {
        assert!(plan::mysql(answer, "", None).is_err() && plan::postgres::accesses(answer).is_err());
    }
    let nested = (0..120).fold("{}".to_owned(), |inner, _| format!("{{\"query_block\": {inner}}}"));
    assert!(plan::mysql(&nested, "", None).unwrap().is_empty());
}
