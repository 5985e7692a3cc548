//! Values of files as values of the servers' types, checked.

use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, AsArray, PrimitiveArray};
use datafusion::arrow::compute::{CastOptions, cast_with_options, max, min};
use datafusion::arrow::datatypes::{
    ArrowPrimitiveType, DataType, Date32Type, DurationMicrosecondType, DurationMillisecondType,
    DurationSecondType, Int64Type, TimeUnit, TimestampMicrosecondType, TimestampMillisecondType,
    TimestampSecondType,
};

use super::columns::{Conversion, FileColumn, nested_name};
use crate::{Error, ErrorKind, Result};

/// Days from 1970-01-01 to 0000-01-01.
const FIRST_DAY: i64 = -719_528;
/// Days from 1970-01-01 to 9999-12-31.
const LAST_DAY: i64 = 2_932_896;
const DAY_SECONDS: i64 = 86_400;
/// Seconds of the longest TIME, 838:59:59.
const MAX_TIME_SECONDS: i64 = 3_020_399;

/// The values of a column of `file` as the table has them.
///
/// # Errors
/// `Unsupported` for values that no value of the column's type is, and for types without a counterpart.
pub(crate) fn converted(array: &ArrayRef, column: &FileColumn, file: &str) -> Result<ArrayRef> {
    let target = column.field.data_type();
    let name = column.field.name();
    let array = match column.conversion {
        Conversion::Cast => cast_to(array, target, name, file)?,
        Conversion::TimeOfDay => {
            let wide = match array.data_type() {
                DataType::Time32(_) => cast_to(array, &DataType::Int32, name, file)?,
                _ => Arc::clone(array),
            };
            let number = cast_to(&wide, &DataType::Int64, name, file)?;
            cast_to(&number, target, name, file)?
        }
        Conversion::Nanoseconds => {
            let number = cast_to(array, &DataType::Int64, name, file)?;
            let has_nanos = |nanos: i64| nanos % 1000 != 0;
            if number.as_primitive::<Int64Type>().iter().flatten().any(has_nanos) {
                let message = format!(
                    "column {name} of {file} has nanoseconds, and the servers have no more than microseconds; select other columns"
                );
                return Err(Error::new(ErrorKind::Unsupported, message));
            }
            let micros = number.as_primitive::<Int64Type>().unary::<_, Int64Type>(|nanos| nanos / 1000);
            cast_to(&(Arc::new(micros) as ArrayRef), target, name, file)?
        }
        Conversion::Refused => return Err(refused(column, file)),
    };
    check_range(&array, name, file)?;
    Ok(array)
}

/// The error for a column whose type no server has.
pub(crate) fn refused(column: &FileColumn, file: &str) -> Error {
    let message = format!(
        "column {} of {file} is a {}, which is not supported; select other columns",
        column.field.name(),
        nested_name(&column.file_type)
    );
    Error::new(ErrorKind::Unsupported, message)
}

fn cast_to(array: &ArrayRef, target: &DataType, name: &str, file: &str) -> Result<ArrayRef> {
    if array.data_type() == target {
        return Ok(Arc::clone(array));
    }
    let options = CastOptions { safe: false, ..CastOptions::default() };
    cast_with_options(array, target, &options).map_err(|error| {
        let why = error.to_string();
        let why = why.split_once(": ").map_or(why.as_str(), |(_, why)| why);
        Error::new(ErrorKind::Unsupported, format!("column {name} of {file} cannot be read: {why}"))
    })
}

/// Refuses dates and times that the servers do not have.
fn check_range(array: &ArrayRef, name: &str, file: &str) -> Result<()> {
    let per_second = |unit: &TimeUnit| match unit {
        TimeUnit::Second => 1,
        TimeUnit::Millisecond => 1_000,
        TimeUnit::Microsecond => 1_000_000,
        TimeUnit::Nanosecond => 1_000_000_000,
    };
    let (bounds, least, most, what) = match array.data_type() {
        DataType::Date32 => {
            let bounds = bounds(array.as_primitive::<Date32Type>());
            (bounds, FIRST_DAY, LAST_DAY, "a date outside of the years 0 to 9999")
        }
        DataType::Timestamp(unit, _) => {
            let bounds = match unit {
                TimeUnit::Second => bounds(array.as_primitive::<TimestampSecondType>()),
                TimeUnit::Millisecond => bounds(array.as_primitive::<TimestampMillisecondType>()),
                _ => bounds(array.as_primitive::<TimestampMicrosecondType>()),
            };
            let (first, end) = (FIRST_DAY * DAY_SECONDS, (LAST_DAY + 1) * DAY_SECONDS);
            let per_second = per_second(unit);
            (bounds, first * per_second, end * per_second - 1, "a time outside of the years 0 to 9999")
        }
        DataType::Duration(unit) => {
            let bounds = match unit {
                TimeUnit::Second => bounds(array.as_primitive::<DurationSecondType>()),
                TimeUnit::Millisecond => bounds(array.as_primitive::<DurationMillisecondType>()),
                _ => bounds(array.as_primitive::<DurationMicrosecondType>()),
            };
            let most = MAX_TIME_SECONDS * per_second(unit);
            (bounds, -most, most, "a time of more than 838:59:59")
        }
        _ => return Ok(()),
    };
    match bounds {
        Some((low, high)) if low < least || high > most => {
            let message = format!(
                "column {name} of {file} has {what}, which the servers do not have; select other columns"
            );
            Err(Error::new(ErrorKind::Unsupported, message))
        }
        _ => Ok(()),
    }
}

fn bounds<T>(array: &PrimitiveArray<T>) -> Option<(i64, i64)>
where
    T: ArrowPrimitiveType,
    T::Native: Into<i64>,
{
    Some((min(array)?.into(), max(array)?.into()))
}

#[cfg(test)]
mod tests {
    use datafusion::arrow::array::{
        BooleanArray, Date32Array, DurationSecondArray, Int8Array, Time64MicrosecondArray,
        TimestampNanosecondArray,
    };
    use datafusion::arrow::datatypes::Field;
    use tanada_innodb::schema::Server;

    use super::*;

    fn shown(array: impl Array + 'static) -> Result<ArrayRef> {
        let field = Arc::new(Field::new("c", array.data_type().clone(), true));
        converted(&(Arc::new(array) as ArrayRef), &FileColumn::new(&field, Server::MySql), "f.parquet")
    }

    #[test]
    fn values_keep_their_meaning() {
        let booleans = shown(BooleanArray::from(vec![Some(true), None, Some(false)])).unwrap();
        assert_eq!(booleans.as_ref(), &Int8Array::from(vec![Some(1), None, Some(0)]) as &dyn Array);
        let times = shown(Time64MicrosecondArray::from(vec![3_600_000_001])).unwrap();
        assert_eq!(times.as_primitive::<DurationMicrosecondType>().value(0), 3_600_000_001);
        let moments = shown(TimestampNanosecondArray::from(vec![-2_000, 5_000])).unwrap();
        assert_eq!(moments.as_primitive::<TimestampMicrosecondType>().values(), &[-2, 5]);
    }

    #[test]
    fn values_that_no_server_has_are_refused() {
        let refused = [
            (shown(TimestampNanosecondArray::from(vec![1])), "nanoseconds"),
            (shown(Date32Array::from(vec![0, -719_529])), "outside of the years"),
            (shown(Date32Array::from(vec![2_932_897])), "outside of the years"),
            (shown(DurationSecondArray::from(vec![3_020_400])), "838:59:59"),
        ];
        for (found, why) in refused {
            let error = found.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Unsupported);
            assert!(error.to_string().contains(why) && error.to_string().contains("column c of f.parquet"));
        }
        assert!(shown(Date32Array::from(vec![-719_528, 2_932_896])).is_ok());
    }
}
