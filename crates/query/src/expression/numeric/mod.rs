//! Functions of numbers.

mod durations;
mod format;
mod rounding;

use super::arithmetic::{double, exact_scale, whole};
use super::datum::{Datum, Number};
use super::node::{Node, Typed};
use super::{Kind, Refusal, Rules, arithmetic, compare, notes};

const SIGNED: Kind = Kind::Int { unsigned: false };
/// Digits after the point that PI() shows.
const PI_DECIMALS: u8 = 6;

/// A function of numbers; `None` if there is none of that name.
pub(super) fn function(name: &str, operands: &[Typed], rules: &Rules) -> Result<Option<Typed>, Refusal> {
    let mysql = rules.mysql;
    if let Some(found) = transcendental(name, operands, mysql) {
        return Ok(Some(found));
    }
    if let Some(found) = rounding::function(name, operands, mysql)? {
        return Ok(Some(found));
    }
    let operands = operands.to_vec();
    Ok(Some(match (name, operands.as_slice()) {
        ("abs", [of]) if mysql && matches!(of.kind, Kind::DateTime { fsp: 1.. }) => {
            return Err(Refusal::new("the size of a fraction of a second"));
        }
        ("abs", [of]) => abs(of.clone(), mysql)?,
        ("sign", [of]) => {
            let kind = of.kind.clone();
            Typed::call(SIGNED, operands, move |values| {
                Ok(match values[0].number(&kind)? {
                    None => Datum::Null,
                    Some(Number::Whole(number)) => Datum::Int(number.signum() as i64),
                    Some(Number::Exact(number)) => Datum::Int(number.signum()),
                    Some(Number::Double(number)) => {
                        Datum::Int(i64::from(number > 0.0) - i64::from(number < 0.0))
                    }
                })
            })
        }
        ("pi", []) => {
            let kind = Kind::Double { decimals: Some(PI_DECIMALS) };
            Typed { node: Node::Literal(Datum::Double(std::f64::consts::PI)), kind }
        }
        ("bit_count", [of]) => {
            let kind = of.kind.clone();
            // MySQL counts those of the bytes themselves.
            let of_bytes = mysql && kind == Kind::Bytes;
            Typed::call(SIGNED, operands, move |values| {
                if let (true, Datum::Bytes(bytes)) = (of_bytes, &values[0]) {
                    return Ok(Datum::Int(bytes.iter().map(|byte| i64::from(byte.count_ones())).sum()));
                }
                Ok(arithmetic::bits_of(&values[0], &kind, mysql)?
                    .map_or(Datum::Null, |number| Datum::Int(number.count_ones().into())))
            })
        }
        ("format", [_, _] | [_, _, _]) => format::format(operands, mysql)?,
        ("format_pico_time", [of]) if mysql => durations::of(of.clone())?,
        ("interval", [_, _, ..]) => compare::interval(operands, rules)?,
        _ => return Ok(None),
    }))
}

/// Functions that take and give doubles: `None` is NULL, which they give outside of their domain.
fn transcendental(name: &str, operands: &[Typed], mysql: bool) -> Option<Typed> {
    let of_one: Option<fn(f64) -> Option<f64>> = match name {
        "sqrt" => Some(|x| (x >= 0.0).then(|| x.sqrt())),
        "exp" => Some(|x| Some(x.exp())),
        "ln" | "log" => Some(|x| (x > 0.0).then(|| x.ln())),
        "log2" if mysql => Some(|x| (x > 0.0).then(|| x.log2())),
        "log2" => Some(|x| (x > 0.0).then(|| x.ln() / std::f64::consts::LN_2)),
        "log10" => Some(|x| (x > 0.0).then(|| x.log10())),
        "sin" => Some(|x| Some(x.sin())),
        "cos" => Some(|x| Some(x.cos())),
        "tan" => Some(|x| Some(x.tan())),
        "cot" => Some(|x| Some(1.0 / x.tan())),
        "asin" => Some(|x| (-1.0..=1.0).contains(&x).then(|| x.asin())),
        "acos" => Some(|x| (-1.0..=1.0).contains(&x).then(|| x.acos())),
        "atan" | "atan2" => Some(|x| Some(x.atan())),
        "degrees" => Some(|x| Some(x * (180.0 / std::f64::consts::PI))),
        "radians" => Some(|x| Some(x * (std::f64::consts::PI / 180.0))),
        _ => None,
    };
    let of_two: Option<fn(f64, f64) -> Option<f64>> = match name {
        "pow" | "power" => Some(|x, y| Some(x.powf(y))),
        "atan" | "atan2" => Some(|x, y| Some(x.atan2(y))),
        "log" => Some(|base, x| (base > 0.0 && base != 1.0 && x > 0.0).then(|| x.ln() / base.ln())),
        _ => None,
    };
    let kinds: Vec<Kind> = operands.iter().map(|operand| operand.kind.clone()).collect();
    let kind = Kind::Double { decimals: None };
    let is_logarithm = name.starts_with("l");
    let result = move |number: Option<f64>| match number {
        None if is_logarithm => {
            notes::logarithm();
            Ok(Datum::Null)
        }
        number => number.map_or(Ok(Datum::Null), double),
    };
    match (kinds.len(), of_one, of_two) {
        (1, Some(of_one), _) => {
            Some(Typed::call(kind, operands.to_vec(), move |values| match values[0].number(&kinds[0])? {
                Some(x) => result(of_one(x.to_f64())),
                None => Ok(Datum::Null),
            }))
        }
        (2, _, Some(of_two)) => Some(Typed::call(kind, operands.to_vec(), move |values| {
            match (values[0].number(&kinds[0])?, values[1].number(&kinds[1])?) {
                (Some(x), Some(y)) => result(of_two(x.to_f64(), y.to_f64())),
                _ => Ok(Datum::Null),
            }
        })),
        _ => None,
    }
}

fn abs(of: Typed, mysql: bool) -> Result<Typed, Refusal> {
    let from = of.kind.clone();
    let kind = match &from {
        Kind::Decimal { .. } | Kind::Double { .. } | Kind::Int { .. } => from.clone(),
        kind => match exact_scale(kind, mysql) {
            None => Kind::Double { decimals: None },
            Some(0) => Kind::Int { unsigned: true },
            Some(scale) => Kind::Decimal { scale },
        },
    };
    let unsigned = kind == Kind::Int { unsigned: true };
    let compute = move |values: &[Datum]| match values[0].number(&from)? {
        None => Ok(Datum::Null),
        Some(Number::Whole(number)) => whole(number.abs(), unsigned),
        Some(Number::Exact(number)) => Ok(Datum::Decimal(number.abs())),
        Some(Number::Double(number)) => Ok(Datum::Double(number.abs())),
    };
    Ok(Typed::call(kind, vec![of], compute))
}
