//! Functions of numbers.

use super::arithmetic::{double, whole};
use super::datum::{Datum, Decimal, Number};
use super::node::Typed;
use super::{Kind, Refusal, Rules};

const SIGNED: Kind = Kind::Int { unsigned: false };

/// A function of numbers; `None` if there is none of that name.
pub(super) fn function(name: &str, operands: &[Typed], _rules: &Rules) -> Result<Option<Typed>, Refusal> {
    let operands = operands.to_vec();
    Ok(Some(match (name, operands.as_slice()) {
        ("abs", [of]) => abs(of.clone())?,
        ("round" | "truncate", [of, ..]) if operands.len() <= 2 => {
            let digits = match operands.get(1).map(Typed::literal) {
                None if name == "round" => 0,
                Some(Some(Datum::Int(digits))) => *digits,
                _ => return Err(Refusal::new("rounding to digits that vary")),
            };
            round(name == "truncate", of.clone(), digits)?
        }
        ("floor", [of]) => to_whole(of.clone(), |number| number.floor(), false)?,
        ("ceil" | "ceiling", [of]) => to_whole(of.clone(), |number| number.ceil(), true)?,
        ("sign", [of]) => {
            let kind = numeric(of)?;
            Typed::call(SIGNED, operands, move |values| {
                Ok(match values[0].number(&kind)? {
                    None => Datum::Null,
                    Some(Number::Whole(number)) => Datum::Int(number.signum() as i64),
                    Some(Number::Exact(number)) => Datum::Int(number.unscaled.signum() as i64),
                    Some(Number::Double(number)) => {
                        Datum::Int(i64::from(number > 0.0) - i64::from(number < 0.0))
                    }
                })
            })
        }
        ("sqrt", [of]) => {
            let kind = numeric(of)?;
            Typed::call(Kind::Double { fixed: false }, operands, move |values| {
                match values[0].number(&kind)? {
                    Some(number) if number.to_f64() >= 0.0 => double(number.to_f64().sqrt()),
                    _ => Ok(Datum::Null),
                }
            })
        }
        ("pow" | "power", [base, exponent]) => {
            let kinds = (numeric(base)?, numeric(exponent)?);
            Typed::call(Kind::Double { fixed: false }, operands, move |values| {
                let (Some(base), Some(exponent)) = (values[0].number(&kinds.0)?, values[1].number(&kinds.1)?)
                else {
                    return Ok(Datum::Null);
                };
                double(base.to_f64().powf(exponent.to_f64()))
            })
        }
        ("bit_count", [of]) => {
            let kind = of.kind.clone();
            if kind.scale() != Some(0) || kind.is_temporal() || matches!(kind, Kind::Decimal { .. }) {
                return Err(Refusal::new(format!("the bits of {kind:?}")));
            }
            Typed::call(SIGNED, operands, move |values| {
                Ok(values[0]
                    .whole(&kind)?
                    .map_or(Datum::Null, |number| Datum::Int((number as u64).count_ones().into())))
            })
        }
        _ => return Ok(None),
    }))
}

/// The type of an operand that is a number, or a text, which counts as a double.
fn numeric(of: &Typed) -> Result<Kind, Refusal> {
    match &of.kind {
        kind if kind.is_number() || matches!(kind, Kind::Text(_) | Kind::Null) => Ok(kind.clone()),
        kind => Err(Refusal::new(format!("{kind:?} as a number"))),
    }
}

fn abs(of: Typed) -> Result<Typed, Refusal> {
    let from = numeric(&of)?;
    let kind = match &from {
        Kind::Decimal { .. } | Kind::Double { .. } => from.clone(),
        Kind::Float | Kind::Text(_) => Kind::Double { fixed: false },
        Kind::Int { .. } => from.clone(),
        _ => Kind::Int { unsigned: true },
    };
    let unsigned = kind == Kind::Int { unsigned: true };
    let compute = move |values: &[Datum]| match values[0].number(&from)? {
        None => Ok(Datum::Null),
        Some(Number::Whole(number)) => whole(number.abs(), unsigned),
        Some(Number::Exact(number)) => Ok(Datum::Decimal(Decimal {
            unscaled: number.unscaled.checked_abs().ok_or_else(Refusal::digits)?,
            ..number
        })),
        Some(Number::Double(number)) => Ok(Datum::Double(number.abs())),
    };
    Ok(Typed::call(kind, vec![of], compute))
}

/// `ROUND` and `TRUNCATE` to a fixed number of digits.
fn round(cuts: bool, of: Typed, digits: i64) -> Result<Typed, Refusal> {
    let from = numeric(&of)?;
    if !(0..=30).contains(&digits) {
        return Err(Refusal::new("rounding before the point"));
    }
    let digits = digits as u8;
    let kind = match &from {
        Kind::Int { .. } => return Ok(of),
        Kind::Decimal { scale } if digits > *scale => {
            return Err(Refusal::new("rounding to more digits than there are"));
        }
        Kind::Decimal { .. } => Kind::Decimal { scale: digits },
        Kind::Double { .. } | Kind::Float | Kind::Text(_) => Kind::Double { fixed: true },
        _ => return Err(Refusal::new(format!("the rounding of {from:?}"))),
    };
    let result = kind.clone();
    let compute = move |values: &[Datum]| match values[0].number(&from)? {
        None => Ok(Datum::Null),
        Some(Number::Whole(number)) => whole(number, false),
        Some(Number::Exact(number)) => {
            let scale = result.scale().unwrap_or(0);
            Ok(Datum::Decimal(if cuts { number.truncated(scale)? } else { number.rounded(scale)? }))
        }
        Some(Number::Double(number)) => {
            let factor = 10f64.powi(i32::from(digits));
            let scaled = number * factor;
            if scaled.is_nan() || scaled.abs() >= 4e15 {
                return Err(Refusal::new("the rounding of a large DOUBLE"));
            }
            let rounded = if cuts { scaled.trunc() } else { scaled.round_ties_even() };
            Ok(Datum::Double(rounded / factor))
        }
    };
    Ok(Typed::call(kind, vec![of], compute))
}

fn to_whole(of: Typed, round: fn(f64) -> f64, up: bool) -> Result<Typed, Refusal> {
    let from = numeric(&of)?;
    let kind = match &from {
        Kind::Int { .. } => return Ok(of),
        Kind::Decimal { .. } => Kind::Decimal { scale: 0 },
        Kind::Double { .. } | Kind::Float | Kind::Text(_) => Kind::Double { fixed: true },
        _ => return Err(Refusal::new(format!("the whole part of {from:?}"))),
    };
    let compute = move |values: &[Datum]| match values[0].number(&from)? {
        None => Ok(Datum::Null),
        Some(Number::Exact(number)) => {
            let cut = number.truncated(0)?;
            let is_less = cut.rounded(number.scale)?.unscaled > number.unscaled;
            let is_more = cut.rounded(number.scale)?.unscaled < number.unscaled;
            let step = i128::from(up && is_more) - i128::from(!up && is_less);
            Ok(Datum::Decimal(Decimal::whole(cut.unscaled + step)))
        }
        Some(number) => Ok(Datum::Double(round(number.to_f64()))),
    };
    Ok(Typed::call(kind, vec![of], compute))
}
