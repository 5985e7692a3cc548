//! Operators: [`ApplyExec`] numbers the distinct values of its rows, runs the subquery over them, and gives each row
//! the result of its number; [`DomainExec`] is the leaf of the subquery that has the values.
//!
//! 1. The input is collected; its values, as bytes, get numbers in the order in which they are first seen.
//! 2. The values with their numbers are put where the leaves read them.
//! 3. The subquery runs; its rows are kept by number. A scalar subquery has at most one of each.
//! 4. The rows go out with the result of their numbers.

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
        let batches = rows.into_iter().map(move |(batch, numbers)| {
            let _held = &memory;
            let column = results.column(&numbers)?;
            let mut columns = batch.columns().to_vec();
            columns.push(column);
            Ok(RecordBatch::try_new(Arc::clone(&spec.schema), columns)?)
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
        let mut rows = HashMap::with_capacity(numbers.len());
        for (row, number) in numbers.iter().enumerate() {
            let number = number.ok_or_else(|| wrong("has a row of no values"))?;
            if rows.insert(number, row as u64).is_some() && self.spec.kind == Kind::Scalar {
                return Err(several_rows());
            }
        }
        let value = all.columns().get(1).cloned();
        let field = self.spec.schema.fields().last().ok_or_else(|| wrong("has no column"))?;
        Ok(Results { rows, value, kind: self.spec.kind, data_type: field.data_type().clone() })
    }
}

/// What the subquery gave for each number.
struct Results {
    rows: HashMap<u64, u64>,
    value: Option<ArrayRef>,
    kind: Kind,
    data_type: DataType,
}

impl Results {
    /// The results of rows with these numbers.
    fn column(&self, numbers: &[u64]) -> Result<ArrayRef> {
        if self.kind == Kind::Exists {
            let found = numbers.iter().map(|number| Some(self.rows.contains_key(number)));
            return Ok(Arc::new(found.collect::<BooleanArray>()));
        }
        let value = self.value.as_ref().ok_or_else(|| wrong("has no value"))?;
        let at: UInt64Array = numbers.iter().map(|number| self.rows.get(number).copied()).collect();
        let taken = take(value, &at, None)?;
        cast(&taken, &self.data_type).map_err(DataFusionError::from)
    }
}
