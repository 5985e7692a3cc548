//! `-x`: of integers in 64 bits, and an error where that is not enough.

use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, AsArray, Int64Array};
use datafusion::arrow::compute::kernels::numeric::neg;
use datafusion::arrow::compute::{cast, cast_with_options};
use datafusion::arrow::datatypes::{DataType, Decimal128Type};
use datafusion::common::{Result, exec_datafusion_err, plan_err};
use datafusion::logical_expr::ScalarUDF;

use super::simple::Simple;

/// The function's name.
pub const NAME: &str = "negative";

/// The function.
pub(super) fn function() -> ScalarUDF {
    Simple::function(NAME, returns, |arrays, _| match arrays {
        [array] => negative(array),
        _ => plan_err!("one value is negated"),
    })
}

fn returns(arguments: &[DataType]) -> Result<DataType> {
    Ok(match arguments {
        [integer] if integer.is_integer() => DataType::Int64,
        [text] if text.is_string() => DataType::Float64,
        [DataType::Float32] => DataType::Float64,
        [DataType::Boolean] => DataType::Int64,
        [DataType::Date32 | DataType::Timestamp(..)] => return plan_err!("a date cannot be negated"),
        [other] => other.clone(),
        _ => return plan_err!("one value is negated"),
    })
}

fn negative(array: &ArrayRef) -> Result<ArrayRef> {
    let wanted = returns(&[array.data_type().clone()])?;
    if array.data_type().is_integer() {
        // Any integer of 64 bits and its negative fit.
        let wide = cast(array, &DataType::Decimal128(20, 0))?;
        let negated = wide.as_primitive::<Decimal128Type>().iter().map(|value| match value {
            Some(value) => i64::try_from(-value)
                .map(Some)
                .map_err(|_| exec_datafusion_err!("-({value}) is out of the range of BIGINT")),
            None => Ok(None),
        });
        return Ok(Arc::new(negated.collect::<Result<Int64Array>>()?));
    }
    let strict = datafusion::arrow::compute::CastOptions { safe: false, ..Default::default() };
    Ok(neg(cast_with_options(array, &wanted, &strict)?.as_ref())?)
}

#[cfg(test)]
mod tests {
    use datafusion::arrow::array::{Int8Array, UInt64Array};
    use datafusion::arrow::datatypes::Int64Type;

    use super::*;

    #[test]
    fn the_least_of_a_narrow_type_has_a_negative() {
        let least: ArrayRef = Arc::new(Int8Array::from(vec![i8::MIN]));
        assert_eq!(negative(&least).unwrap().as_primitive::<Int64Type>().value(0), 128);
        let large: ArrayRef = Arc::new(UInt64Array::from(vec![1 << 63]));
        assert_eq!(negative(&large).unwrap().as_primitive::<Int64Type>().value(0), i64::MIN);
        let larger: ArrayRef = Arc::new(UInt64Array::from(vec![u64::MAX]));
        assert!(negative(&larger).is_err());
    }
}
