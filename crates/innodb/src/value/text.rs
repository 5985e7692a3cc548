//! Values as MySQL's text protocol spells them.

use std::fmt::Write;

use tanada_base::calendar::civil_from_days;

use super::Value;
use super::temporal::write_fraction;
use crate::ColumnType;

/// Significant digits of a FLOAT (`FLT_DIG`).
const FLOAT_DIGITS: usize = 6;
/// Beyond so many digits before or zeros after the point numbers are spelled with an exponent
/// (`MAX_DECPT_FOR_F_FORMAT`).
const MAX_POINT: i32 = 15;
const DAY_US: i64 = 86_400_000_000;

/// A DOUBLE: the shortest digits that read back as the same number.
pub(crate) fn double_text(number: f64) -> String {
    spell(&format!("{number:e}"))
}

/// A FLOAT: six significant digits, trailing zeros cut.
pub(crate) fn float_text(number: f32) -> String {
    spell(&format!("{:.*e}", FLOAT_DIGITS - 1, f64::from(number)))
}

/// `d.ddde±x` as MySQL's `my_gcvt` would have it.
fn spell(scientific: &str) -> String {
    let Some((mantissa, exponent)) = scientific.split_once('e') else { return scientific.to_owned() };
    let (sign, mantissa) = mantissa.strip_prefix('-').map_or(("", mantissa), |rest| ("-", rest));
    let digits: String = mantissa.chars().filter(char::is_ascii_digit).collect();
    let digits = digits.trim_end_matches('0');
    if digits.is_empty() {
        return format!("{sign}0");
    }
    // The number is 0.digits times ten to the power of `point`.
    let point = exponent.parse::<i32>().unwrap_or(0) + 1;
    if !(-MAX_POINT + 1..=MAX_POINT).contains(&point) {
        let (first, rest) = digits.split_at(1);
        let dot = if rest.is_empty() { "" } else { "." };
        return format!("{sign}{first}{dot}{rest}e{}", point - 1);
    }
    match usize::try_from(point) {
        Ok(0) | Err(_) => format!("{sign}0.{}{digits}", "0".repeat(point.unsigned_abs() as usize)),
        Ok(whole) if digits.len() <= whole => format!("{sign}{digits}{}", "0".repeat(whole - digits.len())),
        Ok(whole) => format!("{sign}{}.{}", &digits[..whole], &digits[whole..]),
    }
}

/// Signed microseconds as `[-]hh:mm:ss[.ffffff]`; hours may pass 24.
pub(crate) fn time_text(micros: i64, fsp: u8) -> String {
    let magnitude = micros.unsigned_abs() as i64;
    let second = magnitude / 1_000_000;
    let sign = if micros < 0 { "-" } else { "" };
    let mut text = format!("{sign}{:02}:{:02}:{:02}", second / 3600, second / 60 % 60, second % 60);
    write_fraction(&mut text, magnitude % 1_000_000, fsp);
    text
}

fn date_text(days: i64) -> String {
    let (year, month, day) = civil_from_days(days);
    format!("{year:04}-{month:02}-{day:02}")
}

impl Value<'_> {
    /// The value as `mysql --batch` prints it, before escaping; bytes (BINARY, BLOB, GEOMETRY) and BIT in hexadecimal.
    /// The type gives the digits of a fraction.
    pub fn to_mysql_text(&self, column_type: &ColumnType) -> String {
        match self {
            Value::Null => "NULL".into(),
            Value::Int(number) => number.to_string(),
            Value::UInt(number) => match column_type {
                ColumnType::Bit { .. } => format!("{number:X}"),
                ColumnType::Year => format!("{number:04}"),
                _ => number.to_string(),
            },
            Value::Float(number) => float_text(*number),
            Value::Double(number) => double_text(*number),
            Value::Decimal(number) => number.to_string(),
            Value::Text(text) => text.clone().into_owned(),
            Value::Bytes(bytes) => {
                let mut text = String::with_capacity(2 * bytes.len());
                for byte in bytes.iter() {
                    // Writing to a String cannot fail.
                    let _ = write!(text, "{byte:02X}");
                }
                text
            }
            Value::Date(days) => date_text(i64::from(*days)),
            Value::DateTime(micros) => {
                let date = date_text(micros.div_euclid(DAY_US));
                format!("{date} {}", time_text(micros.rem_euclid(DAY_US), fraction_digits(column_type)))
            }
            Value::Time(micros) => time_text(*micros, fraction_digits(column_type)),
            Value::ZeroDate(text) => text.clone(),
        }
    }
}

fn fraction_digits(column_type: &ColumnType) -> u8 {
    match column_type {
        ColumnType::Time { fsp, .. }
        | ColumnType::DateTime { fsp, .. }
        | ColumnType::Timestamp { fsp, .. } => *fsp,
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn doubles_are_spelled_like_the_server_does() {
        for (number, text) in [
            (0.0, "0"),
            (-0.0, "-0"),
            (1.5, "1.5"),
            (100.0, "100"),
            (123_456_789_012_345.0, "123456789012345"),
            (1e15, "1e15"),
            (1.234_567_890_123_456_8e17, "1.2345678901234568e17"),
            (-1.7e308, "-1.7e308"),
            (0.1, "0.1"),
            (1e-15, "0.000000000000001"),
            (1.5e-16, "1.5e-16"),
        ] {
            assert_eq!(double_text(number), text);
        }
    }

    #[test]
    fn floats_have_six_digits() {
        for (number, text) in [
            (3.4e38, "3.4e38"),
            (0.1, "0.1"),
            (1_234_567.0, "1234570"),
            (1.0 / 3.0, "0.333333"),
            (16.0, "16"),
        ] {
            assert_eq!(float_text(number), text);
        }
    }

    #[test]
    fn times_are_spelled_with_their_fraction() {
        let time = |fsp| ColumnType::Time { fsp, legacy: false };
        assert_eq!(Value::Time(-3_020_399_000_000).to_mysql_text(&time(3)), "-838:59:59.000");
        assert_eq!(Value::Time(-1_500_000).to_mysql_text(&time(1)), "-00:00:01.5");
        assert_eq!(Value::Date(-354_285).to_mysql_text(&ColumnType::Date), "1000-01-01");
        let datetime = ColumnType::DateTime { fsp: 6, legacy: false };
        assert_eq!(Value::DateTime(-1).to_mysql_text(&datetime), "1969-12-31 23:59:59.999999");
    }
}
