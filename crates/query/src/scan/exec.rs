//! `RelationScanExec`: reads a relation by one access path.

use std::collections::HashSet;
use std::fmt;
use std::sync::{Arc, Weak};

use datafusion::arrow::datatypes::SchemaRef;
use datafusion::common::stats::Precision;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{ColumnStatistics, Result, Statistics};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::{EquivalenceProperties, PhysicalExpr};
use datafusion::physical_plan::coop::cooperative;
use datafusion::physical_plan::execution_plan::{
    Boundedness, EmissionType, ReplaceChildrenOptions, SchedulingType, apply_expression_roots,
};
use datafusion::physical_plan::metrics::{
    BaselineMetrics, ExecutionPlanMetricsSet, MetricsSet, RecordOutput,
};
use datafusion::physical_plan::statistics::StatisticsArgs;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, Partitioning, PlanProperties};
use parking_lot::Mutex;

use super::advance::Advance;
use super::choice::ScanChoice;
use super::gather::Decoding;
use super::path::{AccessPath, index_name};
use super::reader::{Running, ScanTask};
use crate::explain::IoMetrics;
use crate::relation::InnodbRelation;
use crate::session::context::QueryContext;

/// Reads rows of a relation that pass its filters, in any order.
#[derive(Debug, Clone)]
pub struct RelationScanExec {
    relation: Arc<InnodbRelation>,
    projection: Vec<usize>,
    filters: Vec<Arc<dyn PhysicalExpr>>,
    limit: Option<usize>,
    choice: ScanChoice,
    note: Option<String>,
    properties: Arc<PlanProperties>,
    metrics: ExecutionPlanMetricsSet,
    execution: Arc<Mutex<Execution>>,
}

/// Which partitions have begun to read the scan that they share.
#[derive(Debug, Default)]
struct Execution {
    begun: HashSet<usize>,
    running: Weak<Running>,
    advance: Arc<Advance>,
}

impl RelationScanExec {
    /// Leaf pages of the table, by its statistics.
    pub(crate) fn table_pages(&self) -> u64 {
        self.relation.statistics().indexes.first().map_or(0, |index| index.leaf_pages)
    }

    /// A scan of `projection` by the chosen path, in `partitions` partitions. `filters` are over the relation's schema.
    pub fn new(
        relation: Arc<InnodbRelation>,
        projection: Vec<usize>,
        filters: Vec<Arc<dyn PhysicalExpr>>,
        limit: Option<usize>,
        choice: ScanChoice,
        partitions: usize,
    ) -> Result<RelationScanExec> {
        let schema: SchemaRef = Arc::new(relation.schema().project(&projection)?);
        let properties = PlanProperties::new(
            EquivalenceProperties::new(schema),
            Partitioning::UnknownPartitioning(partitions.max(1)),
            EmissionType::Incremental,
            Boundedness::Bounded,
        )
        .with_scheduling_type(SchedulingType::Cooperative);
        Ok(RelationScanExec {
            relation,
            projection,
            filters,
            limit,
            choice,
            note: None,
            properties: Arc::new(properties),
            metrics: ExecutionPlanMetricsSet::new(),
            execution: Arc::default(),
        })
    }

    /// The relation.
    pub fn relation(&self) -> &Arc<InnodbRelation> {
        &self.relation
    }

    /// Output columns, as positions in the relation's schema. Never virtual columns, unless the access path's index
    /// holds them.
    pub fn projection(&self) -> &[usize] {
        &self.projection
    }

    /// Predicates all of which rows must pass, over the *relation's* schema (`Column` indexes are table columns, also
    /// those that are not projected).
    pub fn filters(&self) -> &[Arc<dyn PhysicalExpr>] {
        &self.filters
    }

    /// Rows after which the scan stops.
    pub fn limit(&self) -> Option<usize> {
        self.limit
    }

    /// How the rows are reached.
    pub fn path(&self) -> &AccessPath {
        &self.choice.path
    }

    /// The same scan with a remark for `EXPLAIN`: why it was not replaced by look-ups.
    pub fn with_note(mut self, note: String) -> RelationScanExec {
        self.note = Some(note);
        self
    }

    /// The path, its estimates and the alternatives.
    pub fn choice(&self) -> &ScanChoice {
        &self.choice
    }

    /// Rows taken from it so far, and the share of it that is done, 0 to 1.
    pub(crate) fn advance(&self) -> (u64, f64) {
        let execution = self.execution.lock();
        (execution.advance.rows(), execution.advance.share())
    }

    /// The scan that all partitions share; begun anew when a partition is executed again. `None` if the other
    /// partitions have had all rows.
    fn running(&self, partition: usize, task: &TaskContext) -> Result<Option<Arc<Running>>> {
        let mut execution = self.execution.lock();
        let again = !execution.begun.insert(partition);
        if again {
            execution.begun = HashSet::from([partition]);
        } else if let Some(running) = execution.running.upgrade() {
            return Ok(Some(running));
        } else if execution.begun.len() > 1 {
            return Ok(None);
        }
        let query = QueryContext::from_task(task)?;
        let batch_rows = task.session_config().batch_size();
        let decoding = Decoding::new(&self.relation, &self.projection, &self.filters, batch_rows)?;
        execution.advance = Arc::default();
        let compute = BaselineMetrics::new(&self.metrics, partition).elapsed_compute().clone();
        let scan = ScanTask {
            table: Arc::clone(self.relation.table()),
            path: self.choice.path.clone(),
            decoding: Arc::new(decoding),
            limit: self.limit,
            query,
            compute,
            advance: Arc::clone(&execution.advance),
            relation: Arc::clone(&self.relation),
        };
        let running = Running::start(scan, IoMetrics::new(&self.metrics, partition));
        execution.running = Arc::downgrade(&running);
        Ok(Some(running))
    }

    fn statistics(&self, partition: Option<usize>) -> Statistics {
        let parts =
            if partition.is_some() { self.properties.partitioning.partition_count() as f64 } else { 1.0 };
        let rows = self.limit.map_or(self.choice.rows, |limit| self.choice.rows.min(limit as f64)) / parts;
        let rows = rows.ceil().max(0.0) as usize;
        let columns = self.projection.iter().map(|column| self.column_statistics(*column, rows)).collect();
        let width: f64 = self.projection.iter().map(|column| self.relation.column_bytes(*column)).sum();
        Statistics {
            num_rows: Precision::Inexact(rows),
            total_byte_size: Precision::Inexact((rows as f64 * width.max(1.0)) as usize),
            column_statistics: columns,
        }
    }

    fn column_statistics(&self, column: usize, rows: usize) -> ColumnStatistics {
        let distinct =
            self.relation.distinct(column).map(|distinct| Precision::Inexact((distinct as usize).min(rows)));
        ColumnStatistics {
            distinct_count: distinct.unwrap_or(Precision::Absent),
            ..ColumnStatistics::new_unknown()
        }
    }
}

impl DisplayAs for RelationScanExec {
    fn fmt_as(&self, style: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let definition = self.relation.table().definition();
        let names: Vec<&str> =
            self.projection.iter().map(|column| definition.columns[*column].name.as_str()).collect();
        let filters: Vec<String> = self.filters.iter().map(ToString::to_string).collect();
        let described: Vec<String> =
            self.choice.considered.iter().map(|(name, cost)| format!("{name} {cost}")).collect();
        let index = index_name(&self.relation, self.choice.path.index());
        let access = self.choice.considered.first().map_or("", |(name, _)| name.as_str());
        if matches!(style, DisplayFormatType::TreeRender) {
            writeln!(f, "table={}.{}", definition.database, definition.name)?;
            writeln!(f, "access={access}")?;
            if !filters.is_empty() {
                writeln!(f, "filters={}", filters.join(" AND "))?;
            }
            return writeln!(f, "estimated_rows={:.0}", self.choice.rows);
        }
        write!(
            f,
            "RelationScanExec: table={}.{}, index={index}, access={access}",
            definition.database, definition.name
        )?;
        write!(f, ", columns=[{}]", names.join(", "))?;
        if !filters.is_empty() {
            write!(f, ", filters=[{}]", filters.join(" AND "))?;
        }
        if let Some(limit) = self.limit {
            write!(f, ", limit={limit}")?;
        }
        write!(f, ", estimated_rows={:.0}, why=[{}]", self.choice.rows, described.join(" < "))?;
        if let Some(why) = &self.choice.columnar {
            write!(f, ", columnar=[{why}]")?;
        }
        match &self.note {
            Some(note) => write!(f, ", note=[{note}]"),
            None => Ok(()),
        }
    }
}

impl ExecutionPlan for RelationScanExec {
    fn name(&self) -> &'static str {
        "RelationScanExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        Vec::new()
    }

    fn apply_expressions(
        &self,
        f: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        apply_expression_roots(&self.filters, f)
    }

    fn replace_children(
        self: Arc<Self>,
        _: Vec<Arc<dyn ExecutionPlan>>,
        _: ReplaceChildrenOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(self)
    }

    fn with_new_children(self: Arc<Self>, _: Vec<Arc<dyn ExecutionPlan>>) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(self)
    }

    fn reset_state(self: Arc<Self>) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(Arc::new(RelationScanExec {
            metrics: ExecutionPlanMetricsSet::new(),
            execution: Arc::default(),
            ..self.as_ref().clone()
        }))
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let running = self.running(partition, &context)?;
        let baseline = Arc::new(BaselineMetrics::new(&self.metrics, partition));
        let batches = futures::stream::unfold(running, move |running| {
            let baseline = Arc::clone(&baseline);
            async move {
                let running = running?;
                let batch = running.next().await?.record_output(&baseline);
                let rest = batch.is_ok().then_some(running);
                Some((batch, rest))
            }
        });
        let stream = RecordBatchStreamAdapter::new(
            Arc::clone(self.properties.eq_properties.schema()),
            Box::pin(batches),
        );
        Ok(Box::pin(cooperative(stream)))
    }

    fn metrics(&self) -> Option<MetricsSet> {
        Some(self.metrics.clone_inner())
    }

    fn statistics_from_inputs(
        &self,
        _: &[Arc<Statistics>],
        args: &StatisticsArgs,
    ) -> Result<Arc<Statistics>> {
        Ok(Arc::new(self.statistics(args.partition())))
    }

    fn supports_limit_pushdown(&self) -> bool {
        false
    }

    fn with_fetch(&self, limit: Option<usize>) -> Option<Arc<dyn ExecutionPlan>> {
        Some(Arc::new(RelationScanExec { limit, execution: Arc::default(), ..self.clone() }))
    }

    fn fetch(&self) -> Option<usize> {
        self.limit
    }
}
