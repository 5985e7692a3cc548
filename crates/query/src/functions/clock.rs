//! `HOUR`, `MINUTE`, `SECOND` and `MICROSECOND`: of a TIME, which may be negative or longer than a day, the parts of
//! its size.

use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, AsArray, Int64Array};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Int64Type, TimeUnit};
use datafusion::common::{Result, plan_err};
use datafusion::logical_expr::ScalarUDF;

use super::simple::Simple;

const SECOND: i64 = 1_000_000;

/// The four functions.
pub(super) fn functions() -> [ScalarUDF; 4] {
    let returns = |_: &[DataType]| Ok(DataType::Int64);
    [
        Simple::function("hour", returns, |arrays, _| part(arrays, |micros| micros / (3600 * SECOND))),
        Simple::function("minute", returns, |arrays, _| part(arrays, |micros| micros / (60 * SECOND) % 60)),
        Simple::function("second", returns, |arrays, _| part(arrays, |micros| micros / SECOND % 60)),
        Simple::function("microsecond", returns, |arrays, _| part(arrays, |micros| micros % SECOND)),
    ]
}

fn part(arrays: &[ArrayRef], of: fn(i64) -> i64) -> Result<ArrayRef> {
    const DAY: i64 = 86_400 * SECOND;
    let [array] = arrays else { return plan_err!("a part is taken of one time") };
    let is_time = matches!(array.data_type(), DataType::Duration(_));
    let micros = match is_time {
        true => DataType::Duration(TimeUnit::Microsecond),
        false => DataType::Timestamp(TimeUnit::Microsecond, None),
    };
    let micros = cast(&cast(array, &micros)?, &DataType::Int64)?;
    let of_clock = |micros: i64| {
        let size = if is_time {
            i64::try_from(micros.unsigned_abs()).unwrap_or(i64::MAX)
        } else {
            micros.rem_euclid(DAY)
        };
        of(size)
    };
    let parts: Int64Array = micros.as_primitive::<Int64Type>().unary(of_clock);
    Ok(Arc::new(parts))
}

#[cfg(test)]
mod tests {
    use datafusion::arrow::array::{DurationSecondArray, TimestampMicrosecondArray};

    use super::*;

    fn of(array: impl datafusion::arrow::array::Array + 'static, by: fn(i64) -> i64) -> i64 {
        let array: ArrayRef = Arc::new(array);
        part(&[array], by).unwrap().as_primitive::<Int64Type>().value(0)
    }

    #[test]
    fn a_negative_time_has_the_parts_of_its_size() {
        let time = || DurationSecondArray::from(vec![-(838 * 3600 + 23 * 60 + 58)]);
        assert_eq!(of(time(), |micros| micros / (3600 * SECOND)), 838);
        assert_eq!(of(time(), |micros| micros / (60 * SECOND) % 60), 23);
        let before = TimestampMicrosecondArray::from(vec![-1]);
        assert_eq!(of(before, |micros| micros % SECOND), 999_999);
    }
}
