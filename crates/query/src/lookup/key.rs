//! Arrow values as key values.

use std::borrow::Cow;

use datafusion::arrow::array::{
    Array, ArrayRef, AsArray, BinaryArray, BinaryViewArray, Decimal128Array, Decimal256Array, Float32Array,
    Float64Array, Int64Array, LargeBinaryArray, LargeStringArray, StringArray, StringViewArray, UInt64Array,
};
use datafusion::arrow::compute::{CastOptions, cast, cast_with_options};
use datafusion::arrow::datatypes::{
    DataType, Date32Type, DurationMicrosecondType, Int64Type, TimeUnit, UInt64Type,
};
use datafusion::common::{Result, plan_err};
use tanada_innodb::{ColumnType, Decimal, Value};

use crate::relation::zero_date;

/// A column of key values, ready to be read row by row.
#[derive(Debug)]
pub(crate) enum KeyColumn {
    Int(Int64Array),
    UInt(UInt64Array),
    Float(Float32Array),
    Double(Float64Array),
    Decimal128(Decimal128Array, u8),
    Decimal256(Decimal256Array, u8),
    Date(datafusion::arrow::array::Date32Array),
    DateTime(Int64Array),
    Time(Int64Array),
    Text(StringArray),
    LargeText(LargeStringArray),
    TextView(StringViewArray),
    Bytes(BinaryArray),
    LargeBytes(LargeBinaryArray),
    BytesView(BinaryViewArray),
}

impl KeyColumn {
    /// Reads `array`; `searched` is the type of the column that is searched, where it decides between two spellings of
    /// one value.
    pub(crate) fn new(array: &ArrayRef, searched: Option<&ColumnType>) -> Result<KeyColumn> {
        if !searchable_type(array.data_type()) {
            return plan_err!("values of type {} cannot be looked up in an index", array.data_type());
        }
        let wide = |to: &DataType| cast(array, to);
        let scale = |scale: i8| u8::try_from(scale).unwrap_or(0);
        Ok(match array.data_type() {
            DataType::Int8 | DataType::Int16 | DataType::Int32 | DataType::Int64 => {
                KeyColumn::Int(wide(&DataType::Int64)?.as_primitive::<Int64Type>().clone())
            }
            DataType::Boolean | DataType::UInt8 | DataType::UInt16 | DataType::UInt32 | DataType::UInt64 => {
                KeyColumn::UInt(wide(&DataType::UInt64)?.as_primitive::<UInt64Type>().clone())
            }
            // A FLOAT column may be shown as a double; its index holds singles.
            DataType::Float64 if !matches!(searched, Some(ColumnType::Float)) => {
                KeyColumn::Double(array.as_primitive().clone())
            }
            DataType::Float32 | DataType::Float64 => {
                KeyColumn::Float(wide(&DataType::Float32)?.as_primitive().clone())
            }
            DataType::Decimal128(_, places) => {
                KeyColumn::Decimal128(array.as_primitive().clone(), scale(*places))
            }
            DataType::Decimal256(_, places) => {
                KeyColumn::Decimal256(array.as_primitive().clone(), scale(*places))
            }
            DataType::Date32 => KeyColumn::Date(array.as_primitive::<Date32Type>().clone()),
            DataType::Timestamp(_, zone) => {
                let micros = wide(&DataType::Timestamp(TimeUnit::Microsecond, zone.clone()))?;
                KeyColumn::DateTime(cast(&micros, &DataType::Int64)?.as_primitive::<Int64Type>().clone())
            }
            DataType::Time32(_) | DataType::Time64(_) => {
                let micros = wide(&DataType::Time64(TimeUnit::Microsecond))?;
                KeyColumn::Time(cast(&micros, &DataType::Int64)?.as_primitive::<Int64Type>().clone())
            }
            DataType::Duration(_) => {
                let micros = wide(&DataType::Duration(TimeUnit::Microsecond))?;
                KeyColumn::Time(
                    micros.as_primitive::<DurationMicrosecondType>().reinterpret_cast::<Int64Type>(),
                )
            }
            DataType::Utf8 => KeyColumn::Text(array.as_string().clone()),
            DataType::LargeUtf8 => KeyColumn::LargeText(array.as_string().clone()),
            DataType::Utf8View => KeyColumn::TextView(array.as_string_view().clone()),
            DataType::Binary => KeyColumn::Bytes(array.as_binary().clone()),
            DataType::LargeBinary => KeyColumn::LargeBytes(array.as_binary().clone()),
            DataType::BinaryView => KeyColumn::BytesView(array.as_binary_view().clone()),
            other => return plan_err!("values of type {other} cannot be looked up in an index"),
        })
    }

    /// The value of `row`; `None` if it is NULL, which matches nothing.
    pub(crate) fn value(&self, row: usize) -> Option<Value<'_>> {
        fn read<'a, A: Array>(
            array: &'a A,
            row: usize,
            value: impl FnOnce(&'a A) -> Value<'a>,
        ) -> Option<Value<'a>> {
            array.is_valid(row).then(|| value(array))
        }
        match self {
            KeyColumn::Int(array) => read(array, row, |array| Value::Int(array.value(row))),
            KeyColumn::UInt(array) => read(array, row, |array| Value::UInt(array.value(row))),
            KeyColumn::Float(array) => read(array, row, |array| Value::Float(array.value(row))),
            KeyColumn::Double(array) => read(array, row, |array| Value::Double(array.value(row))),
            KeyColumn::Decimal128(array, scale) => read(array, row, |array| {
                let unscaled = array.value(row);
                // The high half is the sign, the low half the same bits.
                Value::Decimal(Decimal { high: unscaled >> 127, low: unscaled as u128, scale: *scale })
            }),
            KeyColumn::Decimal256(array, scale) => read(array, row, |array| {
                let (low, high) = array.value(row).to_parts();
                Value::Decimal(Decimal { high, low, scale: *scale })
            }),
            KeyColumn::Date(array) => read(array, row, |array| zero_date::date(array.value(row))),
            KeyColumn::DateTime(array) => read(array, row, |array| zero_date::date_time(array.value(row))),
            KeyColumn::Time(array) => read(array, row, |array| Value::Time(array.value(row))),
            KeyColumn::Text(array) => read(array, row, |array| Value::Text(Cow::Borrowed(array.value(row)))),
            KeyColumn::LargeText(array) => {
                read(array, row, |array| Value::Text(Cow::Borrowed(array.value(row))))
            }
            KeyColumn::TextView(array) => {
                read(array, row, |array| Value::Text(Cow::Borrowed(array.value(row))))
            }
            KeyColumn::Bytes(array) => {
                read(array, row, |array| Value::Bytes(Cow::Borrowed(array.value(row))))
            }
            KeyColumn::LargeBytes(array) => {
                read(array, row, |array| Value::Bytes(Cow::Borrowed(array.value(row))))
            }
            KeyColumn::BytesView(array) => {
                read(array, row, |array| Value::Bytes(Cow::Borrowed(array.value(row))))
            }
        }
    }
}

/// Whether values of this type can be turned into keys without loss.
pub(crate) fn searchable_type(data_type: &DataType) -> bool {
    match data_type {
        // A nanosecond that no column holds would be cut to a microsecond that one does.
        DataType::Timestamp(unit, _) | DataType::Time64(unit) | DataType::Duration(unit) => {
            *unit != TimeUnit::Nanosecond
        }
        DataType::Decimal128(_, scale) | DataType::Decimal256(_, scale) => *scale >= 0,
        DataType::Boolean
        | DataType::Int8
        | DataType::Int16
        | DataType::Int32
        | DataType::Int64
        | DataType::UInt8
        | DataType::UInt16
        | DataType::UInt32
        | DataType::UInt64
        | DataType::Float32
        | DataType::Float64
        | DataType::Date32
        | DataType::Time32(_)
        | DataType::Utf8
        | DataType::LargeUtf8
        | DataType::Utf8View
        | DataType::Binary
        | DataType::LargeBinary
        | DataType::BinaryView => true,
        _ => false,
    }
}

/// Whether the rows that an index finds for a key are exactly those whose column equals it. Elsewhere the equality is
/// tested again on what was found: strings compare equal under a collation, zeros differ in sign.
pub(crate) fn exact_type(data_type: &DataType) -> bool {
    data_type.is_integer()
        || matches!(data_type, DataType::Date32 | DataType::Decimal128(..) | DataType::Decimal256(..))
}

/// Whether a cast from an integer column's type to `to` changes no value: the column can be searched for what the cast
/// is compared with.
pub(crate) fn widens(stored: &DataType, to: &DataType) -> bool {
    match to {
        DataType::Decimal128(precision, 0) | DataType::Decimal256(precision, 0) => {
            integer_digits(stored).is_some_and(|digits| digits <= *precision)
        }
        _ => match (integer_range(stored), integer_range(to)) {
            (Some((least, most)), Some((to_least, to_most))) => to_least <= least && most <= to_most,
            _ => false,
        },
    }
}

/// `array` as the values of a column of type `stored` that [`widens`] to the array's type. What the column cannot hold
/// becomes NULL, which matches nothing.
pub(crate) fn narrowed(array: &ArrayRef, stored: &DataType) -> Result<ArrayRef> {
    let or_null = CastOptions { safe: true, ..CastOptions::default() };
    Ok(cast_with_options(array, stored, &or_null)?)
}

fn integer_range(data_type: &DataType) -> Option<(i128, i128)> {
    Some(match data_type {
        DataType::Int8 => (i8::MIN.into(), i8::MAX.into()),
        DataType::Int16 => (i16::MIN.into(), i16::MAX.into()),
        DataType::Int32 => (i32::MIN.into(), i32::MAX.into()),
        DataType::Int64 => (i64::MIN.into(), i64::MAX.into()),
        DataType::UInt8 => (0, u8::MAX.into()),
        DataType::UInt16 => (0, u16::MAX.into()),
        DataType::UInt32 => (0, u32::MAX.into()),
        DataType::UInt64 => (0, u64::MAX.into()),
        _ => return None,
    })
}

fn integer_digits(data_type: &DataType) -> Option<u8> {
    let (least, most) = integer_range(data_type)?;
    u8::try_from(least.unsigned_abs().max(most.unsigned_abs()).to_string().len()).ok()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use datafusion::arrow::array::{Int8Array, TimestampSecondArray, UInt16Array};

    use super::*;

    fn values(array: ArrayRef) -> Vec<Option<Value<'static>>> {
        let column = KeyColumn::new(&array, None).unwrap();
        (0..array.len()).map(|row| column.value(row).map(owned)).collect()
    }

    fn owned(value: Value<'_>) -> Value<'static> {
        match value {
            Value::Int(value) => Value::Int(value),
            Value::UInt(value) => Value::UInt(value),
            Value::Decimal(value) => Value::Decimal(value),
            Value::DateTime(value) => Value::DateTime(value),
            Value::Text(text) => Value::Text(Cow::Owned(text.into_owned())),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn integers_are_searched_for_what_is_wider() {
        let signed = [DataType::Int8, DataType::Int16, DataType::Int32, DataType::Int64];
        assert!(signed.iter().all(|stored| widens(stored, &DataType::Int64)));
        assert!(widens(&DataType::UInt32, &DataType::Int64));
        assert!(!widens(&DataType::UInt64, &DataType::Int64));
        assert!(!widens(&DataType::Int32, &DataType::UInt64));
        assert!(widens(&DataType::Int32, &DataType::Decimal128(20, 0)));
        assert!(!widens(&DataType::Int32, &DataType::Decimal128(9, 0)));
        assert!(!widens(&DataType::Int32, &DataType::Decimal128(20, 2)));
        assert!(!widens(&DataType::Float64, &DataType::Int64));
        assert!(!widens(&DataType::Utf8, &DataType::Int64));
    }

    #[test]
    fn values_outside_a_narrower_column_become_null() {
        let wide = Decimal128Array::from(vec![Some(-5), Some(1 << 40), None, Some(7)]);
        let wide: ArrayRef = Arc::new(wide.with_precision_and_scale(20, 0).unwrap());
        let narrow = narrowed(&wide, &DataType::Int32).unwrap();
        assert_eq!(values(narrow), [Some(Value::Int(-5)), None, None, Some(Value::Int(7))]);
        let narrow = narrowed(&wide, &DataType::UInt32).unwrap();
        assert_eq!(values(narrow), [None, None, None, Some(Value::UInt(7))]);
    }

    #[test]
    fn integers_of_all_widths_and_nulls() {
        assert_eq!(values(Arc::new(Int8Array::from(vec![Some(-3), None]))), [Some(Value::Int(-3)), None]);
        assert_eq!(values(Arc::new(UInt16Array::from(vec![65_535]))), [Some(Value::UInt(65_535))]);
    }

    #[test]
    fn negative_decimals_keep_their_sign_in_the_high_half() {
        let array = Decimal128Array::from(vec![-5, 7]).with_precision_and_scale(10, 2).unwrap();
        let decimal = |high, low| Some(Value::Decimal(Decimal { high, low, scale: 2 }));
        assert_eq!(values(Arc::new(array)), [decimal(-1, (-5i128) as u128), decimal(0, 7)]);
    }

    #[test]
    fn seconds_become_microseconds() {
        assert_eq!(values(Arc::new(TimestampSecondArray::from(vec![2]))), [Some(Value::DateTime(2_000_000))]);
    }

    #[test]
    fn keys_that_would_lose_digits_are_refused() {
        assert!(!searchable_type(&DataType::Timestamp(TimeUnit::Nanosecond, None)));
        let array: ArrayRef = Arc::new(datafusion::arrow::array::NullArray::new(1));
        assert!(KeyColumn::new(&array, None).is_err());
    }
}
