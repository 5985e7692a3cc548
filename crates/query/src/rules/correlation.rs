//! Refuses correlated subqueries that DataFusion would decorrelate wrongly.
//!
//! DataFusion moves a condition with columns of the outer query from where it stands to the join that replaces the
//! subquery. That is right only if the operators between do the same with more rows: it is wrong below LIMIT, a window,
//! a set operation, grouping sets, an aggregate without groups of an EXISTS, and on the side of an outer join that is
//! filled with NULL.

use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::common::{JoinType, Result, plan_err};
use datafusion::logical_expr::{Expr, LogicalPlan, Subquery};

/// Whose subquery it is.
#[derive(Clone, Copy, PartialEq)]
enum Use {
    /// EXISTS and IN.
    Predicate,
    Value,
}

/// Looks at the subqueries of an operator's expressions.
///
/// # Errors
/// If one would give other rows.
pub(super) fn check(plan: &LogicalPlan) -> Result<()> {
    plan.apply_expressions(|expression| {
        expression.apply(|node| {
            match node {
                Expr::Exists(exists) => checked(&exists.subquery, Use::Predicate)?,
                Expr::InSubquery(within) => checked(&within.subquery, Use::Predicate)?,
                Expr::ScalarSubquery(subquery) => checked(subquery, Use::Value)?,
                _ => {}
            }
            Ok(TreeNodeRecursion::Continue)
        })
    })?;
    Ok(())
}

fn checked(subquery: &Subquery, of: Use) -> Result<()> {
    if !subquery.outer_ref_columns.is_empty() {
        correlated(&subquery.subquery, of)?;
    }
    Ok(())
}

/// Whether a plan has columns of the outer query in it, if they may be moved above it.
fn correlated(plan: &LogicalPlan, of: Use) -> Result<bool> {
    let mut has_own = false;
    plan.apply_expressions(|expression| {
        has_own |= expression.contains_outer();
        Ok(TreeNodeRecursion::Continue)
    })?;
    let mut below = Vec::new();
    for input in plan.inputs() {
        below.push(correlated(input, of)?);
    }
    let is_below = below.contains(&true);
    if is_below {
        passes(plan, &below, of)?;
    }
    // Conditions of WHERE are moved, and columns of a list are refused where they cannot be computed.
    if has_own && !matches!(plan, LogicalPlan::Filter(_) | LogicalPlan::Projection(_)) {
        return refused("outside of WHERE").map(|()| true);
    }
    Ok(is_below || has_own)
}

/// Whether a condition may be moved from below an operator to above it.
fn passes(plan: &LogicalPlan, below: &[bool], of: Use) -> Result<()> {
    let (left, right) = (below.first() == Some(&true), below.get(1) == Some(&true));
    match plan {
        LogicalPlan::Projection(_) | LogicalPlan::Filter(_) | LogicalPlan::Distinct(_) => Ok(()),
        LogicalPlan::SubqueryAlias(_) => refused("inside of a derived table"),
        LogicalPlan::Sort(sort) if sort.fetch.is_none() => Ok(()),
        LogicalPlan::Join(join) => match join.join_type {
            JoinType::Inner => Ok(()),
            JoinType::Left | JoinType::LeftSemi | JoinType::LeftAnti | JoinType::LeftMark if !right => Ok(()),
            JoinType::Right | JoinType::RightSemi | JoinType::RightAnti | JoinType::RightMark if !left => {
                Ok(())
            }
            _ => refused("on the optional side of an outer join"),
        },
        LogicalPlan::Aggregate(aggregate) => {
            if aggregate.group_expr.iter().any(|key| matches!(key, Expr::GroupingSet(_))) {
                return refused("below WITH ROLLUP");
            }
            match aggregate.group_expr.is_empty() && of == Use::Predicate {
                true => refused("below an aggregate without GROUP BY whose result is filtered or limited"),
                false => Ok(()),
            }
        }
        LogicalPlan::Limit(_) | LogicalPlan::Sort(_) => refused("below LIMIT or OFFSET"),
        LogicalPlan::Window(_) => refused("below a window function"),
        LogicalPlan::Union(_) => refused("below UNION"),
        _ => refused("in this place"),
    }
}

fn refused(place: &str) -> Result<()> {
    plan_err!("a subquery uses columns of the outer query {place}, which is not supported; write a join")
}
