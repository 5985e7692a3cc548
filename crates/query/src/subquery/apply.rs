//! The logical node that gives each row of its input the result of a subquery for the values of some expressions.
//!
//! Inputs are the rows, and the subquery over the distinct values ([`Domain`](super::domain::Domain)), whose first
//! column is the number of the values. Rows of equal values share a number, so the subquery runs once over all.

use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType, Field, SchemaRef};
use datafusion::common::{DFSchema, DFSchemaRef, DataFusionError, Result};
use datafusion::logical_expr::{Expr, Extension, LogicalPlan, UserDefinedLogicalNodeCore};

use super::domain::Domain;

/// What a row takes from the subquery.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Hash)]
pub(super) enum Kind {
    /// The value of the only row, or NULL.
    Scalar,
    /// Whether there is a row.
    Exists,
    /// Its columns: the row is joined to all of its rows. With `keeps`, a row without any is kept, with NULLs.
    Rows { keeps: bool },
}

/// See the [module](self).
#[derive(Debug, Clone)]
pub(super) struct Apply {
    pub input: LogicalPlan,
    pub inner: LogicalPlan,
    /// The values, over the input.
    pub keys: Vec<Expr>,
    pub kind: Kind,
    /// Which leaves of `inner` are the values.
    pub domain: u64,
    pub name: String,
    /// Schema of the leaves.
    pub values: SchemaRef,
    schema: DFSchemaRef,
}

impl Apply {
    /// The node over `input`, with a further column called `name`.
    pub(super) fn plan(
        input: LogicalPlan,
        inner: LogicalPlan,
        domain: Domain,
        kind: Kind,
        name: &str,
    ) -> Result<LogicalPlan> {
        let schema = Arc::new(DFSchema::empty());
        let (keys, values) = (domain.keys(), Arc::clone(domain.schema()));
        let name = name.to_string();
        let node = Apply {
            input: input.clone(),
            inner: inner.clone(),
            keys,
            kind,
            domain: domain.id(),
            name,
            values,
            schema,
        };
        let node = node.with(node.keys.clone(), input, inner)?;
        Ok(LogicalPlan::Extension(Extension { node: Arc::new(node) }))
    }

    /// The same with other keys and inputs.
    pub(super) fn with(&self, keys: Vec<Expr>, input: LogicalPlan, inner: LogicalPlan) -> Result<Apply> {
        let (kind, name) = (self.kind, &self.name);
        let of_inner = inner.schema().iter().skip(1);
        let of_inner = of_inner.map(|(qualifier, field)| (qualifier.cloned(), Arc::clone(field)));
        let of_inner: Vec<_> = of_inner.collect();
        let added: Vec<_> = match kind {
            Kind::Exists => vec![(None, Arc::new(Field::new(name, DataType::Boolean, false)))],
            Kind::Scalar => {
                let value = inner.schema().fields().get(1).ok_or_else(|| wrong("has no value"))?;
                vec![(None, Arc::new(value.as_ref().clone().with_name(name).with_nullable(true)))]
            }
            Kind::Rows { keeps: false } => of_inner,
            Kind::Rows { keeps: true } => of_inner
                .into_iter()
                .map(|(qualifier, field)| (qualifier, Arc::new(field.as_ref().clone().with_nullable(true))))
                .collect(),
        };
        let mut fields: Vec<_> =
            input.schema().iter().map(|(qualifier, field)| (qualifier.cloned(), Arc::clone(field))).collect();
        fields.extend(added);
        let schema = DFSchema::new_with_metadata(fields, input.schema().metadata().clone())?;
        Ok(Apply { input, inner, keys, schema: Arc::new(schema), ..self.clone() })
    }
}

/// Whether a node is an [`Apply`].
pub(super) fn is_apply(extension: &Extension) -> bool {
    extension.node.name() == NAME
}

const NAME: &str = "Apply";

pub(super) fn wrong(what: &str) -> DataFusionError {
    DataFusionError::Internal(format!("a subquery for each row {what}"))
}

impl PartialEq for Apply {
    fn eq(&self, other: &Self) -> bool {
        self.domain == other.domain
            && self.kind == other.kind
            && self.keys == other.keys
            && self.input == other.input
            && self.inner == other.inner
    }
}

impl Eq for Apply {}

impl Hash for Apply {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.domain.hash(state);
        self.kind.hash(state);
        self.keys.hash(state);
        self.input.hash(state);
        self.inner.hash(state);
    }
}

impl PartialOrd for Apply {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        match self.domain.partial_cmp(&other.domain) {
            Some(Ordering::Equal) => self.name.partial_cmp(&other.name),
            order => order,
        }
    }
}

impl UserDefinedLogicalNodeCore for Apply {
    fn name(&self) -> &str {
        NAME
    }

    fn inputs(&self) -> Vec<&LogicalPlan> {
        vec![&self.input, &self.inner]
    }

    fn schema(&self) -> &DFSchemaRef {
        &self.schema
    }

    fn expressions(&self) -> Vec<Expr> {
        self.keys.clone()
    }

    fn fmt_for_explain(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let keys: Vec<String> = self.keys.iter().map(ToString::to_string).collect();
        write!(f, "{NAME}: {:?} for each [{}]", self.kind, keys.join(", "))
    }

    fn with_exprs_and_inputs(&self, keys: Vec<Expr>, mut inputs: Vec<LogicalPlan>) -> Result<Self> {
        let (Some(inner), Some(input)) = (inputs.pop(), inputs.pop()) else {
            return Err(wrong("has two inputs"));
        };
        self.with(keys, input, inner)
    }
}
