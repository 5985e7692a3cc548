//! Conditions of WHERE with subqueries.
//!
//! | condition | becomes |
//! |---|---|
//! | `EXISTS (...)`, `IN (...)` | a semi join |
//! | `NOT EXISTS (...)` | an anti join |
//! | `NOT IN (...)` | an anti join on what is not false; where nothing can be NULL, on what is true |
//! | another | a filter over the attached result |

use std::sync::Arc;

use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::common::{JoinConstraint, NullEquality, Result};
use datafusion::functions_aggregate::count::count_udaf;
use datafusion::logical_expr::utils::split_conjunction_owned;
use datafusion::logical_expr::{
    BinaryExpr, Expr, ExprSchemable, Join, JoinType, LogicalPlan, LogicalPlanBuilder, Operator, cast, ident,
    lit,
};

use datafusion::arrow::datatypes::DataType;

use super::aggregates::ANY_TRUE;
use super::attach::{Attached, aggregate, has_one_row};
use super::columns::{all, fresh, has_outer, unbound};
use super::keyed::{input_of, over_aggregate};
use super::pull::{Pulled, pulled, pulled_for_existence};
use super::rule::{has_subquery, rewritten};

/// The rows of `input` for which `condition` is true.
pub(super) fn filtered(input: LogicalPlan, condition: Expr) -> Result<LogicalPlan> {
    let columns = all(&input);
    let conditions = split_conjunction_owned(condition);
    let (with, without): (Vec<Expr>, Vec<Expr>) = conditions.into_iter().partition(has_subquery);
    let mut plan = match without.into_iter().reduce(Expr::and) {
        Some(plain) => LogicalPlanBuilder::from(input).filter(plain)?.build()?,
        None => input,
    };
    let mut rest = Vec::new();
    for condition in with {
        match joined(&plan, &condition)? {
            Some(joined) => plan = joined,
            None => rest.push(condition),
        }
    }
    if rest.is_empty() {
        return Ok(plan);
    }
    let mut attached = Attached::to(plan);
    let rest = rest.into_iter().map(|condition| attached.rewrite(condition)).collect::<Result<Vec<_>>>()?;
    let Some(condition) = rest.into_iter().reduce(Expr::and) else { return Ok(attached.plan) };
    LogicalPlanBuilder::from(attached.plan).filter(condition)?.project(columns)?.build()
}

/// The rows as a semi or anti join, if the condition can be one.
fn joined(input: &LogicalPlan, condition: &Expr) -> Result<Option<LogicalPlan>> {
    let (negated, condition) = match condition {
        Expr::Not(inner) => (true, inner.as_ref()),
        other => (false, other),
    };
    match condition {
        Expr::Exists(exists) => {
            let plan = rewritten(exists.subquery.subquery.as_ref().clone())?;
            by_existence(input, &plan, exists.negated != negated)
        }
        Expr::ScalarSubquery(subquery) => {
            let plan = rewritten(subquery.subquery.as_ref().clone())?;
            by_comparison(input, &plan, negated)
        }
        _ => Ok(None),
    }
}

fn by_existence(input: &LogicalPlan, subquery: &LogicalPlan, negated: bool) -> Result<Option<LogicalPlan>> {
    // An aggregate has a row even of no rows.
    if has_one_row(subquery) {
        let keep = if negated { lit(false) } else { lit(true) };
        return Ok(Some(LogicalPlanBuilder::from(input.clone()).filter(keep)?.build()?));
    }
    let Some(rows) = pulled_for_existence(subquery)? else { return Ok(None) };
    let plan = match rows.conditions.is_empty() {
        true => LogicalPlanBuilder::from(rows.plan).limit(0, Some(1))?.build()?,
        false => rows.plan,
    };
    let join_type = if negated { JoinType::LeftAnti } else { JoinType::LeftSemi };
    Ok(Some(join(input, plan, rows.conditions, join_type)?))
}

/// `IN` and `NOT IN`: a comparison with each row.
fn by_comparison(input: &LogicalPlan, subquery: &LogicalPlan, negated: bool) -> Result<Option<LogicalPlan>> {
    let Some((expressions, aggregate)) = over_aggregate(subquery)? else { return Ok(None) };
    let ([Expr::Column(_)], [any], []) =
        (expressions.as_slice(), aggregate.aggr_expr.as_slice(), aggregate.group_expr.as_slice())
    else {
        return Ok(None);
    };
    let Expr::AggregateFunction(any) = any.clone().unalias() else { return Ok(None) };
    let [compared] = any.params.args.as_slice() else { return Ok(None) };
    if any.func.name() != ANY_TRUE {
        return Ok(None);
    }
    let Some(rows) = pulled(&input_of(aggregate))? else { return Ok(None) };
    let both = joint(input, &rows.plan)?;
    let compared = unbound(compared.clone(), input.schema())?;
    let compared = match compared.get_type(&both)? {
        DataType::Boolean => compared,
        _ => cast(compared, DataType::Boolean),
    };
    if !negated {
        let conditions = [rows.conditions, vec![compared]].concat();
        return Ok(Some(join(input, rows.plan, conditions, JoinType::LeftSemi)?));
    }
    if !compared.nullable(&both)? {
        let conditions = [rows.conditions, vec![compared]].concat();
        return Ok(Some(join(input, rows.plan, conditions, JoinType::LeftAnti)?));
    }
    if let Some((left, right)) = sides(&compared, input, &rows)? {
        return Ok(Some(guarded(input, rows.plan, compared, left, right)?));
    }
    let conditions = [rows.conditions, vec![compared.is_not_false()]].concat();
    Ok(Some(join(input, rows.plan, conditions, JoinType::LeftAnti)?))
}

/// The sides of an equality between a row of `input` and one of a subquery that is not correlated.
fn sides(compared: &Expr, input: &LogicalPlan, rows: &Pulled) -> Result<Option<(Expr, Expr)>> {
    let Expr::BinaryExpr(BinaryExpr { left, op: Operator::Eq, right }) = compared else { return Ok(None) };
    if !rows.conditions.is_empty() || has_outer(&rows.plan) || reads_apply(&rows.plan)? {
        return Ok(None);
    }
    let is_of = |expression: &Expr, plan: &LogicalPlan| -> Result<bool> {
        let mut is_of = true;
        expression.apply(|part| {
            is_of &= match part {
                Expr::Column(column) => plan.schema().has_column(column),
                Expr::OuterReferenceColumn(..) => false,
                _ => true,
            };
            Ok(TreeNodeRecursion::Continue)
        })?;
        Ok(is_of)
    };
    Ok((is_of(left, input)? && is_of(right, &rows.plan)?)
        .then(|| (left.as_ref().clone(), right.as_ref().clone())))
}

/// A plan that is used twice must not have an [`Apply`](super::apply::Apply), whose domain is one.
fn reads_apply(plan: &LogicalPlan) -> Result<bool> {
    plan.exists(|node| Ok(matches!(node, LogicalPlan::Extension(_))))
}

/// `left NOT IN (SELECT right)` of sides that may be NULL: true of no rows; else there must be no NULL on either side
/// and no equal row. So the anti join can be one by the equality.
fn guarded(
    input: &LogicalPlan,
    rows: LogicalPlan,
    compared: Expr,
    left: Expr,
    right: Expr,
) -> Result<LogicalPlan> {
    let columns = all(input);
    let (count, known) = (fresh("rows"), fresh("known"));
    let counts = LogicalPlanBuilder::from(rows.clone())
        .aggregate(
            Vec::<Expr>::new(),
            vec![
                aggregate(count_udaf(), lit(1_i64)).alias(&count),
                aggregate(count_udaf(), right).alias(&known),
            ],
        )?
        .build()?;
    let unequal = join(input, rows, vec![compared], JoinType::LeftAnti)?;
    let is_known = left.is_not_null().and(ident(&count).eq(ident(&known)));
    LogicalPlanBuilder::from(unequal)
        .cross_join(counts)?
        .filter(ident(&count).eq(lit(0_i64)).or(is_known))?
        .project(columns)?
        .build()
}

fn joint(left: &LogicalPlan, right: &LogicalPlan) -> Result<datafusion::common::DFSchema> {
    left.schema().join(right.schema())
}

fn join(
    input: &LogicalPlan,
    rows: LogicalPlan,
    conditions: Vec<Expr>,
    join_type: JoinType,
) -> Result<LogicalPlan> {
    let conditions: Vec<Expr> =
        conditions.into_iter().map(|condition| unbound(condition, input.schema())).collect::<Result<_>>()?;
    let filter = conditions.into_iter().reduce(Expr::and).unwrap_or_else(|| lit(true));
    Ok(LogicalPlan::Join(Join::try_new(
        Arc::new(input.clone()),
        Arc::new(rows),
        Vec::new(),
        Some(filter),
        join_type,
        JoinConstraint::On,
        NullEquality::NullEqualsNothing,
        false,
    )?))
}
