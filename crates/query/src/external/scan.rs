//! `FileScanExec`: reads the files of a table.
//!
//! 1. A table consists of pieces: row groups of Parquet files, and text files as a whole. Row groups that the filters
//!    leave nothing of are left out ([`super::pruning`]).
//! 2. Each partition reads every n-th piece. While it decodes one, the next is read.
//! 3. Values become the servers' ([`super::convert`]), and batches go to the operator above over a bounded channel.

use std::fmt;
use std::sync::Arc;

use datafusion::arrow::datatypes::SchemaRef;
use datafusion::common::stats::Precision;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{ColumnStatistics, Result, Statistics};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::utils::conjunction;
use datafusion::physical_expr::{EquivalenceProperties, PhysicalExpr};
use datafusion::physical_optimizer::pruning::PruningPredicateBuilder;
use datafusion::physical_plan::coop::cooperative;
use datafusion::physical_plan::execution_plan::{
    Boundedness, EmissionType, ReplaceChildrenOptions, SchedulingType, apply_expression_roots,
};
use datafusion::physical_plan::metrics::{BaselineMetrics, ExecutionPlanMetricsSet, MetricsSet};
use datafusion::physical_plan::statistics::StatisticsArgs;
use datafusion::physical_plan::stream::{RecordBatchReceiverStream, RecordBatchStreamAdapter};
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, Partitioning, PlanProperties};
use futures::StreamExt;

use super::format::{Content, FileFormat};
use super::pieces::{Piece, PieceReader};
use super::pruning::RowGroupBounds;
use super::table::LoadedTable;
use crate::explain::IoMetrics;
use crate::scan::Advance;
use crate::session::context::QueryContext;
use crate::store::FileStore;

/// Batches that wait for the operator above.
const WAITING_BATCHES: usize = 2;

/// Reads the files of a table; rows that cannot pass the filters may be left out.
#[derive(Debug, Clone)]
pub struct FileScanExec {
    table: Arc<LoadedTable>,
    store: FileStore,
    projection: Vec<usize>,
    filters: Vec<Arc<dyn PhysicalExpr>>,
    limit: Option<usize>,
    pieces: Arc<[Piece]>,
    /// Pieces of the table.
    all_pieces: usize,
    properties: Arc<PlanProperties>,
    metrics: ExecutionPlanMetricsSet,
    advance: Arc<Advance>,
}

impl FileScanExec {
    /// A scan of `projection`. `filters` are over the table's schema.
    pub(crate) fn new(
        table: Arc<LoadedTable>,
        store: FileStore,
        projection: Vec<usize>,
        filters: Vec<Arc<dyn PhysicalExpr>>,
        limit: Option<usize>,
        partitions: usize,
    ) -> Result<FileScanExec> {
        let (pieces, all_pieces) = pieces(&table, &filters);
        let schema: SchemaRef = Arc::new(table.fields().project(&projection)?);
        let partitions = partitions.min(pieces.len()).max(1);
        let properties = PlanProperties::new(
            EquivalenceProperties::new(schema),
            Partitioning::UnknownPartitioning(partitions),
            EmissionType::Incremental,
            Boundedness::Bounded,
        )
        .with_scheduling_type(SchedulingType::Cooperative);
        let (properties, metrics) = (Arc::new(properties), ExecutionPlanMetricsSet::new());
        let (pieces, advance) = (pieces.into(), begun(0));
        let scan = FileScanExec {
            table,
            store,
            projection,
            filters,
            limit,
            pieces,
            all_pieces,
            properties,
            metrics,
            advance,
        };
        Ok(scan.anew())
    }

    /// The same scan, of which nothing was read.
    fn anew(self) -> FileScanExec {
        let advance = begun(self.pieces.len());
        FileScanExec { metrics: ExecutionPlanMetricsSet::new(), advance, ..self }
    }

    /// Rows taken from it so far, and the share of it that is done, 0 to 1.
    pub(crate) fn advance(&self) -> (u64, f64) {
        (self.advance.rows(), self.advance.share())
    }

    /// Its files.
    pub(crate) fn store(&self) -> &FileStore {
        &self.store
    }

    /// The table.
    pub(crate) fn table(&self) -> &Arc<LoadedTable> {
        &self.table
    }

    /// Output columns, as positions in the table's schema.
    pub(crate) fn projection(&self) -> &[usize] {
        &self.projection
    }

    /// What it reads.
    pub(crate) fn pieces(&self) -> &[Piece] {
        &self.pieces
    }

    /// Rows of all that it reads, if they are known.
    pub(crate) fn rows(&self) -> Option<u64> {
        self.pieces.iter().map(|piece| piece.rows).sum()
    }

    fn statistics(&self, partition: Option<usize>) -> Statistics {
        let partitions = self.properties.partitioning.partition_count();
        let rows: Option<u64> = match partition {
            Some(own) => self.pieces.iter().skip(own).step_by(partitions).map(|piece| piece.rows).sum(),
            None => self.rows(),
        };
        let num_rows = match (rows.and_then(|rows| usize::try_from(rows).ok()), self.limit) {
            (Some(rows), None) => Precision::Exact(rows),
            (Some(rows), Some(limit)) => Precision::Inexact(rows.min(limit)),
            (None, _) => Precision::Absent,
        };
        let columns = self.projection.iter().map(|column| self.column_statistics(*column)).collect();
        let mut statistics =
            Statistics { num_rows, total_byte_size: Precision::Absent, column_statistics: columns };
        statistics.calculate_total_byte_size(self.properties.eq_properties.schema());
        statistics
    }

    /// Estimates over all files.
    fn column_statistics(&self, column: usize) -> ColumnStatistics {
        let column = &self.table.columns[column];
        let of_files = self.table.files.iter().map(|file| match &file.content {
            Content::Parquet(parquet) => RowGroupBounds::new(parquet, &self.table.columns).estimate(column),
            Content::Text(_) => ColumnStatistics::new_unknown(),
        });
        let merged = of_files.reduce(|one, other| ColumnStatistics {
            min_value: one.min_value.min(&other.min_value),
            max_value: one.max_value.max(&other.max_value),
            ..ColumnStatistics::new_unknown()
        });
        merged.unwrap_or_else(ColumnStatistics::new_unknown)
    }
}

fn begun(pieces: usize) -> Arc<Advance> {
    let advance = Advance::default();
    advance.begin(pieces);
    Arc::new(advance)
}

/// The pieces that may have rows which pass, and how many there are in all.
fn pieces(table: &LoadedTable, filters: &[Arc<dyn PhysicalExpr>]) -> (Vec<Piece>, usize) {
    let predicate = match filters {
        [] => None,
        filters => PruningPredicateBuilder::new()
            .with_file_schema(Arc::clone(table.fields()))
            .build(conjunction(filters.to_vec())),
    };
    let (mut pieces, mut all) = (Vec::new(), 0);
    for (file, of) in table.files.iter().enumerate() {
        match &of.content {
            Content::Text(_) => {
                all += 1;
                pieces.push(Piece { file, group: 0, rows: None });
            }
            Content::Parquet(parquet) => {
                let bounds = RowGroupBounds::new(parquet, &table.columns);
                let kept = predicate.as_ref().map(|predicate| bounds.kept(predicate));
                for (group, of) in parquet.metadata().row_groups().iter().enumerate() {
                    all += 1;
                    if kept.as_ref().is_none_or(|kept| kept[group]) {
                        pieces.push(Piece { file, group, rows: Some(super::parquet::rows_of(of)) });
                    }
                }
            }
        }
    }
    (pieces, all)
}

impl DisplayAs for FileScanExec {
    fn fmt_as(&self, style: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> =
            self.projection.iter().map(|column| self.table.fields().field(*column).name().as_str()).collect();
        let filters: Vec<String> = self.filters.iter().map(ToString::to_string).collect();
        let (files, format) = (self.table.files.len(), self.table.format.name());
        let (kept, all) = (self.pieces.len(), self.all_pieces);
        let pieces = if self.table.format == FileFormat::Parquet { "row_groups" } else { "whole_files" };
        if matches!(style, DisplayFormatType::TreeRender) {
            writeln!(f, "table={}", self.table.name)?;
            writeln!(f, "format={format}")?;
            return writeln!(f, "{pieces}={kept} of {all}");
        }
        write!(f, "FileScanExec: table={}, format={format}, files={files}", self.table.name)?;
        write!(f, ", {pieces}={kept} of {all}, columns=[{}]", names.join(", "))?;
        if !filters.is_empty() {
            write!(f, ", pruned_by=[{}]", filters.join(" AND "))?;
        }
        match self.limit {
            Some(limit) => write!(f, ", limit={limit}"),
            None => Ok(()),
        }
    }
}

impl ExecutionPlan for FileScanExec {
    fn name(&self) -> &'static str {
        "FileScanExec"
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
        Ok(Arc::new(self.as_ref().clone().anew()))
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let query = QueryContext::from_task(&context)?;
        let schema = Arc::clone(self.properties.eq_properties.schema());
        let partitions = self.properties.partitioning.partition_count();
        let io = query.io().for_operator(0);
        let mut reader = PieceReader {
            table: Arc::clone(&self.table),
            store: self.store.through(io.clone()),
            projection: self.projection.clone(),
            schema: Arc::clone(&schema),
            limit: self.limit,
            pool: Arc::clone(context.memory_pool()),
            pieces: self.pieces.iter().skip(partition).step_by(partitions).copied().collect(),
            io,
            metrics: IoMetrics::new(&self.metrics, partition),
            advance: Arc::clone(&self.advance),
        };
        let mut builder = RecordBatchReceiverStream::builder(Arc::clone(&schema), WAITING_BATCHES);
        let sender = builder.tx();
        builder.spawn(async move { reader.run(&sender).await });
        let baseline = BaselineMetrics::new(&self.metrics, partition);
        let advance = Arc::clone(&self.advance);
        let taken = builder.build().inspect(move |batch| {
            if let Ok(batch) = batch {
                baseline.record_output(batch.num_rows());
                advance.taken(batch.num_rows());
            }
        });
        Ok(Box::pin(cooperative(RecordBatchStreamAdapter::new(schema, taken))))
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

    fn with_fetch(&self, limit: Option<usize>) -> Option<Arc<dyn ExecutionPlan>> {
        Some(Arc::new(FileScanExec { limit, ..self.clone() }.anew()))
    }

    fn fetch(&self) -> Option<usize> {
        self.limit
    }
}
