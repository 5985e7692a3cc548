//! Equalities of a subquery's texts with those of the query around it.
//!
//! The engine takes a subquery apart only where a plain column equals something from outside. So the sort key becomes a
//! column of a projection below:
//!
//! ```text
//! Projection: m.g, m.v
//!   Filter: sort_key_0 = sort_key(outer_ref(w.g))
//!     Projection: m.g, m.v, sort_key(m.g) AS sort_key_0
//! ```

use std::sync::Arc;

use datafusion::common::{Column, Result};
use datafusion::logical_expr::utils::{conjunction, split_conjunction_owned};
use datafusion::logical_expr::{BinaryExpr, Expr, Filter, LogicalPlan, Operator, Projection, binary_expr};

use super::sort_key;

/// The filter with keys as columns; as it is if it has no such equality.
pub(super) fn keys_as_columns(filter: Filter) -> Result<LogicalPlan> {
    let mut keys = Vec::new();
    let parts: Vec<Expr> = split_conjunction_owned(filter.predicate.clone())
        .into_iter()
        .map(|part| with_columns(part, &mut keys))
        .collect();
    let Some(predicate) = conjunction(parts).filter(|_| !keys.is_empty()) else {
        return Ok(LogicalPlan::Filter(filter));
    };
    let columns: Vec<Expr> = filter
        .input
        .schema()
        .iter()
        .map(|(qualifier, field)| Expr::Column(Column::new(qualifier.cloned(), field.name())))
        .collect();
    let below = Projection::try_new(columns.iter().cloned().chain(keys).collect(), filter.input)?;
    let filter = Filter::try_new(predicate, Arc::new(LogicalPlan::Projection(below)))?;
    let above = Projection::try_new(columns, Arc::new(LogicalPlan::Filter(filter)))?;
    Ok(LogicalPlan::Projection(above))
}

fn with_columns(part: Expr, keys: &mut Vec<Expr>) -> Expr {
    let is_key = |side: &Expr| {
        matches!(side, Expr::ScalarFunction(function) if function.name() == sort_key::NAME)
            && !side.contains_outer()
    };
    match part {
        Expr::BinaryExpr(BinaryExpr { left, op: Operator::Eq, right })
            if left.contains_outer() != right.contains_outer() && (is_key(&left) || is_key(&right)) =>
        {
            let mut column = |side: Expr| match is_key(&side) {
                true => {
                    let name = format!("sort_key_{}", keys.len());
                    keys.push(side.alias(name.clone()));
                    Expr::Column(Column::from_name(name))
                }
                false => side,
            };
            let (left, right) = (column(*left), column(*right));
            binary_expr(left, Operator::Eq, right)
        }
        other => other,
    }
}
