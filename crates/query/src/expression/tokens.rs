//! Tokens of an expression as the servers write it into their dictionaries.
//!
//! Names are in backticks, strings in single quotes with an introducer before them (`_utf8mb4'x'`). MySQL
//! may escape the quotes themselves (`_utf8mb4\'x\'`): then the text is unescaped once more.

use std::fmt;

use super::Refusal;

/// A token of an expression.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Token {
    /// A keyword or function, in lower case.
    Word(String),
    /// A name in backticks.
    Name(String),
    /// A number as it is written.
    Number(String),
    /// A string, and the character set of its introducer.
    Text { text: String, charset: Option<String> },
    /// Bytes in hexadecimal digits or bits, and whether they are a number to MariaDB (`0x41` and `b'1'`, not `x'41'`).
    Hex { bytes: Vec<u8>, is_number: bool },
    /// An operator or punctuation.
    Symbol(&'static str),
}

impl fmt::Display for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Token::Word(word) => f.write_str(word),
            Token::Name(name) => write!(f, "`{name}`"),
            Token::Number(number) => f.write_str(number),
            Token::Text { text, .. } => write!(f, "'{text}'"),
            Token::Hex { .. } => f.write_str("a hexadecimal literal"),
            Token::Symbol(symbol) => f.write_str(symbol),
        }
    }
}

/// Operators and punctuation, the longest first.
const SYMBOLS: [&str; 27] = [
    "<=>", "->>", "<<", ">>", "<=", ">=", "<>", "!=", "->", "||", "&&", "(", ")", ",", ".", "+", "-", "*",
    "/", "%", "<", ">", "=", "!", "|", "&", "^",
];

/// Longest expression that is read, in bytes; the servers store at most 64 KiB.
const MAX_BYTES: usize = 1 << 17;

/// The tokens of `text`.
///
/// # Errors
/// If a quote is not closed or a character begins no token.
pub(super) fn tokens(text: &str) -> Result<Vec<Token>, Refusal> {
    if text.len() > MAX_BYTES {
        return Err(Refusal::new("the expression is too long"));
    }
    let mut rest = text;
    let mut tokens = Vec::new();
    while let Some(first) = rest.chars().next() {
        if first.is_whitespace() {
            rest = &rest[first.len_utf8()..];
            continue;
        }
        let (token, length) = token(rest, first)?;
        rest = &rest[length..];
        match (tokens.last_mut(), token) {
            // An introducer belongs to the string behind it.
            (Some(Token::Word(word)), Token::Text { text, charset: None }) if word.starts_with('_') => {
                let charset = Some(word[1..].to_string());
                tokens.pop();
                tokens.push(Token::Text { text, charset });
            }
            (_, token) => tokens.push(token),
        }
    }
    Ok(tokens)
}

fn token(rest: &str, first: char) -> Result<(Token, usize), Refusal> {
    match first {
        '`' => {
            let (name, length) = quoted(rest, '`')?;
            Ok((Token::Name(name), length))
        }
        '\'' => {
            let (text, length) = quoted(rest, '\'')?;
            Ok((Token::Text { text: unescaped(&text), charset: None }, length))
        }
        '\\' if rest.starts_with("\\'") => {
            let (text, length) = escaped(rest)?;
            Ok((Token::Text { text, charset: None }, length))
        }
        '0' if rest.starts_with("0x") => {
            let length = rest[2..].bytes().take_while(u8::is_ascii_hexdigit).count();
            Ok((Token::Hex { bytes: digits(&rest[2..2 + length], 16)?, is_number: true }, 2 + length))
        }
        'x' | 'X' | 'b' | 'B' if rest[1..].starts_with('\'') => {
            let (text, length) = quoted(&rest[1..], '\'')?;
            let bits = matches!(first, 'b' | 'B');
            let bytes = digits(&text, if bits { 2 } else { 16 })?;
            Ok((Token::Hex { bytes, is_number: bits }, 1 + length))
        }
        '0'..='9' => number(rest),
        '.' if rest[1..].starts_with(|next: char| next.is_ascii_digit()) => number(rest),
        'a'..='z' | 'A'..='Z' | '_' => {
            let is_part = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '_' | '$');
            let length = rest.find(|letter| !is_part(letter)).unwrap_or(rest.len());
            Ok((Token::Word(rest[..length].to_ascii_lowercase()), length))
        }
        '~' => Ok((Token::Symbol("~"), 1)),
        _ => match SYMBOLS.iter().find(|symbol| rest.starts_with(**symbol)) {
            Some(symbol) => Ok((Token::Symbol(symbol), symbol.len())),
            None => Err(Refusal::new(format!("`{first}` is not known"))),
        },
    }
}

/// The bytes that digits of base 16 or 2 spell, the first filled with zeros.
fn digits(text: &str, base: u32) -> Result<Vec<u8>, Refusal> {
    let width = if base == 16 { 2 } else { 8 };
    let padded = format!("{}{text}", "0".repeat(text.len().next_multiple_of(width) - text.len()));
    let bytes = padded.as_bytes().chunks(width).map(|digits| {
        let digits = std::str::from_utf8(digits).ok()?;
        u8::from_str_radix(digits, base).ok()
    });
    bytes.collect::<Option<_>>().ok_or_else(|| Refusal::new("a literal of odd digits"))
}

/// What is between two quotes (doubled ones stand for one), and the length with the quotes.
fn quoted(rest: &str, quote: char) -> Result<(String, usize), Refusal> {
    let mut text = String::new();
    let mut letters = rest.char_indices().skip(1).peekable();
    while let Some((at, letter)) = letters.next() {
        match letter {
            '\\' if quote == '\'' => {
                text.push('\\');
                text.extend(letters.next().map(|(_, next)| next));
            }
            _ if letter == quote => match letters.peek() {
                Some((_, next)) if *next == quote => {
                    letters.next();
                    text.push(quote);
                }
                _ => return Ok((text, at + 1)),
            },
            _ => text.push(letter),
        }
    }
    Err(Refusal::new("a quote is not closed"))
}

/// A string whose quotes are escaped themselves; everything in it is escaped twice.
fn escaped(rest: &str) -> Result<(String, usize), Refusal> {
    let inner = &rest[2..];
    let mut from = 0;
    while let Some(at) = inner[from..].find("\\'") {
        let at = from + at;
        let slashes = inner[..at].bytes().rev().take_while(|byte| *byte == b'\\').count();
        // A quote inside of the string is escaped once more.
        if slashes % 4 == 0 {
            return Ok((unescaped(&unescaped(&inner[..at])), at + 4));
        }
        from = at + 2;
    }
    Err(Refusal::new("a quote is not closed"))
}

/// Backslash sequences replaced. `\%` and `\_` keep theirs, for LIKE.
fn unescaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut letters = text.chars();
    while let Some(letter) = letters.next() {
        if letter != '\\' {
            out.push(letter);
            continue;
        }
        match letters.next() {
            Some('n') => out.push('\n'),
            Some('t') => out.push('\t'),
            Some('r') => out.push('\r'),
            Some('b') => out.push('\u{8}'),
            Some('0') => out.push('\0'),
            Some('Z') => out.push('\u{1a}'),
            Some(wildcard @ ('%' | '_')) => out.extend(['\\', wildcard]),
            Some(other) => out.push(other),
            None => out.push('\\'),
        }
    }
    out
}

fn number(rest: &str) -> Result<(Token, usize), Refusal> {
    let digits = |from: usize| {
        rest[from..].find(|digit: char| !digit.is_ascii_digit()).map_or(rest.len(), |length| from + length)
    };
    let mut end = digits(0);
    if rest[end..].starts_with('.') {
        end = digits(end + 1);
    }
    if rest[end..].starts_with(['e', 'E']) {
        let sign = usize::from(rest[end + 1..].starts_with(['+', '-']));
        let exponent = digits(end + 1 + sign);
        if exponent > end + 1 + sign {
            end = exponent;
        }
    }
    match rest[end..].starts_with(|next: char| next.is_ascii_alphanumeric() || next == '_') {
        true => Err(Refusal::new("a number is followed by a letter")),
        false => Ok((Token::Number(rest[..end].to_string()), end)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(text: &str, charset: &str) -> Token {
        Token::Text { text: text.to_string(), charset: Some(charset.to_string()) }
    }

    #[test]
    fn strings_with_introducers_and_escaped_quotes_are_read() {
        assert_eq!(tokens(r"_utf8mb4\'x\'").unwrap(), [text("x", "utf8mb4")]);
        assert_eq!(tokens(r"_utf8mb4\'it\\\'s\'").unwrap(), [text("it's", "utf8mb4")]);
        assert_eq!(tokens(r"_utf8mb4'it''s'").unwrap(), [text("it's", "utf8mb4")]);
        assert_eq!(tokens(r"_utf8mb4'it\'s'").unwrap(), [text("it's", "utf8mb4")]);
        assert_eq!(tokens(r"_latin1'a\\b'").unwrap(), [text(r"a\b", "latin1")]);
        assert!(tokens("_utf8mb4'x").is_err());
    }

    #[test]
    fn operators_and_numbers_are_told_apart() {
        let expected = [
            Token::Name("a`b".to_string()),
            Token::Symbol("<=>"),
            Token::Number("1.5e3".to_string()),
            Token::Symbol("->>"),
            Token::Word("mod".to_string()),
        ];
        assert_eq!(tokens("`a``b` <=>1.5e3->> MOD").unwrap(), expected);
    }
}
