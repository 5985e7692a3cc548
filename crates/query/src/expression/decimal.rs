//! Exact numbers of up to 76 digits: DECIMAL and what is computed with it.

use datafusion::arrow::datatypes::i256;

use super::Refusal;
use crate::text::shortest_text;

/// Most digits after the point of a DECIMAL of MySQL.
pub(super) const MAX_SCALE: u8 = 30;
/// Most digits after the point of a DECIMAL of MariaDB.
pub(super) const MAX_SCALE_MARIADB: u8 = 38;
/// Most digits of a DECIMAL.
pub(super) const MAX_DIGITS: u8 = 65;
/// Decimal digits of a word of the servers' decimals: quotients have whole words of them.
const WORD_DIGITS: u8 = 9;
/// Words of the servers' decimals.
const MAX_WORDS: u8 = 9;

/// An exact number: `unscaled / 10^scale`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Decimal {
    pub unscaled: i256,
    pub scale: u8,
}

/// Ten to the power of `digits`.
pub(super) fn power(digits: u8) -> Result<i256, Refusal> {
    i256::from_i128(10).checked_pow(u32::from(digits)).ok_or_else(Refusal::digits)
}

/// Digits that hold `digits`, in whole words.
fn words(digits: u8) -> u8 {
    digits.div_ceil(WORD_DIGITS) * WORD_DIGITS
}

impl Decimal {
    /// `unscaled / 10^scale`.
    pub(super) fn new(unscaled: i128, scale: u8) -> Decimal {
        Decimal { unscaled: i256::from_i128(unscaled), scale }
    }

    /// A whole number.
    pub(super) fn whole(number: i128) -> Decimal {
        Decimal::new(number, 0)
    }

    /// Whether it is zero.
    pub(super) fn is_zero(self) -> bool {
        self.unscaled == i256::ZERO
    }

    /// -1, 0 or 1.
    pub(super) fn signum(self) -> i64 {
        match self.unscaled.signum().to_i128() {
            Some(sign) => sign as i64,
            None => 0,
        }
    }

    /// Without its sign.
    pub(super) fn abs(self) -> Decimal {
        Decimal { unscaled: self.unscaled.wrapping_abs(), ..self }
    }

    /// With the other sign.
    pub(super) fn negated(self) -> Decimal {
        Decimal { unscaled: self.unscaled.wrapping_neg(), ..self }
    }

    /// The number with `scale` digits, rounded half away from zero.
    pub(super) fn rounded(self, scale: u8) -> Result<Decimal, Refusal> {
        if scale >= self.scale {
            if scale == self.scale || self.is_zero() {
                return Ok(Decimal { unscaled: self.unscaled, scale });
            }
            let factor = power(scale - self.scale)?;
            let unscaled = self.unscaled.checked_mul(factor).ok_or_else(Refusal::digits)?;
            return Ok(Decimal { unscaled, scale });
        }
        let (quotient, remainder, divisor) = self.split(scale)?;
        let half = divisor.wrapping_div(i256::from_i128(2));
        let up = remainder.wrapping_abs() >= half;
        let step = if up { self.unscaled.signum() } else { i256::ZERO };
        Ok(Decimal { unscaled: quotient.wrapping_add(step), scale })
    }

    /// The number cut to `scale` digits.
    pub(super) fn truncated(self, scale: u8) -> Result<Decimal, Refusal> {
        if scale >= self.scale {
            return self.rounded(scale);
        }
        Ok(Decimal { unscaled: self.split(scale)?.0, scale })
    }

    /// The greatest whole number that is not greater, or the least that is not less if `up`.
    pub(super) fn to_whole(self, up: bool) -> Result<Decimal, Refusal> {
        if self.scale == 0 {
            return Ok(self);
        }
        let (quotient, remainder, _) = self.split(0)?;
        let step = match (up, remainder.is_positive(), remainder.is_negative()) {
            (true, true, _) => i256::ONE,
            (false, _, true) => i256::MINUS_ONE,
            _ => i256::ZERO,
        };
        Ok(Decimal { unscaled: quotient.wrapping_add(step), scale: 0 })
    }

    /// Rounded half away from zero, or cut, to a multiple of `10^places`.
    pub(super) fn before_point(self, places: u8, cuts: bool) -> Result<Decimal, Refusal> {
        if places > MAX_DIGITS {
            return Ok(Decimal::whole(0));
        }
        let shifted = Decimal { unscaled: self.unscaled, scale: self.scale.saturating_add(places) };
        if shifted.scale > 76 {
            return Ok(Decimal::whole(0));
        }
        let kept = if cuts { shifted.truncated(0)? } else { shifted.rounded(0)? };
        let unscaled = kept.unscaled.checked_mul(power(places)?).ok_or_else(Refusal::digits)?;
        Ok(Decimal { unscaled, scale: 0 })
    }

    /// Quotient, remainder and the power of ten that leaves `scale` digits.
    fn split(self, scale: u8) -> Result<(i256, i256, i256), Refusal> {
        let divisor = power(self.scale - scale)?;
        Ok((self.unscaled.wrapping_div(divisor), self.unscaled.wrapping_rem(divisor), divisor))
    }

    /// Both with the digits of the longer one.
    pub(super) fn aligned(self, other: Decimal) -> Result<(Decimal, Decimal), Refusal> {
        let scale = self.scale.max(other.scale);
        Ok((self.rounded(scale)?, other.rounded(scale)?))
    }

    /// How both compare.
    pub(super) fn compare(self, other: Decimal) -> Result<std::cmp::Ordering, Refusal> {
        if self.scale == other.scale {
            return Ok(self.unscaled.cmp(&other.unscaled));
        }
        // Whole parts decide without the digits that aligning needs.
        let (left, right) = (self.truncated(0)?, other.truncated(0)?);
        if left.unscaled != right.unscaled {
            return Ok(left.unscaled.cmp(&right.unscaled));
        }
        let (left, right) = self.aligned(other)?;
        Ok(left.unscaled.cmp(&right.unscaled))
    }

    /// Refuses numbers of more digits than a DECIMAL has, which the servers cut in their own way.
    fn checked(self) -> Result<Decimal, Refusal> {
        match self.digits() <= usize::from(MAX_DIGITS) {
            true => Ok(self),
            false => Err(Refusal::digits()),
        }
    }

    /// How many digits the unscaled number has.
    fn digits(self) -> usize {
        if self.is_zero() { 1 } else { self.unscaled.wrapping_abs().ilog10() as usize + 1 }
    }

    pub(super) fn plus(self, other: Decimal) -> Result<Decimal, Refusal> {
        let (a, b) = self.aligned(other)?;
        let unscaled = a.unscaled.checked_add(b.unscaled).ok_or_else(Refusal::digits)?;
        Decimal { unscaled, scale: a.scale }.checked()
    }

    pub(super) fn times(self, other: Decimal) -> Result<Decimal, Refusal> {
        let scale = self.scale.saturating_add(other.scale);
        if self.is_zero() || other.is_zero() {
            return Ok(Decimal { unscaled: i256::ZERO, scale });
        }
        if scale > 76 {
            return Err(Refusal::digits());
        }
        let unscaled = self.unscaled.checked_mul(other.unscaled).ok_or_else(Refusal::digits)?;
        Decimal { unscaled, scale }.checked()
    }

    /// The remainder, with the sign of the dividend; `None` of a zero divisor.
    pub(super) fn remainder(self, other: Decimal) -> Result<Option<Decimal>, Refusal> {
        let (a, b) = self.aligned(other)?;
        Ok(a.unscaled.checked_rem(b.unscaled).map(|unscaled| Decimal { unscaled, scale: a.scale }))
    }

    /// The whole part of the quotient; `None` of a zero divisor.
    pub(super) fn whole_quotient(self, other: Decimal) -> Result<Option<i256>, Refusal> {
        let (a, b) = self.aligned(other)?;
        Ok(a.unscaled.checked_div(b.unscaled))
    }

    /// The quotient of whole words of digits, cut, as MariaDB carries it on; `None` of a zero divisor.
    pub(super) fn quotient(self, other: Decimal, increment: u8) -> Result<Option<Decimal>, Refusal> {
        if other.is_zero() {
            return Ok(None);
        }
        // Quotients of quotients have ever more digits.
        if self.scale.max(other.scale) > 76 {
            return Err(Refusal::digits());
        }
        let (left, right) = (words(self.scale), words(other.scale));
        let added = increment.saturating_sub(left - self.scale + right - other.scale);
        let mut scale = words(left.saturating_add(right).saturating_add(added));
        // A decimal has nine words, of which the whole part takes the first.
        let whole =
            self.digits() as i64 - i64::from(self.scale) - other.digits() as i64 + i64::from(other.scale) + 1;
        let whole_words = u8::try_from(whole.clamp(0, 81)).unwrap_or(81).div_ceil(WORD_DIGITS);
        let most = MAX_WORDS.saturating_sub(whole_words) * WORD_DIGITS;
        if scale > most {
            scale = most;
        }
        // a / 10^i over b / 10^j is (a * 10^(scale + j - i)) / b / 10^scale.
        let shift = i16::from(scale) + i16::from(other.scale) - i16::from(self.scale);
        let (dividend, shift) = match u8::try_from(shift) {
            Ok(shift) => (self.unscaled, shift),
            Err(_) => return Err(Refusal::digits()),
        };
        let divisor = other.unscaled;
        let mut quotient = dividend.wrapping_div(divisor);
        let mut rest = dividend.wrapping_rem(divisor);
        let mut left = shift;
        while left > 0 {
            let step = left.min(WORD_DIGITS);
            let factor = power(step)?;
            let wider = rest.checked_mul(factor).ok_or_else(Refusal::digits)?;
            let more = quotient.checked_mul(factor).ok_or_else(Refusal::digits)?;
            quotient = more.checked_add(wider.wrapping_div(divisor)).ok_or_else(Refusal::digits)?;
            rest = wider.wrapping_rem(divisor);
            left -= step;
        }
        Ok(Some(Decimal { unscaled: quotient, scale }))
    }

    /// The nearest double, as reading the digits gives it.
    pub(super) fn to_f64(self) -> f64 {
        match (self.unscaled.to_i128(), self.scale) {
            (Some(number), scale @ 0..=22) if number.unsigned_abs() < 1 << 53 => {
                number as f64 / 10f64.powi(i32::from(scale))
            }
            _ => self.text().parse().unwrap_or(f64::NAN),
        }
    }

    /// The unscaled number, the nearest that 128 bits hold.
    pub(super) fn units(self) -> i128 {
        let most = if self.unscaled.is_negative() { i128::MIN } else { i128::MAX };
        self.unscaled.to_i128().unwrap_or(most)
    }

    /// Its whole part as an integer of 128 bits, the nearest that there is.
    pub(super) fn saturated(self) -> i128 {
        let number = self.rounded(0).map_or(i256::ZERO, |number| number.unscaled);
        let clamped = number.to_i128();
        clamped.unwrap_or(if number.is_negative() { i128::MIN } else { i128::MAX })
    }

    /// Its digits.
    pub(super) fn text(self) -> String {
        let negative = self.unscaled.is_negative();
        let digits = match self.unscaled.to_i128() {
            Some(number) => number.unsigned_abs().to_string(),
            None => self.unscaled.wrapping_abs().to_string(),
        };
        let sign = if negative { "-" } else { "" };
        let scale = usize::from(self.scale);
        if scale == 0 {
            return format!("{sign}{digits}");
        }
        let padded = format!("{digits:0>width$}", width = scale + 1);
        let (whole, fraction) = padded.split_at(padded.len() - scale);
        format!("{sign}{whole}.{fraction}")
    }

    /// The nearest number of at most `precision` digits.
    pub(super) fn clamped(self, precision: u8) -> Result<Decimal, Refusal> {
        let most = power(precision)?.wrapping_sub(i256::ONE);
        Ok(Decimal { unscaled: self.unscaled.clamp(most.wrapping_neg(), most), ..self })
    }

    /// The number that `text` (`-12.5e3`) begins with, digits of it exactly; zero if with none. `None` if it has too
    /// many digits.
    pub(super) fn prefix(text: &str) -> Option<Decimal> {
        let text = text.trim_start_matches([' ', '\t', '\n', '\r', '\u{b}', '\u{c}']);
        let bytes = text.as_bytes();
        let mut at = usize::from(matches!(bytes.first(), Some(b'-' | b'+')));
        let negative = bytes.first() == Some(&b'-');
        let ten = i256::from_i128(10);
        let (mut unscaled, mut scale, mut point, mut any) = (i256::ZERO, 0i64, false, false);
        while let Some(byte) = bytes.get(at) {
            match byte {
                b'0'..=b'9' => {
                    let digit = i256::from_i128(i128::from(byte - b'0'));
                    unscaled = unscaled.checked_mul(ten)?.checked_add(digit)?;
                    scale += i64::from(point);
                    any = true;
                }
                b'.' if !point => point = true,
                _ => break,
            }
            at += 1;
        }
        if any && matches!(bytes.get(at), Some(b'e' | b'E')) {
            let rest = &text[at + 1..];
            let sign = usize::from(rest.starts_with(['-', '+']));
            let end =
                rest[sign..].find(|digit: char| !digit.is_ascii_digit()).map_or(rest.len(), |end| sign + end);
            if end > sign {
                scale = scale.checked_sub(rest[..end].trim_start_matches('+').parse().ok()?)?;
            }
        }
        if unscaled == i256::ZERO {
            return Some(Decimal::whole(0));
        }
        while scale < 0 {
            unscaled = unscaled.checked_mul(ten)?;
            scale += 1;
        }
        while scale > i64::from(MAX_SCALE) && unscaled.wrapping_rem(ten) == i256::ZERO {
            unscaled = unscaled.wrapping_div(ten);
            scale -= 1;
        }
        let scale = u8::try_from(scale).ok().filter(|scale| *scale <= 76)?;
        Some(Decimal { unscaled: if negative { unscaled.wrapping_neg() } else { unscaled }, scale })
    }

    /// The shortest digits that read back as the double; `None` if they are too many.
    pub(super) fn of_double(number: f64) -> Option<Decimal> {
        number.is_finite().then(|| Decimal::prefix(&shortest_text(number))).flatten()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decimal(text: &str) -> Decimal {
        Decimal::prefix(text).unwrap()
    }

    #[test]
    fn decimals_round_half_away_from_zero() {
        let rounded = |text: &str, scale| decimal(text).rounded(scale).unwrap().text();
        assert_eq!(rounded("2.5", 0), "3");
        assert_eq!(rounded("-2.5", 0), "-3");
        assert_eq!(rounded("-0.449", 1), "-0.4");
        assert_eq!(rounded("1.5", 3), "1.500");
        assert_eq!(rounded("12e-1x", 1), "1.2");
        assert_eq!(rounded("abc", 0), "0");
    }

    #[test]
    fn quotients_have_whole_words_of_digits() {
        let divided = |a: &str, b: &str| decimal(a).quotient(decimal(b), 4).unwrap().unwrap().text();
        assert_eq!(divided("1", "3"), "0.333333333");
        assert_eq!(divided("2.5", "-7"), "-0.357142857");
        let wide = divided("123456789012345678901234567890.12345678901234567891", "3");
        assert_eq!(wide, "41152263004115226300411522630.041152263004115226303333333");
        assert_eq!(decimal("1").quotient(decimal("0"), 4), Ok(None));
    }

    #[test]
    fn whole_parts_go_down_or_up() {
        assert_eq!(decimal("-1.5").to_whole(false).unwrap().text(), "-2");
        assert_eq!(decimal("-1.5").to_whole(true).unwrap().text(), "-1");
        assert_eq!(decimal("1234.567").before_point(2, false).unwrap().text(), "1200");
        assert_eq!(decimal("-1250").before_point(2, true).unwrap().text(), "-1200");
    }
}
