//! The operator.

use std::fmt;
use std::sync::Arc;

use datafusion::arrow::datatypes::Schema;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{JoinType, NullEquality, Result, Statistics, internal_datafusion_err};
use datafusion::execution::memory_pool::MemoryConsumer;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::{LexOrdering, OrderingRequirements, PhysicalExpr, PhysicalSortExpr};
use datafusion::physical_plan::joins::SortMergeJoinExec;
use datafusion::physical_plan::metrics::{
    BaselineMetrics, ExecutionPlanMetricsSet, MetricsSet, SpillMetrics,
};
use datafusion::physical_plan::spill::SpillManager;
use datafusion::physical_plan::statistics::StatisticsArgs;
use datafusion::physical_plan::stream::{RecordBatchReceiverStreamBuilder, RecordBatchStreamAdapter};
use datafusion::physical_plan::{
    ChildStats, ChildrenPropertiesMode, DisplayAs, DisplayFormatType, ExecutionPlan,
    InputDistributionRequirements, PlanProperties, ReplaceChildrenOptions,
};

use futures::TryStreamExt;

use super::merge::{Kind, Merge};
use super::pairs::{Columns, Pairs};
use super::side::Side;
use crate::keys::Keys;

/// Batches that wait for the operator above, at most.
const BATCHES_AHEAD: usize = 2;

/// Joins inputs that are sorted by the keys. It takes the place of DataFusion's sort-merge join in a plan that is
/// complete.
#[derive(Debug, Clone)]
pub struct MergeJoin {
    /// What it takes the place of: inputs, keys and properties.
    join: SortMergeJoinExec,
    kind: Kind,
    columns: Columns,
    metrics: ExecutionPlanMetricsSet,
}

impl MergeJoin {
    /// The operator in the place of `join`; `None` where `join` has a filter or marks rows, or where keys of the two
    /// inputs are of types whose bytes do not compare.
    pub fn in_place_of(join: &SortMergeJoinExec) -> Option<MergeJoin> {
        let (kind, columns) = match join.join_type() {
            JoinType::Inner => (Kind::Inner, Columns::StreamedFirst),
            JoinType::Left => (Kind::Outer, Columns::StreamedFirst),
            JoinType::Right => (Kind::Outer, Columns::BufferedFirst),
            JoinType::Full => (Kind::Full, Columns::StreamedFirst),
            JoinType::LeftSemi | JoinType::RightSemi => (Kind::Semi, Columns::Streamed),
            JoinType::LeftAnti | JoinType::RightAnti => (Kind::Anti, Columns::Streamed),
            JoinType::LeftMark | JoinType::RightMark => return None,
        };
        let (left, right) = (join.left().schema(), join.right().schema());
        let types = |by: &LexOrdering, schema: &Schema| {
            by.iter().map(|by| by.expr.data_type(schema)).collect::<Result<Vec<_>>>()
        };
        let [by_left, by_right] = orders(join)?;
        let are_alike = types(&by_left, &left).ok()? == types(&by_right, &right).ok()?;
        let has_keys = Keys::are_possible(&by_left, &left) && are_alike;
        let is_plain = join.filter().is_none() && has_keys;
        let metrics = ExecutionPlanMetricsSet::new();
        is_plain.then(|| MergeJoin { join: join.clone(), kind, columns, metrics })
    }

    /// Whether the right input is the streamed one.
    fn streams_right(&self) -> bool {
        matches!(self.join.join_type(), JoinType::Right | JoinType::RightSemi | JoinType::RightAnti)
    }
}

/// The orders of the left and the right input.
fn orders(join: &SortMergeJoinExec) -> Option<[LexOrdering; 2]> {
    let by = |of_left: bool| {
        let pairs = join.on().iter().zip(join.sort_options());
        LexOrdering::new(pairs.map(|((left, right), options)| {
            PhysicalSortExpr::new(Arc::clone(if of_left { left } else { right }), *options)
        }))
    };
    Some([by(true)?, by(false)?])
}

impl DisplayAs for MergeJoin {
    fn fmt_as(&self, t: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let on: Vec<String> =
            self.join.on().iter().map(|(left, right)| format!("({left}, {right})")).collect();
        match t {
            DisplayFormatType::TreeRender => writeln!(f, "on={}", on.join(", ")),
            DisplayFormatType::Default | DisplayFormatType::Verbose => {
                write!(f, "MergeJoin: join_type={:?}, on=[{}]", self.join.join_type(), on.join(", "))
            }
        }
    }
}

impl ExecutionPlan for MergeJoin {
    fn name(&self) -> &'static str {
        "MergeJoin"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        self.join.properties()
    }

    fn input_distribution_requirements(&self) -> InputDistributionRequirements {
        self.join.input_distribution_requirements()
    }

    fn required_input_ordering(&self) -> Vec<Option<OrderingRequirements>> {
        self.join.required_input_ordering()
    }

    fn maintains_input_order(&self) -> Vec<bool> {
        ExecutionPlan::maintains_input_order(&self.join)
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![self.join.left(), self.join.right()]
    }

    fn apply_expressions(
        &self,
        f: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        self.join.apply_expressions(f)
    }

    fn replace_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
        options: ReplaceChildrenOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let join = Arc::new(self.join.clone()).replace_children(children, options)?;
        let join = join.downcast_ref::<SortMergeJoinExec>().cloned();
        let join = join.ok_or_else(|| internal_datafusion_err!("a join became another operator"))?;
        let metrics = ExecutionPlanMetricsSet::new();
        Ok(Arc::new(MergeJoin { join, kind: self.kind, columns: self.columns, metrics }))
    }

    fn with_new_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        self.replace_children(children, ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute))
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let orders = orders(&self.join).ok_or_else(|| internal_datafusion_err!("a join without keys"))?;
        let null_differs = self.join.null_equality() == NullEquality::NullEqualsNothing;
        let [left, right] = [self.join.left(), self.join.right()];
        let inputs =
            [left.execute(partition, Arc::clone(&context))?, right.execute(partition, Arc::clone(&context))?];
        let keys = [Keys::new(&orders[0], &left.schema())?, Keys::new(&orders[1], &right.schema())?];
        let mut sides: Vec<_> = inputs.into_iter().zip(keys).collect();
        if self.streams_right() {
            sides.reverse();
        }
        let (Some((buffered, buffered_keys)), Some((streamed, streamed_keys))) = (sides.pop(), sides.pop())
        else {
            return Err(internal_datafusion_err!("a join without inputs"));
        };
        let consumer = MemoryConsumer::new(format!("{}[{partition}]", self.name())).with_can_spill(true);
        let reservation = consumer.register(context.memory_pool());
        // Only the schema of what is written matters, which are buffered rows.
        let spills = SpillManager::new(
            context.runtime_env(),
            SpillMetrics::new(&self.metrics, partition),
            buffered.schema(),
        )
        .with_compression_type(context.session_config().spill_compression());
        let mut builder = RecordBatchReceiverStreamBuilder::new(self.schema(), BATCHES_AHEAD);
        let pairs = Pairs::new(
            self.columns,
            (streamed.schema(), buffered.schema()),
            self.schema(),
            context.session_config().batch_size(),
            builder.tx(),
        );
        let kind = self.kind;
        builder.spawn(async move {
            let streamed = Side::new(streamed, streamed_keys, null_differs).await?;
            let buffered = Side::new(buffered, buffered_keys, null_differs).await?;
            let (matched_to, read_again) = (0, 0);
            let merge =
                Merge { kind, streamed, buffered, pairs, reservation, spills, matched_to, read_again };
            merge.run().await
        });
        let baseline = BaselineMetrics::new(&self.metrics, partition);
        let batches = builder.build().inspect_ok(move |batch| baseline.record_output(batch.num_rows()));
        Ok(Box::pin(RecordBatchStreamAdapter::new(self.schema(), batches)))
    }

    fn metrics(&self) -> Option<MetricsSet> {
        Some(self.metrics.clone_inner())
    }

    fn child_stats_requests(&self, partition: Option<usize>) -> Vec<ChildStats> {
        self.join.child_stats_requests(partition)
    }

    fn statistics_from_inputs(
        &self,
        inputs: &[Arc<Statistics>],
        args: &StatisticsArgs,
    ) -> Result<Arc<Statistics>> {
        self.join.statistics_from_inputs(inputs, args)
    }
}
