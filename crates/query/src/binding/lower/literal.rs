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
        Value::SingleQuotedString(_) | Value::Null | Value::Boolean(_) | Value::HexStringLiteral(_) => {
            Expr::Value(value)
        }
        Value::DoubleQuotedString(of) | Value::NationalStringLiteral(of) => text(of),
        Value::Placeholder(name) if name.starts_with('@') => Expr::Value(value),
        other => return Err(unsupported(format!("the literal {other}"))),
    })
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

/// `_utf8mb4'...'`.
pub(super) fn introduced(prefix: &str, value: Expr) -> Result<Expr> {
    let charset = prefix.trim_start_matches('_').to_ascii_lowercase();
    match value {
        Expr::Value(of) if matches!(of.value, Value::SingleQuotedString(_)) => {
            Ok(call(&format!("text:{charset}"), vec![Expr::Value(of)]))
        }
        _ => Err(unsupported(format!("the introducer {prefix}"))),
    }
}
