//! -0.0 and 0 are one value.
//!
//! DataFusion compares, joins and groups them as one, but tells them apart in IN lists and semi joins of IN, in
//! DISTINCT of an aggregate, in the keys of windows and ORDER BY, and in CASE with a value. There a function takes
//! the sign away.

use datafusion::arrow::datatypes::DataType;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::common::{Column, DFSchema, JoinType, Result};
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::utils::merge_schema;
use datafusion::logical_expr::{Expr, ExprSchemable, LogicalPlan, LogicalPlanBuilder, Operator};
use datafusion::optimizer::AnalyzerRule;

use crate::functions::unsigned_zero_function;

/// The rule.
#[derive(Debug)]
pub(super) struct ZeroRule;

impl AnalyzerRule for ZeroRule {
    fn name(&self) -> &str {
        "signs_of_zero"
    }

    fn analyze(&self, plan: LogicalPlan, _: &ConfigOptions) -> Result<LogicalPlan> {
        plan.transform_up_with_subqueries(|node| {
            let schema = merge_schema(&node.inputs());
            let node = match node {
                LogicalPlan::Sort(mut sort) => {
                    sort.expr.iter_mut().for_each(|key| take_sign(&mut key.expr, &schema));
                    return Ok(Transformed::yes(LogicalPlan::Sort(sort)));
                }
                LogicalPlan::Join(mut join) if is_semi(join.join_type) => {
                    for (left, right) in &mut join.on {
                        take_sign(left, &schema);
                        take_sign(right, &schema);
                    }
                    let filter =
                        join.filter.take().map(|filter| filter.transform_up(|part| equality(part, &schema)));
                    join.filter = filter.transpose()?.map(|filter| filter.data);
                    LogicalPlan::Join(join)
                }
                node => node,
            };
            let names = NamePreserver::new(&node);
            node.map_expressions(|expression| {
                let name = names.save(&expression);
                let rewritten = expression.transform_up(|inner| rewritten(inner, &schema))?;
                Ok(rewritten.update_data(|expression| name.restore(expression)))
            })
        })
        .data()
    }
}

fn rewritten(expression: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    Ok(match expression {
        Expr::InList(mut list) if is_double(&list.expr, schema) => {
            list.expr = Box::new(unsigned(*list.expr));
            for item in &mut list.list {
                take_sign(item, schema);
            }
            Transformed::yes(Expr::InList(list))
        }
        Expr::InSubquery(mut within) if is_double(&within.expr, schema) => {
            within.expr = Box::new(unsigned(*within.expr));
            let plan = within.subquery.subquery.as_ref().clone();
            let inner = plan.schema().as_ref().clone();
            if let [column] = inner.columns().as_slice()
                && is_double(&Expr::Column(column.clone()), &inner)
            {
                let Column { relation, name, .. } = column.clone();
                let value = unsigned(Expr::Column(column.clone())).alias_qualified(relation, name);
                within.subquery.subquery = LogicalPlanBuilder::from(plan).project([value])?.build()?.into();
            }
            Transformed::yes(Expr::InSubquery(within))
        }
        Expr::AggregateFunction(mut aggregate) if aggregate.params.distinct => {
            for argument in &mut aggregate.params.args {
                take_sign(argument, schema);
            }
            Transformed::yes(Expr::AggregateFunction(aggregate))
        }
        Expr::WindowFunction(mut window) => {
            let params = &mut window.params;
            for key in
                params.partition_by.iter_mut().chain(params.order_by.iter_mut().map(|key| &mut key.expr))
            {
                take_sign(key, schema);
            }
            Transformed::yes(Expr::WindowFunction(window))
        }
        Expr::Case(mut case) => {
            if let Some(value) = &mut case.expr {
                take_sign(value, schema);
            }
            Transformed::yes(Expr::Case(case))
        }
        other => Transformed::no(other),
    })
}

/// Whether a join is one that IN and EXISTS become.
fn is_semi(kind: JoinType) -> bool {
    use JoinType::{LeftAnti, LeftMark, LeftSemi, RightAnti, RightMark, RightSemi};
    matches!(kind, LeftSemi | LeftAnti | LeftMark | RightSemi | RightAnti | RightMark)
}

fn equality(expression: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    Ok(match expression {
        Expr::BinaryExpr(mut binary) if matches!(binary.op, Operator::Eq | Operator::IsNotDistinctFrom) => {
            take_sign(&mut binary.left, schema);
            take_sign(&mut binary.right, schema);
            Transformed::yes(Expr::BinaryExpr(binary))
        }
        other => Transformed::no(other),
    })
}

fn take_sign(expression: &mut Expr, schema: &DFSchema) {
    if is_double(expression, schema) {
        *expression = unsigned(expression.clone());
    }
}

/// Whether an expression is of doubles; what has no type here is left to the planner.
fn is_double(expression: &Expr, schema: &DFSchema) -> bool {
    matches!(expression.get_type(schema), Ok(DataType::Float32 | DataType::Float64))
}

fn unsigned(expression: Expr) -> Expr {
    unsigned_zero_function().call(vec![expression])
}
