//! SQL text -> tokens.
//!
//! `/*!40101 ... */` and `/*M!100100 ... */` hold text for the servers and are read; other comments are not, but for
//! the marks that MariaDB prints after temporal types in the old format.

use crate::{Error, ErrorKind, Result};

/// What MariaDB (`/* mariadb-5.3 */`) and MySQL (`/* 5.5 binary format */`) print after a temporal type in its old
/// form, as one word.
pub(super) const OLD_TEMPORAL: &str = "/*old*/";
const OLD_TEMPORAL_MARKS: [&str; 2] = ["mariadb-5.3", "5.5 binary format"];
/// What MariaDB prints after a temporal type in the form of today, if it prints the form at all.
pub(super) const NEW_TEMPORAL: &str = "/*new*/";
const NEW_TEMPORAL_MARK: &str = "mysql-5.6";

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Kind {
    /// Keyword or name without quotes.
    Word(String),
    /// Name in backticks.
    Name(String),
    /// Text in quotes.
    Text(String),
    /// Unsigned number, as written.
    Number(String),
    Symbol(char),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Token {
    pub(super) kind: Kind,
    /// Where it begins and ends in the text.
    pub(super) start: usize,
    pub(super) end: usize,
}

/// All tokens of `text`.
pub(super) fn tokens(text: &str) -> Result<Vec<Token>> {
    let mut scanner = Scanner { text, at: 0, tokens: Vec::new() };
    while let Some(character) = scanner.rest().chars().next() {
        scanner.step(character)?;
    }
    Ok(scanner.tokens)
}

/// An error at `offset` of `text`, with its line.
pub(super) fn error_at(text: &str, offset: usize, what: impl std::fmt::Display) -> Error {
    let before = text.as_bytes().get(..offset).unwrap_or_default();
    let line = before.iter().filter(|byte| **byte == b'\n').count() + 1;
    Error::new(ErrorKind::InvalidInput, format!("line {line}: {what}"))
}

struct Scanner<'a> {
    text: &'a str,
    at: usize,
    tokens: Vec<Token>,
}

impl<'a> Scanner<'a> {
    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    fn push(&mut self, kind: Kind, len: usize) {
        self.tokens.push(Token { kind, start: self.at, end: self.at + len });
        self.at += len;
    }

    /// Takes one token, comment or blank.
    fn step(&mut self, character: char) -> Result<()> {
        let rest = self.rest();
        match character {
            _ if character.is_whitespace() => self.at += character.len_utf8(),
            '#' => self.skip_line(),
            '-' if rest.starts_with("--") && rest[2..].chars().next().is_none_or(|c| c.is_whitespace()) => {
                self.skip_line()
            }
            '/' if rest.starts_with("/*") => self.comment()?,
            // The end of a comment whose text is read.
            '*' if rest.starts_with("*/") => self.at += 2,
            '`' => self.quoted('`', Kind::Name)?,
            '\'' | '"' => self.quoted(character, Kind::Text)?,
            '0'..='9' => {
                let len = rest
                    .find(|c: char| !c.is_ascii_alphanumeric() && c != '.' && c != '_')
                    .unwrap_or(rest.len());
                let word = rest[..len].to_owned();
                // A name may begin with a digit.
                let is_number = word.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
                self.push(if is_number { Kind::Number(word) } else { Kind::Word(word) }, len);
            }
            _ if is_name_character(character) => {
                let len = rest.find(|c: char| !is_name_character(c)).unwrap_or(rest.len());
                self.push(Kind::Word(rest[..len].to_owned()), len);
            }
            _ => self.push(Kind::Symbol(character), character.len_utf8()),
        }
        Ok(())
    }

    fn skip_line(&mut self) {
        self.at += self.rest().find('\n').unwrap_or(self.rest().len());
    }

    fn comment(&mut self) -> Result<()> {
        let rest = self.rest();
        let opening = ["/*!", "/*M!"].into_iter().find(|opening| rest.starts_with(opening));
        if let Some(opening) = opening {
            let digits = rest[opening.len()..].bytes().take_while(u8::is_ascii_digit).count();
            self.at += opening.len() + digits;
            return Ok(());
        }
        let Some(end) = rest[2..].find("*/").map(|end| end + 4) else {
            return Err(error_at(self.text, self.at, "a comment has no end"));
        };
        if OLD_TEMPORAL_MARKS.contains(&rest[2..end - 2].trim()) {
            self.push(Kind::Word(OLD_TEMPORAL.to_owned()), end);
        } else if rest[2..end - 2].trim() == NEW_TEMPORAL_MARK {
            self.push(Kind::Word(NEW_TEMPORAL.to_owned()), end);
        } else {
            self.at += end;
        }
        Ok(())
    }

    /// Doubled quotes stand for one; in text, a backslash takes the next character as it is, but for the usual control
    /// characters.
    fn quoted(&mut self, quote: char, kind: fn(String) -> Kind) -> Result<()> {
        let rest = self.rest();
        let mut value = String::new();
        let mut characters = rest.char_indices().skip(1).peekable();
        while let Some((offset, character)) = characters.next() {
            if character == quote {
                if characters.next_if(|(_, next)| *next == quote).is_none() {
                    self.push(kind(value), offset + quote.len_utf8());
                    return Ok(());
                }
                value.push(quote);
            } else if character == '\\' && quote != '`' {
                value.extend(characters.next().map(|(_, escaped)| unescaped(escaped)));
            } else {
                value.push(character);
            }
        }
        Err(error_at(self.text, self.at, format!("the quote {quote} has no end")))
    }
}

fn is_name_character(character: char) -> bool {
    character.is_alphanumeric() || character == '_' || character == '$' || character == '@'
}

fn unescaped(character: char) -> char {
    match character {
        'n' => '\n',
        'r' => '\r',
        't' => '\t',
        'b' => '\u{8}',
        '0' => '\0',
        'Z' => '\u{1a}',
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<String> {
        let word = |token: Token| match token.kind {
            Kind::Word(word) | Kind::Number(word) => word,
            Kind::Name(name) => format!("`{name}`"),
            Kind::Text(text) => format!("'{text}'"),
            Kind::Symbol(symbol) => symbol.to_string(),
        };
        tokens(text).unwrap().into_iter().map(word).collect()
    }

    #[test]
    fn comments_names_and_texts() {
        let text = "-- a comment\nCREATE /* no */ TABLE `a``b` /*!50100 (x /*M!100100 y */*/ # end\n 'it''s\\n' \"q\" 1.5 2fast é --1";
        let expected = [
            "CREATE", "TABLE", "`a`b`", "(", "x", "y", "'it's\n'", "'q'", "1.5", "2fast", "é", "-", "-", "1",
        ];
        assert_eq!(words(text), expected);
        assert_eq!(words("time(3) /* mariadb-5.3 */"), ["time", "(", "3", ")", OLD_TEMPORAL]);
        assert_eq!(words("time /* mysql-5.6 */"), ["time", NEW_TEMPORAL]);
    }

    #[test]
    fn an_unterminated_token_is_an_error_with_its_line() {
        for text in ["\n\n'abc", "\n\n`abc", "\n\n/* abc", "\n\n'abc\\'"] {
            assert!(tokens(text).unwrap_err().to_string().starts_with("line 3"), "{text}");
        }
    }
}
