//! Answers in the format of `mysql --batch`, and comparing with them.

use std::path::Path;

/// A row of fields; `None` is NULL.
pub type Row = Vec<Option<String>>;

/// Header and rows of a file.
pub fn read(path: &Path) -> (Vec<String>, Vec<Row>) {
    let text = std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let mut lines = text.split_terminator('\n');
    let header = lines.next().unwrap_or_default().split('\t').map(str::to_string).collect();
    (header, lines.map(|line| line.split('\t').map(field).collect()).collect())
}

pub fn field(text: &str) -> Option<String> {
    if text == "NULL" {
        return None;
    }
    let mut out = String::with_capacity(text.len());
    let mut characters = text.chars();
    while let Some(character) = characters.next() {
        out.push(match character {
            '\\' => match characters.next() {
                Some('n') => '\n',
                Some('t') => '\t',
                Some('0') => '\0',
                Some(other) => other,
                None => '\\',
            },
            other => other,
        });
    }
    Some(out)
}

/// Compares rows regardless of order; names the first that differ.
pub fn assert_same_rows(mut found: Vec<Row>, mut expected: Vec<Row>, what: &str) {
    found.sort();
    expected.sort();
    for (found, expected) in found.iter().zip(&expected) {
        let differs = found.iter().zip(expected).position(|(found, expected)| found != expected);
        if let Some(column) = differs {
            panic!(
                "{what}: column {column}: found {:.200?}, expected {:.200?}",
                found[column], expected[column]
            );
        }
    }
    assert_eq!(found.len(), expected.len(), "{what}: number of rows");
}

/// Compares rows regardless of order, and decimals to the digits that both have: the server rounds averages and
/// quotients to four digits more than their operand has, DataFusion to another number.
pub fn assert_alike(mut found: Vec<Row>, mut expected: Vec<Row>, what: &str) {
    found.sort_by_cached_key(coarse);
    expected.sort_by_cached_key(coarse);
    assert_eq!(found.len(), expected.len(), "{what}: number of rows");
    for (found, expected) in found.iter().zip(&expected) {
        assert_eq!(found.len(), expected.len(), "{what}: number of columns");
        for (found, expected) in found.iter().zip(expected) {
            assert!(alike(found, expected), "{what}: found {found:?}, expected {expected:?}");
        }
    }
}

fn coarse(row: &Row) -> Vec<Option<String>> {
    let round = |text: &String| match decimals(text) {
        Some((number, digits)) if digits > 0 => format!("{number:.1}"),
        _ => text.clone(),
    };
    row.iter().map(|field| field.as_ref().map(round)).collect()
}

fn alike(found: &Option<String>, expected: &Option<String>) -> bool {
    if found == expected {
        return true;
    }
    let (Some(found), Some(expected)) = (found, expected) else { return false };
    match (decimals(found), decimals(expected)) {
        (Some((a, found)), Some((b, expected))) if found + expected > 0 => {
            // One unit of the last digit that both have: one rounded, the other may have cut.
            (a - b).abs() <= 1.01 * 10f64.powi(-(found.min(expected) as i32))
        }
        _ => false,
    }
}

/// The number and its digits after the point.
fn decimals(text: &str) -> Option<(f64, usize)> {
    let number = text.parse().ok()?;
    Some((number, text.split_once('.').map_or(0, |(_, digits)| digits.len())))
}
