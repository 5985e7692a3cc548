//! `+ - * / DIV %`, signs, bits and logic.

use super::datum::{Datum, Decimal, Number, signed};
use super::decimal::{MAX_SCALE, MAX_SCALE_MARIADB};
use super::node::{Node, Typed};
use super::{Kind, Refusal, Rules};

const SIGNED: Kind = Kind::Int { unsigned: false };
const UNSIGNED: Kind = Kind::Int { unsigned: true };

fn is_unsigned(kind: &Kind) -> bool {
    matches!(kind, Kind::Int { unsigned: true } | Kind::Bit { .. } | Kind::Year | Kind::Hex)
}

/// Digits after the point of an operand that counts exactly; `None` if it counts as a double.
pub(super) fn exact_scale(kind: &Kind, mysql: bool) -> Option<u8> {
    match kind {
        Kind::Choice(_) => (!mysql).then_some(0),
        kind => kind.scale(),
    }
}

/// How an operation is computed.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Way {
    Whole { unsigned: bool },
    Exact,
    Double,
}

fn way(left: &Kind, right: &Kind, mysql: bool) -> Way {
    match (exact_scale(left, mysql), exact_scale(right, mysql)) {
        (Some(0), Some(0))
            if !matches!(left, Kind::Decimal { .. }) && !matches!(right, Kind::Decimal { .. }) =>
        {
            Way::Whole { unsigned: is_unsigned(left) || is_unsigned(right) }
        }
        (Some(_), Some(_)) => Way::Exact,
        _ => Way::Double,
    }
}

/// The integer, if 64 bits hold it.
pub(super) fn whole(number: i128, unsigned: bool) -> Result<Datum, Refusal> {
    let datum = match unsigned {
        true => u64::try_from(number).map(Datum::UInt),
        false => i64::try_from(number).map(Datum::Int),
    };
    datum.map_err(|_| Refusal::new("a BIGINT out of range, which is an error of the server"))
}

/// The double, if it is finite.
pub(super) fn double(number: f64) -> Result<Datum, Refusal> {
    match number.is_finite() {
        true => Ok(Datum::Double(number)),
        false => Err(Refusal::new("a DOUBLE out of range, which is an error of the server")),
    }
}

/// A date that comes out of an IF or COALESCE: some ways of making it a number go by its text.
pub(super) fn number_of_branches(operand: &Typed) -> Result<(), Refusal> {
    match operand.kind.is_temporal() && matches!(operand.node, Node::Case(..) | Node::Coalesce(_)) {
        true => Err(Refusal::new("a date out of an IF or COALESCE as a number")),
        false => Ok(()),
    }
}

/// `+`, `-`, `*`, `/`, `DIV` and `%`.
pub(super) fn operation(operator: &str, left: Typed, right: Typed, rules: &Rules) -> Result<Typed, Refusal> {
    let (mysql, increment) = (rules.mysql, rules.div_precision_increment);
    number_of_branches(&left)?;
    number_of_branches(&right)?;
    let kinds = (left.kind.clone(), right.kind.clone());
    let way = way(&kinds.0, &kinds.1, mysql);
    let way = if operator == "/" && matches!(way, Way::Whole { .. }) { Way::Exact } else { way };
    let kind = result_kind(operator, way, (&kinds.0, &kinds.1), rules);
    let operator = operator.to_string();
    let result = kind.clone();
    let compute = move |values: &[Datum]| {
        let (Some(a), Some(b)) = (values[0].number(&kinds.0)?, values[1].number(&kinds.1)?) else {
            return Ok(Datum::Null);
        };
        match (way, a.to_decimal(), b.to_decimal()) {
            (Way::Whole { .. }, _, _) if operator != "div" => match (a, b) {
                (Number::Whole(a), Number::Whole(b)) => wholes(&operator, a, b, result == UNSIGNED),
                _ => Err(Refusal::new("a fraction as a whole number")),
            },
            (Way::Exact, Some(a), Some(b)) if operator != "div" => {
                let operands = (widened(a, &kinds.0)?, widened(b, &kinds.1)?);
                exact(&operator, operands, &result, increment, mysql)
            }
            (Way::Exact | Way::Whole { .. }, Some(a), Some(b)) => whole_quotient(a, b, result == UNSIGNED),
            _ if operator == "div" => {
                match (in_digits(&values[0], &kinds.0, a)?, in_digits(&values[1], &kinds.1, b)?) {
                    (Some(a), Some(b)) => whole_quotient(a, b, result == UNSIGNED),
                    _ => Err(Refusal::digits()),
                }
            }
            _ => doubles(&operator, a.to_f64(), b.to_f64()),
        }
    };
    Ok(Typed::call(kind, vec![left, right], compute))
}

/// The quotient of a sum and a count, which both servers carry on with more digits than they show.
pub(super) fn average(sum: Typed, count: Typed, rules: &Rules) -> Result<Typed, Refusal> {
    let kind = result_kind("/", way(&sum.kind, &count.kind, rules.mysql), (&sum.kind, &count.kind), rules);
    let exact_sum = matches!(sum.kind, Kind::Decimal { .. } | Kind::Int { .. });
    if !rules.mysql || !exact_sum {
        return operation("/", sum, count, rules);
    }
    let kind = match kind {
        Kind::Int { .. } => Kind::Decimal { scale: rules.div_precision_increment },
        kind => kind,
    };
    let (increment, kinds) = (rules.div_precision_increment, (sum.kind.clone(), count.kind.clone()));
    let compute = move |values: &[Datum]| {
        let (Some(a), Some(b)) = (values[0].number(&kinds.0)?, values[1].number(&kinds.1)?) else {
            return Ok(Datum::Null);
        };
        match (a.to_decimal(), b.to_decimal()) {
            (Some(a), Some(b)) => Ok(a.quotient(b, increment)?.map_or(Datum::Null, Datum::Decimal)),
            _ => Err(Refusal::digits()),
        }
    };
    Ok(Typed::call(kind, vec![sum, count], compute))
}

/// With at least the digits of its type, which a branch of MySQL's CASE may lack.
fn widened(number: Decimal, kind: &Kind) -> Result<Decimal, Refusal> {
    match kind {
        Kind::Decimal { scale } if number.scale < *scale => number.rounded(*scale),
        _ => Ok(number),
    }
}

/// The type of what an operator gives.
fn result_kind(operator: &str, way: Way, kinds: (&Kind, &Kind), rules: &Rules) -> Kind {
    let mysql = rules.mysql;
    let most = if mysql { MAX_SCALE } else { MAX_SCALE_MARIADB };
    let combined = |left: u8, right: u8| match operator {
        "*" => left.saturating_add(right),
        "/" => left.saturating_add(rules.div_precision_increment),
        _ => left.max(right),
    };
    match (operator, way) {
        ("div", Way::Whole { unsigned }) => Kind::Int { unsigned },
        ("div", _) => Kind::Int { unsigned: is_unsigned(kinds.0) || is_unsigned(kinds.1) },
        // The sign of a remainder is that of the dividend.
        ("%", Way::Whole { .. }) => Kind::Int { unsigned: is_unsigned(kinds.0) },
        (_, Way::Whole { unsigned }) => Kind::Int { unsigned },
        (_, Way::Exact) => {
            let scales = (exact_scale(kinds.0, mysql), exact_scale(kinds.1, mysql));
            Kind::Decimal { scale: combined(scales.0.unwrap_or(0), scales.1.unwrap_or(0)).min(most) }
        }
        (_, Way::Double) => {
            let decimals = kinds.0.decimals().zip(kinds.1.decimals()).map(|(left, right)| match operator {
                "/" => left.max(right).saturating_add(rules.div_precision_increment),
                _ => left.max(right),
            });
            Kind::Double { decimals: decimals.filter(|decimals| *decimals <= MAX_SCALE) }
        }
    }
}

/// A number as DIV takes it: a text by its digits.
fn in_digits(value: &Datum, kind: &Kind, number: Number) -> Result<Option<Decimal>, Refusal> {
    Ok(match (value, number) {
        (Datum::Text(text), Number::Double(_)) if *kind != Kind::Json => Decimal::prefix(text),
        (_, Number::Double(number)) => Decimal::of_double(number),
        (_, number) => number.to_decimal(),
    })
}

/// What a division by zero gives.
fn by_zero() -> Datum {
    super::notes::division_by_zero();
    Datum::Null
}

fn whole_quotient(a: Decimal, b: Decimal, unsigned: bool) -> Result<Datum, Refusal> {
    match a.whole_quotient(b)? {
        None => Ok(by_zero()),
        Some(quotient) => whole(quotient.to_i128().ok_or_else(Refusal::digits)?, unsigned),
    }
}

fn wholes(operator: &str, a: i128, b: i128, unsigned: bool) -> Result<Datum, Refusal> {
    let result = match operator {
        "+" => a.checked_add(b),
        "-" => a.checked_sub(b),
        "*" => a.checked_mul(b),
        _ if b == 0 => return Ok(by_zero()),
        _ => a.checked_rem(b),
    };
    whole(result.ok_or_else(Refusal::digits)?, unsigned)
}

fn doubles(operator: &str, a: f64, b: f64) -> Result<Datum, Refusal> {
    match operator {
        "+" => double(a + b),
        "-" => double(a - b),
        "*" => double(a * b),
        _ if b == 0.0 => Ok(by_zero()),
        "/" => double(a / b),
        "%" => double(a % b),
        _ => Err(Refusal::new("DIV of doubles")),
    }
}

fn exact(
    operator: &str,
    (a, b): (Decimal, Decimal),
    kind: &Kind,
    increment: u8,
    mysql: bool,
) -> Result<Datum, Refusal> {
    let number = match operator {
        "+" => a.plus(b)?,
        "-" => a.plus(b.negated())?,
        "*" => a.times(b)?,
        "/" => match a.quotient(b, increment)? {
            None => return Ok(by_zero()),
            // MySQL rounds each quotient to its digits, MariaDB goes on with all of them.
            Some(quotient) if mysql => quotient.rounded(kind.scale().unwrap_or(0))?,
            // What is too small for its digits keeps its sign where no digit is rounded away.
            Some(quotient)
                if quotient.is_zero()
                    && a.unscaled.is_negative() != b.unscaled.is_negative()
                    && !a.is_zero()
                    && kind.scale().is_some_and(|scale| quotient.scale <= scale) =>
            {
                return Err(Refusal::new("a negative zero"));
            }
            Some(quotient) => quotient,
        },
        _ => match a.remainder(b)? {
            None => return Ok(by_zero()),
            Some(rest) if rest.is_zero() && a.unscaled.is_negative() && !mysql => {
                return Err(Refusal::new("a negative zero"));
            }
            Some(rest) => rest,
        },
    };
    Ok(Datum::Decimal(number))
}

/// A number of which the sign that MySQL shows is known: the negative of the zero date is -0.
fn known_sign(number: Option<Number>, is_date: bool) -> Result<Option<Number>, Refusal> {
    match number {
        Some(Number::Whole(0)) if is_date => Err(Refusal::new("the negative of the zero date")),
        number => Ok(number),
    }
}

/// `-x`.
pub(super) fn negative(operand: Typed, mysql: bool) -> Result<Typed, Refusal> {
    let from = operand.kind.clone();
    let kind = match &from {
        Kind::Double { .. } => from.clone(),
        Kind::DateTime { fsp } if *fsp > 0 && mysql => {
            return Err(Refusal::new("the negative of a fraction of a second"));
        }
        kind => match exact_scale(kind, mysql) {
            // To MariaDB that of a date or time is a DECIMAL.
            Some(scale) if kind.is_temporal() && !mysql => Kind::Decimal { scale },
            Some(scale) if scale > 0 || matches!(kind, Kind::Decimal { .. }) => Kind::Decimal { scale },
            Some(_) => SIGNED,
            None => Kind::Double { decimals: None },
        },
    };
    let is_double = matches!(kind, Kind::Double { .. });
    let is_decimal = matches!(kind, Kind::Decimal { .. });
    let is_date = mysql && from.is_temporal();
    let compute = move |values: &[Datum]| match known_sign(values[0].number(&from)?, is_date)? {
        None => Ok(Datum::Null),
        Some(number) if is_double => Ok(Datum::Double(-number.to_f64())),
        Some(Number::Whole(number)) if is_decimal => Ok(Datum::Decimal(Decimal::whole(number).negated())),
        Some(Number::Whole(number)) => whole(number.checked_neg().ok_or_else(Refusal::digits)?, false),
        Some(Number::Exact(number)) => Ok(Datum::Decimal(number.negated())),
        Some(Number::Double(number)) => Ok(Datum::Double(-number)),
    };
    Ok(Typed::call(kind, vec![operand], compute))
}

/// The 64 bits of a value; `None` is NULL.
pub(super) fn bits_of(value: &Datum, kind: &Kind, mysql: bool) -> Result<Option<u64>, Refusal> {
    let rounded = |number: Decimal| {
        let number = number.saturated();
        number.clamp(i64::MIN.into(), u64::MAX.into()) as u64
    };
    if mysql && matches!(value, Datum::DateTime(_) | Datum::Time(_)) && kind.fsp() > 0 {
        return Err(Refusal::new("a fraction of a second as bits"));
    }
    // MySQL reads the integer that a text begins with, MariaDB rounds the number.
    if let (Datum::Text(_) | Datum::Bytes(_), Kind::Text(_) | Kind::Bytes) = (value, kind) {
        return match (value, mysql) {
            (value, true) => Ok(value.whole(kind)?.map(|number| number as u64)),
            (Datum::Bytes(bytes), _) => {
                let text = super::datum::byte_letters(bytes);
                Ok(Some(rounded(Decimal::prefix(&text).ok_or_else(Refusal::digits)?)))
            }
            (value, _) => {
                let text = value.text(kind)?.unwrap_or_default();
                Ok(Some(rounded(Decimal::prefix(&text).ok_or_else(Refusal::digits)?)))
            }
        };
    }
    Ok(match value.number(kind)? {
        None => None,
        Some(Number::Whole(number)) => Some(number as u64),
        Some(Number::Exact(number)) if mysql => {
            Some(number.saturated().clamp(i64::MIN.into(), i64::MAX.into()) as u64)
        }
        Some(Number::Exact(number)) => Some(rounded(number)),
        // The unsigned integers of documents have all their bits.
        Some(Number::Double(number)) if *kind == Kind::Json && number.abs() >= 9_007_199_254_740_992.0 => {
            return Err(Refusal::new("the bits of a large number of a document"));
        }
        Some(Number::Double(number)) if mysql => Some(signed(number.round_ties_even()) as u64),
        Some(Number::Double(number)) if number < 0.0 => Some(number.round() as i64 as u64),
        Some(Number::Double(number)) => Some(number.round() as u64),
    })
}

/// Refuses a double out of the range of 64 bits, of which MySQL says one thing if it is constant and another if not.
pub(super) fn check_range(value: &Datum, is_refused: bool) -> Result<(), Refusal> {
    let is_outside = match value {
        Datum::Double(number) => number.abs() >= 9_223_372_036_854_775_808.0,
        Datum::Float(number) => number.abs() >= 9_223_372_036_854_775_808.0,
        _ => false,
    };
    match is_outside && is_refused {
        true => Err(Refusal::new("a DOUBLE out of the range of BIGINT as bits")),
        false => Ok(()),
    }
}

/// `|`, `&`, `^`, `<<`, `>>`, `~`: of 64 bits.
pub(super) fn bits(operator: &str, operands: Vec<Typed>, mysql: bool) -> Result<Typed, Refusal> {
    let kinds: Vec<Kind> = operands.iter().map(|operand| operand.kind.clone()).collect();
    // MySQL goes byte by byte where no operand is a number.
    if mysql && matches!(operator, "<<" | ">>") && kinds.first() == Some(&Kind::Bytes) {
        return Ok(shifted_bytes(operator == "<<", operands));
    }
    if mysql && kinds.iter().all(|kind| matches!(kind, Kind::Bytes | Kind::Null)) {
        return Err(Refusal::new("the bits of bytes"));
    }
    let is_constant: Vec<bool> = operands.iter().map(Typed::is_constant).collect();
    let (operator, shifts) = (operator.to_string(), matches!(operator, "<<" | ">>"));
    let compute = move |values: &[Datum]| {
        let mut bits = Vec::with_capacity(2);
        for (at, (value, kind)) in values.iter().zip(&kinds).enumerate() {
            check_range(value, mysql && !is_constant[at])?;
            // How far is shifted is an integer of another rule, of which MariaDB takes 32 bits.
            let number = match at == 1 && shifts {
                true => value.whole(kind)?.map(|count| count as u64),
                false => bits_of(value, kind, mysql)?,
            };
            let Some(number) = number else { return Ok(Datum::Null) };
            bits.push(if at == 1 && shifts && !mysql { number & u64::from(u32::MAX) } else { number });
        }
        let shift = |of: fn(u64, u32) -> Option<u64>, a: u64, b: u64| match u32::try_from(b) {
            Ok(count) if count < 64 => of(a, count).unwrap_or(0),
            _ => 0,
        };
        Ok(Datum::UInt(match (operator.as_str(), bits.as_slice()) {
            ("|", [a, b]) => a | b,
            ("&", [a, b]) => a & b,
            ("^", [a, b]) => a ^ b,
            ("<<", [a, b]) => shift(u64::checked_shl, *a, *b),
            (">>", [a, b]) => shift(u64::checked_shr, *a, *b),
            (_, [a]) => !a,
            _ => return Err(Refusal::new("this operator")),
        }))
    };
    Ok(Typed::call(UNSIGNED, operands, compute))
}

/// `<<` and `>>` of bytes in MySQL: as many bytes, of which bits move out.
fn shifted_bytes(is_left: bool, operands: Vec<Typed>) -> Typed {
    let counts = operands.get(1).map_or(Kind::Null, |of| of.kind.clone());
    Typed::call(Kind::Bytes, operands, move |values| {
        let [Datum::Bytes(bytes), count] = values else { return Ok(Datum::Null) };
        let Some(count) = count.whole(&counts)? else { return Ok(Datum::Null) };
        // A negative count is a large one without a sign.
        let count = usize::try_from(count).unwrap_or(usize::MAX);
        let (whole, bits) = (count / 8, count % 8);
        let byte = |at: Option<usize>| at.and_then(|at| bytes.get(at)).map_or(0, |byte| u16::from(*byte));
        let shifted = (0..bytes.len()).map(|at| match is_left {
            true => {
                let from = at.checked_add(whole);
                let next = from.and_then(|from| from.checked_add(1));
                ((byte(from) << 8 | byte(next)) << bits >> 8) as u8
            }
            false => {
                let from = at.checked_sub(whole);
                let before = from.and_then(|from| from.checked_sub(1));
                ((byte(before) << 8 | byte(from)) >> bits) as u8
            }
        });
        Ok(Datum::Bytes(shifted.collect()))
    })
}

/// `NOT`.
pub(super) fn not(operand: Typed) -> Typed {
    let kind = operand.kind.clone();
    Typed::call(SIGNED, vec![operand], move |values| {
        Ok(values[0].condition(&kind)?.map_or(Datum::Null, |truth| Datum::truth(!truth)))
    })
}

/// `AND`, `OR` and `XOR`.
pub(super) fn logic(operator: &str, left: Typed, right: Typed) -> Typed {
    match operator {
        "and" => Typed { node: Node::Logical(false, vec![left, right]), kind: SIGNED },
        "or" => Typed { node: Node::Logical(true, vec![left, right]), kind: SIGNED },
        _ => {
            let kinds = (left.kind.clone(), right.kind.clone());
            Typed::call(SIGNED, vec![left, right], move |values| {
                Ok(match (values[0].condition(&kinds.0)?, values[1].condition(&kinds.1)?) {
                    (Some(a), Some(b)) => Datum::truth(a != b),
                    _ => Datum::Null,
                })
            })
        }
    }
}

/// `IS NULL`, `IS TRUE`, `IS FALSE`, `IS UNKNOWN`.
pub(super) fn is(what: &str, operand: Typed) -> Result<Typed, Refusal> {
    let kind = operand.kind.clone();
    let expected = match what {
        "null" | "unknown" => None,
        "true" => Some(true),
        "false" => Some(false),
        other => return Err(Refusal::new(format!("IS {other}"))),
    };
    Ok(Typed::call(SIGNED, vec![operand], move |values| {
        Ok(Datum::truth(match expected {
            None => values[0].is_null(),
            expected => values[0].condition(&kind)? == expected,
        }))
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_out_of_range_are_refused() {
        assert!(wholes("+", i64::MAX.into(), 1, false).is_err());
        assert!(wholes("-", 1, 2, true).is_err());
        assert_eq!(whole_quotient(Decimal::whole(-7), Decimal::whole(2), false), Ok(Datum::Int(-3)));
        assert_eq!(wholes("%", -7, 2, false), Ok(Datum::Int(-1)));
        assert_eq!(wholes("%", 7, 0, false), Ok(Datum::Null));
    }
}
