//! Values as the numbers that SUM, STD and the aggregates of bits take them for: texts by what they begin with, ENUM
//! and SET by their number, dates and times by their digits.

use std::sync::Arc;

use datafusion::arrow::array::{
    Array, ArrayRef, AsArray, Decimal128Array, Float64Array, Int64Array, UInt64Array,
};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{
    DECIMAL128_MAX_PRECISION, DataType, Decimal128Type, Field, FieldRef, Float32Type, Float64Type, Int64Type,
    TimeUnit,
};
use datafusion::common::{Result, exec_err, not_impl_err, plan_err};
use datafusion::logical_expr::ScalarUDF;

use super::simple::Simple;
use crate::relation::types::MYSQL_TYPE;
use crate::text::{column_text, digits_of_double};

/// Name of the function that gives a number for any value.
pub const NUMBER: &str = "mysql_number";
/// Name of the function that gives 64 bits for any number.
pub const BITS: &str = "mysql_bits";

/// Name of the function that refuses doubles out of range.
const FINITE: &str = "finite_double";
/// Name of the function that makes 0 of -0.0.
const UNSIGNED_ZERO: &str = "unsigned_zero";

/// The function that makes 0 of -0.0.
pub(super) fn unsigned_zero() -> ScalarUDF {
    Simple::function(
        UNSIGNED_ZERO,
        |types| types.first().cloned().map_or_else(|| plan_err!("a zero is of one value"), Ok),
        |arrays, _| match arrays {
            [array] if *array.data_type() == DataType::Float32 => Ok(Arc::new(
                array.as_primitive::<Float32Type>().unary::<_, Float32Type>(|number| number + 0.0),
            )),
            [array] => Ok(Arc::new(
                array.as_primitive::<Float64Type>().unary::<_, Float64Type>(|number| number + 0.0),
            )),
            _ => plan_err!("a zero is of one value"),
        },
    )
}

/// The function that passes doubles on and refuses those out of range, which are errors of the servers.
pub(super) fn finite() -> ScalarUDF {
    Simple::function(
        FINITE,
        |types| types.first().cloned().map_or_else(|| plan_err!("a double is one value"), Ok),
        |arrays, _| match arrays {
            [array] => {
                let numbers = array.as_primitive::<Float64Type>();
                match numbers.iter().flatten().all(f64::is_finite) {
                    true => Ok(Arc::clone(array)),
                    false => {
                        exec_err!("a DOUBLE value is out of range, which is an error of the servers, too")
                    }
                }
            }
            _ => plan_err!("a double is one value"),
        },
    )
}

/// Both functions.
pub(super) fn functions() -> [ScalarUDF; 2] {
    let number = Simple::function(
        NUMBER,
        |types| match types {
            [of] => number_type(of),
            _ => plan_err!("a number is of one value"),
        },
        |arrays, fields| match (arrays, fields) {
            ([array], [field]) => number(array, field),
            _ => plan_err!("a number is of one value"),
        },
    );
    let bits = Simple::function(
        BITS,
        |_| Ok(DataType::UInt64),
        |arrays, _| match arrays {
            [array] => bits(array),
            _ => plan_err!("bits are of one value"),
        },
    );
    [number, bits]
}

/// Whether SUM takes values of this field for other numbers than DataFusion does, or for any.
pub fn is_no_number(data_type: &DataType) -> bool {
    !data_type.is_numeric() && *data_type != DataType::Null
}

/// Digits after the point of a field's numbers; `None` of doubles.
pub fn digits_of(field: &Field) -> Option<u8> {
    match field.data_type() {
        DataType::Decimal32(_, scale)
        | DataType::Decimal64(_, scale)
        | DataType::Decimal128(_, scale)
        | DataType::Decimal256(_, scale) => u8::try_from(*scale).ok(),
        DataType::Timestamp(unit, _) | DataType::Duration(unit) => Some(unit_digits(*unit)),
        DataType::Float32 | DataType::Float64 => {
            let digits = digits_of_double(field.metadata().get(MYSQL_TYPE)?)?;
            u8::try_from(digits).ok()
        }
        DataType::Utf8 | DataType::Utf8View | DataType::LargeUtf8 => choices(field).is_some().then_some(0),
        other => (other.is_integer() || matches!(other, DataType::Boolean | DataType::Date32)).then_some(0),
    }
}

pub(super) fn unit_digits(unit: TimeUnit) -> u8 {
    match unit {
        TimeUnit::Second => 0,
        TimeUnit::Millisecond => 3,
        _ => 6,
    }
}

fn number_type(of: &DataType) -> Result<DataType> {
    Ok(match of {
        DataType::Boolean | DataType::Date32 => DataType::Int64,
        DataType::Timestamp(unit, _) | DataType::Duration(unit) => {
            DataType::Decimal128(20, unit_digits(*unit).cast_signed())
        }
        DataType::Utf8
        | DataType::LargeUtf8
        | DataType::Utf8View
        | DataType::Binary
        | DataType::LargeBinary
        | DataType::BinaryView => DataType::Float64,
        number if number.is_numeric() || *number == DataType::Null => number.clone(),
        other => return plan_err!("values of type {other} are no numbers for an aggregate"),
    })
}

fn number(array: &ArrayRef, field: &FieldRef) -> Result<ArrayRef> {
    let texts = || {
        column_text(field, array)
            .map_err(|error| datafusion::common::DataFusionError::External(Box::new(error)))
    };
    Ok(match array.data_type() {
        DataType::Boolean => cast(array, &DataType::Int64)?,
        DataType::Date32 => {
            let digits = texts()?.into_iter().map(|text| text.and_then(|text| digits_of_text(&text)));
            let numbers = digits.map(|digits| digits.and_then(|digits| i64::try_from(digits).ok()));
            Arc::new(numbers.collect::<Int64Array>())
        }
        DataType::Timestamp(unit, _) | DataType::Duration(unit) => {
            let wanted = unit_digits(*unit).cast_signed();
            // As many digits as the unit has, whatever the column shows.
            let plain = Arc::new(Field::new("", array.data_type().clone(), true));
            let texts = column_text(&plain, array)
                .map_err(|error| datafusion::common::DataFusionError::External(Box::new(error)))?;
            let digits = texts.into_iter().map(|text| text.and_then(|text| digits_of_text(&text)));
            Arc::new(digits.collect::<Decimal128Array>().with_precision_and_scale(20, wanted)?)
        }
        of if number_type(of)? == DataType::Float64 && !of.is_numeric() => match choices(field) {
            Some(choices) => {
                let numbers = texts()?.into_iter().map(|text| text.map(|text| choices.number(&text)));
                Arc::new(numbers.collect::<Float64Array>())
            }
            None => {
                let numbers = texts()?.into_iter().map(|text| text.map(|text| prefix(&text)));
                Arc::new(numbers.collect::<Float64Array>())
            }
        },
        _ => Arc::clone(array),
    })
}

/// The digits of a date or time, with its sign.
fn digits_of_text(text: &[u8]) -> Option<i128> {
    let mut number = 0_i128;
    for digit in text.iter().filter(|byte| byte.is_ascii_digit()) {
        number = number.checked_mul(10)?.checked_add(i128::from(digit - b'0'))?;
    }
    Some(if text.first() == Some(&b'-') { -number } else { number })
}

/// The number that a text begins with; 0 of any other.
fn prefix(text: &[u8]) -> f64 {
    let text = text.trim_ascii_start();
    let digits = |from: usize| {
        text.get(from..).map_or(0, |rest| rest.iter().take_while(|byte| byte.is_ascii_digit()).count())
    };
    let mut end = usize::from(matches!(text.first(), Some(b'+' | b'-')));
    let whole = digits(end);
    end += whole;
    let mut fraction = 0;
    if text.get(end) == Some(&b'.') {
        fraction = digits(end + 1);
        end += 1 + fraction;
    }
    if whole + fraction == 0 {
        return 0.0;
    }
    if matches!(text.get(end), Some(b'e' | b'E')) {
        let sign = usize::from(matches!(text.get(end + 1), Some(b'+' | b'-')));
        let exponent = digits(end + 1 + sign);
        if exponent > 0 {
            end += 1 + sign + exponent;
        }
    }
    let number = text.get(..end).and_then(|number| std::str::from_utf8(number).ok());
    number.and_then(|number| number.parse().ok()).unwrap_or(0.0)
}

/// The elements of an ENUM or SET.
struct Choices {
    elements: Vec<Vec<u8>>,
    is_set: bool,
}

impl Choices {
    fn number(&self, text: &[u8]) -> f64 {
        let position = |of: &[u8]| self.elements.iter().position(|element| element == of);
        if !self.is_set {
            return position(text).map_or(0.0, |position| (position + 1) as f64);
        }
        let members = text.split(|byte| *byte == b',').filter_map(position);
        let bits =
            members.fold(0_u64, |bits, position| bits | 1_u64.checked_shl(position as u32).unwrap_or(0));
        bits as f64
    }
}

fn choices(field: &Field) -> Option<Choices> {
    let mysql_type = field.metadata().get(MYSQL_TYPE)?;
    let (is_set, list) = match mysql_type.strip_prefix("enum(") {
        Some(list) => (false, list),
        None => (true, mysql_type.strip_prefix("set(")?),
    };
    let list = list.strip_suffix(')')?.strip_prefix('\'')?.strip_suffix('\'')?;
    let elements = list.split("','").map(|element| element.replace("''", "'").into_bytes()).collect();
    Some(Choices { elements, is_set })
}

/// Numbers as 64 bits: fractions are rounded, negative numbers wrap around.
fn bits(array: &ArrayRef) -> Result<ArrayRef> {
    Ok(match array.data_type() {
        DataType::UInt64 => Arc::clone(array),
        unsigned if unsigned.is_unsigned_integer() => cast(array, &DataType::UInt64)?,
        signed if signed.is_integer() => {
            let numbers = cast(array, &DataType::Int64)?;
            let words = numbers.as_primitive::<Int64Type>().iter();
            Arc::new(words.map(|number| number.map(i64::cast_unsigned)).collect::<UInt64Array>())
        }
        DataType::Decimal32(..)
        | DataType::Decimal64(..)
        | DataType::Decimal128(..)
        | DataType::Decimal256(..) => {
            let scale = match array.data_type() {
                DataType::Decimal32(_, scale)
                | DataType::Decimal64(_, scale)
                | DataType::Decimal128(_, scale)
                | DataType::Decimal256(_, scale) => *scale,
                _ => 0,
            };
            let numbers = cast(array, &DataType::Decimal128(DECIMAL128_MAX_PRECISION, scale))?;
            let unit = 10_i128.pow(u32::try_from(scale).unwrap_or(0));
            let words = numbers.as_primitive::<Decimal128Type>().iter().map(|number| {
                number.map(|number| {
                    let (whole, rest) = (number / unit, number % unit);
                    let is_up = rest.unsigned_abs() * 2 >= unit.unsigned_abs();
                    word_of(whole + if is_up { number.signum() } else { 0 })
                })
            });
            Arc::new(words.collect::<UInt64Array>())
        }
        _ => {
            let numbers = cast(array, &DataType::Float64)?;
            let words = numbers.as_primitive::<Float64Type>().iter();
            let word = |number: f64| match number.abs() < 9_223_372_036_854_775_808.0 {
                true => Ok(word_of(number.round_ties_even() as i128)),
                false => not_impl_err!("a DOUBLE out of the range of BIGINT as bits"),
            };
            Arc::new(words.map(|number| number.map(word).transpose()).collect::<Result<UInt64Array>>()?)
        }
    })
}

/// The nearest word: negative numbers are those of two's complement.
fn word_of(number: i128) -> u64 {
    match u64::try_from(number) {
        Ok(word) => word,
        Err(_) if number > 0 => i64::MAX.cast_unsigned(),
        Err(_) => i64::try_from(number).unwrap_or(i64::MIN).cast_unsigned(),
    }
}

#[cfg(test)]
mod tests {
    use datafusion::arrow::datatypes::UInt64Type;

    use super::*;

    #[test]
    fn texts_are_the_numbers_they_begin_with() {
        for (text, number) in [
            ("10", 10.0),
            (" -1.5x", -1.5),
            ("abc", 0.0),
            ("", 0.0),
            ("1e2", 100.0),
            ("1e", 1.0),
            (".5", 0.5),
            ("-", 0.0),
        ] {
            assert_eq!(prefix(text.as_bytes()).to_bits(), f64::to_bits(number), "{text}");
        }
    }

    #[test]
    fn dates_are_their_digits_and_choices_their_numbers() {
        assert_eq!(digits_of_text(b"2024-01-05 10:00:00.123"), Some(20_240_105_100_000_123));
        assert_eq!(digits_of_text(b"-01:00:00"), Some(-10_000));
        let metadata = |of: &str| [(MYSQL_TYPE.to_owned(), of.to_owned())].into();
        let field = |of: &str| Field::new("c", DataType::Utf8View, true).with_metadata(metadata(of));
        assert_eq!(choices(&field("enum('z','it''s')")).map(|choices| choices.number(b"it's")), Some(2.0));
        assert_eq!(choices(&field("set('x','y','w')")).map(|choices| choices.number(b"x,w")), Some(5.0));
        assert!(choices(&field("varchar(3)")).is_none());
    }

    #[test]
    fn bits_of_fractions_and_negative_numbers() {
        assert_eq!(word_of(-4), u64::MAX - 3);
        assert_eq!(word_of(i128::MAX), i64::MAX.cast_unsigned());
        let numbers: ArrayRef = Arc::new(
            Decimal128Array::from(vec![Some(250), Some(-375), None]).with_precision_and_scale(5, 2).unwrap(),
        );
        let words = bits(&numbers).unwrap();
        assert_eq!(
            words.as_primitive::<UInt64Type>().iter().collect::<Vec<_>>(),
            [Some(3), Some(u64::MAX - 3), None]
        );
    }
}
