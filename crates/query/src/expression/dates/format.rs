//! `DATE_FORMAT`, `TIME_FORMAT`, `GET_FORMAT`, `DAYNAME` and `MONTHNAME`, in the language of `en_US`.

use super::civil::Civil;
use super::fields::day_of_year;
use super::operand::{date, moment, time};
use super::weeks::{Mode, week};
use crate::expression::calendar::{self, DAY};
use crate::expression::collating::Collating;
use crate::expression::datum::Datum;
use crate::expression::node::Typed;
use crate::expression::{Kind, Refusal, Rules};

pub(super) const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];
/// From Monday.
pub(super) const DAYS: [&str; 7] =
    ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"];

/// The type of texts that are made of dates.
pub(super) fn text() -> Kind {
    Kind::Text(Collating::literal(None))
}

/// `DAYNAME` and `MONTHNAME`.
pub(super) fn name(of_month: bool, of: Typed, rules: &Rules) -> Result<Typed, Refusal> {
    let (kind, rules) = (of.kind.clone(), *rules);
    if rules.mysql && matches!(kind, Kind::Time { .. }) {
        return Err(Refusal::new("a TIME as a date"));
    }
    Ok(Typed::call(text(), vec![of], move |values| {
        let name = match of_month {
            true => date(&values[0], &kind, &rules)?
                .and_then(|(civil, _)| MONTHS.get(usize::try_from(civil.month - 1).ok()?)),
            false => moment(&values[0], &kind, &rules)?
                .and_then(|micros| DAYS.get((micros.div_euclid(DAY) + 3).rem_euclid(7) as usize)),
        };
        Ok(name.map_or(Datum::Null, |name| Datum::Text((*name).to_string())))
    }))
}

/// `DATE_FORMAT` and `TIME_FORMAT`.
pub(super) fn formatted(of_time: bool, operands: Vec<Typed>, rules: &Rules) -> Result<Typed, Refusal> {
    let (kind, format) = (operands[0].kind.clone(), operands[1].kind.clone());
    if !matches!(format, Kind::Text(_) | Kind::Null) {
        return Err(Refusal::new(format!("a format that is {format}")));
    }
    let rules = *rules;
    if of_time && kind == Kind::Year {
        return Err(Refusal::new("a YEAR as a time"));
    }
    Ok(Typed::call(text(), operands, move |values| {
        if values[0].is_null() {
            return Ok(Datum::Null);
        }
        let Datum::Text(format) = &values[1] else { return Ok(Datum::Null) };
        let shown = match (of_time, &values[0]) {
            // MariaDB shows a TIME with its hours, MySQL as of today.
            (false, Datum::Time(micros)) if !rules.mysql => Shown::span(*micros),
            (false, value) => match date(value, &kind, &rules)? {
                Some((civil, _)) => Shown { civil, hours: None, negative: false },
                None => return Ok(Datum::Null),
            },
            (true, value) => match time_of_day(value, &kind, &rules)? {
                Some(micros) => Shown::span(micros),
                None => return Ok(Datum::Null),
            },
        };
        match format.is_empty() {
            true => Ok(Datum::Null),
            false => Ok(shown.text(format, of_time, rules.mysql)?.map_or(Datum::Null, Datum::Text)),
        }
    }))
}

/// The operand of `TIME_FORMAT`. MySQL reads a text as a date first.
fn time_of_day(value: &Datum, kind: &Kind, rules: &Rules) -> Result<Option<i64>, Refusal> {
    use super::operand::{Moment, either};
    match (value, rules.mysql) {
        (Datum::Text(_), true) => Ok(match either(value, kind, rules)? {
            None => None,
            Some(Moment::Date(civil, _)) => Some(civil.micros),
            Some(Moment::Time(micros)) => Some(micros),
        }),
        _ => time(value, kind, rules),
    }
}

/// What a format is filled from.
struct Shown {
    civil: Civil,
    /// Hours of a TIME, which may be more than those of a day.
    hours: Option<i64>,
    negative: bool,
}

impl Shown {
    fn span(micros: i64) -> Shown {
        let civil = Civil { year: 0, month: 0, day: 0, micros: micros.abs() };
        Shown { civil, hours: Some(calendar::clock(micros.abs()).0), negative: micros < 0 }
    }

    /// The text; `None` is NULL.
    fn text(&self, format: &str, of_time: bool, mysql: bool) -> Result<Option<String>, Refusal> {
        let mut out = if self.negative { "-".to_string() } else { String::new() };
        let mut letters = format.chars();
        while let Some(letter) = letters.next() {
            if letter != '%' {
                out.push(letter);
                continue;
            }
            let Some(letter) = letters.next() else {
                out.push('%');
                break;
            };
            let part = match self.of_clock(letter) {
                Some(part) => Some(part),
                // MySQL shows the zeros of a date, and the date of a date and time.
                None if of_time && mysql && "YyMmbcDdeaWwjUuVvXx".contains(letter) => {
                    return Err(Refusal::new(format!("%{letter} of a time")));
                }
                None if of_time && "YyMmbcDdeaWwjUuVvXx".contains(letter) => return Ok(None),
                None => self.of_date(letter)?,
            };
            match part {
                Some(part) => out.push_str(&part),
                None => return Ok(None),
            }
        }
        Ok(Some(out))
    }

    fn of_clock(&self, letter: char) -> Option<String> {
        let (hour, minute, second, fraction) = calendar::clock(self.civil.micros);
        let half = (hour % 24 + 11) % 12 + 1;
        let noon = if hour % 24 < 12 { "AM" } else { "PM" };
        Some(match letter {
            'H' => format!("{hour:02}"),
            'k' => hour.to_string(),
            'h' | 'I' => format!("{half:02}"),
            'l' => half.to_string(),
            'i' => format!("{minute:02}"),
            's' | 'S' => format!("{second:02}"),
            'f' => format!("{fraction:06}"),
            'p' => noon.to_string(),
            'T' => format!("{hour:02}:{minute:02}:{second:02}"),
            'r' => format!("{half:02}:{minute:02}:{second:02} {noon}"),
            _ => return None,
        })
    }

    /// `None` is NULL.
    fn of_date(&self, letter: char) -> Result<Option<String>, Refusal> {
        let Civil { year, month, day, .. } = self.civil;
        let named = |names: &'static [&'static str], at: i64| {
            usize::try_from(at).ok().and_then(|at| names.get(at)).copied()
        };
        Ok(Some(match letter {
            'Y' => format!("{year:04}"),
            'y' => format!("{:02}", year % 100),
            'm' => format!("{month:02}"),
            'c' => month.to_string(),
            'd' => format!("{day:02}"),
            'e' => day.to_string(),
            'D' => ordinal(day),
            'M' | 'b' => match named(&MONTHS, month - 1) {
                Some(name) if letter == 'b' => name[..3].to_string(),
                Some(name) => name.to_string(),
                None => return Ok(None),
            },
            'W' | 'a' | 'w' | 'j' | 'U' | 'u' | 'V' | 'v' | 'X' | 'x' => {
                let days = self.civil.days().filter(|_| !self.civil.has_zeros() && self.hours.is_none());
                let days = days.ok_or_else(|| Refusal::new(format!("%{letter} of a date with zeros")))?;
                self.of_days(letter, days)
            }
            other => other.to_string(),
        }))
    }

    fn of_days(&self, letter: char, days: i64) -> String {
        let weekday = (days + 3).rem_euclid(7);
        let day_name = DAYS.get(weekday as usize).copied().unwrap_or_default();
        let week = |mode| week(&self.civil, days, Mode::of(mode));
        match letter {
            'W' => day_name.to_string(),
            'a' => day_name[..3].to_string(),
            'w' => ((weekday + 1) % 7).to_string(),
            'j' => format!("{:03}", day_of_year(&self.civil)),
            'U' => format!("{:02}", week(0).0),
            'u' => format!("{:02}", week(1).0),
            'V' => format!("{:02}", week(2).0),
            'v' => format!("{:02}", week(3).0),
            'X' => format!("{:04}", week(2).1),
            _ => format!("{:04}", week(3).1),
        }
    }
}

/// 1st, 2nd, 11th.
fn ordinal(day: i64) -> String {
    match (day, day % 10) {
        (11..=13, _) => format!("{day}th"),
        (_, 1) => format!("{day}st"),
        (_, 2) => format!("{day}nd"),
        (_, 3) => format!("{day}rd"),
        _ => format!("{day}th"),
    }
}

/// `GET_FORMAT` of a type and a place.
pub(super) fn known_format(kind: &str, place: Typed) -> Result<Typed, Refusal> {
    let column = match kind {
        "date" => 0,
        "time" => 1,
        "datetime" | "timestamp" => 2,
        other => return Err(Refusal::new(format!("GET_FORMAT of {other}"))),
    };
    let from = place.kind.clone();
    Ok(Typed::call(text(), vec![place], move |values| {
        let Some(place) = values[0].text(&from)? else { return Ok(Datum::Null) };
        let formats = match place.to_ascii_uppercase().as_str() {
            "USA" => ["%m.%d.%Y", "%h:%i:%s %p", "%Y-%m-%d %H.%i.%s"],
            "JIS" | "ISO" => ["%Y-%m-%d", "%H:%i:%s", "%Y-%m-%d %H:%i:%s"],
            "EUR" => ["%d.%m.%Y", "%H.%i.%s", "%Y-%m-%d %H.%i.%s"],
            "INTERNAL" => ["%Y%m%d", "%H%i%s", "%Y%m%d%H%i%s"],
            _ => return Ok(Datum::Null),
        };
        Ok(Datum::Text(formats[column].to_string()))
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_are_filled() {
        let shown = Shown { civil: Civil::of_micros(0), hours: None, negative: false };
        let filled = shown.text("%Y-%m-%d %T.%f %j %D %l%p %W %b %", false, false);
        assert_eq!(filled, Ok(Some("1970-01-01 00:00:00.000000 001 1st 12AM Thursday Jan %".to_string())));
    }

    #[test]
    fn ordinals_have_their_endings() {
        let endings: Vec<String> = [1, 2, 3, 4, 11, 12, 13, 21, 22, 23].map(ordinal).to_vec();
        assert_eq!(endings.join(" "), "1st 2nd 3rd 4th 11th 12th 13th 21st 22nd 23rd");
    }
}
