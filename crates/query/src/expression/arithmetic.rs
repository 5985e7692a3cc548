//! `+ - * / DIV %`, signs, bits and logic.

use super::datum::{Datum, Decimal, MAX_SCALE, Number, power};
use super::node::{Node, Typed};
use super::{Kind, Refusal, Rules};

/// Digits that `/` adds to those of the dividend (`div_precision_increment`).
const DIVISION_DIGITS: u8 = 4;
/// Decimal digits of a word of the servers' decimals: quotients have whole words of them.
const WORD_DIGITS: u8 = 9;

const SIGNED: Kind = Kind::Int { unsigned: false };
const UNSIGNED: Kind = Kind::Int { unsigned: true };

fn is_unsigned(kind: &Kind) -> bool {
    matches!(kind, Kind::Int { unsigned: true } | Kind::Bit | Kind::Year)
}

/// How an operation is computed.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Way {
    Whole { unsigned: bool },
    Exact,
    Double,
}

fn way(left: &Kind, right: &Kind) -> Result<Way, Refusal> {
    for kind in [left, right] {
        if matches!(kind, Kind::Json | Kind::Choice(_) | Kind::Bytes) {
            return Err(Refusal::new(format!("{kind:?} as a number")));
        }
    }
    Ok(match (left.scale(), right.scale()) {
        (Some(0), Some(0))
            if !matches!(left, Kind::Decimal { .. }) && !matches!(right, Kind::Decimal { .. }) =>
        {
            Way::Whole { unsigned: is_unsigned(left) || is_unsigned(right) }
        }
        (Some(_), Some(_)) => Way::Exact,
        _ => Way::Double,
    })
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
    let mysql = rules.mysql;
    number_of_branches(&left)?;
    number_of_branches(&right)?;
    let kinds = (left.kind.clone(), right.kind.clone());
    let way = way(&kinds.0, &kinds.1)?;
    let way = if operator == "/" && matches!(way, Way::Whole { .. }) { Way::Exact } else { way };
    let scales = (kinds.0.scale().unwrap_or(0), kinds.1.scale().unwrap_or(0));
    let scale = match operator {
        "*" => scales.0.saturating_add(scales.1),
        "/" => scales.0.saturating_add(DIVISION_DIGITS),
        _ => scales.0.max(scales.1),
    };
    if scale > MAX_SCALE {
        return Err(Refusal::digits());
    }
    let kind = match (operator, way) {
        ("div", Way::Whole { unsigned }) => Kind::Int { unsigned },
        ("div", _) => Kind::Int { unsigned: is_unsigned(&kinds.0) || is_unsigned(&kinds.1) },
        // The sign of a remainder is that of the dividend.
        ("%", Way::Whole { .. }) => Kind::Int { unsigned: is_unsigned(&kinds.0) },
        (_, Way::Whole { unsigned }) => Kind::Int { unsigned },
        (_, Way::Exact) => Kind::Decimal { scale },
        (_, Way::Double) => Kind::Double { fixed: !is_free(&kinds.0) && !is_free(&kinds.1) },
    };
    let operator = operator.to_string();
    let result = kind.clone();
    let compute = move |values: &[Datum]| {
        let (Some(a), Some(b)) = (values[0].number(&kinds.0)?, values[1].number(&kinds.1)?) else {
            return Ok(Datum::Null);
        };
        match (way, a.to_decimal(), b.to_decimal()) {
            (Way::Double, ..) => doubles(&operator, a.to_f64(), b.to_f64()),
            (Way::Exact, Some(a), Some(b)) if operator == "div" && b.unscaled != 0 => {
                let (a, b) = a.aligned(b)?;
                whole(a.unscaled.checked_div(b.unscaled).ok_or_else(Refusal::digits)?, result == UNSIGNED)
            }
            // MySQL rounds a quotient to the digits that it shows, MariaDB goes on with those of whole words.
            (Way::Exact, Some(a), Some(b)) if operator == "/" && b.unscaled != 0 => {
                // A zero without digits marks that its text is not known; so does every zero below.
                let quotient = quotient(a, b)?;
                let quotient = if mysql { quotient.rounded(scale)? } else { quotient };
                Ok(Datum::Decimal(if quotient.unscaled == 0 { Decimal::whole(0) } else { quotient }))
            }
            (Way::Exact, Some(a), Some(b)) => match exact(&operator, a, b)? {
                Datum::Decimal(Decimal { unscaled: 0, .. }) => Ok(Datum::Decimal(Decimal::whole(0))),
                value => Ok(value),
            },
            (Way::Whole { .. }, Some(a), Some(b)) => {
                let unsigned = result == UNSIGNED;
                wholes(&operator, a.unscaled, b.unscaled, unsigned)
            }
            _ => Err(Refusal::new("a DOUBLE as a DECIMAL")),
        }
    };
    Ok(Typed::call(kind, vec![left, right], compute))
}

/// Whether a number is a double whose text has as many digits as it takes.
fn is_free(kind: &Kind) -> bool {
    matches!(kind, Kind::Double { fixed: false } | Kind::Float | Kind::Text(_))
}

fn wholes(operator: &str, a: i128, b: i128, unsigned: bool) -> Result<Datum, Refusal> {
    let result = match operator {
        "+" => a.checked_add(b),
        "-" => a.checked_sub(b),
        "*" => a.checked_mul(b),
        _ if b == 0 => return Ok(Datum::Null),
        "div" => a.checked_div(b),
        _ => a.checked_rem(b),
    };
    whole(result.ok_or_else(Refusal::digits)?, unsigned)
}

fn doubles(operator: &str, a: f64, b: f64) -> Result<Datum, Refusal> {
    match operator {
        "+" => double(a + b),
        "-" => double(a - b),
        "*" => double(a * b),
        _ if b == 0.0 => Ok(Datum::Null),
        "/" => double(a / b),
        "%" => double(a % b),
        _ => Err(Refusal::new("DIV of doubles")),
    }
}

fn exact(operator: &str, a: Decimal, b: Decimal) -> Result<Datum, Refusal> {
    let number = match operator {
        "+" | "-" => {
            let (a, b) = a.aligned(b)?;
            let unscaled = match operator {
                "+" => a.unscaled.checked_add(b.unscaled),
                _ => a.unscaled.checked_sub(b.unscaled),
            };
            Decimal { unscaled: unscaled.ok_or_else(Refusal::digits)?, scale: a.scale }
        }
        "*" => {
            let unscaled = a.unscaled.checked_mul(b.unscaled).ok_or_else(Refusal::digits)?;
            let scale = a.scale.saturating_add(b.scale);
            if scale > MAX_SCALE {
                return Err(Refusal::digits());
            }
            Decimal { unscaled, scale }
        }
        _ if b.unscaled == 0 => return Ok(Datum::Null),
        _ => {
            let (a, b) = a.aligned(b)?;
            let unscaled = a.unscaled.checked_rem(b.unscaled).ok_or_else(Refusal::digits)?;
            Decimal { unscaled, scale: a.scale }
        }
    };
    Ok(Datum::Decimal(number))
}

/// A quotient of whole words of digits, cut.
fn quotient(a: Decimal, b: Decimal) -> Result<Decimal, Refusal> {
    // Quotients of quotients have ever more digits.
    if a.scale.max(b.scale) > 2 * MAX_SCALE {
        return Err(Refusal::digits());
    }
    let words = |digits: u8| digits.div_ceil(WORD_DIGITS) * WORD_DIGITS;
    let (left, right) = (words(a.scale), words(b.scale));
    let added = DIVISION_DIGITS.saturating_sub(left - a.scale + right - b.scale);
    let scale = words(left + right + added);
    // a / 10^i over b / 10^j is (a * 10^(scale + j - i)) / b / 10^scale.
    let shift = i16::from(scale) + i16::from(b.scale) - i16::from(a.scale);
    let shift = u8::try_from(shift).map_err(|_| Refusal::digits())?;
    let dividend = a.unscaled.checked_mul(power(shift)?).ok_or_else(Refusal::digits)?;
    let unscaled = dividend.checked_div(b.unscaled).ok_or_else(Refusal::digits)?;
    Ok(Decimal { unscaled, scale })
}

/// `-x`.
pub(super) fn negative(operand: Typed) -> Result<Typed, Refusal> {
    let from = operand.kind.clone();
    let kind = match &from {
        Kind::Null | Kind::Int { .. } | Kind::Year | Kind::Bit | Kind::Date => SIGNED,
        Kind::Decimal { .. } => from.clone(),
        Kind::Double { .. } => from.clone(),
        Kind::Text(_) | Kind::Float => Kind::Double { fixed: false },
        _ => return Err(Refusal::new(format!("the negative of {from:?}"))),
    };
    let compute = move |values: &[Datum]| match values[0].number(&from)? {
        None => Ok(Datum::Null),
        Some(Number::Whole(number)) => whole(number.checked_neg().ok_or_else(Refusal::digits)?, false),
        Some(Number::Exact(number)) => {
            let unscaled = number.unscaled.checked_neg().ok_or_else(Refusal::digits)?;
            Ok(Datum::Decimal(Decimal { unscaled, ..number }))
        }
        Some(Number::Double(number)) => Ok(Datum::Double(-number)),
    };
    Ok(Typed::call(kind, vec![operand], compute))
}

/// `|`, `&`, `^`, `<<`, `>>`, `~`: of 64 bits.
pub(super) fn bits(operator: &str, operands: Vec<Typed>) -> Result<Typed, Refusal> {
    let kinds: Vec<Kind> = operands.iter().map(|operand| operand.kind.clone()).collect();
    if let Some(kind) = kinds.iter().find(|kind| kind.scale() != Some(0) || kind.is_temporal()) {
        return Err(Refusal::new(format!("the bits of {kind:?}")));
    }
    let operator = operator.to_string();
    let compute = move |values: &[Datum]| {
        let mut bits = Vec::with_capacity(2);
        for (value, kind) in values.iter().zip(&kinds) {
            let Some(number) = value.whole(kind)? else { return Ok(Datum::Null) };
            // A DECIMAL goes by 63 bits.
            let range = match kind {
                Kind::Decimal { .. } => 0..=i128::from(i64::MAX),
                _ => i128::from(i64::MIN)..=i128::from(u64::MAX),
            };
            if !range.contains(&number) {
                return Err(Refusal::new("bits of a number out of range"));
            }
            bits.push(number as u64);
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
    fn quotients_have_whole_words_of_digits() {
        let divided = |a: &str, b: &str| {
            quotient(Decimal::prefix(a).unwrap(), Decimal::prefix(b).unwrap()).unwrap().text()
        };
        assert_eq!(divided("1", "3"), "0.333333333");
        assert_eq!(divided("2.5", "-7"), "-0.357142857");
    }

    #[test]
    fn integers_out_of_range_are_refused() {
        assert!(wholes("+", i64::MAX.into(), 1, false).is_err());
        assert!(wholes("-", 1, 2, true).is_err());
        assert_eq!(wholes("div", -7, 2, false), Ok(Datum::Int(-3)));
        assert_eq!(wholes("%", -7, 2, false), Ok(Datum::Int(-1)));
        assert_eq!(wholes("%", 7, 0, false), Ok(Datum::Null));
    }
}
