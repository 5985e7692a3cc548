//! Values while an expression is evaluated, and how they become numbers and texts.

pub(crate) use super::decimal::Decimal;

use super::calendar;
use super::{Kind, Refusal};
use crate::text::{double_text, float_text};

/// A value.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Datum {
    Null,
    Int(i64),
    UInt(u64),
    Decimal(Decimal),
    Double(f64),
    Float(f32),
    /// Also JSON, as the server prints it.
    Text(String),
    Bytes(Vec<u8>),
    /// Days since 1970-01-01.
    Date(i64),
    /// Microseconds since 1970-01-01.
    DateTime(i64),
    /// Microseconds.
    Time(i64),
}

/// A number in one of the three ways of computing.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Number {
    Whole(i128),
    Exact(Decimal),
    Double(f64),
}

impl Number {
    /// The nearest double.
    pub(super) fn to_f64(self) -> f64 {
        match self {
            Number::Whole(number) => number as f64,
            Number::Exact(number) => number.to_f64(),
            Number::Double(number) => number,
        }
    }

    /// As an exact number; `None` for a double.
    pub(super) fn to_decimal(self) -> Option<Decimal> {
        match self {
            Number::Whole(number) => Some(Decimal::whole(number)),
            Number::Exact(number) => Some(number),
            Number::Double(_) => None,
        }
    }
}

impl Datum {
    /// 1 or 0.
    pub(super) fn truth(truth: bool) -> Datum {
        Datum::Int(i64::from(truth))
    }

    pub(crate) fn is_null(&self) -> bool {
        *self == Datum::Null
    }

    /// As a number; `None` is NULL. A text is the double that it begins with.
    pub(super) fn number(&self, kind: &Kind) -> Result<Option<Number>, Refusal> {
        Ok(Some(match self {
            Datum::Null => return Ok(None),
            Datum::Int(number) => Number::Whole((*number).into()),
            Datum::UInt(number) => Number::Whole((*number).into()),
            Datum::Decimal(number) => Number::Exact(*number),
            Datum::Double(number) => Number::Double(*number),
            Datum::Float(number) => Number::Double(f64::from(*number)),
            Datum::Text(text) => match kind {
                Kind::Choice(choice) => match choice.number(text) {
                    Some(number) => Number::Whole(number.into()),
                    None if choice.has_empty_element() => {
                        return Err(Refusal::new("the number of an ENUM or SET with an empty element"));
                    }
                    None => return Err(Refusal::new("the number of a text that is no element")),
                },
                Kind::Json => Number::Double(super::json::number(text)?),
                _ => {
                    super::notes::number(text);
                    Number::Double(double_prefix(text))
                }
            },
            Datum::Bytes(bytes) if *kind == Kind::Hex => Number::Whole(hex_number(bytes)?.into()),
            Datum::Bytes(bytes) => Number::Double(double_prefix(&byte_letters(bytes))),
            Datum::Date(days) => Number::Whole(calendar::date_number(*days).into()),
            Datum::DateTime(micros) => fractional(calendar::date_time_number(*micros), *micros, kind),
            Datum::Time(micros) => fractional(calendar::time_number(*micros), *micros, kind),
        }))
    }

    /// As text; `None` is NULL.
    pub(super) fn text(&self, kind: &Kind) -> Result<Option<String>, Refusal> {
        Ok(Some(match self {
            Datum::Null => return Ok(None),
            Datum::Int(_) | Datum::UInt(_) if matches!(kind, Kind::Bit { .. }) => {
                return Err(Refusal::new("a BIT as text"));
            }
            Datum::UInt(year) if *kind == Kind::Year => format!("{year:04}"),
            Datum::Int(number) => number.to_string(),
            Datum::UInt(number) => number.to_string(),
            Datum::Decimal(number) => match kind.scale() {
                Some(scale) if scale < number.scale => number.rounded(scale)?.text(),
                _ => number.text(),
            },
            Datum::Double(number) => match kind {
                Kind::Double { decimals: Some(decimals) } => fixed_text(*number, *decimals),
                _ => double_text(*number),
            },
            Datum::Float(number) => float_text(*number),
            Datum::Text(text) => text.clone(),
            Datum::Bytes(bytes) => match std::str::from_utf8(bytes) {
                Ok(text) => text.to_string(),
                Err(_) => return Err(Refusal::new("bytes as text")),
            },
            Datum::Date(days) => calendar::date_text(*days),
            Datum::DateTime(micros) => calendar::date_time_text(*micros, kind.fsp()),
            Datum::Time(micros) => calendar::time_text(*micros, kind.fsp()),
        }))
    }

    /// Whether it counts as true; `None` is NULL.
    pub(crate) fn condition(&self, kind: &Kind) -> Result<Option<bool>, Refusal> {
        // Of a document other than a number the servers say different things in different places.
        if let (Datum::Text(text), Kind::Json) = (self, kind)
            && !text.starts_with(|sign: char| sign.is_ascii_digit() || sign == '-')
        {
            return Err(Refusal::new("a document as a condition"));
        }
        Ok(self.number(kind)?.map(|number| match number {
            Number::Whole(number) => number != 0,
            Number::Exact(number) => !number.is_zero(),
            Number::Double(number) => number != 0.0,
        }))
    }

    /// As a whole number, rounded as the servers round arguments; `None` is NULL.
    pub(super) fn whole(&self, kind: &Kind) -> Result<Option<i128>, Refusal> {
        match self {
            Datum::Text(text) if !matches!(kind, Kind::Choice(_) | Kind::Json) => {
                return Ok(Some(integer_prefix(text)));
            }
            Datum::Bytes(bytes) if *kind != Kind::Hex => {
                return Ok(Some(integer_prefix(&byte_letters(bytes))));
            }
            _ => {}
        }
        Ok(match self.number(kind)? {
            None => None,
            // MariaDB cuts the fraction of a document, MySQL rounds it.
            Some(Number::Double(number)) if *kind == Kind::Json && number.fract() != 0.0 => {
                return Err(Refusal::new("a document with a fraction as a whole number"));
            }
            Some(Number::Whole(number)) => Some(number),
            // MariaDB cuts the fraction of a second, MySQL rounds the date or time.
            Some(Number::Exact(number)) if kind.is_temporal() => {
                Some(super::conversions::without_fraction(number)?)
            }
            Some(Number::Exact(number)) => Some(number.saturated()),
            Some(Number::Double(number)) => Some(signed(number.round_ties_even())),
        })
    }
}

/// The nearest signed integer of 64 bits.
pub(super) fn signed(number: f64) -> i128 {
    // A cast takes the nearest that there is.
    (number as i64).into()
}

/// Bytes as the letters of those numbers.
pub(super) fn byte_letters(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| char::from(*byte)).collect()
}

/// The number of a literal of hexadecimal digits.
fn hex_number(bytes: &[u8]) -> Result<u64, Refusal> {
    let significant = bytes.iter().position(|byte| *byte != 0).map_or(&[][..], |at| &bytes[at..]);
    match significant.len() <= 8 {
        true => Ok(significant.iter().fold(0, |number, byte| number << 8 | u64::from(*byte))),
        false => Err(Refusal::new("the number of more than 64 bits")),
    }
}

/// The integer that a text begins with, the nearest that 64 bits hold; 0 if it begins with none.
pub(super) fn integer_prefix(text: &str) -> i128 {
    let text = text.trim_start_matches([' ', '\t', '\n', '\r', '\u{b}', '\u{c}']);
    let (negative, digits) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let mut number = 0i128;
    for digit in digits.bytes().take_while(u8::is_ascii_digit) {
        number = (number * 10 + i128::from(digit - b'0')).min(u64::MAX.into());
    }
    if negative { (-number).max(i64::MIN.into()) } else { number }
}

/// A double with `decimals` digits after the point.
fn fixed_text(number: f64, decimals: u8) -> String {
    // The shortest digits that read back as the number are filled with zeros, as the servers do.
    let width = usize::from(decimals);
    let Some(exact) = Decimal::of_double(number) else { return double_text(number) };
    match exact.scale <= decimals {
        true if exact.scale == 0 && width > 0 => format!("{}.{}", exact.text(), "0".repeat(width)),
        true => {
            let text = exact.text();
            format!("{text}{}", "0".repeat(width - usize::from(exact.scale)))
        }
        false => {
            let text = format!("{number:.width$}");
            match text.strip_prefix('-') {
                Some(rest) if rest.bytes().all(|byte| matches!(byte, b'0' | b'.')) => rest.to_string(),
                _ => text,
            }
        }
    }
}

/// A date's or time's number, with its fraction if the type has one.
fn fractional(whole: i64, micros: i64, kind: &Kind) -> Number {
    match kind.fsp() {
        0 => Number::Whole(whole.into()),
        fsp => {
            let sign = if micros < 0 && matches!(kind, Kind::Time { .. }) { -1 } else { 1 };
            let fraction = match sign {
                1 => micros.rem_euclid(1_000_000),
                _ => -(micros.unsigned_abs() as i64 % 1_000_000),
            };
            let unscaled = i128::from(whole) * 1_000_000 + i128::from(fraction);
            let exact = Decimal::new(unscaled, 6);
            Number::Exact(exact.truncated(fsp).unwrap_or(exact))
        }
    }
}

/// The double that a text begins with; 0 if it begins with none.
pub(super) fn double_prefix(text: &str) -> f64 {
    let text = text.trim_start_matches([' ', '\t', '\n', '\r', '\u{b}', '\u{c}']);
    let bytes = text.as_bytes();
    let digits = |from: usize| from + bytes[from..].iter().take_while(|byte| byte.is_ascii_digit()).count();
    let start = usize::from(matches!(bytes.first(), Some(b'-' | b'+')));
    let mut end = digits(start);
    let mut any = end > start;
    if bytes.get(end) == Some(&b'.') {
        let fraction = digits(end + 1);
        any |= fraction > end + 1;
        end = fraction;
    }
    if any && matches!(bytes.get(end), Some(b'e' | b'E')) {
        let sign = usize::from(matches!(bytes.get(end + 1), Some(b'-' | b'+')));
        let exponent = digits(end + 1 + sign);
        if exponent > end + 1 + sign {
            end = exponent;
        }
    }
    let number: f64 = if any { text[..end].parse().unwrap_or(0.0) } else { 0.0 };
    number.clamp(f64::MIN, f64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_the_numbers_they_begin_with() {
        for (text, number) in
            [(" 12abc", 12.0), ("-.5", -0.5), ("1e2", 100.0), ("1e", 1.0), ("", 0.0), (".", 0.0)]
        {
            assert_eq!(double_prefix(text), number, "{text}");
        }
    }

    #[test]
    fn doubles_are_filled_with_zeros() {
        assert_eq!(fixed_text(2.5, 2), "2.50");
        assert_eq!(fixed_text(1e18, 2), "1000000000000000000.00");
        assert_eq!(fixed_text(1e30, 0), "1000000000000000000000000000000");
        assert_eq!(fixed_text(-0.001, 2), "0.00");
        assert_eq!(fixed_text(0.855, 3), "0.855");
    }

    #[test]
    fn integers_that_texts_begin_with_are_bounded() {
        assert_eq!(integer_prefix(" 12abc"), 12);
        assert_eq!(integer_prefix("-1.9"), -1);
        assert_eq!(integer_prefix("99999999999999999999"), i128::from(u64::MAX));
        assert_eq!(integer_prefix("-99999999999999999999"), i128::from(i64::MIN));
    }
}
