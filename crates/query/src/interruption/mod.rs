//! Queries can be cancelled while a join computes.
//!
//! A query is cancelled between two polls of its stream. Joins may go on for minutes within one poll: a consumer that counts takes one output
//! batch after the other, and a nested loop in which nothing matches puts out none at all.
//!
//! 1. Every join is wrapped so that it yields after some batches ([`CooperativeExec`]).
//! 2. The right side of a nested loop is cut into slices small enough that one of them against the whole left side is done in about a second
//!    ([`SlicesExec`]).

mod slices;

use std::sync::Arc;

use datafusion::common::Result;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::coop::CooperativeExec;
use datafusion::physical_plan::execution_plan::{ChildrenPropertiesMode, ReplaceChildrenOptions};
use datafusion::physical_plan::joins::{CrossJoinExec, HashJoinExec, NestedLoopJoinExec, SortMergeJoinExec};
use datafusion::physical_plan::statistics::{StatisticsArgs, StatisticsContext};

use slices::SlicesExec;

/// Pairs of rows that a nested loop may compare between two chances to stop.
const PAIRS: usize = 64 << 20;
/// Fewest rows of a slice: below, the cost of a batch outweighs its rows.
const LEAST_ROWS: usize = 64;

/// The last physical rule: makes joins stop when their query is cancelled.
#[derive(Debug, Default)]
pub struct InterruptibleJoins;

impl PhysicalOptimizerRule for InterruptibleJoins {
    fn optimize(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        config: &ConfigOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let batch_rows: usize = config.execution.batch_size.into();
        plan.transform_up(|node| {
            if let Some(join) = node.downcast_ref::<NestedLoopJoinExec>() {
                let rows = slice_rows(join.left(), batch_rows);
                let right: Arc<dyn ExecutionPlan> = Arc::new(SlicesExec::new(Arc::clone(join.right()), rows));
                let children = vec![Arc::clone(join.left()), right];
                let keep = ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute);
                return Ok(Transformed::yes(yielding(Arc::clone(&node).replace_children(children, keep)?)));
            }
            let is_join =
                node.is::<HashJoinExec>() || node.is::<SortMergeJoinExec>() || node.is::<CrossJoinExec>();
            Ok(if is_join { Transformed::yes(yielding(node)) } else { Transformed::no(node) })
        })
        .data()
    }

    fn name(&self) -> &str {
        "InterruptibleJoins"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

fn yielding(join: Arc<dyn ExecutionPlan>) -> Arc<dyn ExecutionPlan> {
    Arc::new(CooperativeExec::new(join))
}

/// Rows of the right side that are joined with all of `left` at a time.
fn slice_rows(left: &Arc<dyn ExecutionPlan>, batch_rows: usize) -> usize {
    let statistics = StatisticsContext::new().compute(left.as_ref(), &StatisticsArgs::new()).ok();
    let left_rows = statistics.and_then(|statistics| statistics.num_rows.get_value().copied());
    // Without an estimate the left side may have millions of rows.
    let left_rows = left_rows.unwrap_or(PAIRS / LEAST_ROWS).max(1);
    (PAIRS / left_rows).clamp(LEAST_ROWS.min(batch_rows), batch_rows)
}
