//! The operator.

use std::fmt;
use std::sync::Arc;

use datafusion::arrow::array::RecordBatch;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{Result, Statistics, internal_datafusion_err};
use datafusion::execution::memory_pool::MemoryConsumer;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_plan::execution_plan::CardinalityEffect;
use datafusion::physical_plan::metrics::{
    BaselineMetrics, ExecutionPlanMetricsSet, MetricsSet, SpillMetrics,
};
use datafusion::physical_plan::sorts::sort::SortExec;
use datafusion::physical_plan::spill::SpillManager;
use datafusion::physical_plan::statistics::StatisticsArgs;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    ChildStats, DisplayAs, DisplayFormatType, ExecutionPlan, ExecutionPlanProperties,
    InputDistributionRequirements, PlanProperties, ReplaceChildrenOptions,
};
use futures::{StreamExt, TryStreamExt};

use super::sorter::Sorter;
use crate::keys::Keys;

/// Sorts its whole input, beyond memory if need be. It takes the place of DataFusion's sort in a plan that is complete.
#[derive(Debug, Clone)]
pub struct ExternalSort {
    /// What it takes the place of: order, input and properties.
    sort: SortExec,
    metrics: ExecutionPlanMetricsSet,
}

impl ExternalSort {
    /// The operator in the place of `sort`; `None` where `sort` keeps the first rows alone, or where a column of its
    /// order has no keys of bytes.
    pub fn in_place_of(sort: &SortExec) -> Option<ExternalSort> {
        let is_whole = sort.fetch().is_none();
        let has_keys = Keys::are_possible(sort.expr(), &sort.input().schema());
        (is_whole && has_keys)
            .then(|| ExternalSort { sort: sort.clone(), metrics: ExecutionPlanMetricsSet::new() })
    }

    /// What is sorted.
    pub fn input(&self) -> &Arc<dyn ExecutionPlan> {
        self.sort.input()
    }
}

impl DisplayAs for ExternalSort {
    fn fmt_as(&self, t: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match t {
            DisplayFormatType::TreeRender => writeln!(f, "{}", self.sort.expr()),
            DisplayFormatType::Default | DisplayFormatType::Verbose => {
                let by_partition = self.sort.preserve_partitioning();
                write!(f, "ExternalSort: expr=[{}], preserve_partitioning=[{by_partition}]", self.sort.expr())
            }
        }
    }
}

impl ExecutionPlan for ExternalSort {
    fn name(&self) -> &'static str {
        "ExternalSort"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        self.sort.properties()
    }

    fn input_distribution_requirements(&self) -> InputDistributionRequirements {
        self.sort.input_distribution_requirements()
    }

    fn benefits_from_input_partitioning(&self) -> Vec<bool> {
        self.sort.benefits_from_input_partitioning()
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![self.sort.input()]
    }

    fn apply_expressions(
        &self,
        f: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        self.sort.apply_expressions(f)
    }

    fn replace_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
        options: ReplaceChildrenOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let sort = Arc::new(self.sort.clone()).replace_children(children, options)?;
        let sort = sort.downcast_ref::<SortExec>().cloned();
        let sort = sort.ok_or_else(|| internal_datafusion_err!("a sort became another operator"))?;
        Ok(Arc::new(ExternalSort { sort, metrics: ExecutionPlanMetricsSet::new() }))
    }

    fn with_new_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let options =
            ReplaceChildrenOptions::new(datafusion::physical_plan::ChildrenPropertiesMode::Recompute);
        self.replace_children(children, options)
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let mut input = self.input().execute(partition, Arc::clone(&context))?;
        if self.input().equivalence_properties().ordering_satisfy(self.sort.expr().clone())? {
            return Ok(input);
        }
        let schema = self.schema();
        let keys = Keys::new(self.sort.expr(), &schema)?;
        let consumer = MemoryConsumer::new(format!("{}[{partition}]", self.name())).with_can_spill(true);
        let spills = SpillManager::new(
            context.runtime_env(),
            SpillMetrics::new(&self.metrics, partition),
            Arc::clone(&schema),
        )
        .with_compression_type(context.session_config().spill_compression());
        let batch_rows = context.session_config().batch_size();
        let mut sorter = Sorter::new(keys, batch_rows, consumer.register(context.memory_pool()), spills);
        let baseline = BaselineMetrics::new(&self.metrics, partition);
        let elapsed = baseline.elapsed_compute().clone();
        let sorted = async move {
            while let Some(batch) = input.next().await {
                let batch = batch?;
                let _timer = elapsed.timer();
                sorter.insert(batch).await?;
            }
            drop(input);
            let _timer = elapsed.timer();
            sorter.finish().await
        };
        let batches = futures::stream::once(sorted)
            .map_ok(|output| {
                futures::stream::try_unfold(output, |mut output| async move {
                    Ok(output.next().await?.map(|batch| (batch, output)))
                })
            })
            .try_flatten()
            .inspect_ok(move |batch: &RecordBatch| baseline.record_output(batch.num_rows()));
        Ok(Box::pin(RecordBatchStreamAdapter::new(schema, batches)))
    }

    fn metrics(&self) -> Option<MetricsSet> {
        Some(self.metrics.clone_inner())
    }

    fn child_stats_requests(&self, partition: Option<usize>) -> Vec<ChildStats> {
        self.sort.child_stats_requests(partition)
    }

    fn statistics_from_inputs(
        &self,
        inputs: &[Arc<Statistics>],
        args: &StatisticsArgs,
    ) -> Result<Arc<Statistics>> {
        self.sort.statistics_from_inputs(inputs, args)
    }

    fn cardinality_effect(&self) -> CardinalityEffect {
        CardinalityEffect::Equal
    }
}
