//! Expressions over a table of dates, times, texts and numbers, with the answers that both servers gave.
//!
//! A line of `answers.tsv` is an expression, MariaDB's answers and MySQL's answers (empty if they are the same), a row
//! each with `|` between them, for the rows below or for the first alone. `~` before answers says that they are
//! refused here, `ERR` that the server gives an error. A comment `# time_zone NAME` sets the zone of what follows.

use tanada_innodb::schema::{RowFormat, Server};
use tanada_innodb::{Collation, Column, ColumnType, TableDefinition};

use super::spelling;
use crate::expression::datum::{Datum, Decimal};
use crate::expression::plan::{Parts, planned};
use crate::expression::{Refusal, Rules, Zone};

const ANSWERS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/src/expression/dates/answers.tsv");
/// 2024-01-05 10:11:12.123456.
const NOW_MICROS: i64 = 1_704_449_472_123_456;
const NAMES: [&str; 15] =
    ["id", "d", "dt", "dt3", "dt6", "tm", "tm3", "tm6", "ts", "ts6", "y", "txt", "n", "dc", "db"];
/// `N` is NULL.
const ROWS: [[&str; 15]; 8] = [
    [
        "1",
        "2024-01-05",
        "2024-01-05 10:11:12",
        "2024-01-05 10:11:12.987",
        "2024-01-05 10:11:12.987654",
        "10:11:12",
        "10:11:12.987",
        "10:11:12.987654",
        "2024-01-05 10:11:12",
        "2024-01-05 10:11:12.987654",
        "2024",
        "2024-01-05 10:11:12.5",
        "20240105101112",
        "20240105101112.5",
        "20240105",
    ],
    [
        "2",
        "2024-02-29",
        "2024-02-29 23:59:59",
        "2024-02-29 23:59:59.999",
        "2024-02-29 23:59:59.999999",
        "23:59:59",
        "23:59:59.999",
        "23:59:59.999999",
        "2024-02-29 23:59:59",
        "2024-02-29 23:59:59.999999",
        "1999",
        "2024-02-29",
        "20240229",
        "101112.25",
        "101112.5",
    ],
    [
        "3",
        "1999-12-31",
        "1999-12-31 00:00:00",
        "1999-12-31 12:00:00.500",
        "1999-12-31 12:30:00.000001",
        "-10:11:12",
        "-00:00:00.001",
        "-838:59:59",
        "1999-12-31 00:00:00",
        "1999-12-31 12:30:00.500000",
        "1970",
        "10:11:12.25",
        "101112",
        "-101112.75",
        "-101112",
    ],
    [
        "4",
        "2000-01-01",
        "2000-01-01 12:00:00",
        "2000-01-01 00:00:00.001",
        "2000-01-01 00:00:00.100000",
        "838:59:59",
        "100:00:00.100",
        "00:00:00.000001",
        "2000-01-01 12:00:00",
        "2000-01-01 00:00:00.100000",
        "2155",
        "24-1-5",
        "700101",
        "0",
        "0",
    ],
    ["5", "N", "N", "N", "N", "N", "N", "N", "N", "N", "N", "N", "N", "N", "N"],
    [
        "6",
        "1000-01-01",
        "1000-01-01 00:00:00",
        "9999-12-31 23:59:59.999",
        "9999-12-31 23:59:59.999999",
        "00:00:00",
        "00:00:00",
        "24:00:00",
        "2037-12-31 23:59:59",
        "1970-01-01 00:00:01",
        "1901",
        "abc",
        "0",
        "1",
        "1.5",
    ],
    [
        "7",
        "9999-12-31",
        "9999-12-31 23:59:59",
        "1000-01-01 00:00:00",
        "1969-12-31 23:59:59.5",
        "-00:00:01",
        "12:34:56.789",
        "-12:34:56.789012",
        "2020-02-29 05:06:07",
        "2020-02-29 05:06:07.000008",
        "2000",
        "",
        "1",
        "99991231235959.999999",
        "1e15",
    ],
    [
        "8",
        "2023-10-29",
        "2023-10-29 02:30:00",
        "2023-10-29 02:30:00.250",
        "2023-03-26 02:30:00",
        "02:03:04",
        "02:03:04.050",
        "02:03:04.000600",
        "2023-10-29 01:30:00",
        "2023-03-26 01:00:00",
        "2023",
        "2 10:11",
        "-5",
        "-0.5",
        "-1.25",
    ],
];

fn types() -> [ColumnType; 15] {
    let date_time = |fsp| ColumnType::DateTime { fsp, legacy: false };
    let time = |fsp| ColumnType::Time { fsp, legacy: false };
    let stamp = |fsp| ColumnType::Timestamp { fsp, legacy: false };
    [
        ColumnType::Integer { bytes: 4, unsigned: false },
        ColumnType::Date,
        date_time(0),
        date_time(3),
        date_time(6),
        time(0),
        time(3),
        time(6),
        stamp(0),
        stamp(6),
        ColumnType::Year,
        ColumnType::VarChar { length: 60, collation: Collation::with_id(45).unwrap() },
        ColumnType::Integer { bytes: 8, unsigned: false },
        ColumnType::Decimal { precision: 24, scale: 6, unsigned: false },
        ColumnType::Double,
    ]
}

fn datum(text: &str, column_type: &ColumnType, rules: &Rules) -> Datum {
    if text == "N" {
        return Datum::Null;
    }
    match column_type {
        ColumnType::Date | ColumnType::DateTime { .. } | ColumnType::Timestamp { .. } => {
            let micros = spelling::date(text, rules).unwrap().unwrap().civil.since_epoch().unwrap();
            match column_type {
                ColumnType::Date => Datum::Date(micros / 86_400_000_000),
                _ => Datum::DateTime(micros),
            }
        }
        ColumnType::Time { .. } => Datum::Time(spelling::time(text, rules).unwrap().unwrap().micros),
        ColumnType::Year => Datum::UInt(text.parse().unwrap()),
        ColumnType::Integer { .. } => Datum::Int(text.parse().unwrap()),
        ColumnType::Decimal { .. } => Datum::Decimal(Decimal::prefix(text).unwrap().rounded(6).unwrap()),
        ColumnType::Double => Datum::Double(text.parse().unwrap()),
        _ => Datum::Text(text.to_string()),
    }
}

/// The answers for `count` rows, refusals where there are.
fn answers(expression: &str, count: usize, rules: &Rules) -> Vec<Result<String, Refusal>> {
    let types = types();
    let column = |name: &str, column_type: ColumnType, expression: Option<&str>| Column {
        name: name.to_string(),
        column_type,
        display: Default::default(),
        nullable: true,
        invisible: false,
        virtual_expression: expression.map(str::to_string),
        compressed: false,
        comment: String::new(),
        declaration: Default::default(),
    };
    let mut columns: Vec<Column> =
        NAMES.iter().zip(&types).map(|(name, of)| column(name, of.clone(), None)).collect();
    columns.push(column("computed", ColumnType::Date, Some(expression)));
    let definition = TableDefinition {
        collation: None,
        database: "d".to_string(),
        name: "t".to_string(),
        server: if rules.mysql { Server::MySql } else { Server::MariaDb },
        row_format: RowFormat::Dynamic,
        columns,
        indexes: Vec::new(),
        stored_fields: Vec::new(),
        row_versions: false,
        row_end: None,
        instant_columns: Vec::new(),
        partitions: Vec::new(),
    };
    let mut parts = Parts::default();
    let typed = match planned(&definition.columns, NAMES.len(), rules, &mut parts, 0) {
        Ok(typed) => typed,
        Err(refusal) => return vec![Err(refusal); count],
    };
    let row = |texts: &[&str; 15]| {
        let row: Vec<Datum> =
            parts.inputs.iter().map(|input| datum(texts[*input], &types[*input], rules)).collect();
        Ok(typed.value(&row)?.text(&typed.kind)?.unwrap_or_else(|| "NULL".to_string()))
    };
    ROWS.iter().take(count).map(row).collect()
}

#[test]
fn answers_of_dates_are_those_of_both_servers() {
    let text = std::fs::read_to_string(ANSWERS).unwrap();
    let (mut equal, mut refused, mut wrong) = (0, 0, Vec::new());
    let mut zone = Zone::UTC;
    for line in text.lines() {
        if let Some(comment) = line.strip_prefix('#') {
            zone = comment.strip_prefix(" time_zone ").map_or(zone, |name| Zone::parse(name, true).unwrap());
            continue;
        }
        let [expression, mariadb, mysql] = line.split('\t').collect::<Vec<_>>()[..] else {
            panic!("three fields are expected in {line}");
        };
        let mysql = if mysql.is_empty() { mariadb } else { mysql };
        for (is_mysql, expected) in [(false, mariadb), (true, mysql)] {
            let rules = Rules { now_micros: Some(NOW_MICROS), zone, ..Rules::new(is_mysql) };
            let (expected, is_refused) = match expected.strip_prefix('~') {
                Some(expected) => (expected, true),
                None => (expected, false),
            };
            let rows: Vec<&str> = expected.split('|').collect();
            let computed = answers(expression, rows.len(), &rules);
            let server = if is_mysql { "MySQL" } else { "MariaDB" };
            let is_error = expected.starts_with("ERR");
            let mut any = false;
            for (at, (computed, expected)) in computed.iter().zip(&rows).enumerate() {
                match computed {
                    Ok(computed) if !is_error && computed == expected => {}
                    Ok(computed) => {
                        wrong
                            .push(format!("{server} {expression} row {}: {computed} not {expected}", at + 1));
                    }
                    Err(refusal) => {
                        if !any && !is_refused && !is_error {
                            wrong.push(format!("{server} {expression} row {} refused: {refusal}", at + 1));
                        }
                        any = true;
                    }
                }
            }
            equal += usize::from(!any);
            refused += usize::from(any);
        }
    }
    assert!(wrong.is_empty(), "{equal} equal, {refused} refused, not as recorded:\n{}", wrong.join("\n"));
}
