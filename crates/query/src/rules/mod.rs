//! Rules over logical plans that keep DataFusion's known faults away from results.
//!
//! Analyzer rules rewrite what would be planned wrongly, or refuse it; optimizer rules take the place of rules of
//! DataFusion that use keys of tables and groups where these no longer hold. Each fault, the version it was seen in and
//! its guard are listed in `docs/datafusion.md`.
//!
//! Above: the session's list of rules. Below: DataFusion's plans alone.

mod correlation;
mod distinct;
mod group_keys;
mod large_limit;
mod offset;
mod operators;
mod set_operations;
mod simplification;
mod sort_merge;
mod subqueries;
mod zeros;

use std::sync::Arc;

use datafusion::arrow::datatypes::Schema;
use datafusion::optimizer::optimizer::Optimizer;
use datafusion::optimizer::{AnalyzerRule, OptimizerRule};

use distinct::{DistinctRule, SingleDistinctRule, SortKeysRule};
use group_keys::GroupKeysRule;
pub use large_limit::LargeLimitRule;
pub use offset::OffsetRule;
pub use operators::OperatorsRule;
use set_operations::SetOperationsRule;
pub(crate) use set_operations::is_set_operation;
use simplification::SimplificationRule;
pub use sort_merge::SortMergeRule;
use subqueries::SubqueryRule;
use zeros::ZeroRule;

/// Bytes that a text or another value of no fixed width is taken to have, its view and its place in a block included.
const BYTES_PER_TEXT: usize = 64;

/// Bytes that a row is taken to have.
fn row_bytes(schema: &Schema) -> usize {
    schema.fields().iter().map(|field| field.data_type().primitive_width().unwrap_or(BYTES_PER_TEXT)).sum()
}

/// Analyzer rules to run before DataFusion's.
pub fn analyzer_rules() -> Vec<Arc<dyn AnalyzerRule + Send + Sync>> {
    vec![
        Arc::new(SetOperationsRule),
        Arc::new(ZeroRule),
        Arc::new(SimplificationRule),
        Arc::new(SubqueryRule),
        Arc::new(GroupKeysRule),
    ]
}

/// DataFusion's optimizer rules, with those of this module instead of the ones that use keys wrongly.
pub fn optimizer_rules() -> Vec<Arc<dyn OptimizerRule + Send + Sync>> {
    let mut rules: Vec<Arc<dyn OptimizerRule + Send + Sync>> = vec![Arc::new(GroupKeysRule)];
    rules.extend(Optimizer::new().rules.into_iter().map(|rule| -> Arc<dyn OptimizerRule + Send + Sync> {
        match rule.name() {
            "replace_distinct_aggregate" => Arc::new(DistinctRule::new(rule)),
            "eliminate_duplicated_expr" => Arc::new(SortKeysRule::new(rule)),
            "single_distinct_aggregation_to_group_by" => Arc::new(SingleDistinctRule::new(rule)),
            _ => rule,
        }
    }));
    rules
}

#[cfg(test)]
mod tests {
    use super::optimizer_rules;

    /// A rule that DataFusion renames would come back as it was.
    #[test]
    fn rules_that_use_keys_are_replaced() {
        let names: Vec<String> = optimizer_rules().iter().map(|rule| rule.name().to_owned()).collect();
        for name in ["distinct_to_groups", "sort_keys", "single_distinct", "keys_of_groups"] {
            assert!(names.iter().any(|found| found == name), "{name} is not among {names:?}");
        }
    }
}
