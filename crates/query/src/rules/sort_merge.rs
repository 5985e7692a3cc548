//! Joins whose hash table would not fit in memory merge sorted inputs, which spill.
//!
//! DataFusion's sort-merge join takes a filter's columns to be those of the left side first, which they are not where a
//! hash join's sides were swapped. So it gets no filter: an inner join is filtered above, and others that have one stay
//! hash joins.

use std::sync::Arc;

use datafusion::arrow::compute::SortOptions;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::common::{JoinSide, JoinType, Result, internal_datafusion_err};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::filter::FilterExec;
use datafusion::physical_plan::joins::utils::JoinFilter;
use datafusion::physical_plan::joins::{HashJoinExec, SortMergeJoinExec};

use crate::lookup::estimated_rows;
use crate::settings::{Choice, TanadaOptions};

use super::row_bytes;

/// Bytes that a hash table takes for a row besides the row itself.
const BYTES_PER_ENTRY: f64 = 64.0;
/// Of the memory of operators, a hash table may take this part.
const HASH_SHARE: f64 = 0.25;

/// Replaces a hash join by a sort-merge join as the setting `tanada.sort_merge_join` says: where the hash table is not
/// expected to fit, wherever possible, or nowhere.
#[derive(Debug)]
pub struct SortMergeRule {
    memory_bytes: usize,
}

impl SortMergeRule {
    /// A rule for operators that have `memory_bytes` together.
    pub fn new(memory_bytes: usize) -> SortMergeRule {
        SortMergeRule { memory_bytes }
    }
}

impl PhysicalOptimizerRule for SortMergeRule {
    fn optimize(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        config: &ConfigOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let options = config.extensions.get::<TanadaOptions>().cloned().unwrap_or_default();
        let share = self.memory_bytes as f64 * HASH_SHARE;
        plan.transform_up(|node| {
            let wanted = node.downcast_ref::<HashJoinExec>().filter(|join| match options.sort_merge_join {
                Choice::Always => can_merge(join),
                Choice::Auto => {
                    can_merge(join) && table_bytes(join.left()).is_some_and(|bytes| bytes > share)
                }
                Choice::Never => false,
            });
            Ok(match wanted {
                Some(join) => Transformed::yes(merged(join)?),
                None => Transformed::no(node),
            })
        })
        .data()
    }

    fn name(&self) -> &str {
        "SortMergeJoin"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

/// Whether a merge gives the same rows: NOT IN with NULL is told by hash joins alone.
fn can_merge(join: &HashJoinExec) -> bool {
    let is_filtered_above = join.filter().is_none() || *join.join_type() == JoinType::Inner;
    is_filtered_above && !join.null_aware && !join.contains_projection() && !join.on().is_empty()
}

/// Bytes that the hash table of a side is expected to take, if its rows are known.
fn table_bytes(side: &Arc<dyn ExecutionPlan>) -> Option<f64> {
    let row = row_bytes(&side.schema());
    estimated_rows(side).map(|rows| rows * (row as f64 + BYTES_PER_ENTRY))
}

fn merged(join: &HashJoinExec) -> Result<Arc<dyn ExecutionPlan>> {
    let on = join.on().to_vec();
    let options = vec![SortOptions::default(); on.len()];
    let (left, right) = (Arc::clone(join.left()), Arc::clone(join.right()));
    let kind = *join.join_type();
    let merged = SortMergeJoinExec::try_new(left, right, on, None, kind, options, join.null_equality())?;
    let merged: Arc<dyn ExecutionPlan> = Arc::new(merged);
    match join.filter() {
        None => Ok(merged),
        Some(filter) => Ok(Arc::new(FilterExec::try_new(above(filter, join)?, merged)?)),
    }
}

/// The filter over the columns that an inner join puts out.
fn above(filter: &JoinFilter, join: &HashJoinExec) -> Result<Arc<dyn PhysicalExpr>> {
    let left = join.left().schema().fields().len();
    let schema = join.schema();
    let over_output = |node: Arc<dyn PhysicalExpr>| {
        let Some(column) = node.downcast_ref::<Column>() else { return Ok(Transformed::no(node)) };
        let place = filter.column_indices().get(column.index()).and_then(|of| match of.side {
            JoinSide::Left => Some(of.index),
            JoinSide::Right => Some(left + of.index),
            JoinSide::None => None,
        });
        let place = place.ok_or_else(|| internal_datafusion_err!("a filter of a join names no column"))?;
        let column = Column::new(schema.field(place).name(), place);
        Ok(Transformed::yes(Arc::new(column) as Arc<dyn PhysicalExpr>))
    };
    Arc::clone(filter.expression()).transform_up(over_output).data()
}
