//! Warnings that the servers give while they compute: of a text that is no number, of a value that is cut, of a
//! division by zero.
//!
//! Whoever computes values of many rows does so within [`noting`] and gets the warnings of its thread. Outside of it
//! they are dropped.

use std::cell::RefCell;

/// Warnings that are kept; further ones are counted.
const MAX_KEPT: usize = 1024;

/// The level of most.
const WARNING: &str = "Warning";
/// Truncated and incorrect values.
const TRUNCATED: u16 = 1292;
/// Division by zero.
const DIVISION_BY_ZERO: u16 = 1365;
/// A DECIMAL without a digit.
const INCORRECT_DECIMAL: u16 = 1366;
/// The logarithm of what has none.
const LOGARITHM: u16 = 3020;

/// A warning: the server's number and its text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Note {
    /// `Warning` or `Note`.
    pub level: &'static str,
    pub code: u16,
    pub text: String,
    /// Whether it is of a constant, which the servers convert once.
    pub is_of_constant: bool,
}

/// The warnings of a computation.
#[derive(Debug, Default)]
pub(crate) struct Notes {
    /// The first ones.
    pub kept: Vec<Note>,
    /// How many there are.
    pub count: u64,
    mysql: bool,
    /// Whether a comparison is being computed.
    compares: bool,
}

impl Notes {
    /// Whether the division by zero is what a warning is about.
    pub(crate) fn is_division(note: &Note) -> bool {
        note.code == DIVISION_BY_ZERO
    }
}

thread_local! {
    static NOTES: RefCell<Option<Notes>> = const { RefCell::new(None) };
}

/// What `compute` gives, and the warnings of it.
pub(crate) fn noting<T>(mysql: bool, compute: impl FnOnce() -> T) -> (T, Notes) {
    let before = NOTES.replace(Some(Notes { mysql, ..Notes::default() }));
    let result = compute();
    (result, NOTES.replace(before).unwrap_or_default())
}

fn add(code: u16, is_of_constant: bool, text: impl FnOnce(&Notes) -> Option<String>) {
    add_at(code, is_of_constant, |notes| Some((WARNING, text(notes)?)));
}

fn add_at(code: u16, is_of_constant: bool, text: impl FnOnce(&Notes) -> Option<(&'static str, String)>) {
    NOTES.with_borrow_mut(|notes| {
        let Some(notes) = notes else { return };
        let Some((level, text)) = text(notes) else { return };
        notes.count += 1;
        if notes.kept.len() < MAX_KEPT {
            notes.kept.push(Note { level, code, text, is_of_constant });
        }
    });
}

/// Whether all of a text is a number, but for blanks around it.
fn is_number(text: &str) -> bool {
    let text = text.trim_start_matches(|c: char| c.is_ascii_whitespace());
    let text = text.trim_end_matches(|c: char| c.is_ascii_whitespace());
    let text = text.strip_prefix(['+', '-']).unwrap_or(text);
    let (mantissa, exponent) = match text.find(['e', 'E']) {
        Some(at) => (&text[..at], Some(&text[at + 1..])),
        None => (text, None),
    };
    let are_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let has_digits = !whole.is_empty() || !fraction.is_empty();
    let exponent = exponent.map(|exponent| exponent.strip_prefix(['+', '-']).unwrap_or(exponent));
    has_digits
        && are_digits(whole)
        && are_digits(fraction)
        && exponent.is_none_or(|exponent| !exponent.is_empty() && are_digits(exponent))
}

/// A text is taken for a number.
pub(super) fn number(text: &str) {
    add_at(TRUNCATED, false, |notes| {
        // MariaDB notes blanks behind a number; MySQL does not mind them, nor a text without a letter.
        let level = match is_number(text) {
            true if !notes.mysql && text.ends_with(' ') => "Note",
            true => return None,
            false if notes.mysql && text.is_empty() => return None,
            false => WARNING,
        };
        let word = if notes.compares && !notes.mysql { "DECIMAL" } else { "DOUBLE" };
        Some((level, format!("Truncated incorrect {word} value: '{text}'")))
    });
}

/// A constant text is compared with numbers.
pub(super) fn constant(text: &str) {
    add(TRUNCATED, true, |notes| {
        let word = if notes.mysql { "DOUBLE" } else { "DECIMAL" };
        (!is_number(text)).then(|| format!("Truncated incorrect {word} value: '{text}'"))
    });
}

/// A text is cast to an integer.
pub(super) fn integer(text: &str) {
    add(TRUNCATED, false, |_| {
        let digits = text.trim_matches(|c: char| c.is_ascii_whitespace());
        let unsigned = digits.strip_prefix(['+', '-']).unwrap_or(digits);
        let is_whole = !unsigned.is_empty() && unsigned.bytes().all(|byte| byte.is_ascii_digit());
        let fits = is_whole && digits.parse::<i128>().is_ok_and(in_64_bits);
        (!fits).then(|| format!("Truncated incorrect INTEGER value: '{text}'"))
    });
}

fn in_64_bits(number: i128) -> bool {
    (i128::from(i64::MIN)..=i128::from(u64::MAX)).contains(&number)
}

/// A text is cast to a DECIMAL.
pub(super) fn decimal(text: &str) {
    let has_digits = text
        .trim_start_matches(|c: char| c.is_ascii_whitespace())
        .trim_start_matches(['+', '-', '.'])
        .starts_with(|c: char| c.is_ascii_digit());
    add(INCORRECT_DECIMAL, false, |notes| {
        let is_empty = notes.mysql && !has_digits;
        is_empty.then(|| "Incorrect DECIMAL value: '0' for column '' at row -1".to_owned())
    });
    add(TRUNCATED, false, |_| {
        (!is_number(text)).then(|| format!("Truncated incorrect DECIMAL value: '{text}'"))
    });
}

/// A text is cut to `length` characters by a CAST.
pub(super) fn cut(text: &str, length: usize) {
    add(TRUNCATED, false, |_| Some(format!("Truncated incorrect CHAR({length}) value: '{text}'")));
}

/// A number is divided by zero.
pub(crate) fn division_by_zero() {
    add(DIVISION_BY_ZERO, false, |_| Some("Division by 0".to_owned()));
}

/// The logarithm of a number that has none, which MariaDB calls a division.
pub(super) fn logarithm() {
    NOTES.with_borrow(|notes| notes.as_ref().map(|notes| notes.mysql)).into_iter().for_each(|mysql| {
        match mysql {
            true => add(LOGARITHM, false, |_| Some("Invalid argument for logarithm".to_owned())),
            false => division_by_zero(),
        }
    });
}

/// What `compute` gives, which compares.
pub(super) fn comparing<T>(compute: impl FnOnce() -> T) -> T {
    let set = |compares: bool| {
        NOTES.with_borrow_mut(|notes| {
            notes.as_mut().map(|notes| std::mem::replace(&mut notes.compares, compares)).unwrap_or_default()
        })
    };
    let before = set(true);
    let result = compute();
    set(before);
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_that_are_no_numbers_are_noted() {
        for (text, is) in
            [("1", true), (" -1.5e3 ", true), (".5", true), ("5x", false), ("", false), ("1e", false)]
        {
            assert_eq!(is_number(text), is, "{text}");
        }
        let ((), notes) = noting(false, || {
            number("abc");
            comparing(|| number(""));
            integer("5.5");
            decimal("x");
            number("7");
        });
        let texts: Vec<_> = notes.kept.iter().map(|note| note.text.as_str()).collect();
        let expected = [
            "Truncated incorrect DOUBLE value: 'abc'",
            "Truncated incorrect DECIMAL value: ''",
            "Truncated incorrect INTEGER value: '5.5'",
            "Truncated incorrect DECIMAL value: 'x'",
        ];
        assert_eq!(texts, expected);
        number("outside of a computation");
    }
}
