//! The rule: from the innermost query out, each node's subqueries are attached to its input.

use std::sync::Arc;

use datafusion::common::Result;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::logical_expr::utils::split_conjunction_owned;
use datafusion::logical_expr::{
    Aggregate, Expr, Join, JoinType, LogicalPlan, LogicalPlanBuilder, Projection, Window,
};
use datafusion::optimizer::AnalyzerRule;

use super::attach::Attached;
use super::columns::all;
use super::{lateral, semi};
use crate::{Error, ErrorKind};

/// Takes subqueries out of expressions. See the [module](super).
#[derive(Debug)]
pub(crate) struct SubqueryRule;

impl AnalyzerRule for SubqueryRule {
    fn name(&self) -> &str {
        "tanada_subqueries"
    }

    fn analyze(&self, plan: LogicalPlan, _: &ConfigOptions) -> Result<LogicalPlan> {
        rewritten(plan)
    }
}

/// A plan without subqueries in expressions; its outer columns stay.
pub(super) fn rewritten(plan: LogicalPlan) -> Result<LogicalPlan> {
    Ok(plan.transform_up(node)?.data)
}

/// What is not run.
pub(super) fn unsupported(message: &str) -> datafusion::common::DataFusionError {
    Error::new(ErrorKind::Unsupported, message).into()
}

/// Whether an expression has a subquery.
pub(super) fn has_subquery(expression: &Expr) -> bool {
    let mut found = false;
    let _ = expression.apply(|part| {
        found |= matches!(
            part,
            Expr::ScalarSubquery(_) | Expr::Exists(_) | Expr::InSubquery(_) | Expr::SetComparison(_)
        );
        Ok(if found { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
    });
    found
}

fn node(plan: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
    let plan = match plan {
        // A LATERAL table.
        LogicalPlan::Subquery(subquery) => {
            return Ok(Transformed::yes(Arc::unwrap_or_clone(subquery.subquery)));
        }
        LogicalPlan::Join(join) if lateral::is_lateral(&join) => {
            return Ok(Transformed::yes(lateral::joined(join)?));
        }
        plan => plan,
    };
    let mut has = false;
    plan.apply_expressions(|expression| {
        has |= has_subquery(expression);
        Ok(TreeNodeRecursion::Continue)
    })?;
    if !has {
        return Ok(Transformed::no(plan));
    }
    Ok(Transformed::yes(match plan {
        LogicalPlan::Filter(filter) => {
            let input = Arc::unwrap_or_clone(filter.input);
            semi::filtered(input, filter.predicate)?
        }
        LogicalPlan::Projection(projection) => of_projection(projection)?,
        LogicalPlan::Aggregate(aggregate) => of_aggregate(aggregate)?,
        LogicalPlan::Sort(mut sort) => {
            let columns = all(&sort.input);
            let mut attached = Attached::to(Arc::unwrap_or_clone(sort.input));
            for key in &mut sort.expr {
                key.expr = attached.rewrite(key.expr.clone())?;
            }
            sort.input = Arc::new(attached.plan);
            LogicalPlanBuilder::from(LogicalPlan::Sort(sort)).project(columns)?.build()?
        }
        LogicalPlan::Window(window) => of_window(window)?,
        LogicalPlan::Join(join) => of_join(join)?,
        _ => return Err(unsupported("a subquery stands where subqueries are not run")),
    }))
}

/// The expressions over the input with their subqueries attached, under the names that they had.
fn renamed(attached: &mut Attached, expressions: Vec<Expr>) -> Result<Vec<Expr>> {
    let mut renamed = Vec::with_capacity(expressions.len());
    for expression in expressions {
        if !has_subquery(&expression) {
            renamed.push(expression);
            continue;
        }
        let (qualifier, name) = expression.qualified_name();
        renamed.push(attached.rewrite(expression)?.unalias().alias_qualified(qualifier, name));
    }
    Ok(renamed)
}

fn of_projection(projection: Projection) -> Result<LogicalPlan> {
    let mut attached = Attached::to(Arc::unwrap_or_clone(projection.input));
    let expressions = renamed(&mut attached, projection.expr)?;
    LogicalPlanBuilder::from(attached.plan).project(expressions)?.build()
}

fn of_aggregate(aggregate: Aggregate) -> Result<LogicalPlan> {
    if aggregate.group_expr.iter().any(|group| matches!(group, Expr::GroupingSet(_)) && has_subquery(group)) {
        return Err(unsupported("WITH ROLLUP over a subquery is not run"));
    }
    let mut attached = Attached::to(Arc::unwrap_or_clone(aggregate.input));
    let groups = renamed(&mut attached, aggregate.group_expr)?;
    let aggregates = renamed(&mut attached, aggregate.aggr_expr)?;
    Ok(LogicalPlan::Aggregate(Aggregate::try_new(Arc::new(attached.plan), groups, aggregates)?))
}

fn of_window(window: Window) -> Result<LogicalPlan> {
    let columns: Vec<Expr> = window.schema.columns().into_iter().map(Expr::Column).collect();
    let mut attached = Attached::to(Arc::unwrap_or_clone(window.input));
    let expressions = renamed(&mut attached, window.window_expr)?;
    let window = Window::try_new(expressions, Arc::new(attached.plan))?;
    LogicalPlanBuilder::from(LogicalPlan::Window(window)).project(columns)?.build()
}

/// The condition of an inner join is one of WHERE; that of an outer join is attached to the side that it is about.
fn of_join(join: Join) -> Result<LogicalPlan> {
    let conditions: Vec<Expr> = join.filter.iter().cloned().flat_map(split_conjunction_owned).collect();
    let (with, without): (Vec<Expr>, Vec<Expr>) = conditions.into_iter().partition(has_subquery);
    if join.on.iter().any(|(left, right)| has_subquery(left) || has_subquery(right)) {
        return Err(unsupported("a subquery in this condition of a join is not run"));
    }
    if join.join_type == JoinType::Inner {
        let filter = without.into_iter().reduce(Expr::and);
        let plan = Join::try_new(
            join.left,
            join.right,
            join.on,
            filter,
            join.join_type,
            join.join_constraint,
            join.null_equality,
            join.null_aware,
        )?;
        return match with.into_iter().reduce(Expr::and) {
            Some(condition) => semi::filtered(LogicalPlan::Join(plan), condition),
            None => Ok(LogicalPlan::Join(plan)),
        };
    }
    let columns: Vec<Expr> = join.schema.columns().into_iter().map(Expr::Column).collect();
    let mut left = Attached::to(Arc::unwrap_or_clone(join.left));
    let mut right = Attached::to(Arc::unwrap_or_clone(join.right));
    let mut conditions = without;
    for condition in with {
        let rewritten = match right.covers(&condition)? {
            true => right.rewrite(condition)?,
            false if left.covers(&condition)? => left.rewrite(condition)?,
            false => {
                return Err(unsupported(
                    "a subquery over both sides of an outer join's condition is not run",
                ));
            }
        };
        conditions.push(rewritten);
    }
    let plan = Join::try_new(
        Arc::new(left.plan),
        Arc::new(right.plan),
        join.on,
        conditions.into_iter().reduce(Expr::and),
        join.join_type,
        join.join_constraint,
        join.null_equality,
        join.null_aware,
    )?;
    LogicalPlanBuilder::from(LogicalPlan::Join(plan)).project(columns)?.build()
}
