//! Values as JSON, as the servers put them into arrays and objects.

use std::fmt::Write;
use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, AsArray, StringArray};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Field, FieldRef, Float64Type, TimeUnit};
use datafusion::common::{Result, exec_err, plan_err};
use datafusion::logical_expr::ScalarUDF;

use super::simple::Simple;
use crate::relation::types::{DOCUMENT, MYSQL_TYPE, ZEROS};
use crate::text::column_text;

/// [`MYSQL_TYPE`] of YEAR.
const YEAR: &str = "year";

/// Names of the function by MySQL's and MariaDB's spelling.
pub const JSON_VALUE: [&str; 2] = ["mysql_json_value", "mariadb_json_value"];

/// Both functions.
pub(super) fn functions() -> [ScalarUDF; 2] {
    let text = |_: &[DataType]| Ok(DataType::Utf8);
    let of_mysql = |arrays: &[ArrayRef], fields: &[FieldRef]| values(arrays, fields, true);
    let of_mariadb = |arrays: &[ArrayRef], fields: &[FieldRef]| values(arrays, fields, false);
    [Simple::function(JSON_VALUE[0], text, of_mysql), Simple::function(JSON_VALUE[1], text, of_mariadb)]
}

/// A text as JSON.
pub fn quoted(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for letter in text.chars() {
        match letter {
            '"' => quoted.push_str("\\\""),
            '\\' => quoted.push_str("\\\\"),
            '\u{8}' => quoted.push_str("\\b"),
            '\u{c}' => quoted.push_str("\\f"),
            '\n' => quoted.push_str("\\n"),
            '\r' => quoted.push_str("\\r"),
            '\t' => quoted.push_str("\\t"),
            control if control < ' ' => _ = write!(quoted, "\\u{:04x}", u32::from(control)),
            other => quoted.push(other),
        }
    }
    quoted.push('"');
    quoted
}

fn values(arrays: &[ArrayRef], fields: &[FieldRef], mysql: bool) -> Result<ArrayRef> {
    let ([array], [field]) = (arrays, fields) else { return plan_err!("a value of JSON is of one value") };
    let mysql_type = field.metadata().get(MYSQL_TYPE).map_or("", String::as_str);
    let is_json = mysql_type == "json" || field.metadata().get(DOCUMENT).is_some_and(|of| of == "yes");
    let is_quoted = match array.data_type() {
        DataType::Binary | DataType::LargeBinary | DataType::BinaryView => {
            return exec_err!("binary values in JSON aggregates are not supported; CAST them AS CHAR");
        }
        _ if mysql_type.starts_with("bit(") => {
            return exec_err!("values of BIT in JSON aggregates are not supported; add 0 to them");
        }
        DataType::Boolean => {
            let spelled = array.as_boolean().iter().map(|value| value.map(|value| value.to_string()));
            return Ok(Arc::new(spelled.collect::<StringArray>()));
        }
        DataType::Float32 | DataType::Float64 if mysql => {
            let numbers = cast(array, &DataType::Float64)?;
            let spelled = numbers.as_primitive::<Float64Type>().iter().map(|value| value.map(double));
            return Ok(Arc::new(spelled.collect::<StringArray>()));
        }
        number if number.is_numeric() || *number == DataType::Null => false,
        _ => !is_json,
    };
    let plain = |field: &Field| {
        let mut field = field.clone();
        field.metadata_mut().remove(ZEROS);
        if mysql_type == YEAR {
            field.metadata_mut().remove(MYSQL_TYPE);
        }
        Arc::new(field)
    };
    // MySQL's documents have numbers without the zeros of ZEROFILL, and the year 0 as 0.
    let field = &if mysql { plain(field) } else { Arc::clone(field) };
    let (spelled, field) = match (mysql, array.data_type()) {
        // MySQL's JSON has times with microseconds.
        (true, DataType::Timestamp(..)) => micros(array, DataType::Timestamp(TimeUnit::Microsecond, None))?,
        (true, DataType::Duration(_)) => micros(array, DataType::Duration(TimeUnit::Microsecond))?,
        _ => (Arc::clone(array), Arc::clone(field)),
    };
    let texts = column_text(&field, &spelled)
        .map_err(|error| datafusion::common::DataFusionError::External(Box::new(error)))?;
    let texts = texts.into_iter().map(|text| {
        text.map(|text| {
            let text = String::from_utf8_lossy(&text).into_owned();
            if is_quoted { quoted(&text) } else { text }
        })
    });
    Ok(Arc::new(texts.collect::<StringArray>()))
}

fn micros(array: &ArrayRef, to: DataType) -> Result<(ArrayRef, FieldRef)> {
    let array = cast(array, &to)?;
    Ok((array, Arc::new(Field::new("", to, true))))
}

/// A double as MySQL's JSON spells it: a whole one with `.0`.
fn double(number: f64) -> String {
    let text = crate::text::double_text(number);
    if text.contains(['.', 'e']) { text } else { format!("{text}.0") }
}

#[cfg(test)]
mod tests {
    use super::{double, quoted};

    #[test]
    fn letters_that_json_escapes() {
        assert_eq!(quoted("a\"b\\c\n\t/é\u{1}"), "\"a\\\"b\\\\c\\n\\t/é\\u0001\"");
    }

    #[test]
    fn whole_doubles_have_a_point() {
        assert_eq!(double(1e10), "10000000000.0");
        assert_eq!(double(0.1), "0.1");
        assert_eq!(double(1e20), "1e20");
    }
}
