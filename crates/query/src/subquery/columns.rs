//! Outer columns in expressions, and names of columns that a rewriting adds.

use std::sync::atomic::{AtomicU64, Ordering};

use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, DFSchema, Result};
use datafusion::logical_expr::{Expr, LogicalPlan};

/// A name that no other column has.
pub(super) fn fresh(what: &str) -> String {
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    format!("__{what}_{}", NUMBER.fetch_add(1, Ordering::Relaxed))
}

/// Whether an expression has an outer column.
pub(super) fn is_correlated(expression: &Expr) -> bool {
    let mut found = false;
    let _ = expression.apply(|part| {
        found |= matches!(part, Expr::OuterReferenceColumn(..));
        Ok(if found { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
    });
    found
}

/// Whether a plan has an outer column anywhere.
pub(super) fn has_outer(plan: &LogicalPlan) -> bool {
    !plan.all_out_ref_exprs().is_empty()
}

/// The expression with its outer columns of `schema` as columns of it; outer columns of queries further out stay.
pub(super) fn unbound(expression: Expr, schema: &DFSchema) -> Result<Expr> {
    let replaced = expression.transform(|part| {
        Ok(match part {
            Expr::OuterReferenceColumn(_, column) if schema.has_column(&column) => {
                Transformed::yes(Expr::Column(column))
            }
            other => Transformed::no(other),
        })
    })?;
    Ok(replaced.data)
}

/// The expression with each outer column for which there is one in `found` replaced.
pub(super) fn bound(expression: Expr, found: &dyn Fn(&Expr) -> Option<Column>) -> Result<Expr> {
    let replaced = expression.transform(|part| {
        Ok(match &part {
            Expr::OuterReferenceColumn(..) => match found(&part) {
                Some(column) => Transformed::yes(Expr::Column(column)),
                None => Transformed::no(part),
            },
            _ => Transformed::no(part),
        })
    })?;
    Ok(replaced.data)
}

/// The columns of a plan as expressions.
pub(super) fn all(plan: &LogicalPlan) -> Vec<Expr> {
    plan.schema().columns().into_iter().map(Expr::Column).collect()
}
