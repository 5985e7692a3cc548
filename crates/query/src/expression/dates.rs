//! Functions of dates and times, and `INTERVAL`.

use super::datum::Datum;
use super::kind::Collating;
use super::node::Typed;
use super::{Kind, Refusal, calendar};

use calendar::DAY;

const SIGNED: Kind = Kind::Int { unsigned: false };
/// The last microsecond that a date and time may have, and the first.
const YEARS: (i64, i64) = (-62_167_219_200_000_000, 253_402_300_799_999_999);

/// Microseconds since the epoch of a date, a date and time, or the standard spelling of one; `None` is NULL.
pub(super) fn moment(value: &Datum, kind: &Kind) -> Result<Option<i64>, Refusal> {
    match (value, kind) {
        (Datum::Null, _) => Ok(None),
        (Datum::Date(days), _) => Ok(Some(days * DAY)),
        (Datum::DateTime(micros), _) => Ok(Some(*micros)),
        (Datum::Text(text), Kind::Text(_)) => match calendar::parse(text) {
            Some((micros, _)) => Ok(Some(micros)),
            None => Err(Refusal::new(format!("a date like '{text}'"))),
        },
        _ => Err(Refusal::new(format!("{kind:?} as a date"))),
    }
}

/// Microseconds of a TIME, or of a date's time of day; `None` is NULL.
pub(super) fn time(value: &Datum, kind: &Kind) -> Result<Option<i64>, Refusal> {
    match (value, kind) {
        (Datum::Null, _) => Ok(None),
        (Datum::Time(micros), _) => Ok(Some(*micros)),
        (Datum::DateTime(micros), _) => Ok(Some(micros.rem_euclid(DAY))),
        (Datum::Text(text), Kind::Text(_)) => match calendar::parse_time(text) {
            Some(micros) => Ok(Some(micros)),
            None => Err(Refusal::new(format!("a time like '{text}'"))),
        },
        _ => Err(Refusal::new(format!("{kind:?} as a time"))),
    }
}

/// A function of dates; `None` if there is none of that name.
pub(super) fn function(name: &str, operands: &[Typed]) -> Result<Option<Typed>, Refusal> {
    let of_date: Option<fn(i64) -> i64> = match name {
        "year" => Some(|days| calendar::civil(days).0),
        "month" => Some(|days| calendar::civil(days).1),
        "day" | "dayofmonth" => Some(|days| calendar::civil(days).2),
        "quarter" => Some(|days| (calendar::civil(days).1 + 2) / 3),
        "dayofweek" => Some(|days| (days + 4).rem_euclid(7) + 1),
        "weekday" => Some(|days| (days + 3).rem_euclid(7)),
        "dayofyear" => Some(|days| days - calendar::days(calendar::civil(days).0, 1, 1).unwrap_or(days) + 1),
        "to_days" => Some(|days| days + 719_528),
        _ => None,
    };
    let of_clock: Option<fn(i64) -> i64> = match name {
        "hour" => Some(|micros| calendar::clock(micros).0),
        "minute" => Some(|micros| calendar::clock(micros).1),
        "second" => Some(|micros| calendar::clock(micros).2),
        "microsecond" => Some(|micros| calendar::clock(micros).3),
        _ => None,
    };
    let operands = operands.to_vec();
    let kinds: Vec<Kind> = operands.iter().map(|operand| operand.kind.clone()).collect();
    if let [kind] = kinds.as_slice()
        && let Some(part) = of_date
    {
        let kind = kind.clone();
        return Ok(Some(Typed::call(SIGNED, operands, move |values| {
            Ok(moment(&values[0], &kind)?
                .map_or(Datum::Null, |micros| Datum::Int(part(micros.div_euclid(DAY)))))
        })));
    }
    if let [kind @ (Kind::Time { .. } | Kind::DateTime { .. })] = kinds.as_slice()
        && let Some(part) = of_clock
    {
        let kind = kind.clone();
        return Ok(Some(Typed::call(SIGNED, operands, move |values| {
            Ok(time(&values[0], &kind)?.map_or(Datum::Null, |micros| Datum::Int(part(micros.abs()))))
        })));
    }
    Ok(Some(match (name, kinds.as_slice()) {
        ("date", [kind]) => {
            let kind = kind.clone();
            Typed::call(Kind::Date, operands, move |values| {
                Ok(moment(&values[0], &kind)?
                    .map_or(Datum::Null, |micros| Datum::Date(micros.div_euclid(DAY))))
            })
        }
        ("last_day", [kind]) => {
            let kind = kind.clone();
            Typed::call(Kind::Date, operands, move |values| {
                let Some(micros) = moment(&values[0], &kind)? else { return Ok(Datum::Null) };
                let (year, month, day) = calendar::civil(micros.div_euclid(DAY));
                Ok(Datum::Date(micros.div_euclid(DAY) - day + calendar::month_days(year, month)))
            })
        }
        ("datediff", [left, right]) => {
            let kinds = (left.clone(), right.clone());
            Typed::call(SIGNED, operands, move |values| {
                Ok(match (moment(&values[0], &kinds.0)?, moment(&values[1], &kinds.1)?) {
                    (Some(left), Some(right)) => Datum::Int(left.div_euclid(DAY) - right.div_euclid(DAY)),
                    _ => Datum::Null,
                })
            })
        }
        ("time_to_sec", [kind @ (Kind::Time { .. } | Kind::DateTime { .. })]) => {
            let kind = kind.clone();
            Typed::call(SIGNED, operands, move |values| {
                Ok(time(&values[0], &kind)?.map_or(Datum::Null, |micros| Datum::Int(micros / 1_000_000)))
            })
        }
        ("date_format", [_, Kind::Text(_)]) => format(operands)?,
        ("timestampdiff", [_, _, _]) => difference(operands)?,
        _ => return Ok(None),
    }))
}

/// `DATE_FORMAT` with a fixed format of parts that depend on no language.
fn format(operands: Vec<Typed>) -> Result<Typed, Refusal> {
    let Some(Datum::Text(format)) = operands[1].literal().cloned() else {
        return Err(Refusal::new("a format that varies"));
    };
    let mut letters = format.chars();
    while let Some(letter) = letters.next() {
        if letter == '%' {
            match letters.next() {
                Some(
                    'Y' | 'y' | 'm' | 'c' | 'd' | 'e' | 'H' | 'k' | 'h' | 'I' | 'l' | 'i' | 's' | 'S' | 'f'
                    | 'j' | 'T',
                ) => {}
                Some('r' | 'p' | '%' | 'D' | 'w') => {}
                other => return Err(Refusal::new(format!("the format %{}", other.unwrap_or(' ')))),
            }
        }
    }
    let kind = operands[0].kind.clone();
    let result = Kind::Text(Collating::literal(None));
    Ok(Typed::call(result, operands, move |values| {
        Ok(moment(&values[0], &kind)?.map_or(Datum::Null, |micros| Datum::Text(formatted(&format, micros))))
    }))
}

fn formatted(format: &str, micros: i64) -> String {
    let days = micros.div_euclid(DAY);
    let (year, month, day) = calendar::civil(days);
    let (hour, minute, second, fraction) = calendar::clock(micros.rem_euclid(DAY));
    let half = (hour + 11) % 12 + 1;
    let noon = if hour < 12 { "AM" } else { "PM" };
    let mut out = String::new();
    let mut letters = format.chars();
    while let Some(letter) = letters.next() {
        if letter != '%' {
            out.push(letter);
            continue;
        }
        out.push_str(&match letters.next() {
            Some('Y') => format!("{year:04}"),
            Some('y') => format!("{:02}", year % 100),
            Some('m') => format!("{month:02}"),
            Some('c') => month.to_string(),
            Some('d') => format!("{day:02}"),
            Some('e') => day.to_string(),
            Some('D') => match (day, day % 10) {
                (11..=13, _) => format!("{day}th"),
                (_, 1) => format!("{day}st"),
                (_, 2) => format!("{day}nd"),
                (_, 3) => format!("{day}rd"),
                _ => format!("{day}th"),
            },
            Some('H') => format!("{hour:02}"),
            Some('k') => hour.to_string(),
            Some('h' | 'I') => format!("{half:02}"),
            Some('l') => half.to_string(),
            Some('i') => format!("{minute:02}"),
            Some('s' | 'S') => format!("{second:02}"),
            Some('f') => format!("{fraction:06}"),
            Some('p') => noon.to_string(),
            Some('T') => format!("{hour:02}:{minute:02}:{second:02}"),
            Some('r') => format!("{half:02}:{minute:02}:{second:02} {noon}"),
            Some('w') => (days + 4).rem_euclid(7).to_string(),
            Some('j') => {
                let first = calendar::days(year, 1, 1).unwrap_or(days);
                format!("{:03}", days - first + 1)
            }
            Some(other) => other.to_string(),
            None => String::new(),
        });
    }
    out
}

/// What an interval's unit is.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Unit {
    Months(i64),
    Micros(i64),
}

fn unit(name: &str) -> Result<Unit, Refusal> {
    Ok(match name {
        "year" => Unit::Months(12),
        "quarter" => Unit::Months(3),
        "month" => Unit::Months(1),
        "week" => Unit::Micros(7 * DAY),
        "day" => Unit::Micros(DAY),
        "hour" => Unit::Micros(DAY / 24),
        "minute" => Unit::Micros(60_000_000),
        "second" => Unit::Micros(1_000_000),
        other => return Err(Refusal::new(format!("an interval of {other}"))),
    })
}

/// A date plus or minus an interval.
pub(super) fn shifted(date: Typed, count: Typed, name: &str, negative: bool) -> Result<Typed, Refusal> {
    let unit = unit(name)?;
    let kinds = (date.kind.clone(), count.kind.clone());
    let in_days =
        matches!(unit, Unit::Months(_)) || matches!(unit, Unit::Micros(micros) if micros % DAY == 0);
    let kind = match &kinds.0 {
        Kind::Date if in_days => Kind::Date,
        Kind::Date => Kind::DateTime { fsp: 0 },
        Kind::DateTime { fsp } => Kind::DateTime { fsp: *fsp },
        other => return Err(Refusal::new(format!("{other:?} plus an interval"))),
    };
    if !matches!(kinds.1, Kind::Int { .. }) {
        return Err(Refusal::new("an interval that is no whole number"));
    }
    let is_date = kind == Kind::Date;
    Ok(Typed::call(kind, vec![date, count], move |values| {
        let (Some(micros), Some(count)) = (moment(&values[0], &kinds.0)?, values[1].whole(&kinds.1)?) else {
            return Ok(Datum::Null);
        };
        let count = i64::try_from(count).ok().filter(|count| count.abs() < 1 << 40);
        let count = count.ok_or_else(|| Refusal::new("a long interval"))?;
        let moved = moved(micros, if negative { -count } else { count }, unit);
        Ok(match moved.filter(|moved| (YEARS.0..=YEARS.1).contains(moved)) {
            None => Datum::Null,
            // The servers give up on the year 0 in different ways.
            Some(micros) if calendar::civil(micros.div_euclid(DAY)).0 == 0 => {
                return Err(Refusal::new("a date in the year 0"));
            }
            Some(micros) if is_date => Datum::Date(micros.div_euclid(DAY)),
            Some(micros) => Datum::DateTime(micros),
        })
    }))
}

fn moved(micros: i64, count: i64, unit: Unit) -> Option<i64> {
    match unit {
        Unit::Micros(each) => micros.checked_add(count.checked_mul(each)?),
        Unit::Months(each) => {
            let (year, month, day) = calendar::civil(micros.div_euclid(DAY));
            let months = (year * 12 + month - 1).checked_add(count.checked_mul(each)?)?;
            let (year, month) = (months.div_euclid(12), months.rem_euclid(12) + 1);
            let day = day.min(calendar::month_days(year, month));
            Some(calendar::days(year, month, day)? * DAY + micros.rem_euclid(DAY))
        }
    }
}

/// `TIMESTAMPDIFF`: whole units from the first to the second.
fn difference(operands: Vec<Typed>) -> Result<Typed, Refusal> {
    let Some(Datum::Text(name)) = operands[0].literal() else {
        return Err(Refusal::new("a unit that varies"));
    };
    let unit = unit(name)?;
    let kinds = (operands[1].kind.clone(), operands[2].kind.clone());
    Ok(Typed::call(SIGNED, operands, move |values| {
        let (Some(from), Some(to)) = (moment(&values[1], &kinds.0)?, moment(&values[2], &kinds.1)?) else {
            return Ok(Datum::Null);
        };
        Ok(Datum::Int(match unit {
            Unit::Micros(each) => (to - from) / each,
            Unit::Months(each) => {
                let (early, late, sign) = if from <= to { (from, to, 1) } else { (to, from, -1) };
                let parts = |micros: i64| {
                    let (year, month, day) = calendar::civil(micros.div_euclid(DAY));
                    (year * 12 + month, day * DAY + micros.rem_euclid(DAY))
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
        assert_eq!(moved(day(2024, 1, 31), 1, Unit::Months(1)), Some(day(2024, 2, 29)));
        assert_eq!(moved(day(2024, 2, 29), -1, Unit::Months(12)), Some(day(2023, 2, 28)));
        assert_eq!(moved(day(9999, 12, 31), 1, Unit::Months(1)), None);
    }

    #[test]
    fn formats_are_filled() {
        assert_eq!(formatted("%Y-%m-%d %T.%f %j %D %l%p", 0), "1970-01-01 00:00:00.000000 001 1st 12AM");
    }
}
