//! A line per column, as the servers' clients show a result that ends with `\G`.

use std::io::Write;

use datafusion::arrow::datatypes::SchemaRef;
use datafusion::arrow::record_batch::RecordBatch;
use unicode_width::UnicodeWidthStr;

use super::{ResultWriter, readable, texts};
use crate::failure::Outcome;

/// Stars on each side of a row's number.
const STARS: &str = "***************************";

/// Writes each row as lines of `name: value`, names set to the right.
#[derive(Debug, Default)]
pub struct VerticalWriter {
    names: Vec<String>,
    rows: u64,
}

impl ResultWriter for VerticalWriter {
    fn begin(&mut self, schema: &SchemaRef, _: &mut dyn Write) -> Outcome {
        self.names = schema.fields().iter().map(|field| field.name().clone()).collect();
        Ok(())
    }

    fn batch(&mut self, batch: &RecordBatch, out: &mut dyn Write) -> Outcome {
        let columns = texts(batch)?;
        let schema = batch.schema();
        let width = self.names.iter().map(|name| name.width()).max().unwrap_or(0);
        for row in 0..batch.num_rows() {
            self.rows += 1;
            writeln!(out, "{STARS} {}. row {STARS}", self.rows)?;
            for ((name, column), field) in self.names.iter().zip(&columns).zip(schema.fields()) {
                let blanks = " ".repeat(width - name.width());
                write!(out, "{blanks}{name}: ")?;
                match &column[row] {
                    Some(bytes) => writeln!(out, "{}", readable(field.data_type(), bytes))?,
                    None => out.write_all(b"NULL\n")?,
                }
            }
        }
        Ok(())
    }

    fn end(&mut self, _: &mut dyn Write) -> Outcome {
        Ok(())
    }
}
