//! Hides the keys of a grouped input from the grouping above it.
//!
//! DataFusion derives from `GROUP BY a` that `a` determines all columns. A grouping above a join of such rows inherits
//! that as "`a` determines every column of the result", which is no longer so, and group keys, sort keys and DISTINCT
//! are removed by it. Keys are matched by name, so a grouping whose keys have names of their own neither uses nor
//! inherits any: group keys become aliases, and a projection above gives their names back.

use std::sync::Arc;

use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult};
use datafusion::common::{Column, Result};
use datafusion::logical_expr::{Aggregate, Expr, LogicalPlan, Projection};
use datafusion::optimizer::{AnalyzerRule, ApplyOrder, OptimizerConfig, OptimizerRule};

/// Prefix of the names of hidden keys.
const HIDDEN: &str = "__group_key_";

/// The rule.
#[derive(Debug)]
pub(super) struct GroupKeysRule;

impl AnalyzerRule for GroupKeysRule {
    fn name(&self) -> &str {
        "keys_of_groups"
    }

    fn analyze(&self, plan: LogicalPlan, _: &ConfigOptions) -> Result<LogicalPlan> {
        // Schemas above keep what they had inherited until they are computed again.
        plan.transform_up_with_subqueries(|node| {
            let hidden = hide_keys(node.recompute_schema()?)?;
            Ok(Transformed::yes(hidden.data))
        })
        .data()
    }
}

impl OptimizerRule for GroupKeysRule {
    fn name(&self) -> &str {
        "keys_of_groups"
    }

    fn apply_order(&self) -> Option<ApplyOrder> {
        Some(ApplyOrder::BottomUp)
    }

    fn supports_rewrite(&self) -> bool {
        true
    }

    fn rewrite(&self, plan: LogicalPlan, _: &dyn OptimizerConfig) -> Result<Transformed<LogicalPlan>> {
        hide_keys(plan)
    }
}

/// Renames the group keys of a grouping whose input has keys.
pub(super) fn hide_keys(plan: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
    let LogicalPlan::Aggregate(aggregate) = plan else { return Ok(Transformed::no(plan)) };
    let has_keys = !aggregate.input.schema().functional_dependencies().is_empty();
    let is_plain = |key: &Expr| !matches!(key, Expr::GroupingSet(_));
    let is_hidden = |key: &Expr| matches!(key, Expr::Alias(alias) if alias.name.starts_with(HIDDEN));
    let keys = &aggregate.group_expr;
    if !has_keys || keys.is_empty() || !keys.iter().all(is_plain) || keys.iter().all(is_hidden) {
        return Ok(Transformed::no(LogicalPlan::Aggregate(aggregate)));
    }
    let Aggregate { input, group_expr, aggr_expr, schema, .. } = aggregate;
    let count = group_expr.len();
    let hidden = |no: usize| format!("{HIDDEN}{no}");
    let keys = group_expr.into_iter().enumerate().map(|(no, key)| key.alias(hidden(no))).collect();
    let grouped = Aggregate::try_new(input, keys, aggr_expr)?;
    let outputs = schema.iter().enumerate().map(|(no, (qualifier, field))| match no < count {
        true => Expr::Column(Column::new_unqualified(hidden(no)))
            .alias_qualified(qualifier.cloned(), field.name()),
        false => Expr::Column(Column::new(qualifier.cloned(), field.name())),
    });
    let outputs = outputs.collect();
    let named = Projection::try_new(outputs, Arc::new(LogicalPlan::Aggregate(grouped)))?;
    Ok(Transformed::yes(LogicalPlan::Projection(named)))
}
