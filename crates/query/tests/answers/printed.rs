//! Results as the servers' clients print them with `--batch`, and taken apart again.

use std::collections::BTreeMap;

use crate::server::Server;

/// What a query gave.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// Lines as `--batch` prints them. A result without rows has no header either.
    Rows { header: String, rows: Vec<String> },
    /// The query was refused.
    Error(String),
}

impl Answer {
    /// The answer in `text`, whose first line is the header.
    pub fn of_text(text: &str) -> Answer {
        let mut lines = text.split_terminator('\n').map(str::to_owned);
        Answer::Rows { header: lines.next().unwrap_or_default(), rows: lines.collect() }
    }
}

/// The name of the column that precedes each answer in what a client prints.
const MARK: &str = "tanada-mark";

/// Asks a server for the answers of `queries` in `database`, all with one client.
pub fn ask_server(server: &Server, database: &str, queries: &[String]) -> Vec<Answer> {
    let mut text = format!("use {database};\n");
    let mut first_lines = BTreeMap::new();
    let mut line = 2;
    for (no, query) in queries.iter().enumerate() {
        first_lines.insert(line + 1, no);
        // The terminator has a line of its own: the query may end with a comment.
        let part = format!("select {no} as `{MARK}`;\n{query}\n;\n");
        line += part.matches('\n').count();
        text += &part;
    }
    let printed = server.run(&text);
    let mut answers: Vec<Answer> = vec![Answer::of_text(""); queries.len()];
    for (no, lines) in parts(&String::from_utf8_lossy(&printed.answers)) {
        answers[no] = Answer::of_text(&lines);
    }
    for refusal in printed.refusals {
        let at = line_of(&refusal).unwrap_or_else(|| panic!("no line in {refusal}"));
        let Some((_, no)) = first_lines.range(..=at).next_back() else { panic!("{refusal}") };
        answers[*no] = Answer::Error(refusal);
    }
    answers
}

/// What follows each mark.
fn parts(printed: &str) -> Vec<(usize, String)> {
    let mut parts: Vec<(usize, String)> = Vec::new();
    let mut lines = printed.split_terminator('\n');
    while let Some(line) = lines.next() {
        if line == MARK {
            parts.push((lines.next().unwrap().parse().unwrap(), String::new()));
        } else {
            let (_, text) = parts.last_mut().expect("a mark comes first");
            text.push_str(line);
            text.push('\n');
        }
    }
    parts
}

/// The line that `ERROR 1054 (42S22) at line 12: ...` names.
fn line_of(refusal: &str) -> Option<usize> {
    let (_, rest) = refusal.split_once("at line ")?;
    rest.split_once(':')?.0.parse().ok()
}

/// A field as `--batch` prints it.
pub fn field(value: Option<&[u8]>) -> String {
    let Some(bytes) = value else { return "NULL".to_owned() };
    let text = String::from_utf8_lossy(bytes);
    text.replace('\\', "\\\\").replace('\n', "\\n").replace('\t', "\\t").replace('\0', "\\0")
}
