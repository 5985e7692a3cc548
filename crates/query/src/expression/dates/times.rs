//! Functions that make dates and times: `DATE`, `TIMESTAMP`, `MAKETIME`, `ADDTIME`, `TIMEDIFF` and their like.

use super::civil::Civil;
use super::fields::DAYS_TO_EPOCH;
use super::format::text;
use super::operand::{As, Moment, date, digits_of_seconds, either, fsp, moment, time};
use super::spelling::{self, clipped};
use crate::expression::calendar::{self, DAY, MAX_TIME};
use crate::expression::datum::{Datum, Decimal, Number};
use crate::expression::node::Typed;
use crate::expression::{Kind, Refusal, Rules};
use crate::relation::zero_date;

const SECOND: i64 = 1_000_000;

/// A date that may have a zero month or day, if the server keeps it: MariaDB does, MySQL only what a calendar has.
pub(super) fn held(civil: &Civil, rules: &Rules) -> Result<Option<i64>, Refusal> {
    match (civil.since_epoch().filter(|_| !civil.has_zeros()), rules.mysql) {
        (Some(micros), _) => Ok(Some(micros)),
        (None, true) => Ok(None),
        (None, false) => Ok(Some(zero_date::days(civil.year, civil.month, civil.day) * DAY + civil.micros)),
    }
}

/// A function of one operand that gives a date or a time; `None` if there is none of that name.
pub(super) fn function(name: &str, of: &Typed, rules: &Rules) -> Result<Option<Typed>, Refusal> {
    let (from, rules) = (of.kind.clone(), *rules);
    let operands = vec![of.clone()];
    if rules.mysql && matches!(from, Kind::Time { .. }) && matches!(name, "date" | "last_day") {
        return Err(Refusal::new("a TIME as a date"));
    }
    Ok(Some(match name {
        "date" => Typed::call(Kind::Date, operands, move |values| {
            let Some((civil, _)) = date(&values[0], &from, &rules)? else { return Ok(Datum::Null) };
            Ok(held(&civil, &rules)?.map_or(Datum::Null, |micros| Datum::Date(micros.div_euclid(DAY))))
        }),
        "last_day" => Typed::call(Kind::Date, operands, move |values| {
            let Some((civil, _)) = date(&values[0], &from, &rules)? else { return Ok(Datum::Null) };
            let last = calendar::month_days(civil.year, civil.month);
            let days = calendar::days(civil.year, civil.month, last);
            Ok(days.map_or(Datum::Null, Datum::Date))
        }),
        "time" => Typed::call(Kind::Time { fsp: fsp(of, As::Time, &rules)? }, operands, move |values| {
            Ok(time(&values[0], &from, &rules)?.map_or(Datum::Null, Datum::Time))
        }),
        "timestamp" => {
            Typed::call(Kind::DateTime { fsp: fsp(of, As::Date, &rules)? }, operands, move |values| {
                let Some((civil, _)) = date(&values[0], &from, &rules)? else { return Ok(Datum::Null) };
                Ok(held(&civil, &rules)?.map_or(Datum::Null, Datum::DateTime))
            })
        }
        "from_days" => Typed::call(Kind::Date, operands, move |values| {
            if from.is_temporal() {
                return Err(Refusal::new("a date as a day"));
            }
            let Some(days) = values[0].whole(&from)? else { return Ok(Datum::Null) };
            match i64::try_from(days) {
                Ok(days @ 366..=3_652_424) => Ok(Datum::Date(days - DAYS_TO_EPOCH)),
                Ok(..366) if rules.mysql => Err(Refusal::new("a day of the year 0")),
                _ => Err(Refusal::new("a day that no calendar has")),
            }
        }),
        "sec_to_time" => sec_to_time(of.clone(), &rules)?,
        _ => return Ok(None),
    }))
}

/// Seconds as a TIME.
fn sec_to_time(of: Typed, rules: &Rules) -> Result<Typed, Refusal> {
    let (from, rules) = (of.kind.clone(), *rules);
    let fsp = match &from {
        kind if kind.is_temporal() => return Err(Refusal::new("a date as seconds")),
        kind => digits_of_seconds(kind, &rules),
    };
    Ok(Typed::call(Kind::Time { fsp }, vec![of], move |values| {
        let Some(exact) = exact(&values[0], &from, rules.mysql)? else { return Ok(Datum::Null) };
        let exact = if rules.mysql { exact.rounded(6)? } else { exact.truncated(6)?.rounded(6)? };
        let micros = i64::try_from(exact.units().clamp(-(1 << 60), 1 << 60)).unwrap_or(i64::MAX);
        Ok(Datum::Time(clipped(micros.abs(), &rules) * micros.signum()))
    }))
}

/// A number exactly, a text by the digits that it begins with. MariaDB cuts the fraction of a double to microseconds.
fn exact(value: &Datum, kind: &Kind, mysql: bool) -> Result<Option<Decimal>, Refusal> {
    Ok(Some(match (value, kind) {
        (Datum::Text(text), Kind::Text(_)) => Decimal::prefix(text).ok_or_else(Refusal::digits)?,
        (value, kind) => match value.number(kind)? {
            None => return Ok(None),
            Some(Number::Double(number)) if !mysql && number.abs() < 1e12 => {
                let fraction = (number.abs().fract() * SECOND as f64) as i64;
                let micros = number.abs().trunc() as i64 * SECOND + fraction;
                if number < 0.0 && micros == 0 {
                    return Err(Refusal::new("a negative time of zero"));
                }
                Decimal::new((micros * if number < 0.0 { -1 } else { 1 }).into(), 6)
            }
            Some(Number::Double(number)) => {
                Decimal::prefix(&format!("{number:e}")).ok_or_else(Refusal::digits)?
            }
            Some(number) => number.to_decimal().ok_or_else(Refusal::digits)?,
        },
    }))
}

/// `TIMESTAMP` of a date and a time.
pub(super) fn timestamp(operands: Vec<Typed>, rules: &Rules) -> Result<Typed, Refusal> {
    let fsp = fsp(&operands[0], As::Date, rules)?.max(fsp(&operands[1], As::Time, rules)?);
    let kinds = (operands[0].kind.clone(), operands[1].kind.clone());
    if kinds.0.is_number() || !is_addable(&kinds.1) {
        return Err(Refusal::new(format!("TIMESTAMP of {} and {}", kinds.0, kinds.1)));
    }
    let rules = *rules;
    Ok(Typed::call(Kind::DateTime { fsp }, operands, move |values| {
        let date = moment(&values[0], &kinds.0, &rules)?;
        let time = only_time(&values[1], &kinds.1, &rules)?;
        let (Some(date), Some(time)) = (date, time) else { return Ok(Datum::Null) };
        Ok(in_years(date + time)?.map_or(Datum::Null, Datum::DateTime))
    }))
}

/// A date and time within the years of dates; `None` beyond.
fn in_years(micros: i64) -> Result<Option<i64>, Refusal> {
    match Civil::of_micros(micros).year {
        1..=9999 => Ok(Some(micros)),
        ..1 => Err(Refusal::new("a date in the year 0")),
        _ => Ok(None),
    }
}

/// Whether a value of this type can be added as a time.
fn is_addable(kind: &Kind) -> bool {
    kind.is_temporal() || matches!(kind, Kind::Text(_) | Kind::Null)
}

/// A time that is added. MySQL takes that of a date and time, of which MariaDB makes NULL; texts with more than a time
/// are refused.
fn only_time(value: &Datum, kind: &Kind, rules: &Rules) -> Result<Option<i64>, Refusal> {
    match value {
        Datum::Date(_) | Datum::DateTime(_) if !rules.mysql => Ok(None),
        Datum::Text(text) => match spelling::time(text, rules)? {
            Some(spelled)
                if spelled.whole
                    && !spelled.is_clipped
                    && (spelling::is_time(text) || spelling::is_days_and_time(text)) =>
            {
                Ok(Some(spelled.micros))
            }
            Some(_) => Err(Refusal::new(format!("the time '{text}'"))),
            None => Ok(None),
        },
        value => time(value, kind, rules),
    }
}

/// `ADDTIME` and `SUBTIME`.
pub(super) fn added(sign: i64, operands: Vec<Typed>, rules: &Rules) -> Result<Typed, Refusal> {
    let digits = fsp(&operands[0], As::Either, rules)?.max(fsp(&operands[1], As::Time, rules)?);
    let kinds = (operands[0].kind.clone(), operands[1].kind.clone());
    if !is_addable(&kinds.1) {
        return Err(Refusal::new(format!("{} as a time that is added", kinds.1)));
    }
    let result = match &kinds.0 {
        Kind::Date | Kind::DateTime { .. } => Kind::DateTime { fsp: digits },
        Kind::Time { .. } => Kind::Time { fsp: digits },
        Kind::Text(_) | Kind::Null => text(),
        other => return Err(Refusal::new(format!("{other} plus a time"))),
    };
    let (kind, rules) = (result.clone(), *rules);
    Ok(Typed::call(kind, operands, move |values| {
        let Some(first) = either(&values[0], &kinds.0, &rules)? else { return Ok(Datum::Null) };
        let Some(time) = only_time(&values[1], &kinds.1, &rules)? else { return Ok(Datum::Null) };
        let all = |micros: i64| if micros % SECOND == 0 { 0 } else { 6 };
        Ok(match first {
            Moment::Date(civil, _) => {
                let Some(micros) = civil.since_epoch().filter(|_| !civil.has_zeros()) else {
                    return Err(Refusal::new("a date with a zero month or day plus a time"));
                };
                match (in_years(micros + sign * time)?, &result) {
                    (None, _) => Datum::Null,
                    (Some(micros), Kind::Text(_)) => {
                        Datum::Text(calendar::date_time_text(micros, all(micros)))
                    }
                    (Some(micros), _) => Datum::DateTime(micros),
                }
            }
            Moment::Time(first) => {
                let sum = first + sign * time;
                let sum = match (sum.abs() > MAX_TIME, rules.mysql, &result) {
                    (false, ..) => sum,
                    (true, true, Kind::Text(_)) => return Err(Refusal::new("a TIME out of range")),
                    (true, true, _) => return Ok(Datum::Null),
                    (true, false, Kind::Text(_)) => clipped(sum.abs(), &rules) * sum.signum(),
                    (true, false, _) => {
                        let unit = 10i64.pow(u32::from(6 - digits));
                        clipped(sum.abs(), &rules) / unit * unit * sum.signum()
                    }
                };
                match &result {
                    Kind::Text(_) => Datum::Text(calendar::time_text(sum, all(sum))),
                    _ => Datum::Time(sum),
                }
            }
        })
    }))
}

/// `TIMEDIFF`.
pub(super) fn difference(operands: Vec<Typed>, rules: &Rules) -> Result<Typed, Refusal> {
    let digits = fsp(&operands[0], As::Either, rules)?.max(fsp(&operands[1], As::Either, rules)?);
    let kinds = (operands[0].kind.clone(), operands[1].kind.clone());
    let rules = *rules;
    Ok(Typed::call(Kind::Time { fsp: digits }, operands, move |values| {
        let first = either(&values[0], &kinds.0, &rules)?;
        let second = either(&values[1], &kinds.1, &rules)?;
        let span = match (first, second) {
            (Some(Moment::Time(first)), Some(Moment::Time(second))) => first - second,
            (Some(Moment::Date(first, clock)), Some(Moment::Date(second, other_clock))) => {
                // Of a date and a date and time, MariaDB gives NULL.
                if !rules.mysql && clock != other_clock {
                    return Ok(Datum::Null);
                }
                match (first.since_epoch(), second.since_epoch()) {
                    (Some(a), Some(b)) if !first.has_zeros() && !second.has_zeros() => a - b,
                    _ => return Err(Refusal::new("a difference of dates with zeros")),
                }
            }
            _ => return Ok(Datum::Null),
        };
        let most = match (rules.mysql, digits) {
            (false, 1..) => MAX_TIME + SECOND - 1,
            _ => MAX_TIME,
        };
        Ok(Datum::Time(span.clamp(-most, most)))
    }))
}

/// `MAKETIME`.
pub(super) fn of_parts(operands: Vec<Typed>, rules: &Rules) -> Result<Typed, Refusal> {
    let kinds: Vec<Kind> = operands.iter().map(|operand| operand.kind.clone()).collect();
    let fsp = match &kinds[2] {
        kind if kind.is_temporal() => return Err(Refusal::new("a date as seconds")),
        kind => digits_of_seconds(kind, rules),
    };
    let rules = *rules;
    Ok(Typed::call(Kind::Time { fsp }, operands, move |values| {
        let Some(seconds) = exact(&values[2], &kinds[2], rules.mysql)? else { return Ok(Datum::Null) };
        let (Some(hour), Some(minute)) = (whole(&values[0], &kinds[0])?, whole(&values[1], &kinds[1])?)
        else {
            return Ok(Datum::Null);
        };
        if seconds.scale > 6 {
            return Err(Refusal::new("seconds of more than six digits"));
        }
        let seconds = seconds.rounded(6)?.units();
        if !(0..60).contains(&minute) || !(0..i128::from(60 * SECOND)).contains(&seconds) {
            return Ok(Datum::Null);
        }
        if hour.abs() > 838 {
            let most = if rules.mysql || fsp == 0 { MAX_TIME } else { MAX_TIME + SECOND - 1 };
            return Ok(Datum::Time(most * hour.signum() as i64));
        }
        let span = (hour.abs() as i64 * 60 + minute as i64) * 60 * SECOND + seconds as i64;
        Ok(Datum::Time(clipped(span, &rules) * if hour < 0 { -1 } else { 1 }))
    }))
}

/// A whole number, also of a text's digits.
fn whole(value: &Datum, kind: &Kind) -> Result<Option<i128>, Refusal> {
    match value {
        Datum::Text(text)
            if matches!(kind, Kind::Text(_))
                && text.bytes().all(|byte| byte.is_ascii_digit())
                && !text.is_empty() =>
        {
            text.parse().map(Some).map_err(|_| Refusal::digits())
        }
        value => value.whole(kind),
    }
}

/// `MAKEDATE` of a year and a day of it.
pub(super) fn of_day(operands: Vec<Typed>) -> Typed {
    let kinds = (operands[0].kind.clone(), operands[1].kind.clone());
    Typed::call(Kind::Date, operands, move |values| {
        let (Some(year), Some(day)) = (whole(&values[0], &kinds.0)?, whole(&values[1], &kinds.1)?) else {
            return Ok(Datum::Null);
        };
        let year = match year {
            0..=69 => year + 2000,
            70..=99 => year + 1900,
            year => year,
        };
        if !(0..=9999).contains(&year) || !(1..=3_652_424).contains(&day) {
            return Ok(Datum::Null);
        }
        let last = calendar::days(9999, 12, 31).unwrap_or(i64::MAX);
        let days = calendar::days(year as i64, 1, 1).map(|first| first + day as i64 - 1);
        Ok(days.filter(|days| *days <= last).map_or(Datum::Null, Datum::Date))
    })
}

/// `DATEDIFF`.
pub(super) fn days_between(operands: Vec<Typed>, rules: &Rules) -> Result<Typed, Refusal> {
    let (kinds, rules) = ((operands[0].kind.clone(), operands[1].kind.clone()), *rules);
    if rules.mysql && (matches!(kinds.0, Kind::Time { .. }) || matches!(kinds.1, Kind::Time { .. })) {
        return Err(Refusal::new("a TIME as a date"));
    }
    Ok(Typed::call(Kind::Int { unsigned: false }, operands, move |values| {
        let (left, right) = (moment(&values[0], &kinds.0, &rules)?, moment(&values[1], &kinds.1, &rules)?);
        Ok(match (left, right) {
            (Some(left), Some(right)) => Datum::Int(left.div_euclid(DAY) - right.div_euclid(DAY)),
            _ => Datum::Null,
        })
    }))
}

/// `PERIOD_ADD` and `PERIOD_DIFF`: of months like 202401 or 2401.
pub(super) fn period(is_sum: bool, operands: Vec<Typed>) -> Typed {
    let kinds = (operands[0].kind.clone(), operands[1].kind.clone());
    let months = |period: i128| -> Result<i128, Refusal> {
        let (year, month) = (period / 100, period % 100);
        if !(1..=999_999).contains(&period) || !(1..=12).contains(&month) {
            return Err(Refusal::new(format!("the period {period}")));
        }
        let year = match year {
            0..=69 => year + 2000,
            70..=99 => year + 1900,
            year => year,
        };
        Ok(year * 12 + month - 1)
    };
    Typed::call(Kind::Int { unsigned: false }, operands, move |values| {
        let (Some(first), Some(second)) = (values[0].whole(&kinds.0)?, values[1].whole(&kinds.1)?) else {
            return Ok(Datum::Null);
        };
        let number = match is_sum {
            true => {
                let sum = months(first)? + second;
                if !(12_000..=119_999).contains(&sum) {
                    return Err(Refusal::new("a period out of range"));
                }
                sum / 12 * 100 + sum % 12 + 1
            }
            false => months(first)? - months(second)?,
        };
        i64::try_from(number).map(Datum::Int).map_err(|_| Refusal::digits())
    })
}
