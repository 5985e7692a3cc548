//! How values are stored in a mirror: such that each comes back bit by bit.
//!
//! Dates and times are stored as the numbers that Arrow has for them, because dates that no calendar has are such
//! numbers, too. Texts are stored as the scan decodes them. What Parquet may not keep exactly, and values that may be
//! large, are left out.

use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, AsArray, make_array};
use datafusion::arrow::datatypes::{
    DataType, Date32Type, TimeUnit, TimestampMicrosecondType, TimestampMillisecondType, TimestampSecondType,
};
use tanada_innodb::{Column, ColumnType, TableDefinition};

use crate::relation::{types, zero_date};
use crate::{Error, ErrorKind, Result};

/// Rows of a group, most.
const MAX_GROUP_ROWS: u64 = 128 << 10;
/// Bytes of the values of a group, most.
const GROUP_BYTES: u64 = 64 << 20;
/// Rows of a batch that is decoded; groups are multiples of it.
const BATCH_ROWS: u64 = 8192;
/// Microseconds of a day.
const DAY: i64 = 86_400_000_000;

/// Why a column is never mirrored; `None` if it may be.
pub(super) fn refusal(column: &Column) -> Option<&'static str> {
    if column.virtual_expression.is_some() {
        return Some("is computed");
    }
    if types::is_large(&column.column_type) {
        return Some("may have large values");
    }
    match types::data_type(&column.column_type) {
        DataType::Decimal256(..) | DataType::FixedSizeList(..) => Some("is of a type that is not mirrored"),
        _ => None,
    }
}

/// Rows of a group in the mirrors of a table: fewer where values are long.
pub(super) fn group_rows(definition: &TableDefinition) -> u64 {
    let mirrored = definition.columns.iter().filter(|column| refusal(column).is_none());
    let widest = mirrored.map(|column| most_bytes(&column.column_type)).max().unwrap_or(1).max(1);
    (GROUP_BYTES / widest / BATCH_ROWS * BATCH_ROWS).clamp(BATCH_ROWS, MAX_GROUP_ROWS)
}

/// Most bytes of a value, about.
fn most_bytes(column_type: &ColumnType) -> u64 {
    match column_type {
        ColumnType::Char { length, collation } | ColumnType::VarChar { length, collation } => {
            u64::from(*length) * u64::from(collation.max_bytes.max(1))
        }
        ColumnType::Binary { length } | ColumnType::VarBinary { length } => u64::from(*length),
        ColumnType::Enum { elements } | ColumnType::Set { elements } => {
            elements.iter().map(|element| element.len() as u64 + 1).sum()
        }
        ColumnType::Text { .. } | ColumnType::Blob { .. } => 256,
        _ => 40,
    }
}

/// The type that values of `data_type` are stored in.
pub(super) fn stored_type(data_type: &DataType) -> DataType {
    match data_type {
        DataType::Date32 => DataType::Int32,
        DataType::Timestamp(..) | DataType::Duration(_) => DataType::Int64,
        other => other.clone(),
    }
}

/// The values as they are stored.
pub(super) fn stored(array: &ArrayRef) -> Result<ArrayRef> {
    restored(array, &stored_type(array.data_type()))
}

/// Values of the same bits under another type.
///
/// # Errors
/// `Data` if the types differ in more than their meaning.
pub(crate) fn restored(array: &ArrayRef, data_type: &DataType) -> Result<ArrayRef> {
    if array.data_type() == data_type {
        return Ok(Arc::clone(array));
    }
    let data = array.to_data().into_builder().data_type(data_type.clone()).build();
    data.map(make_array).map_err(|error| {
        Error::new(ErrorKind::Data, format!("a mirror has no values of type {data_type}: {error}"))
    })
}

/// Whether a date that no calendar has, other than the zero date, is among the values: queries that order dates refuse
/// these.
pub(super) fn has_partial_dates(array: &ArrayRef) -> bool {
    let is_partial_day = |days: i64| days < i64::from(zero_date::ZERO_DATE);
    let is_partial = |micros: i64| is_partial_day(micros.div_euclid(DAY));
    match array.data_type() {
        DataType::Date32 => {
            array.as_primitive::<Date32Type>().iter().flatten().any(|days| is_partial_day(days.into()))
        }
        DataType::Timestamp(TimeUnit::Second, _) => array
            .as_primitive::<TimestampSecondType>()
            .iter()
            .flatten()
            .any(|seconds| is_partial(seconds.saturating_mul(1_000_000))),
        DataType::Timestamp(TimeUnit::Millisecond, _) => array
            .as_primitive::<TimestampMillisecondType>()
            .iter()
            .flatten()
            .any(|millis| is_partial(millis.saturating_mul(1_000))),
        DataType::Timestamp(..) => {
            array.as_primitive::<TimestampMicrosecondType>().iter().flatten().any(is_partial)
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use datafusion::arrow::array::{Date32Array, DurationMillisecondArray, TimestampSecondArray};

    use super::*;

    #[test]
    fn dates_and_times_come_back_under_their_types() {
        let date: ArrayRef = Arc::new(Date32Array::from(vec![Some(-800_000), None, Some(5)]));
        let moment: ArrayRef =
            Arc::new(TimestampSecondArray::from(vec![Some(1), None]).with_timezone("+00:00"));
        let time: ArrayRef = Arc::new(DurationMillisecondArray::from(vec![Some(-1)]));
        for array in [date, moment, time] {
            let stored = stored(&array).unwrap();
            assert!(stored.data_type().is_integer());
            assert_eq!(&restored(&stored, array.data_type()).unwrap(), &array);
        }
    }

    #[test]
    fn partial_dates_are_told_from_zero_dates() {
        let dates = |days: Vec<i32>| Arc::new(Date32Array::from(days)) as ArrayRef;
        assert!(!has_partial_dates(&dates(vec![0, zero_date::ZERO_DATE])));
        let partial = i32::try_from(zero_date::days(2024, 0, 10)).unwrap();
        assert!(has_partial_dates(&dates(vec![0, partial])));
        let zero = i64::from(zero_date::ZERO_DATE) * 86_400;
        let moments = |seconds: i64| Arc::new(TimestampSecondArray::from(vec![seconds])) as ArrayRef;
        assert!(!has_partial_dates(&moments(zero + 5)));
        assert!(has_partial_dates(&moments(i64::from(partial) * 86_400 + 5)));
    }
}
