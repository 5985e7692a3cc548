//! MIN and MAX of texts over a window frame that moves on.
//!
//! Rows are numbered as they come. Those that may still become the result are kept in a queue: a row leaves it when the
//! frame has passed it, or when a later row is preferred, which stays in the frame for longer.

use std::collections::VecDeque;
use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, StringViewBuilder};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::DataType;
use datafusion::common::{Result, ScalarValue, internal_err};
use datafusion::logical_expr::Accumulator;

use super::chosen::{Choice, keys, views};

/// A text in the frame.
#[derive(Debug)]
struct Candidate {
    row: u64,
    text: Box<str>,
    key: Box<[u8]>,
}

/// The least or greatest text of a frame.
#[derive(Debug)]
pub(super) struct Sliding {
    choice: Choice,
    shown: DataType,
    /// Number of the next row.
    next: u64,
    /// Number of the first row of the frame.
    first: u64,
    candidates: VecDeque<Candidate>,
}

impl Sliding {
    pub(super) fn new(choice: Choice, shown: DataType) -> Sliding {
        Sliding { choice, shown, next: 0, first: 0, candidates: VecDeque::new() }
    }
}

impl Accumulator for Sliding {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        let texts = views(values)?;
        let keys = keys(values)?;
        for row in 0..texts.len() {
            if texts.is_valid(row) {
                let key = keys.value(row);
                while self.candidates.back().is_some_and(|last| self.choice.prefers(key, &last.key)) {
                    self.candidates.pop_back();
                }
                let (text, key) = (texts.value(row).into(), key.into());
                self.candidates.push_back(Candidate { row: self.next, text, key });
            }
            self.next += 1;
        }
        Ok(())
    }

    fn retract_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        self.first += values.first().map_or(0, |values| values.len() as u64);
        while self.candidates.front().is_some_and(|oldest| oldest.row < self.first) {
            self.candidates.pop_front();
        }
        Ok(())
    }

    fn supports_retract_batch(&self) -> bool {
        true
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        let mut builder = StringViewBuilder::with_capacity(1);
        builder.append_option(self.candidates.front().map(|found| &found.text));
        let array: ArrayRef = Arc::new(builder.finish());
        ScalarValue::try_from_array(&cast(&array, &self.shown)?, 0)
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        internal_err!("a frame is not put together of parts")
    }

    fn merge_batch(&mut self, _: &[ArrayRef]) -> Result<()> {
        internal_err!("a frame is not put together of parts")
    }

    fn size(&self) -> usize {
        let each = |of: &Candidate| size_of::<Candidate>() + of.text.len() + of.key.len();
        self.candidates.iter().map(each).sum()
    }
}

#[cfg(test)]
mod tests {
    use datafusion::arrow::array::{BinaryViewArray, StringViewArray};

    use super::*;

    #[test]
    fn extremes_follow_the_frame() {
        let texts = [Some("b"), Some("A"), None, Some("a"), Some("C"), Some("c")];
        for (choice, expected) in [
            (Choice::Least, [Some("A"), Some("A"), Some("a"), Some("a")]),
            (Choice::Greatest, [Some("b"), Some("A"), Some("C"), Some("C")]),
        ] {
            let mut sliding = Sliding::new(choice, DataType::Utf8View);
            let row = |row: usize| -> Vec<ArrayRef> {
                let key = texts[row].map(|text| text.to_ascii_uppercase().into_bytes());
                let key: BinaryViewArray = [key.as_deref()].into_iter().collect();
                vec![Arc::new(StringViewArray::from(vec![texts[row]])), Arc::new(key)]
            };
            (0..2).for_each(|no| sliding.update_batch(&row(no)).unwrap());
            for (no, expected) in expected.into_iter().enumerate() {
                sliding.update_batch(&row(no + 2)).unwrap();
                let found = sliding.evaluate().unwrap();
                assert_eq!(found, ScalarValue::Utf8View(expected.map(str::to_string)), "{choice:?} {no}");
                sliding.retract_batch(&row(no)).unwrap();
            }
        }
    }
}
