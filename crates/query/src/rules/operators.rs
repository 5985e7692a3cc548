//! Sorts of whole inputs and joins of sorted inputs are ours.

use std::sync::Arc;

use datafusion::common::Result;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::joins::SortMergeJoinExec;
use datafusion::physical_plan::sorts::sort::SortExec;
use tanada_operators::{ExternalSort, MergeJoin};

/// Puts [`ExternalSort`] and [`MergeJoin`] in the places of DataFusion's operators.
#[derive(Debug)]
pub struct OperatorsRule;

impl PhysicalOptimizerRule for OperatorsRule {
    fn optimize(&self, plan: Arc<dyn ExecutionPlan>, _: &ConfigOptions) -> Result<Arc<dyn ExecutionPlan>> {
        plan.transform_up(|node| {
            Ok(match ours(&node) {
                Some(ours) => Transformed::yes(ours),
                None => Transformed::no(node),
            })
        })
        .data()
    }

    fn name(&self) -> &str {
        "Operators"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

/// Our operator in the place of `node`, if there is one.
fn ours(node: &Arc<dyn ExecutionPlan>) -> Option<Arc<dyn ExecutionPlan>> {
    if let Some(sort) = node.downcast_ref::<SortExec>() {
        return ExternalSort::in_place_of(sort).map(|sort| Arc::new(sort) as Arc<dyn ExecutionPlan>);
    }
    let join = node.downcast_ref::<SortMergeJoinExec>()?;
    MergeJoin::in_place_of(join).map(|join| Arc::new(join) as Arc<dyn ExecutionPlan>)
}
