//! Values from one type of expressions to another: the branches of an IF, and CAST.

use std::sync::Arc;

use super::calendar;
use super::datum::{Datum, Decimal, Number};
use super::kind::Collating;
use super::node::Typed;
use super::syntax::CastType;
use super::{Kind, Refusal, Rules};

/// `value` of type `from` as one of `to`, which is the common type of several (see [`Kind::common`]).
pub(super) fn converted(value: Datum, from: &Kind, to: &Kind) -> Result<Datum, Refusal> {
    if let (Datum::Decimal(number), Kind::Decimal { scale }) = (&value, to)
        && number.scale > *scale
    {
        return Err(Refusal::new("a quotient out of an IF or COALESCE"));
    }
    if value.is_null() || from == to {
        return Ok(value);
    }
    Ok(match to {
        Kind::Decimal { .. } => match value.number(from)? {
            Some(Number::Whole(number)) => Datum::Decimal(Decimal::whole(number)),
            Some(Number::Exact(number)) => Datum::Decimal(number),
            _ => return Err(Refusal::new("a DOUBLE as a DECIMAL")),
        },
        Kind::Double { .. } => {
            value.number(from)?.map_or(Datum::Null, |number| Datum::Double(number.to_f64()))
        }
        Kind::Text(_) => value.text(from)?.map_or(Datum::Null, Datum::Text),
        Kind::DateTime { .. } => match value {
            Datum::Date(days) => Datum::DateTime(days * calendar::DAY),
            other => other,
        },
        _ => value,
    })
}

/// CAST and CONVERT.
pub(super) fn cast(operand: Typed, wanted: &CastType, rules: &Rules) -> Result<Typed, Refusal> {
    let mysql = rules.mysql;
    let from = operand.kind.clone();
    let fsp = || match wanted.numbers.as_slice() {
        [] => Ok(0),
        [fsp @ 0..=6] => Ok(*fsp as u8),
        _ => Err(Refusal::new("digits of a time")),
    };
    match wanted.name.as_str() {
        "signed" | "unsigned" => to_integer(operand, wanted.name == "unsigned", mysql),
        "decimal" => {
            let (precision, scale) = match wanted.numbers.as_slice() {
                [] => (10, 0),
                [precision] => (*precision, 0),
                [precision, scale] => (*precision, *scale),
                _ => return Err(Refusal::new("digits of a DECIMAL")),
            };
            if precision > 38 || scale > 30 {
                return Err(Refusal::digits());
            }
            let (precision, scale) = (precision as u8, scale as u8);
            if from.scale().is_none() && !matches!(from, Kind::Text(_)) {
                return Err(Refusal::new(format!("{from:?} as a DECIMAL")));
            }
            let compute = move |values: &[Datum]| match exact(&values[0], &from)? {
                None => Ok(Datum::Null),
                Some(number) => Ok(Datum::Decimal(clamped(number.rounded(scale)?, precision)?)),
            };
            Ok(Typed::call(Kind::Decimal { scale }, vec![operand], compute))
        }
        "char" => to_text(operand, wanted),
        "binary" if wanted.numbers.is_empty() => {
            let collating = from.collating();
            let compute = move |values: &[Datum]| match values[0].text(&from)? {
                None => Ok(Datum::Null),
                Some(text) => Ok(Datum::Bytes(collating.bytes(&text)?)),
            };
            Ok(Typed::call(Kind::Bytes, vec![operand], compute))
        }
        "double" | "real" if !matches!(from, Kind::Float) => {
            let compute = move |values: &[Datum]| {
                Ok(values[0].number(&from)?.map_or(Datum::Null, |number| Datum::Double(number.to_f64())))
            };
            Ok(Typed::call(Kind::Double { fixed: true }, vec![operand], compute))
        }
        "date" | "datetime" | "time" => super::dates::cast(operand, &wanted.name, fsp()?, rules),
        other => Err(Refusal::new(format!("CAST of {from:?} to {other}"))),
    }
}

/// Microseconds with `fsp` digits, rounded or cut.
pub(super) fn to_fsp(micros: i64, fsp: u8, rounds: bool) -> i64 {
    let unit = 10i64.pow(u32::from(6 - fsp.min(6)));
    if rounds { calendar::rounded(micros, fsp) } else { micros.div_euclid(unit) * unit }
}

/// As an exact number; a text is what it begins with.
pub(super) fn exact(value: &Datum, kind: &Kind) -> Result<Option<Decimal>, Refusal> {
    if let (Datum::Text(text), Kind::Text(_)) = (value, kind) {
        return Decimal::prefix(text).ok_or_else(Refusal::digits).map(Some);
    }
    match value.number(kind)? {
        None => Ok(None),
        Some(number) => number.to_decimal().ok_or_else(|| Refusal::new("a DOUBLE as a DECIMAL")).map(Some),
    }
}

/// The nearest number of at most `precision` digits.
pub(super) fn clamped(number: Decimal, precision: u8) -> Result<Decimal, Refusal> {
    let most = super::datum::power(precision)? - 1;
    Ok(Decimal { unscaled: number.unscaled.clamp(-most, most), ..number })
}

fn to_integer(operand: Typed, unsigned: bool, mysql: bool) -> Result<Typed, Refusal> {
    let from = operand.kind.clone();
    if matches!(from, Kind::Json | Kind::Choice(_) | Kind::Bytes) {
        return Err(Refusal::new(format!("CAST of {from:?} to an integer")));
    }
    let compute = move |values: &[Datum]| {
        let number = match (&values[0], &from) {
            (Datum::Null, _) => return Ok(Datum::Null),
            (Datum::Text(text), _) => integer_prefix(text, mysql)?,
            // MySQL rounds a fraction of a second, MariaDB cuts it.
            (Datum::DateTime(micros), _) => {
                let micros = to_fsp(*micros, 0, mysql);
                if calendar::civil(micros.div_euclid(calendar::DAY)).0 > 9999 {
                    return Err(Refusal::new("a date after the year 9999"));
                }
                calendar::date_time_number(micros).into()
            }
            (Datum::Time(micros), _) => {
                calendar::time_number(to_fsp(micros.abs(), 0, mysql) * micros.signum()).into()
            }
            (value, _) => match value.number(&from)? {
                Some(Number::Whole(number)) => number,
                Some(Number::Exact(number)) => number.rounded(0)?.unscaled,
                Some(Number::Double(number)) => {
                    let rounded = number.round_ties_even();
                    if rounded.is_nan() || rounded.abs() >= 9e18 || (unsigned && rounded < 0.0) {
                        return Err(Refusal::new("CAST of a DOUBLE out of range"));
                    }
                    rounded as i128
                }
                None => return Ok(Datum::Null),
            },
        };
        let is_whole = matches!(from, Kind::Int { .. } | Kind::Bit | Kind::Year);
        let (signed_fits, unsigned_fits) = (i64::try_from(number), u64::try_from(number));
        match (unsigned, signed_fits, unsigned_fits) {
            (false, Ok(number), _) => Ok(Datum::Int(number)),
            (true, _, Ok(number)) => Ok(Datum::UInt(number)),
            // Integers keep their 64 bits.
            (true, Ok(number), _) if is_whole => Ok(Datum::UInt(number as u64)),
            (false, _, Ok(number)) if is_whole => Ok(Datum::Int(number as i64)),
            _ => Err(Refusal::new("CAST of a number out of range")),
        }
    };
    Ok(Typed::call(Kind::Int { unsigned }, vec![operand], compute))
}

/// The number of a date and time; MySQL rounds a fraction of a second, MariaDB cuts it, in some places.
pub(super) fn without_fraction(number: Decimal) -> Result<i128, Refusal> {
    let whole = number.truncated(0)?;
    match whole.rounded(number.scale)? == number {
        true => Ok(whole.unscaled),
        false => Err(Refusal::new("a fraction of a second as a whole number")),
    }
}

/// The integer that a text begins with.
fn integer_prefix(text: &str, _mysql: bool) -> Result<i128, Refusal> {
    let text = text.trim_start_matches([' ', '\t', '\n', '\r', '\u{b}', '\u{c}']);
    let sign = usize::from(text.starts_with(['-', '+']));
    let end = text[sign..].find(|digit: char| !digit.is_ascii_digit()).map_or(text.len(), |end| sign + end);
    if end == sign {
        return Ok(0);
    }
    text[..end].trim_start_matches('+').parse().map_err(|_| Refusal::digits())
}

fn to_text(operand: Typed, wanted: &CastType) -> Result<Typed, Refusal> {
    let from = operand.kind.clone();
    if matches!(from, Kind::Bytes | Kind::Bit) {
        return Err(Refusal::new(format!("CAST of {from:?} to CHAR")));
    }
    let length = match wanted.numbers.as_slice() {
        [] => usize::MAX,
        [length] => *length as usize,
        _ => return Err(Refusal::new("a length")),
    };
    let charset = wanted.charset.clone();
    let converts = charset.as_deref().is_some_and(|charset| !charset.starts_with("utf8mb4"));
    let compute = move |values: &[Datum]| match values[0].text(&from)? {
        None => Ok(Datum::Null),
        Some(text) if converts && !text.is_ascii() => Err(Refusal::new("another character set")),
        Some(text) => Ok(Datum::Text(text.chars().take(length).collect())),
    };
    let kind = Kind::Text(Collating { collation: None, charset, strength: 1 });
    Ok(Typed::call(kind, vec![operand], compute))
}

/// A function of operands, as the closures of a plan are.
pub(super) fn shared(
    compute: impl Fn(&[Datum]) -> Result<Datum, Refusal> + Send + Sync + 'static,
) -> super::node::Compute {
    Arc::new(compute)
}
