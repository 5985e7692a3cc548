//! Comparisons of dates and times with each other, with texts and with numbers.
//!
//! MariaDB reads the other side as a date; what is none is the date of zeros, before all others. MySQL gives an error
//! for a constant that is none, compares numbers of columns as numbers, and cuts the time off the text of a column that
//! is compared with a DATE.

use std::cmp::Ordering;

use super::civil::Civil;
use super::operand::{constant, date, time};
use super::spelling;
use crate::expression::datum::Datum;
use crate::expression::node::Typed;
use crate::expression::{Kind, Refusal, Rules};

/// How a date or a time is compared.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(in crate::expression) enum Way {
    /// As dates and times; only the dates if `by_days`. A text that is none counts as zeros if `is_lenient`.
    Moments {
        by_days: bool,
        is_lenient: bool,
    },
    Times,
    Numbers,
}

/// The way of comparing a date or a time with another value; `None` if neither is one.
///
/// # Errors
/// If it is not certain how the server compares them.
pub(in crate::expression) fn way(left: &Typed, right: &Typed, rules: &Rules) -> Result<Option<Way>, Refusal> {
    let (of, other) = match (left.kind.is_temporal(), right.kind.is_temporal()) {
        (false, false) => return Ok(None),
        (false, true) => (right, left),
        _ => (left, right),
    };
    let is_time = matches!(of.kind, Kind::Time { .. });
    let refused = || Err(Refusal::new(format!("a comparison of {} with {}", left.kind, right.kind)));
    Ok(Some(match &other.kind {
        Kind::Time { .. } if is_time => Way::Times,
        kind if kind.is_temporal() => Way::Moments { by_days: false, is_lenient: false },
        Kind::Text(_) | Kind::Choice(_) if is_time => Way::Times,
        Kind::Text(_) | Kind::Choice(_) => {
            let is_constant = constant(other).is_some();
            Way::Moments {
                by_days: rules.mysql && !is_constant && of.kind == Kind::Date,
                is_lenient: !(rules.mysql && is_constant),
            }
        }
        Kind::Year | Kind::Bit { .. } => return refused(),
        kind if kind.is_number() && !rules.mysql && is_time => Way::Times,
        kind if kind.is_number() && !rules.mysql => Way::Moments { by_days: false, is_lenient: true },
        kind if kind.is_number() => match constant(other) {
            None => Way::Numbers,
            Some(_) if matches!(kind, Kind::Decimal { scale: 1.. }) => return refused(),
            Some(value) => {
                let value = value?;
                match is_time {
                    true => match time(&value, kind, rules)? {
                        Some(_) => Way::Times,
                        None => return refused(),
                    },
                    false => match date(&value, kind, rules) {
                        Ok(Some(_)) => Way::Moments { by_days: of.kind == Kind::Date, is_lenient: false },
                        // A number that is no date is compared as a number, but with a DATETIME if it nearly is one.
                        _ if of.kind != Kind::Date && number(&value) >= 1e7 => return refused(),
                        _ => Way::Numbers,
                    },
                }
            }
        },
        _ => return refused(),
    }))
}

/// Compares two values that are not NULL; `None` is NULL.
///
/// # Errors
/// If it is not certain how the server compares them.
pub(in crate::expression) fn order(
    way: Way,
    left: (&Datum, &Kind),
    right: (&Datum, &Kind),
    rules: &Rules,
) -> Result<Option<Ordering>, Refusal> {
    match way {
        Way::Moments { by_days, is_lenient } => {
            let (left, right) = (packed(left, is_lenient, rules)?, packed(right, is_lenient, rules)?);
            Ok(Some(match by_days {
                true => (left.0, left.1, left.2).cmp(&(right.0, right.1, right.2)),
                false => left.cmp(&right),
            }))
        }
        Way::Times => Ok(Some(span(left, rules)?.cmp(&span(right, rules)?))),
        Way::Numbers => {
            let (Some(left), Some(right)) = (left.0.number(left.1)?, right.0.number(right.1)?) else {
                return Ok(None);
            };
            Ok(match (left.to_decimal(), right.to_decimal()) {
                (Some(left), Some(right)) => {
                    let (left, right) = left.aligned(right)?;
                    Some(left.unscaled.cmp(&right.unscaled))
                }
                _ => left.to_f64().partial_cmp(&right.to_f64()),
            })
        }
    }
}

/// The parts of a date and time in the order in which they compare.
fn packed(
    (value, kind): (&Datum, &Kind),
    is_lenient: bool,
    rules: &Rules,
) -> Result<(i64, i64, i64, i64), Refusal> {
    let zero = Civil { year: 0, month: 0, day: 0, micros: 0 };
    let civil = match (date(value, kind, rules)?, value) {
        // A constant with a zero month or day is an error of MySQL.
        (Some((civil, _)), Datum::Text(text)) if !is_lenient && civil.has_zeros() => {
            return Err(Refusal::new(format!("a date spelled '{text}'")));
        }
        (Some((civil, _)), _) => civil,
        // A day that a month does not have is compared all the same.
        (None, Datum::Text(text)) if is_lenient && !rules.mysql && parts(text).is_some() => {
            parts(text).unwrap_or(zero)
        }
        (None, Datum::Text(text)) if is_lenient && !may_be_date(text) => zero,
        (None, Datum::Text(text)) => return Err(Refusal::new(format!("a date spelled '{text}'"))),
        (None, _) => return Err(Refusal::new("a number that is no date")),
    };
    Ok((civil.year, civil.month, civil.day, civil.micros))
}

/// The parts of a date of a usual spelling whose month and day are in range.
fn parts(text: &str) -> Option<Civil> {
    let (date, clock) = text.split_once(' ').unwrap_or((text, "00:00:00"));
    let numbers = |text: &str, separator: char, lengths: [usize; 3]| -> Option<[i64; 3]> {
        let parts: Vec<&str> = text.split(separator).collect();
        let fits = parts.len() == 3 && parts.iter().zip(lengths).all(|(part, length)| part.len() == length);
        let numbers: Option<Vec<i64>> = parts
            .iter()
            .map(|part| part.bytes().all(|digit| digit.is_ascii_digit()).then(|| part.parse().ok())?)
            .collect();
        numbers.filter(|_| fits)?.try_into().ok()
    };
    let [year, month, day] = numbers(date, '-', [4, 2, 2])?;
    let [hour, minute, second] = numbers(clock, ':', [2, 2, 2])?;
    let is_clock = hour < 24 && minute < 60 && second < 60;
    let micros = ((hour * 60 + minute) * 60 + second) * 1_000_000;
    ((1..=12).contains(&month) && (1..=31).contains(&day) && is_clock).then_some(Civil {
        year,
        month,
        day,
        micros,
    })
}

fn number(value: &Datum) -> f64 {
    match value {
        Datum::Int(number) => *number as f64,
        Datum::UInt(number) => *number as f64,
        Datum::Double(number) => *number,
        _ => f64::INFINITY,
    }
}

/// Whether a text has the numbers of a date.
fn may_be_date(text: &str) -> bool {
    let numbers = text.split(|letter: char| !letter.is_ascii_digit()).filter(|number| !number.is_empty());
    text.trim_start().starts_with(|letter: char| letter.is_ascii_digit())
        && (numbers.count() >= 3 || text.bytes().filter(u8::is_ascii_digit).count() >= 5)
}

/// Microseconds of a time.
fn span((value, kind): (&Datum, &Kind), rules: &Rules) -> Result<i64, Refusal> {
    if let Datum::Text(text) = value {
        let odd = || Refusal::new(format!("a time spelled '{text}'"));
        let spelled = spelling::time(text, rules)?.filter(|spelled| spelled.whole).ok_or_else(odd)?;
        // With a date in the text, MySQL compares with the time of today.
        let is_plain = spelling::is_time(text) || spelling::is_days_and_time(text);
        return if spelled.is_clipped || (rules.mysql && !is_plain) {
            Err(odd())
        } else {
            Ok(spelled.micros)
        };
    }
    time(value, kind, rules)?.ok_or_else(|| Refusal::new("a number that is no time"))
}
