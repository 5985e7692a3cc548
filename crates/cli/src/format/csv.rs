//! Comma-separated values (RFC 4180).

use std::io::{self, Write};

use datafusion::arrow::datatypes::SchemaRef;
use datafusion::arrow::record_batch::RecordBatch;

use super::{ResultWriter, texts, write_line};
use crate::failure::Outcome;

/// Writes a header line and a line per row. NULL is an empty field, an empty text is `""`, so they can be told apart.
pub struct CsvWriter;

impl ResultWriter for CsvWriter {
    fn begin(&mut self, schema: &SchemaRef, out: &mut dyn Write) -> Outcome {
        if !schema.fields().is_empty() {
            write_line(schema.fields(), ",", "\r\n", out, |field, out| quoted(field.name().as_bytes(), out))?;
        }
        Ok(())
    }

    fn batch(&mut self, batch: &RecordBatch, out: &mut dyn Write) -> Outcome {
        let columns = texts(batch)?;
        for row in 0..batch.num_rows() {
            write_line(&columns, ",", "\r\n", out, |column, out| match &column[row] {
                Some(text) => quoted(text, out),
                None => Ok(()),
            })?;
        }
        Ok(())
    }

    fn end(&mut self, _: &mut dyn Write) -> Outcome {
        Ok(())
    }
}

fn quoted(text: &[u8], out: &mut dyn Write) -> io::Result<()> {
    if !text.is_empty() && !text.iter().any(|byte| matches!(byte, b'"' | b',' | b'\n' | b'\r')) {
        return out.write_all(text);
    }
    out.write_all(b"\"")?;
    for (position, part) in text.split(|byte| *byte == b'"').enumerate() {
        out.write_all(if position > 0 { b"\"\"" } else { b"" })?;
        out.write_all(part)?;
    }
    out.write_all(b"\"")
}
