//! The quotient of decimals: four digits more than the dividend has, the last one rounded, NULL by zero. Arrow's
//! division cuts.

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

fn quotients(dividend: &ArrayRef, divisor: &ArrayRef) -> Result<ArrayRef> {
    let types = [dividend.data_type().clone(), divisor.data_type().clone()];
    let (scale, by_scale) = scales(&types)?;
    let result = (scale + MORE_DIGITS).min(MOST_DIGITS);
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
            let quotient = rounded(dividend, divisor, shift);
            quotient.map(Some).ok_or_else(|| exec_datafusion_err!("a quotient has more than 38 digits"))
        }
    };
    let quotients = (0..dividend.len()).map(quotient).collect::<Result<Decimal128Array>>()?;
    Ok(Arc::new(quotients.with_precision_and_scale(DECIMAL128_MAX_PRECISION, result)?))
}

/// `dividend * 10^shift / divisor`, half away from zero.
fn rounded(dividend: i128, divisor: i128, shift: u32) -> Option<i128> {
    if let Some(shifted) = 10_i128.checked_pow(shift).and_then(|power| dividend.checked_mul(power)) {
        let (quotient, rest) = (shifted.checked_div(divisor)?, shifted.checked_rem(divisor)?);
        let is_half = rest.unsigned_abs() >= divisor.unsigned_abs() - rest.unsigned_abs();
        let away = if (shifted < 0) == (divisor < 0) { 1 } else { -1 };
        return if rest != 0 && is_half { quotient.checked_add(away) } else { Some(quotient) };
    }
    let power = i256::from_i128(10).checked_pow(shift)?;
    let (wide, by) = (i256::from_i128(dividend).checked_mul(power)?, i256::from_i128(divisor));
    let (quotient, rest) = (wide.checked_div(by)?, wide.checked_rem(by)?);
    let (rest, size) = (rest.wrapping_abs(), by.wrapping_abs());
    let away = if (dividend < 0) == (divisor < 0) { i256::ONE } else { i256::MINUS_ONE };
    let is_half = rest != i256::ZERO && rest >= size.wrapping_sub(rest);
    if is_half { quotient.checked_add(away)?.to_i128() } else { quotient.to_i128() }
}

#[cfg(test)]
mod tests {
    use super::rounded;

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
