//! NULL in conditions that DataFusion simplifies as if there were none.
//!
//! `a IN (1) AND a IN (2)` becomes false, `a NOT IN (1) OR a NOT IN (2)` true and `a ^ a` 0, whatever `a` is. Where
//! `a` may be NULL they are written so that they are computed only of other values.

use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::common::{DFSchema, Result};
use datafusion::logical_expr::expr::{Alias, InList};
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::utils::merge_schema;
use datafusion::logical_expr::{BinaryExpr, Expr, ExprSchemable, LogicalPlan, Operator, when};
use datafusion::optimizer::AnalyzerRule;

/// The rule.
#[derive(Debug)]
pub(super) struct SimplificationRule;

impl AnalyzerRule for SimplificationRule {
    fn name(&self) -> &str {
        "null_in_simplified_conditions"
    }

    fn analyze(&self, plan: LogicalPlan, _: &ConfigOptions) -> Result<LogicalPlan> {
        plan.transform_up_with_subqueries(|node| {
            let schema = merge_schema(&node.inputs());
            let names = NamePreserver::new(&node);
            node.map_expressions(|expression| {
                let name = names.save(&expression);
                let rewritten = expression.transform_up(|inner| guarded(inner, &schema))?;
                Ok(rewritten.update_data(|expression| name.restore(expression)))
            })
        })
        .data()
    }
}

fn guarded(expression: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    let Expr::BinaryExpr(BinaryExpr { left, op, right }) = &expression else {
        return Ok(Transformed::no(expression));
    };
    let of = match (op, left.as_ref(), right.as_ref()) {
        (Operator::And | Operator::Or, left, right) => match (in_list(left), in_list(right)) {
            (Some(left), Some(right)) if left.expr == right.expr => left.expr.as_ref(),
            _ => return Ok(Transformed::no(expression)),
        },
        (Operator::BitwiseXor, left, right) if left == right => left,
        _ => return Ok(Transformed::no(expression)),
    };
    if !of.nullable(schema)? {
        return Ok(Transformed::no(expression));
    }
    let is_value = of.clone().is_not_null();
    Ok(Transformed::yes(when(is_value, expression).end()?))
}

/// The list of `a IN (1)`, `a NOT IN (1)` and `NOT a IN (1)`.
fn in_list(expression: &Expr) -> Option<&InList> {
    match expression {
        Expr::InList(list) => Some(list),
        Expr::Not(inner) | Expr::Alias(Alias { expr: inner, .. }) => in_list(inner),
        _ => None,
    }
}
