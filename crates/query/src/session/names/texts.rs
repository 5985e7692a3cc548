//! Texts of select items: an expression without an alias is called by what was written.

use datafusion::sql::sqlparser::ast::{Expr, Value};
use datafusion::sql::sqlparser::tokenizer::{Token, Whitespace};

/// Words that end a select list.
const ENDS: [&str; 14] = [
    "FROM",
    "WHERE",
    "GROUP",
    "HAVING",
    "ORDER",
    "LIMIT",
    "UNION",
    "EXCEPT",
    "INTERSECT",
    "INTO",
    "FOR",
    "WINDOW",
    "PROCEDURE",
    "LOCK",
];

/// Words between SELECT and the list.
const MODIFIERS: [&str; 12] = [
    "ALL",
    "DISTINCT",
    "DISTINCTROW",
    "HIGH_PRIORITY",
    "STRAIGHT_JOIN",
    "SQL_SMALL_RESULT",
    "SQL_BIG_RESULT",
    "SQL_BUFFER_RESULT",
    "SQL_NO_CACHE",
    "SQL_CACHE",
    "SQL_CALC_FOUND_ROWS",
    "TOP",
];

/// The texts of the items of a statement's first SELECT that is not in WITH.
pub(super) fn items(tokens: &[Token]) -> Option<Vec<String>> {
    let (start, depth) = first_select(tokens)?;
    let mut at = start;
    let skipped =
        |token: &Token| matches!(token, Token::Whitespace(_)) || MODIFIERS.contains(&word(token).as_str());
    while tokens.get(at).is_some_and(skipped) {
        at += 1;
    }
    let mut level = depth;
    let mut texts = Vec::new();
    let mut item: Vec<&Token> = Vec::new();
    for token in &tokens[at..] {
        match token {
            Token::LParen => level += 1,
            Token::RParen if level == depth => break,
            Token::RParen => level -= 1,
            Token::Comma if level == depth => {
                texts.push(text(&item));
                item.clear();
                continue;
            }
            Token::SemiColon => break,
            token if level == depth && ENDS.contains(&word(token).as_str()) => break,
            _ => {}
        }
        item.push(token);
    }
    texts.push(text(&item));
    Some(texts)
}

/// The position behind the word SELECT, and how deep it stands in parentheses.
fn first_select(tokens: &[Token]) -> Option<(usize, usize)> {
    let mut depth = 0_usize;
    let mut opening = true;
    for (at, token) in tokens.iter().enumerate() {
        match token {
            Token::Whitespace(_) => continue,
            Token::LParen => depth += 1,
            Token::RParen => depth = depth.saturating_sub(1),
            token if word(token) == "SELECT" && (opening || depth == 0) => return Some((at + 1, depth)),
            _ => opening = false,
        }
    }
    None
}

fn word(token: &Token) -> String {
    match token {
        Token::Word(word) if word.quote_style.is_none() => word.value.to_ascii_uppercase(),
        _ => String::new(),
    }
}

fn text(tokens: &[&Token]) -> String {
    let is_comment = |token: &&&Token| {
        !matches!(
            token,
            Token::Whitespace(Whitespace::SingleLineComment { .. } | Whitespace::MultiLineComment(_))
        )
    };
    let written: String = tokens.iter().filter(is_comment).map(ToString::to_string).collect();
    written.trim().to_string()
}

/// The name of a literal: what a string says, a number without its sign of plus.
pub(super) fn literal(expression: &Expr, is_mysql: bool, written: Option<&str>) -> Option<String> {
    let Expr::Value(value) = expression else { return None };
    match &value.value {
        Value::Null => Some("NULL".to_string()),
        Value::Boolean(true) if !is_mysql => Some("TRUE".to_string()),
        Value::Boolean(false) if !is_mysql => Some("FALSE".to_string()),
        Value::SingleQuotedString(text) | Value::DoubleQuotedString(text) => {
            let text = match written.filter(|_| is_mysql).and_then(first_string) {
                Some(first) => first,
                None => text.clone(),
            };
            Some(text.trim_start_matches(|c: char| c.is_control() || c == ' ').to_string())
        }
        _ => None,
    }
}

/// Of strings beside each other MySQL takes the first as the name.
fn first_string(written: &str) -> Option<String> {
    let tokens = super::super::command::tokens(written).ok()?;
    let strings = tokens.iter().filter_map(|token| match token {
        Token::SingleQuotedString(text) | Token::DoubleQuotedString(text) => Some(text),
        _ => None,
    });
    let strings: Vec<&String> = strings.collect();
    (strings.len() > 1).then(|| strings[0].clone())
}

/// An expression's text where what was written is not at hand.
pub(super) fn of(expression: &Expr) -> String {
    match expression {
        Expr::Value(value) => value.clone().value.into_string().unwrap_or_else(|| expression.to_string()),
        _ => expression.to_string(),
    }
}
