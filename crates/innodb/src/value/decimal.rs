//! DECIMAL: the stored form and 256-bit integers.
//!
//! The stored form (MySQL's `decimal2bin`) groups the digits of each side of the point by nine, four bytes a group,
//! the odd digits in as few bytes as hold them. The first bit is flipped; a negative number has all bits flipped.

use super::Decimal;
use crate::{Error, ErrorKind, Result};

/// Bytes of 0 to 9 digits.
const DIGIT_BYTES: [usize; 10] = [0, 1, 1, 2, 2, 3, 3, 4, 4, 4];
const POWERS: [u32; 10] =
    [1, 10, 100, 1000, 10_000, 100_000, 1_000_000, 10_000_000, 100_000_000, 1_000_000_000];

/// Bytes that a DECIMAL(`precision`, `scale`) takes.
pub(crate) fn stored_bytes(precision: u8, scale: u8) -> usize {
    let whole = usize::from(precision.saturating_sub(scale));
    let fraction = usize::from(scale);
    whole / 9 * 4 + DIGIT_BYTES[whole % 9] + fraction / 9 * 4 + DIGIT_BYTES[fraction % 9]
}

/// Sizes of the digit groups in stored order.
pub(crate) fn groups(precision: u8, scale: u8) -> Vec<u8> {
    let (whole, fraction) = (precision.saturating_sub(scale), scale);
    let mut groups = Vec::new();
    if whole % 9 > 0 {
        groups.push(whole % 9);
    }
    groups.extend(std::iter::repeat_n(9, usize::from(whole / 9 + fraction / 9)));
    if fraction % 9 > 0 {
        groups.push(fraction % 9);
    }
    groups
}

/// Reads the stored form; `groups` are of the column's type.
pub(crate) fn decode(bytes: &[u8], groups: &[u8], scale: u8) -> Result<Decimal> {
    let negative = bytes.first().is_some_and(|first| first & 0x80 == 0);
    let mask = if negative { u32::MAX } else { 0 };
    let digits: usize = groups.iter().map(|digits| usize::from(*digits)).sum();
    let mut rest = bytes;
    let mut first = 0x80;
    let mut next = |digits: u8| -> Result<u32> {
        let width = DIGIT_BYTES[usize::from(digits)];
        let (group, tail) = rest.split_at_checked(width).ok_or_else(damaged)?;
        let mut word = [0; 4];
        word[4 - width..].copy_from_slice(group);
        if first != 0 {
            word[4 - width] ^= first;
            first = 0;
        }
        rest = tail;
        let flipped = mask.checked_shr(32 - 8 * width as u32).unwrap_or(0);
        let number = u32::from_be_bytes(word) ^ flipped;
        if number < POWERS[usize::from(digits)] { Ok(number) } else { Err(damaged()) }
    };
    if digits <= 18 {
        let mut unscaled = 0i64;
        for digits in groups {
            unscaled = unscaled * i64::from(POWERS[usize::from(*digits)]) + i64::from(next(*digits)?);
        }
        let unscaled = i128::from(if negative { -unscaled } else { unscaled });
        return Ok(Decimal { high: unscaled >> 127, low: unscaled as u128, scale });
    }
    let (mut high, mut low) = (0u128, 0u128);
    for digits in groups {
        (high, low) = multiply_add(high, low, POWERS[usize::from(*digits)], next(*digits)?);
    }
    if negative {
        (high, low) = negate(high, low);
    }
    Ok(Decimal { high: high as i128, low, scale })
}

/// How a DECIMAL of at most 8 stored bytes is read, all at once.
#[derive(Debug, Clone)]
pub(crate) struct ShortDecimal {
    bytes: usize,
    /// For each group of digits: how far to shift it down, the bits that it has, and its power of ten.
    groups: Box<[(u32, u64, u64)]>,
}

impl ShortDecimal {
    /// For `groups` of digits in stored order; `None` if they take more bytes.
    pub(crate) fn new(groups: &[u8]) -> Option<ShortDecimal> {
        let width = |digits: &u8| DIGIT_BYTES[usize::from(*digits)];
        let bytes: usize = groups.iter().map(width).sum();
        let digits: usize = groups.iter().map(|digits| usize::from(*digits)).sum();
        if !(1..=8).contains(&bytes) || digits > 18 {
            return None;
        }
        let mut left = bytes;
        let place = |digits: &u8| {
            left -= width(digits);
            let bits = 8 * width(digits) as u32;
            (8 * left as u32, (1 << bits) - 1, u64::from(POWERS[usize::from(*digits)]))
        };
        Some(ShortDecimal { bytes, groups: groups.iter().map(place).collect() })
    }

    /// The unscaled number.
    #[inline]
    pub(crate) fn decode(&self, stored: &[u8]) -> Result<i64> {
        if stored.len() != self.bytes {
            return Err(damaged());
        }
        let shift = 64 - 8 * self.bytes as u32;
        let mut word = [0; 8];
        word[8 - self.bytes..].copy_from_slice(stored);
        let flipped = u64::from_be_bytes(word) ^ 1 << (63 - shift);
        let negative = flipped >> (63 - shift) & 1 == 1;
        let digits = if negative { !flipped } else { flipped };
        let mut number = 0;
        for (shift, mask, power) in &self.groups {
            let group = digits >> shift & mask;
            if group >= *power {
                return Err(damaged());
            }
            number = number * power + group;
        }
        Ok(if negative { -number.cast_signed() } else { number.cast_signed() })
    }
}

/// Writes the stored form; `None` if the number does not fit the type exactly.
pub(crate) fn encode(value: &Decimal, precision: u8, scale: u8, unsigned: bool) -> Option<Vec<u8>> {
    let value = value.rescale(scale)?;
    let negative = value.high < 0;
    if negative && unsigned {
        return None;
    }
    let mut digits = value.digits();
    if digits.len() > usize::from(precision) {
        return None;
    }
    digits.splice(0..0, std::iter::repeat_n(b'0', usize::from(precision) - digits.len()));
    let mut bytes = Vec::with_capacity(stored_bytes(precision, scale));
    let mut rest = digits.as_slice();
    for count in groups(precision, scale) {
        let (group, tail) = rest.split_at(usize::from(count));
        let number = group.iter().fold(0u32, |number, digit| number * 10 + u32::from(digit - b'0'));
        bytes.extend_from_slice(&number.to_be_bytes()[4 - DIGIT_BYTES[usize::from(count)]..]);
        rest = tail;
    }
    if negative {
        bytes.iter_mut().for_each(|byte| *byte = !*byte);
    }
    *bytes.first_mut()? ^= 0x80;
    Some(bytes)
}

fn damaged() -> Error {
    Error::new(ErrorKind::Corrupt, "a DECIMAL holds no decimal digits")
}

fn negate(high: u128, low: u128) -> (u128, u128) {
    let (low, carry) = (!low).overflowing_add(1);
    ((!high).wrapping_add(u128::from(carry)), low)
}

/// `value * factor + addend`, wrapping at 256 bits.
fn multiply_add(high: u128, low: u128, factor: u32, addend: u32) -> (u128, u128) {
    const HALF: u128 = u64::MAX as u128;
    let factor = u128::from(factor);
    let bottom = (low & HALF) * factor + u128::from(addend);
    let middle = (low >> 64) * factor + (bottom >> 64);
    let high = high.wrapping_mul(factor).wrapping_add(middle >> 64);
    (high, (middle << 64) | (bottom & HALF))
}

/// `value / divisor` and the remainder.
fn divide(high: u128, low: u128, divisor: u32) -> (u128, u128, u32) {
    let divisor = u128::from(divisor);
    let mut words = [(high >> 64) as u64, high as u64, (low >> 64) as u64, low as u64];
    let mut remainder = 0u128;
    for word in &mut words {
        let dividend = (remainder << 64) | u128::from(*word);
        *word = (dividend / divisor) as u64;
        remainder = dividend % divisor;
    }
    let join = |high: u64, low: u64| (u128::from(high) << 64) | u128::from(low);
    (join(words[0], words[1]), join(words[2], words[3]), remainder as u32)
}

impl Decimal {
    /// A whole number.
    pub fn from_i128(number: i128) -> Decimal {
        Decimal { high: number >> 127, low: number as u128, scale: 0 }
    }

    /// `unscaled` as a 128-bit number, if it fits.
    pub fn to_i128(&self) -> Option<i128> {
        let low = self.low as i128;
        (self.high == low >> 127).then_some(low)
    }

    fn magnitude(&self) -> (u128, u128) {
        if self.high < 0 { negate(self.high as u128, self.low) } else { (self.high as u128, self.low) }
    }

    /// Decimal digits of the magnitude of `unscaled`, without leading zeros ("" for 0).
    fn digits(&self) -> Vec<u8> {
        let (mut high, mut low) = self.magnitude();
        let mut digits = Vec::with_capacity(80);
        while (high, low) != (0, 0) {
            let group;
            (high, low, group) = divide(high, low, POWERS[9]);
            let mut group = group;
            for _ in 0..9 {
                digits.push(b'0' + (group % 10) as u8);
                group /= 10;
            }
        }
        while digits.last() == Some(&b'0') {
            digits.pop();
        }
        digits.reverse();
        digits
    }

    /// The same number with `scale` digits after the point; `None` if that takes rounding or more than 256 bits.
    pub fn rescale(&self, scale: u8) -> Option<Decimal> {
        let (mut high, mut low) = self.magnitude();
        let mut at = self.scale;
        while at < scale {
            if high >> 123 != 0 {
                return None;
            }
            (high, low) = multiply_add(high, low, 10, 0);
            at += 1;
        }
        while at > scale {
            let remainder;
            (high, low, remainder) = divide(high, low, 10);
            if remainder != 0 {
                return None;
            }
            at -= 1;
        }
        if self.high < 0 {
            (high, low) = negate(high, low);
        }
        Some(Decimal { high: high as i128, low, scale })
    }

    /// The decimal that `text` (`-12.340`) spells, if it does and has at most 76 digits.
    pub fn parse(text: &str) -> Option<Decimal> {
        let (negative, digits) = match text.as_bytes() {
            [b'-', rest @ ..] => (true, rest),
            [b'+', rest @ ..] => (false, rest),
            rest => (false, rest),
        };
        let (mut high, mut low, mut scale, mut count) = (0, 0, None, 0u8);
        for byte in digits {
            match byte {
                b'0'..=b'9' => {
                    count += 1;
                    scale = scale.map(|scale: u8| scale + 1);
                    (high, low) = multiply_add(high, low, 10, u32::from(byte - b'0'));
                }
                b'.' if scale.is_none() => scale = Some(0),
                _ => return None,
            }
            if count > 76 {
                return None;
            }
        }
        if count == 0 {
            return None;
        }
        if negative {
            (high, low) = negate(high, low);
        }
        Some(Decimal { high: high as i128, low, scale: scale.unwrap_or(0) })
    }
}

impl std::fmt::Display for Decimal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut digits = self.digits();
        let scale = usize::from(self.scale);
        if digits.len() <= scale {
            digits.splice(0..0, std::iter::repeat_n(b'0', scale + 1 - digits.len()));
        }
        let (whole, fraction) = digits.split_at(digits.len() - scale);
        if self.high < 0 {
            f.write_str("-")?;
        }
        f.write_str(&String::from_utf8_lossy(whole))?;
        if scale > 0 {
            write!(f, ".{}", String::from_utf8_lossy(fraction))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_width_survives_the_round_trip() {
        let nines = "9".repeat(65);
        for (precision, scale) in [
            (1, 0),
            (1, 1),
            (5, 2),
            (9, 0),
            (9, 9),
            (15, 2),
            (16, 0),
            (18, 0),
            (18, 9),
            (19, 0),
            (38, 10),
            (38, 38),
            (39, 4),
            (65, 30),
            (65, 0),
        ] {
            let (whole, fraction) = nines[..precision].split_at(precision - scale);
            for text in [
                format!("{whole}.{fraction}"),
                format!("-{whole}.{fraction}"),
                "0".into(),
                "-1".into(),
                "1".into(),
            ] {
                let Some(value) = Decimal::parse(&text) else { panic!("{text}") };
                let stored = encode(&value, precision as u8, scale as u8, false);
                let expected = value
                    .rescale(scale as u8)
                    .filter(|_| precision > scale || text.contains('.') || text == "0");
                let Some(stored) = stored else {
                    assert_eq!(expected, None, "{text} as ({precision},{scale})");
                    continue;
                };
                assert_eq!(stored.len(), stored_bytes(precision as u8, scale as u8));
                let groups = groups(precision as u8, scale as u8);
                assert_eq!(
                    decode(&stored, &groups, scale as u8).ok(),
                    expected,
                    "{text} as ({precision},{scale})"
                );
                if let Some(short) = ShortDecimal::new(&groups) {
                    assert_eq!(
                        short.decode(&stored).ok().map(i128::from),
                        expected.and_then(|value| value.to_i128()),
                        "{text} as ({precision},{scale})"
                    );
                }
            }
        }
    }

    #[test]
    fn stored_forms_compare_like_the_numbers() {
        let numbers = ["-999.99", "-10.00", "-9.99", "-0.01", "0.00", "0.01", "1.00", "999.99"];
        let stored: Vec<_> =
            numbers.iter().map(|text| encode(&Decimal::parse(text).unwrap(), 5, 2, false).unwrap()).collect();
        assert!(stored.is_sorted());
        assert_eq!(numbers.map(|text| Decimal::parse(text).unwrap().to_string()), numbers);
    }

    #[test]
    fn decimals_that_do_not_fit_are_refused() {
        let decimal = |text| Decimal::parse(text).unwrap();
        assert_eq!(encode(&decimal("1.005"), 5, 2, false), None);
        assert_eq!(encode(&decimal("1000"), 5, 2, false), None);
        assert_eq!(encode(&decimal("-1"), 5, 2, true), None);
        assert!(encode(&decimal("1.50000"), 5, 2, true).is_some());
        assert!(decode(&[0xff, 0xff, 0xff], &groups(5, 2), 2).is_err());
        assert!(decode(&[0x80], &groups(5, 2), 2).is_err());
        let short = ShortDecimal::new(&groups(5, 2)).unwrap();
        assert!(short.decode(&[0xff, 0xff, 0xff]).is_err());
        assert!(short.decode(&[0x80]).is_err());
        assert!(ShortDecimal::new(&groups(18, 9)).is_some());
        assert!(ShortDecimal::new(&groups(19, 0)).is_none());
        for text in ["", ".", "-", "1.2.3", "1e5", "x"] {
            assert_eq!(Decimal::parse(text), None, "{text}");
        }
    }
}
