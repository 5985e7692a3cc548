//! Virtual generated columns: the server's expression text, planned over the table's stored columns.

use std::collections::{BTreeMap, BTreeSet};

use datafusion::arrow::datatypes::SchemaRef;
use datafusion::catalog::Session;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion::common::{DFSchema, Result};
use datafusion::execution::SessionState;
use datafusion::logical_expr::{Expr, ExprSchemable};
use tanada_innodb::TableDefinition;

use crate::{Error, ErrorKind};

/// How deep virtual columns may be made of virtual columns; a server allows only earlier columns, so a longer chain is damage.
const MAX_DEPTH: usize = 64;

/// A planned virtual column.
#[derive(Debug)]
pub(super) struct VirtualColumn {
    /// Over stored columns, of the column's type.
    pub expression: Expr,
    /// The stored columns in it.
    pub inputs: Vec<usize>,
}

/// Plans those of `columns` that are virtual.
///
/// # Errors
/// `Unsupported` if an expression uses what is not known here.
pub(super) fn virtual_columns(
    state: &dyn Session,
    definition: &TableDefinition,
    schema: &SchemaRef,
    columns: &[usize],
) -> Result<BTreeMap<usize, VirtualColumn>> {
    let mut planned = BTreeMap::new();
    for column in
        columns.iter().copied().filter(|column| definition.columns[*column].virtual_expression.is_some())
    {
        let expression = plan(state, definition, schema, column, 0)?;
        let mut inputs = BTreeSet::new();
        expression.apply(|node| {
            if let Expr::Column(name) = node {
                inputs.insert(schema.index_of(&name.name)?);
            }
            Ok(TreeNodeRecursion::Continue)
        })?;
        planned.insert(column, VirtualColumn { expression, inputs: inputs.into_iter().collect() });
    }
    Ok(planned)
}

/// The expression of a column, with virtual columns in it replaced by theirs.
fn plan(
    state: &dyn Session,
    definition: &TableDefinition,
    schema: &SchemaRef,
    column: usize,
    depth: usize,
) -> Result<Expr> {
    let text = definition.columns[column].virtual_expression.as_deref().unwrap_or_default();
    let name = &definition.columns[column].name;
    let refused = |why: &str| {
        let message = format!(
            "virtual column {}.{name} cannot be computed here: `{text}` ({why}); select other columns",
            definition.name
        );
        Error::new(ErrorKind::Unsupported, message)
    };
    if depth > MAX_DEPTH {
        return Err(refused("it is made of itself").into());
    }
    let fields = DFSchema::try_from(schema.as_ref().clone())?;
    let state_of = state.as_any().downcast_ref::<SessionState>();
    let parsed =
        state_of.ok_or_else(|| refused("no SQL parser is at hand"))?.create_logical_expr(text, &fields);
    let expression = parsed.map_err(|error| refused(&Error::from(error).to_string()))?;
    expression
        .transform(|node| {
            let Expr::Column(inner) = &node else { return Ok(Transformed::no(node)) };
            let Some(number) = definition.column(&inner.name) else { return Ok(Transformed::no(node)) };
            if definition.columns[number.0].virtual_expression.is_none() {
                return Ok(Transformed::no(node));
            }
            let replacement = plan(state, definition, schema, number.0, depth + 1)?;
            let replacement = replacement.cast_to(schema.field(number.0).data_type(), &fields)?;
            // What was put in has no virtual columns left.
            Ok(Transformed::new(replacement, true, TreeNodeRecursion::Jump))
        })
        .data()
}
