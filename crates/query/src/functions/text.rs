//! Values as text, and parts of texts, as in MySQL.

use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, AsArray, StringArray, new_null_array};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Int64Type};
use datafusion::common::plan_err;
use datafusion::logical_expr::ScalarUDF;

use super::simple::Simple;
use crate::text::column_text;

/// Name of the function that spells a value as the server prints it.
pub const TEXT: &str = "mysql_text";
/// Name of `SUBSTRING` with positions from the end, and nothing at position 0.
pub const SUBSTRING: &str = "mysql_substring";

/// Both functions.
pub(super) fn functions() -> [ScalarUDF; 2] {
    [
        Simple::function(
            TEXT,
            |_| Ok(DataType::Utf8),
            |arrays, fields| match (arrays, fields) {
                ([array], _) if *array.data_type() == DataType::Null => {
                    Ok(new_null_array(&DataType::Utf8, array.len()))
                }
                ([array], [field]) => {
                    let texts = column_text(field, array)
                        .map_err(|error| datafusion::common::DataFusionError::External(Box::new(error)))?;
                    let texts = texts
                        .into_iter()
                        .map(|text| text.map(|text| String::from_utf8_lossy(&text).into_owned()));
                    Ok(Arc::new(texts.collect::<StringArray>()) as ArrayRef)
                }
                _ => plan_err!("a text is made of one value"),
            },
        ),
        Simple::function(
            SUBSTRING,
            |_| Ok(DataType::Utf8),
            |arrays, _| {
                let (text, from, count) = match arrays {
                    [text, from] => (text, from, None),
                    [text, from, count] => (text, from, Some(cast(count, &DataType::Int64)?)),
                    _ => return plan_err!("SUBSTRING takes a text, a position and a length"),
                };
                let (text, from) = (cast(text, &DataType::Utf8)?, cast(from, &DataType::Int64)?);
                let (text, from) = (text.as_string::<i32>(), from.as_primitive::<Int64Type>());
                let count = count.as_ref().map(|count| count.as_primitive::<Int64Type>());
                let parts = (0..text.len()).map(|row| {
                    let is_null = text.is_null(row)
                        || from.is_null(row)
                        || count.is_some_and(|count| count.is_null(row));
                    (!is_null).then(|| {
                        substring(text.value(row), from.value(row), count.map(|count| count.value(row)))
                    })
                });
                Ok(Arc::new(parts.collect::<StringArray>()) as ArrayRef)
            },
        ),
    ]
}

/// From the `from`-th character, counted from 1, or from the end if it is negative.
fn substring(text: &str, from: i64, count: Option<i64>) -> &str {
    let length = text.chars().count() as i64;
    let start = match from {
        1.. => from - 1,
        0 => return "",
        _ => match length.checked_add(from) {
            Some(start @ 0..) => start,
            _ => return "",
        },
    };
    let count = count.unwrap_or(i64::MAX);
    if count <= 0 || start >= length {
        return "";
    }
    let end = start.saturating_add(count).min(length);
    let byte = |character: i64| {
        text.char_indices()
            .nth(usize::try_from(character).unwrap_or(usize::MAX))
            .map_or(text.len(), |(at, _)| at)
    };
    &text[byte(start)..byte(end)]
}

#[cfg(test)]
mod tests {
    use super::substring;

    #[test]
    fn positions_count_from_one_or_from_the_end() {
        assert_eq!(substring("abc", 2, None), "bc");
        assert_eq!(substring("abc", -2, None), "bc");
        assert_eq!(substring("abc", -3, Some(2)), "ab");
        assert_eq!(substring("abc", 0, None), "");
        assert_eq!(substring("abc", -4, None), "");
        assert_eq!(substring("abc", 1, Some(-1)), "");
        assert_eq!(substring("aßc", 2, Some(1)), "ß");
        assert_eq!(substring("abc", i64::MIN, Some(i64::MAX)), "");
    }
}
