//! Operators: [`ApplyExec`] numbers the distinct values of its rows, runs the subquery over them, and gives each row
//! the result of its number; [`DomainExec`] is the leaf of the subquery that has the values.
//!
//! 1. The input is collected; its values, as bytes, get numbers in the order in which they are first seen.
//! 2. The values with their numbers are put where the leaves read them.
//! 3. The subquery runs; its rows are kept by number. A scalar subquery has at most one of each.
//! 4. The rows go out with the result of their numbers, or joined to all rows of their numbers.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use datafusion::arrow::array::AsArray;
use datafusion::arrow::array::{ArrayRef, BooleanArray, RecordBatch, UInt64Array};
use datafusion::arrow::compute::{cast, concat_batches, take};
use datafusion::arrow::datatypes::{DataType, SchemaRef, UInt64Type};
use datafusion::arrow::row::{OwnedRow, RowConverter, SortField};
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{DataFusionError, Result};
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryReservation};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::logical_expr::{Expr, TableType};
use datafusion::physical_expr::{EquivalenceProperties, PhysicalExpr};
use datafusion::physical_plan::distribution_requirements::InputDistributionRequirements;
use datafusion::physical_plan::execution_plan::{
    Boundedness, ChildrenPropertiesMode, EmissionType, ReplaceChildrenOptions, apply_expression_roots,
};
use datafusion::physical_plan::memory::MemoryStream;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, Distribution, ExecutionPlan, Partitioning, PlanProperties,
};
use futures::{StreamExt, TryStreamExt};
use parking_lot::Mutex;

use super::aggregates::several_rows;
use super::apply::{Kind, wrong};

/// Where the values of one run lie.
pub(super) type Slot = Arc<Mutex<Option<RecordBatch>>>;

/// The table of the values, as plans name it.
#[derive(Debug)]
pub(crate) struct DomainTable {
    domain: u64,
    schema: SchemaRef,
}

impl DomainTable {
    pub(super) fn new(domain: u64, schema: SchemaRef) -> DomainTable {
        DomainTable { domain, schema }
    }
}

#[async_trait]
impl TableProvider for DomainTable {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn table_type(&self) -> TableType {
        TableType::Temporary
    }

    async fn scan(
        &self,
        _: &dyn Session,
        projection: Option<&Vec<usize>>,
        _: &[Expr],
        _: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let projection = projection.cloned();
        Ok(Arc::new(DomainExec::new(self.domain, &self.schema, projection, Slot::default())?))
    }
}

/// The values.
#[derive(Debug)]
pub(super) struct DomainExec {
    pub(super) domain: u64,
    whole: SchemaRef,
    projection: Option<Vec<usize>>,
    slot: Slot,
    properties: Arc<PlanProperties>,
}

impl DomainExec {
    fn new(domain: u64, whole: &SchemaRef, projection: Option<Vec<usize>>, slot: Slot) -> Result<DomainExec> {
        let schema = match &projection {
            Some(columns) => Arc::new(whole.project(columns)?),
            None => Arc::clone(whole),
        };
        let properties = PlanProperties::new(
            EquivalenceProperties::new(schema),
            Partitioning::UnknownPartitioning(1),
            EmissionType::Incremental,
            Boundedness::Bounded,
        );
        Ok(DomainExec {
            domain,
            whole: Arc::clone(whole),
            projection,
            slot,
            properties: Arc::new(properties),
        })
    }

    /// The same leaf, reading from `slot`.
    pub(super) fn with_slot(&self, slot: &Slot) -> Result<DomainExec> {
        DomainExec::new(self.domain, &self.whole, self.projection.clone(), Arc::clone(slot))
    }
}

impl DisplayAs for DomainExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "OuterValuesExec")
    }
}

impl ExecutionPlan for DomainExec {
    fn name(&self) -> &'static str {
        "OuterValuesExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        Vec::new()
    }

    fn apply_expressions(
        &self,
        _: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
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

    fn execute(&self, _: usize, _: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let batch = self.slot.lock().clone().ok_or_else(|| wrong("has no values yet"))?;
        let batch = match &self.projection {
            Some(columns) => batch.project(columns)?,
            None => batch,
        };
        let schema = Arc::clone(self.properties.equivalence_properties().schema());
        Ok(Box::pin(MemoryStream::try_new(vec![batch], schema, None)?))
    }
}

/// See the [module](self).
#[derive(Debug)]
pub(super) struct ApplyExec {
    input: Arc<dyn ExecutionPlan>,
    inner: Arc<dyn ExecutionPlan>,
    spec: Arc<Spec>,
    properties: Arc<PlanProperties>,
}

#[derive(Debug)]
pub(super) struct Spec {
    pub keys: Vec<Arc<dyn PhysicalExpr>>,
    pub kind: Kind,
    /// Schema of the rows that go out.
    pub schema: SchemaRef,
    /// Schema of the values.
    pub values: SchemaRef,
    pub slot: Slot,
}

impl ApplyExec {
    pub(super) fn new(
        input: Arc<dyn ExecutionPlan>,
        inner: Arc<dyn ExecutionPlan>,
        spec: Arc<Spec>,
    ) -> ApplyExec {
        let properties = PlanProperties::new(
            EquivalenceProperties::new(Arc::clone(&spec.schema)),
            Partitioning::UnknownPartitioning(1),
            EmissionType::Final,
            Boundedness::Bounded,
        );
        ApplyExec { input, inner, spec, properties: Arc::new(properties) }
    }
}

impl DisplayAs for ApplyExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let keys: Vec<String> = self.spec.keys.iter().map(ToString::to_string).collect();
        write!(f, "SubqueryExec: {:?} for each [{}]", self.spec.kind, keys.join(", "))
    }
}

impl ExecutionPlan for ApplyExec {
    fn name(&self) -> &'static str {
        "SubqueryExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.input, &self.inner]
    }

    fn input_distribution_requirements(&self) -> InputDistributionRequirements {
        InputDistributionRequirements::new(vec![Distribution::SinglePartition, Distribution::SinglePartition])
    }

    fn benefits_from_input_partitioning(&self) -> Vec<bool> {
        vec![false, false]
    }

    fn apply_expressions(
        &self,
        f: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        apply_expression_roots(self.spec.keys.iter(), f)
    }

    fn replace_children(
        self: Arc<Self>,
        mut children: Vec<Arc<dyn ExecutionPlan>>,
        _: ReplaceChildrenOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        match (children.pop(), children.pop()) {
            (Some(inner), Some(input)) => Ok(Arc::new(ApplyExec::new(input, inner, Arc::clone(&self.spec)))),
            _ => Err(wrong("has two inputs")),
        }
    }

    fn with_new_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        self.replace_children(children, ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute))
    }

    fn execute(&self, partition: usize, task: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        if partition != 0 {
            return Err(wrong("has one partition"));
        }
        let run = Run {
            input: self.input.execute(0, Arc::clone(&task))?,
            inner: Arc::clone(&self.inner),
            spec: Arc::clone(&self.spec),
            memory: MemoryConsumer::new("Subquery").register(task.memory_pool()),
            task,
        };
        let schema = Arc::clone(&self.spec.schema);
        let batches = futures::stream::once(run.finish()).try_flatten();
        Ok(Box::pin(RecordBatchStreamAdapter::new(schema, batches)))
    }
}

struct Run {
    input: SendableRecordBatchStream,
    inner: Arc<dyn ExecutionPlan>,
    spec: Arc<Spec>,
    memory: MemoryReservation,
    task: Arc<TaskContext>,
}

/// Rows of the input, and the numbers of their values.
type Numbered = Vec<(RecordBatch, Vec<u64>)>;

impl Run {
    async fn finish(mut self) -> Result<impl futures::Stream<Item = Result<RecordBatch>> + Send + 'static> {
        let rows = self.numbered().await?;
        let results = self.results().await?;
        let (spec, memory) = (self.spec, self.memory);
        let results = Arc::new(results);
        let batches = rows.into_iter().flat_map(move |(batch, numbers)| {
            let _held = &memory;
            let (spec, results) = (Arc::clone(&spec), Arc::clone(&results));
            let pieces = results.pieces(&numbers);
            pieces.into_iter().map(move |piece| {
                let columns = match piece {
                    Piece::Whole => {
                        let mut columns = batch.columns().to_vec();
                        columns.push(results.column(&numbers)?);
                        columns
                    }
                    Piece::Joined { outer, inner } => {
                        let mut columns = Vec::with_capacity(spec.schema.fields().len());
                        for column in batch.columns() {
                            columns.push(take(column, &outer, None)?);
                        }
                        for column in results.all.columns().iter().skip(1) {
                            columns.push(take(column, &inner, None)?);
                        }
                        columns
                    }
                };
                Ok(RecordBatch::try_new(Arc::clone(&spec.schema), columns)?)
            })
        });
        Ok(futures::stream::iter(batches))
    }

    /// Collects the input and puts its distinct values into the slot.
    async fn numbered(&mut self) -> Result<Numbered> {
        let types: Vec<DataType> =
            self.spec.values.fields().iter().skip(1).map(|field| field.data_type().clone()).collect();
        let converter = RowConverter::new(types.iter().cloned().map(SortField::new).collect())?;
        let mut numbers: HashMap<OwnedRow, u64> = HashMap::new();
        let mut rows = Vec::new();
        let mut distinct: Vec<RecordBatch> = Vec::new();
        while let Some(batch) = self.input.next().await {
            let batch = batch?;
            self.memory.try_grow(batch.get_array_memory_size())?;
            let keys = self.spec.keys.iter().zip(&types).map(|(key, data_type)| {
                Ok(cast(&key.evaluate(&batch)?.into_array(batch.num_rows())?, data_type)?)
            });
            let keys: Vec<ArrayRef> = keys.collect::<Result<_>>()?;
            let converted = converter.convert_columns(&keys)?;
            let mut of_rows = Vec::with_capacity(batch.num_rows());
            let mut new = Vec::new();
            let mut new_numbers = Vec::new();
            for at in 0..batch.num_rows() {
                let next = numbers.len() as u64;
                let number = *numbers.entry(converted.row(at).owned()).or_insert(next);
                if number == next {
                    new.push(at as u64);
                    new_numbers.push(next);
                }
                of_rows.push(number);
            }
            if !new.is_empty() {
                let at = UInt64Array::from(new);
                let mut columns: Vec<ArrayRef> = vec![Arc::new(UInt64Array::from(new_numbers))];
                for key in &keys {
                    columns.push(take(key, &at, None)?);
                }
                let values = RecordBatch::try_new(Arc::clone(&self.spec.values), columns)?;
                self.memory.try_grow(2 * values.get_array_memory_size())?;
                distinct.push(values);
            }
            rows.push((batch, of_rows));
        }
        *self.spec.slot.lock() = Some(concat_batches(&self.spec.values, &distinct)?);
        Ok(rows)
    }

    /// Runs the subquery over the values.
    async fn results(&mut self) -> Result<Results> {
        let mut inner = self.inner.execute(0, Arc::clone(&self.task))?;
        let schema = inner.schema();
        let mut batches = Vec::new();
        while let Some(batch) = inner.next().await {
            let batch = batch?;
            self.memory.try_grow(batch.get_array_memory_size())?;
            batches.push(batch);
        }
        self.spec.slot.lock().take();
        let all = concat_batches(&schema, &batches)?;
        let numbers = all.columns().first().ok_or_else(|| wrong("has no number"))?;
        let numbers = cast(numbers, &DataType::UInt64)?;
        let numbers: &UInt64Array = numbers.as_primitive::<UInt64Type>();
        let mut rows: HashMap<u64, Vec<u64>> = HashMap::with_capacity(numbers.len());
        for (row, number) in numbers.iter().enumerate() {
            let number = number.ok_or_else(|| wrong("has a row of no values"))?;
            let of_number = rows.entry(number).or_default();
            if !of_number.is_empty() && self.spec.kind == Kind::Scalar {
                return Err(several_rows());
            }
            of_number.push(row as u64);
        }
        let field = self.spec.schema.fields().last().ok_or_else(|| wrong("has no column"))?;
        let data_type = field.data_type().clone();
        Ok(Results { rows, all, kind: self.spec.kind, data_type })
    }
}

/// What the subquery gave for each number.
struct Results {
    /// Positions of its rows.
    rows: HashMap<u64, Vec<u64>>,
    /// Its rows.
    all: RecordBatch,
    kind: Kind,
    data_type: DataType,
}

/// Rows that go out together.
enum Piece {
    /// Those of a batch of the input, each with its result.
    Whole,
    /// Pairs: positions in a batch of the input and among the subquery's rows.
    Joined { outer: UInt64Array, inner: UInt64Array },
}

/// Rows of a [`Piece`] of pairs.
const PIECE_ROWS: usize = 8192;

impl Results {
    /// What goes out for rows of a batch with these numbers.
    fn pieces(&self, numbers: &[u64]) -> Vec<Piece> {
        let Kind::Rows { keeps } = self.kind else { return vec![Piece::Whole] };
        let mut pairs: Vec<(u64, Option<u64>)> = Vec::new();
        for (at, number) in numbers.iter().enumerate() {
            match self.rows.get(number) {
                Some(rows) => pairs.extend(rows.iter().map(|row| (at as u64, Some(*row)))),
                None if keeps => pairs.push((at as u64, None)),
                None => {}
            }
        }
        let piece = |pairs: &[(u64, Option<u64>)]| Piece::Joined {
            outer: pairs.iter().map(|(outer, _)| *outer).collect(),
            inner: pairs.iter().map(|(_, inner)| *inner).collect(),
        };
        pairs.chunks(PIECE_ROWS).map(piece).collect()
    }

    /// The results of rows with these numbers.
    fn column(&self, numbers: &[u64]) -> Result<ArrayRef> {
        if self.kind == Kind::Exists {
            let found = numbers.iter().map(|number| Some(self.rows.contains_key(number)));
            return Ok(Arc::new(found.collect::<BooleanArray>()));
        }
        let value = self.all.columns().get(1).ok_or_else(|| wrong("has no value"))?;
        let only = |number| self.rows.get(number).and_then(|rows| rows.first().copied());
        let at: UInt64Array = numbers.iter().map(only).collect();
        let taken = take(value, &at, None)?;
        cast(&taken, &self.data_type).map_err(DataFusionError::from)
    }
}
