//! `CAST(x AS SIGNED)` and `UNSIGNED`: a fraction is rounded, and of a text the number that it begins with is taken.
//! DataFusion's cast cuts the one and refuses the other.

use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, AsArray, Int64Array};
use datafusion::arrow::compute::{CastOptions, cast, cast_with_options};
use datafusion::arrow::datatypes::{DataType, Float64Type};
use datafusion::common::{Result, plan_err};
use datafusion::logical_expr::ScalarUDF;

use super::simple::Simple;

/// Name of the cast to BIGINT.
pub const SIGNED: &str = "cast_signed";
/// Name of the cast to BIGINT UNSIGNED.
pub const UNSIGNED: &str = "cast_unsigned";

/// Both casts.
pub(super) fn functions() -> [ScalarUDF; 2] {
    [
        Simple::function(SIGNED, |_| Ok(DataType::Int64), |arrays, _| whole(arrays, &DataType::Int64)),
        Simple::function(UNSIGNED, |_| Ok(DataType::UInt64), |arrays, _| whole(arrays, &DataType::UInt64)),
    ]
}

fn whole(arrays: &[ArrayRef], to: &DataType) -> Result<ArrayRef> {
    let [array] = arrays else { return plan_err!("CAST takes one value") };
    let strict = CastOptions { safe: false, ..CastOptions::default() };
    let whole: ArrayRef = match array.data_type() {
        text if text.is_string() => {
            let text = cast(array, &DataType::Utf8)?;
            let numbers = text.as_string::<i32>().iter().map(|text| text.map(leading_number));
            Arc::new(numbers.collect::<Int64Array>())
        }
        // Half is rounded away from zero in both.
        DataType::Decimal128(precision, _) => cast(array, &DataType::Decimal128(*precision, 0))?,
        DataType::Decimal256(precision, _) => cast(array, &DataType::Decimal256(*precision, 0))?,
        float if float.is_floating() => {
            let doubles = cast(array, &DataType::Float64)?;
            Arc::new(doubles.as_primitive::<Float64Type>().unary::<_, Float64Type>(f64::round))
        }
        time if time.is_temporal() => {
            return plan_err!("a date or time is no number; use UNIX_TIMESTAMP or DATEDIFF");
        }
        _ => Arc::clone(array),
    };
    Ok(cast_with_options(&whole, to, &strict)?)
}

/// The whole number at the beginning of a text, 0 without one; what is too large is the largest there is.
fn leading_number(text: &str) -> i64 {
    let text = text.trim_start();
    let (negative, digits) = match text.as_bytes().first() {
        Some(b'-') => (true, &text[1..]),
        Some(b'+') => (false, &text[1..]),
        _ => (false, text),
    };
    let number = digits
        .bytes()
        .take_while(u8::is_ascii_digit)
        .fold(0_i128, |number, digit| number.saturating_mul(10).saturating_add(i128::from(digit - b'0')));
    let number = if negative { -number } else { number };
    i64::try_from(number).unwrap_or(if negative { i64::MIN } else { i64::MAX })
}

#[cfg(test)]
mod tests {
    use datafusion::arrow::array::{Decimal128Array, Float64Array, StringArray};
    use datafusion::arrow::datatypes::Int64Type;

    use super::*;

    fn of(array: impl datafusion::arrow::array::Array + 'static) -> Vec<Option<i64>> {
        let array: ArrayRef = Arc::new(array);
        whole(&[array], &DataType::Int64).unwrap().as_primitive::<Int64Type>().iter().collect()
    }

    #[test]
    fn fractions_are_rounded_and_texts_read() {
        let decimals = Decimal128Array::from(vec![15, -15, 14]).with_precision_and_scale(5, 1).unwrap();
        assert_eq!(of(decimals), [Some(2), Some(-2), Some(1)]);
        assert_eq!(of(Float64Array::from(vec![2.5, -0.4])), [Some(3), Some(0)]);
        let texts = StringArray::from(vec![
            Some(" 12abc"),
            Some("-3.9"),
            Some("x"),
            None,
            Some("99999999999999999999"),
        ]);
        assert_eq!(of(texts), [Some(12), Some(-3), Some(0), None, Some(i64::MAX)]);
    }

    #[test]
    fn doubles_out_of_range_are_an_error() {
        let array: ArrayRef = Arc::new(Float64Array::from(vec![1e30]));
        assert!(whole(&[array], &DataType::Int64).is_err());
    }
}
