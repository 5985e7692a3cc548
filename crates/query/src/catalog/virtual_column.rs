//! Virtual generated columns as physical expressions over the stored columns of a scan.

use std::collections::BTreeMap;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType, FieldRef, Schema, SchemaRef};
use datafusion::common::config::ConfigOptions;
use datafusion::common::{DataFusionError, Result, ScalarValue};
use datafusion::logical_expr::{
    ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use datafusion::physical_expr::expressions::{Column, lit};
use datafusion::physical_expr::{PhysicalExpr, ScalarFunctionExpr};
use tanada_innodb::{RowSink, TableDefinition, Value};

use crate::expression::{GeneratedColumn, Refusal};
use crate::lookup::key::KeyColumn;
use crate::relation::ArrowSink;
use crate::session::context::QueryContext;
use crate::{Error, ErrorKind};

/// The virtual columns of a scan.
#[derive(Debug)]
pub(super) struct VirtualColumns {
    planned: BTreeMap<usize, Planned>,
    name: String,
    query: Arc<QueryContext>,
}

/// A column that can be computed; `None` for one that is shown as NULL.
#[derive(Debug)]
struct Planned {
    column: Option<Arc<GeneratedColumn>>,
    by_star: bool,
    text: String,
}

impl VirtualColumns {
    /// Plans those of `columns` that are virtual. What cannot be computed and is shown by a star alone becomes NULL
    /// with a warning.
    ///
    /// # Errors
    /// `Unsupported` if another one cannot be computed exactly.
    pub(super) fn plan(
        query: &Arc<QueryContext>,
        definition: &TableDefinition,
        columns: &[usize],
    ) -> Result<VirtualColumns> {
        let mut virtuals = VirtualColumns {
            planned: BTreeMap::new(),
            name: definition.name.clone(),
            query: Arc::clone(query),
        };
        for column in columns.iter().copied() {
            let Some(text) = &definition.columns[column].virtual_expression else { continue };
            let by_star = query.is_shown_by_star(&definition.name, &definition.columns[column].name);
            let label = format!("{}.{}", definition.name, definition.columns[column].name);
            let planned = match GeneratedColumn::new(definition, column) {
                Ok(planned) => Some(Arc::new(planned)),
                Err(refusal) if by_star => {
                    query.warn_once(shown_as_null(&label, text, &refusal));
                    None
                }
                Err(refusal) => return Err(refused(&label, text, &refusal)),
            };
            virtuals.planned.insert(column, Planned { column: planned, by_star, text: text.clone() });
        }
        Ok(virtuals)
    }

    /// Whether a column is one of them.
    pub(super) fn contains(&self, column: usize) -> bool {
        self.planned.contains_key(&column)
    }

    /// The stored columns that they are made of.
    pub(super) fn inputs(&self) -> impl Iterator<Item = usize> + '_ {
        self.planned
            .values()
            .filter_map(|planned| planned.column.as_ref())
            .flat_map(|of| of.inputs().iter().copied())
    }

    /// The expression of one of them over a scan of the stored columns `scanned`.
    pub(super) fn expression(
        &self,
        column: usize,
        definition: &TableDefinition,
        schema: &SchemaRef,
        scanned: &[usize],
    ) -> Result<Arc<dyn PhysicalExpr>> {
        let field = Arc::clone(&schema.fields()[column]);
        let planned = self.planned.get(&column);
        let Some((planned, computed)) = planned.and_then(|planned| Some((planned, planned.column.as_ref()?)))
        else {
            return Ok(lit(ScalarValue::try_from(field.data_type())?));
        };
        let inputs = computed.inputs().iter().map(|input| {
            let at = scanned.iter().position(|scanned| scanned == input).unwrap_or_default();
            Arc::new(Column::new(schema.field(*input).name(), at)) as Arc<dyn PhysicalExpr>
        });
        let function = Computed {
            label: format!("{}.{}", self.name, definition.columns[column].name),
            text: planned.text.clone(),
            column: Arc::clone(computed),
            by_star: planned.by_star,
            field: Arc::clone(&field),
            query: Arc::clone(&self.query),
            signature: Signature::variadic_any(Volatility::Immutable),
        };
        let (inputs, function) = (inputs.collect(), Arc::new(ScalarUDF::from(function)));
        let options = Arc::new(ConfigOptions::default());
        Ok(Arc::new(ScalarFunctionExpr::new(NAME, function, inputs, field, options)))
    }
}

const NAME: &str = "virtual_column";

fn refused(label: &str, text: &str, refusal: &Refusal) -> DataFusionError {
    let message =
        format!("virtual column {label} cannot be computed here: `{text}` ({refusal}); select other columns");
    Error::new(ErrorKind::Unsupported, message).into()
}

fn shown_as_null(label: &str, text: &str, refusal: &Refusal) -> String {
    format!("virtual column {label} is shown as NULL: `{text}` cannot be computed here ({refusal})")
}

/// The function that computes a virtual column of a batch.
#[derive(Debug)]
struct Computed {
    label: String,
    text: String,
    column: Arc<GeneratedColumn>,
    by_star: bool,
    field: FieldRef,
    query: Arc<QueryContext>,
    signature: Signature,
}

impl PartialEq for Computed {
    fn eq(&self, other: &Self) -> bool {
        self.label == other.label && Arc::ptr_eq(&self.query, &other.query)
    }
}

impl Eq for Computed {}

impl Hash for Computed {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.label.hash(state);
    }
}

impl Computed {
    fn value(&self, columns: &[KeyColumn], row: usize) -> std::result::Result<Value<'static>, Refusal> {
        let values: Vec<Value<'_>> =
            columns.iter().map(|column| column.value(row).unwrap_or(Value::Null)).collect();
        self.column.value(&values)
    }
}

impl ScalarUDFImpl for Computed {
    fn name(&self) -> &str {
        NAME
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(self.field.data_type().clone())
    }

    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let columns: Vec<KeyColumn> = arguments
            .args
            .iter()
            .map(|argument| KeyColumn::new(&argument.to_array(arguments.number_rows)?, None))
            .collect::<Result<_>>()?;
        let schema = Arc::new(Schema::new(vec![Arc::clone(&self.field)]));
        let mut sink = ArrowSink::new(&schema, &[0], !self.query.orders_dates());
        for row in 0..arguments.number_rows {
            let value = match self.value(&columns, row) {
                Ok(value) => value,
                Err(refusal) if self.by_star => {
                    self.query.warn_once(shown_as_null(&self.label, &self.text, &refusal));
                    Value::Null
                }
                Err(refusal) => return Err(refused(&self.label, &self.text, &refusal)),
            };
            sink.push(0, value).map_err(Error::from)?;
            sink.end_row();
        }
        Ok(ColumnarValue::Array(Arc::clone(sink.finish()?.column(0))))
    }
}
