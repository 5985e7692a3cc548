//! What servers print, and tables of it.

use std::collections::BTreeMap;

/// A row of fields as they are printed; `None` is NULL.
pub type Row = Vec<Option<Vec<u8>>>;

/// Rows with their header. A server prints none for a table without rows.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Answer {
    pub header: Vec<String>,
    pub rows: Vec<Row>,
}

/// Precedes each table in what a client prints.
const MARK: &str = "tanada-table";

/// A query that has the server print the names of its tables in a database.
pub fn list(database: &str) -> String {
    format!(
        "select table_name as name from information_schema.tables where table_schema = '{database}' order by 1;\n"
    )
}

/// Statements that have the server print tables.
pub fn print(names: &[String]) -> String {
    names.iter().map(|name| format!("select '{name}' as `{MARK}`; select * from `{name}`;\n")).collect()
}

/// The tables that [`print`] made a client print.
pub fn printed(text: &[u8]) -> BTreeMap<String, Answer> {
    let mut tables = BTreeMap::new();
    let mut name = String::new();
    let mut lines = text.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    while let Some(line) = lines.next() {
        if line == MARK.as_bytes() {
            name = String::from_utf8_lossy(lines.next().unwrap()).into_owned();
            tables.insert(name.clone(), Answer::default());
            continue;
        }
        let answer: &mut Answer = tables.get_mut(&name).expect("a table's mark comes first");
        let fields = line.split(|byte| *byte == b'\t');
        if answer.header.is_empty() {
            answer.header = fields.map(|name| String::from_utf8_lossy(name).into_owned()).collect();
        } else {
            answer.rows.push(fields.map(field).collect());
        }
    }
    tables
}

/// The field of a line, unescaped.
fn field(text: &[u8]) -> Option<Vec<u8>> {
    if text == b"NULL" {
        return None;
    }
    let mut out = Vec::with_capacity(text.len());
    let mut bytes = text.iter();
    while let Some(byte) = bytes.next() {
        out.push(match byte {
            b'\\' => match bytes.next() {
                Some(b'n') => b'\n',
                Some(b't') => b'\t',
                Some(b'0') => 0,
                Some(other) => *other,
                None => b'\\',
            },
            other => *other,
        });
    }
    Some(out)
}

/// The first difference between rows, regardless of their order.
pub fn difference(found: &[Row], expected: &[Row]) -> Option<String> {
    let sorted = |rows: &[Row]| {
        let mut rows = rows.to_vec();
        rows.sort();
        rows
    };
    let (found, expected) = (sorted(found), sorted(expected));
    let pair = found.iter().zip(&expected).find(|(found, expected)| found != expected);
    if let Some((found, expected)) = pair {
        let at = found.iter().zip(expected).position(|(found, expected)| found != expected);
        return Some(format!("column {at:?}:\n  Tanada {}\n  server {}", shown(found), shown(expected)));
    }
    (found.len() != expected.len())
        .then(|| format!("Tanada has {} rows, the server {}", found.len(), expected.len()))
}

fn shown(row: &Row) -> String {
    let field = |field: &Option<Vec<u8>>| match field {
        None => "NULL".to_owned(),
        Some(bytes) => {
            let text = bytes.escape_ascii().to_string();
            text.chars().take(60).collect()
        }
    };
    row.iter().map(field).collect::<Vec<_>>().join(" | ")
}

/// Tables as [`printed`] takes them apart.
pub fn spelled(tables: &BTreeMap<String, Answer>) -> Vec<u8> {
    let mut text = Vec::new();
    for (name, answer) in tables {
        text.extend(format!("{MARK}\n{name}\n").bytes());
        if !answer.header.is_empty() {
            text.extend(format!("{}\n", answer.header.join("\t")).bytes());
        }
        for row in &answer.rows {
            let fields: Vec<Vec<u8>> = row.iter().map(escaped).collect();
            text.extend(fields.join(&b'\t'));
            text.push(b'\n');
        }
    }
    text
}

fn escaped(field: &Option<Vec<u8>>) -> Vec<u8> {
    let Some(bytes) = field else { return b"NULL".to_vec() };
    let escape = |byte: &u8| match byte {
        b'\n' => b"\\n".to_vec(),
        b'\t' => b"\\t".to_vec(),
        0 => b"\\0".to_vec(),
        b'\\' => b"\\\\".to_vec(),
        byte => vec![*byte],
    };
    bytes.iter().flat_map(escape).collect()
}
