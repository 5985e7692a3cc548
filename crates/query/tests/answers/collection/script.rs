//! Files in the format of SQLite's sqllogictest, as they are meant for MySQL.

/// The name under which files skip and choose records.
const ENGINE: &str = "mysql";

/// A record of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Record {
    /// Run, whatever comes of it.
    Statement(String),
    Query(Query),
}

/// A query with the result that is expected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Query {
    /// `I`, `R` or `T` for each column.
    pub types: String,
    pub sort: Sort,
    pub sql: String,
    pub expected: Vec<String>,
    pub line: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sort {
    No,
    Rows,
    Values,
}

/// The records of a text, those left out that are not meant for MySQL.
pub fn records(text: &str) -> Vec<Record> {
    let lines: Vec<&str> = text.lines().map(str::trim_end).collect();
    let mut records = Vec::new();
    let mut start = 0;
    while start < lines.len() {
        if lines[start].trim().is_empty() {
            start += 1;
            continue;
        }
        let length = lines[start..].iter().take_while(|line| !line.trim().is_empty()).count();
        match record(&lines[start..start + length], start + 1) {
            Found::Record(record) => records.push(record),
            Found::End => break,
            Found::Nothing => {}
        }
        start += length;
    }
    records
}

enum Found {
    Record(Record),
    Nothing,
    End,
}

/// The record in a block of lines without empty ones.
fn record(block: &[&str], first_line: usize) -> Found {
    for (at, line) in block.iter().enumerate() {
        let words: Vec<&str> = line.split('#').next().unwrap_or_default().split_whitespace().collect();
        let rest = &block[at + 1..];
        match words[..] {
            [] | ["hash-threshold", ..] => {}
            ["skipif", name, ..] if name == ENGINE => return Found::Nothing,
            ["onlyif", name, ..] if name != ENGINE => return Found::Nothing,
            ["skipif" | "onlyif", ..] => {}
            ["halt", ..] => return Found::End,
            ["statement", ..] => return Found::Record(Record::Statement(rest.join("\n"))),
            ["query", types, ref how @ ..] => {
                let sort = match how.first() {
                    Some(&"rowsort") => Sort::Rows,
                    Some(&"valuesort") => Sort::Values,
                    _ => Sort::No,
                };
                let mut parts = rest.splitn(2, |line| *line == "----");
                let sql = parts.next().unwrap_or_default().join("\n");
                let expected = parts.next().unwrap_or_default().iter().map(|line| (*line).to_owned());
                let (types, line) = (types.to_owned(), first_line + at);
                return Found::Record(Record::Query(Query {
                    types,
                    sort,
                    sql,
                    expected: expected.collect(),
                    line,
                }));
            }
            _ => return Found::Nothing,
        }
    }
    Found::Nothing
}

#[test]
fn records_for_other_engines_are_left_out() {
    let text = "hash-threshold 8\n\nstatement ok\nCREATE TABLE t(a INT)\n\nskipif mysql # no\nstatement ok\nX\n\n\
        onlyif mysql # DIV\nquery IT rowsort label-1\nSELECT a,\n b FROM t\n----\n1\nx\n\n\
        onlyif sqlite\nquery I nosort\nSELECT 1\n----\n1\n\nhalt\n\nstatement ok\nY\n";
    let query = Query {
        types: "IT".to_owned(),
        sort: Sort::Rows,
        sql: "SELECT a,\n b FROM t".to_owned(),
        expected: vec!["1".to_owned(), "x".to_owned()],
        line: 11,
    };
    assert_eq!(records(text), [Record::Statement("CREATE TABLE t(a INT)".to_owned()), Record::Query(query)]);
}
