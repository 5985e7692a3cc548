//! CAST and CONVERT.

use datafusion::arrow::datatypes::i256;

use super::collating::{Collating, IMPLICIT};
use super::conversions::{bytes_of, exact, shared, textual, to_fsp};
use super::datum::{Datum, Decimal, Number, integer_prefix, signed};
use super::decimal::{MAX_DIGITS, MAX_SCALE, MAX_SCALE_MARIADB};
use super::node::{Node, Typed};
use super::syntax::CastType;
use super::{Kind, Refusal, Rules, calendar, json, notes};

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
        "signed" | "unsigned" => Ok(to_integer(operand, wanted.name == "unsigned", mysql)),
        "decimal" => to_decimal(operand, &wanted.numbers, mysql),
        "char" | "nchar" => to_text(operand, wanted, rules),
        "binary" => {
            textual(&operand, mysql)?;
            let length = wanted.numbers.first().map(|length| *length as usize);
            if length.is_some_and(|length| length > 1 << 24) {
                return Err(Refusal::new("a value that is too long"));
            }
            Ok(Typed::call(Kind::Bytes, vec![operand], move |values| {
                // MariaDB cuts by the letters of a text, and fills up by bytes.
                let (value, may_be_longer) = match (&values[0], length) {
                    (Datum::Text(text), Some(length)) if !mysql => {
                        (&Datum::Text(text.chars().take(length).collect()), true)
                    }
                    (value, _) => (value, false),
                };
                let Some(mut bytes) = bytes_of(value, &from)? else { return Ok(Datum::Null) };
                if let Some(length) = length.filter(|length| bytes.len() < *length || !may_be_longer) {
                    bytes.resize(length, 0);
                }
                Ok(Datum::Bytes(bytes))
            }))
        }
        "double" | "real" => Ok(Typed::call(Kind::Double { decimals: None }, vec![operand], move |values| {
            Ok(values[0].number(&from)?.map_or(Datum::Null, |number| Datum::Double(number.to_f64())))
        })),
        "float" if wanted.numbers.is_empty() => {
            let compute = shared(move |values| {
                let Some(number) = values[0].number(&from)? else { return Ok(Datum::Null) };
                let number = number.to_f64() as f32;
                match number.is_finite() {
                    true => Ok(Datum::Float(number)),
                    false => Err(Refusal::new("a FLOAT out of range")),
                }
            });
            Ok(Typed { node: Node::Stored(compute, Box::new(operand)), kind: Kind::Float })
        }
        "year" if mysql => Ok(to_year(operand)),
        "json" if mysql => json::cast(operand),
        "date" | "datetime" | "time" => super::dates::cast(operand, &wanted.name, fsp()?, rules),
        other => Err(Refusal::new(format!("CAST of {from} to {other}"))),
    }
}

fn to_decimal(operand: Typed, numbers: &[u32], mysql: bool) -> Result<Typed, Refusal> {
    let (precision, scale) = match numbers {
        [] => (10, 0),
        [precision] => (*precision, 0),
        [precision, scale] => (*precision, *scale),
        _ => return Err(Refusal::new("digits of a DECIMAL")),
    };
    let precision = if precision == 0 { 10 } else { precision };
    let most = u32::from(if mysql { MAX_SCALE } else { MAX_SCALE_MARIADB });
    if precision > u32::from(MAX_DIGITS) || scale > most.min(precision) {
        return Err(Refusal::digits());
    }
    let (precision, scale) = (precision as u8, scale as u8);
    let from = operand.kind.clone();
    Ok(Typed::call(Kind::Decimal { scale }, vec![operand], move |values| {
        if let (Datum::Text(text), Kind::Text(_)) = (&values[0], &from) {
            notes::decimal(text);
        }
        let Some(number) = exact(&values[0], &from)? else { return Ok(Datum::Null) };
        match number.rounded(scale) {
            Ok(number) => Ok(Datum::Decimal(number.clamped(precision)?)),
            // A number that has too many digits with those that are asked for is out of range.
            Err(_) => {
                let unscaled = if number.signum() < 0 { i256::MIN } else { i256::MAX };
                Ok(Datum::Decimal(Decimal { unscaled, scale }.clamped(precision)?))
            }
        }
    }))
}

fn to_integer(operand: Typed, unsigned: bool, mysql: bool) -> Typed {
    let from = operand.kind.clone();
    let compute = move |values: &[Datum]| {
        let wrapped = |number: i128| match unsigned {
            true => Datum::UInt(number as u64),
            false => Datum::Int(number as i64),
        };
        let value = &values[0];
        Ok(match (value, &from) {
            (Datum::Null, _) => Datum::Null,
            (Datum::Text(text), Kind::Json) if mysql => wrapped(json::integer(text)?),
            (Datum::Text(text), Kind::Text(_) | Kind::Json) => {
                notes::integer(text);
                wrapped(integer_prefix(text))
            }
            (Datum::Bytes(_), Kind::Bytes) => value.whole(&from)?.map_or(Datum::Null, wrapped),
            // MySQL rounds a fraction of a second, MariaDB cuts it.
            (Datum::DateTime(micros), _) => {
                let micros = to_fsp(*micros, 0, mysql);
                if calendar::civil(micros.div_euclid(calendar::DAY)).0 > 9999 {
                    return Err(Refusal::new("a date after the year 9999"));
                }
                wrapped(calendar::date_time_number(micros).into())
            }
            (Datum::Time(micros), _) => {
                let whole = to_fsp(micros.abs(), 0, mysql) * micros.signum();
                // To MariaDB a negative time is out of the range of UNSIGNED.
                let whole = if unsigned && !mysql { whole.max(0) } else { whole };
                wrapped(calendar::time_number(whole).into())
            }
            _ => match value.number(&from)? {
                None => Datum::Null,
                Some(Number::Whole(number)) => wrapped(number),
                Some(Number::Exact(number)) => wrapped(within(number.saturated(), unsigned, mysql)),
                Some(Number::Double(number)) if mysql || !unsigned => {
                    wrapped(signed(number.round_ties_even()))
                }
                Some(Number::Double(number)) => wrapped((number.round_ties_even() as u64).into()),
            },
        })
    };
    Typed::call(Kind::Int { unsigned }, vec![operand], compute)
}

/// The nearest integer of 64 bits; MySQL lets a negative one pass as unsigned.
fn within(number: i128, unsigned: bool, mysql: bool) -> i128 {
    match (unsigned, mysql) {
        (false, _) => number.clamp(i64::MIN.into(), i64::MAX.into()),
        (true, true) => number.clamp(i64::MIN.into(), u64::MAX.into()),
        (true, false) => number.clamp(0, u64::MAX.into()),
    }
}

fn to_text(operand: Typed, wanted: &CastType, rules: &Rules) -> Result<Typed, Refusal> {
    textual(&operand, rules.mysql)?;
    let from = operand.kind.clone();
    let length = match wanted.numbers.as_slice() {
        [] => usize::MAX,
        [length] => *length as usize,
        _ => return Err(Refusal::new("a length")),
    };
    let charset = wanted.charset.clone().filter(|charset| charset != "binary");
    if wanted.charset.as_deref() == Some("binary") {
        let mut wanted = wanted.clone();
        (wanted.name, wanted.charset) = ("binary".to_string(), None);
        return cast(operand, &wanted, rules);
    }
    let target = match (charset, rules.literals()) {
        (Some(charset), Some(_)) => Collating::of_charset(&charset, &rules.connection, IMPLICIT),
        (None, Some(connection)) => Collating { strength: IMPLICIT, ..connection },
        (charset, None) => Collating { collation: None, charset, strength: IMPLICIT, wide: false },
    };
    let kind = Kind::Text(target.clone());
    let binary = from.is_binary();
    let compute = move |values: &[Datum]| {
        let text = match binary {
            false => values[0].text(&from)?,
            true => match bytes_of(&values[0], &from)? {
                None => None,
                Some(bytes) => Some(target.text(&bytes)?),
            },
        };
        let Some(text) = text else { return Ok(Datum::Null) };
        let text = target.held(&text)?;
        let cut: String = text.chars().take(length).collect();
        if cut.len() < text.len() {
            notes::cut(&text, length);
        }
        Ok(Datum::Text(cut))
    };
    Ok(Typed::call(kind, vec![operand], compute))
}

/// A YEAR of MySQL: two digits are of 1970 to 2069, what is no year is NULL.
fn to_year(operand: Typed) -> Typed {
    let from = operand.kind.clone();
    Typed::call(Kind::Year, vec![operand], move |values| {
        let number = match &values[0] {
            Datum::Null => return Ok(Datum::Null),
            Datum::Date(days) => calendar::civil(*days).0.into(),
            Datum::DateTime(micros) => calendar::civil(micros.div_euclid(calendar::DAY)).0.into(),
            Datum::Time(_) => return Err(Refusal::new("a time as a year")),
            Datum::Text(text) if !text.bytes().all(|byte| byte.is_ascii_digit()) || text.is_empty() => {
                return Ok(Datum::Null);
            }
            Datum::Text(text) if text.trim_start_matches('0').is_empty() && text.len() < 4 => 2000,
            value => value.whole(&from)?.unwrap_or(0),
        };
        Ok(match number {
            0 => return Err(Refusal::new("the year 0")),
            1901..=2155 => Datum::UInt(number as u64),
            1..=69 => Datum::UInt(number as u64 + 2000),
            70..=99 => Datum::UInt(number as u64 + 1900),
            _ => Datum::Null,
        })
    })
}
