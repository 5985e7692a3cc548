//! An aggregate that is correlated by equalities: grouped by the inner sides, and joined by them.

use std::sync::Arc;

use datafusion::arrow::datatypes::DataType;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, DFSchema, Result};
use datafusion::logical_expr::{
    Aggregate, BinaryExpr, Expr, ExprSchemable, JoinType, LogicalPlan, LogicalPlanBuilder, Operator, lit,
    when,
};

use super::columns::{fresh, is_correlated, unbound};
use super::pull::pulled;
use super::values::of_no_rows;

/// The expressions of a plan's columns over the aggregate that it is made of, if it is made of one alone.
pub(super) fn over_aggregate(plan: &LogicalPlan) -> Result<Option<(Vec<Expr>, &Aggregate)>> {
    Ok(match plan {
        LogicalPlan::Aggregate(aggregate) => {
            let columns = aggregate.schema.columns().into_iter().map(Expr::Column);
            Some((columns.collect(), aggregate))
        }
        LogicalPlan::SubqueryAlias(alias) => over_aggregate(&alias.input)?,
        LogicalPlan::Projection(projection) => {
            let Some((inner, aggregate)) = over_aggregate(&projection.input)? else { return Ok(None) };
            let schema = projection.input.schema();
            let expressions = projection.expr.iter().map(|expression| {
                let replaced = expression.clone().unalias_nested().data.transform(|part| {
                    Ok(match &part {
                        Expr::Column(column) => {
                            Transformed::yes(inner[schema.index_of_column(column)?].clone())
                        }
                        _ => Transformed::no(part),
                    })
                })?;
                Ok(replaced.data)
            });
            Some((expressions.collect::<Result<_>>()?, aggregate))
        }
        _ => None,
    })
}

/// `input` joined with the subquery, and the subquery's result over it; `None` if it is no such aggregate.
pub(super) fn attached(input: &LogicalPlan, subquery: &LogicalPlan) -> Result<Option<(LogicalPlan, Expr)>> {
    let Some((expressions, aggregate)) = over_aggregate(subquery)? else { return Ok(None) };
    let [result] = expressions.as_slice() else { return Ok(None) };
    let is_plain = |expression: &Expr| !is_correlated(expression);
    if !aggregate.group_expr.is_empty() || !is_plain(result) || !aggregate.aggr_expr.iter().all(is_plain) {
        return Ok(None);
    }
    let Some(rows) = pulled(&aggregate.input)? else { return Ok(None) };
    let mut groups = Vec::new();
    let mut joined: Option<Expr> = None;
    let mut first = None;
    for condition in rows.conditions {
        let Some((inner, outer)) = equality(condition, rows.plan.schema(), input.schema())? else {
            return Ok(None);
        };
        let name = fresh("key");
        groups.push(inner.alias(&name));
        let key = Expr::Column(Column::new_unqualified(name));
        first.get_or_insert_with(|| key.clone());
        let equal = outer.eq(key);
        joined = Some(match joined {
            Some(all) => all.and(equal),
            None => equal,
        });
    }
    let (Some(joined), Some(first)) = (joined, first) else { return Ok(None) };
    let names: Vec<String> = aggregate.aggr_expr.iter().map(|_| fresh("aggregate")).collect();
    let aggregates: Vec<Expr> = aggregate
        .aggr_expr
        .iter()
        .zip(&names)
        .map(|(expression, name)| expression.clone().unalias().alias(name))
        .collect();
    let grouped = LogicalPlanBuilder::from(rows.plan).aggregate(groups, aggregates)?.build()?;
    let plan = LogicalPlanBuilder::from(input.clone()).join_on(grouped, JoinType::Left, [joined])?.build()?;
    let empty = of_no_rows(aggregate)?;
    let columns = aggregate.schema.columns();
    let result = result.clone().transform(|part| {
        let Expr::Column(column) = &part else { return Ok(Transformed::no(part)) };
        let Some(at) = columns.iter().position(|known| known == column) else {
            return Ok(Transformed::no(part));
        };
        let value = Expr::Column(Column::new_unqualified(&names[at]));
        Ok(Transformed::yes(match &empty[at] {
            None => value,
            Some(none) => when(first.clone().is_null(), lit(none.clone())).otherwise(value)?,
        }))
    })?;
    Ok(Some((plan, result.data)))
}

/// The inner and the outer side of an equality in which equal means the same value.
fn equality(condition: Expr, inner: &DFSchema, outer: &DFSchema) -> Result<Option<(Expr, Expr)>> {
    let Expr::BinaryExpr(BinaryExpr { left, op: Operator::Eq, right }) = condition else { return Ok(None) };
    let (inner_side, outer_side) = match (is_correlated(&left), is_correlated(&right)) {
        (false, true) => (left, right),
        (true, false) => (right, left),
        _ => return Ok(None),
    };
    let outer_side = unbound(*outer_side, outer)?;
    if has_columns_beyond(&outer_side, outer)? || has_columns_beyond(&inner_side, inner)? {
        return Ok(None);
    }
    let (one, other) = (inner_side.get_type(inner)?, outer_side.get_type(outer)?);
    let is_same = (one.is_integer() && other.is_integer())
        || (one == other && matches!(one, DataType::Date32 | DataType::Decimal128(..)));
    Ok(is_same.then_some((*inner_side, outer_side)))
}

/// Whether an expression has columns that are not of `schema`, or outer ones.
fn has_columns_beyond(expression: &Expr, schema: &DFSchema) -> Result<bool> {
    let mut beyond = false;
    expression.apply(|part| {
        beyond |= match part {
            Expr::Column(column) => !schema.has_column(column),
            Expr::OuterReferenceColumn(..) => true,
            _ => false,
        };
        Ok(TreeNodeRecursion::Continue)
    })?;
    Ok(beyond)
}

/// The input of an aggregate, shared.
pub(super) fn input_of(aggregate: &Aggregate) -> Arc<LogicalPlan> {
    Arc::clone(&aggregate.input)
}
