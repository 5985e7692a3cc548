//! The analyzer rule.

use std::sync::Arc;

use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult};
use datafusion::common::{JoinConstraint, Result};
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::{Distinct, Expr, Join, LogicalPlan, Sort};
use datafusion::optimizer::AnalyzerRule;

use super::comparing::{Comparing, Scope, columns_of, refused};
use super::{correlated, grouping};
use crate::binding::StatementRules;
use crate::expression::{Connection, KeyOf, Refusal};

/// Compares, orders and groups texts by their collations.
#[derive(Debug)]
pub struct CollationRule;

impl AnalyzerRule for CollationRule {
    fn name(&self) -> &str {
        "collations"
    }

    fn analyze(&self, plan: LogicalPlan, config: &ConfigOptions) -> Result<LogicalPlan> {
        let connection = StatementRules::connection(config);
        plan.transform_up_with_subqueries(|node| rewritten(node, connection)).data()
    }
}

fn rewritten(plan: LogicalPlan, connection: Connection) -> Result<Transformed<LogicalPlan>> {
    match plan {
        LogicalPlan::Aggregate(aggregate) => grouping::aggregate(aggregate, connection),
        LogicalPlan::Distinct(Distinct::All(input)) => {
            Ok(match grouping::distinct(Arc::clone(&input), connection)? {
                Some(grouped) => Transformed::yes(grouped),
                None => Transformed::no(LogicalPlan::Distinct(Distinct::All(input))),
            })
        }
        LogicalPlan::Distinct(Distinct::On(on)) => grouping::distinct_on(on, connection),
        LogicalPlan::Join(join) => joined(join, connection),
        LogicalPlan::Sort(sort) => sorted(sort, connection),
        LogicalPlan::RecursiveQuery(query) => {
            let plan = LogicalPlan::RecursiveQuery(query);
            if let LogicalPlan::RecursiveQuery(query) = &plan
                && query.is_distinct
            {
                let columns = columns_of(&plan, connection)?;
                if columns.iter().any(|column| !matches!(column, Comparing::Plainly)) {
                    let why =
                        "UNION of texts in a recursive query, which compare by collation; use UNION ALL";
                    return Err(refused(Refusal::new(why)));
                }
            }
            Ok(Transformed::no(plan))
        }
        LogicalPlan::TableScan(_) => Ok(Transformed::no(plan)),
        other => {
            let rewritten = expressions(other, connection)?;
            match rewritten.data {
                LogicalPlan::Filter(filter) if filter.predicate.contains_outer() => {
                    Ok(Transformed::yes(correlated::keys_as_columns(filter)?))
                }
                plan => Ok(Transformed::new_transformed(plan, rewritten.transformed)),
            }
        }
    }
}

/// A plan whose expressions are rewritten under their names.
fn expressions(plan: LogicalPlan, connection: Connection) -> Result<Transformed<LogicalPlan>> {
    if plan.expressions().is_empty() {
        return Ok(Transformed::no(plan));
    }
    let scope = Scope::of(&plan, connection)?;
    let names = NamePreserver::new(&plan);
    plan.map_expressions(|expression| {
        let name = names.save(&expression);
        let rewritten = scope.rewritten(expression)?;
        Ok(rewritten.update_data(|expression| name.restore(expression)))
    })?
    .map_data(LogicalPlan::recompute_schema)
}

fn sorted(mut sort: Sort, connection: Connection) -> Result<Transformed<LogicalPlan>> {
    let plan = LogicalPlan::Sort(sort.clone());
    let scope = Scope::of(&plan, connection)?;
    let mut changed = false;
    for key in &mut sort.expr {
        let rewritten = scope.rewritten(key.expr.clone())?;
        changed |= rewritten.transformed;
        key.expr = rewritten.data;
        changed |= scope.replace_by_rank(&mut key.expr, KeyOf::Order)?;
    }
    Ok(Transformed::new_transformed(LogicalPlan::Sort(sort), changed))
}

fn joined(mut join: Join, connection: Connection) -> Result<Transformed<LogicalPlan>> {
    let plan = LogicalPlan::Join(join.clone());
    let scope = Scope::of(&plan, connection)?;
    let mut changed = false;
    for (left, right) in &mut join.on {
        if let Some([left_key, right_key]) = scope.keys([left, right], "=")? {
            (*left, *right) = (left_key, right_key);
            // USING names columns, which keys are not.
            join.join_constraint = JoinConstraint::On;
            changed = true;
        }
    }
    if let Some(filter) = join.filter.take() {
        let rewritten: Transformed<Expr> = scope.rewritten(filter)?;
        changed |= rewritten.transformed;
        join.filter = Some(rewritten.data);
    }
    Ok(Transformed::new_transformed(LogicalPlan::Join(join), changed))
}
