//! Values stored into ENUM, SET and BIT.
//!
//! A number is the place of an ENUM's element, the bits of a SET or BIT; a text that is no element becomes the empty
//! text. Where the column's collation may find an element that is spelled otherwise, the value is refused.

use super::datum::{Datum, Number};
use super::{Kind, Refusal};

/// A value as an ENUM stores it.
///
/// # Errors
/// If an element may be equal to it by the column's collation.
pub(super) fn element(value: &Datum, kind: &Kind, elements: &[String]) -> Result<Datum, Refusal> {
    if !is_text(kind) {
        let place = usize::try_from(whole(value, kind)? - 1).ok();
        let found = place.and_then(|at| elements.get(at)).cloned();
        return Ok(Datum::Text(found.unwrap_or_default()));
    }
    let text = value.text(kind)?.unwrap_or_default();
    if elements.contains(&text) {
        return Ok(Datum::Text(text));
    }
    if let Some(place) = digits(&text)? {
        let found = usize::try_from(place - 1).ok().and_then(|at| elements.get(at)).cloned();
        return Ok(Datum::Text(found.unwrap_or_default()));
    }
    match elements.iter().any(|element| may_equal(element, &text)) {
        true => Err(Refusal::new("a text that is no element")),
        false => Ok(Datum::Text(String::new())),
    }
}

/// A value as a SET stores it.
///
/// # Errors
/// If elements may be equal to parts of it by the column's collation.
pub(super) fn elements(
    value: &Datum,
    kind: &Kind,
    elements: &[String],
    mysql: bool,
) -> Result<Datum, Refusal> {
    let joined = |is_chosen: &dyn Fn(usize, &String) -> bool| {
        let chosen = elements.iter().enumerate().filter(|(at, element)| is_chosen(*at, element));
        Datum::Text(tanada_innodb::joined_elements(chosen.map(|(_, element)| element.as_str())))
    };
    if !is_text(kind) {
        let number = whole(value, kind)?;
        if number.unsigned_abs() > i64::MAX.unsigned_abs().into() {
            return Err(Refusal::new("a SET of a number of more than 64 bits"));
        }
        return Ok(joined(&|at, _| number >> at & 1 == 1));
    }
    let text = value.text(kind)?.unwrap_or_default();
    let parts: Vec<&str> = text.split(',').filter(|part| !part.is_empty()).collect();
    if parts.iter().all(|part| elements.iter().any(|element| element == part)) {
        return Ok(joined(&|_, element| parts.contains(&element.as_str())));
    }
    if let Some(number) = digits(&text)? {
        // MySQL takes no bits that have no element.
        let most = (1i128 << elements.len().min(64)) - 1;
        let number = if mysql && number > most { 0 } else { number };
        return Ok(joined(&|at, _| number >> at & 1 == 1));
    }
    let may_have = |part: &&str| elements.iter().any(|element| may_equal(element, part));
    match parts.iter().any(may_have) {
        true => Err(Refusal::new("a text that is no element")),
        false => Ok(Datum::Text(String::new())),
    }
}

/// The number that all of a text spells; `None` if it spells none.
fn digits(text: &str) -> Result<Option<i128>, Refusal> {
    let number = text.trim().trim_start_matches(['-', '+']);
    if number.is_empty() || !number.bytes().all(|byte| byte.is_ascii_digit()) {
        return Ok(None);
    }
    match text.parse::<u64>() {
        Ok(number) if number.to_string() == text => Ok(Some(number.into())),
        _ => Err(Refusal::new("a number with a sign or spaces as an element")),
    }
}

/// A value as a BIT of `bits` bits stores it: all ones for what is too large.
///
/// # Errors
/// If the bytes of a text are not known.
pub(super) fn bits(value: &Datum, kind: &Kind, bits: u8) -> Result<Datum, Refusal> {
    let most = u64::MAX >> (64 - u32::from(bits.clamp(1, 64)));
    let number = match (value, kind) {
        (Datum::Text(text), Kind::Text(collating)) => {
            let bytes = collating.bytes(text)?;
            let significant = bytes.iter().position(|byte| *byte != 0).map_or(&[][..], |at| &bytes[at..]);
            match significant.len() {
                ..=8 => significant.iter().fold(0, |number, byte| number << 8 | u64::from(*byte)),
                _ => most,
            }
        }
        (value, kind) => match (cut(value, kind)?, value) {
            (..0, Datum::Decimal(_)) => 0,
            (..0, _) => most,
            (number, _) => u64::try_from(number).unwrap_or(most),
        },
    };
    Ok(Datum::UInt(number.min(most)))
}

fn is_text(kind: &Kind) -> bool {
    matches!(kind, Kind::Text(_) | Kind::Choice(_))
}

/// The whole part of a number.
fn whole(value: &Datum, kind: &Kind) -> Result<i128, Refusal> {
    Ok(match value.number(kind)? {
        None => 0,
        Some(Number::Whole(number)) => number,
        Some(Number::Exact(number)) => number.truncated(0)?.saturated(),
        Some(Number::Double(number)) => number.trunc().clamp(-1e30, 1e30) as i128,
    })
}

/// A number as YEAR and BIT store it: a DOUBLE without its fraction, a DECIMAL rounded.
pub(super) fn cut(value: &Datum, kind: &Kind) -> Result<i128, Refusal> {
    match (value, kind) {
        (Datum::Double(_) | Datum::Float(_), Kind::Double { .. } | Kind::Float) => whole(value, kind),
        _ => Ok(value.whole(kind)?.unwrap_or(0)),
    }
}

/// Whether a collation may take two texts as equal.
fn may_equal(element: &str, text: &str) -> bool {
    match element.is_ascii() && text.is_ascii() {
        true => element.trim_end().eq_ignore_ascii_case(text.trim_end()),
        false => element.is_ascii() == text.is_ascii(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of_text() -> Kind {
        Kind::Text(super::super::Collating::literal(None))
    }
    const WHOLE: Kind = Kind::Int { unsigned: false };

    #[test]
    fn numbers_are_places_and_bits() {
        let names = ["x", "abc", "1"].map(str::to_string);
        let text = |text: &str| Ok(Datum::Text(text.to_string()));
        assert_eq!(element(&Datum::Int(2), &WHOLE, &names), text("abc"));
        assert_eq!(element(&Datum::Int(4), &WHOLE, &names), text(""));
        assert_eq!(element(&Datum::Text("none".into()), &of_text(), &names), text(""));
        assert!(element(&Datum::Text("ABC".into()), &of_text(), &names).is_err());
        assert_eq!(elements(&Datum::Int(-3), &WHOLE, &names, true), text("x,1"));
        assert_eq!(elements(&Datum::Text("1,x".into()), &of_text(), &names, true), text("x,1"));
        assert_eq!(element(&Datum::Text("2".into()), &of_text(), &names), text("abc"));
        assert_eq!(elements(&Datum::Text("9".into()), &of_text(), &names, true), text(""));
        assert_eq!(elements(&Datum::Text("9".into()), &of_text(), &names, false), text("x"));
        assert!(elements(&Datum::Text("-1".into()), &of_text(), &names, false).is_err());
        let double = Kind::Double { decimals: None };
        assert_eq!(element(&Datum::Double(2.6), &double, &names), text("abc"));
        assert!(elements(&Datum::Double(1e30), &double, &names, true).is_err());
        // Both servers cut a DOUBLE, and round a DECIMAL.
        let cases = [(2.6, 2), (1.5, 1), (-0.5, 0), (-1.5, 0xffff), (1e30, 0xffff)];
        for (number, expected) in cases {
            assert_eq!(bits(&Datum::Double(number), &double, 16), Ok(Datum::UInt(expected)), "{number}");
        }
        assert_eq!(bits(&Datum::Int(-1), &WHOLE, 16), Ok(Datum::UInt(0xffff)));
        assert_eq!(bits(&Datum::Int(65_537), &WHOLE, 16), Ok(Datum::UInt(0xffff)));
    }
}
