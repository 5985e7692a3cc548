//! IN and EXISTS brought to forms that DataFusion decorrelates rightly.
//!
//! DataFusion makes semi, anti and mark joins of them. Three things are lost on the way, and this rule keeps them:
//!
//! 1. An aggregate without groups has one row, even of no rows. EXISTS over it is true, and IN a comparison with a
//!    scalar subquery.
//! 2. NOT IN is unknown where the value or a row of the subquery is NULL. Where the subquery is correlated, or the
//!    value is a constant, `x NOT IN (S)` of a WHERE becomes `NOT EXISTS` a row of S with `x = y OR x IS NULL OR y IS
//!    NULL`. Anywhere but as a condition of a WHERE, IN becomes a CASE of two EXISTS with its three values.
//! 3. LIMIT and OFFSET of an EXISTS decide only whether there is a row: they are taken away where they do not matter.
//!
//! What remains correlated is looked at by [`correlation`](super::correlation).

use std::sync::Arc;

use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, DFSchema, ExprSchema, Result, ScalarValue, Spans, plan_err};
use datafusion::logical_expr::expr::{Exists, InSubquery};
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::utils::{conjunction, merge_schema, split_conjunction_owned};
use datafusion::logical_expr::{
    Aggregate, Expr, ExprSchemable, Filter, LogicalPlan, LogicalPlanBuilder, Operator, Subquery, binary_expr,
    lit, when,
};
use datafusion::optimizer::AnalyzerRule;

use super::correlation;

/// The rule.
#[derive(Debug)]
pub(super) struct SubqueryRule;

impl AnalyzerRule for SubqueryRule {
    fn name(&self) -> &str {
        "subqueries"
    }

    fn analyze(&self, plan: LogicalPlan, _: &ConfigOptions) -> Result<LogicalPlan> {
        plan.transform_up_with_subqueries(|node| {
            let rewritten = match node {
                LogicalPlan::Filter(filter) => filtered(filter)?,
                node => {
                    let schema = merge_schema(&node.inputs());
                    let names = NamePreserver::new(&node);
                    node.map_expressions(|expression| {
                        let name = names.save(&expression);
                        Ok(valued(expression, &schema)?.update_data(|expression| name.restore(expression)))
                    })?
                }
            };
            correlation::check(&rewritten.data)?;
            Ok(rewritten)
        })
        .data()
    }
}

/// The conditions of a WHERE: unknown is as good as false in each.
fn filtered(filter: Filter) -> Result<Transformed<LogicalPlan>> {
    let schema = merge_schema(&[filter.input.as_ref()]);
    let mut is_changed = false;
    let mut conditions = Vec::new();
    for condition in split_conjunction_owned(filter.predicate.clone()) {
        let rewritten = condition_of(condition, &schema)?;
        is_changed |= rewritten.transformed;
        conditions.push(rewritten.data);
    }
    match conjunction(conditions) {
        Some(predicate) if is_changed => {
            Ok(Transformed::yes(LogicalPlan::Filter(Filter::try_new(predicate, filter.input)?)))
        }
        _ => Ok(Transformed::no(LogicalPlan::Filter(filter))),
    }
}

fn condition_of(condition: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    let condition = match condition {
        Expr::Not(inner) => match *inner {
            Expr::InSubquery(within) => Expr::InSubquery(InSubquery { negated: !within.negated, ..within }),
            Expr::Exists(exists) => Expr::Exists(Exists { negated: !exists.negated, ..exists }),
            other => Expr::Not(Box::new(other)),
        },
        other => other,
    };
    match condition {
        Expr::InSubquery(within) => {
            if let Some(compared) = of_one_row(&within)? {
                return Ok(Transformed::yes(compared));
            }
            let is_constant = within.expr.column_refs().is_empty();
            if !within.negated || !(is_correlated(&within.subquery) || is_constant) {
                return Ok(Transformed::yes(Expr::InSubquery(within)));
            }
            let rows = Rows::of(&within.subquery)?;
            let value = outer(&within.expr, schema)?;
            let mut excluded = value.clone().eq(rows.output.clone());
            if within.expr.nullable(schema)? {
                excluded = excluded.or(value.is_null());
            }
            if rows.is_nullable {
                excluded = excluded.or(rows.output.clone().is_null());
            }
            Ok(Transformed::yes(rows.exist(Some(excluded), true)?))
        }
        Expr::Exists(within) => existing(within),
        other => valued(other, schema),
    }
}

/// Subqueries anywhere in an expression, with their three values.
fn valued(expression: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    expression.transform_down(|node| match node {
        Expr::InSubquery(within) => {
            let of_one_row = of_one_row(&within)?;
            Ok(Transformed::yes(match of_one_row {
                Some(compared) => compared,
                None => three_valued(&within, schema)?,
            }))
        }
        Expr::Exists(within) => existing(within),
        node => Ok(Transformed::no(node)),
    })
}

/// `x IN (S)` as CASE: true if a row of S equals x, unknown if x or a row of S is NULL, else false.
fn three_valued(within: &InSubquery, schema: &DFSchema) -> Result<Expr> {
    let rows = Rows::of(&within.subquery)?;
    let is_equal = outer(&within.expr, schema)?.eq(rows.output.clone());
    let unknown = ScalarValue::Boolean(None);
    let mut case = when(rows.exist(Some(is_equal), false)?, lit(!within.negated));
    if within.expr.nullable(schema)? {
        let is_unknown = within.expr.as_ref().clone().is_null();
        case = case.when(is_unknown.and(rows.exist(None, false)?), lit(unknown.clone()));
    }
    if rows.is_nullable {
        case = case.when(rows.exist(Some(rows.output.clone().is_null()), false)?, lit(unknown));
    }
    case.otherwise(lit(within.negated))
}

/// An IN over an aggregate without groups compares with its one row.
fn of_one_row(within: &InSubquery) -> Result<Option<Expr>> {
    if !is_correlated(&within.subquery) || groupless(&within.subquery.subquery).is_none() {
        return Ok(None);
    }
    let operator = if within.negated { Operator::NotEq } else { Operator::Eq };
    let value = Expr::ScalarSubquery(within.subquery.clone());
    Ok(Some(binary_expr(within.expr.as_ref().clone(), operator, value)))
}

/// An EXISTS without what does not decide it, or its value where that is known.
fn existing(within: Exists) -> Result<Transformed<Expr>> {
    let Exists { mut subquery, negated } = within;
    let mut is_changed = false;
    while let LogicalPlan::Limit(limit) = subquery.subquery.as_ref() {
        use datafusion::logical_expr::{FetchType, SkipType};
        match (limit.get_skip_type()?, limit.get_fetch_type()?) {
            (_, FetchType::Literal(Some(0))) => return Ok(Transformed::yes(lit(negated))),
            (SkipType::Literal(0), FetchType::Literal(_)) => {
                subquery.subquery = Arc::clone(&limit.input);
                is_changed = true;
            }
            (SkipType::Literal(_), _) if groupless(&limit.input).is_some() => {
                return Ok(Transformed::yes(lit(negated)));
            }
            _ => break,
        }
    }
    if groupless(&subquery.subquery).is_some() {
        return Ok(Transformed::yes(lit(!negated)));
    }
    let exists = Expr::Exists(Exists { subquery, negated });
    Ok(if is_changed { Transformed::yes(exists) } else { Transformed::no(exists) })
}

/// The aggregate without groups whose one row a plan gives.
fn groupless(plan: &LogicalPlan) -> Option<&Aggregate> {
    match plan {
        LogicalPlan::Aggregate(aggregate) => aggregate.group_expr.is_empty().then_some(aggregate),
        LogicalPlan::Projection(projection) => groupless(&projection.input),
        LogicalPlan::SubqueryAlias(alias) => groupless(&alias.input),
        LogicalPlan::Sort(sort) if sort.fetch != Some(0) => groupless(&sort.input),
        LogicalPlan::Distinct(distinct) => groupless(distinct.input()),
        _ => None,
    }
}

fn is_correlated(subquery: &Subquery) -> bool {
    !subquery.outer_ref_columns.is_empty()
}

/// Name of the column of a subquery, so that no column of the outer query has it.
const VALUE: &str = "__value_of_in";

/// The rows of a subquery of IN.
struct Rows {
    plan: LogicalPlan,
    references: Vec<Expr>,
    output: Expr,
    is_nullable: bool,
    spans: Spans,
}

impl Rows {
    fn of(subquery: &Subquery) -> Result<Rows> {
        let schema = subquery.subquery.schema();
        let columns = schema.columns();
        let ([field], [column]) = (schema.fields().as_ref(), columns.as_slice()) else {
            return plan_err!("a subquery of IN has {} columns, not one", columns.len());
        };
        let value = Expr::Column(column.clone()).alias(VALUE);
        Ok(Rows {
            plan: LogicalPlanBuilder::from(subquery.subquery.as_ref().clone()).project([value])?.build()?,
            references: subquery.outer_ref_columns.clone(),
            output: Expr::Column(Column::new_unqualified(VALUE)),
            is_nullable: field.is_nullable(),
            spans: subquery.spans.clone(),
        })
    }

    /// EXISTS a row for which `condition` holds.
    fn exist(&self, condition: Option<Expr>, negated: bool) -> Result<Expr> {
        let mut references = self.references.clone();
        let mut rows = LogicalPlanBuilder::from(self.plan.clone());
        if let Some(condition) = condition {
            condition.apply(|node| {
                if matches!(node, Expr::OuterReferenceColumn(..)) && !references.contains(node) {
                    references.push(node.clone());
                }
                Ok(TreeNodeRecursion::Continue)
            })?;
            rows = rows.filter(condition)?;
        }
        let (subquery, spans) = (Arc::new(rows.build()?), self.spans.clone());
        let subquery = Subquery { subquery, outer_ref_columns: references, spans };
        Ok(Expr::Exists(Exists { subquery, negated }))
    }
}

/// A value of the outer query as rows of the subquery see it.
fn outer(value: &Expr, schema: &DFSchema) -> Result<Expr> {
    if value.contains_outer() {
        return plan_err!(
            "IN (SELECT ...) over a value of a query further out is not supported inside of a subquery; write a join"
        );
    }
    let referring = value.clone().transform(|node| match node {
        Expr::ScalarSubquery(_) | Expr::Exists(_) | Expr::InSubquery(_) => {
            plan_err!("a subquery as the value of IN (SELECT ...) is not supported; write a join")
        }
        Expr::Column(column) => {
            let field = Arc::clone(schema.field_from_column(&column)?);
            Ok(Transformed::yes(Expr::OuterReferenceColumn(field, column)))
        }
        node => Ok(Transformed::no(node)),
    })?;
    Ok(referring.data)
}
