//! Numbers of parts of dates and times: `YEAR`, `EXTRACT`, `WEEK`, `TO_DAYS` and their like.

use super::civil::Civil;
use super::operand::{As, date, fsp, moment, time};
use super::spelling::is_time as is_spelled_time;
use super::weeks::{Mode, week};
use crate::expression::calendar::{self, DAY};
use crate::expression::datum::{Datum, Decimal};
use crate::expression::node::Typed;
use crate::expression::{Kind, Refusal, Rules};

const SECOND: i64 = 1_000_000;
const SIGNED: Kind = Kind::Int { unsigned: false };
/// Days from 0000-01-01 to 1970-01-01, one more than a calendar has: the server's day numbers begin with 1.
pub(super) const DAYS_TO_EPOCH: i64 = 719_528;

/// A function of one date or time that gives a number; `None` if there is none of that name.
pub(super) fn function(name: &str, of: &Typed, rules: &Rules) -> Result<Option<Typed>, Refusal> {
    if let Some(part) = of_date(name) {
        let (kind, rules) = (of.kind.clone(), *rules);
        if rules.mysql && matches!(kind, Kind::Time { .. }) {
            return Err(Refusal::new("a TIME as a date"));
        }
        let compute = move |values: &[Datum]| {
            Ok(match date(&values[0], &kind, &rules)? {
                None => Datum::Null,
                Some((civil, _)) => Datum::Int(part(&civil)),
            })
        };
        return Ok(Some(Typed::call(SIGNED, vec![of.clone()], compute)));
    }
    if let Some(part) = of_days(name) {
        let (kind, rules) = (of.kind.clone(), *rules);
        if rules.mysql && matches!(kind, Kind::Time { .. }) {
            return Err(Refusal::new("a TIME as a date"));
        }
        let compute = move |values: &[Datum]| {
            let Some(micros) = moment(&values[0], &kind, &rules)? else { return Ok(Datum::Null) };
            Ok(Datum::Int(part(micros)))
        };
        return Ok(Some(Typed::call(SIGNED, vec![of.clone()], compute)));
    }
    if let Some(part) = of_clock(name) {
        let (kind, rules) = (of.kind.clone(), *rules);
        let compute = move |values: &[Datum]| {
            Ok(match time(&values[0], &kind, &rules)? {
                None => Datum::Null,
                Some(micros) => Datum::Int(part(micros.abs())),
            })
        };
        return Ok(Some(Typed::call(SIGNED, vec![of.clone()], compute)));
    }
    match name {
        "time_to_sec" => time_to_sec(of.clone(), rules).map(Some),
        _ => Ok(None),
    }
}

/// Parts that a date with a zero month or day has, too.
fn of_date(name: &str) -> Option<fn(&Civil) -> i64> {
    Some(match name {
        "year" => |civil| civil.year,
        "month" => |civil| civil.month,
        "day" | "dayofmonth" => |civil| civil.day,
        "quarter" => |civil| (civil.month + 2) / 3,
        _ => return None,
    })
}

/// Numbers of a day that a calendar has.
fn of_days(name: &str) -> Option<fn(i64) -> i64> {
    Some(match name {
        "dayofweek" => |micros| (micros.div_euclid(DAY) + 4).rem_euclid(7) + 1,
        "weekday" => |micros| (micros.div_euclid(DAY) + 3).rem_euclid(7),
        "dayofyear" => |micros| day_of_year(&Civil::of_micros(micros)),
        "to_days" => |micros| micros.div_euclid(DAY) + DAYS_TO_EPOCH,
        "to_seconds" => |micros| micros.div_euclid(SECOND) + DAYS_TO_EPOCH * 86_400,
        "weekofyear" => |micros| week(&Civil::of_micros(micros), micros.div_euclid(DAY), Mode::of(3)).0,
        _ => return None,
    })
}

/// 1 to 366.
pub(super) fn day_of_year(civil: &Civil) -> i64 {
    let days = |month, day| calendar::days(civil.year, month, day).unwrap_or(0);
    days(civil.month, civil.day) - days(1, 1) + 1
}

fn of_clock(name: &str) -> Option<fn(i64) -> i64> {
    Some(match name {
        "hour" => |micros| calendar::clock(micros).0,
        "minute" => |micros| calendar::clock(micros).1,
        "second" => |micros| calendar::clock(micros).2,
        "microsecond" => |micros| calendar::clock(micros).3,
        _ => return None,
    })
}

/// MariaDB keeps the fraction, MySQL cuts it.
fn time_to_sec(of: Typed, rules: &Rules) -> Result<Typed, Refusal> {
    let (from, rules) = (of.kind.clone(), *rules);
    let fsp = if rules.mysql { 0 } else { fsp(&of, As::Time, &rules)? };
    let kind = if fsp == 0 { SIGNED } else { Kind::Decimal { scale: fsp } };
    Ok(Typed::call(kind, vec![of], move |values| {
        Ok(match time(&values[0], &from, &rules)? {
            None => Datum::Null,
            Some(micros) if micros.abs() > calendar::MAX_TIME && !rules.mysql => {
                return Err(Refusal::new("a TIME out of range"));
            }
            Some(micros) if fsp == 0 => Datum::Int(micros / SECOND),
            Some(micros) => {
                let exact = Decimal::new(micros.into(), 6);
                Datum::Decimal(exact.truncated(fsp)?)
            }
        })
    }))
}

/// `WEEK` and `YEARWEEK` with a mode or without.
pub(super) fn weeks(name: &str, operands: Vec<Typed>, rules: &Rules) -> Result<Typed, Refusal> {
    let kinds: Vec<Kind> = operands.iter().map(|operand| operand.kind.clone()).collect();
    let (rules, by_year) = (*rules, name == "yearweek");
    if rules.mysql && matches!(kinds[0], Kind::Time { .. }) {
        return Err(Refusal::new("a TIME as a date"));
    }
    Ok(Typed::call(SIGNED, operands, move |values| {
        let mode = match (values.get(1), kinds.get(1)) {
            // YEARWEEK without a mode counts in mode 0 whatever the default is.
            (Some(mode), Some(kind)) => match mode.whole(kind)? {
                Some(mode) => i64::try_from(mode & 7).unwrap_or(0),
                None => return Err(Refusal::new("a mode of weeks that is NULL")),
            },
            _ if by_year => 0,
            _ => i64::from(rules.default_week_format),
        };
        let Some(micros) = moment(&values[0], &kinds[0], &rules)? else { return Ok(Datum::Null) };
        let (civil, days) = (Civil::of_micros(micros), micros.div_euclid(DAY));
        Ok(Datum::Int(match by_year {
            true => {
                let (week, year) = week(&civil, days, Mode::of(mode).of_year());
                year * 100 + week
            }
            false => week(&civil, days, Mode::of(mode)).0,
        }))
    }))
}

/// `EXTRACT` of a unit.
pub(super) fn extract(unit: &str, of: Typed, rules: &Rules) -> Result<Typed, Refusal> {
    let (kind, rules) = (of.kind.clone(), *rules);
    let name = unit.to_string();
    let has_date = matches!(unit, "year" | "quarter" | "month" | "week" | "year_month");
    let is_time = matches!(kind, Kind::Time { .. });
    if is_time && rules.mysql && (has_date || unit == "day") {
        return Err(Refusal::new("the date of a TIME"));
    }
    if is_time && unit == "week" {
        return Err(Refusal::new("the week of a TIME"));
    }
    let is_read =
        matches!(kind, Kind::Date | Kind::DateTime { .. } | Kind::Time { .. } | Kind::Text(_) | Kind::Null);
    if !is_read {
        return Err(Refusal::new(format!("EXTRACT from {kind}")));
    }
    Ok(Typed::call(SIGNED, vec![of], move |values| {
        if values[0].is_null() {
            return Ok(Datum::Null);
        }
        if let (true, Datum::Time(micros)) = (is_time, &values[0]) {
            return Ok(Datum::Int(of_span(&name, *micros, &rules)?));
        }
        // A text is read as a date first, if it is spelled in the usual way.
        if let Datum::Text(text) = &values[0]
            && !has_date
        {
            if is_spelled_time(text) || date(&values[0], &kind, &rules)?.is_none() {
                return of_text(&name, &values[0], &kind, &rules);
            }
            if !is_usual(text) {
                return Err(Refusal::new(format!("EXTRACT from '{text}'")));
            }
        }
        let Some((civil, _)) = date(&values[0], &kind, &rules)? else { return Ok(Datum::Null) };
        if name == "week" {
            let Some(days) = civil.days().filter(|_| !civil.has_zeros()) else {
                return Err(Refusal::new("the week of a date with zeros"));
            };
            return Ok(Datum::Int(week(&civil, days, Mode::of(rules.default_week_format.into())).0));
        }
        Ok(Datum::Int(of_parts(&name, &civil)?))
    }))
}

/// Whether a text is a date, perhaps with a space and a time, of which both servers read the same parts.
fn is_usual(text: &str) -> bool {
    let are_numbers = |text: &str, separator: char, counts: std::ops::RangeInclusive<usize>| {
        let parts: Vec<&str> = text.split(separator).collect();
        let is_number = |part: &&str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
        counts.contains(&parts.len()) && parts.iter().all(is_number)
    };
    let (date, clock) = text.split_once(' ').unwrap_or((text, "0:0:0"));
    let is_clock = match clock.split_once('.') {
        Some((clock, fraction)) => are_numbers(clock, ':', 3..=3) && are_numbers(fraction, ' ', 1..=1),
        None => are_numbers(clock, ':', 1..=3),
    };
    are_numbers(date, '-', 3..=3) && is_clock
}

/// A unit of a text that is a time.
fn of_text(unit: &str, value: &Datum, kind: &Kind, rules: &Rules) -> Result<Datum, Refusal> {
    match time(value, kind, rules)? {
        None => Ok(Datum::Null),
        Some(micros) if matches!(value, Datum::Text(text) if is_spelled_time(text)) => {
            if unit == "day" || micros.abs() >= DAY {
                return Err(Refusal::new("EXTRACT from the text of a time"));
            }
            Ok(Datum::Int(of_span(unit, micros, rules)?))
        }
        Some(_) => Err(Refusal::new("EXTRACT from the text of a time")),
    }
}

/// A unit of a TIME. MariaDB counts its days, MySQL has the hours instead.
fn of_span(unit: &str, micros: i64, rules: &Rules) -> Result<i64, Refusal> {
    let span = micros.abs();
    let (day, of_day) = if rules.mysql { (0, span) } else { (span / DAY, span % DAY) };
    let civil = Civil { year: 0, month: 0, day, micros: of_day };
    Ok(of_parts(unit, &civil)? * micros.signum())
}

fn of_parts(unit: &str, civil: &Civil) -> Result<i64, Refusal> {
    let (hour, minute, second, micro) = calendar::clock(civil.micros);
    let clock = hour * 10_000 + minute * 100 + second;
    let day = civil.day;
    Ok(match unit {
        "year" => civil.year,
        "quarter" => (civil.month + 2) / 3,
        "month" => civil.month,
        "day" => day,
        "hour" => hour,
        "minute" => minute,
        "second" => second,
        "microsecond" => micro,
        "year_month" => civil.year * 100 + civil.month,
        "day_hour" => day * 100 + hour,
        "day_minute" => day * 10_000 + clock / 100,
        "day_second" => day * 1_000_000 + clock,
        "day_microsecond" => (day * 1_000_000 + clock) * SECOND + micro,
        "hour_minute" => clock / 100,
        "hour_second" => clock,
        "hour_microsecond" => clock * SECOND + micro,
        "minute_second" => minute * 100 + second,
        "minute_microsecond" => (minute * 100 + second) * SECOND + micro,
        "second_microsecond" => second * SECOND + micro,
        other => return Err(Refusal::new(format!("EXTRACT of {other}"))),
    })
}
