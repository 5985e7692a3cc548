//! A text into statements, at terminators that are not inside quotes or comments: `;`, and `\g` and `\G` of the
//! servers' clients.

use crate::{Error, ErrorKind, Result};

/// A statement of a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StatementText {
    /// The statement without its terminator.
    pub sql: String,
    /// The line of the text in which its first word or sign stands, from 1.
    pub line: usize,
    /// Whether it ends with `\G`: each column of its result is to be shown on a line of its own.
    pub is_vertical: bool,
}

/// Splits; statements that are empty but for comments are dropped. The terminator itself is left out.
pub(super) fn split(sql: &str) -> Result<Vec<StatementText>> {
    let mut statements = Vec::new();
    let mut start = 0;
    let mut first_code = None;
    let mut at = 0;
    let statement = |start: usize, end: usize, code: usize, is_vertical| StatementText {
        sql: sql[start..end].trim().to_string(),
        line: sql[..code].matches('\n').count() + 1,
        is_vertical,
    };
    while at < sql.len() {
        let (kind, length) = piece(&sql[at..])?;
        match kind {
            Piece::End { is_vertical } => {
                statements.extend(first_code.take().map(|code| statement(start, at, code, is_vertical)));
                start = at + length;
            }
            Piece::Code => first_code = first_code.or(Some(at)),
            Piece::Comment | Piece::Space => {}
        }
        at += length;
    }
    statements.extend(first_code.map(|code| statement(start, sql.len(), code, false)));
    Ok(statements)
}

enum Piece {
    Code,
    Comment,
    Space,
    End { is_vertical: bool },
}

/// The kind and the length of what `rest` (not empty) begins with.
fn piece(rest: &str) -> Result<(Piece, usize)> {
    let line = || rest.find('\n').unwrap_or(rest.len());
    let first = rest.chars().next().unwrap_or(' ');
    Ok(match first {
        ';' => (Piece::End { is_vertical: false }, 1),
        '\\' if rest.starts_with(r"\g") => (Piece::End { is_vertical: false }, 2),
        '\\' if rest.starts_with(r"\G") => (Piece::End { is_vertical: true }, 2),
        '\'' | '"' | '`' => (Piece::Code, quoted(rest, first)?),
        '#' => (Piece::Comment, line()),
        // Two dashes begin a comment only before a space or the end, as in MySQL: 5--3 is 8.
        '-' if rest.starts_with("--") && rest[2..].chars().next().is_none_or(char::is_whitespace) => {
            (Piece::Comment, line())
        }
        '/' if rest.starts_with("/*") => match rest[2..].find("*/") {
            Some(end) => (Piece::Comment, end + 4),
            None => return Err(open("a comment", "*/")),
        },
        _ if first.is_whitespace() => (Piece::Space, first.len_utf8()),
        _ => (Piece::Code, first.len_utf8()),
    })
}

/// Length of a quoted piece. A doubled quote stands for itself; a backslash escapes, but not between backticks.
fn quoted(rest: &str, quote: char) -> Result<usize> {
    let mut characters = rest.char_indices().skip(1).peekable();
    while let Some((at, character)) = characters.next() {
        if character == '\\' && quote != '`' {
            characters.next();
        } else if character == quote {
            if characters.peek().is_none_or(|(_, next)| *next != quote) {
                return Ok(at + 1);
            }
            characters.next();
        }
    }
    Err(open("a quote", &quote.to_string()))
}

fn open(what: &str, end: &str) -> Error {
    Error::new(ErrorKind::InvalidInput, format!("{what} is not closed; add {end}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(sql: &str) -> Vec<String> {
        split(sql).unwrap().into_iter().map(|statement| statement.sql).collect()
    }

    #[test]
    fn semicolons_in_quotes_and_comments_do_not_split() {
        let sql =
            "select ';' as `a;b`; -- a; comment\nselect \"x\\\";\" # more; of it\n; /* ; */ ;select 'it''s;'";
        let expected =
            ["select ';' as `a;b`", "-- a; comment\nselect \"x\\\";\" # more; of it", "select 'it''s;'"];
        assert_eq!(texts(sql), expected);
    }

    #[test]
    fn comments_alone_are_no_statement() {
        assert_eq!(texts(" ; -- nothing\n/* here */ # at all"), Vec::<String>::new());
        assert_eq!(texts("select 5--3"), ["select 5--3"]);
    }

    #[test]
    fn open_quotes_are_an_error() {
        assert_eq!(split("select 'a").unwrap_err().to_string(), "a quote is not closed; add '");
        assert_eq!(split("/* a").unwrap_err().to_string(), "a comment is not closed; add */");
    }

    #[test]
    fn terminators_of_the_servers_clients_end_statements() {
        let sql = "-- first\nselect 1\\G select '\\G',\n\n2\\g\n# x\nselect 3";
        let found = split(sql).unwrap();
        let found: Vec<_> = found.iter().map(|one| (one.sql.as_str(), one.line, one.is_vertical)).collect();
        let expected =
            [("-- first\nselect 1", 2, true), ("select '\\G',\n\n2", 2, false), ("# x\nselect 3", 6, false)];
        assert_eq!(found, expected);
    }
}
