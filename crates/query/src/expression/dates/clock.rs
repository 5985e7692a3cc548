//! The current time, Unix time and time zones: `NOW`, `UNIX_TIMESTAMP`, `FROM_UNIXTIME`, `CONVERT_TZ`.

use super::operand::{As, constant, digits_of_seconds, fsp, moment};
use crate::expression::calendar::DAY;
use crate::expression::datum::{Datum, Decimal, Number};
use crate::expression::node::{Node, Typed};
use crate::expression::{Kind, Refusal, Rules, Zone};
use crate::relation::zero_date::is_none_of_calendar;

const SECOND: i64 = 1_000_000;
/// The last second that a TIMESTAMP of MariaDB holds.
const END_OF_TIMESTAMPS: i64 = 2_147_483_647;
/// The same of MariaDB 11.5 and later.
const END_OF_NEWER_TIMESTAMPS: i64 = 4_294_967_295;

/// The last microsecond of a TIMESTAMP of MariaDB.
fn end_of_mariadb(rules: &Rules) -> i64 {
    let seconds = if rules.newer_mariadb { END_OF_NEWER_TIMESTAMPS } else { END_OF_TIMESTAMPS };
    seconds * SECOND + SECOND - 1
}
/// The last microsecond of Unix time that MySQL computes with.
const END_OF_MYSQL_MICROS: i64 = 32_536_771_199_999_999;

/// A TIMESTAMP as the date and time that the session's clock showed.
pub(crate) fn local(stored: Typed, rules: &Rules) -> Typed {
    let Kind::Timestamp { fsp } = stored.kind else { return stored };
    let zone = rules.zone;
    Typed::call(Kind::DateTime { fsp }, vec![stored], move |values| match values[0] {
        Datum::DateTime(micros) if is_none_of_calendar(micros) => Ok(Datum::DateTime(micros)),
        Datum::DateTime(micros) => Ok(Datum::DateTime(zone.local(micros)?)),
        _ => Ok(Datum::Null),
    })
}

/// The TIMESTAMP that a date and time was made of by [`local`].
fn stored(of: &Typed) -> Option<&Typed> {
    match &of.node {
        Node::Call(_, operands) => match operands.as_slice() {
            [stored @ Typed { kind: Kind::Timestamp { .. }, .. }] => Some(stored),
            _ => None,
        },
        _ => None,
    }
}

/// `NOW`, `CURDATE`, `UTC_TIME` and their like, of the statement's start; `None` if there is none of that name.
pub(super) fn current(name: &str, operands: &[Typed], rules: &Rules) -> Result<Option<Typed>, Refusal> {
    let is_utc = name.starts_with("utc_");
    let is_date = matches!(name, "curdate" | "current_date" | "utc_date");
    let is_time = matches!(name, "curtime" | "current_time" | "utc_time");
    let is_both = matches!(
        name,
        "now" | "current_timestamp" | "localtime" | "localtimestamp" | "sysdate" | "utc_timestamp"
    );
    if !is_date && !is_time && !is_both {
        return Ok(None);
    }
    let fsp = match operands {
        [] => 0,
        [of] if !is_date => match of.literal() {
            Some(Datum::Int(digits @ 0..=6)) => *digits as u8,
            _ => return Err(Refusal::new("digits of a second out of range")),
        },
        _ => return Ok(None),
    };
    let now = rules.now_micros.ok_or_else(|| Refusal::new("the current time"))?;
    let local = if is_utc { now } else { rules.zone.local(now)? };
    let unit = 10i64.pow(u32::from(6 - fsp));
    let cut = local.div_euclid(unit) * unit;
    let (datum, kind) = match (is_date, is_time) {
        (true, _) => (Datum::Date(cut.div_euclid(DAY)), Kind::Date),
        (_, true) => (Datum::Time(cut.rem_euclid(DAY)), Kind::Time { fsp }),
        _ => (Datum::DateTime(cut), Kind::DateTime { fsp }),
    };
    Ok(Some(Typed { node: Node::Literal(datum), kind }))
}

/// `UNIX_TIMESTAMP` of a date, or of the statement's start.
pub(super) fn unix_timestamp(operands: &[Typed], rules: &Rules) -> Result<Typed, Refusal> {
    let Some(of) = operands.first() else {
        let now = rules.now_micros.ok_or_else(|| Refusal::new("the current time"))?;
        let seconds = Datum::Int(now.div_euclid(SECOND));
        return Ok(Typed { node: Node::Literal(seconds), kind: Kind::Int { unsigned: false } });
    };
    let fsp = fsp(of, As::Date, rules)?;
    let kind = if fsp == 0 { Kind::Int { unsigned: false } } else { Kind::Decimal { scale: fsp } };
    let rules = *rules;
    let number = move |micros: i64| -> Result<Datum, Refusal> {
        if fsp == 0 {
            return Ok(Datum::Int(micros.div_euclid(SECOND)));
        }
        Ok(Datum::Decimal(Decimal::new(micros.into(), 6).truncated(fsp)?))
    };
    if let Some(stored) = stored(of) {
        return Ok(Typed::call(kind, vec![stored.clone()], move |values| match values[0] {
            Datum::DateTime(micros) if is_none_of_calendar(micros) => number(0),
            Datum::DateTime(micros) => number(micros),
            _ => Ok(Datum::Null),
        }));
    }
    let (from, is_constant) = (of.kind.clone(), constant(of).is_some());
    if rules.mysql && matches!(from, Kind::Time { .. }) {
        return Err(Refusal::new("a TIME as a date"));
    }
    Ok(Typed::call(kind, vec![of.clone()], move |values| {
        if values[0].is_null() {
            return Ok(Datum::Null);
        }
        // A date that is none is 0 on MySQL, NULL on MariaDB.
        let outside = || if rules.mysql { number(0) } else { Ok(Datum::Null) };
        let Some(local) = moment(&values[0], &from, &rules)? else {
            // The digits that MySQL shows depend on what a constant is instead of a date.
            let is_odd = is_constant && rules.mysql && matches!(values[0], Datum::Text(_));
            return if is_odd { Err(Refusal::new("a constant that is no date")) } else { outside() };
        };
        let utc = rules.zone.moment(local)?;
        let is_known = match rules.mysql {
            true => (0..=END_OF_MYSQL_MICROS).contains(&utc),
            false => (0..=end_of_mariadb(&rules)).contains(&utc),
        };
        if is_known { number(utc) } else { outside() }
    }))
}

/// `FROM_UNIXTIME` of one operand.
pub(super) fn from_unixtime(of: Typed, rules: &Rules) -> Result<Typed, Refusal> {
    let from = of.kind.clone();
    let fsp = match &from {
        kind if kind.is_temporal() => return Err(Refusal::new("a date as Unix time")),
        // MariaDB shows as many digits as each value has.
        Kind::Text(_) | Kind::Bytes | Kind::Double { .. } | Kind::Float if !rules.mysql => {
            return Err(Refusal::new("a DOUBLE, a text or bytes as Unix time"));
        }
        kind => digits_of_seconds(kind, rules),
    };
    let rules = *rules;
    Ok(Typed::call(Kind::DateTime { fsp }, vec![of], move |values| {
        let exact = match (&values[0], values[0].number(&from)?) {
            (_, None) => return Ok(Datum::Null),
            (Datum::Text(text), _) if matches!(from, Kind::Text(_)) => {
                Decimal::prefix(text).ok_or_else(Refusal::digits)?
            }
            (_, Some(Number::Double(number))) => {
                Decimal::prefix(&format!("{number:e}")).ok_or_else(Refusal::digits)?
            }
            (_, Some(number)) => number.to_decimal().ok_or_else(Refusal::digits)?,
        };
        // MySQL rounds what is beyond microseconds, MariaDB cuts it.
        let exact = if rules.mysql { exact.rounded(6)? } else { exact.truncated(6)? };
        let most = match rules.mysql {
            true => END_OF_MYSQL_MICROS,
            false => end_of_mariadb(&rules),
        };
        match i64::try_from(exact.rounded(6)?.units()).ok().filter(|micros| (0..=most).contains(micros)) {
            None => Ok(Datum::Null),
            Some(0) if rules.newer_mariadb => Ok(Datum::Null),
            Some(micros) => Ok(Datum::DateTime(rules.zone.local(micros)?)),
        }
    }))
}

/// `CONVERT_TZ`. What is out of the range of TIMESTAMPs stays as it is.
pub(super) fn convert_tz(operands: Vec<Typed>, rules: &Rules) -> Result<Typed, Refusal> {
    let digits = fsp(&operands[0], As::Date, rules)?;
    let kinds: Vec<Kind> = operands.iter().map(|operand| operand.kind.clone()).collect();
    let rules = *rules;
    if rules.mysql && matches!(kinds[0], Kind::Time { .. }) {
        return Err(Refusal::new("a TIME as a date"));
    }
    let zone = move |value: &Datum, kind: &Kind| -> Result<Option<Zone>, Refusal> {
        Ok(value.text(kind)?.and_then(|name| Zone::parse(&name, rules.mysql)))
    };
    Ok(Typed::call(Kind::DateTime { fsp: digits }, operands, move |values| {
        let (from, to) = (zone(&values[1], &kinds[1])?, zone(&values[2], &kinds[2])?);
        let (Some(from), Some(to)) = (from, to) else { return Ok(Datum::Null) };
        let Some(local) = moment(&values[0], &kinds[0], &rules)? else { return Ok(Datum::Null) };
        let most = if rules.mysql { END_OF_MYSQL_MICROS } else { end_of_mariadb(&rules) };
        // A day more or less decides without the zone's rules.
        if !(-DAY..=most + DAY).contains(&local) {
            return Ok(Datum::DateTime(local));
        }
        let utc = from.moment(local)?;
        Ok(Datum::DateTime(if (SECOND..=most).contains(&utc) { to.local(utc)? } else { local }))
    }))
}
