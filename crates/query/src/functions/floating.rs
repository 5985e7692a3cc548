//! Floating-point numbers meet decimals as doubles, as in MySQL, and FLOAT meets everything and is computed with as
//! one: literals are decimals here, and DataFusion would bring the float to a decimal's digits.

use datafusion::arrow::datatypes::DataType;
use datafusion::common::tree_node::Transformed;
use datafusion::common::{DFSchema, Result};
use datafusion::logical_expr::planner::{ExprPlanner, PlannerResult, RawBinaryExpr};
use datafusion::logical_expr::{Expr, ExprSchemable, cast};
use datafusion::sql::sqlparser::ast::BinaryOperator;

/// For all binary operators.
#[derive(Debug)]
pub struct FloatPlanner;

impl ExprPlanner for FloatPlanner {
    fn plan_binary_op(
        &self,
        mut raw: RawBinaryExpr,
        schema: &DFSchema,
    ) -> Result<PlannerResult<RawBinaryExpr>> {
        if let (Ok(left), Ok(right)) = (raw.left.get_type(schema), raw.right.get_type(schema)) {
            let single = DataType::Float32;
            let numbers = left.is_numeric() && right.is_numeric();
            let computes = matches!(
                raw.op,
                BinaryOperator::Plus
                    | BinaryOperator::Minus
                    | BinaryOperator::Multiply
                    | BinaryOperator::Divide
                    | BinaryOperator::Modulo
            );
            let is_single = numbers && (left == single || right == single) && (left != right || computes);
            if is_single
                || left.is_floating() && right.is_decimal()
                || left.is_decimal() && right.is_floating()
            {
                raw.left = as_double(raw.left, &left);
                raw.right = as_double(raw.right, &right);
            }
        }
        // Whatever the operator does is for the next planner to say.
        Ok(PlannerResult::Original(raw))
    }
}

/// The same for BETWEEN and IN, before types are coerced.
pub(super) fn rewrite(expression: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    let data_type = |expression: &Expr| expression.get_type(schema).unwrap_or(DataType::Null);
    let mixed = |expressions: &mut dyn Iterator<Item = &Expr>| {
        let types: Vec<DataType> = expressions.map(data_type).collect();
        let singles = types.iter().filter(|data_type| **data_type == DataType::Float32).count();
        let decimals = types.iter().any(DataType::is_floating) && types.iter().any(DataType::is_decimal);
        decimals || singles > 0 && singles < types.len() && types.iter().all(DataType::is_numeric)
    };
    let double = |expression: Expr| {
        let data_type = data_type(&expression);
        as_double(expression, &data_type)
    };
    Ok(match expression {
        Expr::Between(mut between)
            if mixed(&mut [&*between.expr, &*between.low, &*between.high].into_iter()) =>
        {
            between.expr = Box::new(double(*between.expr));
            between.low = Box::new(double(*between.low));
            between.high = Box::new(double(*between.high));
            Transformed::yes(Expr::Between(between))
        }
        Expr::InList(mut list) if mixed(&mut std::iter::once(&*list.expr).chain(&list.list)) => {
            list.expr = Box::new(double(*list.expr));
            list.list = list.list.into_iter().map(double).collect();
            Transformed::yes(Expr::InList(list))
        }
        other => Transformed::no(other),
    })
}

fn as_double(expression: Expr, data_type: &DataType) -> Expr {
    if *data_type == DataType::Float64 { expression } else { cast(expression, DataType::Float64) }
}
