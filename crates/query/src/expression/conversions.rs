//! Values from one type of expressions to another: the branches of an IF, and texts and bytes for functions.

use std::sync::Arc;

use super::calendar;
use super::datum::{Datum, Decimal, Number, byte_letters};
use super::node::{Node, Typed};
use super::{Kind, Refusal};

/// `value` of type `from` as one of `to`, which is the common type of several (see [`Kind::common`]).
pub(super) fn converted(value: Datum, from: &Kind, to: &Kind) -> Result<Datum, Refusal> {
    if value.is_null() || from == to {
        return Ok(value);
    }
    Ok(match to {
        Kind::Decimal { scale } => match value.number(from)? {
            // The digits that a quotient has beyond its type's stay.
            Some(Number::Exact(number)) if number.scale > *scale => Datum::Decimal(number),
            Some(Number::Exact(number)) => Datum::Decimal(number.rounded(*scale)?),
            Some(Number::Whole(number)) => Datum::Decimal(Decimal::whole(number).rounded(*scale)?),
            _ => return Err(Refusal::new("a DOUBLE as a DECIMAL")),
        },
        Kind::Double { .. } => {
            value.number(from)?.map_or(Datum::Null, |number| Datum::Double(number.to_f64()))
        }
        Kind::Float => match value {
            Datum::Float(_) => value,
            value => match value.number(from)?.map(Number::to_f64) {
                None => Datum::Null,
                // MySQL goes on with all digits, and shows those of a FLOAT.
                Some(number) if f64::from(number as f32) != number => {
                    return Err(Refusal::new("a number of more digits than a FLOAT has"));
                }
                Some(number) => Datum::Float(number as f32),
            },
        },
        Kind::Text(_) => value.text(from)?.map_or(Datum::Null, Datum::Text),
        Kind::Bytes => bytes_of(&value, from)?.map_or(Datum::Null, Datum::Bytes),
        Kind::DateTime { .. } => match value {
            Datum::Date(days) => Datum::DateTime(days * calendar::DAY),
            other => other,
        },
        Kind::Int { unsigned } => match value.whole(from)? {
            Some(number) => super::arithmetic::whole(number, *unsigned)?,
            None => Datum::Null,
        },
        _ => value,
    })
}

/// A branch of a CASE or COALESCE as their common type. CASE and IF of MySQL leave exact numbers their own digits.
pub(crate) fn branch(of: Typed, kind: &Kind, keeps_digits: bool) -> Typed {
    if of.kind == *kind || of.kind == Kind::Null {
        return of;
    }
    let (from, to) = (of.kind.clone(), kind.clone());
    let compute = move |values: &[Datum]| match (&values[0], &to) {
        (Datum::Decimal(_), Kind::Decimal { .. }) if keeps_digits => Ok(values[0].clone()),
        (value, Kind::Decimal { .. }) if keeps_digits => match value.number(&from)? {
            Some(Number::Whole(number)) => Ok(Datum::Decimal(Decimal::whole(number))),
            _ => converted(value.clone(), &from, &to),
        },
        (value, to) => converted(value.clone(), &from, to),
    };
    Typed { node: Node::Branch(shared(compute), Box::new(of)), kind: kind.clone() }
}

/// The text of an exact number, if it has the digits of the number's type.
///
/// # Errors
/// If it has others: which ones the server shows depends on its plan.
pub(crate) fn digits_of_type(text: &Datum, number: &Datum, kind: &Kind) -> Result<Datum, Refusal> {
    let scale = kind.scale().unwrap_or(0);
    let of_type = match number.number(kind)?.and_then(Number::to_decimal) {
        Some(number) => Some(number.rounded(scale)?.text()),
        None => None,
    };
    match text.text(kind)? == of_type {
        true => Ok(text.clone()),
        false => Err(Refusal::new("digits after the point that depend on the server's plan; CAST the value")),
    }
}

/// Refuses operands whose text is not known: MySQL's FLOAT and DOUBLE become texts in `floating`.
pub(super) fn textual(of: &Typed, mysql: bool) -> Result<(), Refusal> {
    match &of.kind {
        Kind::Float | Kind::Double { decimals: None } if mysql => {
            Err(Refusal::new(format!("{} as text", of.kind)))
        }
        _ => Ok(()),
    }
}

/// The bytes of a value as text in its character set; `None` is NULL.
pub(super) fn bytes_of(value: &Datum, kind: &Kind) -> Result<Option<Vec<u8>>, Refusal> {
    Ok(Some(match (value, kind) {
        (Datum::Null, _) => return Ok(None),
        (Datum::Bytes(bytes), _) => bytes.clone(),
        (Datum::UInt(number), Kind::Bit { bits }) => {
            let length = usize::from(*bits).div_ceil(8).min(8);
            number.to_be_bytes()[8 - length..].to_vec()
        }
        (value, kind) => match value.text(kind)? {
            Some(text) => kind.collating().bytes(&text)?,
            None => return Ok(None),
        },
    }))
}

/// The letters of a value as text; of bytes each is a letter. `None` is NULL.
pub(super) fn letters_of(value: &Datum, kind: &Kind, binary: bool) -> Result<Option<String>, Refusal> {
    match binary {
        true => Ok(bytes_of(value, kind)?.map(|bytes| byte_letters(&bytes))),
        false => value.text(kind),
    }
}

/// What [`letters_of`] has made letters of.
pub(super) fn of_letters(text: String, binary: bool) -> Datum {
    match binary {
        true => Datum::Bytes(text.chars().map(|letter| u32::from(letter) as u8).collect()),
        false => Datum::Text(text),
    }
}

/// Microseconds with `fsp` digits, rounded or cut.
pub(super) fn to_fsp(micros: i64, fsp: u8, rounds: bool) -> i64 {
    let unit = 10i64.pow(u32::from(6 - fsp.min(6)));
    if rounds { calendar::rounded(micros, fsp) } else { micros.div_euclid(unit) * unit }
}

/// As an exact number; a text is what it begins with.
pub(super) fn exact(value: &Datum, kind: &Kind) -> Result<Option<Decimal>, Refusal> {
    match (value, kind) {
        (Datum::Text(text), Kind::Text(_)) => Decimal::prefix(text).ok_or_else(Refusal::digits).map(Some),
        (Datum::Bytes(bytes), Kind::Bytes) => {
            Decimal::prefix(&byte_letters(bytes)).ok_or_else(Refusal::digits).map(Some)
        }
        _ => match value.number(kind)? {
            None => Ok(None),
            Some(Number::Double(number)) => Decimal::of_double(number).ok_or_else(Refusal::digits).map(Some),
            Some(number) => Ok(number.to_decimal()),
        },
    }
}

/// The number of a date and time; MySQL rounds a fraction of a second, MariaDB cuts it, in some places.
pub(super) fn without_fraction(number: Decimal) -> Result<i128, Refusal> {
    let whole = number.truncated(0)?;
    match whole.rounded(number.scale)? == number {
        true => Ok(whole.saturated()),
        false => Err(Refusal::new("a fraction of a second as a whole number")),
    }
}

/// A function of operands, as the closures of a plan are.
pub(super) fn shared(
    compute: impl Fn(&[Datum]) -> Result<Datum, Refusal> + Send + Sync + 'static,
) -> super::node::Compute {
    Arc::new(compute)
}
