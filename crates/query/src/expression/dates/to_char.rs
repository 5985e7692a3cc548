//! `TO_CHAR` of MariaDB, in the language of `en_US`.

use super::civil::Civil;
use super::format::{DAYS, MONTHS, text};
use super::operand::date;
use crate::expression::calendar;
use crate::expression::datum::Datum;
use crate::expression::node::{Node, Typed};
use crate::expression::{Collating, Kind, Refusal, Rules};

/// The format where none is given.
const DEFAULT: &str = "YYYY-MM-DD HH24:MI:SS";

/// What a format has of a date, the longest first of those that begin alike.
const ELEMENTS: [&str; 25] = [
    "YYYY", "YYY", "YY", "Y", "RRRR", "RR", "MONTH", "MON", "MM", "MI", "DAY", "DD", "DY", "HH24", "HH12",
    "HH", "SS", "A.M.", "P.M.", "A.D.", "B.C.", "AM", "PM", "AD", "BC",
];

/// Letters that names of months and of days are filled to.
const NAME_LETTERS: usize = 9;

/// `TO_CHAR(date [, format])`.
pub(super) fn to_char(mut operands: Vec<Typed>, rules: &Rules) -> Result<Typed, Refusal> {
    if operands.len() == 1 {
        let kind = Kind::Text(Collating::connection(&rules.connection));
        operands.push(Typed { node: Node::Literal(Datum::Text(DEFAULT.to_string())), kind });
    }
    let (kind, format) = (operands[0].kind.clone(), operands[1].kind.clone());
    if !matches!(kind, Kind::Date | Kind::DateTime { .. } | Kind::Text(_) | Kind::Null)
        || !matches!(format, Kind::Text(_) | Kind::Null)
    {
        return Err(Refusal::new(format!("TO_CHAR of {kind} by {format}")));
    }
    let rules = *rules;
    Ok(Typed::call(text(), operands, move |values| {
        let Datum::Text(format) = &values[1] else { return Ok(Datum::Null) };
        match date(&values[0], &kind, &rules)? {
            Some((civil, _)) if civil.day > 0 && civil.month > 0 => {
                formatted(&civil, format).map(Datum::Text)
            }
            Some(_) => Err(Refusal::new("TO_CHAR of a date that no calendar has")),
            None => Ok(Datum::Null),
        }
    }))
}

fn formatted(civil: &Civil, format: &str) -> Result<String, Refusal> {
    let mut out = String::new();
    let mut rest = format;
    while let Some(letter) = rest.chars().next() {
        if let Some(behind) = rest.strip_prefix('"') {
            let (quoted, behind) = behind.split_once('"').unwrap_or((behind, ""));
            out.push_str(quoted);
            rest = behind;
            continue;
        }
        let found = ELEMENTS.iter().find(|element| {
            rest.get(..element.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(element))
        });
        match found {
            Some(element) => {
                out.push_str(&part(civil, element)?);
                rest = &rest[element.len()..];
            }
            None if (letter.is_ascii_punctuation() && letter != '&') || letter == ' ' => {
                out.push(letter);
                rest = &rest[1..];
            }
            None => return Err(Refusal::new(format!("date format not recognized at {rest}"))),
        }
    }
    Ok(out)
}

fn part(civil: &Civil, element: &str) -> Result<String, Refusal> {
    let (hour, minute, second, _) = calendar::clock(civil.micros);
    let noon = |points: bool| match (hour < 12, points) {
        (true, false) => "AM",
        (true, true) => "A.M.",
        (false, false) => "PM",
        (false, true) => "P.M.",
    };
    let of = |names: &[&'static str], at: i64| {
        let name = usize::try_from(at).ok().and_then(|at| names.get(at).copied());
        name.ok_or_else(|| Refusal::new("a date that no calendar has"))
    };
    let weekday = || {
        let days = calendar::days(civil.year, civil.month, civil.day);
        let days = days.ok_or_else(|| Refusal::new("a date that no calendar has"))?;
        of(&DAYS, (days + 3).rem_euclid(7))
    };
    let month = || of(&MONTHS, civil.month - 1);
    Ok(match element {
        "YYYY" | "RRRR" => format!("{:04}", civil.year),
        "YYY" => format!("{:03}", civil.year % 1000),
        "YY" | "RR" => format!("{:02}", civil.year % 100),
        "Y" => format!("{}", civil.year % 10),
        "MM" => format!("{:02}", civil.month),
        "DD" => format!("{:02}", civil.day),
        "MONTH" => format!("{:NAME_LETTERS$}", month()?),
        "MON" => month()?[..3].to_string(),
        "DAY" => format!("{:NAME_LETTERS$}", weekday()?),
        "DY" => weekday()?[..3].to_string(),
        "HH24" => format!("{hour:02}"),
        "HH" | "HH12" => format!("{:02}", (hour + 11) % 12 + 1),
        "MI" => format!("{minute:02}"),
        "SS" => format!("{second:02}"),
        "AM" | "PM" => noon(false).to_string(),
        "A.M." | "P.M." => noon(true).to_string(),
        "AD" | "BC" => if civil.year > 0 { "AD" } else { "BC" }.to_string(),
        _ => if civil.year > 0 { "A.D." } else { "B.C." }.to_string(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_are_filled_from_a_date() {
        let micros = ((15 * 60 + 6) * 60 + 7) * 1_000_000;
        let civil = Civil { year: 2024, month: 3, day: 5, micros };
        for (format, text) in [
            ("YYYY-MM-DD HH24:MI:SS", "2024-03-05 15:06:07"),
            ("HH:MI pm", "03:06 PM"),
            ("day Month dd", "Tuesday   March     05"),
            ("MONDY", "MarTue"),
            ("YYYY\"abc\"MM", "2024abc03"),
            ("YYY Y RR B.C.", "024 4 24 A.D."),
        ] {
            assert_eq!(formatted(&civil, format).as_deref(), Ok(text));
        }
        for format in ["D", "YYYYxMM", "&", "SSSSS"] {
            assert!(formatted(&civil, format).is_err(), "{format}");
        }
    }
}
