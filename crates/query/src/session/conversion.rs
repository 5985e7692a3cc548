//! CAST, CONVERT and CHAR with a character set, which the parser does not know in all the servers' spellings.
//!
//! `CAST(x AS CHAR(3) CHARACTER SET latin1)` becomes `CONVERT(x, CHAR(3) CHARACTER SET latin1)`, and
//! `CHAR(65 USING latin1)` becomes `CONVERT(CHAR(65) USING latin1)`. Views are kept in such spellings.

use datafusion::sql::sqlparser::ast::{CastKind, CharacterLength, DataType, Expr, Ident, ObjectName};
use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::parser::{Parser, ParserError};
use datafusion::sql::sqlparser::tokenizer::Token;

use super::dialect::function;

type Parsed<T> = std::result::Result<T, ParserError>;

/// Parses a call of CAST, CONVERT or CHAR, if that comes next.
pub(super) fn parse(parser: &mut Parser) -> Option<Parsed<Expr>> {
    let name = match &parser.peek_token_ref().token {
        Token::Word(word) if word.quote_style.is_none() => word.value.clone(),
        _ => return None,
    };
    if parser.peek_nth_token_ref(1).token != Token::LParen {
        return None;
    }
    let parse: fn(&mut Parser, &str) -> Parsed<Expr> = match name.to_ascii_lowercase().as_str() {
        "cast" => cast,
        "convert" => convert,
        "char" => char_of_codes,
        _ => return None,
    };
    parser.advance_token();
    parser.advance_token();
    Some(parse(parser, &name).and_then(|parsed| parser.expect_token(&Token::RParen).map(|_| parsed)))
}

fn cast(parser: &mut Parser, _: &str) -> Parsed<Expr> {
    let operand = parser.parse_expr()?;
    parser.expect_keyword_is(Keyword::AS)?;
    let (data_type, charset) = target(parser)?;
    let array = parser.parse_keyword(Keyword::ARRAY);
    Ok(match charset {
        Some(charset) => converted(operand, Some(data_type), charset),
        None => Expr::Cast { kind: CastKind::Cast, expr: Box::new(operand), data_type, array, format: None },
    })
}

fn convert(parser: &mut Parser, _: &str) -> Parsed<Expr> {
    let operand = parser.parse_expr()?;
    if parser.parse_keyword(Keyword::USING) {
        return Ok(converted(operand, None, charset_name(parser)?));
    }
    parser.expect_token(&Token::Comma)?;
    let (data_type, charset) = target(parser)?;
    Ok(match charset {
        Some(charset) => converted(operand, Some(data_type), charset),
        None => Expr::Convert {
            is_try: false,
            expr: Box::new(operand),
            data_type: Some(data_type),
            charset: None,
            target_before_value: false,
            styles: Vec::new(),
        },
    })
}

fn char_of_codes(parser: &mut Parser, name: &str) -> Parsed<Expr> {
    let codes = parser.parse_comma_separated(Parser::parse_expr)?;
    let text = function(name, codes);
    Ok(match parser.parse_keyword(Keyword::USING) {
        true => converted(text, None, charset_name(parser)?),
        false => text,
    })
}

/// A type and the character set that it says.
fn target(parser: &mut Parser) -> Parsed<(DataType, Option<String>)> {
    if parser.parse_keyword(Keyword::NCHAR) {
        return Ok((DataType::Char(length(parser)?), Some("utf8mb3".to_string())));
    }
    let data_type = parser.parse_data_type()?;
    let is_text = matches!(data_type, DataType::Char(_) | DataType::Character(_) | DataType::Varchar(_));
    let charset = if is_text { charset(parser)? } else { None };
    match (charset.as_deref(), &data_type) {
        // Both are padded with zeros.
        (
            Some("binary"),
            DataType::Char(length) | DataType::Character(length) | DataType::Varchar(length),
        ) => {
            let length = match length {
                Some(CharacterLength::IntegerLength { length, .. }) => Some(*length),
                _ => None,
            };
            Ok((DataType::Binary(length), None))
        }
        _ => Ok((data_type, charset)),
    }
}

fn length(parser: &mut Parser) -> Parsed<Option<CharacterLength>> {
    if !parser.consume_token(&Token::LParen) {
        return Ok(None);
    }
    let length = parser.parse_literal_uint()?;
    parser.expect_token(&Token::RParen)?;
    Ok(Some(CharacterLength::IntegerLength { length, unit: None }))
}

/// What follows a type of texts: `CHARACTER SET name`, `CHARSET name`, ASCII or UNICODE.
fn charset(parser: &mut Parser) -> Parsed<Option<String>> {
    let charset = if parser.parse_keywords(&[Keyword::CHARACTER, Keyword::SET]) || eat_word(parser, "charset")
    {
        Some(charset_name(parser)?)
    } else if eat_word(parser, "ascii") {
        Some("latin1".to_string())
    } else if eat_word(parser, "unicode") {
        Some("ucs2".to_string())
    } else {
        None
    };
    if eat_word(parser, "binary") {
        return Err(ParserError::ParserError(
            "BINARY behind a type of texts is not supported here".to_string(),
        ));
    }
    Ok(charset)
}

fn charset_name(parser: &mut Parser) -> Parsed<String> {
    match parser.next_token().token {
        Token::Word(word) => Ok(word.value.to_lowercase()),
        Token::SingleQuotedString(name) | Token::DoubleQuotedString(name) => Ok(name.to_lowercase()),
        other => Err(ParserError::ParserError(format!("Expected: a character set, found: {other}"))),
    }
}

fn eat_word(parser: &mut Parser, wanted: &str) -> bool {
    let comes = match &parser.peek_token_ref().token {
        Token::Word(word) => word.quote_style.is_none() && word.value.eq_ignore_ascii_case(wanted),
        _ => false,
    };
    if comes {
        parser.advance_token();
    }
    comes
}

fn converted(operand: Expr, data_type: Option<DataType>, charset: String) -> Expr {
    Expr::Convert {
        is_try: false,
        expr: Box::new(operand),
        data_type,
        charset: Some(ObjectName::from(vec![Ident::new(charset)])),
        target_before_value: false,
        styles: Vec::new(),
    }
}
