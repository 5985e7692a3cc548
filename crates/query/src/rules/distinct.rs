//! DISTINCT and sort keys without the keys of their input, which DataFusion believes to hold where they do not: NULLs
//! of a unique key repeat, and a join repeats rows.

use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;

use datafusion::common::Result;
use datafusion::common::tree_node::Transformed;
use datafusion::logical_expr::{Aggregate, Distinct, Expr, LogicalPlan, Sort};
use datafusion::optimizer::{ApplyOrder, OptimizerConfig, OptimizerRule};

use super::group_keys::hide_keys;

type Rule = Arc<dyn OptimizerRule + Send + Sync>;

/// Makes a grouping of a DISTINCT, always.
pub(super) struct DistinctRule {
    replaced: Rule,
}

impl DistinctRule {
    /// Instead of `replaced`, which keeps what is no DISTINCT over columns.
    pub(super) fn new(replaced: Rule) -> DistinctRule {
        DistinctRule { replaced }
    }
}

impl OptimizerRule for DistinctRule {
    fn name(&self) -> &str {
        "distinct_to_groups"
    }

    fn apply_order(&self) -> Option<ApplyOrder> {
        self.replaced.apply_order()
    }

    fn supports_rewrite(&self) -> bool {
        true
    }

    fn rewrite(&self, plan: LogicalPlan, config: &dyn OptimizerConfig) -> Result<Transformed<LogicalPlan>> {
        match plan {
            LogicalPlan::Distinct(Distinct::All(input)) if !input.schema().fields().is_empty() => {
                let columns = input.schema().columns().into_iter().map(Expr::Column).collect();
                let grouped = LogicalPlan::Aggregate(Aggregate::try_new(input, columns, Vec::new())?);
                Ok(Transformed::yes(hide_keys(grouped)?.data))
            }
            other => self.replaced.rewrite(other, config),
        }
    }
}

/// Drops sort keys that come twice, and no others.
pub(super) struct SortKeysRule {
    replaced: Rule,
}

impl SortKeysRule {
    /// Instead of `replaced`, which keeps the keys of groupings.
    pub(super) fn new(replaced: Rule) -> SortKeysRule {
        SortKeysRule { replaced }
    }
}

impl OptimizerRule for SortKeysRule {
    fn name(&self) -> &str {
        "sort_keys"
    }

    fn apply_order(&self) -> Option<ApplyOrder> {
        self.replaced.apply_order()
    }

    fn supports_rewrite(&self) -> bool {
        true
    }

    fn rewrite(&self, plan: LogicalPlan, config: &dyn OptimizerConfig) -> Result<Transformed<LogicalPlan>> {
        let LogicalPlan::Sort(Sort { expr, input, fetch }) = plan else {
            return self.replaced.rewrite(plan, config);
        };
        let before = expr.len();
        let mut seen: HashSet<Expr> = HashSet::with_capacity(before);
        // The first of equal expressions decides, whatever the direction of the later ones.
        let expr: Vec<_> = expr.into_iter().filter(|key| seen.insert(key.expr.clone())).collect();
        let is_changed = expr.len() < before;
        let sorted = LogicalPlan::Sort(Sort { expr, input, fetch });
        Ok(if is_changed { Transformed::yes(sorted) } else { Transformed::no(sorted) })
    }
}

/// Splits a grouping with one DISTINCT argument into two, unless a sum beside it would change its type: a sum of sums
/// has more digits.
pub(super) struct SingleDistinctRule {
    replaced: Rule,
}

impl SingleDistinctRule {
    /// Asks `replaced` where the types stay.
    pub(super) fn new(replaced: Rule) -> SingleDistinctRule {
        SingleDistinctRule { replaced }
    }
}

impl OptimizerRule for SingleDistinctRule {
    fn name(&self) -> &str {
        "single_distinct"
    }

    fn apply_order(&self) -> Option<ApplyOrder> {
        self.replaced.apply_order()
    }

    fn supports_rewrite(&self) -> bool {
        true
    }

    fn rewrite(&self, plan: LogicalPlan, config: &dyn OptimizerConfig) -> Result<Transformed<LogicalPlan>> {
        if let LogicalPlan::Aggregate(aggregate) = &plan
            && aggregate.aggr_expr.iter().any(is_plain_sum)
        {
            return Ok(Transformed::no(plan));
        }
        self.replaced.rewrite(plan, config)
    }
}

fn is_plain_sum(expression: &Expr) -> bool {
    match expression {
        Expr::AggregateFunction(aggregate) => !aggregate.params.distinct && aggregate.func.name() == "sum",
        Expr::Alias(alias) => is_plain_sum(&alias.expr),
        _ => false,
    }
}

impl fmt::Debug for DistinctRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("DistinctRule")
    }
}

impl fmt::Debug for SortKeysRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SortKeysRule")
    }
}

impl fmt::Debug for SingleDistinctRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SingleDistinctRule")
    }
}
