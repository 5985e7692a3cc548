//! `STR_TO_DATE`: a text read by a format.

use super::civil::Civil;
use super::format::{DAYS, MONTHS};
use crate::expression::calendar::{self, DAY};
use crate::expression::datum::Datum;
use crate::expression::node::Typed;
use crate::expression::{Kind, Refusal, Rules};

const SECOND: i64 = 1_000_000;

/// What a text has by a format.
#[derive(Debug, Default, Clone, PartialEq)]
struct Scanned {
    year: i64,
    month: i64,
    day: i64,
    hour: i64,
    minute: i64,
    second: i64,
    micros: i64,
    day_of_year: i64,
    /// Whether hours are of half a day.
    halves: bool,
    afternoon: bool,
}

/// `STR_TO_DATE` with a fixed format, which decides whether it gives a date, a time or both.
pub(super) fn read(operands: Vec<Typed>, rules: &Rules) -> Result<Typed, Refusal> {
    let format = match operands[1].literal() {
        Some(Datum::Text(format)) => format.clone(),
        Some(Datum::Null) => String::new(),
        _ => return Err(Refusal::new("a format that varies")),
    };
    let specifiers: Vec<char> = specifiers(&format);
    let has = |letters: &str| specifiers.iter().any(|letter| letters.contains(*letter));
    if has("UuVvXxw#@.") {
        return Err(Refusal::new("a format with weeks or skipped letters"));
    }
    let fsp = if has("f") { 6 } else { 0 };
    let (has_time, has_date) = (has("HISThiklrsfp"), has("MYWabcjmy"));
    if has("dDe") && !has_date {
        return Err(Refusal::new("a format with days and no months"));
    }
    let kind = match (has_date, has_time) {
        (true, true) => Kind::DateTime { fsp },
        (false, true) => Kind::Time { fsp },
        _ => Kind::Date,
    };
    let (from, result, rules) = (operands[0].kind.clone(), kind.clone(), *rules);
    Ok(Typed::call(kind, operands, move |values| {
        let (Some(text), false) = (values[0].text(&from)?, values[1].is_null()) else {
            return Ok(Datum::Null);
        };
        let Some(scanned) = scanned(&text, &format) else { return Ok(Datum::Null) };
        let Some(civil) = scanned.civil()? else { return Ok(Datum::Null) };
        if !civil.is_possible() {
            return match rules.mysql {
                true => Ok(Datum::Null),
                false => Err(Refusal::new("a day that its month does not have")),
            };
        }
        if matches!(result, Kind::Time { .. }) {
            return match scanned == (Scanned { halves: scanned.halves, ..Scanned::default() }) {
                true if text.trim().is_empty() => Err(Refusal::new("a time of an empty text")),
                _ => Ok(Datum::Time(civil.micros)),
            };
        }
        let Some(micros) = civil.since_epoch().filter(|_| !civil.has_zeros()) else {
            return match rules.mysql {
                true => Ok(Datum::Null),
                false => Err(Refusal::new("a date with a zero month or day, which no calendar has")),
            };
        };
        Ok(match result {
            Kind::Date => Datum::Date(micros.div_euclid(DAY)),
            _ => Datum::DateTime(micros),
        })
    }))
}

fn specifiers(format: &str) -> Vec<char> {
    let mut found = Vec::new();
    let mut letters = format.chars();
    while let Some(letter) = letters.next() {
        if letter == '%' {
            found.extend(letters.next());
        }
    }
    found
}

impl Scanned {
    /// The date and time; `None` if a part is out of range.
    fn civil(&self) -> Result<Option<Civil>, Refusal> {
        let hour = match self.halves {
            true if !(1..=12).contains(&self.hour) => return Ok(None),
            true => self.hour % 12 + if self.afternoon { 12 } else { 0 },
            false => self.hour,
        };
        let micros = ((hour * 60 + self.minute) * 60 + self.second) * SECOND + self.micros;
        let mut civil = Civil { year: self.year, month: self.month, day: self.day, micros };
        if self.day_of_year > 0 {
            let first = calendar::days(self.year, 1, 1).filter(|_| self.year > 0);
            let first = first.ok_or_else(|| Refusal::new("a day of the year 0"))?;
            civil = Civil { micros, ..Civil::of_days(first + self.day_of_year - 1) };
        }
        let is_in_range = civil.month <= 12 && civil.day <= 31 && civil.year <= 9999;
        let is_clock = hour <= 23 && self.minute <= 59 && self.second <= 59;
        Ok((is_in_range && is_clock).then_some(civil))
    }
}

/// The parts of a text; `None` if it does not follow the format. It may end before the format does.
fn scanned(text: &str, format: &str) -> Option<Scanned> {
    let mut scanned = Scanned::default();
    let mut rest = text;
    scan(&mut scanned, &mut rest, format)?;
    Some(scanned)
}

fn scan(scanned: &mut Scanned, rest: &mut &str, format: &str) -> Option<()> {
    let mut letters = format.chars().peekable();
    while let Some(letter) = letters.next() {
        *rest = rest.trim_start_matches([' ', '\t', '\n', '\r', '\u{b}', '\u{c}']);
        if rest.is_empty() {
            return Some(());
        }
        if letter == '%' && letters.peek().is_some() {
            let letter = letters.next()?;
            match letter {
                'r' => scan(scanned, rest, "%I:%i:%S %p")?,
                'T' => scan(scanned, rest, "%H:%i:%S")?,
                letter => specifier(scanned, rest, letter)?,
            }
        } else if !letter.is_whitespace() {
            *rest = rest.strip_prefix(letter)?;
        }
    }
    Some(())
}

fn specifier(scanned: &mut Scanned, rest: &mut &str, letter: char) -> Option<()> {
    match letter {
        'Y' => {
            let (year, length) = digits(rest, 4)?;
            scanned.year = if length <= 2 { century(year) } else { year };
        }
        'y' => scanned.year = century(digits(rest, 2)?.0),
        'm' | 'c' => scanned.month = digits(rest, 2)?.0,
        'd' | 'e' => scanned.day = digits(rest, 2)?.0,
        'D' => {
            scanned.day = digits(rest, 2)?.0;
            *rest = rest.get(rest.len().min(2)..)?;
        }
        'H' | 'k' => scanned.hour = digits(rest, 2)?.0,
        'h' | 'I' | 'l' => {
            scanned.hour = digits(rest, 2)?.0;
            scanned.halves = true;
        }
        'i' => scanned.minute = digits(rest, 2)?.0,
        's' | 'S' => scanned.second = digits(rest, 2)?.0,
        'f' => {
            let (number, length) = digits(rest, 6)?;
            scanned.micros = number * 10i64.pow(6 - length);
        }
        'j' => scanned.day_of_year = digits(rest, 3)?.0,
        'p' => {
            let word = rest.get(..2)?.to_ascii_uppercase();
            scanned.afternoon = match word.as_str() {
                "PM" if scanned.halves => true,
                "AM" if scanned.halves => false,
                _ => return None,
            };
            *rest = &rest[2..];
        }
        'M' => scanned.month = named(rest, &MONTHS, usize::MAX)?,
        'b' => scanned.month = named(rest, &MONTHS, 3)?,
        // The name of a day changes nothing.
        'W' => {
            named(rest, &DAYS, usize::MAX)?;
        }
        'a' => {
            named(rest, &DAYS, 3)?;
        }
        _ => return None,
    }
    Some(())
}

/// The number of at most `most` digits, and how many they are.
fn digits(rest: &mut &str, most: usize) -> Option<(i64, u32)> {
    let length = rest.bytes().take(most).take_while(u8::is_ascii_digit).count();
    let (digits, behind) = rest.split_at(length);
    *rest = behind;
    Some((digits.parse().ok()?, length as u32))
}

fn century(year: i64) -> i64 {
    if year < 70 { year + 2000 } else { year + 1900 }
}

/// The position of a name, counted from 1, of which `length` letters are written at most, and so many that no other
/// name begins with them.
fn named(rest: &mut &str, names: &[&str], length: usize) -> Option<i64> {
    let end = rest.find(|letter: char| !letter.is_ascii_alphabetic()).unwrap_or(rest.len());
    let (word, behind) = rest.split_at(end);
    let begins = |name: &str| {
        name.get(..word.len()).is_some_and(|start| start.eq_ignore_ascii_case(word)) && word.len() <= length
    };
    let is_name = |name: &str| name.len().min(length) == word.len() && begins(name);
    let at = match names.iter().position(|name| is_name(name)) {
        Some(at) => at,
        None => {
            let mut found = names.iter().enumerate().filter(|(_, name)| begins(name)).map(|(at, _)| at);
            found.next().filter(|_| !word.is_empty() && found.next().is_none())?
        }
    };
    *rest = behind;
    Some(at as i64 + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_read_by_their_format() {
        let read = |text, format| {
            let scanned = scanned(text, format)?;
            scanned.civil().unwrap()?.since_epoch()
        };
        assert_eq!(read("Jan 2 70", "%b %e %y"), Some(DAY));
        assert_eq!(read("1970-01-01 01:00 pm", "%Y-%m-%d %h:%i %p"), Some(13 * 3600 * SECOND));
        assert_eq!(read("1970-032", "%Y-%j"), Some(31 * DAY));
        assert_eq!(read("1970/01", "%Y-%m"), None);
        assert_eq!(read("1970-01-01 13 pm", "%Y-%m-%d %h %p"), None);
    }
}
