//! Floating-point numbers as MySQL prints them.
//!
//! DOUBLE: the shortest digits that read back the same; of two that are as near the even one. FLOAT: at most six
//! significant digits. Either is written without an exponent while its decimal point lies at most 15 places right and
//! 14 places left of the first digit, or has digits behind it, else as `1.7e308` (no plus sign, no padding).

/// Fewest letters of a mantissa of which there are two that are as near.
const MIN_TIE_DIGITS: usize = 16;
/// Digits of a double behind its shortest ones that are looked at.
const EXACT_DIGITS: usize = 40;

/// A DOUBLE.
pub fn double_text(number: f64) -> String {
    spell(number, &shortest_text(number))
}

/// The shortest digits that read back the same, with an exponent.
pub fn shortest_text(number: f64) -> String {
    let shortest = format!("{number:e}");
    even_digits(number, &shortest).unwrap_or(shortest)
}

/// The same without an exponent.
fn plain_text(number: f64) -> String {
    let shortest = format!("{number:e}");
    let Some(even) = even_digits(number, &shortest) else { return number.to_string() };
    // It has as many digits as Rust's, the last one aside.
    let plain = number.to_string();
    let last = even.split_once('e').and_then(|(mantissa, _)| mantissa.chars().last());
    let place = plain.rfind(|letter: char| letter.is_ascii_digit() && letter != '0');
    match (last, place) {
        (Some(last), Some(place)) => format!("{}{last}{}", &plain[..place], &plain[place + 1..]),
        _ => plain,
    }
}

/// The digits of a number that lies in the middle of two shortest ones, of which `shortest` is the upper, odd one.
fn even_digits(number: f64, shortest: &str) -> Option<String> {
    let (mantissa, exponent) = shortest.split_once('e')?;
    let last = mantissa.as_bytes().last().copied()?;
    // Fewer digits say the number itself, or have no neighbour that reads back the same.
    if mantissa.len() < MIN_TIE_DIGITS || last % 2 == 0 {
        return None;
    }
    let places = mantissa.split_once('.').map_or(0, |(_, fraction)| fraction.len());
    let exact = format!("{number:.*e}", places + EXACT_DIGITS);
    let rest = exact.split_once('e')?.0.get(mantissa.len()..)?;
    let lower = format!("{}{}e{exponent}", &mantissa[..mantissa.len() - 1], char::from(last - 1));
    let is_between = rest.strip_prefix('5').is_some_and(|rest| rest.bytes().all(|digit| digit == b'0'));
    (is_between && exact.starts_with(&lower[..mantissa.len()]) && lower.parse() == Ok(number))
        .then_some(lower)
}

/// A DOUBLE with a fixed number of digits after the point.
pub fn fixed_text(number: f64, digits: usize) -> String {
    // Digits beyond those that read back the same are zeros.
    let shortest = plain_text(number);
    let shown = shortest.split_once('.').map_or(0, |(_, fraction)| fraction.len());
    if !number.is_finite() || shown > digits {
        return format!("{number:.digits$}");
    }
    let point = if shown == 0 && digits > 0 { "." } else { "" };
    format!("{shortest}{point}{}", "0".repeat(digits - shown))
}

/// A FLOAT.
pub fn float_text(number: f32) -> String {
    let number = f64::from(number);
    spell(number, &format!("{number:.5e}"))
}

/// A DOUBLE in at most `width` characters (22 or more): with an exponent where it is longer without, and then with as
/// many digits as fit.
pub fn double_text_within(number: f64, width: usize) -> String {
    within(number, &shortest_text(number), width)
}

/// A FLOAT in at most `width` characters (12 or more).
pub fn float_text_within(number: f32, width: usize) -> String {
    let number = f64::from(number);
    within(number, &format!("{number:.5e}"), width)
}

fn within(number: f64, scientific: &str, width: usize) -> String {
    let plain = spell(number, scientific);
    if plain.len() <= width || !number.is_finite() {
        return plain;
    }
    let with_exponent = |scientific: &str| {
        let (mantissa, exponent) = scientific.split_once('e').unwrap_or((scientific, "0"));
        let mantissa = match mantissa.contains('.') {
            true => mantissa.trim_end_matches('0').trim_end_matches('.'),
            false => mantissa,
        };
        format!("{mantissa}e{exponent}")
    };
    let whole = with_exponent(scientific);
    match whole.len().checked_sub(width) {
        None | Some(0) => whole,
        Some(excess) => {
            let digits = whole.split_once('e').map_or("", |(mantissa, _)| mantissa);
            let digits = digits.bytes().filter(u8::is_ascii_digit).count();
            let places = digits.saturating_sub(excess + 1);
            with_exponent(&format!("{number:.places$e}"))
        }
    }
}

/// Respells `scientific` (`-1.25e-7`); numbers that MySQL cannot store are left to Rust.
fn spell(number: f64, scientific: &str) -> String {
    let parts = scientific.split_once('e').and_then(|(mantissa, exponent)| {
        let exponent: i32 = exponent.parse().ok()?;
        Some((mantissa.trim_start_matches('-').replace('.', ""), exponent))
    });
    let Some((digits, exponent)) = parts.filter(|_| number.is_finite()) else {
        return number.to_string();
    };
    let digits = match digits.trim_end_matches('0') {
        "" => return if number.is_sign_negative() { "-0".to_string() } else { "0".to_string() },
        digits => digits,
    };
    let sign = if number < 0.0 { "-" } else { "" };
    // The value is 0.digits times ten to the power of `point`.
    let point = exponent + 1;
    let is_whole = usize::try_from(point).is_ok_and(|point| digits.len() <= point);
    if point < -14 || point > 15 && is_whole {
        let (first, rest) = digits.split_at(1);
        let dot = if rest.is_empty() { "" } else { "." };
        return format!("{sign}{first}{dot}{rest}e{exponent}");
    }
    let places = point.unsigned_abs() as usize;
    if point <= 0 {
        format!("{sign}0.{}{digits}", "0".repeat(places))
    } else if places >= digits.len() {
        format!("{sign}{digits}{}", "0".repeat(places - digits.len()))
    } else {
        let (whole, fraction) = digits.split_at(places);
        format!("{sign}{whole}.{fraction}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn doubles() {
        let cases = [
            (0.0, "0"),
            (1.5, "1.5"),
            (-1.7e308, "-1.7e308"),
            (1e15, "1e15"),
            (1e14, "100000000000000"),
            (123_456_789_012_345.6, "123456789012345.6"),
            (0.000_1, "0.0001"),
            (1e-15, "0.000000000000001"),
            (1e-16, "1e-16"),
            (0.1 + 0.2, "0.30000000000000004"),
            (100.0, "100"),
            (1e14 + 0.125, "100000000000000.12"),
            (-1e14 - 0.125, "-100000000000000.12"),
            (1e15 + 0.5, "1000000000000000.5"),
            (1_125_899_906_842_624.5, "1125899906842624.5"),
            (4_503_599_627_370_498.0, "4.503599627370498e15"),
        ];
        for (number, text) in cases {
            assert_eq!(double_text(number), text);
        }
    }

    #[test]
    fn numbers_within_a_width() {
        for (number, text) in [
            (-2.811_84e12, "-2.81184e12"),
            (1e14, "1e14"),
            (1.234_57e11, "123457000000"),
            (-1.234_57e11, "-1.23457e11"),
            (-0.000_012_345_6, "-1.23456e-5"),
            (0.000_01, "0.00001"),
            (1e-12, "1e-12"),
        ] {
            assert_eq!(float_text_within(number, 12), text);
        }
        for (number, of_function, of_column) in [
            (-1.797_693_134_862_315_7e308, "-1.797693134862316e308", "-1.7976931348623157e308"),
            (-2.225_073_858_507_201_4e-308, "-2.2250738585072e-308", "-2.2250738585072014e-308"),
            (-0.000_123_456_789_012_345_67, "-1.2345678901234567e-4", "-0.00012345678901234567"),
            (9.999_999_747_378_752e-6, "9.999999747378752e-6", "0.000009999999747378752"),
            (-9.999_999_350_456_404e-39, "-9.999999350456404e-39", "-9.999999350456404e-39"),
            (-2811840000000.0, "-2811840000000", "-2811840000000"),
        ] {
            assert_eq!(double_text_within(number, 22), of_function);
            assert_eq!(double_text_within(number, 24), of_column);
        }
    }

    #[test]
    fn doubles_of_fixed_digits() {
        for (number, digits, text) in [
            (0.0, 4, "0.0000"),
            (15.6875, 4, "15.6875"),
            (3.960_744_879_438_715, 4, "3.9607"),
            (4_611_686_018_427_387_904.0, 4, "4611686018427388000.0000"),
            (-0.5, 0, "-0"),
            (2.0, 10, "2.0000000000"),
            (123_456_789_012_345.0 + 0.125, 5, "123456789012345.12000"),
            (-(96_618_602_957_125.0 + 0.125), 2, "-96618602957125.12"),
            (-(96_618_602_957_125.0 + 0.125), 5, "-96618602957125.12000"),
            (1e15 + 0.5, 1, "1000000000000000.5"),
        ] {
            assert_eq!(fixed_text(number, digits), text);
        }
    }

    #[test]
    fn floats_have_six_digits() {
        let cases = [
            (3.4e38, "3.4e38"),
            (-3.4e38, "-3.4e38"),
            (16_777_216.0, "16777200"),
            (0.1, "0.1"),
            (1.5, "1.5"),
        ];
        for (number, text) in cases {
            assert_eq!(float_text(number), text);
        }
    }
}
