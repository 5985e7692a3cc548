//! Queries whose answer depends on the order in which rows are read, though they have no ORDER BY for it: sums of
//! doubles (their last digits), which of equal texts a group shows, aggregates of lists, recursions.
//!
//! The servers read a table in the order of its key, one row after the other. Over tables that are read in no time such
//! a query does the same here: one thread, one reader. Larger ones are read by many, in any order.

use datafusion::arrow::datatypes::DataType;
use datafusion::common::tree_node::TreeNode;
use datafusion::logical_expr::{Expr, ExprSchemable, LogicalPlan};
use datafusion::physical_plan::ExecutionPlan;

use crate::collation::shows_one_text;
use crate::functions::{GROUP_CONCAT, JSON_ARRAYAGG, JSON_OBJECTAGG};
use crate::scan::RelationScanExec;

/// Most leaf pages of tables that a query reads in order: 1 MiB of InnoDB's default size.
const MAX_PAGES: u64 = 64;
/// Name of the operator that looks rows up.
const LOOKUP_JOIN: &str = "OutOfOrderLookupJoinExec";

/// Whether a recursion is in it, whose rows come in the order of its steps.
pub(super) fn has_recursion(plan: &LogicalPlan) -> bool {
    plan.exists(|node| Ok(matches!(node, LogicalPlan::RecursiveQuery(_)))).unwrap_or(false)
}

/// Whether the order of rows shows in the answer.
pub(super) fn is_shown(plan: &LogicalPlan) -> bool {
    let of_node = |node: &LogicalPlan| {
        let LogicalPlan::Aggregate(aggregate) = node else { return false };
        let is_floating = |of: &Expr| {
            of.get_type(aggregate.input.schema().as_ref())
                .is_ok_and(|data_type| data_type == DataType::Float64)
        };
        let depends = |of: &Expr| {
            let Expr::AggregateFunction(of) = of else { return Ok(false) };
            let args = &of.params.args;
            Ok(match of.func.name() {
                "sum" | "avg" | "stddev" | "stddev_pop" | "var" | "var_pop" | "var_samp" | "stddev_samp" => {
                    args.iter().any(is_floating)
                }
                GROUP_CONCAT | JSON_ARRAYAGG | JSON_OBJECTAGG => of.params.order_by.is_empty(),
                name => name == "first_value" || shows_one_text(name),
            })
        };
        aggregate.aggr_expr.iter().any(|of| of.exists(depends).unwrap_or(false))
    };
    plan.exists(|node| Ok(of_node(node))).unwrap_or(false)
}

/// Whether a plan reads small tables alone, and by scans.
pub(super) fn reads_little(plan: &dyn ExecutionPlan) -> bool {
    pages_read(plan).is_some_and(|pages| pages <= MAX_PAGES)
}

fn pages_read(plan: &dyn ExecutionPlan) -> Option<u64> {
    if let Some(scan) = plan.downcast_ref::<RelationScanExec>() {
        return Some(scan.table_pages());
    }
    // Look-ups have no order of their own.
    if plan.name() == LOOKUP_JOIN {
        return None;
    }
    plan.children().into_iter().map(|child| pages_read(child.as_ref())).sum()
}
