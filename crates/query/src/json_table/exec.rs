//! The operator: reads the document of each row of its input and gives out its rows beside it.

use std::fmt;
use std::sync::Arc;

use datafusion::arrow::array::{RecordBatch, RecordBatchOptions, UInt64Array};
use datafusion::arrow::compute::take;
use datafusion::arrow::datatypes::{Schema, SchemaRef};
use datafusion::common::Result;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::{EquivalenceProperties, PhysicalExpr};
use datafusion::physical_plan::execution_plan::{
    Boundedness, ChildrenPropertiesMode, EmissionType, ReplaceChildrenOptions, apply_expression_roots,
};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, ExecutionPlanProperties, PlanProperties,
};
use futures::StreamExt;
use tanada_innodb::{RowSink, Value};

use super::node::JsonRows;
use crate::binding::kind_of;
use crate::expression::{Datum, JsonTable, Kind, Refusal, Rules, datum_of, value_of};
use crate::lookup::key::KeyColumn;
use crate::relation::ArrowSink;
use crate::{Error, ErrorKind};

/// The operator of a node over `input`; `document` is over its schema.
///
/// # Errors
/// If the document's type is none of the server.
pub(crate) fn planned(
    node: &JsonRows,
    document: Arc<dyn PhysicalExpr>,
    input: Arc<dyn ExecutionPlan>,
) -> Result<Arc<dyn ExecutionPlan>> {
    let field = document.return_field(input.schema().as_ref())?;
    let kind = kind_of(&field).map_err(|refusal| refused(&refusal))?;
    let spec = Spec {
        document,
        kind,
        rows: Arc::clone(&node.rows),
        rules: node.rules,
        own: Arc::clone(&node.own),
        kinds: Arc::clone(&node.kinds),
    };
    Ok(Arc::new(JsonTableExec::new(input, Arc::new(spec))))
}

fn refused(refusal: &Refusal) -> Error {
    Error::new(ErrorKind::InvalidInput, refusal.to_string())
}

#[derive(Debug)]
struct Spec {
    document: Arc<dyn PhysicalExpr>,
    /// The server's type of the document.
    kind: Kind,
    rows: Arc<JsonTable>,
    rules: Rules,
    own: SchemaRef,
    kinds: Arc<Vec<Kind>>,
}

/// See the [module](self).
#[derive(Debug)]
struct JsonTableExec {
    input: Arc<dyn ExecutionPlan>,
    spec: Arc<Spec>,
    schema: SchemaRef,
    properties: Arc<PlanProperties>,
}

impl JsonTableExec {
    fn new(input: Arc<dyn ExecutionPlan>, spec: Arc<Spec>) -> JsonTableExec {
        let own = input.schema();
        let fields = own.fields().iter().chain(spec.own.fields()).cloned();
        let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
        let properties = PlanProperties::new(
            EquivalenceProperties::new(Arc::clone(&schema)),
            input.output_partitioning().clone(),
            EmissionType::Incremental,
            Boundedness::Bounded,
        );
        JsonTableExec { input, spec, schema, properties: Arc::new(properties) }
    }
}

impl Spec {
    /// The rows of the documents of a batch, beside its own.
    fn expanded(&self, batch: &RecordBatch, schema: &SchemaRef) -> Result<RecordBatch> {
        let documents = self.document.evaluate(batch)?.into_array(batch.num_rows())?;
        let column = match documents.is_empty() || self.kind == Kind::Null {
            true => None,
            false => Some(KeyColumn::new(&documents, None)?),
        };
        let slots: Vec<usize> = (0..self.own.fields().len()).collect();
        let mut sink = ArrowSink::new(&self.own, &slots, true);
        let mut from: Vec<u64> = Vec::new();
        for at in 0..batch.num_rows() {
            let value = column.as_ref().and_then(|column| column.value(at)).unwrap_or(Value::Null);
            let rows = self.rows_of(&value).map_err(|refusal| refused(&refusal))?;
            for row in rows {
                for (slot, (datum, kind)) in row.into_iter().zip(self.kinds.iter()).enumerate() {
                    let value = value_of(datum, kind).map_err(|refusal| refused(&refusal))?;
                    sink.push(slot, value).map_err(Error::from)?;
                }
                sink.end_row();
                from.push(at as u64);
            }
        }
        let count = from.len();
        let from = UInt64Array::from(from);
        let mut columns = Vec::with_capacity(schema.fields().len());
        for column in batch.columns() {
            columns.push(take(column, &from, None)?);
        }
        columns.extend(sink.finish()?.columns().iter().cloned());
        let options = RecordBatchOptions::new().with_row_count(Some(count));
        Ok(RecordBatch::try_new_with_options(Arc::clone(schema), columns, &options)?)
    }

    fn rows_of(&self, value: &Value<'_>) -> Result<Vec<Vec<Datum>>, Refusal> {
        self.rows.rows(&datum_of(value)?, &self.kind, &self.rules)
    }
}

impl DisplayAs for JsonTableExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "JsonTableExec: rows of {}", self.spec.document)
    }
}

impl ExecutionPlan for JsonTableExec {
    fn name(&self) -> &'static str {
        "JsonTableExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.input]
    }

    fn benefits_from_input_partitioning(&self) -> Vec<bool> {
        vec![false]
    }

    fn apply_expressions(
        &self,
        f: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        apply_expression_roots(std::iter::once(&self.spec.document), f)
    }

    fn replace_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
        _: ReplaceChildrenOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        match children.into_iter().next() {
            Some(input) => Ok(Arc::new(JsonTableExec::new(input, Arc::clone(&self.spec)))),
            None => Ok(self),
        }
    }

    fn with_new_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        self.replace_children(children, ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute))
    }

    fn execute(&self, partition: usize, task: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let input = self.input.execute(partition, task)?;
        let (spec, schema) = (Arc::clone(&self.spec), Arc::clone(&self.schema));
        let of_rows = Arc::clone(&schema);
        let batches = input.map(move |batch| spec.expanded(&batch?, &of_rows));
        Ok(Box::pin(RecordBatchStreamAdapter::new(schema, batches)))
    }
}
