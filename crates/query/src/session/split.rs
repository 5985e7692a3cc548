//! A text into statements, at semicolons that are not inside quotes or comments.

use crate::{Error, ErrorKind, Result};

/// Splits; statements that are empty but for comments are dropped. The semicolon itself is left out.
pub(super) fn split(sql: &str) -> Result<Vec<String>> {
    let bytes = sql.as_bytes();
    let mut statements = Vec::new();
    let mut start = 0;
    let mut has_code = false;
    let mut at = 0;
    while at < bytes.len() {
        let rest = &sql[at..];
        let (kind, length) = piece(rest)?;
        match kind {
            Piece::End => {
                if has_code {
                    statements.push(sql[start..at].trim().to_string());
                }
                start = at + length;
                has_code = false;
            }
            Piece::Code => has_code = true,
            Piece::Comment | Piece::Space => {}
        }
        at += length;
    }
    if has_code {
        statements.push(sql[start..].trim().to_string());
    }
    Ok(statements)
}

enum Piece {
    Code,
    Comment,
    Space,
    End,
}

/// The kind and the length of what `rest` (not empty) begins with.
fn piece(rest: &str) -> Result<(Piece, usize)> {
    let line = || rest.find('\n').unwrap_or(rest.len());
    let first = rest.chars().next().unwrap_or(' ');
    Ok(match first {
        ';' => (Piece::End, 1),
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

    #[test]
    fn semicolons_in_quotes_and_comments_do_not_split() {
        let sql =
            "select ';' as `a;b`; -- a; comment\nselect \"x\\\";\" # more; of it\n; /* ; */ ;select 'it''s;'";
        let expected =
            ["select ';' as `a;b`", "-- a; comment\nselect \"x\\\";\" # more; of it", "select 'it''s;'"];
        assert_eq!(split(sql).unwrap(), expected);
    }

    #[test]
    fn comments_alone_are_no_statement() {
        assert_eq!(split(" ; -- nothing\n/* here */ # at all").unwrap(), Vec::<String>::new());
        assert_eq!(split("select 5--3").unwrap(), ["select 5--3"]);
    }

    #[test]
    fn open_quotes_are_an_error() {
        assert_eq!(split("select 'a").unwrap_err().to_string(), "a quote is not closed; add '");
        assert_eq!(split("/* a").unwrap_err().to_string(), "a comment is not closed; add */");
    }
}
