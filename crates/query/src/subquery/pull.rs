//! What correlates a subquery, pulled up to where it can be the condition of a join.

use datafusion::common::{Column, Result};
use datafusion::logical_expr::utils::split_conjunction_owned;
use datafusion::logical_expr::{
    Distinct, Expr, Filter, Join, JoinType, LogicalPlan, LogicalPlanBuilder, Projection, SubqueryAlias,
};

use super::columns::{all, fresh, has_outer, is_correlated};

/// A plan without outer columns, and conditions that were in it: over its columns and outer ones.
pub(super) struct Pulled {
    pub plan: LogicalPlan,
    pub conditions: Vec<Expr>,
}

/// Pulls up what correlates `plan`; `None` if a part of it counts rows or puts several together.
pub(super) fn pulled(plan: &LogicalPlan) -> Result<Option<Pulled>> {
    if !has_outer(plan) {
        return Ok(Some(Pulled { plan: plan.clone(), conditions: Vec::new() }));
    }
    match plan {
        LogicalPlan::Filter(filter) => of_filter(filter),
        LogicalPlan::Projection(projection) => of_projection(projection),
        LogicalPlan::SubqueryAlias(alias) => of_alias(alias),
        LogicalPlan::Join(join) => of_join(join),
        // The order of a subquery's rows means nothing without a limit.
        LogicalPlan::Sort(sort) if sort.fetch.is_none() => pulled(&sort.input),
        _ => Ok(None),
    }
}

/// The same for EXISTS, for which values and duplicates mean nothing.
pub(super) fn pulled_for_existence(plan: &LogicalPlan) -> Result<Option<Pulled>> {
    match plan {
        LogicalPlan::Projection(projection) => pulled_for_existence(&projection.input),
        LogicalPlan::Distinct(Distinct::All(input)) => pulled_for_existence(input),
        LogicalPlan::Sort(sort) if sort.fetch.is_none() => pulled_for_existence(&sort.input),
        LogicalPlan::Limit(limit) if keeps_a_row(limit)? => pulled_for_existence(&limit.input),
        LogicalPlan::SubqueryAlias(alias) => pulled_for_existence(&alias.input),
        other => pulled(other),
    }
}

/// Whether a LIMIT leaves a row wherever there was one.
fn keeps_a_row(limit: &datafusion::logical_expr::Limit) -> Result<bool> {
    use datafusion::logical_expr::{FetchType, SkipType};
    let skips = matches!(limit.get_skip_type()?, SkipType::Literal(0));
    let fetches = match limit.get_fetch_type()? {
        FetchType::Literal(fetch) => fetch.is_none_or(|rows| rows > 0),
        FetchType::UnsupportedExpr => false,
    };
    Ok(skips && fetches)
}

fn of_filter(filter: &Filter) -> Result<Option<Pulled>> {
    let Some(Pulled { plan, mut conditions }) = pulled(&filter.input)? else { return Ok(None) };
    let mut own = Vec::new();
    for condition in split_conjunction_owned(filter.predicate.clone()) {
        match is_correlated(&condition) {
            true => conditions.push(condition),
            false => own.push(condition),
        }
    }
    let plan = match own.into_iter().reduce(Expr::and) {
        Some(own) => LogicalPlanBuilder::from(plan).filter(own)?.build()?,
        None => plan,
    };
    Ok(Some(Pulled { plan, conditions }))
}

fn of_projection(projection: &Projection) -> Result<Option<Pulled>> {
    if projection.expr.iter().any(is_correlated) {
        return Ok(None);
    }
    let Some(Pulled { plan, conditions }) = pulled(&projection.input)? else { return Ok(None) };
    let mut outputs = projection.expr.clone();
    let conditions = exported(conditions, &mut outputs)?;
    let plan = LogicalPlanBuilder::from(plan).project(outputs)?.build()?;
    Ok(Some(Pulled { plan, conditions }))
}

/// Adds the columns of `conditions` to `outputs` under names of their own, and has the conditions use these.
fn exported(conditions: Vec<Expr>, outputs: &mut Vec<Expr>) -> Result<Vec<Expr>> {
    use datafusion::common::tree_node::{Transformed, TreeNode};
    let mut names: Vec<(Column, String)> = Vec::new();
    let mut renamed = Vec::with_capacity(conditions.len());
    for condition in conditions {
        let replaced = condition.transform(|part| {
            let Expr::Column(column) = &part else { return Ok(Transformed::no(part)) };
            let known = names.iter().find(|(known, _)| known == column).map(|(_, name)| name.clone());
            let name = known.unwrap_or_else(|| {
                let name = fresh("pulled");
                names.push((column.clone(), name.clone()));
                name
            });
            Ok(Transformed::yes(Expr::Column(Column::new_unqualified(name))))
        })?;
        renamed.push(replaced.data);
    }
    outputs.extend(names.into_iter().map(|(column, name)| Expr::Column(column).alias(name)));
    Ok(renamed)
}

fn of_alias(alias: &SubqueryAlias) -> Result<Option<Pulled>> {
    let Some(Pulled { plan, conditions }) = pulled(&alias.input)? else { return Ok(None) };
    let width = alias.input.schema().fields().len();
    let columns = all(&plan);
    let mut outputs: Vec<Expr> = columns
        .iter()
        .take(width)
        .cloned()
        .zip(alias.schema.columns())
        .map(|(inner, outer)| inner.alias_qualified(outer.relation, outer.name))
        .collect();
    let conditions = exported(conditions, &mut outputs)?;
    let plan = LogicalPlanBuilder::from(plan).project(outputs)?.build()?;
    Ok(Some(Pulled { plan, conditions }))
}

fn of_join(join: &Join) -> Result<Option<Pulled>> {
    let is_inner = join.join_type == JoinType::Inner;
    let may_left =
        matches!(join.join_type, JoinType::Inner | JoinType::Left | JoinType::LeftSemi | JoinType::LeftAnti);
    let correlated = |side: &LogicalPlan| has_outer(side);
    if (correlated(&join.left) && !may_left) || (correlated(&join.right) && !is_inner) {
        return Ok(None);
    }
    if join.on.iter().any(|(left, right)| is_correlated(left) || is_correlated(right)) {
        return Ok(None);
    }
    let Some(left) = pulled(&join.left)? else { return Ok(None) };
    let Some(right) = pulled(&join.right)? else { return Ok(None) };
    let mut conditions = [left.conditions, right.conditions].concat();
    let mut own = Vec::new();
    for condition in join.filter.iter().cloned().flat_map(split_conjunction_owned) {
        match is_correlated(&condition) {
            true if is_inner => conditions.push(condition),
            true => return Ok(None),
            false => own.push(condition),
        }
    }
    let join = Join::try_new(
        left.plan.into(),
        right.plan.into(),
        join.on.clone(),
        own.into_iter().reduce(Expr::and),
        join.join_type,
        join.join_constraint,
        join.null_equality,
        join.null_aware,
    )?;
    Ok(Some(Pulled { plan: LogicalPlan::Join(join), conditions }))
}
