//! `NATURAL_SORT_KEY` and `SFORMAT` of MariaDB.

use super::super::datum::{Datum, Number};
use super::super::node::Typed;
use super::super::{Kind, Refusal};
use super::{Texts, bounded, texts};

/// Most digits of a number whose length is known how to be spelled.
const MAX_DIGITS: usize = 99;
/// Exponents of ten of the numbers that SFORMAT shows without an exponent.
const PLAIN_EXPONENTS: std::ops::Range<i32> = -4..16;

pub(super) fn function(name: &str, operands: &[Typed], mysql: bool) -> Result<Option<Typed>, Refusal> {
    Ok(Some(match (name, operands.len()) {
        ("natural_sort_key", 1) if !mysql => {
            texts(operands.to_vec(), &[0], mysql, |texts, _| sort_key(&texts[0]).map(Some))?
        }
        ("sformat", 1..) if !mysql => formatted(operands.to_vec())?,
        _ => return Ok(None),
    }))
}

/// The text with the length of each number before its digits, and without zeros before them.
fn sort_key(text: &str) -> Result<String, Refusal> {
    let mut key = String::with_capacity(text.len() + text.len() / 2);
    let mut rest = text;
    while let Some(letter) = rest.chars().next() {
        if !letter.is_ascii_digit() {
            key.push(letter);
            rest = &rest[letter.len_utf8()..];
            continue;
        }
        let end = rest.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(rest.len());
        let (digits, behind) = rest.split_at(end);
        let significant = match digits.trim_start_matches('0') {
            "" => "0",
            digits => digits,
        };
        key.push_str(&length_spelled(significant.len())?);
        key.push_str(significant);
        rest = behind;
    }
    Ok(key)
}

/// A number of digits so that longer ones sort behind shorter ones.
fn length_spelled(digits: usize) -> Result<String, Refusal> {
    let spelled = |nines: &str, more: usize| format!("{nines}{more}");
    Ok(match digits {
        ..=9 => spelled("", digits - 1),
        10..=18 => spelled("9", digits - 10),
        19..=27 => spelled("99", digits - 19),
        28..=MAX_DIGITS => spelled("99901", digits - 1),
        _ => return Err(Refusal::new(format!("a number of more than {MAX_DIGITS} digits"))),
    })
}

/// A part of a format.
enum Part {
    Text(String),
    /// An operand, by its number.
    Value(usize),
}

/// The parts of a format, of which the operands have no formats of their own; `None` is NULL.
fn parts(format: &str) -> Result<Option<Vec<Part>>, Refusal> {
    let (mut parts, mut text) = (Vec::new(), String::new());
    let mut next = 0;
    let mut counts = None;
    let mut letters = format.chars().peekable();
    while let Some(letter) = letters.next() {
        match letter {
            '{' | '}' if letters.peek() == Some(&letter) => {
                letters.next();
                text.push(letter);
            }
            '}' => return Ok(None),
            '{' => {
                let mut number = String::new();
                loop {
                    match letters.next() {
                        Some('}') => break,
                        Some(digit) if digit.is_ascii_digit() => number.push(digit),
                        Some(_) => return Err(Refusal::new("a format of a value in SFORMAT")),
                        None => return Ok(None),
                    }
                }
                let is_counted = number.is_empty();
                // Numbers of operands are all written, or none is.
                if counts.is_some_and(|counts| counts != is_counted) {
                    return Ok(None);
                }
                counts = Some(is_counted);
                let at = match is_counted {
                    true => next,
                    false => number.parse().map_err(|_| Refusal::new("an operand's number in SFORMAT"))?,
                };
                next += 1;
                parts.push(Part::Text(std::mem::take(&mut text)));
                parts.push(Part::Value(at));
            }
            letter => text.push(letter),
        }
    }
    parts.push(Part::Text(text));
    Ok(Some(parts))
}

fn formatted(operands: Vec<Typed>) -> Result<Typed, Refusal> {
    let all: Vec<usize> = (0..operands.len()).collect();
    let common = Texts::of(&operands, &all, false)?;
    if common.binary || operands.iter().any(|of| of.kind == Kind::Float) {
        return Err(Refusal::new("SFORMAT of bytes or a FLOAT"));
    }
    let kinds: Vec<Kind> = operands.iter().map(|operand| operand.kind.clone()).collect();
    Ok(Typed::call(common.kind(), operands, move |values| {
        if values.iter().any(Datum::is_null) {
            return Ok(Datum::Null);
        }
        let format = values[0].text(&kinds[0])?.unwrap_or_default();
        let Some(parts) = parts(&format)? else { return Ok(Datum::Null) };
        let mut out = String::new();
        for part in parts {
            match part {
                Part::Text(text) => out.push_str(&text),
                Part::Value(at) => match values.get(at + 1) {
                    Some(value) => out.push_str(&shown(value, &kinds[at + 1])?),
                    None => return Ok(Datum::Null),
                },
            }
        }
        bounded(out.len())?;
        Ok(Datum::Text(out))
    }))
}

fn shown(value: &Datum, kind: &Kind) -> Result<String, Refusal> {
    if !kind.is_number() {
        return Ok(value.text(kind)?.unwrap_or_default());
    }
    Ok(match value.number(kind)? {
        None => String::new(),
        Some(Number::Whole(number)) => (number as i64).to_string(),
        Some(number) => shortest(number.to_f64()),
    })
}

/// The fewest digits that read back the same, with an exponent of two digits at least where it is far from 1.
fn shortest(number: f64) -> String {
    let scientific = format!("{number:e}");
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    match exponent.parse::<i32>() {
        Ok(exponent) if !PLAIN_EXPONENTS.contains(&exponent) => {
            let sign = if exponent < 0 { '-' } else { '+' };
            format!("{mantissa}e{sign}{:02}", exponent.abs())
        }
        _ => number.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_sort_by_their_lengths() {
        for (text, key) in [
            ("a10", "a110"),
            ("a002", "a02"),
            ("00", "00"),
            ("x007y08", "x07y08"),
            ("1.10", "01.110"),
            ("12345678901", "9112345678901"),
        ] {
            assert_eq!(sort_key(text).as_deref(), Ok(key));
        }
        assert_eq!(length_spelled(26).as_deref(), Ok("997"));
        assert_eq!(length_spelled(40).as_deref(), Ok("9990139"));
        assert!(length_spelled(100).is_err());
    }

    #[test]
    fn doubles_have_an_exponent_far_from_1() {
        for (number, text) in
            [(1e10, "10000000000"), (1e16, "1e+16"), (0.000_01, "1e-05"), (1.5e300, "1.5e+300")]
        {
            assert_eq!(shortest(number), text);
        }
    }
}
