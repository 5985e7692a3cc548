//! Values while an expression is evaluated, and how they become numbers and texts.

use super::calendar;
use super::{Kind, Refusal};
use crate::text::double_text;

/// Most digits after the point that a DECIMAL keeps.
pub(super) const MAX_SCALE: u8 = 30;

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

/// An exact number: `unscaled / 10^scale`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Decimal {
    pub unscaled: i128,
    pub scale: u8,
}

impl Decimal {
    /// A whole number.
    pub(super) fn whole(number: i128) -> Decimal {
        Decimal { unscaled: number, scale: 0 }
    }

    /// The number with `scale` digits, rounded half away from zero.
    pub(super) fn rounded(self, scale: u8) -> Result<Decimal, Refusal> {
        if scale >= self.scale {
            let factor = power(scale - self.scale)?;
            let unscaled = self.unscaled.checked_mul(factor).ok_or_else(Refusal::digits)?;
            return Ok(Decimal { unscaled, scale });
        }
        let divisor = power(self.scale - scale)?;
        let (quotient, remainder) = (self.unscaled / divisor, self.unscaled % divisor);
        let up = remainder.unsigned_abs() >= divisor.unsigned_abs().div_ceil(2);
        let unscaled = quotient + if up { self.unscaled.signum() } else { 0 };
        Ok(Decimal { unscaled, scale })
    }

    /// The number cut to `scale` digits.
    pub(super) fn truncated(self, scale: u8) -> Result<Decimal, Refusal> {
        if scale >= self.scale {
            return self.rounded(scale);
        }
        Ok(Decimal { unscaled: self.unscaled / power(self.scale - scale)?, scale })
    }

    /// Both with the digits of the longer one.
    pub(super) fn aligned(self, other: Decimal) -> Result<(Decimal, Decimal), Refusal> {
        let scale = self.scale.max(other.scale);
        Ok((self.rounded(scale)?, other.rounded(scale)?))
    }

    /// The nearest double, as reading the digits gives it.
    pub(super) fn to_f64(self) -> f64 {
        self.text().parse().unwrap_or(f64::NAN)
    }

    /// Its digits.
    pub(super) fn text(self) -> String {
        let digits = self.unscaled.unsigned_abs().to_string();
        let sign = if self.unscaled < 0 { "-" } else { "" };
        let scale = usize::from(self.scale);
        if scale == 0 {
            return format!("{sign}{digits}");
        }
        let padded = format!("{digits:0>width$}", width = scale + 1);
        let (whole, fraction) = padded.split_at(padded.len() - scale);
        format!("{sign}{whole}.{fraction}")
    }

    /// The number that `text` (`-12.5e3`) begins with, digits of it exactly; zero if with none. `None` if it has too
    /// many digits.
    pub(super) fn prefix(text: &str) -> Option<Decimal> {
        let text = text.trim_start_matches([' ', '\t', '\n', '\r', '\u{b}', '\u{c}']);
        let bytes = text.as_bytes();
        let mut at = usize::from(matches!(bytes.first(), Some(b'-' | b'+')));
        let negative = bytes.first() == Some(&b'-');
        let (mut unscaled, mut scale, mut point, mut any) = (0i128, 0i64, false, false);
        while let Some(byte) = bytes.get(at) {
            match byte {
                b'0'..=b'9' => {
                    unscaled = unscaled.checked_mul(10)?.checked_add(i128::from(byte - b'0'))?;
                    scale += i64::from(point);
                    any = true;
                }
                b'.' if !point => point = true,
                _ => break,
            }
            at += 1;
        }
        if any && matches!(bytes.get(at), Some(b'e' | b'E')) {
            let rest = &text[at + 1..];
            let sign = usize::from(rest.starts_with(['-', '+']));
            let end =
                rest[sign..].find(|digit: char| !digit.is_ascii_digit()).map_or(rest.len(), |end| sign + end);
            if end > sign {
                scale = scale.checked_sub(rest[..end].trim_start_matches('+').parse().ok()?)?;
            }
        }
        if unscaled == 0 {
            return Some(Decimal::whole(0));
        }
        while scale < 0 {
            unscaled = unscaled.checked_mul(10)?;
            scale += 1;
        }
        while scale > i64::from(MAX_SCALE) && unscaled % 10 == 0 {
            unscaled /= 10;
            scale -= 1;
        }
        let scale = u8::try_from(scale).ok().filter(|scale| *scale <= 38)?;
        Some(Decimal { unscaled: if negative { -unscaled } else { unscaled }, scale })
    }
}

/// Ten to the power of `digits`.
pub(super) fn power(digits: u8) -> Result<i128, Refusal> {
    10i128.checked_pow(u32::from(digits)).ok_or_else(Refusal::digits)
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
            _ if matches!(kind, Kind::Json | Kind::Choice(_) | Kind::Bytes) => {
                return Err(Refusal::new(format!("{kind:?} as a number")));
            }
            Datum::Int(number) => Number::Whole((*number).into()),
            Datum::UInt(number) => Number::Whole((*number).into()),
            Datum::Decimal(number) => Number::Exact(*number),
            Datum::Double(number) => Number::Double(*number),
            Datum::Float(number) => Number::Double(f64::from(*number)),
            Datum::Text(text) => Number::Double(double_prefix(text)),
            Datum::Bytes(_) => return Err(Refusal::new("bytes as a number")),
            Datum::Date(days) => Number::Whole(calendar::date_number(*days).into()),
            Datum::DateTime(micros) => fractional(calendar::date_time_number(*micros), *micros, kind),
            Datum::Time(micros) => fractional(calendar::time_number(*micros), *micros, kind),
        }))
    }

    /// As text; `None` is NULL.
    pub(super) fn text(&self, kind: &Kind) -> Result<Option<String>, Refusal> {
        Ok(Some(match self {
            Datum::Null => return Ok(None),
            Datum::Int(_) | Datum::UInt(_) if *kind == Kind::Bit => {
                return Err(Refusal::new("a BIT as text"));
            }
            Datum::UInt(year) if *kind == Kind::Year => format!("{year:04}"),
            Datum::Int(number) => number.to_string(),
            Datum::UInt(number) => number.to_string(),
            // A computed zero shows digits or not, by the server, the operator and what it is put into.
            Datum::Decimal(number)
                if number.unscaled == 0 && kind.scale().is_some_and(|scale| number.scale != scale) =>
            {
                return Err(Refusal::new("the digits of a computed zero"));
            }
            Datum::Decimal(number) => number.text(),
            Datum::Double(_) if *kind == (Kind::Double { fixed: true }) => {
                return Err(Refusal::new("a rounded DOUBLE as text"));
            }
            Datum::Double(number) if *number == 0.0 && number.is_sign_negative() => {
                return Err(Refusal::new("a negative zero as text"));
            }
            Datum::Double(number) => double_text(*number),
            // Some of the servers' ways of making it a text go by its double.
            Datum::Float(_) => return Err(Refusal::new("a FLOAT as text")),
            Datum::Text(text) => text.clone(),
            Datum::Bytes(_) => return Err(Refusal::new("bytes as text")),
            Datum::Date(days) => calendar::date_text(*days),
            Datum::DateTime(micros) => calendar::date_time_text(*micros, kind.fsp()),
            Datum::Time(micros) => calendar::time_text(*micros, kind.fsp()),
        }))
    }

    /// Whether it counts as true; `None` is NULL.
    pub(crate) fn condition(&self, kind: &Kind) -> Result<Option<bool>, Refusal> {
        Ok(self.number(kind)?.map(|number| match number {
            Number::Whole(number) => number != 0,
            Number::Exact(number) => number.unscaled != 0,
            Number::Double(number) => number != 0.0,
        }))
    }

    /// As a whole number, rounded as the servers round arguments; `None` is NULL.
    pub(super) fn whole(&self, kind: &Kind) -> Result<Option<i128>, Refusal> {
        match self.number(kind)? {
            None => Ok(None),
            Some(Number::Whole(number)) => Ok(Some(number)),
            Some(Number::Exact(number)) => Ok(Some(number.rounded(0)?.unscaled)),
            Some(Number::Double(_)) => Err(Refusal::new("a DOUBLE or a text as a whole number")),
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
            let exact = Decimal { unscaled, scale: 6 };
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
    if any { text[..end].parse().unwrap_or(0.0) } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimals_round_half_away_from_zero() {
        let rounded = |text: &str, scale| Decimal::prefix(text).unwrap().rounded(scale).unwrap().text();
        assert_eq!(rounded("2.5", 0), "3");
        assert_eq!(rounded("-2.5", 0), "-3");
        assert_eq!(rounded("-0.449", 1), "-0.4");
        assert_eq!(rounded("1.5", 3), "1.500");
        assert_eq!(rounded("12e-1x", 1), "1.2");
        assert_eq!(rounded("abc", 0), "0");
    }

    #[test]
    fn texts_are_the_numbers_they_begin_with() {
        for (text, number) in
            [(" 12abc", 12.0), ("-.5", -0.5), ("1e2", 100.0), ("1e", 1.0), ("", 0.0), (".", 0.0)]
        {
            assert_eq!(double_prefix(text), number, "{text}");
        }
    }
}
