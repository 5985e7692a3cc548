//! Values as `mysql --batch` prints them.
//!
//! The field's metadata (see [`crate::relation::types::MYSQL_TYPE`]) decides where the Arrow type does not say enough:
//! fractional digits, BIT (raw bytes, most significant first), YEAR (four digits). Types that MySQL does not have are
//! printed as Arrow prints them.

mod float;
mod temporal;

use datafusion::arrow::array::{Array, ArrayRef, ArrowPrimitiveType, AsArray};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{
    DataType, Date32Type, Decimal32Type, Decimal64Type, Decimal128Type, Decimal256Type, DecimalType, Field,
    Float32Type, Float64Type, UInt16Type, UInt64Type,
};
use datafusion::arrow::util::display::{ArrayFormatter, FormatOptions};

use crate::relation::types::{MYSQL_TYPE, SHORT_YEAR, ZEROS};
use crate::relation::vector;
use crate::{Error, ErrorKind, Result};

pub use float::{double_text, double_text_within, fixed_text, float_text, float_text_within, shortest_text};

/// Most zeros before a number: the widest column has 255 characters.
const MAX_ZEROS: usize = 255;

/// Text of each row of a column (`None` is NULL), spelled as MySQL spells it; bytes, since binary columns are printed
/// raw. Not yet escaped.
pub fn column_text(field: &Field, array: &ArrayRef) -> Result<Vec<Option<Vec<u8>>>> {
    let mut texts = plain_text(field, array)?;
    if let Some(width) = field.metadata().get(ZEROS).and_then(|width| width.parse::<usize>().ok()) {
        for text in texts.iter_mut().flatten() {
            let missing = width.min(MAX_ZEROS).saturating_sub(text.len());
            text.splice(0..0, std::iter::repeat_n(b'0', missing));
        }
    }
    Ok(texts)
}

fn plain_text(field: &Field, array: &ArrayRef) -> Result<Vec<Option<Vec<u8>>>> {
    let mysql_type = field.metadata().get(MYSQL_TYPE).map_or("", String::as_str);
    if let Some(values) = vector::stored(array) {
        return Ok(values.iter().map(|value| value.map(<[u8]>::to_vec)).collect());
    }
    let text = match array.data_type() {
        DataType::Boolean => {
            let values = array.as_boolean();
            rows(array, |row, out| out.push_str(if values.value(row) { "1" } else { "0" }))
        }
        DataType::Float32 => {
            let values = array.as_primitive::<Float32Type>();
            match digits_of_double(mysql_type) {
                Some(digits) => {
                    // A stored zero has no sign.
                    let number = |row| f64::from(values.value(row)) + 0.0;
                    rows(array, |row, out| out.push_str(&fixed_text(number(row), digits)))
                }
                None => rows(array, |row, out| out.push_str(&float_text(values.value(row)))),
            }
        }
        DataType::Float64 => {
            let values = array.as_primitive::<Float64Type>();
            match digits_of_double(mysql_type) {
                Some(digits) => {
                    let is_stored = !mysql_type.starts_with("double(53,");
                    let number = |row| values.value(row) + if is_stored { 0.0 } else { -0.0 };
                    rows(array, |row, out| out.push_str(&fixed_text(number(row), digits)))
                }
                None => rows(array, |row, out| out.push_str(&double_text(values.value(row)))),
            }
        }
        DataType::UInt16 if mysql_type == "year" => {
            let values = array.as_primitive::<UInt16Type>();
            rows(array, |row, out| out.push_str(&format!("{:04}", values.value(row))))
        }
        DataType::UInt16 if mysql_type == SHORT_YEAR => {
            let values = array.as_primitive::<UInt16Type>();
            rows(array, |row, out| out.push_str(&format!("{:02}", values.value(row) % 100)))
        }
        DataType::UInt64 if mysql_type.starts_with("bit(") => return bits(mysql_type, array),
        DataType::Decimal32(precision, scale) => decimal::<Decimal32Type>(array, *precision, *scale),
        DataType::Decimal64(precision, scale) => decimal::<Decimal64Type>(array, *precision, *scale),
        DataType::Decimal128(precision, scale) => decimal::<Decimal128Type>(array, *precision, *scale),
        DataType::Decimal256(precision, scale) => decimal::<Decimal256Type>(array, *precision, *scale),
        DataType::Date32 => {
            let values = array.as_primitive::<Date32Type>();
            rows(array, |row, out| temporal::date(i64::from(values.value(row)), out))
        }
        DataType::Timestamp(unit, _) => {
            let values = temporal::ticks(array)?;
            let digits = fractional_digits(mysql_type).unwrap_or_else(|| temporal::digits(*unit));
            rows(array, |row, out| temporal::date_time(values[row], *unit, digits, out))
        }
        DataType::Duration(unit) => {
            let values = temporal::ticks(array)?;
            let digits = fractional_digits(mysql_type).unwrap_or_else(|| temporal::digits(*unit));
            rows(array, |row, out| temporal::time(values[row], *unit, digits, out))
        }
        DataType::Binary | DataType::LargeBinary | DataType::FixedSizeBinary(_) | DataType::BinaryView => {
            let view = cast(array, &DataType::BinaryView).map_err(internal)?;
            let values = view.as_binary_view();
            return Ok((0..array.len())
                .map(|row| (!values.is_null(row)).then(|| values.value(row).to_vec()))
                .collect());
        }
        DataType::Dictionary(_, values) => {
            let flat = cast(array, values).map_err(internal)?;
            return column_text(&field.clone().with_data_type(values.as_ref().clone()), &flat);
        }
        _ => {
            let options = FormatOptions::default();
            let formatter = ArrayFormatter::try_new(array.as_ref(), &options).map_err(internal)?;
            rows(array, |row, out| out.push_str(&formatter.value(row).to_string()))
        }
    };
    Ok(text)
}

/// Prints each row that is not NULL.
fn rows(array: &ArrayRef, mut print: impl FnMut(usize, &mut String)) -> Vec<Option<Vec<u8>>> {
    let mut text = |row| {
        let mut out = String::new();
        print(row, &mut out);
        out.into_bytes()
    };
    let nulls = array.logical_nulls();
    let is_null = |row| nulls.as_ref().is_some_and(|nulls| nulls.is_null(row));
    (0..array.len()).map(|row| if is_null(row) { None } else { Some(text(row)) }).collect()
}

fn decimal<T>(array: &ArrayRef, precision: u8, scale: i8) -> Vec<Option<Vec<u8>>>
where
    T: ArrowPrimitiveType + DecimalType,
{
    let values = array.as_primitive::<T>();
    rows(array, |row, out| out.push_str(&T::format_decimal(values.value(row), precision, scale)))
}

/// BIT(n): as many bytes as n bits need.
fn bits(mysql_type: &str, array: &ArrayRef) -> Result<Vec<Option<Vec<u8>>>> {
    let width = argument(mysql_type).filter(|bits| (1..=64).contains(bits));
    let bytes = width.unwrap_or(64).div_ceil(8);
    let values = array.as_primitive::<UInt64Type>();
    let raw = |row: usize| values.value(row).to_be_bytes()[8 - bytes..].to_vec();
    Ok((0..array.len()).map(|row| (!values.is_null(row)).then(|| raw(row))).collect())
}

/// Fractional digits of `time(3)`; 0 of `time`; `None` for no MySQL type.
fn fractional_digits(mysql_type: &str) -> Option<usize> {
    if mysql_type.is_empty() { None } else { Some(argument(mysql_type).unwrap_or(0).min(6)) }
}

/// Digits after the point of `double(53,4)` and `float(7,3)`; `None` of a plain DOUBLE or FLOAT.
pub fn digits_of_double(mysql_type: &str) -> Option<usize> {
    mysql_type
        .strip_prefix("double(")
        .or_else(|| mysql_type.strip_prefix("float("))?
        .strip_suffix(')')?
        .split_once(',')?
        .1
        .parse()
        .ok()
}

fn argument(mysql_type: &str) -> Option<usize> {
    mysql_type.split_once('(')?.1.strip_suffix(')')?.parse().ok()
}

fn internal(error: datafusion::arrow::error::ArrowError) -> Error {
    Error::new(ErrorKind::Internal, format!("cannot print a value: {error}"))
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;
    use std::sync::Arc;

    use datafusion::arrow::array::{
        BinaryArray, BooleanArray, Decimal128Array, StringArray, UInt16Array, UInt64Array,
    };

    use super::*;

    fn shown(mysql_type: Option<&str>, array: impl Array + 'static) -> Vec<Option<Vec<u8>>> {
        let metadata = mysql_type.map(|name| (MYSQL_TYPE.to_string(), name.to_string()));
        let field =
            Field::new("c", array.data_type().clone(), true).with_metadata(HashMap::from_iter(metadata));
        let array: ArrayRef = Arc::new(array);
        column_text(&field, &array).unwrap()
    }

    fn texts(of: &[Option<&str>]) -> Vec<Option<Vec<u8>>> {
        of.iter().map(|text| text.map(|text| text.as_bytes().to_vec())).collect()
    }

    #[test]
    fn metadata_decides_what_the_type_does_not_say() {
        assert_eq!(
            shown(Some("year"), UInt16Array::from(vec![0, 1901])),
            texts(&[Some("0000"), Some("1901")])
        );
        assert_eq!(shown(None, UInt16Array::from(vec![0])), texts(&[Some("0")]));
        let bits = shown(Some("bit(17)"), UInt64Array::from(vec![Some(0x1_FFFF), None]));
        assert_eq!(bits, [Some(vec![1, 255, 255]), None]);
        assert_eq!(shown(None, UInt64Array::from(vec![u64::MAX])), texts(&[Some("18446744073709551615")]));
    }

    #[test]
    fn decimals_keep_their_scale() {
        let decimals = Decimal128Array::from(vec![Some(0), Some(-99_999), Some(150), None]);
        let decimals = decimals.with_precision_and_scale(5, 2).unwrap();
        assert_eq!(shown(None, decimals), texts(&[Some("0.00"), Some("-999.99"), Some("1.50"), None]));
    }

    #[test]
    fn other_types_are_plain() {
        assert_eq!(shown(None, BooleanArray::from(vec![true, false])), texts(&[Some("1"), Some("0")]));
        assert_eq!(shown(None, StringArray::from(vec![Some("a\tb"), None])), texts(&[Some("a\tb"), None]));
        assert_eq!(shown(None, BinaryArray::from(vec![&[0xFF, 0][..]])), [Some(vec![0xFF, 0])]);
    }
}
