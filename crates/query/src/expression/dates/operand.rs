//! Operands of any type as dates and times.

use super::civil::Civil;
use super::spelling::{self, clipped};
use crate::expression::calendar::{DAY, MAX_TIME};
use crate::expression::datum::{Datum, Number};
use crate::expression::node::{Node, Typed};
use crate::expression::{Kind, Refusal, Rules};
use crate::relation::zero_date;

const SECOND: i64 = 1_000_000;

/// How a YEAR is taken where a date or a time is stored.
const YEAR_NUMBER: Kind = Kind::Int { unsigned: true };
/// What is stored of what is no date.
const NO_DATE: Civil = Civil { year: 0, month: 0, day: 0, micros: 0 };

/// A date and time, or a time, whichever a value is.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Moment {
    /// The flag says whether it has a time.
    Date(Civil, bool),
    Time(i64),
}

/// A value as a date and time, of which month and day may be zero; `None` is NULL. The flag says whether it has a time.
///
/// # Errors
/// If it is not certain how the server reads it.
pub(super) fn date(value: &Datum, kind: &Kind, rules: &Rules) -> Result<Option<(Civil, bool)>, Refusal> {
    Ok(match (value, kind) {
        (Datum::Null, _) => None,
        (Datum::Date(days), _) => Some((stored(Civil::of_days(*days))?, false)),
        (Datum::DateTime(micros), _) => Some((stored(Civil::of_micros(*micros))?, true)),
        (Datum::Time(micros), _) => Some((Civil::of_micros(of_today(*micros, rules)?), true)),
        (Datum::Text(text), Kind::Text(_) | Kind::Choice(_)) => {
            spelling::date(text, rules)?.map(|spelled| (spelled.civil, spelled.has_time))
        }
        (value, Kind::Year) => match value.whole(kind)? {
            Some(year) => {
                let part = i64::from(rules.mysql);
                let civil = Civil { year: year as i64, month: part, day: part, micros: 0 };
                if civil.year == 0 {
                    return Err(Refusal::new("the year 0000 as a date"));
                }
                Some((civil, true))
            }
            None => None,
        },
        (value, kind) if kind.is_number() && !matches!(kind, Kind::Bit { .. }) => match seconds(value, kind)?
        {
            Some((0, ..0)) if rules.mysql => return Err(Refusal::new("a negative number as a date")),
            None | Some((_, ..0)) => None,
            Some((number, micros)) => of_number(number, micros, false, rules)?,
        },
        _ => return Err(Refusal::new(format!("{kind} as a date"))),
    })
}

/// A stored date. The servers compute with the 30th of February as if the month had it.
fn stored(civil: Civil) -> Result<Civil, Refusal> {
    let Civil { year, month, day, .. } = civil;
    match civil.has_zeros() || civil.days().is_some() {
        true => Ok(civil),
        false => Err(Refusal::new(format!("the date {year:04}-{month:02}-{day:02}, which no calendar has"))),
    }
}

/// A date that a calendar has, in microseconds since 1970-01-01; `None` is NULL.
pub(super) fn moment(value: &Datum, kind: &Kind, rules: &Rules) -> Result<Option<i64>, Refusal> {
    let Some((civil, _)) = date(value, kind, rules)? else { return Ok(None) };
    match civil.year {
        // The servers' calendar has a day more in the year 0.
        0 if !civil.has_zeros() => Err(Refusal::new("a date in the year 0")),
        _ => Ok(civil.since_epoch().filter(|_| !civil.has_zeros())),
    }
}

/// A value as a DATE or DATETIME stores it, in microseconds since 1970-01-01: what is no date becomes the zero date. By
/// their default modes MariaDB keeps dates with a zero month or day, and MySQL does not.
///
/// # Errors
/// If it is not certain how the server reads it.
pub(in crate::expression) fn moment_to_store(
    value: &Datum,
    kind: &Kind,
    rules: &Rules,
) -> Result<i64, Refusal> {
    let found = match kind {
        kind if kind.is_number() && !matches!(kind, Kind::Bit { .. }) => {
            let number = seconds(value, if *kind == Kind::Year { &YEAR_NUMBER } else { kind })?;
            match number {
                Some((number, micros)) => of_number(number, micros, true, rules)?,
                None => None,
            }
        }
        kind => date(value, kind, rules)?,
    };
    let civil = found.map_or(NO_DATE, |(civil, _)| civil);
    match civil.has_zeros() {
        true if rules.mysql && !civil.is_zero() => Ok(zero_date::days(0, 0, 0) * DAY),
        true => Ok(zero_date::days(civil.year, civil.month, civil.day) * DAY + civil.micros),
        // The servers' calendar has a day more in the year 0.
        false if civil.year == 0 => Err(Refusal::new("a date in the year 0")),
        false => Ok(civil.since_epoch().unwrap_or(zero_date::days(0, 0, 0) * DAY)),
    }
}

/// A value as a TIME stores it: what is no time becomes 00:00:00.
///
/// # Errors
/// If it is not certain how the server reads it.
pub(in crate::expression) fn time_to_store(
    value: &Datum,
    kind: &Kind,
    rules: &Rules,
) -> Result<i64, Refusal> {
    if kind.is_number() && !matches!(kind, Kind::Bit { .. }) {
        let kind = if *kind == Kind::Year { &YEAR_NUMBER } else { kind };
        match seconds(value, kind)? {
            Some((number @ 10_000_000_000.., micros)) => {
                return Ok(of_number(number, micros, true, rules)?.map_or(0, |(civil, _)| civil.micros));
            }
            Some((..-8_385_959, _)) if rules.mysql => return Ok(-MAX_TIME),
            Some((8_385_960.., _)) if rules.mysql => return Ok(MAX_TIME),
            _ => {}
        }
        return Ok(time(value, kind, rules)?.unwrap_or(0));
    }
    Ok(time(value, kind, rules)?.unwrap_or(0))
}

/// A value as a time; `None` is NULL.
///
/// # Errors
/// If it is not certain how the server reads it.
pub(super) fn time(value: &Datum, kind: &Kind, rules: &Rules) -> Result<Option<i64>, Refusal> {
    Ok(match (value, kind) {
        (Datum::Null, _) => None,
        (Datum::Date(_), _) => Some(0),
        (Datum::DateTime(micros), _) => Some(micros.rem_euclid(DAY)),
        (Datum::Time(micros), _) => Some(*micros),
        (Datum::Text(text), Kind::Text(_) | Kind::Choice(_)) => {
            spelling::time(text, rules)?.map(|spelled| spelled.micros)
        }
        (value, Kind::Year) => value.whole(kind)?.map(|_| 0),
        (value, kind) if kind.is_number() && !matches!(kind, Kind::Bit { .. }) => {
            let Some((number, micros)) = seconds(value, kind)? else { return Ok(None) };
            match number {
                10_000_000_000.. => of_number(number, micros, false, rules)?.map(|(civil, _)| civil.micros),
                ..-8_385_959 | 8_385_960.. => return Err(Refusal::new(format!("the time {number}"))),
                _ => of_clock(number, micros, rules),
            }
        }
        _ => return Err(Refusal::new(format!("{kind} as a time"))),
    })
}

/// A value as a date and time or as a time, as the functions read it that take both.
///
/// # Errors
/// If it is not certain how the server reads it.
pub(super) fn either(value: &Datum, kind: &Kind, rules: &Rules) -> Result<Option<Moment>, Refusal> {
    let text = match (value, kind) {
        (Datum::Null, _) => return Ok(None),
        (Datum::Time(micros), _) => return Ok(Some(Moment::Time(*micros))),
        (Datum::Text(text), Kind::Text(_) | Kind::Choice(_)) => text,
        (Datum::Date(_) | Datum::DateTime(_), _) => {
            return Ok(date(value, kind, rules)?.map(|(civil, has_time)| Moment::Date(civil, has_time)));
        }
        _ => return Err(Refusal::new(format!("{kind} as a date or a time"))),
    };
    let odd = || Err(Refusal::new(format!("a date or a time spelled '{text}'")));
    let as_time = |text: &str| match spelling::time(text, rules)? {
        Some(spelled) if spelled.is_clipped || !spelled.whole => odd(),
        spelled => Ok(spelled.map(|spelled| Moment::Time(spelled.micros))),
    };
    if spelling::is_time(text) {
        return as_time(text);
    }
    let has_offset = text.get(19..).is_some_and(|rest| rest.contains(['+', '-']));
    match spelling::date(text, rules)?.filter(|spelled| spelled.has_time || rules.mysql) {
        Some(spelled) if !spelled.whole || spelled.civil.has_zeros() || has_offset => odd(),
        Some(spelled) if !rules.mysql && !spelled.is_set_off => odd(),
        None if rules.mysql && !is_plain_time(text) => odd(),
        Some(spelled) if text.trim().len() >= 12 || rules.mysql => {
            Ok(Some(Moment::Date(spelled.civil, spelled.has_time)))
        }
        _ => as_time(text),
    }
}

/// Whether a text that is no date is read as a time: `1 10:11:12`, `1011.5`.
fn is_plain_time(text: &str) -> bool {
    let text = text.strip_prefix('-').unwrap_or(text);
    let is_known = text.bytes().all(|byte| byte.is_ascii_digit() || matches!(byte, b':' | b' ' | b'.'));
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    is_known && digits < 5 && text.matches('.').count() <= 1
}

/// A time as the date and time of today.
fn of_today(micros: i64, rules: &Rules) -> Result<i64, Refusal> {
    let now = rules.now_micros.ok_or_else(|| Refusal::new("the current date"))?;
    Ok(rules.zone.local(now)?.div_euclid(DAY) * DAY + micros)
}

/// The whole part of a number, and microseconds of its fraction, both with its sign; `None` is NULL.
fn seconds(value: &Datum, kind: &Kind) -> Result<Option<(i64, i64)>, Refusal> {
    let far = || Refusal::new("a number out of the range of dates");
    let exact = match value.number(kind)? {
        None => return Ok(None),
        Some(Number::Double(number)) if number.fract() != 0.0 || number.abs() >= 1e15 => {
            return Err(Refusal::new("a DOUBLE with a fraction as a date"));
        }
        Some(Number::Double(number)) => return Ok(Some((number as i64, 0))),
        Some(number) => number.to_decimal().ok_or_else(far)?,
    };
    if exact.scale > 6 {
        return Err(Refusal::new("a number of more than six digits behind the point as a date"));
    }
    let scaled = exact.rounded(6)?.units();
    let whole = i64::try_from(scaled / i128::from(SECOND)).map_err(|_| far())?;
    Ok(Some((whole, (scaled % i128::from(SECOND)) as i64)))
}

/// 20240105, 240105, 20240105101112, 240105101112; `None` is NULL, or no date where one is stored.
fn of_number(
    number: i64,
    micros: i64,
    is_stored: bool,
    rules: &Rules,
) -> Result<Option<(Civil, bool)>, Refusal> {
    let is_strict = rules.mysql && !is_stored;
    let odd = || Err(Refusal::new(format!("the date {number}")));
    let century = |number: i64, unit: i64| match number / unit {
        0..=69 => Some(number + 20 * 100 * unit),
        70..=99 => Some(number + 19 * 100 * unit),
        _ => None,
    };
    const DATE: i64 = 1_000_000;
    let (full, has_time) = match number {
        ..0 => return Ok(None),
        0..101 if is_strict => return odd(),
        // A fraction of a second may stand beside the zero date.
        0 => (0, micros != 0),
        1..101 => return Ok(None),
        691_232..700_101 => return odd(),
        101..1_000_000 => (century(number, 10_000).unwrap_or(0) * DATE, false),
        1_000_000..10_000_101 => return odd(),
        10_000_101..100_000_000 => (number * DATE, false),
        100_000_000..1_000_000_000_000 => match century(number, 10_000_000_000) {
            Some(full) if number >= 101_000_000 => (full, true),
            _ => return odd(),
        },
        1_000_000_000_000..10_000_000_000_000 => return odd(),
        _ => (number, true),
    };
    let (date, clock) = (full / DATE, full % DATE);
    let (hour, minute, second) = (clock / 10_000, clock / 100 % 100, clock % 100);
    let micros = if has_time { ((hour * 60 + minute) * 60 + second) * SECOND + micros } else { 0 };
    let civil = Civil { year: date / 10_000, month: date / 100 % 100, day: date % 100, micros };
    let is_valid = civil.is_possible() && hour <= 23 && minute <= 59 && second <= 59;
    match (is_valid, is_strict) {
        (true, true) if civil.has_zeros() => odd(),
        (true, _) => Ok(Some((civil, has_time))),
        // Some functions of MySQL take what is no date.
        (false, true) => odd(),
        (false, false) => Ok(None),
    }
}

/// 101112; `None` is NULL.
fn of_clock(number: i64, micros: i64, rules: &Rules) -> Option<i64> {
    let sign = if number < 0 || micros < 0 { -1 } else { 1 };
    let number = number.abs();
    let (hour, minute, second) = (number / 10_000, number / 100 % 100, number % 100);
    if minute > 59 || second > 59 {
        return None;
    }
    let span = ((hour * 60 + minute) * 60 + second) * SECOND + micros.abs();
    match rules.mysql && span > MAX_TIME {
        true => None,
        false => Some(sign * clipped(span, rules)),
    }
}

/// Digits of a second that are shown of a number of seconds.
pub(super) fn digits_of_seconds(kind: &Kind, rules: &Rules) -> u8 {
    match kind {
        Kind::Choice(_) if !rules.mysql => 0,
        Kind::Double { decimals: Some(decimals) } => (*decimals).min(6),
        kind => kind.scale().map_or(6, |scale| scale.min(6)),
    }
}

/// What an operand is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum As {
    Date,
    Time,
    Either,
}

/// Digits of a second that a date or a time made of an operand has.
pub(super) fn fsp(of: &Typed, wanted: As, rules: &Rules) -> Result<u8, Refusal> {
    Ok(match &of.kind {
        Kind::Time { fsp } | Kind::DateTime { fsp } => *fsp,
        Kind::Decimal { scale } => (*scale).min(6),
        Kind::Double { decimals: Some(decimals) } => (*decimals).min(6),
        Kind::Double { .. } | Kind::Float => 6,
        Kind::Choice(_) if !rules.mysql => 0,
        Kind::Text(_) | Kind::Choice(_) => match constant(of) {
            None => 6,
            Some(Ok(Datum::Text(text))) => spelled_fsp(&text, wanted, rules)?,
            Some(Ok(_)) => 0,
            Some(Err(refusal)) => return Err(refusal),
        },
        _ => 0,
    })
}

fn spelled_fsp(text: &str, wanted: As, rules: &Rules) -> Result<u8, Refusal> {
    let as_time = match wanted {
        As::Date => false,
        As::Time => true,
        As::Either => spelling::is_time(text) || spelling::date(text, rules)?.is_none(),
    };
    let found = match as_time {
        true => spelling::time(text, rules)?.map(|spelled| spelled.fsp),
        false => spelling::date(text, rules)?.map(|spelled| spelled.fsp),
    };
    Ok(found.unwrap_or(6))
}

/// The value of an operand that is the same in all rows; `None` if it is of columns.
pub(super) fn constant(of: &Typed) -> Option<Result<Datum, Refusal>> {
    fn is_constant(of: &Typed) -> bool {
        match &of.node {
            Node::Input(..) | Node::Result(_) | Node::Stored(..) => false,
            Node::Literal(_) => true,
            Node::Branch(_, inner) | Node::Truth(inner) => is_constant(inner),
            Node::Call(_, operands) | Node::Logical(_, operands) | Node::Coalesce(operands) => {
                operands.iter().all(is_constant)
            }
            Node::Case(whens, otherwise) => {
                whens.iter().all(|(condition, result)| is_constant(condition) && is_constant(result))
                    && otherwise.as_deref().is_none_or(is_constant)
            }
        }
    }
    is_constant(of).then(|| of.value(&[]))
}
