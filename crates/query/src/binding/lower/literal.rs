//! Literals: most are the engine's own, the rest are calls over their text.

use datafusion::sql::sqlparser::ast::{DataType, Expr, TypedString, Value, ValueWithSpan};

use super::expression::call;
use super::unsupported;
use crate::Result;

fn text(text: &str) -> Expr {
    Expr::value(Value::SingleQuotedString(text.to_string()))
}

/// Whether it is a number without an exponent that fits the engine's types.
pub(super) fn is_plain_number(value: &Value) -> bool {
    match value {
        Value::Number(number, _) => {
            let digits = number.bytes().filter(u8::is_ascii_digit).count();
            match number.contains('.') {
                true => digits <= 38 && number.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.'),
                false => number.parse::<i64>().is_ok(),
            }
        }
        _ => false,
    }
}

/// A literal.
pub(super) fn value(value: ValueWithSpan) -> Result<Expr> {
    Ok(match &value.value {
        number if is_plain_number(number) => Expr::Value(value),
        Value::Number(number, _) => call("number", vec![text(number)]),
        Value::HexStringLiteral(digits) => {
            // `0x41` is a number where one is wanted, MariaDB's `x'41'` is not.
            let width = value.span.end.column.saturating_sub(value.span.start.column);
            let is_plain = width == digits.len() as u64 + 2;
            let name = if is_plain { "hex:0x" } else { "hex:x" };
            call(name, vec![Expr::Value(value)])
        }
        Value::SingleQuotedString(_) | Value::Null | Value::Boolean(_) => Expr::Value(value),
        Value::SingleQuotedByteStringLiteral(digits) => bits(digits)?,
        Value::DoubleQuotedString(of) | Value::NationalStringLiteral(of) => text(of),
        Value::Placeholder(name) if name.starts_with('@') => Expr::Value(value),
        other => return Err(unsupported(format!("the literal {other}"))),
    })
}

/// `b'101'`: bytes, of which the first one may have fewer bits.
fn bits(digits: &str) -> Result<Expr> {
    if digits.is_empty() || !digits.bytes().all(|digit| matches!(digit, b'0' | b'1')) {
        return Err(unsupported(format!("the literal b'{digits}'")));
    }
    let width = digits.len().div_ceil(8) * 8;
    let padded = format!("{digits:0>width$}");
    let bytes = padded.as_bytes().chunks(8).map(|bits| {
        let byte = bits.iter().fold(0u8, |byte, bit| byte << 1 | (bit - b'0'));
        format!("{byte:02X}")
    });
    Ok(call("hex:0x", vec![Expr::value(Value::HexStringLiteral(bytes.collect()))]))
}

/// `DATE '...'`, `TIME '...'`, `TIMESTAMP '...'`.
pub(super) fn temporal(of: TypedString) -> Result<Expr> {
    let name = match of.data_type {
        DataType::Date => "date",
        DataType::Time(None, _) => "time",
        DataType::Timestamp(None, _) | DataType::Datetime(None) => "timestamp",
        other => return Err(unsupported(format!("a literal of type {other}"))),
    };
    let written = of.value.value.into_string().ok_or_else(|| unsupported("a literal without a text"))?;
    Ok(call(&format!("literal:{name}"), vec![text(&written)]))
}

/// The text whose bytes a literal has in hexadecimal digits, if it is UTF-8.
fn text_of_hex(value: &Value) -> Option<String> {
    let Value::HexStringLiteral(digits) = value else { return None };
    let digits = digits.as_bytes();
    let digit = |of: u8| char::from(of).to_digit(16);
    let bytes = digits.chunks_exact(2).map(|pair| Some((digit(pair[0])? * 16 + digit(pair[1])?) as u8));
    String::from_utf8(bytes.collect::<Option<Vec<u8>>>()?).ok().filter(|_| digits.len().is_multiple_of(2))
}

/// `_utf8mb4'...'`.
pub(super) fn introduced(prefix: &str, value: Expr) -> Result<Expr> {
    let charset = prefix.trim_start_matches('_').to_ascii_lowercase();
    match value {
        Expr::Value(of) if matches!(of.value, Value::SingleQuotedString(_)) => {
            Ok(call(&format!("text:{charset}"), vec![Expr::Value(of)]))
        }
        Expr::Value(of) => match text_of_hex(&of.value) {
            Some(written) if charset != "binary" => {
                Ok(call(&format!("text:{charset}"), vec![text(&written)]))
            }
            _ => Err(unsupported(format!("the introducer {prefix}"))),
        },
        _ => Err(unsupported(format!("the introducer {prefix}"))),
    }
}
