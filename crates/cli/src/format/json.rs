//! JSON: one array of objects per statement, one row per line, so that both a JSON parser and line tools can read it.
//!
//! Integers and finite floating-point values are numbers, spelled in full. A DECIMAL is a number while 15 digits hold
//! its type (every reader's double is exact there) and a string beyond. NULL is `null`, a Boolean `true` or `false`;
//! everything else is a string as MySQL spells it.

use std::io::Write;

use datafusion::arrow::datatypes::{DataType, SchemaRef};
use datafusion::arrow::record_batch::RecordBatch;

use super::{ResultWriter, readable, texts, write_line};
use crate::failure::{Failure, Outcome};

/// Most digits of a decimal that every double keeps.
const MAX_EXACT_DIGITS: u8 = 15;

/// Writes the array, row by row.
#[derive(Debug, Default)]
pub struct JsonWriter {
    /// Each column's key as JSON, and how its values are written.
    columns: Vec<(String, Spelling)>,
    rows: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Spelling {
    Number,
    Boolean,
    Text,
}

impl ResultWriter for JsonWriter {
    fn begin(&mut self, schema: &SchemaRef, out: &mut dyn Write) -> Outcome {
        for field in schema.fields() {
            self.columns.push((quoted(field.name())?, spelling(field.data_type())));
        }
        if !self.columns.is_empty() {
            out.write_all(b"[")?;
        }
        Ok(())
    }

    fn batch(&mut self, batch: &RecordBatch, out: &mut dyn Write) -> Outcome {
        let texts = texts(batch)?;
        let schema = batch.schema();
        for row in 0..batch.num_rows() {
            out.write_all(if self.rows == 0 { b"\n{" } else { b",\n{" })?;
            let mut failure = None;
            let cells = self.columns.iter().zip(&texts).zip(schema.fields());
            write_line(cells, ",", "}", out, |(((key, spelling), column), field), out| {
                let text = column[row].as_deref().map(|bytes| readable(field.data_type(), bytes));
                match value(*spelling, text.as_deref()) {
                    Ok(value) => write!(out, "{key}:{value}"),
                    Err(error) => {
                        failure = Some(error);
                        Ok(())
                    }
                }
            })?;
            if let Some(failure) = failure {
                return Err(failure);
            }
            self.rows += 1;
        }
        Ok(())
    }

    fn end(&mut self, out: &mut dyn Write) -> Outcome {
        if !self.columns.is_empty() {
            out.write_all(b"\n]\n")?;
        }
        Ok(())
    }
}

fn spelling(data_type: &DataType) -> Spelling {
    match data_type {
        DataType::Decimal32(digits, _)
        | DataType::Decimal64(digits, _)
        | DataType::Decimal128(digits, _)
        | DataType::Decimal256(digits, _)
            if *digits > MAX_EXACT_DIGITS =>
        {
            Spelling::Text
        }
        numeric if numeric.is_numeric() => Spelling::Number,
        DataType::Boolean => Spelling::Boolean,
        _ => Spelling::Text,
    }
}

fn value(spelling: Spelling, text: Option<&str>) -> Outcome<String> {
    match (spelling, text) {
        (_, None) => Ok("null".to_owned()),
        (Spelling::Number, Some(text)) if is_json_number(text) => Ok(text.to_owned()),
        (Spelling::Boolean, Some("0" | "false")) => Ok("false".to_owned()),
        (Spelling::Boolean, Some("1" | "true")) => Ok("true".to_owned()),
        (_, Some(text)) => quoted(text),
    }
}

/// Whether JSON's grammar takes `text` as a number; `inf`, `NaN` and zero-filled integers are not.
fn is_json_number(text: &str) -> bool {
    serde_json::from_str::<serde_json::Number>(text).is_ok()
}

fn quoted(text: &str) -> Outcome<String> {
    serde_json::to_string(text).map_err(Failure::failed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimals_are_numbers_while_a_double_holds_them() {
        assert_eq!(spelling(&DataType::Decimal128(15, 2)), Spelling::Number);
        assert_eq!(spelling(&DataType::Decimal128(16, 2)), Spelling::Text);
        assert_eq!(spelling(&DataType::Int64), Spelling::Number);
        assert_eq!(spelling(&DataType::Utf8), Spelling::Text);
    }

    #[test]
    fn numbers_that_json_cannot_express_become_strings() {
        for (text, expected) in
            [("1", "1"), ("-0.50", "-0.50"), ("1e20", "1e20"), ("007", "\"007\""), ("NaN", "\"NaN\"")]
        {
            assert_eq!(value(Spelling::Number, Some(text)).unwrap(), expected);
        }
        assert_eq!(value(Spelling::Boolean, Some("1")).unwrap(), "true");
        assert_eq!(value(Spelling::Text, Some("\u{1}\"")).unwrap(), "\"\\u0001\\\"\"");
    }
}
