//! EXCEPT ALL and INTERSECT ALL count copies of rows: `max(m - n, 0)` and `min(m, n)` of them remain.
//!
//! DataFusion plans both as an anti or semi join on all columns, which removes or keeps every copy. Numbering the
//! copies of each row on both sides makes copies different rows: the k-th copy on the left meets the k-th on the
//! right.

use std::sync::Arc;

use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult};
use datafusion::common::{Column, JoinType, NullEquality, Result};
use datafusion::functions_window::expr_fn::row_number;
use datafusion::logical_expr::{
    Distinct, Expr, ExprFunctionExt, ExprSchemable, Join, LogicalPlan, LogicalPlanBuilder,
};
use datafusion::optimizer::AnalyzerRule;

use crate::{Error, ErrorKind};

/// Names of the numbers.
const COPY: [&str; 2] = ["__left_copy", "__right_copy"];

/// The rule.
#[derive(Debug)]
pub(super) struct SetOperationsRule;

impl AnalyzerRule for SetOperationsRule {
    fn name(&self) -> &str {
        "copies_of_rows"
    }

    fn analyze(&self, plan: LogicalPlan, _: &ConfigOptions) -> Result<LogicalPlan> {
        plan.transform_up_with_subqueries(|node| match node {
            LogicalPlan::Join(join) if is_set_operation(&join) => {
                check_types(&join)?;
                match counts_copies(&join) {
                    true => counted(join).map(Transformed::yes),
                    false => Ok(Transformed::no(LogicalPlan::Join(join))),
                }
            }
            node => Ok(Transformed::no(node)),
        })
        .data()
    }
}

/// Whether a join stands for EXCEPT or INTERSECT: nothing else joins NULL to NULL before optimization.
pub(crate) fn is_set_operation(join: &Join) -> bool {
    matches!(join.join_type, JoinType::LeftAnti | JoinType::LeftSemi)
        && join.null_equality == NullEquality::NullEqualsNull
}

/// The servers give rows the common types of both sides, DataFusion those of the left side.
fn check_types(join: &Join) -> Result<()> {
    for (left, right) in &join.on {
        let left = left.get_type(join.left.schema())?;
        let right = right.get_type(join.right.schema())?;
        let is_same = left == right
            || left.is_integer() && right.is_integer()
            || left.is_string() && right.is_string()
            || left.is_null()
            || right.is_null();
        if !is_same {
            let message = "EXCEPT and INTERSECT of columns of different types are not run; use CAST";
            return Err(Error::new(ErrorKind::Unsupported, message).into());
        }
    }
    Ok(())
}

/// Whether it counts copies: a set operation without ALL has a DISTINCT on its left.
fn counts_copies(join: &Join) -> bool {
    !matches!(join.left.as_ref(), LogicalPlan::Distinct(Distinct::All(_))) && !is_counted(&join.left)
}

fn is_counted(plan: &LogicalPlan) -> bool {
    plan.schema().fields().last().is_some_and(|field| field.name() == COPY[0])
}

fn counted(join: Join) -> Result<LogicalPlan> {
    let columns: Vec<Expr> = join.left.schema().columns().into_iter().map(Expr::Column).collect();
    let [left, right] = [(join.left, COPY[0]), (join.right, COPY[1])]
        .map(|(side, name)| numbered(Arc::unwrap_or_clone(side), name));
    let (left, right) = (left?, right?);
    let mut on = join.on;
    let copy = |name: &str| Expr::Column(Column::new_unqualified(name));
    on.push((copy(COPY[0]), copy(COPY[1])));
    let joined = Join::try_new(
        Arc::new(left),
        Arc::new(right),
        on,
        join.filter,
        join.join_type,
        join.join_constraint,
        join.null_equality,
        join.null_aware,
    )?;
    LogicalPlanBuilder::from(LogicalPlan::Join(joined)).project(columns)?.build()
}

/// The rows with the number of each among its copies.
fn numbered(plan: LogicalPlan, name: &str) -> Result<LogicalPlan> {
    let columns: Vec<Expr> = plan.schema().columns().into_iter().map(Expr::Column).collect();
    let number = row_number().partition_by(columns.clone()).build()?;
    let window = LogicalPlanBuilder::from(plan).window(vec![number.clone()])?;
    let number = Expr::Column(Column::new_unqualified(number.schema_name().to_string()));
    let outputs = columns.into_iter().chain([number.alias(name)]);
    window.project(outputs.collect::<Vec<_>>())?.build()
}
