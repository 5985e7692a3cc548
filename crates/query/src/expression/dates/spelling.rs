//! Dates and times that texts spell.
//!
//! A date is digits without anything between them (`20240105`, `240105101112`), or year, month and day with
//! punctuation between them, then perhaps `T`, spaces or punctuation and a time. A time is `hh:mm:ss` or digits from
//! the right, perhaps with days before it (`1 10:11`). Years of two digits are of 1970 to 2069. What follows is cut
//! off with a warning. Spellings whose reading is not certain are refused.

use super::civil::Civil;
use crate::expression::calendar::{DAY, MAX_TIME};
use crate::expression::{Refusal, Rules, Zone};

const SECOND: i64 = 1_000_000;
/// More digits are refused where a number may have any count of them.
const MAX_DIGITS: usize = 6;

/// A date that a text spells.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(in crate::expression) struct SpelledDate {
    pub civil: Civil,
    pub has_time: bool,
    /// Digits of the fraction, at most 6.
    pub fsp: u8,
    /// Whether all of the text was read.
    pub whole: bool,
    /// Whether the time is set off by a space (MariaDB: or a `T`).
    pub(super) is_set_off: bool,
}

/// A time that a text spells.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(in crate::expression) struct SpelledTime {
    pub micros: i64,
    /// Digits of the fraction, at most 6.
    pub fsp: u8,
    /// Whether all of the text was read.
    pub whole: bool,
    /// Whether it was longer than a TIME may be.
    pub is_clipped: bool,
}

/// What is left of a text.
struct Rest<'a>(&'a [u8]);

impl<'a> Rest<'a> {
    fn peek(&self) -> Option<u8> {
        self.0.first().copied()
    }

    fn digits(&mut self) -> &'a [u8] {
        self.at_most(usize::MAX)
    }

    fn at_most(&mut self, most: usize) -> &'a [u8] {
        let length = self.0.iter().take(most).take_while(|byte| byte.is_ascii_digit()).count();
        let (digits, rest) = self.0.split_at(length);
        self.0 = rest;
        digits
    }

    fn spaces(&mut self) -> usize {
        let length = self.0.iter().take_while(|byte| is_space(**byte)).count();
        self.0 = &self.0[length..];
        length
    }

    fn has_digit_at(&self, at: usize) -> bool {
        self.0.get(at).is_some_and(u8::is_ascii_digit)
    }

    /// Whether nothing but spaces is left.
    fn is_blank(&self) -> bool {
        self.0.iter().all(|byte| is_space(*byte))
    }
}

fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\r' | 0x0b | 0x0c)
}

fn number(digits: &[u8]) -> i64 {
    digits
        .iter()
        .fold(0i64, |number, digit| number.saturating_mul(10).saturating_add(i64::from(digit - b'0')))
}

fn odd(what: &str, text: &str) -> Refusal {
    Refusal::new(format!("a {what} spelled '{text}'"))
}

/// Microseconds of the digits behind a point, and how many they are. MySQL rounds what is beyond six, MariaDB cuts it.
fn fraction(rest: &mut Rest<'_>, rules: &Rules) -> (i64, u8) {
    let digits = rest.digits();
    let kept = &digits[..digits.len().min(6)];
    let scale = 10i64.pow(6 - kept.len() as u32);
    let up = rules.mysql && digits.get(6).is_some_and(|digit| *digit >= b'5');
    (number(kept) * scale + i64::from(up), kept.len() as u8)
}

/// The date that a text spells; `None` if it spells none, which is NULL.
///
/// # Errors
/// If it is not certain how the server reads it.
pub(in crate::expression) fn date(text: &str, rules: &Rules) -> Result<Option<SpelledDate>, Refusal> {
    let mut rest = Rest(text.as_bytes());
    rest.spaces();
    if rest.peek() == Some(b'+') && !rules.mysql {
        return Err(odd("date", text));
    }
    let run = rest.0.iter().take_while(|byte| byte.is_ascii_digit() || **byte == b'T').count();
    if !rest.has_digit_at(0) {
        return Ok(None);
    }
    match (rest.0.get(run), run) {
        (None, _) | (Some(b'.'), 12..) => without_punctuation(rest, run, text, rules),
        // MySQL reads an hour behind the point, MariaDB nothing.
        (Some(b'.'), 5..) => Err(odd("date", text)),
        _ => with_punctuation(rest, text, rules),
    }
}

/// `20240105`, `20240105101112.5`.
fn without_punctuation(
    mut rest: Rest<'_>,
    run: usize,
    text: &str,
    rules: &Rules,
) -> Result<Option<SpelledDate>, Refusal> {
    let year_length = if run == 4 || run == 8 || run >= 14 { 4 } else { 2 };
    let mut parts = [0i64; 6];
    let mut count = 0;
    for (at, part) in parts.iter_mut().enumerate() {
        let digits = rest.at_most(if at == 0 { year_length } else { 2 });
        if digits.is_empty() {
            break;
        }
        *part = number(digits);
        count += 1;
        if at == 2 && rest.peek() == Some(b'T') {
            rest.0 = &rest.0[1..];
        }
    }
    if matches!(rest.peek(), Some(byte) if byte == b'T' || byte.is_ascii_digit()) {
        return Err(odd("date", text));
    }
    let (mut micros, mut fsp) = (0, 0);
    if count == 6 && rest.peek() == Some(b'.') {
        rest.0 = &rest.0[1..];
        (micros, fsp) = fraction(&mut rest, rules);
    } else if rest.peek() == Some(b'.') {
        return Err(odd("date", text));
    }
    let whole = rest.is_blank();
    let spelled = Fields { parts, count, year_length, micros, fsp, whole, is_set_off: true };
    spelled.date(text, None, rules)
}

/// `2024-01-05 10:11:12.5`.
fn with_punctuation(mut rest: Rest<'_>, text: &str, rules: &Rules) -> Result<Option<SpelledDate>, Refusal> {
    let mut parts = [0i64; 6];
    let (mut count, mut year_length, mut is_set_off) = (0, 0, false);
    for (at, part) in parts.iter_mut().enumerate() {
        let digits = rest.digits();
        if digits.is_empty() {
            break;
        }
        if digits.len() > MAX_DIGITS && at < 3 {
            return Ok(None);
        }
        *part = number(digits);
        count += 1;
        if at == 0 {
            year_length = digits.len();
        }
        if at == 5 {
            break;
        }
        let Some(next) = rest.peek() else { break };
        match (at, next) {
            (2, b'T') => {
                rest.0 = &rest.0[1..];
                is_set_off = !rules.mysql;
            }
            (2, next) if is_space(next) => {
                rest.spaces();
                is_set_off = true;
                if rest.peek().is_some_and(|next| next.is_ascii_punctuation()) {
                    return Err(odd("date", text));
                }
            }
            (_, next) if next.is_ascii_punctuation() && rest.has_digit_at(1) => rest.0 = &rest.0[1..],
            (0 | 1, next) if next.is_ascii_punctuation() => return Err(odd("date", text)),
            (3.., next) if is_space(next) && !rest.is_blank() => return Err(odd("date", text)),
            _ => break,
        }
    }
    let (mut micros, mut fsp) = (0, 0);
    if count == 6 && rest.peek() == Some(b'.') {
        rest.0 = &rest.0[1..];
        (micros, fsp) = fraction(&mut rest, rules);
    }
    let zone = match rest.peek() {
        Some(b'+' | b'-') if rules.mysql && count == 6 => {
            let offset = std::str::from_utf8(rest.0).unwrap_or_default();
            match Zone::parse(offset, true) {
                Some(Zone::Offset(seconds)) if offset.len() == 6 => {
                    rest.0 = &[];
                    Some(i64::from(seconds))
                }
                _ => return Err(odd("date", text)),
            }
        }
        _ => None,
    };
    let whole = rest.is_blank();
    Fields { parts, count, year_length, micros, fsp, whole, is_set_off }.date(text, zone, rules)
}

struct Fields {
    parts: [i64; 6],
    count: usize,
    year_length: usize,
    micros: i64,
    fsp: u8,
    whole: bool,
    is_set_off: bool,
}

impl Fields {
    /// `zone` is the offset in seconds that MySQL reads.
    fn date(&self, text: &str, zone: Option<i64>, rules: &Rules) -> Result<Option<SpelledDate>, Refusal> {
        let [mut year, month, day, hour, minute, second] = self.parts;
        if self.count < 3 {
            return Ok(None);
        }
        let is_zero = self.micros == 0 && self.parts == [0; 6];
        if self.year_length == 2 && !is_zero {
            year += if year < 70 { 2000 } else { 1900 };
        }
        if month > 12 || day > 31 || hour > 23 || minute > 59 || second > 59 {
            return Ok(None);
        }
        // A fraction of more than six digits may round up to a second.
        let micros = ((hour * 60 + minute) * 60 + second) * SECOND + self.micros;
        let civil = Civil { year, month, day, micros };
        if !civil.is_possible() || (is_zero && rules.mysql) {
            return Ok(None);
        }
        if civil.is_zero() && !is_zero {
            return Err(odd("date", text));
        }
        let carried = zone.is_some() || micros >= DAY;
        let civil = match (carried, civil.since_epoch()) {
            (false, _) => civil,
            (true, None) => return Err(odd("date", text)),
            (true, Some(local)) => {
                let moved = match zone {
                    Some(seconds) => rules.zone.local(local - seconds * SECOND)?,
                    None => local,
                };
                Civil::of_micros(moved)
            }
        };
        Ok(civil.is_possible().then_some(SpelledDate {
            civil,
            has_time: self.count > 3,
            fsp: self.fsp,
            whole: self.whole,
            is_set_off: self.is_set_off,
        }))
    }
}

/// The time that a text spells, or that of a date and time in it; `None` if it spells none, which is NULL.
///
/// # Errors
/// If it is not certain how the server reads it.
pub(in crate::expression) fn time(text: &str, rules: &Rules) -> Result<Option<SpelledTime>, Refusal> {
    let mut rest = Rest(text.as_bytes());
    rest.spaces();
    // From twelve characters on, a date and time is looked for first.
    if !text.is_ascii() || (rest.0.len() < 12 && rest.0.contains(&b'T')) {
        return Err(odd("time", text));
    }
    if rest.0.len() >= 12 && rest.has_digit_at(0) && has_date(rest.0) {
        return match date(text, rules)? {
            // A fraction of more digits may be rounded up to the next day.
            Some(found) if found.has_time && found.is_set_off && text.len() <= 26 => {
                let (micros, fsp, whole) = (found.civil.micros, found.fsp, found.whole);
                Ok(Some(SpelledTime { micros, fsp, whole, is_clipped: false }))
            }
            _ => Err(odd("time", text)),
        };
    }
    let negative = rest.peek() == Some(b'-');
    if negative {
        rest.0 = &rest.0[1..];
        rest.spaces();
    }
    match rest.peek() {
        Some(b'0'..=b'9') => {}
        Some(b'+' | b'.' | b':') => return Err(odd("time", text)),
        _ => return Ok(None),
    }
    let Some(seconds) = clock(&mut rest, text)? else { return Ok(None) };
    let (mut micros, mut fsp) = (0, 0);
    if rest.peek() == Some(b'.') {
        rest.0 = &rest.0[1..];
        (micros, fsp) = fraction(&mut rest, rules);
    }
    if matches!(rest.peek(), Some(b'e' | b'E')) {
        return Err(odd("time", text));
    }
    let whole = rest.is_blank();
    let micros = seconds.saturating_mul(SECOND).saturating_add(micros);
    let is_clipped = micros / SECOND > MAX_TIME / SECOND;
    let micros = clipped(micros, rules);
    if negative && micros == 0 && !rules.mysql {
        return Err(odd("time", text));
    }
    Ok(Some(SpelledTime { micros: if negative { -micros } else { micros }, fsp, whole, is_clipped }))
}

/// A TIME that is too long is the longest one.
pub(super) fn clipped(micros: i64, rules: &Rules) -> i64 {
    match (micros > MAX_TIME, rules.mysql) {
        (true, true) => MAX_TIME,
        (true, false) if micros / SECOND > MAX_TIME / SECOND => MAX_TIME + 999_999,
        _ => micros,
    }
}

/// Whether a text of twelve characters or more begins with a date.
fn has_date(text: &[u8]) -> bool {
    let run = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    match text.get(run) {
        None | Some(b'.') if run >= 12 => true,
        Some(b'T') => true,
        // `100:11:12.123456` and `1 10:11:12.5` are times.
        Some(b':') => {
            let end = text.iter().position(|byte| is_space(*byte)).unwrap_or(text.len());
            text[..end].iter().filter(|byte| **byte == b':').count() >= 2 && end + 1 < text.len()
        }
        Some(next) => next.is_ascii_punctuation() && *next != b'.' || (*next == b'.' && run == 4),
        None => false,
    }
}

/// Seconds of `[D ]hh:mm[:ss]`, `D hh`, or digits from the right.
fn clock(rest: &mut Rest<'_>, text: &str) -> Result<Option<i64>, Refusal> {
    let first = rest.digits();
    if first.len() > 9 {
        return Err(odd("time", text));
    }
    let first = number(first);
    let mut hours = 0;
    let mut parts = match rest.peek() {
        Some(b':') if rest.has_digit_at(1) => [Some(first), None, None],
        Some(next) if is_space(next) && !rest.is_blank() => {
            rest.spaces();
            if !rest.has_digit_at(0) {
                return digits_from_right(first);
            }
            hours = first * 24;
            let digits = rest.digits();
            if digits.len() > MAX_DIGITS {
                return Err(odd("time", text));
            }
            [Some(number(digits)), None, None]
        }
        _ => return digits_from_right(first),
    };
    for part in &mut parts[1..] {
        if rest.peek() != Some(b':') || !rest.has_digit_at(1) {
            break;
        }
        rest.0 = &rest.0[1..];
        let digits = rest.digits();
        if digits.len() > MAX_DIGITS {
            return Err(odd("time", text));
        }
        *part = Some(number(digits));
    }
    // `1:1:1 1` is read in two ways.
    if rest.peek().is_some_and(is_space) && rest.0.iter().any(u8::is_ascii_digit) {
        return Err(odd("time", text));
    }
    let [hour, minute, second] = parts.map(|part| part.unwrap_or(0));
    Ok((minute <= 59 && second <= 59).then_some((hours + hour) * 3600 + minute * 60 + second))
}

fn digits_from_right(number: i64) -> Result<Option<i64>, Refusal> {
    let (hours, minutes, seconds) = (number / 10_000, number / 100 % 100, number % 100);
    Ok((minutes <= 59 && seconds <= 59).then_some(hours * 3600 + minutes * 60 + seconds))
}

/// Whether a text is spelled as a time with a colon and nothing else.
pub(super) fn is_time(text: &str) -> bool {
    let text = text.strip_prefix('-').unwrap_or(text);
    let (clock, fraction) = text.split_once('.').unwrap_or((text, ""));
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let parts: Vec<&str> = clock.split(':').collect();
    (2..=3).contains(&parts.len())
        && parts.iter().all(|part| is_number(part))
        && fraction.bytes().all(|byte| byte.is_ascii_digit())
}

/// Whether a text is spelled `1 10:11:12`.
pub(super) fn is_days_and_time(text: &str) -> bool {
    let (days, clock) = text.trim_start_matches('-').split_once(' ').unwrap_or((text, ""));
    days.bytes().all(|byte| byte.is_ascii_digit()) && is_time(clock)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_read_in_all_spellings() {
        let read = |text: &str| {
            let spelled = date(text, &Rules::new(true)).unwrap()?;
            Some((spelled.civil.since_epoch().unwrap(), spelled.has_time))
        };
        for text in ["1970-01-02", "1970.1.2", "19700102", "700102", "70-1-2", " 1970/01/02 x"] {
            assert_eq!(read(text), Some((DAY, false)), "{text}");
        }
        for text in
            ["1970-01-01 00:00:01.5", "19700101000001.5", "1970-1-1T0:0:1.5", "1970-01-01 02:00:01.5+02:00"]
        {
            assert_eq!(read(text), Some((1_500_000, true)), "{text}");
        }
        for text in ["1970-13-01", "1970-02-29", "abc", "", "1970", "1970-01-01 24:00:00"] {
            assert_eq!(read(text), None, "{text}");
        }
    }

    #[test]
    fn times_are_read_in_all_spellings() {
        let read = |text: &str| time(text, &Rules::new(true)).unwrap().map(|spelled| spelled.micros / SECOND);
        for text in ["10:11:12", "101112", "10:11:12.4", "2024-01-05 10:11:12", "0 10:11:12"] {
            assert_eq!(read(text), Some(36_672), "{text}");
        }
        assert_eq!(read("-1 10:11"), Some(-123_060));
        assert_eq!(read("900:00:00"), Some(3_020_399));
        assert_eq!(read("10:60:00"), None);
    }
}
