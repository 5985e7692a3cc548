//! Expressions against recorded answers of MariaDB 10.11 and MySQL 9.7: `answers.tsv` has an expression, the answers of
//! both for each row of the table below (between `¦`), `ERROR` where the server gives an error or the answer is not
//! computed here.

use tanada_innodb::{Collation, Column, ColumnType};

use super::calendar;
use super::collating::Collating;
use super::conversions::bytes_of;
use super::datum::{Datum, Decimal};
use super::kind::Kind;
use super::plan;
use super::{Refusal, Rules, dates};

/// The columns of the table with its seven rows; `-` is NULL.
const TABLE: [(&str, &str, [&str; 7]); 23] = [
    ("id", "int", ["1", "2", "3", "4", "5", "6", "7"]),
    ("i", "int", ["0", "7", "-13", "123456", "-", "-1", "2"]),
    ("u", "uint", ["0", "7", "3", "4294967295", "-", "100", "1"]),
    ("b", "int", ["0", "9223372036854775807", "-9223372036854775808", "42", "-", "-5", "1000000"]),
    ("bu", "uint", ["0", "18446744073709551615", "12345678901", "64", "-", "5", "3"]),
    ("d", "decimal(3)", ["0", "2.5", "-2.5", "1234567.891", "-", "-0.5", "9999999.999"]),
    (
        "dd",
        "decimal(20)",
        [
            "0",
            "123456789012345678901234567890.12345678901234567891",
            "-0.00000000000000000005",
            "99.5",
            "-",
            "5",
            "-1",
        ],
    ),
    ("f", "float", ["0", "0.1", "3.3333", "1e10", "-", "-0.00001", "16777216"]),
    ("g", "double", ["0", "2.5", "-2.5", "0.1", "-", "1e18", "-1e-7"]),
    ("s", "text", ["", "abc", "Straße ÄÖ", "a,b,,C", "-", "  pad ", "É a"]),
    ("n", "text", ["", "10abc", " 1e2", "-3.75", "-", "2024-01-05", "x"]),
    ("x", "bytes", ["", "616263", "C3A4FF", "3132", "-", "31", "00"]),
    ("en", "enum", ["x", "10", "Ab", "-", "-", "Ab", "x"]),
    ("st", "set", ["", "a,b", "c", "a,c", "-", "a,b,c", "b"]),
    ("y", "year", ["2000", "2024", "1999", "1970", "-", "2155", "1901"]),
    ("bt", "bit", ["0", "255", "4095", "65", "-", "1", "2"]),
    ("da", "date", ["2000-01-01", "2024-02-29", "1999-12-31", "1970-01-01", "-", "9999-12-31", "2024-12-30"]),
    (
        "dt",
        "datetime(0)",
        [
            "2000-01-01 00:00:00",
            "2024-02-29 12:34:56",
            "1999-12-31 23:59:59",
            "1970-01-01 00:00:01",
            "-",
            "9999-12-31 23:59:59",
            "2024-12-30 10:00:00",
        ],
    ),
    (
        "dt6",
        "datetime(6)",
        [
            "1999-12-31 23:59:59.5",
            "2024-02-29 12:34:56.789012",
            "1999-12-31 23:59:59.999999",
            "1970-01-01 00:00:01.000000",
            "-",
            "2001-02-03 04:05:06.700000",
            "2024-12-30 10:00:00.100000",
        ],
    ),
    ("ti", "time(0)", ["00:00:00", "12:34:56", "-01:02:03", "100:00:00", "-", "00:00:01", "10:00:00"]),
    (
        "ti3",
        "time(3)",
        ["00:00:00.5", "12:34:56.789", "-838:59:59.000", "00:00:01.250", "-", "10:11:12.999", "10:00:00.000"],
    ),
    (
        "j",
        "json",
        [
            r#"{"a": 1, "b": [1, 2.50, "x"], "c": null}"#,
            r#"[1, "two", {"k": [true, false]}]"#,
            r#""str""#,
            "12.50",
            "-",
            r#"{"k": {"z": 1, "aa": "q\"uote"}}"#,
            "true",
        ],
    ),
    ("unused", "int", ["-", "-", "-", "-", "-", "-", "-"]),
];

fn collation(name: &str) -> Collation {
    Collation { id: 0, name: name.to_string(), charset: "utf8mb4".to_string(), max_bytes: 4, min_bytes: 1 }
}

fn column_type(name: &str, mysql: bool) -> ColumnType {
    let elements = |of: &[&str]| of.iter().map(|of| (*of).to_string()).collect();
    let text = |name: &str| ColumnType::VarChar { length: 40, collation: collation(name) };
    match name {
        "int" | "uint" => ColumnType::Integer { bytes: 8, unsigned: name == "uint" },
        "decimal(3)" => ColumnType::Decimal { precision: 10, scale: 3, unsigned: false },
        "decimal(20)" => ColumnType::Decimal { precision: 50, scale: 20, unsigned: false },
        "float" => ColumnType::Float,
        "double" => ColumnType::Double,
        "bytes" => ColumnType::VarBinary { length: 20 },
        "enum" => ColumnType::Enum { elements: elements(&["x", "10", "Ab"]) },
        "set" => ColumnType::Set { elements: elements(&["a", "b", "c"]) },
        "year" => ColumnType::Year,
        "bit" => ColumnType::Bit { bits: 12 },
        "date" => ColumnType::Date,
        "datetime(0)" => ColumnType::DateTime { fsp: 0, legacy: false },
        "datetime(6)" => ColumnType::DateTime { fsp: 6, legacy: false },
        "time(0)" => ColumnType::Time { fsp: 0, legacy: false },
        "time(3)" => ColumnType::Time { fsp: 3, legacy: false },
        "json" if mysql => ColumnType::Json,
        "json" => text("utf8mb4_bin"),
        _ if mysql => text("utf8mb4_0900_ai_ci"),
        _ => text("utf8mb4_general_ci"),
    }
}

fn datum(column_type: &ColumnType, text: &str, mysql: bool) -> Datum {
    if text == "-" {
        return Datum::Null;
    }
    match column_type {
        ColumnType::Integer { unsigned: true, .. } | ColumnType::Year | ColumnType::Bit { .. } => {
            Datum::UInt(text.parse().unwrap())
        }
        ColumnType::Integer { .. } => Datum::Int(text.parse().unwrap()),
        ColumnType::Decimal { scale, .. } => {
            Datum::Decimal(Decimal::prefix(text).unwrap().rounded(*scale).unwrap())
        }
        ColumnType::Float => Datum::Float(text.parse().unwrap()),
        ColumnType::Double => Datum::Double(text.parse().unwrap()),
        ColumnType::VarBinary { .. } => {
            let digits = text.as_bytes().chunks(2).map(|pair| std::str::from_utf8(pair).unwrap());
            Datum::Bytes(digits.map(|pair| u8::from_str_radix(pair, 16).unwrap()).collect())
        }
        ColumnType::Date => Datum::Date(moment(text) / calendar::DAY),
        ColumnType::DateTime { .. } => Datum::DateTime(moment(text)),
        ColumnType::Time { .. } => {
            let (text, kind) = (Datum::Text(text.to_string()), Kind::Text(Collating::literal(None)));
            Datum::Time(dates::time_to_store(&text, &kind, &Rules::new(false)).unwrap())
        }
        // MySQL's column has the document as MySQL has it.
        ColumnType::Json if mysql => Datum::Text(text.replace("2.50", "2.5").replace("12.50", "12.5")),
        _ => Datum::Text(text.to_string()),
    }
}

fn moment(text: &str) -> i64 {
    let (text, kind) = (Datum::Text(text.to_string()), Kind::Text(Collating::literal(None)));
    dates::moment_to_store(&text, &kind, &Rules::new(false)).unwrap()
}

fn columns(mysql: bool) -> Vec<Column> {
    TABLE
        .iter()
        .map(|(name, of, _)| Column {
            name: (*name).to_string(),
            column_type: column_type(of, mysql),
            display: Default::default(),
            nullable: true,
            invisible: false,
            virtual_expression: None,
            compressed: false,
            comment: String::new(),
            declaration: Default::default(),
        })
        .collect()
}

/// A value as the servers' clients print it.
fn printed(value: &Datum, kind: &Kind) -> Result<String, Refusal> {
    if value.is_null() {
        return Ok("NULL".to_string());
    }
    let text = match kind {
        Kind::Bytes | Kind::Hex | Kind::Bit { .. } => {
            String::from_utf8_lossy(&bytes_of(value, kind)?.unwrap_or_default()).into_owned()
        }
        kind => value.text(kind)?.unwrap_or_default(),
    };
    Ok(text.replace('\\', "\\\\").replace('\0', "\\0").replace('\n', "\\n").replace('\t', "\\t"))
}

fn computed(expression: &str, rows: usize, mysql: bool) -> Result<String, Refusal> {
    let columns = columns(mysql);
    let rules = Rules::new(mysql);
    let connection = Collating::connection(&rules.connection);
    let (typed, inputs) = plan::query(expression, &columns, &rules, connection)?;
    let values = (0..rows).map(|row| {
        let row: Vec<Datum> = inputs
            .iter()
            .map(|input| datum(&columns[*input].column_type, TABLE[*input].2[row], mysql))
            .collect();
        printed(&typed.value(&row)?, &typed.kind)
    });
    values.collect::<Result<Vec<String>, Refusal>>().map(|values| values.join("¦"))
}

/// Compares with the answers of a file; what differs, and how many are refused.
fn compared(answers: &str, mysql: bool) -> (Vec<String>, Vec<String>) {
    let (mut different, mut refused) = (Vec::new(), Vec::new());
    for line in answers.lines() {
        let mut parts = line.split('\t');
        let expression = parts.next().unwrap();
        let (mariadb, own) = (parts.next().unwrap(), parts.next().unwrap());
        // MySQL's answer is `=` where it is the same.
        let expected = if mysql && own != "=" { own } else { mariadb };
        if expected.starts_with("ERROR") {
            continue;
        }
        match computed(expression, expected.split('¦').count(), mysql) {
            Ok(found) if found == expected => {}
            Ok(found) => different.push(format!("{expression}\n  computed {found}\n  expected {expected}")),
            Err(refusal) => refused.push(format!("{expression}: {refusal}")),
        }
    }
    (different, refused)
}

#[test]
fn expressions_are_computed_as_the_servers_compute_them() {
    let other = std::env::var("TANADA_ANSWERS").ok().map(|path| std::fs::read_to_string(path).unwrap());
    let answers = other.as_deref().unwrap_or(include_str!("answers.tsv"));
    for (mysql, most_refused) in [(false, 0), (true, 0)] {
        let (different, refused) = compared(answers, mysql);
        if other.is_some() {
            for line in different.iter().chain(&refused) {
                println!("{} {line}", if mysql { "MYSQL" } else { "MARIADB" });
            }
            println!(
                "{} different, {} refused of {}",
                different.len(),
                refused.len(),
                answers.lines().count()
            );
            continue;
        }
        assert!(different.is_empty(), "{}", different.join("\n"));
        assert!(refused.len() <= most_refused, "{} are refused:\n{}", refused.len(), refused.join("\n"));
    }
}
