//! ORDER BY with a LIMIT of more rows than memory holds sorts all rows, which spills.
//!
//! DataFusion keeps the first rows of a sort with a limit in memory, and cannot spill them.

use std::sync::Arc;

use datafusion::common::Result;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::limit::{GlobalLimitExec, LocalLimitExec};
use datafusion::physical_plan::sorts::sort::SortExec;

use super::row_bytes;

/// Of the memory of operators, the rows that a sort keeps may take this part.
const KEPT_SHARE: f64 = 0.125;

/// Replaces a sort that keeps many rows by a whole sort and a limit above.
#[derive(Debug)]
pub struct LargeLimitRule {
    memory_bytes: usize,
}

impl LargeLimitRule {
    /// A rule for operators that have `memory_bytes` together.
    pub fn new(memory_bytes: usize) -> LargeLimitRule {
        LargeLimitRule { memory_bytes }
    }

    /// The rows that a sort keeps, if these are many.
    fn many(&self, sort: &SortExec) -> Option<usize> {
        let kept = sort.fetch()?;
        let bytes = kept as f64 * row_bytes(&sort.input().schema()) as f64;
        (bytes > self.memory_bytes as f64 * KEPT_SHARE).then_some(kept)
    }
}

impl PhysicalOptimizerRule for LargeLimitRule {
    fn optimize(&self, plan: Arc<dyn ExecutionPlan>, _: &ConfigOptions) -> Result<Arc<dyn ExecutionPlan>> {
        plan.transform_up(|node| {
            let found = node.downcast_ref::<SortExec>().and_then(|sort| Some((sort, self.many(sort)?)));
            Ok(match found {
                Some((sort, kept)) => Transformed::yes(whole(sort, kept)),
                None => Transformed::no(node),
            })
        })
        .data()
    }

    fn name(&self) -> &str {
        "LargeLimit"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

fn whole(sort: &SortExec, kept: usize) -> Arc<dyn ExecutionPlan> {
    let by_partition = sort.preserve_partitioning();
    let sorted = SortExec::new(sort.expr().clone(), Arc::clone(sort.input()));
    let sorted: Arc<dyn ExecutionPlan> = Arc::new(sorted.with_preserve_partitioning(by_partition));
    match by_partition {
        true => Arc::new(LocalLimitExec::new(sorted, kept)),
        false => Arc::new(GlobalLimitExec::new(sorted, 0, Some(kept))),
    }
}
