//! Result formats. Each is a writer that takes batches as they come and keeps no more than it must.
//!
//! - `tsv` follows `mysql --batch`: a header line, tabs, `NULL`, and `\n \t \\ \0` escaped in header and values.
//! - `csv` follows RFC 4180: CRLF, quotes where needed; NULL is an empty field, an empty text is `""`.
//! - `json` is one array of objects per statement, one row per line.
//! - `table` draws boxes; column widths come from the first rows. On a terminal wide cells are folded, and a result
//!   with more columns than fit is turned on its side.
//! - `vertical` writes a line per column, as `\G` does in the servers' clients.
//!
//! Values are spelled as MySQL spells them (see [`tanada_query::text`]). `tsv` and `csv` write binary strings byte by
//! byte, as the server's client does; `json` and `table` write them as `0x` and hexadecimal digits. A statement without
//! columns (`USE`, `SET`) writes nothing.

mod csv;
mod fold;
mod json;
mod table;
mod tsv;
mod vertical;

use std::borrow::Cow;
use std::io::{self, Write};

use clap::ValueEnum;
use datafusion::arrow::datatypes::{DataType, SchemaRef};
use datafusion::arrow::record_batch::RecordBatch;

use crate::failure::Outcome;

/// A result format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// Boxes, for people
    Table,
    /// A line per column, as \G shows it
    Vertical,
    /// As `mysql --batch`
    Tsv,
    /// RFC 4180
    Csv,
    /// One array of objects per statement, one row per line
    Json,
}

/// Writes the result of one statement: `begin`, any number of `batch`es, `end`.
pub trait ResultWriter {
    /// The columns are known.
    fn begin(&mut self, schema: &SchemaRef, out: &mut dyn Write) -> Outcome;
    /// Some rows.
    fn batch(&mut self, batch: &RecordBatch, out: &mut dyn Write) -> Outcome;
    /// There are no more rows.
    fn end(&mut self, out: &mut dyn Write) -> Outcome;
}

impl Format {
    /// A writer for one statement's result, for a terminal of `width` columns if there is one.
    pub fn writer(self, width: Option<usize>) -> Box<dyn ResultWriter> {
        match self {
            Format::Table => Box::new(table::TableWriter::new(width)),
            Format::Vertical => Box::new(vertical::VerticalWriter::default()),
            Format::Tsv => Box::new(tsv::TsvWriter::default()),
            Format::Csv => Box::new(csv::CsvWriter),
            Format::Json => Box::new(json::JsonWriter::default()),
        }
    }
}

/// The values of a column as MySQL spells them; `None` is NULL. Bytes, because binary strings are written as they are.
type ColumnText = Vec<Option<Vec<u8>>>;

/// The texts of a batch, column by column.
fn texts(batch: &RecordBatch) -> Outcome<Vec<ColumnText>> {
    let schema = batch.schema();
    let columns = schema.fields().iter().zip(batch.columns());
    Ok(columns
        .map(|(field, array)| tanada_query::text::column_text(field, array))
        .collect::<Result<_, _>>()?)
}

/// `bytes` as text; binary strings, which have no text, as `0x...` in hexadecimal.
fn readable<'a>(data_type: &DataType, bytes: &'a [u8]) -> Cow<'a, str> {
    match std::str::from_utf8(bytes) {
        Ok(text) if !is_binary(data_type) => Cow::Borrowed(text),
        _ => bytes.iter().fold("0x".to_owned(), |text, byte| format!("{text}{byte:02X}")).into(),
    }
}

fn is_binary(data_type: &DataType) -> bool {
    use DataType::{Binary, BinaryView, FixedSizeBinary, FixedSizeList, LargeBinary};
    // A list of fixed size is a VECTOR, which the servers print as its bytes.
    matches!(data_type, Binary | LargeBinary | BinaryView | FixedSizeBinary(_) | FixedSizeList(..))
}

/// Writes `cells` with `separator` between them and `end` after them.
fn write_line<T>(
    cells: impl IntoIterator<Item = T>,
    separator: &str,
    end: &str,
    out: &mut dyn Write,
    mut cell: impl FnMut(T, &mut dyn Write) -> io::Result<()>,
) -> io::Result<()> {
    for (position, value) in cells.into_iter().enumerate() {
        if position > 0 {
            out.write_all(separator.as_bytes())?;
        }
        cell(value, out)?;
    }
    out.write_all(end.as_bytes())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use datafusion::arrow::array::{ArrayRef, Int64Array, StringArray};
    use datafusion::arrow::datatypes::Schema;

    use super::*;

    /// What `format` writes for two columns, in two batches.
    fn written(format: Format) -> String {
        let batch = |numbers: Vec<Option<i64>>, words: Vec<Option<&str>>| {
            let columns: [(&str, ArrayRef); 2] =
                [("n", Arc::new(Int64Array::from(numbers))), ("a\tb", Arc::new(StringArray::from(words)))];
            RecordBatch::try_from_iter_with_nullable(columns.map(|(name, array)| (name, array, true)))
                .unwrap()
        };
        let first = batch(vec![Some(1), None], vec![Some("tab\tline\nback\\zero\0"), None]);
        let second = batch(vec![Some(-3)], vec![Some("say \"hi\", ü")]);
        let mut out = Vec::new();
        let mut writer = format.writer(None);
        writer.begin(&first.schema(), &mut out).unwrap();
        writer.batch(&first, &mut out).unwrap();
        writer.batch(&second, &mut out).unwrap();
        writer.end(&mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn tsv_is_what_mysql_batch_prints() {
        assert_eq!(
            written(Format::Tsv),
            "n\ta\tb\n1\ttab\\tline\\nback\\\\zero\\0\nNULL\tNULL\n-3\tsay \"hi\", ü\n"
        );
    }

    #[test]
    fn csv_quotes_what_needs_it() {
        assert_eq!(
            written(Format::Csv),
            "n,a\tb\r\n1,\"tab\tline\nback\\zero\0\"\r\n,\r\n-3,\"say \"\"hi\"\", ü\"\r\n"
        );
    }

    #[test]
    fn json_is_one_array_with_a_row_per_line() {
        let text = written(Format::Json);
        let rows: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!(rows[0]["a\tb"], "tab\tline\nback\\zero\0");
        assert_eq!(rows[1]["n"], serde_json::Value::Null);
        assert_eq!(rows[2]["n"], -3);
        assert_eq!(text.lines().count(), 5);
    }

    #[test]
    fn table_cells_may_have_several_lines() {
        let text = written(Format::Table);
        assert!(text.contains("| NULL | NULL"), "{text}");
        assert!(text.contains("|   -3 | say \"hi\", ü"), "{text}");
        assert!(text.contains("|      | back\\zero"), "{text}");
        let widths: std::collections::BTreeSet<_> = text.lines().map(|line| line.chars().count()).collect();
        assert_eq!(widths.len(), 1, "{text}");
    }

    #[test]
    fn a_statement_without_columns_writes_nothing() {
        for format in [Format::Table, Format::Vertical, Format::Tsv, Format::Csv, Format::Json] {
            let mut out = Vec::new();
            let mut writer = format.writer(None);
            writer.begin(&Arc::new(Schema::empty()), &mut out).unwrap();
            writer.end(&mut out).unwrap();
            assert!(out.is_empty(), "{format:?}");
        }
    }
}
