//! Tab-separated values as `mysql --batch` prints them.

use std::io::{self, Write};

use datafusion::arrow::datatypes::SchemaRef;
use datafusion::arrow::record_batch::RecordBatch;

use super::{ResultWriter, texts, write_line};
use crate::failure::Outcome;

/// Writes a header line and a line per row.
pub struct TsvWriter;

impl ResultWriter for TsvWriter {
    fn begin(&mut self, schema: &SchemaRef, out: &mut dyn Write) -> Outcome {
        if !schema.fields().is_empty() {
            write_line(schema.fields(), "\t", "\n", out, |field, out| escaped(field.name().as_bytes(), out))?;
        }
        Ok(())
    }

    fn batch(&mut self, batch: &RecordBatch, out: &mut dyn Write) -> Outcome {
        let columns = texts(batch)?;
        for row in 0..batch.num_rows() {
            write_line(&columns, "\t", "\n", out, |column, out| match &column[row] {
                Some(text) => escaped(text, out),
                None => out.write_all(b"NULL"),
            })?;
        }
        Ok(())
    }

    fn end(&mut self, _: &mut dyn Write) -> Outcome {
        Ok(())
    }
}

/// `text` with tab, line feed, backslash and NUL as two characters each.
fn escaped(text: &[u8], out: &mut dyn Write) -> io::Result<()> {
    let mut rest = text;
    while let Some(position) = rest.iter().position(|byte| matches!(byte, b'\n' | b'\t' | b'\\' | 0)) {
        out.write_all(&rest[..position])?;
        out.write_all(match rest[position] {
            b'\n' => b"\\n",
            b'\t' => b"\\t",
            b'\\' => b"\\\\",
            _ => b"\\0",
        })?;
        rest = &rest[position + 1..];
    }
    out.write_all(rest)
}
