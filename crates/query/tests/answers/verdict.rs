//! How Tanada's answer compares with a server's.

use crate::asking::FAULT;
use crate::printed::Answer;

/// The outcome of a comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verdict {
    /// The same rows, spelled the same, or errors on both sides.
    Equal,
    /// Tanada has an error where the server has rows.
    Refused,
    /// Other rows, rows where the server has an error, or a panic.
    Wrong,
}

impl Verdict {
    /// Compares; the order of rows counts if `is_ordered`.
    pub fn of(server: &Answer, tanada: &Answer, is_ordered: bool) -> Verdict {
        match (server, tanada) {
            (_, Answer::Error(error)) if error.starts_with(FAULT) => Verdict::Wrong,
            (Answer::Error(_), Answer::Error(_)) => Verdict::Equal,
            (_, Answer::Error(_)) => Verdict::Refused,
            (Answer::Error(_), _) => Verdict::Wrong,
            (Answer::Rows { rows: expected, .. }, Answer::Rows { rows: found, .. }) => {
                let is_same = if is_ordered { expected == found } else { sorted(expected) == sorted(found) };
                if is_same { Verdict::Equal } else { Verdict::Wrong }
            }
        }
    }

    /// The word for it in the list of known differences.
    pub fn word(self) -> &'static str {
        match self {
            Verdict::Equal => "equal",
            Verdict::Refused => "refused",
            Verdict::Wrong => "wrong",
        }
    }
}

fn sorted(rows: &[String]) -> Vec<&String> {
    let mut rows: Vec<&String> = rows.iter().collect();
    rows.sort();
    rows
}

/// Both answers, cut to what fits on a screen.
pub fn shown(server: &Answer, tanada: &Answer) -> String {
    const MAX_LINES: usize = 8;
    let lines = |answer: &Answer| match answer {
        Answer::Error(error) => format!("    error: {error}"),
        Answer::Rows { rows, .. } => {
            let mut lines: Vec<String> =
                rows.iter().take(MAX_LINES).map(|row| format!("    {row}")).collect();
            if rows.len() > MAX_LINES {
                lines.push(format!("    ... {} rows", rows.len()));
            }
            lines.join("\n")
        }
    };
    format!("  server:\n{}\n  Tanada:\n{}", lines(server), lines(tanada))
}

#[test]
fn an_error_is_a_refusal_only_where_the_server_has_rows() {
    let rows = Answer::of_text("a\n1\n2\n");
    let other = Answer::of_text("a\n2\n1\n");
    let error = Answer::Error("not supported".to_owned());
    let fault = Answer::Error(format!("{FAULT}panicked"));
    assert_eq!(Verdict::of(&rows, &other, false), Verdict::Equal);
    assert_eq!(Verdict::of(&rows, &other, true), Verdict::Wrong);
    assert_eq!(Verdict::of(&rows, &error, false), Verdict::Refused);
    assert_eq!(Verdict::of(&error, &error, false), Verdict::Equal);
    assert_eq!(Verdict::of(&error, &rows, false), Verdict::Wrong);
    assert_eq!(Verdict::of(&rows, &fault, false), Verdict::Wrong);
}
