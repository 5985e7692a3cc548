//! CASE and IF of MySQL show the digits that each branch has where nothing keeps rows between them and the client:
//! `IF(paid, price, 0)` gives `0`, not `0.00`.
//!
//! As a key, beside a window, in a set operation, with DISTINCT, or out of a derived table they have the digits of
//! their type. So only those of the outermost select list become texts, above what sorts and limits the rows.

use std::sync::Arc;

use datafusion::common::{Column, Result};
use datafusion::logical_expr::{Expr, LogicalPlan, LogicalPlanBuilder, Projection};

use super::bound::BoundCall;
use super::statement::StatementRules;

/// The plan with such columns as they are shown.
pub(super) fn shown(plan: LogicalPlan, of: &StatementRules) -> Result<LogicalPlan> {
    if !of.rules.mysql {
        return Ok(plan);
    }
    let Some(projection) = outermost(&plan) else { return Ok(plan) };
    let text = |expression: &Expr| BoundCall::with_own_digits(expression.clone().unalias(), &of.rules);
    let texts: Vec<Option<Expr>> = projection.expr.iter().map(text).collect();
    if texts.iter().all(Option::is_none) {
        return Ok(plan);
    }
    let schema = Arc::clone(plan.schema());
    let columns = schema.iter().zip(&texts).enumerate().map(|(no, ((qualifier, field), text))| match text {
        Some(_) => {
            let column = Expr::Column(Column::new_unqualified(text_name(no)));
            column.alias_qualified(qualifier.cloned(), field.name())
        }
        None => Expr::Column(Column::from((qualifier, field))),
    });
    let columns: Vec<Expr> = columns.collect();
    LogicalPlanBuilder::from(with_texts(plan, &texts)?).project(columns)?.build()
}

fn text_name(no: usize) -> String {
    format!("own digits {no}")
}

/// The select list of the outermost query, if its rows are not kept between it and the client.
fn outermost(plan: &LogicalPlan) -> Option<&Projection> {
    match plan {
        LogicalPlan::Sort(sort) => outermost(&sort.input),
        LogicalPlan::Limit(limit) => outermost(&limit.input),
        LogicalPlan::Projection(projection) if !has_window(&projection.input) => Some(projection),
        _ => None,
    }
}

fn has_window(plan: &LogicalPlan) -> bool {
    match plan {
        LogicalPlan::Window(_) => true,
        LogicalPlan::Projection(projection) => has_window(&projection.input),
        LogicalPlan::Filter(filter) => has_window(&filter.input),
        _ => false,
    }
}

/// The same with the texts as further columns.
fn with_texts(plan: LogicalPlan, texts: &[Option<Expr>]) -> Result<LogicalPlan> {
    let inside = |input: Arc<LogicalPlan>| with_texts(Arc::unwrap_or_clone(input), texts).map(Arc::new);
    Ok(match plan {
        LogicalPlan::Sort(mut sort) => {
            sort.input = inside(sort.input)?;
            LogicalPlan::Sort(sort)
        }
        LogicalPlan::Limit(mut limit) => {
            limit.input = inside(limit.input)?;
            LogicalPlan::Limit(limit)
        }
        LogicalPlan::Projection(projection) => {
            let more = texts.iter().enumerate();
            let more = more.filter_map(|(no, text)| Some(text.clone()?.alias(text_name(no))));
            let expressions = projection.expr.into_iter().chain(more).collect();
            LogicalPlan::Projection(Projection::try_new(expressions, projection.input)?)
        }
        other => other,
    })
}
