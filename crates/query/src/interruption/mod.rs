//! Queries can be cancelled while a join computes.
//!
//! A query is cancelled between two polls of its stream. Joins may go on for minutes within one poll: a consumer that
//! counts takes one output batch after the other, and a nested loop in which nothing matches puts out none at all.
//!
//! 1. Every join is wrapped so that it yields after some batches ([`CooperativeExec`]).
//! 2. The right side of a nested loop is cut into slices small enough that one of them against the whole left side is
//!    done in about a second ([`SlicesExec`]).
//!
//! A nested loop that puts out rows of its left side by whether they matched has one right partition: where memory
//! runs out, it goes over the left side in parts, and each partition would tell for itself what has matched.

mod slices;

use std::sync::Arc;

use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::common::{JoinType, Result};
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::coalesce_partitions::CoalescePartitionsExec;
use datafusion::physical_plan::coop::CooperativeExec;
use datafusion::physical_plan::execution_plan::{ChildrenPropertiesMode, ReplaceChildrenOptions};
use datafusion::physical_plan::joins::{CrossJoinExec, HashJoinExec, NestedLoopJoinExec, SortMergeJoinExec};
use datafusion::physical_plan::statistics::{StatisticsArgs, StatisticsContext};
use datafusion::physical_plan::{ExecutionPlan, ExecutionPlanProperties, Partitioning};

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
                let right = match tells_matches(join) {
                    true => Arc::new(CoalescePartitionsExec::new(Arc::clone(join.right()))) as _,
                    false => Arc::clone(join.right()),
                };
                let right: Arc<dyn ExecutionPlan> = Arc::new(SlicesExec::new(right, rows));
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

/// Whether several partitions would tell which rows of the left side matched.
fn tells_matches(join: &NestedLoopJoinExec) -> bool {
    use JoinType::{Full, Left, LeftAnti, LeftMark, LeftSemi};
    let tells = matches!(join.join_type(), Left | LeftSemi | LeftAnti | LeftMark | Full);
    // Whoever counts on a partitioning by value gets it.
    let is_hashed = matches!(join.properties().output_partitioning(), Partitioning::Hash(..));
    tells && !is_hashed && join.right().output_partitioning().partition_count() > 1
}

/// Rows of the right side that are joined with all of `left` at a time.
fn slice_rows(left: &Arc<dyn ExecutionPlan>, batch_rows: usize) -> usize {
    let statistics = StatisticsContext::new().compute(left.as_ref(), &StatisticsArgs::new()).ok();
    let left_rows = statistics.and_then(|statistics| statistics.num_rows.get_value().copied());
    // Without an estimate the left side may have millions of rows.
    let left_rows = left_rows.unwrap_or(PAIRS / LEAST_ROWS).max(1);
    (PAIRS / left_rows).clamp(LEAST_ROWS.min(batch_rows), batch_rows)
}

#[cfg(test)]
mod tests {
    use datafusion::arrow::datatypes::{DataType, Field, Schema};
    use datafusion::physical_plan::empty::EmptyExec;

    use super::*;

    /// Partitions of the right side after the rule, of a nested loop over one left and three right partitions.
    fn right_partitions(join_type: JoinType) -> usize {
        let schema = |name: &str| Arc::new(Schema::new(vec![Field::new(name, DataType::Int32, true)]));
        let left = Arc::new(EmptyExec::new(schema("a")));
        let right = Arc::new(EmptyExec::new(schema("b")).with_partitions(3));
        let join = NestedLoopJoinExec::try_new(left, right, None, &join_type, None).unwrap();
        let plan = InterruptibleJoins.optimize(Arc::new(join), &ConfigOptions::default()).unwrap();
        let join = Arc::clone(plan.children()[0]);
        join.children()[1].output_partitioning().partition_count()
    }

    #[test]
    fn left_joins_by_nested_loops_run_in_one_partition() {
        assert_eq!(right_partitions(JoinType::Left), 1);
        assert_eq!(right_partitions(JoinType::LeftAnti), 1);
        assert_eq!(right_partitions(JoinType::Inner), 3);
        assert_eq!(right_partitions(JoinType::Right), 3);
    }
}
