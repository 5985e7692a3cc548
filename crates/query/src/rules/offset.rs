//! Keeps sorting above a LIMIT with OFFSET.
//!
//! DataFusion moves a sort below a limit and has it keep as many rows as the limit puts out, forgetting those that the
//! limit skips first: too few rows remain. A limit with an offset gets an operator above that no sort is moved through.

use std::fmt;
use std::sync::Arc;

use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion::common::{DataFusionError, Result};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::{EquivalenceProperties, PhysicalExpr};
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::execution_plan::{ChildrenPropertiesMode, ReplaceChildrenOptions};
use datafusion::physical_plan::limit::GlobalLimitExec;
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties};

/// Puts a [`BarrierExec`] above limits with an offset.
#[derive(Debug, Default)]
pub struct OffsetRule;

impl PhysicalOptimizerRule for OffsetRule {
    fn optimize(&self, plan: Arc<dyn ExecutionPlan>, _: &ConfigOptions) -> Result<Arc<dyn ExecutionPlan>> {
        // One that is the last operator has nothing above that sorts.
        if plan.is::<GlobalLimitExec>() {
            let children = plan.children().into_iter().map(|child| below(Arc::clone(child)));
            let children = children.collect::<Result<Vec<_>>>()?;
            let keep = ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute);
            return plan.replace_children(children, keep);
        }
        below(plan)
    }

    fn name(&self) -> &str {
        "OffsetBarrier"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

fn below(plan: Arc<dyn ExecutionPlan>) -> Result<Arc<dyn ExecutionPlan>> {
    plan.transform_up(|node| {
        let skips = node.downcast_ref::<GlobalLimitExec>().is_some_and(|limit| limit.skip() > 0);
        Ok(match skips {
            true => Transformed::yes(Arc::new(BarrierExec::new(node)) as Arc<dyn ExecutionPlan>),
            false => Transformed::no(node),
        })
    })
    .data()
}

/// The rows of its input, of whose order nothing is claimed.
#[derive(Debug)]
struct BarrierExec {
    input: Arc<dyn ExecutionPlan>,
    properties: Arc<PlanProperties>,
}

impl BarrierExec {
    fn new(input: Arc<dyn ExecutionPlan>) -> BarrierExec {
        let equivalences = EquivalenceProperties::new(input.schema());
        let properties = input.properties().as_ref().clone().with_eq_properties(equivalences);
        BarrierExec { input, properties: Arc::new(properties) }
    }
}

impl DisplayAs for BarrierExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("BarrierExec")
    }
}

impl ExecutionPlan for BarrierExec {
    fn name(&self) -> &'static str {
        "BarrierExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.input]
    }

    fn maintains_input_order(&self) -> Vec<bool> {
        vec![false]
    }

    fn benefits_from_input_partitioning(&self) -> Vec<bool> {
        vec![false]
    }

    fn apply_expressions(
        &self,
        _: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn replace_children(
        self: Arc<Self>,
        mut children: Vec<Arc<dyn ExecutionPlan>>,
        _: ReplaceChildrenOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        match (children.pop(), children.is_empty()) {
            (Some(input), true) => Ok(Arc::new(BarrierExec::new(input))),
            _ => Err(DataFusionError::Internal("a barrier has one input".to_string())),
        }
    }

    fn with_new_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        self.replace_children(children, ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute))
    }

    fn execute(&self, partition: usize, task: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        self.input.execute(partition, task)
    }
}
