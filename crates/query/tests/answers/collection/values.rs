//! Values as sqllogictest compares them.

use md5::{Digest, Md5};

use super::script::{Query, Sort};
use crate::printed::Answer;

/// Whether the answer is what the query expects.
pub fn is_expected(query: &Query, rows: &[String]) -> bool {
    let values = values(query, rows);
    match &query.expected[..] {
        [line] if line.contains(" values hashing to ") => *line == hashed(&values),
        expected => expected == values,
    }
}

/// Whether two answers are the same to the query.
pub fn is_same(query: &Query, one: &Answer, other: &Answer) -> bool {
    match (one, other) {
        (Answer::Rows { rows: one, .. }, Answer::Rows { rows: other, .. }) => {
            values(query, one) == values(query, other)
        }
        _ => false,
    }
}

/// A line per value, in the order that the query wants.
fn values(query: &Query, rows: &[String]) -> Vec<String> {
    let mut rows: Vec<Vec<String>> = rows
        .iter()
        .map(|row| row.split('\t').zip(query.types.chars()).map(|(text, kind)| value(kind, text)).collect())
        .collect();
    if query.sort == Sort::Rows {
        rows.sort();
    }
    let mut values = rows.concat();
    if query.sort == Sort::Values {
        values.sort();
    }
    values
}

/// A value by its column's type: `I` without fraction, `R` with three digits, `T` with `@` for what cannot be printed.
fn value(kind: char, text: &str) -> String {
    match (kind, text.parse::<f64>()) {
        _ if text == "NULL" => text.to_owned(),
        ('I', Ok(_)) if text.parse::<i128>().is_ok() => text.to_owned(),
        ('I', Ok(number)) => format!("{:.0}", number.trunc()),
        ('I', Err(_)) => "0".to_owned(),
        ('R', number) => format!("{:.3}", number.unwrap_or(0.0)),
        _ if text.is_empty() => "(empty)".to_owned(),
        _ => text.chars().map(|c| if matches!(c, ' '..='~') { c } else { '@' }).collect(),
    }
}

fn hashed(values: &[String]) -> String {
    let mut hash = Md5::new();
    for value in values {
        hash.update(value.as_bytes());
        hash.update(b"\n");
    }
    let digits: String = hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
    format!("{} values hashing to {digits}", values.len())
}

#[test]
fn values_are_sorted_typed_and_hashed() {
    let query = |types: &str, sort, expected: &[&str]| Query {
        types: types.to_owned(),
        sort,
        sql: String::new(),
        expected: expected.iter().map(|line| (*line).to_owned()).collect(),
        line: 0,
    };
    let rows = ["3.9\t1.5\t".to_owned(), "NULL\t2\ta\u{e4}".to_owned()];
    assert!(is_expected(&query("IRT", Sort::No, &["3", "1.500", "(empty)", "NULL", "2.000", "a@"]), &rows));
    assert!(is_expected(
        &query("IRT", Sort::Values, &["(empty)", "1.500", "2.000", "3", "NULL", "a@"]),
        &rows
    ));
    // 3 values: 1, 2, 3.
    let numbers = ["3", "1", "2"].map(str::to_owned);
    let hash = "3 values hashing to c0710d6b4f15dfa88f600b0e6b624077";
    assert!(is_expected(&query("I", Sort::Values, &[hash]), &numbers));
}
