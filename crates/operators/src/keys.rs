//! Sort keys as bytes that compare as the rows do.

use std::cmp::Ordering;

use datafusion::arrow::array::{ArrayRef, RecordBatch};
use datafusion::arrow::datatypes::Schema;
use datafusion::arrow::row::{RowConverter, Rows, SortField};
use datafusion::common::Result;
use datafusion::physical_expr::LexOrdering;

/// Bytes of a key that an entry of a sort holds itself.
const PREFIX_BYTES: usize = 16;

/// The first bytes of a key, behind a shorter one zeros. Keys of one order are free of prefixes of each other, so equal
/// prefixes of which one is a whole key are equal keys.
pub(crate) type Prefix = [u64; 2];

/// Makes the keys of batches by one order.
#[derive(Debug)]
pub(crate) struct Keys {
    converter: RowConverter,
    order: LexOrdering,
}

/// The keys of one batch.
#[derive(Debug)]
pub(crate) struct BatchKeys {
    prefixes: Vec<Prefix>,
    /// Whole keys; `None` if every prefix is one.
    rows: Option<Rows>,
}

impl Keys {
    /// Whether all columns of `order` over `schema` have such keys.
    pub(crate) fn are_possible(order: &LexOrdering, schema: &Schema) -> bool {
        fields(order, schema).is_ok_and(|fields| RowConverter::supports_fields(&fields))
    }

    /// # Errors
    /// If a column of `order` has no such keys, or is not in `schema`.
    pub(crate) fn new(order: &LexOrdering, schema: &Schema) -> Result<Keys> {
        Ok(Keys { converter: RowConverter::new(fields(order, schema)?)?, order: order.clone() })
    }

    /// # Errors
    /// If an expression of the order fails.
    pub(crate) fn of(&self, batch: &RecordBatch) -> Result<BatchKeys> {
        self.of_columns(&self.columns(batch)?)
    }

    /// The columns that keys are made of.
    ///
    /// # Errors
    /// If an expression of the order fails.
    pub(crate) fn columns(&self, batch: &RecordBatch) -> Result<Vec<ArrayRef>> {
        self.order.iter().map(|by| by.expr.evaluate(batch)?.into_array(batch.num_rows())).collect()
    }

    /// The keys of these columns.
    ///
    /// # Errors
    /// If they are of other types.
    pub(crate) fn of_columns(&self, columns: &[ArrayRef]) -> Result<BatchKeys> {
        let rows = self.converter.convert_columns(columns)?;
        let prefixes = rows.iter().map(|row| prefix(row.data())).collect();
        let are_short = rows.lengths().all(|len| len <= PREFIX_BYTES);
        Ok(BatchKeys { prefixes, rows: (!are_short).then_some(rows) })
    }
}

impl BatchKeys {
    /// How many.
    pub(crate) fn len(&self) -> usize {
        self.prefixes.len()
    }

    /// Bytes that they take without the prefixes.
    pub(crate) fn rest_bytes(&self) -> usize {
        self.rows.as_ref().map_or(0, Rows::size)
    }

    pub(crate) fn prefix(&self, row: usize) -> Prefix {
        self.prefixes[row]
    }

    /// The prefixes of all rows; those of the keys stay behind without them.
    pub(crate) fn take_prefixes(&mut self) -> Vec<Prefix> {
        std::mem::take(&mut self.prefixes)
    }

    /// How key `row` compares with key `of` of `other`, if their prefixes are equal.
    pub(crate) fn compare_rest(&self, row: usize, other: &BatchKeys, of: usize) -> Ordering {
        match (&self.rows, &other.rows) {
            (Some(rows), Some(others)) => rows.row(row).cmp(&others.row(of)),
            _ => Ordering::Equal,
        }
    }
}

fn fields(order: &LexOrdering, schema: &Schema) -> Result<Vec<SortField>> {
    order.iter().map(|by| Ok(SortField::new_with_options(by.expr.data_type(schema)?, by.options))).collect()
}

fn prefix(key: &[u8]) -> Prefix {
    let mut bytes = [0; PREFIX_BYTES];
    let len = key.len().min(PREFIX_BYTES);
    bytes[..len].copy_from_slice(&key[..len]);
    let number = u128::from_be_bytes(bytes);
    [(number >> u64::BITS) as u64, number as u64]
}
