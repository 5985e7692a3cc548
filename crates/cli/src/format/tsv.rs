//! Tab-separated values as `mysql --batch` prints them.

use std::io::{self, Write};

use datafusion::arrow::datatypes::SchemaRef;
use datafusion::arrow::record_batch::RecordBatch;

use super::{ResultWriter, texts, write_line};
use crate::failure::Outcome;

/// Writes a header line and a line per row; nothing at all for a result without rows, as that client does.
#[derive(Default)]
pub struct TsvWriter {
    /// Kept until there is a row.
    header: Option<SchemaRef>,
}

impl ResultWriter for TsvWriter {
    fn begin(&mut self, schema: &SchemaRef, _: &mut dyn Write) -> Outcome {
        self.header = Some(schema.clone()).filter(|schema| !schema.fields().is_empty());
        Ok(())
    }

    fn batch(&mut self, batch: &RecordBatch, out: &mut dyn Write) -> Outcome {
        let columns = texts(batch)?;
        if batch.num_rows() > 0
            && let Some(header) = self.header.take()
        {
            // Names stay as they are, as in that client.
            write_line(header.fields(), "\t", "\n", out, |field, out| {
                out.write_all(field.name().as_bytes())
            })?;
        }
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
