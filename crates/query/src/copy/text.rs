//! CSV and newline-delimited JSON. Values are spelled as MySQL spells them.

use datafusion::arrow::array::{Array, ArrayRef};
use datafusion::arrow::datatypes::{DataType, Field, Schema};
use datafusion::arrow::record_batch::RecordBatch;

use crate::relation::types::MYSQL_TYPE;
use crate::text::column_text;
use crate::{Error, ErrorKind, Result};

/// Most digits of a decimal that every reader's double keeps.
const MAX_EXACT_DIGITS: u8 = 15;

/// Lines of comma-separated values (RFC 4180, lines end with a line feed).
pub(crate) struct CsvLines {
    delimiter: u8,
    null_value: String,
    /// Whether the header is still to be written.
    owes_header: bool,
}

impl CsvLines {
    pub(super) fn new(delimiter: u8, has_header: bool, null_value: String) -> CsvLines {
        CsvLines { delimiter, null_value, owes_header: has_header }
    }

    /// The header, if it was not written yet.
    pub(super) fn header(&mut self, schema: &Schema) -> Vec<u8> {
        let mut out = Vec::new();
        if std::mem::take(&mut self.owes_header) {
            for (no, field) in schema.fields().iter().enumerate() {
                self.separate(no, &mut out);
                self.quote(field.name().as_bytes(), &mut out);
            }
            out.push(b'\n');
        }
        out
    }

    fn separate(&self, no: usize, out: &mut Vec<u8>) {
        if no > 0 {
            out.push(self.delimiter);
        }
    }

    pub(super) fn write(&mut self, batch: &RecordBatch) -> Result<Vec<u8>> {
        let schema = batch.schema();
        let mut out = self.header(&schema);
        let columns = texts(batch)?;
        for row in 0..batch.num_rows() {
            for (no, column) in columns.iter().enumerate() {
                self.separate(no, &mut out);
                match &column[row] {
                    None => out.extend_from_slice(self.null_value.as_bytes()),
                    Some(text) if text == self.null_value.as_bytes() => {
                        let message = format!(
                            "column {} has the text '{}', which stands for NULL in the file; choose another \
                             with OPTIONS (null_value '...')",
                            schema.field(no).name(),
                            self.null_value
                        );
                        return Err(Error::new(ErrorKind::Unsupported, message));
                    }
                    Some(text) => self.quote(text, &mut out),
                }
            }
            out.push(b'\n');
        }
        Ok(out)
    }

    fn quote(&self, text: &[u8], out: &mut Vec<u8>) {
        let special = |byte: &u8| matches!(byte, b'"' | b'\n' | b'\r') || *byte == self.delimiter;
        if !text.is_empty() && !text.iter().any(special) {
            out.extend_from_slice(text);
            return;
        }
        out.push(b'"');
        for byte in text {
            if *byte == b'"' {
                out.push(b'"');
            }
            out.push(*byte);
        }
        out.push(b'"');
    }
}

/// Lines of JSON objects.
pub(crate) struct JsonLines {
    /// Each column's key as JSON, and whether its values are numbers.
    columns: Vec<(String, bool)>,
}

impl JsonLines {
    pub(super) fn new(schema: &Schema) -> Result<JsonLines> {
        let column =
            |field: &std::sync::Arc<Field>| Ok((quoted(field.name())?, is_number(field.data_type())));
        Ok(JsonLines { columns: schema.fields().iter().map(column).collect::<Result<_>>()? })
    }

    pub(super) fn write(&self, batch: &RecordBatch) -> Result<Vec<u8>> {
        let mut out = Vec::new();
        let columns = texts(batch)?;
        for row in 0..batch.num_rows() {
            out.push(b'{');
            for (no, ((key, is_number), column)) in self.columns.iter().zip(&columns).enumerate() {
                if no > 0 {
                    out.push(b',');
                }
                out.extend_from_slice(key.as_bytes());
                out.push(b':');
                match column[row].as_deref().map(String::from_utf8_lossy) {
                    None => out.extend_from_slice(b"null"),
                    Some(text) if !is_number => out.extend_from_slice(quoted(&text)?.as_bytes()),
                    Some(text) => {
                        if serde_json::from_str::<serde_json::Number>(&text).is_err() {
                            let name = batch.schema().field(no).name().clone();
                            let message = format!(
                                "column {name} has the value {text}, which is no number in JSON; CAST({name} AS CHAR) writes it as text"
                            );
                            return Err(Error::new(ErrorKind::Unsupported, message));
                        }
                        out.extend_from_slice(text.as_bytes());
                    }
                }
            }
            out.extend_from_slice(b"}\n");
        }
        Ok(out)
    }
}

fn is_number(data_type: &DataType) -> bool {
    match data_type {
        DataType::Decimal128(digits, _) | DataType::Decimal256(digits, _) => *digits <= MAX_EXACT_DIGITS,
        DataType::Boolean => true,
        other => other.is_numeric(),
    }
}

fn quoted(text: &str) -> Result<String> {
    serde_json::to_string(text).map_err(|error| Error::new(ErrorKind::Internal, error.to_string()))
}

/// The texts of all columns; a BIT as its number.
fn texts(batch: &RecordBatch) -> Result<Vec<Vec<Option<Vec<u8>>>>> {
    let schema = batch.schema();
    let columns = schema.fields().iter().zip(batch.columns());
    columns.map(|(field, array)| text(field, array)).collect()
}

fn text(field: &Field, array: &ArrayRef) -> Result<Vec<Option<Vec<u8>>>> {
    let is_plain = |name: &String| name.starts_with("bit(") || name == "year";
    let found = match field.metadata().get(MYSQL_TYPE).filter(|name| is_plain(name)) {
        Some(_) => column_text(&field.clone().with_metadata(Default::default()), array)?,
        None => column_text(field, array)?,
    };
    if let Some(no) =
        found.iter().position(|text| text.as_ref().is_some_and(|text| std::str::from_utf8(text).is_err()))
    {
        let name = field.name();
        let message = format!(
            "column {name} has bytes that are no text (row {no} of {}); write HEX({name})",
            array.len()
        );
        return Err(Error::new(ErrorKind::Unsupported, message));
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use datafusion::arrow::array::{BinaryArray, Float64Array, StringArray};

    use super::*;

    fn batch(columns: Vec<(&str, ArrayRef)>) -> RecordBatch {
        RecordBatch::try_from_iter(columns).unwrap()
    }

    fn csv(batch: &RecordBatch) -> Result<String> {
        CsvLines::new(b',', true, "\\N".to_string())
            .write(batch)
            .map(|bytes| String::from_utf8(bytes).unwrap())
    }

    #[test]
    fn null_and_empty_texts_are_told_apart() {
        let texts: ArrayRef = Arc::new(StringArray::from(vec![Some("a\"b"), None, Some(""), Some("x,y\nz")]));
        assert_eq!(
            csv(&batch(vec![("a,b", texts)])).unwrap(),
            "\"a,b\"\n\"a\"\"b\"\n\\N\n\"\"\n\"x,y\nz\"\n"
        );
        let marks: ArrayRef = Arc::new(StringArray::from(vec!["\\N"]));
        assert!(csv(&batch(vec![("c", marks)])).unwrap_err().to_string().contains("stands for NULL"));
        let bytes: ArrayRef = Arc::new(BinaryArray::from(vec![&[0xFF][..]]));
        assert!(csv(&batch(vec![("c", bytes)])).unwrap_err().to_string().contains("write HEX(c)"));
    }

    #[test]
    fn json_has_numbers_and_texts() {
        let numbers: ArrayRef = Arc::new(Float64Array::from(vec![Some(1.5), None]));
        let texts: ArrayRef = Arc::new(StringArray::from(vec![Some("a\"\n"), None]));
        let rows = batch(vec![("n", numbers), ("t", texts)]);
        let lines = JsonLines::new(&rows.schema()).unwrap().write(&rows).unwrap();
        assert_eq!(
            String::from_utf8(lines).unwrap(),
            "{\"n\":1.5,\"t\":\"a\\\"\\n\"}\n{\"n\":null,\"t\":null}\n"
        );
        let none: ArrayRef = Arc::new(Float64Array::from(vec![f64::NAN]));
        let rows = batch(vec![("n", none)]);
        assert!(JsonLines::new(&rows.schema()).unwrap().write(&rows).is_err());
    }
}
