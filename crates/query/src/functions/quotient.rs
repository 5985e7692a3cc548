//! The quotient of decimals of MySQL: four digits more than the dividend has, NULL by zero. Arrow's division cuts.
//!
//! The server computes whole words of nine digits, cuts behind them, and rounds what it has to the digits of the type:
//! where these are whole words themselves, nothing is rounded.

use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, AsArray, Decimal128Array};
use datafusion::arrow::datatypes::{DECIMAL128_MAX_PRECISION, DataType, Decimal128Type, i256};
use datafusion::common::{Result, exec_datafusion_err, plan_err};
use datafusion::logical_expr::ScalarUDF;

use super::simple::Simple;
use crate::expression::division_by_zero;

/// MySQL's `div_precision_increment`.
const MORE_DIGITS: i8 = 4;
/// Most digits after the point of a DECIMAL of MySQL.
const MOST_DIGITS: i8 = 30;

/// Decimal digits of a word of the server's decimals.
const WORD_DIGITS: i8 = 9;

/// The function.
pub(super) fn function() -> ScalarUDF {
    Simple::function("decimal_quotient", returns, |arrays, _| match arrays {
        [dividend, divisor] => quotients(dividend, divisor),
        _ => plan_err!("a quotient has two operands"),
    })
}

fn scales(types: &[DataType]) -> Result<(i8, i8)> {
    match types {
        [DataType::Decimal128(_, dividend), DataType::Decimal128(_, divisor)] => Ok((*dividend, *divisor)),
        _ => plan_err!("a quotient is of decimals"),
    }
}

fn returns(types: &[DataType]) -> Result<DataType> {
    let (dividend, _) = scales(types)?;
    Ok(DataType::Decimal128(DECIMAL128_MAX_PRECISION, (dividend + MORE_DIGITS).min(MOST_DIGITS)))
}

/// Digits behind the point that the server computes, in whole words.
fn computed_digits(scale: i8, by_scale: i8) -> i8 {
    let words = |digits: i8| (digits + WORD_DIGITS - 1) / WORD_DIGITS * WORD_DIGITS;
    let (dividend, divisor) = (words(scale), words(by_scale));
    let more = (MORE_DIGITS - (dividend - scale) - (divisor - by_scale)).max(0);
    words(dividend + divisor + more)
}

fn quotients(dividend: &ArrayRef, divisor: &ArrayRef) -> Result<ArrayRef> {
    let types = [dividend.data_type().clone(), divisor.data_type().clone()];
    let (scale, by_scale) = scales(&types)?;
    let result = (scale + MORE_DIGITS).min(MOST_DIGITS);
    let rounds = computed_digits(scale, by_scale) > result;
    let shift = u32::try_from(result - scale + by_scale).unwrap_or(0);
    let (dividend, divisor) =
        (dividend.as_primitive::<Decimal128Type>(), divisor.as_primitive::<Decimal128Type>());
    let quotient = |row: usize| match dividend.is_null(row) || divisor.is_null(row) || divisor.value(row) == 0
    {
        true => {
            if dividend.is_valid(row) && divisor.is_valid(row) {
                division_by_zero();
            }
            Ok(None)
        }
        false => {
            let (dividend, divisor) = (dividend.value(row), divisor.value(row));
            let quotient = shifted_quotient(dividend, divisor, shift, rounds);
            quotient.map(Some).ok_or_else(|| exec_datafusion_err!("a quotient has more than 38 digits"))
        }
    };
    let quotients = (0..dividend.len()).map(quotient).collect::<Result<Decimal128Array>>()?;
    Ok(Arc::new(quotients.with_precision_and_scale(DECIMAL128_MAX_PRECISION, result)?))
}

/// `dividend * 10^shift / divisor`, cut, or half away from zero.
fn shifted_quotient(dividend: i128, divisor: i128, shift: u32, rounds: bool) -> Option<i128> {
    if let Some(shifted) = 10_i128.checked_pow(shift).and_then(|power| dividend.checked_mul(power)) {
        let (quotient, rest) = (shifted.checked_div(divisor)?, shifted.checked_rem(divisor)?);
        let is_half = rest.unsigned_abs() >= divisor.unsigned_abs() - rest.unsigned_abs();
        let away = if (shifted < 0) == (divisor < 0) { 1 } else { -1 };
        return if rounds && rest != 0 && is_half { quotient.checked_add(away) } else { Some(quotient) };
    }
    let power = i256::from_i128(10).checked_pow(shift)?;
    let (wide, by) = (i256::from_i128(dividend).checked_mul(power)?, i256::from_i128(divisor));
    let (quotient, rest) = (wide.checked_div(by)?, wide.checked_rem(by)?);
    let (rest, size) = (rest.wrapping_abs(), by.wrapping_abs());
    let away = if (dividend < 0) == (divisor < 0) { i256::ONE } else { i256::MINUS_ONE };
    let is_half = rounds && rest != i256::ZERO && rest >= size.wrapping_sub(rest);
    if is_half { quotient.checked_add(away)?.to_i128() } else { quotient.to_i128() }
}

#[cfg(test)]
mod tests {
    use super::{computed_digits, shifted_quotient};

    fn rounded(dividend: i128, divisor: i128, shift: u32) -> Option<i128> {
        shifted_quotient(dividend, divisor, shift, true)
    }

    #[test]
    fn quotients_of_whole_words_are_cut() {
        // MySQL: 0.00001 / 7 is 0.000001428, 0.50000 / 3 is 0.166666666, 0.5000 / 3 is 0.16666667.
        assert_eq!(shifted_quotient(1, 7, 4, computed_digits(5, 0) > 9), Some(1428));
        assert_eq!(shifted_quotient(50_000, 3, 4, computed_digits(5, 0) > 9), Some(166_666_666));
        assert_eq!(shifted_quotient(5_000, 3, 4, computed_digits(4, 0) > 8), Some(16_666_667));
        let wide = shifted_quotient(-2 * 10_i128.pow(30), 3, 8, false);
        assert_eq!(wide, Some(-2 * (10_i128.pow(38) / 3)));
        assert_eq!([(14, 0), (0, 0), (5, 2), (10, 10)].map(|(a, b)| computed_digits(a, b)), [18, 9, 18, 36]);
    }

    #[test]
    fn the_last_digit_is_rounded() {
        assert_eq!(rounded(2, 3, 4), Some(6667));
        assert_eq!(rounded(-2, 3, 4), Some(-6667));
        assert_eq!(rounded(1, 3, 4), Some(3333));
        assert_eq!(rounded(1, 2, 0), Some(1));
        assert_eq!(rounded(-1, 2, 0), Some(-1));
        let large = 10_i128.pow(37);
        assert_eq!(rounded(2 * large, 3 * large, 4), Some(6667));
        assert_eq!(rounded(-large, large, 30), Some(-(10_i128.pow(30))));
        assert_eq!(rounded(large, 1, 30), None);
    }
}
