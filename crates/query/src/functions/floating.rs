//! Floating-point numbers meet decimals as doubles, as in MySQL: literals are decimals here, and DataFusion would bring the float to a decimal's digits.

use datafusion::arrow::datatypes::DataType;
use datafusion::common::{DFSchema, Result};
use datafusion::logical_expr::planner::{ExprPlanner, PlannerResult, RawBinaryExpr};
use datafusion::logical_expr::{Expr, ExprSchemable, cast};

/// For all binary operators.
#[derive(Debug)]
pub struct FloatPlanner;

impl ExprPlanner for FloatPlanner {
    fn plan_binary_op(
        &self,
        mut raw: RawBinaryExpr,
        schema: &DFSchema,
    ) -> Result<PlannerResult<RawBinaryExpr>> {
        if let (Ok(left), Ok(right)) = (raw.left.get_type(schema), raw.right.get_type(schema))
            && (left.is_floating() && right.is_decimal() || left.is_decimal() && right.is_floating())
        {
            raw.left = as_double(raw.left, &left);
            raw.right = as_double(raw.right, &right);
        }
        // Whatever the operator does is for the next planner to say.
        Ok(PlannerResult::Original(raw))
    }
}

fn as_double(expression: Expr, data_type: &DataType) -> Expr {
    if *data_type == DataType::Float64 { expression } else { cast(expression, DataType::Float64) }
}
