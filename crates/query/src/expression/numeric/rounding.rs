//! `ROUND`, `TRUNCATE`, `FLOOR`, `CEIL` and the types that they keep.

use super::super::arithmetic::{double, exact_scale, whole};
use super::super::datum::{Datum, Decimal, Number};
use super::super::decimal::{MAX_SCALE, MAX_SCALE_MARIADB};
use super::super::node::Typed;
use super::super::{Kind, Refusal};

pub(super) fn function(name: &str, operands: &[Typed], mysql: bool) -> Result<Option<Typed>, Refusal> {
    Ok(Some(match (name, operands) {
        ("round", [of]) => round(false, of.clone(), None, mysql)?,
        ("round" | "truncate", [of, digits]) => {
            round(name == "truncate", of.clone(), Some(digits.clone()), mysql)?
        }
        ("floor", [of]) => to_whole(of.clone(), false, mysql)?,
        ("ceil" | "ceiling", [of]) => to_whole(of.clone(), true, mysql)?,
        _ => return Ok(None),
    }))
}

/// The types of `ROUND`'s results by that of the operand, with fixed digits or digits that vary.
fn rounded_kind(from: &Kind, digits: Option<i64>, mysql: bool) -> Result<Kind, Refusal> {
    if from.is_temporal() && (!mysql || from.fsp() > 0) && *from != Kind::Date {
        return Err(Refusal::new(format!("the rounding of {from}")));
    }
    let most = if mysql { MAX_SCALE } else { MAX_SCALE_MARIADB };
    Ok(match (from, exact_scale(from, mysql)) {
        (Kind::Int { unsigned }, _) => Kind::Int { unsigned: *unsigned },
        (Kind::Decimal { scale }, _) => Kind::Decimal {
            scale: match digits {
                None => *scale,
                // MySQL adds no digits.
                Some(digits) => {
                    let most = if mysql { *scale } else { most };
                    u8::try_from(digits.clamp(0, most.into())).unwrap_or(0)
                }
            },
        },
        (_, Some(_)) => Kind::Int { unsigned: matches!(from, Kind::Year | Kind::Bit { .. } | Kind::Hex) },
        (_, None) => {
            let decimals = digits.and_then(|digits| u8::try_from(digits.max(0)).ok());
            Kind::Double { decimals: decimals.filter(|decimals| !mysql && *decimals <= MAX_SCALE) }
        }
    })
}

/// `ROUND` and `TRUNCATE`.
fn round(cuts: bool, of: Typed, digits: Option<Typed>, mysql: bool) -> Result<Typed, Refusal> {
    let from = of.kind.clone();
    let fixed = match &digits {
        None => Some(0),
        Some(digits) => match digits.literal() {
            Some(literal) => literal.whole(&digits.kind)?.map(|digits| digits as i64),
            None => None,
        },
    };
    if fixed.is_none() && digits.as_ref().is_some_and(|digits| digits.literal().is_some()) {
        let kind = rounded_kind(&from, None, mysql)?;
        return Ok(Typed::call(kind, vec![of], |_| Ok(Datum::Null)));
    }
    let kind = rounded_kind(&from, fixed, mysql)?;
    let result = kind.clone();
    let digits_kind = digits.as_ref().map(|digits| digits.kind.clone());
    let mut operands = vec![of];
    operands.extend(digits.filter(|_| fixed.is_none()));
    let compute = move |values: &[Datum]| {
        let digits = match (values.get(1), &digits_kind) {
            (Some(digits), Some(kind)) => match digits.whole(kind)? {
                Some(digits) => digits.clamp(-100, 100) as i64,
                None => return Ok(Datum::Null),
            },
            _ => fixed.unwrap_or(0),
        };
        let (unsigned, places) =
            (result == Kind::Int { unsigned: true }, digits.unsigned_abs().min(100) as u8);
        match values[0].number(&from)? {
            None => Ok(Datum::Null),
            Some(Number::Whole(number)) if digits >= 0 => whole(number, unsigned),
            Some(Number::Whole(number)) => {
                let rounded = Decimal::whole(number).before_point(places, cuts)?;
                whole(rounded.saturated(), unsigned)
            }
            Some(Number::Exact(number)) => exact(number, digits, cuts, &result),
            Some(Number::Double(number)) => double(rounded(number, digits, cuts)),
        }
    };
    Ok(Typed::call(kind, operands, compute))
}

fn exact(number: Decimal, digits: i64, cuts: bool, result: &Kind) -> Result<Datum, Refusal> {
    let scale = result.scale().unwrap_or(0);
    let places = digits.unsigned_abs().min(100) as u8;
    if digits < 0 {
        return Ok(Datum::Decimal(number.before_point(places, cuts)?.rounded(scale)?));
    }
    let kept = places.min(scale);
    let number = if cuts { number.truncated(kept)? } else { number.rounded(kept)? };
    Ok(Datum::Decimal(number.rounded(scale)?))
}

/// A double rounded to the nearest even, or cut, as the servers compute it: scaled by a power of ten.
pub(super) fn rounded(number: f64, digits: i64, cuts: bool) -> f64 {
    let power = 10f64.powi(i32::try_from(digits.unsigned_abs()).unwrap_or(i32::MAX));
    let round = |number: f64| if cuts { number.trunc() } else { number.round_ties_even() };
    let scaled = if digits < 0 { number / power } else { number * power };
    if digits < 0 && power.is_infinite() {
        return 0.0;
    }
    if digits >= 0 && !scaled.is_finite() {
        return number;
    }
    if digits < 0 { round(scaled) * power } else { round(scaled) / power }
}

/// `FLOOR` and `CEIL`.
fn to_whole(of: Typed, up: bool, mysql: bool) -> Result<Typed, Refusal> {
    let from = of.kind.clone();
    if from.is_temporal() && from != Kind::Date {
        return Err(Refusal::new(format!("the whole part of {from}")));
    }
    let kind = match (&from, exact_scale(&from, mysql)) {
        (Kind::Int { unsigned }, _) => Kind::Int { unsigned: *unsigned },
        (Kind::Decimal { .. }, _) => Kind::Decimal { scale: 0 },
        (_, Some(_)) => Kind::Int { unsigned: matches!(from, Kind::Year | Kind::Bit { .. } | Kind::Hex) },
        (_, None) => Kind::Double { decimals: (!mysql).then_some(0) },
    };
    let unsigned = kind == Kind::Int { unsigned: true };
    let compute = move |values: &[Datum]| match values[0].number(&from)? {
        None => Ok(Datum::Null),
        Some(Number::Whole(number)) => whole(number, unsigned),
        Some(Number::Exact(number)) => number.to_whole(up).map(Datum::Decimal),
        Some(Number::Double(number)) => Ok(Datum::Double(if up { number.ceil() } else { number.floor() })),
    };
    Ok(Typed::call(kind, vec![of], compute))
}

#[cfg(test)]
mod tests {
    use super::rounded;

    #[test]
    fn doubles_round_to_even() {
        assert_eq!(rounded(2.5, 0, false), 2.0);
        assert_eq!(rounded(0.15, 1, false), 0.2);
        assert_eq!(rounded(-0.9, 0, true), 0.0);
        assert_eq!(rounded(1234.5, -2, false), 1200.0);
        assert_eq!(rounded(5e20, 0, false), 5e20);
    }
}
