//! Boxes for people.
//!
//! 1. Rows are held until `MAX_MEASURED_ROWS` are there or the result ends; their widths become the columns' widths.
//! 2. Where that is wider than the terminal, the widest columns are narrowed to the same width, and their cells folded.
//! 3. Where this would leave them less than `MIN_FOLDED_WIDTH`, the result is turned on its side: a line per column.
//! 4. Later rows are written as they come. Without a terminal a cell that is wider than its column pushes the rest of
//!    its line to the right. A cell may have several lines (plans do).

use std::io::Write;
use std::sync::Arc;

use datafusion::arrow::datatypes::{Field, SchemaRef};
use datafusion::arrow::record_batch::RecordBatch;
use unicode_width::UnicodeWidthStr;

use super::fold::fold;
use super::vertical::VerticalWriter;
use super::{ResultWriter, readable, texts};
use crate::failure::Outcome;

/// Rows that are held to find the widths.
const MAX_MEASURED_ROWS: usize = 1000;
/// A column is not folded to less than this.
const MIN_FOLDED_WIDTH: usize = 12;
/// What a box needs for each column beside its text, and once more at the end.
const BORDER_WIDTH: usize = 3;

/// Writes a box around the rows.
#[derive(Debug, Default)]
pub struct TableWriter {
    /// Columns of the terminal.
    terminal_width: Option<usize>,
    schema: Option<SchemaRef>,
    columns: Vec<Column>,
    /// Batches whose rows are not written yet, and how many rows that are.
    held: Vec<RecordBatch>,
    held_rows: usize,
    layout: Layout,
}

#[derive(Debug, Default)]
enum Layout {
    /// Rows are still held.
    #[default]
    Unknown,
    Boxes,
    OnItsSide(VerticalWriter),
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
        self.schema = Some(Arc::clone(schema));
        Ok(())
    }

    fn batch(&mut self, batch: &RecordBatch, out: &mut dyn Write) -> Outcome {
        if matches!(self.layout, Layout::Unknown) {
            self.held_rows += batch.num_rows();
            self.held.push(batch.clone());
            return if self.held_rows >= MAX_MEASURED_ROWS { self.start(out) } else { Ok(()) };
        }
        self.write_batch(batch, out)
    }

    fn end(&mut self, out: &mut dyn Write) -> Outcome {
        if self.columns.is_empty() {
            return Ok(());
        }
        if matches!(self.layout, Layout::Unknown) {
            self.start(out)?;
        }
        if matches!(self.layout, Layout::Boxes) { self.write_rule(out) } else { Ok(()) }
    }
}

impl TableWriter {
    /// A writer for a terminal of `terminal_width` columns, or for a file.
    pub fn new(terminal_width: Option<usize>) -> TableWriter {
        TableWriter { terminal_width, ..TableWriter::default() }
    }

    /// Fixes the layout and writes the header and the rows held so far.
    fn start(&mut self, out: &mut dyn Write) -> Outcome {
        let held = std::mem::take(&mut self.held);
        for batch in &held {
            for (column, cells) in self.columns.iter_mut().zip(cells_of(batch)?) {
                let widths = cells.iter().flatten().map(|line| line.width());
                column.width = widths.fold(column.width, usize::max);
            }
        }
        self.layout = self.fitting_layout()?;
        if matches!(self.layout, Layout::Boxes) {
            self.write_rule(out)?;
            let names: Vec<Cell> = self.columns.iter().map(|column| vec![column.name.clone()]).collect();
            let names: Vec<&Cell> = names.iter().collect();
            self.write_row(&names, false, out)?;
            self.write_rule(out)?;
        }
        held.iter().try_for_each(|batch| self.write_batch(batch, out))
    }

    /// Boxes, their columns narrowed as far as the terminal demands, or a line per column.
    fn fitting_layout(&mut self) -> Outcome<Layout> {
        let Some(terminal) = self.terminal_width else { return Ok(Layout::Boxes) };
        let widths: Vec<usize> = self.columns.iter().map(|column| column.width).collect();
        if let Some(widest) = widest_that_fits(&widths, terminal) {
            for column in &mut self.columns {
                column.width = column.width.min(widest);
            }
            return Ok(Layout::Boxes);
        }
        let mut writer = VerticalWriter::default();
        if let Some(schema) = &self.schema {
            writer.begin(schema, &mut std::io::sink())?;
        }
        Ok(Layout::OnItsSide(writer))
    }

    fn write_batch(&mut self, batch: &RecordBatch, out: &mut dyn Write) -> Outcome {
        if let Layout::OnItsSide(writer) = &mut self.layout {
            return writer.batch(batch, out);
        }
        let columns = cells_of(batch)?;
        for row in 0..batch.num_rows() {
            let cells: Vec<&Cell> = columns.iter().map(|column| &column[row]).collect();
            self.write_row(&cells, true, out)?;
        }
        Ok(())
    }

    fn write_rule(&self, out: &mut dyn Write) -> Outcome {
        for column in &self.columns {
            write!(out, "+{}", "-".repeat(column.width + 2))?;
        }
        Ok(out.write_all(b"+\n")?)
    }

    /// Writes a row or, with names that are all set to the left, the header.
    fn write_row(&self, cells: &[&Cell], is_data: bool, out: &mut dyn Write) -> Outcome {
        let folded: Vec<Cell> = match self.terminal_width {
            None => cells.iter().map(|cell| cell.to_vec()).collect(),
            Some(_) => cells
                .iter()
                .zip(&self.columns)
                .map(|(cell, column)| cell.iter().flat_map(|line| fold(line, column.width)).collect())
                .collect(),
        };
        let height = folded.iter().map(Vec::len).max().unwrap_or(0);
        for line in 0..height {
            for (column, cell) in self.columns.iter().zip(&folded) {
                let text = cell.get(line).map_or("", String::as_str);
                let blanks = " ".repeat(column.width.saturating_sub(text.width()));
                let is_right = column.numeric && is_data;
                let (before, after) = if is_right { (blanks.as_str(), "") } else { ("", blanks.as_str()) };
                write!(out, "| {before}{text}{after} ")?;
            }
            out.write_all(b"|\n")?;
        }
        Ok(())
    }
}

/// The width to which wider columns are narrowed, so that all of them fit into `terminal` columns; none if that is
/// too little to read.
fn widest_that_fits(widths: &[usize], terminal: usize) -> Option<usize> {
    let available = terminal.saturating_sub(widths.len() * BORDER_WIDTH + 1);
    let fits = |widest: usize| widths.iter().map(|width| *width.min(&widest)).sum::<usize>() <= available;
    let most = widths.iter().copied().max().unwrap_or(0);
    if fits(most) {
        return Some(most);
    }
    (MIN_FOLDED_WIDTH..most).rev().find(|widest| fits(*widest))
}

/// The cells of a batch, column by column.
fn cells_of(batch: &RecordBatch) -> Outcome<Vec<Vec<Cell>>> {
    let schema = batch.schema();
    let columns = texts(batch)?.into_iter().zip(schema.fields());
    let cells = columns.map(|(column, field)| {
        let cell = |value: &Option<Vec<u8>>| match value {
            Some(bytes) => lines(&readable(field.data_type(), bytes)),
            None => vec!["NULL".to_owned()],
        };
        column.iter().map(cell).collect()
    });
    Ok(cells.collect())
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

#[cfg(test)]
mod tests {
    use datafusion::arrow::array::{ArrayRef, Int64Array, StringArray};

    use super::*;

    /// What is written for a number and `texts` on a terminal of `width` columns.
    fn written(texts: &[&str], width: usize) -> String {
        let number: ArrayRef = Arc::new(Int64Array::from(vec![7]));
        let mut columns = vec![("id".to_owned(), number)];
        for (no, text) in texts.iter().enumerate() {
            columns.push((format!("t{no}"), Arc::new(StringArray::from(vec![*text]))));
        }
        let batch = RecordBatch::try_from_iter(columns).unwrap();
        let mut out = Vec::new();
        let mut writer = TableWriter::new(Some(width));
        writer.begin(&batch.schema(), &mut out).unwrap();
        writer.batch(&batch, &mut out).unwrap();
        writer.end(&mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn cells_wider_than_the_terminal_are_folded() {
        let text = written(&["one two three four five six seven eight", "x"], 40);
        let expected = "\
+----+--------------------------+----+
| id | t0                       | t1 |
+----+--------------------------+----+
|  7 | one two three four five  | x  |
|    | six seven eight          |    |
+----+--------------------------+----+
";
        assert!(text.lines().all(|line| line.width() <= 40), "{text}");
        assert_eq!(text.lines().count(), expected.lines().count(), "{text}");
        assert!(text.contains("six seven eight"), "{text}");
    }

    #[test]
    fn results_with_too_many_columns_are_turned_on_their_side() {
        let text = written(&["a long text of its own"; 6], 40);
        assert!(
            text.starts_with(
                "*************************** 1. row ***************************\nid: 7\nt0: a long"
            ),
            "{text}"
        );
        assert!(!text.contains('|'), "{text}");
    }

    #[test]
    fn narrow_results_stay_as_they_are() {
        assert_eq!(widest_that_fits(&[2, 10], 80), Some(10));
        assert_eq!(widest_that_fits(&[2, 100], 80), Some(71));
        assert_eq!(widest_that_fits(&[40, 40, 40, 40, 40, 40], 80), None);
    }
}
