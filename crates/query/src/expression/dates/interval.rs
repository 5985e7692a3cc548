//! `INTERVAL`: what is added to dates and times, and `TIMESTAMPDIFF`.
//!
//! An interval is a count of months, or of microseconds. Its unit decides whether a date becomes a date and time, and
//! the count's type how many digits the seconds have: a text counts as one with six.

use super::civil::Civil;
use super::format::text;
use super::operand::{As, date, fsp, moment};
use crate::expression::calendar::{self, DAY, MAX_TIME};
use crate::expression::datum::{Datum, Decimal, Number};
use crate::expression::node::Typed;
use crate::expression::{Kind, Refusal, Rules};

const SECOND: i64 = 1_000_000;
/// The last microsecond that a date and time may have, and the first.
const YEARS: (i64, i64) = (-62_167_219_200_000_000, 253_402_300_799_999_999);

/// The parts of a unit, as they are read from left to right.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    Months(i64),
    Micros(i64),
}

/// A unit of intervals.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Unit {
    parts: &'static [Part],
    is_second: bool,
}

const YEAR: Part = Part::Months(12);
const MONTH: Part = Part::Months(1);
const DAYS: Part = Part::Micros(DAY);
const HOUR: Part = Part::Micros(3600 * SECOND);
const MINUTE: Part = Part::Micros(60 * SECOND);
const SECONDS: Part = Part::Micros(SECOND);
const MICRO: Part = Part::Micros(1);

/// The unit of a name, also as ODBC writes it.
pub(super) fn unit(name: &str) -> Result<Unit, Refusal> {
    let name = name.to_ascii_lowercase();
    let parts: &'static [Part] = match name.strip_prefix("sql_tsi_").unwrap_or(&name) {
        "year" => &[YEAR],
        "quarter" => &[Part::Months(3)],
        "month" => &[MONTH],
        "week" => &[Part::Micros(7 * DAY)],
        "day" => &[DAYS],
        "hour" => &[HOUR],
        "minute" => &[MINUTE],
        "second" => &[SECONDS],
        "microsecond" => &[MICRO],
        "year_month" => &[YEAR, MONTH],
        "day_hour" => &[DAYS, HOUR],
        "day_minute" => &[DAYS, HOUR, MINUTE],
        "day_second" => &[DAYS, HOUR, MINUTE, SECONDS],
        "day_microsecond" => &[DAYS, HOUR, MINUTE, SECONDS, MICRO],
        "hour_minute" => &[HOUR, MINUTE],
        "hour_second" => &[HOUR, MINUTE, SECONDS],
        "hour_microsecond" => &[HOUR, MINUTE, SECONDS, MICRO],
        "minute_second" => &[MINUTE, SECONDS],
        "minute_microsecond" => &[MINUTE, SECONDS, MICRO],
        "second_microsecond" => &[SECONDS, MICRO],
        other => return Err(Refusal::new(format!("an interval of {other}"))),
    };
    Ok(Unit { parts, is_second: parts == [SECONDS] })
}

impl Unit {
    fn is_months(&self) -> bool {
        matches!(self.parts[0], Part::Months(_))
    }

    /// Whether a date stays a date.
    fn is_of_days(&self) -> bool {
        self.is_months() || matches!(self.parts, [Part::Micros(each)] if each % DAY == 0)
    }

    /// Whether it has days or more.
    fn has_days(&self) -> bool {
        self.is_months() || matches!(self.parts[0], Part::Micros(each) if each >= DAY)
    }

    /// Digits of the seconds that a count of this type adds.
    fn fsp(&self, count: &Kind) -> u8 {
        match (self.parts.last(), count) {
            (Some(&MICRO), _) => 6,
            _ if !self.is_second => 0,
            (_, Kind::Decimal { scale }) => (*scale).min(6),
            (_, Kind::Int { .. } | Kind::Null | Kind::Year | Kind::Bit { .. }) => 0,
            _ => 6,
        }
    }

    /// The interval; `None` is NULL.
    fn interval(&self, count: &Datum, kind: &Kind) -> Result<Option<Interval>, Refusal> {
        if count.is_null() {
            return Ok(None);
        }
        let each = match self.parts {
            [part] if !self.is_second => *part,
            [_] => return seconds(count, kind).map(|micros| Some(Interval { months: 0, micros })),
            parts => return composite(parts, &count.text(kind)?.unwrap_or_default()),
        };
        let count = whole(count, kind)?;
        Ok(match each {
            Part::Months(each) => count.checked_mul(each).map(|months| Interval { months, micros: 0 }),
            Part::Micros(each) => count.checked_mul(each).map(|micros| Interval { months: 0, micros }),
        })
    }
}

/// What is added.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Interval {
    months: i64,
    micros: i64,
}

fn long() -> Refusal {
    Refusal::new("a long interval")
}

/// A count as a whole number: a text is cut, a number rounded.
fn whole(count: &Datum, kind: &Kind) -> Result<i64, Refusal> {
    let number = match (count, kind) {
        (Datum::Text(text), Kind::Text(_)) => i128::from(digits(text)?),
        (value, kind) => match value.number(kind)? {
            Some(Number::Double(number)) if number.abs() < 1e15 => number.round_ties_even() as i128,
            Some(Number::Double(_)) => return Err(long()),
            Some(number) => number.to_decimal().ok_or_else(long)?.rounded(0)?.units(),
            None => 0,
        },
    };
    i64::try_from(number).ok().filter(|count| count.abs() < 1 << 40).ok_or_else(long)
}

/// The whole number that a text begins with.
fn digits(text: &str) -> Result<i64, Refusal> {
    let text = text.trim_start_matches([' ', '\t', '\n', '\r', '\u{b}', '\u{c}']);
    let sign = usize::from(text.starts_with(['-', '+']));
    let end = text[sign..].find(|digit: char| !digit.is_ascii_digit()).map_or(text.len(), |end| sign + end);
    if text[end..].starts_with(['e', 'E']) && end > sign {
        return Err(Refusal::new("an interval with an exponent"));
    }
    if end == sign {
        return Ok(0);
    }
    text[..end].trim_start_matches('+').parse().map_err(|_| long())
}

/// Microseconds of a count of seconds.
fn seconds(count: &Datum, kind: &Kind) -> Result<i64, Refusal> {
    let exact = match (count, kind) {
        (Datum::Text(text), Kind::Text(_)) => Decimal::prefix(text).ok_or_else(long)?,
        (value, kind) => match value.number(kind)? {
            Some(Number::Double(number)) => Decimal::prefix(&format!("{number:e}")).ok_or_else(long)?,
            Some(number) => number.to_decimal().ok_or_else(long)?,
            None => return Ok(0),
        },
    };
    if exact.scale > 6 {
        return Err(Refusal::new("an interval of less than microseconds"));
    }
    let micros = i64::try_from(exact.rounded(6)?.units()).map_err(|_| long())?;
    if micros.abs() < 1 << 60 { Ok(micros) } else { Err(long()) }
}

/// `1:30` of a unit of several parts; a text of fewer numbers has the last ones. `None` is NULL.
fn composite(parts: &[Part], text: &str) -> Result<Option<Interval>, Refusal> {
    let text = text.trim_start_matches([' ', '\t', '\n', '\r', '\u{b}', '\u{c}']);
    let (negative, text) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text),
    };
    let mut numbers: Vec<&str> =
        text.split(|letter: char| !letter.is_ascii_digit()).filter(|number| !number.is_empty()).collect();
    if numbers.len() > parts.len() {
        return Ok(None);
    }
    // An empty text is a zero.
    if numbers.is_empty() {
        numbers.push("0");
    }
    let mut interval = Interval { months: 0, micros: 0 };
    for (part, number) in parts[parts.len() - numbers.len()..].iter().zip(&numbers) {
        if number.len() > 9 || (*part == MICRO && number.len() > 6) {
            return Err(long());
        }
        let mut count: i64 = number.parse().map_err(|_| long())?;
        if *part == MICRO && number.len() < 6 {
            count *= 10i64.pow(6 - number.len() as u32);
        }
        match part {
            Part::Months(each) => interval.months += count * each,
            Part::Micros(each) => {
                let micros = count.checked_mul(*each).and_then(|micros| micros.checked_add(interval.micros));
                interval.micros = micros.ok_or_else(long)?;
            }
        }
    }
    Ok(Some(if negative { interval.negated() } else { interval }))
}

impl Interval {
    fn negated(self) -> Interval {
        Interval { months: -self.months, micros: -self.micros }
    }

    /// A moment later; `None` if it is out of the range of dates.
    fn after(self, micros: i64) -> Result<Option<i64>, Refusal> {
        let moved = match self.months {
            0 => micros.checked_add(self.micros),
            count => months_later(micros, count),
        };
        match moved.filter(|moved| (YEARS.0..=YEARS.1).contains(moved)) {
            // The servers give up on the year 0 in different ways.
            Some(micros) if Civil::of_micros(micros).year == 0 => Err(Refusal::new("a date in the year 0")),
            moved => Ok(moved),
        }
    }
}

/// The same day of another month, or its last.
fn months_later(micros: i64, count: i64) -> Option<i64> {
    let civil = Civil::of_micros(micros);
    let months = (civil.year * 12 + civil.month - 1).checked_add(count)?;
    let (year, month) = (months.div_euclid(12), months.rem_euclid(12) + 1);
    let day = civil.day.min(calendar::month_days(year, month));
    Some(calendar::days(year, month, day)? * DAY + civil.micros)
}

/// `DATE_ADD` and `DATE_SUB`: a date plus or minus an interval.
pub(in crate::expression) fn shifted(
    of: Typed,
    count: Typed,
    name: &str,
    negative: bool,
    rules: &Rules,
) -> Result<Typed, Refusal> {
    let (unit, rules) = (unit(name)?, *rules);
    let kinds = (of.kind.clone(), count.kind.clone());
    if !matches!(kinds.1, Kind::Null | Kind::Text(_)) && !kinds.1.is_number() {
        return Err(Refusal::new(format!("an interval that is {}", kinds.1)));
    }
    let digits = unit.fsp(&kinds.1);
    let result = match &kinds.0 {
        Kind::Date if unit.is_of_days() => Kind::Date,
        Kind::Date => Kind::DateTime { fsp: digits },
        Kind::DateTime { fsp } => Kind::DateTime { fsp: digits.max(*fsp) },
        Kind::Time { fsp } if !rules.mysql || !unit.has_days() => Kind::Time { fsp: digits.max(*fsp) },
        Kind::Time { fsp } => Kind::DateTime { fsp: digits.max(*fsp) },
        Kind::Null | Kind::Text(_) => text(),
        kind if kind.is_number() && !matches!(kind, Kind::Year | Kind::Bit { .. }) => text(),
        other => return Err(Refusal::new(format!("{other} plus an interval"))),
    };
    // MariaDB shows the digits of the operand, MySQL all or none.
    let shown = if rules.mysql { None } else { Some(digits.max(fsp(&of, As::Date, &rules)?)) };
    let kind = result.clone();
    let has_clock = !unit.is_of_days();
    Ok(Typed::call(kind, vec![of, count], move |values| {
        if values[0].is_null() {
            return Ok(Datum::Null);
        }
        let Some(interval) = unit.interval(&values[1], &kinds.1)? else { return Ok(Datum::Null) };
        let interval = if negative { interval.negated() } else { interval };
        if let (Datum::Time(micros), Kind::Time { .. }) = (&values[0], &result) {
            return later_time(*micros, interval, &unit, &rules);
        }
        let Some((civil, has_time)) = date(&values[0], &kinds.0, &rules)? else { return Ok(Datum::Null) };
        let Some(micros) = civil.since_epoch().filter(|_| !civil.has_zeros()) else { return Ok(Datum::Null) };
        let Some(moved) = interval.after(micros)? else { return Ok(Datum::Null) };
        Ok(match result {
            Kind::Date => Datum::Date(moved.div_euclid(DAY)),
            Kind::DateTime { .. } => Datum::DateTime(moved),
            _ if !has_time && !has_clock => Datum::Text(calendar::date_text(moved.div_euclid(DAY))),
            _ => {
                let all = if moved.rem_euclid(SECOND) == 0 { 0 } else { 6 };
                Datum::Text(calendar::date_time_text(moved, shown.unwrap_or(all)))
            }
        })
    }))
}

/// A TIME plus an interval.
fn later_time(micros: i64, interval: Interval, unit: &Unit, rules: &Rules) -> Result<Datum, Refusal> {
    if unit.is_months() || unit.parts == [Part::Micros(7 * DAY)] {
        return Ok(Datum::Null);
    }
    let moved = micros.checked_add(interval.micros).ok_or_else(long)?;
    if micros < 0 && moved == 0 && !rules.mysql {
        return Err(Refusal::new("a negative TIME of nothing"));
    }
    let most = if rules.mysql { MAX_TIME } else { MAX_TIME + 999_999 };
    Ok(if moved.abs() > most { Datum::Null } else { Datum::Time(moved) })
}

/// `TIMESTAMPDIFF`: whole units from the first to the second.
pub(super) fn difference(name: &str, operands: Vec<Typed>, rules: &Rules) -> Result<Typed, Refusal> {
    let unit = match unit(name)?.parts {
        [part] => *part,
        _ => return Err(Refusal::new(format!("a difference in units of {name}"))),
    };
    let kinds = (operands[0].kind.clone(), operands[1].kind.clone());
    let rules = *rules;
    if rules.mysql && (matches!(kinds.0, Kind::Time { .. }) || matches!(kinds.1, Kind::Time { .. })) {
        return Err(Refusal::new("a TIME as a date"));
    }
    Ok(Typed::call(Kind::Int { unsigned: false }, operands, move |values| {
        let (from, to) = (moment(&values[0], &kinds.0, &rules)?, moment(&values[1], &kinds.1, &rules)?);
        let (Some(from), Some(to)) = (from, to) else { return Ok(Datum::Null) };
        Ok(Datum::Int(match unit {
            Part::Micros(each) => (to - from) / each,
            Part::Months(each) => {
                let (early, late, sign) = if from <= to { (from, to, 1) } else { (to, from, -1) };
                let parts = |micros: i64| {
                    let civil = Civil::of_micros(micros);
                    (civil.year * 12 + civil.month, civil.day * DAY + civil.micros)
                };
                let ((early_months, early_rest), (late_months, late_rest)) = (parts(early), parts(late));
                sign * ((late_months - early_months - i64::from(late_rest < early_rest)) / each)
            }
        }))
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn months_end_with_their_last_day() {
        let day = |year, month, day| calendar::days(year, month, day).unwrap() * DAY;
        assert_eq!(months_later(day(2024, 1, 31), 1), Some(day(2024, 2, 29)));
        assert_eq!(months_later(day(2024, 2, 29), -12), Some(day(2023, 2, 28)));
        assert_eq!(months_later(day(9999, 12, 31), 1), None);
    }

    #[test]
    fn intervals_of_several_parts_are_read_from_the_right() {
        let read = |name: &str, text: &str| composite(unit(name).unwrap().parts, text).unwrap();
        let micros = |micros| Some(Interval { months: 0, micros });
        assert_eq!(read("minute_second", "1:30"), micros(90 * SECOND));
        assert_eq!(read("day_second", "-1:30"), micros(-90 * SECOND));
        assert_eq!(read("second_microsecond", "1.5"), micros(1_500_000));
        assert_eq!(read("year_month", "1-2"), Some(Interval { months: 14, micros: 0 }));
        assert_eq!(read("minute_second", "1:2:3"), None);
    }
}
