//! Calls that the engine's own operators compute as the servers do.

use std::sync::Arc;

use datafusion::arrow::datatypes::DataType;
use datafusion::common::{DFSchema, Result, ScalarValue};
use datafusion::logical_expr::expr::{InList, Like};
use datafusion::logical_expr::planner::{PlannerResult, RawBinaryExpr};
use datafusion::logical_expr::{Between, Case, Expr, ExprSchemable, Operator, binary_expr, cast, lit};
use datafusion::sql::sqlparser::ast::BinaryOperator;

use super::bound::{BoundCall, input, typed_call};
use super::displayed;
use super::field::{CARRIES, shown_digits};
use super::rule::{Argument, Inputs};
use crate::expression::{Kind, Rules, Zone, is_calendar_date};
use crate::functions::{expression_planners, finite_function, unsigned_zero_function};
use crate::relation::types::MYSQL_TYPE;
use crate::relation::zero_date;
use crate::session::context::QueryContext;

/// Most digits of a decimal whose whole number a double holds.
const DOUBLE_DIGITS: u8 = 15;
/// Most digits of numbers of which as many as there may be rows have sums of 65.
const MAX_SUMMED_DIGITS: u8 = 55;
/// Most digits of an engine's DECIMAL.
const MAX_DIGITS: u8 = 38;

/// The engine's expression for a call; `None` if it would mean something else, or is not known to mean the same.
pub(super) fn expression(
    name: &str,
    operands: &[Argument],
    schema: &DFSchema,
    rules: &Rules,
    query: &Arc<QueryContext>,
) -> Result<Option<Expr>> {
    let is_average = |of: &Argument| of.field.metadata().contains_key(CARRIES);
    if name == "average of" || operands.iter().any(is_average) {
        return Ok(None);
    }
    if !rules.mysql && (name == "/" || operands.iter().any(carries_digits)) {
        return Ok(None);
    }
    // The engine takes TIMESTAMP for what it is in UTC.
    if rules.zone != Zone::UTC && operands.iter().any(|of| matches!(of.kind, Ok(Kind::Timestamp { .. }))) {
        return Ok(None);
    }
    if loses_digits(operands) {
        return Ok(None);
    }
    let with_zeros = with_zero_dates(name, operands, rules);
    let operands = with_zeros.as_deref().unwrap_or(operands);
    let expression = |no: usize| operands[no].expression.clone();
    if takes_years_as_numbers(name, operands, rules) {
        return Ok(None);
    }
    let name = if name == "case =" { "=" } else { name };
    match (name, operands) {
        ("=" | "<>" | "<" | "<=" | ">" | ">=", [left, right]) if compares(left, right) => {
            operation(name, expression(0), expression(1), schema, rules).map(Some)
        }
        ("<=>", [left, right])
            if compares(left, right) && left.field.data_type() == right.field.data_type() =>
        {
            Ok(Some(binary_expr(expression(0), Operator::IsNotDistinctFrom, expression(1))))
        }
        ("between", [value, low, high]) if compares(value, low) && compares(value, high) => {
            let (low, high) = (Box::new(expression(1)), Box::new(expression(2)));
            Ok(Some(Expr::Between(Between { expr: Box::new(expression(0)), negated: false, low, high })))
        }
        ("in", [value, list @ ..]) if list.iter().all(|item| compares(value, item)) => {
            let list = list.iter().map(|item| item.expression.clone()).collect();
            Ok(Some(Expr::InList(InList::new(Box::new(expression(0)), list, false))))
        }
        ("+" | "-" | "*", [left, right]) if is_without_zeros(left) && is_without_zeros(right) => {
            operation(name, expression(0), expression(1), schema, rules).map(Some)
        }
        ("/", [left, right])
            if is_exact(left) && is_exact(right) && is_without_zeros(left) && is_without_zeros(right) =>
        {
            operation(name, expression(0), expression(1), schema, rules).map(Some)
        }
        ("condition", [of]) if *of.field.data_type() == DataType::Boolean => Ok(Some(expression(0))),
        ("condition", [of]) if is_plain_number(of) => {
            operation("<>", expression(0), lit(0i64), schema, rules).map(Some)
        }
        ("number of", [of]) if is_plain_number(of) || is_summed(of) => Ok(Some(displayed::without(of))),
        ("number of", [of]) if *of.field.data_type() == DataType::Boolean => {
            Ok(Some(cast(expression(0), DataType::Int64)))
        }
        ("year" | "month" | "day" | "dayofmonth", [of])
            if matches!(of.field.data_type(), DataType::Date32 | DataType::Timestamp(..))
                && of.kind.as_ref().is_ok_and(Kind::is_temporal) =>
        {
            Ok(part_of_date(name, of, rules, query))
        }
        ("like", [text, pattern, escape @ ..]) => Ok(like(text, pattern, escape)),
        ("ranking", [_]) if rules.mysql => Ok(Some(expression(0))),
        ("ranking", [_]) => Ok(Some(cast(expression(0), DataType::Int64))),
        ("case", operands) if rules.mysql && has_other_digits(operands) => Ok(None),
        ("case" | "case of aggregate", operands) => Ok(case(operands)),
        _ => Ok(None),
    }
}

/// Parts of dates, which the engine does not know of those that no calendar has.
fn part_of_date(name: &str, of: &Argument, rules: &Rules, query: &Arc<QueryContext>) -> Option<Expr> {
    let part = lit(if name == "dayofmonth" { "day" } else { name });
    let begin = zero_date::begin_of_calendar(of.field.data_type())?;
    let extracted = datafusion::functions::datetime::date_part().call(vec![part, of.expression.clone()]);
    let typed = typed_call(name, vec![input(0, of.kind.clone().ok()?, rules)], rules).ok()?;
    let inputs = Inputs { expressions: vec![of.expression.clone()], parts: Vec::new() };
    let own = BoundCall::expression(name, typed, inputs, query);
    let is_none = Box::new(binary_expr(of.expression.clone(), Operator::Lt, lit(begin)));
    Some(Expr::Case(Case {
        expr: None,
        when_then_expr: vec![(is_none, Box::new(own))],
        else_expr: Some(Box::new(cast(extracted, DataType::Int64))),
    }))
}

/// The operands of a comparison with the zero date among its literals, which MySQL takes for an error; `None`
/// elsewhere.
fn with_zero_dates(name: &str, operands: &[Argument], rules: &Rules) -> Option<Vec<Argument>> {
    if rules.mysql || !matches!(name, "=" | "<>" | "<" | "<=" | ">" | ">=" | "<=>" | "between" | "in") {
        return None;
    }
    let is_zero = |of: &Argument| {
        let text = of.literal().and_then(|literal| literal.try_as_str().flatten());
        text.is_some_and(|text| matches!(text, "0000-00-00" | "0000-00-00 00:00:00"))
    };
    let date = operands.iter().find(|of| matches!(of.kind, Ok(Kind::Date | Kind::DateTime { .. })))?;
    let zero = zero_date::scalar(date.field.data_type()).filter(|_| operands.iter().any(is_zero))?;
    let replaced = operands.iter().map(|of| match is_zero(of) {
        true => Argument {
            expression: lit(zero.clone()),
            kind: date.kind.clone(),
            field: Arc::clone(&date.field),
        },
        false => of.clone(),
    });
    Some(replaced.collect())
}

/// A quotient, or what is made of one: MariaDB goes on with more digits than its type shows.
fn carries_digits(of: &Argument) -> bool {
    let is_bound = BoundCall::of(&of.expression).is_some_and(|bound| !bound.is_rounded());
    matches!(of.kind, Ok(Kind::Decimal { .. })) && (is_bound || shown_digits(&of.field).is_some())
}

/// A number that the engine computes with as the servers do: the digits that a double shows are not its concern.
fn is_plain_number(of: &Argument) -> bool {
    let kind = match &of.kind {
        // Its zeros are of its text alone.
        Ok(Kind::Padded { of, .. }) => of.as_ref(),
        Ok(kind) => kind,
        Err(_) => return false,
    };
    let is_number = matches!(
        kind,
        Kind::Int { .. } | Kind::Decimal { .. } | Kind::Double { decimals: None } | Kind::Float
    );
    is_number && !matches!(of.field.data_type(), DataType::Boolean | DataType::Decimal256(..))
}

/// A number of more than 38 digits whose sums have no more than the servers' types.
fn is_summed(of: &Argument) -> bool {
    matches!(of.field.data_type(), DataType::Decimal256(digits, _) if *digits <= MAX_SUMMED_DIGITS)
        && matches!(of.kind, Ok(Kind::Decimal { .. }))
}

/// Whether a decimal meets a double and has more digits than the engine converts without error.
fn loses_digits(operands: &[Argument]) -> bool {
    let is_long = |of: &Argument| match of.field.data_type() {
        DataType::Decimal128(digits, _) | DataType::Decimal256(digits, _) => *digits > DOUBLE_DIGITS,
        _ => false,
    };
    operands.iter().any(|of| of.field.data_type().is_floating()) && operands.iter().any(is_long)
}

/// A plain number whose column has no ZEROFILL: what the engine computes of it shows no zeros.
fn is_without_zeros(of: &Argument) -> bool {
    is_plain_number(of) && !matches!(of.kind, Ok(Kind::Padded { .. }))
}

fn is_exact(of: &Argument) -> bool {
    is_plain_number(of) && matches!(of.kind, Ok(Kind::Int { .. } | Kind::Decimal { .. }))
}

/// A type whose values travel as text or as a number of two digits, which another rule knows how to compare.
fn is_special(of: &Argument) -> bool {
    of.field
        .metadata()
        .get(MYSQL_TYPE)
        .is_some_and(|name| matches!(name.as_str(), "uuid" | "inet4" | "inet6" | "year"))
}

fn is_year(of: &Argument) -> bool {
    of.field.metadata().get(MYSQL_TYPE).is_some_and(|name| name == "year")
}

/// Whether years are compared here without the century of the last rule: in CASE, in MySQL's lists, and where a year is
/// an item of a list.
fn takes_years_as_numbers(name: &str, operands: &[Argument], rules: &Rules) -> bool {
    match (name, operands) {
        ("case =", operands) => operands.iter().any(is_year),
        ("in", [value, list @ ..]) => {
            is_year(value) && rules.mysql && list.len() > 1 || !is_year(value) && list.iter().any(is_year)
        }
        _ => false,
    }
}

/// Whether a literal beside a year has a fraction or an exponent, which is rounded before it gets its century.
fn is_odd_year(of: &Argument) -> bool {
    let literal = of.literal();
    literal.is_some_and(|literal| literal.data_type().is_floating() || literal.data_type().is_decimal())
}

/// Whether the engine compares two values as the servers do.
fn compares(left: &Argument, right: &Argument) -> bool {
    if is_year(left) && is_odd_year(right) || is_year(right) && is_odd_year(left) {
        return false;
    }
    if is_special(left) || is_special(right) {
        return true;
    }
    if is_plain_number(left) && is_plain_number(right) {
        return true;
    }
    let (Ok(left_kind), Ok(right_kind)) = (&left.kind, &right.kind) else { return false };
    match (left_kind, right_kind) {
        (Kind::Date | Kind::DateTime { .. }, Kind::Date | Kind::DateTime { .. })
        | (Kind::Time { .. }, Kind::Time { .. })
        | (Kind::Bytes, Kind::Bytes | Kind::Hex)
        | (Kind::Hex, Kind::Bytes) => true,
        // By their collations, which a later rule sees to.
        (Kind::Text(_), Kind::Text(_) | Kind::Null) | (Kind::Null, Kind::Text(_)) => true,
        (Kind::Choice(of), Kind::Text(_)) => right.literal().is_some() || of.collating.collation.is_some(),
        (Kind::Text(_), Kind::Choice(of)) => left.literal().is_some() || of.collating.collation.is_some(),
        (Kind::Choice(of), Kind::Choice(with)) => {
            of.collating.collation.is_some() && with.collating.collation.is_some()
        }
        (Kind::Date | Kind::DateTime { .. } | Kind::Timestamp { .. }, Kind::Text(_)) => is_date_text(right),
        (Kind::Text(_), Kind::Date | Kind::DateTime { .. } | Kind::Timestamp { .. }) => is_date_text(left),
        _ => false,
    }
}

/// A literal of one spelling that both servers and the engine read as the same date: `2024-01-31 10:11:12.5`.
fn is_date_text(of: &Argument) -> bool {
    let (ScalarValue::Utf8(Some(text)) | ScalarValue::Utf8View(Some(text))) =
        of.literal().unwrap_or(&ScalarValue::Null)
    else {
        return false;
    };
    if !is_calendar_text(text) {
        return false;
    }
    let shape: String =
        text.chars().map(|letter| if letter.is_ascii_digit() { '0' } else { letter }).take(27).collect();
    match shape.strip_prefix("0000-00-00 00:00:00") {
        Some("") => true,
        Some(fraction) => fraction.strip_prefix('.').is_some_and(|digits| {
            (1..=6).contains(&digits.len()) && digits.bytes().all(|digit| digit == b'0')
        }),
        None => shape == "0000-00-00",
    }
}

/// Whether a text that begins with a date begins with one that a calendar has, and goes on with a time of day.
fn is_calendar_text(text: &str) -> bool {
    let number = |from: usize, to: usize| text.get(from..to).and_then(|digits| digits.parse::<u32>().ok());
    let (Some(year), Some(month), Some(day)) = (number(0, 4), number(5, 7), number(8, 10)) else {
        return false;
    };
    let in_day = |from: usize, below: u32| number(from, from + 2).is_none_or(|part| part < below);
    // Neither server has the engine's calendar in the year 0.
    year > 0
        && is_calendar_date(year.into(), month.into(), day.into())
        && (in_day(11, 24) && in_day(14, 60) && in_day(17, 60))
}

/// The engine's operator, by the planners that know of overflow, quotients and dates.
fn operation(name: &str, left: Expr, right: Expr, schema: &DFSchema, rules: &Rules) -> Result<Expr> {
    let (operator, engine) = match name {
        "=" => (BinaryOperator::Eq, Operator::Eq),
        "<>" => (BinaryOperator::NotEq, Operator::NotEq),
        "<" => (BinaryOperator::Lt, Operator::Lt),
        "<=" => (BinaryOperator::LtEq, Operator::LtEq),
        ">" => (BinaryOperator::Gt, Operator::Gt),
        ">=" => (BinaryOperator::GtEq, Operator::GtEq),
        "+" => (BinaryOperator::Plus, Operator::Plus),
        "-" => (BinaryOperator::Minus, Operator::Minus),
        "*" => (BinaryOperator::Multiply, Operator::Multiply),
        _ => (BinaryOperator::Divide, Operator::Divide),
    };
    let mut raw = RawBinaryExpr { op: operator, left, right };
    for planner in expression_planners() {
        raw = match planner.plan_binary_op(raw, schema)? {
            PlannerResult::Planned(planned) => return Ok(planned),
            PlannerResult::Original(raw) => raw,
        };
    }
    let is_double = |operand: &Expr| operand.get_type(schema).is_ok_and(|of| of.is_floating());
    let computes = matches!(engine, Operator::Plus | Operator::Minus | Operator::Multiply);
    let is_double = computes && (is_double(&raw.left) || is_double(&raw.right));
    let result = binary_expr(raw.left, engine, raw.right);
    // MariaDB computes no zero with a sign.
    Ok(match (is_double, rules.mysql) {
        (true, true) => finite_function().call(vec![result]),
        (true, false) => unsigned_zero_function().call(vec![finite_function().call(vec![result])]),
        (false, _) => result,
    })
}

/// LIKE of texts, which a later rule matches by their collations.
fn like(text: &Argument, pattern: &Argument, escape: &[Argument]) -> Option<Expr> {
    let is_text = |of: &Argument| matches!(of.kind, Ok(Kind::Text(_)));
    let escape_char = match escape {
        [] => None,
        [escape] => {
            let mut letters = escape.literal()?.try_as_str().flatten()?.chars();
            Some(letters.next().filter(|_| letters.next().is_none())?)
        }
        _ => return None,
    };
    (is_text(text) && is_text(pattern)).then(|| {
        let (text, pattern) = (Box::new(text.expression.clone()), Box::new(pattern.expression.clone()));
        Expr::Like(Like::new(false, text, pattern, escape_char, false))
    })
}

/// CASE over results of one type, or of exact numbers.
fn case(operands: &[Argument]) -> Option<Expr> {
    let pairs = operands.chunks_exact(2);
    let otherwise = pairs.remainder().first();
    let results: Vec<&Argument> = pairs.clone().map(|pair| &pair[1]).chain(otherwise).collect();
    let target = target(&results)?;
    let converted = |of: &Argument| match of.field.data_type() == &target {
        true => Box::new(of.expression.clone()),
        false => Box::new(cast(of.expression.clone(), target.clone())),
    };
    let whens = pairs.map(|pair| (Box::new(pair[0].expression.clone()), converted(&pair[1]))).collect();
    Some(Expr::Case(Case { expr: None, when_then_expr: whens, else_expr: otherwise.map(converted) }))
}

/// Whether the results of a CASE are exact numbers of several scales.
fn has_other_digits(operands: &[Argument]) -> bool {
    let pairs = operands.chunks_exact(2);
    let otherwise = pairs.remainder().first();
    let mut scales = pairs.map(|pair| &pair[1]).chain(otherwise).filter_map(|result| match &result.kind {
        Ok(Kind::Decimal { scale }) => Some(*scale),
        Ok(Kind::Int { .. }) => Some(0),
        _ => None,
    });
    let first = scales.next();
    scales.any(|scale| Some(scale) != first)
}

/// The type of the results of a CASE; `None` if the engine has none that prints as the servers' does.
fn target(results: &[&Argument]) -> Option<DataType> {
    let (mut whole, mut scale, mut decimal, mut any) = (0u8, 0u8, false, false);
    let mut of_integers: Option<DataType> = None;
    for result in results {
        match (&result.kind, result.field.data_type()) {
            (Ok(Kind::Null), _) => continue,
            (Ok(Kind::Decimal { .. }), DataType::Decimal128(digits, places)) => {
                let places = u8::try_from(*places).ok()?;
                whole = whole.max(digits.checked_sub(places)?);
                scale = scale.max(places);
                decimal = true;
            }
            (Ok(Kind::Int { unsigned: false }), data_type) if data_type.is_signed_integer() => {
                whole = whole.max(19);
                of_integers = Some(DataType::Int64);
            }
            _ => return None,
        }
        any = true;
    }
    if !any {
        return None;
    }
    match (decimal, of_integers) {
        (false, integers) => integers,
        (true, _) => {
            let digits = whole.checked_add(scale).filter(|digits| *digits <= MAX_DIGITS)?;
            Some(DataType::Decimal128(digits, scale.cast_signed()))
        }
    }
}
