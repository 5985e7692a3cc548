//! Found rows and outer rows become output batches.
//!
//! A *pair* is an outer row and a found row with its key. Pairs pass the inner predicates, equalities that the index
//! could not decide, and the residual predicate of the join; only then does an outer row count as matched.

use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, BooleanArray, UInt32Array, new_null_array};
use datafusion::arrow::compute::{and, take};
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::arrow::record_batch::{RecordBatch, RecordBatchOptions};
use datafusion::common::cast::as_boolean_array;
use datafusion::common::{DataFusionError, Result};
use datafusion::physical_expr::PhysicalExpr;

use super::inner::{InnerPlan, InnerRows, definite, filtered};
use super::kind::Kind;
use super::outer::OuterBatch;

/// A column of one side.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SideColumn {
    /// Of the outer batch.
    Outer(usize),
    /// Of the inner side.
    Inner(usize),
    /// Whether the outer row has matched (mark joins).
    Matched,
}

/// The predicate of a join beyond its equalities.
#[derive(Debug, Clone)]
pub(super) struct Residual {
    /// Over the columns below.
    pub(super) expression: Arc<dyn PhysicalExpr>,
    /// Its inputs.
    pub(super) columns: Vec<SideColumn>,
    /// Their fields.
    pub(super) schema: SchemaRef,
}

/// An equality that is tested on found rows.
#[derive(Debug, Clone, Copy)]
pub(super) struct Equality {
    /// Which of the outer values.
    pub(super) outer: usize,
    /// Which column of the inner side.
    pub(super) inner: usize,
}

/// How pairs become output.
#[derive(Debug, Clone)]
pub(super) struct Assembly {
    pub(super) kind: Kind,
    pub(super) inner: InnerPlan,
    pub(super) equalities: Vec<Equality>,
    pub(super) residual: Option<Residual>,
    pub(super) output: Vec<SideColumn>,
    pub(super) schema: SchemaRef,
}

/// Pairs that have passed all tests.
#[derive(Debug)]
pub(super) struct Pairs {
    /// Outer rows.
    pub(super) outer: UInt32Array,
    /// Found rows; `None` is each one once.
    inner: Option<UInt32Array>,
    columns: Vec<Option<ArrayRef>>,
}

impl Assembly {
    /// Whether the first found row decides, so that no more need to be found.
    pub(super) fn decided_by_existence(&self) -> bool {
        !self.kind.joins()
            && self.inner.predicates.is_empty()
            && self.equalities.is_empty()
            && self.residual.is_none()
    }

    /// Pairs found rows with outer rows; `groups` has the group of each found row.
    pub(super) fn pairs<K>(
        &self,
        outer: &OuterBatch<K>,
        groups: &[u32],
        found: RecordBatch,
    ) -> Result<Pairs> {
        let InnerRows { columns, kept } = self.inner.apply(found)?;
        let group = |row: u32| groups.get(row as usize).copied().unwrap_or(u32::MAX);
        let survivors: Vec<u32> = match &kept {
            Some(kept) => kept.values().iter().map(|row| group(*row)).collect(),
            None => groups.to_vec(),
        };
        let mut pairs = if outer.all_single() {
            let rows: UInt32Array = survivors.iter().flat_map(|group| outer.rows(*group)).collect();
            Pairs { outer: rows, inner: None, columns }
        } else {
            let mut rows = Vec::with_capacity(survivors.len());
            let mut found = Vec::with_capacity(survivors.len());
            for (no, group) in (0u32..).zip(&survivors) {
                for row in outer.rows(*group) {
                    rows.push(row);
                    found.push(no);
                }
            }
            Pairs { outer: rows.into(), inner: Some(found.into()), columns }
        };
        if let Some(mask) = self.mask(outer, &pairs)? {
            pairs = pairs.filtered(&mask)?;
        }
        Ok(pairs)
    }

    /// Which pairs pass the equalities and the residual predicate; `None` is all.
    fn mask<K>(&self, outer: &OuterBatch<K>, pairs: &Pairs) -> Result<Option<BooleanArray>> {
        let mut mask: Option<BooleanArray> = None;
        let mut narrow = |more: &BooleanArray| -> Result<()> {
            let more = definite(more);
            mask = Some(match &mask {
                Some(mask) => and(mask, &more)?,
                None => more,
            });
            Ok(())
        };
        for equality in &self.equalities {
            let wanted = outer.values.get(equality.outer).ok_or_else(|| missing("outer value"))?;
            let wanted = take(wanted, &pairs.outer, None)?;
            let found = pairs.inner_column(equality.inner)?;
            narrow(&datafusion::arrow::compute::kernels::cmp::eq(&wanted, &found)?)?;
        }
        if let Some(residual) = &self.residual {
            let columns =
                residual.columns.iter().map(|column| pairs.column(*column, outer)).collect::<Result<_>>()?;
            let batch = batch(&residual.schema, columns, pairs.outer.len())?;
            let result = residual.expression.evaluate(&batch)?.into_array(batch.num_rows())?;
            narrow(as_boolean_array(&result)?)?;
        }
        Ok(mask.filter(|mask| mask.true_count() < mask.len()))
    }

    /// Output rows of pairs.
    pub(super) fn joined<K>(&self, outer: &OuterBatch<K>, pairs: &Pairs) -> Result<RecordBatch> {
        let columns = self.output.iter().map(|column| pairs.column(*column, outer)).collect::<Result<_>>()?;
        batch(&self.schema, columns, pairs.outer.len())
    }

    /// Output rows of outer rows alone: NULL for the inner side; `matched` is what a mark column shows.
    pub(super) fn alone<K>(
        &self,
        outer: &OuterBatch<K>,
        rows: Vec<u32>,
        matched: impl Fn(u32) -> bool,
    ) -> Result<RecordBatch> {
        let rows = UInt32Array::from(rows);
        let mut columns = Vec::with_capacity(self.output.len());
        for (column, field) in self.output.iter().zip(self.schema.fields()) {
            columns.push(match column {
                SideColumn::Outer(no) => take(outer_column(outer, *no)?, &rows, None)?,
                SideColumn::Inner(_) => new_null_array(field.data_type(), rows.len()),
                SideColumn::Matched => {
                    Arc::new(rows.values().iter().map(|row| Some(matched(*row))).collect::<BooleanArray>())
                }
            });
        }
        batch(&self.schema, columns, rows.len())
    }
}

impl Pairs {
    fn filtered(self, mask: &BooleanArray) -> Result<Pairs> {
        let inner = match &self.inner {
            Some(inner) => filtered(inner, mask)?,
            None => {
                (0u32..).zip(mask.values().iter()).filter_map(|(row, keep)| keep.then_some(row)).collect()
            }
        };
        Ok(Pairs { outer: filtered(&self.outer, mask)?, inner: Some(inner), columns: self.columns })
    }

    fn inner_column(&self, no: usize) -> Result<ArrayRef> {
        let column = self.columns.get(no).and_then(Option::as_ref).ok_or_else(|| missing("inner column"))?;
        Ok(match &self.inner {
            Some(rows) => take(column, rows, None)?,
            None => Arc::clone(column),
        })
    }

    fn column<K>(&self, column: SideColumn, outer: &OuterBatch<K>) -> Result<ArrayRef> {
        match column {
            SideColumn::Outer(no) => Ok(take(outer_column(outer, no)?, &self.outer, None)?),
            SideColumn::Inner(no) => self.inner_column(no),
            SideColumn::Matched => Err(missing("mark of a pair")),
        }
    }
}

fn outer_column<K>(outer: &OuterBatch<K>, no: usize) -> Result<&ArrayRef> {
    outer.batch.columns().get(no).ok_or_else(|| missing("outer column"))
}

/// A batch, also of no columns.
fn batch(schema: &SchemaRef, columns: Vec<ArrayRef>, rows: usize) -> Result<RecordBatch> {
    let options = RecordBatchOptions::new().with_row_count(Some(rows));
    Ok(RecordBatch::try_new_with_options(Arc::clone(schema), columns, &options)?)
}

fn missing(what: &str) -> DataFusionError {
    DataFusionError::Internal(format!("a look-up join lacks an {what}"))
}
