//! Joins whose right side refers to columns of the left one: LATERAL derived tables, and JSON_TABLE.
//!
//! The right side is run once over the distinct values of these columns ([`Domain`]); each row of the left side is
//! joined to the rows of its values ([`Apply`] of [`Kind::Rows`]). The condition of a left join becomes a filter of the
//! right side.

use std::sync::Arc;

use datafusion::common::Result;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::logical_expr::{Expr, Join, JoinType, LogicalPlan, LogicalPlanBuilder};

use super::apply::{Apply, Kind};
use super::columns::{all, fresh};
use super::domain::Domain;
use super::rule::{has_subquery, unsupported};

/// Whether the right side of a join has outer columns that are the left side's.
pub(super) fn is_lateral(join: &Join) -> bool {
    let outer = join.right.all_out_ref_exprs();
    outer.iter().any(|column| match column {
        Expr::OuterReferenceColumn(_, column) => join.left.schema().has_column(column),
        _ => false,
    })
}

/// The plan of such a join.
pub(super) fn joined(join: Join) -> Result<LogicalPlan> {
    let keeps = match join.join_type {
        JoinType::Inner => false,
        JoinType::Left => true,
        _ => return Err(unsupported("a LATERAL table in this kind of join is not run")),
    };
    let equal = join.on.iter().map(|(left, right)| left.clone().eq(right.clone()));
    let condition = equal.chain(join.filter.iter().cloned()).reduce(Expr::and);
    let (left, mut right) = (Arc::unwrap_or_clone(join.left), Arc::unwrap_or_clone(join.right));
    let schema = Arc::clone(left.schema());
    let mut above = None;
    match condition {
        Some(condition) if keeps => {
            if has_subquery(&condition) {
                return Err(unsupported("a subquery in the condition of a LATERAL table is not run"));
            }
            let bound = condition.transform(|part| {
                Ok(match part {
                    Expr::Column(column) if schema.has_column(&column) => {
                        let (_, field) =
                            schema.qualified_field_from_column(&column).map(|(q, f)| (q, Arc::clone(f)))?;
                        Transformed::yes(Expr::OuterReferenceColumn(field, column))
                    }
                    other => Transformed::no(other),
                })
            })?;
            right = LogicalPlanBuilder::from(right).filter(bound.data)?.build()?;
        }
        condition => above = condition,
    }
    let domain = Domain::of(&right, &schema)?;
    let columns = all(&right);
    let over = domain.over(&right)?;
    let outputs = std::iter::once(Expr::Column(over.id)).chain(columns);
    let inner = LogicalPlanBuilder::from(over.plan).project(outputs)?.build()?;
    let plan = Apply::plan(left, inner, domain, Kind::Rows { keeps }, &fresh("lateral"))?;
    match above {
        Some(condition) => LogicalPlanBuilder::from(plan).filter(condition)?.build(),
        None => Ok(plan),
    }
}
