//! `FORMAT_PICO_TIME` of MySQL: a number of picoseconds in the largest unit that fits.

use super::super::Refusal;
use super::super::strings::ascii;
use crate::expression::datum::Datum;
use crate::expression::node::Typed;

/// Units from the largest on: picoseconds of one, and its name.
const UNITS: [(f64, &str); 6] =
    [(86_400e12, "d"), (3_600e12, "h"), (60e12, "min"), (1e12, "s"), (1e9, "ms"), (1e6, "us")];
/// Picoseconds of a nanosecond.
const NANOSECOND: f64 = 1e3;
/// From here on a number has an exponent.
const LARGEST: f64 = 99_999.0;

/// The function.
pub(super) fn of(operand: Typed) -> Result<Typed, Refusal> {
    let from = operand.kind.clone();
    Ok(Typed::call(ascii(), vec![operand], move |values| {
        let Some(number) = values[0].number(&from)? else { return Ok(Datum::Null) };
        let picoseconds = number.to_f64();
        let size = picoseconds.abs();
        if size < NANOSECOND {
            return Ok(Datum::Text(format!("{:3} ps", picoseconds.trunc() as i64)));
        }
        let unit = UNITS.iter().find(|(of, _)| size >= *of).copied().unwrap_or((NANOSECOND, "ns"));
        let value = picoseconds / unit.0;
        if value.abs() >= LARGEST {
            return Err(Refusal::new("a number of days that has an exponent"));
        }
        Ok(Datum::Text(format!("{value:.2} {}", unit.1)))
    }))
}
