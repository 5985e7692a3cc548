//! Numbers in other bases: `BIN`, `OCT`, `CONV`.

use super::super::conversions::textual;
use super::super::datum::Datum;
use super::super::node::Typed;
use super::super::{Kind, Refusal};

pub(super) fn function(name: &str, operands: &[Typed], mysql: bool) -> Result<Option<Typed>, Refusal> {
    let (bases, operands) = match (name, operands.len()) {
        ("bin", 1) => (Some((10, 2)), operands.to_vec()),
        ("oct", 1) => (Some((10, 8)), operands.to_vec()),
        ("conv", 3) => (None, operands.to_vec()),
        _ => return Ok(None),
    };
    if operands[0].kind.is_binary() {
        return Err(Refusal::new("bytes in another base"));
    }
    textual(&operands[0], mysql)?;
    let kinds: Vec<Kind> = operands.iter().map(|operand| operand.kind.clone()).collect();
    Ok(Some(Typed::call(super::encode::ascii(), operands, move |values| {
        let Some(text) = values[0].text(&kinds[0])? else { return Ok(Datum::Null) };
        let (from, to) = match bases {
            Some(bases) => bases,
            None => match (values[1].whole(&kinds[1])?, values[2].whole(&kinds[2])?) {
                (Some(from), Some(to)) => (from, to),
                _ => return Ok(Datum::Null),
            },
        };
        if mysql && text.trim_start().starts_with('-') && text.len() > 16 {
            return Err(Refusal::new("a long negative number in another base"));
        }
        Ok(converted(&text, from, to).map_or(Datum::Null, Datum::Text))
    })))
}

/// The integer that a text of one base begins with, in another; negative bases are of signed numbers.
fn converted(text: &str, from: i128, to: i128) -> Option<String> {
    let base = |base: i128| u32::try_from(base.unsigned_abs()).ok().filter(|base| (2..=36).contains(base));
    let (from_base, to_base) = (base(from)?, base(to)?);
    if text.is_empty() {
        return None;
    }
    let number = parsed(text, from_base, from < 0);
    let (negative, mut rest) = match to < 0 {
        true => (number.cast_signed() < 0, number.cast_signed().unsigned_abs()),
        false => (false, number),
    };
    let mut digits = Vec::new();
    while rest > 0 || digits.is_empty() {
        let digit = char::from_digit((rest % u64::from(to_base)) as u32, to_base)?;
        digits.push(digit.to_ascii_uppercase());
        rest /= u64::from(to_base);
    }
    digits.extend(negative.then_some('-'));
    Some(digits.iter().rev().collect())
}

/// The bits of a number of that base, the nearest that 64 bits hold.
fn parsed(text: &str, base: u32, signed: bool) -> u64 {
    let text = text.trim_start_matches([' ', '\t', '\n', '\r', '\u{b}', '\u{c}']);
    let (negative, digits) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let mut number = 0u128;
    for digit in digits.chars().map_while(|digit| digit.to_digit(base)) {
        number = (number * u128::from(base) + u128::from(digit)).min(1 << 100);
    }
    match (signed, negative) {
        (false, _) if number > u64::MAX.into() => u64::MAX,
        (false, true) => (number as u64).wrapping_neg(),
        (false, false) => number as u64,
        (true, true) => (number.min(1 << 63) as u64).wrapping_neg(),
        (true, false) => number.min(i64::MAX as u128) as u64,
    }
}

#[cfg(test)]
mod tests {
    use super::converted;

    #[test]
    fn numbers_change_their_base() {
        assert_eq!(converted("ff", 16, 10).as_deref(), Some("255"));
        assert_eq!(converted("-17", 10, -18).as_deref(), Some("-H"));
        assert_eq!(converted("-1", 10, 16).as_deref(), Some("FFFFFFFFFFFFFFFF"));
        assert_eq!(converted("18446744073709551616", 10, 16).as_deref(), Some("FFFFFFFFFFFFFFFF"));
        assert_eq!(converted("x", 10, 8).as_deref(), Some("0"));
        assert_eq!(converted("", 10, 8), None);
        assert_eq!(converted("5", 1, 2), None);
    }
}
