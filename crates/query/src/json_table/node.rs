//! The logical node: the rows of a document beside each row of the input.

use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering as Atomic};

use datafusion::arrow::datatypes::{FieldRef, Schema, SchemaRef};
use datafusion::common::{DFSchema, DFSchemaRef, DataFusionError, Result};
use datafusion::logical_expr::{Expr, LogicalPlan, UserDefinedLogicalNodeCore};
use tanada_innodb::Column;

use crate::expression::{JsonTable, Kind, Rules};
use crate::relation::types::field;

/// See the [module](self).
#[derive(Debug, Clone)]
pub(crate) struct JsonRows {
    pub input: LogicalPlan,
    pub document: Expr,
    pub(super) rows: Arc<JsonTable>,
    pub(super) rules: Rules,
    /// The fields of its own columns.
    pub(super) own: SchemaRef,
    /// Their types at the server.
    pub(super) kinds: Arc<Vec<Kind>>,
    /// Tells it from others of the statement.
    id: u64,
    schema: DFSchemaRef,
}

impl JsonRows {
    /// The node over `input` with the columns `own`.
    ///
    /// # Errors
    /// If two columns have one name, or the type of one is not known.
    pub(super) fn new(
        input: LogicalPlan,
        document: Expr,
        rows: Arc<JsonTable>,
        own: &[Column],
        rules: Rules,
    ) -> Result<JsonRows> {
        static NUMBERS: AtomicU64 = AtomicU64::new(0);
        let server = rules.server();
        let fields: Vec<FieldRef> = own.iter().map(|column| Arc::new(field(column, server))).collect();
        let kinds = own.iter().map(|column| Kind::of(column, server));
        let kinds = kinds.collect::<Result<Vec<_>, _>>().map_err(|refusal| {
            DataFusionError::from(crate::Error::new(
                crate::ErrorKind::Unsupported,
                format!("a column of JSON_TABLE: {refusal}"),
            ))
        })?;
        let node = JsonRows {
            input: input.clone(),
            document: document.clone(),
            rows,
            rules,
            own: Arc::new(Schema::new(fields)),
            kinds: Arc::new(kinds),
            id: NUMBERS.fetch_add(1, Atomic::Relaxed),
            schema: Arc::new(DFSchema::empty()),
        };
        node.over(input, document)
    }

    /// The same over another input.
    ///
    /// # Errors
    /// If its columns and those of the input have names in common.
    pub(crate) fn over(&self, input: LogicalPlan, document: Expr) -> Result<JsonRows> {
        let of_input = input.schema().iter();
        let mut fields: Vec<_> =
            of_input.map(|(qualifier, field)| (qualifier.cloned(), Arc::clone(field))).collect();
        fields.extend(self.own.fields().iter().map(|field| (None, Arc::clone(field))));
        let schema = DFSchema::new_with_metadata(fields, input.schema().metadata().clone())?;
        Ok(JsonRows { input, document, schema: Arc::new(schema), ..self.clone() })
    }
}

fn wrong() -> DataFusionError {
    DataFusionError::Internal("JSON_TABLE has one document and one input".to_string())
}

impl PartialEq for JsonRows {
    fn eq(&self, other: &Self) -> bool {
        self.id == other.id && self.document == other.document && self.input == other.input
    }
}

impl Eq for JsonRows {}

impl Hash for JsonRows {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.id.hash(state);
        self.document.hash(state);
        self.input.hash(state);
    }
}

impl PartialOrd for JsonRows {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        self.id.partial_cmp(&other.id)
    }
}

impl UserDefinedLogicalNodeCore for JsonRows {
    fn name(&self) -> &str {
        "JsonTable"
    }

    fn inputs(&self) -> Vec<&LogicalPlan> {
        vec![&self.input]
    }

    fn schema(&self) -> &DFSchemaRef {
        &self.schema
    }

    fn expressions(&self) -> Vec<Expr> {
        vec![self.document.clone()]
    }

    fn fmt_for_explain(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "JsonTable: rows of {}", self.document)
    }

    fn with_exprs_and_inputs(&self, expressions: Vec<Expr>, inputs: Vec<LogicalPlan>) -> Result<Self> {
        let document = expressions.into_iter().next().ok_or_else(wrong)?;
        self.over(inputs.into_iter().next().ok_or_else(wrong)?, document)
    }
}
