//! Boxes for people.
//!
//! Rows are held until `MAX_MEASURED_ROWS` are there or the result ends; their widths become the columns' widths. Later rows are written as they
//! come, and a cell that is wider than its column pushes the rest of its line to the right. A cell may have several lines (plans do).

use std::io::Write;
use std::sync::Arc;

use datafusion::arrow::datatypes::{Field, SchemaRef};
use datafusion::arrow::record_batch::RecordBatch;
use unicode_width::UnicodeWidthStr;

use super::{ResultWriter, readable, texts};
use crate::failure::Outcome;

/// Rows that are held to find the widths.
const MAX_MEASURED_ROWS: usize = 1000;

/// Writes a box around the rows.
#[derive(Debug, Default)]
pub struct TableWriter {
    columns: Vec<Column>,
    held: Vec<Vec<Cell>>,
    started: bool,
}

#[derive(Debug)]
struct Column {
    name: String,
    numeric: bool,
    width: usize,
}

/// The lines of a cell.
type Cell = Vec<String>;

impl ResultWriter for TableWriter {
    fn begin(&mut self, schema: &SchemaRef, _: &mut dyn Write) -> Outcome {
        let column = |field: &Arc<Field>| {
            let name = shown(field.name());
            Column { width: name.width(), numeric: field.data_type().is_numeric(), name }
        };
        self.columns = schema.fields().iter().map(column).collect();
        Ok(())
    }

    fn batch(&mut self, batch: &RecordBatch, out: &mut dyn Write) -> Outcome {
        let columns = texts(batch)?;
        let schema = batch.schema();
        for row in 0..batch.num_rows() {
            let cell = |(column, field): (&super::ColumnText, &Arc<Field>)| match &column[row] {
                Some(bytes) => lines(&readable(field.data_type(), bytes)),
                None => vec!["NULL".to_owned()],
            };
            let cells: Vec<Cell> = columns.iter().zip(schema.fields()).map(cell).collect();
            if self.started {
                self.write_row(&cells, out)?;
            } else {
                self.held.push(cells);
                if self.held.len() == MAX_MEASURED_ROWS {
                    self.start(out)?;
                }
            }
        }
        Ok(())
    }

    fn end(&mut self, out: &mut dyn Write) -> Outcome {
        if self.columns.is_empty() {
            return Ok(());
        }
        self.start(out)?;
        self.write_rule(out)
    }
}

impl TableWriter {
    /// Fixes the widths and writes the header and the rows held so far.
    fn start(&mut self, out: &mut dyn Write) -> Outcome {
        if std::mem::replace(&mut self.started, true) {
            return Ok(());
        }
        let held = std::mem::take(&mut self.held);
        for (position, column) in self.columns.iter_mut().enumerate() {
            let widths = held.iter().flat_map(|row| &row[position]).map(|line| line.width());
            column.width = widths.fold(column.width, usize::max);
        }
        self.write_rule(out)?;
        for column in &self.columns {
            write!(out, "| {}{} ", column.name, " ".repeat(column.width - column.name.width()))?;
        }
        out.write_all(b"|\n")?;
        self.write_rule(out)?;
        held.iter().try_for_each(|row| self.write_row(row, out))
    }

    fn write_rule(&self, out: &mut dyn Write) -> Outcome {
        for column in &self.columns {
            write!(out, "+{}", "-".repeat(column.width + 2))?;
        }
        Ok(out.write_all(b"+\n")?)
    }

    fn write_row(&self, cells: &[Cell], out: &mut dyn Write) -> Outcome {
        let height = cells.iter().map(Vec::len).max().unwrap_or(0);
        for line in 0..height {
            for (column, cell) in self.columns.iter().zip(cells) {
                let text = cell.get(line).map_or("", String::as_str);
                let blanks = " ".repeat(column.width.saturating_sub(text.width()));
                let (before, after) =
                    if column.numeric { (blanks.as_str(), "") } else { ("", blanks.as_str()) };
                write!(out, "| {before}{text}{after} ")?;
            }
            out.write_all(b"|\n")?;
        }
        Ok(())
    }
}

fn lines(text: &str) -> Cell {
    let lines: Cell = text.split('\n').map(shown).collect();
    // A last line break ends the last line; it does not begin another.
    match lines.split_last() {
        Some((last, rest)) if last.is_empty() && !rest.is_empty() => rest.to_vec(),
        _ => lines,
    }
}

/// `text` with blanks for control characters, which would break the box or drive the terminal.
fn shown(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}
