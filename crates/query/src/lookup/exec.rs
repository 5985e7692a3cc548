//! The plan node.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use datafusion::arrow::datatypes::SchemaRef;
use datafusion::common::stats::Precision;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{ColumnStatistics, DataFusionError, JoinType, Result, Statistics};
use datafusion::execution::memory_pool::MemoryConsumer;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::{EquivalenceProperties, PhysicalExpr};
use datafusion::physical_plan::distribution_requirements::InputDistributionRequirements;
use datafusion::physical_plan::execution_plan::{
    ChildrenPropertiesMode, EmissionType, ReplaceChildrenOptions, SchedulingType, apply_expression_roots,
};
use datafusion::physical_plan::metrics::{
    BaselineMetrics, ExecutionPlanMetricsSet, MetricBuilder, MetricsSet,
};
use datafusion::physical_plan::projection::{EmbeddedProjection, ProjectionExec, try_embed_projection};
use datafusion::physical_plan::statistics::{ChildStats, StatisticsArgs};
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, Distribution, ExecutionPlan, ExecutionPlanProperties, Partitioning,
    PlanProperties,
};

use super::assembly::{Assembly, Equality, Residual, SideColumn};
use super::chunk::ChunkContext;
use super::estimate::Estimate;
use super::inner::InnerPlan;
use super::kind::Kind;
use super::source::{InnodbSource, LookupSource};
use super::stream::{LookupMetrics, LookupStream};
use crate::explain::IoMetrics;
use crate::session::context::QueryContext;

/// What is joined, and how. Column numbers of the inner side are those of `inner.outputs`.
#[derive(Debug, Clone)]
pub(super) struct JoinSpec {
    /// As the replaced join had it.
    pub(super) join_type: JoinType,
    pub(super) kind: Kind,
    /// Outer sides of the equalities, over the outer child.
    pub(super) keys: Vec<Arc<dyn PhysicalExpr>>,
    /// Inner side over the columns of the source.
    pub(super) inner: InnerPlan,
    /// Equalities that the index does not decide.
    pub(super) equalities: Vec<Equality>,
    pub(super) residual: Option<Residual>,
    /// All output columns, before the projection.
    pub(super) columns: Vec<SideColumn>,
    /// Their fields.
    pub(super) schema: SchemaRef,
    /// Which of them are put out.
    pub(super) projection: Option<Vec<usize>>,
    /// I/O priority: higher for operators that are further down the chain of joins.
    pub(super) priority: u8,
    pub(super) estimate: Estimate,
    /// What is known of the columns of the inner side.
    pub(super) inner_statistics: Vec<ColumnStatistics>,
}

/// Joins the rows of its child with the rows that an index finds for their keys, in any order. See the [module](super).
#[derive(Debug)]
pub struct OutOfOrderLookupJoinExec<S: LookupSource = InnodbSource> {
    outer: Arc<dyn ExecutionPlan>,
    /// With all columns that any projection could need.
    widest: Arc<S>,
    spec: JoinSpec,
    /// With the columns that are needed.
    source: Arc<S>,
    assembly: Arc<Assembly>,
    properties: Arc<PlanProperties>,
    metrics: ExecutionPlanMetricsSet,
}

impl<S: LookupSource> OutOfOrderLookupJoinExec<S> {
    pub(super) fn try_new(outer: Arc<dyn ExecutionPlan>, widest: Arc<S>, spec: JoinSpec) -> Result<Self> {
        let (source, assembly) = compile(widest.as_ref(), &spec)?;
        // No order is kept and no partitioning by value is claimed, only their number.
        let partitions = Partitioning::UnknownPartitioning(outer.output_partitioning().partition_count());
        let equivalences = EquivalenceProperties::new(Arc::clone(&assembly.schema));
        let properties =
            PlanProperties::new(equivalences, partitions, EmissionType::Incremental, outer.boundedness())
                .with_scheduling_type(SchedulingType::Cooperative);
        Ok(OutOfOrderLookupJoinExec {
            outer,
            widest,
            spec,
            source: Arc::new(source),
            assembly: Arc::new(assembly),
            properties: Arc::new(properties),
            metrics: ExecutionPlanMetricsSet::new(),
        })
    }

    /// The side that drives.
    pub fn outer(&self) -> &Arc<dyn ExecutionPlan> {
        &self.outer
    }

    /// The index that is searched.
    pub fn source(&self) -> &Arc<S> {
        &self.source
    }

    /// Why this join was chosen.
    pub fn estimate(&self) -> &Estimate {
        &self.spec.estimate
    }

    /// Its I/O priority.
    pub fn priority(&self) -> u8 {
        self.spec.priority
    }
}

/// Leaves out what the projection does not need.
fn compile<S: LookupSource>(widest: &S, spec: &JoinSpec) -> Result<(S, Assembly)> {
    let (output, schema) = match &spec.projection {
        Some(projection) => {
            let column = |no: &usize| spec.columns.get(*no).copied();
            let output: Option<Vec<SideColumn>> = projection.iter().map(column).collect();
            let wrong =
                || DataFusionError::Internal("a projection of a look-up join names no column".to_string());
            (output.ok_or_else(wrong)?, Arc::new(spec.schema.project(projection)?))
        }
        None => (spec.columns.clone(), Arc::clone(&spec.schema)),
    };
    let residual_columns = spec.residual.iter().flat_map(|residual| &residual.columns);
    let inner_number = |column: &SideColumn| match column {
        SideColumn::Inner(no) => Some(*no),
        _ => None,
    };
    let mut needed: BTreeSet<usize> =
        output.iter().chain(residual_columns).filter_map(inner_number).collect();
    needed.extend(spec.equalities.iter().map(|equality| equality.inner));
    let mut inner = spec.inner.clone();
    inner.keep_outputs(&needed);
    let inputs = inner.inputs();
    let source = widest.with_columns(&inputs)?;
    let inner = inner.over(&inputs)?;
    let (equalities, residual) = (spec.equalities.clone(), spec.residual.clone());
    Ok((source, Assembly { kind: spec.kind, inner, equalities, residual, output, schema }))
}

impl<S: LookupSource> EmbeddedProjection for OutOfOrderLookupJoinExec<S> {
    fn with_projection(&self, projection: Option<Vec<usize>>) -> Result<Self> {
        let mut spec = self.spec.clone();
        spec.projection = match (projection, spec.projection) {
            (Some(new), Some(old)) => Some(new.iter().filter_map(|no| old.get(*no).copied()).collect()),
            (new, old) => new.or(old),
        };
        Self::try_new(Arc::clone(&self.outer), Arc::clone(&self.widest), spec)
    }
}

impl<S: LookupSource> DisplayAs for OutOfOrderLookupJoinExec<S> {
    fn fmt_as(&self, format: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let keys: Vec<String> = self.spec.keys.iter().map(ToString::to_string).collect();
        if let DisplayFormatType::TreeRender = format {
            writeln!(f, "join_type={:?}", self.spec.join_type)?;
            writeln!(f, "lookup={}", self.source.describe())?;
            writeln!(f, "keys={}", keys.join(", "))?;
            return writeln!(f, "why={}", self.spec.estimate);
        }
        write!(
            f,
            "OutOfOrderLookupJoinExec: join_type={:?}, lookup={}",
            self.spec.join_type,
            self.source.describe()
        )?;
        write!(f, ", keys=[{}]", keys.join(", "))?;
        if !self.assembly.inner.predicates.is_empty() {
            let predicates: Vec<String> =
                self.assembly.inner.predicates.iter().map(ToString::to_string).collect();
            write!(f, ", where=[{}]", predicates.join(", "))?;
        }
        if !self.spec.equalities.is_empty() {
            write!(f, ", rechecked={}", self.spec.equalities.len())?;
        }
        if let Some(residual) = &self.spec.residual {
            write!(f, ", filter={}", residual.expression)?;
        }
        if self.spec.projection.is_some() {
            let names: Vec<&str> =
                self.assembly.schema.fields().iter().map(|field| field.name().as_str()).collect();
            write!(f, ", projection=[{}]", names.join(", "))?;
        }
        write!(f, ", why=[{}]", self.spec.estimate)
    }
}

impl<S: LookupSource> ExecutionPlan for OutOfOrderLookupJoinExec<S> {
    fn name(&self) -> &'static str {
        "OutOfOrderLookupJoinExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.outer]
    }

    /// Where a key counts once, one stream has to see all of them.
    fn input_distribution_requirements(&self) -> InputDistributionRequirements {
        InputDistributionRequirements::new(vec![match self.spec.kind {
            Kind::Found => Distribution::SinglePartition,
            _ => Distribution::UnspecifiedDistribution,
        }])
    }

    /// One outer partition is enough: the chains, not the partitions, bring the I/Os in flight, and chunks use all
    /// executors.
    fn benefits_from_input_partitioning(&self) -> Vec<bool> {
        vec![false]
    }

    fn apply_expressions(
        &self,
        f: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        let predicates = self.assembly.inner.predicates.iter();
        let residual = self.spec.residual.iter().map(|residual| &residual.expression);
        apply_expression_roots(self.spec.keys.iter().chain(predicates).chain(residual), f)
    }

    fn replace_children(
        self: Arc<Self>,
        mut children: Vec<Arc<dyn ExecutionPlan>>,
        _: ReplaceChildrenOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        match (children.pop(), children.is_empty()) {
            (Some(outer), true) => {
                Ok(Arc::new(Self::try_new(outer, Arc::clone(&self.widest), self.spec.clone())?))
            }
            _ => Err(DataFusionError::Internal("a look-up join has one child".to_string())),
        }
    }

    fn with_new_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        self.replace_children(children, ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute))
    }

    fn execute(&self, partition: usize, task: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let query = QueryContext::from_task(&task)?;
        let consumer = MemoryConsumer::new(format!("OutOfOrderLookupJoin[{partition}]"));
        let io = query.io().for_operator(self.spec.priority);
        let baseline = BaselineMetrics::new(&self.metrics, partition);
        let counter = |name: &'static str| MetricBuilder::new(&self.metrics).counter(name, partition);
        let share = query.lookup_budget().share(consumer.register(task.memory_pool()));
        let context = ChunkContext {
            source: Arc::clone(&self.source),
            assembly: Arc::clone(&self.assembly),
            query,
            io,
            hungry: AtomicBool::new(true),
            share,
            batch_rows: task.session_config().batch_size(),
            compute: baseline.elapsed_compute().clone(),
            found: counter("found_rows"),
        };
        let metrics = LookupMetrics {
            baseline,
            io: IoMetrics::new(&self.metrics, partition),
            outer_rows: counter("outer_rows"),
            lookups: counter("lookups"),
        };
        let outer = self.outer.execute(partition, task)?;
        let schema = Arc::clone(&self.assembly.schema);
        let (keys, context) = (self.spec.keys.clone(), Arc::new(context));
        let matches = self.spec.estimate.matches_per_key;
        Ok(Box::pin(LookupStream::new(schema, keys, outer, context, matches, metrics)))
    }

    fn metrics(&self) -> Option<MetricsSet> {
        Some(self.metrics.clone_inner())
    }

    fn child_stats_requests(&self, partition: Option<usize>) -> Vec<ChildStats> {
        vec![ChildStats::At(partition)]
    }

    fn statistics_from_inputs(
        &self,
        inputs: &[Arc<Statistics>],
        _: &StatisticsArgs,
    ) -> Result<Arc<Statistics>> {
        let mut statistics = Statistics::new_unknown(&self.schema());
        let Some(outer) = inputs.first() else { return Ok(Arc::new(statistics)) };
        if let Some(rows) = outer.num_rows.get_value() {
            // Saturates: estimates are rough at any rate.
            let rows = (*rows as f64 * self.spec.estimate.output_per_outer_row).ceil() as usize;
            statistics.num_rows = Precision::Inexact(rows);
        }
        for (column, known) in self.assembly.output.iter().zip(&mut statistics.column_statistics) {
            let found = match column {
                SideColumn::Outer(no) => outer.column_statistics.get(*no),
                SideColumn::Inner(no) => self.spec.inner_statistics.get(*no),
                SideColumn::Matched => None,
            };
            if let Some(found) = found {
                *known = found.clone().to_inexact();
            }
        }
        Ok(Arc::new(statistics))
    }

    fn try_swapping_with_projection(
        &self,
        projection: &ProjectionExec,
    ) -> Result<Option<Arc<dyn ExecutionPlan>>> {
        try_embed_projection(projection, self)
    }
}
