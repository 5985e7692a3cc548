//! What happens to found rows before they are joined: predicates and expressions of the inner side.
//!
//! The inner side of the replaced join may be a pile of projections and filters over a scan. It is brought into one
//! form: predicates and output expressions over the columns that the look-up reads. Predicates run in their order, each
//! on what the ones before have left, and the expressions run last and only if they are needed.

use std::collections::BTreeSet;
use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, BooleanArray, UInt32Array};
use datafusion::arrow::compute::{filter, filter_record_batch, prep_null_mask_filter};
use datafusion::arrow::record_batch::RecordBatch;
use datafusion::common::cast::as_boolean_array;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::common::{DataFusionError, Result};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_expr::utils::collect_columns;

use crate::collation::with_direct_comparisons;

/// Predicates and outputs over some input columns.
#[derive(Debug, Clone)]
pub(super) struct InnerPlan {
    /// All of them must hold.
    pub(super) predicates: Vec<Arc<dyn PhysicalExpr>>,
    /// Columns of the inner side of the join; `None` where nothing needs one.
    pub(super) outputs: Vec<Option<Arc<dyn PhysicalExpr>>>,
}

/// Found rows after the predicates.
#[derive(Debug)]
pub(super) struct InnerRows {
    /// Columns of the inner side; `None` where nothing needs one.
    pub(super) columns: Vec<Option<ArrayRef>>,
    /// Which of the found rows they are; `None` is all.
    pub(super) kept: Option<UInt32Array>,
}

impl InnerPlan {
    /// Leaves out outputs that `needed` does not name.
    pub(super) fn keep_outputs(&mut self, needed: &BTreeSet<usize>) {
        for (no, output) in self.outputs.iter_mut().enumerate() {
            if !needed.contains(&no) {
                *output = None;
            }
        }
    }

    /// Input columns in use, ascending.
    pub(super) fn inputs(&self) -> Vec<usize> {
        let expressions = self.predicates.iter().chain(self.outputs.iter().flatten());
        let inputs: BTreeSet<usize> =
            expressions.flat_map(collect_columns).map(|column| column.index()).collect();
        inputs.into_iter().collect()
    }

    /// The same over only the columns `inputs`.
    pub(super) fn over(&self, inputs: &[usize]) -> Result<InnerPlan> {
        let moved = |expression: &Arc<dyn PhysicalExpr>| {
            substitute(expression, &|column| {
                let position = inputs.binary_search(&column.index()).ok()?;
                Some(Arc::new(Column::new(column.name(), position)))
            })
        };
        Ok(InnerPlan {
            predicates: self
                .predicates
                .iter()
                .map(|predicate| with_direct_comparisons(moved(predicate)?).data())
                .collect::<Result<_>>()?,
            outputs: self
                .outputs
                .iter()
                .map(|output| output.as_ref().map(moved).transpose())
                .collect::<Result<_>>()?,
        })
    }

    /// Applies it to found rows.
    pub(super) fn apply(&self, mut batch: RecordBatch) -> Result<InnerRows> {
        let mut kept: Option<UInt32Array> = None;
        for predicate in &self.predicates {
            let result = predicate.evaluate(&batch)?.into_array(batch.num_rows())?;
            let mask = as_boolean_array(&result)?;
            if mask.null_count() == 0 && mask.true_count() == mask.len() {
                continue;
            }
            let mask = definite(mask);
            let rows = match kept {
                Some(rows) => rows,
                None => (0..u32::try_from(batch.num_rows()).map_err(|_| too_long())?).collect(),
            };
            kept = Some(filtered(&rows, &mask)?);
            batch = filter_record_batch(&batch, &mask)?;
        }
        let mut columns = Vec::with_capacity(self.outputs.len());
        for output in &self.outputs {
            columns.push(match output {
                Some(output) => Some(output.evaluate(&batch)?.into_array(batch.num_rows())?),
                None => None,
            });
        }
        Ok(InnerRows { columns, kept })
    }
}

/// Replaces each column of an expression by what `by` gives; an error if it gives nothing.
pub(super) fn substitute(
    expression: &Arc<dyn PhysicalExpr>,
    by: &dyn Fn(&Column) -> Option<Arc<dyn PhysicalExpr>>,
) -> Result<Arc<dyn PhysicalExpr>> {
    let replace = |node: Arc<dyn PhysicalExpr>| match node.downcast_ref::<Column>() {
        Some(column) => match by(column) {
            Some(replacement) => Ok(Transformed::yes(replacement)),
            None => Err(DataFusionError::Internal(format!("column {column} is not there any more"))),
        },
        None => Ok(Transformed::no(node)),
    };
    Arc::clone(expression).transform_up(replace).data()
}

/// A mask in which NULL is false.
pub(super) fn definite(mask: &BooleanArray) -> BooleanArray {
    if mask.null_count() == 0 { mask.clone() } else { prep_null_mask_filter(mask) }
}

/// The row numbers that a mask leaves.
pub(super) fn filtered(rows: &UInt32Array, mask: &BooleanArray) -> Result<UInt32Array> {
    let rows = filter(rows, mask)?;
    datafusion::common::cast::as_uint32_array(&rows).cloned()
}

fn too_long() -> DataFusionError {
    DataFusionError::Internal("a batch has more rows than a row number can name".to_string())
}
